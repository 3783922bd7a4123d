//! The other end of the Web API, in worlds whose bot [calls](super::Wired) it: takes HTTP requests, and carries out what
//! they ask for as Slack does, by the same rules as for bots that call nothing.

use std::{collections::BTreeMap, fmt, future::pending, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use pmk_host::{
    chat::{Choice, ReplyTo},
    front::{
        Delivery, Kind,
        slack::{Pipe, Transport, app},
    },
};
use reqwest::{Request, Response};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::http;

use super::{
    BOT, Came, Known, Question, Refusal, Slack, Speech, State, Tag, Target, calls::Undone, files, frames,
    frames::FILES, lines, posts::Post,
};
use crate::scenario::{Harm, Trouble};

/// Slack ends a stream by itself after this time, in milliseconds.
const LONGEST_STREAM: u64 = 5 * 60_000;

/// The most characters of a streamed message.
const MAX_STREAMED: usize = 12_000;

/// How long a host that cannot reach Slack tries to connect.
const NO_ROUTE: Duration = Duration::from_secs(5);

/// Shares files that were uploaded.
const COMPLETE: &str = "files.completeUploadExternal";

/// A file on its way.
pub(super) struct Upload {
    name: String,
    content: Option<String>,
}

/// What the bot is about to post. Slack learns only a name for each part, with which the bot finds it again.
#[derive(Default)]
pub(super) struct Expected {
    /// The parts, by their event and their name.
    parts: BTreeMap<(String, String), Tag>,
    /// The parts that are files, by their names.
    files: BTreeMap<String, Tag>,
    /// The event that is answered in a thread of a channel.
    answered: BTreeMap<(String, String), String>,
}

impl Expected {
    pub(super) fn part(&mut self, part: &Delivery<'_>) {
        if part.kind == Kind::Document {
            let of: String = part.event_id.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
            self.files.insert(format!("answer-{of}-{}.md", part.number), Tag::of(part));
            return;
        }
        let name = match (part.kind, part.parked_at_ms) {
            (Kind::Placeholder, _) => "placeholder".to_owned(),
            (Kind::Notice, Some(at_ms)) => format!("parked-{at_ms}"),
            (Kind::Notice, None) => format!("notice-{}", part.number),
            _ => part.number.to_string(),
        };
        self.parts.insert((part.event_id.to_owned(), name), Tag::of(part));
    }

    /// An answer to this event may be streamed in this thread.
    pub(super) fn answer(&mut self, place: &ReplyTo, event_id: &str) {
        if let ReplyTo { channel, thread_ts: Some(thread_ts) } = place {
            self.answered.insert((channel.clone(), thread_ts.clone()), event_id.to_owned());
        }
    }

    /// The part with this metadata.
    fn named(&self, metadata: &Value) -> Option<Tag> {
        let word = |key: &str| metadata["event_payload"][key].as_str().unwrap_or_default().to_owned();
        self.parts.get(&(word("event_id"), word("part"))).cloned()
    }
}

/// The relation of a message that shows the beginning of an answer: as a placeholder, it must go, or become the answer.
fn growing(event_id: &str) -> Tag {
    let event_id = event_id.to_owned();
    Tag { event_id, event_ids: vec![], number: 0, kind: Kind::Placeholder, parked_at_ms: None }
}

/// Carries the calls of a process to Slack.
#[derive(Clone)]
pub(super) struct Carrier(pub(super) Arc<Slack>);

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Carrier")
    }
}

