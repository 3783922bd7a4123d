//! Messages written while an answer is awaited, by a contact or by the asker (specification 003 §8). The model first
//! classifies the message. Only an answer ends the waiting. A question back goes to the asker, their reply goes back to
//! the contact, "later" is acknowledged, and if the message cannot be classified, the contact is asked.

use std::{iter, pin::pin};

use super::{
    TurnError, absorb,
    attach::{self, Told},
    conclude::{Conclusion, conclude},
    journal::Journal,
    live::note_usage,
    parts, unless,
};
use pmk_core::{Message, message, tokens};
use pmk_knowledge::{Atom, extract};
use pmk_models::{Meter, Request, Stop};

use crate::{
    chat::MessageBody,
    dispatch::Batch,
    escalation::{EscalationRemark, Marker, Reading, Word, reading},
    front::Front,
    ledger::{Event, TaggedEvent, Tags},
    messages::Messages,
    services::Services,
    store::{self, Answered, Concern, EscalationUpdate, OpenTurn, Outgoing, Proposal, Purpose},
};

/// Room in tokens for a classification and an extraction.
const READING_TOKENS: u32 = 2_000;

/// Of a message too long for the model, at least this many characters are read.
const LEAST_READ: usize = 300;

/// Reactions that show that somebody will look, that a question back was passed on, and that a
/// reply was.
const LATER: &str = "hourglass_flowing_sand";
const PASSED_BACK: &str = "speech_balloon";
const PASSED_ON: &str = "incoming_envelope";

/// The outcome of classifying a message.
pub(super) enum Heard {
    /// The awaited answer, and the atom made from it; `None` if another turn has made it.
    Answer(OpenTurn, Option<Box<Atom>>),
    /// Handled without the model.
    Done(Answered),
    /// An ordinary message.
    Talk(OpenTurn),
}

/// Returns whether a message may be about a waiting question.
pub(super) fn is_heard(turn: &OpenTurn) -> bool {
    turn.concern.is_some()
}

/// Treats a message as an ordinary one after all: its mentions become names, as in any ordinary message.
pub(super) async fn into_talk(front: &dyn Front, mut turn: OpenTurn) -> OpenTurn {
    if is_heard(&turn) {
        turn.inbound.text = front.with_names(turn.inbound.text).await;
    }
    OpenTurn { concern: None, ..turn }
}

/// Classifies a message and acts on the result. If people change it meanwhile, it is classified again.
pub(super) async fn hear(services: &Services, mut turn: OpenTurn, batch: &Batch) -> Result<Heard, TurnError> {
    if store::is_addition(&turn.inbound) {
        return addition(services, turn).await.map(Heard::Done);
    }
    if store::is_handed_on(&turn.inbound) {
        return Ok(Heard::Answer(turn, None));
    }
    let Some(marker) = turn.concern.as_deref().map(Concern::marker).cloned() else {
        return Ok(Heard::Talk(turn));
    };
    batch.begins_at(turn.live.revision);
    let attached = unless(&batch.interrupted(), pin!(attach::read(services, &turn, &[], None))).await?;
    turn.inbound.attached = attached;
    let told = attach::told(&services.config, &turn.inbound, &turn.inbound.attached);
    let reading = read(services, &turn, &marker, &told, batch).await?;
    tracing::info!(session = %turn.inbound.key, word = reading.word.name(), "message about a waiting question");
    let is_late = turn.absorbs().is_some() && matches!(reading.word, Word::Later | Word::Question | Word::Unclear);
    if is_late && !services.store.awaits_answer(turn.turn, turn.inbound.key.front, &marker).await? {
        return answered_already(services, turn).await.map(Heard::Done);
    }
    match reading.word {
        Word::Other if turn.inbound.if_awaited => {
            conclude(services, turn, Conclusion::of("aside", vec![])).await.map(Heard::Done)
        }
        Word::Other => Ok(Heard::Talk(into_talk(&*services.front, turn).await)),
        Word::Answer => answered(services, turn, marker, reading, told).await,
        Word::Later => later(services, turn).await.map(Heard::Done),
        Word::Question => asked_back(services, turn, marker, told).await.map(Heard::Done),
        Word::Reply => replied(services, turn, marker, told).await.map(Heard::Done),
        Word::Unclear => unclear(services, turn, marker, told).await.map(Heard::Done),
        Word::Withdraw => withdrawn(services, turn, marker).await.map(Heard::Done),
    }
}

