//! Attachments of people's messages: files, and `attachments` as in a forwarded message.

use std::sync::Arc;

use axum::{
    extract::{Path, State as Shared},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{Fault, Inner, methods::Answer, request::scalar};

/// The response to a client that may not read files.
const LOGIN: &str = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in</body></html>";

/// A file that a person attaches.
#[derive(Clone, Debug)]
pub struct Upload {
    pub name: String,
    pub mimetype: String,
    /// `hosted`, `snippet`, `tombstone`, `external`.
    pub mode: String,
    pub content: Vec<u8>,
    /// Its declared size.
    pub size: usize,
    /// Its declared address, if that is not here.
    pub address: Option<String>,
    /// The address to which a download is redirected.
    pub redirect: Option<String>,
    /// A preview image.
    pub preview: Option<Vec<u8>>,
    /// Whether it comes from another workspace, over Slack Connect: a message then has only its id, and `files.info`
    /// says the rest.
    pub over_connect: bool,
}

impl Upload {
    /// A file of this type.
    pub fn new(name: &str, mimetype: &str, content: impl Into<Vec<u8>>) -> Upload {
        let content = content.into();
        Upload {
            name: name.to_owned(),
            mimetype: mimetype.to_owned(),
            mode: "hosted".to_owned(),
            size: content.len(),
            content,
            address: None,
            redirect: None,
            preview: None,
            over_connect: false,
        }
    }
}

/// A request for an attached file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The file's name.
    pub name: String,
    pub token: Option<String>,
}

/// Stores files, and returns them as in an event.
pub(super) fn attach(inner: &Inner, user: &str, files: Vec<Upload>) -> Vec<Value> {
    let mut state = inner.state();
    let told = files.into_iter().map(|file| {
        let id = state.id("F");
        let Upload { name, mimetype, mode, size, .. } = &file;
        let here = format!("http://{}/files-pri/{id}/download/{name}", inner.address);
        let address = file.address.clone().unwrap_or(here);
        let mut told = json!({
            "id": id, "created": 1_700_000_000, "timestamp": 1_700_000_000, "name": name, "title": name,
            "mimetype": mimetype, "user": user, "mode": mode, "editable": mode == "snippet", "size": size,
            "is_external": mode == "external", "is_public": false, "file_access": "visible",
            "url_private": address, "url_private_download": address,
        });
        if file.preview.is_some() {
            told["thumb_1024"] = json!(format!("http://{}/files-tmb/{id}/{name}", inner.address));
        }
        if mode == "tombstone" {
            told = json!({"id": id, "mode": "tombstone", "name": name});
        }
        state.described.insert(id.clone(), told.clone());
        if file.over_connect {
            told = json!({"id": id, "mode": "file_access", "file_access": "check_file_info"});
        }
        state.attached.insert(id, file);
        told
    });
    told.collect()
}

/// `files.info`
pub(super) fn info(inner: &Inner, body: &Value) -> Answer {
    let id = scalar(body, "file").filter(|id| !id.is_empty()).ok_or("file_not_found")?;
    match inner.state().described.get(&id) {
        None => Err("file_not_found"),
        Some(told) if told["mode"] == "tombstone" => Err("file_deleted"),
        Some(told) => Ok(json!({"file": told, "comments": [], "response_metadata": {"next_cursor": ""}})),
    }
}

/// Adds attachments to the JSON of a message.
pub(super) fn add(message: &mut Value, along: &Value) {
    if let (Some(message), Some(along)) = (message.as_object_mut(), along.as_object()) {
        message.extend(along.clone());
    }
}

/// Returns an attached file to a client with the bot's token and the scope for files.
pub(super) async fn download(
    Shared(inner): Shared<Arc<Inner>>,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    hand_out(&inner, &id, name, &headers, |file| file.content)
}

/// Returns the preview image of a file.
pub(super) async fn preview(
    Shared(inner): Shared<Arc<Inner>>,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    hand_out(&inner, &id, format!("{name} (preview)"), &headers, |file| file.preview.unwrap_or_default())
}

fn hand_out(inner: &Inner, id: &str, name: String, headers: &HeaderMap, of: fn(Upload) -> Vec<u8>) -> Response {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let (_, bot) = inner.tokens();
    let is_bot = bearer == Some(bot.as_str());
    let (file, fault) = {
        let mut state = inner.state();
        state.fetches.push(Fetch { name, token: bearer.map(str::to_owned) });
        (state.attached.get(id).cloned(), state.fault("download"))
    };
    inner.changed.notify_waiters();
    if let Some(Fault::Status(status)) = fault {
        return StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY).into_response();
    }
    let redirect = |to: &str| (StatusCode::FOUND, [(header::LOCATION, to.to_owned())]).into_response();
    match file {
        _ if !is_bot => redirect("/?redir=%2Ffiles-pri"),
        _ if !inner.rules.scopes.contains(&"files:read") => Html(LOGIN).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Upload { redirect: Some(to), .. }) => redirect(&to),
        Some(file) => ([(header::CONTENT_TYPE, file.mimetype.clone())], of(file)).into_response(),
    }
}
