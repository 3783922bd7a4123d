//! Moments that nobody has chosen, for what must hold at any.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

/// Draws moments, and whatever else is left to chance, from a seed. Only for tests whose outcome is the same whenever they fall.
pub struct Moments(ChaCha8Rng);

impl Moments {
    /// The seed is that of `PMK_TEST_SEED`, or a new one; a test that fails shows it.
    pub fn new() -> Moments {
        let given = std::env::var("PMK_TEST_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let seed: u64 = given.unwrap_or_else(|| RandomState::new().hash_one(()));
        eprintln!("PMK_TEST_SEED={seed}");
        Moments(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Lets some time pass, less than this.
    pub async fn pass(&mut self, most: Duration) {
        tokio::time::sleep(self.draw(most)).await;
    }

    /// The same in a test without a runtime.
    pub fn pass_blocking(&mut self, most: Duration) {
        std::thread::sleep(self.draw(most));
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.next_u64() as usize % end
    }

    /// One of these.
    pub fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn draw(&mut self, most: Duration) -> Duration {
        most.mul_f64(f64::from(self.0.next_u32()) / f64::from(u32::MAX))
    }
}
