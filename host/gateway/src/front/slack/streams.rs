//! Answers that are shown while they are made: `chat.startStream`, `chat.appendStream`, `chat.stopStream`.
//!
//! What people have seen cannot be taken back, so only that is streamed which [nothing changes any more](super::super::settled),
//! in threads, where Slack has it. The complete answer is stored before its stream is closed. Closing it puts the tag on
//! the message by which an answer is found again. A stream that dies, by its five minutes, a limit or anything else, becomes
//! the whole answer by an edit; one that a crash left behind is known by being the bot's and having no tag.
//!
//! All of that rests on the tag. Where Slack does not keep it, the first stream shows so, and there is no second.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pmk_models::Listener;
use serde::Deserialize;
use serde_json::{Value, json};
use slack_morphism::prelude::SlackMessageMetadata;
use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    blocks,
    content::{self, Content},
    failure::CallFailure,
    history,
    limiter::Urgency,
    statuses::Statuses,
    web::{Identity, Turn, Web},
};
use crate::{
    front::{Delivery, settled::settled},
    talk::{Button, Inbound, ReplyTo},
};

/// The time between two pieces of one answer: Slack takes some hundred a minute of all. One that is whole sooner is not
/// streamed at all.
const GAP: Duration = Duration::from_secs(1);

/// The most characters of a piece that Slack takes.
const MAX_PIECE: usize = 11_000;

/// Whether answers are shown while they are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Where Slack and the answer allow it.
    #[default]
    Auto,
    Off,
}

impl Stream {
    pub const ALL: [Stream; 2] = [Stream::Auto, Stream::Off];

    pub const fn name(self) -> &'static str {
        match self {
            Stream::Auto => "auto",
            Stream::Off => "off",
        }
    }
}

/// The streams of all turns.
#[derive(Debug)]
pub(super) struct Streams {
    /// Whether answers are to be streamed at all, and can be.
    wanted: AtomicBool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<String, Open>,
    /// Messages of earlier runs that never became whole, by the event that they answer.
    left: HashMap<String, Left>,
}

/// A stream whose answer is being made, or delivered.
#[derive(Clone, Debug)]
struct Open {
    channel: String,
    done: CancellationToken,
    /// What has become of it, once it is done.
    shown: watch::Receiver<Option<Shown>>,
}

/// What an earlier run has shown of an answer.
#[derive(Clone, Debug)]
struct Left {
    channel: String,
    ts: String,
}

/// What people see of it.
#[derive(Clone, Debug, Default)]
struct Shown {
    ts: Option<String>,
    text: String,
    /// Something was sent of which nobody knows whether it was taken.
    in_doubt: bool,
}

/// Where it is shown, and to whom.
#[derive(Clone, Debug)]
struct Place {
    channel: String,
    thread_ts: String,
    /// The question.
    after: String,
    user: String,
    me: Identity,
}

/// Hears the answer.
struct Ear {
    text: watch::Sender<String>,
}

impl Listener for Ear {
    fn hear(&self, text: &str) {
        let settled = settled(text);
        self.text.send_if_modified(|heard| {
            let is_news = heard != settled;
            settled.clone_into(heard);
            is_news
        });
    }
}

/// What is read of the answer to a start.
#[derive(Deserialize)]
struct Started {
    ts: String,
}

