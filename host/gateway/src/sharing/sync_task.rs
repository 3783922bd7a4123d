//! When it is done: at the start, whenever somebody changes something, and each second, for other hosts do not call.

use std::{sync::Arc, time::Duration};

use pmk_system::threads::offload;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::shared::{SharingError, Synced};

/// How often the store is asked what others have changed.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// What is changed is seldom one file at one moment: so long after the first is waited for the rest.
const GATHERS: Duration = Duration::from_millis(100);

/// A home that is kept the same as the store.
#[derive(Debug)]
pub struct SyncTask {
    ends: CancellationToken,
    task: JoinHandle<()>,
}

impl SyncTask {
    /// Has the home and the store the same, as far as can be, and begins to keep them so; `changed` tells that something has
    /// changed in the home, where somebody can tell. The home's lock has to be held until it has [ended](SyncTask::end).
    pub(super) async fn begin<S: Synced>(shared: S, changed: Arc<Notify>) -> SyncTask {
        let mut told = Told::default();
        let shared = pass(shared, &mut told).await;
        let ends = CancellationToken::new();
        let task = tokio::spawn(keep(shared, told, changed, ends.clone()));
        SyncTask { ends, task }
    }

    /// Offers what was changed last, and ends.
    pub async fn end(self) {
        self.ends.cancel();
        // It has panicked, which was printed.
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

/// What was said last of what goes wrong.
#[derive(Debug, Default)]
struct Told(Option<String>);

impl Told {
    fn outcome(&mut self, tell: fn(&str), done: Result<(), SharingError>) {
        let why = match done {
            Ok(()) => None,
            // Of a database that is away the store tells, and one that is lost ends the program.
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
