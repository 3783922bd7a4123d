//! What goes along with every request of a turn, counted once.

use std::sync::Arc;

use pmk_core::tokens;

use crate::model::Tool;

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
        directive,
    };

    /// What was refused is asked once more without tools: then it must not be larger.
    #[test]
    fn a_preamble_without_tools_is_the_smaller_one() {
        let prompts = Prompts::default();
        for audience in Audience::ALL {
            let native = Preamble::new(prompts.system(audience, Toolbox::Native), directive::tools::definitions());
            let fenced = Preamble::without_tools(prompts.system(audience, Toolbox::Fenced));
            assert!(fenced.tokens < native.tokens, "{audience}: {} and {}", fenced.tokens, native.tokens);
        }
    }
}
