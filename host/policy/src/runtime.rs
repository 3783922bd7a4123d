//! The runtime that policies are loaded into: one engine, one linker, one set of limits.

use std::{fmt, path::PathBuf, sync::Arc};

use wasmtime::{Cache, Engine, component::Linker};

use crate::{
    engine::{self, Permits},
    error::LoadError,
    host,
    limits::Limits,
    state::State,
    trust::Trust,
    wasi,
};

/// How to set up a [`Runtime`].
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig {
    /// Where compiled components are kept, so that a second start compiles nothing. Made if it does not exist.
    /// Without one every load compiles. One that cannot be used is a warning ([`Runtime::warnings`]).
    pub cache_dir: Option<PathBuf>,
    /// What each decision may use.
    pub limits: Limits,
}

/// The runtime that policies are loaded into. Cheap to clone; clones share the engine.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
    limits: Limits,
    trust: Arc<Trust>,
}

struct Shared {
    engine: Engine,
    linker: Linker<State>,
    cache: Option<Cache>,
    permits: Permits,
    warnings: Vec<String>,
}

/// How often the compile cache helped since the runtime was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStats {
    /// Components that were found compiled.
    pub hits: usize,
    /// Components that had to be compiled.
    pub misses: usize,
}

impl Runtime {
    /// Sets up the engine and its clock.
    ///
    /// # Errors
    /// [`LoadError::Engine`], where the system allows neither executable memory nor threads.
    pub fn new(config: RuntimeConfig) -> Result<Self, LoadError> {
        Runtime::offering(config, |_| ())
    }

    /// A runtime that offers more than the contract: what `add` adds.
    pub(crate) fn offering(config: RuntimeConfig, add: fn(&mut Linker<State>)) -> Result<Self, LoadError> {
        let mut warnings = Vec::new();
        let cache = config.cache_dir.and_then(|dir| match engine::open_cache(&dir) {
            Ok(cache) => Some(cache),
            Err(warning) => {
                tracing::warn!("{warning}; policies are compiled at every start");
                warnings.push(warning);
                None
            }
        });
        let engine = engine::build(cache.as_ref()).map_err(cannot_set_up)?;
        engine::start_ticker(&engine).map_err(|error| LoadError::Engine { reason: error.to_string() })?;
        let mut linker = Linker::new(&engine);
        host::add_to_linker(&mut linker).map_err(cannot_set_up)?;
        wasi::add_to_linker(&mut linker).map_err(cannot_set_up)?;
        add(&mut linker);
        let permits = Permits::new(engine::MAX_INSTANCES);
        Ok(Runtime {
            shared: Arc::new(Shared { engine, linker, cache, permits, warnings }),
            limits: config.limits,
            trust: Arc::default(),
        })
    }

    /// The same engine under other rules, for what is loaded through it from now on.
    pub fn under(&self, limits: Limits, trust: Trust) -> Runtime {
        Runtime { shared: self.shared.clone(), limits, trust: Arc::new(trust) }
    }

    /// What each decision may use.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Which components may be loaded.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// What was not as configured; the runtime works all the same.
    pub fn warnings(&self) -> &[String] {
        &self.shared.warnings
    }

    /// How often the compile cache helped; `None` without a cache.
    pub fn cache_stats(&self) -> Option<CacheStats> {
        self.shared.cache.as_ref().map(|cache| CacheStats { hits: cache.cache_hits(), misses: cache.cache_misses() })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    pub(crate) fn linker(&self) -> &Linker<State> {
        &self.shared.linker
    }

    pub(crate) fn permits(&self) -> &Permits {
        &self.shared.permits
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("limits", &self.limits).finish_non_exhaustive()
    }
}

fn cannot_set_up(error: wasmtime::Error) -> LoadError {
    LoadError::Engine { reason: format!("{error:#}") }
}
