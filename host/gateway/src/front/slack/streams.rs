//! Streams answers while they are made: `chat.startStream`, `chat.appendStream`, `chat.stopStream`.
//!
//! What people have seen cannot be taken back, so only text that [cannot change any more](super::super::settled) is
//! streamed, and only in threads, where Slack supports it. The complete answer is stored before its stream is closed.
//! Closing it puts the tag on the message by which an answer is found again. If a stream ends early, after its five
//! minutes or for another reason, its message is edited to hold the whole answer; if a rate limit does not allow it to
//! be closed, the whole answer is posted as a new message and the stream is removed. A stream left behind by a crash is
//! recognized by being the bot's and having no tag.
//!
//! An answer that is made again, after a crash or because its question was edited, is not streamed again: what was
//! shown of the first becomes the second. A stream whose answer was posted in another way is removed before the turn is
//! over.
//!
//! All of this relies on the tag. If Slack does not keep it, that is noticed with the first stream, and there is no
//! second.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pmk_models::Listener;
use serde::Deserialize;
use serde_json::{Value, json};
use slack_morphism::prelude::SlackMessageMetadata;
use tokio::{
    sync::{Mutex as Queue, OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    blocks,
    content::{self, Content},
    failure::{CallFailure, is_about_the_token},
    history,
    identity::Identity,
    limiter::Priority,
    markdown,
    statuses::Statuses,
    web::{Slot, Web},
};
use crate::{
    chat::{Button, Inbound, MessageRef, ReactedAuthor, Reaction, ReplyTo},
    front::{Delivery, OnStreamed, settled::settled},
};

/// The time between two pieces of one answer: Slack accepts about a hundred a minute for all. An answer that is
/// complete sooner is not streamed at all.
const GAP: Duration = Duration::from_secs(1);

/// The most concurrent streams, of all hosts together. Slack allows about twenty to be closed per minute, and all of
/// them may end in the same one.
const MOST_OPEN: usize = 15;

/// Slack ends a stream by itself after this time.
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The error with which Slack refuses to continue after a person has pressed Slack's own stop button, and the
/// reaction with the same meaning.
const STOPPED: &str = "stopped_by_user";
const STOP: &str = "black_square_for_stop";

/// The most characters of a piece that Slack accepts.
const MAX_PIECE: usize = 11_000;

/// The streams of all turns.
#[derive(Debug)]
pub(super) struct Streams {
    /// Whether answers are to be streamed, and can be.
    wanted: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
    room: Arc<Semaphore>,
    /// Requests to stop from Slack's own stop button.
    stops: mpsc::UnboundedSender<Reaction>,
    stopped: Queue<mpsc::UnboundedReceiver<Reaction>>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<String, Open>,
    /// Messages of earlier runs that were never completed, by the event that they answer.
    left: HashMap<String, Left>,
}

/// A stream whose answer is being made or delivered.
#[derive(Clone, Debug)]
struct Open {
    place: Place,
    /// The message, once there is one.
    ts: Arc<OnceLock<String>>,
    done: CancellationToken,
    /// The result of the stream, once it is done.
    shown: watch::Receiver<Option<Shown>>,
}

/// What an earlier run has shown of an answer.
#[derive(Clone, Debug)]
struct Left {
    message: MessageRef,
    /// The question.
    asked: String,
}

/// What people see of it.
#[derive(Clone, Debug, Default)]
struct Shown {
    ts: Option<String>,
    text: String,
    /// Whether something was sent with unknown outcome.
    in_doubt: bool,
    /// Its slot among the concurrent streams, which is released when this is dropped.
    _place: Option<Arc<OwnedSemaphorePermit>>,
}

/// Where it is shown, and to whom.
#[derive(Clone, Debug)]
struct Place {
    channel: String,
    thread_ts: String,
    /// The question.
    after: String,
    user: String,
    /// The workspace of that user.
    team: String,
    me: Identity,
}

/// Receives the answer.
struct Ear {
    text: watch::Sender<String>,
}

impl Listener for Ear {
    fn hear(&self, text: &str) {
        // What of it can be shown is looked for once for each piece, not for each chunk that is received.
        self.text.send_modify(|heard| text.clone_into(heard));
    }
}

/// What is read of the response to a start.
#[derive(Deserialize)]
struct Started {
    ts: String,
}

/// What is read of the response to a stop.
#[derive(Deserialize)]
struct Stopped {
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    metadata: Option<Value>,
}

impl Streams {
    pub(super) fn new(wanted: bool) -> Streams {
        let (stops, stopped) = mpsc::unbounded_channel();
        Streams {
            wanted: Arc::new(AtomicBool::new(wanted)),
            state: Arc::default(),
            room: Arc::new(Semaphore::new(MOST_OPEN)),
            stops,
            stopped: Queue::new(stopped),
        }
    }

    /// Returns a listener for the answer to this question, if it can be streamed: not if there is a
    /// placeholder for it. `streamed` is told as which message.
    pub(super) fn begin(
        &self,
        web: &Arc<Web>,
        statuses: &Arc<Statuses>,
        question: &Inbound,
        me: &Identity,
        streamed: OnStreamed,
    ) -> Option<Arc<dyn Listener>> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let thread_ts = question.reply_to.thread_ts.clone().filter(|_| wanted)?;
        let place = Place {
            channel: question.reply_to.channel.clone(),
            thread_ts,
            after: question.ts.clone(),
            user: question.user.clone(),
            team: question.team.clone().unwrap_or_else(|| me.team_id.clone()),
            me: me.clone(),
        };
        let (text, heard) = watch::channel(String::new());
        let (becomes, shown) = watch::channel(None);
        let (done, ts) = (CancellationToken::new(), Arc::default());
        let open = Open { place: place.clone(), ts, done, shown };
        let growing = Growing {
            web: Arc::clone(web),
            statuses: Arc::clone(statuses),
            event_id: question.event_id.clone(),
            wanted: Arc::clone(&self.wanted),
            room: Arc::clone(&self.room),
            stops: self.stops.clone(),
            ts: Arc::clone(&open.ts),
            streamed,
            done: open.done.clone(),
            place,
        };
        // A stream that an earlier attempt gave up before anything was shown.
        if let Some(before) = self.state().open.insert(question.event_id.clone(), open) {
            before.done.cancel();
        }
        tokio::spawn(async move {
            let mut shown = growing.show(heard).await;
            // Its question may be parked, or answered by another host, and nobody closes it then.
            tokio::select! {
                biased;
                () = growing.done.cancelled() => {}
                () = sleep(LONGEST) => shown._place = None,
            }
            growing.done.cancelled().await;
            becomes.send_replace(Some(growing.found(shown).await));
        });
        Some(Arc::new(Ear { text }))
    }

    /// Completes what was streamed of an answer and returns its message, if there is one. If its reader has stopped it too
    /// late for the turn, it stays as it is, with this `word` that it was stopped.
    ///
    /// # Errors
    /// It may or may not be complete.
    pub(super) async fn finish(
        &self,
        web: &Web,
        part: &Delivery<'_>,
        buttons: &[Button],
        tag: &SlackMessageMetadata,
        word: &str,
    ) -> Result<Option<String>, CallFailure> {
        let Delivery { event_id, speech, .. } = part;
        let text = speech.text.as_str();
        let here = |ts: String| MessageRef::new(&part.reply_to.channel, ts);
        // It goes to a person, because its conversation does not take it. The stream is removed at the end of the turn.
        if self.channel_of(event_id).is_some_and(|channel| channel != part.reply_to.channel) {
            return Ok(None);
        }
        let left = self.state().left.get(*event_id).cloned();
        if let Some(Left { message, .. }) = left {
            let message = here(message.ts);
            // It may still be open. Only a complete message gets the tag.
            let _ = stop(web, &message, "", &[], None).await;
            return replace(web, &message, text, buttons, tag).await;
        }
        let Some(Shown { ts: Some(ts), text: streamed, in_doubt, _place }) = self.shown(event_id).await else {
            return Ok(None);
        };
        let message = here(ts);
        let rest = text.strip_prefix(&streamed).filter(|rest| !in_doubt && rest.chars().count() <= MAX_PIECE);
        let rest = rest.filter(|_| markdown::is_honest(text));
        let (last, kept) = (rest.unwrap_or_default(), rest.map(|_| tag));
        let stopped = match stop(web, &message, last, buttons, kept).await {
            Err(failure) if failure.is_about_blocks() && !buttons.is_empty() => {
                let without = stop(web, &message, last, &[], kept).await;
                if without.is_ok() {
                    web.refused.learn(buttons, &failure);
                }
                without
            }
            stopped => stopped,
        };
        let stopped = match stopped {
            // It is still open, and cannot be edited. Nobody waits for the minute to pass.
            Err(failure) if failure.was_put_off() => {
                tracing::debug!(%failure, "an answer is posted beside its stream");
                return Ok(None);
            }
            Err(failure) if !failure.is_final() => return Err(failure),
            stopped => stopped,
        };
        // A stop that came in time has ended the turn, and its answer says so.
        if !part.is_stopped && stopped.as_ref().is_err_and(|failure| failure.code() == Some(STOPPED)) {
            let text = format!("{}\n\n{word}", streamed.trim_end());
            return replace(web, &message, &text, &[], tag).await;
        }
        if let Ok(false) = stopped
            && self.wanted.swap(false, Ordering::Relaxed)
        {
            tracing::info!("Slack does not keep metadata of streams; answers are no longer streamed");
        }
        match (rest, stopped) {
            (Some(_), Ok(true)) => Ok(Some(message.ts)),
            _ => replace(web, &message, text, buttons, tag).await,
        }
    }

    /// Removes what was streamed of an answer that was posted in another way. A stream of which it is unknown whether it
    /// was started may appear as late as `late`.
    ///
    /// # Errors
    /// It may still be there, and is remembered.
    pub(super) async fn clear(&self, web: &Web, event_id: &str, late: Duration) -> Result<(), CallFailure> {
        let left = self.state().left.get(event_id).cloned();
        if let Some(Left { message, .. }) = left {
            take_away(web, &message).await?;
            self.state().left.remove(event_id);
        }
        let place = self.state().open.get(event_id).map(|open| open.place.clone());
        if let (Some(place), Some(Shown { ts, in_doubt, .. })) = (place, self.shown(event_id).await) {
            let ts = match ts {
                None if in_doubt => place.appeared(web, late).await?,
                ts => ts,
            };
            if let Some(ts) = ts {
                take_away(web, &MessageRef { channel: place.channel, ts }).await?;
            }
        }
        self.state().open.remove(event_id);
        Ok(())
    }

    /// Returns whether this run has streamed something for this event, or knows of an earlier
    /// stream.
    pub(super) fn know_of(&self, event_id: &str) -> bool {
        let state = self.state();
        state.open.contains_key(event_id) || state.left.contains_key(event_id)
    }

    /// Returns the channel of what was streamed for this event.
    fn channel_of(&self, event_id: &str) -> Option<String> {
        let state = self.state();
        let left = state.left.get(event_id).map(|left| &left.message.channel);
        left.or_else(|| state.open.get(event_id).map(|open| &open.place.channel)).cloned()
    }

    /// Returns the question to which this message is a streamed answer. The store knows that only a moment later.
    pub(super) fn question_of(&self, message: &MessageRef) -> Option<String> {
        let state = self.state();
        let is_it = |open: &&Open| open.place.channel == message.channel && open.ts.get() == Some(&message.ts);
        let growing = state.open.values().find(is_it).map(|open| &open.place.after);
        let left = || state.left.values().find(|left| left.message == *message).map(|left| &left.asked);
        growing.or_else(left).cloned()
    }

    /// Returns the next request from somebody who has pressed Slack's own stop button.
    pub(super) async fn next_stop(&self) -> Option<Reaction> {
        self.stopped.lock().await.recv().await
    }

    /// Notes that this message, which may be the stream, is the answer to this event.
    pub(super) fn has_become(&self, event_id: &str, ts: &str) {
        let mut state = self.state();
        if state.left.get(event_id).is_some_and(|left| left.message.ts == ts) {
            state.left.remove(event_id);
        }
        let is_it = |open: &Open| open.shown.borrow().as_ref().is_some_and(|shown| shown.ts.as_deref() == Some(ts));
        if state.open.get(event_id).is_some_and(is_it)
            && let Some(open) = state.open.remove(event_id)
        {
            open.done.cancel();
        }
    }

    /// Remembers a message of an earlier run that was never completed.
    pub(super) fn left_behind(&self, event_id: &str, message: MessageRef, asked: &str) {
        let left = Left { message, asked: asked.to_owned() };
        self.state().left.insert(event_id.to_owned(), left);
    }

    /// Returns what people see now; nothing is added to it afterwards.
    async fn shown(&self, event_id: &str) -> Option<Shown> {
        let Open { done, mut shown, .. } = self.state().open.get(event_id).cloned()?;
        done.cancel();
        shown.wait_for(Option::is_some).await.ok()?.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Every entry is complete.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer that is being streamed.
struct Growing {
    web: Arc<Web>,
    statuses: Arc<Statuses>,
    event_id: String,
    wanted: Arc<AtomicBool>,
    room: Arc<Semaphore>,
    stops: mpsc::UnboundedSender<Reaction>,
    /// Where others learn which message it is: in this process,
    ts: Arc<OnceLock<String>>,
    /// and wherever the turn is known.
    streamed: OnStreamed,
    done: CancellationToken,
    place: Place,
}

impl Growing {
    /// Shows the answer piece by piece, until it is done or cannot be continued.
    async fn show(&self, mut heard: watch::Receiver<String>) -> Shown {
        let Growing { web, place, done, .. } = self;
        let mut shown = Shown::default();
        loop {
            let more = tokio::select! {
                biased;
                () = done.cancelled() => return shown,
                more = heard.changed() => more,
            };
            if more.is_err() {
                // All of it was received.
                return shown;
            }
            tokio::select! {
                biased;
                () = done.cancelled() => return shown,
                () = sleep(GAP) => {}
            }
            // The model has finished: the answer is complete, or was given up.
            if heard.has_changed().is_err() || !self.statuses.are_shown(&self.event_id) {
                return shown;
            }
            let text = settled(&heard.borrow_and_update()).to_owned();
            // A link that looks like another one is written in another way once the answer is complete.
            if !markdown::is_honest(&text) {
                continue;
            }
            // An answer that has started again is shown once it is complete.
            let Some(more) = text.strip_prefix(&shown.text) else { return Shown { in_doubt: true, ..shown } };
            if more.trim().is_empty() || more.chars().count() > MAX_PIECE {
                continue;
            }
            let sent = match &shown.ts {
                None => match self.room() {
                    Some(room) => {
                        shown._place = Some(Arc::new(room));
                        start(web, place, more).await.map(Some)
                    }
                    // There are enough streams. One may have ended by the next piece.
                    None => continue,
                },
                Some(ts) => append(web, &MessageRef::new(&place.channel, ts), more).await.map(|()| None),
            };
            match sent {
                Ok(started) => {
                    if let Some(ts) = &started {
                        self.statuses.posted(&self.event_id, Some(&place.thread_ts));
                        let _ = self.ts.set(ts.clone());
                        (self.streamed)(ts);
                    }
                    shown.ts = started.or(shown.ts);
                    shown.text = text;
                }
                // The next piece has the text of this one, too.
                Err(failure) if failure.was_put_off() => {
                    if shown.ts.is_none() {
                        shown._place = None;
                    }
                }
                Err(failure) => {
                    tracing::debug!(%failure, "an answer is no longer streamed");
                    if failure.code() == Some(STOPPED) {
                        self.stop();
                    }
                    let is_never_accepted =
                        failure.is_about_the_app() && !failure.code().is_some_and(is_about_the_token);
                    if is_never_accepted && self.wanted.swap(false, Ordering::Relaxed) {
                        tracing::info!(%failure, "Slack does not stream; answers are no longer streamed");
                    }
                    let in_doubt = !failure.was_not_made() && !failure.is_final();
                    return Shown { in_doubt, ..shown };
                }
            }
        }
    }

    /// Takes a slot among the concurrent streams, if one is free. Hosts that work at the same time share them.
    fn room(&self) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.room).try_acquire_owned().ok()?;
        let taken = MOST_OPEN - self.room.available_permits();
        (taken <= self.web.limiter.share(MOST_OPEN)).then_some(slot)
    }

    /// Passes on that its reader has pressed Slack's own stop button, which means the same as the
    /// stop reaction to the question.
    fn stop(&self) {
        let Place { channel, after, user, .. } = &self.place;
        let wish = Reaction {
            event_id: None,
            user: user.clone(),
            message: MessageRef::new(channel, after),
            reaction: STOP.to_owned(),
            author: ReactedAuthor::Unknown,
        };
        // Nobody receives it if the program is ending.
        let _ = self.stops.send(wish);
    }

    /// Searches for a stream if it is unknown whether it was started. The answer waits for one search only: what that does
    /// not find is searched for again before the turn is over.
    async fn found(&self, shown: Shown) -> Shown {
        if shown.ts.is_some() || !shown.in_doubt {
            return shown;
        }
        let ts = self.place.unfinished(&self.web).await.unwrap_or_else(|failure| {
            tracing::debug!(%failure, "the beginning of an answer is not found");
            None
        });
        Shown { ts, ..shown }
    }
}

