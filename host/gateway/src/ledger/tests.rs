//! A ledger with a real store and real files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pmk_stand_ins::patience::until;
use pmk_system::{clock, home::HomeLock};
use tempfile::TempDir;

use super::*;
use crate::store::Store;

struct House {
    home: TempDir,
    store: Store,
}

impl House {
    fn new() -> House {
        let home = tempfile::tempdir().expect("a folder");
        let store = Store::open(home.path()).expect("a store");
        House { home, store }
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(Arc::new(self.store.clone()), self.home.path())
    }

    /// Stores events that are not exported yet.
    fn note(&self, numbers: impl IntoIterator<Item = u32>) {
        numbers.into_iter().for_each(|number| self.store.note(event(number).into()));
        self.store.note_again().expect("stored");
    }

    /// The lines that are not settled yet.
    fn waiting(&self) -> Vec<String> {
        self.store.waiting(0, 1_000).expect("readable").into_iter().map(|line| line.text).collect()
    }

    /// This month's file.
    fn file(&self) -> PathBuf {
        self.home.path().join(Line::new(Series::Events, &event(0).into(), clock::now_ms()).file)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap_or_default()
    }
}

fn event(number: u32) -> Event {
    Event::ContextForcePruned { actor: "U1".into(), dropped_pairs: number, tokens_after: 4_200 }
}

/// The numbers of the events in a text, in order; an incomplete line has none.
fn numbers(text: &str) -> Vec<u64> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.map(|line| line["droppedPairs"].as_u64().expect("a number")).collect()
}

#[test]
fn what_is_noted_is_in_the_file_at_once_and_forgotten_by_the_store_at_the_end() {
    let house = House::new();
    let ledger = house.ledger();
    (0..3).for_each(|number| ledger.note(event(number)));
    until("a third line", || (numbers(&house.text()) == [0, 1, 2]).then_some(()));
    let another = ledger.clone();
    drop(ledger);
    another.note(event(3));
    drop(another);
    assert_eq!(numbers(&house.text()), [0, 1, 2, 3]);
    assert_eq!(house.waiting(), [""; 0]);
}

#[test]
fn wherever_a_crash_falls_each_line_is_there_once_and_in_order() {
    let house = House::new();
    fs::write(house.file(), "{\"at\":\"an older one\",\"droppedPairs\":9}\n").expect("a file");
    // So much of the queued lines was in the file when the process was killed.
    for cut in 0.. {
        house.note(0..3);
        let waiting = house.waiting().concat();
        let Some(written) = waiting.get(..cut) else { return };
        let before = house.text();
        fs::write(house.file(), format!("{before}{written}")).expect("a file");
        drop(house.ledger());
        assert_eq!(house.text(), format!("{before}{waiting}"), "killed after {cut} bytes");
    }
}

#[test]
fn a_crash_before_the_store_was_told_repeats_nothing() {
    let house = House::new();
    house.note(0..2);
    drop(house.ledger());
    // The same two, and the file as a kill leaves it just before the store is told of the last one.
    house.note(2..4);
    let (before, waiting) = (house.text(), house.waiting().concat());
    fs::write(house.file(), format!("{before}{waiting}")).expect("a file");
    house.note(4..5);
    drop(house.ledger());
    assert_eq!(numbers(&house.text()), [0, 1, 2, 3, 4]);
}

#[test]
fn a_file_that_people_edit_keeps_what_they_wrote_and_loses_no_line() {
    let house = House::new();
    house.note(0..2);
    drop(house.ledger());
    fs::write(house.file(), "shorter, and without an end").expect("a file");
    house.note(2..4);
    drop(house.ledger());
    let text = house.text();
    assert!(text.starts_with("shorter, and without an end\n{"), "{text}");
    assert_eq!(numbers(&text), [2, 3]);
}

#[test]
fn what_cannot_be_written_waits_and_is_written_in_order_once_it_can_be() {
    let house = House::new();
    let ledger = house.ledger();
    ledger.note(event(0));
    until("a line", || (numbers(&house.text()) == [0]).then_some(()));
    // A folder is in the place of the file.
    let aside = house.home.path().join("aside");
    fs::rename(house.file(), &aside).expect("moved");
    fs::create_dir(house.file()).expect("a folder");
    ledger.note(event(1));
    let trouble = until("trouble", || ledger.trouble());
    assert!(trouble.error.contains("cannot write `") && trouble.since.ends_with('Z'), "{trouble:?}");
    ledger.note(event(2));
    until("two lines", || ledger.trouble().filter(|trouble| trouble.waiting >= 2));
    fs::remove_dir(house.file()).expect("mended");
    fs::rename(&aside, house.file()).expect("moved back");
    until("no trouble", || ledger.trouble().is_none().then_some(()));
    assert_eq!(numbers(&house.text()), [0, 1, 2]);
    drop(ledger);
    assert_eq!((numbers(&house.text()), house.waiting().len()), (vec![0, 1, 2], 0));
}

#[test]
fn one_process_exports_at_a_time_and_what_another_notes_is_exported_by_it() {
    let house = House::new();
    let first = house.ledger();
    first.note(event(0));
    until("a line", || (numbers(&house.text()) == [0]).then_some(()));
    let beside = Store::open_existing(house.home.path()).expect("the store");
    let second = Ledger::open(Arc::new(beside), house.home.path());
    second.note(event(1));
    drop(second);
    until("its line", || (numbers(&house.text()) == [0, 1]).then_some(()));
    drop(first);
    assert_eq!(numbers(&house.text()), [0, 1]);
}

#[test]
fn that_the_store_is_lost_is_told_without_it() {
    let house = House::new();
    let ledger = house.ledger();
    ledger.note(event(0));
    until("a line", || (numbers(&house.text()) == [0]).then_some(()));
    fs::remove_file(Store::path(house.home.path())).expect("deleted");
    ledger.note(event(1));
    drop(ledger);
    assert_eq!(numbers(&house.text()), [0, 1]);
}

#[test]
fn a_backup_that_is_put_back_does_not_tell_again_what_the_file_has() {
    let House { home, store } = House::new();
    let (lock, copy) = (HomeLock::take(home.path()).expect("nobody else's"), home.path().join("copy.db"));
    let house = House { home, store };
    house.note(0..2);
    tokio::runtime::Runtime::new().expect("a runtime").block_on(house.store.back_up(&copy)).expect("copied");
    drop(house.ledger());
    house.note(2..4);
    drop(house.ledger());
    let House { home, store } = house;
    drop(store);
    Store::put_back(&lock, &copy, || None, jiff::Timestamp::now()).expect("put back");
    let house = House { store: Store::open(home.path()).expect("the store of then"), home };
    assert_eq!(house.waiting().len(), 2);
    house.note(4..5);
    drop(house.ledger());
    assert_eq!(numbers(&house.text()), [0, 1, 2, 3, 4]);
}

#[test]
fn a_dry_run_has_a_file_of_its_own() {
    let house = House::new();
    house.store.is_of_a_dry_run();
    let ledger = house.ledger();
    ledger.note(event(0));
    drop(ledger);
    let is_dry =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("dryrun-events-"));
    let files = fs::read_dir(house.home.path()).expect("the home").map(|file| file.expect("a file").path());
    let texts: Vec<String> =
        files.filter(|path| is_dry(path)).map(|path| fs::read_to_string(path).expect("it")).collect();
    assert_eq!((numbers(&texts.concat()), house.text()), (vec![0], String::new()));
}
