//! `sessions import`: imports conversations of pmk, or of another store of this program.

use std::path::{Path, PathBuf};

use clap::Args;
use pmk_core::SessionKey;
use pmk_system::files;
use pmk_system::{clock, error::Failure};
use serde_json::{Value, json};

use super::{Format, conversations};
use crate::{
    case,
    cli::{
        change::record,
        context::{Context, block_on},
        output::print_json,
    },
    stderr::Spinner,
    store::{
        SessionDump, Store, StoreError,
        transfer::{TransferError, full, pmk, tree},
    },
};

/// The most repairs of one conversation, and the most conversations not imported, that are listed individually.
const MOST_TOLD: usize = 20;

/// The largest `meta.json` that is read.
const MAX_META_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct Import {
    /// pmk's directory (~/.pmk/gateway/slack), a file in it, or a file written by `sessions export`
    path: PathBuf,
    /// Format of the files [default: detected]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Conversation that a single pmk file belongs to, if neither its path nor its content tells
    #[arg(long)]
    key: Option<SessionKey>,
    /// Empty the live window of existing conversations before importing; their archives are kept
    #[arg(long)]
    replace: bool,
}

impl Import {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let imported = block_on(async {
            // Before the store is opened, so that a wrong path does not create a home.
            let source = self.source()?;
            let store = match Store::open_if_any(context.place()?)? {
                Some(store) => store,
                None => Store::open(context.place()?)?,
            };
            let mut tally = Tally {
                context,
                store: &store,
                replace: self.replace,
                done: vec![],
                cases: vec![],
                there_already: 0,
                failures: vec![],
                ends_early: None,
                waiting: Spinner::when_long("reading the first conversation"),
            };
            match source {
                Source::Full(file) => tally.full(file).await?,
                Source::Pmk { found, problems, is_alone, metas } => {
                    tally.pmk(found, problems, is_alone).await?;
                    tally.cases(metas).await?;
                }
            }
            tally.outcome(&self.path)
        });
        record(context, "sessions.import", &[&self.path.display().to_string()], imported)
    }

    fn source(&self) -> Result<Source, TransferError> {
        let path = std::path::absolute(&self.path)
            .map_err(|source| TransferError::Read { path: self.path.clone(), source })?;
        let metadata = path.metadata().map_err(|source| TransferError::Read { path: path.clone(), source })?;
        let is_full = match self.format {
            Some(format) => format == Format::Full,
            None => metadata.is_file() && full::is_full(&path),
        };
        if self.key.is_some() && (is_full || metadata.is_dir()) {
            return Err(TransferError::KeyOfMany { path });
        }
        if is_full {
            return Ok(Source::Full(full::Conversations::open(&path)?));
        }
        if !metadata.is_dir() {
            let found = vec![(self.key.clone(), path, vec![])];
            return Ok(Source::Pmk { found, problems: vec![], is_alone: true, metas: vec![] });
        }
        let (found, problems) = tree::scan(&path);
        let metas = tree::metas(&path);
        if found.is_empty() && problems.is_empty() && metas.is_empty() {
            return Err(TransferError::NothingFound { path });
        }
        let found = found.into_iter().map(|found| (Some(found.key), found.path, found.superseded)).collect();
        Ok(Source::Pmk { found, problems, is_alone: false, metas })
    }
}

enum Source {
    Full(full::Conversations),
    Pmk {
        /// Conversation, file, and older files of the same conversation.
        found: Vec<(Option<SessionKey>, PathBuf, Vec<PathBuf>)>,
        problems: Vec<TransferError>,
        /// Whether a single file was named.
        is_alone: bool,
        /// The files with the cases of channels.
        metas: Vec<tree::Meta>,
    },
}

/// The results of the import so far.
struct Tally<'a> {
    context: &'a Context,
    store: &'a Store,
    replace: bool,
    /// One document per conversation.
    done: Vec<Value>,
    /// One document per case.
    cases: Vec<Value>,
    /// How many conversations were not imported because they already exist.
    there_already: usize,
    /// All conversations that were not imported, with their names.
    failures: Vec<(String, Failure)>,
    /// The file was cut off between two conversations, or cannot be read on: nobody knows which ones are missing.
    ends_early: Option<Failure>,
    waiting: Spinner,
}

