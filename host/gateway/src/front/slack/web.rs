//! The Web API: every call under a time limit, every failure classified, rate limits kept.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use reqwest::Url;
use rustls::ClientConfig;
use secrecy::ExposeSecret;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::json;
use slack_morphism::{
    ClientResult,
    errors::{SlackClientError, SlackRateLimitError},
    prelude::*,
};
use tokio::time::Instant;

use super::{
    SlackConfig,
    address::ApiAddress,
    dry_run::DryRun,
    failure::{CallFailure, Cause},
    tls,
    token::Token,
};
use crate::talk::ReplyTo;

/// Who the bot is in its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) bot: Option<String>,
    pub(super) name: String,
    pub(super) team: String,
    pub(super) team_id: String,
}

/// What Slack limits together: a method, and for posts the channel with it.
pub(super) type Lane = (&'static str, Option<String>);

/// A client of the Web API.
pub(super) struct Web {
    client: SlackHyperClient,
    address: ApiAddress,
    app_token: SlackApiToken,
    bot_token: SlackApiToken,
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
    pub(super) fn new(config: &SlackConfig, address: &ApiAddress, tls: ClientConfig) -> Self {
        let connector = SlackClientHyperConnector::with_connector(tls::connector(tls, address.is_loopback()));
        let token = |secret: &str| SlackApiToken::new(SlackApiTokenValue(secret.trim().to_owned()));
        Web {
            client: SlackClient::new(connector.with_slack_api_url(address.base())),
            address: address.clone(),
            app_token: token(config.app_token.expose_secret()),
            bot_token: token(config.bot_token.expose_secret()),
            time_limit: config.request_timeout,
            dry_run: config.dry_run.then(DryRun::default),
            paused: Mutex::default(),
        }
    }

    /// `auth.test`: who the bot token belongs to.
    pub(super) async fn identity(&self) -> Result<Identity, CallFailure> {
        let session = self.client.open_session(&self.bot_token);
        let answer = self.call(("auth.test", None), Token::Bot, session.auth_test()).await?;
        Ok(Identity {
            name: answer.user.unwrap_or_else(|| answer.user_id.0.clone()),
            user: answer.user_id.0,
            bot: answer.bot_id.map(|bot| bot.0),
            team: answer.team,
            team_id: answer.team_id.0,
        })
    }

    /// `apps.connections.open`: the address of a new WebSocket, good for one connection. It is a secret.
    pub(super) async fn open_connection(&self) -> Result<Url, CallFailure> {
        let session = self.client.open_session(&self.app_token);
        let request = SlackApiAppsConnectionOpenRequest::new();
        let opened = session.apps_connections_open(&request);
        Ok(self.call(("apps.connections.open", None), Token::App, opened).await?.url.0)
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
        let request = json!({"channel": channel, "timestamp": ts, "name": emoji});
        match self.write::<_, IgnoredAny>(("reactions.add", None), &request).await {
            Err(failure) if failure.code() == Some("already_reacted") => Ok(()),
            added => added.map(drop),
        }
    }

    /// `conversations.open`: the channel of the direct message with a person.
    pub(super) async fn open_direct(&self, person: &str) -> Result<String, CallFailure> {
        let request = json!({"users": person});
        let opened: Opened = self.write(("conversations.open", None), &request).await?;
        Ok(opened.channel.id)
    }

    /// A method that reads.
    pub(super) async fn read<R: DeserializeOwned + Send>(
        &self,
        method: &'static str,
        parameters: &[(&str, Option<&str>)],
    ) -> Result<R, CallFailure> {
        let session = self.client.open_session(&self.bot_token);
        let parameters = parameters.to_vec();
        let answer = session.http_session_api.http_get(method, &parameters, None);
        self.call((method, None), Token::Bot, answer).await
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
        let session = self.client.open_session(&self.bot_token);
        let answer = session.http_session_api.http_post(lane.0, request, None);
        self.call(lane, Token::Bot, answer).await
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
        let session = self.client.open_session(&self.bot_token);
        let content_type = "application/octet-stream".to_owned();
        let answer = session.http_session_api.http_post_uri_binary::<IgnoredAny>(url, content_type, content, None);
        self.call((METHOD, None), Token::Bot, answer).await.map(drop)
    }

    async fn call<T>(
        &self,
        lane: Lane,
        token: Token,
        answer: impl Future<Output = ClientResult<T>>,
    ) -> Result<T, CallFailure> {
        let method = lane.0;
        let failure = |cause| CallFailure { method, token, cause };
        if let Some(wait) = self.pause(&lane) {
            return Err(failure(Cause::RateLimited { retry_after: Some(wait) }));
        }
        let error = match tokio::time::timeout(self.time_limit, answer).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => return Err(failure(Cause::TimedOut(self.time_limit))),
        };
        if let SlackClientError::RateLimitError(SlackRateLimitError { retry_after: Some(wait), .. }) = &error {
            self.paused().insert(lane, Instant::now() + *wait);
        }
        Err(failure(Cause::of(error)))
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
