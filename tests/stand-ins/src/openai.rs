//! A chat completions API on the loopback interface, strict about roles, keys and tool calls. What [`OpenAi::push`]
//! queues is used for one valid request each, [`OpenAi::when`] chooses an answer by the last message; with neither it
//! echoes the question. A request that broke the API's rules fails the test when the stand-in is dropped.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Response, StatusCode, header},
    routing::post,
};
use serde_json::{Value, json};

use crate::{
    images,
    served::{Broken, Served},
};

/// The only key that is accepted.
pub const KEY: &str = "sk-openai-stand-in";

const MAX_BODY_BYTES: usize = 32 << 20;

/// The maximum length of a function's name.
const MAX_NAME_CHARS: usize = 64;

/// The maximum length of the id of a call.
const MAX_ID_CHARS: usize = 40;

/// The response to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Streams this text.
    Answer(String),
    /// Calls these tools with these arguments.
    Calls(Vec<(String, Value)>),
    /// Responds with a status and a body, without a stream.
    Error(u16, Value),
    /// Begins with this text, and ends the stream before the end of the answer.
    Cut(String),
    /// Answers with no text, and this finish reason.
    Nothing(&'static str),
    /// Begins the stream, and sends this as an error within it.
    ErrorEvent(Value),
    /// Sends this as the event stream.
    Raw(String),
}

/// Whether the body of a request is of some kind.
pub type Kind = fn(&Value) -> bool;

#[derive(Default)]
struct Shared {
    queue: VecDeque<Reply>,
    /// Which requests are refused, and how.
    refused: Option<(Kind, Reply)>,
    rules: Vec<(String, Reply)>,
    requests: Vec<Value>,
    broken: Broken,
    /// The maximum number of tokens of a request, and the response to a larger one.
    window: Option<(u64, Box<dyn FnMut() -> Reply + Send>)>,
    /// The token counts of the requests that were larger.
    too_large: Vec<u64>,
}

impl Shared {
    /// The response to a valid request.
    fn reply(&mut self, body: &Value) -> Reply {
        if let Some((window, too_large)) = &mut self.window
            && count_tokens(body) > *window
        {
            self.too_large.push(count_tokens(body));
            return too_large();
        }
        let last = body["messages"].as_array().and_then(|all| all.last());
        let said = last.and_then(|last| last["content"].as_str()).unwrap_or_default();
        let rule = self.rules.iter().rev().find(|(needle, _)| said.contains(needle));
        rule.map(|(_, reply)| reply.clone())
            .or_else(|| self.queue.pop_front())
            .unwrap_or_else(|| Reply::Answer(format!("You said: {said}")))
    }
}

/// The tokens of a prompt as this stand-in counts them: one for every four bytes of the messages.
pub fn count_tokens(body: &Value) -> u64 {
    body["messages"].to_string().len().div_ceil(4) as u64
}

/// A running stand-in; it stops when dropped.
///
/// # Panics
/// When it is dropped, if a request broke a rule of the API that it was not [to break](OpenAi::expect_refusals).
pub struct OpenAi {
    served: Served,
    shared: Arc<Mutex<Shared>>,
}

impl OpenAi {
    /// Starts a stand-in on a free port, on a separate thread.
    pub fn start() -> Self {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let app = Router::new()
            .route("/v1/chat/completions", post(completions))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(Arc::clone(&shared));
        OpenAi { served: Served::start(app), shared }
    }

    /// The value for `OPENAI_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.served.address)
    }

    /// Queues the response to the next valid request.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared).queue.push_back(reply);
    }

    /// From now on, any request that offers tools, or has tool calls or results in its history, is refused with this
    /// status and body, as by servers without tools; it does not use up the queue.
    pub fn refuse_tools(&self, status: u16, body: Value) {
        self.refuse_when(speaks_of_tools, status, body);
    }

    /// The same for requests of another kind.
    pub fn refuse_when(&self, is_refused: Kind, status: u16, body: Value) {
        lock(&self.shared).refused = Some((is_refused, Reply::Error(status, body)));
    }

    /// Sets the response to every valid request whose last message contains this text. The newest matching rule
    /// applies, before the queue.
    pub fn when(&self, needle: impl Into<String>, reply: Reply) {
        lock(&self.shared).rules.push((needle.into(), reply));
    }

    /// Sets the response to a request of more tokens than this.
    pub fn set_window(&self, tokens: u64, too_large: impl FnMut() -> Reply + Send + 'static) {
        lock(&self.shared).window = Some((tokens, Box::new(too_large)));
    }

    /// The token counts of all requests that were larger than the window.
    pub fn too_large(&self) -> Vec<u64> {
        lock(&self.shared).too_large.clone()
    }

    /// The test's own requests break rules whose message contains this.
    pub fn expect_refusals(&self, words: &str) {
        lock(&self.shared).broken.expect(words);
    }

    /// The body of every request so far, including refused ones.
    pub fn requests(&self) -> Vec<Value> {
        lock(&self.shared).requests.clone()
    }
}

