//! Messages that arrive while the model waits for a tool: under `steer`, they are shown to it before it continues.

use pmk_core::{Entry, Guard, Message, Origin, tokens};

use super::{
    TurnError,
    admit::{self, Admission},
    attach,
    batching::said,
    called_off, command, deliver, hear,
    records::note_capped,
    work::{Steered, Work},
};
use crate::{
    config::QueueMode,
    dispatch::Batch,
    exchange::GivenUp,
    ids::InboxId,
    services::Services,
    store::{Hold, OpenTurn, Verbosity},
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
        let (mut entries, mut capped) = (vec![], vec![]);
        let id = match attach::archive(&work.ports, &turn, &attached, &message, room).await? {
            Some(archived) => {
                entries.push(archived.shown.id);
                work.exchange.window.push(archived.shown);
                capped = archived.capped;
                archived.message
            }
            None => {
                let messages = std::slice::from_ref(&message);
                let ids = services.store.archive(work.turn.session, turn.turn, messages, services.now_ms()).await?;
                ids.first().copied().unwrap_or(0)
            }
        };
        entries.push(id);
        work.exchange.window.push(Entry::new(id, message));
        let not_read = attach::not_read(&services.messages, &services.config, &attached);
        work.steered.push(Steered { turn, entries, not_read, capped });
    }
    Ok(())
}

/// Leaves to turns of their own the messages that the latest request did not have as they were written, or without what
/// came with them: there was no room for them beside what the turn has produced since, or below what the model has
/// refused.
pub(super) fn hand_back(work: &mut Work<'_>, batch: &Batch) {
    let window = &mut work.exchange.window;
    let is_whole = |Steered { entries, .. }: &Steered| {
        entries.iter().all(|&id| window.has(id)) && entries.last().is_some_and(|&id| window.has_whole(id))
    };
    let (whole, others): (Vec<_>, Vec<_>) = std::mem::take(&mut work.steered).into_iter().partition(is_whole);
    for Steered { turn, not_read, capped, .. } in &whole {
        // Attachments that could not be read are named before the one answer.
        work.tally.prefix.push_str(not_read);
        note_capped(&work.ports.journal, &turn.inbound.user, Origin::Attachment, capped);
    }
    work.steered = whole;
    for Steered { turn, entries, .. } in others {
        tracing::info!(session = work.exchange.key, "a message that the request had no room for is answered by itself");
        window.take_out(&entries);
        batch.put_back(InboxId(turn.turn.0));
    }
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
async fn decide(services: &Services, work: &mut Work<'_>, inbox: InboxId, batch: &Batch) -> Result<Taken, TurnError> {
    match admit::admit(services, batch, inbox, Hold::Along).await? {
        Admission::Ask(turn) if hear::is_heard(&turn) => return Ok(Taken::Later),
        Admission::Ask(turn) => return Ok(Taken::With(Box::new(turn))),
        // A thread can wait for one answer only: the next turn says that it waits already.
        Admission::Command(_, command::Command::Confirmed(_)) if work.tally.escalation.is_some() => {
            return Ok(Taken::Later);
        }
        Admission::Command(turn, command) => {
            let verbosity = match command {
                command::Command::Verbose(verbosity) => Some(verbosity),
                _ => None,
            };
            let answered = command::carry_out(services, turn, command, batch).await?;
            if let Some(verbosity) = verbosity {
                show_as(work, verbosity).await;
            }
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

/// From now on, people see this much of the tool calls of the turn under way, too.
async fn show_as(work: &mut Work<'_>, verbosity: Verbosity) {
    work.verbosity = verbosity;
    if verbosity == Verbosity::Off
        && let Some(progress) = work.progress.take()
    {
        progress.finish().await;
    }
}
