//! Actions of people, delivered to the app until they are acknowledged.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use super::{
    APP_ID, BOT_USER, Inner, TEAM, along,
    methods::as_json,
    places::Kind,
    rules::LATE,
    sockets::Command,
    state::{Ack, Attempt, Awaited, Envelope, Message, Sent},
};

/// A person writes in a channel. A mention causes two events if the app is subscribed to both; a message without a
/// mention causes none if the app is not subscribed.
pub(super) fn say(inner: &Arc<Inner>, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
    say_with(inner, (channel, user), text, thread, &Value::Null)
}

/// As [`say`], with attachments: `attachments`, `files`, in Slack's format.
pub(super) fn say_with(
    inner: &Arc<Inner>,
    (channel, user): (&str, &str),
    text: &str,
    thread: Option<&str>,
    along: &Value,
) -> Sent {
    let conversation = Kind::of(inner, channel);
    let mut sent = talk_with(inner, (channel, user), text, thread, along);
    let ts = &sent.ts;
    let parent = inner.state().message_mut(channel, ts).cloned();
    let parent = parent.and_then(|message| inner.state().parent_user(&message).map(str::to_owned));
    let team = inner.state().team_of(user).to_owned();
    let event = |kind: &str| {
        let mut event = json!({
            "type": kind, "user": user, "channel": channel, "ts": ts, "event_ts": ts, "text": text, "team": TEAM,
            "client_msg_id": format!("client-{ts}"),
            "blocks": [{"type": "rich_text", "block_id": "b", "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]},
            ]}],
        });
        if kind == "message" {
            event["channel_type"] = json!(conversation.name());
            if along.get("files").is_some() {
                event["subtype"] = json!("file_share");
            }
        }
        if team != TEAM {
            event["user_team"] = json!(team);
        }
        if let Some(thread) = thread {
            event["thread_ts"] = json!(thread);
        }
        if let Some(parent) = &parent {
            event["parent_user_id"] = json!(parent);
        }
        along::add(&mut event, along);
        event
    };
    let is_mention = text.contains(&format!("<@{BOT_USER}>")) && conversation.tells_mentions(inner);
    let plain = conversation.is_told(inner).then(|| send(inner, event("message")));
    let mention = is_mention.then(|| send(inner, event("app_mention")));
    sent.event_id = mention.or(plain).unwrap_or_default();
    sent
}

/// A person writes a message with attachments, without an event.
pub(super) fn talk_with(
    inner: &Inner,
    (channel, user): (&str, &str),
    text: &str,
    thread: Option<&str>,
    along: &Value,
) -> Sent {
    let sent = talk(inner, channel, user, text, thread);
    if along.is_object() {
        inner.state().along.insert(sent.ts.clone(), along.clone());
    }
    sent
}

/// A person writes a message, without an event.
pub(super) fn talk(inner: &Inner, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
    talked(inner, Duration::ZERO, (channel, user), text, thread)
}

/// As [`talk`], but this long ago.
pub(super) fn talked(
    inner: &Inner,
    ago: Duration,
    (channel, user): (&str, &str),
    text: &str,
    thread: Option<&str>,
) -> Sent {
    let (channel, thread_ts) = (channel.to_owned(), thread.map(str::to_owned));
    let mut state = inner.state();
    let ts = state.ts_ago(ago);
    state.add(Message {
        channel: channel.clone(),
        ts: ts.clone(),
        thread_ts: thread_ts.clone(),
        user: user.to_owned(),
        by_bot: false,
        text: text.to_owned(),
        blocks: Vec::new(),
        streaming_since: None,
        history: Vec::new(),
        metadata: None,
    });
    Sent { event_id: String::new(), channel, ts, thread_ts }
}

/// A person reacts to a message.
pub(super) fn react(inner: &Arc<Inner>, user: &str, message: &Message, reaction: &str) -> String {
    let event_ts = inner.state().ts();
    send(
        inner,
        json!({
            "type": "reaction_added", "user": user, "reaction": reaction, "item_user": message.user,
            "item": {"type": "message", "channel": message.channel, "ts": message.ts}, "event_ts": event_ts,
        }),
    )
}

/// The bot has posted a message, possibly with a file; it gets the event like everybody else.
pub(super) fn posted(inner: &Arc<Inner>, channel: &str, message: Value, file: Option<&str>) {
    let mut event = message;
    event["event_ts"] = event["ts"].clone();
    if let Some(id) = file {
        event["subtype"] = json!("file_share");
        event["files"] = json!([{"id": id}]);
    }
    echo(inner, channel, event);
}

/// The bot has edited its message.
pub(super) fn edited(inner: &Arc<Inner>, channel: &str, before: Value, mut after: Value) {
    let ts = inner.state().ts();
    after["edited"] = json!({"user": BOT_USER, "ts": ts});
    let mut event = json!({"type": "message", "subtype": "message_changed", "hidden": true, "ts": ts, "event_ts": ts});
    event["message"] = after;
    event["previous_message"] = before;
    echo(inner, channel, event);
}

/// A message was deleted; returns the id of the event, if the app gets one.
pub(super) fn deleted(inner: &Arc<Inner>, message: &Message) -> Option<String> {
    let ts = inner.state().ts();
    let event = json!({
        "type": "message", "subtype": "message_deleted", "hidden": true, "deleted_ts": message.ts,
        "previous_message": as_json(message), "ts": ts, "event_ts": ts,
    });
    echo(inner, &message.channel, event)
}

