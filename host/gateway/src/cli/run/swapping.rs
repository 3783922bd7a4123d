//! The operator's requests to a running gateway: its status, retrying parked messages, and swapping policies by a
//! command, a changed file, a hangup signal, or the promotion of an experiment's arm.

use std::sync::Arc;

use pmk_system::{error::Failure, home::HomeLock};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
};

use crate::{
    control::{Commands, Server},
    dispatch::Dispatcher,
    ledger::InExperiment,
    policies::{self, Ports, Swapper, identities},
    presence::{
        health::{RefusedExperiment, Report, SuspendedArm},
        health_check::Reporter,
    },
    services::Services,
};

/// Starts listening for all of them. Without a control socket the gateway still answers people.
pub(super) fn start(
    lock: &HomeLock,
    swapper: Swapper,
    report: Reporter,
    dispatcher: &Arc<Dispatcher>,
    at_a_terminal: bool,
) -> Result<JoinSet<()>, Failure> {
    let swapper = Arc::new(swapper);
    let mut tasks = JoinSet::new();
    match Server::bind(lock) {
        Ok(server) => {
            let commands = Commands { swapper: Arc::clone(&swapper), dispatcher: Arc::clone(dispatcher), report };
            tasks.spawn(server.serve(commands));
        }
        Err(error) => tracing::warn!("there is no control socket, so commands cannot reach this gateway: {error}"),
    }
    // If the terminal hangs up, its chat ends.
    if !at_a_terminal {
        let hangup = signal(SignalKind::hangup())
            .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        tasks.spawn(reload_on(hangup, Arc::clone(&swapper)));
    }
    let among_others = Arc::clone(&swapper);
    tasks.spawn(async move { among_others.follow_hosts().await });
    let promoted = Arc::clone(&swapper);
    tasks.spawn(async move { promoted.follow_promotions().await });
    tasks.spawn(policies::follow(swapper));
    Ok(tasks)
}

/// Returns what swaps need of the services.
pub(super) fn ports(services: &Services) -> Ports {
    Ports {
        policies: Arc::clone(&services.policies),
        ledger: services.ledger.clone(),
        admins: services.admins.clone(),
        messages: Arc::clone(&services.messages),
        store: services.store.clone(),
        promotions: services.experiment.promotions(),
    }
}

/// Returns the function that reports the gateway's status to an operator.
pub(super) fn report(services: &Services) -> Reporter {
    let (front, store, people) = (Arc::clone(&services.front), services.store.clone(), Arc::clone(&services.people));
    let (ledger, policies) = (services.ledger.clone(), Arc::clone(&services.policies));
    let experiment = Arc::clone(&services.experiment);
    Arc::new(move || {
        let serving = policies.serving();
        let of_arm = |(place, suspension): (InExperiment, _)| SuspendedArm {
            experiment: place.experiment.to_string(),
            arm: place.arm.to_string(),
            suspension,
        };
        Report {
            connection: front.connection(),
            refusal: front.refusal(),
            store_away: store.away(),
            excuses_heartbeat: store.excuses_heartbeat(),
            config: people.trouble(),
            experiment: experiment.refused().map(|refused| RefusedExperiment {
                name: refused.name,
                why: refused.why,
                goes_on: refused.goes_on,
            }),
            ledger: ledger.trouble(),
            policies: identities(serving.stack()),
            settings: Some(serving.stack().changed_settings()),
            suspended: serving.stack().suspensions(),
            suspended_arms: experiment.suspensions().into_iter().map(of_arm).collect(),
        }
    })
}

async fn reload_on(mut hangup: Signal, swapper: Arc<Swapper>) {
    while hangup.recv().await.is_some() {
        swapper.reload_start().await;
    }
}
