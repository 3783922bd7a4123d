//! Assembles the events of a streamed answer into the whole answer, or into the error instead of one.

use std::borrow::Cow;

use pmk_core::Block;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Answer, ModelError, Stop, Usage, classify,
    counts::{self, Count},
    foreign,
    http::Assemble,
    sse::Event,
};

/// The maximum size of an answer, in bytes: far above that of any model.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// An answer that is being received.
#[derive(Debug, Default)]
pub struct Assembly {
    started: bool,
    blocks: Vec<Part>,
    /// The block that deltas belong to.
    open: Option<usize>,
    usage: Usage,
    stop: Option<StopDelta>,
    bytes: usize,
}

#[derive(Debug)]
enum Part {
    Text(String),
    ToolUse {
        id: String,
        name: String,
        json: String,
    },
    /// Thinking, and block types introduced later: not part of the conversation.
    Ignored,
}

impl Part {
    /// From a block that is not sent in pieces.
    fn whole(block: ContentBlock) -> Self {
        match block {
            ContentBlock::Text { text } => Part::Text(text),
            ContentBlock::ToolUse { id, name, input } => {
                Part::ToolUse { id, name, json: if input.is_null() { String::new() } else { input.to_string() } }
            }
            ContentBlock::Unknown => Part::Ignored,
        }
    }

    fn is_call(&self) -> bool {
        matches!(self, Part::ToolUse { .. })
    }

    fn is_said(&self) -> bool {
        matches!(self, Part::Text(text) if !text.is_empty())
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Data {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: usize,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: StopDelta,
        #[serde(default, deserialize_with = "counts::lenient")]
        usage: UsageDelta,
    },
    MessageStop,
    /// An answer that is not streamed.
    Message {
        content: Vec<ContentBlock>,
        stop_reason: Option<String>,
        #[serde(default)]
        stop_details: Value,
        #[serde(default, deserialize_with = "counts::lenient")]
        usage: UsageDelta,
    },
    Error,
    /// `ping`, and event types introduced later.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
struct Started {
    #[serde(default, deserialize_with = "counts::lenient")]
    usage: UsageDelta,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// Empty where the input is sent in pieces.
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
struct StopDelta {
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Value,
}

/// Token counts so far; later ones replace earlier ones.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UsageDelta {
    input_tokens: Count,
    output_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
}

impl Assemble for Assembly {
    fn text(&self) -> Cow<'_, str> {
        let mut texts = self.blocks.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::ToolUse { .. } | Part::Ignored => None,
        });
        let first = texts.next().unwrap_or_default();
        texts.fold(first.into(), |text, more| text + "\n" + more)
    }

    fn has_begun(&self) -> bool {
        self.started
    }

    fn apply(&mut self, event: &Event) -> Result<Option<Answer>, ModelError> {
        if event.name == "ping" {
            return Ok(None);
        }
        if event.name == "error" {
            return Err(classify::in_place_of_an_answer(&event.data));
        }
        let data: Data = match foreign::json(&event.data) {
            Ok(data) => data,
            // Even if other fields are missing.
            Err(_) if foreign::is_error(&event.data) => return Err(classify::in_place_of_an_answer(&event.data)),
            Err(_) if !KNOWN_EVENTS.contains(&event.name.as_str()) => return Ok(None),
            Err(error) => return Err(malformed(format_args!("`{}` event: {error}", event.name))),
        };
        self.bytes += event.data.len();
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(malformed(format_args!("the answer is larger than {MAX_ANSWER_BYTES} bytes")));
        }
        match data {
            Data::MessageStart { message } => {
                self.started = true;
                self.count(&message.usage);
            }
            Data::ContentBlockStart { index, content_block } => self.open(index, content_block)?,
            Data::ContentBlockDelta { index, delta } => self.extend(index, delta)?,
            Data::ContentBlockStop { index } => {
                self.require_open(index)?;
                self.open = None;
            }
            Data::MessageDelta { delta, usage } => {
                self.count(&usage);
                self.stop = Some(delta);
            }
            Data::MessageStop => return self.finish().map(Some),
            Data::Message { content, stop_reason, stop_details, usage } => {
                self.started = true;
                self.count(&usage);
                self.stop = Some(StopDelta { stop_reason, stop_details });
                self.blocks = content.into_iter().map(Part::whole).collect();
                return self.finish().map(Some);
            }
            Data::Error => return Err(classify::in_place_of_an_answer(&event.data)),
            Data::Unknown => {}
        }
        Ok(None)
    }

    fn end(&mut self) -> Option<Result<Answer, ModelError>> {
        let has_reason = self.stop.as_ref().is_some_and(|stop| stop.stop_reason.is_some());
        (has_reason && self.open.is_none()).then(|| self.finish())
    }

    fn whole(&mut self, document: &str) -> Result<Option<Answer>, ModelError> {
        self.apply(&Event { name: "message".to_owned(), data: document.to_owned() })
    }
}

