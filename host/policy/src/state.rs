//! The state of one decision: its budget, its log, and the resources that the component borrows.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pmk_core::{CapVerdict, Lookup, Plan, Quote, Transcript};
use wasmtime::{ResourceLimiter, component::ResourceTable};
use wasmtime_wasi::WasiCtx;

use crate::{
    description::Draft,
    engine,
    failure::{Failure, Stopped},
    input::{IncomingInput, OverflowInput, PruneInput},
    limits::Limits,
    log::Log,
    settings::Settings,
    texts::TextsRead,
};

/// The maximum number of handles that a component may hold at once.
const MAX_HANDLES: usize = 1_000;

/// The data of a store.
pub(crate) struct State {
    pub task: Task,
    pub settings: Settings,
    pub meter: Meter,
    pub log: Arc<Mutex<Log>>,
    pub texts_read: TextsRead,
    pub lookup: Lookup,
    /// Created on the component's first use of WASI; most never use it.
    pub wasi: Option<Box<Wasi>>,
}

/// What is being decided: the inputs, and the answer so far.
pub(crate) enum Task {
    Describe(Draft),
    Prune { transcript: Arc<Transcript>, input: PruneInput, plan: Plan },
    Cap { incoming: IncomingInput, size: TextSize, verdict: CapVerdict },
    Recover { overflow: OverflowInput, chosen: Option<u8> },
    Summarize { transcript: Arc<Transcript>, summary: SummaryDraft },
}

impl Task {
    /// The messages that a plan shows again.
    pub fn recalls(&self) -> &[(u32, Option<Quote>)] {
        match self {
            Task::Prune { plan, .. } => plan.recalls(),
            _ => &[],
        }
    }
}

/// What WASI needs in a decision.
pub(crate) struct Wasi {
    pub ctx: WasiCtx,
    pub table: ResourceTable,
}

impl Default for Wasi {
    fn default() -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        Wasi { ctx: WasiCtx::builder().build(), table }
    }
}

/// The size of a text, computed on the component's first query.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextSize {
    pub chars: Option<u32>,
    pub tokens: Option<u32>,
}

/// A summary while the component writes it.
#[derive(Debug)]
pub(crate) struct SummaryDraft {
    pub max_tokens: u32,
    pub text: String,
    /// Whether something has been left out already.
    pub cut: bool,
}

impl SummaryDraft {
    /// How many bytes per token are kept before the text is counted: no text has more, because a space after a space,
    /// the cheapest character of the estimate, costs 0.02 tokens.
    const MAX_BYTES_PER_TOKEN: usize = 50;

    pub fn append(&mut self, text: &str) {
        let max = (self.max_tokens as usize).saturating_add(1).saturating_mul(Self::MAX_BYTES_PER_TOKEN);
        let left = max.saturating_sub(self.text.len());
        let kept = pmk_core::text::head_bytes(text, left);
        self.cut |= kept.len() < text.len();
        self.text.push_str(kept);
    }
}

impl State {
    pub fn new(task: Task, settings: Settings, limits: &Limits, fuel: u64) -> Self {
        State {
            task,
            settings,
            meter: Meter::new(limits, fuel),
            log: Arc::new(Mutex::new(Log::new(limits.log_bytes))),
            texts_read: TextsRead::default(),
            lookup: Lookup::default(),
            wasi: None,
        }
    }

    /// Runs `f` on the log. A poisoned lock is accepted: a panic cannot have left the log in a harmful state.
    pub fn with_log<R>(&self, f: impl FnOnce(&mut Log) -> R) -> R {
        f(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The transcript of this decision.
    pub fn transcript(&self) -> wasmtime::Result<&Arc<Transcript>> {
        match &self.task {
            Task::Prune { transcript, .. } | Task::Summarize { transcript, .. } => Ok(transcript),
            _ => Err(no_such("transcript")),
        }
    }
}

/// A component cannot create handles, so this is a bug in the host or the engine; the decision fails.
pub(crate) fn no_such(resource: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("this decision has no {resource}"))
}

/// Counts what a decision uses in addition to the fuel that the engine counts.
#[derive(Debug)]
pub(crate) struct Meter {
    fuel: u64,
    host_fuel: u64,
    memory_bytes: usize,
    memory_limit: usize,
    peak_bytes: usize,
    table_elements: usize,
    table_limit: usize,
    waited: Duration,
}

impl Meter {
    fn new(limits: &Limits, fuel: u64) -> Self {
        Meter {
            fuel,
            host_fuel: 0,
            memory_bytes: 0,
            memory_limit: limits.memory_bytes,
            peak_bytes: 0,
            table_elements: 0,
            table_limit: limits.table_elements,
            waited: Duration::ZERO,
        }
    }

    /// Charges the work of a host call.
    ///
    /// # Errors
    /// When host calls alone exceed the fuel of the decision. That both together do not exceed it is checked when the
    /// decision ends, so the sum decides, whatever the order of calls.
    pub fn charge(&mut self, fuel: u64) -> wasmtime::Result<()> {
        self.note(fuel);
        self.check()
    }

    /// As [`Meter::charge`], for work that was noted before.
    ///
    /// # Errors
    /// As for [`Meter::charge`].
    pub fn check(&self) -> wasmtime::Result<()> {
        if self.host_fuel > self.fuel {
            return Err(Stopped(Failure::OutOfFuel { limit: self.fuel }).into());
        }
        Ok(())
    }

    /// Notes the work of a host call that cannot be refused. It counts like all other work.
    pub fn note(&mut self, fuel: u64) {
        self.host_fuel = self.host_fuel.saturating_add(fuel);
    }

    /// The fuel of the decision.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    pub fn host_fuel(&self) -> u64 {
        self.host_fuel
    }

    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes
    }

    /// Notes how long the archive took for one query. Fuel pays for its work, but cannot know how long a database pauses.
    /// Queries that are only many are the component's own doing.
    pub fn note_query(&mut self, took: Duration) {
        if took > engine::TICK {
            self.waited = self.waited.saturating_add(took);
        }
    }

    /// How long it waited for a database that paused.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if wanted > self.memory_limit {
            return Err(Stopped(Failure::OutOfMemory { wanted, limit: self.memory_limit }).into());
        }
        self.memory_bytes = wanted;
        self.peak_bytes = self.peak_bytes.max(wanted);
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let wanted = self.table_elements.saturating_add(desired.saturating_sub(current));
        if wanted > self.table_limit {
            return Err(Stopped(Failure::OutOfTable { wanted, limit: self.table_limit }).into());
        }
        self.table_elements = wanted;
        Ok(true)
    }
}
