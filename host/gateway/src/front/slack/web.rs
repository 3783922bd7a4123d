//! The Web API: every call under a time limit, every failure classified, rate limits kept.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use jiff::SignedDuration;
use pmk_system::clock;
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{CONTENT_TYPE, DATE, HeaderName, RETRY_AFTER},
    redirect,
};
use rustls::ClientConfig;
use secrecy::{ExposeSecret, SecretString};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use slack_morphism::prelude::*;
use tokio::time::Instant;

use super::{
    SlackConfig,
    address::ApiAddress,
    dry_run::DryRun,
    failure::{CallFailure, Cause, needed_scope},
    token::Token,
};
use crate::talk::ReplyTo;

/// Where Slack says what the token of a call may do.
const SCOPES: HeaderName = HeaderName::from_static("x-oauth-scopes");

/// How long a TCP connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Who the bot is in its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) bot: Option<String>,
    pub(super) name: String,
    pub(super) team: String,
    pub(super) team_id: String,
}

/// What Slack says of the bot token.
pub(super) struct Met {
    pub(super) me: Identity,
    /// What it may do, with commas between; not every server that speaks Slack's protocol says.
    pub(super) scopes: Option<String>,
    /// How far this machine's clock is ahead of the server's.
    pub(super) ahead: Option<SignedDuration>,
}

