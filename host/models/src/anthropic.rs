//! Anthropic's Messages API, streamed.

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use self::stream::Assembly;
use super::{
    Answer, Meter, ModelError, OpenError, Request, families,
    http::{Endpoint, HeardBy},
    streamed::{Client, Config, Protocol},
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

/// The protocol of the Messages API.
#[derive(Debug)]
pub struct Messages;

/// A client of the Messages API.
pub type Anthropic = Client<Messages>;

impl Client<Messages> {
    /// Creates the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// If the key cannot be sent in a header, or the machine's TLS roots cannot be used.
    pub fn new(config: Config) -> Result<Self, OpenError> {
        let mut headers = HeaderMap::new();
        headers.extend(config.key_after("")?.map(|key| (HeaderName::from_static("x-api-key"), key)));
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        let family = families::anthropic::of(&config.model);
        Client::speaking(Messages, config, "/v1/messages", headers, family)
    }
}

#[async_trait]
impl Protocol for Messages {
    const PROVIDER: &'static str = PROVIDER;

    async fn send(
        &self,
        endpoint: &Endpoint,
        model: &str,
        request: &Request,
        tokens: u32,
        heard_by: HeardBy<'_>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        endpoint.call::<Assembly>(wire::body(model, tokens, request), heard_by, meter).await
    }
}

#[cfg(test)]
mod tests;
