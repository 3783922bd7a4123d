//! `policy use`: chooses the policies that decide in a running gateway.

use std::path::PathBuf;

use clap::Args;
use pmk_policy::Identity;
use pmk_system::error::Failure;
use serde_json::{Map, Value, json};

use super::super::{
    change::record,
    context::Context,
    output::{print, print_json},
    page::Page,
};
use crate::{
    config::{self, EditError, Json, Object},
    control::{self, Reply, Request},
    embedded,
    policies::{OnHost, Outcome, SettingsLook, Source, Swapped},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Use {
    /// Policies: names of built-in ones or paths of component files; several are layers, the last on top
    #[arg(value_name = "POLICY", required_unless_present = "previous", conflicts_with = "previous")]
    files: Vec<PathBuf>,

    /// Go back to the previous components, with the settings and limits of now
    #[arg(long)]
    previous: bool,

    /// Also write the choice to gateway.json, for the next start
    #[arg(long)]
    persist: bool,
}

/// Whether a choice survives a restart.
enum Survival {
    Yes,
    /// The reason why it does not.
    No(String),
}

impl Use {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let named: Vec<String> = match self.previous {
            true => vec!["--previous".into()],
            false => self.files.iter().map(|file| file.display().to_string()).collect(),
        };
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let swapped = record(context, "policy.use", &named, self.ask(context))?;
        if self.persist && stays_unwritten(&swapped).is_none() {
            let written = persist(context, &swapped);
            record(context, "policy.persist", &named, written)?;
        }
        self.tell(context, &swapped)
    }

    fn ask(&self, context: &Context) -> Result<Swapped, Failure> {
        self.refuse_repeated()?;
        let request = match self.previous {
            true => Request::PolicyPrevious,
            false => Request::PolicyUse { files: self.absolute()? },
        };
        match control::ask(&context.home, &request)? {
            Reply::Swapped(swapped) => Ok(swapped),
            other => Err(other.unexpected()),
        }
    }

    /// Refuses a policy that is named twice: the lower of the two would only repeat what the upper has failed at.
    fn refuse_repeated(&self) -> Result<(), Failure> {
        let repeated = self.files.iter().enumerate().find(|(at, file)| self.files[..*at].contains(*file));
        repeated.map_or(Ok(()), |(_, file)| {
            Err(Failure::new(format!("`{}` is named twice", file.display()))
                .hint("name each policy once; several are layers, the last on top"))
        })
    }

    /// Makes the paths absolute: the gateway may have been started in another folder.
    fn absolute(&self) -> Result<Vec<PathBuf>, Failure> {
        let each = self.files.iter().map(|file| embedded::absolute(file));
        each.collect::<Result<_, _>>()
            .map_err(|error| Failure::new(format!("cannot resolve the path of a file: {error}")))
    }

    fn tell(&self, context: &Context, swapped: &Swapped) -> Result<(), Failure> {
        let survival = self.survival(swapped);
        if context.json {
            let (survives, otherwise) = match survival {
                Survival::Yes => (true, None),
                Survival::No(otherwise) => (false, Some(otherwise)),
            };
            return print_json(&json!({
                "serving": swapped.serving,
                "before": swapped.before,
                "files": swapped.files,
                "survives_restart": survives,
                "otherwise": otherwise,
                "persisted": self.persist && stays_unwritten(swapped).is_none(),
                "hosts": swapped.hosts,
            }));
        }
        let mut page = Page::new(context.language);
        page.line("serving", layers(&swapped.serving));
        page.line("before", layers(&swapped.before));
        for host in &swapped.hosts {
            page.line("elsewhere", on_host(&page, host));
        }
        page.tell(
            "restart",
            &match survival {
                Survival::Yes => "still in use afterwards".to_owned(),
                Survival::No(_) if !swapped.hosts.is_empty() && !is_overtaken(swapped) => {
                    "still in use afterwards as long as one of the hosts works".to_owned()
                }
                Survival::No(otherwise) => format!("not in use afterwards: {otherwise}"),
            },
        );
        if let Some(why) = stays_unwritten(swapped).filter(|_| self.persist) {
            page.tell("gateway.json", why);
        }
        print(&page.done())
    }

    fn survival(&self, swapped: &Swapped) -> Survival {
        if is_overtaken(swapped) {
            return Survival::No("others were chosen in the meantime".to_owned());
        }
        let next = &swapped.next_start;
        let is_named = next.files == swapped.files || (self.persist && next.by != Source::CommandLine);
        if let Some(policy) = swapped.missed_by_set.as_ref().filter(|_| is_named) {
            return Survival::No(format!(
                "the gateway was started with `--set` for policy `{policy}`, which would not be loaded"
            ));
        }
        if is_named && swapped.files_unchanged {
            let other_settings = next.settings.as_ref().and_then(|look| self.other_settings(look));
            return other_settings.map_or(Survival::Yes, |why| Survival::No(why.to_owned()));
        }
        Survival::No(match next.by {
            _ if is_named => "the files have changed since; a start uses them as they are then".to_owned(),
            Source::CommandLine => {
                "the gateway was started with `--policy`, which takes precedence over gateway.json".to_owned()
            }
            Source::Config => "gateway.json names others; `--persist` writes these there".to_owned(),
            Source::Default => "gateway.json names none; `--persist` writes these there".to_owned(),
        })
    }

    /// Why a start would give a promoted arm other settings, if it would.
    fn other_settings(&self, look: &SettingsLook) -> Option<&'static str> {
        let stay = if self.persist { look.stay_once_written } else { look.stay };
        (!stay).then_some(match look.stay_once_written {
            true => "gateway.json has other settings for them; `--persist` writes these there",
            false => "a start sets other values: `--set` or the environment takes precedence over gateway.json",
        })
    }
}

