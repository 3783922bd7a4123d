//! Errors in words that nobody has seen before, by a seed.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

/// The seed of a test: `PMK_SEED`, where it is set. It is printed, so that a run can be repeated.
pub fn seed(default: u64) -> u64 {
    let seed = std::env::var("PMK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(default);
    println!("PMK_SEED={seed}");
    seed
}

/// Chance that can be repeated.
pub struct Chance(ChaCha8Rng);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        (self.0.next_u32() as usize) % end
    }

    /// Words that are in no dictionary.
    pub fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn word(&mut self) -> String {
        const SYLLABLES: [&str; 12] =
            ["zu", "vek", "oro", "plim", "sha", "gru", "ni", "wob", "kez", "ya", "fro", "dju"];
        (0..2 + self.below(3)).map(|_| SYLLABLES[self.below(SYLLABLES.len())]).collect()
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
