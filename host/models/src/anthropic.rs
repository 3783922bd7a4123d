//! Anthropic's Messages API, streamed.

use async_trait::async_trait;
use jiff::SignedDuration;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};

use self::stream::Assembly;
use super::{
    Answer, Listener, Meter, Model, ModelError, OpenError, Request, classify,
    families::{self, Family},
    http::{Endpoint, HeardBy, Limits},
    room::MostGiven,
};

mod stream;
mod wire;

/// The provider's name.
pub(crate) const PROVIDER: &str = "anthropic-api";
/// The default model.
pub(crate) const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
/// The default address of the API.
pub(crate) const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
/// The protocol version used here.
const VERSION: &str = "2023-06-01";

/// The client's configuration. Its `Debug` output never contains the key.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sent as `x-api-key`.
    pub(crate) api_key: SecretString,
    /// `https`, or `http` on the loopback interface; see [`base_url`](super::http::base_url).
    pub(crate) base_url: Url,
    /// The model's name at the provider.
    pub(crate) model: String,
    /// The context window in tokens; with `None`, that of the model's family.
    pub window: Option<u64>,
    /// The time limits of a call, and the number of attempts.
    pub limits: Limits,
}

impl Config {
    /// A configuration with the default limits.
    pub fn new(api_key: SecretString, base_url: Url, model: impl Into<String>) -> Self {
        Config { api_key, base_url, model: model.into(), window: None, limits: Limits::default() }
    }
}

/// A client of the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    config: Config,
    endpoint: Endpoint,
    family: Family,
    most_given: MostGiven,
}

impl Anthropic {
    /// Creates the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// If the key cannot be sent in a header, or the machine's TLS roots cannot be used.
    pub fn new(config: Config) -> Result<Self, OpenError> {
        let mut key = HeaderValue::from_str(config.api_key.expose_secret()).map_err(|_| OpenError::BadKey)?;
        key.set_sensitive(true);
        let headers = [("x-api-key", key), ("anthropic-version", HeaderValue::from_static(VERSION))];
        let headers: HeaderMap =
            headers.into_iter().map(|(name, value)| (HeaderName::from_static(name), value)).collect();
        let endpoint = Endpoint::new(&config.base_url, "/v1/messages", headers, config.limits)?;
        let family = families::anthropic::of(&config.model);
        Ok(Anthropic { config, endpoint, family, most_given: MostGiven::default() })
    }

    async fn answer(&self, request: &Request, heard_by: HeardBy<'_>, meter: &Meter) -> Result<Answer, ModelError> {
        let mut asking = self.most_given.asking(self.family.room(request, self.window()));
        loop {
            let body = wire::body(&self.config.model, asking.tokens, request);
            let answered = self.endpoint.call::<Assembly>(body, heard_by, meter).await;
            if !asking.goes_on_after(&answered) {
                return classify::accept(answered?, self.window());
            }
        }
    }
}

#[async_trait]
impl Model for Anthropic {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn name(&self) -> &str {
        &self.config.model
    }

    fn window(&self) -> u64 {
        self.config.window.unwrap_or(self.family.window)
    }

    fn has_tools(&self) -> bool {
        true
    }

    fn has_images(&self) -> bool {
        true
    }

    fn most_given(&self) -> Option<u32> {
        self.most_given.known()
    }

    fn clock_ahead(&self) -> Option<SignedDuration> {
        self.endpoint.clock_ahead()
    }

    async fn ask(&self, request: &Request, meter: &Meter) -> Result<Answer, ModelError> {
        self.answer(request, None, meter).await
    }

    async fn ask_aloud(&self, request: &Request, listener: &dyn Listener, meter: &Meter) -> Result<Answer, ModelError> {
        self.answer(request, Some(listener), meter).await
    }
}

#[cfg(test)]
mod tests;
