//! Assembles the events of a streamed answer into the whole answer, or into the error instead of one.
//!
//! Proxies and compatible servers differ in details, all accepted here: blocks that are numbered otherwise, that begin or
//! end unannounced, or of which several are open; a call's whole input in its beginning; `[DONE]` as the end; `null`
//! for whatever is missing. Only a reason to stop makes an answer whole.

use std::borrow::Cow;

use pmk_core::Block;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Answer, ErrorClass, ModelError, Stop, Usage, classify,
    counts::{self, Count},
    error::MAX_ANSWER_BYTES,
    foreign,
    http::Assemble,
    sse::Event,
};

/// The maximum number of blocks in an answer: they are searched for each part of it.
const MAX_BLOCKS: usize = 1 << 12;

/// An answer that is being received.
#[derive(Debug, Default)]
pub struct Assembly {
    started: bool,
    blocks: Vec<ReceivedBlock>,
    unread: Option<String>,
    usage: Usage,
    stop: Option<StopDelta>,
}

#[derive(Debug)]
struct ReceivedBlock {
    /// The index of the deltas that belong to it, until it has ended.
    open: Option<usize>,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Text(String),
    ToolUse {
        id: String,
        name: String,
        json: String,
        /// The input that came with the beginning, which counts if no piece of it follows.
        announced: String,
    },
    /// Thinking, and block types introduced later: not part of the conversation.
    Ignored,
}

impl Part {
    /// From a block that is not sent in pieces.
    fn whole(block: ContentBlock) -> Self {
        match block {
            ContentBlock::ToolUse { id, name, input } if !input.is_null() => {
                Part::ToolUse { id, name, json: input.to_string(), announced: String::new() }
            }
            block => Part::begun(block),
        }
    }

    /// From the beginning of a block.
    fn begun(block: ContentBlock) -> Self {
        match block {
            ContentBlock::Text { text } => Part::Text(text),
            ContentBlock::ToolUse { id, name, input } => {
                let is_empty = input.as_object().is_none_or(Map::is_empty);
                let announced = if is_empty { String::new() } else { input.to_string() };
                Part::ToolUse { id, name, json: String::new(), announced }
            }
            ContentBlock::Unknown => Part::Ignored,
        }
    }

    /// A call of nothing is none.
    fn is_call(&self) -> bool {
        match self {
            Part::ToolUse { name, json, announced, .. } => [name, json, announced].iter().any(|part| !part.is_empty()),
            Part::Text(_) | Part::Ignored => false,
        }
    }

    fn is_said(&self) -> bool {
        matches!(self, Part::Text(text) if !text.is_empty())
    }

    /// The block that a delta belongs to, where none was announced; `None` if nothing of it is kept.
    fn unannounced(delta: &Delta) -> Option<Self> {
        match delta {
            Delta::Text { .. } => Some(Part::Text(String::new())),
            Delta::InputJson { .. } => {
                Some(Part::begun(ContentBlock::ToolUse { id: String::new(), name: String::new(), input: Value::Null }))
            }
            Delta::Unknown => None,
        }
    }

    fn extend(&mut self, delta: &Delta) {
        match (self, delta) {
            (Part::Text(text), Delta::Text { text: Some(more) }) => text.push_str(more),
            (Part::ToolUse { json, .. }, Delta::InputJson { partial_json: Some(more) }) => json.push_str(more),
            _ => {}
        }
    }

    fn kept_bytes(&self) -> usize {
        match self {
            Part::Text(text) => text.len(),
            Part::ToolUse { id, name, json, announced } => id.len() + name.len() + json.len() + announced.len(),
            Part::Ignored => 0,
        }
    }

