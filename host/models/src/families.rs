//! Properties of models, known from their names.

pub mod anthropic;
pub mod openai;

/// The window of a model by its name alone, if its family is known. A router's prefix (`anthropic/claude-sonnet-4-5`)
/// is ignored.
pub fn window(model: &str) -> Option<u64> {
    let model = model.rsplit('/').next().unwrap_or(model);
    let of_anthropic = || anthropic::known(model).map(|family| family.window);
    of_anthropic().or_else(|| openai::known(model).map(|family| family.window))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_known_by_the_name_alone() {
        assert_eq!(window("claude-opus-4-6"), Some(1_000_000));
        assert_eq!(window("openai/gpt-4o-mini"), Some(128_000));
        assert_eq!(window("llama3.2"), None);
    }
}
