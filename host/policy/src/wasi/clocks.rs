//! Clocks, which stand still.

use wasmtime::{Result, component::Resource};
use wasmtime_wasi::{
    async_trait,
    p2::{
        DynPollable, Pollable,
        bindings::clocks::{
            monotonic_clock::{self, Duration, Instant},
            wall_clock::{self, Datetime},
        },
        subscribe,
    },
};

use super::Immediate;

/// The constant time of the wall clock: 2026-01-01T00:00:00Z, in seconds.
const EPOCH: u64 = 1_767_225_600;

impl wall_clock::Host for Immediate<'_> {
    fn now(&mut self) -> Result<Datetime> {
        self.meter.check()?;
        Ok(Datetime { seconds: EPOCH, nanoseconds: 0 })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        self.meter.check()?;
        Ok(Datetime { seconds: 1, nanoseconds: 0 })
    }
}

impl monotonic_clock::Host for Immediate<'_> {
    fn now(&mut self) -> Result<Instant> {
        self.meter.check()?;
        Ok(0)
    }

    fn resolution(&mut self) -> Result<Duration> {
        self.meter.check()?;
        Ok(1)
    }

    fn subscribe_instant(&mut self, _: Instant) -> Result<Resource<DynPollable>> {
        self.alarm()
    }

    fn subscribe_duration(&mut self, _: Duration) -> Result<Resource<DynPollable>> {
        self.alarm()
    }
}

impl Immediate<'_> {
    fn alarm(&mut self) -> Result<Resource<DynPollable>> {
        self.meter.check()?;
        let due = self.table.push(Due)?;
        subscribe(self.table, due)
    }
}

/// A timer that has expired already.
struct Due;

#[async_trait]
impl Pollable for Due {
    async fn ready(&mut self) {}
}
