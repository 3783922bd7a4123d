//! A simulated team for tests: conversations of very different lengths, some with more trouble than others.

use pmk_core::testing::Rng;

use crate::store::{ArmConversation, assignment::Weights};

/// The probabilities that a turn goes wrong.
#[derive(Clone, Copy)]
pub(crate) struct Trouble {
    pub everybody: f64,
    /// The probability in the share `share_of_some` of the conversations.
    pub some: f64,
    pub share_of_some: f64,
}

/// Random numbers that are the same on every machine.
pub(crate) struct Dice(Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // The figures in the tests were found with these very numbers.
        Dice(Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d))
    }

    pub fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Two arms, `a` and `b`, and what has happened so far.
pub(crate) struct Team {
    dice: Dice,
    trouble: [Trouble; 2],
    /// For each conversation, the cumulative weight of how often it continues, and the probability that a turn goes
    /// wrong.
    people: Vec<(f64, f64)>,
    pub conversations: Vec<ArmConversation>,
}

impl Team {
    pub fn new(seed: u64, conversations: usize, trouble: [Trouble; 2]) -> Team {
        Team::drawn(seed, conversations, [1, 1], trouble)
    }

    /// Creates a team whose arms have these weights.
    pub fn drawn(seed: u64, conversations: usize, weights: [u32; 2], trouble: [Trouble; 2]) -> Team {
        let mut dice = Dice::new(seed);
        let [of_a, of_b] = weights;
        let weights = Weights::from([("a".into(), of_a), ("b".into(), of_b)]);
        let mut people = Vec::new();
        let mut often = 0.0;
        let conversations = (0..conversations).map(|_| {
            let arm = usize::from(dice.next() % u64::from(of_a + of_b) >= u64::from(of_a));
            let Trouble { everybody, some, share_of_some } = trouble[arm];
            let likely = if dice.share() < share_of_some { some } else { everybody };
            // A few conversations have most of the turns.
            often += 1.0 / (0.02 + dice.share());
            people.push((often, likely));
            ArmConversation { arm: ["a", "b"][arm].into(), weights: weights.clone(), ..ArmConversation::default() }
        });
        let conversations = conversations.collect();
        Team { dice, trouble, people, conversations }
    }

    /// Simulates this many turns.
    pub fn turns(&mut self, turns: u32) {
        for _ in 0..turns {
            self.turn();
        }
    }

    /// Simulates a turn, and returns whether it went wrong.
    pub fn turn(&mut self) -> bool {
        let all = self.people.last().map_or(0.0, |(often, _)| *often);
        let lot = self.dice.share() * all;
        let at = self.people.partition_point(|(often, _)| *often <= lot);
        let overflowed = self.dice.share() < self.people[at].1;
        let often = self.people[at].0 - if at == 0 { 0.0 } else { self.people[at - 1].0 };
        let tokens = (1_000.0 * (1.0 + 9.0 * self.dice.share() * often / 50.0)) as u64;
        let reasked = self.dice.share() < self.trouble[0].everybody * 4.0;
        let conversation = &mut self.conversations[at];
        conversation.turns += 1;
        conversation.overflowed += u64::from(overflowed);
        conversation.reasked += u64::from(reasked);
        conversation.tokens_in += tokens;
        conversation.latency_ms += tokens / 2;
        overflowed
    }
}
