//! Step 8: the reply reaches the person. One part takes the placeholder's place, the others are posted after
//! it; each is marked as it goes, so that a crash leaves at most one in doubt. That one is looked for before it
//! is posted again.

use std::{path::Path, time::Duration};

use pmk_core::SessionKey;
use tokio_util::sync::CancellationToken;

use pmk_knowledge::{Atom, Notice, atom::Status, files::FileError, moderation};

use super::{TurnError, buttons, journal::Journal};
use crate::{
    front::{Delivery, FrontError, Kind, Lookup},
    ledger::Event,
    report::{QuestionReport, TokenReport, TurnKind, TurnReport},
    services::Services,
    store::{self, Answered, Beginning, Begun, OpenTurn, Outgoing, Part, Purpose},
    talk::{Inbound, ReplyTo, Speech},
};

mod elsewhere;
mod in_person;
mod too_late;

/// Attempts at a placeholder; without one the reply is posted as a message of its own.
const PLACEHOLDER_ATTEMPTS: u32 = 2;

/// The longest pause that is worth waiting for a placeholder: an answer may be there by then.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// An earlier attempt may have sent this part.
#[derive(Clone, Copy)]
struct Doubt<'a> {
    /// The question.
    of: &'a Inbound,
    /// That attempt may have shown a part of the answer.
    is_streamed: bool,
    journal: &'a Journal,
}

/// What shows the person that an answer is being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// This message.
    There(String),
    Not,
    /// One may have been posted, and it could not be looked for.
    InDoubt,
}

impl Placeholder {
    /// The message, where it is known.
    pub fn known(&self) -> Option<String> {
        match self {
            Placeholder::There(id) => Some(id.clone()),
            Placeholder::Not | Placeholder::InDoubt => None,
        }
    }
}

/// Shows the person that an answer is being made, beside its making; not once it `is_made`. Nothing that has begun when it is
/// becomes a message later.
pub(super) async fn placeholder(
    services: &Services,
    turn: &OpenTurn,
    is_made: &CancellationToken,
) -> Result<Placeholder, TurnError> {
    if let Some(known) = &turn.placeholder {
        recall(services, turn).await?;
        return Ok(Placeholder::There(known.clone()));
    }
    // An answer that comes from elsewhere is a message of its own, for an edit notifies nobody.
    if store::is_handed_on(&turn.inbound) {
        return Ok(Placeholder::Not);
    }
    let mut in_doubt = if turn.resumed { turn.begun_with } else { Begun::default() };
    let unknown = services.unknown.token();
    for _ in 0..PLACEHOLDER_ATTEMPTS {
        match place(services, turn, &mut in_doubt, is_made).await {
            Ok(None) => return Ok(Placeholder::Not),
            Ok(Some(id)) => {
                // Not waited for: whatever the turn stores comes after it, and its answer is stored with it once more.
                let placed = services.store.placed(turn.turn, &id);
                if services.store.is_shared() {
                    services.tasks.spawn(too_late::take_back(services, turn, (&id, unknown), placed));
                }
                return Ok(Placeholder::There(id));
            }
            Err(TurnError::Front(FrontError::Transient { what, retry_after })) => {
                tracing::debug!(what, "no placeholder yet");
                tokio::select! {
                    biased;
                    // The answer does not wait for one, but for what is known of one that may be there.
                    () = is_made.cancelled(), if !in_doubt.is_any() => break,
                    () = tokio::time::sleep(retry_after.unwrap_or_default().min(LONGEST_WAIT)) => {}
                }
            }
            Err(error @ (TurnError::Front(FrontError::Closed) | TurnError::Store(_))) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "no placeholder; the reply will be a message of its own");
                return Ok(Placeholder::Not);
            }
        }
    }
    Ok(if in_doubt.is_any() { Placeholder::InDoubt } else { Placeholder::Not })
}

