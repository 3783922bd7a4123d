//! One turn, from a stored question to a delivered reply. The steps, in order, one file each:
//!
//! 1. [`admit`]: decides whether there is anything to do.
//! 2. [`gather`]: collects the conversation, what is known about it, and the new message.
//! 3. [`budget`]: before the model call, the policy decides, the guard checks, and the window is edited.
//! 4. [`ask`]: the model [answers](crate::exchange::call).
//! 5. If the model says that the prompt was too long, it is [asked again with less](crate::exchange::recover).
//! 6. [`act`]: if the model wants something done first, does it; then steps 3 to 5 run again.
//! 7. [`record`]: stores answer, usage, session and outbox in one transaction.
//! 8. [`deliver`]: splits the reply for the front, replaces the placeholder, marks the reply as delivered.
//!
//! Other modules handle special cases:
//!
//! - [`attach`] reads attachments, at the beginning of step 2.
//! - [`hear`] reads messages that arrive while an answer is awaited; [`absorb`] handles such an answer.
//! - [`batching`] answers several messages at once; [`steer`] adds messages that arrive during the turn.
//! - [`command`] carries out commands to the gateway.
//! - [`late`] tells the asker that the answer is late.
//! - [`track`] handles messages that belong to a case.
//! - [`conclude`] ends a turn without the model.
//! - [`called_off`] ends a turn that was stopped or whose question was deleted.
//!
//! A running turn is a [`work::Work`] with its [exchange](crate::exchange), its [`journal`] and its [`receipt`]s. The
//! exchange reaches policies, model and store through [`live`].

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
pub(crate) mod placeholder;
mod receipt;
mod record;
mod records;
mod steer;
mod summarise;
mod track;
mod work;

#[cfg(test)]
mod tests;

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
};

use crate::{
    dispatch::{AnswerSoFar, Batch, TurnFailure},
    exchange::budget::budget,
    services::Services,
    store::{Hold, OpenTurn, StoreError},
};
use act::Acted;
use admit::Admission;
use ask::AskOutcome;
use error::TurnError;
use futures_util::FutureExt;
use hear::Heard;
use pmk_knowledge::Atom;
use record::Ending;
use tokio_util::sync::CancellationToken;
use work::Work;

/// Runs all steps for messages that are answered together (usually one).
///
/// # Errors
/// The turn did not finish. What it has done so far is stored, and a new run continues from there.
pub(crate) async fn run(services: &Services, batch: &Batch) -> Result<(), TurnFailure> {
    Ok(steps(services, batch).await?)
}

/// Every running turn holds a future of this function; rarely used branches are boxed to keep it
/// small.
async fn steps(services: &Services, batch: &Batch) -> Result<(), TurnError> {
    let (mut batch_of_talk, mut off) = (vec![], vec![]);
    // Of several messages it is not known yet which one will show that they are being answered.
    let hold = match batch.ids() {
        [_] if services.front.shows_by_messages() => Hold::Showing,
        _ => Hold::Alone,
    };
    for &inbox in batch.ids() {
        match admit::admit(services, batch, inbox, hold).await? {
            Admission::Nothing => {}
            Admission::Deliver(answered) => {
                // It was stored with what it has cost, although that was said to have failed.
                if let [_] = batch.ids() {
                    drop(batch.take_given_up());
                }
                deliver::deliver(services, answered, batch).await?;
            }
            Admission::CalledOff(turn) => off.push(turn),
            // A message about a waiting question is a turn of its own.
            Admission::Ask(turn) if hear::is_heard(&turn) => match Box::pin(hear::hear(services, turn, batch)).await? {
                Heard::Answer(turn, learnt) => {
                    // Nobody stops it, and what the model says of it answers no question of the batch that is stopped.
                    let said = AnswerSoFar::default();
                    let answered = answer(services, (turn, vec![]), learnt, said, batch).await?;
                    deliver::deliver(services, answered, batch).await?;
                }
                Heard::Done(answered) => deliver::deliver(services, answered, batch).await?,
                Heard::Talk(turn) => batch_of_talk.push((inbox, turn)),
            },
            Admission::Command(turn, command) => {
                let answered = Box::pin(command::carry_out(services, turn, command, batch)).await?;
                deliver::deliver(services, answered, batch).await?;
            }
            Admission::Ask(turn) => batch_of_talk.push((inbox, turn)),
        }
    }
    let said = batch.take_said();
    if !off.is_empty() {
        let mut given_up = batch.take_given_up();
        if let Err(error) = Box::pin(called_off::end(services, off, &said, &mut given_up, batch)).await {
            // The next attempt ends them with what there was.
            batch.restore_said(said);
            batch.give_up(given_up);
            return Err(error);
        }
    }
    let Some((newest, turn)) = batch_of_talk.pop() else { return Ok(()) };
    let merged: Vec<OpenTurn> = batch_of_talk.into_iter().map(|(_, turn)| turn).collect();
    let mut turn = match batch.ids() {
        [_] => turn,
        // The turns before it may have changed the conversation.
        _ => match admit::admit(services, batch, newest, Hold::Alone).await? {
            Admission::Ask(turn) => Box::pin(hear::into_talk(&*services.front, turn)).await,
            // It has changed meanwhile, and those before it are still to be answered.
            Admission::Nothing | Admission::Deliver(_) | Admission::Command(..) | Admission::CalledOff(_) => {
                return Err(TurnError::Anew);
            }
        },
    };
    // A change since the first message was read affects the whole batch.
    let revisions = merged.iter().map(|other| other.live.revision);
    turn.live.revision = revisions.fold(turn.live.revision, i64::min);
    let answered = answer(services, (turn, merged), None, batch.said(), batch).await?;
    deliver::deliver(services, answered, batch).await
}

