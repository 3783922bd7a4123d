//! `overflow` and `recovery`: a refused request, and what to try next.

use wasmtime::component::Resource;

use super::cost;
use crate::{
    contract::{
        bindings::pmk::policy::context::{HostOverflow, HostRecovery},
        handle,
    },
    stack::{OverflowInput, Rung},
    state::{State, Task, no_such},
};

type OverflowHandle = Resource<handle::Overflow>;
type RecoveryHandle = Resource<handle::Recovery>;

impl State {
    fn overflow(&mut self) -> wasmtime::Result<&OverflowInput> {
        self.meter.charge(cost::CALL)?;
        match &self.task {
            Task::Recover { overflow, .. } => Ok(overflow),
            _ => Err(no_such("overflow")),
        }
    }
}

impl HostOverflow for State {
    fn phase(&mut self, _: OverflowHandle) -> wasmtime::Result<u8> {
        Ok(self.overflow()?.phase.code())
    }

    fn tried(&mut self, _: OverflowHandle) -> wasmtime::Result<Vec<u8>> {
        Ok(self.overflow()?.tried.iter().map(|rung| rung.code()).collect())
    }

    fn available(&mut self, _: OverflowHandle) -> wasmtime::Result<Vec<u8>> {
        let rungs = self.overflow()?.available.iter().filter(|&&rung| rung != Rung::GiveUp);
        Ok(rungs.chain([&Rung::GiveUp]).map(|rung| rung.code()).collect())
    }

    fn observed_tokens(&mut self, _: OverflowHandle) -> wasmtime::Result<Option<u64>> {
        Ok(self.overflow()?.observed_tokens)
    }

    fn allowed_tokens(&mut self, _: OverflowHandle) -> wasmtime::Result<Option<u64>> {
        Ok(self.overflow()?.allowed_tokens)
    }

    fn drop(&mut self, _: OverflowHandle) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl HostRecovery for State {
    fn choose(&mut self, _: RecoveryHandle, rung: u8) -> wasmtime::Result<()> {
        self.meter.charge(cost::CALL)?;
        match &mut self.task {
            Task::Recover { chosen, .. } => {
                *chosen = Some(rung);
                Ok(())
            }
            _ => Err(no_such("recovery")),
        }
    }

    fn drop(&mut self, _: RecoveryHandle) -> wasmtime::Result<()> {
        Ok(())
    }
}
