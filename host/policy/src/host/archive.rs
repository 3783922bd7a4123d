//! Archive queries of a decision, charged by what the host has to read.

use std::time::Instant;

use pmk_core::{Lookup, Plan, Transcript};

use crate::{
    prices,
    state::{State, Task, no_such},
};

impl State {
    /// Queries the archive. The work is known and charged afterwards, which is safe because no single query takes long.
    /// Numbers that do not exist cost as much as others.
    pub(super) fn look_up<T>(
        &mut self,
        look: impl FnOnce(&mut Lookup, &Transcript, &Plan) -> T,
    ) -> wasmtime::Result<T> {
        let (mut edits, begun) = (0, Instant::now());
        let found = match &self.task {
            Task::Prune { transcript, plan, .. } => {
                edits = plan.edits().len() as u64;
                look(&mut self.lookup, transcript, plan)
            }
            Task::Summarize { transcript, .. } => look(&mut self.lookup, transcript, &Plan::new()),
            _ => return Err(no_such("transcript")),
        };
        self.meter.note_query(begun.elapsed());
        let work = prices::of_archive(self.lookup.take_work());
        self.meter.charge(prices::GIVE.saturating_add(prices::EDIT * edits).saturating_add(work))?;
        Ok(found)
    }
}
