//! Properties of Anthropic's models, by family (from Anthropic's model pages). `--window` overrides the window.

use super::Family;

const SMALL: Family = Family { window: 200_000, max_answer_tokens: 64_000, thinks: false };

const LARGE: Family = Family { window: 1_000_000, max_answer_tokens: 128_000, thinks: false };

const FIRST_FOUR: Family = Family { window: 200_000, max_answer_tokens: 32_000, thinks: false };

const FIVE: Family = Family { thinks: true, ..LARGE };

/// A model that is not in the table.
const UNKNOWN: Family = SMALL;

/// What one of `claude`'s names for the newest model of a kind stands for.
const NEWEST: Family = Family { thinks: true, ..SMALL };

/// Prefixes of names; the longest that matches applies.
const FAMILIES: &[(&str, Family)] = &[
    ("claude-fable-5", FIVE),
    ("claude-haiku-5", FIVE),
    ("claude-opus-5", FIVE),
    ("claude-sonnet-5", FIVE),
    ("claude-opus-4-6", LARGE),
    ("claude-opus-4-7", LARGE),
    ("claude-opus-4-8", LARGE),
    ("claude-sonnet-4-6", LARGE),
    ("claude-opus-4", FIRST_FOUR),
    ("claude-opus-4-5", SMALL),
    ("claude-sonnet-4", SMALL),
    ("claude-haiku-4", SMALL),
];

/// The family of a model; conservative values if it is not in the table.
pub fn of(model: &str) -> Family {
    known(model).unwrap_or(UNKNOWN)
}

/// The family of a model as `claude` names it.
pub fn of_claude(model: &str) -> Family {
    known(model).unwrap_or(NEWEST)
}

/// The family of a model, if it is in the table.
pub fn known(model: &str) -> Option<Family> {
    FAMILIES
        .iter()
        .filter(|(prefix, _)| {
            model.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@', '[']))
        })
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, family)| *family)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_a_date() {
        for (model, window, answer) in [
            ("claude-sonnet-5-5", 1_000_000, 128_000),
            ("claude-haiku-5-5", 1_000_000, 128_000),
            ("claude-sonnet-5", 1_000_000, 128_000),
            ("claude-opus-4-6", 1_000_000, 128_000),
            ("claude-opus-4-1-20250805", 200_000, 32_000),
            ("claude-opus-4-20250514", 200_000, 32_000),
            ("claude-opus-4-5-20251101", 200_000, 64_000),
            ("claude-sonnet-4-5-20250929", 200_000, 64_000),
            ("claude-haiku-4-5", 200_000, 64_000),
            ("claude-sonnet-50", 200_000, 64_000),
            ("anything", 200_000, 64_000),
        ] {
            let Family { window: of_it, max_answer_tokens, .. } = of(model);
            assert_eq!((of_it, max_answer_tokens), (window, answer), "{model}");
        }
    }
}
