//! Models: providers behind one trait, and the classification of their errors.
//!
//! [`open()`] turns `--model` into a [`Model`]. [`anthropic`] is a client of the Messages API, `openai` one of chat
//! completions; both are [`streamed`], with the events read by [`http`] and errors understood by
//! [`classify`](mod@classify). [`claude_cli`] runs the local `claude`; [`sim`] replaces all of them in tests. The
//! reaction to a failure is its [`Action`]; a request with a malformed history can be [repaired](repair()).

#![deny(missing_docs)]

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::SignedDuration;
use pmk_core::{Block, Message, text};
use serde::{Deserialize, Serialize};

mod action;
pub mod anthropic;
pub mod classify;
pub mod claude_cli;
mod counts;
mod error;
mod families;
mod foreign;
#[cfg(test)]
mod holes;
pub mod http;
mod images;
mod open;
mod open_error;
mod openai;
mod repair;
mod room;
pub mod sim;
mod sse;
pub mod streamed;
mod tool_ids;
pub mod windows;

pub use action::Action;
pub use error::{ErrorClass, ModelError};
pub use families::{ANSWER_SHARE, LEAST_ANSWER_TOKENS};
pub use images::Images;
pub use open::{Environment, ModelSpec, Provider, open};
pub use open_error::OpenError;
pub use repair::repair;

/// One request. Roles alternate, the first message is a user message, tool results come first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The system prompt; empty for none.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Room for the answer.
    pub max_answer_tokens: u32,
    /// The tools that the model may call; leave it empty where [`Model::has_tools`] is false.
    pub tools: Arc<[Tool]>,
    /// The bytes of images that the messages refer to. A missing image is described in words.
    pub images: Images,
}

/// A tool that a model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Consists of `a-z A-Z 0-9 _ -`.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of its input, of type `object`.
    pub input_schema: serde_json::Value,
}

/// The token counts reported by a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to the cache.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Prompt tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens written to the cache.
    pub cache_creation_tokens: u64,
}

impl Usage {
    /// All prompt tokens.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(self.cache_creation_tokens)
    }

    /// Adds the usage of another call.
    pub fn add(&mut self, other: Usage) {
        for (total, more) in [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_read_tokens, other.cache_read_tokens),
            (&mut self.cache_creation_tokens, other.cache_creation_tokens),
        ] {
            *total = total.saturating_add(more);
        }
    }
}

/// Adds up what a call costs while it is made: also what is spent on an attempt that fails, on an answer that is refused,
/// and on one that nobody waits for any longer.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Usage>);

impl Meter {
    /// Adds the usage of an attempt.
    pub fn add(&self, usage: Usage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
    }

    /// All that was spent so far.
    pub fn total(&self) -> Usage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The model finished.
    End,
    /// The limit of the answer was reached.
    MaxTokens,
    /// The window is full: the answer is cut short.
    WindowFull,
    /// The model calls tools.
    ToolUse,
}

/// A complete answer. A model may have nothing to say: then there are no blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Texts and tool calls, in order.
    pub blocks: Vec<Block>,
    /// Whether the model said everything it had to say.
    pub stop: Stop,
    /// Of the request that was answered; zero where the provider reports no counts.
    pub usage: Usage,
}

impl Answer {
    /// Whether it contains neither visible text nor a tool call.
    pub fn is_empty(&self) -> bool {
        let says_nothing = |text: &str| text::plain(text).trim().is_empty();
        self.blocks.iter().all(|block| matches!(block, Block::Text { text } if says_nothing(text)))
    }
}

/// Receives an answer while it is generated.
pub trait Listener: Send + Sync {
    /// Called with the text so far. If the answer starts over, the text received before is void.
    fn hear(&self, text: &str);
}

/// A model.
#[async_trait]
pub trait Model: Send + Sync {
    /// The provider's name: `sim`, `anthropic-api`.
    fn provider(&self) -> &'static str;

    /// The model's name, as the provider knows it.
    fn name(&self) -> &str;

    /// The context window in tokens.
    fn window(&self) -> u64;

    /// Whether it supports the tools of a request. If not, it never answers with a tool call.
    fn has_tools(&self) -> bool {
        false
    }

    /// Whether it accepts images. If not, they are described in words.
    fn has_images(&self) -> bool {
        false
    }

    /// The most tokens of an answer that its server was last found to give; `None` if it gives all that is asked for.
    fn most_given(&self) -> Option<u32> {
        None
    }

    /// How far this machine's clock is ahead of the provider's, from its last response; `None` if no response said so.
    fn clock_ahead(&self) -> Option<SignedDuration> {
        None
    }

    /// Sends a request. Waits and retries happen within, where they help; the meter counts what all of it costs.
    ///
    /// # Errors
    /// The [`ErrorClass`] says what kind of failure it was.
    async fn ask(&self, request: &Request, meter: &Meter) -> Result<Answer, ModelError>;

    /// As [`ask`](Model::ask); the listener receives the growing text, if the model supports that.
    ///
    /// # Errors
    /// As for [`ask`](Model::ask).
    async fn ask_aloud(
        &self,
        request: &Request,
        _listener: &dyn Listener,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        self.ask(request, meter).await
    }
}