impl Place {
    /// Searches once for a stream there that was never closed.
    async fn unfinished(&self, web: &Web) -> Result<Option<String>, CallFailure> {
        let reply_to = ReplyTo { channel: self.channel.clone(), thread_ts: Some(self.thread_ts.clone()) };
        let is_it = |past: &history::Past| past.unfinished(&self.after).is_some();
        history::unfinished(web, &self.me, &reply_to, &self.after, is_it).await
    }

    /// Searches until it would have appeared.
    async fn appeared(&self, web: &Web, late: Duration) -> Result<Option<String>, CallFailure> {
        match self.unfinished(web).await? {
            None => {
                sleep(late).await;
                self.unfinished(web).await
            }
            found => Ok(found),
        }
    }
}

async fn start(web: &Web, place: &Place, text: &str) -> Result<String, CallFailure> {
    let mut request = json!({
        "channel": place.channel, "thread_ts": place.thread_ts, "markdown_text": content::without_mentions(text),
    });
    if !place.channel.starts_with('D') {
        request["recipient_user_id"] = json!(place.user);
        request["recipient_team_id"] = json!(place.team);
    }
    let slot = Slot::of("chat.startStream", Priority::Progress);
    web.write::<_, Started>(&slot, &request).await.map(|started| started.ts)
}

