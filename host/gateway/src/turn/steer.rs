//! Messages that come while the model has something looked up: under `steer` they are shown to it before it goes on.

use pmk_core::{Entry, Message};

use super::{
    TurnError,
    admit::{self, Admitted},
    batching::said,
    called_off, command, deliver,
    work::Work,
};
use crate::{config::QueueMode, dispatch::Batch, services::Services};

/// Under `steer`, shows the model what has been written since it began.
pub(super) async fn steer(services: &Services, work: &mut Work<'_>, batch: &Batch) -> Result<(), TurnError> {
    let queue = services.config.queue;
    if queue.mode != QueueMode::Steer {
        return Ok(());
    }
    let room = queue.most.saturating_sub(1 + work.also.len());
    for inbox in batch.take_along(room) {
        let turn = match admit::admit(services, inbox).await? {
            Admitted::Ask(turn) => turn,
            Admitted::Command(turn, command) => {
                let answered = command::carry_out(services, turn, command).await?;
                deliver::deliver(services, answered).await?;
                continue;
            }
            Admitted::Deliver(answered) => {
                deliver::deliver(services, answered).await?;
                continue;
            }
            Admitted::CalledOff(turn) => {
                called_off::end(services, vec![turn], "").await?;
                continue;
            }
            Admitted::Nothing => continue,
        };
        let message = Message::user(said(&turn.inbound));
        let ids = services
            .store
            .archive(work.turn.session, turn.turn, std::slice::from_ref(&message), services.now_ms())
            .await?;
        work.exchange.window.push(Entry::new(ids.first().copied().unwrap_or(0), message));
        work.also.push(turn);
    }
    Ok(())
}
