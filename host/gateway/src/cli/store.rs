//! `store backup|check|restore|renew`: the database of conversations as a whole.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use jiff::Timestamp;
use pmk_system::{
    error::Failure,
    home::{self, HomeLock, Purpose},
};
use serde_json::json;

use super::{
    arguments::output_path,
    change::{record, record_in},
    context::{Context, block_on},
    output::print_json,
};
use crate::{
    config,
    presence::LivenessFiles,
    stderr::Spinner,
    store::{BackupError, Store, StoreError},
};

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Copy the database to a new file, even while the gateway runs
    Backup {
        /// File to create
        #[arg(value_parser = output_path)]
        file: PathBuf,
    },
    /// Check the database for damage, even while the gateway runs
    Check,
    /// Replace the database with a backup; the current one is moved aside
    Restore {
        /// Backup file
        file: PathBuf,
    },
    /// Copy a whole store to a database or home that has none, or resume an interrupted copy; both must be idle
    Copy {
        /// Store to copy: a home, sqlite (this home's) or postgres://USER@HOST/DATABASE
        #[arg(long, value_name = "STORE")]
        from: String,

        /// Destination store
        #[arg(long, value_name = "STORE")]
        to: String,
    },
    /// Start over with an empty database; the current one is moved aside
    Renew,
}

impl StoreCommand {
    /// Whether the command is only about other stores than that of the home.
    pub(super) fn names_its_own(&self) -> bool {
        matches!(self, StoreCommand::Copy { from, to } if [from, to].into_iter().all(|named| named != config::SQLITE))
    }

    /// Whether the command creates the home if it does not exist, as on a new machine.
    pub(super) fn makes_the_home(&self) -> bool {
        matches!(self, StoreCommand::Restore { .. })
    }

    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            StoreCommand::Backup { file } => back_up(context, &absolute(&file)?),
            StoreCommand::Check => check(context),
            StoreCommand::Restore { file } => {
                let file = absolute(&file)?;
                // No home is created for a backup that is missing.
                Store::check_backup(&file)?;
                let moved = put(context, Purpose::Restore, |lock| restore(lock, &file));
                let moved = record(context, "store.restore", &[&file.display().to_string()], moved)?;
                tell(context, &moved, &format!("the store is restored from `{}`", file.display()))
            }
            StoreCommand::Copy { from, to } => copy(context, &from, &to),
            StoreCommand::Renew => {
                let moved = put(context, Purpose::Renew, |lock| Store::renew(lock, Timestamp::now()));
                let moved = record(context, "store.renew", &[], moved)?;
                tell(context, &moved, "the next `pmk-host run` starts with an empty store")
            }
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::new(format!("cannot use `{}`: {error}", path.display())))
}

fn back_up(context: &Context, file: &Path) -> Result<(), Failure> {
    let waiting = Spinner::when_long("copying the database");
    let bytes = block_on(async { Ok(Store::open_existing(context.place()?)?.back_up(file).await?) })?;
    drop(waiting);
    if context.json {
        return print_json(&json!({"backup": file, "bytes": bytes}));
    }
    context.say(&format!("all conversations are in `{}` ({bytes} bytes)", file.display()));
    Ok(())
}

/// Puts a backup in place. When a gateway last stored something counts only if it was that of the backup: one to which
/// nobody has ever written was another one, as of a first start on a new machine. Its signs of life go before the backup
/// is in place: if this is interrupted, nothing tells them from those of the backup's gateway afterwards.
fn restore(lock: &HomeLock, file: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let signs = LivenessFiles::of(lock.home());
    let is_unused = Store::is_unused(lock);
    let alive_ms = || {
        if is_unused {
            signs.forget();
        }
        signs.read().stored_until_ms()
    };
    Store::put_back(lock, file, alive_ms, Timestamp::now())
}

