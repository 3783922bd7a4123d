//! Chat completions, as OpenAI and every compatible server (Ollama, vLLM, llama.cpp …) serve them,
//! streamed.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use self::{stream::Assembly, wire::Room};
use super::{
    Answer, Meter, ModelError, OpenError, Request, classify, families,
    http::{Endpoint, HeardBy},
    streamed::{Client, Config, Protocol},
};

mod stream;
mod wire;

/// The provider's name.
pub const PROVIDER: &str = "openai";
/// The default model.
pub const DEFAULT_MODEL: &str = "gpt-5";
/// The default base URL of the API.
pub const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The protocol of chat completions.
#[derive(Debug)]
pub struct Completions {
    /// Whether the server wants the newer name of the answer's token limit.
    wants_newer: AtomicBool,
}

/// A client of a chat completions API. Its base URL includes the version, as in `https://api.openai.com/v1`.
pub type OpenAi = Client<Completions>;

impl Client<Completions> {
    /// Creates the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// If the key cannot be sent in a header, or the machine's TLS roots cannot be used.
    pub fn new(config: Config) -> Result<Self, OpenError> {
        let mut headers = HeaderMap::new();
        headers.extend(config.key_after("Bearer ")?.map(|key| (AUTHORIZATION, key)));
        let family = families::openai::of(&config.model);
        // OpenAI's newer models refuse the old name, and not all other servers know the new one.
        let at_openai = config.base_url.host_str().is_some_and(|host| host.ends_with(".openai.com"));
        let protocol = Completions { wants_newer: AtomicBool::new(at_openai) };
        Client::speaking(protocol, config, "/chat/completions", headers, family)
    }
}

#[async_trait]
impl Protocol for Completions {
    const PROVIDER: &'static str = PROVIDER;

    /// Asks for the tokens by the name that the server knows.
    async fn send(
        &self,
        endpoint: &Endpoint,
        model: &str,
        request: &Request,
        tokens: u32,
        heard_by: HeardBy<'_>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        let call = |room| endpoint.call::<Assembly>(wire::body(model, room, tokens, request), heard_by, meter);
        let room = if self.wants_newer.load(Ordering::Relaxed) { Room::Completion } else { Room::Tokens };
        match call(room).await {
            // Azure, or a proxy, in front of one of those models.
            Err(error) if room == Room::Tokens && classify::wants_max_completion_tokens(&error) => {
                self.wants_newer.store(true, Ordering::Relaxed);
                call(Room::Completion).await
            }
            answered => answered,
        }
    }
}

#[cfg(test)]
mod tests;
