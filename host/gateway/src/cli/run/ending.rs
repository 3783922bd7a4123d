//! How a run ends: it is asked to stop, its input ends, or it cannot go on.

use std::pin::pin;

use pmk_system::error::Failure;
use tokio_util::sync::CancellationToken;

use super::super::tty::Found;
use crate::{
    gateway::Gateway,
    ledger::{Event, Ledger},
    presence::Presence,
    store::StoreError,
};

/// Stops a gateway that has lost its store.
pub(super) fn lost(ledger: &Ledger, stop: &CancellationToken, how: StoreError) -> Failure {
    stop.cancel();
    ledger.note(Event::StoreLost { reason: how.to_string() });
    how.into()
}

/// Runs the gateway, and announces its departure when it is asked to stop or its input has ended. `leaving` is called
/// before that.
pub(super) async fn while_present(
    gateway: &Gateway,
    presence: &Presence,
    asked: &CancellationToken,
    leaving: impl FnOnce(),
) -> Result<(), Failure> {
    let mut running = pin!(gateway.run());
    tokio::select! {
        finished = &mut running => {
            if finished.is_ok() {
                leaving();
                presence.leave().await;
            }
            finished
        }
        () = asked.cancelled() => {
            leaving();
            let ((), finished) = tokio::join!(presence.leave(), running);
            finished
        }
        never = presence.keep() => match never {},
    }
}

/// Handles SIGINT and SIGTERM: the first one lets running turns finish, the second one ends the process, since
/// everything accepted is stored. `asked` is cancelled before anything stops; `terminal` is the one of a chat.
pub(super) fn stop_on_signals(
    stop: &CancellationToken,
    asked: &CancellationToken,
    terminal: Option<&Found>,
) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let cannot = |error| Failure::new(format!("cannot listen for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let (stop, asked, terminal) = (stop.clone(), asked.clone(), terminal.cloned());
    tokio::spawn(async move {
        for again in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if again {
                if let Some(terminal) = &terminal {
                    terminal.end_editing();
                }
                std::process::exit(130);
            }
            tracing::info!("stopping: running turns finish, no new ones start");
            asked.cancel();
            stop.cancel();
        }
    });
    Ok(())
}
