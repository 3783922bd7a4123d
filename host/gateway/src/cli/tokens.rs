//! Slack's tokens and their sources, and the configuration for connecting to Slack.

use std::time::Duration;

use pmk_system::error::Failure;
use secrecy::SecretString;

use super::arguments::variable;
use crate::{
    config::{Config, Secret, SlackTokens},
    front::slack::{Limits, SlackConfig},
};

/// What is missing if neither token is set, and what to do about it.
pub(super) const NO_TOKENS: &str = "no Slack tokens are set";
pub(super) const SET_TOKENS: &str =
    "set PMK_SLACK_APP_TOKEN and PMK_SLACK_BOT_TOKEN, or `slack.appToken` and `slack.botToken` in gateway.json";

mod of_home;

pub(super) use of_home::OfHome;

/// The variable that keeps a gateway from writing to Slack.
pub(super) const DRY_RUN: &str = "PMK_DRY_RUN";

/// The variable that selects which of Slack's limits are observed.
const LIMITS: &str = "PMK_SLACK_LIMITS";

/// Slack's tokens; the environment takes precedence over the file.
pub(super) struct Tokens {
    pub app: Option<Token>,
    pub bot: Option<Token>,
}

#[derive(Clone)]
pub(super) enum Token {
    Known(SecretString),
    /// Fetched only when it is needed: its source may be a command.
    OfFile(Secret),
}

impl Tokens {
    /// Returns the tokens that are set.
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

    /// Whether one is set.
    pub fn are_any(&self) -> bool {
        self.app.is_some() || self.bot.is_some()
    }

    /// Returns both, or `None` if neither is set.
    ///
    /// # Errors
    /// Only one is set: setting one of them means that Slack is wanted.
    pub fn pair(&self) -> Result<Option<(Token, Token)>, Failure> {
        match (&self.app, &self.bot) {
            (Some(app), Some(bot)) => Ok(Some((app.clone(), bot.clone()))),
            (None, Some(_)) => Err(half("the Slack app token (xapp-…)", "PMK_SLACK_APP_TOKEN", "appToken")),
            (Some(_), None) => Err(half("the Slack bot token (xoxb-…)", "PMK_SLACK_BOT_TOKEN", "botToken")),
            (None, None) => Ok(None),
        }
    }
}

impl Token {
    /// Returns the token, if it can be had without reading a file or running a command.
    pub fn known(&self) -> Option<&SecretString> {
        match self {
            Token::Known(token) => Some(token),
            Token::OfFile(secret) => secret.literal(),
        }
    }

    /// Returns the name of the credential that a service manager will pass, if the token is one and is not here.
    pub fn awaited_credential(&self) -> Option<&str> {
        match self {
            Token::Known(_) => None,
            Token::OfFile(secret) => secret.awaited_credential(),
        }
    }

    /// Fetches the token.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn resolve(&self) -> Result<SecretString, Failure> {
        self.resolve_within(None)
    }

    /// As [`resolve`](Token::resolve); a command is ended after this time.
    ///
    /// # Errors
    /// The same, or the command has not ended by then.
    pub fn resolve_within(&self, limit: Option<Duration>) -> Result<SecretString, Failure> {
        match self {
            Token::Known(token) => Ok(token.clone()),
            Token::OfFile(secret) => secret.resolve_within(limit),
        }
    }
}

/// gateway.json asks for Slack, and there is no token.
pub(super) fn no_tokens() -> Failure {
    Failure::new(format!("cannot connect to Slack as gateway.json asks: {NO_TOKENS}"))
        .hint(format!("{SET_TOKENS}; `--front console` does not need Slack"))
}

fn half(what: &str, variable: &str, key: &str) -> Failure {
    Failure::new(format!("cannot connect to Slack: {what} is missing"))
        .hint(format!("set {variable}, or `slack.{key}` in gateway.json; `--front console` does not need Slack"))
}

/// Returns the Slack configuration, from the environment and gateway.json; an address given on the command line takes
/// precedence, and any host is allowed in it.
///
/// # Errors
/// It is unclear whether this is a dry run.
pub(super) fn slack_config(
    config: &Config,
    api_url: Option<&str>,
    app_token: SecretString,
    bot_token: SecretString,
) -> Result<SlackConfig, Failure> {
    let mut slack = SlackConfig::new(app_token, bot_token);
    slack.allow_any_api_url = api_url.is_some();
    slack.api_url = api_url.map(str::to_owned).or_else(|| variable("PMK_SLACK_API_URL")).unwrap_or(slack.api_url);
    slack.dry_run = is_dry_run()?;
    slack.limits = limits()?;
    slack.language = config.language;
    slack.stream = config.slack_settings.stream;
    slack.places = config.slack_settings.places();
    slack.prompts = config.slack_settings.suggested_prompts.clone();
    slack.request_timeout = Duration::from_secs_f64(config.limits.slack_call_seconds);
    Ok(slack)
}

/// Which of Slack's limits are observed.
fn limits() -> Result<Limits, Failure> {
    match variable(LIMITS).as_deref().map(str::trim) {
        None | Some("documented") => Ok(Limits::Documented),
        Some("refusals") => Ok(Limits::Refusals),
        Some(_) => Err(Failure::new(format!("{LIMITS} is neither `documented` nor `refusals`"))
            .hint("unset it to use Slack itself")),
    }
}

/// Whether nothing may be written to Slack.
pub(super) fn is_dry_run() -> Result<bool, Failure> {
    match variable(DRY_RUN).as_deref().map(str::trim) {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        // If it were taken for no, the gateway would write to everybody.
        Some(_) => Err(Failure::new(format!("{DRY_RUN} is neither 0 nor 1")).hint("set it to 1, or unset it")),
    }
}
