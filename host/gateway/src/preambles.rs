//! The fixed part of every request: system prompt and tools, depending on the readers and on the directives available.
//! Whether the model's server accepts tools is learnt from its answers and refusals, and stored.

use std::sync::{Arc, Mutex, PoisonError};

use pmk_core::tokens;
use pmk_models::{Model, Tool};

use crate::{
    access::audience::{Audience, Prompts, ToolCallFormat},
    directive::{self, AvailableDirectives},
    ledger::{Event, Ledger},
    messages::Messages,
    operator::admins::Admins,
    store::Store,
};

/// A system prompt and its tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preamble {
    pub system: String,
    pub tools: Arc<[Tool]>,
    /// Whether calls and results in the history are sent as text, because the server does not
    /// accept tools.
    pub as_text: bool,
    /// The token estimate of system prompt and tools.
    pub tokens: u64,
}

impl Preamble {
    pub(crate) fn new(system: impl Into<String>, tools: impl Into<Arc<[Tool]>>) -> Preamble {
        let (system, tools) = (system.into(), tools.into());
        let tokens = u64::from(tokens::estimate(&system)) + tools.iter().map(tokens_of).sum::<u64>();
        Preamble { system, tools, as_text: false, tokens }
    }

    /// Returns whether the requests that it goes with begin alike.
    pub(crate) fn sends_the_same(&self, other: &Preamble) -> bool {
        self.system == other.system && self.tools == other.tools
    }

    /// Returns a preamble for a server that does not accept tools.
    pub(crate) fn without_tools(system: impl Into<String>) -> Preamble {
        Preamble { as_text: true, ..Preamble::new(system, []) }
    }
}

fn tokens_of(tool: &Tool) -> u64 {
    let Tool { name, description, input_schema } = tool;
    u64::from(tokens::estimate(&format!("{name} {description} {input_schema}")))
}

/// All preambles.
pub struct Preambles {
    toolbox: ToolCallFormat,
    /// Whether the model's server accepts tools, once known.
    takes_tools: Mutex<Option<bool>>,
    /// For each audience and set of directives: without tools, with the available tools, and for a server
    /// without tool support.
    preambles: [[[Arc<Preamble>; 3]; AvailableDirectives::EACH.len()]; Audience::ALL.len()],
    learning: Learning,
    /// Held while something is learnt, so that it is stored in the same order.
    order: tokio::sync::Mutex<()>,
}

/// Where to report what is learnt about the model's server.
pub struct Learning {
    pub model: Arc<dyn Model>,
    pub store: Store,
    pub ledger: Ledger,
    pub admins: Admins,
    pub messages: Arc<Messages>,
}

impl Preambles {
    /// Builds the preambles of all cases. `takes_tools`: whether the server accepts tools, if known.
    pub fn new(prompts: &Prompts, toolbox: ToolCallFormat, takes_tools: Option<bool>, learning: Learning) -> Preambles {
        let has_tools = learning.model.has_tools();
        let preambles = Audience::ALL.map(|audience| {
            AvailableDirectives::EACH.map(|offer| {
                let tools = if has_tools { directive::tools::definitions(offer, prompts.language()) } else { vec![] };
                let system = prompts.system(audience, toolbox, offer);
                let fenced = Preamble::without_tools(prompts.system(audience, ToolCallFormat::Fenced, offer));
                [Preamble::new(system.clone(), []), Preamble::new(system, tools), fenced].map(Arc::new)
            })
        });
        Preambles {
            toolbox,
            takes_tools: Mutex::new(takes_tools),
            preambles,
            learning,
            order: tokio::sync::Mutex::default(),
        }
    }

    /// Returns whether the model uses tool calls rather than fenced directives.
    pub(crate) fn uses_tools(&self) -> bool {
        self.toolbox == ToolCallFormat::Native && self.takes_tools() != Some(false)
    }

    /// Returns what the model is told about itself, its readers and, if it may call any, its tools.
    pub(crate) fn of(&self, audience: Audience, offer: AvailableDirectives, with_tools: bool) -> Arc<Preamble> {
        // A history with tool calls requires tool definitions; if there are none, it is sent as
        // text.
        if self.takes_tools() == Some(false) || with_tools && !offer.is_any() {
            return self.as_text(audience, offer);
        }
        Arc::clone(&self.preambles[audience as usize][offer.number()][usize::from(with_tools)])
    }

