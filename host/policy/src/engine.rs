//! The engines: how components are compiled, metered and instantiated.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails,
};

use crate::{failure::foreign_line, limits, prices};

/// The interval of the wall-clock check, which needs no precision.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// The maximum number of concurrent instances. Decisions are short: more of them than cores would only wait for each
/// other.
pub(crate) const MAX_INSTANCES: u32 = 16;
/// The maximum number of core modules of a component; an interpreter with an adapter has about ten.
const MAX_CORE_INSTANCES: u32 = 64;
/// The maximum number of memories of a component.
pub(crate) const MAX_MEMORIES: u32 = 4;
/// The maximum number of tables of a component.
pub(crate) const MAX_TABLES: u32 = 16;
/// The size of each memory in the pool: everything 32 bits can address, because only address space is reserved. The
/// limiter decides what an instance may actually use.
const POOL_MEMORY_BYTES: usize = 4 << 30;
/// What the engine may keep of an instance besides its memories and tables: 32 bytes for each function that can be
/// called through a table, about as much for an import, 16 for a global. Enough for twice as many functions as
/// [`limits::StructureLimits::DEFAULT`] allows. It is only compared: an instance takes what it needs.
const MOST_INSTANCE_BYTES: usize = 8 << 20;
/// How much memory of a pooled instance is zeroed for reuse instead of being returned to the system.
const KEEP_RESIDENT_BYTES: usize = 256 << 10;

/// The engine that runs decisions. It has no compiler: it runs code compiled by an engine of [`compiling`]. It uses a
/// pool of instances where the system allows reserving the address space.
pub(crate) fn serving() -> wasmtime::Result<Engine> {
    let without_compiler = |strategy| {
        let mut config = config();
        config.enable_compiler(false).allocation_strategy(strategy);
        Engine::new(&config)
    };
    let pooling = |table_elements| without_compiler(InstanceAllocationStrategy::Pooling(pool(table_elements)));
    pooling(limits::MOST_TABLE_ELEMENTS).or_else(|_| pooling(limits::DEFAULT_TABLE_ELEMENTS)).or_else(|error| {
        tracing::warn!("policies run without a pool of instances, which is slower: {error:#}");
        without_compiler(InstanceAllocationStrategy::OnDemand)
    })
}

/// An engine that compiles for those of [`serving`], and runs nothing.
pub(crate) fn compiling() -> wasmtime::Result<Engine> {
    let mut config = config();
    config.cranelift_opt_level(OptLevel::Speed).cranelift_nan_canonicalization(true);
    Engine::new(&config)
}

/// The configuration that both must share.
fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(prices::instructions())
        .epoch_interruption(true)
        .concurrency_support(false)
        .wasm_relaxed_simd(false)
        // Function names are enough for a backtrace. For line numbers the engine would read the component's debug
        // information again for each function on the stack of each trap, which a component can make take seconds and
        // gigabytes.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config
}

/// An engine's error on one line.
pub(crate) fn first_line(error: &wasmtime::Error) -> String {
    foreign_line(format!("{error:#}").lines().next().unwrap_or_default())
}

