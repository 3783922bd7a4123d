use super::*;

mod answers;
mod fuzz;
mod look_alikes;
mod once_missed;
mod overflows;
mod unexplained;

fn of(status: Option<u16>, body: &str) -> ModelError {
    classify(&Failed { status, body, ..Failed::default() })
}

fn class(status: Option<u16>, body: &str) -> &'static str {
    of(status, body).class.name()
}

fn anthropic(code: &str, message: &str) -> String {
    serde_json::json!({"type": "error", "error": {"type": code, "message": message}, "request_id": "req_1"}).to_string()
}

#[test]
fn what_anthropic_says() {
    let invalid = "invalid_request_error";
    for (status, code, message, class) in [
        (400, invalid, "prompt is too long: 213462 tokens > 200000 maximum", "context_overflow"),
        (400, invalid, "prompt is too long", "context_overflow"),
        (
            400,
            invalid,
            "input length and `max_tokens` exceed context limit: 156321 + 48384 > 200000, decrease input length",
            "context_overflow",
        ),
        (413, "request_too_large", "Request exceeds the maximum size", "context_overflow"),
        (401, "authentication_error", "invalid x-api-key", "auth"),
        (403, "permission_error", "Your API key does not have permission to use the specified resource", "auth"),
        (402, "billing_error", "There is an issue with your payment information", "billing"),
        (400, invalid, "Your credit balance is too low to access the Anthropic API.", "billing"),
        (400, invalid, "You have reached your specified API usage limits.", "billing"),
        (429, "rate_limit_error", "This request would exceed your account's rate limit.", "rate_limited"),
        (429, "rate_limit_error", "Extra usage is required for long context requests that exceed 200k", "rate_limited"),
        (500, "api_error", "Internal server error", "overloaded"),
        (504, "timeout_error", "The request timed out", "overloaded"),
        (529, "overloaded_error", "Overloaded", "overloaded"),
        (
            400,
            invalid,
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message.",
            "malformed_history",
        ),
        (
            400,
            invalid,
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1.",
            "malformed_history",
        ),
        (400, invalid, "messages: `tool_use` ids must be unique", "malformed_history"),
        (400, invalid, "messages: text content blocks must be non-empty", "malformed_history"),
        (400, invalid, "messages: first message must use the \"user\" role", "malformed_history"),
        (400, invalid, "Output blocked by content filtering policy", "refused"),
        (404, "not_found_error", "model: claude-nonsense", "unknown_model"),
        (400, invalid, "max_tokens: 9 > 8, which is the maximum allowed number of output tokens", "other"),
        (400, invalid, "This model's context window is large. Let's look into the overflow bug.", "unexplained"),
    ] {
        assert_eq!(of(Some(status), &anthropic(code, message)).class.name(), class, "{status} {message}");
    }
}

fn openai(kind: &str, code: Option<&str>, message: &str) -> String {
    serde_json::json!({"error": {"message": message, "type": kind, "param": "messages", "code": code}}).to_string()
}

