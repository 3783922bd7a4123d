//! The lists and pages that commands reply with, in Markdown. Ids are formatted as code, so that a list pings nobody,
//! and text that others wrote is reduced to one line or shown as a quotation.

use pmk_core::{
    quoting::quotation,
    text::{collapse_whitespace, printable, shortened},
};
use pmk_knowledge::{
    Status,
    atom::{Atom, Meta},
    moderation::ModerationError,
};
use pmk_system::error::Failure;

use super::executor::{Failed, Listed};
use crate::{
    access::{
        audience::{Audience, Audiences},
        people::People,
    },
    escalation::Pools,
    messages::Messages,
    operator::admin::{Change, ChangeError, LogEntry},
};

/// The most characters of a question in a line of a list.
const LISTED_CHARS: usize = 60;

/// The setup of the gateway.
pub fn status(messages: &Messages, workspace: Option<&str>, ingest: Option<&str>, people: &People) -> String {
    let Pools { default, repos } = &people.escalation;
    let sizes = std::iter::once(("default", default)).chain(repos.iter().map(|(repo, pool)| (repo.as_str(), pool)));
    let sizes: Vec<String> = sizes.map(|(pool, contacts)| format!("{} {}", code(pool), contacts.len())).collect();
    let audience = people.audience.default.unwrap_or(Audience::FALLBACK).name();
    let nothing = messages.nothing();
    let shown = |text: Option<&str>| text.map_or_else(|| nothing.clone(), code);
    messages.status(&shown(workspace), &shown(ingest), audience, people.admins.len(), &messages.listed(&sizes))
}

/// The list of audiences.
pub fn audiences(messages: &Messages, Audiences { default, users, channels }: &Audiences) -> String {
    let own = users
        .iter()
        .chain(channels)
        .map(|(id, audience)| format!("\n- {}", messages.pair(&code(id), &format!("`{audience}`"))));
    messages.default_audience(default.unwrap_or(Audience::FALLBACK).name()) + &own.collect::<String>()
}

/// The list of contacts by pool.
pub fn contacts(messages: &Messages, Pools { default, repos }: &Pools) -> String {
    let pools = std::iter::once(("default", default)).chain(repos.iter().map(|(repo, pool)| (repo.as_str(), pool)));
    messages.contacts()
        + &pools
            .map(|(pool, ids)| format!("\n- {}", messages.pair(&code(pool), &listed(messages, ids))))
            .collect::<String>()
}

/// The list of admins.
pub fn admins(messages: &Messages, admins: &[String]) -> String {
    messages.admins(&listed(messages, admins))
}

fn listed(messages: &Messages, ids: &[String]) -> String {
    match ids {
        [] => messages.nothing(),
        ids => messages.listed(&ids.iter().map(|id| code(id.trim())).collect::<Vec<_>>()),
    }
}

/// The list of atoms.
pub fn atoms(messages: &Messages, Listed { atoms, more }: &Listed) -> String {
    if atoms.is_empty() {
        return messages.no_atoms();
    }
    let line = |listed: &super::executor::ListedAtom| {
        let Atom { meta, .. } = &listed.atom.atom;
        let question = one_line(&meta.question);
        let question = shortened(&question, LISTED_CHARS);
        let named = format!("{} {} {}", code(&listed.short_id), status_name(messages, meta), code(&meta.scope));
        format!("- {}", messages.pair(&named, &question))
    };
    let mut lines: Vec<String> = atoms.iter().map(line).collect();
    if *more > 0 {
        lines.push(messages.more_atoms(*more));
    }
    lines.join("\n")
}

/// One atom in full.
pub fn atom(messages: &Messages, atom: &Atom) -> String {
    let meta = &atom.meta;
    let heading = messages.atom(&[
        ("id", code(&meta.id)),
        ("status", status_name(messages, meta)),
        ("scope", code(&meta.scope)),
        ("contributor", code(&meta.source.contributor_user_id)),
        ("question", one_line(&meta.question)),
    ]);
    let flagged = meta.flag_reason.as_deref().map(|why| format!("\n:warning: {}", code(why))).unwrap_or_default();
    format!("{heading}{flagged}\n{}", quotation(atom.answer()))
}

