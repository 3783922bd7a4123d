//! `policy use`: chooses the policies that decide in a running gateway.

use std::path::PathBuf;

use clap::Args;
use pmk_policy::Identity;
use pmk_system::error::Failure;
use serde_json::json;

use super::super::{
    change::record,
    context::Context,
    output::{print, print_json},
    page::Page,
};
use crate::{
    config::{self, EditError, Json},
    control::{self, Reply, Request},
    embedded,
    policies::{OnHost, Outcome, Source, Swapped},
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
        if self.persist && !is_refused(&swapped) {
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
                "persisted": self.persist && !is_refused(swapped),
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
                Survival::No(_) if !swapped.hosts.is_empty() => {
                    "still in use afterwards as long as one of the hosts works".to_owned()
                }
                Survival::No(otherwise) => format!("not in use afterwards: {otherwise}"),
            },
        );
        if self.persist && is_refused(swapped) {
            page.tell("gateway.json", "not changed: the next start would refuse it");
        }
        print(&page.done())
    }

    fn survival(&self, swapped: &Swapped) -> Survival {
        let next = &swapped.next_start;
        let is_named = next.files == swapped.files || (self.persist && next.by != Source::CommandLine);
        if let Some(policy) = swapped.missed_by_set.as_ref().filter(|_| is_named) {
            return Survival::No(format!(
                "the gateway was started with `--set` for policy `{policy}`, which would not be loaded"
            ));
        }
        if is_named && swapped.files_unchanged {
            return Survival::Yes;
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
}

/// Whether the gateway, started again with the same arguments, would refuse these policies if gateway.json named them.
fn is_refused(swapped: &Swapped) -> bool {
    swapped.missed_by_set.is_some() && swapped.next_start.by != Source::CommandLine
}

/// Writes the files to gateway.json.
fn persist(context: &Context, Swapped { files, serving, .. }: &Swapped) -> Result<(), Failure> {
    // The embedded policy is below all others, and in no file.
    if files.is_empty() && serving.len() > 1 {
        return Err(Failure::new("the policies decide now, but were chosen on another host and are in no file here")
            .hint("put their components into files on each host, and pass those with `--persist`"));
    }
    write(context, files).map_err(|error| {
        Failure::new(format!("the policies decide now, but will not after a restart: {error}")).hint(error.hint())
    })
}

fn write(context: &Context, files: &[PathBuf]) -> Result<(), EditError> {
    config::edit(&context.home, |root| {
        let list = root.list_at(&["policy", "files"])?;
        *list = files.iter().map(|file| Json::from(file.display().to_string().as_str())).collect();
        Ok(())
    })
}

/// The outcome on another host of the database.
fn on_host(page: &Page, OnHost { machine, home, outcome }: &OnHost) -> String {
    let name = format!("{machine}:{home}");
    match outcome {
        Outcome::Decide => page.filled("`{}` uses them, too", &[&name]),
        Outcome::Refused { reason } => page.filled("`{}` does not accept them: {}", &[&name, &page.translated(reason)]),
        Outcome::Unknown => page.filled("`{}` has not reported yet whether it accepts them", &[&name]),
    }
}

/// One line per layer.
fn layers(layers: &[Identity]) -> String {
    let lines: Vec<String> = layers.iter().map(|layer| format!("{layer}  sha256 {}", layer.sha256)).collect();
    lines.join("\n          ")
}
