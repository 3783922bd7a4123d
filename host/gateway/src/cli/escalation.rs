//! `escalation list|add|remove|import`: the contacts who answer what neither documents nor code can, and the threads
//! that are waiting for them (specification 003 §7, §8).

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand};
use pmk_core::FrontName;
use pmk_system::{clock, error::Failure, home};
use serde_json::json;

use super::{
    change::{make, record},
    context::{Context, block_on},
    output::{print, print_json},
    text::{one_line, printable, time},
};
use crate::{
    escalation::{self, Marker, Pools},
    ledger::Ledger,
    operator::admin::{Actor, Change},
    store::Store,
};

#[derive(Debug, Subcommand)]
pub(super) enum EscalationCommand {
    /// List the people who are asked and the threads waiting for an answer
    List,
    /// Add a person to ask
    Add(Contact),
    /// Stop asking a person
    Remove(Contact),
    /// Stop waiting for the answer in a thread
    Cancel(Cancel),
    /// Take over threads that an existing pmk left waiting
    Import(Import),
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// Directory of pmk's markers [default: gateway/slack/escalations in the home]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Cancel {
    /// Thread, as printed by `escalation list`: CHANNEL:THREAD
    #[arg(value_name = "KEY")]
    key: String,
}

#[derive(Debug, Args)]
pub(super) struct Contact {
    /// Repository, or `default` for all that have nobody of their own
    #[arg(value_name = "REPO|default")]
    pool: String,
    /// User ID (U…, W…)
    user: String,
}

impl EscalationCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            EscalationCommand::List => list(context),
            EscalationCommand::Add(contact) => contact.add(context),
            EscalationCommand::Remove(contact) => contact.remove(context),
            EscalationCommand::Cancel(cancel) => cancel.run(context),
            EscalationCommand::Import(import) => import.run(context),
        }
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let config = context.config()?;
    let Pools { default, repos } = config.people.escalation;
    let pending = pending(context)?;
    if context.json {
        return print_json(&json!({"default": default, "repos": repos, "pending": pending}));
    }
    let people = |users: &[String]| match users {
        [] => context.translated("nobody").into_owned(),
        users => printable(&users.join(", ")),
    };
    let heading = ["POOL", "PEOPLE"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = [heading, vec!["default".into(), people(&default)]]
        .into_iter()
        .chain(repos.iter().map(|(repo, users)| vec![printable(repo), people(users)]))
        .collect();
    print(&context.columns(&rows))?;
    if pending.is_empty() {
        return Ok(());
    }
    let heading = ["KEY", "ASKED", "SINCE", "QUESTION"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(pending.iter().map(row)).collect();
    print(&format!("\n{}", context.columns(&rows)))
}

fn row(marker: &Marker) -> Vec<String> {
    vec![
        printable(&marker.name()),
        printable(&marker.mentioned_user_ids.join(", ")),
        time(i64::try_from(marker.pending_since).unwrap_or(i64::MAX)),
        one_line(&marker.question, 60),
    ]
}

/// Returns the threads that are waiting; none if nothing was ever stored.
fn pending(context: &Context) -> Result<Vec<Marker>, Failure> {
    let Some(store) = Store::open_if_any(context.place()?)? else { return Ok(vec![]) };
    block_on(async { Ok(store.escalations().await?) })
}

impl Cancel {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let cancelled = self.cancel(context);
        let marker = record(context, "escalation.cancel", &[&self.key], cancelled)?;
        if context.json {
            return print_json(&json!({"key": marker.name(), "cancelled": true}));
        }
        context.say(&format!(
            "the answer in `{}` is no longer waited for; tell the people who asked and who were asked: the gateway has not told them",
            marker.name()
        ));
        Ok(())
    }

    fn cancel(&self, context: &Context) -> Result<Marker, Failure> {
        let missing = || {
            Failure::new(format!("no thread `{}` is waiting for an answer", self.key))
                .hint("`pmk-host escalation list` shows the waiting threads; one whose answer is just arriving cannot be cancelled")
        };
        let (channel, thread_ts) = self.key.split_once(':').ok_or_else(missing)?;
        let store = Store::open_if_any(context.place()?)?.ok_or_else(missing)?;
        let actor = Actor::of_process().to_string();
        let cancelled =
            block_on(async { Ok(store.cancel_escalation(channel, thread_ts, &actor, clock::now_ms()).await?) })?;
        // Writes the ledger event in case no gateway is running that would.
        drop(Ledger::open(Arc::new(store), home::gateway_dir(&context.home)));
        cancelled.ok_or_else(missing)
    }
}

impl Import {
    fn run(self, context: &Context) -> Result<(), Failure> {
        // Without the usual folder, pmk has left nothing waiting; a folder that was named must exist.
        let folder = match self.folder {
            Some(folder) if !folder.is_dir() => {
                return Err(Failure::new(format!("folder `{}` does not exist", folder.display()))
                    .hint("specify the folder `gateway/slack/escalations` of the previous pmk"));
            }
            Some(folder) => folder,
            None => home::gateway_dir(&context.home).join("slack").join("escalations"),
        };
        let imported = import(context, &folder);
        record(context, "escalation.import", &[&folder.display().to_string()], imported)
    }
}

/// Takes over the threads of a folder and prints what came of it.
///
/// # Errors
/// The store cannot be written, or some of the threads cannot be read; the others are taken over.
fn import(context: &Context, folder: &Path) -> Result<(), Failure> {
    let (markers, problems) = escalation::import(folder);
    for problem in &problems {
        context.warn(&problem.to_string());
    }
    let (found, unreadable) = (markers.len(), problems.len());
    let imported = block_on(async {
        if markers.is_empty() {
            return Ok(0);
        }
        let store = Store::open(context.place()?)?;
        let mut imported = 0;
        for marker in &markers {
            imported += usize::from(store.import_escalation(FrontName::Slack, marker).await?);
        }
        Ok(imported)
    })?;
    if context.json {
        print_json(&json!({"found": found, "imported": imported, "unreadable": unreadable}))?;
    } else if found > 0 {
        context.say(&format!("{imported} of {found} waiting threads taken over from `{}`", folder.display()));
    } else if unreadable == 0 {
        context.say(&format!("no threads are waiting for an answer in `{}`", folder.display()));
    }
    if unreadable == 0 {
        return Ok(());
    }
    let all = found + unreadable;
    Err(Failure::new(format!("{unreadable} of {all} waiting threads not taken over"))
        .hint("the warnings say which files cannot be read; correct or remove them, then import again"))
}

impl Contact {
    fn add(self, context: &Context) -> Result<(), Failure> {
        make(context, &Change::AddContact { pool: self.pool.clone(), user: self.user.clone() })?;
        self.told(context, true)
    }

    fn remove(self, context: &Context) -> Result<(), Failure> {
        make(context, &Change::RemoveContact { pool: self.pool.clone(), user: self.user.clone() })?;
        self.told(context, false)
    }

    fn told(&self, context: &Context, is_in: bool) -> Result<(), Failure> {
        if context.json {
            return print_json(&json!({"pool": self.pool, "user": self.user, "is_in": is_in}));
        }
        let Contact { user, pool } = &self;
        context.say(&match is_in {
            true => format!("`{user}` is in the pool `{pool}`"),
            false => format!("`{user}` is no longer in the pool `{pool}`"),
        });
        Ok(())
    }
}