impl Tally<'_> {
    async fn full(&mut self, file: full::Conversations) -> Result<(), Failure> {
        for conversation in file {
            match conversation {
                Ok((dump, repairs)) => self.take_in(dump, repairs).await?,
                Err((None, error @ (TransferError::EndsEarly { .. } | TransferError::CutShort { .. }))) => {
                    self.ends_early = Some(error.into());
                }
                Err((key, error)) => {
                    let name = key.map_or_else(|| "a conversation".to_owned(), |key| format!("`{key}`"));
                    self.failures.push((name, error.into()));
                }
            }
        }
        Ok(())
    }

    async fn pmk(
        &mut self,
        found: Vec<(Option<SessionKey>, PathBuf, Vec<PathBuf>)>,
        problems: Vec<TransferError>,
        is_alone: bool,
    ) -> Result<(), Failure> {
        self.failures.extend(problems.into_iter().map(|error| ("a folder".to_owned(), error.into())));
        for (key, path, superseded) in found {
            let now_ms = clock::now_ms();
            match pmk::read(&path, key.as_ref(), now_ms) {
                Ok(pmk::Imported { dump, .. }) if is_alone && dump.messages.is_empty() => {
                    self.failures.push(("a file".to_owned(), TransferError::NoMessage { path }.into()));
                }
                // A folder may contain people who have said nothing yet. Nothing is emptied for that.
                Ok(pmk::Imported { dump, repairs }) if dump.messages.is_empty() => self.tell(&dump.key, &repairs),
                Ok(pmk::Imported { dump, mut repairs }) => {
                    let newest = path.file_name().unwrap_or_default().to_string_lossy();
                    let unread = |older: &PathBuf| {
                        format!("`{}` is not read, because pmk reads `{newest}` beside it", older.display())
                    };
                    repairs.extend(superseded.iter().map(unread));
                    self.take_in(dump, repairs).await?;
                }
                Err(error) => {
                    // What pmk had kept before is better than nothing, but takes the place of nothing newer.
                    let is_lost = matches!(error, TransferError::NoMessage { .. }) && !self.replace;
                    let older = superseded
                        .iter()
                        .filter(|_| is_lost)
                        .filter_map(|older| Some((older, pmk::read(older, key.as_ref(), now_ms).ok()?)))
                        .find(|(_, older)| !older.dump.messages.is_empty());
                    let name = match &key {
                        Some(key) if older.is_none() => format!("`{key}`"),
                        _ => "a file".to_owned(),
                    };
                    self.failures.push((name, error.into()));
                    if let Some((path, pmk::Imported { dump, mut repairs })) = older {
                        repairs.push(format!("the older `{}` is read instead", path.display()));
                        self.take_in(dump, repairs).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores a conversation.
    ///
    /// # Errors
    /// The store cannot be written: the next conversation would fail, too.
    async fn take_in(&mut self, dump: SessionDump, mut repairs: Vec<String>) -> Result<(), Failure> {
        let key = dump.key.clone();
        let (turns, dropped_turns) = (dump.turns, dump.dropped_turns);
        match self.store.restore(dump, self.replace, clock::now_ms()).await {
            Ok(restored) => {
                if restored.cases_closed > 0 {
                    repairs.push("its open case is closed: another one is open in the channel".to_owned());
                }
                self.tell(&key, &repairs);
                self.done.push(json!({
                    "key": key,
                    "messages": restored.messages,
                    "turns": turns,
                    "dropped_turns": dropped_turns,
                    "renumbered": restored.renumbered,
                    "repairs": repairs,
                }));
                self.waiting.tell(&format!("{} imported", conversations(self.done.len())));
                Ok(())
            }
            Err(error @ (StoreError::Exists(_) | StoreError::Leased { .. } | StoreError::LeaseLost { .. })) => {
                self.there_already += usize::from(matches!(error, StoreError::Exists(_)));
                self.failures.push((format!("`{key}`"), error.into()));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Imports the open cases of pmk's channels. One that cannot be read does not prevent anything else from being
    /// imported.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn cases(&mut self, metas: Vec<tree::Meta>) -> Result<(), Failure> {
        for tree::Meta { front, channel, path } in metas {
            let read = files::read(&path, MAX_META_BYTES).map_err(|error| error.to_string());
            let case = read.and_then(|json| case::imported(front, &channel, &json).map_err(|error| error.to_string()));
            let (case, odd) = match case {
                Ok(Some(case)) => case,
                Ok(None) => continue,
                Err(why) => {
                    self.context.warn(&format!("the case of channel `{channel}` is not imported: {why}"));
                    continue;
                }
            };
            match self.store.import_case(case, clock::now_ms()).await? {
                Ok(case) => {
                    odd.iter().for_each(|odd| self.context.warn(&format!("the case of channel `{channel}`: {odd}")));
                    self.cases.push(json!({"case": case.id.0, "channel": channel, "title": case.title}));
                }
                Err(other) => self.context.warn(&format!(
                    "the case of channel `{channel}` is not imported: case {} already exists",
                    other.id
                )),
            }
        }
        Ok(())
    }

    fn tell(&self, key: &SessionKey, repairs: &[String]) {
        for repair in repairs.iter().take(MOST_TOLD) {
            self.context.warn(&format!("`{key}`: {repair}"));
        }
        if repairs.len() > MOST_TOLD {
            self.context.warn(&format!("`{key}`: and {} more such repairs", repairs.len() - MOST_TOLD));
        }
    }

    fn outcome(mut self, path: &Path) -> Result<(), Failure> {
        drop(self.waiting);
        let (imported, failed, there_already) = (self.done.len(), self.failures.len(), self.there_already);
        let refused = failed - there_already;
        let is_alone = imported == 0 && failed == 1 && self.cases.is_empty() && self.ends_early.is_none();
        for (name, failure) in self.failures.iter().take(MOST_TOLD).filter(|_| !is_alone) {
            self.context.warn_of(&format!("{name} is not imported"), failure);
        }
        if failed > MOST_TOLD {
            self.context
                .warn(&format!("and {} more are not imported, for the same reasons or others", failed - MOST_TOLD));
        }
        if self.context.json {
            print_json(&json!({
                "imported": imported,
                "there_already": there_already,
                "failed": refused,
                "conversations": self.done,
                "cases": self.cases,
            }))?;
        } else if !is_alone {
            let cases = match self.cases.len() {
                0 => String::new(),
                1 => " and one open case".to_owned(),
                many => format!(" and {many} open cases"),
            };
            let what = format!("{}{cases}", conversations(imported));
            let said = match &*self.done {
                // The key that the file itself gives may not be the one that people expect, so it is shown.
                [one] if path.is_file() => {
                    format!(
                        "{what} imported from `{}` as `{}`",
                        path.display(),
                        one["key"].as_str().unwrap_or_default()
                    )
                }
                _ => format!("{what} imported from `{}`", path.display()),
            };
            self.context.say(&said);
        }
        if is_alone {
            return Err(self.failures.remove(0).1);
        }
        if let Some(failure) = self.ends_early {
            return Err(failure);
        }
        let all = conversations(imported + failed);
        match (there_already, refused) {
            (0, 0) => Ok(()),
            (0, _) => Err(Failure::new(format!("{failed} of {all} not imported")).hint(
                "the warnings say what is wrong and where; correct that, then import only what was not imported",
            )),
            (_, 0) => Err(Failure::new(format!("{failed} of {all} not imported because they already exist"))
                .hint("`--replace` empties their live windows first; their archives stay")),
            _ => Err(Failure::new(format!(
                "{failed} of {all} not imported: {there_already} already there, {refused} refused"
            ))
            .hint("the warnings say what is wrong and where; correct that, then import only what was not imported")),
        }
    }
}
