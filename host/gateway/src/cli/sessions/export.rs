//! `sessions export`: writes conversations to files. Nothing is ever overwritten.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args};
use pmk_core::SessionKey;
use pmk_system::{
    atomic_file::{AtomicFile, NotWritten, Overwrite},
    error::Failure,
    home,
};
use serde_json::json;

use super::{Format, conversations};
use crate::{
    cli::{arguments::output_path, context::Context, output::print_json},
    stderr::Spinner,
    store::{
        SessionDump, Store, StoreError,
        transfer::{TransferError, full, pmk, tree},
    },
};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true)))]
pub(in crate::cli) struct Export {
    /// Conversation, as printed by `sessions list`
    #[arg(group = "which")]
    key: Option<SessionKey>,
    /// Export every conversation
    #[arg(long, group = "which")]
    all: bool,
    /// Format of the files
    #[arg(long, value_enum, default_value_t = Format::Full)]
    format: Format,
    /// Output file; with `--format pmk`, a directory such as ~/.pmk/gateway/slack, or for one conversation a `.json` file
    #[arg(long, value_name = "PATH", value_parser = output_path)]
    to: PathBuf,
}

/// What to write, and where.
struct Work<'a> {
    context: &'a Context,
    store: &'a Store,
    keys: &'a [SessionKey],
    to: &'a Path,
}

impl Export {
    pub(super) async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let to =
            std::path::absolute(&self.to).map_err(|source| TransferError::Write { path: self.to.clone(), source })?;
        let keys = match &self.key {
            // Requested by name: if it does not exist, that is an error before anything is written.
            Some(key) => vec![store.session(key).await?.key],
            // The oldest first, so that an import restores the same order.
            None => store.sessions().await?.into_iter().rev().map(|session| session.key).collect(),
        };
        let waiting = Spinner::when_long(&format!("writing {}", conversations(keys.len())));
        let work = Work { context, store, keys: &keys, to: &to };
        let failed = match self.format {
            Format::Full => self.write_full(work).await?,
            Format::Pmk => self.write_pmk(work).await?,
        };
        drop(waiting);
        let written = keys.len() - failed;
        if context.json {
            print_json(&json!({"exported": written, "failed": failed, "to": to}))?;
        } else {
            context.say(&format!("{} written to `{}`", conversations(written), to.display()));
        }
        match failed {
            0 => Ok(()),
            _ => Err(Failure::new(format!("{failed} of {} not written", conversations(keys.len())))
                .hint("see the warnings for the reasons; the others are complete")),
        }
    }

    /// Reads a conversation. With `--all`, one that cannot be read does not prevent the others from being written.
    async fn dump(&self, context: &Context, store: &Store, key: &SessionKey) -> Result<Option<SessionDump>, Failure> {
        match store.dump(key).await {
            Ok(dump) => Ok(Some(dump)),
            Err(error @ StoreError::Damaged { .. }) if self.all => {
                context.warn_of(&format!("`{key}` is not written"), &error.into());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns how many could not be read.
    async fn write_full(&self, Work { context, store, keys, to }: Work<'_>) -> Result<usize, Failure> {
        let failed = |source| TransferError::Write { path: to.to_owned(), source };
        let (mut file, mut unread) = (begin(to)?, 0);
        full::write_header(&mut file).map_err(failed)?;
        for key in keys {
            match self.dump(context, store, key).await? {
                Some(dump) => full::write(&mut file, dump).map_err(failed)?,
                None => unread += 1,
            }
        }
        full::write_end(&mut file).map_err(failed)?;
        place(file, to)?;
        Ok(unread)
    }

    /// Returns how many could not be written.
    async fn write_pmk(&self, Work { context, store, keys, to }: Work<'_>) -> Result<usize, Failure> {
        let file = self.key.as_ref().filter(|_| to.extension().is_some_and(|extension| extension == "json"));
        let mut failed = 0;
        for key in keys {
            let Some(dump) = self.dump(context, store, key).await? else {
                failed += 1;
                continue;
            };
            let path = if file.is_some() { Ok(to.to_owned()) } else { tree::path_of(to, key) };
            let written = path.and_then(|path| match tree::in_the_way(&path) {
                Some(path) => Err(TransferError::InTheWay { path }),
                None => create(&path, |file| file.write_all(pmk::session_file(&dump).as_bytes())),
            });
            match written {
                Ok(()) => {}
                Err(error) if self.all => {
                    failed += 1;
                    context.warn_of(&format!("`{key}` is not written"), &error.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(failed)
    }
}

/// Creates a new file, with the folders above it, readable only by its owner.
pub(in crate::cli) fn create(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<AtomicFile>) -> io::Result<()>,
) -> Result<(), TransferError> {
    let mut file = begin(path)?;
    write(&mut file).map_err(|source| TransferError::Write { path: path.to_owned(), source })?;
    place(file, path)
}

fn begin(path: &Path) -> Result<BufWriter<AtomicFile>, TransferError> {
    home::create_private_dir(path.parent().unwrap_or(Path::new("/")))
        .map_err(NotWritten::Io)
        .and_then(|()| AtomicFile::begin(path, Overwrite::Nothing))
        .map(BufWriter::new)
        .map_err(|why| not_written(why, path))
}

fn place(file: BufWriter<AtomicFile>, path: &Path) -> Result<(), TransferError> {
    let whole = file.into_inner().map_err(|error| NotWritten::Io(error.into_error()));
    whole.and_then(AtomicFile::place).map(drop::<u64>).map_err(|why| not_written(why, path))
}

fn not_written(why: NotWritten, path: &Path) -> TransferError {
    let path = path.to_owned();
    match why {
        NotWritten::Exists => TransferError::InTheWay { path },
        NotWritten::Busy => TransferError::Busy { path },
        NotWritten::Io(source) => TransferError::Write { path, source },
    }
}
