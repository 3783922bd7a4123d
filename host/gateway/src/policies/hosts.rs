//! A policy choice made on one host of a database applies to all its hosts.
//!
//! The choosing host stores the components in the database. Every other host loads them as it would load its own files,
//! under its own gateway.json, and reports what decides there. A host that may not load them keeps its policies. With
//! the components of a promoted arm go its settings: it decides everywhere as it did in the experiment.

use std::{path::PathBuf, time::Duration};

use pmk_policy::{ConfiguredSettings, Identity, Layer, Stack, Suspension};
use pmk_system::error::Failure;
use tokio::time::Instant;

use super::{
    Loader,
    shared_choice::{ConfigSeen, OnHost, Outcome, SharedChoice},
    swap::{Origins, Promotion, SwapTrigger, Swapper, absolute, identities},
};
use crate::{
    config::PolicyConfig,
    store::{Choice, HostPolicies, HostState, LayerUpload, SentLayer, StoreError},
};

/// How often the database is checked for a choice made elsewhere.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often other hosts are told for how many more decisions a policy is suspended: every decision counts down.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// How long to wait for other hosts to report the outcome of a choice: a large component compiles for seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the components of a stack without the embedded one, the top one last.
pub fn to_send(stack: &Stack) -> Vec<LayerUpload> {
    let layer = |layer: &Layer| {
        let Identity { name, sha256, .. } = layer.policy.identity().clone();
        (SentLayer { name, sha256 }, layer.policy.source().clone())
    };
    stack.above_the_base().iter().rev().map(layer).collect()
}

/// Pairs the components that a host has sent with a label for each.
pub fn labelled(layers: &[SentLayer], host: &str, components: Vec<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    layers.iter().map(|layer| format!("{} of {host}", layer.name)).zip(components).collect()
}

/// Whether what was said so long ago is still true, or differs only in a count that can wait.
fn says_enough(said: &HostPolicies, age: Duration, decides: &HostPolicies) -> bool {
    said == decides || (age < COUNT_EVERY && uncounted(said) == uncounted(decides))
}

fn uncounted(policies: &HostPolicies) -> HostPolicies {
    let suspended = policies.suspended.iter().map(|suspension| Suspension { left: 0, ..suspension.clone() });
    HostPolicies { suspended: suspended.collect(), ..policies.clone() }
}

impl Swapper {
    /// Publishes a choice to all hosts of the database. Returns its version, or `None` without a database.
    pub(super) async fn publish(
        &self,
        stack: &Stack,
        settings: Option<ConfiguredSettings>,
    ) -> Result<Option<i64>, Failure> {
        let store = &self.ports.store;
        if !store.is_shared() {
            return Ok(None);
        }
        Ok(store.choose(to_send(stack), settings).await?)
    }

    /// Records promoted arms, which serve already, and publishes them to the other hosts.
    pub async fn follow_promotions(&self) {
        let mut promotions = self.ports.promotions.clone();
        while promotions.changed().await.is_ok() {
            let Some(promotion) = promotions.borrow_and_update().clone() else { continue };
            let request = self.chosen().ask();
            let Promotion { files, settings, serving, before } = &*promotion;
            let _alone = self.swapping.lock().await;
            if !serving.is(&self.ports.policies.serving()) {
                tracing::debug!("a promoted arm is not used: other policies were chosen in the meantime");
                continue;
            }
            let from = Origins { settings: Some(settings.clone()), ..Origins::of(absolute(files)) };
            {
                let mut chosen = self.chosen();
                // Requests made before the promotion are superseded; those made while this waited are not.
                chosen.grant(request);
                self.taken_over(&mut chosen, SwapTrigger::Promotion, from, serving.clone(), before.clone());
            }
            match self.publish(serving.stack(), Some(settings.clone())).await {
                Ok(version) => self.chosen().shared_choice.made(version),
                Err(failure) => {
                    let (why, hint) = (failure.message(), failure.advice());
                    tracing::warn!(hint, "the promoted arm decides on this host only: {why}");
                }
            }
        }
    }

