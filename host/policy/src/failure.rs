//! Why a decision failed inside a component.

use std::{fmt, io};

use pmk_core::text;
use thiserror::Error;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// How many frames of a backtrace a one-line message shows.
const FRAMES_SHOWN: usize = 3;

/// The maximum displayed length of a name that the component chose, in characters. The name may be as long as the file,
/// and become longer when demangled.
const MAX_NAME_CHARS: usize = 100;

/// A function with so many of the innermost frames probably calls itself without end.
const RECURSIVE_FRAMES: usize = 6;

/// The maximum displayed length of a text that contains such names.
const MAX_LINE_CHARS: usize = 300;

/// Names in a component that are longer than this many bytes are not demangled.
const MAX_MANGLED_BYTES: usize = 4 << 10;

/// Why a component gave no answer. The layer below then decides (guard rule 8).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// It computed for too long; reproducible.
    #[error("used up its {limit} units of fuel")]
    OutOfFuel {
        /// The fuel that it had.
        limit: u64,
    },
    /// The wall clock stopped it although it had fuel left; not reproducible.
    #[error("was stopped after {limit_ms} ms with fuel left")]
    OutOfTime {
        /// The time that it had, in milliseconds.
        limit_ms: u64,
    },
    /// The wall clock stopped it because the archive took so long; not the component's fault, and not reproducible.
    #[error("was stopped after it had waited {waited_ms} ms for the archive")]
    SlowArchive {
        /// The time that queries which the archive did not answer at once took, in milliseconds.
        waited_ms: u64,
    },
    /// Its linear memories exceeded the limit.
    #[error("asked for {wanted} bytes of memory, but only {limit} are allowed")]
    OutOfMemory {
        /// The size of all its memories with the requested growth.
        wanted: usize,
        /// The limit.
        limit: usize,
    },
    /// Its tables exceeded the limit.
    #[error("asked for {wanted} table elements, but only {limit} are allowed")]
    OutOfTable {
        /// The size of all its tables with the requested growth.
        wanted: usize,
        /// The limit.
        limit: usize,
    },
    /// It passed more to the host in one call than the host copies.
    #[error("passed more than {limit} bytes to the host in one call")]
    HostAllocation {
        /// The limit.
        limit: usize,
    },
    /// It called `exit`, which ends only its own answer.
    #[error("called exit({code}) instead of returning")]
    Exit {
        /// The exit status.
        code: i32,
    },
    /// The system could not provide an instance; not the component's fault, and not reproducible.
    #[error("was not started: {reason}")]
    NotStarted {
        /// The system's error.
        reason: String,
    },
    /// It trapped: a panic, an invalid pointer, a stack overflow.
    #[error("trapped: {reason}{}{}", LastWords(.last_words), At(.backtrace))]
    Trapped {
        /// The trap, as the engine describes it.
        reason: String,
        /// Its last output at error level or on stderr: the message of a panic.
        last_words: Option<String>,
        /// Functions on its stack, innermost first, demangled.
        backtrace: Vec<String>,
    },
}

impl Failure {
    /// The [`kind`](Failure::kind) of what is not the component's fault.
    pub(crate) const SYSTEM: &'static str = "system";

    /// A short, stable name for events and counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Failure::OutOfFuel { .. } => "fuel",
            Failure::OutOfTime { .. } => "time",
            Failure::OutOfMemory { .. } => "memory",
            Failure::OutOfTable { .. } => "table",
            Failure::HostAllocation { .. } => "host-allocation",
            Failure::Exit { .. } => "exit",
            Failure::SlowArchive { .. } | Failure::NotStarted { .. } => Failure::SYSTEM,
            Failure::Trapped { .. } => "trap",
        }
    }

    /// Whether the same input fails in the same way on every machine.
    pub(crate) fn is_reproducible(&self) -> bool {
        !matches!(self, Failure::OutOfTime { .. } | Failure::SlowArchive { .. } | Failure::NotStarted { .. })
    }

    /// The same without what the component said last, which may quote a conversation.
    pub(crate) fn without_last_words(&self) -> Failure {
        let mut failure = self.clone();
        if let Failure::Trapped { last_words, .. } = &mut failure {
            *last_words = None;
        }
        failure
    }

    /// The functions on the component's stack, innermost first; empty unless it trapped.
    pub(crate) fn backtrace(&self) -> &[String] {
        match self {
            Failure::Trapped { backtrace, .. } => backtrace,
            _ => &[],
        }
    }
}

