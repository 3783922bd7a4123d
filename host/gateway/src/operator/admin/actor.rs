//! The person who makes a change.

use std::fmt;

use pmk_core::FrontName;

/// A person, and the interface that they use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// At a terminal of the host, by their account name.
    Cli { user: String },
    /// In Slack, by their Slack user id.
    Slack { user: String },
    /// On the console of a running gateway, by the id that they give.
    Console { user: String },
}

impl Actor {
    /// Creates the actor for a person who writes to the gateway.
    pub fn of_person(front: FrontName, user: &str) -> Self {
        let user = user.to_owned();
        match front {
            FrontName::Slack => Actor::Slack { user },
            FrontName::Console => Actor::Console { user },
        }
    }

    /// Creates the actor for the account that runs this process.
    pub fn of_process() -> Self {
        let uid = rustix::process::getuid().as_raw();
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        // An account of a directory service is not in the file; its shell sets the variable.
        let named = || ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
        let user = account_name(&accounts, uid).map(str::to_owned).or_else(named);
        Actor::Cli { user: user.unwrap_or_else(|| uid.to_string()) }
    }

    /// The name of the interface in the log.
    pub fn origin(&self) -> &'static str {
        match self {
            Actor::Cli { .. } => "cli",
            Actor::Slack { .. } => "slack",
            Actor::Console { .. } => "console",
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Cli { user } => write!(f, "cli:{user}"),
            Actor::Slack { user } | Actor::Console { user } => f.write_str(user),
        }
    }
}

/// Finds the name of an account in the format of `/etc/passwd`.
fn account_name(accounts: &str, uid: u32) -> Option<&str> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(uid) && !name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_number() {
        let accounts = "# users\nroot:x:0:0:root:/root:/bin/sh\nhan:x:1000:1000::/home/han:/bin/sh\n:x:7:\nbroken\n";
        assert_eq!(account_name(accounts, 1000), Some("han"));
        assert_eq!(account_name(accounts, 0), Some("root"));
        for missing in [7, 100] {
            assert_eq!(account_name(accounts, missing), None, "{missing}");
        }
    }

    #[test]
    fn an_actor_is_written_as_pmk_writes_it() {
        let shown = |actor: Actor| (actor.to_string(), actor.origin());
        assert_eq!(shown(Actor::Cli { user: "han".into() }), ("cli:han".into(), "cli"));
        assert_eq!(shown(Actor::Slack { user: "U0HANFOUR".into() }), ("U0HANFOUR".into(), "slack"));
    }
}
