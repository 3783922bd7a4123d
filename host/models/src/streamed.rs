//! A client of a provider's API that streams its answers, in whatever protocol.

use async_trait::async_trait;
use jiff::SignedDuration;
use reqwest::{
    Url,
    header::{HeaderMap, HeaderValue, InvalidHeaderValue},
};
use secrecy::{ExposeSecret, SecretString};

use super::{
    Answer, Listener, Meter, Model, ModelError, OpenError, Request, classify,
    families::Family,
    http::{Endpoint, HeardBy, Limits},
    room::MostGiven,
};

/// The client's configuration. Its `Debug` output never contains the key.
#[derive(Clone, Debug)]
pub struct Config {
    /// Many compatible servers need none.
    pub(crate) api_key: Option<SecretString>,
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
    pub fn new(api_key: Option<SecretString>, base_url: Url, model: impl Into<String>) -> Self {
        Config { api_key, base_url, model: model.into(), window: None, limits: Limits::default() }
    }

    /// The value of the header with the key, which follows this prefix; `None` without a key.
    pub(crate) fn key_after(&self, prefix: &str) -> Result<Option<HeaderValue>, OpenError> {
        let value = |key: &SecretString| {
            let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.expose_secret()))?;
            value.set_sensitive(true);
            Ok(value)
        };
        self.api_key.as_ref().map(value).transpose().map_err(|_: InvalidHeaderValue| OpenError::BadKey)
    }
}

/// What providers do differently.
#[async_trait]
pub(crate) trait Protocol: Send + Sync {
    /// The provider's name.
    const PROVIDER: &'static str;

    /// Sends a request for an answer of so many tokens, and returns the whole answer.
    async fn send(
        &self,
        endpoint: &Endpoint,
        model: &str,
        request: &Request,
        tokens: u32,
        heard_by: HeardBy<'_>,
        meter: &Meter,
    ) -> Result<Answer, ModelError>;
}

/// A client that speaks one protocol.
#[derive(Debug)]
pub struct Client<P> {
    protocol: P,
    pub(crate) config: Config,
    pub(crate) endpoint: Endpoint,
    family: Family,
    most_given: MostGiven,
}

impl<P> Client<P> {
    /// Creates the client of what is served at this path.
    pub(crate) fn speaking(
        protocol: P,
        config: Config,
        path: &str,
        headers: HeaderMap,
        family: Family,
    ) -> Result<Self, OpenError> {
        let endpoint = Endpoint::new(&config.base_url, path, headers, config.limits)?;
        Ok(Client { protocol, config, endpoint, family, most_given: MostGiven::default() })
    }

    async fn answer(&self, request: &Request, heard_by: HeardBy<'_>, meter: &Meter) -> Result<Answer, ModelError>
    where
        P: Protocol,
    {
        let mut asking = self.most_given.asking(self.family.room(request, self.window()), request.max_answer_tokens);
        loop {
            let (endpoint, model) = (&self.endpoint, &self.config.model);
            let answered = self.protocol.send(endpoint, model, request, asking.tokens, heard_by, meter).await;
            if !asking.goes_on_after(&answered) {
                return classify::accept(answered?, self.window());
            }
        }
    }
}

#[async_trait]
impl<P: Protocol> Model for Client<P> {
    fn provider(&self) -> &'static str {
        P::PROVIDER
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
