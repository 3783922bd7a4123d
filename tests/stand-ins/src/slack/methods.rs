//! The Web API.

use std::{
    collections::HashMap,
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Query, State as Shared},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::{any, get, post as post_to},
};
use serde_json::{Value, json};

use super::{BOT_ID, BOT_USER, Fault, Inner, TEAM, files, history, sockets, state::Message, text};

/// What `chat.update` takes, in bytes.
const MAX_UPDATE_BYTES: usize = 4_000;
/// What `chat.postMessage` takes, in characters; the rest is cut off.
const MAX_POST_CHARS: usize = 40_000;

pub(super) fn router(inner: Arc<Inner>) -> Router {
    Router::new()
        .route("/api/{method}", any(method))
        .route("/link/", get(sockets::link))
        .route("/upload/{id}", post_to(files::upload))
        .with_state(inner)
}

/// Why `chat.update` refuses a text, and everybody a text would notify.
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

/// The answer of a method: what it returns, or its error code.
pub(super) type Answer = Result<Value, &'static str>;

async fn method(
    Shared(inner): Shared<Arc<Inner>>,
    Path(method): Path<String>,
    Query(parameters): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    // Methods that read take their parameters from the address.
    let parsed = if body.is_empty() { Ok(json!(parameters)) } else { serde_json::from_slice::<Value>(&body) };
    let fault = {
        let mut state = inner.state();
        state.calls.push(super::Call {
            method: method.clone(),
            body: parsed.as_ref().cloned().unwrap_or_default(),
            at: Instant::now(),
        });
        state.fault(&method)
    };
    match fault {
        Some(Fault::Status(status)) => {
            return StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response();
        }
        Some(Fault::Stall) => pending().await,
        Some(Fault::Error(code)) => return answer(Err(code)),
        Some(Fault::RateLimited(seconds)) => return rate_limited(Duration::from_secs(seconds)),
        Some(Fault::Garbage) => return Html("<html>be right back</html>").into_response(),
        Some(Fault::Slow(wait)) => tokio::time::sleep(wait).await,
        Some(Fault::Lost) | None => {}
    }
    let Ok(body) = parsed else { return answer(Err("invalid_json")) };
    if let Err(code) = authorize(&inner, &method, &headers) {
        return answer(Err(code));
    }
    if let Some(limits) = &inner.rules.limits {
        let channel = body["channel"].as_str().unwrap_or_default();
        if let Err(wait) = inner.state().traffic.call(&method, channel, limits) {
            return rate_limited(wait);
        }
    }
    let result = match method.as_str() {
        "auth.test" => Ok(json!({
            "url": "https://stand-in.slack.com/", "team": "Stand-in", "user": "pmk", "team_id": TEAM,
            "user_id": BOT_USER, "bot_id": BOT_ID, "is_enterprise_install": false,
        })),
        "apps.connections.open" => {
            let ticket = sockets::ticket(&inner);
            Ok(json!({"url": format!("ws://{}/link/?ticket={ticket}&app_id=A0STANDIN", inner.address)}))
        }
        "chat.postMessage" => post(&inner, &body),
        "chat.update" => update(&inner, &body),
        "chat.delete" => delete(&inner, &body),
        "conversations.history" => channel(&body).and_then(|channel| history::history(&inner, channel, &body)),
        "conversations.replies" => channel(&body).and_then(|channel| history::replies(&inner, channel, &body)),
        "files.getUploadURLExternal" => files::announce(&inner, &body),
        "files.completeUploadExternal" => files::share(&inner, &body),
        _ => Err("unknown_method"),
    };
    inner.changed.notify_waiters();
    if fault == Some(Fault::Lost) {
        pending().await
    }
    answer(result)
}

/// The app token opens connections, the bot token does everything else.
fn authorize(inner: &Inner, method: &str, headers: &HeaderMap) -> Result<(), &'static str> {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = authorization.and_then(|value| value.strip_prefix("Bearer ")).ok_or("not_authed")?;
    let (right, wrong) = match method {
        "apps.connections.open" => (&inner.rules.app_token, &inner.rules.bot_token),
        _ => (&inner.rules.bot_token, &inner.rules.app_token),
    };
    match token {
        token if token == right => Ok(()),
        token if token == wrong => Err("not_allowed_token_type"),
        _ => Err("invalid_auth"),
    }
}

