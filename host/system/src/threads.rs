//! Who does work that blocks: threads of its own, or nobody else.
//!
//! A gateway that serves people has others wait on threads. One whose every step is to come in the same order, as in a
//! simulation, lives in a runtime of one thread and does all of it there.

use std::{fmt, sync::Arc, time::Duration};

use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a disk takes for a commit, on the runtime's clock.
pub type Pace = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What works for something that has much to do.
#[derive(Clone, Default)]
pub enum Threads {
    /// Threads of its own.
    #[default]
    Own,
    /// Tasks of the runtime that it is used in, which has one thread. What they do takes as long as the pace says.
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

/// Does something that blocks, without keeping the runtime's other tasks waiting; a runtime of one thread has nobody
/// else to do it.
///
/// # Panics
/// The work does; so does work that waits for a thread, in a runtime of one: what is used there has [`Threads::None`].
pub async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and whoever waits with it.
            Err(_) => std::future::pending().await,
        },
    }
}