#[test]
fn what_openai_and_compatible_servers_say() {
    let invalid = "invalid_request_error";
    for (status, body, class) in [
        (
            400,
            openai(invalid, Some("context_length_exceeded"), "Your input is larger than it may be."),
            "context_overflow",
        ),
        (429, openai("insufficient_quota", Some("insufficient_quota"), "You exceeded your current quota."), "billing"),
        (429, openai("requests", Some("rate_limit_exceeded"), "Rate limit reached for gpt-5"), "rate_limited"),
        (401, openai(invalid, Some("invalid_api_key"), "Incorrect API key provided"), "auth"),
        (500, openai("server_error", None, "The server had an error"), "overloaded"),
        (400, openai(invalid, Some("content_filter"), "The response was filtered"), "refused"),
        (
            400,
            openai(
                invalid,
                None,
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
            ),
            "malformed_history",
        ),
        (400, openai(invalid, None, "Invalid token in header"), "unexplained"),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is small","code":400}"#.into(),
            "context_overflow",
        ),
        (404, r#"{"error":"model 'x' not found"}"#.into(), "unknown_model"),
        (400, r#"{"detail":"no"}"#.into(), "unexplained"),
    ] {
        assert_eq!(of(Some(status), &body).class.name(), class, "{status} {body}");
    }
}

/// It was "HTTP 400", and the conversation was lost.
#[test]
fn a_refusal_is_read_under_whatever_key_its_words_are() {
    let why = "The prompt is too long: 9000 tokens > 8192 maximum";
    let body = serde_json::json!({"ok": false, "id": "a1-b2", "why": [{"en": why}], "prompt": "the context is full"});
    let refused = of(Some(400), &body.to_string());
    let ErrorClass::Overflow { observed_tokens: Some(9_000), allowed_tokens: Some(8_192), .. } = refused.class else {
        panic!("{refused:?}");
    };
    assert!(refused.message.ends_with(why), "{refused:?}");
    // Where there are words at their place, others may be anybody's; and an answer is no refusal.
    let elsewhere = serde_json::json!({"message": "that does not work", "why": why}).to_string();
    assert_eq!(class(Some(400), &elsewhere), "unexplained");
    assert_ne!(class(None, &serde_json::json!({"why": why}).to_string()), "context_overflow");
}

#[test]
fn a_page_of_html_is_classified_by_its_status() {
    let page = "<html>\n<head><title>413 Request Entity Too Large</title></head></html>";
    let payload = r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Request payload size exceeds the limit: 20971520 bytes."}}"#;
    let error = of(Some(400), payload);
    assert!(matches!(error.class, ErrorClass::Overflow { is_of_request: true, .. }), "{error:?}");
    let counted = r#"{"error":{"message":"request too large: limit 8000, requested 8098"}}"#;
    let error = of(Some(413), counted);
    assert!(matches!(error.class, ErrorClass::Overflow { is_of_request: false, .. }), "{error:?}");
    let ModelError { class: ErrorClass::Overflow { observed_tokens: None, .. }, message } = of(Some(413), page) else {
        panic!("a body that is too large for the provider's door is too large a prompt");
    };
    assert_eq!(message, "413 Request Entity Too Large");
    assert_eq!(class(None, page), "context_overflow", "the title has the status");
    assert_eq!(of(Some(502), "<html>Bad gateway</html>").class.name(), "overloaded");
    assert_eq!(class(Some(401), ""), "auth");
    assert_eq!(
        of(Some(401), "").to_string(),
        "the provider does not accept the credentials: status 401 without an explanation"
    );
    assert_eq!(of(Some(302), "").class.name(), "other");
}

#[test]
fn a_long_message_is_cut_and_kept_on_one_line() {
    let ModelError { class, message } = of(Some(400), &"長\n".repeat(1_000));
    assert_eq!(class, ErrorClass::Unexplained);
    assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS + 1);
    assert!(!message.contains('\n'));
}

#[test]
fn the_wait_is_found_wherever_it_stands() {
    let wait = |failed: Failed<'_>| classify(&failed).retry_after();
    let body = r#"{"error":{"code":429,"message":"slow down","details":[{"retryDelay":"34s"}]}}"#;
    assert_eq!(wait(Failed { body, ..Failed::default() }), Some(Duration::from_secs(34)));
    let header = Some(Duration::from_secs(2));
    assert_eq!(wait(Failed { retry_after: header, body, ..Failed::default() }), header, "the header goes first");
    for (body, ms) in [
        (r#"{"error":{"type":"rate_limit_error","message":"m","retry_after":1.5}}"#, 1_500),
        (r#"{"error":{"type":"overloaded_error","message":"m","retry_after_ms":250}}"#, 250),
        ("429 Rate limit reached for x. Please try again in 6m0s.", 360_000),
    ] {
        assert_eq!(wait(Failed { body, ..Failed::default() }), Some(Duration::from_millis(ms)), "{body}");
    }
    assert_eq!(wait(Failed { status: Some(429), ..Failed::default() }), None);
}

#[test]
fn every_class_has_its_action() {
    for (status, body, action) in [
        (Some(400), "prompt is too long", "recover"),
        (Some(400), "roles must alternate", "repair"),
        (Some(503), "", "retry"),
        (None, "socket hang up", "retry"),
        (Some(408), "", "retry"),
        (Some(429), "", "wait"),
        (Some(400), r#"{"error":{"code":"content_filter"}}"#, "tell"),
        (Some(401), "", "tell"),
        (Some(402), "", "tell"),
        (Some(400), "no", "probe"),
        (Some(400), "the model does not support tools", "fence"),
        (Some(404), "", "tell"),
        (Some(418), "", "fail"),
    ] {
        assert_eq!(of(status, body).action().name(), action, "{status:?} {body}");
    }
}
