//! Conversations to try a policy on: built-in ones, the same on every machine, and those of files.

mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use pmk_core::{Transcript, structure, testing};
use pmk_search::MemoryArchive;
use pmk_system::error::Failure;

use self::writer::Writer;
use super::recorded::Recorded;
use crate::{
    evaluation::compare::{
        histories::{self as recorded, Conversation, LeftOut, Met, Source},
        recording::Recording,
    },
    store::transfer::full,
};

/// A conversation with its name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name of a built-in one, or the file.
    pub name: String,
    /// What a policy sees.
    pub transcript: Arc<Transcript>,
}

/// The number of random built-in conversations. They are short: what they vary is the structure.
const RANDOM: u64 = 20;

/// Messages of the longest built-in conversation.
const LONG: usize = 3_000;

/// Returns the conversations that every policy is tried on.
pub fn built_in() -> Vec<Named> {
    let made = [
        ("nothing at all", Writer::new(1).stored()),
        ("a first question", Writer::new(2).asks()),
        ("english", Writer::new(3).turns(60).asks()),
        ("chinese", Writer::new(4).in_chinese().turns(60).asks()),
        ("tool-heavy", Writer::new(5).tool_turns(25, 4).asks()),
        ("seed pair", Writer::new(6).in_chinese().seed(6_000).mra_turns(8).turns(30).asks()),
        ("seed pair larger than anything else", Writer::new(7).seed(60_000).turns(6).asks()),
        ("one huge turn", Writer::new(8).turns(3).working(12, 6_000)),
        ("huge messages", Writer::new(9).turns(5).huge_turn(120_000).turns(5).asks()),
        ("long messages in both scripts", Writer::new(14).long_turns(50, 1_500).asks()),
        ("huge question", Writer::new(10).turns(5).asks_much(40_000)),
        ("summary and marker", Writer::new(11).seed(2_000).marker(41).summary(3_000).turns(20).retrieval().asks()),
        ("nobody asks", Writer::new(12).turns(20).stored()),
        ("long", long(LONG)),
    ];
    let made = made.into_iter().map(|(name, transcript)| (name.to_owned(), transcript));
    let random = (1..=RANDOM).map(|seed| (format!("random {seed}"), testing::random_request(seed, 30)));
    made.chain(random).map(|(name, transcript)| Named { name, transcript: Arc::new(transcript) }).collect()
}

/// A conversation with this many stored messages, and a question.
pub fn long(messages: usize) -> Transcript {
    Writer::new(13).turns(messages / 2).asks()
}

/// The same with this many older messages that are only in the archive.
pub fn long_with_archive(messages: usize, archived: usize) -> Transcript {
    Writer::new(13).turns((archived + messages) / 2).asks_when_gone(archived)
}

/// Reads the conversations of these files, and those that `compare` finds in these folders and full exports. `warn` is
/// told which of a folder or an export cannot be read.
///
/// # Errors
/// A file cannot be read, is not a history, or contains nothing to decide about; or nothing of a folder can be read.
pub fn given(paths: &[PathBuf], warn: &mut dyn FnMut(&str)) -> Result<Vec<Named>, Failure> {
    let mut found = Vec::new();
    let mut met = Met::default();
    for path in paths {
        if !path.is_dir() && !full::is_full(path) {
            found.push(of_file(path)?);
            continue;
        }
        let (mut is_empty, mut of_path) = (true, Vec::new());
        let (files, unread) = recorded::find(path, None)?;
        unread.iter().for_each(|problem| warn(&problem.to_string()));
        let sources = files.into_iter().map(Source::from).collect();
        for (position, conversation) in recorded::each_once(sources, &mut met) {
            match conversation {
                Ok(Conversation::File(file)) => match of_file(&file.path) {
                    Ok(named) => of_path.push((position, named)),
                    Err(failure) => warn(failure.message()),
                },
                Ok(conversation) => match conversation.open() {
                    Ok((names, recording)) => {
                        of_path.extend(of_recording(names, recording).map(|named| (position, named)));
                    }
                    Err(problem) => warn(&problem.to_string()),
                },
                Err(left) => {
                    // What another path has is found, too.
                    is_empty &= !matches!(*left, LeftOut::Again { .. });
                    warn(&left.to_string());
                }
            }
        }
        of_path.sort_by_key(|(position, _)| *position);
        is_empty &= of_path.is_empty();
        found.extend(of_path.into_iter().map(|(_, named)| named));
        if is_empty {
            return Err(Failure::new(format!("there are no histories in `{}`", path.display()))
                .hint("only `.json`, `.jsonl`, `.ndjson` and full exports are read, also in its subfolders"));
        }
    }
    Ok(found)
}

