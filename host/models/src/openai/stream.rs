//! Assembles the chunks of a streamed completion into the whole answer, or into the error instead of one.
//!
//! Compatible servers differ in details, all accepted here: a missing `[DONE]`, `[DONE]` without a finish reason, tool
//! calls that are sent whole and all with index 0, or without index and id, `stop` where calls were made, empty arguments, arguments that are an
//! object, a text in parts, a completion that is not streamed at all, `null` for whatever is missing.

use std::borrow::Cow;

use pmk_core::Block;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::thoughts::Thoughts;
use crate::{
    Answer, ErrorClass, ModelError, Stop, Usage, classify,
    counts::{self, Count},
    error::MAX_ANSWER_BYTES,
    foreign,
    http::Assemble,
    sse::Event,
};

mod thoughts;

/// The maximum number of tool calls in an answer.
const MAX_CALLS: usize = 128;

/// The finish reasons of answers that their servers broke off: OpenRouter's, vLLM's, DeepSeek's, Zhipu's and Gemini's.
const BROKEN_OFF: [&str; 5] =
    ["error", "abort", "insufficient_system_resource", "network_error", "malformed_function_call"];

/// An answer that is being received.
#[derive(Debug, Default)]
pub struct Assembly {
    started: bool,
    text: String,
    thoughts: Thoughts,
    refusal: String,
    calls: Vec<Call>,
    finish_reason: Option<String>,
    unread: Option<String>,
    usage: Usage,
    /// Whether what is received comes in pieces, so that a whole message beside them only repeats them.
    is_in_pieces: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: usize,
    id: String,
    name: String,
    arguments: String,
}

impl Call {
    /// Whether the next piece begins another call, although its index and id say nothing of one. A name alone does not:
    /// some servers repeat it with each piece.
    fn is_followed_by(&self, name: &str, arguments: &str) -> bool {
        let is_begun = arguments.trim_start().starts_with('{') || !name.is_empty() && name != self.name;
        is_begun && !self.name.is_empty() && self.is_whole()
    }

    /// Whether the arguments are complete, so that nothing more can belong to them.
    fn is_whole(&self) -> bool {
        let arguments = self.arguments.trim();
        arguments.starts_with('{') && arguments.ends_with('}') && foreign::is_json(arguments)
    }
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "foreign::list")]
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "counts::lenient")]
    usage: Option<Counted>,
    /// Some servers report failures inside the stream.
    #[serde(default)]
    error: Value,
}

#[derive(Debug, Deserialize)]
struct Choice {
    index: Option<usize>,
    delta: Option<Delta>,
    /// Of a completion that is not streamed.
    message: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Option<Content>,
    refusal: Option<String>,
    #[serde(deserialize_with = "foreign::list")]
    tool_calls: Vec<CallDelta>,
}

/// The content: a text, or a list of parts as in a request.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(#[serde(deserialize_with = "foreign::list")] Vec<ContentPart>),
}

#[derive(Debug, Deserialize)]
struct ContentPart {
    /// Missing in parts of other kinds, such as reasoning.
    text: Option<String>,
}

impl Content {
    fn is_empty(&self) -> bool {
        match self {
            Content::Text(text) => text.is_empty(),
            Content::Parts(parts) => parts.iter().all(|part| part.text.as_ref().is_none_or(String::is_empty)),
        }
    }

