//! One streamed call over HTTP, for all providers: sends the request, waits for the status, reads events until the
//! answer is complete.
//!
//! Waits and retries happen here, and only where they help; a request that the provider will never accept fails at
//! once. Partial answers are never returned: if one breaks off, the request is sent once more. The answer of a server
//! that does not stream is accepted, whatever its content type.

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
    Client, Response, Url,
    header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use super::{
    Answer, ErrorClass, Listener, Meter, ModelError, OpenError, Usage,
    classify::{self, Failed},
    error::MAX_WAIT,
    foreign,
    sse::{Decoder, Event},
};

/// How much of an error's body is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// How long an error's body is read. It is there at once, as a rule; one that never ends would hide the status until the
/// time of the whole call is over.
const MAX_ERROR_TIME: Duration = Duration::from_secs(10);
/// How much of a response that is not a stream is read.
const MAX_DOCUMENT_BYTES: usize = 16 << 20;

/// A key of at least this length is part of no word by chance.
const MIN_SECRET_BYTES: usize = 8;

/// Time limits, and the number of attempts.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time limit for establishing a connection.
    pub(crate) connect_timeout: Duration,
    /// The maximum time without data: before the status, and between two chunks of the answer.
    pub idle_timeout: Duration,
    /// The time limit of a call, including waits and retries.
    pub call_timeout: Duration,
    /// The longest wait that a provider may ask for; if it asks for more, there is no retry.
    pub(crate) max_wait: Duration,
    /// The maximum number of attempts per call.
    pub attempts: usize,
    /// The first wait; each further one is twice as long, and all have jitter.
    pub first_wait: Duration,
}

impl Default for Limits {
    /// 10 s to connect, 60 s without data, 600 s in total; 4 attempts, 0.5 s to 60 s apart.
    fn default() -> Self {
        Limits {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(600),
            max_wait: MAX_WAIT,
            attempts: 4,
            first_wait: Duration::from_millis(500),
        }
    }
}

/// Receives the answer while it is generated.
pub(crate) type HeardBy<'a> = Option<&'a dyn Listener>;

/// Assembles an answer from a provider's events.
pub(crate) trait Assemble: Default + Send {
    /// Whether any part of the answer has arrived.
    fn has_begun(&self) -> bool;

    /// Processes one event; returns the answer when it is complete.
    ///
    /// # Errors
    /// If the provider ended the answer with an error, the model refused, or the stream is invalid.
    fn apply(&mut self, event: &Event) -> Result<Option<Answer>, ModelError>;

    /// The text so far.
    fn text(&self) -> Cow<'_, str>;

    /// The words of the last event that was no part of an answer and had any: they may say why there is none.
    fn unread(&self) -> Option<&str>;

    /// What the provider has counted so far. It stays known when the answer is complete, and when it is refused.
    fn usage(&self) -> Usage;

    /// The stream ended before the answer was complete; returns `Some` where the answer is complete nevertheless.
    fn end(&mut self) -> Option<Result<Answer, ModelError>>;

    /// The answer of a server that does not stream, from one JSON document; `None` if it contains none.
    ///
    /// # Errors
    /// As for [`apply`](Assemble::apply).
    fn whole(&mut self, document: &str) -> Result<Option<Answer>, ModelError>;
}

