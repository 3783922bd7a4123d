//! Reports decisions to operator, ledger and admins: which policies failed, which were suspended for it, who
//! was shown which texts, and which contents were capped.

use pmk_core::Origin;
use pmk_policy::{Change, Record};

use super::journal::Journal;
use crate::{
    ledger::{Event, PolicyAsked},
    services::Services,
};

/// Reports each layer that took part in a decision made for this user.
pub(super) fn note_records(services: &Services, journal: &Journal, actor: &str, records: &[Record]) {
    for record in records {
        note(services, journal, actor, record);
    }
}

fn note(services: &Services, journal: &Journal, actor: &str, record: &Record) {
    let asked = PolicyAsked::of(record);
    record.pass_on_log();
    if let Some(read) = Event::policy_read(actor, record, None) {
        journal.note(read);
    }
    // What a policy says at its end may quote a conversation: the log has it, the ledger and the admins do not.
    let bare_reason = record.outcome.bare_reason().unwrap_or_default();
    // A suspended policy that was skipped is no failure of this turn: the failures of any other conversation may have
    // suspended it, and the statistics of an experiment take conversations as independent of each other. Nor is what says
    // nothing of the policy.
    if record.outcome.is_skipped() {
        journal.note_skip();
    }
    if record.outcome.is_fault() == Some(true) {
        journal.note_failure();
    }
    if let Some(reason) = record.outcome.reason() {
        tracing::warn!(policy = asked.policy, sha256 = asked.sha256, reason, "policy failed");
        let (actor, reason) = (actor.to_owned(), bare_reason.to_owned());
        journal.note(Event::PolicyFailed { actor, asked: asked.clone(), reason });
    }
    match record.breaker {
        Some(Change::Suspended { failures, pause, first }) => {
            let PolicyAsked { policy, decision, .. } = &asked;
            tracing::warn!(policy, decision, failures, pause, "policy suspended: the layers below decide for it");
            if first {
                let policy = record.policy.to_string();
                services.admins.tell(services.messages.policy_suspended(&policy, failures, bare_reason));
            }
            journal.note(Event::PolicySuspended { asked, failures, pause, reason: bare_reason.to_owned() });
        }
        Some(Change::Resumed) => {
            tracing::info!(policy = asked.policy, decision = asked.decision, "policy resumed: it works again");
            journal.note(Event::PolicyResumed { asked });
        }
        None => {}
    }
}

/// Notes in the ledger the contents that were capped.
pub(super) fn note_capped(journal: &Journal, actor: &str, kind: Origin, sizes: &[(usize, usize)]) {
    sizes.iter().for_each(|&sizes| journal.note(capped(actor, kind, sizes)));
}

/// Returns the ledger event of a content that was capped, and logs it.
pub(super) fn capped(actor: &str, kind: Origin, (original_chars, capped_chars): (usize, usize)) -> Event {
    tracing::info!(kind = kind.name(), original_chars, capped_chars, "capped");
    Event::MessageCapped { actor: actor.to_owned(), kind: kind.name(), original_chars, capped_chars }
}