    /// Returns the preamble of a request without any tools.
    pub(crate) fn as_text(&self, audience: Audience, offer: AvailableDirectives) -> Arc<Preamble> {
        Arc::clone(&self.preambles[audience as usize][offer.number()][2])
    }

    /// Returns whether the server accepts tools; `None` until that is known.
    pub(crate) fn takes_tools(&self) -> Option<bool> {
        *self.takes_tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adopts what is stored, possibly by another host, which has reported it.
    pub(crate) fn adopt(&self, takes_tools: Option<bool>) {
        if let Some(takes) = takes_tools {
            is_news(&mut self.takes_tools.lock().unwrap_or_else(PoisonError::into_inner), takes);
        }
    }

    /// Notes that a request with tools was answered.
    pub(crate) async fn tools_were_taken(&self) {
        // Answers are frequent: only the first one takes the lock.
        if self.takes_tools().is_none() {
            self.learn_tools(true).await;
        }
    }

    /// Notes that tools were refused. Each host that finds out reports it once: in the log, in the ledger, to the
    /// admins.
    pub(crate) async fn tools_were_refused(&self, how: &'static str, reason: &str) {
        if !self.learn_tools(false).await {
            return;
        }
        let (provider, model) = (self.learning.model.provider(), self.learning.model.name());
        tracing::warn!(
            provider,
            model,
            how,
            reason,
            "the model's server does not accept tools: from now on it is asked for fenced directives\n  hint: once it \
             does, stop the gateway (all hosts of a database), run `pmk-host model forget` and start it to try tools \
             again"
        );
        self.learning.ledger.note(Event::ModelNoTools { provider: provider.into(), model: model.into(), how });
        self.learning.admins.tell(self.learning.messages.no_tools(model));
    }

    /// Stores whether tools are accepted. Returns whether that was new.
    async fn learn_tools(&self, takes: bool) -> bool {
        let _order = self.order.lock().await;
        if !is_news(&mut self.takes_tools.lock().unwrap_or_else(PoisonError::into_inner), takes) {
            return false;
        }
        if let Err(error) =
            self.learning.store.learn_tools(self.learning.model.provider(), self.learning.model.name(), takes).await
        {
            tracing::warn!(%error, takes, "cannot store whether the model accepts tools");
        }
        true
    }
}

/// Updates what is known if the observation adds to it: an answer does not override a refusal.
fn is_news(known: &mut Option<bool>, takes: bool) -> bool {
    let is_news = if takes { known.is_none() } else { *known != Some(false) };
    if is_news {
        *known = Some(takes);
    }
    is_news
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    /// A refused request is sent again without tools; it must not become larger by that.
    #[test]
    fn a_preamble_without_tools_is_the_smaller_one() {
        let prompts = [Language::TraditionalChinese, Language::English].map(|it| Prompts::default().speaking(it));
        for (audience, prompts) in Audience::ALL.into_iter().flat_map(|it| prompts.iter().map(move |their| (it, their)))
        {
            for offer in AvailableDirectives::EACH {
                let system = |toolbox| prompts.system(audience, toolbox, offer);
                let native = Preamble::new(
                    system(ToolCallFormat::Native),
                    directive::tools::definitions(offer, prompts.language()),
                );
                let fenced = Preamble::without_tools(system(ToolCallFormat::Fenced));
                let (fenced, native) = (fenced.tokens, native.tokens);
                assert!(fenced < native || !offer.is_any() && fenced == native, "{audience}: {fenced} and {native}");
            }
        }
    }

    /// Regression: an answer in progress when tools were refused reported that they are accepted.
    #[test]
    fn an_answer_does_not_overwrite_a_refusal_learnt_in_between() {
        let mut known = None;
        assert!(is_news(&mut known, true) && is_news(&mut known, false));
        assert!(!is_news(&mut known, true) && !is_news(&mut known, false));
        assert_eq!(known, Some(false));
    }
}
