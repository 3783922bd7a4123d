//! A strict Messages API on the loopback interface.
//!
//! It refuses what the real one refuses, in its words, counts prompts against a window, streams its
//! answers, and misbehaves on demand: what [`Anthropic::push`] queues is used up one valid request at
//! a time; [`Anthropic::when`] answers by what a request contains, however often and in whatever order. With
//! neither it echoes the question. It runs on a thread of its own, so a test may block on the program under
//! test.
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
    net::{SocketAddr, TcpListener},
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
use tokio::sync::{oneshot, watch};

mod behaviour;
mod rules;

pub use behaviour::{Behaviour, WITHOUT_TOOLS};
pub use rules::count_tokens;

/// The one key that is accepted.
pub const KEY: &str = "sk-ant-stand-in";

/// The window unless [`Anthropic::set_window`] said otherwise, in the stand-in's own tokens.
pub const DEFAULT_WINDOW: u64 = 200_000;

/// The largest body, as at the provider.
const MAX_BODY_BYTES: usize = 32 << 20;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Header names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; `null` where it was not JSON.
    pub body: Value,
    /// What the stand-in counted; see [`count_tokens`].
    pub prompt_tokens: u64,
    /// The rule that the request broke, in the API's words, whatever it was told.
    pub refused: Option<String>,
}

impl Recorded {
    /// The text of the last user message's last text block.
    pub fn question(&self) -> &str {
        rules::question(&self.body)
    }

    /// The system prompt and what was said since the model last spoke, tool results included.
    pub fn said_now(&self) -> String {
        rules::said_now(&self.body)
    }
}

#[derive(Default)]
struct Shared {
    window: u64,
    is_terse: bool,
    /// What a request that speaks of tools is refused with.
    without_tools: Option<rules::Refusal>,
    without_images: Option<rules::Refusal>,
    /// What happens to a request that is larger than the window, where it is not told in the API's words.
    too_large: Option<Box<dyn FnMut() -> Behaviour + Send>>,
    rules: Vec<(String, Behaviour)>,
    queue: VecDeque<Behaviour>,
    requests: Vec<Recorded>,
    held: watch::Sender<bool>,
}

impl Shared {
    /// What happens to a valid request.
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
pub struct Anthropic {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    _stop: oneshot::Sender<()>,
}

/// Texts of which one tells a request.
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
    /// Starts one on a free port.
    pub async fn start() -> Self {
        Self::start_blocking()
    }

    /// The same for tests without a runtime.
    pub fn start_blocking() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on the loopback interface");
        listener.set_nonblocking(true).expect("a socket that can be polled");
        let address = listener.local_addr().expect("the address just bound");
        let shared = Arc::new(Mutex::new(Shared { window: DEFAULT_WINDOW, ..Shared::default() }));
        let app = Router::new()
            .route("/v1/messages", post(messages))
            .fallback(not_found)
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(Arc::clone(&shared));
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("the socket just bound");
                // Open streams are cut off: some of them would never end by themselves.
                tokio::select! {
                    served = axum::serve(listener, app) => served.expect("a running server"),
                    _ = stopped => {}
                }
            });
        });
        Anthropic { address, shared, _stop: stop }
    }

    /// What `ANTHROPIC_BASE_URL` must be.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues what happens to the next valid request.
    pub fn push(&self, behaviour: Behaviour) {
        self.lock().queue.push_back(behaviour);
    }

    /// What happens to every valid request whose system prompt, or what was said since the model last spoke,
    /// has this text. The newest rule that fits counts, before the queue; with any rule, a request that
    /// nothing fits is refused.
    pub fn when(&self, needles: impl Into<Needles>, behaviour: Behaviour) {
        let Needles(needles) = needles.into();
        self.lock().rules.extend(needles.into_iter().map(|needle| (needle, behaviour.clone())));
    }

    /// Sets the window, in the stand-in's own tokens.
    pub fn set_window(&self, tokens: u64) {
        self.lock().window = tokens;
    }

    /// From now on a refusal does not say how long is too long, as some proxies' do not.
    pub fn name_no_numbers(&self) {
        self.lock().is_terse = true;
    }

    /// From now on any request that offers tools, or has calls or results in its history, is refused with this
    /// status, type and message, as servers do that have no tools; it uses nothing up.
    pub fn refuse_tools(&self, status: u16, code: &'static str, message: impl Into<String>) {
        self.lock().without_tools = Some(rules::Refusal { status, code, message: message.into() });
    }

    /// The same for any request with an image.
    pub fn refuse_images(&self, status: u16, code: &'static str, message: impl Into<String>) {
        self.lock().without_images = Some(rules::Refusal { status, code, message: message.into() });
    }

    /// From now on no answer begins before [`release`](Self::release); requests are taken all the same.
    pub fn hold(&self) {
        self.lock().held.send_replace(true);
    }

    /// Lets the answers go that were held.
    pub fn release(&self) {
        self.lock().held.send_replace(false);
    }

    /// From now on this happens to a request that is larger than the window: a refusal in other words, or silence.
    pub fn when_too_large(&self, behaviour: impl FnMut() -> Behaviour + Send + 'static) {
        self.lock().too_large = Some(Box::new(behaviour));
    }

    /// Every request so far, refused ones included, in the order of their arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
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
        let window = rules::check_window(prompt_tokens, shared.window, shared.is_terse);
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
    // Only a server that is gone does not release.
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
