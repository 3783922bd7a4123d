//! What is to be done after `init`.

use pmk_system::{
    home::{self, Holder, HomeLock},
    service,
};

use super::{
    super::{
        context::Context,
        doctor,
        stop::{is_its_gateway, is_supervised},
    },
    Answers,
};
use crate::{config::Config, diagnostics::doctor::Finding, messages::Messages};

/// The unit in `packaging`.
const UNIT: &str = "pmk-host";

/// Who started the gateway that runs in the home, and so has to start it again: it reads the file at its start.
enum Running {
    /// A unit of the system's manager.
    Unit(String),
    /// Perhaps a service, which may have secrets in its environment that a gateway started from here would not have.
    Supervised,
    ByHand,
}

/// What is to be done next.
pub(super) enum Next {
    Command(String),
    /// Restart a service whose unit is not known, or run this command if no service runs the gateway.
    Restart(String),
}

impl Next {
    /// The command, if that is all there is to do.
    pub fn command(&self) -> Option<&str> {
        match self {
            Next::Command(command) => Some(command),
            Next::Restart(_) => None,
        }
    }

    /// What to do, if that is no command.
    pub fn note(&self, messages: &Messages) -> Option<String> {
        match self {
            Next::Command(_) => None,
            Next::Restart(otherwise) => Some(messages.init_restart(otherwise)),
        }
    }

    /// The one or the other, for people.
    pub fn said(self, messages: &Messages) -> String {
        match self {
            Next::Command(command) => command,
            Next::Restart(otherwise) => messages.init_restart(&otherwise),
        }
    }
}

/// The next step: `run`, or `doctor` if there are problems. A setup that awaits credentials runs as a service, also if
/// these answers are about something else.
pub(super) fn after(context: &Context, answers: &Answers, config: &Config, findings: &[Finding]) -> Next {
    if !doctor::is_well(findings) {
        return Next::Command(home::command(&context.home, "doctor"));
    }
    let secrets = [&config.api_key, &config.slack.app_token, &config.slack.bot_token];
    let is_service = context.awaited_password().is_some()
        || secrets.into_iter().flatten().any(|secret| secret.awaited_credential().is_some());
    let run = match &answers.slack {
        // If its tokens are not set yet, it must report that instead of falling back to the console.
        Some(_) => "run --front slack",
        None if answers.passes_over_slack(config) => "run --front console",
        None => "run",
    };
    let start = match is_service {
        true => format!("systemctl enable --now {UNIT}"),
        false => home::command(&context.home, run),
    };
    let again = || format!("{} && {start}", home::command(&context.home, "stop"));
    match running(context) {
        Some(Running::Unit(unit)) => Next::Command(format!("systemctl restart {unit}")),
        Some(Running::Supervised) => Next::Restart(again()),
        Some(Running::ByHand) => Next::Command(again()),
        None => Next::Command(start),
    }
}

fn running(context: &Context) -> Option<Running> {
    let home = &context.home;
    let pid = HomeLock::holder_of(home).ok()?.filter(Holder::is_gateway)?.pid;
    let unit = || is_its_gateway(home, pid).is_ok_and(|is| is).then(|| service::unit_of(pid)).flatten();
    Some(match is_supervised(home, pid) {
        true => unit().map_or(Running::Supervised, Running::Unit),
        false => Running::ByHand,
    })
}
