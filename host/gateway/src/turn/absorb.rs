//! Handles the answer of a contact (specification 003 §8, §9): it becomes an atom that waits for approval, and
//! the asker gets it at once.

use pmk_knowledge::{
    Atom,
    atom::{NewAtom, Source},
    extract::{self, Extraction},
    suspicion,
};

use super::{parts, work::Work};
use crate::{
    escalation::Marker,
    ledger::Event,
    messages::Messages,
    services::Services,
    store::{Outgoing, Purpose},
};

/// Returns the atom made from the reply. The reply is kept word for word, whatever the extraction
/// yields.
pub(super) fn atom(
    marker: &Marker,
    contributor: &str,
    reply: &str,
    extraction: Option<Extraction>,
    now_ms: i64,
) -> Atom {
    let Extraction { question, summary, tags, asked_as, orders } =
        extraction.unwrap_or_else(|| extract::fallback(&marker.question, reply));
    // The question as asked and as extracted: the model will be shown both.
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
        source: Source { thread_key: marker.name(), contributor_user_id: contributor.to_owned() },
        suspicion,
    })
}

/// Returns the messages to send: to the asker, the answer preceded by who gave it; and to the contributor,
/// the notice that asks for a verdict, unless they were asked elsewhere.
pub(super) fn outgoing(
    services: &Services,
    work: &Work<'_>,
    marker: &Marker,
    answer: &str,
    atom: Option<&Atom>,
) -> Vec<Outgoing> {
    let notice = atom.and_then(|atom| notice(&services.messages, &work.turn.inbound.user, atom));
    let asker = marker.asker_user_id.as_deref().filter(|asker| services.people.may_hear(asker));
    let mut speech = services.messages.answer_arrived(asker, &work.turn.inbound.user);
    speech.text.push_str(answer);
    // The placeholder goes to the notice, since the contributor is looking at it anyway.
    let mut outgoing = parts::of_reply(&*services.front, &services.messages, &work.turn.inbound.key, speech);
    if notice.is_some() || atom.is_none() {
        let replies = outgoing.iter_mut().filter(|part| part.purpose == Purpose::Reply);
        replies.for_each(|part| part.purpose = Purpose::PassedOn);
    }
    outgoing.extend(notice);
    outgoing
}

/// Returns the ledger event of a suspicious atom.
pub(super) fn flagged(contributor: &str, atom: &Atom) -> Option<Event> {
    let flagged = || Event::AtomFlagged { actor: contributor.to_owned(), atom_id: atom.meta.id.clone() };
    atom.meta.flag_reason.as_ref().map(|_| flagged())
}

/// Returns the notice that asks the contributor for a verdict.
pub(super) fn notice(messages: &Messages, contributor: &str, atom: &Atom) -> Option<Outgoing> {
    match atom.render() {
        Ok(file) => Some(Outgoing {
            speech: messages.atom_pending(contributor, &atom.meta.question, &atom.meta.id, atom.meta.flagged),
            purpose: Purpose::Notice { atom: file, saved_in: None },
            ..Outgoing::default()
        }),
        Err(error) => {
            tracing::error!(%error, id = atom.meta.id, "cannot write the atom");
            None
        }
    }
}
