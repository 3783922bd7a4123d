//! What kind of conversation a channel is, what of it the app is told, and what people begin with.

use serde_json::{Value, json};

use super::{Inner, methods::Answer};

/// The most prompts that are shown.
const MAX_PROMPTS: usize = 4;

/// What kind of conversation a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    /// A direct message of several people: its id begins as that of any channel.
    Group,
    Private,
    Public,
}

impl Kind {
    pub(super) fn of(inner: &Inner, channel: &str) -> Kind {
        match channel.as_bytes().first() {
            Some(b'D') => Kind::Direct,
            _ if inner.state().groups.contains(channel) => Kind::Group,
            Some(b'G') => Kind::Private,
            _ => Kind::Public,
        }
    }

    /// As events call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Direct => "im",
            Kind::Group => "mpim",
            Kind::Private => "group",
            Kind::Public => "channel",
        }
    }

    /// The scope that what is said there is read with.
    pub(super) fn scope(self) -> &'static str {
        match self {
            Kind::Direct => "im:history",
            Kind::Group => "mpim:history",
            Kind::Private => "groups:history",
            Kind::Public => "channels:history",
        }
    }

    /// Whether what is said there comes as `message`.
    pub(super) fn is_told(self, inner: &Inner) -> bool {
        let is_subscribed = self == Kind::Direct || inner.rules.channel_messages;
        is_subscribed && inner.rules.scopes.contains(&self.scope())
    }

    /// Whether a mention there comes as `app_mention`.
    pub(super) fn tells_mentions(self, inner: &Inner) -> bool {
        match self {
            Kind::Direct => false,
            Kind::Group => inner.rules.group_mentions,
            Kind::Private | Kind::Public => true,
        }
    }
}

/// `assistant.threads.setSuggestedPrompts`.
pub(super) fn suggest(inner: &Inner, body: &Value) -> Answer {
    let channel = body["channel_id"].as_str().ok_or("invalid_arguments")?;
    if !channel.starts_with('D') {
        return Err("channel_not_found");
    }
    let prompts = body["prompts"].as_array().ok_or("invalid_arguments")?;
    let is_prompt = |prompt: &Value| {
        ["title", "message"].iter().all(|key| prompt[*key].as_str().is_some_and(|text| !text.trim().is_empty()))
    };
    if !(1..=MAX_PROMPTS).contains(&prompts.len()) || !prompts.iter().all(is_prompt) {
        return Err("invalid_arguments");
    }
    let mut state = inner.state();
    if body.get("thread_ts").is_some() {
        // Of an app with `agent_view` nobody sees them then.
        state.violations.push("prompts were suggested in a thread, where nobody sees them".to_owned());
    } else {
        state.suggested.insert(channel.to_owned(), prompts.clone());
    }
    Ok(json!({}))
}
