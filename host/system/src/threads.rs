//! Where blocking work runs: on separate threads, or on the runtime's only thread.
//!
//! A gateway in operation uses separate threads. One whose every step must happen in the same order, as in a
//! simulation, has a runtime with one thread and does all work there.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a disk takes for a commit, on the runtime's clock.
pub type Pace = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The threads for blocking work.
#[derive(Clone, Default)]
pub enum Threads {
    /// Separate threads.
    #[default]
    Own,
    /// Tasks of the current runtime, which has one thread. The pace determines how long their work takes.
    None(Pace),
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Threads::Own => "Own",
            Threads::None(_) => "None",
        })
    }
}

/// Runs blocking work without blocking the runtime's other tasks; on a runtime with one thread, it runs in place.
///
/// # Panics
/// If the work panics; also on a one-thread runtime if the work waits for a thread, so that [`Threads::None`] must be
/// used there.
pub async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    let done = on_another_thread(Box::new(|| Box::new(work()))).await;
    *done.downcast().expect("it is what the work has returned")
}

/// Runs work of any type, so that what runs it is compiled once and not once for each type.
async fn on_another_thread(work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>) -> Box<dyn Any + Send> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and the caller with it.
            Err(_) => std::future::pending().await,
        },
    }
}
