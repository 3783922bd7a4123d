//! Components that attack the host. Each is loaded or refused, asked for every decision that it exports, and must do no
//! harm: there is always an answer, the record says why the component was skipped, the next decision is unaffected, and
//! the memory is released.
//!
//! The results form a table, which is checked in under `snapshots/`. The table of the last run is in
//! `target/tmp/hostile-components.md`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../policies/component.rs"]
mod component;
mod corpus;
mod memory;
mod run;

use std::{
    fmt::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use self::{
    memory::{MIB, resident_bytes},
    run::{Bench, Row},
};

/// Memory is counted for the whole process, so only one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The corpus has at least this many attacks.
const FEWEST: usize = 40;

#[test]
fn no_component_hurts_the_host() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let corpus = corpus::all();
    assert!(corpus.len() >= FEWEST, "{}", corpus.len());
    let bench = Bench::new();
    let before = bench.reference();
    let resident = resident_bytes();
    let mut rows = Vec::new();
    for attack in &corpus {
        let found = bench.attack(attack);
        assert_eq!(bench.reference(), before, "{}: the next decision is another one", attack.name);
        if attack.group == corpus::CALLS {
            let ends = |row: &Row| row.reason.contains("units of fuel");
            assert!(found.iter().any(ends), "{}: fuel ends it in no decision", attack.name);
        }
        rows.extend(found);
    }
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < 48 * MIB, "{grown} bytes stay after the attacks");
    let table = table(&rows);
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-components.md"), &table).unwrap();
    // The contract's version grows.
    insta::with_settings!({filters => vec![(r"offers 1\.\d+\.\d+", "offers 1.[x]")]}, {
        insta::assert_snapshot!(table);
    });
}

#[test]
fn what_fails_again_and_again_costs_no_memory() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bench = Bench::new();
    let stacks: Vec<_> = corpus::repeated().iter().map(|attack| bench.stack(attack).unwrap()).collect();
    let ask_all = || stacks.iter().for_each(|stack| assert!(bench.prune(stack).records[0].outcome.is_bad()));
    (0..20).for_each(|_| ask_all());
    let resident = resident_bytes();
    (0..200).for_each(|_| ask_all());
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < 8 * MIB, "{grown} bytes stay after {} failures", 200 * stacks.len());
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "# What hostile components achieve\n\n\
         Written by `cargo test -p pmk-policy --test hostile`. \"Passed over\" means that `standard` answered \
             in its place.\n",
    );
    let mut group = "";
    for row in rows {
        if row.group != group {
            group = row.group;
            let _ = write!(
                out,
                "\n## {group}\n\n| attack | asked for | what happens | reason as recorded |\n|---|---|---|---|\n"
            );
        }
        let Row { attack, asked, happens, reason, .. } = row;
        let _ = writeln!(out, "| {} | {asked} | {} | {} |", cell(attack), cell(happens), cell(reason));
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
