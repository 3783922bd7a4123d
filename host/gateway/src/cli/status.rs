//! `status`: the status of the gateway of a home.

use std::{fmt::Write, process::ExitCode, time::Duration};

use clap::Args;
use jiff::Timestamp;
use pmk_policy::Identity;
use pmk_system::{error::Failure, home};
use serde_json::{Value, json};

use super::{
    context::{Context, block_on},
    output::{note, print_json, print_page},
};
use crate::{
    chat::Refusal,
    config,
    control::{Look, look},
    ledger::LedgerBacklog,
    messages::{Messages, terminal},
    presence::health::{Level, RefusedExperiment, Report},
    store::{Host, HostPolicies, HostState, Place, Store},
};

/// The exit code if no gateway is running, as in service scripts.
const NOT_RUNNING: u8 = 3;
/// The exit code if the status is unknown, as in service scripts; 1 would mean that a gateway is running.
pub(super) const UNKNOWN: u8 = 4;

/// How long the password of the store may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The width of the labels.
const NAME_COLUMNS: usize = 12;

#[derive(Debug, Args)]
pub(super) struct StatusCommand {}

impl StatusCommand {
    pub(super) fn execute(self, context: &Context) -> Result<ExitCode, Failure> {
        let look = look(&context.home)?;
        let store = match context.place_within(PATIENCE) {
            Ok(place) => Shared::of(place),
            // The gateway may be running or stopped regardless, so its status is still shown.
            Err(failure) => {
                context.warn_of("cannot tell which process uses the store", &failure);
                None
            }
        };
        let shown = Shown { look, store };
        if context.json {
            print_json(&shown.document())?;
        } else {
            let messages = Messages::new(context.language);
            print_page(&shown.page(&messages), &" ".repeat(NAME_COLUMNS + 1))?;
            let unknown = shown.store.as_ref().and_then(|store| store.hosts.as_ref().err());
            let hints = [
                unknown.and_then(Failure::advice).map(|hint| context.translated(hint).into_owned()),
                shown.refusal().map(|refusal| context.translated(&refusal.hint).into_owned()),
                shown.unstorable().map(|_| messages.status_unstorable_hint()),
                shown.config().map(|_| config_hint(context, &messages)),
                shown
                    .experiment()
                    .map(|_| messages.status_experiment_hint(&home::command(&context.home, "experiment stop"))),
                shown.trouble().map(|_| messages.status_ledger_hint()),
            ];
            for hint in hints.into_iter().flatten() {
                note(format_args!("  {}", terminal::hint(&hint, context.language)));
            }
        }
        Ok(match shown.look.level {
            Level::Down => ExitCode::from(NOT_RUNNING),
            Level::Degraded => ExitCode::FAILURE,
            Level::Healthy => ExitCode::SUCCESS,
        })
    }
}

/// What to do about gateway.json: nobody can correct one that is lost.
fn config_hint(context: &Context, messages: &Messages) -> String {
    let lost = config::check_kept(&context.home).err();
    let hint = lost.as_ref().and_then(Failure::advice).map(|hint| context.translated(hint).into_owned());
    hint.unwrap_or_else(|| messages.status_config_hint(&home::command(&context.home, "config check")))
}

/// Everything that is shown.
struct Shown {
    look: Look,
    /// Set if several hosts may share the store.
    store: Option<Shared>,
}

/// A database, and its hosts.
struct Shared {
    name: String,
    hosts: Result<Vec<Host>, Failure>,
}

impl Shared {
    /// Returns `None` if the store is a file.
    fn of(place: Place) -> Option<Shared> {
        let name = place.database.as_ref()?.name().to_owned();
        let hosts = match Store::open_if_any(place) {
            Ok(Some(store)) => block_on(async { Ok(store.hosts().await?) }),
            Ok(None) => Ok(vec![]),
            Err(error) => Err(error.into()),
        };
        Some(Shared { name, hosts })
    }

    /// Returns how many hosts are using it.
    fn working(&self) -> Result<usize, &str> {
        let hosts = self.hosts.as_ref().map_err(Failure::message)?;
        Ok(hosts.iter().filter(|host| host.state != HostState::Silent).count())
    }

