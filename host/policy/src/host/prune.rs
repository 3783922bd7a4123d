//! `budget` and `plan`: how much room there is, and the edits to make.

use pmk_core::{Block, Marker, Plan, recall, replace::Reduction};
use serde_json::Value;
use wasmtime::component::Resource;

use super::{cost, cut};
use crate::{
    contract::{
        bindings::pmk::policy::context::{HostBudget, HostPlan},
        handle,
    },
    stack::PruneInput,
    state::{State, Task, no_such},
};

type BudgetHandle = Resource<handle::Budget>;
type PlanHandle = Resource<handle::Plan>;

/// The size of JSON, give or take.
fn json_bytes(value: &Value) -> u64 {
    const SMALL: u64 = 8;
    SMALL
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len() as u64,
            Value::Array(values) => values.iter().map(json_bytes).sum(),
            Value::Object(fields) => fields.iter().map(|(name, value)| name.len() as u64 + json_bytes(value)).sum(),
        }
}

impl State {
    fn budget(&mut self) -> wasmtime::Result<&PruneInput> {
        self.meter.charge(cost::CALL)?;
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
            let bytes = |block: &Block| match block {
                // It stays as it is, but it is copied and counted along.
                Block::ToolUse { input, .. } => json_bytes(input),
                Block::Text { .. } | Block::ToolResult { .. } => block.content().map_or(0, str::len) as u64,
            };
            cost::COUNTED_BYTE * entry.source().blocks.iter().map(bytes).sum::<u64>()
        });
        self.meter.charge(cost::CALL + work)?;
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
        self.meter.charge(cost::CALL * 10)?;
        let transcript = self.transcript()?;
        let most_turns = transcript.dropped_turns().saturating_add(transcript.turns() as u32);
        Ok(Marker::new(most_turns).tokens())
    }

    fn recall_tokens(&mut self, _: BudgetHandle) -> wasmtime::Result<u32> {
        self.meter.charge(cost::CALL * 10)?;
        Ok(recall::frame_tokens())
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
        let len = self.transcript()?.len();
        self.meter.charge(cost::CALL + cost::ELEMENT * cut(start, end, len).len() as u64)?;
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
        self.meter.charge(cost::CALL + cost::BYTE * text.len() as u64)?;
        self.plan()?.0.set_marker(text);
        Ok(())
    }

    fn tokens(&mut self, _: PlanHandle) -> wasmtime::Result<u64> {
        // The marker's own estimate is a bounded text: its words are cut off at 300 characters.
        let (plan, transcript) = self.plan()?;
        // What goes is looked through for a recall block that makes room for another.
        let looked_through = if plan.recalls().is_empty() { 0 } else { plan.edits().len() as u64 };
        let tokens = plan.tokens(transcript);
        self.meter.charge(cost::CALL * 10 + cost::ELEMENT * 20 * looked_through)?;
        Ok(tokens)
    }

    fn compact(&mut self, _: PlanHandle, start: u32, end: u32) -> wasmtime::Result<()> {
        self.meter.charge(cost::CALL)?;
        self.plan()?.0.compact(start, end);
        Ok(())
    }

    fn recall(&mut self, _: PlanHandle, number: u32, max_chars: u32) -> wasmtime::Result<()> {
        let before = self.lookup.work();
        match &mut self.task {
            Task::Prune { transcript, plan, .. } => self.lookup.recall(transcript, plan, number, max_chars),
            _ => return Err(no_such("plan")),
        }
        self.meter.charge(cost::CALL + self.lookup.work() - before)
    }

    fn clear(&mut self, _: PlanHandle) -> wasmtime::Result<()> {
        let edits = self.plan()?.0.edits().len();
        self.meter.charge(cost::CALL + cost::ELEMENT * edits as u64)?;
        self.plan()?.0.clear();
        Ok(())
    }

    fn drop(&mut self, _: PlanHandle) -> wasmtime::Result<()> {
        Ok(())
    }
}
