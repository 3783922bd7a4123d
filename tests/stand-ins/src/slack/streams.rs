//! Streamed messages: `chat.startStream`, `chat.appendStream`, `chat.stopStream`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    BOT_USER, Inner, blocks, events,
    methods::{Answer, as_json, channel, is_ts, metadata, note_mentions},
    state::{Message, State},
    statuses,
};

/// The maximum duration of a stream.
const LONGEST: Duration = Duration::from_secs(300);
const MAX_CHARS: usize = 12_000;
/// The maximum length of all pieces together.
const MAX_TOTAL: usize = 12_000;

/// Whether pieces can still be appended.
pub(super) fn is_open(message: &Message) -> bool {
    message.streaming_since.is_some_and(|since| since.elapsed() < LONGEST)
}

pub(super) fn start(inner: &Arc<Inner>, body: &Value) -> Answer {
    let channel = channel(body)?.to_owned();
    if !inner.rules.streams {
        return Err("unknown_method");
    }
    let thread_ts = body["thread_ts"].as_str().filter(|ts| is_ts(ts)).ok_or("invalid_thread_ts")?.to_owned();
    let is_channel = !channel.starts_with('D');
    if is_channel && body["recipient_user_id"].as_str().is_none() {
        return Err("missing_recipient_user_id");
    }
    if is_channel && body["recipient_team_id"].as_str().is_none() {
        return Err("missing_recipient_team_id");
    }
    let text = piece(body)?;
    let mut state = inner.state();
    let recipient = body["recipient_user_id"].as_str().unwrap_or_default();
    if is_channel && body["recipient_team_id"] != state.team_of(recipient) {
        return Err("invalid_arguments");
    }
    state.lets_in(&channel)?;
    state.note_thread(&channel, Some(&thread_ts));
    note_mentions(&mut state.violations, &text);
    let ts = state.ts();
    let message = Message {
        channel: channel.clone(),
        ts: ts.clone(),
        thread_ts: Some(thread_ts),
        user: BOT_USER.to_owned(),
        by_bot: true,
        blocks: block(&text),
        text,
        streaming_since: Some(Instant::now()),
        history: Vec::new(),
        metadata: None,
    };
    statuses::posted(&mut state, &message);
    let shown = as_json(&message);
    state.add(message);
    drop(state);
    events::posted(inner, &channel, shown, None);
    Ok(json!({"channel": channel, "ts": ts}))
}

pub(super) fn append(inner: &Arc<Inner>, body: &Value) -> Answer {
    let text = piece(body)?;
    let mut state = inner.state();
    note_mentions(&mut state.violations, &text);
    let message = streamed(&mut state, body)?;
    grow(message, &text)?;
    Ok(json!({"channel": message.channel, "ts": message.ts}))
}

pub(super) fn stop(inner: &Arc<Inner>, body: &Value) -> Answer {
    let (text, metadata) = (piece(body)?, metadata(body)?);
    let blocks = blocks::read(inner, body)?.unwrap_or_default();
    let keeps = inner.rules.stream_metadata;
    let mut state = inner.state();
    note_mentions(&mut state.violations, &text);
    let message = streamed(&mut state, body)?;
    let before = as_json(message);
    grow(message, &text)?;
    message.blocks.extend(blocks);
    message.streaming_since = None;
    message.metadata = metadata.filter(|_| keeps);
    let channel = message.channel.clone();
    let after = as_json(message);
    drop(state);
    events::edited(inner, &channel, before, after.clone());
    Ok(json!({"channel": channel, "ts": after["ts"], "message": after}))
}

/// Ends the stream, whatever is missing.
pub(super) fn end(inner: &Inner, body: &Value) {
    let (channel, ts) = (body["channel"].as_str().unwrap_or_default(), body["ts"].as_str().unwrap_or_default());
    if let Some(message) = inner.state().message_mut(channel, ts) {
        message.streaming_since = None;
    }
}

/// A person presses Slack's stop button below a streamed message.
pub(super) fn stop_by_person(state: &mut State, channel: &str, ts: &str) {
    state.stopped.insert((channel.to_owned(), ts.to_owned()));
    if let Some(message) = state.message_mut(channel, ts) {
        message.streaming_since = None;
    }
}

fn grow(message: &mut Message, text: &str) -> Result<(), &'static str> {
    if message.text.chars().count() + text.chars().count() > MAX_TOTAL {
        return Err("msg_too_long");
    }
    message.text.push_str(text);
    message.blocks = block(&message.text);
    Ok(())
}

/// The message of a call, which must still be streamed.
fn streamed<'a>(state: &'a mut State, body: &Value) -> Result<&'a mut Message, &'static str> {
    let (channel, ts) = (channel(body)?, body["ts"].as_str().unwrap_or_default());
    state.lets_in(channel)?;
    if state.stopped.contains(&(channel.to_owned(), ts.to_owned())) {
        return Err("stopped_by_user");
    }
    state.note_place(channel, ts);
    let message = state.message_mut(channel, ts).ok_or("message_not_found")?;
    match () {
        () if !message.by_bot => Err("message_not_owned_by_app"),
        () if is_open(message) => Ok(message),
        () => Err("message_not_in_streaming_state"),
    }
}

fn piece(body: &Value) -> Result<String, &'static str> {
    let text = body["markdown_text"].as_str().unwrap_or_default().to_owned();
    if text.chars().count() > MAX_CHARS { Err("msg_too_long") } else { Ok(text) }
}

fn block(text: &str) -> Vec<Value> {
    if text.trim().is_empty() { vec![] } else { vec![json!({"type": "markdown", "text": text})] }
}
