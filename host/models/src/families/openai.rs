//! Properties of OpenAI's models, by family (from OpenAI's model pages). `--window` overrides the window.

use super::Family;

/// A model of another server. Local ones often run with less than they could accept, and some silently cut off a longer
/// prompt, so these values are conservative.
const UNKNOWN: Family = Family { window: 32_000, max_answer_tokens: 16_384, thinks: false };

/// Prefixes of names; the longest that matches applies.
const FAMILIES: &[(&str, Family)] = &[
    ("gpt-5", Family { window: 272_000, max_answer_tokens: 128_000, thinks: true }),
    ("gpt-4.1", Family { window: 1_047_576, max_answer_tokens: 32_768, thinks: false }),
    ("gpt-4o", Family { window: 128_000, max_answer_tokens: 16_384, thinks: false }),
    ("o3", Family { window: 200_000, max_answer_tokens: 100_000, thinks: true }),
    ("o4", Family { window: 200_000, max_answer_tokens: 100_000, thinks: true }),
];

/// What answers in ChatGPT under the name of a model that thinks, and does not.
const CHAT: Family = Family { window: 128_000, max_answer_tokens: 16_384, thinks: false };

/// The family of a model; conservative values if it is not in the table. One behind a router, whose limits are not known,
/// thinks like the model itself.
pub fn of(model: &str) -> Family {
    known(model).unwrap_or_else(|| Family { thinks: super::thinks(model), ..UNKNOWN })
}

/// The family of a model, if it is in the table.
pub fn known(model: &str) -> Option<Family> {
    if model.starts_with("gpt-") && model.ends_with("-chat-latest") {
        return Some(CHAT);
    }
    FAMILIES
        .iter()
        .filter(|(prefix, _)| {
            model.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
        })
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, family)| *family)
}

/// Whether it is one of OpenAI's models that think, of which nothing comes meanwhile. A router's prefix is ignored.
pub fn thinks_in_silence(model: &str) -> bool {
    known(model.rsplit('/').next().unwrap_or(model)).is_some_and(|family| family.thinks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_a_suffix() {
        for (model, window) in [
            ("gpt-5", 272_000),
            ("gpt-5-mini", 272_000),
            ("gpt-5.1", 272_000),
            ("gpt-4.1-nano-2025-04-14", 1_047_576),
            ("gpt-4o-mini", 128_000),
            ("o3-mini", 200_000),
            ("gpt-50", 32_000),
            ("gpt-oss:20b", 32_000),
            ("llama3.2", 32_000),
        ] {
            assert_eq!(of(model).window, window, "{model}");
        }
        for (model, thinks, answer) in [
            ("gpt-5.1", true, 128_000),
            ("gpt-5.1-chat-latest", false, 16_384),
            ("openai/gpt-5", true, 16_384),
            ("anthropic/claude-sonnet-5-5", true, 16_384),
            ("openai/gpt-4o", false, 16_384),
        ] {
            let family = of(model);
            assert_eq!((family.thinks, family.max_answer_tokens), (thinks, answer), "{model}");
        }
    }
}
