//! Properties of Anthropic's models, by family (from Anthropic's model pages). `--window` overrides the window.

/// The limits of a family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The context window in tokens.
    pub window: u64,
    /// The most tokens of one answer; a request for more is refused.
    pub max_answer_tokens: u32,
}

/// A model that is not in the table.
const UNKNOWN: Family = SMALL;

const SMALL: Family = Family { window: 200_000, max_answer_tokens: 64_000 };

const LARGE: Family = Family { window: 1_000_000, max_answer_tokens: 128_000 };

const FIRST_FOUR: Family = Family { window: 200_000, max_answer_tokens: 32_000 };

/// Prefixes of names; the longest that matches applies.
const FAMILIES: &[(&str, Family)] = &[
    ("claude-fable-5", LARGE),
    ("claude-opus-5", LARGE),
    ("claude-sonnet-5", LARGE),
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
            assert_eq!(of(model), Family { window, max_answer_tokens: answer }, "{model}");
        }
    }
}