/// The message that shows it, where one does: one of an earlier attempt, which would wait for ever were it not remembered, or a
/// new one.
async fn place(
    services: &Services,
    turn: &OpenTurn,
    in_doubt: &mut Begun,
    is_made: &CancellationToken,
) -> Result<Option<String>, TurnError> {
    if let Some(id) = shown_before(services, turn, *in_doubt).await? {
        return Ok(Some(id));
    }
    *in_doubt = Begun::default();
    let text = services.messages.thinking();
    let is_shown = tokio::select! {
        biased;
        () = is_made.cancelled() => true,
        is_shown = services.front.show(&turn.inbound, &text) => is_shown,
    };
    if is_shown {
        return Ok(None);
    }
    if !turn.may_place {
        services.store.may_show(turn.turn, Beginning::Placeholder).await?;
    }
    let placed = services.front.placeholder(&turn.inbound, &text).await;
    // What is put off was not posted.
    in_doubt.placeholder = matches!(placed, Err(FrontError::Transient { retry_after: None, .. }));
    Ok(placed?)
}

/// What an earlier attempt has shown, where it may have: its placeholder. The front remembers what it finds of a stream.
async fn shown_before(services: &Services, turn: &OpenTurn, begun: Begun) -> Result<Option<String>, FrontError> {
    let Inbound { event_id, reply_to, ts, .. } = &turn.inbound;
    match begun {
        Begun { placeholder: true, stream } => find_placeholder(services, (event_id, reply_to, ts), stream).await,
        Begun { stream: true, .. } => services.front.recall(event_id, reply_to, ts).await.map(|()| None),
        _ => Ok(None),
    }
}

/// Has the front look for what an earlier attempt may have shown of the answer.
pub(super) async fn recall(services: &Services, turn: &OpenTurn) -> Result<(), FrontError> {
    let Inbound { event_id, reply_to, ts, .. } = &turn.inbound;
    if !(turn.resumed && turn.begun_with.stream) {
        return Ok(());
    }
    services.front.recall(event_id, reply_to, ts).await
}

/// A placeholder of an attempt whose end nobody knows. Where the front never can look for it, a second one is posted.
async fn find_placeholder(
    services: &Services,
    (event_id, reply_to, ts): (&str, &ReplyTo, &str),
    is_streamed: bool,
) -> Result<Option<String>, FrontError> {
    let speech = Speech::default();
    let placeholder = Delivery { kind: Kind::Placeholder, ..Delivery::notice(event_id, reply_to, &speech) };
    Ok(match services.front.find(&placeholder, ts, is_streamed).await? {
        Lookup::Yes(id) => id,
        Lookup::No | Lookup::Unknown => None,
    })
}

/// Takes away what shows that a question is being answered, where something does.
pub(super) async fn take_away(services: &Services, turn: &OpenTurn) -> Result<(), TurnError> {
    let Inbound { event_id, reply_to, .. } = &turn.inbound;
    let shown = match &turn.placeholder {
        None if turn.resumed => shown_before(services, turn, turn.begun_with).await?,
        known => {
            recall(services, turn).await?;
            known.clone()
        }
    };
    if let Some(placeholder) = shown {
        withdraw(services, reply_to, &placeholder).await?;
    }
    Ok(services.front.clear(event_id).await?)
}

/// What takes away placeholders that nothing takes the place of: those of questions that are answered along, which earlier
/// attempts have posted, and one that could not be looked for.
pub(super) fn withdrawals<'a>(
    also: &'a [OpenTurn],
    in_doubt: Option<&'a OpenTurn>,
) -> impl Iterator<Item = Outgoing> + 'a {
    let is_shown = |other: &&OpenTurn| other.resumed && other.begun_with.is_any() || other.placeholder.is_some();
    also.iter().filter(is_shown).chain(in_doubt).map(|turn| {
        let Inbound { event_id, ts, .. } = &turn.inbound;
        let (event_id, ts, placeholder) = (event_id.clone(), ts.clone(), turn.placeholder.clone());
        Outgoing { purpose: Purpose::Withdraw { event_id, ts, placeholder }, ..Outgoing::default() }
    })
}