    /// Whether a delta is of its type.
    fn takes(&self, delta: &Delta) -> bool {
        matches!(
            (self, delta),
            (Part::Ignored, _) | (Part::Text(_), Delta::Text { .. }) | (Part::ToolUse { .. }, Delta::InputJson { .. })
        )
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Data {
    MessageStart {
        #[serde(default, deserialize_with = "foreign::nullable")]
        message: Started,
    },
    ContentBlockStart {
        index: Option<usize>,
        content_block: Option<ContentBlock>,
    },
    ContentBlockDelta {
        index: Option<usize>,
        #[serde(default, deserialize_with = "foreign::nullable")]
        delta: Delta,
    },
    ContentBlockStop {
        index: Option<usize>,
    },
    MessageDelta {
        delta: Option<StopDelta>,
        #[serde(default, deserialize_with = "counts::lenient")]
        usage: UsageDelta,
    },
    MessageStop,
    /// An answer that is not streamed.
    Message {
        #[serde(default, deserialize_with = "foreign::list")]
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

#[derive(Debug, Default, Deserialize)]
struct Started {
    #[serde(default, deserialize_with = "counts::lenient")]
    usage: UsageDelta,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        #[serde(default, deserialize_with = "foreign::nullable")]
        text: String,
    },
    ToolUse {
        #[serde(default, deserialize_with = "foreign::nullable")]
        id: String,
        #[serde(default, deserialize_with = "foreign::nullable")]
        name: String,
        /// As a rule empty where the input is sent in pieces.
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: Option<String> },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: Option<String> },
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
struct StopDelta {
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Value,
}

impl StopDelta {
    /// Whether it names a reason.
    fn is_one(&self) -> bool {
        self.stop_reason.as_ref().is_some_and(|reason| !reason.is_empty())
    }
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
        let mut texts = self.blocks.iter().filter_map(|block| match &block.part {
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
        if event.data.trim() == "[DONE]" {
            return self.finish().map(Some);
        }
        let data: Data = match foreign::data(&event.data) {
            Ok(Some(data)) => data,
            Ok(None) => return Ok(None),
            // Even if other fields are missing.
            Err(_) if foreign::is_error(&event.data) => return Err(classify::in_place_of_an_answer(&event.data)),
            Err(error) => {
                self.leave_unread(event);
                if !KNOWN_EVENTS.contains(&event.name.as_str()) {
                    return Ok(None);
                }
                return Err(malformed(format_args!("`{}` event: {error}", event.name)));
            }
        };
        match data {
            Data::MessageStart { message } => {
                self.started = true;
                self.count(&message.usage);
            }
            Data::ContentBlockStart { index, content_block } => {
                self.started = true;
                content_block.map_or(Ok(()), |block| self.open(index, Part::begun(block)))?;
            }
            Data::ContentBlockDelta { index, delta } => {
                self.started = true;
                self.extend(index, &delta)?;
            }
            Data::ContentBlockStop { index } => self.close(index),
            Data::MessageDelta { delta, usage } => {
                self.started = true;
                self.count(&usage);
                self.stop = delta.filter(StopDelta::is_one).or(self.stop.take());
            }
            Data::MessageStop => return self.finish().map(Some),
            Data::Message { content, stop_reason, stop_details, usage } => {
                self.started = true;
                self.count(&usage);
                self.stop = Some(StopDelta { stop_reason, stop_details }).filter(StopDelta::is_one);
                let whole = |block| ReceivedBlock { open: None, part: Part::whole(block) };
                self.blocks = content.into_iter().map(whole).collect();
                self.check_size()?;
                return self.finish().map(Some);
            }
            Data::Error => return Err(classify::in_place_of_an_answer(&event.data)),
            Data::Unknown => self.leave_unread(event),
        }
        self.check_size()?;
        Ok(None)
    }

    fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn end(&mut self) -> Option<Result<Answer, ModelError>> {
        self.stop.is_some().then(|| self.finish())
    }

    fn whole(&mut self, document: &str) -> Result<Option<Answer>, ModelError> {
        self.apply(&Event { name: "message".to_owned(), data: document.to_owned() })
    }
}

impl Assembly {
    /// Keeps the words of an event that is no part of an answer.
    fn leave_unread(&mut self, event: &Event) {
        self.unread = classify::words_in_place_of_an_answer(&event.data).or(self.unread.take());
    }

    fn check_size(&self) -> Result<(), ModelError> {
        if self.blocks.iter().map(|block| block.part.kept_bytes()).sum::<usize>() > MAX_ANSWER_BYTES {
            return Err(ModelError::too_large());
        }
        Ok(())
    }

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

    fn open(&mut self, index: Option<usize>, part: Part) -> Result<(), ModelError> {
        if self.blocks.len() == MAX_BLOCKS {
            return Err(malformed(format_args!("it has too many content blocks")));
        }
        let open = Some(index.unwrap_or(self.blocks.len()));
        self.blocks.push(ReceivedBlock { open, part });
        Ok(())
    }

    /// The newest open block with this index; without an index, the newest one.
    fn find(&mut self, index: Option<usize>, is_meant: impl Fn(&Part) -> bool) -> Option<&mut ReceivedBlock> {
        let has_index = |open: usize| index.is_none_or(|index| open == index);
        self.blocks.iter_mut().rfind(|block| block.open.is_some_and(has_index) && is_meant(&block.part))
    }

    fn extend(&mut self, index: Option<usize>, delta: &Delta) -> Result<(), ModelError> {
        if self.find(index, |part| part.takes(delta)).is_none()
            && let Some(part) = Part::unannounced(delta)
        {
            self.open(index, part)?;
        }
        if let Some(block) = self.find(index, |part| part.takes(delta)) {
            block.part.extend(delta);
        }
        Ok(())
    }

    /// Ends a block; one that has ended, or has never begun, is no matter.
    fn close(&mut self, index: Option<usize>) {
        if let Some(block) = self.find(index, |_| true) {
            block.open = None;
        }
    }

    /// What has begun stays so: an answer that was paid for is not asked for again like one that never came.
    fn finish(&mut self) -> Result<Answer, ModelError> {
        let parts: Vec<Part> = std::mem::take(&mut self.blocks).into_iter().map(|block| block.part).collect();
        let Some(StopDelta { stop_reason: Some(reason), stop_details }) = self.stop.take() else {
            return Err(malformed(format_args!("it ended without a stop reason")));
        };
        let stop = match reason.as_str() {
            "max_tokens" => Stop::MaxTokens,
            "model_context_window_exceeded" => Stop::WindowFull,
            "refusal" => {
                let why = stop_details.get("explanation").and_then(Value::as_str).unwrap_or("it gave no reason");
                return Err(ModelError::new(ErrorClass::Refused, why));
            }
            // Proxies in front of other models do not always say `tool_use`.
            _ if parts.iter().any(Part::is_call) => Stop::ToolUse,
            "end_turn" | "stop_sequence" | "tool_use" => Stop::End,
            // A stop reason introduced later, or `pause_turn`, which is for server-side tools that we do not use: the
            // answer so far is kept, because it was paid for.
            _ if parts.iter().any(Part::is_said) => Stop::End,
            other => return Err(ModelError::new(ErrorClass::Other, format!("the answer ended early with `{other}`"))),
        };
        let is_cut = matches!(stop, Stop::MaxTokens | Stop::WindowFull);
        let mut blocks = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|part| part.is_call() || part.is_said()) {
            match part {
                Part::Text(text) => blocks.push(Block::Text { text }),
                Part::ToolUse { id, name, json, announced } => {
                    let json = if json.trim().is_empty() { announced } else { json };
                    // A call in the middle of which the answer's limit was reached cannot be made.
                    if let Some(input) = foreign::input(&json, is_cut) {
                        blocks.push(Block::ToolUse { id, name, input });
                    }
                }
                Part::Ignored => {}
            }
        }
        Ok(Answer { blocks, stop, usage: self.usage })
    }
}

/// Event types that must be parsed; any other may have any content.
const KNOWN_EVENTS: &[&str] = &[
    "message",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "message_stop",
    "error",
];

fn malformed(what: std::fmt::Arguments<'_>) -> ModelError {
    ModelError::new(ErrorClass::Transport, format!("the stream is malformed: {what}"))
}

#[cfg(test)]
mod tests;
