//! The policies: whether each layer loads, takes its settings, and speaks this host's contract.

use pmk_policy::Stack;
use pmk_system::threads::offload;

use super::{Finding, Getting};

pub(super) const NAME: &str = "policies";
const PAGE: &str = "docs/policies.md";

/// Compiling has a bound of its own, `policy.limits.compileCpuSeconds`.
pub(super) async fn look(policies: Getting<(Stack, Vec<String>)>) -> Finding {
    let (stack, odd) = match offload(policies).await {
        Ok(loaded) => loaded,
        Err(failure) => return Finding::failed(NAME, failure, PAGE),
    };
    let layers: Vec<String> = stack
        .layers()
        .iter()
        .map(|layer| {
            let identity = layer.policy.identity();
            format!("{} {}", identity.name, identity.version)
        })
        .collect();
    let layers = layers.join(" over ");
    if odd.is_empty() {
        return Finding::well(NAME, layers);
    }
    Finding::odd(NAME, format!("{layers}; {}", odd.join("; ")), format!("`pmk-host policy inspect POLICY`, see {PAGE}"))
}
