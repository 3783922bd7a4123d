//! Refusals that say nothing, and those that say enough.

use super::*;

#[test]
fn a_refused_request_in_words_that_nothing_explains() {
    for (status, body) in [
        (Some(400), ""),
        (Some(400), "Bad request"),
        (Some(422), r#"{"detail":"unprocessable"}"#),
        (Some(400), r#"{"error":{"message":"the wombat is full (7013 of 4096)","type":"invalid_request_error"}}"#),
        (Some(400), "<html><head><title>400 Bad Request</title></head></html>"),
        // Inside a stream.
        (None, r#"{"type":"error","error":{"type":"invalid_request_error","message":"wombat overfed"}}"#),
        (None, r#"{"error":{"message":"wombat overfed"}}"#),
        (Some(200), r#"{"error":{"message":"wombat overfed","code":400}}"#),
    ] {
        assert_eq!(class(status, body), "unexplained", "{status:?} {body}");
    }
}

#[test]
fn a_fault_that_is_named_is_explained() {
    let invalid = |message: &str| openai("invalid_request_error", None, message);
    for (body, wanted) in [
        (invalid("The model `gpt-9` does not exist or you do not have access to it."), "other"),
        (invalid("gpt-nonsense is not a valid model ID"), "other"),
        (invalid("Model Not Exist"), "other"),
        (invalid("模型 qwen-9 不存在"), "other"),
        (openai("invalid_request_error", Some("model_not_found"), "no"), "other"),
        (invalid("Unsupported parameter: 'top_k'"), "other"),
        (invalid("Range of max_tokens should be [1, 8192]"), "other"),
        (invalid("Invalid schema for function 'mra_ask': None is not of type 'object'"), "other"),
        (anthropic("invalid_request_error", "tools.0.custom.input_schema: JSON schema is invalid"), "other"),
        (anthropic("invalid_request_error", "metadata: Extra inputs are not permitted"), "other"),
        (anthropic("authentication_error", "no"), "auth"),
        (openai("insufficient_quota", Some("insufficient_quota"), "no"), "billing"),
        (openai("x", Some("content_filter"), "no"), "refused"),
        // What may be about size all the same is left to be found out.
        (invalid("prompt and max_tokens together should be smaller"), "unexplained"),
    ] {
        assert_eq!(class(Some(400), &body), wanted, "{body}");
    }
}

#[test]
fn only_a_refusal_of_the_request_is_one() {
    for (status, body) in [
        (None, "Bad request"),
        (None, ""),
        (Some(200), "<html>Log in to the Wi-Fi</html>"),
        (Some(302), ""),
        (Some(404), "no"),
        (Some(409), "no"),
        (Some(418), "no"),
    ] {
        assert_eq!(class(status, body), "other", "{status:?} {body}");
    }
    assert_eq!(class(Some(500), "no"), "overloaded");
}
