//! Whether the arms have the shares of conversations that their weights give them. The assignment is a hash, so only a
//! fault makes them differ beyond chance: one in the assignment, or conversations that were lost. Either way the arms
//! no longer differ in their policies alone, and nothing may be concluded.
//!
//! Every conversation that has drawn an arm counts for that arm with the weights it was drawn with, whatever came of it
//! afterwards. So neither other weights nor a stopped arm look like a fault.

use std::collections::BTreeSet;

use crate::store::ArmConversation;

/// The evidence from which on the shares count as wrong: by chance, it is reached in at most 1 of 1,000 experiments,
/// however often one looks.
const BOUND: f64 = 1_000.0;

/// How many times as likely as its weight says an arm is assumed to be drawn. Any list keeps the error bound.
const RATIOS: [f64; 10] = [0.25, 0.5, 1.0 / 1.5, 0.8, 1.0 / 1.1, 1.1, 1.25, 1.5, 2.0, 4.0];

/// Returns the number of conversations that the weights give this arm on average.
pub(super) fn expected(conversations: &[ArmConversation], arm: &str) -> f64 {
    // The sum of nothing would be -0.
    draws(conversations, arm).fold(0.0, |sum, (_, share)| sum + share)
}

/// Whether the arms have other shares of the conversations than chance explains.
pub(super) fn is_mismatched(conversations: &[ArmConversation]) -> bool {
    let arms: BTreeSet<&String> = conversations.iter().flat_map(|it| it.weights.keys()).collect();
    // The average of several bets is a bet, too.
    let evidence = arms.iter().map(|arm| pmk_statistics::evidence(draws(conversations, arm), &RATIOS)).sum::<f64>();
    evidence / arms.len().max(1) as f64 >= BOUND
}

/// Returns for each conversation whether it drew this arm, and with which probability it did.
fn draws(conversations: &[ArmConversation], arm: &str) -> impl Iterator<Item = (bool, f64)> {
    conversations.iter().map(move |it| {
        let total: f64 = it.weights.values().copied().map(f64::from).sum();
        (it.arm == arm, it.weights.get(arm).map_or(0.0, |&weight| f64::from(weight) / total))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{guard_rail::simulation::Dice, store::assignment::Weights};

    /// Conversations that drew their arms with these shares, but are said to have drawn them with these weights.
    fn drawn(dice: &mut Dice, count: usize, shares: [u32; 3], said: [u32; 3]) -> Vec<ArmConversation> {
        let names = ["a", "b", "c"];
        let weights: Weights = names.iter().zip(said).map(|(arm, weight)| ((*arm).to_owned(), weight)).collect();
        let conversation = |_| {
            let lot = dice.share() * f64::from(shares.iter().sum::<u32>());
            let at = usize::from(lot >= f64::from(shares[0])) + usize::from(lot >= f64::from(shares[0] + shares[1]));
            ArmConversation { arm: names[at].into(), weights: weights.clone(), ..ArmConversation::default() }
        };
        (0..count).map(conversation).collect()
    }

    fn is_ever_mismatched(conversations: &[ArmConversation]) -> bool {
        (1..=conversations.len()).step_by(20).any(|count| is_mismatched(&conversations[..count]))
    }

    /// The weights change, and an arm is stopped: it has no weight any more.
    #[test]
    fn shares_that_follow_the_weights_are_hardly_ever_a_mismatch_however_often_one_looks() {
        let mismatched = (0..300).filter(|&seed| {
            let mut dice = Dice::new(seed);
            let stages = [[1, 1, 1], [19, 1, 4], [19, 0, 4]];
            let conversations = stages.map(|weights| drawn(&mut dice, 100, weights, weights)).concat();
            is_ever_mismatched(&conversations)
        });
        let mismatched = mismatched.count();
        assert!(mismatched <= 1, "{mismatched} of 300, at a nominal 0.3");
    }

    #[test]
    fn shares_that_do_not_follow_the_weights_are_a_mismatch() {
        for (shares, said) in [([2, 1, 0], [1, 1, 0]), ([9, 1, 2], [9, 3, 2]), ([1, 1, 1], [1, 1, 0])] {
            let found = (0..100).filter(|&seed| is_ever_mismatched(&drawn(&mut Dice::new(seed), 600, shares, said)));
            let found = found.count();
            assert!(found >= 95, "{shares:?} instead of {said:?} in {found} of 100");
        }
    }

    #[test]
    fn the_expected_number_follows_the_weights_of_each_draw() {
        let mut dice = Dice::new(1);
        let conversations =
            [drawn(&mut dice, 100, [1, 1, 0], [1, 1, 0]), drawn(&mut dice, 40, [1, 0, 0], [1, 0, 0])].concat();
        let expected = ["a", "b", "none"].map(|arm| expected(&conversations, arm));
        assert_eq!(expected, [90.0, 50.0, 0.0]);
        assert!(!is_mismatched(&[]), "nobody has drawn yet");
    }
}
