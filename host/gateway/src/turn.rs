//! One turn, from a stored question to a delivered reply. The steps, in order, one file each:
//!
//! 1. [`admit`]: is there anything to do at all?
//! 2. [`gather`]: the conversation as it stands, what is known about it, and the new message.
//! 3. [`budget`]: the policy decides, the guard checks, the window is edited. Before the model call.
//! 4. [`ask`]: the model answers; 5. [`recover`] when it says that the prompt was too long.
//! 6. [`act`]: the model wants something done first; then 3 to 5 once more.
//! 7. [`record`]: answer, usage, session and outbox in one transaction.
//! 8. [`deliver`]: split for the front, take the placeholder's place, mark it delivered.
//!
//! [`absorb`] is what is different where the message is an answer that somebody waits for. A turn under way
//! is a [`work::Work`] with its [`window`].

mod absorb;
mod act;
mod admit;
mod ask;
mod budget;
mod deliver;
mod gather;
mod record;
mod recover;
mod window;
mod work;

use std::time::Duration;

use crate::{
    front::FrontError,
    gateway::Gateway,
    knowledge::LibraryError,
    store::{InboxId, OpenTurn, StoreError},
};
use act::Acted;
use admit::Admitted;
use ask::Asked;
use record::Outcome;
pub(crate) use work::Room;
use work::Work;

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
    #[error(transparent)]
    Library(#[from] LibraryError),
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
        Admitted::Ask(turn) => answer(gateway, turn).await?,
    };
    deliver::deliver(gateway, answered).await
}

/// Steps 2 to 7.
async fn answer(gateway: &Gateway, mut turn: OpenTurn) -> Result<crate::store::Answered, TurnError> {
    let live = std::mem::take(&mut turn.live);
    let (placeholder, begun) = tokio::join!(deliver::placeholder(gateway, &turn), async {
        let mut work = gather::gather(gateway, &turn, live).await?;
        budget::budget(gateway, &mut work).await?;
        Ok::<_, TurnError>(work)
    });
    let mut work = begun?;
    work.placeholder = placeholder?;
    let learning = async {
        match &turn.absorbs {
            Some(marker) => Some(absorb::learn(gateway, marker, &turn.inbound).await),
            None => None,
        }
    };
    let (outcome, learnt) = tokio::join!(converse(gateway, &mut work), learning);
    // From here on the placeholder belongs to the answer.
    if let Some(progress) = work.progress.take() {
        progress.finish().await;
    }
    record::record(gateway, work, outcome?, learnt).await
}

/// Steps 4 to 6, until there are words for the person.
async fn converse(gateway: &Gateway, work: &mut Work<'_>) -> Result<Outcome, TurnError> {
    loop {
        let answer = match ask::ask(gateway, work).await? {
            Asked::Answer(answer) => answer,
            Asked::Failed { message } => return Ok(Outcome::Failed { message }),
        };
        match act::act(gateway, work, answer).await? {
            Acted::Done { text } => return Ok(Outcome::Answered { text }),
            Acted::Again => budget::budget(gateway, work).await?,
        }
    }
}