#[async_trait]
impl Transport for Carrier {
    async fn call(&self, request: Request) -> reqwest::Result<Response> {
        let slack = &self.0;
        if let Some(address) = request.url().as_str().strip_prefix(FILES) {
            return Ok(slack.file(address).await);
        }
        let method = request.url().path().trim_start_matches("/api/").to_owned();
        let given = match method.strip_prefix("/upload/") {
            Some(file) => json!({"file": file, "content": String::from_utf8_lossy(body(&request))}),
            None => arguments(&request),
        };
        let says = method.starts_with("chat.") && method != "chat.delete" || method == COMPLETE;
        let posts_in = given["channel"].as_str().filter(|_| method == "chat.postMessage");
        let lane = (slack.world.host(), method.clone(), posts_in.map(str::to_owned));
        slack.may_call(&lane);
        let channel = given["channel"].as_str().or(given["channel_id"].as_str()).filter(|_| says);
        let came = match slack.before(channel).await {
            Ok(came) => came,
            Err(Undone::PutOff(wait)) => {
                let until = slack.world.time() + wait.as_secs() * 1_000;
                slack.state().put_off.insert(lane, until);
                return Ok(put_off(wait.as_secs()));
            }
            Err(Undone::Failed(status)) => return Ok(response(status, &Value::Null)),
            // The caller has a time limit.
            Err(Undone::Unanswered) => {
                if method == "chat.delete" {
                    slack.keeps(word(&given, "ts"));
                }
                return pending().await;
            }
        };
        let answer = match slack.carry_out(&method, &given, came) {
            Ok(mut answer) => {
                answer["ok"] = json!(true);
                answer
            }
            Err(code) => json!({"ok": false, "error": code}),
        };
        let is_answered = slack.answers().await;
        // Nobody knows of something that came late and was not confirmed.
        if !is_answered && came == Came::Late && matches!(&*method, "chat.postMessage" | "chat.startStream") {
            slack.becomes(word(&answer, "ts"), Known::ToNobody);
        }
        match (is_answered, slack.world.dice("cut").u8(0..2)) {
            (true, _) => Ok(response(200, &answer)),
            (false, 0) => pending().await,
            // The connection is cut in the middle of the response.
            (false, _) => {
                let mut body = answer.to_string().into_bytes();
                body.truncate(slack.world.dice("cut at").usize(..body.len()));
                Ok(respond(http::Response::builder().header("content-type", "application/json"), body))
            }
        }
    }

    async fn dial(&self, _host: &str, _port: u16) -> io::Result<Box<dyn Pipe>> {
        if self.0.world.is_hit(Harm::OffSlack) {
            sleep(NO_ROUTE).await;
            return Err(io::ErrorKind::HostUnreachable.into());
        }
        Ok(Box::new(lines::dial(&self.0)))
    }
}

fn body(request: &Request) -> &[u8] {
    request.body().and_then(|body| body.as_bytes()).unwrap_or_default()
}

/// The arguments of a call: of one that reads, in its address; of one that writes, as JSON.
fn arguments(request: &Request) -> Value {
    serde_json::from_slice(body(request)).unwrap_or_else(|_| {
        let pairs = request.url().query_pairs();
        Value::Object(pairs.map(|(name, value)| (name.into_owned(), json!(value))).collect())
    })
}

fn respond(builder: http::response::Builder, body: impl Into<reqwest::Body>) -> Response {
    Response::from(builder.body(body).expect("a response"))
}

/// Every response says what the bot's token may do.
fn response(status: u16, body: &Value) -> Response {
    let scopes: Vec<&str> = app::SCOPES.iter().map(|scope| scope.name).collect();
    let builder = http::Response::builder().status(status).header("x-oauth-scopes", scopes.join(","));
    respond(builder.header("content-type", "application/json"), body.to_string())
}

fn put_off(seconds: u64) -> Response {
    respond(http::Response::builder().status(429).header("retry-after", seconds), String::new())
}

/// What Slack says, or its error code.
type Answer = Result<Value, &'static str>;

impl From<Refusal> for &'static str {
    fn from(refusal: Refusal) -> &'static str {
        refusal.what
    }
}

fn word<'a>(given: &'a Value, name: &str) -> &'a str {
    given[name].as_str().unwrap_or_default()
}

/// The text of a message: of its block, if it has one.
fn text(given: &Value) -> &str {
    let block = given["blocks"].as_array().into_iter().flatten().find_map(|block| match block["type"].as_str() {
        Some("markdown") => block["text"].as_str(),
        _ => None,
    });
    block.unwrap_or_else(|| word(given, "text"))
}

