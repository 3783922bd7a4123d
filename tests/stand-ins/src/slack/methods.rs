//! The Web API.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::{Path, Request, State as Shared},
    http::{HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::{any, get, post as post_to},
};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use serde_json::{Value, json};

use super::{
    APP_ID, BOT_ID, BOT_USER, Fault, Inner, TEAM, along, blocks, events, files, history,
    places::{self, Kind},
    request::{Asked, scalar},
    sockets,
    state::Message,
    statuses, streams, text, whispers,
};

/// The maximum size of a text in `chat.update`, in bytes.
const MAX_UPDATE_BYTES: usize = 4_000;
/// The maximum length of a text in `chat.postMessage`, in characters; the rest is cut off.
const MAX_POST_CHARS: usize = 40_000;

pub(super) fn router(inner: Arc<Inner>) -> Router {
    Router::new()
        .route("/api/{method}", any(method))
        .route("/link/", get(sockets::link))
        .route("/upload/{id}", post_to(files::upload))
        .route("/files-pri/{id}/download/{name}", get(along::download))
        .route("/files-tmb/{id}/{name}", get(along::preview))
        .with_state(inner)
}

/// Why `chat.update` refuses a text, and everybody whom a text would notify.
pub fn judge_text(text: &str) -> (Option<&'static str>, Vec<&str>) {
    let refused = if text.trim().is_empty() {
        Some("no_text")
    } else if text::escaped_bytes(text) > MAX_UPDATE_BYTES {
        Some("msg_too_long")
    } else {
        None
    };
    (refused, text::mentions(text))
}

/// The result of a method, or its error code.
pub(super) type Answer = Result<Value, &'static str>;

async fn method(Shared(inner): Shared<Arc<Inner>>, Path(method): Path<String>, request: Request) -> Response {
    let asked = Asked::read(request).await;
    let body: Arc<Value> = asked.as_ref().map(|asked| Arc::clone(&asked.parameters)).unwrap_or_default();
    let at = Instant::now();
    let fault = {
        let mut state = inner.state();
        state.calls.push(super::Call { method: method.clone(), body: Arc::clone(&body), at });
        if state.put_off.has(&method, &body, at) {
            state.violations.push(format!("`{method}` was called again before it was to be: {body}"));
        }
        state.fault(&method)
    };
    match fault {
        Some(Fault::Status(status)) => {
            return StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        }
        Some(Fault::Stall) => pending().await,
        Some(Fault::Error(code)) => return answer(Err(code)),
        Some(Fault::RateLimited(seconds)) => return put_off(&inner, &method, &body, at, Duration::from_secs(seconds)),
        Some(Fault::Garbage) => return Html("<html>be right back</html>").into_response(),
        Some(Fault::Slow(wait)) => tokio::time::sleep(wait).await,
        Some(Fault::Held) => inner.healed(&method).await,
        Some(Fault::StreamOver | Fault::Lost | Fault::Late) | None => {}
    }
    let asked = match asked {
        Ok(asked) => asked,
        Err(code) => return answer(Err(code)),
    };
    if let Err(code) = authorize(&inner, &method, asked.token.as_deref()) {
        return answer(Err(code));
    }
    let channel = ["channel", "channel_id"].iter().find_map(|key| asked.parameters[*key].as_str()).unwrap_or_default();
    if let Some(needed) = inner.rules.missing_scope(&method, Kind::of(&inner, channel)) {
        let provided = inner.rules.scopes.join(",");
        return Json(json!({"ok": false, "error": "missing_scope", "needed": needed, "provided": provided}))
            .into_response();
    }
    let count = |limits| inner.state().traffic.call(&method, channel, limits);
    if let Err(wait) = inner.rules.limits.as_ref().map_or(Ok(()), count) {
        return put_off(&inner, &method, &body, at, wait);
    }
    if fault == Some(Fault::StreamOver) {
        streams::end(&inner, &asked.parameters);
    }
    if fault == Some(Fault::Late) {
        inner.state().late.push((method, asked));
        return pending().await;
    }
    let result = carry_out(&inner, &method, &asked);
    if matches!(&*method, "conversations.history" | "conversations.replies") {
        let late = std::mem::take(&mut inner.state().late);
        for (method, asked) in late {
            let _ = carry_out(&inner, &method, &asked);
        }
    }
    inner.changed.notify_waiters();
    if fault == Some(Fault::Lost) {
        inner.state().lost.push(method.clone());
        inner.changed.notify_waiters();
        pending().await
    }
    let mut response = answer(result);
    if method != "apps.connections.open" {
        let scopes = HeaderValue::from_str(&inner.rules.scopes.join(",")).expect("names");
        response.headers_mut().insert("x-oauth-scopes", scopes);
    }
    response.headers_mut().insert(header::DATE, date(inner.rules.clock_ahead));
    response
}