impl Drop for OpenAi {
    fn drop(&mut self) {
        lock(&self.shared).broken.fail_at_the_end();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn completions(State(shared): State<Arc<Mutex<Shared>>>, headers: HeaderMap, body: String) -> Response<Body> {
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let mut shared = lock(&shared);
    shared.requests.push(body.clone());
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if key != format!("Bearer {KEY}") {
        return refuse(401, "invalid_api_key", "Incorrect API key provided.");
    }
    if let Err(message) = check(&body) {
        shared.broken.note(&message);
        return refuse(400, "invalid_request_error", &message);
    }
    if let Some((_, reply)) = shared.refused.clone().filter(|(is_refused, _)| is_refused(&body)) {
        return respond(reply, has_usage(&body));
    }
    let reply = shared.reply(&body);
    respond(reply, has_usage(&body))
}

/// Whether a request asks for its token counts.
fn has_usage(body: &Value) -> bool {
    body["stream_options"]["include_usage"] == true
}

/// Checks the rules of OpenAI.
fn check(body: &Value) -> Result<(), String> {
    if body["stream"] != true {
        return Err("this stand-in only streams".to_owned());
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err("you must provide a model parameter".to_owned());
    }
    for (index, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        check_function(tool, &format!("tools[{index}]"))?;
    }
    let messages = body["messages"].as_array().filter(|all| !all.is_empty()).ok_or("'messages' must not be empty")?;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err(
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.".to_owned()
                );
            }
            if !message["content"].is_string() && !is_in_parts(&message["content"]) {
                return Err(format!("Invalid type for 'messages[{index}].content': expected a string or parts."));
            }
            continue;
        }
        if !open.is_empty() {
            return Err("An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                        'tool_call_id'."
                .to_owned());
        }
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has_content = message["content"].is_string();
        match role {
            "system" if index == 0 && has_content => {}
            "user" if has_content => {}
            "user" if is_in_parts(&message["content"]) => {}
            "assistant" if has_content || !calls.is_empty() => {}
            _ => return Err(format!("Invalid value for 'messages[{index}]'.")),
        }
        for (at, call) in calls.iter().enumerate() {
            check_function(call, &format!("messages[{index}].tool_calls[{at}]"))?;
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if serde_json::from_str::<Value>(arguments).is_err() {
                return Err(format!("'messages[{index}]' has arguments that are not JSON."));
            }
            let id = call["id"].as_str().unwrap_or_default();
            if id.is_empty() || !ids.insert(id) {
                return Err(format!("'messages[{index}].tool_calls[{at}].id' is missing, or of another call."));
            }
            if id.len() > MAX_ID_CHARS {
                return Err(format!(
                    "Invalid 'messages[{index}].tool_calls[{at}].id': string too long. Expected a string with maximum \
                     length {MAX_ID_CHARS}, but got a string with length {} instead.",
                    id.len()
                ));
            }
            open.insert(id);
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err("must be followed by tool messages responding to each 'tool_call_id'".to_owned())
    }
}

/// Checks a function that is offered or called.
fn check_function(value: &Value, place: &str) -> Result<(), String> {
    if value["type"] != "function" {
        return Err(format!("Invalid value for '{place}.type'. Supported values are: 'function'."));
    }
    let name = value["function"]["name"].as_str().unwrap_or_default();
    if name.len() > MAX_NAME_CHARS {
        return Err(format!("Invalid '{place}.function.name': string too long."));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "Invalid '{place}.function.name': string does not match pattern. Expected a string that matches the \
             pattern '^[a-zA-Z0-9_-]+$'."
        ));
    }
    Ok(())
}

/// Whether a request offers tools, or its history contains tool calls.
pub fn speaks_of_tools(body: &Value) -> bool {
    ["tools", "tool_choice"].iter().any(|key| body.get(*key).is_some()) || has_called_tools(body)
}

/// Whether a request's history contains tool calls.
pub fn has_called_tools(body: &Value) -> bool {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().any(|message| message["role"] == "tool" || message.get("tool_calls").is_some())
}

fn refuse(status: u16, code: &str, message: &str) -> Response<Body> {
    let error = json!({"message": message, "type": "invalid_request_error", "code": code});
    respond(Reply::Error(status, json!({"error": error})), false)
}

