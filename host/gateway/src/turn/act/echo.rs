//! Detects directives that are not the model's own.

use std::sync::Arc;

use pmk_core::Message;
use pmk_system::threads::offload;

use super::super::work::Work;
use crate::{
    directive::{Directive, Given},
    ledger::Event,
};

/// Returns which directives only repeat what the model was given, and notes each of those in the
/// ledger.
pub(super) async fn echoes(work: &Work<'_>, wanted: Vec<Option<Directive>>) -> Vec<bool> {
    if wanted.iter().all(Option::is_none) {
        return vec![false; wanted.len()];
    }
    let window: Vec<Arc<Message>> = work.exchange.window.shared().collect();
    let kinds: Vec<_> = wanted.iter().map(|wanted| wanted.as_ref().map(Directive::kind)).collect();
    // A window may hold a million characters.
    let compared = offload(move || {
        let given = Given::of(window.iter().map(Arc::as_ref));
        wanted.iter().map(|wanted| wanted.as_ref().is_some_and(|wanted| given.holds(wanted))).collect::<Vec<_>>()
    });
    let echoes = compared.await;
    for kind in kinds.into_iter().zip(&echoes).filter_map(|(kind, is_echo)| kind.filter(|_| *is_echo)) {
        let inbound = &work.turn.inbound;
        tracing::warn!(session = %inbound.key, kind = kind.tag(), "a directive only repeats its request");
        let (actor, session) = (inbound.user.clone(), inbound.key.to_string());
        work.ports.journal.note(Event::DirectiveEchoed { actor, session, kind: kind.tag() });
    }
    echoes
}
