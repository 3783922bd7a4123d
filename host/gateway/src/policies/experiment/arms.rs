//! The loaded arms of an experiment.

use std::{collections::BTreeMap, sync::Arc};

use pmk_core::text::hex;
use pmk_policy::Stack;
use pmk_system::error::Failure;
use sha2::{Digest, Sha256};

use crate::{
    config::{ArmConfig, ExperimentConfig, PolicyConfig},
    policies::{Origin, TurnPolicies, identities, to_send},
    store::{LayerUpload, SentLayer, assignment::Weights},
};

/// Loads the policies of a `policy` section. It compiles components, which may take seconds.
pub type Load = Arc<dyn Fn(&PolicyConfig, Origin<'_>) -> Result<Stack, Failure> + Send + Sync>;

/// Arms sent by another host, by arm name: the components of each arm with their labels, the top one last.
pub type Sent = BTreeMap<String, Vec<(String, Vec<u8>)>>;

/// One arm.
#[derive(Clone, Debug)]
pub struct Arm {
    pub name: Arc<str>,
    /// `None` where the arm uses the serving policies.
    pub policies: Option<TurnPolicies>,
    pub is_shadow: bool,
    weight: u32,
}

impl Arm {
    /// Returns the components of the arm's policies, if it has its own.
    pub fn to_send(&self) -> Option<Vec<LayerUpload>> {
        self.policies.as_ref().map(|policies| to_send(policies.stack()))
    }

    /// Identifies the policies of the arm: their components, and the settings that gateway.json gives them. The serving
    /// policies are not told apart.
    pub fn mark(&self, config: &ArmConfig) -> String {
        let Some(policies) = &self.policies else { return "serving".to_owned() };
        let mut digest = Sha256::new();
        for layer in identities(policies.stack()) {
            digest.update(format!("{} {}\n", layer.name, layer.sha256));
        }
        digest.update(serde_json::to_vec(&config.policy.as_ref().map(|policy| &policy.settings)).unwrap_or_default());
        hex(&digest.finalize())
    }

    /// Whether the arm's policies are exactly these layers.
    pub fn is(&self, layers: &[SentLayer]) -> bool {
        self.to_send().is_some_and(|own| own.iter().map(|(layer, _)| layer).eq(layers))
    }
}

/// The arms of an experiment. Either all of them load, or the experiment does not begin.
#[derive(Clone, Debug)]
pub struct Arms(Vec<Arm>);

impl Arms {
    /// Loads the arms: those sent by another host from what was sent, the others from the files that gateway.json
    /// names.
    ///
    /// # Errors
    /// What is wrong with an arm; the error names the arm.
    pub fn load(config: &ExperimentConfig, base: &PolicyConfig, load: &Load, sent: &Sent) -> Result<Arms, Failure> {
        let arm = |arm: &ArmConfig| {
            let origin = sent.get(&arm.name).map_or(Origin::Files, |components| Origin::Host(components));
            let policies =
                arm.policy.as_ref().map(|policy| load(&policy.over(base), origin)).transpose().map_err(|failure| {
                    let named = Failure::new(format!("arm `{}`: {}", arm.name, failure.message()));
                    match failure.advice() {
                        Some(hint) => named.hint(hint),
                        None => named,
                    }
                })?;
            Ok(Arm {
                name: arm.name.as_str().into(),
                policies: policies.as_ref().map(TurnPolicies::new),
                is_shadow: arm.shadow,
                weight: arm.share(),
            })
        };
        config.arms.iter().map(arm).collect::<Result<_, Failure>>().map(Arms)
    }

    /// Returns the arm of that name.
    pub fn get(&self, name: &str) -> Option<&Arm> {
        self.0.iter().find(|arm| &*arm.name == name)
    }

    /// Iterates over all arms, in the order of gateway.json.
    pub fn iter(&self) -> impl Iterator<Item = &Arm> {
        self.0.iter()
    }

    /// Returns the weights that a new conversation is drawn with: those of the arms that are neither shadows nor
    /// stopped.
    pub fn weights(&self, is_stopped: impl Fn(&str) -> bool) -> Weights {
        let acting = self.0.iter().filter(|arm| !arm.is_shadow && !is_stopped(&arm.name));
        acting.map(|arm| (arm.name.to_string(), arm.weight)).collect()
    }
}
