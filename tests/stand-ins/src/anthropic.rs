//! A strict Messages API on the loopback interface.
//!
//! It refuses what the real API refuses, with the same messages, checks prompts against a window, streams its answers,
//! and fails on demand. What [`Anthropic::push`] queues is used for one valid request each; [`Anthropic::when`] chooses
//! an answer by the content of a request, however often and in any order. With neither it echoes the question. It runs
//! on a separate thread, so a test may block on the program under test. A request that broke the API's rules fails the
//! test when the stand-in is dropped.
//!
//! ```no_run
//! # async fn test() {
//! use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
//! let server = Anthropic::start().await;
//! server.push(Behaviour::answer("forty-two"));
//! // … run the program with ANTHROPIC_BASE_URL={server.url()} ANTHROPIC_API_KEY={anthropic::KEY} …
//! assert_eq!(server.requests().len(), 1);
//! # }
//! ```

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Response, StatusCode, Uri},
    routing::post,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::served::{Broken, Served};

mod behaviour;
mod rules;

pub use behaviour::{Behaviour, WITHOUT_TOOLS};
pub use rules::count_tokens;

/// The only key that is accepted.
pub const KEY: &str = "sk-ant-stand-in";

/// The default window, in the stand-in's own tokens; see [`Anthropic::set_window`].
pub const DEFAULT_WINDOW: u64 = 200_000;

/// The maximum size of a body, as at the provider.
const MAX_BODY_BYTES: usize = 32 << 20;

/// A request as received.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Header names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; `null` where it was not JSON.
    pub body: Value,
    /// What the stand-in counted; see [`count_tokens`].
    pub prompt_tokens: u64,
    /// The rule that the request broke, as the API's message, even if another response was configured.
    pub refused: Option<String>,
}

impl Recorded {
    /// The text of the last user message's last text block.
    pub fn question(&self) -> &str {
        rules::question(&self.body)
    }

    /// The system prompt and everything after the model's last message, including tool results.
    pub fn said_now(&self) -> String {
        rules::said_now(&self.body)
    }
}

#[derive(Default)]
struct Shared {
    window: u64,
    /// Whether the room for the answer has to fit the window, too.
    counts_answer: bool,
    is_terse: bool,
    /// The refusal of requests that contain anything about tools.
    without_tools: Option<rules::Refusal>,
    without_images: Option<rules::Refusal>,
    /// The response to a request that exceeds the window, if it is not the API's message.
    too_large: Option<Box<dyn FnMut() -> Behaviour + Send>>,
    rules: Vec<(String, Behaviour)>,
    queue: VecDeque<Behaviour>,
    requests: Vec<Recorded>,
    broken: Broken,
    held: watch::Sender<bool>,
}

impl Shared {
    /// The response to a valid request.
    fn behaviour(&mut self, body: &Value) -> Result<Behaviour, rules::Refusal> {
        let said = rules::said_now(body);
        if let Some((_, behaviour)) = self.rules.iter().rev().find(|(needle, _)| said.contains(needle)) {
            return Ok(behaviour.clone());
        }
        match self.queue.pop_front() {
            Some(behaviour) => Ok(behaviour),
            None if self.rules.is_empty() => Ok(Behaviour::Echo),
            None => Err(rules::Refusal::invalid(format!("the test has no rule for: {said}"))),
        }
    }
}

/// A running stand-in; it stops when dropped.
///
/// # Panics
/// When it is dropped, if a request broke a rule of the API that it was not [to break](Anthropic::expect_refusals): a
/// client has to know when a request is malformed. That one is too large, it can only learn.
pub struct Anthropic {
    served: Served,
    shared: Arc<Mutex<Shared>>,
}

/// Texts, any of which identifies a request.
pub struct Needles(Vec<String>);

impl From<&str> for Needles {
    fn from(needle: &str) -> Needles {
        Needles(vec![needle.to_owned()])
    }
}

impl From<String> for Needles {
    fn from(needle: String) -> Needles {
        Needles(vec![needle])
    }
}

impl<const N: usize> From<[&str; N]> for Needles {
    fn from(needles: [&str; N]) -> Needles {
        Needles(needles.map(str::to_owned).into())
    }
}

impl Anthropic {
    /// Starts a stand-in on a free port.
    pub async fn start() -> Self {
        Self::start_blocking()
    }

    /// As [`start`](Self::start), for tests without a runtime.
    pub fn start_blocking() -> Self {
        let shared = Arc::new(Mutex::new(Shared { window: DEFAULT_WINDOW, ..Shared::default() }));
        let app = Router::new()
            .route("/v1/messages", post(messages))
            .fallback(not_found)
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(Arc::clone(&shared));
        Anthropic { served: Served::start(app), shared }
    }

