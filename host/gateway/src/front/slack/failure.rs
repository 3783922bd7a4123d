//! Classifies failed Web API calls, and says what the operator can do about them.
//!
//! Messages name the method, the kind of token, and Slack's error code. They never quote a token, an
//! address with a ticket, or the body of a response, which may contain what people wrote.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use pmk_models::classify::retry_after;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::{
    address::{AUTH_TEST, OPEN},
    token::Token,
};
use crate::{front::FrontError, roots};

/// The longest wait, whatever Slack asks for, so that a header cannot silence the bot forever. Slack's own waits are
/// about a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// How much of an error code is shown. Slack's are words like `channel_not_found`, but the field may contain anything.
const MOST_OF_A_CODE: usize = 80;

/// The wait if a response with status 429 does not say how long: a proxy in between may leave that out.
const UNSAID_WAIT: Duration = Duration::from_secs(5);

/// Returns the wait that a response with status 429 asks for.
pub(super) fn wait_asked_for(headers: &HeaderMap) -> Duration {
    valid_wait(headers).unwrap_or(UNSAID_WAIT)
}

fn valid_wait(headers: &HeaderMap) -> Option<Duration> {
    // Slack specifies seconds; a proxy in between may specify a time.
    let said = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let asked = said.parse().map(Duration::from_secs).ok().or_else(|| retry_after(said, Timestamp::now()))?;
    if asked > LONGEST_WAIT {
        tracing::warn!(
            asked_s = asked.as_secs(),
            waits_s = LONGEST_WAIT.as_secs(),
            "Slack asks for a very long wait; retrying sooner"
        );
    }
    Some(asked.min(LONGEST_WAIT))
}

/// Returns an error code in a form suitable for log and ledger.
pub(super) fn code(said: &str) -> String {
    let is_of_a_code = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    match said.chars().filter(is_of_a_code).take(MOST_OF_A_CODE).collect::<String>() {
        code if code.is_empty() => "?".to_owned(),
        code => code,
    }
}

/// A Web API call that failed.
#[derive(Debug)]
pub(super) struct CallFailure {
    pub(super) method: &'static str,
    pub(super) token: Token,
    pub(super) cause: Cause,
}

/// Why it failed.
#[derive(Debug)]
pub(super) enum Cause {
    /// Slack's own error code; for `missing_scope`, with the missing scope.
    Code {
        code: String,
        needed: Option<String>,
    },
    /// Slack no longer accepts the token, but another one may be written at any time.
    AwaitsToken {
        code: String,
    },
    /// Slack refuses everything for the keys of the workspace, which may be given back at any time.
    Locked {
        code: String,
    },
    RateLimited {
        retry_after: Duration,
    },
    /// A status other than 200 or 429.
    Status(u16),
    TimedOut(Duration),
    /// The response is not one of Slack's.
    Unreadable,
    /// No connection.
    Unreachable(String),
    /// No connection in time, which another attempt may get.
    ConnectTimedOut(String),
    /// A connection that broke.
    Broken(String),
    /// The call was not made: this process may not post, or it is currently unknown whether it may.
    NotForUs(FrontError),
}

/// The class of an error code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The token or the app is not accepted; nothing will work until a person changes that.
    Credentials,
    /// A later retry may succeed.
    Passing,
    /// This message is refused at this place.
    Refusal,
    /// An unknown code: the message may be accepted in another form, or a moment later.
    Unknown,
}

fn kind(code: &str) -> Kind {
    match code {
        "invalid_auth"
        | "not_authed"
        | "account_inactive"
        | "token_revoked"
        | "token_expired"
        | "not_allowed_token_type"
        | "missing_scope"
        | "org_login_required"
        | "link_disabled"
        | "app_not_installed"
        | "deprecated_endpoint"
        | "method_deprecated"
        | "unknown_method" => Kind::Credentials,
        "internal_error"
        | "fatal_error"
        | "service_unavailable"
        | "request_timeout"
        | "ratelimited"
        | "rate_limited"
        | "team_added_to_org"
        | "accesslimited" => Kind::Passing,
        _ if OF_APP_OR_PLACE.contains(&code) => Kind::Credentials,
        _ if ABOUT_CONTENT.contains(&code) || REFUSALS.contains(&code) || code.starts_with("restricted_action") => {
            Kind::Refusal
        }
        _ => Kind::Unknown,
    }
}

