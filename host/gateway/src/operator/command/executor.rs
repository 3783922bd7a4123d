//! Carries out commands that touch files, once each, and logs them. Its methods block on the disk.

use std::{cmp::Reverse, io, path::PathBuf};

use jiff::Timestamp;
use pmk_knowledge::{
    Status,
    files::{AtomFiles, FileError},
    moderation::{self, Loaded, ModerationError, Promote, StoredAtom},
    reaction::ReactionVerdict,
};
use pmk_system::clock;
use thiserror::Error;

use super::order::AtomFilter;
use crate::operator::admin::{self, Actor, AdminLog, Change, ChangeError, LogEntry};

/// The most atoms that are listed; the command line lists all.
const MOST_LISTED: usize = 20;

/// Carries out the orders of one person that touch files.
#[derive(Clone, Debug)]
pub struct CommandExecutor {
    pub home: PathBuf,
    pub actor: Actor,
    /// When an earlier attempt at the same order began, which may already have carried it out.
    pub again_since: Option<Timestamp>,
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Failed {
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(transparent)]
    Atom(#[from] ModerationError),
    #[error("cannot read the log: {0}")]
    Log(#[from] io::Error),
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Self {
        Failed::Atom(error.into())
    }
}

impl Failed {
    /// Returns the reason as the log has it.
    fn reason(&self) -> String {
        match self {
            Failed::Change(error) => error.reason(),
            other => other.to_string(),
        }
    }

    /// Whether the state is already what the order wanted.
    fn is_so_already(&self) -> bool {
        match self {
            Failed::Change(error) => error.is_so_already(),
            Failed::Atom(_) | Failed::Log(_) => false,
        }
    }
}

/// Some atoms, the newest first.
#[derive(Debug, Default)]
pub struct Listed {
    pub atoms: Vec<ListedAtom>,
    /// The number of further atoms.
    pub more: usize,
}

/// A listed atom.
#[derive(Debug)]
pub struct ListedAtom {
    /// The shortest prefix of the id that is unique.
    pub short_id: String,
    pub atom: StoredAtom,
}

impl CommandExecutor {
    /// Makes a change and logs it under this name.
    ///
    /// # Errors
    /// The change was not made; that is logged.
    pub fn change(&self, action: &str, change: &Change) -> Result<(), Failed> {
        let arguments = change.arguments();
        let made = || (arguments.clone(), change.make(&self.home).map_err(Failed::from));
        self.once(action, |entry| entry.args == arguments, Failed::is_so_already, made).map(drop)
    }

    /// Approves or rejects the one atom whose id begins with `prefix`, and returns its id.
    ///
    /// # Errors
    /// It was not done; that is logged.
    pub fn judge(&self, action: &str, verdict: ReactionVerdict, prefix: &str) -> Result<String, Failed> {
        let judged = || match self.judge_now(verdict, prefix) {
            Ok(id) => (id, Ok(())),
            Err(failed) => (prefix.to_owned(), Err(failed)),
        };
        let is_gone = |failed: &Failed| {
            verdict == ReactionVerdict::Reject && matches!(failed, Failed::Atom(ModerationError::NotFound(_)))
        };
        self.once(action, |entry| entry.args.starts_with(prefix), is_gone, judged)
    }

    fn judge_now(&self, verdict: ReactionVerdict, prefix: &str) -> Result<String, Failed> {
        let missing = || Failed::from(ModerationError::NotFound(prefix.to_owned()));
        let (files, loaded) = self.atoms()?.ok_or_else(missing)?;
        let StoredAtom { path, atom } = loaded.find(prefix)?;
        match verdict {
            ReactionVerdict::Approve => drop(moderation::approve_file(&files, &path)?.ok_or_else(missing)?),
            ReactionVerdict::Reject => moderation::reject_file(&files, &path)?,
        }
        Ok(atom.meta.id)
    }

    /// Lists the newest atoms.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn list(&self, which: AtomFilter) -> Result<Listed, Failed> {
        let Some((_, Loaded { atoms, .. })) = self.atoms()? else { return Ok(Listed::default()) };
        let is_wanted = |stored: &&StoredAtom| match which {
            AtomFilter::Pending => stored.atom.meta.status == Status::Pending,
            AtomFilter::Approved => stored.atom.meta.status == Status::Approved,
            AtomFilter::All => true,
        };
        let mut wanted: Vec<&StoredAtom> = atoms.iter().filter(is_wanted).collect();
        wanted.sort_by_key(|stored| Reverse(stored.atom.meta.created_at));
        let more = wanted.len().saturating_sub(MOST_LISTED);
        wanted.truncate(MOST_LISTED);
        let short = |stored: &StoredAtom| moderation::short_id(&atoms, &stored.atom.meta.id).to_owned();
        let atoms = wanted.into_iter().map(|atom| ListedAtom { short_id: short(atom), atom: atom.clone() }).collect();
        Ok(Listed { atoms, more })
    }

    /// Returns the one atom whose id begins with `prefix`.
    ///
    /// # Errors
    /// There is none, or several, or they cannot be read.
    pub fn show(&self, prefix: &str) -> Result<StoredAtom, Failed> {
        let loaded = self.atoms()?.map(|(_, loaded)| loaded).unwrap_or_default();
        Ok(loaded.find(prefix)?)
    }

    /// Returns the last changes, the oldest first.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self, most: usize) -> Result<Vec<LogEntry>, Failed> {
        Ok(admin::last_changes(&self.home, most)?)
    }

