//! When the admins are told that the model refuses everybody: people who ask can only be told that they cannot help it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calibration::bounds::has_passed;

/// How often the admins are told at most, should the model refuse some questions and answer others.
const AGAIN_AFTER_MS: i64 = 10 * 60 * 1_000;

/// What the admins were told of the model by this run; the next one says nothing of its first answer.
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
        let is_news = !told.refuses && told.at_ms.is_none_or(|at| has_passed(AGAIN_AFTER_MS, at, now_ms));
        if is_news {
            *told = Told { refuses: true, at_ms: Some(now_ms) };
        }
        is_news
    }

    /// The model has answered a question that it was asked at this time. Returns whether to tell the admins: not of an
    /// answer that had begun before it refused.
    pub(crate) fn answers(&self, asked_at_ms: i64) -> bool {
        let mut told = self.told();
        let is_news = told.refuses && told.at_ms.is_some_and(|at| asked_at_ms >= at);
        told.refuses &= !is_news;
        is_news
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admins_are_told_once_and_of_a_model_that_wavers_every_ten_minutes() {
        let trouble = ModelTrouble::default();
        assert!(!trouble.answers(0));
        assert!(trouble.refuses(5) && !trouble.refuses(6));
        assert!(!trouble.answers(4), "it was asked before");
        assert!(trouble.answers(7) && !trouble.answers(8));
        assert!(!trouble.refuses(9) && !trouble.answers(9));
        let later = 5 + AGAIN_AFTER_MS;
        assert!(trouble.refuses(later) && trouble.answers(later));
        assert!(trouble.refuses(later - AGAIN_AFTER_MS), "the clock was set back");
    }
}