/// The parts of a reply; a very long one is a file as well, with its first parts in reserve.
pub(super) fn parts(services: &Services, key: &SessionKey, reply: Speech) -> Vec<Outgoing> {
    let pieces = services.front.split(&reply.text, Kind::Reply);
    let too_many = pieces.len() > services.front.most_parts();
    let pieces = bounded(services, key, pieces);
    let of_text = |text| Outgoing { speech: Speech { text, pings: reply.pings.clone() }, ..Outgoing::default() };
    let mut parts: Vec<Outgoing> = pieces.into_iter().map(of_text).collect();
    if too_many {
        parts.insert(1, Outgoing { speech: reply, purpose: Purpose::Document, ..Outgoing::default() });
    }
    parts
}

/// At most as many parts as the front takes of one text. In place of the others one says where they are: the archive
/// has all of it.
pub(super) fn bounded(services: &Services, key: &SessionKey, mut pieces: Vec<String>) -> Vec<String> {
    let most = services.front.most_parts();
    if pieces.len() > most {
        let rest = pieces.split_off(most.saturating_sub(1));
        let chars: usize = rest.iter().map(|piece| piece.chars().count()).sum();
        pieces.push(services.messages.cut_short(chars, key));
    }
    pieces
}

/// A question to people, in as many messages as it takes.
pub(super) fn pieces(services: &Services, key: &SessionKey, asking: &Outgoing) -> impl Iterator<Item = Outgoing> {
    let pieces = bounded(services, key, services.front.split(&asking.speech.text, Kind::Notice));
    pieces.into_iter().map(|text| {
        let mut piece = asking.clone();
        piece.speech.text = text;
        piece
    })
}

/// Delivers what has not been delivered of an answer.
pub(super) async fn deliver(services: &Services, answered: Answered) -> Result<(), TurnError> {
    let inbound = &answered.inbound;
    let mut reply_ts = answered.reply_ts.clone().or_else(|| answered.placeholder.clone());
    let mut sent = Vec::new();
    let journal = Journal::new(answered.tags.clone());
    let is_streamed = answered.is_streamed;
    let mut doubt = answered.resumed.then_some(Doubt { of: inbound, is_streamed, journal: &journal });
    let mut in_file = false;
    // What an earlier attempt has shown of it is looked for together with the first part, where that is.
    if answered.resumed
        && answered.is_streamed
        && !answered.parts.first().is_some_and(|part| is_looked_for(&answered, part))
    {
        services.front.recall(&inbound.event_id, &inbound.reply_to, &inbound.ts).await?;
    }
    for part in &answered.parts {
        if in_file && matches!(part.outgoing.purpose, Purpose::Reply | Purpose::PassedOn) {
            // Marked before the file itself, for the file is looked for after a crash and they are not.
            sent.insert(0, (part.number, None));
            continue;
        }
        for sent in sent.drain(..) {
            services.store.part_sent(answered.turn, sent, journal.take(), services.now_ms()).await?;
        }
        // Nobody's word on it is taken before the store knows which message it is about.
        let judging = match part.outgoing.purpose {
            Purpose::Proposal => Some(services.judging.lock().await),
            _ => None,
        };
        // Who is asked in a message of their own answers under it, and that may be at once.
        let is_awaited = judging.is_some() || part.outgoing.to.is_some();
        let is_file = part.outgoing.purpose == Purpose::Document;
        let in_doubt = doubt.take();
        let id = match deliver_part(services, &answered, part, in_doubt).await {
            Err(TurnError::Front(FrontError::Refused { what })) if is_file => {
                note_cut(&journal, inbound, what);
                None
            }
            Err(TurnError::Front(FrontError::Refused { what })) => {
                match in_person::deliver(services, &answered, part, in_doubt).await? {
                    Some(id) => Some(id),
                    None => {
                        note_undelivered(&journal, inbound, what);
                        None
                    }
                }
            }
            id => {
                in_file |= is_file;
                id?
            }
        };
        if part.number == 0 {
            reply_ts = id.clone().or(reply_ts);
        }
        match is_awaited {
            true => {
                let sent = (part.number, id);
                services.store.part_sent(answered.turn, sent, journal.take(), services.now_ms()).await?;
            }
            false => sent.push((part.number, id)),
        }
    }
    // Once the turn is over nobody knows of it any more.
    if let Err(error) = clear(services, &answered).await {
        for sent in sent {
            services.store.part_sent(answered.turn, sent, journal.take(), services.now_ms()).await?;
        }
        return Err(error.into());
    }
    services.front.report(&inbound.event_id, &answered.report).await?;
    services.front.over(&inbound.event_id).await;
    if answered.resumed {
        services.front.resumed(inbound).await;
    }
    for event_id in &answered.report.event_ids {
        services.front.over(event_id).await;
    }
    // The last part is marked together with the turn.
    let now_ms = services.now_ms();
    journal.note(processed(&answered, reply_ts, now_ms));
    services.store.finish(answered.turn, sent, journal.take(), now_ms).await?;
    log(&answered, now_ms);
    Ok(())
}

