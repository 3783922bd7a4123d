//! Slack's tokens, and where they come from.

use pmk_system::error::Failure;
use secrecy::SecretString;

use super::super::arguments::variable;
use crate::config::{Secret, SlackTokens};

/// Slack's tokens, those of the environment before those of the file.
pub(super) struct Tokens {
    pub app: Option<Token>,
    pub bot: Option<Token>,
}

#[derive(Clone)]
pub(super) enum Token {
    Known(SecretString),
    /// Got only when it is needed: it may be a command.
    OfFile(Secret),
}

impl Tokens {
    /// What there is of them.
    pub fn of(file: &SlackTokens) -> Tokens {
        let token = |name: &str, file: &Option<Secret>| match variable(name) {
            Some(token) => Some(Token::Known(SecretString::from(token))),
            None => file.clone().map(Token::OfFile),
        };
        Tokens {
            app: token("PMK_SLACK_APP_TOKEN", &file.app_token),
            bot: token("PMK_SLACK_BOT_TOKEN", &file.bot_token),
        }
    }

    /// Whether one is there, or may be got.
    pub fn are_any(&self) -> bool {
        self.app.is_some() || self.bot.is_some()
    }
}

impl Token {
    /// The token itself.
    ///
    /// # Errors
    /// It cannot be got.
    pub fn resolve(&self) -> Result<SecretString, Failure> {
        match self {
            Token::Known(token) => Ok(token.clone()),
            Token::OfFile(secret) => secret.resolve(),
        }
    }
}

/// One of the two tokens is there, and this one is not.
pub(super) fn half(what: &str, variable: &str, key: &str) -> Failure {
    Failure::new(format!("cannot connect Slack: {what} is missing"))
        .hint(format!("set {variable}, or `slack.{key}` in gateway.json; `--front console` does without Slack"))
}
