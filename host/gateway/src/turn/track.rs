//! What a turn adds to the case of its channel: question and answer, and the model's notes in a `case-update` fence.
//!
//! The fence is removed from the answer in every round before anything else is done with it. It counts only if it is
//! the model's own: a fence with a line that somebody else has spelled out is left in the text, and nothing of it is
//! stored. In a conversation without a case, the model is not told of such a fence, and one that it writes is ordinary
//! text.

use std::sync::Arc;

use pmk_core::{Block, Message, message::plain_text};
use pmk_models::Answer;
use pmk_system::threads::offload;
use tokio::sync::MutexGuard;

use super::{TurnError, parts, work::Work};
use crate::{
    case::{Case, Note, NoteKind},
    chat::MessageBody,
    directive::{self, CASE_TAG, CaseUpdate, Given},
    front::Front,
    ledger::Event,
    messages::Messages,
    services::Services,
    store::{CaseEntry, Outgoing, Purpose},
};

/// Returns the answer without its case notes, which are moved to the tally.
pub(super) async fn take_out(work: &mut Work<'_>, answer: Answer) -> Answer {
    let Some(case) = &work.case else { return answer };
    let (texts, others): (Vec<Block>, Vec<Block>) =
        answer.blocks.iter().cloned().partition(|block| matches!(block, Block::Text { .. }));
    let text = plain_text(&texts);
    let updates = directive::case_updates(&text);
    if updates.is_empty() {
        return answer;
    }
    let (own, echoed) = own(work, case, updates).await;
    if echoed {
        let inbound = &work.turn.inbound;
        tracing::warn!(session = %inbound.key, "a note of a case only repeats its request");
        let (actor, session) = (inbound.user.clone(), inbound.key.to_string());
        work.ports.journal.note(Event::DirectiveEchoed { actor, session, kind: CASE_TAG });
    }
    let text = directive::without(&text, own.iter().map(|update| &update.range));
    for note in own.into_iter().flat_map(|update| update.notes) {
        if !work.tally.notes.iter().any(|other| other.is(&note)) {
            work.tally.notes.push(note);
        }
    }
    let text = (!text.is_empty()).then_some(Block::Text { text });
    Answer { blocks: text.into_iter().chain(others).collect(), ..answer }
}

/// Returns the updates that are the model's own, and whether there were others. A note that the case already has is no
/// echo: the model was shown it.
async fn own(work: &Work<'_>, case: &Case, updates: Vec<CaseUpdate>) -> (Vec<CaseUpdate>, bool) {
    let window: Vec<Arc<Message>> = work.exchange.window.shared().collect();
    let known: Vec<Note> = case.notes.iter().map(|kept| kept.note.clone()).collect();
    // A window may hold a million characters.
    offload(move || {
        let given = Given::of(window.iter().map(Arc::as_ref));
        let is_own = |note: &Note| known.iter().any(|other| other.is(note)) || !given.spells_out(note);
        let all = updates.len();
        let own: Vec<CaseUpdate> = updates.into_iter().filter(|update| update.notes.iter().all(is_own)).collect();
        let echoed = own.len() < all;
        (own, echoed)
    })
    .await
}

/// The new notes of a case, with a lock that keeps other turns from adding to any case.
pub(super) struct Tracking<'a> {
    notes: Vec<Note>,
    _lock: Option<MutexGuard<'a, ()>>,
}

/// Returns the model's notes that the case does not have yet; none if there is no answer.
pub(super) async fn new_notes<'a>(
    services: &'a Services,
    work: &Work<'_>,
    answered: bool,
) -> Result<Tracking<'a>, TurnError> {
    let (Some(case), true, false) = (&work.case, answered, work.tally.notes.is_empty()) else {
        return Ok(Tracking { notes: vec![], _lock: None });
    };
    let lock = services.tracking.lock().await;
    let now = services.store.case(case.id).await?;
    let is_new = |note: &&Note| now.as_ref().is_none_or(|case| !case.has(note));
    let notes = work.tally.notes.iter().filter(is_new).cloned().collect();
    Ok(Tracking { notes, _lock: Some(lock) })
}

impl Tracking<'_> {
    /// Returns the message that shows the notes to people, after the answer.
    pub(super) fn outgoing(&self, front: &dyn Front, messages: &Messages, work: &Work<'_>) -> Vec<Outgoing> {
        let (Some(case), false) = (&work.case, self.notes.is_empty()) else { return vec![] };
        let speech = MessageBody { text: messages.case_tracked(case.id, &self.notes), pings: vec![] };
        let told = Outgoing { speech, purpose: Purpose::Tracked, ..Outgoing::default() };
        parts::of_question(front, messages, &work.turn.inbound.key, &told).collect()
    }

    /// Returns what is added to the case, in the transaction that records the turn.
    pub(super) fn in_case(&self, work: &Work<'_>) -> Option<CaseEntry> {
        let case = work.case.as_ref()?;
        Some(CaseEntry {
            case: case.id,
            // The text of several people's messages, or of an answer that is passed on, names its authors.
            user: work.asked_by().map(str::to_owned),
            asked_at_ms: work.turn.received_at_ms,
            notes: self.notes.clone(),
        })
    }

    /// Notes in the ledger that the case was updated.
    pub(super) fn note(&self, work: &Work<'_>) {
        let (Some(case), false) = (&work.case, self.notes.is_empty()) else { return };
        let count = |kind| self.notes.iter().filter(|note| note.kind == kind).count();
        work.ports.journal.note(Event::CaseUpdated {
            actor: work.turn.inbound.user.clone(),
            session: work.turn.inbound.key.to_string(),
            case_id: case.id.0,
            hypotheses: count(NoteKind::Hypothesis),
            questions: count(NoteKind::Question),
        });
    }
}