    /// The value for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.served.address)
    }

    /// Queues the response to the next valid request.
    pub fn push(&self, behaviour: Behaviour) {
        self.lock().queue.push_back(behaviour);
    }

    /// Sets the response to every valid request whose system prompt, or what follows the model's last message, contains
    /// this text. The newest matching rule applies, before the queue; once there is any rule, a request that matches
    /// none is refused.
    pub fn when(&self, needles: impl Into<Needles>, behaviour: Behaviour) {
        let Needles(needles) = needles.into();
        self.lock().rules.extend(needles.into_iter().map(|needle| (needle, behaviour.clone())));
    }

    /// Sets the window, in the stand-in's own tokens.
    pub fn set_window(&self, tokens: u64) {
        self.lock().window = tokens;
    }

    /// From now on the room that is asked for the answer has to fit the window beside the prompt, as with the API's
    /// models.
    pub fn counts_the_answer(&self) {
        self.lock().counts_answer = true;
    }

    /// From now on a refusal does not state the sizes, as with some proxies.
    pub fn name_no_numbers(&self) {
        self.lock().is_terse = true;
    }

    /// From now on, any request that offers tools, or has tool calls or results in its history, is refused with this
    /// status, type and message, as by servers without tools; it does not use up the queue.
    pub fn refuse_tools(&self, status: u16, code: &'static str, message: impl Into<String>) {
        self.lock().without_tools = Some(rules::Refusal { status, code, message: message.into() });
    }

    /// The same for any request with an image.
    pub fn refuse_images(&self, status: u16, code: &'static str, message: impl Into<String>) {
        self.lock().without_images = Some(rules::Refusal { status, code, message: message.into() });
    }

    /// The test's own requests break rules whose message contains this.
    pub fn expect_refusals(&self, words: &str) {
        self.lock().broken.expect(words);
    }

    /// From now on no answer begins before [`release`](Self::release); requests are still received.
    pub fn hold(&self) {
        self.lock().held.send_replace(true);
    }

    /// Lets answers begin again.
    pub fn release(&self) {
        self.lock().held.send_replace(false);
    }

    /// Sets the response to a request that exceeds the window: a refusal with another message, or silence.
    pub fn when_too_large(&self, behaviour: impl FnMut() -> Behaviour + Send + 'static) {
        self.lock().too_large = Some(Box::new(behaviour));
    }

    /// Every request so far, including refused ones, in the order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Anthropic {
    fn drop(&mut self) {
        self.lock().broken.fail_at_the_end();
    }
}

async fn messages(State(shared): State<Arc<Mutex<Shared>>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let headers: BTreeMap<String, String> = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let parsed = serde_json::from_slice::<Value>(&body);
    let body = parsed.as_ref().cloned().unwrap_or_default();
    let prompt_tokens = count_tokens(&body);
    let (verdict, mut held) = {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = rules::check_headers(&headers)
            .and_then(|()| parsed.map(drop).map_err(|error| rules::Refusal::invalid(format!("invalid JSON: {error}"))))
            .and_then(|()| rules::check_body(&body));
        if let Err(refusal) = &verdict {
            shared.broken.note(&refusal.message);
        }
        let answer = body["max_tokens"].as_u64().filter(|_| shared.counts_answer);
        let window = rules::check_window(prompt_tokens, answer, shared.window, shared.is_terse);
        let told = verdict.is_ok().then(|| window.as_ref().err().map(|refusal| refusal.message.clone())).flatten();
        let tools = rules::check_tools(&body, shared.without_tools.as_ref());
        let images = rules::check_images(&body, shared.without_images.as_ref());
        let verdict = verdict.and_then(|()| match (window, &mut shared.too_large) {
            (Err(_), Some(too_large)) => Ok(too_large()),
            (window, _) => window.and(tools).and(images).and_then(|()| shared.behaviour(&body)),
        });
        let refused = told.or_else(|| verdict.as_ref().err().map(|refusal| refusal.message.clone()));
        shared.requests.push(Recorded { headers, body: body.clone(), prompt_tokens, refused });
        (verdict, shared.held.subscribe())
    };
    // This fails only if the stand-in is gone.
    let _ = held.wait_for(|held| !held).await;
    match verdict {
        Ok(behaviour) => behaviour.respond(&body, prompt_tokens).await,
        Err(refusal) => error(refusal.status, refusal.code, &refusal.message),
    }
}

async fn not_found(uri: Uri) -> Response<Body> {
    error(404, "not_found_error", &format!("Not found: {}", uri.path()))
}

fn error(status: u16, code: &str, message: &str) -> Response<Body> {
    let body = json!({"type": "error", "error": {"type": code, "message": message}, "request_id": "req_stand_in"});
    respond(status, &[("content-type".into(), "application/json".into())], Body::from(body.to_string()))
}

fn respond(status: u16, headers: &[(String, String)], body: Body) -> Response<Body> {
    let mut response = Response::builder().status(StatusCode::from_u16(status).expect("a status of the test's choice"));
    for (name, value) in headers.iter().chain([&("request-id".into(), "req_stand_in".into())]) {
        response = response.header(name, value);
    }
    response.body(body).expect("headers of the test's choice")
}
