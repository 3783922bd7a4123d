//! The table of commands.

use super::{
    arguments::{Wrong, audience, channel, exactly, one_of, pool, user},
    order::{AtomFilter, CaseAction, Order},
};
use pmk_knowledge::reaction::ReactionVerdict;

use crate::{
    access::authorization::Action,
    operator::admin::{Change, SHOWN},
};

/// The most log entries that fit into a few messages.
const MOST_SHOWN: usize = 100;

/// One command.
#[derive(Debug)]
pub struct Entry {
    /// The words after `/pmk`.
    pub words: &'static [&'static str],
    /// The arguments after the words, as the usage page shows them.
    pub arguments: &'static str,
    /// The action that permission is checked for; it also determines where the command may be used.
    pub action: Action,
    /// Its name in the admin log; empty if it changes nothing and is open to everybody.
    pub logged_as: &'static str,
    /// Whether it changes something. If so, a command with invalid arguments is logged, too.
    pub changes: bool,
    /// The equivalent on the command line of the host, if there is one.
    pub on_host: &'static [&'static str],
    /// Parses the arguments into the order.
    pub order: fn(&[&str]) -> Result<Order, Wrong>,
}

/// A command that only admins may use and that changes nothing.
const fn admins(
    words: &'static [&'static str],
    arguments: &'static str,
    on_host: &'static [&'static str],
    logged_as: &'static str,
    order: fn(&[&str]) -> Result<Order, Wrong>,
) -> Entry {
    Entry { words, arguments, action: Action::Administer, logged_as, changes: false, on_host, order }
}

impl Entry {
    /// Marks a command as one that changes something.
    const fn that_changes(self) -> Entry {
        Entry { changes: true, ..self }
    }
}

/// A command about a conversation or its channel, which everybody in it may use.
const fn everybodys(
    words: &'static [&'static str],
    arguments: &'static str,
    on_host: &'static [&'static str],
    order: fn(&[&str]) -> Result<Order, Wrong>,
) -> Entry {
    Entry { words, arguments, action: Action::Command, logged_as: "", changes: false, on_host, order }
}

