//! The two tokens of a Slack app, and what each must look like.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::front::FrontError;

/// The prefixes of Slack's tokens, and their kinds.
const KNOWN_KINDS: [(&str, &str); 5] = [
    ("xapp-", "the app token"),
    ("xoxb-", "the bot token"),
    ("xoxp-", "a user's token"),
    ("xoxe", "a token for rotating other tokens"),
    ("xox", "a token of another kind"),
];

const APP: &[&str] = &["xapp-"];
/// A rotated token has a longer prefix.
const BOT: &[&str] = &["xoxb-", "xoxe.xoxb-"];

/// Which of the two tokens a call is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    App,
    Bot,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Token::App => "the app token (xapp-…)",
            Token::Bot => "the bot token (xoxb-…)",
        })
    }
}

/// Checks the app token.
///
/// # Errors
/// It is missing, of another kind, or cannot be sent.
pub fn check_app(token: &SecretString) -> Result<(), FrontError> {
    check_kind("app", token.expose_secret(), APP)
}

/// Checks the bot token.
///
/// # Errors
/// It is missing, of another kind, or cannot be sent.
pub fn check_bot(token: &SecretString) -> Result<(), FrontError> {
    check_kind("bot", token.expose_secret(), BOT)
}

/// Detects tokens that are missing, mixed up or cannot be sent, before they are sent.
fn check_kind(kind: &str, token: &str, prefixes: &[&str]) -> Result<(), FrontError> {
    let token = token.trim();
    let known = KNOWN_KINDS.into_iter().find(|(beginning, _)| token.starts_with(beginning));
    let what = if token.is_empty() {
        format!("the Slack {kind} token is empty")
    } else if !prefixes.iter().any(|prefix| token.starts_with(prefix)) {
        match known {
            Some((beginning, what)) => format!("the Slack {kind} token begins with `{beginning}`, so it is {what}"),
            // The token is not shown: it may be a secret of something else.
            None => format!("the Slack {kind} token is not a Slack token"),
        }
    } else if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        format!("the Slack {kind} token contains invalid characters")
    } else {
        return Ok(());
    };
    Err(FrontError::Fatal { what, hint: format!("a Slack {kind} token begins with `{}`", prefixes[0]) })
}