/// Validates the base URL in `variable`, to which a key will be sent.
///
/// # Errors
/// If it is not a URL, is not `https` (`http` is accepted only on the loopback interface, where nobody can eavesdrop,
/// or without a key), or contains a user name, a password, a query or a fragment.
pub fn base_url(variable: &'static str, text: &str, has_key: bool) -> Result<Url, OpenError> {
    let bad = |why| OpenError::BadBaseUrl { variable, why };
    let url = Url::parse(text.trim()).map_err(|_| bad("must be a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("contains a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("contains a query or a fragment"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) || !has_key => Ok(url),
        "http" => Err(bad("would send a key in clear text")),
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
    /// Must not appear in a log: a server may repeat what it received.
    secrets: Vec<SecretString>,
    /// From the last response, whether an answer or an error.
    clock_ahead: Mutex<Option<SignedDuration>>,
}

impl Endpoint {
    /// Creates the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// If the machine's TLS roots cannot be used.
    pub fn new(base_url: &Url, path: &str, mut headers: HeaderMap, limits: Limits) -> Result<Self, OpenError> {
        // Without the scheme that may precede it.
        let secret = |value: &HeaderValue| value.to_str().ok()?.rsplit(' ').next().map(SecretString::from);
        let secrets = headers.values().filter(|value| value.is_sensitive()).filter_map(secret).collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut client = Client::builder()
            .user_agent(concat!("pmk-host/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(limits.connect_timeout)
            // A redirect would send the key to its target.
            .redirect(redirect::Policy::none());
        if is_loopback(base_url) {
            // Plain HTTP must not leave the machine through a proxy.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| OpenError::Client(chain(&error)))?;
        let mut url = base_url.clone();
        url.set_path(&format!("{}{path}", base_url.path().trim_end_matches('/')));
        Ok(Endpoint { client, url, limits, secrets, clock_ahead: Mutex::default() })
    }

    /// How far this machine's clock is ahead of the provider's, from its last response.
    pub fn clock_ahead(&self) -> Option<SignedDuration> {
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a body and returns the whole answer.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn call<A: Assemble>(
        &self,
        body: Vec<u8>,
        heard_by: HeardBy<'_>,
        meter: &Meter,
    ) -> Result<Answer, ModelError> {
        let limit = self.limits.call_timeout;
        match timeout(limit, self.call_until::<A>(body.into(), heard_by, meter, Instant::now() + limit)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ModelError::not_done_within(limit)),
        }
    }

    async fn call_until<A: Assemble>(
        &self,
        body: Bytes,
        heard_by: HeardBy<'_>,
        meter: &Meter,
        deadline: Instant,
    ) -> Result<Answer, ModelError> {
        let backoff = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(self.limits.first_wait)
            .with_max_delay(self.limits.max_wait)
            .with_max_times(self.limits.attempts.saturating_sub(1));
        let attempt = async || {
            let attempted = self.attempt::<A>(body.clone(), heard_by, meter).await;
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
            .adjust(|failure, wait| failure.error.wait(wait, self.limits.max_wait, deadline))
            .notify(|failure, wait| {
                tracing::warn!(
                    host = self.url.host_str(),
                    class = failure.error.class.name(),
                    wait_ms = wait.as_millis() as u64,
                    "the model call failed, retrying: {}",
                    failure.error
                );
            })
            .await
            .map_err(|failure| failure.error)
    }

    /// Sends the request once.
    async fn attempt<A: Assemble>(&self, body: Bytes, heard_by: HeardBy<'_>, meter: &Meter) -> Result<Answer, Failure> {
        let request = self.client.post(self.url.clone()).body(body);
        let response = self.in_time(request.send()).await.map_err(Failure::before_the_answer)?;
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner) = date.and_then(clock::ahead_of);
        if response.status().is_redirection() {
            return Err(Failure::elsewhere(format!("`{}` redirects to somewhere else", self.url)));
        }
        // Some proxies answer every POST with 201.
        if !response.status().is_success() {
            return Err(Failure::refused(self.refusal(response).await));
        }
        let mut metered = Metered { assembly: A::default(), meter };
        self.read(&mut metered.assembly, response, heard_by).await
    }

    /// Reads events until the answer is whole.
    async fn read(
        &self,
        assembly: &mut impl Assemble,
        mut response: Response,
        heard_by: HeardBy<'_>,
    ) -> Result<Answer, Failure> {
        let mut decoder = Decoder::default();
        // All data received before an answer has begun.
        let mut document = Vec::new();
        // The length of the text that was heard last: not every piece adds to it.
        let mut heard = 0;
        let broken = loop {
            let chunk = match self.in_time(response.chunk()).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => {
                    // The last event may lack the line that ends it; half an event is none.
                    if let Some(last) = decoder.end() {
                        match assembly.apply(&last) {
                            Ok(Some(answer)) => return Ok(answer),
                            Err(error) if last.data.trim() == "[DONE]" || foreign::is_json(&last.data) => {
                                return Err(Failure::of(assembly, error).saying(unread(assembly, &decoder).as_deref()));
                            }
                            Ok(None) | Err(_) => {}
                        }
                    }
                    break ModelError::new(ErrorClass::Transport, "the stream ended before the answer did");
                }
                Err(error) => break error,
            };
            match take(assembly, &mut decoder, &chunk) {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(error) => return Err(Failure::of(assembly, error).saying(unread(assembly, &decoder).as_deref())),
            }
            if assembly.has_begun() {
                document.clear();
            } else if document.len() + chunk.len() <= MAX_DOCUMENT_BYTES {
                document.extend_from_slice(&chunk);
            } else {
                let message = format!("`{}` sent {MAX_DOCUMENT_BYTES} bytes without an answer", self.url);
                return Err(Failure::final_one(ModelError::new(ErrorClass::Other, message)));
            }
            if let Some(listener) = heard_by {
                let text = assembly.text();
                if text.len() != std::mem::replace(&mut heard, text.len()) {
                    listener.hear(&text);
                }
            }
        };
        let words = unread(assembly, &decoder);
        let words = words.as_deref();
        match assembly.end() {
            Some(whole) => whole.map_err(Failure::within_the_answer),
            None if assembly.has_begun() => Err(Failure::broken_off(broken).saying(words)),
            None => self.document(&response, &String::from_utf8_lossy(&document), assembly, broken, words),
        }
    }

    /// Handles a response that was not a stream with an answer; `broken` is how it ended, `words` is what it said.
    fn document(
        &self,
        response: &Response,
        document: &str,
        assembly: &mut impl Assemble,
        broken: ModelError,
        words: Option<&str>,
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
                Ok(None) => Err(Failure::refused(said())),
                Err(error) if assembly.has_begun() => Err(Failure::within_the_answer(error)),
                Err(error) if error.class == ErrorClass::Transport => Err(Failure::refused(said())),
                Err(error) => Err(Failure::refused(error)),
            };
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if document.is_empty() || kind.trim_start().starts_with("text/event-stream") {
            return Err(Failure::before_the_answer(broken).saying(words));
        }
        Err(Failure::elsewhere(format!("`{}` sent `{kind}`, which is not an answer", self.url)).saying(words))
    }

    /// Classifies a status that is none of success.
    async fn refusal(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = header(RETRY_AFTER.as_str()).and_then(|value| classify::retry_after(value, Timestamp::now()));
        let request_id = header("request-id").or_else(|| header("x-request-id"));
        tracing::debug!(status, request_id, "the provider refused the request");
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = self.in_time(response.chunk()).await {
                let room = MAX_ERROR_BYTES - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if body.len() == MAX_ERROR_BYTES {
                    break;
                }
            }
        };
        // If the body cannot be read, the status and what has come of the body are enough.
        if timeout(MAX_ERROR_TIME, read).await.is_err() {
            tracing::debug!(status, "the body of the refusal did not end in time");
        }
        let body = String::from_utf8_lossy(&body);
        let provider = self.url.host_str().unwrap_or_default();
        classify::classify(&Failed { provider, status: Some(status), retry_after, window: None, body: &body })
    }

    /// Waits for the next data from the provider.
    async fn in_time<T>(&self, step: impl Future<Output = reqwest::Result<T>>) -> Result<T, ModelError> {
        match timeout(self.limits.idle_timeout, step).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(ModelError::new(ErrorClass::Transport, chain(&error.without_url()))),
            Err(_) => Err(ModelError::silent_for(self.limits.idle_timeout)),
        }
    }
}

/// The answer to one attempt. Its cost is metered however the attempt ends.
struct Metered<'m, A: Assemble> {
    assembly: A,
    meter: &'m Meter,
}

