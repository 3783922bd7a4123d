//! Compiles components, which are not trusted yet.
//!
//! A component of some kilobytes can make the compiler use all available memory and time. Therefore the engine that
//! runs decisions has no compiler. First the structure of a component is checked ([`structure`]); then a child process
//! with limits on its time and memory, and without access to anything else, compiles it ([`child`] is the child's side,
//! [`parent`] ours); the artifact is stored in a folder that nobody else can write to, and only artifacts from there
//! are executed ([`pmk_artifacts`]).

mod abandon;
mod child;
mod confine;
mod error;
mod parent;
pub(crate) mod structure;

use std::{
    fs::File,
    io::Write,
    path::Path,
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use pmk_artifacts::{Folder, FolderError, Kept};
use pmk_core::text::hex;
use sha2::{Digest, Sha256};
use wasmtime::{Engine, component::Component};

pub use self::{
    abandon::CancelFlag,
    child::{COMMAND, main},
    error::{CompileError, Exceeded, Resource},
    structure::TooMuch,
};
use crate::{engine, limits::CompileLimits};

/// How many components are compiled at once, each of which may use all its limits; others wait.
const AT_ONCE: usize = 4;

/// Where components are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// In a child process: this program again, whose `main` begins with [`main`]. For components from any source.
    Child,
    /// In this process, without limits: for the components of tests and benchmarks.
    Here,
}

/// How often the compile cache was used since the runtime was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStats {
    /// Components whose artifact was in the cache.
    pub hits: usize,
    /// Components that had to be compiled.
    pub misses: usize,
}

/// The resources that compiling a component used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Taken {
    /// Processor time, all threads together.
    pub cpu_ms: u64,
    /// The peak memory.
    pub peak_bytes: u64,
    /// How far the kernel isolated the compiler.
    pub confined: Confinement,
}

/// How far the kernel isolates a compiling child from files, network and other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confinement {
    /// From everything that we know of.
    Fully,
    /// From files, and from what else this kernel can restrict.
    Partly,
    /// Not at all; the resource limits hold nevertheless.
    No,
}

/// Compiles components and stores the artifacts.
#[derive(Debug)]
pub(crate) struct CompilationCache {
    compiler: Compiler,
    folder: Folder,
    hits: AtomicUsize,
    misses: AtomicUsize,
    /// Held while an artifact is read, because of the memory that this takes.
    reading: Mutex<()>,
    working: Mutex<usize>,
    done: Condvar,
}

impl CompilationCache {
    /// Opens the cache with a folder for artifacts; without one they are kept as long as this value lives.
    pub fn open(compiler: Compiler, folder: Option<&Path>) -> Result<CompilationCache, FolderError> {
        let folder = folder.map_or_else(Folder::scratch, Folder::open)?;
        let (hits, misses) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (reading, working, done) = (Mutex::new(()), Mutex::new(0), Condvar::new());
        Ok(CompilationCache { compiler, folder, hits, misses, reading, working, done })
    }

    /// How often the cache was used; `None` without a cache folder.
    pub fn stats(&self) -> Option<CacheStats> {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (!self.folder.is_scratch()).then(|| CacheStats { hits: read(&self.hits), misses: read(&self.misses) })
    }

    /// Returns the component with these bytes for this engine, which needs no compiler; and the resources that
    /// compiling used, if a child did it now.
    pub fn component(
        &self,
        engine: &Engine,
        sha256: &str,
        bytes: &[u8],
        limits: &CompileLimits,
        abandon: &CancelFlag,
    ) -> Result<(Component, Option<Taken>), CompileError> {
        if let Kept::Component(component) = self.load(sha256, engine)? {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok((component, None));
        }
        let _place = self.place(abandon)?;
        self.misses.fetch_add(1, Ordering::Relaxed);
        let staged = self.folder.stage()?;
        let file = staged.file().map_err(CompileError::Io)?;
        let taken = match self.compiler {
            Compiler::Child => Some(parent::compile(bytes, file, limits, abandon)?),
            Compiler::Here => {
                write_artifact(bytes, &compile(bytes)?, file).map_err(CompileError::Io)?;
                None
            }
        };
        staged.keep(sha256)?;
        match self.load(sha256, engine)? {
            Kept::Component(component) => Ok((component, taken)),
            // The artifact is for this engine, so the component requires more than a policy is given.
            Kept::Unfit(error) => {
                self.folder.remove(sha256);
                Err(CompileError::Invalid { reason: engine::first_line(&error) })
            }
            Kept::Nothing => Err(CompileError::Died { how: "its result disappeared at once".to_owned() }),
        }
    }

    fn load(&self, sha256: &str, engine: &Engine) -> Result<Kept, FolderError> {
        let _one_at_a_time = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.folder.load(sha256, engine)
    }

    /// Waits for permission to compile.
    fn place(&self, abandon: &CancelFlag) -> Result<Place<'_>, CompileError> {
        let mut working = self.working.lock().unwrap_or_else(PoisonError::into_inner);
        while *working >= AT_ONCE {
            if abandon.is_set() {
                return Err(CompileError::Abandoned);
            }
            working = self.done.wait_timeout(working, abandon::LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        *working += 1;
        Ok(Place(self))
    }
}

/// Permission to compile one component.
struct Place<'a>(&'a CompilationCache);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.working.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.done.notify_one();
    }
}

/// Compiles in this process.
fn compile(bytes: &[u8]) -> Result<Vec<u8>, CompileError> {
    let engine = engine::compiling().map_err(|error| CompileError::Died { how: format!("{error:#}") })?;
    engine.precompile_component(bytes).map_err(|error| CompileError::Invalid { reason: engine::first_line(&error) })
}

/// Writes the artifact of a component in the format that [`Folder::load`] reads.
fn write_artifact(component: &[u8], artifact: &[u8], mut file: File) -> std::io::Result<()> {
    file.write_all(&pmk_artifacts::seal(&hex(&Sha256::digest(component)), artifact))?;
    file.write_all(artifact)
}
