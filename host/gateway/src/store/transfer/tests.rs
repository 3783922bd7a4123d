//! Random histories in both formats, and files that were tampered with.

use std::{io::Write, path::PathBuf};

use pmk_core::{ImageId, Message, Origin, structure, testing, tokens};
use proptest::prelude::*;

use super::*;
use crate::store::{DumpedLive, DumpedMessage, SessionDump, StoredImage, Verbosity};

const NOW: i64 = 1_760_000_000_000;

fn image(bytes: &[u8]) -> StoredImage {
    StoredImage { sha256: ImageId::of(bytes), bytes: bytes.into() }
}

/// A random conversation in which some messages are reduced, and some are archived.
fn random_dump(seed: u64) -> SessionDump {
    let entries = testing::random_transcript(seed, 12).entries().to_vec();
    let mut rng = testing::Rng::new(seed);
    let mut dump = SessionDump {
        key: "slack:dm:U1".parse().unwrap(),
        created_at_ms: NOW,
        active_at_ms: NOW + 7,
        turns: rng.below(9) as u64,
        dropped_turns: rng.below(3) as u32,
        marker_template: rng.chance(30).then(|| "[{turns}]".to_owned()),
        verbosity: rng.chance(30).then_some(Verbosity::Full),
        messages: vec![],
        has_made_up_times: false,
        live: vec![],
        cases: vec![],
        images: (0..rng.below(3)).map(|_| image(&rng.below(1_000).to_le_bytes())).collect(),
    };
    // Archived messages come first: the live window then begins with a turn.
    let archived = structure::Structure::of(&entries).cuts.get(rng.below(4)).map_or(0, |&cut| cut as usize);
    for (index, entry) in entries.into_iter().enumerate() {
        if index >= archived {
            let replacement = entry.original.is_some().then(|| (*entry.message).clone());
            dump.live.push(DumpedLive { index, replacement, tokens: entry.tokens });
        }
        let message = entry.source().clone();
        let stored =
            DumpedMessage { id: Some(entry.id), tokens: tokens::message(&message), message, created_at_ms: NOW };
        dump.messages.push(stored);
    }
    dump
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::File::create(&path).unwrap().write_all(content).unwrap();
        path
    }
}

fn full_file(dumps: &[SessionDump]) -> Vec<u8> {
    let mut file = Vec::new();
    full::write_header(&mut file).unwrap();
    dumps.iter().for_each(|dump| full::write(&mut file, dump.clone()).unwrap());
    full::write_end(&mut file).unwrap();
    file
}

/// Reads any content in both formats.
fn read_anyhow(folder: &Folder, content: &[u8]) {
    let key = "slack:dm:U1".parse().unwrap();
    for name in ["session.json", "messages.jsonl"] {
        if let Ok(pmk::Imported { dump, .. }) = pmk::read(&folder.file(name, content), Some(&key), NOW) {
            let live: Vec<&Message> = dump.live.iter().map(|live| dump.shown(live)).collect();
            assert!(structure::pair_tools(&live).orphans.is_empty() && live.iter().all(|message| !message.is_blank()));
        }
    }
    if let Ok(conversations) = full::Conversations::open(&folder.file("full.jsonl", content)) {
        for (dump, _) in conversations.filter_map(Result::ok) {
            let live: Vec<&Message> = dump.live.iter().map(|live| dump.shown(live)).collect();
            assert!(structure::pair_tools(&live).orphans.is_empty());
        }
    }
}

#[test]
fn a_conversation_that_ends_too_early_does_not_take_the_next_one_with_it() {
    let folder = Folder::new();
    let (mut first, mut second) = (random_dump(1), random_dump(2));
    first.key = "slack:dm:U8".parse().unwrap();
    second.key = "slack:dm:U9".parse().unwrap();
    let file = full_file(&[first.clone(), second.clone()]);
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat().concat();
    for missing in 2..=first.messages.len() + first.live.len() {
        let path = folder.file("full.jsonl", &without(missing));
        let read: Vec<full::Read> = full::Conversations::open(&path).unwrap().collect();
        assert_eq!(read.len(), 2, "without line {missing}");
        let (key, _) = read[0].as_ref().expect_err("it is not complete");
        assert_eq!(key.as_ref(), Some(&first.key));
        assert_eq!(read[1].as_ref().expect("the next one").0, second);
    }
}

/// Regression: a file that was cut off between two conversations was read as a whole one.
#[test]
fn a_file_that_is_cut_off_anywhere_says_so_once() {
    let folder = Folder::new();
    let (mut first, mut second) = (random_dump(1), random_dump(2));
    first.key = "slack:dm:U8".parse().unwrap();
    second.key = "slack:dm:U9".parse().unwrap();
    let file = full_file(&[first, second]);
    let header = file.iter().position(|byte| *byte == b'\n').unwrap();
    // Only the last line end can be missing.
    let cuts = header + 1..file.len() - 1;
    for length in cuts.filter(|at| file[at - 1] == b'\n' || at.is_multiple_of(17)) {
        let path = folder.file("full.jsonl", &file[..length]);
        let mut read: Vec<full::Read> = full::Conversations::open(&path).unwrap().collect();
        let last = read.pop().unwrap();
        assert!(matches!(last, Err((_, TransferError::EndsEarly { .. }))), "{length} bytes: {last:?}");
        assert!(read.iter().all(Result::is_ok), "{length} bytes");
    }
    let is_whole = |content: &[u8]| {
        let path = folder.file("full.jsonl", content);
        let read: Vec<full::Read> = full::Conversations::open(&path).unwrap().collect();
        read.len() == 2 && read.iter().all(Result::is_ok)
    };
    assert!(is_whole(&file[..file.len() - 1]));
    let now = String::from_utf8(file).unwrap();
    let without_end = now.strip_suffix("{\"end\":{}}\n").unwrap();
    let before = without_end.replacen("{\"version\":4}", "{\"version\":2}", 1);
    assert_ne!(before, without_end);
    assert!(is_whole(before.as_bytes()), "of an earlier version");
}

