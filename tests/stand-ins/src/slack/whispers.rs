//! Ephemeral messages, which only one person sees.

use serde_json::{Value, json};

use super::{
    Inner, blocks,
    methods::{Answer, channel, said, thread},
    text,
};

/// An ephemeral message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whisper {
    pub channel: String,
    pub user: String,
    pub thread_ts: Option<String>,
    pub text: String,
}

/// `chat.postEphemeral`.
pub(super) fn whisper(inner: &Inner, body: &Value) -> Answer {
    let channel = channel(body)?.to_owned();
    let user = body["user"].as_str().filter(|user| user.starts_with(['U', 'W'])).ok_or("user_not_found")?.to_owned();
    if channel.starts_with('D') && channel != super::dm_channel(&user) {
        return Err("user_not_in_channel");
    }
    let thread_ts = thread(body)?;
    let blocks = blocks::read(inner, body)?.unwrap_or_default();
    let text = said(body, &blocks)?;
    let mut state = inner.state();
    state.lets_in(&channel)?;
    state.note_thread(&channel, thread_ts.as_deref());
    let mentions = text::mentions(&text).into_iter().map(|mention| format!("the bot mentioned {mention} in a whisper"));
    state.violations.extend(mentions);
    let ts = state.ts();
    state.whispers.push(Whisper { channel, user, thread_ts, text });
    Ok(json!({"message_ts": ts}))
}
