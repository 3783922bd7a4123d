//! Checks whether each layer of policies loads, accepts its settings, and uses this host's contract, and whether the
//! arms of the experiment load.

use pmk_policy::Stack;
use pmk_system::{error::Failure, threads::offload};

use super::{Finding, Part, State, getting};
use crate::messages::{DoctorRemark, Messages};

pub(super) const NAME: &str = "policies";
const PAGE: &str = "docs/policies.md";

/// What came of loading the policies.
pub struct Loaded {
    /// The layers of a start, with the warnings about them; or everything that keeps them from loading.
    pub serving: Result<(Stack, Vec<String>), Vec<Failure>>,
    /// What keeps arms of the experiment from taking part.
    pub arms: Vec<Failure>,
    /// Whether the experiment is on.
    pub is_on: bool,
}

/// Has no time limit: compiling is limited by `policy.limits.compileCpuSeconds`.
pub(super) async fn look(policies: Part<Loaded>, messages: &Messages) -> Vec<Finding> {
    let policies = match getting(NAME, policies, messages) {
        Ok(policies) => policies,
        Err(finding) => return vec![finding],
    };
    let failed = |failure: Failure| Finding::failed(NAME, failure, PAGE, messages);
    let Loaded { serving, arms, is_on } = match offload(policies).await {
        Ok(loaded) => loaded,
        Err(failure) => return vec![failed(failure)],
    };
    let mut findings: Vec<Finding> = match serving {
        Ok((stack, odd)) => vec![serves(&stack, &odd, messages)],
        Err(failures) => failures.into_iter().map(failed).collect(),
    };
    // What is not on yet may still be prepared.
    let state = if is_on { State::Bad } else { State::Odd };
    findings.extend(arms.into_iter().map(|failure| Finding { state, ..failed(failure) }));
    findings
}

fn serves(stack: &Stack, odd: &[String], messages: &Messages) -> Finding {
    let layers: Vec<String> = stack
        .layers()
        .map(|layer| {
            let identity = layer.policy.identity();
            format!("{} {}", identity.name, identity.version)
        })
        .collect();
    let layers = messages.layers(&layers);
    if odd.is_empty() {
        return Finding::well(NAME, layers);
    }
    Finding::odd(NAME, format!("{layers}; {}", odd.join("; ")), messages.doctor(DoctorRemark::PoliciesHint))
}