    fn document(&self) -> Value {
        let hosts = self.hosts.as_ref().ok().map(|hosts| {
            let host = |host: &Host| {
                json!({
                    "state": host.state,
                    "machine": host.machine,
                    "home": host.home,
                    "version": host.version,
                    "since": at(host.since_ms),
                    "last_sign_seconds": seconds(host.silent_ms),
                    "turns": host.turns,
                    "policies": host.decides,
                })
            };
            hosts.iter().map(host).collect::<Vec<_>>()
        });
        json!({"name": self.name, "error": self.working().err(), "hosts": hosts})
    }
}

fn at(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(|at| format!("{at:.3}")).unwrap_or_default()
}

fn names(layers: &[Identity]) -> Vec<String> {
    layers.iter().map(ToString::to_string).collect()
}

fn seconds(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default() / 1000
}

impl Shown {
    /// Returns what its front refuses.
    fn refusal(&self) -> Option<&Refusal> {
        self.look.report.as_ref()?.refusal.as_ref()
    }

    /// Returns why nothing can be stored in the file. Of a database, its line says so.
    fn unstorable(&self) -> Option<&str> {
        if self.store.is_some() {
            return None;
        }
        self.look.report.as_ref()?.store_away.as_deref()
    }

    /// Returns why gateway.json is not in use.
    fn config(&self) -> Option<&str> {
        self.look.report.as_ref()?.config.as_deref()
    }

    /// Returns the experiment that was not started, or was changed in vain.
    fn experiment(&self) -> Option<&RefusedExperiment> {
        self.look.report.as_ref()?.experiment.as_ref()
    }

    /// Returns what keeps lines of the ledger from being written, unless it is that nothing can be stored.
    fn trouble(&self) -> Option<&LedgerBacklog> {
        let report = self.look.report.as_ref().filter(|report| report.store_away.is_none());
        report?.ledger.as_ref()
    }

    fn page(&self, messages: &Messages) -> String {
        let mut page = format!("{}\n", messages.status_level(self.look.level.name()));
        let mut line = |(name, value): (String, String)| {
            // A Chinese character is as wide as two others.
            let wide = name.chars().filter(|c| !c.is_ascii()).count();
            let _ = writeln!(page, "  {name:<room$} {value}", room = NAME_COLUMNS - wide.min(NAME_COLUMNS));
        };
        for reason in &self.look.reasons {
            line(messages.status_because(reason.name(), reason.count()));
        }
        if let Some(holder) = &self.look.work {
            line(messages.status_work(holder.purpose.command(), holder.pid));
        }
        if let Some(pid) = self.look.pid {
            line(messages.status_process(pid));
        }
        if let Some(state) = &self.look.state {
            line(messages.status_phase(state.phase.name(), &state.started_at));
            line(messages.status_supervised(state.supervised));
        }
        // For a gateway that has ended, the age of the heartbeat means nothing.
        let heartbeat = if self.look.pid.is_some() { self.look.heartbeat.name() } else { "over" };
        line(messages.status_heartbeat(heartbeat, self.look.age.map(|age| age.as_secs())));
        if let Some(connection) = self.look.report.as_ref().and_then(|report| report.connection) {
            line(messages.status_sockets(connection));
        }
        if let Some(refusal) = self.refusal() {
            line(messages.status_refusal(&refusal.what));
        }
        if let Some(why) = self.unstorable() {
            line(messages.status_unstorable(why));
        }
        if let Some(store) = &self.store {
            line(messages.status_store(&store.name, store.working()));
            for host in store.hosts.iter().flatten() {
                let name = format!("{}:{}", host.machine, host.home);
                let (since, silent) = (at(host.since_ms), seconds(host.silent_ms));
                line(messages.status_host(name, host.state.name(), &host.version, since, silent, host.turns));
                if let Some(HostPolicies { layers, settings, refused, suspended, .. }) = &host.decides {
                    let layers = messages.layers(&names(layers));
                    line(messages.status_policies(layers, settings.as_ref(), refused.as_deref()));
                    suspended.iter().for_each(|suspension| line(messages.status_suspended(suspension)));
                }
            }
        }
        let are_listed = self.store.as_ref().is_some_and(|store| store.hosts.is_ok());
        if let (false, Some(Report { policies, settings, suspended, .. })) = (are_listed, &self.look.report)
            && !policies.is_empty()
        {
            line(messages.status_policies(messages.layers(&names(policies)), settings.as_ref(), None));
            suspended.iter().for_each(|suspension| line(messages.status_suspended(suspension)));
        }
        if let Some(why) = self.config() {
            line(messages.status_config(why));
        }
        if let Some(RefusedExperiment { name, why, goes_on }) = self.experiment() {
            line(messages.status_experiment(name, why, *goes_on));
        }
        if let Some(trouble) = self.trouble() {
            line(messages.status_ledger(trouble));
        }
        page
    }

