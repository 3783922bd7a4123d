//! Records the answer of a turn.

use std::ops::Range;

use pmk_core::Entry;
use pmk_models::Usage;

use crate::{
    calibration::Sizes,
    ids::TurnId,
    ledger::{TaggedEvent, report::TurnReport},
    store::{CaseEntry, EscalationUpdate, ModelCalibration, Outgoing, Receipts, TurnOutcome},
};

/// An answer, and everything that is to be stored of the turn.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What the turn adds, in order: the question, what it produced, the answer. Entries with the id 0 are new to
    /// the archive; [`Store::archive`](crate::store::Store::archive) has already stored the others.
    pub messages: Vec<Entry>,
    pub usage: Usage,
    /// Other turns that this answer also closes, and who wrote each.
    pub also: Vec<(TurnId, String)>,
    /// Where the first message combines the messages of several turns: the byte range of each turn's text in it.
    pub pieces: Vec<(TurnId, Range<usize>)>,
    /// The ids of the atoms that the model was shown for the answer.
    pub atoms: Vec<String>,
    /// What is to be delivered, in order.
    pub parts: Vec<Outgoing>,
    /// What was learnt about the model.
    pub calibration: Option<ModelCalibration>,
    /// The updated sizes of the conversation's requests; `None` where they have not changed.
    pub sizes: Option<Sizes>,
    /// What happens to an escalation.
    pub escalation: Option<EscalationUpdate>,
    /// What is stored with a case.
    pub case: Option<CaseEntry>,
    /// What the front is told after delivery.
    pub report: TurnReport,
    /// What is counted of the turn for experiments.
    pub outturn: TurnOutcome,
    /// Whether the messages enter the live window. Not when the turn was given up: what could not be answered once
    /// must not make the next turn fail.
    pub keep_live: bool,
    /// The events that the ledger gets.
    pub events: Vec<TaggedEvent>,
    /// What the turn's requests to the model were made from.
    pub receipts: Receipts,
    /// The revision of the conversation when the turn began.
    pub revision: i64,
    /// The message that the answer replaces; `None` where that can only be the one that was
    /// [placed](crate::store::Store::placed).
    pub placeholder: Option<String>,
}

impl Recorded {
    /// Returns what a turn stores that ends with these parts, and nothing else.
    pub fn of(report: TurnReport, parts: Vec<Outgoing>, revision: i64) -> Recorded {
        Recorded {
            messages: vec![],
            usage: Usage::default(),
            also: vec![],
            pieces: vec![],
            atoms: vec![],
            parts,
            calibration: None,
            sizes: None,
            escalation: None,
            case: None,
            report,
            outturn: TurnOutcome::default(),
            keep_live: false,
            events: vec![],
            receipts: Receipts::default(),
            revision,
            placeholder: None,
        }
    }
}