/// The codes with which a call is refused for the place that it names (the bot is no member, or an administrator does not
/// allow it there), and for the app only if it names none.
const OF_APP_OR_PLACE: [&str; 5] =
    ["no_permission", "team_access_not_granted", "ekm_access_denied", "access_denied", "enterprise_is_restricted"];

/// The codes with which a message is refused for its size or form.
const ABOUT_CONTENT: [&str; 6] = [
    "msg_too_long",
    "msg_blocks_too_long",
    "markdown_text_too_long",
    "text_too_long",
    "invalid_blocks",
    "invalid_blocks_format",
];

/// The codes with which it is refused for its target, its sender, or the existing state.
const REFUSALS: [&str; 27] = [
    "already_reacted",
    "block_mismatch",
    "cannot_dm_bot",
    "cannot_reply_to_message",
    "cant_delete_message",
    "cant_update_message",
    "channel_not_found",
    "edit_window_closed",
    "external_channel_migrating",
    "file_not_found",
    "invalid_metadata_format",
    "invalid_metadata_schema",
    "invalid_name",
    "invalid_thread_ts",
    "is_archived",
    "is_inactive",
    "message_limit_exceeded",
    "message_not_found",
    "message_not_in_streaming_state",
    "messages_tab_disabled",
    "metadata_too_large",
    "no_reaction",
    "no_text",
    "not_in_channel",
    "stopped_by_user",
    "thread_not_found",
    "user_not_found",
];

/// The codes with which a call is refused for the thread that it names.
const OF_THREAD: [&str; 3] = ["invalid_thread_ts", "message_not_found", "thread_not_found"];

/// Returns whether Slack closed or refused a WebSocket in a way that a retry does not fix.
pub(super) fn is_fatal(code: &str) -> bool {
    kind(code) == Kind::Credentials
}

/// Returns whether Slack no longer accepts the token of a call, so that another token may help.
pub(super) fn is_about_the_token(code: &str) -> bool {
    matches!(
        code,
        // The last two: the app was removed, and its old token stays dead when it is installed again.
        "invalid_auth" | "not_authed" | "token_revoked" | "token_expired" | "account_inactive" | "app_not_installed"
    )
}

/// Returns what to do about an error code.
pub(super) fn hint(code: &str, token: Token, needed: Option<&str>) -> String {
    match (code, token, needed) {
        ("missing_scope" | "no_permission", Token::App, needed) => {
            let scope = needed.unwrap_or("connections:write");
            format!("the app token needs the scope `{scope}`: generate a new one at https://api.slack.com/apps, Basic Information, App-Level Tokens")
        }
        ("missing_scope", Token::Bot, Some(needed)) => {
            format!("add the scope `{needed}` under OAuth & Permissions at https://api.slack.com/apps and reinstall the app")
        }
        ("not_allowed_token_type", Token::App, _) => {
            "an app token begins with `xapp-`; create one under Basic Information, App-Level Tokens".to_owned()
        }
        ("not_allowed_token_type", Token::Bot, _) => {
            "a bot token begins with `xoxb-`; it is under OAuth & Permissions".to_owned()
        }
        ("link_disabled", _, _) => "turn on Socket Mode at https://api.slack.com/apps, under Socket Mode".to_owned(),
        ("unknown_method" | "method_deprecated" | "deprecated_endpoint", _, _) => {
            "check that the Slack API address is Slack's".to_owned()
        }
        (_, Token::App, _) => {
            "copy the app token from https://api.slack.com/apps, Basic Information, App-Level Tokens".to_owned()
        }
        (_, Token::Bot, _) => {
            "copy the bot token from https://api.slack.com/apps, OAuth & Permissions, and check that the app is installed"
                .to_owned()
        }
    }
}

impl From<reqwest::Error> for Cause {
    fn from(error: reqwest::Error) -> Self {
        // The address may be a secret.
        let (is_connect, is_timeout, why) = (error.is_connect(), error.is_timeout(), root(&error.without_url()));
        match (is_connect, is_timeout) {
            (true, false) => Cause::Unreachable(why),
            (true, true) => Cause::ConnectTimedOut(why),
            (false, _) => Cause::Broken(why),
        }
    }
}

impl From<serde_json::Error> for Cause {
    fn from(_: serde_json::Error) -> Self {
        Cause::Unreadable
    }
}

