//! `admin list|add|remove|log`: who may change the gateway from a conversation, and what was changed (specification 003
//! §11). The first admin can only be added here.

use clap::{Args, Subcommand};
use pmk_system::error::{Failure, OrHint};
use serde_json::json;

use super::{
    arguments::count,
    change::make,
    context::Context,
    output::{print, print_json},
    text::{one_line, printable},
};
use crate::{
    messages::Messages,
    operator::{
        admin::{self, Change, LogEntry},
        command::show::why,
    },
};

/// The most characters of a reason in a line of the log.
const LISTED_CHARS: usize = 80;

#[derive(Debug, Subcommand)]
pub(super) enum AdminCommand {
    /// List admins
    List,
    /// Make a person an admin
    Add(One),
    /// Remove an admin; the last one cannot be removed
    Remove(One),
    /// Show recent changes, including refused ones, oldest first
    Log(Log),
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// User ID (U…, W…)
    user: String,
}

#[derive(Debug, Args)]
pub(super) struct Log {
    /// How many to show
    #[arg(long, value_name = "N", default_value_t = admin::SHOWN, value_parser = count::<usize>)]
    last: usize,
}

impl AdminCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            AdminCommand::List => list(context),
            AdminCommand::Add(one) => one.add(context),
            AdminCommand::Remove(one) => one.remove(context),
            AdminCommand::Log(log) => log.run(context),
        }
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let config = context.config()?;
    let admins = config.people.admins;
    if context.json {
        return print_json(&json!(admins));
    }
    if admins.is_empty() {
        context.notice(
            "there are no admins",
            Some("add one by their member ID, for example `pmk-host admin add U012AB3CD`"),
        );
        return Ok(());
    }
    print(&admins.iter().map(|admin| printable(admin) + "\n").collect::<String>())
}

impl One {
    fn add(self, context: &Context) -> Result<(), Failure> {
        make(context, &Change::AddAdmin { user: self.user.clone() })?;
        self.told(context, true)
    }

    fn remove(self, context: &Context) -> Result<(), Failure> {
        make(context, &Change::RemoveAdmin { user: self.user.clone() })?;
        self.told(context, false)
    }

    fn told(&self, context: &Context, is_admin: bool) -> Result<(), Failure> {
        if context.json {
            return print_json(&json!({"user": self.user, "is_admin": is_admin}));
        }
        let user = &self.user;
        context.say(&match is_admin {
            true => format!("`{user}` is an admin"),
            false => format!("`{user}` is no longer an admin"),
        });
        Ok(())
    }
}

impl Log {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let entries = admin::last_changes(&context.home, self.last)
            .or_hint("check that you can read the folder `gateway` in the home")?;
        if context.json {
            return print_json(&json!(entries));
        }
        if entries.is_empty() {
            context.say(&format!("no changes yet in `{}`", context.home.display()));
            return Ok(());
        }
        let heading = ["AT", "ACTOR", "ORIGIN", "ACTION", "ARGUMENTS", "DONE"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> =
            std::iter::once(heading).chain(entries.iter().map(|entry| row(entry, context))).collect();
        print(&context.columns(&rows))
    }
}

fn row(entry: &LogEntry, context: &Context) -> Vec<String> {
    let LogEntry { at, actor, origin, action, args, ok, reason } = entry;
    let done = match (ok, reason) {
        (true, _) => context.translated("yes").into_owned(),
        (false, Some(reason)) => {
            let mut known = why(&Messages::new(context.language), reason);
            // It does not begin the sentence here.
            if let Some(first) = known.as_mut().and_then(|why| why.get_mut(..1)) {
                first.make_ascii_lowercase();
            }
            let reason = one_line(known.as_ref().unwrap_or(reason), LISTED_CHARS);
            context.translated(&format!("no: {reason}")).into_owned()
        }
        (false, None) => context.translated("no").into_owned(),
    };
    let texts = [at, actor, origin, action, args].map(|text| one_line(text, LISTED_CHARS));
    texts.into_iter().chain([done]).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::{cli::Arguments, operator::command::TABLE};

    /// One table serves both interfaces, so its host commands must exist.
    #[test]
    fn every_command_that_the_host_has_too_is_there_with_the_same_arguments() {
        let mut found = 0;
        for entry in TABLE.iter().filter(|entry| !entry.on_host.is_empty()) {
            let program = Arguments::command();
            let command = entry.on_host.iter().fold(&program, |command, word| {
                command.find_subcommand(word).unwrap_or_else(|| panic!("no `{}`", entry.on_host.join(" ")))
            });
            if entry.changes {
                let given = entry.arguments.split_whitespace().count();
                assert_eq!(command.get_positionals().count(), given, "{}", entry.on_host.join(" "));
            }
            found += 1;
        }
        assert!(found > 10);
    }
}
