//! Messages that arrive while the model waits for a tool: under `steer`, they are shown to it before it continues.

use pmk_core::{Entry, Guard, Message, tokens};

use super::{
    TurnError,
    admit::{self, Admission},
    attach,
    batching::said,
    called_off, command, deliver, hear,
    work::Work,
};
use crate::{
    config::QueueMode,
    dispatch::Batch,
    exchange::GivenUp,
    ids::InboxId,
    services::Services,
    store::{Hold, OpenTurn},
};

/// Under `steer`, adds the messages written since the turn began to the window. What is written while a contact's answer
/// is passed on waits: that answer goes out whether or not the model has one. So does a message for which the window has
/// no room beside the seed and what belongs to the turn: it gets a turn of its own, and so do those after it.
pub(super) async fn steer(services: &Services, work: &mut Work<'_>, batch: &Batch) -> Result<(), TurnError> {
    let queue = services.config.queue;
    if queue.mode != QueueMode::Steer || work.turn.absorbs().is_some() {
        return Ok(());
    }
    let room = queue.most.saturating_sub(1 + work.others().count());
    for inbox in batch.take_along(room) {
        let turn = match decide(services, work, inbox, batch).await {
            Ok(Taken::With(turn)) => *turn,
            Ok(Taken::Done) => continue,
            // What fails in Slack for another message is no reason to give up this turn.
            Ok(Taken::Later) | Err(TurnError::Front(_)) => {
                batch.put_back(inbox);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let attached = attach::read(services, &turn, &[], None).await?;
        // A turn of its own says that there is nothing to read in it.
        if turn.inbound.text.trim().is_empty() && !attached.has_content() {
            batch.put_back(inbox);
            return Ok(());
        }
        let message = Message::user(attach::words(&services.messages, &said(&turn.inbound), &attached));
        let limit = work.exchange.budget.limit;
        let cost = u64::from(tokens::message(&message)) + attach::cost(&services.config, &attached, limit);
        let beside = Guard { limit: limit.saturating_sub(cost), seed_may_go: false, must_shrink: false };
        if !beside.whole_turns_can_fit(&work.exchange.window.transcript()) {
            batch.put_back(inbox);
            return Ok(());
        }
        let room = attach::Room { limit, taken: 0 };
        let id = match attach::archive(&work.ports, &turn, &attached, &message, room).await? {
            Some((shown, id)) => {
                work.exchange.window.push(shown);
                id
            }
            None => {
                let messages = std::slice::from_ref(&message);
                let ids = services.store.archive(work.turn.session, turn.turn, messages, services.now_ms()).await?;
                ids.first().copied().unwrap_or(0)
            }
        };
        work.exchange.window.push(Entry::new(id, message));
        // Attachments that could not be read are named before the one answer.
        work.tally.prefix.push_str(&attach::not_read(&services.messages, &services.config, &attached));
        work.steered.push(turn);
    }
    Ok(())
}

/// What becomes of a message that was taken along.
enum Taken {
    /// It is shown to the model.
    With(Box<OpenTurn>),
    /// It is over.
    Done,
    /// It is a turn of its own, and what was written after it comes after it.
    Later,
}

/// Decides on a message that was taken along, and ends those that the model does not see.
async fn decide(services: &Services, work: &Work<'_>, inbox: InboxId, batch: &Batch) -> Result<Taken, TurnError> {
    match admit::admit(services, batch, inbox, Hold::Along).await? {
        Admission::Ask(turn) if hear::is_heard(&turn) => return Ok(Taken::Later),
        Admission::Ask(turn) => return Ok(Taken::With(Box::new(turn))),
        // A thread can wait for one answer only: the next turn says that it waits already.
        Admission::Command(_, command::Command::Confirmed(_)) if work.tally.escalation.is_some() => {
            return Ok(Taken::Later);
        }
        Admission::Command(turn, command) => {
            let answered = command::carry_out(services, turn, command).await?;
            deliver::deliver(services, answered, batch).await?;
        }
        Admission::Deliver(answered) => deliver::deliver(services, answered, batch).await?,
        Admission::CalledOff(turn) => {
            called_off::end(services, vec![turn], "", &mut GivenUp::default(), batch).await?;
        }
        Admission::Nothing => {}
    }
    Ok(Taken::Done)
}