fn respond(reply: Reply, has_usage: bool) -> Response<Body> {
    let end = |reason| end(reason, has_usage);
    let (status, kind, body) = match reply {
        Reply::Error(status, body) => (status, "application/json", body.to_string()),
        Reply::Answer(text) => (200, "text/event-stream", [text_chunks(&text), end("stop")].concat()),
        Reply::Cut(text) => (200, "text/event-stream", text_chunks(&text)),
        Reply::Nothing(reason) => (200, "text/event-stream", [text_chunks(""), end(reason)].concat()),
        Reply::ErrorEvent(error) => (200, "text/event-stream", format!("data: {}\n\n", json!({"error": error}))),
        Reply::Raw(stream) => (200, "text/event-stream", stream),
        Reply::Calls(calls) => (200, "text/event-stream", [call_chunks(&calls), end("tool_calls")].concat()),
    };
    Response::builder()
        .status(StatusCode::from_u16(status).expect("a status of the test's choice"))
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body))
        .expect("a response")
}

fn chunk(choices: &Value, usage: &Value) -> String {
    let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": choices, "usage": usage});
    format!("data: {chunk}\n\n")
}

fn delta(delta: &Value) -> String {
    chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null)
}

fn text_chunks(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let pieces = chars.chunks(4).map(|piece| delta(&json!({"content": String::from_iter(piece)})));
    std::iter::once(delta(&json!({"role": "assistant", "content": ""}))).chain(pieces).collect()
}

fn call_chunks(calls: &[(String, Value)]) -> String {
    calls
        .iter()
        .enumerate()
        .flat_map(|(index, (name, arguments))| {
            let arguments = arguments.to_string();
            let (first, second) = arguments.split_at(arguments.len() / 2);
            let opened = json!({"name": name, "arguments": first});
            [
                json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": opened}),
                json!({"index": index, "function": {"arguments": second}}),
            ]
        })
        .map(|call| delta(&json!({"tool_calls": [call]})))
        .collect()
}

fn end(reason: &str, has_usage: bool) -> String {
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}});
    let finish = chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]), &Value::Null);
    let counts = if has_usage { chunk(&json!([]), &usage) } else { String::new() };
    format!("{finish}{counts}data: [DONE]\n\n")
}

/// Whether a content is a valid list of texts and images.
fn is_in_parts(content: &Value) -> bool {
    let is_part = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].as_str().is_some_and(|text| !text.is_empty()),
        Some("image_url") => part["image_url"]["url"].as_str().is_some_and(|url| {
            let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            data.is_some_and(|(media_type, data)| images::look_at(media_type, data, 1).is_ok())
        }),
        _ => false,
    };
    content.as_array().is_some_and(|parts| !parts.is_empty() && parts.iter().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_their_results_are_checked() {
        let function = |name: &str| json!({"type": "function", "function": {"name": name, "arguments": "{}"}});
        let call = |id: &str, name: &str| {
            let mut call = function(name);
            call["id"] = id.into();
            call
        };
        let long = "n".repeat(65);
        let untyped = json!({"id": "a", "function": {"name": "n", "arguments": "{}"}});
        for (calls, content, words) in [
            (json!([call("a", "n"), call("b", "n")]), json!("found"), ""),
            (json!([call("a", "n")]), json!([{"type": "text", "text": "found"}]), ""),
            (json!([call("a", "n"), call("a", "n")]), json!("found"), "tool_calls[1].id"),
            (json!([function("n")]), json!("found"), "tool_calls[0].id"),
            (json!([call(&"a".repeat(41), "n")]), json!("found"), "maximum length 40"),
            (json!([call("a", "n.m")]), json!("found"), "string does not match pattern"),
            (json!([call("a", &long)]), json!("found"), "string too long"),
            (json!([untyped]), json!("found"), "tool_calls[0].type"),
            (json!([call("a", "n")]), Value::Null, "'messages[2].content'"),
        ] {
            let results = calls.as_array().into_iter().flatten();
            let results = results.map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
            let asked = json!({"role": "user", "content": "?"});
            let called = json!({"role": "assistant", "content": null, "tool_calls": calls});
            let messages: Vec<Value> = [asked, called].into_iter().chain(results).collect();
            let usage = json!({"include_usage": true});
            let mut body = json!({"model": "m", "stream": true, "stream_options": usage, "messages": messages});
            let told = check(&body).err().unwrap_or_default();
            assert!(if words.is_empty() { told.is_empty() } else { told.contains(words) }, "{body}: {told}");
            body["model"] = "".into();
            assert_eq!(check(&body).err().as_deref(), Some("you must provide a model parameter"));
        }
    }
}
