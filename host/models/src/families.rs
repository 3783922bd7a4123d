//! Properties of models, known from their names.

use pmk_core::Block;

use crate::Request;

pub mod anthropic;
pub mod openai;

/// The room for an answer is at most the window divided by this.
pub const ANSWER_SHARE: u64 = 4;

/// The least room for an answer, whatever window a refusal names.
pub const LEAST_ANSWER_TOKENS: u32 = 256;

/// Room for what a model thinks before it writes, in tokens.
const THINKING_TOKENS: u64 = 24_576;

/// How many times as long as that of others the silence of a model is waited out that says nothing while it thinks.
pub const SILENCE: u32 = 5;

/// The limits of a family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The context window in tokens.
    pub window: u64,
    /// The most tokens of one answer; a request for more is refused.
    pub max_answer_tokens: u32,
    /// Whether it thinks before it writes, if nothing else is asked for. Providers count that as part of the answer.
    pub thinks: bool,
}

impl Family {
    /// Returns for how many tokens a request asks: the room for its answer, and room to think beside it as far as this
    /// window is sure to have it.
    pub fn room(&self, request: &Request, window: u64) -> u32 {
        let answer = u64::from(request.max_answer_tokens.max(1));
        let spare = window.saturating_sub(answer).saturating_sub(most_tokens(request));
        let thinking = if self.thinks { THINKING_TOKENS.min(spare) } else { 0 };
        u32::try_from(answer + thinking).unwrap_or(u32::MAX).min(self.max_answer_tokens)
    }
}

/// Returns more tokens than a request has: one of fewer than two bytes is rare.
fn most_tokens(request: &Request) -> u64 {
    let blocks = request.messages.iter().flat_map(|message| &message.blocks);
    let bytes: usize = blocks.filter_map(Block::content).map(str::len).sum();
    (bytes + request.system.len()) as u64 / 2
}

/// The window of a model by its name alone, if its family is known. A router's prefix (`anthropic/claude-sonnet-4-5`)
/// is ignored.
pub fn window(model: &str) -> Option<u64> {
    by_name(model).map(|family| family.window)
}

/// Whether a model thinks, by its name alone.
fn thinks(model: &str) -> bool {
    by_name(model).is_some_and(|family| family.thinks)
}

fn by_name(model: &str) -> Option<Family> {
    let model = model.rsplit('/').next().unwrap_or(model);
    anthropic::known(model).or_else(|| openai::known(model))
}

#[cfg(test)]
mod tests {
    use pmk_core::{Message, message};

    use super::*;

    /// Once, a model that thinks used the whole room of its answer for that, and wrote nothing.
    #[test]
    fn room_to_think_was_taken_from_the_answer() {
        let room = |model: &str, text: &str, wanted: u32, window: u64| {
            let messages = message::shared(vec![Message::user(text)]);
            let request = Request { messages, max_answer_tokens: wanted, ..Request::default() };
            anthropic::of(model).room(&request, window)
        };
        assert_eq!(room("claude-sonnet-5-5", "hi", 8_192, 1_000_000), 32_768);
        assert_eq!(room("claude-sonnet-5-5", "hi", 2_000, 1_000_000), 26_576);
        assert_eq!(room("claude-sonnet-4-5", "hi", 8_192, 200_000), 8_192, "it thinks only if it is asked to");
        assert_eq!(room("claude-sonnet-5-5", "hi", 200_000, 1_000_000), 128_000);
        // The window comes first.
        let long = "x".repeat(2 * 20_000);
        assert_eq!(room("claude-sonnet-5-5", &long, 8_192, 32_768), 12_768);
        assert_eq!(room("claude-sonnet-5-5", &long, 8_192, 20_000), 8_192);
        assert_eq!(room("claude-sonnet-5-5", "hi", 0, 0), 1);
    }

    #[test]
    fn a_window_is_known_by_the_name_alone() {
        assert_eq!(window("claude-opus-4-6"), Some(1_000_000));
        assert_eq!(window("openai/gpt-4o-mini"), Some(128_000));
        assert_eq!(window("llama3.2"), None);
    }
}