/// Returns the stored classification, or classifies the message now. One about a question that has ended since says nothing
/// about another.
async fn read(
    services: &Services,
    turn: &OpenTurn,
    marker: &Marker,
    told: &Told,
    batch: &Batch,
) -> Result<Reading, TurnError> {
    if let Some(reading) = turn.reading.as_deref().filter(|reading| reading.is_about(marker)) {
        return Ok(Reading::clone(reading));
    }
    let journal = Journal::new(Tags::default());
    let classified = async { Ok(classify(services, &journal, turn, marker, &told.text).await) };
    let classified = unless(&batch.interrupted(), pin!(classified)).await;
    // A reading that was given up, or that cannot be stored, has cost something all the same.
    let reading = classified.inspect_err(|_| batch.put_back_events(journal.take()))?;
    let mut events = batch.take_lasting_events();
    events.extend(journal.take());
    let kept = services.store.read_as(turn, &reading, events.clone(), services.now_ms()).await;
    kept.inspect_err(|_| batch.put_back_events(events))?;
    Ok(reading)
}

/// A call to the model that reads a message. Its cost is noted when it ends, even if people have called it off.
struct Call<'a> {
    services: &'a Services,
    journal: &'a Journal,
    actor: &'a str,
    meter: Meter,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        note_usage(&*self.services.model, self.journal, self.actor, self.meter.total());
    }
}

/// Classifies a message; one that the model cannot classify is unclear.
async fn classify(services: &Services, journal: &Journal, turn: &OpenTurn, marker: &Marker, text: &str) -> Reading {
    let (is_contacts, language) = (turn.absorbs().is_some(), services.config.language);
    let prompt = |most| match is_contacts {
        true => reading::contacts(marker, text, most, language),
        false => reading::askers(marker, text, most, language),
    };
    let said = match fitting(services, turn, prompt) {
        Some(prompt) => ask(services, journal, turn, prompt).await,
        None => Err("the model's window has no room for it".into()),
    };
    let said = match said {
        Ok(said) => said,
        Err(why) => {
            tracing::warn!(session = %turn.inbound.key, why, "cannot tell what kind of message this is");
            String::new()
        }
    };
    let mut reading = if is_contacts { Reading::of_contact(&said) } else { Reading::of_asker(&said) };
    reading.about = marker.asked_by;
    if store::is_meant(&turn.inbound) {
        reading.word = Word::Answer;
    }
    journal.note(Event::EscalateHeard {
        actor: turn.inbound.user.clone(),
        channel_id: marker.channel_id.clone(),
        thread_ts: marker.thread_ts.clone(),
        word: reading.word.name(),
    });
    reading
}

/// Returns a prompt that fits the model's window, with as much of the beginning of the message as possible.
fn fitting(services: &Services, turn: &OpenTurn, prompt: impl Fn(usize) -> extract::Prompt) -> Option<extract::Prompt> {
    let fits = |made: &extract::Prompt| {
        let system = u64::from(tokens::estimate(&made.system));
        let room = services.calibrator.token_budget(turn.session, system, services.now_ms()).limit;
        u64::from(tokens::estimate(&made.user)) <= room
    };
    let shorter = |most: &usize| Some(most / 2).filter(|most| *most >= LEAST_READ);
    iter::successors(Some(reading::MAX_CHARS), shorter).map(prompt).find(fits)
}

async fn ask(
    services: &Services,
    journal: &Journal,
    turn: &OpenTurn,
    extract::Prompt { system, user }: extract::Prompt,
) -> Result<String, String> {
    let most = services.calibrator.token_budget(turn.session, 0, services.now_ms()).answer;
    let request = Request {
        system,
        messages: message::shared([Message::user(user)]),
        max_answer_tokens: READING_TOKENS.min(most),
        ..Request::default()
    };
    let call = Call { services, journal, actor: &turn.inbound.user, meter: Meter::default() };
    let outcome = tokio::time::timeout(extract::TIMEOUT, services.model.ask(&request, &call.meter)).await;
    drop(call);
    let answer = outcome
        .map_err(|_| format!("no verdict within {} s", extract::TIMEOUT.as_secs()))?
        .map_err(|error| error.to_string())?;
    match answer.stop {
        Stop::End => Ok(message::plain_text(&answer.blocks)),
        _ => Err("the verdict was truncated".into()),
    }
}