/// Errors that host functions and limiters raise to stop a component.
#[derive(Clone, Debug, Error)]
#[error(transparent)]
pub(crate) struct Stopped(pub Failure);

/// What is needed of a decision to classify an engine's error.
pub(crate) struct Circumstances {
    pub fuel: u64,
    pub wall_ms: u64,
    /// How long it waited for the archive, if the clock would not have stopped it without that.
    pub waited_ms: Option<u64>,
    pub host_allocation_bytes: usize,
    pub last_words: Option<String>,
}

/// Classifies an engine's error.
pub(crate) fn classify(error: &wasmtime::Error, circumstances: Circumstances) -> Failure {
    if let Some(Stopped(failure)) = error.downcast_ref() {
        return failure.clone();
    }
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return Failure::Exit { code: *code };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => return Failure::OutOfFuel { limit: circumstances.fuel },
        Some(Trap::Interrupt) => {
            let out_of_time = Failure::OutOfTime { limit_ms: circumstances.wall_ms };
            return circumstances.waited_ms.map_or(out_of_time, |waited_ms| Failure::SlowArchive { waited_ms });
        }
        _ => {}
    }
    let cause = error.root_cause().to_string();
    if error.root_cause().is::<io::Error>() {
        return Failure::NotStarted { reason: cause };
    }
    // The type of this error is private to the engine.
    if cause.contains("fuel allocated for hostcalls") {
        return Failure::HostAllocation { limit: circumstances.host_allocation_bytes };
    }
    let backtrace = error.downcast_ref::<WasmBacktrace>().map(frames).unwrap_or_default();
    let last_words = circumstances.last_words.map(|words| text::one_line(&words));
    let trap = foreign_line(&cause);
    // A compiled program keeps part of its stack in its memory, so too deep a recursion leaves the memory first.
    let is_overflow = error.downcast_ref::<Trap>() == Some(&Trap::MemoryOutOfBounds) && is_recursive(&backtrace);
    let reason = match is_overflow {
        true => format!("{trap}, probably a stack overflow: a function calls itself again and again"),
        false => trap,
    };
    Failure::Trapped { reason, last_words, backtrace }
}

/// Whether a function probably calls itself without end, directly or through others.
fn is_recursive(backtrace: &[String]) -> bool {
    let frames_of = |function: &String| backtrace.iter().filter(|frame| *frame == function).count();
    backtrace.iter().any(|function| frames_of(function) >= RECURSIVE_FRAMES)
}

/// Prefixes of the Rust functions that a panic passes through on its way to the trap.
const PANICKING: [&str; 5] =
    ["__rustc::", "std::panicking::", "std::sys::backtrace::", "core::panicking::", "rust_panic"];

/// The functions on the stack, innermost first, without those that only propagate a panic: its origin is what matters.
fn frames(backtrace: &WasmBacktrace) -> Vec<String> {
    let frames = named(backtrace);
    let began = frames.iter().position(|frame| !PANICKING.iter().any(|start| frame.starts_with(start))).unwrap_or(0);
    frames[began..].to_vec()
}

fn named(backtrace: &WasmBacktrace) -> Vec<String> {
    backtrace
        .frames()
        .iter()
        .map(|frame| {
            foreign_name(&match frame.func_name() {
                Some(name) if name.len() <= MAX_MANGLED_BYTES => format!("{:#}", rustc_demangle::demangle(name)),
                Some(name) => name.to_owned(),
                None => format!("function {}", frame.func_index()),
            })
        })
        .collect()
}

/// A name that the component chose, safe to display.
pub(crate) fn foreign_name(foreign: &str) -> String {
    foreign_text(foreign, MAX_NAME_CHARS)
}

/// A text with names that the component chose, safe to display.
pub(crate) fn foreign_line(foreign: &str) -> String {
    foreign_text(foreign, MAX_LINE_CHARS)
}

fn foreign_text(foreign: &str, max_chars: usize) -> String {
    let shown = text::head(foreign, max_chars);
    let more = if shown.len() < foreign.len() { "…" } else { "" };
    text::one_line(shown) + more
}

struct LastWords<'a>(&'a Option<String>);

impl fmt::Display for LastWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(words) => write!(f, ": {words}"),
            None => Ok(()),
        }
    }
}

struct At<'a>(&'a [String]);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(FRAMES_SHOWN)];
        if shown.is_empty() {
            return Ok(());
        }
        write!(f, " (in {})", shown.join(" < "))
    }
}
