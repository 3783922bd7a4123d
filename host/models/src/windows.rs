//! The size of a model's window, as far as it is known without asking.

use super::{ModelSpec, Provider, anthropic, claude_cli, families, openai, sim};

/// A model's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Tokens of prompt and answer together.
    pub tokens: u64,
    /// Whether the model's family is known; otherwise the number is the gateway's assumption.
    pub is_known: bool,
}

/// The provider of a model by its name alone, if its family is known.
pub fn provider(model: &str) -> Option<Provider> {
    match (of_anthropic(model), of_openai(model)) {
        (Some(_), _) => Some(Provider::AnthropicApi),
        (None, Some(_)) => Some(Provider::OpenAi),
        (None, None) => None,
    }
}

/// The window that the gateway assumes for a model.
pub fn of(spec: &ModelSpec) -> Window {
    let named = |default: &'static str| spec.name.as_deref().unwrap_or(default);
    let (known, assumed) = match spec.provider {
        Provider::Sim => (Some(sim::DEFAULT_WINDOW), sim::DEFAULT_WINDOW),
        Provider::OpenAi => {
            let model = named(openai::DEFAULT_MODEL);
            (of_openai(model), families::openai::of(model).window)
        }
        Provider::AnthropicApi => {
            let model = named(anthropic::DEFAULT_MODEL);
            (of_anthropic(model), families::anthropic::of(model).window)
        }
        Provider::ClaudeCli => {
            let model = named(claude_cli::DEFAULT_MODEL);
            (of_anthropic(model), families::anthropic::of_claude(model).window)
        }
    };
    Window { tokens: spec.window.or(known).unwrap_or(assumed), is_known: spec.window.or(known).is_some() }
}

fn of_anthropic(model: &str) -> Option<u64> {
    families::anthropic::known(model).map(|family| family.window)
}

fn of_openai(model: &str) -> Option<u64> {
    families::openai::known(model).map(|family| family.window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_by_provider() {
        assert_eq!(provider("claude-opus-4-6"), Some(Provider::AnthropicApi));
        assert_eq!(provider("o3"), Some(Provider::OpenAi));
        assert_eq!(provider("sim"), None);
        for (spec, tokens, is_known) in [
            ("sim", 200_000, true),
            ("openai:gpt-5", 272_000, true),
            ("openai:llama3.2", 32_000, false),
            ("anthropic-api", 1_000_000, true),
            ("claude-cli", 200_000, false),
        ] {
            let spec: ModelSpec = spec.parse().expect(spec);
            assert_eq!(of(&spec), Window { tokens, is_known }, "{spec}");
        }
        let narrow = ModelSpec { provider: Provider::Sim, name: None, window: Some(9) };
        assert_eq!(of(&narrow), Window { tokens: 9, is_known: true });
    }
}
