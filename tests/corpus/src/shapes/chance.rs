//! Choices out of a seed.

use std::ops::RangeInclusive;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

/// The choices of one conversation.
pub(super) struct Chance(ChaCha8Rng);

impl Chance {
    pub fn new(seed: u64, stream: u64) -> Chance {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Chance(random)
    }

    pub fn between(&mut self, range: RangeInclusive<usize>) -> usize {
        let count = (range.end() - range.start() + 1) as u64;
        range.start() + (self.0.next_u64() % count) as usize
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.between(1..=count) == 1
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.between(0..=list.len() - 1)]
    }
}