/// The innermost error says what happened ("connection refused"); the outer ones say "client error".
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Returns the scope that a response says is missing.
pub(super) fn needed_scope(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Needed {
        needed: String,
    }
    serde_json::from_slice::<Needed>(body).ok().map(|body| code(&body.needed))
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallFailure { method, token, cause } = self;
        match cause {
            Cause::Code { code, needed: None } | Cause::AwaitsToken { code } | Cause::Locked { code } => {
                write!(f, "`{method}` with {token} failed: Slack says `{code}`")
            }
            Cause::Code { code, needed: Some(needed) } => {
                write!(f, "`{method}` with {token} failed: Slack says `{code}`, it needs `{needed}`")
            }
            Cause::RateLimited { retry_after } => {
                let wait = retry_after.as_secs_f64().ceil();
                write!(f, "`{method}` with {token} is rate limited for another {wait:.0} s")
            }
            Cause::Status(status) => write!(f, "`{method}` with {token} failed: Slack answered HTTP {status}"),
            Cause::TimedOut(limit) => {
                let limit = limit.as_secs_f64();
                write!(f, "`{method}` with {token} got no answer within {limit:.1} s")
            }
            Cause::Unreadable => write!(f, "`{method}` with {token} got an answer that is not from Slack"),
            Cause::Unreachable(why) | Cause::ConnectTimedOut(why) => {
                write!(f, "`{method}` with {token} did not reach Slack: {why}")
            }
            Cause::Broken(why) => write!(f, "`{method}` with {token} lost its connection to Slack: {why}"),
            Cause::NotForUs(FrontError::Closed) => {
                write!(f, "`{method}` was not called: it is left to the hosts that have taken over")
            }
            Cause::NotForUs(why) => write!(f, "`{method}` waits until it is known whether this host may post: {why}"),
        }
    }
}

impl CallFailure {
    /// Returns whether the same content in another form, or less of it, may be accepted.
    pub(super) fn is_about_content(&self) -> bool {
        match &self.cause {
            Cause::Code { code, .. } => ABOUT_CONTENT.contains(&code.as_str()) || kind(code) == Kind::Unknown,
            Cause::Status(status) => *status == 413,
            _ => false,
        }
    }

    /// Returns the class of Slack's own error code.
    fn kind(&self) -> Option<Kind> {
        let code = self.code()?;
        let names_a_place = !matches!(self.method, AUTH_TEST | OPEN);
        Some(if names_a_place && OF_APP_OR_PLACE.contains(&code) { Kind::Refusal } else { kind(code) })
    }

    /// Returns whether Slack refuses the app or its token, wherever the message is sent.
    pub(super) fn is_about_the_app(&self) -> bool {
        self.kind() == Some(Kind::Credentials)
    }

    /// Returns whether the bot may not read the conversation at all.
    pub(super) fn is_about_the_place(&self) -> bool {
        let Cause::Code { code, .. } = &self.cause else { return false };
        matches!(&**code, "missing_scope" | "not_in_channel" | "channel_not_found")
            || OF_APP_OR_PLACE.contains(&&**code)
    }

    /// Returns whether the same call may be accepted for another thread there.
    pub(super) fn is_about_the_thread(&self) -> bool {
        self.code().is_some_and(|code| OF_THREAD.contains(&code))
    }

    /// Returns whether Slack does not show a history, whatever the token.
    pub(super) fn hides_the_past(&self) -> bool {
        self.is_final() && !self.code().is_some_and(is_about_the_token)
    }

    /// Returns whether Slack or the limiter has not carried the call out because of a rate limit.
    pub(super) fn was_put_off(&self) -> bool {
        matches!(self.cause, Cause::RateLimited { .. })
    }

    /// Returns whether the call certainly had no effect.
    pub(super) fn was_not_made(&self) -> bool {
        matches!(
            self.cause,
            Cause::RateLimited { .. }
                | Cause::NotForUs(_)
                | Cause::Locked { .. }
                | Cause::AwaitsToken { .. }
                | Cause::Unreachable(_)
                | Cause::ConnectTimedOut(_)
        )
    }

    /// Returns how long to wait, if Slack says so.
    pub(super) fn wait(&self) -> Duration {
        match self.cause {
            Cause::RateLimited { retry_after } => retry_after,
            _ => Duration::ZERO,
        }
    }

    /// Returns whether Slack refuses the blocks of a message, so that it may be accepted without
    /// them.
    pub(super) fn is_about_blocks(&self) -> bool {
        self.is_about_form() || self.code() == Some("msg_blocks_too_long")
    }

    /// Returns whether Slack never accepts blocks of this form here.
    pub(super) fn is_about_form(&self) -> bool {
        self.code().is_some_and(|code| code.starts_with("invalid_blocks"))
    }

