//! One turn, from a stored question to a delivered reply. The steps, in order, one file each:
//!
//! 1. [`admit`]: is there anything to do at all?
//! 2. [`gather`]: the conversation as it stands, what is known about it, and the new message.
//! 3. [`budget`]: the policy decides, the guard checks, the window is edited. Before the model call.
//! 4. [`ask`]: the model [answers](crate::exchange::call); 5. it is [asked smaller](crate::exchange::recover) when it says that the prompt was too long.
//! 6. [`act`]: the model wants something done first; then 3 to 5 once more.
//! 7. [`record`]: answer, usage, session and outbox in one transaction.
//! 8. [`deliver`]: split for the front, take the placeholder's place, mark it delivered.
//!
//! [`attach`] reads what came with a message, before 2. [`hear`] reads what is written while an answer is awaited, and [`absorb`] is what is different where it is that
//! answer; [`batching`] where several messages are answered at once, [`steer`] where they come meanwhile, [`command`] where
//! it is an order to the gateway, [`late`] where they waited for long, [`track`] where it belongs to a case; and [`conclude`]
//! ends a turn without the model. [`called_off`] is what becomes of one that is stopped, or whose question is deleted. A turn under way is a [`work::Work`] with its [exchange](crate::exchange), which reaches the
//! world as [`live`] has it, its [`journal`] and its
//! [`receipt`]s.

mod absorb;
mod act;
mod admit;
mod ask;
mod attach;
mod batching;
mod buttons;
mod called_off;
mod command;
mod conclude;
mod deliver;
mod error;
mod gather;
mod hear;
mod journal;
mod late;
mod live;
mod parts;
mod placeholder;
mod receipt;
mod record;
mod records;
mod steer;
mod summarise;
mod track;
mod work;

use std::{
    pin::{Pin, pin},
    sync::{Arc, OnceLock, PoisonError},
};

use crate::{
    dispatch::{Batch, TurnFailure},
    exchange::budget::budget,
    services::Services,
    store::{Hold, OpenTurn},
};
use act::Acted;
use admit::Admission;
use ask::AskOutcome;
use error::TurnError;
use hear::Heard;
use pmk_knowledge::Atom;
use record::Ending;
use tokio_util::sync::CancellationToken;
use work::Work;

/// Takes messages that are answered together, usually one, through all steps.
///
/// # Errors
/// It did not come to its end, and what it has done is stored. Run again, it goes on from there.
pub(crate) async fn run(services: &Services, batch: &Batch) -> Result<(), TurnFailure> {
    Ok(steps(services, batch).await?)
}

/// Each turn under way is a future of this, so what few of them do is in a box of its own.
async fn steps(services: &Services, batch: &Batch) -> Result<(), TurnError> {
    let (mut batch_of_talk, mut off) = (vec![], vec![]);
    // Of several it is not known yet which of them shows that they are answered.
    let hold = match batch.ids() {
        [_] if services.front.shows_by_messages() => Hold::Showing,
        _ => Hold::Alone,
    };
    for &inbox in batch.ids() {
        match admit::admit(services, inbox, hold).await? {
            Admission::Nothing => {}
            Admission::Deliver(answered) => deliver::deliver(services, answered).await?,
            Admission::CalledOff(turn) => off.push(turn),
            // What is said about a question that waits is a turn of its own.
            Admission::Ask(turn) if hear::is_heard(&turn) => match Box::pin(hear::hear(services, turn)).await? {
                Heard::Answer(turn, learnt) => {
                    let answered = answer(services, turn, vec![], learnt, batch).await?;
                    deliver::deliver(services, answered).await?;
                }
                Heard::Done(answered) => deliver::deliver(services, answered).await?,
                Heard::Talk(turn) => batch_of_talk.push((inbox, turn)),
            },
            Admission::Command(turn, command) => {
                let answered = Box::pin(command::carry_out(services, turn, command)).await?;
                deliver::deliver(services, answered).await?;
            }
            Admission::Ask(turn) => batch_of_talk.push((inbox, turn)),
        }
    }
    let said = std::mem::take(&mut *batch.said().lock().unwrap_or_else(PoisonError::into_inner));
    if !off.is_empty() {
        Box::pin(called_off::end(services, off, &said)).await?;
    }
    let Some((newest, turn)) = batch_of_talk.pop() else { return Ok(()) };
    let also: Vec<OpenTurn> = batch_of_talk.into_iter().map(|(_, turn)| turn).collect();
    let mut turn = match batch.ids() {
        [_] => turn,
        // What went before may have changed the conversation.
        _ => match admit::admit(services, newest, Hold::Alone).await? {
            Admission::Ask(turn) => hear::as_talk(turn),
            Admission::CalledOff(_) => return Err(TurnError::Anew),
            Admission::Nothing | Admission::Deliver(_) | Admission::Command(..) => return Ok(()),
        },
    };
    // What has changed since the first of them was read concerns all.
    let revisions = also.iter().map(|other| other.live.revision).chain([turn.live.revision]);
    turn.live.revision = revisions.min().flatten();
    let answered = answer(services, turn, also, None, batch).await?;
    deliver::deliver(services, answered).await
}