/// Runs steps 2 to 7. `said` gets what the model says.
async fn answer(
    services: &Services,
    (mut turn, merged): (OpenTurn, Vec<OpenTurn>),
    learnt: Option<Box<Atom>>,
    said: AnswerSoFar,
    batch: &Batch,
) -> Result<crate::store::Answered, TurnError> {
    let live = std::mem::take(&mut turn.live);
    batch.begins_at(live.revision);
    batching::merge(&mut turn, &merged);
    let interrupted = batch.interrupted();
    let (placed, is_made) = (Arc::new(OnceLock::new()), CancellationToken::new());
    // Runs concurrently with making the answer, which does not wait for it.
    let show = async {
        let placeholder = placeholder::show(services, &turn, &is_made).await?;
        Ok::<_, TurnError>(placed.get_or_init(|| placeholder))
    };
    let journal = OnceLock::new();
    let begin = gather::gather(services, (&turn, merged), live, said, &placed, &journal);
    let make = async {
        let _is_made = is_made.clone().drop_guard();
        let begun = unless(&interrupted, pin!(begin)).await;
        let mut work = begun.inspect_err(|_| {
            // Policies may have been asked by then.
            if let Some(journal) = journal.get() {
                batch.give_up_early(record::given_up_early(journal));
            }
        })?;
        let outcome =
            AssertUnwindSafe(unless(&interrupted, pin!(converse(services, &mut work, batch)))).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|panic| {
            // It has cost something all the same. Where it happened is known in this very poll only.
            batch.give_up(record::given_up(&work));
            resume_unwind(panic)
        });
        // From here on the placeholder belongs to the answer.
        if let Some(progress) = work.progress.take() {
            progress.finish().await;
        }
        match outcome {
            Ok(outcome) => {
                steer::hand_back(&mut work, batch);
                Ok((work, outcome))
            }
            Err(error) => {
                Box::pin(act::take_back(&services.store, act::unsent(&work))).await;
                batch.give_up(record::given_up(&work));
                Err(error)
            }
        }
    };
    let (shown, made) = tokio::join!(show, make);
    let (work, outcome) = made?;
    let unsent = act::unsent(&work);
    // If it cannot be stored, people may call the question off before it is asked again.
    batch.give_up(record::given_up(&work));
    let (recorded, is_stored) = match shown {
        Ok(_) => {
            let recorded = record::record(services, work, outcome, learnt, batch.given_up()).await;
            // After another failure, it may have been stored all the same.
            let is_stored = !matches!(recorded, Err(TurnError::Store(StoreError::Changed)));
            (recorded, is_stored)
        }
        Err(error) => (Err(error), false),
    };
    if !is_stored {
        Box::pin(act::take_back(&services.store, unsent)).await;
    }
    if recorded.is_ok() {
        drop(batch.take_given_up());
    }
    recorded
}

/// Runs `doing` to its end, or gives it up if people have changed something about the turn. A turn that was given up is
/// started again; a recorded turn is never given up. Takes the future by reference: passed by value, it would take up
/// its space twice in the future that awaits it.
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

/// Runs steps 3 to 6 until there is text for the person.
async fn converse(services: &Services, work: &mut Work<'_>, batch: &Batch) -> Result<Ending, TurnError> {
    budget(&work.ports, &mut work.exchange).await?;
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