async fn append(web: &Web, MessageRef { channel, ts }: &MessageRef, text: &str) -> Result<(), CallFailure> {
    let request = json!({"channel": channel, "ts": ts, "markdown_text": content::without_mentions(text)});
    let slot = Slot::of("chat.appendStream", Priority::Progress);
    web.write::<_, serde::de::IgnoredAny>(&slot, &request).await.map(drop)
}

/// Closes a stream with the rest of the text; returns false if Slack has not kept the tag.
async fn stop(
    web: &Web,
    MessageRef { channel, ts }: &MessageRef,
    rest: &str,
    buttons: &[Button],
    tag: Option<&SlackMessageMetadata>,
) -> Result<bool, CallFailure> {
    let mut request = json!({"channel": channel, "ts": ts});
    if let Some(tag) = tag {
        request["metadata"] = json!(tag);
    }
    if !rest.is_empty() {
        request["markdown_text"] = json!(content::without_mentions(rest));
    }
    if !buttons.is_empty() {
        request["blocks"] = json!([blocks::row(buttons)]);
    }
    let slot = Slot::of("chat.stopStream", Priority::AtOnce);
    let stopped: Stopped = web.write(&slot, &request).await?;
    Ok(tag.is_none() || stopped.message.is_some_and(|message| message.metadata.is_some()))
}

/// Replaces the streamed message by the whole answer; `None` if that is impossible. Then the answer is posted, and the
/// stream is removed at the end of the turn.
async fn replace(
    web: &Web,
    message: &MessageRef,
    text: &str,
    buttons: &[Button],
    tag: &SlackMessageMetadata,
) -> Result<Option<String>, CallFailure> {
    let Some(content) = Content::markdown(text) else { return Ok(None) };
    match web.update(message, &content.with_buttons(buttons), Some(tag), Priority::Answer).await {
        Ok(ts) => Ok(Some(ts)),
        Err(failure) if failure.is_final() => {
            tracing::debug!(%failure, "a stream cannot become the answer");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Removes the beginning of an answer that is not completed; it may be gone already, or stay
/// forever.
async fn take_away(web: &Web, message: &MessageRef) -> Result<(), CallFailure> {
    match web.delete(message).await {
        Err(failure) if failure.is_final() => {
            tracing::debug!(%failure, "the beginning of an answer could not be removed");
            Ok(())
        }
        deleted => deleted,
    }
}
