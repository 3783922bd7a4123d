//! When it is done: at the start, whenever somebody changes something, and each second, for other hosts do not call.

use std::{sync::Arc, time::Duration};

use pmk_system::{clock::Clock, home::HomeLock, threads::offload};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{Sharing, SharingError};
use crate::store::Store;

/// How often the store is asked what others have changed.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// What is changed is seldom one file at one moment: so long after the first is waited for the rest.
const GATHERS: Duration = Duration::from_millis(100);

/// A home that is kept the same as the store.
#[derive(Debug)]
pub struct Keeping {
    ends: CancellationToken,
    task: JoinHandle<()>,
}

impl Keeping {
    /// Has the home and the store the same, as far as can be, and begins to keep them so. The lock has to be held until it has
    /// [ended](Keeping::end).
    ///
    /// # Errors
    /// The folder of atoms cannot be made.
    pub async fn begin(lock: &HomeLock, store: Store, clock: Clock) -> Result<Keeping, SharingError> {
        let changed = Arc::new(Notify::new());
        let wake = Arc::clone(&changed);
        let sharing = Sharing::open(lock, store, clock, move || wake.notify_one())?;
        let mut told = Told::default();
        let sharing = pass(sharing, &mut told).await;
        let ends = CancellationToken::new();
        let task = tokio::spawn(keep(sharing, told, changed, ends.clone()));
        Ok(Keeping { ends, task })
    }

    /// Offers what was changed last, and ends.
    pub async fn end(self) {
        self.ends.cancel();
        // It has panicked, which was printed.
        let _ = self.task.await;
    }
}

async fn keep(mut sharing: Sharing, mut told: Told, changed: Arc<Notify>, ends: CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = ends.cancelled() => break,
            () = changed.notified() => tokio::time::sleep(GATHERS).await,
            () = tokio::time::sleep(ASK_EVERY) => {}
        }
        sharing = pass(sharing, &mut told).await;
    }
    pass(sharing, &mut told).await;
}

async fn pass(mut sharing: Sharing, told: &mut Told) -> Sharing {
    let (sharing, done) = offload(move || {
        let done = sharing.pass();
        (sharing, done)
    })
    .await;
    told.outcome(done);
    sharing
}

/// What was said last of what goes wrong.
#[derive(Debug, Default)]
struct Told(Option<String>);

impl Told {
    fn outcome(&mut self, done: Result<(), SharingError>) {
        let why = match done {
            Ok(()) => None,
            // Of a database that is away the store tells, and one that is lost ends the program.
            Err(SharingError::Store(error)) if error.is_passing() || error.is_lost() => return,
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = &why
            && self.0.as_ref() != Some(why)
        {
            tracing::warn!("atoms are not shared with other hosts for the moment: {why}");
        }
        self.0 = why;
    }
}