/// Accepts the first answer. If the asker cannot see it, it is handed on to them, and the other contacts are
/// told.
async fn answered(
    services: &Services,
    turn: OpenTurn,
    marker: Marker,
    reading: Reading,
    told: Told,
) -> Result<Heard, TurnError> {
    if !services.store.claim_answer(&turn, &marker).await? {
        let done = match marker.answered_by.as_ref() == Some(&turn.inbound.user) {
            true => added(services, turn, marker, told).await,
            false => answered_already(services, turn).await,
        };
        return done.map(Heard::Done);
    }
    let atom = absorb::atom(&marker, &turn.inbound.user, &told.text, reading.extraction, services.now_ms());
    if let Some(why) = &atom.meta.flag_reason {
        tracing::warn!(session = %turn.inbound.key, why, "an answer is suspicious: it waits for a person's approval");
    }
    let Some(answer) = store::handed_on(turn.turn, &turn.inbound, &marker) else {
        return Ok(Heard::Answer(turn, Some(Box::new(atom))));
    };
    let hand_on = Purpose::HandOn { answer: Box::new(answer) };
    let mut parts = vec![Outgoing { purpose: hand_on, ..Outgoing::default() }];
    parts.extend(absorb::notice(&services.messages, &turn.inbound.user, &atom));
    parts.extend(left_out(&services.messages, &marker, marker.asker_user_id.as_slice(), &told));
    let said = services.messages.answered_by(&turn.inbound.user, &marker.question);
    let others = |contact: &str| contact != turn.inbound.user;
    parts.extend(to_contacts(services, &turn, &marker, &MessageBody { text: said, pings: vec![] }, others).await?);
    let flagged = absorb::flagged(&turn.inbound.user, &atom);
    let absorbed = Event::EscalateAbsorbed {
        channel_id: marker.channel_id,
        thread_ts: marker.thread_ts,
        atom_id: Some(atom.meta.id),
    };
    let events = flagged.into_iter().chain([absorbed]).map(TaggedEvent::from).collect();
    let escalation = Some(EscalationUpdate::HandedOn);
    let conclusion = Conclusion { escalation, events, ..Conclusion::of("answered", parts) };
    conclude(services, turn, conclusion).await.map(Heard::Done)
}

/// Hands on what a contact adds to their answer: the asker may not have that yet, and gets both in order. The stored
/// answer stays as it is.
async fn added(services: &Services, turn: OpenTurn, marker: Marker, told: Told) -> Result<Answered, TurnError> {
    let asker = marker.asker_user_id.as_ref().filter(|asker| services.people.may_hear(asker));
    let Some(asker) = asker else { return answered_already(services, turn).await };
    let said = services.messages.answer_added_to(asker, &turn.inbound.user, &marker.question, &told.text);
    let Some(addition) = store::addition(turn.turn, &turn.inbound, &marker, said.text) else {
        return answered_already(services, turn).await;
    };
    let hand_on = Purpose::HandOn { answer: Box::new(addition) };
    let hand_on = Outgoing { purpose: hand_on, ..Outgoing::default() };
    let mut parts = vec![hand_on, Outgoing::reply(services.messages.addition_passed_on())];
    parts.extend(left_out(&services.messages, &marker, std::slice::from_ref(asker), &told));
    conclude(services, turn, Conclusion::of("added", parts)).await
}

/// Passes on, in the asker's conversation, what a contact has added to their answer, unless they had deleted it before it
/// came here.
async fn addition(services: &Services, turn: OpenTurn) -> Result<Answered, TurnError> {
    let OpenTurn { inbound, .. } = &turn;
    if inbound.text.is_empty() {
        return conclude(services, turn, Conclusion::of("added", vec![])).await;
    }
    let asker = turn.absorbs().and_then(|marker| marker.asker_user_id.clone());
    let pings = asker.into_iter().chain([inbound.user.clone()]).collect();
    let speech = MessageBody { text: inbound.text.clone(), pings };
    let parts = relayed(&*services.front, &services.messages, &turn, speech);
    conclude(services, turn, Conclusion::of("added", parts)).await
}

