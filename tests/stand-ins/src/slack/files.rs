//! The three steps of an upload: request an address, upload the content, and share the file in a conversation. None may
//! be left out.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State as Shared},
    http::StatusCode,
};
use serde_json::{Value, json};

use super::{
    BOT_USER, Fault, Inner, events,
    methods::{Answer, as_json, channel, thread},
    request::{self, scalar},
    state::Message,
};

/// A file that is being uploaded, or is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub id: String,
    pub name: String,
    /// The announced length.
    pub length: usize,
    /// `None` until it has been uploaded.
    pub content: Option<Vec<u8>>,
}

/// `files.getUploadURLExternal`
pub(super) fn announce(inner: &Inner, body: &Value) -> Answer {
    let name = scalar(body, "filename").filter(|name| !name.is_empty()).ok_or("invalid_arguments")?;
    let length = scalar(body, "length").and_then(|length| length.parse().ok());
    let length = length.filter(|length| *length > 0).ok_or("invalid_arguments")?;
    let mut state = inner.state();
    let id = state.id("F");
    state.uploads.insert(id.clone(), File { id: id.clone(), name, length, content: None });
    Ok(json!({"upload_url": format!("http://{}/upload/{id}", inner.address), "file_id": id}))
}

/// Receives the content, at the address that was returned for it.
pub(super) async fn upload(
    Shared(inner): Shared<Arc<Inner>>,
    Path(id): Path<String>,
    request: Request,
) -> (StatusCode, String) {
    let content = request::content(request).await;
    let mut state = inner.state();
    if let Some(Fault::Status(status)) = state.fault("upload") {
        return (StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), String::new());
    }
    let Some(file) = state.uploads.get_mut(&id) else {
        return (StatusCode::NOT_FOUND, "no such upload".to_owned());
    };
    file.content = content.filter(|content| content.len() == file.length);
    if file.content.is_none() {
        return (StatusCode::BAD_REQUEST, "not what was announced".to_owned());
    }
    (StatusCode::OK, format!("OK - {}", file.length))
}

/// `files.completeUploadExternal`: once for each file, and only after its content was uploaded.
pub(super) fn share(inner: &Arc<Inner>, body: &Value) -> Answer {
    let named = json!({"channel": body["channel_id"]});
    let channel = channel(&named)?.to_owned();
    let thread_ts = thread(body)?;
    let files = body["files"].as_array().filter(|files| files.len() == 1).ok_or("invalid_arguments")?;
    let id = files[0]["id"].as_str().ok_or("file_not_found")?;
    let mut state = inner.state();
    state.lets_in(&channel)?;
    state.note_thread(&channel, thread_ts.as_deref());
    if state.uploads.get(id).is_none_or(|file| file.content.is_none()) {
        return Err("file_not_found");
    }
    let file = state.uploads.remove(id).ok_or("file_not_found")?;
    let ts = state.ts();
    state.shared.insert(ts.clone(), file);
    let message = Message {
        channel,
        ts,
        thread_ts,
        user: BOT_USER.to_owned(),
        by_bot: true,
        text: scalar(body, "initial_comment").unwrap_or_default(),
        history: Vec::new(),
        blocks: Vec::new(),
        streaming_since: None,
        metadata: None,
    };
    let (channel, shown) = (message.channel.clone(), as_json(&message));
    state.add(message);
    drop(state);
    events::posted(inner, &channel, shown, Some(id));
    Ok(json!({"files": [{"id": id, "title": files[0]["title"]}]}))
}
