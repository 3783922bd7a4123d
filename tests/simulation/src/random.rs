//! What is left to chance, and always falls out the same way for one seed.

use std::hash::{DefaultHasher, Hash, Hasher};

use fastrand::Rng;

/// Dice that only depend on the seed, on what they are thrown for, and on how often they were thrown for it.
pub fn dice(seed: u64, about: impl Hash) -> Rng {
    // Its keys are fixed, unlike those of a map.
    let mut hasher = DefaultHasher::new();
    (seed, about).hash(&mut hasher);
    Rng::with_seed(hasher.finish())
}

/// One of several.
pub fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}
