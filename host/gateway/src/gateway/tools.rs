//! Whether the model's server takes tools: seen by what it answers and refuses, and remembered.

use std::sync::{Arc, PoisonError};

use super::Gateway;
use crate::{
    audience::{Audience, Toolbox},
    config::Config,
    directive::Offer,
    ledger::Event,
    turn::Preamble,
};

impl Gateway {
    /// Whether the model asks for things by tool calls rather than by fenced directives.
    pub(crate) fn uses_tools(&self) -> bool {
        self.toolbox == Toolbox::Native && self.takes_tools() != Some(false)
    }

    /// What the model is told about itself, its readers and, where it may call any, its tools.
    pub(crate) fn preamble(&self, audience: Audience, offer: Offer, with_tools: bool) -> Arc<Preamble> {
        // A history that speaks of tools wants some defined: where there are none, it goes as text.
        if self.takes_tools() == Some(false) || with_tools && !offer.is_something() {
            return self.preamble_as_text(audience, offer);
        }
        Arc::clone(&self.preambles[audience as usize][offer.number()][usize::from(with_tools)])
    }

    /// The same for a request that speaks of no tools at all.
    pub(crate) fn preamble_as_text(&self, audience: Audience, offer: Offer) -> Arc<Preamble> {
        Arc::clone(&self.preambles[audience as usize][offer.number()][2])
    }

    /// What can be carried out now of what the model may want, on behalf of this person.
    pub(crate) fn offer(&self, asker: &str) -> Offer {
        let Config { mra, mra_workspace, .. } = &self.config;
        Offer { mra: mra_workspace.is_some() || mra.names_a_command(), people: self.has_contacts(asker) }
    }

    /// Whether the server takes tools; `None` until that was seen.
    pub(crate) fn takes_tools(&self) -> Option<bool> {
        *self.takes_tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request with tools was answered.
    pub(crate) async fn tools_were_taken(&self) {
        // Answers come often: the lock is for the first of them.
        if self.takes_tools().is_none() {
            self.learn_tools(true).await;
        }
    }

    /// Tools were refused. That is said once: in the log, in the ledger, to the admins.
    pub(crate) async fn tools_were_refused(&self, how: &'static str, reason: &str) {
        if !self.learn_tools(false).await {
            return;
        }
        let (provider, model) = (self.model.provider(), self.model.name());
        tracing::warn!(
            provider,
            model,
            how,
            reason,
            "the model's server takes no tools: from now on it is asked for fenced directives\n  hint: once it does, \
             `pmk-host model forget` and a new start have tools tried again"
        );
        self.ledger.note(Event::ModelNoTools { provider: provider.into(), model: model.into(), how });
        self.tell_admins(self.say.no_tools(model));
    }

    /// Whether that is news.
    async fn learn_tools(&self, takes: bool) -> bool {
        let _order = self.learning_tools.lock().await;
        if !is_news(&mut self.takes_tools.lock().unwrap_or_else(PoisonError::into_inner), takes) {
            return false;
        }
        if let Err(error) = self.store.learn_tools(self.model.provider(), self.model.name(), takes).await {
            tracing::warn!(%error, takes, "whether the model takes tools is not remembered for the next start");
        }
        true
    }
}

/// Takes in what was seen, where it says more than what is known: a refusal is not undone by an answer.
fn is_news(known: &mut Option<bool>, takes: bool) -> bool {
    let is_news = if takes { known.is_none() } else { *known != Some(false) };
    if is_news {
        *known = Some(takes);
    }
    is_news
}

#[cfg(test)]
mod tests {
    use super::is_news;

    /// An answer that was under way when tools were refused said that they are taken.
    #[test]
    fn an_answer_does_not_overwrite_a_refusal_learnt_in_between() {
        let mut known = None;
        assert!(is_news(&mut known, true) && is_news(&mut known, false));
        assert!(!is_news(&mut known, true) && !is_news(&mut known, false));
        assert_eq!(known, Some(false));
    }
}
