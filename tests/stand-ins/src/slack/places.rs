//! The kinds of conversations, which of their events the app gets, suggested prompts, and who people are.

use serde_json::{Value, json};

use super::{Inner, methods::Answer};

/// The maximum number of suggested prompts.
const MAX_PROMPTS: usize = 4;

/// The kind of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    /// A direct message of several people: its id looks like that of any channel.
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

    /// Its name in events.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Direct => "im",
            Kind::Group => "mpim",
            Kind::Private => "group",
            Kind::Public => "channel",
        }
    }

    /// The scope required to read it.
    pub(super) fn scope(self) -> &'static str {
        match self {
            Kind::Direct => "im:history",
            Kind::Group => "mpim:history",
            Kind::Private => "groups:history",
            Kind::Public => "channels:history",
        }
    }

    /// Whether the app gets its messages as `message` events.
    pub(super) fn is_told(self, inner: &Inner) -> bool {
        let is_subscribed = self == Kind::Direct || inner.rules.channel_messages;
        is_subscribed && inner.rules.scopes.contains(&self.scope())
    }

    /// Whether the app gets its mentions as `app_mention` events.
    pub(super) fn tells_mentions(self, inner: &Inner) -> bool {
        match self {
            Kind::Direct => false,
            Kind::Group => inner.rules.group_mentions,
            Kind::Private | Kind::Public => true,
        }
    }
}

/// `users.info`.
pub(super) fn person(inner: &Inner, body: &Value) -> Answer {
    let user = body["user"].as_str().ok_or("user_not_found")?;
    let [display_name, real_name] = inner.state().names.get(user).cloned().ok_or("user_not_found")?;
    let profile = json!({"display_name": display_name, "real_name": real_name, "status_text": ""});
    let name = user.to_ascii_lowercase();
    Ok(json!({"user": {"id": user, "name": name, "real_name": real_name, "deleted": false, "profile": profile}}))
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
        // Nobody sees them for an app with `agent_view`.
        state.violations.push("prompts were suggested in a thread, where nobody sees them".to_owned());
    } else {
        state.suggested.insert(channel.to_owned(), prompts.clone());
    }
    Ok(json!({}))
}