    fn document(&self) -> Value {
        let connection = self.look.report.as_ref().and_then(|report| report.connection);
        json!({
            "level": self.look.level,
            "reasons": self.look.reasons,
            "pid": self.look.pid,
            "work": self.look.work.as_ref().map(|holder| json!({"command": holder.purpose.command(), "pid": holder.pid})),
            "phase": self.look.state.as_ref().map(|state| state.phase),
            "started_at": self.look.state.as_ref().map(|state| &state.started_at),
            "supervised": self.look.state.as_ref().map(|state| state.supervised),
            "heartbeat": {
                "freshness": self.look.heartbeat,
                "at": self.look.beat_ms.and_then(|beat| Timestamp::from_millisecond(beat).ok()).map(|at| format!("{at:.3}")),
                "age_seconds": self.look.age.map(|age| age.as_secs()),
            },
            "answers": self.look.report.is_some(),
            "sockets": connection,
            "refusal": self.refusal(),
            "policies": self.look.report.as_ref().map(|report| &report.policies),
            "settings": self.look.report.as_ref().map(|report| &report.settings),
            "suspended": self.look.report.as_ref().map(|report| &report.suspended),
            "store_away": self.look.report.as_ref().and_then(|report| report.store_away.as_ref()),
            "config": self.config(),
            "experiment": self.experiment(),
            "ledger": self.trouble(),
            "store": self.store.as_ref().map(Shared::document),
        })
    }
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;
    use unicode_width::UnicodeWidthStr;

    use super::*;
    use crate::presence::health::Freshness;

    /// Regression: neither what the hosts decide by was shown, nor what this gateway does.
    #[test]
    fn policies_were_missing_while_the_database_could_not_be_asked() {
        let policy = json!({"name": "strict", "version": "1.0.0", "sha256": "c0ffee"});
        let suspension = json!({"policy": policy, "decision": "prune", "left": 7, "reason": "it trapped"});
        let report = json!({"connection": null, "policies": [policy], "suspended": [suspension]});
        let shown = |store: Option<Shared>| {
            let look = Look {
                work: None,
                pid: Some(1),
                state: None,
                beat_ms: None,
                age: None,
                report: Some(serde_json::from_value(report.clone()).expect("a report")),
                level: Level::Degraded,
                heartbeat: Freshness::Fresh,
                reasons: vec![],
            };
            let page = Shown { look, store }.page(&Messages::new(Language::English));
            (page.contains("strict 1.0.0"), page.contains("it trapped"))
        };
        let shared = |hosts| Shared { name: "postgres://pmk@db/pmk".into(), hosts };
        assert_eq!(shown(None), (true, true));
        assert_eq!(shown(Some(shared(Err(Failure::new("it does not answer"))))), (true, true));
        assert_eq!(shown(Some(shared(Ok(vec![])))), (false, false), "each host says so for itself");
    }

    /// Regression: the Chinese label for `supervised` was wider than its column, and its value stood elsewhere.
    #[test]
    fn every_label_fits_its_column_in_either_language() {
        for texts in [include_str!("../messages/operator/en.ftl"), include_str!("../messages/operator/zh-TW.ftl")] {
            let labels: Vec<&str> = texts
                .lines()
                .filter_map(|line| line.strip_prefix("status-")?.split_once(" = "))
                // The others are values and hints.
                .filter(|(name, text)| !name.contains('-') && !text.starts_with('{'))
                .map(|(_, text)| text)
                .collect();
            assert!(labels.len() >= 13, "{labels:?}");
            for label in labels {
                assert!(label.width() <= NAME_COLUMNS, "{label}");
            }
        }
    }
}