/// Whether a part of an answer that was resumed is looked for at its place, if it is the first of what is left.
fn is_looked_for(answered: &Answered, Part { number, outgoing }: &Part) -> bool {
    let is_there = outgoing.to.is_none() && outgoing.thread_ts.is_none();
    let is_reply = matches!(outgoing.purpose, Purpose::Reply | Purpose::PassedOn);
    is_there && is_reply && (*number > 0 || answered.placeholder.is_none())
}

/// Takes away what was shown of answers to these questions and has not become this one.
async fn clear(services: &Services, answered: &Answered) -> Result<(), FrontError> {
    services.front.clear(&answered.inbound.event_id).await?;
    for event_id in &answered.report.event_ids {
        services.front.clear(event_id).await?;
    }
    Ok(())
}

/// One line a turn, for whoever watches.
fn log(Answered { report, received_at_ms, .. }: &Answered, now_ms: i64) {
    let TurnReport { event_id, session, kind, .. } = report;
    let ms = now_ms - received_at_ms;
    match kind {
        TurnKind::Command { command } => tracing::info!(%session, event_id, command, ms, "turn"),
        TurnKind::Question(question) => {
            let QuestionReport { policy, tokens, turns_dropped, calls, rungs, .. } = &**question;
            let policy = policy.as_ref().map(|policy| policy.name.as_str());
            let rungs = (!rungs.is_empty()).then(|| rungs.join(","));
            let TokenReport { after: tokens, limit, .. } = tokens;
            tracing::info!(%session, event_id, policy, tokens, limit, turns_dropped, rungs, calls, ms, "turn");
        }
    }
}

async fn deliver_part(
    services: &Services,
    answered: &Answered,
    part: &Part,
    doubt: Option<Doubt<'_>>,
) -> Result<Option<String>, TurnError> {
    let (Part { number, outgoing }, buttons) = (part, buttons::under(&services.messages, &answered.parts, part));
    let Outgoing { speech, purpose, .. } = outgoing;
    let inbound = &answered.inbound;
    let reply_to = elsewhere::place(services, inbound, outgoing).await?;
    let (kind, replaces) = match purpose {
        Purpose::Mark { emoji } => return elsewhere::mark(services, inbound, emoji, (*number, speech), doubt).await,
        Purpose::Withdraw { event_id, ts, placeholder } => {
            let found = match placeholder {
                None => find_placeholder(services, (event_id, &reply_to, ts), true).await?,
                known => known.clone(),
            };
            if let Some(placeholder) = found {
                withdraw(services, &reply_to, &placeholder).await?;
            }
            return Ok(None);
        }
        Purpose::HandOn { answer } => {
            services.take_in((**answer).clone()).await?;
            return Ok(None);
        }
        Purpose::Reply => (Kind::Reply, answered.placeholder.as_deref().filter(|_| *number == 0)),
        Purpose::PassedOn => (Kind::Reply, None),
        Purpose::Document => (Kind::Document, None),
        Purpose::Escalation => (Kind::Escalation, None),
        Purpose::Proposal | Purpose::Tracked => (Kind::Notice, None),
        Purpose::Notice { .. } => (Kind::Notice, answered.placeholder.as_deref()),
    };
    let delivery = Delivery {
        event_id: &inbound.event_id,
        event_ids: &answered.report.event_ids,
        number: *number,
        reply_to: &reply_to,
        replaces,
        speech,
        buttons: &buttons,
        kind,
    };
    match purpose {
        Purpose::Notice { atom } => notice(services, delivery, atom, doubt).await,
        _ => Ok(send(services, delivery, doubt).await?),
    }
}