/// What is read of the answer to a stop.
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
        Streams { wanted: AtomicBool::new(wanted), state: Arc::default() }
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Who hears the answer to this question, where it can be streamed: not where a placeholder stands for it.
    pub(super) fn begin(
        &self,
        web: &Arc<Web>,
        statuses: &Arc<Statuses>,
        question: &Inbound,
        me: &Identity,
    ) -> Option<Arc<dyn Listener>> {
        let thread_ts = question.reply_to.thread_ts.clone().filter(|_| self.are_wanted())?;
        let place = Place {
            channel: question.reply_to.channel.clone(),
            thread_ts,
            after: question.ts.clone(),
            user: question.user.clone(),
            me: me.clone(),
        };
        let (text, heard) = watch::channel(String::new());
        let (becomes, shown) = watch::channel(None);
        let done = CancellationToken::new();
        let (channel, web, ends) = (place.channel.clone(), Arc::clone(web), done.clone());
        let (statuses, state, event_id) = (Arc::clone(statuses), Arc::clone(&self.state), question.event_id.clone());
        tokio::spawn(async move {
            // What an earlier run has begun becomes the answer, and nothing beside it.
            let may_begin = || statuses.are_shown(&event_id) && !lock(&state).left.contains_key(&event_id);
            let shown = show(&web, &place, heard, may_begin, &ends).await;
            ends.cancelled().await;
            becomes.send_replace(Some(found(&web, &place, shown).await));
        });
        let before = self.state().open.insert(question.event_id.clone(), Open { channel, done, shown });
        if let Some(before) = before {
            before.done.cancel();
        }
        Some(Arc::new(Ear { text }))
    }

    /// Makes what was streamed of an answer whole: its message, where there is one.
    ///
    /// # Errors
    /// It may be whole or not.
    pub(super) async fn finish(
        &self,
        web: &Web,
        part: &Delivery<'_>,
        buttons: &[Button],
        tag: &SlackMessageMetadata,
    ) -> Result<Option<String>, CallFailure> {
        let Delivery { event_id, speech, .. } = part;
        let (channel, text) = (&part.reply_to.channel, speech.text.as_str());
        let left = self.state().left.get(*event_id).cloned();
        if let Some(Left { ts, .. }) = left {
            // It may be open still. The tag is for what is whole.
            let _ = stop(web, channel, &ts, "", &[], None).await;
            return replace(web, channel, ts, text, buttons, tag).await;
        }
        let Some(Shown { ts: Some(ts), text: streamed, in_doubt }) = self.shown(event_id).await else {
            return Ok(None);
        };
        let rest = text.strip_prefix(&streamed).filter(|rest| !in_doubt && rest.chars().count() <= MAX_PIECE);
        let stopped = match stop(web, channel, &ts, rest.unwrap_or_default(), buttons, rest.map(|_| tag)).await {
            Err(failure) if !failure.is_final() => return Err(failure),
            stopped => stopped,
        };
        if let Ok(false) = stopped
            && self.wanted.swap(false, Ordering::Relaxed)
        {
            tracing::info!("Slack keeps no metadata of streams; answers are not streamed any more");
        }
        match (rest, stopped) {
            (Some(_), Ok(true)) => Ok(Some(ts)),
            _ => replace(web, channel, ts, text, buttons, tag).await,
        }
    }

    /// Nothing is made for this event any more. What was streamed of an answer that went another way is taken away.
    pub(super) fn end(&self, web: &Arc<Web>, event_id: &str) {
        let (open, left) = {
            let mut state = self.state();
            (state.open.remove(event_id), state.left.remove(event_id))
        };
        if let Some(Left { channel, ts }) = left {
            let web = Arc::clone(web);
            tokio::spawn(async move { take_away(&web, &channel, &ts).await });
        }
        let Some(Open { channel, done, mut shown }) = open else { return };
        done.cancel();
        let web = Arc::clone(web);
        tokio::spawn(async move {
            let Ok(shown) = shown.wait_for(Option::is_some).await.map(|shown| shown.clone()) else { return };
            if let Some(ts) = shown.and_then(|shown| shown.ts) {
                take_away(&web, &channel, &ts).await;
            }
        });
    }

    /// The answer to this event is this message, which may be what was streamed of it.
    pub(super) fn has_become(&self, event_id: &str, ts: &str) {
        let mut state = self.state();
        if state.left.get(event_id).is_some_and(|left| left.ts == ts) {
            state.left.remove(event_id);
        }
        let is_it = |open: &Open| open.shown.borrow().as_ref().is_some_and(|shown| shown.ts.as_deref() == Some(ts));
        if state.open.get(event_id).is_some_and(is_it)
            && let Some(open) = state.open.remove(event_id)
        {
            open.done.cancel();
        }
    }

    /// A message of an earlier run that never became whole.
    pub(super) fn left_behind(&self, event_id: &str, channel: &str, ts: String) {
        self.state().left.insert(event_id.to_owned(), Left { channel: channel.to_owned(), ts });
    }

    /// What people see by now; nothing is added to it any more.
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
    // Every entry is whole.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows what is heard, piece by piece, until it is done or does not go on.
