//! What a decision asks of the archive, paid for by what the host has to read.

use pmk_core::{Lookup, Plan, Transcript};

use crate::{
    prices,
    state::{State, Task, no_such},
};

impl State {
    /// Looks something up. What that took is known and charged for afterwards: no look takes long. Numbers of which there
    /// is nothing cost what the others do.
    pub(super) fn look_up<T>(
        &mut self,
        look: impl FnOnce(&mut Lookup, &Transcript, &Plan) -> T,
    ) -> wasmtime::Result<T> {
        let mut edits = 0;
        let found = match &self.task {
            Task::Prune { transcript, plan, .. } => {
                edits = plan.edits().len() as u64;
                look(&mut self.lookup, transcript, plan)
            }
            Task::Summarize { transcript, .. } => look(&mut self.lookup, transcript, &Plan::new()),
            _ => return Err(no_such("transcript")),
        };
        let work = prices::of_archive(self.lookup.take_work());
        self.meter.charge(prices::GIVE.saturating_add(prices::EDIT * edits).saturating_add(work))?;
        Ok(found)
    }
}