/// Steps 2 to 7.
async fn answer(
    services: &Services,
    mut turn: OpenTurn,
    also: Vec<OpenTurn>,
    learnt: Option<Box<Atom>>,
    batch: &Batch,
) -> Result<crate::store::Answered, TurnError> {
    let live = std::mem::take(&mut turn.live);
    batch.begins_at(live.revision);
    batching::merge(&mut turn, &also);
    let interrupted = batch.interrupted();
    let (placed, is_made) = (Arc::new(OnceLock::new()), CancellationToken::new());
    // Beside the making, which waits for none of it.
    let show = async {
        let placeholder = placeholder::show(services, &turn, &is_made).await?;
        Ok::<_, TurnError>(placed.get_or_init(|| placeholder))
    };
    let begin = async {
        let attached = attach::read(services, &turn, &also, Some(&live)).await?;
        let mut work = gather::gather(services, &turn, live, attached, batch.said()).await?;
        work.placeholder = Arc::clone(&placed);
        work.tally.late = late::notice(services, &turn, &also);
        work.merged = also.len();
        work.also = also;
        budget(&work.ports, &mut work.exchange).await?;
        Ok::<_, TurnError>(work)
    };
    let make = async {
        let _is_made = is_made.clone().drop_guard();
        let mut work = unless(&interrupted, pin!(begin)).await?;
        let outcome = unless(&interrupted, pin!(converse(services, &mut work, batch))).await;
        // From here on the placeholder belongs to the answer.
        if let Some(progress) = work.progress.take() {
            progress.finish().await;
        }
        outcome.map(|outcome| (work, outcome))
    };
    let (shown, made) = tokio::join!(show, make);
    let (work, outcome) = made?;
    shown?;
    record::record(services, work, outcome, learnt).await
}

/// Comes to its end, or is given up where people have changed something about the turn. What is given up is begun anew; a
/// turn that is recorded never is. By reference: a future that is handed on has its place twice in what waits for it.
async fn unless<T>(
    interrupted: &CancellationToken,
    doing: Pin<&mut impl Future<Output = Result<T, TurnError>>>,
) -> Result<T, TurnError> {
    tokio::select! {
        biased;
        () = interrupted.cancelled() => Err(TurnError::Anew),
        done = doing => done,
    }
}

/// Steps 4 to 6, until there are words for the person.
async fn converse(services: &Services, work: &mut Work<'_>, batch: &Batch) -> Result<Ending, TurnError> {
    loop {
        let answer = match ask::ask(services, work).await? {
            AskOutcome::Answer(answer) => answer,
            AskOutcome::Failed { message, may_pass } => return Ok(Ending::Failed { message, may_pass }),
        };
        match act::act(services, work, answer).await? {
            Acted::Done { text } => return Ok(Ending::Answered { text }),
            Acted::Again => {
                Box::pin(steer::steer(services, work, batch)).await?;
                budget(&work.ports, &mut work.exchange).await?;
            }
        }
    }
}
