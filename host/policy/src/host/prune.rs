//! `budget` and `plan`: the available tokens, and the edits to make.

use std::time::Instant;

use pmk_core::{Block, Marker, Plan, recall, replace::Reduction};
use wasmtime::component::Resource;

use crate::{
    contract::{
        bindings::pmk::policy::context::{HostBudget, HostPlan},
        handle,
    },
    input::PruneInput,
    prices,
    state::{State, Task, no_such},
};

type BudgetHandle = Resource<handle::Budget>;
type PlanHandle = Resource<handle::Plan>;

impl State {
    fn budget(&mut self) -> wasmtime::Result<&PruneInput> {
        self.meter.charge(prices::CALL)?;
        match &self.task {
            Task::Prune { input, .. } => Ok(input),
            _ => Err(no_such("budget")),
        }
    }

    fn plan(&mut self) -> wasmtime::Result<(&mut Plan, &pmk_core::Transcript)> {
        match &mut self.task {
            Task::Prune { transcript, plan, .. } => Ok((plan, transcript)),
            _ => Err(no_such("plan")),
        }
    }

    fn reduce(&mut self, index: u32, reduction: Reduction) -> wasmtime::Result<()> {
        let work = self.transcript()?.get(index).map_or(0, |entry| {
            // A tool call's input is not reduced, but it is copied and its tokens are counted.
            prices::COUNTED_BYTE * entry.source().blocks.iter().map(Block::bytes).sum::<u64>()
        });
        self.meter.charge(prices::REPLACE + work)?;
        let (plan, transcript) = self.plan()?;
        plan.replace(transcript, index, reduction);
        Ok(())
    }
}

impl HostBudget for State {
    fn limit(&mut self, _: BudgetHandle) -> wasmtime::Result<u64> {
        Ok(self.budget()?.limit)
    }

    fn window(&mut self, _: BudgetHandle) -> wasmtime::Result<u64> {
        Ok(self.budget()?.window)
    }

    fn marker_tokens(&mut self, _: BudgetHandle) -> wasmtime::Result<u32> {
        self.meter.charge(prices::FRAME)?;
        let transcript = self.transcript()?;
        let most_turns = transcript.dropped_turns().saturating_add(transcript.turns() as u32);
        Ok(Marker::new(most_turns).tokens())
    }

    fn recall_tokens(&mut self, _: BudgetHandle) -> wasmtime::Result<u32> {
        self.meter.charge(prices::FRAME)?;
        Ok(recall::frame_tokens(self.transcript()?.language()))
    }

    fn phase(&mut self, _: BudgetHandle) -> wasmtime::Result<u8> {
        Ok(self.budget()?.phase.code())
    }

    fn seed_may_go(&mut self, _: BudgetHandle) -> wasmtime::Result<bool> {
        Ok(self.budget()?.seed_may_go)
    }

    fn drop(&mut self, _: BudgetHandle) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl HostPlan for State {
    fn remove(&mut self, _: PlanHandle, start: u32, end: u32) -> wasmtime::Result<()> {
        self.meter.charge(prices::CALL)?;
        let (plan, transcript) = self.plan()?;
        plan.remove(transcript, start, end);
        Ok(())
    }

    fn shorten(&mut self, _: PlanHandle, index: u32, head: u32, tail: u32) -> wasmtime::Result<()> {
        self.reduce(index, Reduction::Shorten { head, tail })
    }

    fn digest(&mut self, _: PlanHandle, index: u32) -> wasmtime::Result<()> {
        self.reduce(index, Reduction::Digest)
    }

    fn marker(&mut self, _: PlanHandle, text: String) -> wasmtime::Result<()> {
        self.meter.charge(prices::CALL + prices::BYTE * text.len() as u64)?;
        self.plan()?.0.set_marker(text);
        Ok(())
    }

    fn tokens(&mut self, _: PlanHandle) -> wasmtime::Result<u64> {
        // The marker's estimate is cheap: its text is limited to 300 characters.
        let (plan, transcript) = self.plan()?;
        // The removed ranges are searched for an existing recall block, which the new one replaces.
        let looked_through = if plan.recalls().is_empty() { 0 } else { plan.edits().len() as u64 };
        let tokens = plan.tokens(transcript);
        self.meter.charge(prices::FRAME + prices::EDIT * looked_through)?;
        Ok(tokens)
    }

    fn compact(&mut self, _: PlanHandle, start: u32, end: u32) -> wasmtime::Result<()> {
        self.meter.charge(prices::CALL)?;
        self.plan()?.0.compact(start, end);
        Ok(())
    }

    fn recall(&mut self, _: PlanHandle, number: u32, max_chars: u32) -> wasmtime::Result<()> {
        let begun = Instant::now();
        match &mut self.task {
            Task::Prune { transcript, plan, .. } => self.lookup.recall(transcript, plan, number, max_chars),
            _ => return Err(no_such("plan")),
        }
        self.meter.note_query(begun.elapsed());
        let work = prices::of_archive(self.lookup.take_work());
        self.meter.charge(prices::CALL.saturating_add(work))
    }

    fn clear(&mut self, _: PlanHandle) -> wasmtime::Result<()> {
        let edits = self.plan()?.0.edits().len();
        self.meter.charge(prices::CALL + prices::EDIT * edits as u64)?;
        self.plan()?.0.clear();
        Ok(())
    }

    fn drop(&mut self, _: PlanHandle) -> wasmtime::Result<()> {
        Ok(())
    }
}
