//! Fetching a file. The token goes to Slack's own hosts and nowhere else: no redirect is followed.

use reqwest::{Response, StatusCode, Url, header::CONTENT_TYPE};
use secrecy::ExposeSecret;

use super::{
    failure::{CallFailure, Cause, wait_asked_for},
    token::Token,
    web::Web,
};
use crate::{chat::FileSkipReason, front::Fetched};

/// What failures call it.
const METHOD: &str = "the address of a file";

/// What is at an address, where it has at most so many bytes; `said_bytes` is how many it is said to have.
pub(super) async fn file(web: &Web, address: &str, said_bytes: Option<u64>, most: u64) -> Result<Fetched, CallFailure> {
    let Ok(url) = Url::parse(address) else { return Ok(Err(FileSkipReason::NotFetched)) };
    if !web.may_get_the_token(&url) {
        return Ok(Err(FileSkipReason::Elsewhere));
    }
    let tokens = web.tokens.now();
    let get = web.client.get(url).bearer_auth(tokens.of(Token::Bot).expose_secret());
    let fetched = async { read(get.send().await?, said_bytes, most).await };
    let fetched = tokio::time::timeout(web.time_limit, fetched).await;
    let failure = |cause| CallFailure { method: METHOD, token: Token::Bot, cause };
    fetched.unwrap_or(Err(Cause::TimedOut(web.time_limit))).map_err(failure)
}

async fn read(mut response: Response, said_bytes: Option<u64>, most: u64) -> Result<Fetched, Cause> {
    let unread = |why| Ok(Err(why));
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    match response.status() {
        StatusCode::OK => {}
        // Who may not read it is sent on to where people log in.
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
    // Without the scope Slack answers with the page on which people log in, as if all were well. A page that somebody has
    // attached is as long as was said.
    if is_page && said_bytes != Some(content.len() as u64) {
        return unread(FileSkipReason::NotAllowed);
    }
    Ok(Ok(content))
}
