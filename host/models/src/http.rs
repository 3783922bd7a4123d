//! One streamed call over HTTP, the same for every provider: send, wait for the status, read events
//! until the answer is whole.
//!
//! Waiting and trying again happen here and only where they help; a request that the provider will
//! never take is handed back at once. A part of an answer is never returned: where one breaks off, the same is asked once
//! more. A server that does not stream, whatever it calls what it sends, has its answer taken all the same.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use pmk_system::clock;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use super::{
    Answer, Listener, ModelError, OpenError,
    classify::{self, Failed},
    foreign,
    sse::{Decoder, Event},
};

/// The most of an error's body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The most that is read of what is no stream.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;

/// How long things may take, and how often they are tried.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a connection may take to come about.
    pub(crate) connect_timeout: Duration,
    /// How long the provider may stay silent: before the status, and between two chunks of the answer.
    pub idle_timeout: Duration,
    /// How long one question may take, waiting and trying again included.
    pub call_timeout: Duration,
    /// A provider that asks for a longer wait than this is not waited for.
    pub(crate) max_wait: Duration,
    /// How often one question is sent at most.
    pub attempts: usize,
    /// The first wait; each further one is twice as long, and all are jittered.
    pub first_wait: Duration,
}

impl Default for Limits {
    /// 10 s to connect, 60 s of silence, 600 s in all; 4 attempts from 0.5 s to 60 s apart.
    fn default() -> Self {
        Limits {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(600),
            max_wait: Duration::from_secs(60),
            attempts: 4,
            first_wait: Duration::from_millis(500),
        }
    }
}

/// Who hears an answer while it is made.
pub(crate) type HeardBy<'a> = Option<&'a dyn Listener>;

/// An answer in the making, out of a provider's events.
pub(crate) trait Assemble: Default + Send {
    /// Whether any part of the answer has arrived.
    fn has_begun(&self) -> bool;

    /// Takes one event in; gives the answer when it is whole.
    ///
    /// # Errors
    /// The provider ended the answer with an error, the model refused, or the stream makes no sense.
    fn apply(&mut self, event: &Event) -> Result<Option<Answer>, ModelError>;

    /// The text that is there so far.
    fn text(&self) -> Cow<'_, str>;

    /// The stream is over and the answer was not; `Some` where it is whole all the same.
    fn end(&mut self) -> Option<Result<Answer, ModelError>>;

    /// The answer of a server that does not stream, as one JSON document; `None` where that holds none.
    ///
    /// # Errors
    /// As of [`apply`](Assemble::apply).
    fn whole(&mut self, document: &str) -> Result<Option<Answer>, ModelError>;
}

