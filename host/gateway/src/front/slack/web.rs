//! The Web API: every call has a time limit, every failure is classified, and rate limits are
//! respected.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use jiff::SignedDuration;
use pmk_system::clock;
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{CONTENT_TYPE, DATE, HeaderName, HeaderValue},
    redirect,
};
use rustls::ClientConfig;
use secrecy::{ExposeSecret, SecretString};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, json};
use slack_morphism::prelude::*;

use super::{
    address::{self, AUTH_TEST, ApiAddress, OPEN},
    blocks::Refused,
    config::SlackConfig,
    content::Content,
    dry_run::DryRun,
    failure::{self, CallFailure, Cause, is_about_the_token, needed_scope},
    identity::Identity,
    limiter::{Lane, Limiter, OPENS_DIRECT, Priority},
    locked::{LOCKED, Locked},
    refusals::Refusals,
    renewal::Renewal,
    token::Token,
    tokens::{TokenPair, Tokens},
    transport::Transport,
};
use crate::{
    chat::{MessageRef, ReplyTo},
    front::{Fence, FrontError},
};

/// The header with the scopes of a call's token.
const SCOPES: HeaderName = HeaderName::from_static("x-oauth-scopes");

pub(super) const SET_STATUS: &str = "assistant.threads.setStatus";

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// How long a TCP connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What Slack says about the bot token.
pub(super) struct AuthInfo {
    pub(super) me: Identity,
    /// The host of the workspace, if it is one of Slack's.
    pub(super) workspace: Option<String>,
    /// Its scopes, separated by commas; not every server that speaks Slack's protocol names them.
    pub(super) scopes: Option<String>,
    /// How far this machine's clock is ahead of the server's.
    pub(super) ahead: Option<SignedDuration>,
}

/// The headers of a response.
struct Aside {
    scopes: Option<String>,
    ahead: Option<SignedDuration>,
}

/// The response to a successful call.
pub(super) struct Answer {
    /// JSON.
    body: Vec<u8>,
    aside: Aside,
}

impl Answer {
    /// Returns what it says.
    pub(super) fn read<R: DeserializeOwned>(&self) -> Result<R, Cause> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

/// A client of the Web API.
pub(super) struct Web {
    /// Makes requests, which the transport carries.
    pub(super) client: Client,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) address: ApiAddress,
    pub(super) tokens: Tokens,
    pub(super) time_limit: Duration,
    /// The buttons that Slack refuses.
    pub(super) refused: Refused,
    /// What it refuses until a person changes something.
    pub(super) refusals: Refusals,
    /// Whether Slack refuses messages everywhere.
    locked: Locked,
    /// In a dry run: answers calls that write.
    dry_run: Option<DryRun>,
    pub(super) limiter: Limiter,
    /// Asked before anything is written, if several hosts share the work.
    fence: Option<Arc<dyn Fence>>,
    /// The host of the workspace, if it is one of Slack's.
    workspace: OnceLock<String>,
    /// From the last response.
    clock_ahead: Mutex<Option<SignedDuration>>,
}

/// Which lane a call takes to Slack, and how urgent it is.
pub(super) struct Slot {
    lane: Lane,
    urgency: Priority,
}

impl Slot {
    /// A call that an answer needs.
    pub(super) const fn answer(method: &'static str) -> Slot {
        Slot::of(method, Priority::Answer)
    }

    pub(super) const fn of(method: &'static str, urgency: Priority) -> Slot {
        Slot { lane: Lane::of(method), urgency }
    }

    /// A call that can wait.
    pub(super) const fn courtesy(method: &'static str) -> Slot {
        Slot::of(method, Priority::Courtesy)
    }
}

const DELETES: Slot = Slot::of("chat.delete", Priority::Notice);

/// Whether a call has an effect that people see.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Something,
    Nothing,
}

/// What a thread shows while an answer is made.
#[derive(Clone, Copy)]
pub(super) struct Status<'a> {
    /// The text after the bot's name.
    pub(super) status: &'a str,
    /// What the bot is doing.
    pub(super) line: Option<&'a str>,
}

