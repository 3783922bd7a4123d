//! The responses of the stand-in to a valid request, including failures.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::Response,
};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::rules;

/// The response to one request.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Repeats the question: `You said: …`. The default when nothing is queued.
    Echo,
    /// Streams this text and ends with this stop reason, pausing before each piece.
    Answer { text: String, stop_reason: String, pause: Duration },
    /// Streams this text in four pieces, each after a permit of the gate.
    Gated { text: String, gate: Arc<Semaphore> },
    /// Calls one tool.
    ToolUse { id: String, name: String, input: Value },
    /// Answers with this text, if any, and calls these tools in one round, with ids that are not in the request.
    Calls { text: String, calls: Vec<(String, Value)> },
    /// Responds with a status, headers and a body, without a stream.
    Error { status: u16, headers: Vec<(String, String)>, body: String },
    /// Begins an answer with this text, then sends an `error` event.
    ErrorEvent { text: String, code: String, message: String },
    /// Receives the request and never responds.
    Silence,
    /// Begins an answer with this text, then sends nothing more and keeps the connection open.
    Stall { text: String },
    /// Begins an answer with this text, then breaks the connection.
    Cut { text: String },
    /// Streams everything but the end, and ends the response normally.
    Truncated { text: String },
    /// Sends these bytes as the event stream.
    Raw(Vec<u8>),
}

/// The answer of a model that would call a tool but may not.
pub const WITHOUT_TOOLS: &str = "This is what I have found so far.";

impl Behaviour {
    /// A complete answer.
    pub fn answer(text: impl Into<String>) -> Self {
        Behaviour::stopping(text, "end_turn")
    }

    /// An answer that is sent slowly.
    pub fn slow(text: impl Into<String>, pause: Duration) -> Self {
        Behaviour::Answer { text: text.into(), stop_reason: "end_turn".into(), pause }
    }

    /// An answer in four pieces, controlled by the test: each piece needs a permit of the gate.
    pub fn gated(text: impl Into<String>) -> (Self, Arc<Semaphore>) {
        let gate = Arc::new(Semaphore::new(0));
        (Behaviour::Gated { text: text.into(), gate: Arc::clone(&gate) }, gate)
    }

    /// An answer with another stop reason: `max_tokens`, `refusal`, `model_context_window_exceeded` …
    pub fn stopping(text: impl Into<String>, stop_reason: &str) -> Self {
        Behaviour::Answer { text: text.into(), stop_reason: stop_reason.into(), pause: Duration::ZERO }
    }

    /// Tool calls in one round.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls.into_iter().map(|(name, input)| (name.to_owned(), input)).collect();
        Behaviour::Calls { text: String::new(), calls }
    }

    /// An error in the API's format.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": code, "message": message}, "request_id": "req_stand_in"});
        let headers = vec![("content-type".into(), "application/json".into())];
        Behaviour::Error { status, headers, body: body.to_string() }
    }

    /// The same error with one more header, such as `retry-after`.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Behaviour::Error { headers, .. } = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }

    pub(super) async fn respond(self, request: &Value, prompt_tokens: u64) -> Response<Body> {
        match self {
            Behaviour::Error { status, headers, body } => super::respond(status, &headers, Body::from(body)),
            Behaviour::Silence => std::future::pending().await,
            streamed => {
                let headers = [("content-type".into(), "text/event-stream; charset=utf-8".into())];
                super::respond(200, &headers, Body::from_stream(play(streamed.steps(request, prompt_tokens))))
            }
        }
    }

    /// The steps of the stream; none where there is no stream.
    fn steps(self, request: &Value, prompt_tokens: u64) -> Vec<Step> {
        let begun = |text: &str, pause| {
            let mut steps = vec![start(request, prompt_tokens), event("ping", json!({"type": "ping"}))];
            steps.extend(text_block(text, pause));
            steps
        };
        let unfinished = |text: &str, last: Step| {
            let mut steps = begun(text, Duration::ZERO);
            steps.pop();
            steps.push(last);
            steps
        };
        // As the API guarantees for `tool_choice: none`.
        let must_answer = request["tool_choice"]["type"] == "none";
        match self {
            Behaviour::ToolUse { .. } if must_answer => Behaviour::answer(WITHOUT_TOOLS).steps(request, prompt_tokens),
            Behaviour::Calls { text, .. } if must_answer => {
                let text = if text.is_empty() { WITHOUT_TOOLS.to_owned() } else { text };
                Behaviour::answer(text).steps(request, prompt_tokens)
            }
            Behaviour::Echo => {
                Behaviour::answer(format!("You said: {}", rules::question(request))).steps(request, prompt_tokens)
            }
            Behaviour::Answer { text, stop_reason, pause } => {
                let mut steps = begun(&text, pause);
                steps.extend(end(&stop_reason, &text));
                steps
            }
            Behaviour::Gated { text, gate } => {
                let is_piece = |step: &Step| matches!(step, Step::Pause(_));
                let gated = |step| if is_piece(&step) { Step::Gate(Arc::clone(&gate)) } else { step };
                let mut steps: Vec<Step> = begun(&text, Duration::MAX).into_iter().map(gated).collect();
                steps.extend(end("end_turn", &text));
                steps
            }
            Behaviour::ToolUse { id, name, input } => {
                let mut steps = vec![start(request, prompt_tokens)];
                steps.extend(call_block(0, &id, &name, &input));
                steps.extend(end("tool_use", &input.to_string()));
                steps
            }
            Behaviour::Calls { text, calls } => {
                let mut steps = vec![start(request, prompt_tokens)];
                if !text.is_empty() {
                    steps.extend(text_block(&text, Duration::ZERO));
                }
                let first = usize::from(!text.is_empty());
                let earlier = rules::count_calls(request);
                for (at, (name, input)) in calls.iter().enumerate() {
                    steps.extend(call_block(first + at, &format!("toolu_{}", earlier + at), name, input));
                }
                steps.extend(end("tool_use", &format!("{calls:?}")));
                steps
            }
            Behaviour::ErrorEvent { text, code, message } => {
                unfinished(&text, event("error", json!({"error": {"type": code, "message": message}})))
            }
            Behaviour::Stall { text } => unfinished(&text, Step::Hang),
            Behaviour::Cut { text } => unfinished(&text, Step::Cut),
            Behaviour::Truncated { text } => begun(&text, Duration::ZERO),
            Behaviour::Raw(bytes) => vec![Step::Send(bytes.into())],
            Behaviour::Error { .. } | Behaviour::Silence => vec![],
        }
    }
}

