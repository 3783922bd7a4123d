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
//! [`absorb`] is what is different where the message is an answer that somebody waits for, [`together`] where
//! several messages are answered at once, [`command`] where it is an order to the gateway. A turn under way
//! is a [`work::Work`] with its [`window`] and its [`journal`].

mod absorb;
mod act;
mod admit;
mod ask;
mod budget;
mod command;
mod decided;
mod deliver;
mod gather;
mod journal;
mod preamble;
mod record;
pub(crate) mod recover;
mod together;
pub(crate) mod window;
mod work;

use std::{sync::Arc, time::Duration};

use crate::{
    front::FrontError,
    gateway::Gateway,
    knowledge::LibraryError,
    store::{InboxId, OpenTurn, StoreError},
};
use act::Acted;
use admit::Admitted;
use ask::Asked;
pub(crate) use preamble::Preamble;
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

/// Takes messages that are answered together, usually one, through all steps. A full disk or a Slack that is
/// down holds up this conversation alone, until it works again or the gateway stops; the next start goes on
/// from what is stored.
pub(crate) async fn run(gateway: &Gateway, batch: Vec<InboxId>) {
    let mut pauses = PAUSES.iter().chain(PAUSES.last().into_iter().cycle());
    loop {
        let pause = match steps(gateway, &batch).await {
            Ok(()) => return,
            Err(TurnError::Front(FrontError::Closed)) => {
                gateway.stop.cancel();
                return;
            }
            Err(error) => {
                tracing::warn!(?batch, %error, "the turn is held up and will be tried again");
                pauses.next().copied().unwrap_or_default().max(error.retry_after())
            }
        };
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn steps(gateway: &Gateway, batch: &[InboxId]) -> Result<(), TurnError> {
    let mut together = vec![];
    for &inbox in batch {
        match admit::admit(gateway, inbox).await? {
            Admitted::Nothing => {}
            Admitted::Deliver(answered) => deliver::deliver(gateway, answered).await?,
            // The answer that somebody waits for is a turn of its own.
            Admitted::Ask(turn) if turn.absorbs.is_some() => {
                let answered = answer(gateway, turn, vec![]).await?;
                deliver::deliver(gateway, answered).await?;
            }
            Admitted::Command(turn, command) => {
                let answered = command::carry_out(gateway, turn, command).await?;
                deliver::deliver(gateway, answered).await?;
            }
            Admitted::Ask(turn) => together.push((inbox, turn)),
        }
    }
    let Some((newest, turn)) = together.pop() else { return Ok(()) };
    let also: Vec<OpenTurn> = together.into_iter().map(|(_, turn)| turn).collect();
    let turn = match batch {
        [_] => turn,
        // What went before may have changed the conversation.
        _ => match admit::admit(gateway, newest).await? {
            Admitted::Ask(turn) => turn,
            Admitted::Nothing | Admitted::Deliver(_) | Admitted::Command(..) => return Ok(()),
        },
    };
    let answered = answer(gateway, turn, also).await?;
    deliver::deliver(gateway, answered).await
}

/// Steps 2 to 7.
async fn answer(
    gateway: &Gateway,
    mut turn: OpenTurn,
    also: Vec<OpenTurn>,
) -> Result<crate::store::Answered, TurnError> {
    let live = std::mem::take(&mut turn.live);
    together::merge(&mut turn, &also);
    let (placeholder, begun) = tokio::join!(deliver::placeholder(gateway, &turn), async {
        let mut work = gather::gather(gateway, &turn, live).await?;
        work.also = also;
        budget::budget(gateway, &mut work).await?;
        Ok::<_, TurnError>(work)
    });
    let mut work = begun?;
    work.placeholder = placeholder?;
    let journal = Arc::clone(&work.journal);
    let learning = async {
        match &turn.absorbs {
            Some(marker) => Some(absorb::learn(gateway, &journal, marker, &turn.inbound).await),
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
            Acted::Again => {
                together::steer(gateway, work).await?;
                budget::budget(gateway, work).await?;
            }
        }
    }
}