/// Tells a contact that nobody waits for their answer any more.
async fn answered_already(services: &Services, turn: OpenTurn) -> Result<Answered, TurnError> {
    let parts = vec![Outgoing::reply(services.messages.answered_already())];
    conclude(services, turn, Conclusion::of("answered-already", parts)).await
}

async fn later(services: &Services, turn: OpenTurn) -> Result<Answered, TurnError> {
    let parts = vec![mark(LATER, services.messages.still_waiting())];
    conclude(services, turn, Conclusion::of("later", parts)).await
}

/// Passes a contact's question to the asker.
async fn asked_back(services: &Services, turn: OpenTurn, marker: Marker, told: Told) -> Result<Answered, TurnError> {
    let inbound = &turn.inbound;
    let asker = marker.asker_user_id.as_deref().filter(|asker| services.people.may_hear(asker));
    let text = relayed_text(&turn, &marker, &told);
    let speech = services.messages.asked_back(asker, &inbound.user, text, marker.apart.is_none());
    let mut parts = vec![];
    match (&marker.apart, asker) {
        (Some(apart), Some(asker)) => {
            let (to, thread_ts) = (Some(asker.to_owned()), apart.reply_to.thread_ts.clone());
            let asking = Outgoing { speech, thread_ts, to, purpose: Purpose::PassedOn, ..Outgoing::default() };
            parts.extend(parts::of_question(&*services.front, &services.messages, &inbound.key, &asking));
            parts.push(mark(PASSED_BACK, services.messages.passed_back()));
            parts.extend(left_out(&services.messages, &marker, &[asker.to_owned()], &told));
        }
        (Some(_), None) => return answered_already(services, turn).await,
        (None, _) => parts.extend(relayed(&*services.front, &services.messages, &turn, speech)),
    }
    let escalation = said(&turn, marker, told, None);
    conclude(services, turn, Conclusion { escalation, ..Conclusion::of("question", parts) }).await
}

/// Passes what the asker says to the contact whose question back they reply to, or else to all contacts.
async fn replied(services: &Services, turn: OpenTurn, marker: Marker, told: Told) -> Result<Answered, TurnError> {
    let inbound = &turn.inbound;
    let to = match turn.concern.as_deref() {
        Some(Concern::Asker(_, Some(contact))) => Some(contact.clone()),
        _ => marker.reader_of(&inbound.text).map(str::to_owned),
    };
    // What was asked back by somebody who can no longer be reached, the others may know as well.
    let to = to.filter(|contact| services.people.may_hear(contact));
    let readers = to.as_ref().map_or_else(|| marker.mentioned_user_ids.clone(), |contact| vec![contact.clone()]);
    let readers: Vec<String> = readers.into_iter().filter(|reader| services.people.may_hear(reader)).collect();
    if marker.apart.is_some() && readers.is_empty() {
        let parts = vec![Outgoing::reply(services.messages.nobody_reached())];
        let escalation = said(&turn, marker, told, to);
        return conclude(services, turn, Conclusion { escalation, ..Conclusion::of("reply", parts) }).await;
    }
    let text = relayed_text(&turn, &marker, &told);
    let speech = services.messages.asker_replied(&readers, &inbound.user, text, marker.apart.is_none());
    let parts = if marker.apart.is_some() {
        let is_reader = |contact: &str| readers.iter().any(|reader| reader == contact);
        let mut parts = to_contacts(services, &turn, &marker, &speech, is_reader).await?;
        parts.push(mark(PASSED_ON, services.messages.passed_on()));
        parts.extend(left_out(&services.messages, &marker, &readers, &told));
        parts
    } else {
        relayed(&*services.front, &services.messages, &turn, speech)
    };
    let escalation = said(&turn, marker, told, to);
    conclude(services, turn, Conclusion { escalation, ..Conclusion::of("reply", parts) }).await
}

