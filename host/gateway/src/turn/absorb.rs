//! Taking in the answer of somebody who was asked (specification 003 §8, §9): it becomes an atom that waits for
//! approval, and the asker gets it at once.

use pmk_knowledge::{
    Atom,
    atom::{NewAtom, Source},
    extract::{self, Extraction},
    suspicion,
};

use super::{parts, work::Work};
use crate::{
    chat::Inbound,
    escalation::Marker,
    ledger::Event,
    services::Services,
    store::{Outgoing, Purpose},
};

/// The atom that the reply becomes. Whatever the extraction comes to, the reply is kept word for word.
pub(super) fn atom(marker: &Marker, inbound: &Inbound, extraction: Option<Extraction>, now_ms: i64) -> Atom {
    let reply = inbound.text.trim();
    let Extraction { question, summary, tags, asked_as, orders } =
        extraction.unwrap_or_else(|| extract::fallback(&marker.question, reply));
    // What was asked, and what is written of it: either is shown to the model again.
    let asked = format!("{}\n{question}", marker.question);
    let suspicion = suspicion::suspicion(&asked, &format!("{reply}\n{summary}"), orders);
    Atom::pending(NewAtom {
        created_at_ms: now_ms,
        scope: marker.scope.as_deref().unwrap_or_default(),
        question: &question,
        summary: &summary,
        tags,
        asked_as,
        answer: reply,
        source: Source { thread_key: marker.name(), contributor_user_id: inbound.user.clone() },
        suspicion,
    })
}

/// What the asker is told, before whose answer stands who gave it, and the notice that asks the contributor
/// for a verdict, where they have not been asked elsewhere.
pub(super) fn outgoing(
    services: &Services,
    work: &Work<'_>,
    marker: &Marker,
    answer: &str,
    atom: Option<&Atom>,
) -> Vec<Outgoing> {
    let notice = atom.and_then(|atom| notice(services, &work.turn.inbound.user, atom));
    let asker = marker.asker_user_id.as_deref().filter(|asker| services.people.may_hear(asker));
    let mut speech = services.messages.answer_arrived(asker, &work.turn.inbound.user);
    speech.text.push_str(answer);
    // The placeholder is the notice's, as the contributor is looking at it anyway.
    let mut outgoing = parts::of_reply(services, &work.turn.inbound.key, speech);
    if notice.is_some() || atom.is_none() {
        let replies = outgoing.iter_mut().filter(|part| part.purpose == Purpose::Reply);
        replies.for_each(|part| part.purpose = Purpose::PassedOn);
    }
    outgoing.extend(notice);
    outgoing
}

/// The event of an atom that is suspicious.
pub(super) fn flagged(contributor: &str, atom: &Atom) -> Option<Event> {
    let flagged = || Event::AtomFlagged { actor: contributor.to_owned(), atom_id: atom.meta.id.clone() };
    atom.meta.flag_reason.as_ref().map(|_| flagged())
}

/// What asks the contributor for a verdict.
pub(super) fn notice(services: &Services, contributor: &str, atom: &Atom) -> Option<Outgoing> {
    match atom.render() {
        Ok(file) => Some(Outgoing {
            speech: services.messages.atom_pending(contributor, &atom.meta.question, &atom.meta.id, atom.meta.flagged),
            purpose: Purpose::Notice { atom: file },
            ..Outgoing::default()
        }),
        Err(error) => {
            tracing::error!(%error, id = atom.meta.id, "cannot write the atom");
            None
        }
    }
}