fn of_file(file: &Path) -> Result<Named, Failure> {
    let recorded = Recorded::read(file)?;
    if recorded.transcript.is_empty() {
        return Err(Failure::new(format!("the history `{}` contains no user message", file.display()))
            .hint("use a history with at least one message of role `user`"));
    }
    Ok(Named { name: file.display().to_string(), transcript: recorded.transcript })
}

/// Returns a conversation of an export, unless it has no message.
fn of_recording(names: Vec<String>, recording: Recording) -> Option<Named> {
    let Recording { entries, dropped_turns, .. } = recording;
    let current = structure::unanswered(&entries).unwrap_or(entries.len());
    let archive = Arc::new(MemoryArchive::of(&entries[..current]));
    let transcript = Transcript::new(entries, current, "").with_dropped_turns(dropped_turns).with_archive(archive);
    let name = names.into_iter().next()?;
    (!transcript.is_empty()).then(|| Named { name, transcript: Arc::new(transcript) })
}

#[cfg(test)]
mod tests {
    use pmk_core::Origin;

    use super::*;

    #[test]
    fn the_built_in_ones_are_what_their_names_say() {
        let all = built_in();
        let of = |name: &str| {
            let found = all.iter().find(|named| named.name == name);
            Arc::clone(&found.unwrap_or_else(|| panic!("no history `{name}`")).transcript)
        };
        assert!(of("nothing at all").is_empty());
        let long = of("long messages in both scripts");
        let chars: Vec<u32> = long.entries()[..100].iter().map(|entry| entry.chars).collect();
        assert!(chars.iter().all(|chars| (1_480..1_520).contains(chars)), "{chars:?}");
        assert!(long.tokens()[0] < 600 && long.tokens()[2] > 1_200, "{:?}", long.tokens());
        assert_eq!((of("a first question").len(), of("english").turns(), of("chinese").turns()), (1, 60, 60));
        assert_eq!(of("seed pair").seed_end(), 2);
        assert_eq!(of("summary and marker").dropped_turns(), 41);
        assert_eq!(of("nobody asks").new_message(), None);
        assert_eq!(of("long").len(), LONG + 1);
        let searched = long_with_archive(100, 400);
        assert_eq!((searched.len(), searched.archived()), (101, 500));
        assert!(searched.archive().is_some_and(|archive| archive.read(0..1)[0].1.id < searched.entries()[0].id));
        let origins = |name: &str| of(name).entries().iter().map(|entry| entry.message.origin).collect::<Vec<_>>();
        assert!(origins("tool-heavy").contains(&Origin::ToolResult));
        assert!(origins("seed pair").contains(&Origin::MraResult));
        assert!(origins("summary and marker").contains(&Origin::Retrieval));
        let working = of("one huge turn");
        let current = working.tokens_in(working.current(), working.len());
        assert!(current * 10 > working.total_tokens() * 9, "the current turn is nearly all of it");
    }

    #[test]
    fn they_are_the_same_every_time() {
        for (one, other) in built_in().iter().zip(built_in()) {
            assert_eq!(one.transcript.tokens(), other.transcript.tokens(), "{}", one.name);
        }
    }
}
