//! Checks what the store and the ledger say that the model has cost and refused, and how many messages were parked.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use super::Verdict;
use crate::{
    database::WorldsDatabase,
    scenario::{Event, Trouble, What},
};

const SPENT: &str = "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM turn";

/// The input and the output tokens of all turns that are stored.
pub(super) fn spent(store: &Path, database: Option<&WorldsDatabase>) -> [u64; 2] {
    if let Some(database) = database {
        let row = database.rows(SPENT).into_iter().flatten();
        let figures: Vec<u64> = row.filter_map(|figure| figure.parse().ok()).collect();
        return figures.try_into().expect("two figures");
    }
    let store = Connection::open(store).expect("the store opens");
    let figures: [i64; 2] = store.query_row(SPENT, [], |row| Ok([row.get(0)?, row.get(1)?])).expect("readable");
    figures.map(i64::unsigned_abs)
}

impl Verdict<'_> {
    /// What the model has counted and refused must be stored once, and nothing else; and each message that is parked be
    /// told of once.
    pub(super) fn judge_figures(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let asked = self.world.witness.all_spent();
        let sum = |name: &str| {
            lines
                .iter()
                .filter(|line| line["type"] == "token.usage")
                .filter_map(|line| line[name].as_u64())
                .sum::<u64>()
        };
        let told = ["inputTokens", "outputTokens"].map(sum);
        // What an attempt has cost goes with the process that makes it, and where it cannot be stored.
        let is_whole = |event: &Event| match event.what {
            What::Trouble { kind, .. } => {
                !matches!(kind, Trouble::DiskFull | Trouble::DiskBroken | Trouble::DiskUnread)
            }
            _ => true,
        };
        let parked = lines.iter().filter(|line| line["type"] == "turn.parked").count();
        let goes_on = self.world.hosts() == 1 && self.silences.is_empty();
        let keeps_all = goes_on && self.world.scenario.events.iter().all(is_whole);
        // What it costs to read whether a contact answers is in the ledger only, and so is what was parked.
        let is_all_of_turns = keeps_all && parked == 0 && !self.world.scenario.setting.contacts;
        let of_turns = ("the turns have cost", self.kept.spent, is_all_of_turns);
        for (what, figures, is_all) in [("the ledger tells of", told, keeps_all), of_turns] {
            let is_more = figures.iter().zip(&asked).any(|(figure, asked)| figure > asked);
            if is_more || is_all && figures != asked {
                breaches.push(format!("{what} {figures:?} tokens, and the model of {asked:?}"));
            }
        }
        let [refused, most] = self.world.witness.all_refused();
        let told = lines.iter().filter(|line| line["type"] == "context.exceeded").count() as u64;
        if told > most || keeps_all && told < refused {
            breaches.push(format!("the ledger tells of {told} refusals, and the model of {refused} to {most}"));
        }
        if parked < self.kept.parked.len() {
            breaches.push(format!("{} messages are parked, and the ledger tells of {parked}", self.kept.parked.len()));
        }
    }
}
