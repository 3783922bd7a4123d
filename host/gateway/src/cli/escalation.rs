//! `escalation list|add|remove`: who is asked what neither documents nor code can answer (seed 003 §7).

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, change::record, note, print, print_json, table, text::printable};
use crate::{admin, config::Config, error::Failure, escalation::Pools, home};

#[derive(Debug, Subcommand)]
pub(super) enum EscalationCommand {
    /// List the people who are asked
    List,
    /// Ask one more person
    Add(Contact),
    /// Ask a person no longer
    Remove(Contact),
}

#[derive(Debug, Args)]
pub(super) struct Contact {
    /// A repository, or `default` for all that have nobody of their own
    #[arg(value_name = "REPO|default")]
    pool: String,
    /// A person's id (U…, W…)
    user: String,
}

impl EscalationCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            EscalationCommand::List => list(context),
            EscalationCommand::Add(contact) => contact.add(context),
            EscalationCommand::Remove(contact) => contact.remove(context),
        }
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let (config, warnings) = Config::load(&home::config_file(&context.home))?;
    for warning in warnings {
        note(format!("warning: {warning}"));
    }
    let Pools { default, repos } = config.escalation;
    if context.json {
        return print_json(&json!({"default": default, "repos": repos}));
    }
    let people = |users: &[String]| match users {
        [] => "nobody".to_owned(),
        users => printable(&users.join(", ")),
    };
    let heading = vec!["POOL".to_owned(), "PEOPLE".to_owned()];
    let rows: Vec<Vec<String>> = [heading, vec!["default".into(), people(&default)]]
        .into_iter()
        .chain(repos.iter().map(|(repo, users)| vec![printable(repo), people(users)]))
        .collect();
    print(&table::columns(&rows))
}

impl Contact {
    fn add(self, context: &Context) -> Result<(), Failure> {
        let changed = admin::add_contact(&context.home, &self.pool, &self.user).map_err(Failure::from);
        record(context, "escalation.add", &[&self.pool, &self.user], changed)?;
        self.told(context, true)
    }

    fn remove(self, context: &Context) -> Result<(), Failure> {
        let changed = admin::remove_contact(&context.home, &self.pool, &self.user).map_err(Failure::from);
        record(context, "escalation.remove", &[&self.pool, &self.user], changed)?;
        self.told(context, false)
    }

    fn told(&self, context: &Context, is_in: bool) -> Result<(), Failure> {
        if context.json {
            return print_json(&json!({"pool": self.pool, "user": self.user, "is_in": is_in}));
        }
        let verb = if is_in { "is in" } else { "is no longer in" };
        note(format!("`{}` {verb} the pool `{}`", self.user, self.pool));
        Ok(())
    }
}
