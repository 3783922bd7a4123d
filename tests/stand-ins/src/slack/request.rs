//! Parses calls of the Web API: JSON, a form, or the query string, with the token in a header or, except for JSON,
//! among the parameters.

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::{Form, FromRequest, Multipart, Query, Request},
    http::{HeaderMap, Method, header},
};
use serde_json::{Map, Value};

/// Parameters that are JSON even in a form.
const JSON_PARAMETERS: [&str; 6] = ["attachments", "blocks", "files", "loading_messages", "metadata", "prompts"];

/// A parsed call.
pub(super) struct Asked {
    pub(super) token: Option<String>,
    pub(super) parameters: Arc<Value>,
    /// Whether it was sent as JSON, which some methods do not accept.
    pub(super) is_json: bool,
}

impl Asked {
    /// Parses a call, or returns Slack's error code.
    pub(super) async fn read(request: Request) -> Result<Asked, &'static str> {
        let bearer = bearer(request.headers());
        let mut pairs = Query::<Pairs>::try_from_uri(request.uri()).map_err(|_| "invalid_arguments")?.0;
        let kind = kind(request.headers());
        let mut json = None;
        match kind.as_deref() {
            _ if request.method() == Method::GET => {}
            Some("application/json") => json = Some(object(request).await?),
            Some("application/x-www-form-urlencoded") => pairs.extend(form(request).await?),
            Some("multipart/form-data") => pairs.extend(fields(request).await?),
            Some(_) => return Err("invalid_post_type"),
            None if bytes(request).await?.is_empty() => {}
            None => return Err("missing_post_type"),
        }
        let is_json = json.is_some();
        let mut parameters = json.unwrap_or_default();
        let mut token = bearer;
        for (name, value) in pairs {
            if name == "token" {
                token.get_or_insert(value);
            } else if JSON_PARAMETERS.contains(&name.as_str()) {
                parameters.insert(name, serde_json::from_str(&value).map_err(|_| "invalid_arguments")?);
            } else {
                parameters.insert(name, Value::String(value));
            }
        }
        Ok(Asked { token, parameters: Arc::new(Value::Object(parameters)), is_json })
    }
}

/// The parameters of a form or a query string.
type Pairs = Vec<(String, String)>;

async fn bytes(request: Request) -> Result<Bytes, &'static str> {
    Bytes::from_request(request, &()).await.map_err(|_| "request_timeout")
}

/// The parameters in a JSON body; an empty body has none.
async fn object(request: Request) -> Result<Map<String, Value>, &'static str> {
    let body = bytes(request).await?;
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(&body).map_err(|_| "invalid_json")? {
        Value::Object(parameters) => Ok(parameters),
        _ => Err("json_not_object"),
    }
}

async fn form(request: Request) -> Result<Pairs, &'static str> {
    Form::from_request(request, &()).await.map(|Form(pairs)| pairs).map_err(|_| "invalid_form_data")
}

async fn fields(request: Request) -> Result<Pairs, &'static str> {
    let mut form = Multipart::from_request(request, &()).await.map_err(|_| "invalid_form_data")?;
    let mut fields = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|_| "invalid_form_data")? {
        let name = field.name().unwrap_or_default().to_owned();
        fields.push((name, field.text().await.map_err(|_| "invalid_form_data")?));
    }
    Ok(fields)
}

/// The content of a file: the whole body, or the only part of a form.
pub(super) async fn content(request: Request) -> Option<Vec<u8>> {
    if kind(request.headers()).as_deref() != Some("multipart/form-data") {
        return bytes(request).await.ok().map(Into::into);
    }
    let mut form = Multipart::from_request(request, &()).await.ok()?;
    let content = form.next_field().await.ok()??.bytes().await.ok()?;
    form.next_field().await.ok()?.is_none().then(|| content.into())
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::to_owned)
}

/// The content type of the body, without its parameters.
fn kind(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    kind.split(';').next().map(|kind| kind.trim().to_ascii_lowercase())
}

/// A scalar parameter, from any format.
pub(super) fn scalar(parameters: &Value, name: &str) -> Option<String> {
    match &parameters[name] {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http};
    use serde_json::json;

    use super::*;

    async fn read(kind: Option<&str>, token: Option<&str>, body: &str) -> Result<Asked, &'static str> {
        let mut request = http::Request::post("/api/chat.postMessage?thread_ts=1.000001");
        if let Some(kind) = kind {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        Asked::read(request.body(Body::from(body.to_owned())).expect("a request")).await
    }

    #[tokio::test]
    async fn a_form_is_read_with_the_token_in_it_or_beside_it() {
        let form = Some("application/x-www-form-urlencoded");
        let body = "channel=C1&text=1+%26+2&metadata=%7B%22event_type%22%3A%22t%22%7D";
        let expected =
            json!({"channel": "C1", "text": "1 & 2", "metadata": {"event_type": "t"}, "thread_ts": "1.000001"});
        let beside = read(form, Some("xoxb-1"), body).await.expect("a form");
        assert_eq!((beside.token.as_deref(), &*beside.parameters), (Some("xoxb-1"), &expected));
        let within = read(form, None, &format!("{body}&token=xoxb-2")).await.expect("a form");
        assert_eq!((within.token.as_deref(), &*within.parameters), (Some("xoxb-2"), &expected));
        assert_eq!(read(form, None, "blocks=none").await.err(), Some("invalid_arguments"));
    }

    #[tokio::test]
    async fn a_multipart_form_is_read() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\n中文\r\n--b--\r\n";
        let asked = read(Some("multipart/form-data; boundary=b"), None, body).await.expect("a form");
        assert_eq!(asked.parameters["text"], "中文");
    }

    #[tokio::test]
    async fn json_has_its_token_in_the_header_only() {
        let json = Some("application/json; charset=utf-8");
        let asked = read(json, None, r#"{"token":"xoxb-1","limit":5}"#).await.expect("JSON");
        assert_eq!((asked.token, asked.is_json), (None, true));
        assert_eq!(scalar(&asked.parameters, "limit").as_deref(), Some("5"));
        assert_eq!(scalar(&asked.parameters, "thread_ts").as_deref(), Some("1.000001"));
        assert!(read(json, None, "").await.is_ok(), "a method without parameters");
    }

    #[tokio::test]
    async fn what_slack_does_not_read_is_not_read() {
        for (kind, body, code) in [
            (Some("application/json"), "{", "invalid_json"),
            (Some("application/json"), "[]", "json_not_object"),
            (Some("text/plain"), "text=a", "invalid_post_type"),
            (None, "text=a", "missing_post_type"),
        ] {
            assert_eq!(read(kind, None, body).await.err(), Some(code), "{body}");
        }
    }
}