/// Checks an address that `variable` names and that a key will be sent to.
///
/// # Errors
/// It is no URL, not `https` (`http` is accepted on the loopback interface alone, where nobody can
/// listen in, or where there is no key), or holds a user name, a password, a query or a fragment.
pub fn base_url(variable: &'static str, text: &str, has_key: bool) -> Result<Url, OpenError> {
    let bad = |why| OpenError::BadBaseUrl { variable, why };
    let url = Url::parse(text.trim()).map_err(|_| bad("is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("contains a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("contains a query or a fragment"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) || !has_key => Ok(url),
        "http" => Err(bad("would send the key in clear text")),
        _ => Err(bad("is neither https nor http")),
    }
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

/// One address of a provider's API.
#[derive(Debug)]
pub(crate) struct Endpoint {
    client: Client,
    pub(super) url: Url,
    limits: Limits,
    /// What nobody is to read in a log: a server may repeat what it was sent.
    secrets: Vec<SecretString>,
    /// As the last answer said, a refusal too.
    clock_ahead: Mutex<Option<SignedDuration>>,
}

impl Endpoint {
    /// Builds the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// The machine's TLS roots cannot be used.
    pub fn new(base_url: &Url, path: &str, mut headers: HeaderMap, limits: Limits) -> Result<Self, OpenError> {
        // Without the scheme that may stand before it.
        let secret = |value: &HeaderValue| value.to_str().ok()?.rsplit(' ').next().map(SecretString::from);
        let secrets = headers.values().filter(|value| value.is_sensitive()).filter_map(secret).collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut client = Client::builder()
            .user_agent(concat!("pmk-host/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(limits.connect_timeout)
            // A redirect would take the key along to wherever it points.
            .redirect(redirect::Policy::none());
        if is_loopback(base_url) {
            // Plain HTTP must not leave the machine by way of a proxy.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| OpenError::Client(chain(&error)))?;
        let mut url = base_url.clone();
        url.set_path(&format!("{}{path}", base_url.path().trim_end_matches('/')));
        Ok(Endpoint { client, url, limits, secrets, clock_ahead: Mutex::default() })
    }

    /// How far this machine's clock is ahead of the provider's, as its last answer said.
    pub fn clock_ahead(&self) -> Option<SignedDuration> {
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a body and gives the whole answer.
    ///
    /// # Errors
    /// What the last attempt failed with.
    pub async fn call<A: Assemble>(&self, body: Vec<u8>, heard_by: HeardBy<'_>) -> Result<Answer, ModelError> {
        let limit = self.limits.call_timeout;
        match timeout(limit, self.call_until::<A>(body.into(), heard_by, Instant::now() + limit)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ModelError::silent_for(limit)),
        }
    }

    async fn call_until<A: Assemble>(
        &self,
        body: Bytes,
        heard_by: HeardBy<'_>,
        deadline: Instant,
    ) -> Result<Answer, ModelError> {
        let backoff = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(self.limits.first_wait)
            .with_max_delay(self.limits.max_wait)
            .with_max_times(self.limits.attempts.saturating_sub(1));
        let attempt = async || {
            let attempted = self.attempt::<A>(body.clone(), heard_by).await;
            attempted.map_err(|failure| failure.without(&self.secrets))
        };
        let mut has_broken_off = false;
        attempt
            .retry(backoff)
            .when(|failure| match failure.again {
                Again::Never => false,
                Again::Once => !std::mem::replace(&mut has_broken_off, true),
                Again::Later => true,
            })
            .adjust(|failure, wait| {
                let asked = failure.error.retry_after();
                let wait = wait?.max(asked.unwrap_or_default());
                let too_long = asked > Some(self.limits.max_wait) || Instant::now() + wait >= deadline;
                (!too_long).then_some(wait)
            })
            .notify(|failure, wait| {
                tracing::warn!(
                    host = self.url.host_str(),
                    class = failure.error.class(),
                    wait_ms = wait.as_millis() as u64,
                    "the model call failed, retrying: {}",
                    failure.error
                );
            })
            .await
            .map_err(|failure| failure.error)
    }

    /// Sends the request once.
    async fn attempt<A: Assemble>(&self, body: Bytes, heard_by: HeardBy<'_>) -> Result<Answer, Failure> {
        let request = self.client.post(self.url.clone()).body(body);
        let response = self.in_time(request.send()).await.map_err(Failure::before_the_answer)?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner) = date.and_then(clock::ahead_of);
        if response.status() != StatusCode::OK {
            return Err(Failure::refused(self.refusal(response).await));
        }
        self.read::<A>(response, heard_by).await
    }

    /// Reads events until the answer is whole.
    async fn read<A: Assemble>(&self, mut response: Response, heard_by: HeardBy<'_>) -> Result<Answer, Failure> {
        let (mut assembly, mut decoder) = (A::default(), Decoder::default());
        // All that has come while no answer had begun.
        let mut document = Vec::new();
        let broken = loop {
            let chunk = match self.in_time(response.chunk()).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => {
                    break ModelError::Transport { message: "the stream ended before the answer did".to_owned() };
                }
                Err(error) => break error,
            };
            match take(&mut assembly, &mut decoder, &chunk) {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(error) if assembly.has_begun() => return Err(Failure::within_the_answer(error)),
                Err(error) => return Err(Failure::before_the_answer(error)),
            }
            if assembly.has_begun() {
                document.clear();
            } else if document.len() + chunk.len() <= MAX_DOCUMENT_BYTES {
                document.extend_from_slice(&chunk);
            } else {
                let message = format!("`{}` sent {MAX_DOCUMENT_BYTES} bytes without an answer", self.url);
                return Err(Failure::final_one(ModelError::Other { message }));
            }
            if let Some(listener) = heard_by {
                listener.hear(&assembly.text());
            }
        };
        match assembly.end() {
            Some(whole) => whole.map_err(Failure::within_the_answer),
            None if assembly.has_begun() => Err(Failure::broken_off(broken)),
            None => self.document(&response, &String::from_utf8_lossy(&document), assembly, broken),
        }
    }

    /// What a server has sent that was no stream with an answer, until it was over in this way.
    fn document<A: Assemble>(
        &self,
        response: &Response,
        document: &str,
        mut assembly: A,
        broken: ModelError,
    ) -> Result<Answer, Failure> {
        let document = document.trim_start_matches('\u{feff}').trim();
        if document.starts_with('{') {
            if !foreign::is_json(document) {
                return Err(Failure::broken_off(broken));
            }
            let provider = self.url.host_str().unwrap_or_default();
            let said = || classify::classify(&Failed { provider, body: document, ..Failed::default() });
            return match assembly.whole(document) {
                Ok(Some(answer)) => Ok(answer),
                Ok(None) | Err(ModelError::Transport { .. }) => Err(Failure::refused(said())),
                Err(error) => Err(Failure::refused(error)),
            };
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if document.is_empty() || kind.trim_start().starts_with("text/event-stream") {
            return Err(Failure::before_the_answer(broken));
        }
        let message = format!("`{}` sent `{kind}`, which is not an answer", self.url);
        Err(Failure::final_one(ModelError::Other { message }))
    }

    /// What a status other than 200 means.
    async fn refusal(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = header(RETRY_AFTER.as_str()).and_then(|value| classify::retry_after(value, Timestamp::now()));
        let request_id = header("request-id").or_else(|| header("x-request-id"));
        tracing::debug!(status, request_id, "the provider refused the request");
        let mut body = Vec::new();
        // The status alone says enough where the body does not come.
        while let Ok(Some(chunk)) = self.in_time(response.chunk()).await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
        let body = String::from_utf8_lossy(&body);
        let provider = self.url.host_str().unwrap_or_default();
        classify::classify(&Failed { provider, status: Some(status), retry_after, window: None, body: &body })
    }

    /// Waits for the provider's next sign of life.
    async fn in_time<T>(&self, step: impl Future<Output = reqwest::Result<T>>) -> Result<T, ModelError> {
        match timeout(self.limits.idle_timeout, step).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(ModelError::Transport { message: chain(&error.without_url()) }),
            Err(_) => Err(ModelError::silent_for(self.limits.idle_timeout)),
        }
    }
}

/// Takes a chunk in; gives the answer when it is whole.
fn take(assembly: &mut impl Assemble, decoder: &mut Decoder, chunk: &[u8]) -> Result<Option<Answer>, ModelError> {
    let events = decoder.push(chunk).map_err(|error| ModelError::Transport { message: error.to_string() })?;
    for event in &events {
        if let Some(answer) = assembly.apply(event)? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// Whether the same is asked again.
#[derive(Clone, Copy, Debug)]
enum Again {
    Never,
    Once,
    /// As often as the limits allow.
    Later,
}

impl Again {
    const fn later_if(waiting_helps: bool) -> Self {
        if waiting_helps { Again::Later } else { Again::Never }
    }
}

/// One attempt that failed.
#[derive(Debug)]
struct Failure {
    error: ModelError,
    again: Again,
}

impl Failure {
    /// The provider's own word.
    fn refused(error: ModelError) -> Self {
        let again = Again::later_if(error.action().asks_the_same_again());
        Failure { error, again }
    }

    /// Nothing came, or not all of it. Who waited in vain has waited long enough.
    fn before_the_answer(error: ModelError) -> Self {
        use ModelError::{Overloaded, RateLimited, Transport};
        let again = Again::later_if(matches!(error, RateLimited { .. } | Overloaded { .. } | Transport { .. }));
        Failure { error, again }
    }

    /// The answer had begun and was paid for; only the provider's own word is a reason to pay again.
    fn within_the_answer(error: ModelError) -> Self {
        let again = Again::later_if(matches!(error, ModelError::RateLimited { .. } | ModelError::Overloaded { .. }));
        Failure { error, again }
    }

    /// The connection was gone before an answer that had begun was whole. That may happen to anybody once.
    fn broken_off(error: ModelError) -> Self {
        let again = if matches!(error, ModelError::Transport { .. }) { Again::Once } else { Again::Never };
        Failure { error, again }
    }

    /// The same, with nothing of what is secret in its words.
    fn without(mut self, secrets: &[SecretString]) -> Self {
        for secret in secrets.iter().map(ExposeSecret::expose_secret).filter(|secret| !secret.is_empty()) {
            let words = self.error.words_mut();
            if words.contains(secret) {
                *words = words.replace(secret, "[key]");
            }
        }
        self
    }

    fn final_one(error: ModelError) -> Self {
        Failure { error, again: Again::Never }
    }
}

/// An error with its causes: reqwest's own words leave out what went wrong.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |cause| cause.source())
        .fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}