/// A message to post, or its new content. The defaults of the two methods differ; with explicit options, `@channel` in
/// a text stays text.
#[derive(Serialize)]
struct Written<'a> {
    channel: &'a str,
    #[serde(flatten)]
    place: Place<'a>,
    text: &'a str,
    /// In an update, blocks that are not given would stay unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<&'a [Value]>,
    link_names: bool,
    parse: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a SlackMessageMetadata>,
}

/// Where in a channel a message goes.
#[derive(Serialize)]
#[serde(untagged)]
enum Place<'a> {
    New {
        #[serde(skip_serializing_if = "Option::is_none")]
        thread_ts: Option<&'a str>,
        unfurl_links: bool,
        unfurl_media: bool,
    },
    InsteadOf {
        ts: &'a str,
    },
}

impl<'a> Written<'a> {
    fn new(
        channel: &'a str,
        place: Place<'a>,
        content: &'a Content,
        metadata: Option<&'a SlackMessageMetadata>,
    ) -> Written<'a> {
        let (text, blocks) = content.parts();
        let blocks = Some(blocks).filter(|blocks| !blocks.is_empty() || matches!(place, Place::InsteadOf { .. }));
        Written { channel, place, text, blocks, link_names: false, parse: "none", metadata }
    }
}

/// What is read of the response to a post. The rest, Slack's echo of the message, is not needed and
/// must not turn a successful post into a failure.
#[derive(Deserialize)]
struct Posted {
    ts: SlackTs,
}

