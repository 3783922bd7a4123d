//! `overflow` and `recovery`: a refused request, and what to try next.

use wasmtime::component::Resource;

use crate::{
    contract::{
        bindings::pmk::policy::context::{HostOverflow, HostRecovery},
        handle,
    },
    input::{OverflowInput, Rung},
    prices,
    state::{State, Task, no_such},
};

type OverflowHandle = Resource<handle::Overflow>;
type RecoveryHandle = Resource<handle::Recovery>;

impl State {
    fn overflow(&mut self) -> wasmtime::Result<&OverflowInput> {
        self.meter.charge(prices::CALL)?;
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
        self.meter.charge(prices::GIVE - prices::CALL)?;
        Ok(self.overflow()?.tried.iter().map(|rung| rung.code()).collect())
    }

    fn available(&mut self, _: OverflowHandle) -> wasmtime::Result<Vec<u8>> {
        self.meter.charge(prices::GIVE - prices::CALL)?;
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
        self.meter.charge(prices::CALL)?;
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
