//! Receipts: what each request of a turn was made from, recorded as it is made and stored with the
//! answer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pmk_core::{Entry, Message};
use pmk_policy::{Phase, Stack};

use crate::{
    calibration::Calibration,
    exchange::{Sent, budget::DecidedPlan, window::Window},
    store::{Before, Budget, Calibrated, Decider, Digest, FoundAtom, Layer, Plan, Receipt, Receipts, Reference},
};

/// The version of the rendering that makes a request: the window with the plan applied, its
/// messages [alternating](pmk_core::request::alternate).
const RENDERER: u32 = 1;

/// Records the receipts of a turn.
#[derive(Default)]
pub(super) struct ReceiptRecorder(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    atoms: Vec<FoundAtom>,
    background: Option<Message>,
    /// The basis of the next request.
    planned: Option<Planned>,
    receipts: Receipts,
}

/// A decision and its inputs. Large contents are shared, not copied.
struct Planned {
    at_ms: i64,
    window: Window,
    plan: Option<DecidedPlan>,
    calibration: Calibrated,
}

impl ReceiptRecorder {
    /// Records the atoms found for the new message.
    pub fn found(&self, atoms: Vec<FoundAtom>) {
        self.noted().atoms = atoms;
    }

    /// Records what the model is shown of the thread's earlier messages.
    pub fn background(&self, message: Message) {
        self.noted().background = Some(message);
    }

    /// Records the basis of the next request.
    pub fn planned(&self, at_ms: i64, window: &Window, plan: Option<&DecidedPlan>, known: &Calibration) {
        let (window, plan) = (window.clone(), plan.cloned());
        self.noted().planned = Some(Planned { at_ms, window, plan, calibration: calibrated(known) });
    }

    /// Records that a request was sent, based on the latest plan.
    pub fn sent(&self, sent: &Sent<'_>, policies: &Stack, seed_may_go: bool) {
        let Noted { atoms, background, planned: Some(planned), receipts } = &mut *self.noted() else { return };
        let mut receipt = receipt(planned, atoms, sent, (policies, seed_may_go), receipts);
        receipt.background = background.as_ref().map(|message| receipts.keep_json(message));
        receipts.push(receipt);
    }

    /// Takes all receipts.
    pub fn take(&self) -> Receipts {
        std::mem::take(&mut self.noted().receipts)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn receipt(
    planned: &Planned,
    atoms: &[FoundAtom],
    Sent { exchange, request, is_repaired, usage }: &Sent<'_>,
    (policies, seed_may_go): (&Stack, bool),
    receipts: &mut Receipts,
) -> Receipt {
    let layers = policies
        .layers()
        .map(|layer| Layer { policy: layer.policy.identity().clone(), settings: receipts.keep_json(&layer.settings) });
    let policies = layers.collect();
    let budget = exchange.budget;
    Receipt {
        call: receipts.count(),
        at_ms: planned.at_ms,
        phase: match exchange.tally.phase {
            Phase::First => "first",
            Phase::Synthesise => "synthesise",
        }
        .to_owned(),
        before: before(&planned.window, receipts),
        plan: planned.plan.as_ref().map(|decided| plan(decided, receipts)),
        policies,
        budget: Budget { window: budget.window, limit: budget.limit, answer: budget.answer, seed_may_go },
        calibration: planned.calibration,
        system: receipts.keep(request.system.as_str()),
        tools: receipts.keep_json(&&*request.tools),
        atoms: atoms.to_vec(),
        background: None,
        usage: *usage,
        renderer: RENDERER,
        as_text: exchange.preamble.as_text,
        repaired: *is_repaired,
        request: Digest::of_request(request),
    }
}

fn before(window: &Window, receipts: &mut Receipts) -> Before {
    let (dropped_turns, marker) = window.dropped();
    let new_message = window.current();
    let mut reference = |(at, entry): (usize, &Entry)| match (entry.id, &entry.original) {
        // It will be archived with the answer.
        (0, _) if at == new_message => Reference::Added(0),
        (0, _) => Reference::Text { text: receipts.keep_json(&*entry.message) },
        (id, None) => Reference::Whole(id),
        (id, Some(_)) => Reference::Reduced(id, receipts.keep_json(&*entry.message)),
    };
    let messages = window.entries().enumerate().map(&mut reference).collect();
    Before { messages, dropped_turns, marker: marker.map(|words| receipts.keep(words)) }
}

fn plan(DecidedPlan { applied, decided_by }: &DecidedPlan, receipts: &mut Receipts) -> Plan {
    let sha256 = decided_by.identity().map(|identity| identity.sha256.clone());
    let recall = applied.recall.as_ref();
    let index = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Plan {
        decided_by: Decider { name: decided_by.name().to_owned(), sha256 },
        removed: applied.removed.clone(),
        replaced: applied.replaced.iter().map(|by| (by.index, receipts.keep_json(&*by.message))).collect(),
        marker: applied.marker.as_ref().map(|(marker, before)| (receipts.keep(marker.text()), *before)),
        recalled: recall.map(|recall| recall.ids.clone()).unwrap_or_default(),
        recall: recall.map(|recall| receipts.keep_json(&*recall.message)),
        compaction: applied.compaction.as_ref().map(|range| (index(range.start), index(range.end))),
        turns_dropped: applied.turns_dropped,
        tokens_before: applied.tokens_before,
        tokens_after: applied.tokens_after,
    }
}

fn calibrated(known: &Calibration) -> Calibrated {
    let (fit, bounds) = (known.fit(), known.bounds());
    Calibrated {
        factor: fit.factor(),
        overhead: fit.overhead(),
        refused: bounds.refused.map(|refused| (refused.size, refused.fits)),
        named: bounds.named.map(|named| named.tokens),
        answered: bounds.answered.map(|answered| answered.size),
    }
}
