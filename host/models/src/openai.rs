//! Chat completions, as OpenAI and every compatible server (Ollama, vLLM, llama.cpp …) serve them,
//! streamed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pmk_core::Block;
use reqwest::header::{AUTHORIZATION, HeaderMap};

use self::{
    stream::Assembly,
    wire::{Form, Room},
};
use super::{
    Answer, Meter, ModelError, OpenError, Request, classify, families,
    http::{Endpoint, HeardBy},
    streamed::{Client, Config, Protocol},
    tool_ids::Ids,
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
    /// How the server wants its requests, as far as is known.
    form: Mutex<Form>,
}

impl Completions {
    fn form(&self) -> MutexGuard<'_, Form> {
        self.form.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Form {
    /// The form that a refusal of a request asks for in place of this one.
    fn asked_for(self, error: &ModelError, request: &Request) -> Option<Form> {
        // Azure, or a proxy, in front of OpenAI's newer models.
        if self.room == Room::Tokens && classify::wants_max_completion_tokens(error) {
            return Some(Form { room: Room::Completion, ..self });
        }
        // Databricks, xAI, Mistral.
        if self.has_counts && classify::refuses_stream_options(error) {
            return Some(Form { has_counts: false, ..self });
        }
        // OpenAI, Bedrock and Mistral, after a switch of the model.
        let mut called = request.messages.iter().flat_map(|message| &message.blocks).filter_map(call_id).peekable();
        if self.ids == Ids::AsGiven && called.peek().is_some() && classify::may_refuse_call_ids(error, called) {
            return Some(Form { ids: Ids::Short, ..self });
        }
        None
    }
}

fn call_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolUse { id, .. } => Some(id),
        _ => None,
    }
}

/// A client of a chat completions API. Its base URL includes the version, as in `https://api.openai.com/v1`.
pub type OpenAi = Client<Completions>;

impl Client<Completions> {
    /// Creates the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// If the key cannot be sent in a header, or the machine's TLS roots cannot be used.
    pub fn new(mut config: Config) -> Result<Self, OpenError> {
        let mut headers = HeaderMap::new();
        headers.extend(config.key_after("Bearer ")?.map(|key| (AUTHORIZATION, key)));
        let family = families::openai::of(&config.model);
        if families::openai::thinks_in_silence(&config.model) {
            config.limits.idle_timeout = config.limits.idle_timeout.saturating_mul(families::SILENCE);
        }
        // OpenAI's newer models refuse the old name, and not all other servers know the new one.
        let at_openai = config.base_url.host_str().is_some_and(|host| host.ends_with(".openai.com"));
        let room = if at_openai { Room::Completion } else { Room::Tokens };
        let form = Form { room, has_counts: true, ids: Ids::AsGiven };
        let protocol = Completions { form: Mutex::new(form) };
        Client::speaking(protocol, config, "/chat/completions", headers, family)
    }
}

#[async_trait]
impl Protocol for Completions {
    const PROVIDER: &'static str = PROVIDER;

    /// Sends the request in the form that the server accepts.
    async fn send(
        &self,
        endpoint: &Endpoint,
        model: &str,
        request: &Request,
        tokens: u32,
        heard_by: HeardBy<'_>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        let known = *self.form();
        let mut form = known;
        loop {
            let body = wire::body(model, form, tokens, request);
            let answered = endpoint.call::<Assembly>(body, heard_by, meter).await;
            if let Some(other) = answered.as_ref().err().and_then(|error| form.asked_for(error, request)) {
                form = other;
                continue;
            }
            // A refusal may have quoted what it was not about; only an answer tells.
            if answered.is_ok() && form != known {
                *self.form() = form;
            }
            return answered;
        }
    }
}

#[cfg(test)]
mod tests;