fn pool(table_elements: usize) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(MAX_INSTANCES)
        .max_core_instances_per_component(MAX_CORE_INSTANCES)
        .max_memories_per_component(MAX_MEMORIES)
        .max_tables_per_component(MAX_TABLES)
        .max_component_instance_size(MOST_INSTANCE_BYTES)
        .max_core_instance_size(MOST_INSTANCE_BYTES)
        .total_core_instances(MAX_INSTANCES * MAX_CORE_INSTANCES)
        .total_memories(MAX_INSTANCES * MAX_MEMORIES)
        .total_tables(MAX_INSTANCES * MAX_TABLES)
        .max_memories_per_module(MAX_MEMORIES)
        .max_tables_per_module(MAX_TABLES)
        // Tables are mapped to be written: where memory must not be overcommitted, all of them count, at most 2 GiB. The
        // limiter decides what an instance may actually use.
        .table_elements(table_elements)
        .max_memory_size(POOL_MEMORY_BYTES)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
        .table_keep_resident(KEEP_RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Starts the clock that stops components which have fuel left but take too long: it ticks while any of them has a permit,
/// so that an idle process sleeps. It ends when the permits are closed.
pub(crate) fn start_clock(permits: &Arc<Permits>, tick: impl Fn() + Send + 'static) -> std::io::Result<()> {
    let permits = Arc::clone(permits);
    thread::Builder::new().name("policy-clock".to_owned()).spawn(move || {
        while permits.await_use() {
            thread::sleep(TICK);
            tick();
        }
    })?;
    Ok(())
}

/// How many ticks a decision may take.
pub(crate) fn ticks(wall: Duration) -> u64 {
    u64::try_from(wall.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX / 2).min(u64::MAX / 2) + 1
}

/// Permits to have an instance, so that the pool is never exhausted.
#[derive(Debug)]
pub(crate) struct Permits {
    most: u32,
    state: Mutex<PermitState>,
    returned: Condvar,
    used: Condvar,
}

#[derive(Debug, Default)]
struct PermitState {
    in_use: u32,
    /// How many wait for a permit: without them, returning one takes no call of the kernel.
    waiting: u32,
    /// Whether the clock waits until one is in use.
    clock_waits: bool,
    is_closed: bool,
}

impl Permits {
    pub fn new(most: u32) -> Self {
        Permits { most, state: Mutex::default(), returned: Condvar::new(), used: Condvar::new() }
    }

    /// Waits for a permit. A holder waits for nothing else but the archive.
    pub fn acquire(&self) -> Permit<'_> {
        let mut state = self.state();
        while state.in_use == self.most {
            state.waiting += 1;
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.in_use += 1;
        self.wake_clock(&mut state);
        Permit(self)
    }

    /// Ends the clock.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        self.wake_clock(&mut state);
    }

    /// Waits until a permit is in use. Returns whether there will be any.
    fn await_use(&self) -> bool {
        let mut state = self.state();
        while state.in_use == 0 && !state.is_closed {
            state.clock_waits = true;
            state = self.used.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_closed
    }

    fn wake_clock(&self, state: &mut PermitState) {
        if std::mem::take(&mut state.clock_waits) {
            self.used.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, PermitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit for one instance.
#[derive(Debug)]
pub(crate) struct Permit<'a>(&'a Permits);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_use -= 1;
        if state.waiting > 0 {
            self.0.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use std::{
        sync::atomic::{AtomicU32, Ordering},
        time::Instant,
    };

    use wasmtime::component::Component;

    use super::*;

    #[test]
    fn a_returned_permit_goes_to_whoever_waits() {
        let permits = Permits::new(2);
        let most = Mutex::new((0, 0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _permit = permits.acquire();
                        {
                            let mut most = most.lock().unwrap();
                            most.0 += 1;
                            most.1 = most.0.max(most.1);
                        }
                        thread::yield_now();
                        most.lock().unwrap().0 -= 1;
                    }
                });
            }
        });
        assert_eq!(*most.lock().unwrap(), (0, 2));
    }

    #[test]
    fn the_clock_ticks_only_while_a_permit_is_in_use_and_ends_with_them() {
        let (permits, ticks) = (Arc::new(Permits::new(2)), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&ticks);
        let tick = move || {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        start_clock(&permits, tick).unwrap();
        let await_that = |is: &dyn Fn() -> bool| {
            let begun = Instant::now();
            while !is() {
                assert!(begun.elapsed() < Duration::from_secs(60), "in vain");
                thread::yield_now();
            }
        };
        let permit = permits.acquire();
        await_that(&|| ticks.load(Ordering::SeqCst) > 2);
        drop(permit);
        let seen = ticks.load(Ordering::SeqCst);
        thread::sleep(10 * TICK);
        assert!(ticks.load(Ordering::SeqCst) <= seen + 1, "only a tick that had begun");
        permits.close();
        await_that(&|| Arc::strong_count(&permits) == 1);
    }

    /// The smallest component.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn the_engine_that_decisions_run_on_cannot_compile() {
        let refused = Component::from_binary(&serving().unwrap(), EMPTY).err().unwrap();
        assert!(refused.to_string().contains("compil"), "{refused:#}");
        assert!(Component::from_binary(&compiling().unwrap(), EMPTY).is_ok());
    }
}