/// The choices that the blocks of a message offer.
fn choices(given: &Value) -> Vec<Choice> {
    frames::buttons(&given["blocks"]).into_iter().map(|(_, choice)| choice).collect()
}

/// What Slack limits together: of one host the calls of a method, and of posts those into one channel.
pub(super) type Lane = (usize, String, Option<String>);

impl Slack {
    /// Checks that the bot waits for as long as it was told.
    fn may_call(&self, lane: &Lane) {
        let now = self.world.time();
        if self.state().put_off.get(lane).is_some_and(|until| now < *until) {
            self.world.breach(format!("the bot calls {} although it is to wait", lane.1));
        }
    }

    fn carry_out(&self, method: &str, given: &Value, came: Came) -> Answer {
        match method {
            "auth.test" => {
                let [user, bot] = BOT;
                Ok(json!({
                    "url": "https://gears.slack.com/", "team": "Gears", "team_id": "T1", "user": "pmk", "user_id": user,
                    "bot_id": bot,
                }))
            }
            "apps.connections.open" => Ok(json!({"url": "ws://127.0.0.1:9/link"})),
            "chat.postMessage" => self.posted(given, came),
            "chat.update" => self.updated(given, came),
            "chat.delete" => {
                let ts = word(given, "ts");
                if !self.state().posts.iter().any(|post| post.ts == ts && post.is_there()) {
                    return Err("message_not_found");
                }
                self.remove(ts)?;
                Ok(json!({"ts": ts}))
            }
            "chat.startStream" => self.starts_stream(given, came),
            "chat.appendStream" => self.appends(given),
            "chat.stopStream" => self.stops_stream(given),
            "conversations.history" | "conversations.replies" => self.history(given),
            "files.getUploadURLExternal" => {
                let mut state = self.state();
                state.uploads.push(Upload { name: word(given, "filename").to_owned(), content: None });
                let id = format!("F{}", state.uploads.len());
                Ok(json!({"upload_url": format!("http://127.0.0.1:9/upload/{id}"), "file_id": id}))
            }
            COMPLETE => self.shares(given, came),
            "conversations.open" => Ok(json!({"channel": {"id": super::direct(word(given, "users"))}})),
            "assistant.threads.setStatus" | "reactions.add" | "chat.postEphemeral" => Ok(json!({})),
            other if other.starts_with("/upload/") => {
                let mut state = self.state();
                let upload = state.upload(word(given, "file")).ok_or("file_not_found")?;
                upload.content = Some(word(given, "content").to_owned());
                Ok(json!({}))
            }
            other => {
                self.world.breach(format!("the bot calls {other}, which is not simulated"));
                Err("unknown_method")
            }
        }
    }

    /// The part that a message is, by its metadata.
    fn part(&self, given: &Value) -> Tag {
        let metadata = &given["metadata"];
        if metadata["event_payload"]["part"] == "piece" {
            // Its part is found by the last of its messages.
            let (event_id, event_ids) = (String::new(), vec![]);
            return Tag { event_id, event_ids, number: 0, kind: Kind::Notice, parked_at_ms: None };
        }
        let named = self.state().expected.named(metadata);
        named.unwrap_or_else(|| {
            self.world.breach(format!("a message is posted as a part that nobody knows: {metadata}"));
            growing("")
        })
    }

    fn posted(&self, given: &Value, came: Came) -> Answer {
        let (tag, buttons) = (self.part(given), choices(given));
        let thread_ts = given["thread_ts"].as_str().map(str::to_owned);
        let place = ReplyTo { channel: word(given, "channel").to_owned(), thread_ts };
        let target = Target { place: &place, replaces: None };
        let ts = self.put(tag, &target, &Speech { text: text(given), buttons: &buttons }, came)?;
        self.notes(&ts, given);
        Ok(json!({"ts": ts, "channel": place.channel}))
    }

