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

/// Two arms, `a` and `b`, whose policies fail, are suspended for it and are skipped, as gateways do.
pub(crate) struct Suspending {
    dice: Dice,
    fails: [f64; 2],
    breakers: [Breaker; 2],
    now_ms: i64,
    /// Whether it is recorded where a policy was skipped.
    pub are_skips_known: bool,
    pub conversations: Vec<ArmConversation>,
}

/// The circuit breaker of an arm.
#[derive(Clone, Copy, Default)]
struct Breaker {
    /// The last 20 decisions, a bit each; set where it failed.
    recent: u32,
    /// How many decisions it is skipped for before it is tried again, and how many of them are left.
    open: Option<(u32, u32)>,
}

impl Breaker {
    /// Takes part in a decision in which the policy would fail or not; `None` if it is skipped.
    fn decide(&mut self, would_fail: bool) -> Option<bool> {
        match &mut self.open {
            None => {
                self.recent = (self.recent << 1 | u32::from(would_fail)) & ((1 << 20) - 1);
                if self.recent.count_ones() >= 5 {
                    *self = Breaker { recent: 0, open: Some((20, 20)) };
                }
            }
            Some((_, left)) if *left > 0 => {
                *left -= 1;
                return None;
            }
            Some((pause, left)) if would_fail => {
                *pause = (*pause * 2).min(1_280);
                *left = *pause;
            }
            Some(_) => *self = Breaker::default(),
        }
        Some(would_fail)
    }
}

impl Suspending {
    /// Creates a team whose arms have these weights, and fail with these probabilities.
    pub fn new(seed: u64, conversations: usize, weights: [u32; 2], fails: [f64; 2]) -> Suspending {
        let none = Trouble { everybody: 0.0, some: 0.0, share_of_some: 0.0 };
        let Team { dice, conversations, .. } = Team::drawn(seed, conversations, weights, [none; 2]);
        Suspending { dice, fails, breakers: [Breaker::default(); 2], now_ms: 0, are_skips_known: true, conversations }
    }

    /// Simulates a turn, and returns whether its policy was seen to fail.
    pub fn turn(&mut self) -> bool {
        self.now_ms += 1;
        let at = (self.dice.next() % self.conversations.len() as u64) as usize;
        let would_fail = self.dice.share();
        let conversation = &mut self.conversations[at];
        let arm = usize::from(conversation.arm == "b");
        conversation.turns += 1;
        let Some(failed) = self.breakers[arm].decide(would_fail < self.fails[arm]) else {
            if self.are_skips_known {
                conversation.unseen += 1;
                conversation.first_skipped_ms.get_or_insert(self.now_ms);
            }
            return false;
        };
        if failed {
            conversation.failed += 1;
            conversation.first_failed_ms.get_or_insert(self.now_ms);
        }
        failed
    }
}