impl<A: Assemble> Drop for Metered<'_, A> {
    fn drop(&mut self) {
        self.meter.add(self.assembly.usage());
    }
}

/// Processes a chunk; returns the answer when it is complete.
fn take(assembly: &mut impl Assemble, decoder: &mut Decoder, chunk: &[u8]) -> Result<Option<Answer>, ModelError> {
    let events = decoder.push(chunk).map_err(|error| ModelError::new(ErrorClass::Transport, error.to_string()))?;
    for event in &events {
        if let Some(answer) = assembly.apply(event)? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

/// What the server has said that is no part of an answer.
fn unread(assembly: &impl Assemble, decoder: &Decoder) -> Option<String> {
    let words = assembly.unread().map(str::to_owned);
    words.or_else(|| classify::words_in_place_of_an_answer(decoder.unread()))
}

/// Whether the request is sent again.
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
    /// The provider itself reported the error.
    fn refused(error: ModelError) -> Self {
        let again = Again::later_if(error.action().asks_the_same_again());
        Failure { error, again }
    }

    /// Nothing, or only part of the response, was received before the answer began. A timeout is not retried.
    fn before_the_answer(error: ModelError) -> Self {
        use ErrorClass::{Overloaded, RateLimited, Transport};
        let again = Again::later_if(matches!(error.class, RateLimited { .. } | Overloaded { .. } | Transport));
        Failure { error, again }
    }

    /// The answer had begun and was paid for; only an error that the provider reports is a reason to pay again.
    fn within_the_answer(error: ModelError) -> Self {
        let again =
            Again::later_if(matches!(error.class, ErrorClass::RateLimited { .. } | ErrorClass::Overloaded { .. }));
        Failure { error, again }
    }

    /// An event was an error, or no event at all.
    fn of(assembly: &impl Assemble, error: ModelError) -> Self {
        if assembly.has_begun() { Failure::within_the_answer(error) } else { Failure::before_the_answer(error) }
    }

    /// The connection was lost in the middle of an answer. This is retried once.
    fn broken_off(error: ModelError) -> Self {
        let again = if error.class == ErrorClass::Transport { Again::Once } else { Again::Never };
        Failure { error, again }
    }

    /// A proxy on the way has answered, or whatever is at a wrong address: that says nothing about the request.
    fn elsewhere(message: String) -> Self {
        Failure::final_one(ModelError::new(ErrorClass::Transport, message))
    }

    /// Adds the server's words to the error of a stream that was not understood.
    fn saying(mut self, words: Option<&str>) -> Self {
        let Some(words) = words else { return self };
        let ModelError { class, message } = &self.error;
        if matches!(class, ErrorClass::Transport | ErrorClass::Timeout) && !message.contains(words) {
            self.error = ModelError::new(*class, format!("{message}; the server said: {words}"));
        }
        self
    }

    /// Removes secrets from the error's text.
    fn without(mut self, secrets: &[SecretString]) -> Self {
        for secret in secrets.iter().map(ExposeSecret::expose_secret).filter(|secret| !secret.is_empty()) {
            self.error.message = without(&self.error.message, secret);
        }
        self
    }

    fn final_one(error: ModelError) -> Self {
        Failure { error, again: Again::Never }
    }
}

/// The text without a secret. A short one may be part of any word, and what an error says is read again: it is removed
/// only where it is not within a word.
fn without(words: &str, secret: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_long = secret.len() >= MIN_SECRET_BYTES;
    let (mut kept, mut from) = (String::with_capacity(words.len()), 0);
    for (at, _) in words.match_indices(secret) {
        let end = at + secret.len();
        if is_long || !words[..at].ends_with(is_of_word) && !words[end..].starts_with(is_of_word) {
            kept.extend([&words[from..at], "[key]"]);
            from = end;
        }
    }
    kept.push_str(&words[from..]);
    // A long text was cut, perhaps within the secret.
    if let Some(text) = kept.strip_suffix('…') {
        let begins = |bytes: &usize| secret.get(..*bytes).is_some_and(|part| text.ends_with(part));
        if let Some(bytes) = (MIN_SECRET_BYTES..secret.len()).rev().find(begins) {
            return format!("{}[key]…", &text[..text.len() - bytes]);
        }
    }
    kept
}

/// An error with its causes, which reqwest's own message leaves out.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |cause| cause.source())
        .fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &str, key: &str) -> ModelError {
        let failure = Failure::refused(ModelError::new(ErrorClass::Other, words));
        failure.without(&[SecretString::from(key)]).error
    }

    #[test]
    fn a_key_is_in_no_error() {
        for (words, key, expected) in [
            ("sk-12345678 is wrong", "sk-12345678", "[key] is wrong"),
            ("the_key_sk-12345678s", "sk-12345678", "the_key_[key]s"),
            ("wrong: `abc`, abc; Bearer abc", "abc", "wrong: `[key]`, [key]; Bearer [key]"),
            ("金鑰abc無效", "abc", "金鑰[key]無效"),
            ("abc", "abc", "[key]"),
            ("the key sk-12345678…", "sk-123456789", "the key [key]…"),
            ("the key sk-…", "sk-123456789", "the key sk-…"),
            ("the key sk-12345678", "sk-123456789", "the key sk-12345678"),
        ] {
            assert_eq!(shown(words, key), ModelError::new(ErrorClass::Other, expected));
        }
    }

    /// Once, the key `x` hid what the error was about, from the gateway as well.
    #[test]
    fn a_short_key_leaves_the_words_that_contain_it() {
        let words = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        for key in ["x", "t", "token", "max", "_", "'"] {
            let error = shown(words, key);
            assert!(classify::wants_max_completion_tokens(&error), "{key}: {error}");
        }
        let quota = "10000 tokens per min (TPM), x: 3";
        assert_eq!(shown(quota, "m").to_string(), quota);
    }
}
