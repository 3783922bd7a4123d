//! Schedules the passes: at the start, whenever something changes in the home, and every second, because other
//! hosts send no notification.

use std::{sync::Arc, time::Duration};

use pmk_system::threads::offload;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::shared::{SharingError, Synced};

/// How often the store is asked for changes by others.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Usually several files change together, so a pass waits this long after the first change for the rest.
const GATHERS: Duration = Duration::from_millis(100);

/// Keeps a home and the store in step.
#[derive(Debug)]
pub struct SyncTask {
    ends: CancellationToken,
    task: JoinHandle<()>,
}

impl SyncTask {
    /// Brings the home and the store in step as far as possible, and begins to keep them so; `changed` reports
    /// changes in the home, where they are detected. The home's lock must be held until the task has
    /// [ended](SyncTask::end).
    pub(super) async fn begin<S: Synced>(shared: S, changed: Arc<Notify>) -> SyncTask {
        let mut told = Told::default();
        let shared = pass(shared, &mut told).await;
        let ends = CancellationToken::new();
        let task = tokio::spawn(keep(shared, told, changed, ends.clone()));
        SyncTask { ends, task }
    }

    /// Offers the last changes, and ends the task.
    pub async fn end(self) {
        self.ends.cancel();
        // It fails only if the task has panicked, which was printed.
        let _ = self.task.await;
    }
}

async fn keep<S: Synced>(mut shared: S, mut told: Told, changed: Arc<Notify>, ends: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = ends.cancelled() => break,
            () = changed.notified() => tokio::time::sleep(GATHERS).await,
            () = tokio::time::sleep(ASK_EVERY) => {}
        }
        shared = pass(shared, &mut told).await;
    }
    pass(shared, &mut told).await;
}

async fn pass<S: Synced>(mut shared: S, told: &mut Told) -> S {
    let (shared, done) = offload(move || {
        let done = shared.pass();
        (shared, done)
    })
    .await;
    told.outcome(S::tell, done);
    shared
}

/// The last problem that was logged.
#[derive(Debug, Default)]
struct Told(Option<String>);

impl Told {
    fn outcome(&mut self, tell: fn(&str), done: Result<(), SharingError>) {
        let why = match done {
            Ok(()) => None,
            // The store itself reports a database that is unreachable, and a lost one ends the program.
            Err(SharingError::Store(error)) if error.is_passing() || error.is_lost() => return,
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = &why
            && self.0.as_ref() != Some(why)
        {
            tell(why);
        }
        self.0 = why;
    }
}
