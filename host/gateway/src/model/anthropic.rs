//! The Messages API of Anthropic, streamed.
//!
//! One call is: send, wait for the status, read events until the answer is whole. Waiting and trying
//! again happen here and only where they help; a request that the provider will never take is handed
//! back at once. A part of an answer is never returned.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use jiff::Timestamp;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use self::stream::Assembly;
use super::{
    Answer, Model, ModelError, OpenError, Request,
    classify::{self, Failed},
    sse::Decoder,
};

pub mod families;
mod stream;
mod wire;

/// The provider's name.
pub const PROVIDER: &str = "anthropic-api";
/// The model where none is named.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
/// Where the API is.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
/// The version of the protocol spoken here.
const VERSION: &str = "2023-06-01";

/// How long a connection may take to come about.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the provider may stay silent: before the status, and between two chunks of the answer.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long one question may take, waiting and trying again included.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(600);
/// A provider that asks for a longer wait than this is not waited for.
pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(60);
/// How often one question is sent at most.
pub const DEFAULT_ATTEMPTS: usize = 4;
/// The first wait; each further one is twice as long, and all are jittered.
pub const DEFAULT_FIRST_WAIT: Duration = Duration::from_millis(500);

/// The most of an error's body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// What a client needs to know. Printing it never shows the key.
#[derive(Clone, Debug)]
pub struct Config {
    pub api_key: SecretString,
    /// `https`, or `http` to this machine itself; see [`base_url`].
    pub base_url: Url,
    pub model: String,
    /// The context window in tokens; `None` takes what is known of the model's family.
    pub window: Option<u64>,
    pub connect_timeout: Duration,
    pub idle_timeout: Duration,
    pub call_timeout: Duration,
    pub max_wait: Duration,
    pub attempts: usize,
    pub first_wait: Duration,
}

impl Config {
    /// A configuration with the default limits.
    pub fn new(api_key: SecretString, base_url: Url, model: impl Into<String>) -> Self {
        Config {
            api_key,
            base_url,
            model: model.into(),
            window: None,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            call_timeout: DEFAULT_CALL_TIMEOUT,
            max_wait: DEFAULT_MAX_WAIT,
            attempts: DEFAULT_ATTEMPTS,
            first_wait: DEFAULT_FIRST_WAIT,
        }
    }
}