    /// Logs an order that was refused, and why; once, as [`change`](CommandExecutor::change) does.
    pub fn refuse(&self, action: &str, arguments: &str, why: &str) {
        /// Limits the log entry, so that refused orders cannot fill the disk.
        const MOST_CHARS: usize = 200;
        let arguments = pmk_core::text::head(arguments, MOST_CHARS);
        let before = self.noted_before(|entry| entry.action == action && entry.args == arguments);
        if !matches!(before, Ok(Some(_))) {
            self.note(action, arguments, Err(why));
        }
    }

    /// Loads the atoms as they are now; `None` if none was ever saved.
    fn atoms(&self) -> Result<Option<(AtomFiles, Loaded)>, Failed> {
        let Some(files) = AtomFiles::open_existing(&self.home)? else { return Ok(None) };
        let loaded = moderation::load(&files, clock::now_ms(), Promote::Yes)?;
        for problem in &loaded.problems {
            tracing::warn!("{problem}");
        }
        Ok(Some((files, loaded)))
    }

    /// Does something and logs it, unless an earlier attempt did. If that attempt was interrupted between the two, the
    /// wanted state already holds, as `is_so` tells of a failure, and only the log entry is missing. Returns the
    /// arguments as logged.
    fn once(
        &self,
        action: &str,
        is_it: impl Fn(&LogEntry) -> bool,
        is_so: impl Fn(&Failed) -> bool,
        work: impl FnOnce() -> (String, Result<(), Failed>),
    ) -> Result<String, Failed> {
        let before = self.noted_before(|entry| entry.action == action && is_it(entry))?;
        if let Some(LogEntry { ok: true, args, .. }) = before {
            return Ok(args);
        }
        let (arguments, done) = work();
        // An attempt that was refused has done nothing.
        let is_interrupted = self.again_since.is_some() && before.is_none();
        let done = match done {
            Err(failed) if is_interrupted && is_so(&failed) => Ok(()),
            done => done,
        };
        match &done {
            Ok(()) => self.note(action, &arguments, Ok(())),
            Err(_) if before.is_some() => {}
            Err(failed) => self.note(action, &arguments, Err(&failed.reason())),
        }
        done.map(|()| arguments)
    }

    /// Returns the log entry of the latest attempt that has one.
    fn noted_before(&self, is_it: impl Fn(&LogEntry) -> bool) -> Result<Option<LogEntry>, Failed> {
        let Some(since) = self.again_since else { return Ok(None) };
        let (actor, origin) = (self.actor.to_string(), self.actor.origin());
        let of_this_person = |entry: &LogEntry| entry.actor == actor && entry.origin == origin && is_it(entry);
        Ok(admin::outcome_since(&self.home, since, of_this_person)?)
    }