/// Whether others were chosen while this command waited for the hosts.
fn is_overtaken(swapped: &Swapped) -> bool {
    swapped.hosts.iter().any(|host| host.outcome == Outcome::Unknown { overtaken: true })
}

/// Why gateway.json is not to name these policies, if it is not. The gateway, started again with the same arguments, would
/// refuse them; or they no longer decide, and what was chosen since may be in the file by now.
fn stays_unwritten(swapped: &Swapped) -> Option<&'static str> {
    let is_refused = swapped.missed_by_set.is_some() && swapped.next_start.by != Source::CommandLine;
    match is_overtaken(swapped) {
        true => Some("not changed: others were chosen in the meantime"),
        false => is_refused.then_some("not changed: the next start would refuse it"),
    }
}

/// Writes the files to gateway.json, and the settings if a start would give a promoted arm others.
fn persist(context: &Context, swapped: &Swapped) -> Result<(), Failure> {
    // The embedded policy is below all others, and in no file.
    if swapped.files.is_empty() && swapped.serving.len() > 1 {
        return Err(Failure::new("the policies decide now, but were chosen on another host and are in no file here")
            .hint("put their components into files on each host, and pass those with `--persist`"));
    }
    write(context, swapped).map_err(|error| {
        Failure::new(format!("the policies decide now, but will not after a restart: {error}")).hint(error.hint())
    })
}

fn write(context: &Context, Swapped { files, serving, next_start, .. }: &Swapped) -> Result<(), EditError> {
    let arm = next_start.settings.as_ref().filter(|look| !look.stay);
    config::edit(&context.home, |root| {
        let list = root.list_at(&["policy", "files"])?;
        *list = files.iter().map(|file| Json::from(file.display().to_string().as_str())).collect();
        if let Some(SettingsLook { of_arm, .. }) = arm {
            // Those of policies that are not in the arm are nothing that the arm decides.
            let settings = root.object_at(&["policy", "settings"])?;
            for Identity { name, .. } in serving {
                match of_arm.get(name) {
                    Some(values) => settings.set(name, document(values)),
                    None => {
                        settings.remove(name);
                    }
                }
            }
        }
        Ok(())
    })
}

/// The settings of a policy as gateway.json has them: their values are scalars.
fn document(values: &Map<String, Value>) -> Json {
    let mut settings = Object::default();
    values.iter().for_each(|(name, value)| settings.set(name, Json::Scalar(value.clone())));
    Json::Object(settings)
}

/// The outcome on another host of the database.
fn on_host(page: &Page, OnHost { machine, home, outcome }: &OnHost) -> String {
    let name = format!("{machine}:{home}");
    match outcome {
        Outcome::Decide => page.filled("`{}` uses them, too", &[&name]),
        Outcome::Refused { reason } => page.filled("`{}` does not accept them: {}", &[&name, &page.translated(reason)]),
        Outcome::Unknown { overtaken: false } => {
            page.filled("`{}` has not reported yet whether it accepts them", &[&name])
        }
        Outcome::Unknown { overtaken: true } => page.filled("`{}` knows of others that were chosen since", &[&name]),
    }
}

/// One line per layer.
fn layers(layers: &[Identity]) -> String {
    let lines: Vec<String> = layers.iter().map(|layer| format!("{layer}  sha256 {}", layer.sha256)).collect();
    lines.join("\n          ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: it was written, although others decided by then, and the page said that these are not in use.
    #[test]
    fn what_was_overtaken_while_it_was_chosen_was_written_for_the_next_start() {
        let host = |is: bool| json!([{"machine": "m", "home": "/h", "state": "unknown", "overtaken": is}]);
        let swapped = |missed: Option<&str>, hosts: Value| -> Swapped {
            let swapped = json!({
                "serving": [], "before": [], "files": ["/mine.wasm"], "files_unchanged": true,
                "next_start": {"by": "config", "files": []}, "missed_by_set": missed, "hosts": hosts,
            });
            serde_json::from_value(swapped).expect("a swap")
        };
        let overtaken = Some("not changed: others were chosen in the meantime");
        for (missed, hosts, expected) in [
            (None, json!([]), None),
            (None, host(false), None),
            (None, host(true), overtaken),
            (Some("strict"), host(true), overtaken),
            (Some("strict"), host(false), Some("not changed: the next start would refuse it")),
        ] {
            assert_eq!(stays_unwritten(&swapped(missed, hosts.clone())), expected, "{missed:?} {hosts}");
        }
    }
}
