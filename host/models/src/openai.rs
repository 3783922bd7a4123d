//! Chat completions, as OpenAI and every compatible server (Ollama, vLLM, llama.cpp …) serve them,
//! streamed.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use jiff::SignedDuration;
use reqwest::{
    Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};

use self::{stream::Assembly, wire::Room};
use super::{
    Answer, Listener, Meter, Model, ModelError, OpenError, Request, classify,
    families::{self, Family},
    http::{Endpoint, HeardBy, Limits},
    room::MostGiven,
};

mod stream;
mod wire;

/// The provider's name.
pub const PROVIDER: &str = "openai";
/// The default model.
pub const DEFAULT_MODEL: &str = "gpt-5";
/// The default base URL of the API.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The client's configuration. Its `Debug` output never contains the key.
#[derive(Clone, Debug)]
pub struct Config {
    /// Many compatible servers need none.
    pub api_key: Option<SecretString>,
    /// With its version, as in `https://api.openai.com/v1`; see [`base_url`](super::http::base_url).
    pub base_url: Url,
    /// The model's name at the provider.
    pub model: String,
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
}

/// A client of a chat completions API.
#[derive(Debug)]
pub struct OpenAi {
    config: Config,
    endpoint: Endpoint,
    family: Family,
    most_given: MostGiven,
    /// Whether the server wants the newer name of the answer's token limit.
    wants_newer: AtomicBool,
}

impl OpenAi {
    /// Creates the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// If the key cannot be sent in a header, or the machine's TLS roots cannot be used.
    pub fn new(config: Config) -> Result<Self, OpenError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.api_key {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).map_err(|_| OpenError::BadKey)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let endpoint = Endpoint::new(&config.base_url, "/chat/completions", headers, config.limits)?;
        let family = families::openai::of(&config.model);
        // OpenAI's newer models refuse the old name, and not all other servers know the new one.
        let at_openai = config.base_url.host_str().is_some_and(|host| host.ends_with(".openai.com"));
        Ok(OpenAi {
            config,
            endpoint,
            family,
            most_given: MostGiven::default(),
            wants_newer: AtomicBool::new(at_openai),
        })
    }

    async fn answer(&self, request: &Request, heard_by: HeardBy<'_>, meter: &Meter) -> Result<Answer, ModelError> {
        let mut asking = self.most_given.asking(self.family.room(request, self.window()));
        loop {
            let answered = self.call(request, asking.tokens, heard_by, meter).await;
            if !asking.goes_on_after(&answered) {
                return classify::accept(answered?, self.window());
            }
        }
    }

    /// Asks for so many tokens, by the name that the server knows.
    async fn call(
        &self,
        request: &Request,
        tokens: u32,
        heard_by: HeardBy<'_>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        let room = if self.wants_newer.load(Ordering::Relaxed) { Room::Completion } else { Room::Tokens };
        match self.send(request, room, tokens, heard_by, meter).await {
            // Azure, or a proxy, in front of one of those models.
            Err(error) if room == Room::Tokens && classify::wants_max_completion_tokens(&error) => {
                self.wants_newer.store(true, Ordering::Relaxed);
                self.send(request, Room::Completion, tokens, heard_by, meter).await
            }
            answered => answered,
        }
    }

    async fn send(
        &self,
        request: &Request,
        room: Room,
        tokens: u32,
        heard_by: HeardBy<'_>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        let body = wire::body(&self.config.model, room, tokens, request);
        self.endpoint.call::<Assembly>(body, heard_by, meter).await
    }
}

#[async_trait]
impl Model for OpenAi {
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
