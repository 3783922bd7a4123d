//! Policies that somebody has chosen on one host of a database decide on all of them, as long as one works.
//!
//! Whoever chooses sends the components along; each host loads them as it would a file of its own, by its own gateway.json, and says
//! what decides there. One that may not load them keeps what it has.

use std::{path::PathBuf, time::Duration};

use pmk_policy::{Identity, Layer, Stack};
use pmk_system::{error::Failure, home, stamp::Stamp};
use tokio::time::Instant;

use super::{
    shared_choice::{OnHost, Outcome, SharedChoice},
    swap::{Origins, SwapTrigger, Swapper, identities},
};
use crate::store::{Choice, HostPolicies, HostState, LayerUpload, SentLayer, StoreError};

/// How often is looked whether somebody has chosen others.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// So long is waited for other hosts to say what they make of a choice: a large component compiles for seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The components of these layers but the embedded one, the last on top.
pub fn to_send(stack: &Stack) -> Vec<LayerUpload> {
    let above_the_base = &stack.layers()[..stack.layers().len().saturating_sub(1)];
    let layer = |layer: &Layer| {
        let Identity { name, sha256, .. } = layer.policy.identity().clone();
        (SentLayer { name, sha256 }, layer.policy.source().clone())
    };
    above_the_base.iter().rev().map(layer).collect()
}

/// What a host has sent, each with what it is called.
pub fn labelled(layers: &[SentLayer], host: &str, components: Vec<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    layers.iter().map(|layer| format!("{} of {host}", layer.name)).zip(components).collect()
}

impl Swapper {
    /// Has all hosts of the database go by these; the version of that choice, none where there is no database.
    pub(super) async fn publish(&self, stack: &Stack) -> Result<Option<i64>, Failure> {
        let store = &self.ports.store;
        if !store.is_shared() {
            return Ok(None);
        }
        Ok(store.choose(to_send(stack)).await?)
    }

    /// Goes by what was chosen on another host, where something was.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn take_choice(&self) -> Result<(), StoreError> {
        let Some(Choice { version, host, layers }) = self.ports.store.choice().await? else { return Ok(()) };
        let config = Stamp::of(&home::config_file(&self.home));
        if self.chosen().shared_choice.knows(version, config) {
            return Ok(());
        }
        let Some(bytes) = self.ports.store.components(layers.clone()).await? else { return Ok(()) };
        let components = labelled(&layers, &host, bytes);
        let labels = components.iter().map(|(label, _)| PathBuf::from(label)).collect::<Vec<_>>();
        let loaded = self.aside(move |loader, config| loader.take(config, &components)).await;
        let _alone = self.swapping.lock().await;
        let mut chosen = self.chosen();
        // Somebody may have chosen others here meanwhile.
        if chosen.shared_choice.knows(version, config) {
            return Ok(());
        }
        let mut refused = None;
        match loaded {
            Ok(stack) => {
                // What was asked for here before is not what is wanted any more.
                chosen.overtake();
                if identities(&stack) == self.serving() {
                    self.follow_no_files();
                } else {
                    self.take_over(&mut chosen, SwapTrigger::Host, Origins::default(), &stack);
                }
            }
            Err(failure) => {
                self.refused(SwapTrigger::Host, &labels, &failure);
                refused = Some((failure.message().to_owned(), config));
            }
        }
        chosen.shared_choice.taken(version, refused);
        Ok(())
    }

    /// Keeps up with what is chosen on other hosts, and tells them what decides here; at once to an end where there can be none.
    pub async fn follow_hosts(&self) {
        let mut said = None;
        while self.ports.store.is_shared() {
            if let Err(error) = self.take_choice().await {
                tracing::debug!(%error, "policies chosen on other hosts will be loaded later");
            }
            let decides = self.decides();
            if said.as_ref() != Some(&decides) {
                match self.ports.store.decides(&decides).await {
                    Ok(()) => said = Some(decides),
                    Err(error) => tracing::debug!(%error, "other hosts will learn later which policies decide here"),
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn decides(&self) -> HostPolicies {
        let chosen = self.chosen();
        let SharedChoice { version: choice, refused, .. } = &chosen.shared_choice;
        HostPolicies { layers: self.serving(), choice: *choice, refused: refused.as_ref().map(|(why, _)| why.clone()) }
    }

    /// What the other hosts make of a choice, once all that work have said so or it takes too long.
    pub(super) async fn on_hosts(&self, version: Option<i64>) -> Vec<OnHost> {
        let Some(version) = version else { return vec![] };
        let begun = Instant::now();
        loop {
            // Nobody is told of, where nobody can be asked.
            let others = self.ports.store.other_hosts().await.unwrap_or_default();
            let others = others.into_iter().filter(|host| host.state != HostState::Silent);
            let outcomes: Vec<OnHost> = others.map(|host| OnHost::of(host, version)).collect();
            let is_known = outcomes.iter().all(|host| host.outcome != Outcome::Unknown);
            if is_known || begun.elapsed() > PATIENCE {
                return outcomes;
            }
            tokio::time::sleep(LOOK_EVERY / 5).await;
        }
    }
}