/// Asks the contact whether that was the answer.
async fn unclear(services: &Services, turn: OpenTurn, marker: Marker, told: Told) -> Result<Answered, TurnError> {
    let speech = services.messages.is_it_an_answer(&turn.inbound.user, &told.text);
    let parts = vec![Outgoing { speech, purpose: Purpose::Proposal, ..Outgoing::default() }];
    let escalation = Some(EscalationUpdate::Unsure(Proposal::meant(turn.turn, &turn.inbound, marker)));
    conclude(services, turn, Conclusion { escalation, ..Conclusion::of("unclear", parts) }).await
}

/// Withdraws the question, which the asker no longer needs. Contacts who were asked elsewhere are
/// told.
async fn withdrawn(services: &Services, turn: OpenTurn, marker: Marker) -> Result<Answered, TurnError> {
    let mut parts = vec![Outgoing::reply(services.messages.withdrawn())];
    if marker.apart.is_some() {
        let text = services.messages.not_needed(&turn.inbound.user, &marker.question);
        parts.extend(to_contacts(services, &turn, &marker, &MessageBody { text, pings: vec![] }, |_| true).await?);
    }
    let events = vec![Event::escalation_cancelled(&turn.inbound.user, &marker).into()];
    let escalation = Some(EscalationUpdate::Withdrawn(turn.inbound.key.front, marker));
    conclude(services, turn, Conclusion { escalation, events, ..Conclusion::of("withdrawn", parts) }).await
}

/// Stores the remark with the question, which still waits.
fn said(turn: &OpenTurn, marker: Marker, told: Told, to: Option<String>) -> Option<EscalationUpdate> {
    let OpenTurn { turn, inbound, .. } = turn;
    let said = EscalationRemark { user_id: inbound.user.clone(), text: told.text, turn: Some(*turn), to };
    Some(EscalationUpdate::Said(inbound.key.front, marker, said))
}

/// Returns what is repeated of a message. In a channel everybody sees what came with it.
fn relayed_text<'a>(turn: &'a OpenTurn, marker: &Marker, told: &'a Told) -> &'a str {
    let text = turn.inbound.text.trim();
    if marker.apart.is_none() && !text.is_empty() { text } else { &told.text }
}

/// Tells the author of a message which files do not reach those who cannot see it.
fn left_out(messages: &Messages, marker: &Marker, readers: &[String], told: &Told) -> Option<Outgoing> {
    let is_left_out = marker.apart.is_some() && !told.left_out.is_empty();
    is_left_out.then(|| Outgoing::reply(messages.files_not_passed_on(&told.left_out, readers)))
}

/// A reaction to the message, or this text if reactions are impossible.
fn mark(emoji: &str, otherwise: String) -> Outgoing {
    let purpose = Purpose::Mark { emoji: emoji.to_owned() };
    Outgoing { speech: MessageBody { text: otherwise, pings: vec![] }, purpose, ..Outgoing::default() }
}

/// Posts a text in the thread as separate messages.
fn relayed(front: &dyn Front, messages: &Messages, turn: &OpenTurn, speech: MessageBody) -> Vec<Outgoing> {
    let said = Outgoing { speech, purpose: Purpose::PassedOn, ..Outgoing::default() };
    parts::of_question(front, messages, &turn.inbound.key, &said).collect()
}

/// Sends a text to contacts who were asked elsewhere, each in the thread of the message that asked
/// them.
pub(super) async fn to_contacts(
    services: &Services,
    turn: &OpenTurn,
    marker: &Marker,
    speech: &MessageBody,
    is_reader: impl Fn(&str) -> bool,
) -> Result<Vec<Outgoing>, TurnError> {
    let asked = services.store.asked_apart(turn.inbound.key.front, marker).await?;
    let readers = asked.into_iter().filter(|(contact, _)| is_reader(contact) && services.people.may_hear(contact));
    let parts = readers.flat_map(|(contact, thread_ts)| {
        let (to, purpose) = (Some(contact), Purpose::PassedOn);
        let said = Outgoing { speech: speech.clone(), thread_ts, to, purpose, ..Outgoing::default() };
        parts::of_question(&*services.front, &services.messages, &turn.inbound.key, &said).collect::<Vec<_>>()
    });
    Ok(parts.collect())
}