async fn show(
    web: &Web,
    place: &Place,
    mut heard: watch::Receiver<String>,
    may_begin: impl Fn() -> bool + Send,
    done: &CancellationToken,
) -> Shown {
    let mut shown = Shown::default();
    loop {
        let more = tokio::select! {
            biased;
            () = done.cancelled() => return shown,
            more = heard.changed() => more,
        };
        if more.is_err() {
            // All of it is there.
            return shown;
        }
        tokio::select! {
            biased;
            () = done.cancelled() => return shown,
            () = sleep(GAP) => {}
        }
        if !may_begin() {
            return shown;
        }
        let text = heard.borrow_and_update().clone();
        // One that has begun anew is shown once it is whole.
        let Some(more) = text.strip_prefix(&shown.text) else { return Shown { in_doubt: true, ..shown } };
        if more.trim().is_empty() || more.chars().count() > MAX_PIECE {
            continue;
        }
        let sent = match &shown.ts {
            None => start(web, place, more).await.map(Some),
            Some(ts) => append(web, &place.channel, ts, more).await.map(|()| None),
        };
        match sent {
            Ok(started) => {
                shown.ts = started.or(shown.ts);
                shown.text = text;
            }
            Err(failure) => {
                tracing::debug!(%failure, "an answer is not streamed any further");
                return Shown { in_doubt: !failure.was_put_off(), ..shown };
            }
        }
    }
}

/// Where nobody knows whether a stream was begun, it is looked for.
async fn found(web: &Web, place: &Place, shown: Shown) -> Shown {
    if shown.ts.is_some() || !shown.in_doubt {
        return shown;
    }
    let reply_to = ReplyTo { channel: place.channel.clone(), thread_ts: Some(place.thread_ts.clone()) };
    let looked = history::unfinished(web, &place.me, &reply_to, &place.after).await;
    let ts = looked.unwrap_or_else(|failure| {
        tracing::debug!(%failure, "the beginning of an answer is not found");
        None
    });
    Shown { ts, ..shown }
}

async fn start(web: &Web, place: &Place, text: &str) -> Result<String, CallFailure> {
    let mut request = json!({
        "channel": place.channel, "thread_ts": place.thread_ts, "markdown_text": content::without_mentions(text),
    });
    if !place.channel.starts_with('D') {
        request["recipient_user_id"] = json!(place.user);
        request["recipient_team_id"] = json!(place.me.team_id);
    }
    let turn = Turn::of("chat.startStream", Urgency::Progress);
    web.write::<_, Started>(&turn, &request).await.map(|started| started.ts)
}

async fn append(web: &Web, channel: &str, ts: &str, text: &str) -> Result<(), CallFailure> {
    let request = json!({"channel": channel, "ts": ts, "markdown_text": content::without_mentions(text)});
    let turn = Turn::of("chat.appendStream", Urgency::Progress);
    web.write::<_, serde::de::IgnoredAny>(&turn, &request).await.map(drop)
}

/// Closes a stream with what is still missing; false where it has not kept the tag.
async fn stop(
    web: &Web,
    channel: &str,
    ts: &str,
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
    let stopped: Stopped = web.write(&Turn::answer("chat.stopStream"), &request).await?;
    Ok(tag.is_none() || stopped.message.is_some_and(|message| message.metadata.is_some()))
}

/// The whole answer takes the place of what was streamed of it; `None` where that cannot be. Then it is posted, and this goes
/// once nothing is made any more.
async fn replace(
    web: &Web,
    channel: &str,
    ts: String,
    text: &str,
    buttons: &[Button],
    tag: &SlackMessageMetadata,
) -> Result<Option<String>, CallFailure> {
    let Some(content) = Content::markdown(text) else { return Ok(None) };
    match web.update(channel, &ts, content.with_buttons(buttons), Some(tag.clone()), Urgency::Answer).await {
        Ok(ts) => Ok(Some(ts)),
        Err(failure) if failure.is_final() => {
            tracing::debug!(%failure, "a stream cannot become the answer");
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Takes the beginning of an answer away that nothing makes whole.
async fn take_away(web: &Web, channel: &str, ts: &str) {
    if let Err(failure) = web.delete(channel, ts).await {
        tracing::debug!(%failure, "the beginning of an answer stays");
    }
}
