//! A policy choice made on one host of a database applies to all its hosts.
//!
//! The choosing host stores the components in the database. Every other host loads them as it would load its own files,
//! under its own gateway.json, and reports what decides there. A host that may not load them keeps its policies.

use std::{path::PathBuf, time::Duration};

use pmk_policy::{Identity, Layer, Stack};
use pmk_system::{error::Failure, home, stamp::Stamp};
use tokio::time::Instant;

use super::{
    shared_choice::{OnHost, Outcome, SharedChoice},
    swap::{Origins, SwapTrigger, Swapper, identities},
};
use crate::store::{Choice, HostPolicies, HostState, LayerUpload, SentLayer, StoreError};

/// How often the database is checked for a choice made elsewhere.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long to wait for other hosts to report the outcome of a choice: a large component compiles for seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the components of a stack without the embedded one, the top one last.
pub fn to_send(stack: &Stack) -> Vec<LayerUpload> {
    let above_the_base = &stack.layers()[..stack.layers().len().saturating_sub(1)];
    let layer = |layer: &Layer| {
        let Identity { name, sha256, .. } = layer.policy.identity().clone();
        (SentLayer { name, sha256 }, layer.policy.source().clone())
    };
    above_the_base.iter().rev().map(layer).collect()
}

/// Pairs the components that a host has sent with a label for each.
pub fn labelled(layers: &[SentLayer], host: &str, components: Vec<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    layers.iter().map(|layer| format!("{} of {host}", layer.name)).zip(components).collect()
}

impl Swapper {
    /// Publishes a choice to all hosts of the database. Returns its version, or `None` without a database.
    pub(super) async fn publish(&self, stack: &Stack) -> Result<Option<i64>, Failure> {
        let store = &self.ports.store;
        if !store.is_shared() {
            return Ok(None);
        }
        Ok(store.choose(to_send(stack)).await?)
    }

    /// Applies a choice that another host has made, if there is a new one.
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
        // Others may have been chosen here meanwhile.
        if chosen.shared_choice.knows(version, config) {
            return Ok(());
        }
        let mut refused = None;
        match loaded {
            Ok(stack) => {
                // Requests made here before are superseded.
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

    /// Follows the choices of other hosts and reports to them what decides here. Returns at once if the database is not
    /// shared.
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

    /// Returns the outcome of a choice on the other hosts, once all live ones have reported it or the wait times out.
    pub(super) async fn on_hosts(&self, version: Option<i64>) -> Vec<OnHost> {
        let Some(version) = version else { return vec![] };
        let begun = Instant::now();
        loop {
            // If the store cannot be asked, no other host is reported.
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
