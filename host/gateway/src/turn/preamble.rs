//! What goes along with every request of a turn, counted once.

use std::sync::Arc;

use pmk_core::tokens;
use pmk_models::Tool;

/// A system prompt and the tools that go with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preamble {
    pub system: String,
    pub tools: Arc<[Tool]>,
    /// Whether calls and results of the history go as text, because the server takes no tools.
    pub as_text: bool,
    /// The estimate of system prompt and tools.
    pub tokens: u64,
}

impl Preamble {
    pub(crate) fn new(system: impl Into<String>, tools: impl Into<Arc<[Tool]>>) -> Preamble {
        let (system, tools) = (system.into(), tools.into());
        let tokens = u64::from(tokens::estimate(&system)) + tools.iter().map(tokens_of).sum::<u64>();
        Preamble { system, tools, as_text: false, tokens }
    }

    /// The same for a server that takes no tools.
    pub(crate) fn without_tools(system: impl Into<String>) -> Preamble {
        Preamble { as_text: true, ..Preamble::new(system, []) }
    }
}

fn tokens_of(tool: &Tool) -> u64 {
    let Tool { name, description, input_schema } = tool;
    u64::from(tokens::estimate(&format!("{name} {description} {input_schema}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        audience::{Audience, Prompts, Toolbox},
        directive::{self, Offer},
        say::Language,
    };

    /// What was refused is asked once more without tools: then it must not be larger.
    #[test]
    fn a_preamble_without_tools_is_the_smaller_one() {
        let prompts = [Language::TraditionalChinese, Language::English].map(|it| Prompts::default().speaking(it));
        for (audience, prompts) in Audience::ALL.into_iter().flat_map(|it| prompts.iter().map(move |their| (it, their)))
        {
            for offer in Offer::EACH {
                let system = |toolbox| prompts.system(audience, toolbox, offer);
                let native = Preamble::new(system(Toolbox::Native), directive::tools::definitions(offer));
                let fenced = Preamble::without_tools(system(Toolbox::Fenced));
                let (fenced, native) = (fenced.tokens, native.tokens);
                assert!(
                    fenced < native || !offer.is_something() && fenced == native,
                    "{audience}: {fenced} and {native}"
                );
            }
        }
    }
}
