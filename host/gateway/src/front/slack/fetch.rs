//! Asks about files, and fetches them. The token is sent only to Slack's own hosts: no redirect is followed.

use reqwest::{Response, StatusCode, Url, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::Value;

use super::{
    attached,
    failure::{CallFailure, Cause, wait_asked_for},
    token::Token,
    web::{Slot, Web},
};
use crate::{
    chat::FileSkipReason,
    front::{Described, Fetched},
};

/// The method name shown in failures.
const METHOD: &str = "the address of a file";

/// What is read of the response to `files.info`.
#[derive(Deserialize)]
struct Info {
    file: Value,
}

/// `files.info`: a message brings nothing but the id of a file that comes from another workspace, over Slack Connect.
pub(super) async fn description(web: &Web, id: &str) -> Result<Described, CallFailure> {
    let info = web.read::<Info>(&Slot::answer("files.info"), &[("file", Some(id))]).await;
    let why = match &info {
        Ok(Info { file }) => {
            let file = attached::file(file);
            return Ok(if file.id.is_none() { Ok(file) } else { Err(FileSkipReason::NotFetched) });
        }
        Err(failure) => match failure.code() {
            Some("file_not_found" | "file_deleted") => FileSkipReason::Gone,
            Some("missing_scope") => FileSkipReason::NotAllowed,
            Some("access_denied" | "no_permission" | "file_not_visible" | "not_visible") => FileSkipReason::NotShared,
            _ => return info.map(|_| Err(FileSkipReason::NotFetched)),
        },
    };
    Ok(Err(why))
}

/// Returns the content of an address, if it has at most `most` bytes; `said_bytes` is its stated size.
pub(super) async fn file(web: &Web, address: &str, said_bytes: Option<u64>, most: u64) -> Result<Fetched, CallFailure> {
    let Ok(url) = Url::parse(address) else { return Ok(Err(FileSkipReason::NotFetched)) };
    if !web.may_get_the_token(&url) {
        return Ok(Err(FileSkipReason::Elsewhere));
    }
    let tokens = web.tokens.now();
    let get = web.client.get(url);
    let fetched = async { read(web.sent(get, tokens.of(Token::Bot)).await?, said_bytes, most).await };
    let fetched = tokio::time::timeout(web.time_limit, fetched).await;
    let failure = |cause| CallFailure { method: METHOD, token: Token::Bot, cause };
    fetched.unwrap_or(Err(Cause::TimedOut(web.time_limit))).map_err(failure)
}

async fn read(mut response: Response, said_bytes: Option<u64>, most: u64) -> Result<Fetched, Cause> {
    let unread = |why| Ok(Err(why));
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    match response.status() {
        StatusCode::OK => {}
        // Without permission to read it, Slack redirects to the login page.
        status if status.is_redirection() => return unread(FileSkipReason::NotAllowed),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return unread(FileSkipReason::NotAllowed),
        StatusCode::NOT_FOUND | StatusCode::GONE => return unread(FileSkipReason::Gone),
        StatusCode::TOO_MANY_REQUESTS => {
            return Err(Cause::RateLimited { retry_after: wait_asked_for(response.headers()) });
        }
        status => return Err(Cause::Status(status.as_u16())),
    }
    let is_page = header(CONTENT_TYPE).is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("text/html"));
    let mut content = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if content.len() as u64 + chunk.len() as u64 > most {
            return unread(FileSkipReason::TooLarge);
        }
        content.extend_from_slice(&chunk);
    }
    // Without the scope, Slack responds with the login page and status 200. An attached HTML page, in contrast, has the
    // stated size.
    if is_page && said_bytes != Some(content.len() as u64) {
        return unread(FileSkipReason::NotAllowed);
    }
    Ok(Ok(content))
}