/// Sends an event that need not be acknowledged, if the app is told of messages in the channel.
fn echo(inner: &Arc<Inner>, channel: &str, mut event: Value) -> Option<String> {
    let conversation = Kind::of(inner, channel);
    conversation.is_told(inner).then(|| {
        event["channel"] = json!(channel);
        event["channel_type"] = json!(conversation.name());
        let event_id = store(inner, event);
        deliver(inner, &event_id, false);
        event_id
    })
}

/// Sends an event.
pub(super) fn send(inner: &Arc<Inner>, event: Value) -> String {
    let event_id = store(inner, event);
    redeliver(inner, &event_id);
    event_id
}

/// Sends an envelope of another type, which Slack delivers once.
pub(super) fn send_once(inner: &Arc<Inner>, kind: &'static str, payload: Value) -> String {
    let id = inner.state().id("En");
    keep(inner, &id, kind, payload);
    let (inner, sent) = (Arc::clone(inner), id.clone());
    tokio::spawn(async move {
        if !attempt(&inner, &sent, 0).await {
            inner.state().given_up.push(sent);
            inner.changed.notify_waiters();
        }
    });
    id
}

fn store(inner: &Inner, event: Value) -> String {
    let event_id = inner.state().id("Ev");
    let mut payload = json!({
        "token": "verification", "team_id": TEAM, "api_app_id": APP_ID, "type": "event_callback",
        "event_id": event_id, "event_time": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs()),
        "is_ext_shared_channel": false, "event_context": format!("4-{event_id}"),
        "authorizations": [{"enterprise_id": null, "team_id": TEAM, "user_id": BOT_USER, "is_bot": true,
            "is_enterprise_install": false}],
    });
    payload["event"] = event;
    keep(inner, &event_id, "events_api", payload);
    event_id
}

/// Keeps what is sent, as often as it has to be.
fn keep(inner: &Inner, id: &str, kind: &'static str, payload: Value) {
    let payload = serde_json::value::to_raw_value(&payload).expect("a value is JSON");
    inner.state().events.insert(id.to_owned(), Envelope { kind, payload });
}

/// Delivers an event, repeatedly until it is acknowledged or has been delivered often enough.
pub(super) fn redeliver(inner: &Arc<Inner>, event_id: &str) {
    deliver(inner, event_id, true);
}

/// Delivers an event. If it does not matter, it may be lost: the bot knows what it has posted itself.
fn deliver(inner: &Arc<Inner>, event_id: &str, matters: bool) {
    let inner = Arc::clone(inner);
    let event_id = event_id.to_owned();
    tokio::spawn(async move {
        if attempt(&inner, &event_id, 0).await {
            return;
        }
        for (retry, delay) in (1..).zip(&inner.rules.retry_delays) {
            sleep(*delay).await;
            if attempt(&inner, &event_id, retry).await {
                return;
            }
        }
        if matters {
            inner.state().given_up.push(event_id);
            inner.changed.notify_waiters();
        }
    });
}

/// An envelope as it is sent.
#[derive(Serialize)]
struct Delivery<'a> {
    envelope_id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    accepts_response_payload: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_reason: Option<&'a str>,
    payload: &'a RawValue,
}

/// Delivers an event once, over one socket; returns whether it was acknowledged in time.
async fn attempt(inner: &Inner, event_id: &str, retry: u32) -> bool {
    let (acked, ack) = oneshot::channel();
    let envelope_id = {
        let mut state = inner.state();
        let number = state.number();
        let envelope_id = format!("57d6a792-4d35-4d0b-b6aa-{number:012x}");
        let Some(Envelope { kind, payload }) = state.events.get(event_id) else { return true };
        let is_event = *kind == "events_api";
        let envelope = Delivery {
            envelope_id: &envelope_id,
            kind,
            accepts_response_payload: !is_event,
            retry_attempt: is_event.then_some(retry),
            retry_reason: is_event.then_some(if retry == 0 { "" } else { "timeout" }),
            payload,
        };
        let envelope = serde_json::to_string(&envelope).expect("a delivery is JSON");
        let open = state.sockets.len() as u64;
        let socket = (open > 0).then(|| (number % open) as usize).and_then(|at| state.sockets.get(at));
        let socket = socket.map(|socket| {
            socket.commands.send(Command::Send(envelope)).ok();
            socket.id
        });
        let sent = Instant::now();
        let attempt = Attempt { envelope_id: envelope_id.clone(), socket, at: sent };
        state.attempts.entry(event_id.to_owned()).or_default().push(attempt);
        state.awaited.insert(envelope_id.clone(), Awaited { event_id: event_id.to_owned(), sent, acked });
        envelope_id
    };
    inner.changed.notify_waiters();
    let in_time = timeout(inner.rules.ack_deadline, ack).await.is_ok_and(|ack| ack.is_ok());
    inner.state().awaited.remove(&envelope_id);
    in_time
}

/// Processes an acknowledgement.
pub(super) fn acknowledge(inner: &Inner, frame: &str) {
    let mut state = inner.state();
    let envelope_id = serde_json::from_str::<Value>(frame)
        .ok()
        .and_then(|frame| frame.get("envelope_id").and_then(Value::as_str).map(str::to_owned));
    match envelope_id.as_ref().and_then(|id| state.awaited.remove(id)) {
        Some(Awaited { event_id, sent, acked }) => {
            let ack = Ack { event_id, envelope_id: envelope_id.unwrap_or_default(), after: sent.elapsed() };
            state.acks.push(ack);
            acked.send(()).ok();
        }
        None => match (&mut state.strays, envelope_id) {
            (Some(strays), Some(id)) => strays.push(id),
            _ => state.violations.push(format!("{LATE}: {frame}")),
        },
    }
    drop(state);
    inner.changed.notify_waiters();
}
