//! A recorded conversation, as a decision would see it.

use std::{path::Path, sync::Arc};

use pmk_core::{
    Entry, History, Transcript,
    history::{self, Repaired},
    structure,
};
use pmk_policy::Phase;
use pmk_search::MemoryArchive;
use pmk_system::error::{Failure, OrHint};
use pmk_system::files;

/// A conversation from a file, with the positions of its messages in the file.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The system prompt, if the file has one.
    pub system: Option<String>,
    /// What a policy sees. The new message is the last one if it starts a turn; if the last one is a result, it is the
    /// question that is being worked on.
    pub transcript: Arc<Transcript>,
    /// Messages of the file that no request can contain.
    pub left_out: Vec<usize>,
    /// The number of messages in the file.
    pub total: usize,
    /// What could not be read or had to be repaired, one line each.
    pub oddities: Vec<String>,
    /// The index in the file of each message of the transcript.
    indexes: Vec<usize>,
}

impl Recorded {
    /// Reads pmk's `session.json`, Anthropic's `{"system","messages"}` or JSON lines.
    ///
    /// # Errors
    /// The file cannot be read, or is none of these.
    pub fn read(path: &Path) -> Result<Recorded, Failure> {
        let text = files::read_text(path)
            .map_err(|error| format!("cannot read the history `{}`: {error}", path.display()))
            .or_hint("use a UTF-8 text file that you can read")?;
        Recorded::parse(&text, &format!("the history `{}`", path.display()))
    }

    /// Parses the same from memory; errors refer to it as `label`.
    ///
    /// # Errors
    /// The text is not a history.
    pub fn parse(text: &str, label: &str) -> Result<Recorded, Failure> {
        let history =
            History::parse(text).map_err(|error| Failure::new(format!("{label}: {error}")).hint(error.hint()))?;
        Ok(Recorded::of(history))
    }

    fn of(History { system, messages, unread }: History) -> Recorded {
        let total = messages.len();
        let Repaired { messages, repairs } = history::repair(messages);
        let indexes: Vec<usize> = messages.iter().map(|(index, _)| *index).collect();
        let left_out = (0..total).filter(|index| indexes.binary_search(index).is_err()).collect();
        let entries: Vec<Entry> =
            messages.into_iter().map(|(index, message)| Entry::new(index as i64, message)).collect();
        let current = structure::unanswered(&entries).unwrap_or(entries.len());
        // Nothing was dropped before: the policy can search what it drops now.
        let archive = Arc::new(MemoryArchive::of(&entries[..current]));
        Recorded {
            system,
            transcript: Arc::new(Transcript::new(entries, current, "").with_archive(archive)),
            left_out,
            total,
            oddities: unread.into_iter().chain(repairs).collect(),
            indexes,
        }
    }

    /// Returns the position in the file of a message of the transcript; past the end, the end of the file.
    pub fn file_index(&self, index: u32) -> usize {
        self.indexes.get(index as usize).copied().unwrap_or(self.total)
    }

    /// The same for several messages.
    pub fn file_indexes(&self, indexes: &[u32]) -> Vec<usize> {
        indexes.iter().map(|&index| self.file_index(index)).collect()
    }
}

/// Returns which call of its turn a request with this transcript is for.
pub fn phase(transcript: &Transcript) -> Phase {
    match transcript.new_message() {
        Some(new) if new + 1 < transcript.len() => Phase::Synthesise,
        _ => Phase::First,
    }
}
