//! Taking in the answer of somebody who was asked (specification 003 §8, §9): it becomes an atom that waits for
//! approval, and the asker gets it at once.

use pmk_core::Message;
use pmk_knowledge::{
    Atom,
    atom::{NewAtom, Source},
    extract::{self, Extraction},
    suspicion,
};

use super::{deliver, work::Work};
use crate::{
    escalation::{Marker, reading},
    ledger::Event,
    services::Services,
    store::{Outgoing, Purpose},
    talk::Inbound,
};

/// What stands in the conversation for the contact's reply: what was asked, and the answer word for word.
pub(super) fn new_message(marker: &Marker, inbound: &Inbound) -> Message {
    let reason = marker.reason.as_deref().map(|reason| format!("轉問原因：{reason}\n")).unwrap_or_default();
    let exchange = match &marker.exchange[..] {
        [] => String::new(),
        said => format!("其間的往來：\n{}\n", said.iter().map(reading::line).collect::<Vec<_>>().join("\n")),
    };
    Message::user(format!(
        "先前轉問的問題有回覆了。請整理成給提問者的回答：先說結論，保留所有事實、數字與名稱，不要加入回覆中沒有的內容，\
         用提問者的語言。(The question that was passed on has been answered; write the answer for the person who asked, \
         with nothing added.)\n\n問題：{}\n{reason}{exchange}{} 的回覆：\n{}",
        marker.question, inbound.user, inbound.text
    ))
}

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
    let mut outgoing = deliver::parts(services, &work.turn.inbound.key, speech);
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
            tracing::error!(%error, id = atom.meta.id, "the atom cannot be written");
            None
        }
    }
}