impl Assembly {
    fn count(&mut self, seen: &UsageDelta) {
        for (total, seen) in [
            (&mut self.usage.input_tokens, seen.input_tokens),
            (&mut self.usage.output_tokens, seen.output_tokens),
            (&mut self.usage.cache_creation_tokens, seen.cache_creation_input_tokens),
            (&mut self.usage.cache_read_tokens, seen.cache_read_input_tokens),
        ] {
            *total = seen.0.unwrap_or(*total);
        }
    }

    fn open(&mut self, index: usize, block: ContentBlock) -> Result<(), ModelError> {
        if !self.started || self.open.is_some() || index != self.blocks.len() {
            return Err(malformed(format_args!("content block {index} out of order")));
        }
        self.open = Some(index);
        self.blocks.push(match block {
            ContentBlock::Text { text } => Part::Text(text),
            ContentBlock::ToolUse { id, name, .. } => Part::ToolUse { id, name, json: String::new() },
            ContentBlock::Unknown => Part::Ignored,
        });
        Ok(())
    }

    fn extend(&mut self, index: usize, delta: Delta) -> Result<(), ModelError> {
        self.require_open(index)?;
        match (&mut self.blocks[index], delta) {
            (Part::Text(text), Delta::Text { text: more }) => text.push_str(&more),
            (Part::ToolUse { json, .. }, Delta::InputJson { partial_json }) => json.push_str(&partial_json),
            (Part::Ignored, _) | (_, Delta::Unknown) => {}
            _ => return Err(malformed(format_args!("content block {index} changed its type"))),
        }
        Ok(())
    }

    fn require_open(&self, index: usize) -> Result<(), ModelError> {
        if self.open == Some(index) {
            Ok(())
        } else {
            Err(malformed(format_args!("content block {index} is not open")))
        }
    }

    fn finish(&mut self) -> Result<Answer, ModelError> {
        let done = std::mem::take(self);
        let StopDelta { stop_reason: Some(reason), stop_details } =
            done.stop.ok_or_else(|| malformed(format_args!("it ended without a stop reason")))?
        else {
            return Err(malformed(format_args!("it ended without a stop reason")));
        };
        let stop = match reason.as_str() {
            "max_tokens" => Stop::MaxTokens,
            "model_context_window_exceeded" => Stop::WindowFull,
            "refusal" => {
                let why = stop_details.get("explanation").and_then(Value::as_str).unwrap_or("it gave no reason");
                return Err(ModelError::Refused { message: why.to_owned() });
            }
            // Proxies in front of other models do not always say `tool_use`.
            _ if done.blocks.iter().any(Part::is_call) => Stop::ToolUse,
            "end_turn" | "stop_sequence" | "tool_use" => Stop::End,
            // A stop reason introduced later, or `pause_turn`, which is for server-side tools that we do not use: the
            // answer so far is kept, because it was paid for.
            _ if done.blocks.iter().any(Part::is_said) => Stop::End,
            other => return Err(ModelError::Other { message: format!("the answer ended early with `{other}`") }),
        };
        if done.open.is_some() {
            return Err(malformed(format_args!("it ended within a content block")));
        }
        let is_cut = matches!(stop, Stop::MaxTokens | Stop::WindowFull);
        let mut blocks = Vec::with_capacity(done.blocks.len());
        for part in done.blocks {
            match part {
                Part::Text(text) if !text.is_empty() => blocks.push(Block::Text { text }),
                Part::ToolUse { id, name, json } => {
                    // A call in the middle of which the answer's limit was reached cannot be made.
                    if let Some(input) = foreign::input(&json, is_cut) {
                        blocks.push(Block::ToolUse { id, name, input });
                    }
                }
                Part::Text(_) | Part::Ignored => {}
            }
        }
        Ok(Answer { blocks, stop, usage: done.usage })
    }
}

/// Event types that must be parsed; any other may have any content.
const KNOWN_EVENTS: &[&str] = &[
    "message",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

fn malformed(what: std::fmt::Arguments<'_>) -> ModelError {
    ModelError::Transport { message: format!("the stream is malformed: {what}") }
}

#[cfg(test)]
mod tests;
