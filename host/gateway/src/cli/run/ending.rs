//! How a run ends: it is asked to, its input is over, or it cannot go on.

use std::{pin::pin, sync::Arc};

use pmk_system::error::Failure;
use tokio_util::sync::CancellationToken;

use crate::{dispatch::Dispatcher, gateway::Gateway, ledger::Event, presence::Presence, store::StoreError};

/// The end of a gateway that has lost its store.
pub(super) fn lost(gateway: &Gateway, how: StoreError) -> Failure {
    gateway.stop.cancel();
    gateway.ledger.note(Event::StoreLost { reason: how.to_string() });
    how.into()
}

/// Runs the gateway, and says goodbye when it is asked to end or its input has ended.
pub(super) async fn while_present(
    gateway: &Arc<Gateway>,
    dispatcher: &Arc<Dispatcher>,
    presence: &Presence,
    asked: &CancellationToken,
) -> Result<(), Failure> {
    let mut running = pin!(gateway.run(dispatcher));
    tokio::select! {
        finished = &mut running => {
            if finished.is_ok() {
                presence.leave().await;
            }
            finished
        }
        () = asked.cancelled() => {
            let ((), finished) = tokio::join!(presence.leave(), running);
            finished
        }
        never = presence.keep() => match never {},
    }
}

/// The first SIGINT or SIGTERM lets running turns finish, the second ends the process: everything
/// accepted is stored. That somebody asked is told before anything stops.
pub(super) fn stop_on_signals(stop: &CancellationToken, asked: &CancellationToken) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |error| Failure::new(format!("cannot listen for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let (stop, asked) = (stop.clone(), asked.clone());
    tokio::spawn(async move {
        for again in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if again {
                std::process::exit(130);
            }
            tracing::info!("stopping: running turns finish, nothing new begins");
            asked.cancel();
            stop.cancel();
        }
    });
    Ok(())
}
