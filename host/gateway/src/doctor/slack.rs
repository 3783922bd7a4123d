//! Slack: both tokens and their kinds, whose the bot token is and what it may do, and Socket Mode.

use jiff::SignedDuration;
use tokio::time::timeout;

use super::{Finding, Getting, PATIENCE, get};
use crate::front::{
    FrontError,
    slack::{
        SlackConfig,
        app::Scope,
        credentials::{self, Bot, Examined},
    },
};

pub(super) const NAME: &str = "slack";
const BOT: &str = "slack bot";
const SCOPES: &str = "slack scopes";
const SOCKET: &str = "slack socket";
const PAGE: &str = "docs/slack.md#the-app";

/// What there is to connect with.
#[derive(Debug)]
pub enum Access {
    /// Nobody has set a token: people talk at the console.
    None,
    Tokens(Box<SlackConfig>),
}

/// What is found, and how far this machine's clock is ahead of Slack's.
pub(super) async fn look(access: Getting<Access>, offline: bool) -> (Vec<Finding>, Option<SignedDuration>) {
    let config = match get(access).await {
        Ok(Access::Tokens(config)) => config,
        Ok(Access::None) => {
            let none = Finding::odd(
                NAME,
                "there are no tokens, so people talk at the console",
                format!("to connect Slack: `pmk-host slack manifest`, see {PAGE}"),
            );
            return (vec![none], None);
        }
        Err(failure) => return (vec![Finding::failed(NAME, failure, PAGE)], None),
    };
    let wrong: Vec<Finding> =
        credentials::kinds(&config).into_iter().filter_map(Result::err).map(|error| refused(NAME, error)).collect();
    if !wrong.is_empty() {
        return (wrong, None);
    }
    let mut findings = vec![Finding::well(NAME, "both tokens are there, and of the right kinds")];
    if offline {
        let names = [BOT, SCOPES, SOCKET];
        findings.extend(names.map(|name| Finding::left_out(name, "not asked, because of `--offline`")));
        return (findings, None);
    }
    let Ok(Examined { bot, socket }) = timeout(PATIENCE, credentials::examine(&config)).await else {
        let what = format!("Slack has not answered within {} s", PATIENCE.as_secs());
        findings.push(Finding::bad(BOT, what, "check the network and a proxy; see also https://slack-status.com"));
        return (findings, None);
    };
    let mut ahead = None;
    match bot {
        Ok(Bot { name, team, scopes, ahead: clock }) => {
            ahead = clock;
            findings.push(Finding::well(BOT, format!("@{name} in {team}")));
            findings.extend(about_scopes(scopes));
        }
        Err(error) => {
            findings.push(refused(BOT, error));
            findings.push(Finding::left_out(SCOPES, "nobody says which there are"));
        }
    }
    findings.push(match socket {
        Ok(()) => Finding::well(SOCKET, "Socket Mode is on, and takes the app token"),
        Err(error) => refused(SOCKET, error),
    });
    (findings, ahead)
}

fn about_scopes(scopes: Option<Result<Vec<&'static Scope>, FrontError>>) -> Vec<Finding> {
    match scopes {
        None => vec![Finding::left_out(SCOPES, "Slack does not say which there are")],
        Some(Err(error)) => vec![refused(SCOPES, error)],
        Some(Ok(lesser)) if lesser.is_empty() => vec![Finding::well(SCOPES, "all that the gateway makes use of")],
        Some(Ok(lesser)) => {
            let hint = format!("add it under OAuth & Permissions and install the app again; see {PAGE}");
            let without = |scope: &&Scope| {
                let what = format!("without `{}` {}", scope.name, scope.without.unwrap_or_default());
                Finding::odd(SCOPES, what, hint.clone())
            };
            lesser.iter().map(without).collect()
        }
    }
}

fn refused(check: &'static str, error: FrontError) -> Finding {
    match error {
        FrontError::Fatal { what, hint } => Finding::bad(check, what, hint),
        other => Finding::bad(check, other.to_string(), format!("see {PAGE}")),
    }
}