fn post(inner: &Inner, body: &Value) -> Answer {
    // A user's id stands for the direct message with them.
    let channel = match body["channel"].as_str() {
        Some(user) if user.starts_with(['U', 'W']) => super::dm_channel(user),
        _ => channel(body)?.to_owned(),
    };
    let mut text = said(body)?;
    let thread_ts = match &body["thread_ts"] {
        Value::Null => None,
        Value::String(ts) if is_ts(ts) => Some(ts.clone()),
        _ => return Err("invalid_thread_ts"),
    };
    let metadata = match body.get("metadata") {
        None => None,
        Some(metadata) if metadata["event_type"].is_string() && metadata["event_payload"].is_object() => {
            Some(metadata.clone())
        }
        Some(_) => return Err("invalid_metadata_format"),
    };
    let mut warnings = Vec::new();
    if let Some((cut, _)) = text.char_indices().nth(MAX_POST_CHARS) {
        text.truncate(cut);
        warnings.push("message_truncated");
    }
    let mut state = inner.state();
    note_mentions(&mut state.violations, &text);
    let ts = state.ts();
    let message = Message {
        channel: channel.clone(),
        ts: ts.clone(),
        thread_ts,
        user: BOT_USER.to_owned(),
        by_bot: true,
        text,
        history: Vec::new(),
        metadata,
    };
    let echo = as_json(&message);
    state.add(message);
    Ok(json!({"channel": channel, "ts": ts, "message": echo, "response_metadata": {"warnings": warnings}}))
}

fn update(inner: &Inner, body: &Value) -> Answer {
    let channel = channel(body)?;
    let text = said(body)?;
    if let (Some(code), _) = judge_text(&text) {
        return Err(code);
    }
    let ts = body["ts"].as_str().unwrap_or_default();
    let mut state = inner.state();
    note_mentions(&mut state.violations, &text);
    let message = state.message_mut(channel, ts).ok_or("message_not_found")?;
    if !message.by_bot {
        return Err("cant_update_message");
    }
    let before = std::mem::replace(&mut message.text, text.clone());
    message.history.push(before);
    Ok(json!({"channel": channel, "ts": ts, "text": text, "message": as_json(message)}))
}

fn delete(inner: &Inner, body: &Value) -> Answer {
    let channel = channel(body)?;
    let ts = body["ts"].as_str().unwrap_or_default();
    let mut state = inner.state();
    match state.message_mut(channel, ts) {
        None => Err("message_not_found"),
        Some(message) if !message.by_bot => Err("cant_delete_message"),
        Some(_) => {
            state.remove(channel, ts);
            Ok(json!({"channel": channel, "ts": ts}))
        }
    }
}

fn channel(body: &Value) -> Result<&str, &'static str> {
    body["channel"].as_str().filter(|channel| channel.starts_with(['C', 'D', 'G'])).ok_or("channel_not_found")
}

fn said(body: &Value) -> Result<String, &'static str> {
    body["text"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned).ok_or("no_text")
}

fn is_ts(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').is_some_and(|(s, us)| !s.is_empty() && us.len() == 6 && digits(s) && digits(us))
}

fn note_mentions(violations: &mut Vec<String>, text: &str) {
    violations.extend(text::mentions(text).into_iter().map(|mention| format!("the bot mentioned {mention}")));
}

pub(super) fn as_json(message: &Message) -> Value {
    let mut json = json!({"type": "message", "user": message.user, "ts": message.ts, "text": message.text});
    if message.by_bot {
        json["bot_id"] = json!(BOT_ID);
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

fn rate_limited(wait: Duration) -> Response {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let body = Json(json!({"ok": false, "error": "ratelimited"}));
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, seconds.to_string())], body).into_response()
}
