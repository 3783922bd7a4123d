//! `summary`: what a fresh session starts from.

use wasmtime::component::Resource;

use crate::{
    contract::{bindings::pmk::policy::context::HostSummary, handle},
    prices,
    state::{State, SummaryDraft, Task, no_such},
};

type Handle = Resource<handle::Summary>;

impl State {
    fn summary(&mut self) -> wasmtime::Result<&mut SummaryDraft> {
        match &mut self.task {
            Task::Summarize { summary, .. } => Ok(summary),
            _ => Err(no_such("summary")),
        }
    }
}

impl HostSummary for State {
    fn max_tokens(&mut self, _: Handle) -> wasmtime::Result<u32> {
        self.meter.charge(prices::CALL)?;
        Ok(self.summary()?.max_tokens)
    }

    fn append(&mut self, _: Handle, text: String) -> wasmtime::Result<()> {
        self.meter.charge(prices::CALL + prices::COUNTED_BYTE * text.len() as u64)?;
        self.summary()?.append(&text);
        Ok(())
    }

    fn drop(&mut self, _: Handle) -> wasmtime::Result<()> {
        Ok(())
    }
}