/// All commands, in the order of the help pages. Some exist only on the host: tokens would be visible, `atoms edit`
/// would show pasted text to everybody, nobody may stop the gateway from a conversation, and the blocklist is reserved
/// for the owner of the host.
pub const TABLE: &[Entry] = &[
    Entry {
        words: &["help"],
        arguments: "",
        action: Action::Command,
        logged_as: "",
        changes: false,
        on_host: &[],
        order: |given| exactly(given).map(|[]| Order::Help),
    },
    everybodys(&["context"], "", &["sessions", "show"], |given| exactly(given).map(|[]| Order::Context)),
    everybodys(&["policy"], "", &["policy", "inspect"], |given| exactly(given).map(|[]| Order::Policies)),
    everybodys(&["open"], "TITLE", &[], |given| {
        if given.is_empty() {
            Err(Wrong::Missing { at: 0 })
        } else {
            Ok(Order::Case(CaseAction::Open(given.join(" "))))
        }
    }),
    everybodys(&["show"], "", &[], |given| exactly(given).map(|[]| Order::Case(CaseAction::Show))),
    everybodys(&["close"], "", &[], |given| exactly(given).map(|[]| Order::Case(CaseAction::Close))),
    everybodys(&["cases"], "", &["case", "list"], |given| exactly(given).map(|[]| Order::Case(CaseAction::List))),
    admins(&["admin", "help"], "", &[], "help", |given| exactly(given).map(|[]| Order::AdminHelp)),
    admins(&["admin", "status"], "", &[], "status", |given| exactly(given).map(|[]| Order::Status)),
    admins(&["admin", "audience", "set"], "@user tech|pm|biz|exec", &["audience", "set"], "audience.set", |given| {
        let [who, which] = exactly(given)?;
        Ok(Order::Change(Change::SetAudience { id: user(who)?, audience: one_of(1, which, audience)? }))
    })
    .that_changes(),
    admins(&["admin", "audience", "unset"], "@user", &["audience", "unset"], "audience.unset", |given| {
        let [who] = exactly(given)?;
        Ok(Order::Change(Change::UnsetAudience { id: user(who)? }))
    })
    .that_changes(),
    admins(
        &["admin", "audience", "default"],
        "tech|pm|biz|exec",
        &["audience", "default"],
        "audience.default",
        |given| {
            let [which] = exactly(given)?;
            Ok(Order::Change(Change::DefaultAudience { audience: one_of(0, which, audience)? }))
        },
    )
    .that_changes(),
    admins(
        &["admin", "audience", "set-channel"],
        "#channel tech|pm|biz|exec",
        &["audience", "set"],
        "audience.set-channel",
        |given| {
            let [place, which] = exactly(given)?;
            Ok(Order::Change(Change::SetAudience { id: channel(place)?, audience: one_of(1, which, audience)? }))
        },
    )
    .that_changes(),
    admins(
        &["admin", "audience", "unset-channel"],
        "#channel",
        &["audience", "unset"],
        "audience.unset-channel",
        |given| {
            let [place] = exactly(given)?;
            Ok(Order::Change(Change::UnsetAudience { id: channel(place)? }))
        },
    )
    .that_changes(),
    admins(&["admin", "audience", "list"], "", &["audience", "list"], "audience.list", |given| {
        exactly(given).map(|[]| Order::ListAudiences)
    }),
    admins(&["admin", "escalation", "add"], "REPO|default @user", &["escalation", "add"], "escalation.add", |given| {
        let [it, who] = exactly(given)?;
        Ok(Order::Change(Change::AddContact { pool: one_of(0, it, pool)?, user: user(who)? }))
    })
    .that_changes(),
    admins(
        &["admin", "escalation", "remove"],
        "REPO|default @user",
        &["escalation", "remove"],
        "escalation.remove",
        |given| {
            let [it, who] = exactly(given)?;
            Ok(Order::Change(Change::RemoveContact { pool: one_of(0, it, pool)?, user: user(who)? }))
        },
    )
    .that_changes(),
    admins(&["admin", "escalation", "list"], "", &["escalation", "list"], "escalation.list", |given| {
        exactly(given).map(|[]| Order::ListContacts)
    }),
    admins(
        &["admin", "atoms", "list"],
        "[pending|approved|all]",
        &["atoms", "list"],
        "atoms.list",
        |given| match given {
            [] => Ok(Order::ListAtoms(AtomFilter::All)),
            given => {
                let [which] = exactly(given)?;
                one_of(0, which, AtomFilter::from_name).map(Order::ListAtoms)
            }
        },
    ),
    admins(&["admin", "atoms", "show"], "ID-PREFIX", &["atoms", "show"], "atoms.show", |given| {
        let [prefix] = exactly(given)?;
        Ok(Order::ShowAtom(prefix.to_owned()))
    }),
    admins(&["admin", "atoms", "approve"], "ID-PREFIX", &["atoms", "approve"], "atoms.approve", |given| {
        let [prefix] = exactly(given)?;
        Ok(Order::JudgeAtom(ReactionVerdict::Approve, prefix.to_owned()))
    })
    .that_changes(),
    admins(&["admin", "atoms", "reject"], "ID-PREFIX", &["atoms", "reject"], "atoms.reject", |given| {
        let [prefix] = exactly(given)?;
        Ok(Order::JudgeAtom(ReactionVerdict::Reject, prefix.to_owned()))
    })
    .that_changes(),
    admins(&["admin", "admins", "list"], "", &["admin", "list"], "admins.list", |given| {
        exactly(given).map(|[]| Order::ListAdmins)
    }),
    admins(&["admin", "admins", "add"], "@user", &["admin", "add"], "admins.add", |given| {
        let [who] = exactly(given)?;
        Ok(Order::Change(Change::AddAdmin { user: user(who)? }))
    })
    .that_changes(),
    admins(&["admin", "admins", "remove"], "@user", &["admin", "remove"], "admins.remove", |given| {
        let [who] = exactly(given)?;
        Ok(Order::Change(Change::RemoveAdmin { user: user(who)? }))
    })
    .that_changes(),
    admins(&["admin", "audit"], "[N]", &["admin", "log"], "audit", |given| match given {
        [] => Ok(Order::ShowLog(SHOWN)),
        given => {
            let [most] = exactly(given)?;
            let shown = |most: usize| (most > 0).then(|| Order::ShowLog(most.min(MOST_SHOWN)));
            one_of(0, most, |most| most.parse().ok().and_then(shown))
        }
    }),
];