    fn updated(&self, given: &Value, came: Came) -> Answer {
        let ts = word(given, "ts");
        {
            let (now, mut state) = (self.world.time(), self.state());
            let post = state.posts.iter_mut().find(|post| post.ts == ts && post.is_there());
            let post = post.ok_or("message_not_found")?;
            if post.grows(now) {
                return Err("streaming_state_conflict");
            }
            if given["metadata"].is_null() {
                // Progress.
                text(given).clone_into(&mut post.text);
                return Ok(json!({"ts": ts}));
            }
        }
        let (tag, buttons) = (self.part(given), choices(given));
        let place = ReplyTo { channel: word(given, "channel").to_owned(), thread_ts: None };
        let target = Target { place: &place, replaces: Some(ts) };
        self.put(tag, &target, &Speech { text: text(given), buttons: &buttons }, came)?;
        self.notes(ts, given);
        Ok(json!({"ts": ts}))
    }

    /// Keeps the metadata of a message, and the names of its buttons.
    fn notes(&self, ts: &str, given: &Value) {
        if let Some(post) = self.state().posts.iter_mut().find(|post| post.ts == ts) {
            post.metadata = given["metadata"].clone();
            post.named_buttons.extend(frames::buttons(&given["blocks"]));
        }
    }

    /// A file, as the token may read it.
    async fn file(&self, address: &str) -> Response {
        if self.before(None).await.is_err() {
            return pending().await;
        }
        sleep(Duration::from_millis(self.world.dice("fetch").u64(20..3_000))).await;
        if !self.answers().await {
            return pending().await;
        }
        self.world.say(|| format!("{address} is fetched"));
        match files::content(address) {
            Some(content) => respond(http::Response::builder().status(200), content),
            None => respond(http::Response::builder().status(404), String::new()),
        }
    }

    /// Posts a file that was uploaded.
    fn shares(&self, given: &Value, came: Came) -> Answer {
        let (name, content) = {
            let mut state = self.state();
            let upload = state.upload(word(&given["files"][0], "id")).ok_or("file_not_found")?;
            (upload.name.clone(), upload.content.clone().ok_or("file_not_found")?)
        };
        let tag = self.state().expected.files.get(&name).cloned().ok_or("file_not_found")?;
        let thread_ts = given["thread_ts"].as_str().map(str::to_owned);
        let place = ReplyTo { channel: word(given, "channel_id").to_owned(), thread_ts };
        let target = Target { place: &place, replaces: None };
        let ts = self.put(tag, &target, &Speech { text: &content, buttons: &[] }, came)?;
        if let Some(post) = self.state().posts.iter_mut().find(|post| post.ts == ts) {
            post.file = Some(name);
        }
        Ok(json!({"files": given["files"]}))
    }

    fn starts_stream(&self, given: &Value, came: Came) -> Answer {
        let (channel, thread_ts) = (word(given, "channel"), word(given, "thread_ts"));
        let place = ReplyTo { channel: channel.to_owned(), thread_ts: Some(thread_ts.to_owned()) };
        let answered = self.state().expected.answered.get(&(channel.to_owned(), thread_ts.to_owned())).cloned();
        let event_id = answered.ok_or("invalid_thread_ts")?;
        let is_told = ["recipient_user_id", "recipient_team_id"].iter().all(|key| given[*key].is_string());
        if !is_told && !channel.starts_with('D') {
            return Err("missing_recipient_user_id");
        }
        if self.world.refuses(&format!("{channel} {event_id} stream")) {
            return Err("restricted_action");
        }
        let ts = self.post(growing(&event_id), &place, word(given, "markdown_text"), came);
        if let Some(post) = self.state().posts.iter_mut().find(|post| post.ts == ts) {
            post.grows_since = Some(self.world.time());
        }
        Ok(json!({"ts": ts, "channel": channel}))
    }

    fn appends(&self, given: &Value) -> Answer {
        let now = self.world.time();
        let mut state = self.state();
        let post = state.streamed(given, now)?;
        self.world.say(|| format!("append {}", post.ts));
        post.append(word(given, "markdown_text"))?;
        Ok(json!({"ts": post.ts}))
    }

