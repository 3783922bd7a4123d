use proptest::prelude::*;

use super::*;

fn of(status: Option<u16>, body: &str) -> ModelError {
    classify(&Failed { status, retry_after: None, body })
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
        (404, "not_found_error", "model: claude-nonsense", "other"),
        (400, invalid, "max_tokens: 9 > 8, which is the maximum allowed number of output tokens", "other"),
        (400, invalid, "This model's context window is large. Let's look into the overflow bug.", "other"),
    ] {
        assert_eq!(of(Some(status), &anthropic(code, message)).class(), class, "{status} {message}");
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
        (400, openai(invalid, None, "Invalid token in header"), "other"),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is small","code":400}"#.into(),
            "context_overflow",
        ),
        (404, r#"{"error":"model 'x' not found"}"#.into(), "other"),
        (400, r#"{"detail":"no"}"#.into(), "other"),
    ] {
        assert_eq!(of(Some(status), &body).class(), class, "{status} {body}");
    }
}

#[test]
fn numbers_are_taken() {
    for (status, body, observed, allowed) in [
        (Some(400), "prompt is too long: 213462 tokens > 200000 maximum", 213_462, 200_000),
        (None, "Prompt is too long: 1,000,001 tokens > 1,000,000 maximum", 1_000_001, 1_000_000),
        (Some(400), "input length and `max_tokens` exceed context limit: 156321 + 48384 > 200000", 204_705, 200_000),
        (
            Some(400),
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens.",
            4294,
            4097,
        ),
        (
            Some(400),
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens",
            9000,
            8192,
        ),
        (
            Some(400),
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens.",
            509_178,
            272_000,
        ),
        (Some(500), "request (66202 tokens) exceeds the available context size (65536 tokens)", 66_202, 65_536),
        (
            Some(400),
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            537_812,
            131_072,
        ),
        // Size, not speed: waiting never helps.
        (
            Some(413),
            "Request too large for model `x` on tokens per minute (TPM): Limit 8000, Requested 8098",
            8098,
            8000,
        ),
        // A status veto does not hold against explicit numbers.
        (Some(500), "upstream: prompt is too long: 12 tokens > 10 maximum", 12, 10),
    ] {
        let ModelError::Overflow { observed_tokens, allowed_tokens, .. } = of(status, body) else {
            panic!("no overflow: {body}");
        };
        assert_eq!((observed_tokens, allowed_tokens), (Some(observed), Some(allowed)), "{body}");
    }
}

#[test]
fn the_three_patterns_of_seed_000() {
    for body in ["An API error occurred: msg_too_long", "Prompt is too long", "the context limit was exceeded"] {
        assert_eq!(of(Some(400), body).class(), "context_overflow", "{body}");
        assert_eq!(of(None, body).class(), "context_overflow", "{body}");
    }
}

#[test]
fn what_only_looks_like_an_overflow() {
    for (status, body, class) in [
        (Some(429), "your context tokens exceed the limit", "rate_limited"),
        (None, "Too many tokens, please wait before trying again.", "rate_limited"),
        (None, "request reached the TPM rate limit, context tokens exceeded", "rate_limited"),
        (Some(503), "the context exceeded", "overloaded"),
        (None, "context deadline exceeded", "other"),
        (None, "context\nexceed", "other"),
        (Some(400), "insufficient credits: context tokens exceed your plan", "billing"),
        (Some(400), "Output blocked by content filtering policy: context exceeds what is allowed", "refused"),
        (Some(429), "Request too large on tokens per minute: Limit 8000, Requested 10", "rate_limited"),
        (Some(400), "prompt is below the minimum: 10 tokens > 5", "other"),
    ] {
        assert_eq!(of(status, body).class(), class, "{body}");
    }
}

#[test]
fn a_page_of_html_is_classified_by_its_status() {
    let page = "<html>\n<head><title>413 Request Entity Too Large</title></head></html>";
    let ModelError::Overflow { message, observed_tokens: None, .. } = of(Some(413), page) else {
        panic!("a body that is too large for the provider's door is too large a prompt");
    };
    assert_eq!(message, "status 413 without an explanation");
    assert_eq!(of(Some(502), "<html>Bad gateway</html>").class(), "overloaded");
    assert_eq!(of(Some(401), "").class(), "auth");
    assert_eq!(of(Some(302), "").class(), "other");
}

#[test]
fn a_long_message_is_cut_and_kept_on_one_line() {
    let ModelError::Other { message } = of(Some(400), &"長\n".repeat(1_000)) else { panic!("other") };
    assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS + 1);
    assert!(!message.contains('\n'));
}

#[test]
fn waits_are_read_in_both_forms() {
    let now: Timestamp = "2015-10-21T07:27:30Z".parse().expect("a time");
    assert_eq!(retry_after("30", now), Some(Duration::from_secs(30)));
    assert_eq!(retry_after(" 0.5 ", now), Some(Duration::from_millis(500)));
    assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_secs(30)));
    assert_eq!(retry_after("Wed, 21 Oct 2015 07:20:00 GMT", now), Some(Duration::ZERO));
    for nonsense in ["", "-1", "soon", "NaN", "inf", "1e40"] {
        assert_eq!(retry_after(nonsense, now), None, "{nonsense}");
    }
}

proptest! {
    #[test]
    fn any_body_has_a_class(status in prop::option::of(100u16..600), body in "(\\PC|context|exceed|prompt is too long|>|9){0,60}") {
        let error = of(status, &body);
        if let ModelError::Overflow { observed_tokens: Some(observed), allowed_tokens: Some(allowed), .. } = error {
            prop_assert!(observed > allowed);
        }
    }
}
