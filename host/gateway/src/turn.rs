//! One turn, from a stored question to a delivered reply. The steps, in order, one file each:
//!
//! 1. [`admit`]: is there anything to do at all?
//! 2. [`gather`]: the conversation as it stands, and the new message.
//! 3. [`budget`]: the policy decides, the guard checks, the window is edited. Before the model call.
//! 4. [`ask`]: the model answers; [`recover`] when it says that the prompt was too long.
//! 5. [`record`]: answer, usage, session and outbox in one transaction.
//! 6. [`deliver`]: split for the front, take the placeholder's place, mark it delivered.
//!
//! Data flows down once; no step reaches back.

mod admit;
mod ask;
mod budget;
mod deliver;
mod gather;
mod record;
mod recover;

use std::time::Duration;

use crate::{
    front::FrontError,
    gateway::Gateway,
    store::{InboxId, StoreError},
};
use admit::Admitted;
pub(crate) use gather::{Room, SYSTEM_PROMPT};

/// How long to wait before a turn that could not go on is tried again; doubled each time up to the
/// last.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
];

/// Why a turn could not be finished now. Nothing is lost: what it has done is stored.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Front(#[from] FrontError),
}

impl TurnError {
    /// How long the other side asked us to wait.
    fn retry_after(&self) -> Duration {
        match self {
            TurnError::Front(FrontError::Transient { retry_after, .. }) => retry_after.unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

/// Takes one message through all steps. A full disk or a Slack that is down holds up this conversation
/// alone, until it works again or the gateway stops; the next start goes on from what is stored.
pub(crate) async fn run(gateway: &Gateway, inbox: InboxId) {
    let mut pauses = PAUSES.iter().chain(PAUSES.last().into_iter().cycle());
    loop {
        let pause = match steps(gateway, inbox).await {
            Ok(()) => return,
            Err(TurnError::Front(FrontError::Closed)) => {
                gateway.stop.cancel();
                return;
            }
            Err(error) => {
                tracing::warn!(%inbox, %error, "the turn is held up and will be tried again");
                pauses.next().copied().unwrap_or_default().max(error.retry_after())
            }
        };
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn steps(gateway: &Gateway, inbox: InboxId) -> Result<(), TurnError> {
    let answered = match admit::admit(gateway, inbox).await? {
        Admitted::Nothing => return Ok(()),
        Admitted::Deliver(answered) => answered,
        Admitted::Ask(turn) => {
            let gathered = gather::gather(gateway, turn);
            let (budgeted, placeholder) =
                tokio::join!(budget::budget(gateway, &gathered), deliver::placeholder(gateway, &gathered.turn));
            let asked = ask::ask(gateway, &gathered, budgeted?).await?;
            record::record(gateway, gathered, asked, placeholder?).await?
        }
    };
    deliver::deliver(gateway, answered).await
}