    /// Applies a choice that another host has made, if there is a new one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn take_choice(&self) -> Result<(), StoreError> {
        let Some(Choice { version, host, layers, settings }) = self.ports.store.choice().await? else { return Ok(()) };
        let config = ConfigSeen::now(&self.home);
        if self.chosen().shared_choice.knows(version, config) {
            return Ok(());
        }
        let Some(bytes) = self.ports.store.components(layers.clone()).await? else { return Ok(()) };
        let components = labelled(&layers, &host, bytes);
        let labels = components.iter().map(|(label, _)| PathBuf::from(label)).collect::<Vec<_>>();
        let from = Origins { settings: settings.clone(), ..Origins::default() };
        let load = move |loader: &Loader, config: &PolicyConfig| loader.take(config, settings, &components);
        let loaded = self.aside(load).await;
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
                let serving = self.ports.policies.serving();
                if stack.decides_like(serving.stack()) {
                    self.follow_no_files(from);
                } else {
                    self.take_over(&mut chosen, SwapTrigger::Host, from, &stack);
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
        let mut said: Option<(HostPolicies, Instant)> = None;
        while self.ports.store.is_shared() {
            if let Err(error) = self.take_choice().await {
                tracing::debug!(%error, "policies chosen on other hosts will be loaded later");
            }
            let decides = self.decides();
            let is_said = said.as_ref().is_some_and(|(said, at)| says_enough(said, at.elapsed(), &decides));
            if !is_said {
                match self.ports.store.decides(&decides).await {
                    Ok(()) => said = Some((decides, Instant::now())),
                    Err(error) => tracing::debug!(%error, "other hosts will learn later which policies decide here"),
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn decides(&self) -> HostPolicies {
        let chosen = self.chosen();
        let SharedChoice { version: choice, refused, .. } = &chosen.shared_choice;
        let serving = self.ports.policies.serving();
        HostPolicies {
            layers: identities(serving.stack()),
            settings: Some(serving.stack().changed_settings()),
            choice: *choice,
            refused: refused.as_ref().map(|(why, _)| why.clone()),
            suspended: serving.stack().suspensions(),
        }
    }

    /// Returns the outcome of a choice on the other hosts, once all live ones have reported it, one of them knows of a
    /// later choice, or the wait times out.
    pub(super) async fn on_hosts(&self, version: Option<i64>) -> Vec<OnHost> {
        let Some(version) = version else { return vec![] };
        let begun = Instant::now();
        loop {
            // If the store cannot be asked, no other host is reported.
            let others = self.ports.store.other_hosts().await.unwrap_or_default();
            let others = others.into_iter().filter(|host| host.state != HostState::Silent);
            let outcomes: Vec<OnHost> = others.map(|host| OnHost::of(host, version)).collect();
            let is_known = outcomes.iter().all(|host| host.outcome != Outcome::Unknown { overtaken: false });
            let is_overtaken = outcomes.iter().any(|host| host.outcome == Outcome::Unknown { overtaken: true });
            if is_known || is_overtaken || begun.elapsed() > PATIENCE {
                return outcomes;
            }
            tokio::time::sleep(LOOK_EVERY / 5).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use pmk_policy::Decision;

    use super::*;

    /// Regression: with a suspended policy, each host wrote to the database twice a second.
    #[test]
    fn hosts_were_told_of_each_decision_that_a_suspended_policy_is_skipped_for() {
        let suspended = |left, reason: &str| {
            let policy = Identity { name: "strict".to_owned(), version: "1.0.0".to_owned(), sha256: String::new() };
            let suspension = Suspension { policy, decision: Decision::Prune, left, reason: reason.to_owned() };
            HostPolicies { suspended: vec![suspension], ..HostPolicies::default() }
        };
        let (said, soon) = (suspended(20, "trapped"), COUNT_EVERY / 2);
        assert!(says_enough(&said, COUNT_EVERY, &suspended(20, "trapped")));
        assert!(says_enough(&said, soon, &suspended(19, "trapped")));
        assert!(!says_enough(&said, COUNT_EVERY, &suspended(19, "trapped")));
        assert!(!says_enough(&said, soon, &suspended(40, "used up its fuel")));
        assert!(!says_enough(&said, soon, &HostPolicies::default()));
    }
}
