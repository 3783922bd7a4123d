//! What goes along with every request of a turn, counted once.

use std::sync::Arc;

use pmk_core::tokens;

use crate::model::Tool;

/// A system prompt and the tools that go with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preamble {
    pub system: String,
    pub tools: Arc<[Tool]>,
    /// The estimate of both.
    pub tokens: u64,
}

impl Preamble {
    pub(crate) fn new(system: impl Into<String>, tools: impl Into<Arc<[Tool]>>) -> Preamble {
        let (system, tools) = (system.into(), tools.into());
        let tokens = u64::from(tokens::estimate(&system)) + tools.iter().map(tokens_of).sum::<u64>();
        Preamble { system, tools, tokens }
    }
}

fn tokens_of(tool: &Tool) -> u64 {
    let Tool { name, description, input_schema } = tool;
    u64::from(tokens::estimate(&format!("{name} {description} {input_schema}")))
}
