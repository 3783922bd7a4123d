//! The variables that have to be set where the gateway runs, as far as they are not set here.

use pmk_models::Provider;

use super::{super::arguments::variable, Answers, given::Kind};
use crate::config::{Config, Secret};

/// Them, by who cannot be looked at without.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited {
    /// All of them.
    told: Vec<String>,
    pub by_model: Vec<String>,
    pub by_slack: Vec<String>,
}

impl Awaited {
    /// With what the file says by now.
    pub fn by(answers: &Answers, config: &Config) -> Awaited {
        let mut awaited = Awaited::default();
        awaited.by_model = match answers.model.provider {
            Provider::AnthropicApi => awaited.tell("ANTHROPIC_API_KEY", config.api_key.as_ref()),
            // A server of one's own may want no key.
            Provider::OpenAi if variable("OPENAI_BASE_URL").is_none() => awaited.tell("OPENAI_API_KEY", None),
            Provider::OpenAi | Provider::ClaudeCli | Provider::Sim => vec![],
        };
        if answers.slack.is_some() {
            let bot = awaited.tell(Kind::Bot.variable(), config.slack.bot_token.as_ref());
            let app = awaited.tell(Kind::App.variable(), config.slack.app_token.as_ref());
            awaited.by_slack = [bot, app].concat();
        }
        awaited
    }

    /// All of them, for people.
    pub fn variables(&self) -> &[String] {
        &self.told
    }

    /// The variable of a secret that goes before the file's own, and what awaits it.
    fn tell(&mut self, own: &str, in_file: Option<&Secret>) -> Vec<String> {
        let named = in_file.map_or(Some(own), Secret::variable);
        let Some(unset) = named.filter(|name| variable(name).is_none()) else { return vec![] };
        self.told.push(unset.to_owned());
        if variable(own).is_some() { vec![] } else { vec![unset.to_owned()] }
    }
}
