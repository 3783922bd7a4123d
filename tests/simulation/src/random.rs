//! Random choices that are always the same for one seed.

use std::hash::{DefaultHasher, Hash, Hasher};

use fastrand::Rng;

/// A generator that depends only on the seed, on the purpose, and on how often it was used for that purpose.
pub fn dice(seed: u64, about: impl Hash) -> Rng {
    // Its keys are fixed, unlike those of a `HashMap`.
    let mut hasher = DefaultHasher::new();
    (seed, about).hash(&mut hasher);
    Rng::with_seed(hasher.finish())
}

/// Picks one of several.
pub fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}
