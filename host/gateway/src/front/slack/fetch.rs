//! Fetching the text of a file. The token goes to Slack's own hosts and nowhere else: no redirect is followed.

use reqwest::{
    Response, StatusCode, Url,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use secrecy::ExposeSecret;

use super::{
    failure::{CallFailure, Cause},
    token::Token,
    web::Web,
};
use crate::talk::{Content, File, Unread};

/// What failures call it.
const METHOD: &str = "the address of a file";

/// Of a text at most one character in so many may be none.
const READABLE: usize = 10;

/// What is in a file, where it is a text of at most so many bytes.
pub(super) async fn text(web: &Web, file: &File, most: u64) -> Result<Content, CallFailure> {
    let unread = |why| Ok(Content::Unread(why));
    if file.bytes.is_some_and(|bytes| bytes > most) {
        return unread(Unread::TooLarge);
    }
    let Some(url) = file.address.as_deref().and_then(|address| Url::parse(address).ok()) else {
        return unread(Unread::NotFetched);
    };
    if !web.address.may_get_the_token(&url) {
        return unread(Unread::Elsewhere);
    }
    let tokens = web.tokens.now();
    let get = web.client.get(url).bearer_auth(tokens.of(Token::Bot).expose_secret());
    let fetched = async { read(get.send().await?, file.bytes, most).await };
    let fetched = tokio::time::timeout(web.time_limit, fetched).await;
    let failure = |cause| CallFailure { method: METHOD, token: Token::Bot, cause };
    fetched.unwrap_or(Err(Cause::TimedOut(web.time_limit))).map_err(failure)
}

async fn read(mut response: Response, said_bytes: Option<u64>, most: u64) -> Result<Content, Cause> {
    let unread = |why| Ok(Content::Unread(why));
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    match response.status() {
        StatusCode::OK => {}
        // Who may not read it is sent on to where people log in.
        status if status.is_redirection() => return unread(Unread::NotAllowed),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return unread(Unread::NotAllowed),
        StatusCode::NOT_FOUND | StatusCode::GONE => return unread(Unread::Gone),
        StatusCode::TOO_MANY_REQUESTS => {
            let seconds = header(RETRY_AFTER).and_then(|value| value.parse().ok());
            return Err(Cause::RateLimited { retry_after: seconds.map(std::time::Duration::from_secs) });
        }
        status => return Err(Cause::Status(status.as_u16())),
    }
    let is_page = header(CONTENT_TYPE).is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("text/html"));
    let mut content = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if content.len() as u64 + chunk.len() as u64 > most {
            return unread(Unread::TooLarge);
        }
        content.extend_from_slice(&chunk);
    }
    // Without the scope Slack answers with the page on which people log in, as if all were well. A page that somebody has
    // attached is as long as was said.
    if is_page && said_bytes != Some(content.len() as u64) {
        return unread(Unread::NotAllowed);
    }
    Ok(decoded(&content))
}

/// The bytes as text.
fn decoded(content: &[u8]) -> Content {
    let wide = |of_pair: fn([u8; 2]) -> u16, rest: &[u8]| {
        let units: Vec<u16> = rest.chunks_exact(2).map(|pair| of_pair([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    let text = match content {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        all => String::from_utf8_lossy(all).into_owned(),
    };
    let lost = text.chars().filter(|&c| c == char::REPLACEMENT_CHARACTER).count();
    if text.contains('\0') || lost * READABLE > text.chars().count() {
        return Content::Unread(Unread::NoText);
    }
    Content::Text { text, is_lossy: lost > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_from_what_is_none() {
        let text = |text: &str, is_lossy| Content::Text { text: text.to_owned(), is_lossy };
        let utf16: Vec<u8> = "\u{feff}預算 1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decoded("預算".as_bytes()), text("預算", false));
        assert_eq!(decoded(b"\xef\xbb\xbfa,b"), text("a,b", false));
        assert_eq!(decoded(&utf16), text("預算 1", false));
        assert_eq!(decoded(b"price in \xa3 and nothing else"), text("price in \u{fffd} and nothing else", true));
        assert_eq!(decoded(b""), text("", false));
        for none in [&b"\x7fELF\0\0\0"[..], b"\xb9w\xba\xe2\xa8\xf7\xb9w", b"\xff\xd8\xff\xe0\x00\x10JFIF"] {
            assert_eq!(decoded(none), Content::Unread(Unread::NoText), "{none:?}");
        }
    }
}
