//! Variables and credentials of a service manager that will be present where the gateway runs, but are not present
//! here.

use super::{
    super::{arguments::variable, context::Context},
    Answers,
    given::Kind,
    key_variable, needs_no_key,
};
use crate::config::{Config, Secret};

/// The missing variables and credentials, and by which check each is needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited {
    variables: Vec<String>,
    credentials: Vec<String>,
    pub by_model: Vec<String>,
    pub by_slack: Vec<String>,
}

impl Awaited {
    /// Determines them from the answers, the written file and the store that is used.
    pub fn by(context: &Context, answers: &Answers, config: &Config) -> Awaited {
        let mut awaited = Awaited::default();
        let provider = answers.model.provider;
        awaited.by_model = match (key_variable(provider), &config.api_key) {
            (None, _) => vec![],
            (Some(_), None) if needs_no_key(provider, config.base_url.is_some()) => vec![],
            (Some(own), key) => awaited.tell(own, key.as_ref()),
        };
        if answers.slack.is_some() {
            let bot = awaited.tell(Kind::Bot.variable(), config.slack.bot_token.as_ref());
            let app = awaited.tell(Kind::App.variable(), config.slack.app_token.as_ref());
            awaited.by_slack = [bot, app].concat();
        }
        awaited.credentials.extend(context.awaited_password());
        awaited
    }

    /// All variables, for display.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// All credentials that a service manager must pass.
    pub fn credentials(&self) -> &[String] {
        &self.credentials
    }

    /// Records the missing source of a secret, and returns it unless the overriding variable `own` is set.
    fn tell(&mut self, own: &str, in_file: Option<&Secret>) -> Vec<String> {
        let unset = if let Some(name) = in_file.and_then(Secret::awaited_credential) {
            self.credentials.push(name.to_owned());
            name
        } else {
            let named = in_file.map_or(Some(own), Secret::variable);
            let Some(unset) = named.filter(|name| variable(name).is_none()) else { return vec![] };
            self.variables.push(unset.to_owned());
            unset
        };
        if variable(own).is_some() { vec![] } else { vec![unset.to_owned()] }
    }
}