/// The current time, according to a clock that is this many seconds ahead.
fn date(ahead: i64) -> HeaderValue {
    let now = Timestamp::now() + SignedDuration::from_secs(ahead);
    let date = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).expect("a year of four digits");
    HeaderValue::from_str(&date).expect("a date")
}

fn carry_out(inner: &Arc<Inner>, method: &str, asked: &Asked) -> Answer {
    let body = &asked.parameters;
    match method {
        "auth.test" => Ok(json!({
            "url": "https://stand-in.slack.com/", "team": "Stand-in", "user": "pmk", "team_id": TEAM,
            "user_id": BOT_USER, "bot_id": BOT_ID, "is_enterprise_install": false,
        })),
        "apps.connections.open" => {
            let ticket = sockets::ticket(inner);
            Ok(json!({"url": format!("ws://{}/link/?ticket={ticket}&app_id={APP_ID}", inner.address)}))
        }
        "chat.postMessage" => post(inner, body),
        "chat.update" => update(inner, body),
        "chat.postEphemeral" => whispers::whisper(inner, body),
        "chat.delete" => delete(inner, body),
        "chat.startStream" => streams::start(inner, body),
        "chat.appendStream" => streams::append(inner, body),
        "chat.stopStream" => streams::stop(inner, body),
        "assistant.threads.setStatus" => statuses::set(inner, body),
        "reactions.add" => react(inner, body),
        "conversations.open" => open(body),
        "assistant.threads.setSuggestedPrompts" => places::suggest(inner, body),
        "conversations.history" => readable(inner, body).and_then(|channel| history::history(inner, channel, body)),
        "conversations.replies" => readable(inner, body).and_then(|channel| history::replies(inner, channel, body)),
        // Slack accepts these methods only as a form.
        "files.getUploadURLExternal" | "files.info" | "users.info" if asked.is_json => Err("invalid_arguments"),
        "files.info" => along::info(inner, body),
        "users.info" => places::person(inner, body),
        "files.getUploadURLExternal" => files::announce(inner, body),
        "files.completeUploadExternal" => files::share(inner, body),
        _ => Err("unknown_method"),
    }
}

/// Checks the token: the app token opens connections, the bot token does everything else.
fn authorize(inner: &Inner, method: &str, token: Option<&str>) -> Result<(), &'static str> {
    let token = token.ok_or("not_authed")?;
    let (app, bot) = inner.tokens();
    let (right, wrong) = match method {
        "apps.connections.open" => (&app, &bot),
        _ => (&bot, &app),
    };
    match token {
        token if token == right => Ok(()),
        token if inner.state().revoked.contains(token) => Err("token_revoked"),
        token if token == wrong => Err("not_allowed_token_type"),
        _ => Err("invalid_auth"),
    }
}