/// The last changes.
pub fn log(messages: &Messages, entries: &[LogEntry]) -> String {
    if entries.is_empty() {
        return messages.no_changes();
    }
    let line = |LogEntry { at, actor, origin, action, args, ok, reason }: &LogEntry| {
        let mark = if *ok { ":white_check_mark:" } else { ":x:" };
        let what = format!("{action} {args}");
        // What a command on the host was refused for has no sentence of its own, but a row, as at the terminal.
        let known = |reason| why(messages, reason).unwrap_or_else(|| messages.error(reason));
        let why = |reason| one_line(&known(reason));
        let why = reason.as_deref().map(|reason| format!(" ({})", why(reason))).unwrap_or_default();
        format!("- {mark} {} {} ({}) {}{why}", one_line(at), code(actor), one_line(origin), code(what.trim()))
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The reply to a change that was made.
pub fn changed(messages: &Messages, change: &Change) -> String {
    match change {
        Change::DefaultAudience { audience } => messages.changed("changed-default-audience", &[("audience", audience)]),
        Change::SetAudience { id, audience } => {
            messages.changed("changed-audience", &[("id", id), ("audience", audience)])
        }
        Change::UnsetAudience { id } => messages.changed("changed-no-audience", &[("id", id)]),
        Change::AddContact { pool, user } => messages.changed("changed-contact", &[("user", user), ("pool", pool)]),
        Change::RemoveContact { pool, user } => {
            messages.changed("changed-no-contact", &[("user", user), ("pool", pool)])
        }
        Change::AddAdmin { user } => messages.changed("changed-admin", &[("user", user)]),
        Change::RemoveAdmin { user } => messages.changed("changed-no-admin", &[("user", user)]),
    }
}

/// The reply that says why something was not done.
pub fn failed(messages: &Messages, failed: Failed) -> String {
    match failed {
        Failed::Change(error) => not_changed(messages, &error),
        Failed::Atom(ModerationError::NotFound(prefix)) => messages.changed("failed-no-atom", &[("prefix", &prefix)]),
        Failed::Atom(ModerationError::Ambiguous { prefix, .. }) => {
            messages.changed("failed-many-atoms", &[("prefix", &prefix)])
        }
        Failed::Atom(error) => {
            let failure = Failure::from(error);
            not_done(messages, failure.message(), failure.advice())
        }
        Failed::Log(_) => not_done(messages, &failed.to_string(), None),
    }
}

fn not_changed(messages: &Messages, error: &ChangeError) -> String {
    match error {
        ChangeError::NoAudience(id) => messages.changed("failed-no-audience", &[("id", id)]),
        ChangeError::NoPool(pool) => messages.changed("failed-no-pool", &[("pool", pool)]),
        ChangeError::InPool { user, pool } => messages.changed("failed-in-pool", &[("user", user), ("pool", pool)]),
        ChangeError::NotInPool { user, pool } => {
            messages.changed("failed-not-in-pool", &[("user", user), ("pool", pool)])
        }
        ChangeError::IsAdmin(user) => messages.changed("failed-is-admin", &[("user", user)]),
        ChangeError::NotAdmin(user) => messages.changed("failed-no-admin", &[("user", user)]),
        ChangeError::Blocked(user) => messages.changed("failed-blocked", &[("user", user)]),
        ChangeError::LastAdmin => messages.changed("failed-last-admin", &[]),
        other => not_done(messages, &other.to_string(), other.hint()),
    }
}

/// Any other reason, which has a row as at the terminal, and what to do about it.
fn not_done(messages: &Messages, why: &str, hint: Option<&str>) -> String {
    let said = messages.changed("failed", &[("why", &messages.error(why))]);
    hint.map_or_else(|| said.clone(), |hint| format!("{said}\n{}", messages.hint(hint)))
}

/// Distinguishes flagged atoms: whoever approves one that reads like instructions to a model must know it.
fn status_name(messages: &Messages, meta: &Meta) -> String {
    messages.atom_status(match (meta.status, meta.flagged) {
        (Status::Pending, false) => "pending",
        (Status::Pending, true) => "flagged",
        (Status::Approved, _) => "approved",
    })
}

/// The reasons in the log for a command with invalid arguments, and for an unknown command.
pub const FORM: &str = "not of this form";
pub const WORD: &str = "no such command";

/// Reasons as the log has them, with the sentence for each and the names of the values that the log has in backquotes.
const REASONS: &[(&str, &str, &[&str])] = &[
    ("`` does not have its own audience", "failed-no-audience", &["id"]),
    ("there is no pool ``", "failed-no-pool", &["pool"]),
    ("`` is already in the pool ``", "failed-in-pool", &["user", "pool"]),
    ("`` is not in the pool ``", "failed-not-in-pool", &["user", "pool"]),
    ("`` is already an admin", "failed-is-admin", &["user"]),
    ("`` is not an admin", "failed-no-admin", &["user"]),
    ("`` is on the blocklist", "failed-blocked", &["user"]),
    ("last-admin protection", "failed-last-admin", &[]),
    ("no atom's id begins with ``", "failed-no-atom", &["prefix"]),
    // As older lines of the log have them.
    ("`` has no audience of its own", "failed-no-audience", &["id"]),
    ("`` is in the pool `` already", "failed-in-pool", &["user", "pool"]),
    ("`` is an admin already", "failed-is-admin", &["user"]),
    ("`` is no admin", "failed-no-admin", &["user"]),
    (FORM, "refused-form", &[]),
    (WORD, "refused-word", &[]),
    ("on the blocklist", "refused-blocked", &[]),
    ("not a direct message", "refused-place", &[]),
    ("not an admin", "refused-person", &[]),
    ("written by an app", "refused-by-app", &[]),
];

/// Translates a reason from the log into the reader's language, if it is known.
pub fn why(messages: &Messages, reason: &str) -> Option<String> {
    let (words, given): (Vec<_>, Vec<_>) = reason.split('`').enumerate().partition(|(at, _)| at % 2 == 0);
    let form = words.into_iter().map(|(_, words)| words).collect::<Vec<_>>().join("``");
    let (_, sentence, names) = REASONS.iter().find(|(known, _, names)| *known == form && names.len() == given.len())?;
    let filled: Vec<_> = names.iter().copied().zip(given.into_iter().map(|(_, given)| given)).collect();
    // The line of the log has its own mark.
    Some(messages.changed(sentence, &filled).trim_start_matches(":x: ").to_owned())
}

/// Formats text by others as code, which is shown literally.
pub(super) fn code(text: &str) -> String {
    let line = one_line(text).replace('`', "'");
    if line.is_empty() { "-".to_owned() } else { format!("`{line}`") }
}

pub(super) fn one_line(text: &str) -> String {
    printable(&collapse_whitespace(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    use crate::{
        access::{audience::UnknownAudience, authorization::Reason},
        config::WrongShape,
        mra::BadQuestion,
        slack_id::BadId,
    };

    /// Regression: Chinese sentences contained the English reasons of the log.
    #[test]
    fn every_reason_that_a_command_has_is_said_in_the_readers_language() {
        let (user, pool) = ("U1".to_owned(), "erp".to_owned());
        let errors = [
            ChangeError::NoAudience(user.clone()),
            ChangeError::NoPool(pool.clone()),
            ChangeError::InPool { user: user.clone(), pool: pool.clone() },
            ChangeError::NotInPool { user: user.clone(), pool },
            ChangeError::IsAdmin(user.clone()),
            ChangeError::NotAdmin(user.clone()),
            ChangeError::Blocked(user),
            ChangeError::LastAdmin,
        ];
        let mut reasons: Vec<String> = errors.iter().map(ChangeError::reason).collect();
        reasons.push(ModerationError::NotFound("2026".into()).to_string());
        reasons.extend([FORM, WORD].map(str::to_owned));
        let refused = [Reason::Blocked, Reason::NotADirectMessage, Reason::NotAnAdmin, Reason::ByApp];
        reasons.extend(refused.map(|it| it.name().to_owned()));
        let (chinese, english) = (Messages::new(Language::TraditionalChinese), Messages::new(Language::English));
        let is_chinese = |text: &str| text.chars().any(|c| ('\u{4e00}'..'\u{9fff}').contains(&c));
        for reason in &reasons {
            let said = why(&chinese, reason).expect("a known reason");
            assert!(is_chinese(&said) && !said.starts_with(':'), "{reason}: {said}");
            assert!(reason.split('`').skip(1).step_by(2).all(|given| said.contains(&format!("`{given}`"))), "{said}");
            assert_ne!(Some(said), why(&english, reason));
        }
        assert_eq!(why(&chinese, "the disk is full"), None);
        // What has no sentence of its own has a row, and a hint.
        let others: [Failed; 5] = [
            ChangeError::from(UnknownAudience("king".into())).into(),
            ChangeError::from(BadId::NotAUser("x".into())).into(),
            ChangeError::from(BadQuestion::NoRepo).into(),
            ChangeError::from(WrongShape { key: "admins".into(), wanted: "a list" }).into(),
            ModerationError::Copied { id: "2026".into(), files: vec!["a.md".into()] }.into(),
        ];
        for other in others {
            let said = failed(&chinese, other);
            let (reason, hint) = said.split_once('\n').expect("a hint");
            let reason = reason.strip_prefix(":x: 沒有完成：").expect("a failure");
            assert!(is_chinese(reason), "{said}");
            assert!(hint.strip_prefix("提示：").is_some_and(is_chinese), "{said}");
        }
        assert!(failed(&chinese, std::io::Error::other("x").into()).contains("無法讀取記錄"));
    }

    /// Regression: what a command on the host was refused for stayed English.
    #[test]
    fn a_reason_of_a_command_on_the_host_was_english_in_a_chinese_gateway() {
        let entry = LogEntry {
            at: "2026-04-28T02:13:00Z".into(),
            actor: "root".into(),
            origin: "cli".into(),
            action: "store.restore".into(),
            args: "/b.db".into(),
            ok: false,
            reason: Some("`/b.db` is not a backup of a store: it is a folder".into()),
        };
        let said = log(&Messages::new(Language::TraditionalChinese), std::slice::from_ref(&entry));
        assert!(said.contains("`/b.db` 不是") && said.contains("是資料夾"), "{said}");
        assert!(log(&Messages::new(Language::English), &[entry]).contains("it is a folder"));
    }
}