    fn stops_stream(&self, given: &Value) -> Answer {
        let ts = word(given, "ts");
        let now = self.world.time();
        self.state().streamed(given, now)?;
        if self.world.refuses(ts) {
            return Err("restricted_action");
        }
        let metadata = &given["metadata"];
        let part = (!metadata.is_null()).then(|| self.part(given));
        let keeps = self.world.scenario.setting.wired.is_some_and(|wired| wired.keeps_metadata);
        let mut state = self.state();
        let post = state.streamed(given, now)?;
        post.append(word(given, "markdown_text"))?;
        post.grows_since = None;
        self.world.say(|| format!("stop {ts} {metadata}"));
        let mut message = json!({"ts": ts, "text": post.text});
        if let Some(tag) = part.filter(|_| keeps) {
            tag.numbers().for_each(|number| self.world.witness.settle(number));
            post.metadata = metadata.clone();
            (post.tag, post.shows, post.at) = (tag.clone(), tag, now);
            post.buttons = choices(given);
            post.named_buttons.extend(frames::buttons(&given["blocks"]));
            message["metadata"] = metadata.clone();
        }
        Ok(json!({"ts": ts, "message": message}))
    }

    /// What was said in a conversation, or in a thread, after a message.
    fn history(&self, given: &Value) -> Answer {
        if self.world.strikes(Trouble::CannotLook) {
            return Err("internal_error");
        }
        let (channel, after) = (word(given, "channel"), word(given, "oldest"));
        let thread_ts = given["ts"].as_str();
        let is_here = |place: &ReplyTo| place.channel == channel && place.thread_ts.as_deref() == thread_ts;
        let state = self.state();
        let [user, bot] = BOT;
        let of_bot = state.posts.iter().filter(|post| post.is_there() && is_here(&post.place)).map(|post| {
            let mut message = json!({"ts": post.ts, "user": user, "bot_id": bot, "text": post.text});
            if !post.metadata.is_null() {
                message["metadata"] = post.metadata.clone();
            }
            if let Some(name) = &post.file {
                message["files"] = json!([{"name": name}]);
            }
            message
        });
        let is_said = |asked: &&Question| !asked.is_deleted && asked.said_at <= self.world.time();
        let here = state.questions.iter().filter(is_said).filter(|asked| is_here(&asked.inbound.reply_to));
        let of_people =
            here.map(|Question { inbound, .. }| json!({"ts": inbound.ts, "user": inbound.user, "text": inbound.text}));
        let mut messages: Vec<Value> = of_bot.chain(of_people).filter(|message| word(message, "ts") > after).collect();
        messages.sort_by(|one, other| word(one, "ts").cmp(word(other, "ts")));
        if thread_ts.is_none() {
            messages.reverse();
        }
        Ok(json!({"messages": messages, "has_more": false}))
    }
}

impl State {
    fn upload(&mut self, id: &str) -> Option<&mut Upload> {
        let number: usize = id.strip_prefix('F')?.parse().ok()?;
        self.uploads.get_mut(number.checked_sub(1)?)
    }

    /// The message of a call, which must still be streamed.
    fn streamed(&mut self, given: &Value, now: u64) -> Result<&mut Post, &'static str> {
        let ts = word(given, "ts");
        let post = self.posts.iter_mut().find(|post| post.ts == ts && post.is_there()).ok_or("message_not_found")?;
        if post.is_stopped && post.grows_since.is_some() {
            return Err("stopped_by_user");
        }
        if post.grows(now) { Ok(post) } else { Err("message_not_in_streaming_state") }
    }
}

impl Post {
    /// Whether more can be appended.
    fn grows(&self, now: u64) -> bool {
        !self.is_stopped && self.grows_since.is_some_and(|since| now < since + LONGEST_STREAM)
    }

    fn append(&mut self, text: &str) -> Result<(), &'static str> {
        if self.text.chars().count() + text.chars().count() > MAX_STREAMED {
            return Err("msg_too_long");
        }
        self.text.push_str(text);
        Ok(())
    }
}