#[test]
fn an_image_whose_bytes_are_others_is_not_imported() {
    let folder = Folder::new();
    let mut dump = random_dump(1);
    dump.images = vec![StoredImage { sha256: ImageId::of(b"others"), ..image(b"these") }];
    let path = folder.file("full.jsonl", &full_file(&[dump]));
    let read: Vec<full::Read> = full::Conversations::open(&path).unwrap().collect();
    assert!(matches!(read[..], [Err((Some(_), TransferError::Line { .. }))]), "{read:?}");
}

#[test]
fn tool_calls_without_results_leave_the_window_of_an_edited_export() {
    let folder = Folder::new();
    let with_calls = |seed: &u64| {
        let dump = random_dump(*seed);
        dump.live.iter().any(|live| dump.shown(live).origin == Origin::ToolResult)
    };
    let mut dump = (0..).map(|seed| (seed, random_dump(seed))).find(|(seed, _)| with_calls(seed)).unwrap().1;
    let result = dump.live.iter().position(|live| dump.shown(live).origin == Origin::ToolResult).unwrap();
    dump.live.remove(result);
    let path = folder.file("full.jsonl", &full_file(std::slice::from_ref(&dump)));
    let (read, repairs) = full::Conversations::open(&path).unwrap().next().unwrap().unwrap();
    assert!(!repairs.is_empty());
    assert_eq!(read.messages, dump.messages, "the archive keeps them");
    let live: Vec<&Message> = read.live.iter().map(|live| read.shown(live)).collect();
    assert_eq!(structure::pair_tools(&live).orphans, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_full_format_loses_nothing(seeds in prop::collection::vec(any::<u64>(), 0..4)) {
        let folder = Folder::new();
        let dumps: Vec<SessionDump> = seeds.into_iter().map(random_dump).collect();
        let file = full_file(&dumps);
        // Some editors put a byte order mark before it.
        let marked = [BYTE_ORDER_MARK, &file].concat();
        let path = folder.file("full.jsonl", if dumps.len().is_multiple_of(2) { &file } else { &marked });
        prop_assert!(full::is_full(&path));
        let read: Vec<full::Read> = full::Conversations::open(&path).unwrap().collect();
        prop_assert_eq!(read.len(), dumps.len());
        for (read, dump) in read.into_iter().zip(dumps) {
            let (read, repairs) = read.unwrap();
            prop_assert_eq!(read, dump);
            prop_assert_eq!(repairs, Vec::<String>::new());
        }
    }

    #[test]
    fn once_it_is_plain_texts_a_conversation_stays_as_it_is(seed in any::<u64>()) {
        let folder = Folder::new();
        let dump = random_dump(seed);
        let path = folder.file("session.json", pmk::session_file(&dump).as_bytes());
        let pmk::Imported { dump: back, .. } = pmk::read(&path, None, NOW).unwrap();
        prop_assert_eq!(&back.key, &dump.key);
        prop_assert_eq!((back.turns, back.active_at_ms), (dump.turns, dump.active_at_ms));
        prop_assert_eq!((back.verbosity, back.has_made_up_times), (None, true));
        let again = folder.file("session.json", pmk::session_file(&back).as_bytes());
        let again = pmk::read(&again, None, NOW).unwrap().dump;
        let messages = |dump: SessionDump| dump.messages.into_iter().map(|stored| stored.message).collect::<Vec<_>>();
        prop_assert_eq!(again.dropped_turns, back.dropped_turns);
        prop_assert_eq!(messages(again), messages(back));
    }

    #[test]
    fn texts_alone_come_back_as_they_were(seed in any::<u64>()) {
        let folder = Folder::new();
        let plain = |message: &Message| {
            !message.has_tools() && !message.is_blank() && matches!(message.origin, Origin::User | Origin::Assistant)
        };
        let messages: Vec<Message> = testing::random_history(seed, 12).into_iter().filter(plain).collect();
        let first = messages.iter().position(structure::starts_turn).unwrap_or(messages.len());
        let messages = &messages[first..];
        let mut dump = random_dump(seed);
        dump.live = (0..messages.len()).map(|index| DumpedLive { index, replacement: None, tokens: 1 }).collect();
        let stored = |message: &Message| {
            DumpedMessage { id: None, message: message.clone(), tokens: 1, created_at_ms: NOW }
        };
        dump.messages = messages.iter().map(stored).collect();
        let path = folder.file("session.json", pmk::session_file(&dump).as_bytes());
        let back = pmk::read(&path, None, NOW).unwrap().dump;
        let texts: Vec<&Message> = back.messages.iter().map(|stored| &stored.message).collect();
        prop_assert_eq!(texts, messages.iter().collect::<Vec<_>>());
        prop_assert_eq!(back.dropped_turns, dump.dropped_turns);
    }

    #[test]
    fn no_tampering_makes_an_import_panic(
        seed in any::<u64>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
    ) {
        let folder = Folder::new();
        let dump = random_dump(seed);
        for mut content in [full_file(std::slice::from_ref(&dump)), pmk::session_file(&dump).into_bytes()] {
            for (at, byte, kind) in &changes {
                if content.is_empty() {
                    break;
                }
                let at = at.index(content.len());
                match kind {
                    0 => content[at] = *byte,
                    1 => drop(content.remove(at)),
                    _ => content.truncate(at.max(1)),
                }
            }
            read_anyhow(&folder, &content);
        }
    }
}
