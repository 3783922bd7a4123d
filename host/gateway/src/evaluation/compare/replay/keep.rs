//! What is stored of large messages: the policy's cap, when they come in.

use std::sync::Arc;

use pmk_core::{Block, CapVerdict, Entry, Language, Message, Origin, cap};
use pmk_policy::IncomingInput;

use super::{Replay, only};
use crate::{directive::Kind, exchange::Ports, store::LiveEntry};

/// How what `mra` could not find begins; that is told whole.
const MRA_FAILED: &str = "`mra ask ";

impl Replay<'_> {
    /// What stands before the first turn is in the window from the start.
    pub(super) fn open(&mut self) {
        let limit = self.world.token_budget(only(), self.preamble.tokens).limit;
        let kept: Vec<Entry> = self.recording.opening().iter().map(|entry| self.keep(entry, &[], limit)).collect();
        self.live.entries = (0..).zip(kept).map(|(position, entry)| LiveEntry { position, entry }).collect();
    }

    /// A message as it is stored. `said` is what called the tools whose results it carries.
    pub(super) fn keep(&self, entry: &Entry, said: &[&Entry], limit: u64) -> Entry {
        let message = &entry.message;
        let mut name_of_cap = message.origin;
        let mut verdicts = Vec::new();
        for block in &message.blocks {
            let Some(content) = block.content() else { continue };
            verdicts.push(match incoming(message, block, said) {
                Some((kind, name)) => {
                    name_of_cap = kind;
                    self.world.cap(IncomingInput { kind, name: name.to_owned(), text: Arc::from(content), limit })
                }
                None => CapVerdict::Keep,
            });
        }
        if verdicts.iter().all(|verdict| *verdict == CapVerdict::Keep) {
            return entry.clone();
        }
        let (kept, sizes) =
            cap::message(entry.id, (**message).clone(), name_of_cap.name(), &verdicts, Language::default());
        self.world.seen().tally.contents_capped += sizes.len() as u64;
        kept
    }
}

/// What a content is to a policy, and its name, where it goes through the cap.
fn incoming<'a>(message: &Message, block: &Block, said: &[&'a Entry]) -> Option<(Origin, &'a str)> {
    match (message.origin, block) {
        (Origin::Seed, Block::Text { .. }) => Some((Origin::Seed, "")),
        (Origin::MraResult, Block::Text { text }) => {
            (!text.starts_with(MRA_FAILED)).then_some((Origin::MraResult, "mra"))
        }
        (_, Block::ToolResult { tool_use_id, is_error, .. }) => {
            let calls = said.iter().flat_map(|entry| &entry.message.blocks);
            let tool = calls.rev().find_map(|call| match call {
                Block::ToolUse { id, name, .. } if id == tool_use_id => Some(name.as_str()),
                _ => None,
            });
            match tool.unwrap_or_default() {
                tool if tool == Kind::MraAsk.tool() => (!is_error).then_some((Origin::MraResult, "mra")),
                tool => Some((Origin::ToolResult, tool)),
            }
        }
        _ => None,
    }
}
