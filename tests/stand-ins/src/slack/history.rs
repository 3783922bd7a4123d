//! Reads conversations, page by page.

use serde_json::{Value, json};

use super::{
    Inner,
    methods::Answer,
    request::scalar,
    state::{Message, State},
};

/// The maximum number of messages per page.
const MAX_PAGE: usize = 999;

/// `conversations.history`: the messages outside of threads, newest first.
pub(super) fn history(inner: &Inner, channel: &str, body: &Value) -> Answer {
    let mut messages: Vec<Message> = inner.state().channel(channel).to_vec();
    messages.retain(|message| message.thread_ts.as_ref().is_none_or(|thread| *thread == message.ts));
    messages.reverse();
    page(inner, body, messages, |_| false)
}

/// `conversations.replies`: a thread, oldest first; its parent is always included.
pub(super) fn replies(inner: &Inner, channel: &str, body: &Value) -> Answer {
    let ts = scalar(body, "ts").ok_or("thread_not_found")?;
    let of_thread = |message: &&Message| message.ts == ts || message.thread_ts.as_ref() == Some(&ts);
    let messages: Vec<Message> = inner.state().channel(channel).iter().filter(of_thread).cloned().collect();
    if messages.is_empty() {
        return Err("thread_not_found");
    }
    page(inner, body, messages, |message| message.ts == ts)
}

/// Adds what Slack tells of the thread that a message begins, if it does.
fn add_thread(json: &mut Value, state: &State, parent: &Message) {
    if parent.thread_ts.as_ref().is_some_and(|thread| *thread != parent.ts) {
        return;
    }
    let is_reply = |reply: &&Message| reply.thread_ts.as_ref() == Some(&parent.ts) && reply.ts != parent.ts;
    let replies: Vec<&Message> = state.channel(&parent.channel).iter().filter(is_reply).collect();
    let Some(latest) = replies.last() else { return };
    let mut users: Vec<&str> = replies.iter().map(|reply| reply.user.as_str()).collect();
    users.sort_unstable();
    users.dedup();
    json["thread_ts"] = json!(parent.ts);
    json["reply_count"] = json!(replies.len());
    json["reply_users"] = json!(users);
    json["reply_users_count"] = json!(users.len());
    json["latest_reply"] = json!(latest.ts);
}

fn page(inner: &Inner, body: &Value, mut messages: Vec<Message>, always: impl Fn(&Message) -> bool) -> Answer {
    let oldest = scalar(body, "oldest").unwrap_or_default();
    let latest = scalar(body, "latest").filter(|latest| !latest.is_empty());
    let is_early = |message: &Message| latest.as_ref().is_none_or(|latest| message.ts < *latest);
    messages.retain(|message| message.ts > oldest && is_early(message) || always(message));
    let limit = match scalar(body, "limit") {
        Some(limit) => limit.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit)).ok_or("invalid_limit")?,
        None => 100,
    };
    let start: usize = match scalar(body, "cursor").filter(|cursor| !cursor.is_empty()) {
        Some(cursor) => cursor.strip_prefix("page-").and_then(|at| at.parse().ok()).ok_or("invalid_cursor")?,
        None => 0,
    };
    let with_metadata = scalar(body, "include_all_metadata").is_some_and(|wanted| wanted == "true" || wanted == "1");
    let state = inner.state();
    let shown = messages.iter().skip(start).take(limit).map(|message| {
        let mut json = super::methods::as_json(message);
        if !with_metadata {
            json.as_object_mut().expect("a message is an object").remove("metadata");
        }
        add_thread(&mut json, &state, message);
        if let Some(parent) = state.parent_user(message) {
            json["parent_user_id"] = json!(parent);
        }
        if let Some(along) = state.along.get(&message.ts) {
            super::along::add(&mut json, along);
        }
        if let Some(file) = state.shared.get(&message.ts) {
            json["files"] = json!([{"id": file.id, "name": file.name, "title": file.name}]);
        }
        json
    });
    let shown: Vec<Value> = shown.collect();
    let has_more = start + limit < messages.len();
    let next = if has_more { format!("page-{}", start + limit) } else { String::new() };
    Ok(json!({"messages": shown, "has_more": has_more, "response_metadata": {"next_cursor": next}}))
}