/// What is read of the response to opening a direct message.
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
        tls.alpn_protocols = vec!["http/1.1".into()];
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(!address.is_loopback())
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would send the token to its target.
            .redirect(redirect::Policy::none())
            // The WebSocket does not use a proxy either.
            .no_proxy();
        let client = client.build()?;
        let transport = config.transport.clone().unwrap_or_else(|| Arc::new(client.clone()));
        let pair = TokenPair { app: config.app_token.clone(), bot: config.bot_token.clone() };
        Ok(Web {
            client,
            transport,
            address: address.clone(),
            tokens: Tokens::new(&pair, config.source.clone()),
            time_limit: config.request_timeout,
            refused: Refused::default(),
            refusals: Refusals::default(),
            locked: Locked::default(),
            dry_run: config.dry_run.then(DryRun::default),
            limiter: Limiter::new(config.limits, config.sharers.clone()),
            fence: config.fence.clone(),
            workspace: OnceLock::new(),
            clock_ahead: Mutex::default(),
        })
    }

    /// Returns how far this machine's clock is ahead of Slack's, by the last response.
    pub(super) fn clock_ahead(&self) -> Option<SignedDuration> {
        *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `auth.test`: returns who the bot token belongs to, and its scopes.
    pub(super) async fn identity(&self) -> Result<AuthInfo, CallFailure> {
        let request = || self.client.get(self.address.method(AUTH_TEST));
        let answer = self.exchange(&Slot::answer(AUTH_TEST), Token::Bot, &request, Says::Nothing).await?;
        let met = answer.read::<SlackApiAuthTestResponse>();
        let met = met.map_err(|cause| CallFailure { method: AUTH_TEST, token: Token::Bot, cause })?;
        let Aside { scopes, ahead } = answer.aside;
        let workspace = address::slack_host(&met.url.0);
        Ok(AuthInfo { me: Identity::of(met), workspace, scopes, ahead })
    }

    /// Notes the owner of both tokens, to whom new tokens must belong, too; and the host of the workspace.
    pub(super) fn belongs_to(&self, me: &Identity, workspace: Option<String>) {
        let _ = self.tokens.owner.set(me.clone());
        if let Some(workspace) = workspace {
            let _ = self.workspace.set(workspace);
        }
    }

    /// Returns whether this is an address of files that the token may be sent to.
    pub(super) fn may_get_the_token(&self, url: &Url) -> bool {
        self.address.may_get_the_token(url, self.workspace.get().map(String::as_str))
    }

    /// `apps.connections.open`: returns the address of a new WebSocket, valid for one connection. It is
    /// a secret.
    pub(super) async fn open_connection(&self) -> Result<Url, CallFailure> {
        let request = SlackApiAppsConnectionOpenRequest::new();
        let opened: SlackApiAppsConnectionOpenResponse =
            self.post_json(&Slot::answer(OPEN), Token::App, &request, Says::Nothing).await?;
        Ok(opened.url.0)
    }

    /// `chat.postMessage`; returns the new message's `ts`. The message is found again by its tag.
    pub(super) async fn post(
        &self,
        ReplyTo { channel, thread_ts }: &ReplyTo,
        content: &Content,
        tag: Option<&SlackMessageMetadata>,
        urgency: Priority,
    ) -> Result<String, CallFailure> {
        let place = Place::New { thread_ts: thread_ts.as_deref(), unfurl_links: false, unfurl_media: false };
        let slot = Slot { lane: Lane { method: "chat.postMessage", channel: Some(channel.clone()) }, urgency };
        self.write::<_, Posted>(&slot, &Written::new(channel, place, content, tag)).await.map(Posted::ts)
    }

    /// `chat.update`; returns the message's `ts`.
    pub(super) async fn update(
        &self,
        MessageRef { channel, ts }: &MessageRef,
        content: &Content,
        tag: Option<&SlackMessageMetadata>,
        urgency: Priority,
    ) -> Result<String, CallFailure> {
        let slot = Slot::of("chat.update", urgency);
        let request = Written::new(channel, Place::InsteadOf { ts }, content, tag);
        self.write::<_, Posted>(&slot, &request).await.map(Posted::ts)
    }

    /// `assistant.threads.setStatus`: shows in a thread what the bot is doing, until it posts there, or for two
    /// minutes. An empty status removes it.
    pub(super) async fn set_status(
        &self,
        channel: &str,
        thread_ts: &str,
        status: Status<'_>,
    ) -> Result<(), CallFailure> {
        let mut request = json!({"channel_id": channel, "thread_ts": thread_ts, "status": status.status});
        if let Some(line) = status.line {
            request["loading_messages"] = json!([line]);
        }
        let slot = Slot::of(SET_STATUS, Priority::Progress);
        self.write::<_, IgnoredAny>(&slot, &request).await.map(drop)
    }

    /// `chat.postEphemeral` with text that is already escaped: only that person sees it.
    pub(super) async fn whisper(&self, person: &str, place: &ReplyTo, escaped: String) -> Result<(), CallFailure> {
        let ReplyTo { channel, thread_ts } = place;
        let content = SlackMessageContent::new().with_text(escaped);
        let request = SlackApiChatPostEphemeralRequest::new(channel.into(), person.into(), content)
            .opt_thread_ts(thread_ts.as_deref().map(SlackTs::from))
            .with_link_names(false)
            .with_parse("none".to_owned());
        self.write::<_, IgnoredAny>(&Slot::courtesy("chat.postEphemeral"), &request).await.map(drop)
    }

    /// `chat.delete` for a message of the bot.
    pub(super) async fn delete(&self, message: &MessageRef) -> Result<(), CallFailure> {
        self.write::<_, Posted>(&DELETES, &deletion(message)).await.map(drop)
    }

    /// Does the same, even if another host now works on the turn.
    pub(super) async fn take_back(&self, message: &MessageRef) -> Result<(), CallFailure> {
        self.change::<_, Posted>(&DELETES, &deletion(message), Says::Nothing).await.map(drop)
    }

    /// `reactions.add`; a reaction that already exists counts as success.
    pub(super) async fn react(&self, MessageRef { channel, ts }: &MessageRef, emoji: &str) -> Result<(), CallFailure> {
        let request = SlackApiReactionsAddRequest::new(channel.into(), emoji.into(), ts.into());
        match self.write::<_, IgnoredAny>(&Slot::courtesy("reactions.add"), &request).await {
            Err(failure) if failure.code() == Some("already_reacted") => Ok(()),
            added => added.map(drop),
        }
    }

    /// `conversations.open`: returns the channel of the direct message with a person.
    pub(super) async fn open_direct(&self, person: &str) -> Result<String, CallFailure> {
        // As Slack documents it: a list of ids in one text. slack-morphism sends a JSON list.
        let request = json!({"users": person});
        let opened: Opened = self.write(&Slot::answer(OPENS_DIRECT), &request).await?;
        Ok(opened.channel.id)
    }

    /// Calls a method that reads.
    pub(super) async fn read<R: DeserializeOwned + Send>(
        &self,
        slot: &Slot,
        parameters: &[(&str, Option<&str>)],
    ) -> Result<R, CallFailure> {
        let mut url = self.address.method(slot.lane.method);
        let given = parameters.iter().filter_map(|(name, value)| Some((name, (*value)?)));
        url.query_pairs_mut().extend_pairs(given);
        self.call(slot, Token::Bot, &|| self.client.get(url.clone()), Says::Nothing).await
    }

    /// Calls a method that changes something.
    pub(super) async fn write<Q: Serialize + Send + Sync, R: DeserializeOwned + Send>(
        &self,
        slot: &Slot,
        request: &Q,
    ) -> Result<R, CallFailure> {
        self.change(slot, request, Says::Something).await
    }

    async fn change<Q: Serialize + Sync, R: DeserializeOwned>(
        &self,
        slot: &Slot,
        request: &Q,
        says: Says,
    ) -> Result<R, CallFailure> {
        match self.instead_of(slot.lane.method, request) {
            Some(answer) => answer,
            None => self.post_json(slot, Token::Bot, request, says).await,
        }
    }

    async fn post_json<Q: Serialize + Sync, R: DeserializeOwned>(
        &self,
        slot: &Slot,
        token: Token,
        request: &Q,
        says: Says,
    ) -> Result<R, CallFailure> {
        let body = serde_json::to_vec(request);
        let body = body.map_err(|error| CallFailure { method: slot.lane.method, token, cause: error.into() })?;
        let body = Bytes::from(body);
        let post = || {
            let post = self.client.post(self.address.method(slot.lane.method));
            post.header(CONTENT_TYPE, JSON).body(body.clone())
        };
        self.call(slot, token, &post, says).await
    }

    /// Returns the response to a call that is not made, in a dry run.
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
        // The token is sent with it.
        if !self.may_get_the_token(&url) {
            let cause = Cause::Unreachable("the address is not Slack's".to_owned());
            return Err(CallFailure { method: METHOD, token: Token::Bot, cause });
        }
        let content = Bytes::copy_from_slice(content);
        let post = || {
            let post = self.client.post(url.clone());
            post.header(CONTENT_TYPE, "application/octet-stream").body(content.clone())
        };
        self.call::<IgnoredAny>(&Slot::answer(METHOD), Token::Bot, &post, Says::Nothing).await.map(drop)
    }

    async fn call<R: DeserializeOwned>(
        &self,
        slot: &Slot,
        token: Token,
        request: &(dyn Fn() -> RequestBuilder + Send + Sync),
        says: Says,
    ) -> Result<R, CallFailure> {
        let answer = self.exchange(slot, token, request, says).await?;
        answer.read().map_err(|cause| CallFailure { method: slot.lane.method, token, cause })
    }

    /// Makes a call once there is room for it; makes it again with another token if Slack no longer accepts this one
    /// and there is another.
    async fn exchange(
        &self,
        Slot { lane, urgency }: &Slot,
        token: Token,
        request: &(dyn Fn() -> RequestBuilder + Send + Sync),
        says: Says,
    ) -> Result<Answer, CallFailure> {
        let failure = |cause| CallFailure { method: lane.method, token, cause };
        // Also checked before it takes up room in the limiter.
        self.may(says).await.map_err(failure)?;
        if let Err(wait) = self.limiter.turn(lane, *urgency).await {
            return Err(failure(Cause::RateLimited { retry_after: wait }));
        }
        // Other hosts may have taken over while this call waited.
        self.may(says).await.map_err(failure)?;
        let used = self.tokens.now();
        let mut answer = self.once(request(), used.of(token)).await;
        // Such a call has had no effect.
        if matches!(&answer, Err(Cause::Code { code, .. }) if is_about_the_token(code))
            && self.renew(Some((token, used.of(token)))).await == Renewal::Done
        {
            self.may(says).await.map_err(failure)?;
            answer = self.once(request(), self.tokens.now().of(token)).await;
        }
        let cause = match answer {
            Ok(answer) => {
                self.locked.accepts(lane);
                if token == Token::Bot {
                    self.refusals.ends(token);
                }
                return Ok(answer);
            }
            Err(Cause::Code { code, .. })
                if says == Says::Something && code == LOCKED && self.is_locked(lane).await =>
            {
                Cause::Locked { code }
            }
            Err(Cause::Code { code, .. }) if token == Token::Bot && self.awaits_token(&code) => {
                Cause::AwaitsToken { code }
            }
            Err(cause) => cause,
        };
        if let Cause::RateLimited { retry_after } = cause {
            self.limiter.refused(lane, retry_after);
        }
        let failure = failure(cause);
        // Until its owner is known, the start reports it; for the app token, whoever opens connections does.
        if token == Token::Bot
            && self.tokens.owner.get().is_some()
            && let Some(code) = failure.code().filter(|code| is_about_the_token(code))
        {
            self.refusals.begins(token, failure.to_string(), failure::hint(code, token, None));
        }
        Err(failure)
    }

    /// Returns whether this refusal of the bot token ends as soon as a new one is written.
    fn awaits_token(&self, code: &str) -> bool {
        is_about_the_token(code) && self.tokens.source.as_ref().is_some_and(|source| source.may_replace_bot())
    }

    /// Returns whether a call that is refused for the keys of its place would be refused everywhere: at another place, one
    /// was; or Slack says so of the app itself.
    async fn is_locked(&self, lane: &Lane) -> bool {
        if self.locked.refuses(lane) {
            return true;
        }
        let test = self.client.get(self.address.method(AUTH_TEST));
        let tested = self.once(test, self.tokens.now().of(Token::Bot)).await;
        matches!(tested, Err(Cause::Code { code, .. }) if code == LOCKED)
    }

    /// Returns whether a call may be made; checking that has the time limit of a call.
    async fn may(&self, says: Says) -> Result<(), Cause> {
        let Some(fence) = self.fence.as_ref().filter(|_| says == Says::Something) else { return Ok(()) };
        match tokio::time::timeout(self.time_limit, fence.holds()).await {
            Ok(holds) => holds.map_err(Cause::NotForUs),
            Err(_) => {
                let what = format!(
                    "the database did not confirm within {:.1} s that this host may post",
                    self.time_limit.as_secs_f64()
                );
                let retry_after = Some(Duration::ZERO);
                Err(Cause::NotForUs(FrontError::Transient { what, retry_after, not_made: true }))
            }
        }
    }

    /// Makes a call with this token, within the time limit.
    pub(super) async fn once(&self, request: RequestBuilder, token: &SecretString) -> Result<Answer, Cause> {
        let answer = async { received(self.sent(request, token).await?).await };
        let answered =
            tokio::time::timeout(self.time_limit, answer).await.unwrap_or(Err(Cause::TimedOut(self.time_limit)));
        if let Ok(Answer { aside: Aside { ahead: Some(ahead), .. }, .. }) = &answered {
            *self.clock_ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(*ahead);
        }
        answered
    }

    /// Sends a request with this token.
    pub(super) async fn sent(&self, request: RequestBuilder, token: &SecretString) -> reqwest::Result<Response> {
        self.transport.call(request.bearer_auth(token.expose_secret()).build()?).await
    }
}

