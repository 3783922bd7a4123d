//! One decision: a fresh store, a fresh instance, one call, and its cost.

use std::time::{Duration, Instant};

use wasmtime::{
    AsContextMut, Store,
    component::{ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lower, Resource},
};

use crate::{
    contract::handle,
    engine,
    failure::{self, Circumstances, Failure},
    log::LogLine,
    record::ArchiveUse,
    runtime::Runtime,
    state::{State, Task},
    texts::TextsRead,
};

/// What a component borrows for the length of a call.
pub(crate) type Handle<T> = Resource<T>;

/// The parameters of each function of the contract; none returns anything.
pub(crate) type DescribeParams = (Handle<handle::Description>,);
pub(crate) type CapParams = (Handle<handle::Incoming>, Handle<handle::CapVerdict>);
pub(crate) type PruneParams = (Handle<handle::Transcript>, Handle<handle::Budget>, Handle<handle::Plan>);
pub(crate) type SummarizeParams = (Handle<handle::Transcript>, Handle<handle::Summary>);
pub(crate) type RecoverParams = (Handle<handle::Overflow>, Handle<handle::Recovery>);

/// A handle for one call. There is one resource of each kind, so handles need no numbers.
pub(crate) fn borrow<T: 'static>() -> Handle<T> {
    Resource::new_borrow(0)
}

/// The result of a call.
pub(crate) struct Answer {
    /// The inputs, and what the component wrote. Not usable after a failure.
    pub task: Task,
    pub failure: Option<Failure>,
    pub cost: Cost,
}

/// The cost of a call, and its log.
#[derive(Default)]
pub(crate) struct Cost {
    pub us: u64,
    pub fuel: u64,
    pub peak_bytes: u64,
    pub log: Vec<LogLine>,
    pub log_is_cut: bool,
    pub texts_read: TextsRead,
    pub archive: ArchiveUse,
}

/// Calls one function of a component in a fresh instance. `messages` is how many messages the decision is about.
pub(crate) fn ask<P>(
    runtime: &Runtime,
    pre: &InstancePre<State>,
    function: ComponentExportIndex,
    params: P,
    state: State,
) -> Answer
where
    P: ComponentNamedList + Lower + Send + Sync + 'static,
{
    run(runtime, pre, state, |store, instance| typed::<P>(store, instance, function)?.call(store, params))
}

/// Returns the function at an export, after checking its type.
pub(crate) fn typed<P>(
    store: &mut Store<State>,
    instance: &Instance,
    function: ComponentExportIndex,
) -> wasmtime::Result<wasmtime::component::TypedFunc<P, ()>>
where
    P: ComponentNamedList + Lower,
{
    instance.get_typed_func(store.as_context_mut(), function)
}

/// Creates an instance and lets `call` use it, within the limits.
pub(crate) fn run(
    runtime: &Runtime,
    pre: &InstancePre<State>,
    state: State,
    call: impl FnOnce(&mut Store<State>, &Instance) -> wasmtime::Result<()>,
) -> Answer {
    let limits = runtime.limits();
    let fuel = state.meter.fuel();
    let _permit = runtime.permits().acquire();
    let start = Instant::now();
    let mut store = Store::new(runtime.engine(), state);
    store.limiter(|state| &mut state.meter);
    store.set_hostcall_fuel(limits.host_allocation_bytes);
    store.set_epoch_deadline(engine::ticks(limits.wall));
    let result = store
        .set_fuel(fuel)
        .and_then(|()| pre.instantiate(&mut store))
        .and_then(|instance| call(&mut store, &instance));
    let left = store.get_fuel().unwrap_or(0);
    let took = start.elapsed();
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let used = fuel.saturating_sub(left).saturating_add(store.data().meter.host_fuel());
    // A database that pauses is no fault of the component. The clock may stop a decision up to a tick early.
    let waited = store.data().meter.waited();
    let is_archives = took.saturating_sub(waited) + engine::TICK < limits.wall;
    let failure = match &result {
        Err(error) => Some(failure::classify(
            error,
            Circumstances {
                fuel,
                wall_ms: milliseconds(limits.wall),
                waited_ms: is_archives.then(|| milliseconds(waited)),
                host_allocation_bytes: limits.host_allocation_bytes,
                last_words: store.data().with_log(|log| log.last_words()),
            },
        )),
        Ok(()) if used > fuel => Some(Failure::OutOfFuel { limit: fuel }),
        Ok(()) => None,
    };
    let state = store.into_data();
    let (log, log_is_cut) = state.with_log(|log| (log.take_lines(), log.is_cut()));
    let archive = ArchiveUse::of(&state.lookup, state.task.recalls());
    Answer {
        task: state.task,
        failure,
        cost: Cost {
            us,
            fuel: used.min(fuel),
            peak_bytes: state.meter.peak_bytes() as u64,
            log,
            log_is_cut,
            texts_read: state.texts_read,
            archive,
        },
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
