//! The app that the gateway needs in Slack: its scopes, events and command, as Slack's app manifest.

use serde_json::{Value, json};

use crate::messages::Messages;

/// A scope of the bot token.
#[derive(Debug)]
pub struct Scope {
    pub name: &'static str,
    /// The feature that is missing without it; `None` if nothing works without it.
    pub without: Option<OptionalFeature>,
}

/// Optional features, each described [in words](crate::messages::Messages::doctor_scope).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalFeature {
    /// Messages of channels: read at a first mention in a thread, and again after a crash or an outage; and threads
    /// that are followed.
    ChannelHistory,
    /// `/pmk`.
    Command,
    /// Recognizing, after a crash, what a contact was asked.
    DirectMessages,
    /// Very long answers in full.
    Files,
    /// Direct messages of several people.
    GroupMessages,
    /// People's names beside their ids.
    Names,
    /// Suggested prompts.
    Prompts,
    /// Attached files.
    AttachedFiles,
    /// Acknowledging a contact's message by a reaction.
    Reactions,
}

impl OptionalFeature {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            OptionalFeature::ChannelHistory => "channel-history",
            OptionalFeature::Command => "command",
            OptionalFeature::DirectMessages => "direct-messages",
            OptionalFeature::Files => "files",
            OptionalFeature::GroupMessages => "group-messages",
            OptionalFeature::Names => "names",
            OptionalFeature::Prompts => "prompts",
            OptionalFeature::AttachedFiles => "attached-files",
            OptionalFeature::Reactions => "reactions",
        }
    }
}

/// All scopes that the gateway uses.
pub const SCOPES: [Scope; 14] = [
    Scope { name: "app_mentions:read", without: None },
    Scope { name: "assistant:write", without: Some(OptionalFeature::Prompts) },
    Scope { name: "channels:history", without: Some(OptionalFeature::ChannelHistory) },
    Scope { name: "chat:write", without: None },
    Scope { name: "commands", without: Some(OptionalFeature::Command) },
    Scope { name: "files:read", without: Some(OptionalFeature::AttachedFiles) },
    Scope { name: "files:write", without: Some(OptionalFeature::Files) },
    Scope { name: "groups:history", without: Some(OptionalFeature::ChannelHistory) },
    Scope { name: "im:history", without: None },
    Scope { name: "im:write", without: Some(OptionalFeature::DirectMessages) },
    Scope { name: "mpim:history", without: Some(OptionalFeature::GroupMessages) },
    Scope { name: "reactions:read", without: None },
    Scope { name: "reactions:write", without: Some(OptionalFeature::Reactions) },
    Scope { name: "users:read", without: Some(OptionalFeature::Names) },
];

/// The events that it subscribes to.
pub const EVENTS: [&str; 7] = [
    "app_home_opened",
    "app_mention",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "reaction_added",
];

/// Its slash command; in messages, the text is this whatever the command's name in the workspace.
pub const COMMAND: &str = "/pmk";

/// The scope of the app-level token.
pub const CONNECT: &str = "connections:write";

/// Returns the app manifest in Slack's format, with its texts in this language.
pub fn manifest(messages: &Messages) -> Value {
    let description = messages.app_description();
    json!({
        "_metadata": {"major_version": 2, "minor_version": 1},
        "display_information": {"name": "pmk", "description": description},
        "features": {
            "agent_view": {"agent_description": description},
            "app_home": {"home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
            "bot_user": {"display_name": "pmk", "always_online": true},
            "slash_commands": [{
                "command": COMMAND,
                "description": messages.app_command(),
                "usage_hint": "help",
                "should_escape": true,
            }],
        },
        "oauth_config": {"scopes": {"bot": SCOPES.map(|scope| scope.name)}},
        "settings": {
            "event_subscriptions": {"bot_events": EVENTS},
            "interactivity": {"is_enabled": true},
            "org_deploy_enabled": false,
            "socket_mode_enabled": true,
            "token_rotation_enabled": false,
        },
    })
}

/// Returns the scopes that a token lacks; `granted` is Slack's comma-separated list.
pub(super) fn missing(granted: &str) -> Vec<&'static Scope> {
    let granted: Vec<&str> = granted.split(',').map(str::trim).collect();
    SCOPES.iter().filter(|scope| !granted.contains(&scope.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_token_lacks() {
        let names = |granted: &str| missing(granted).iter().map(|scope| scope.name).collect::<Vec<_>>();
        let all = SCOPES.map(|scope| scope.name).join(", ");
        assert_eq!(names(&all), Vec::<&str>::new());
        assert_eq!(names(&all.replace("chat:write", "chat:write.public")), ["chat:write"]);
        assert_eq!(names("").len(), SCOPES.len());
    }
}
