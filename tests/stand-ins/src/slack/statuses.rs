//! The status that a thread shows while the bot works: `assistant.threads.setStatus`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    Inner,
    methods::{Answer, channel, is_ts},
    state::{Message, State, Status},
};

const MAX_LINES: usize = 10;

/// A status disappears after this time unless it is renewed.
const LIVES: Duration = Duration::from_secs(120);

pub(super) fn set(inner: &Inner, body: &Value) -> Answer {
    let named = json!({"channel": body["channel_id"]});
    let channel = channel(&named)?.to_owned();
    if !inner.rules.statuses {
        return Err("unknown_method");
    }
    let thread_ts = body["thread_ts"].as_str().filter(|ts| is_ts(ts)).ok_or("invalid_thread_ts")?.to_owned();
    let status = body["status"].as_str().ok_or("invalid_arguments")?.to_owned();
    let lines = match &body["loading_messages"] {
        Value::Null => vec![],
        Value::Array(lines) if lines.len() <= MAX_LINES => lines
            .iter()
            .map(|line| line.as_str().filter(|line| !line.trim().is_empty()).map(str::to_owned))
            .collect::<Option<Vec<String>>>()
            .ok_or("invalid_arguments")?,
        _ => return Err("invalid_arguments"),
    };
    let mut state = inner.state();
    state.lets_in(&channel)?;
    state.note_thread(&channel, Some(&thread_ts));
    let ts = state.ts();
    let at = now(&state);
    state.statuses.push(Status { channel, thread_ts, status, lines, ts, at });
    Ok(json!({}))
}

/// The status of a thread; `None` if it was cleared or has expired.
pub(super) fn standing(state: &State, channel: &str, thread_ts: &str) -> Option<Status> {
    let of_thread = |shown: &&Status| shown.channel == channel && shown.thread_ts == thread_ts;
    let last = state.statuses.iter().rev().find(of_thread)?;
    let stands = !last.status.is_empty() && now(state).duration_since(last.at) < LIVES;
    stands.then(|| last.clone())
}

/// All current statuses.
pub(super) fn all_standing(state: &State) -> Vec<Status> {
    let mut threads: Vec<_> = state.statuses.iter().map(|shown| (&shown.channel, &shown.thread_ts)).collect();
    threads.sort_unstable();
    threads.dedup();
    threads.into_iter().filter_map(|(channel, thread_ts)| standing(state, channel, thread_ts)).collect()
}

/// The current time of the clock for statuses.
fn now(state: &State) -> Instant {
    Instant::now() + state.passed
}

/// A post by the bot clears the thread's status.
pub(super) fn posted(state: &mut State, message: &Message) {
    let Some(thread_ts) = &message.thread_ts else { return };
    let shown =
        state.statuses.iter().rev().find(|shown| shown.channel == message.channel && shown.thread_ts == *thread_ts);
    if let Some(shown) = shown.filter(|shown| !shown.status.is_empty()).cloned() {
        let (ts, at) = (message.ts.clone(), now(state));
        state.statuses.push(Status { status: String::new(), lines: vec![], ts, at, ..shown });
    }
}
