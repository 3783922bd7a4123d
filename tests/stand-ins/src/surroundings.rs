//! The environment of a gateway in which everything else is a stand-in.

use std::process::Command;

use crate::{
    anthropic::{self, Anthropic},
    slack::Slack,
};

/// Gives a program only these variables.
pub fn only(command: &mut Command, slack: &Slack, anthropic: &Anthropic) {
    command
        .env_clear()
        .env("PMK_LOG", "warn")
        .env("PMK_SLACK_API_URL", slack.api_url())
        .env("PMK_SLACK_LIMITS", "refusals")
        .env("PMK_SLACK_APP_TOKEN", &slack.rules().app_token)
        .env("PMK_SLACK_BOT_TOKEN", &slack.rules().bot_token)
        .env("ANTHROPIC_API_KEY", anthropic::KEY)
        .env("ANTHROPIC_BASE_URL", anthropic.url());
}
