//! Checks whether each layer of policies loads, accepts its settings, and uses this host's contract.

use pmk_policy::Stack;
use pmk_system::threads::offload;

use super::{Finding, Part, getting};
use crate::messages::{DoctorRemark, Messages};

pub(super) const NAME: &str = "policies";
const PAGE: &str = "docs/policies.md";

/// Has no time limit: compiling is limited by `policy.limits.compileCpuSeconds`.
pub(super) async fn look(policies: Part<(Stack, Vec<String>)>, messages: &Messages) -> Finding {
    let policies = match getting(NAME, policies, messages) {
        Ok(policies) => policies,
        Err(finding) => return finding,
    };
    let (stack, odd) = match offload(policies).await {
        Ok(loaded) => loaded,
        Err(failure) => return Finding::failed(NAME, failure, PAGE, messages),
    };
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