/// Saves an atom and asks for a verdict on it. The atom knows its notice before anybody can react to it,
/// where the notice takes a placeholder's place; else no reaction is judged before it does.
async fn notice(
    services: &Services,
    delivery: Delivery<'_>,
    file: &str,
    doubt: Option<Doubt<'_>>,
) -> Result<Option<String>, TurnError> {
    let atom = match Atom::parse(file) {
        Ok(atom) => atom,
        Err(error) => {
            tracing::error!(%error, "an atom is lost: its text cannot be read back");
            return Ok(None);
        }
    };
    let id = atom.meta.id.clone();
    let path = services
        .library
        .with(move |library| match library.files().save_new(&atom) {
            // Saved just before a crash.
            Err(FileError::Exists { path }) => Ok(path),
            saved => Ok(saved?),
        })
        .await?;
    let _judging = services.judging.lock().await;
    let channel = &delivery.reply_to.channel;
    let mut is_approved = false;
    if let Some(placeholder) = delivery.replaces {
        is_approved = note_notice(services, &path, channel, placeholder).await?;
    }
    // Approved between a crash and now: then it says so.
    let approved = Speech { text: services.messages.atom_approved(&id), pings: vec![] };
    let said = match is_approved {
        true => Delivery { speech: &approved, buttons: &[], ..delivery.clone() },
        false => delivery.clone(),
    };
    let Some(message_ts) = send(services, said, doubt).await? else { return Ok(None) };
    if delivery.replaces != Some(&*message_ts) {
        note_notice(services, &path, channel, &message_ts).await?;
    }
    Ok(Some(message_ts))
}

/// Tells an atom's file which message asks for a verdict; whether there is an approval already.
async fn note_notice(services: &Services, path: &Path, channel: &str, message_ts: &str) -> Result<bool, TurnError> {
    let notice = Notice { channel_id: channel.to_owned(), message_ts: message_ts.to_owned() };
    let path = path.to_owned();
    let atom =
        services.library.with(move |library| Ok(moderation::note_notice(library.files(), &path, &notice)?)).await?;
    Ok(atom.is_some_and(|atom| atom.meta.status == Status::Approved))
}

/// The event of a turn that is over.
fn processed(
    Answered { inbound, report, received_at_ms, .. }: &Answered,
    reply_ts: Option<String>,
    now_ms: i64,
) -> Event {
    let question = report.question();
    let atom_ids = question.map(|question| question.atoms.clone()).unwrap_or_default();
    Event::TurnProcessed {
        actor: inbound.user.clone(),
        session: inbound.key.to_string(),
        audience: question.map(|question| question.audience.to_string()).unwrap_or_default(),
        channel_id: inbound.reply_to.channel.clone(),
        thread_ts: inbound.reply_to.thread_ts.clone(),
        reply_ts,
        had_mra_ask: question.is_some_and(|question| question.mra_asks > 0),
        atoms_injected: atom_ids.len(),
        atom_ids,
        // What was never sent cost nothing.
        tokens_sent: question.filter(|question| question.calls > 0).map_or(0, |question| question.tokens.after),
        rungs: question.map(|question| question.rungs.clone()).unwrap_or_default(),
        latency_ms: u64::try_from(now_ms - received_at_ms).unwrap_or(0),
    }
}