/// Checks an address that the key will be sent to.
///
/// # Errors
/// It is no URL, not `https` (`http` is accepted on the loopback interface alone, where nobody can
/// listen in), or holds a user name, a password, a query or a fragment.
pub fn base_url(text: &str) -> Result<Url, OpenError> {
    let bad = |why| OpenError::BadBaseUrl { why };
    let url = Url::parse(text).map_err(|_| bad("is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("holds a user name or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("holds a query or a fragment"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
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

/// A client of the Messages API.
#[derive(Debug)]
pub struct Anthropic {
    config: Config,
    client: Client,
    endpoint: Url,
    family: families::Family,
}

impl Anthropic {
    /// Builds the client; nothing is sent yet. The process must have installed its TLS provider.
    ///
    /// # Errors
    /// The key cannot be sent in a header, or the machine's TLS roots cannot be used.
    pub fn new(config: Config) -> Result<Self, OpenError> {
        let mut key = HeaderValue::from_str(config.api_key.expose_secret()).map_err(|_| OpenError::BadKey)?;
        key.set_sensitive(true);
        let headers: HeaderMap = [
            ("x-api-key", key),
            ("anthropic-version", HeaderValue::from_static(VERSION)),
            (CONTENT_TYPE.as_str(), HeaderValue::from_static("application/json")),
        ]
        .into_iter()
        .map(|(name, value)| (reqwest::header::HeaderName::from_static(name), value))
        .collect();
        let mut client = Client::builder()
            .user_agent(concat!("pmk-host/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(config.connect_timeout)
            // A redirect would take the key along to wherever it points.
            .redirect(redirect::Policy::none());
        if is_loopback(&config.base_url) {
            // Plain HTTP must not leave the machine by way of a proxy.
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| OpenError::Client(chain(&error)))?;
        let endpoint = format!("{}/v1/messages", config.base_url.as_str().trim_end_matches('/'));
        let endpoint = Url::parse(&endpoint).map_err(|_| OpenError::BadBaseUrl { why: "is not a URL" })?;
        let family = families::of(&config.model);
        Ok(Anthropic { config, client, endpoint, family })
    }

    async fn ask_until(&self, body: Vec<u8>, deadline: Instant) -> Result<Answer, ModelError> {
        let backoff = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(self.config.first_wait)
            .with_max_delay(self.config.max_wait)
            .with_max_times(self.config.attempts.saturating_sub(1));
        (|| self.attempt(&body))
            .retry(backoff)
            .when(|failure| failure.waiting_helps)
            .adjust(|failure, wait| {
                let asked = failure.retry_after();
                let wait = wait?.max(asked.unwrap_or_default());
                let too_long = asked > Some(self.config.max_wait) || Instant::now() + wait >= deadline;
                (!too_long).then_some(wait)
            })
            .notify(|failure, wait| {
                tracing::warn!(
                    model = self.config.model,
                    class = failure.error.class(),
                    wait_ms = wait.as_millis() as u64,
                    "the model call failed, trying again: {}",
                    failure.error
                );
            })
            .await
            .map_err(|failure| failure.error)
    }

    /// Sends the request once.
    async fn attempt(&self, body: &[u8]) -> Result<Answer, Failure> {
        let request = self.client.post(self.endpoint.clone()).body(body.to_vec());
        let response = self.in_time(request.send()).await.map_err(Failure::before_the_answer)?;
        if response.status() != StatusCode::OK {
            return Err(Failure::before_the_answer(self.refusal(response).await));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.trim_start().starts_with("text/event-stream") {
            let message = format!("`{}` does not speak the Messages API: it sent `{kind}`", self.endpoint);
            return Err(Failure::final_one(ModelError::Other { message }));
        }
        let mut assembly = Assembly::default();
        match self.read(response, &mut assembly).await {
            Ok(answer) => Ok(answer),
            Err(error) if assembly.has_begun() => Err(Failure::within_the_answer(error)),
            Err(error) => Err(Failure::before_the_answer(error)),
        }
    }

    async fn read(&self, mut response: Response, assembly: &mut Assembly) -> Result<Answer, ModelError> {
        let mut decoder = Decoder::default();
        while let Some(chunk) = self.in_time(response.chunk()).await? {
            let events = decoder.push(&chunk).map_err(|error| ModelError::Transport { message: error.to_string() })?;
            for event in &events {
                if let Some(answer) = assembly.apply(event)? {
                    return Ok(answer);
                }
            }
        }
        Err(ModelError::Transport { message: "the stream ended before the answer did".to_owned() })
    }

    /// What a status other than 200 means.
    async fn refusal(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = header(RETRY_AFTER.as_str()).and_then(|value| classify::retry_after(value, Timestamp::now()));
        tracing::debug!(status, request_id = header("request-id"), "the provider refused the request");
        let mut body = Vec::new();
        // The status alone says enough where the body does not come.
        while let Ok(Some(chunk)) = self.in_time(response.chunk()).await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
        classify::classify(&Failed { status: Some(status), retry_after, body: &String::from_utf8_lossy(&body) })
    }

    /// Waits for the provider's next sign of life.
    async fn in_time<T>(&self, step: impl Future<Output = reqwest::Result<T>>) -> Result<T, ModelError> {
        match timeout(self.config.idle_timeout, step).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(ModelError::Transport { message: chain(&error.without_url()) }),
            Err(_) => Err(ModelError::Timeout { after: self.config.idle_timeout }),
        }
    }
}

#[async_trait]
impl Model for Anthropic {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn name(&self) -> &str {
        &self.config.model
    }

    fn window(&self) -> u64 {
        self.config.window.unwrap_or(self.family.window)
    }

    async fn ask(&self, request: &Request) -> Result<Answer, ModelError> {
        let max_tokens = request.max_answer_tokens.clamp(1, self.family.max_answer_tokens);
        let body = wire::body(&self.config.model, max_tokens, request);
        let limit = self.config.call_timeout;
        match timeout(limit, self.ask_until(body, Instant::now() + limit)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ModelError::Timeout { after: limit }),
        }
    }
}

/// One attempt that failed.
#[derive(Debug)]
struct Failure {
    error: ModelError,
    waiting_helps: bool,
}

impl Failure {
    fn before_the_answer(error: ModelError) -> Self {
        use ModelError::{Overloaded, RateLimited, Transport};
        let waiting_helps = matches!(error, RateLimited { .. } | Overloaded { .. } | Transport { .. });
        Failure { error, waiting_helps }
    }

    /// The answer had begun and was paid for; only the provider's own word is a reason to pay again.
    fn within_the_answer(error: ModelError) -> Self {
        let waiting_helps = matches!(error, ModelError::RateLimited { .. } | ModelError::Overloaded { .. });
        Failure { error, waiting_helps }
    }

    fn final_one(error: ModelError) -> Self {
        Failure { error, waiting_helps: false }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self.error {
            ModelError::RateLimited { retry_after, .. } | ModelError::Overloaded { retry_after, .. } => retry_after,
            _ => None,
        }
    }
}

/// An error with its causes: reqwest's own words leave out what went wrong.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(error.source(), |cause| cause.source())
        .fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

#[cfg(test)]
mod tests;