/// What Slack limits together: a method, and for posts the channel with it.
pub(super) type Lane = (&'static str, Option<String>);

/// A client of the Web API.
pub(super) struct Web {
    client: Client,
    address: ApiAddress,
    app_token: SecretString,
    bot_token: SecretString,
    time_limit: Duration,
    /// Answers what writes, where nothing may.
    dry_run: Option<DryRun>,
    /// Until when Slack wants to hear nothing more of this kind.
    paused: Mutex<HashMap<Lane, Instant>>,
}

/// What is read of the answer to a post. The rest, Slack's echo of the message, is of no use here and
/// must not turn a message that was posted into a failure.
#[derive(Deserialize)]
struct Posted {
    ts: SlackTs,
}

/// What is read of the answer to opening a direct message.
#[derive(Deserialize)]
struct Opened {
    channel: OpenedChannel,
}

#[derive(Deserialize)]
struct OpenedChannel {
    id: String,
}

impl Posted {
    fn ts(self) -> String {
        self.ts.0
    }
}

impl Web {
    pub(super) fn new(config: &SlackConfig, address: &ApiAddress, mut tls: ClientConfig) -> reqwest::Result<Self> {
        tls.alpn_protocols = vec!["h2".into(), "http/1.1".into()];
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(!address.is_loopback())
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would take the token along to wherever it points.
            .redirect(redirect::Policy::none())
            // The WebSocket knows of none either.
            .no_proxy();
        let token = |secret: &SecretString| secret.expose_secret().trim().into();
        Ok(Web {
            client: client.build()?,
            address: address.clone(),
            app_token: token(&config.app_token),
            bot_token: token(&config.bot_token),
            time_limit: config.request_timeout,
            dry_run: config.dry_run.then(DryRun::default),
            paused: Mutex::default(),
        })
    }

    /// `auth.test`: who the bot token belongs to, and what it may do.
    pub(super) async fn identity(&self) -> Result<Met, CallFailure> {
        const METHOD: &str = "auth.test";
        let request = self.client.get(self.address.method(METHOD));
        let read = async |response: Response| {
            let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            let (scopes, ahead) = (header(SCOPES).map(str::to_owned), header(DATE).and_then(clock::ahead_of));
            Ok((read_answer::<SlackApiAuthTestResponse>(response).await?, scopes, ahead))
        };
        let (answer, scopes, ahead) = self.exchange((METHOD, None), Token::Bot, request, read).await?;
        let me = Identity {
            name: answer.user.unwrap_or_else(|| answer.user_id.0.clone()),
            user: answer.user_id.0,
            bot: answer.bot_id.map(|bot| bot.0),
            team: answer.team,
            team_id: answer.team_id.0,
        };
        Ok(Met { me, scopes, ahead })
    }

    /// `apps.connections.open`: the address of a new WebSocket, good for one connection. It is a secret.
    pub(super) async fn open_connection(&self) -> Result<Url, CallFailure> {
        let request = SlackApiAppsConnectionOpenRequest::new();
        let opened: SlackApiAppsConnectionOpenResponse =
            self.post_json(("apps.connections.open", None), Token::App, &request).await?;
        Ok(opened.url.0)
    }

    /// `chat.postMessage` with text that is already escaped; returns the new message's `ts`. By its tag it
    /// is found again.
    pub(super) async fn post(
        &self,
        place: &ReplyTo,
        escaped: String,
        tag: Option<SlackMessageMetadata>,
    ) -> Result<String, CallFailure> {
        let ReplyTo { channel, thread_ts } = place;
        let content = SlackMessageContent::new().with_text(escaped).opt_metadata(tag);
        // Slack's defaults differ between the two methods; said outright, `@channel` in a text stays text.
        let request = SlackApiChatPostMessageRequest::new(channel.into(), content)
            .opt_thread_ts(thread_ts.as_deref().map(SlackTs::from))
            .with_link_names(false)
            .with_parse("none".to_owned())
            .with_unfurl_links(false)
            .with_unfurl_media(false);
        self.write::<_, Posted>(("chat.postMessage", Some(channel.clone())), &request).await.map(Posted::ts)
    }

    /// `chat.update` with text that is already escaped; returns the message's `ts`.
    pub(super) async fn update(&self, channel: &str, ts: &str, escaped: String) -> Result<String, CallFailure> {
        let content = SlackMessageContent::new().with_text(escaped);
        let request = SlackApiChatUpdateRequest::new(channel.into(), content, ts.into())
            .with_link_names(false)
            .with_parse("none".to_owned());
        self.write::<_, Posted>(("chat.update", None), &request).await.map(Posted::ts)
    }

    /// `chat.delete` of a message of the bot's own.
    pub(super) async fn delete(&self, channel: &str, ts: &str) -> Result<(), CallFailure> {
        let request = SlackApiChatDeleteRequest::new(channel.into(), ts.into());
        self.write::<_, Posted>(("chat.delete", None), &request).await.map(drop)
    }

    /// `reactions.add`; a reaction that is there already does as well.
    pub(super) async fn react(&self, channel: &str, ts: &str, emoji: &str) -> Result<(), CallFailure> {
        let request = SlackApiReactionsAddRequest::new(channel.into(), emoji.into(), ts.into());
        match self.write::<_, IgnoredAny>(("reactions.add", None), &request).await {
            Err(failure) if failure.code() == Some("already_reacted") => Ok(()),
            added => added.map(drop),
        }
    }

    /// `conversations.open`: the channel of the direct message with a person.
    pub(super) async fn open_direct(&self, person: &str) -> Result<String, CallFailure> {
        let request = SlackApiConversationsOpenRequest::new().with_users(vec![person.into()]);
        let opened: Opened = self.write(("conversations.open", None), &request).await?;
        Ok(opened.channel.id)
    }

    /// A method that reads.
    pub(super) async fn read<R: DeserializeOwned + Send>(
        &self,
        method: &'static str,
        parameters: &[(&str, Option<&str>)],
    ) -> Result<R, CallFailure> {
        let mut url = self.address.method(method);
        let given = parameters.iter().filter_map(|(name, value)| Some((name, (*value)?)));
        url.query_pairs_mut().extend_pairs(given);
        self.call((method, None), Token::Bot, self.client.get(url)).await
    }

    /// A method that changes something.
    pub(super) async fn write<Q: Serialize + Send + Sync, R: DeserializeOwned + Send>(
        &self,
        lane: Lane,
        request: &Q,
    ) -> Result<R, CallFailure> {
        if let Some(answer) = self.instead_of(lane.0, request) {
            return answer;
        }
        self.post_json(lane, Token::Bot, request).await
    }

    async fn post_json<Q: Serialize + Sync, R: DeserializeOwned>(
        &self,
        lane: Lane,
        token: Token,
        request: &Q,
    ) -> Result<R, CallFailure> {
        let post = self.client.post(self.address.method(lane.0));
        self.call(lane, token, post.header(CONTENT_TYPE, "application/json; charset=utf-8").json(request)).await
    }

    /// The answer to a call that is not made, in a dry run.
    pub(super) fn instead_of<Q: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        request: &Q,
    ) -> Option<Result<R, CallFailure>> {
        let answer = self.dry_run.as_ref()?.answer(method, request);
        Some(answer.map_err(|cause| CallFailure { method, token: Token::Bot, cause }))
    }

    /// Sends a file to the address that Slack has given for it.
    pub(super) async fn send_file(&self, url: Url, content: &[u8]) -> Result<(), CallFailure> {
        const METHOD: &str = "files.upload to the given address";
        // The token goes with it.
        if !self.address.may_upload_to(&url) {
            let cause = Cause::Unreachable("the address is not Slack's".to_owned());
            return Err(CallFailure { method: METHOD, token: Token::Bot, cause });
        }
        let post = self.client.post(url).header(CONTENT_TYPE, "application/octet-stream").body(content.to_vec());
        self.call::<IgnoredAny>((METHOD, None), Token::Bot, post).await.map(drop)
    }

    async fn call<R: DeserializeOwned>(
        &self,
        lane: Lane,
        token: Token,
        request: RequestBuilder,
    ) -> Result<R, CallFailure> {
        self.exchange(lane, token, request, read_answer).await
    }

    /// A call, whose response is read like this.
    async fn exchange<R>(
        &self,
        lane: Lane,
        token: Token,
        request: RequestBuilder,
        read: impl AsyncFnOnce(Response) -> Result<R, Cause>,
    ) -> Result<R, CallFailure> {
        let method = lane.0;
        let failure = |cause| CallFailure { method, token, cause };
        if let Some(wait) = self.pause(&lane) {
            return Err(failure(Cause::RateLimited { retry_after: Some(wait) }));
        }
        let secret = match token {
            Token::App => &self.app_token,
            Token::Bot => &self.bot_token,
        };
        let answer = async { read(request.bearer_auth(secret.expose_secret()).send().await?).await };
        let cause = match tokio::time::timeout(self.time_limit, answer).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(cause)) => cause,
            Err(_) => Cause::TimedOut(self.time_limit),
        };
        if let Cause::RateLimited { retry_after: Some(wait) } = cause {
            self.paused().insert(lane, Instant::now() + wait);
        }
        Err(failure(cause))
    }

    /// How long this lane still has to wait.
    fn pause(&self, lane: &Lane) -> Option<Duration> {
        let mut paused = self.paused();
        let left = paused.get(lane)?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        if left.is_none() {
            paused.remove(lane);
        }
        left
    }

    fn paused(&self) -> std::sync::MutexGuard<'_, HashMap<Lane, Instant>> {
        self.paused.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What Slack says. A success that is no JSON, as of an upload, has nothing in it.
async fn read_answer<R: DeserializeOwned>(response: Response) -> Result<R, Cause> {
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let retry_after = header(RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs);
    let kind = header(CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    let is_json = kind.is_none_or(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    let body = response.bytes().await?;
    match status {
        200 if is_json => match serde_json::from_slice::<SlackEnvelopeMessage>(&body)?.error {
            None => Ok(serde_json::from_slice(&body)?),
            Some(code) => Err(Cause::Code { code, needed: needed_scope(&body) }),
        },
        200 | 204 => Ok(serde_json::from_str("{}")?),
        429 => Err(Cause::RateLimited { retry_after }),
        status => Err(Cause::Status(status)),
    }
}