/// A reply that the front will never take is the operator's business.
fn note_undelivered(journal: &Journal, inbound: &Inbound, what: String) {
    tracing::error!(session = %inbound.key, what, "a reply was refused and is lost to the person");
    let (actor, session) = (inbound.user.clone(), inbound.key.to_string());
    journal.note(Event::ReplyUndelivered { actor, session, reason: what });
}

/// A reply of which a person gets the beginning only.
fn note_cut(journal: &Journal, inbound: &Inbound, what: String) {
    tracing::warn!(session = %inbound.key, what, "a long reply cannot be posted as a file; its first parts are posted");
    let (actor, session) = (inbound.user.clone(), inbound.key.to_string());
    journal.note(Event::ReplyCut { actor, session, reason: what });
}

/// One part; where the placeholder cannot be replaced, as a message of its own. Nobody is left with a
/// placeholder that waits for nothing.
async fn send(services: &Services, part: Delivery<'_>, doubt: Option<Doubt<'_>>) -> Result<Option<String>, FrontError> {
    let Some(placeholder) = part.replaces else { return post(services, part, doubt).await };
    let sent = services.front.deliver(part.clone()).await;
    let Err(FrontError::Refused { what }) = &sent else { return sent };
    tracing::warn!(what, "the placeholder cannot be replaced; the reply is posted after it");
    let posted = post(services, Delivery { replaces: None, ..part.clone() }, doubt).await;
    if let Ok(_) | Err(FrontError::Refused { .. }) = posted {
        retire(services, &part, placeholder, posted.is_ok()).await;
    }
    posted
}

/// Takes the placeholder away; where no reply could be posted it says so, if it still can.
async fn retire(services: &Services, part: &Delivery<'_>, placeholder: &str, is_answered: bool) {
    if !is_answered {
        let speech = Speech { text: services.messages.undelivered(), pings: vec![] };
        if services.front.deliver(Delivery { speech: &speech, buttons: &[], ..part.clone() }).await.is_ok() {
            return;
        }
    }
    if let Err(error) = withdraw(services, part.reply_to, placeholder).await {
        tracing::warn!(%error, "a placeholder cannot be taken away");
    }
}

/// Takes a placeholder away, as far as Slack lets us.
async fn withdraw(services: &Services, reply_to: &ReplyTo, placeholder: &str) -> Result<(), FrontError> {
    match services.front.withdraw(reply_to, placeholder).await {
        Err(FrontError::Refused { what }) => {
            tracing::warn!(what, "a placeholder cannot be taken away");
            Ok(())
        }
        withdrawn => withdrawn,
    }
}

/// A new message, unless it is there already.
async fn post(services: &Services, part: Delivery<'_>, doubt: Option<Doubt<'_>>) -> Result<Option<String>, FrontError> {
    let found = match doubt {
        Some(doubt) => services.front.find(&part, &doubt.of.ts, doubt.is_streamed).await?,
        None => Lookup::No,
    };
    if let Lookup::Yes(id) = found {
        return Ok(id);
    }
    let id = loop {
        match services.front.deliver(part.clone()).await {
            // What is put off was not posted. Waiting here, nobody has to doubt it.
            Err(FrontError::Transient { what, retry_after: Some(wait) }) if !services.stop.is_cancelled() => {
                tracing::debug!(what, ?wait, "a part of a reply is put off");
                tokio::select! {
                    biased;
                    () = services.stop.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
            sent => break sent?,
        }
    };
    let Some(Doubt { of, journal, .. }) = doubt else { return Ok(id) };
    let (actor, session, part) = (of.user.clone(), of.key.to_string(), part.number);
    match (found, &id) {
        (Lookup::Unknown, _) => journal.note(Event::ReplyRepeated { actor, session, part }),
        // A host that stands still holds on to what it sends.
        (_, Some(ts)) if services.store.is_shared() => {
            journal.note(Event::ReplyMayRepeat { actor, session, part, reply_ts: ts.clone() });
        }
        _ => {}
    }
    Ok(id)
}
