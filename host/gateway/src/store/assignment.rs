//! Assigns an arm to a conversation, by a stable hash, so that the same conversation of the same experiment always
//! gets the same arm.

use std::collections::BTreeMap;

use pmk_core::SessionKey;
use sha2::{Digest, Sha256};

/// The weights that an arm was drawn with, by arm.
pub type Weights = BTreeMap<String, u32>;

/// An arm that was drawn, and the weights it was drawn with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmAssignment {
    pub arm: String,
    pub weights: Weights,
}

/// Draws an arm for a conversation; `None` where no arm has any weight.
pub fn draw(experiment: &str, key: &SessionKey, weights: &Weights) -> Option<ArmAssignment> {
    let total: u64 = weights.values().copied().map(u64::from).sum();
    // The upper half of the product is a number below `total`, uniformly distributed.
    let mut lot = ((u128::from(lot(experiment, key)) * u128::from(total)) >> 64) as u64;
    for (arm, &weight) in weights {
        if lot < u64::from(weight) {
            return Some(ArmAssignment { arm: arm.clone(), weights: weights.clone() });
        }
        lot -= u64::from(weight);
    }
    None
}

/// Returns the probability that a conversation in one of two arms is in `arm` rather than in `control`.
pub fn share(weights: &Weights, arm: &str, control: &str) -> f64 {
    let weight = |name: &str| f64::from(weights.get(name).copied().unwrap_or(0));
    weight(arm) / (weight(arm) + weight(control))
}

fn lot(experiment: &str, key: &SessionKey) -> u64 {
    let digest = Sha256::new().chain_update(experiment).chain_update([0]).chain_update(key.to_string()).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(pairs: &[(&str, u32)]) -> Weights {
        pairs.iter().map(|(arm, weight)| ((*arm).to_owned(), *weight)).collect()
    }

    fn key(n: usize) -> SessionKey {
        format!("slack:dm:U{n}").parse().expect("a key")
    }

    #[test]
    fn the_shares_are_the_weights_and_the_draw_is_stable() {
        let weights = weights(&[("a", 1), ("b", 3), ("none", 0)]);
        let arms: Vec<String> = (0..4_000).map(|n| draw("less", &key(n), &weights).expect("an arm").arm).collect();
        let of = |name: &str| arms.iter().filter(|arm| *arm == name).count();
        assert_eq!(of("a") + of("b"), 4_000);
        assert!((900..1_100).contains(&of("a")), "{}", of("a"));
        let again: Vec<String> = (0..4_000).map(|n| draw("less", &key(n), &weights).expect("an arm").arm).collect();
        assert_eq!(arms, again);
        let another = (0..4_000).filter(|&n| draw("more", &key(n), &weights).expect("an arm").arm != arms[n]).count();
        assert!((1_300..1_700).contains(&another), "another experiment mixes anew: {another}");
        // Written down so that no later build deals differently.
        assert_eq!(draw("less", &key(0), &weights).map(|draw| draw.arm).as_deref(), Some("b"));
        assert_eq!(lot("less", &key(0)), 7_965_908_801_479_793_008);
    }

    #[test]
    fn nobody_draws_from_nothing() {
        assert_eq!(draw("less", &key(0), &weights(&[("a", 0)])), None);
        assert_eq!(draw("less", &key(0), &weights(&[])), None);
    }

    #[test]
    fn the_share_is_of_the_two_alone() {
        let weights = weights(&[("a", 1), ("b", 3), ("c", 6)]);
        assert!((share(&weights, "b", "a") - 0.75).abs() < 1e-12);
    }
}