/// One step on an open connection.
#[derive(Debug)]
enum Step {
    Send(Bytes),
    Pause(Duration),
    Gate(Arc<Semaphore>),
    Hang,
    Cut,
}

fn play(steps: Vec<Step>) -> impl stream::Stream<Item = io::Result<Bytes>> {
    stream::unfold(steps.into_iter(), |mut steps| async move {
        loop {
            match steps.next()? {
                Step::Send(bytes) => return Some((Ok(bytes), steps)),
                Step::Pause(pause) => tokio::time::sleep(pause).await,
                Step::Gate(gate) => gate.acquire().await.expect("nobody closes it").forget(),
                Step::Hang => std::future::pending().await,
                Step::Cut => {
                    // What was sent must leave before the connection breaks.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    return Some((Err(io::ErrorKind::ConnectionReset.into()), steps));
                }
            }
        }
    })
}

fn event(name: &str, mut data: Value) -> Step {
    data["type"] = name.into();
    Step::Send(format!("event: {name}\ndata: {data}\n\n").into())
}

fn start(request: &Value, prompt_tokens: u64) -> Step {
    let cached = rules::cached_tokens(request);
    let usage = json!({
        "input_tokens": prompt_tokens - cached, "cache_creation_input_tokens": cached,
        "cache_read_input_tokens": 0, "output_tokens": 1,
    });
    let message = json!({
        "id": "msg_stand_in", "type": "message", "role": "assistant", "model": request["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    event("message_start", json!({"message": message}))
}

fn text_block(text: &str, pause: Duration) -> Vec<Step> {
    let mut steps =
        vec![event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}}))];
    for piece in pieces(text) {
        if !pause.is_zero() {
            steps.push(Step::Pause(pause));
        }
        steps.push(delta(0, json!({"type": "text_delta", "text": piece})));
    }
    steps.push(event("content_block_stop", json!({"index": 0})));
    steps
}

fn call_block(index: usize, id: &str, name: &str, input: &Value) -> Vec<Step> {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let mut steps = vec![event("content_block_start", json!({"index": index, "content_block": block}))];
    let input = input.to_string();
    steps.extend(pieces(&input).map(|piece| delta(index, json!({"type": "input_json_delta", "partial_json": piece}))));
    steps.push(event("content_block_stop", json!({"index": index})));
    steps
}

fn delta(index: usize, delta: Value) -> Step {
    event("content_block_delta", json!({"index": index, "delta": delta}))
}

fn end(stop_reason: &str, said: &str) -> [Step; 2] {
    let usage = json!({"output_tokens": said.len().div_ceil(4).max(1)});
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    [event("message_delta", json!({"delta": delta, "usage": usage})), event("message_stop", json!({}))]
}

/// Splits a text into a few pieces, between characters.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(4).max(1);
    chars.chunks(size).map(String::from_iter).collect::<Vec<_>>().into_iter()
}
