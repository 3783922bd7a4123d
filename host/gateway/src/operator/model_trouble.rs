//! When the admins are told that the model refuses everybody: people who ask can only be told that they cannot help it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often the admins are told at most, should the model refuse some questions and answer others.
const AGAIN_AFTER_MS: i64 = 60 * 60 * 1_000;

/// What the admins were told of the model.
#[derive(Debug, Default)]
pub struct ModelTrouble(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    /// Whether the last thing they were told is that it refuses.
    refuses: bool,
    at_ms: Option<i64>,
}

impl ModelTrouble {
    /// The model refuses whatever is asked. Returns whether to tell the admins.
    pub(crate) fn refuses(&self, now_ms: i64) -> bool {
        let mut told = self.told();
        // A clock that was set back must not keep it from them for longer.
        let is_news = !told.refuses && told.at_ms.is_none_or(|at| (now_ms - at).abs() >= AGAIN_AFTER_MS);
        if is_news {
            *told = Told { refuses: true, at_ms: Some(now_ms) };
        }
        is_news
    }

    /// The model has answered. Returns whether to tell the admins.
    pub(crate) fn answers(&self) -> bool {
        std::mem::take(&mut self.told().refuses)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admins_are_told_once_and_of_a_model_that_wavers_once_an_hour() {
        let trouble = ModelTrouble::default();
        assert!(!trouble.answers());
        assert!(trouble.refuses(0) && !trouble.refuses(1));
        assert!(trouble.answers() && !trouble.answers());
        assert!(!trouble.refuses(2) && !trouble.answers());
        assert!(trouble.refuses(AGAIN_AFTER_MS));
        assert!(trouble.answers() && trouble.refuses(-AGAIN_AFTER_MS));
    }
}