fn post(inner: &Arc<Inner>, body: &Value) -> Answer {
    // A user's id stands for the direct message with that user.
    let channel = match body["channel"].as_str() {
        Some(user) if user.starts_with(['U', 'W']) => super::dm_channel(user),
        _ => channel(body)?.to_owned(),
    };
    inner.state().lets_in(&channel)?;
    let blocks = blocks::read(inner, body)?.unwrap_or_default();
    let mut text = said(body, &blocks)?;
    let thread_ts = thread(body)?;
    let metadata = metadata(body)?;
    let mut warnings = Vec::new();
    if let Some((cut, _)) = text.char_indices().nth(MAX_POST_CHARS) {
        text.truncate(cut);
        warnings.push("message_truncated");
    }
    let mut state = inner.state();
    state.note_thread(&channel, thread_ts.as_deref());
    note_mentions(&mut state.violations, &text);
    note_mentions(&mut state.violations, &blocks::text(&blocks));
    let ts = state.ts();
    let message = Message {
        channel: channel.clone(),
        ts: ts.clone(),
        thread_ts,
        user: BOT_USER.to_owned(),
        by_bot: true,
        text,
        blocks,
        streaming_since: None,
        history: Vec::new(),
        metadata,
    };
    statuses::posted(&mut state, &message);
    let shown = as_json(&message);
    state.add(message);
    drop(state);
    events::posted(inner, &channel, shown.clone(), None);
    let mut posted = json!({"channel": channel, "ts": ts});
    posted["message"] = shown;
    if !warnings.is_empty() {
        posted["response_metadata"] = json!({"warnings": warnings});
    }
    Ok(posted)
}

fn update(inner: &Arc<Inner>, body: &Value) -> Answer {
    let channel = channel(body)?;
    let blocks = blocks::read(inner, body)?;
    let text = said(body, blocks.as_deref().unwrap_or_default())?;
    if let (Some(code), _) = judge_text(&text)
        && (code != "no_text" || blocks.is_none())
    {
        return Err(code);
    }
    let metadata = metadata(body)?;
    let ts = body["ts"].as_str().unwrap_or_default();
    let mut state = inner.state();
    state.lets_in(channel)?;
    note_mentions(&mut state.violations, &text);
    note_mentions(&mut state.violations, &blocks::text(blocks.as_deref().unwrap_or_default()));
    state.note_place(channel, ts);
    let message = state.message_mut(channel, ts).ok_or("message_not_found")?;
    if !message.by_bot {
        return Err("cant_update_message");
    }
    if streams::is_open(message) {
        return Err("streaming_state_conflict");
    }
    if let Some(metadata) = metadata {
        message.metadata = Some(metadata);
    }
    let before = as_json(message);
    message.history.push(std::mem::replace(&mut message.text, text.clone()));
    // Without blocks in the call, they stay.
    if let Some(blocks) = blocks {
        message.blocks = blocks;
    }
    let after = as_json(message);
    drop(state);
    events::edited(inner, channel, before, after.clone());
    let mut updated = json!({"channel": channel, "ts": ts, "text": text});
    updated["message"] = after;
    Ok(updated)
}

fn delete(inner: &Arc<Inner>, body: &Value) -> Answer {
    let channel = channel(body)?;
    let ts = body["ts"].as_str().unwrap_or_default();
    let mut state = inner.state();
    state.lets_in(channel)?;
    state.note_place(channel, ts);
    if !state.message_mut(channel, ts).ok_or("message_not_found")?.by_bot {
        return Err("cant_delete_message");
    }
    let deleted = state.remove(channel, ts);
    drop(state);
    if let Some(deleted) = deleted {
        events::deleted(inner, &deleted);
    }
    Ok(json!({"channel": channel, "ts": ts}))
}

/// The bot reacts to a message.
fn react(inner: &Arc<Inner>, body: &Value) -> Answer {
    let channel = channel(body)?;
    let ts = body["timestamp"].as_str().ok_or("no_item_specified")?;
    let is_name = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let name = body["name"].as_str().filter(|name| !name.is_empty()).filter(is_name).ok_or("invalid_name")?;
    let mut state = inner.state();
    state.lets_in(channel)?;
    state.message_mut(channel, ts).ok_or("message_not_found")?;
    let reaction = (channel.to_owned(), ts.to_owned(), name.to_owned());
    if state.reactions.contains(&reaction) {
        return Err("already_reacted");
    }
    state.reactions.push(reaction);
    Ok(json!({}))
}