fn deletion(MessageRef { channel, ts }: &MessageRef) -> SlackApiChatDeleteRequest {
    SlackApiChatDeleteRequest::new(channel.into(), ts.into())
}

/// The most bytes of a response that are read: a page of history has a few hundred kilobytes.
const MOST_BYTES: usize = 16 << 20;

/// Returns the body of a response, if its length is acceptable.
async fn bounded(mut response: Response) -> Result<Vec<u8>, Cause> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(Cause::Unreadable);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Receives a response. A success without JSON, as for an upload, counts as an empty object.
async fn received(response: Response) -> Result<Answer, Cause> {
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let aside = Aside { scopes: header(SCOPES).map(str::to_owned), ahead: header(DATE).and_then(clock::ahead_of) };
    let retry_after = failure::wait_asked_for(response.headers());
    let kind = header(CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    let is_json = kind.is_none_or(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    let body = bounded(response).await?;
    match status {
        200 if is_json => match serde_json::from_slice::<SlackEnvelopeMessage>(&body)?.error {
            None => Ok(Answer { body, aside }),
            Some(code) => Err(Cause::Code { code: failure::code(&code), needed: needed_scope(&body) }),
        },
        200 | 204 => Ok(Answer { body: b"{}".to_vec(), aside }),
        429 => Err(Cause::RateLimited { retry_after }),
        status => Err(Cause::Status(status)),
    }
}
