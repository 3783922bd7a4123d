//! Chooses the model: the one that is named, or a default.

use std::{sync::Arc, time::Duration};

use pmk_models::{self as model, Environment, Model, ModelSpec, Provider};
use pmk_system::error::Failure;

use super::tokens::Tokens;
use crate::{
    config::{Config, Secret},
    messages::Notice,
};

/// The model of a configuration that names none (specification 000).
const DEFAULT_MODEL: &str = "claude-cli";
/// The model if there is no configuration either.
const MODEL_WITHOUT_CONFIG: &str = "sim";

/// The chosen model.
pub(super) enum Chosen {
    /// Named by the command line.
    Named(String),
    /// Named by gateway.json.
    OfFile(String),
    /// The gateway is set up, but no model is named.
    Usual,
    /// Nothing is set up.
    StandIn,
}

impl Chosen {
    /// Chooses the model; the command line takes precedence over the file.
    pub(super) fn of(named: Option<&str>, config: &Config) -> Chosen {
        match (named, &config.model) {
            (Some(named), _) => Chosen::Named(named.to_owned()),
            (None, Some(model)) => Chosen::OfFile(model.clone()),
            (None, None) if config.exists && (config.is_set_up() || Tokens::of(&config.slack).are_any()) => {
                Chosen::Usual
            }
            (None, None) => Chosen::StandIn,
        }
    }

    /// `PROVIDER[:NAME]`.
    pub(super) fn name(&self) -> &str {
        match self {
            Chosen::Named(name) | Chosen::OfFile(name) => name,
            Chosen::Usual => DEFAULT_MODEL,
            Chosen::StandIn => MODEL_WITHOUT_CONFIG,
        }
    }

    /// Parses the name.
    ///
    /// # Errors
    /// It is not the name of a model; the error says where it is written.
    fn spec(&self) -> Result<ModelSpec, Failure> {
        self.name().parse::<ModelSpec>().map_err(|error| {
            let failure = Failure::from(error);
            let Chosen::OfFile(_) = self else { return failure };
            let (what, hint) = failure.into_parts();
            Failure::new(format!("gateway.json: `model`: {what}")).hint(hint.unwrap_or_default())
        })
    }

    /// Returns the notice for the operator, if there is one.
    pub(super) fn notice(&self) -> Option<Notice> {
        matches!(self, Chosen::StandIn).then_some(Notice::Sim)
    }
}

/// The secret of gateway.json that is the key of this model, unless the environment has a key.
pub(super) fn key_in_file<'c>(chosen: &Chosen, environment: &Environment, config: &'c Config) -> Option<&'c Secret> {
    let provider = chosen.name().parse::<ModelSpec>().ok()?.provider;
    let is_set = match provider {
        Provider::OpenAi => environment.openai_api_key.is_some(),
        _ => environment.anthropic_api_key.is_some(),
    };
    config.api_key.as_ref().filter(|_| provider == config.whose() && !is_set)
}

/// Opens the model with the limits, the key and the address of gateway.json; environment variables take precedence. If
/// the file has a command for the key, it is run here.
///
/// # Errors
/// The model is invalid, or lacks something that it needs.
pub(super) fn open_model(
    chosen: &Chosen,
    window: Option<u64>,
    mut environment: Environment,
    config: &Config,
) -> Result<Arc<dyn Model>, Failure> {
    let within = |given: Option<Duration>, seconds| given.unwrap_or_else(|| Duration::from_secs_f64(seconds));
    environment.idle_timeout = Some(within(environment.idle_timeout, config.limits.model_idle_seconds));
    environment.call_timeout = Some(within(environment.call_timeout, config.limits.model_total_seconds));
    let opened = (|| -> Result<Arc<dyn Model>, Failure> {
        let spec = chosen.spec()?.with_window(window);
        // Key and address in the file belong to one provider only.
        if spec.provider == config.whose() {
            let in_file = key_in_file(chosen, &environment, config);
            let (key, address) = match spec.provider {
                Provider::OpenAi => (&mut environment.openai_api_key, &mut environment.openai_base_url),
                _ => (&mut environment.anthropic_api_key, &mut environment.anthropic_base_url),
            };
            if let Some(in_file) = in_file {
                *key = Some(in_file.resolve()?);
            }
            *address = address.take().or_else(|| config.base_url.clone());
        }
        Ok(model::open(&spec, &environment)?)
    })();
    opened.map_err(|error| match chosen {
        Chosen::Usual => {
            let error = error.message();
            Failure::new(format!("gateway.json does not set `model`, and the default cannot be used: {error}"))
                .hint("add `\"model\": \"anthropic-api\"` to gateway.json, or use `--model`")
        }
        Chosen::Named(_) | Chosen::OfFile(_) | Chosen::StandIn => error,
    })
}