/// Returns the direct message channel of one person.
fn open(body: &Value) -> Answer {
    let user = body["users"].as_str().filter(|user| user.starts_with(['U', 'W']) && !user.contains(','));
    let user = user.ok_or("user_not_found")?;
    Ok(json!({"channel": {"id": super::dm_channel(user)}}))
}

pub(super) fn channel(body: &Value) -> Result<&str, &'static str> {
    body["channel"].as_str().filter(|channel| channel.starts_with(['C', 'D', 'G'])).ok_or("channel_not_found")
}

/// The thread that a message goes to, if it goes to one.
pub(super) fn thread(body: &Value) -> Result<Option<String>, &'static str> {
    match scalar(body, "thread_ts") {
        Some(ts) if !is_ts(&ts) => Err("invalid_thread_ts"),
        thread_ts => Ok(thread_ts),
    }
}

/// The channel, if the bot may read it, which requires membership.
fn readable<'a>(inner: &Inner, body: &'a Value) -> Result<&'a str, &'static str> {
    let channel = channel(body)?;
    inner.state().lets_in(channel).map(|()| channel)
}

/// The metadata that an app stores with a message.
pub(super) fn metadata(body: &Value) -> Result<Option<Value>, &'static str> {
    match body.get("metadata") {
        None => Ok(None),
        Some(metadata) if metadata["event_type"].is_string() && metadata["event_payload"].is_object() => {
            Ok(Some(metadata.clone()))
        }
        Some(_) => Err("invalid_metadata_format"),
    }
}

/// The text, which may be missing if there are blocks.
pub(super) fn said(body: &Value, blocks: &[Value]) -> Result<String, &'static str> {
    match body["text"].as_str().filter(|text| !text.trim().is_empty()) {
        None if blocks.is_empty() => Err("no_text"),
        text => Ok(text.unwrap_or_default().to_owned()),
    }
}

pub(super) fn is_ts(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').is_some_and(|(s, us)| !s.is_empty() && us.len() == 6 && digits(s) && digits(us))
}

pub(super) fn note_mentions(violations: &mut Vec<String>, text: &str) {
    violations.extend(text::mentions(text).into_iter().map(|mention| format!("the bot mentioned {mention}")));
}

pub(super) fn as_json(message: &Message) -> Value {
    let mut json = json!({"type": "message", "user": message.user, "ts": message.ts, "text": message.text});
    if message.by_bot {
        json["bot_id"] = json!(BOT_ID);
        json["app_id"] = json!(APP_ID);
        json["team"] = json!(TEAM);
    }
    if !message.blocks.is_empty() {
        json["blocks"] = Value::Array(message.blocks.clone());
    }
    if let Some(thread) = &message.thread_ts {
        json["thread_ts"] = json!(thread);
    }
    if let Some(metadata) = &message.metadata {
        json["metadata"] = metadata.clone();
    }
    json
}

fn answer(result: Answer) -> Response {
    let body = match result {
        Ok(mut body) => {
            body["ok"] = json!(true);
            body
        }
        Err(code) => json!({"ok": false, "error": code}),
    };
    Json(body).into_response()
}

/// Answers that a call has to wait, and remembers it.
fn put_off(inner: &Inner, method: &str, body: &Arc<Value>, at: Instant, wait: Duration) -> Response {
    inner.state().put_off.add(method, body, at, wait);
    rate_limited(wait)
}

fn rate_limited(wait: Duration) -> Response {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let body = Json(json!({"ok": false, "error": "ratelimited"}));
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds.to_string())], body).into_response()
}