    /// Writes the log entry. A change that cannot be logged still counts as made.
    fn note(&self, action: &str, arguments: &str, outcome: Result<(), &str>) {
        if let Err(error) = AdminLog::new(&self.home, self.actor.clone()).note(action, arguments, outcome) {
            tracing::error!(action, %error, "cannot record what an admin did");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use pmk_system::home;

    use crate::ledger::Month;

    fn clerk(home: &tempfile::TempDir, again: bool) -> CommandExecutor {
        let again_since = again.then(|| Timestamp::from_second(1_700_000_000).expect("a time"));
        CommandExecutor { home: home.path().to_owned(), actor: Actor::Slack { user: "U1".into() }, again_since }
    }

    fn noted(home: &tempfile::TempDir) -> Vec<String> {
        let entries = admin::last_changes(home.path(), 100).expect("a log");
        let shown = |entry: LogEntry| format!("{} [{}] {}{}", entry.action, entry.args, entry.ok, reason(entry.reason));
        entries.into_iter().map(shown).collect()
    }

    fn reason(reason: Option<String>) -> String {
        reason.map(|reason| format!(": {reason}")).unwrap_or_default()
    }

    #[test]
    fn an_order_that_was_carried_out_before_a_crash_is_not_carried_out_again() {
        let home = tempfile::tempdir().expect("a home");
        let change = Change::AddAdmin { user: "U2".into() };
        clerk(&home, false).change("admins.add", &change).expect("added");
        clerk(&home, true).change("admins.add", &change).expect("it is so");
        assert_eq!(noted(&home), ["admins.add [U2] true"]);
        // Somebody else has reversed it since: what was done once is not done again.
        let gone = Change::RemoveAdmin { user: "U2".into() };
        fs::write(home::config_file(home.path()), r#"{"version":1,"admins":["U1"]}"#).expect("gateway.json");
        clerk(&home, true).change("admins.add", &change).expect("done before");
        assert!(matches!(clerk(&home, false).change("admins.remove", &gone), Err(Failed::Change(_))));
        assert_eq!(noted(&home).len(), 2);
    }

    #[test]
    fn a_crash_between_the_change_and_its_note_leaves_one_change_and_one_note() {
        let home = tempfile::tempdir().expect("a home");
        let change = Change::AddContact { pool: "erp".into(), user: "U2".into() };
        change.make(home.path()).expect("made, and not noted");
        clerk(&home, true).change("escalation.add", &change).expect("it is so");
        assert_eq!(noted(&home), ["escalation.add [erp U2] true"]);
        let again = clerk(&home, false).change("escalation.add", &change);
        assert!(matches!(again, Err(Failed::Change(ChangeError::InPool { .. }))), "{again:?}");
    }

    #[test]
    fn a_refusal_is_noted_once_however_often_it_is_tried() {
        let home = tempfile::tempdir().expect("a home");
        fs::write(home::config_file(home.path()), r#"{"version":1,"admins":["U1"]}"#).expect("gateway.json");
        let change = Change::RemoveAdmin { user: "U1".into() };
        for again in [false, true] {
            let refused = clerk(&home, again).change("admins.remove", &change);
            assert!(matches!(refused, Err(Failed::Change(ChangeError::LastAdmin))), "{refused:?}");
        }
        assert_eq!(noted(&home), ["admins.remove [U1] false: last-admin protection"]);
        for again in [false, true] {
            clerk(&home, again).refuse("status", &"x".repeat(1_000), "not an admin");
        }
        assert_eq!(noted(&home)[1..], [format!("status [{}] false: not an admin", "x".repeat(200))]);
    }

    /// Regression: a refusal because it is so already counted as done when it was tried again.
    #[test]
    fn what_had_been_refused_was_reported_as_done_by_the_next_attempt() {
        let home = tempfile::tempdir().expect("a home");
        let change = Change::RemoveContact { pool: "nopool".into(), user: "U3".into() };
        for again in [false, true, true] {
            let refused = clerk(&home, again).change("escalation.remove", &change);
            assert!(matches!(refused, Err(Failed::Change(ChangeError::NoPool(_)))), "{refused:?}");
            let refused = clerk(&home, again).judge("atoms.reject", ReactionVerdict::Reject, "2026");
            assert!(matches!(refused, Err(Failed::Atom(ModerationError::NotFound(_)))), "{refused:?}");
        }
        let refused = [
            "escalation.remove [nopool U3] false: there is no pool `nopool`",
            "atoms.reject [2026] false: no atom's id begins with `2026`",
        ];
        assert_eq!(noted(&home), refused);
    }

    /// The latest outcome counts: what was refused first, and then done, is done.
    #[test]
    fn what_was_done_after_a_refusal_is_not_done_again() {
        let home = tempfile::tempdir().expect("a home");
        let write = |text: &str| fs::write(home::config_file(home.path()), text).expect("gateway.json");
        let change = Change::RemoveAdmin { user: "U1".into() };
        write(r#"{"version":1,"admins":["U1"]}"#);
        assert!(clerk(&home, false).change("admins.remove", &change).is_err());
        write(r#"{"version":1,"admins":["U1","U2"]}"#);
        for _ in 0..2 {
            clerk(&home, true).change("admins.remove", &change).expect("done");
        }
        let outcomes = ["admins.remove [U1] false: last-admin protection", "admins.remove [U1] true"];
        assert_eq!(noted(&home), outcomes);
    }

    #[test]
    fn a_log_that_cannot_be_written_keeps_no_change_from_being_made() {
        let home = tempfile::tempdir().expect("a home");
        let log = Month::of(Timestamp::now()).name("admin");
        fs::create_dir_all(home::gateway_dir(home.path()).join(log)).expect("in its place");
        clerk(&home, false).change("admins.add", &Change::AddAdmin { user: "U2".into() }).expect("added");
        assert!(fs::read_to_string(home::config_file(home.path())).expect("gateway.json").contains("U2"));
    }
}
