//! The runtime that policies are loaded into: one engine, one linker, one set of limits.

use std::{fmt, path::PathBuf, sync::Arc};

use pmk_artifacts::FolderError;
use wasmtime::{
    Engine,
    component::{Component, Linker},
};

use crate::{
    compile::{CacheStats, CancelFlag, CompilationCache, CompileError, Compiler, Taken},
    engine::{self, Permits},
    error::LoadError,
    host,
    limits::Limits,
    state::State,
    trust::Trust,
    wasi,
};

/// How to set up a [`Runtime`].
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Where compiled components are stored, so that a second start compiles nothing. Created if it does not exist.
    /// Without one they are kept as long as the runtime lives. A folder that cannot be used is a warning
    /// ([`Runtime::warnings`]); one that others can write to is an error, because its contents are executed.
    pub cache_dir: Option<PathBuf>,
    /// Limits on decisions and on compiling.
    pub limits: Limits,
}

impl RuntimeConfig {
    /// With default limits, and without a cache folder.
    pub fn new(compiler: Compiler) -> RuntimeConfig {
        RuntimeConfig { compiler, cache_dir: None, limits: Limits::default() }
    }
}

/// The runtime that policies are loaded into. Cheap to clone; clones share the engine.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
    limits: Limits,
    trust: Arc<Trust>,
    abandon: CancelFlag,
}

struct Shared {
    engine: Engine,
    linker: Linker<State>,
    workshop: CompilationCache,
    permits: Arc<Permits>,
    warnings: Vec<String>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.permits.close();
    }
}

impl Runtime {
    /// Sets up the engine and its clock.
    ///
    /// # Errors
    /// [`LoadError::Engine`] where the system does not allow executable memory or threads, and [`LoadError::Cache`]
    /// where others can write to the compile cache.
    pub fn new(config: RuntimeConfig) -> Result<Self, LoadError> {
        Runtime::offering(config, |_| ())
    }

    /// A runtime that offers more than the contract, namely what `add` adds.
    pub(crate) fn offering(config: RuntimeConfig, add: fn(&mut Linker<State>)) -> Result<Self, LoadError> {
        let mut warnings = Vec::new();
        let workshop = match CompilationCache::open(config.compiler, config.cache_dir.as_deref()) {
            Err(FolderError::NotOurs(problem)) => return Err(LoadError::Cache(problem)),
            Err(error) if config.cache_dir.is_some() => {
                let warning = format!("{error}; policies are compiled at every start");
                tracing::warn!("{warning}");
                warnings.push(warning);
                CompilationCache::open(config.compiler, None)
            }
            opened => opened,
        };
        let workshop = workshop.map_err(|error| match error {
            FolderError::NotOurs(problem) => LoadError::Cache(problem),
            error => LoadError::Engine { reason: error.to_string() },
        })?;
        let engine = engine::serving().map_err(cannot_set_up)?;
        let permits = Arc::new(Permits::new(engine::MAX_INSTANCES));
        let mut linker = Linker::new(&engine);
        host::add_to_linker(&mut linker).map_err(cannot_set_up)?;
        wasi::add_to_linker(&mut linker).map_err(cannot_set_up)?;
        add(&mut linker);
        // Last of all: only the runtime ends the clock.
        let ticking = engine.clone();
        engine::start_clock(&permits, move || ticking.increment_epoch())
            .map_err(|error| LoadError::Engine { reason: error.to_string() })?;
        Ok(Runtime {
            shared: Arc::new(Shared { engine, linker, workshop, permits, warnings }),
            limits: config.limits,
            trust: Arc::default(),
            abandon: CancelFlag::default(),
        })
    }

    /// The same engine with other limits and trust, for components that are loaded through it from now on.
    pub fn under(&self, limits: Limits, trust: Trust) -> Runtime {
        Runtime { limits, trust: Arc::new(trust), ..self.clone() }
    }

    /// The same runtime, with a flag that cancels loading: loading then ends with an error.
    pub fn until(&self, abandon: &CancelFlag) -> Runtime {
        Runtime { abandon: abandon.clone(), ..self.clone() }
    }

    /// The limits of a decision.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Which components may be loaded.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Deviations from the configuration; the runtime works nevertheless.
    pub fn warnings(&self) -> &[String] {
        &self.shared.warnings
    }

    /// How often the compile cache was used; `None` without a cache.
    pub fn cache_stats(&self) -> Option<CacheStats> {
        self.shared.workshop.stats()
    }

    /// Returns the component with these bytes, ready to be linked, and the resources that compiling used, if a child
    /// did it now.
    pub(crate) fn component(&self, sha256: &str, bytes: &[u8]) -> Result<(Component, Option<Taken>), CompileError> {
        self.shared.workshop.component(self.engine(), sha256, bytes, &self.limits.compile, &self.abandon)
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