    /// Returns whether Slack has refused the call and will refuse it again.
    pub(super) fn is_final(&self) -> bool {
        match &self.cause {
            Cause::Code { code, .. } => kind(code) != Kind::Passing,
            Cause::Status(status) => *status == 413,
            _ => false,
        }
    }

    /// Returns whether the same call may succeed a little later, without anybody changing anything.
    pub(super) fn may_pass(&self) -> bool {
        match &self.cause {
            Cause::Code { code, .. } => kind(code) == Kind::Passing,
            Cause::RateLimited { .. }
            | Cause::TimedOut(_)
            | Cause::ConnectTimedOut(_)
            | Cause::Broken(_)
            | Cause::Status(500..) => true,
            Cause::Status(_)
            | Cause::Unreadable
            | Cause::Unreachable(_)
            | Cause::NotForUs(_)
            | Cause::AwaitsToken { .. }
            | Cause::Locked { .. } => false,
        }
    }

    /// Returns Slack's own error code.
    pub(super) fn code(&self) -> Option<&str> {
        match &self.cause {
            Cause::Code { code, .. } | Cause::AwaitsToken { code } | Cause::Locked { code } => Some(code),
            _ => None,
        }
    }

    /// During the start, every failure ends the start: one clear line is better than a loop that
    /// nobody sees.
    pub(super) fn at_start(self) -> FrontError {
        let hint = match &self.cause {
            Cause::Code { code, needed } if self.kind() == Some(Kind::Credentials) => {
                hint(code, self.token, needed.as_deref())
            }
            Cause::AwaitsToken { code } | Cause::Locked { code } => hint(code, self.token, None),
            Cause::RateLimited { .. } | Cause::NotForUs(_) => "wait a minute and try again".to_owned(),
            Cause::Code { code, .. } if matches!(&**code, "ratelimited" | "rate_limited") => {
                "wait a minute and try again".to_owned()
            }
            Cause::Code { code, .. } if kind(code) != Kind::Passing => {
                format!("look up `{code}` at https://docs.slack.dev/reference/methods/{}", self.method)
            }
            Cause::Status(500..) | Cause::Code { .. } => {
                "Slack itself may have an outage, see https://slack-status.com; try again later".to_owned()
            }
            Cause::Status(_) | Cause::Unreadable => "check that the Slack API address is Slack's".to_owned(),
            Cause::Unreachable(why) if roots::blames_the_clock(why) => {
                "check this machine's clock: the certificate counts as expired or not valid yet".to_owned()
            }
            Cause::TimedOut(_) | Cause::Unreachable(_) | Cause::ConnectTimedOut(_) | Cause::Broken(_) => {
                "check the network and the Slack API address: Slack is reached directly, without HTTPS_PROXY; see also https://slack-status.com".to_owned()
            }
        };
        FrontError::Fatal { what: self.to_string(), hint }
    }

    /// Returns the error of a call while the gateway is running.
    pub(super) fn while_running(self) -> FrontError {
        let (what, kind, not_made) = (self.to_string(), self.kind(), self.was_not_made());
        match self.cause {
            Cause::RateLimited { retry_after } => {
                FrontError::Transient { what, retry_after: Some(retry_after), not_made }
            }
            Cause::Code { code, needed } => match kind {
                Some(Kind::Credentials) => FrontError::Fatal { what, hint: hint(&code, self.token, needed.as_deref()) },
                Some(Kind::Passing) => FrontError::Transient { what, retry_after: None, not_made },
                Some(Kind::Refusal) => FrontError::Refused { what, may_pass: false },
                Some(Kind::Unknown) | None => FrontError::Refused { what, may_pass: true },
            },
            // What waits for it goes on with the new token by itself.
            Cause::AwaitsToken { code } => {
                let what = format!("{what}; {}", hint(&code, self.token, None));
                FrontError::Transient { what, retry_after: None, not_made }
            }
            Cause::NotForUs(why) => why,
            // A status says something about the connection to Slack; only "too large" is about the
            // message.
            Cause::Status(413) => FrontError::Refused { what, may_pass: false },
            Cause::Locked { .. }
            | Cause::Status(_)
            | Cause::TimedOut(_)
            | Cause::Unreadable
            | Cause::Unreachable(_)
            | Cause::ConnectTimedOut(_)
            | Cause::Broken(_) => FrontError::Transient { what, retry_after: None, not_made },
        }
    }
}

#[cfg(test)]
mod tests;
