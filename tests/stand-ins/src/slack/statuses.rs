//! What a thread shows while the bot works: `assistant.threads.setStatus`.

use serde_json::{Value, json};

use super::{
    Inner,
    methods::{Answer, channel, is_ts},
    state::{Message, State, Status},
};

const MAX_LINES: usize = 10;

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
    if inner.rules.foreign_channels.contains(&channel.as_str()) || state.kept_out.contains(&channel) {
        return Err("not_in_channel");
    }
    let ts = state.ts();
    state.statuses.push(Status { channel, thread_ts, status, lines, ts });
    Ok(json!({}))
}

/// What the bot posts in a thread takes its status away.
pub(super) fn posted(state: &mut State, message: &Message) {
    let Some(thread_ts) = &message.thread_ts else { return };
    let shown =
        state.statuses.iter().rev().find(|shown| shown.channel == message.channel && shown.thread_ts == *thread_ts);
    if let Some(shown) = shown.filter(|shown| !shown.status.is_empty()).cloned() {
        let ts = message.ts.clone();
        state.statuses.push(Status { status: String::new(), lines: vec![], ts, ..shown });
    }
}
