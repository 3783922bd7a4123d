//! Checks Slack: the kinds of both tokens, the bot token's owner and scopes, and Socket Mode.

use jiff::SignedDuration;
use pmk_system::error::Failure;
use tokio::time::timeout;

use super::{Finding, PATIENCE, Part, get};
use crate::{
    front::{
        FrontError,
        slack::{
            SlackConfig,
            app::{OptionalFeature, Scope},
            credentials::{self, Bot, Examined},
        },
    },
    messages::{DoctorRemark, Messages},
};

pub(super) const NAME: &str = "slack";
const BOT: &str = "slack bot";
const SCOPES: &str = "slack scopes";
const SOCKET: &str = "slack socket";
const PAGE: &str = "docs/slack.md#the-app";

/// How to connect to Slack.
#[derive(Debug)]
pub enum Access {
    /// No token is set: people talk at the console.
    None,
    /// No token is set, as requested.
    Console,
    /// Why tokens cannot be fetched, each for itself.
    Unavailable(Vec<Failure>),
    Tokens(Box<SlackConfig>),
}

/// Returns the findings, and how far this machine's clock is ahead of Slack's. The finding about the admins is one of
/// them, except at the console, where nobody but the operator is.
pub(super) async fn look(
    access: Part<Access>,
    admins: Option<Finding>,
    offline: bool,
    messages: &Messages,
) -> (Vec<Finding>, Option<SignedDuration>) {
    let access = get(NAME, access, PAGE, messages).await;
    let admins = admins.filter(|_| !matches!(access, Ok(Access::Console | Access::None)));
    let (mut findings, ahead) = examine(access, offline, messages).await;
    findings.extend(admins);
    (findings, ahead)
}

async fn examine(
    access: Result<Access, Finding>,
    offline: bool,
    messages: &Messages,
) -> (Vec<Finding>, Option<SignedDuration>) {
    let config = match access {
        Ok(Access::Tokens(config)) => config,
        Ok(Access::Console) => {
            return (vec![Finding::well(NAME, messages.doctor(DoctorRemark::SlackConsole))], None);
        }
        Ok(Access::None) => {
            let (what, hint) = (DoctorRemark::SlackNone, DoctorRemark::SlackNoneHint);
            return (vec![Finding::odd(NAME, messages.doctor(what), messages.doctor(hint))], None);
        }
        Ok(Access::Unavailable(failures)) => {
            let findings = failures.into_iter().map(|failure| Finding::failed(NAME, failure, PAGE, messages));
            return (findings.collect(), None);
        }
        Err(finding) => return (vec![finding], None),
    };
    let wrong: Vec<Finding> = credentials::kinds(&config)
        .into_iter()
        .filter_map(Result::err)
        .map(|error| refused(NAME, error, messages))
        .collect();
    if !wrong.is_empty() {
        return (wrong, None);
    }
    let mut findings = vec![Finding::well(NAME, messages.doctor(DoctorRemark::SlackKinds))];
    if offline {
        let names = [BOT, SCOPES, SOCKET];
        findings.extend(names.map(|name| Finding::left_out(name, messages.doctor(DoctorRemark::Offline))));
        return (findings, None);
    }
    let (answered, ahead) = ask(&config, messages).await;
    findings.extend(answered);
    (findings, ahead)
}

async fn ask(config: &SlackConfig, messages: &Messages) -> (Vec<Finding>, Option<SignedDuration>) {
    let Ok(Examined { bot, socket }) = timeout(PATIENCE, credentials::examine(config)).await else {
        let what = messages.doctor_slack_silent(PATIENCE.as_secs());
        return (vec![Finding::bad(BOT, what, messages.doctor(DoctorRemark::SlackSilentHint))], None);
    };
    let mut ahead = None;
    let mut findings = match bot {
        Ok(Bot { name, team, scopes, ahead: clock }) => {
            ahead = clock;
            let bot = Finding::well(BOT, messages.doctor_slack_bot(&name, &team));
            [vec![bot], about_scopes(scopes, messages)].concat()
        }
        Err(error) => {
            let unknown = Finding::left_out(SCOPES, messages.doctor(DoctorRemark::ScopesUnknown));
            vec![refused(BOT, error, messages), unknown]
        }
    };
    findings.push(match socket {
        Ok(()) => Finding::well(SOCKET, messages.doctor(DoctorRemark::SlackSocket)),
        Err(error) => refused(SOCKET, error, messages),
    });
    (findings, ahead)
}

fn about_scopes(
    scopes: Option<Result<Vec<(&'static Scope, OptionalFeature)>, FrontError>>,
    messages: &Messages,
) -> Vec<Finding> {
    match scopes {
        None => vec![Finding::left_out(SCOPES, messages.doctor(DoctorRemark::ScopesUntold))],
        Some(Err(error)) => vec![refused(SCOPES, error, messages)],
        Some(Ok(lesser)) if lesser.is_empty() => {
            vec![Finding::well(SCOPES, messages.doctor(DoctorRemark::ScopesAll))]
        }
        Some(Ok(lesser)) => {
            let told = |(scope, without): &(&Scope, OptionalFeature)| {
                Finding::odd(
                    SCOPES,
                    messages.doctor_scope(scope.name, without.name()),
                    messages.doctor(DoctorRemark::ScopesHint),
                )
            };
            lesser.iter().map(told).collect()
        }
    }
}

fn refused(check: &'static str, error: FrontError, messages: &Messages) -> Finding {
    match error {
        FrontError::Fatal { what, hint } => Finding::bad(check, what, hint),
        other => Finding::bad(check, other.to_string(), messages.doctor_see(PAGE)),
    }
}