    fn into_text(self) -> String {
        match self {
            Content::Text(text) => text,
            Content::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

impl Delta {
    fn says_something(&self) -> bool {
        self.content.as_ref().is_some_and(|content| !content.is_empty())
            || self.refusal.as_ref().is_some_and(|refusal| !refusal.is_empty())
            || !self.tool_calls.is_empty()
    }

    /// Numbers its calls by position, because calls that are sent whole need no index.
    fn numbered(mut self) -> Self {
        for (at, call) in self.tool_calls.iter_mut().enumerate() {
            call.index = Some(at);
        }
        self
    }
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Arguments>,
}

/// JSON as text, in pieces, or an object at once.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Arguments {
    Text(String),
    Object(Map<String, Value>),
}

impl Arguments {
    fn into_json(self) -> String {
        match self {
            Arguments::Text(json) => json,
            Arguments::Object(fields) => Value::Object(fields).to_string(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Counted {
    prompt_tokens: Count,
    completion_tokens: Count,
    #[serde(deserialize_with = "counts::lenient")]
    prompt_tokens_details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
}

impl Assemble for Assembly {
    fn has_begun(&self) -> bool {
        self.started
    }

    fn apply(&mut self, event: &Event) -> Result<Option<Answer>, ModelError> {
        if event.name == "error" {
            return Err(classify::in_place_of_an_answer(&event.data));
        }
        if event.data.trim() == "[DONE]" {
            return self.done().unwrap_or_else(|| Err(malformed("it ended before it began"))).map(Some);
        }
        let chunk: Chunk = match foreign::data(&event.data) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(None),
            Err(_) if foreign::is_error(&event.data) => return Err(classify::in_place_of_an_answer(&event.data)),
            Err(error) => {
                self.leave_unread(event);
                return Err(malformed(&error.to_string()));
            }
        };
        if foreign::says_something(&chunk.error) || chunk.choices.is_empty() && foreign::is_error(&event.data) {
            return Err(classify::in_place_of_an_answer(&event.data));
        }
        if chunk.choices.is_empty() && chunk.usage.is_none() {
            self.leave_unread(event);
        }
        if let Some(counted) = chunk.usage {
            self.usage = counted.into();
        }
        for choice in chunk.choices.into_iter().filter(|choice| choice.index.is_none_or(|index| index == 0)) {
            self.take(choice)?;
        }
        Ok(None)
    }

    fn text(&self) -> Cow<'_, str> {
        if thoughts::may_begin(&self.text) {
            "".into()
        } else {
            self.thoughts.without(&self.text).unwrap_or_default().into()
        }
    }

    fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn end(&mut self) -> Option<Result<Answer, ModelError>> {
        let finish_reason = self.finish_reason.take()?;
        Some(self.finish(&finish_reason))
    }

    fn whole(&mut self, document: &str) -> Result<Option<Answer>, ModelError> {
        self.apply(&Event { name: "message".to_owned(), data: document.to_owned() })?;
        self.done().transpose()
    }
}

impl Assembly {
    /// Keeps the words of an event that is no part of an answer.
    fn leave_unread(&mut self, event: &Event) {
        self.unread = classify::words_in_place_of_an_answer(&event.data).or(self.unread.take());
    }

    /// The server has announced the end; `None` if nothing has been received.
    fn done(&mut self) -> Option<Result<Answer, ModelError>> {
        self.end().or_else(|| self.started.then(|| self.finish("stop")))
    }

    fn take(&mut self, choice: Choice) -> Result<(), ModelError> {
        self.started = true;
        let piece = choice.delta.filter(Delta::says_something);
        self.is_in_pieces |= piece.is_some();
        let message = choice.message.filter(|_| !self.is_in_pieces);
        let Delta { content, refusal, tool_calls } = piece.or(message.map(Delta::numbered)).unwrap_or_default();
        self.text.push_str(&content.map(Content::into_text).unwrap_or_default());
        self.thoughts.search(&self.text);
        self.refusal.push_str(refusal.as_deref().unwrap_or_default());
        for delta in tool_calls {
            self.extend_call(delta)?;
        }
        if self.kept_bytes() > MAX_ANSWER_BYTES {
            return Err(ModelError::too_large());
        }
        let finish_reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        self.finish_reason = finish_reason.or(self.finish_reason.take());
        Ok(())
    }

    fn kept_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
        self.text.len() + self.refusal.len() + calls.sum::<usize>()
    }

    fn extend_call(&mut self, delta: CallDelta) -> Result<(), ModelError> {
        let id = delta.id.unwrap_or_default();
        let FunctionDelta { name, arguments } = delta.function.unwrap_or_default();
        let name = name.unwrap_or_default();
        let arguments = arguments.map(Arguments::into_json).unwrap_or_default();
        let open = self.calls.iter().rposition(|call| {
            delta.index.is_none_or(|index| call.index == index)
                && (id.is_empty() || call.id.is_empty() || call.id == id)
        });
        // Some servers send the whole call once more at the end.
        let is_repeated = |call: &Call| {
            !id.is_empty() && call.id == id && call.is_whole() && foreign::is_same(&call.arguments, &arguments)
        };
        if open.is_some_and(|at| is_repeated(&self.calls[at])) {
            return Ok(());
        }
        let at = match open {
            Some(at) if !self.calls[at].is_followed_by(&name, &arguments) => at,
            _ if self.calls.len() == MAX_CALLS => return Err(malformed("it makes too many tool calls")),
            _ => {
                let index = delta.index.unwrap_or(self.calls.len());
                // Without a name of its own, it calls what the one before it called.
                let before = open.map(|at| self.calls[at].name.clone()).filter(|_| name.is_empty());
                self.calls.push(Call { index, name: before.unwrap_or_default(), ..Call::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = id;
        }
        // The name is sent once; a server that repeats it means the same call.
        if call.name.is_empty() {
            call.name = name;
        }
        call.arguments.push_str(&arguments);
        Ok(())
    }

    /// What has begun stays so: an answer that was paid for is not asked for again like one that never came.
    fn finish(&mut self, finish_reason: &str) -> Result<Answer, ModelError> {
        let [text, refusal] = [&mut self.text, &mut self.refusal].map(std::mem::take);
        // Gemini's are in capitals, some with what found them in front.
        let finish_reason = finish_reason.to_lowercase();
        let mut reasons = finish_reason.split(':').map(str::trim);
        // Zhipu's and Gemini's.
        let is_filtered = |reason| classify::is_refusal(reason) || matches!(reason, "sensitive" | "recitation");
        let is_filtered = reasons.clone().any(is_filtered);
        if is_filtered || (!refusal.is_empty() && text.is_empty()) {
            let message = if refusal.is_empty() { "its content filter intervened".into() } else { refusal };
            return Err(ModelError::new(ErrorClass::Refused, message));
        }
        if reasons.any(|reason| BROKEN_OFF.contains(&reason)) {
            let message = "it ended its answer with an error".to_owned();
            return Err(ModelError::new(ErrorClass::Overloaded { retry_after: None }, message));
        }
        let cut = match finish_reason.as_str() {
            "length" | "max_tokens" => Some(Stop::MaxTokens),
            // Mistral's and Zhipu's.
            "model_length" | "model_context_window_exceeded" => Some(Stop::WindowFull),
            _ => None,
        };
        let is_cut = cut.is_some();
        let mut blocks = Vec::new();
        // What looked like thoughts and does not end was none, unless they were broken off: by the limit, or for a call.
        let was_broken_off = is_cut || !self.calls.is_empty();
        let said = self.thoughts.without(&text).unwrap_or(if was_broken_off { "" } else { &text });
        if !said.is_empty() {
            blocks.push(Block::Text { text: said.to_owned() });
        }
        for (count, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            // A call of nothing is none.
            if call.name.is_empty() && call.arguments.is_empty() {
                continue;
            }
            // A call in the middle of which the answer's limit was reached cannot be made.
            let Some(input) = foreign::input(&call.arguments, is_cut) else { continue };
            let id = if call.id.is_empty() { format!("call_{count}") } else { call.id };
            blocks.push(Block::ToolUse { id, name: call.name, input });
        }
        let has_calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let stop = cut.unwrap_or(if has_calls { Stop::ToolUse } else { Stop::End });
        Ok(Answer { blocks, stop, usage: self.usage })
    }
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Self {
        let [prompt, answer, cached] =
            [counted.prompt_tokens, counted.completion_tokens, counted.prompt_tokens_details.cached_tokens]
                .map(|count| count.0.unwrap_or_default());
        Usage {
            input_tokens: prompt.saturating_sub(cached),
            output_tokens: answer,
            cache_read_tokens: cached.min(prompt),
            cache_creation_tokens: 0,
        }
    }
}

fn malformed(what: &str) -> ModelError {
    ModelError::new(ErrorClass::Transport, format!("the stream is malformed: {what}"))
}

#[cfg(test)]
mod tests;