fn copy(context: &Context, from: &str, to: &str) -> Result<(), Failure> {
    let (from, to) = (context.place_at(from)?, context.place_at(to)?);
    let waiting = Spinner::when_long("copying the store");
    let copied = Store::copy(&from, &to, |table, rows| tracing::debug!(table, rows, "copied"));
    drop(waiting);
    // If no home is named, the log is that of the home copied to or from.
    let homes = [&context.home, &to.home, &from.home];
    let home = homes.into_iter().find(|home| home.is_dir());
    let value = match &to.database {
        Some(database) => Some(database.name().to_owned()),
        None => (to.home == context.home).then(|| config::SQLITE.to_owned()),
    };
    let (from, to) = (from.name(), to.name());
    let copied = copied.map_err(Failure::from);
    let done = match home {
        Some(home) => record_in(context, home, "store.copy", &[&from, &to], copied)?,
        None => copied?,
    };
    if context.json {
        print_json(&json!({"from": from, "to": to, "tables": done.tables, "rows": done.rows, "before": done.before}))?;
    } else {
        context.say(&format!(
            "{} rows of {} tables are in `{}`; each was read back and is identical",
            done.rows, done.tables, to
        ));
    }
    if let Some(value) = value.filter(|_| context.place().is_ok_and(|used| used.name() == from)) {
        let hint = format!("set `store` in gateway.json to `{value}`");
        context.notice(&format!("this home still uses `{from}`"), Some(&hint));
    }
    Ok(())
}

fn check(context: &Context) -> Result<(), Failure> {
    let path = Store::path(&context.home);
    let waiting = Spinner::when_long("checking for damage");
    let problems = block_on(async {
        let found = match Store::open_existing(context.place()?) {
            Ok(store) => store.check().await,
            Err(error) => Err(error.into()),
        };
        match found {
            // The damage is too extensive to be listed.
            Err(BackupError::Store(StoreError::Damaged { message, .. })) => Ok(vec![message]),
            found => Ok(found?),
        }
    })?;
    drop(waiting);
    if context.json {
        print_json(&json!({"store": path, "sound": problems.is_empty(), "problems": problems}))?;
    }
    if problems.is_empty() {
        if !context.json {
            context.say(&format!("`{}` is intact", path.display()));
        }
        return Ok(());
    }
    if !context.json {
        problems.iter().for_each(|problem| context.warn(problem));
    }
    let places = match problems.len() {
        1 => "1 place".to_owned(),
        more => format!("{more} places"),
    };
    Err(Failure::new(format!("the store `{}` is damaged in at least {places}", path.display())).hint(format!(
        "everything that does not need these places works; to repair, stop pmk-host, then use `{}` with a backup, \
             or with what `sqlite3 STORE .recover | sqlite3 FILE` saves (sqlite3 3.43 or newer)",
        home::command(&context.home, "store restore FILE")
    )))
}

/// Changes the files of a store while no gateway is running.
fn put(
    context: &Context,
    purpose: Purpose,
    change: impl FnOnce(&HomeLock) -> Result<Vec<PathBuf>, BackupError>,
) -> Result<Vec<PathBuf>, Failure> {
    if let Some(database) = context.place()?.database {
        return Err(BackupError::NoFile(database.name().to_owned()).into());
    }
    let lock = HomeLock::take_for(&context.home, purpose).map_err(|error| context.in_use(error))?;
    let _waiting = Spinner::when_long("moving the database into place");
    Ok(change(&lock)?)
}

fn tell(context: &Context, moved: &[PathBuf], done: &str) -> Result<(), Failure> {
    if context.json {
        return print_json(&json!({"moved": moved}));
    }
    if let Some(first) = moved.first() {
        context.say(&format!("the previous store is in `{}`", first.display()));
    }
    context.say(done);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Regression: if `store restore` was killed once the store was moved aside, the next attempt took the signs of the
    /// gateway that had run there for those of the backup's.
    #[tokio::test]
    async fn an_interrupted_restore_was_repeated_with_the_signs_of_another_gateway() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let backup = elsewhere.path().join("backup.db");
        Store::open(elsewhere.path()).unwrap().back_up(&backup).await.unwrap();
        drop(Store::open(home.path()).unwrap());
        let signs = LivenessFiles::of(home.path());
        signs.beat(1_760_000_000_000);
        // What cannot be removed ends it where a kill might.
        let in_its_way = home::gateway_dir(home.path()).join("store.copying");
        fs::create_dir(&in_its_way).unwrap();
        let lock = HomeLock::take(home.path()).unwrap();
        restore(&lock, &backup).unwrap_err();
        assert!(!Store::path(home.path()).exists(), "it was moved aside");
        fs::remove_dir(&in_its_way).unwrap();
        restore(&lock, &backup).unwrap();
        assert_eq!(signs.read().beat_ms, None);
        assert!(!home::gateway_dir(home.path()).join("store.restored").exists());
    }
}
