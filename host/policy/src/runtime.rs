//! The runtime that policies are loaded into: one engine, one linker, one set of limits.

use std::{fmt, path::PathBuf, sync::Arc};

use wasmtime::{Cache, Engine, component::Linker};

use crate::{
    engine::{self, Permits},
    error::LoadError,
    host,
    limits::Limits,
    state::State,
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

/// The runtime that policies are loaded into. Cheap to clone; clones are the same runtime.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    engine: Engine,
    linker: Linker<State>,
    limits: Limits,
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
        Ok(Runtime(Arc::new(Inner {
            engine,
            linker,
            limits: config.limits,
            cache,
            permits: Permits::new(engine::MAX_INSTANCES),
            warnings,
        })))
    }

    /// What each decision may use.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// What was not as configured; the runtime works all the same.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// How often the compile cache helped; `None` without a cache.
    pub fn cache_stats(&self) -> Option<CacheStats> {
        self.0.cache.as_ref().map(|cache| CacheStats { hits: cache.cache_hits(), misses: cache.cache_misses() })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn linker(&self) -> &Linker<State> {
        &self.0.linker
    }

    pub(crate) fn permits(&self) -> &Permits {
        &self.0.permits
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

fn cannot_set_up(error: wasmtime::Error) -> LoadError {
    LoadError::Engine { reason: format!("{error:#}") }
}
