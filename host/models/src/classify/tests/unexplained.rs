//! Refusals with and without a known reason.

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
        (invalid("The model `gpt-9` does not exist or you do not have access to it."), "unknown_model"),
        (invalid("gpt-nonsense is not a valid model ID"), "unknown_model"),
        (invalid("Model Not Exist"), "unknown_model"),
        (invalid("模型 qwen-9 不存在"), "unknown_model"),
        (openai("invalid_request_error", Some("model_not_found"), "no"), "unknown_model"),
        (invalid("Unsupported parameter: 'top_k'"), "other"),
        (invalid("Range of max_tokens should be [1, 8192]"), "other"),
        (invalid("Invalid schema for function 'mra_ask': None is not of type 'object'"), "other"),
        (anthropic("invalid_request_error", "tools.0.custom.input_schema: JSON schema is invalid"), "other"),
        (anthropic("invalid_request_error", "metadata: Extra inputs are not permitted"), "other"),
        (anthropic("authentication_error", "no"), "auth"),
        (openai("insufficient_quota", Some("insufficient_quota"), "no"), "billing"),
        (openai("x", Some("content_filter"), "no"), "refused"),
        // What may be about size nevertheless stays unexplained, so that it is probed.
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
        (Some(409), "no"),
        (Some(418), "no"),
    ] {
        assert_eq!(class(status, body), "other", "{status:?} {body}");
    }
    assert_eq!(class(Some(500), "no"), "overloaded");
    assert_eq!(class(Some(404), "no"), "unknown_model");
}

#[test]
fn a_server_without_tools_says_so_in_its_own_words() {
    for (status, body) in [
        // Ollama uses `api_error` for everything.
        (Some(400), openai("api_error", None, "registry.ollama.ai/library/gemma3:latest does not support tools")),
        (None, openai("api_error", None, "gemma3 does not support tools")),
        (
            Some(400),
            r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}"#.into(),
        ),
        (Some(500), r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#.into()),
        (Some(404), openai("x", None, "No endpoints found that support tool use.")),
        (Some(400), openai("x", None, "Unrecognized request argument supplied: tools")),
        (Some(400), openai("x", None, "`tool_use` is not supported by this model")),
        (Some(400), openai("x", None, "该模型不支持工具调用")),
        (Some(422), anthropic("invalid_request_error", "tools: Extra inputs are not permitted")),
    ] {
        assert_eq!(class(status, &body), "no_tools", "{status:?} {body}");
    }
    for (status, body, wanted) in [
        (Some(400), "tools.0.custom.input_schema: `oneOf` is not supported", "other"),
        (Some(401), "this key does not support tools", "auth"),
        (Some(429), "too many requests: tools are not available now", "rate_limited"),
        (None, "I think that the model does not support tools, why?", "other"),
    ] {
        assert_eq!(class(status, body), wanted, "{status:?} {body}");
    }
}

/// Once, people read that the model is unknown, or too busy, and admins were told.
#[test]
fn a_server_that_takes_no_images_was_taken_for_one_that_is_busy_or_without_the_model() {
    let llama = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj";
    let llama = serde_json::json!({"error": {"code": 500, "message": llama, "type": "server_error"}});
    for (status, body, wanted) in [
        (Some(500), llama.to_string(), "other"),
        (Some(500), openai("api_error", None, "this model is missing data required for image input"), "other"),
        (
            Some(404),
            r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#.into(),
            "other",
        ),
        (Some(400), openai("x", None, "llama-4 does not support image inputs"), "other"),
        (Some(400), openai("x", None, "该模型不支持图片输入"), "other"),
        (Some(401), openai("x", None, "this key does not support images"), "auth"),
        (Some(429), openai("x", None, "too many requests: images are not supported now"), "rate_limited"),
        (Some(500), openai("x", None, "the image could not be stored"), "overloaded"),
    ] {
        assert_eq!(class(status, &body), wanted, "{status:?} {body}");
    }
}

#[test]
fn a_model_that_is_not_there_is_no_overload() {
    let ollama = openai("api_error", None, "model \"llama9\" not found, try pulling it first");
    for (status, body, wanted) in [
        (Some(404), ollama.as_str(), "unknown_model"),
        (None, ollama.as_str(), "unknown_model"),
        (Some(404), "404 page not found", "unknown_model"),
        (Some(400), r#"{"error":{"type":"api_error","message":"no"}}"#, "unexplained"),
        (Some(400), r#"{"error":{"type":"overloaded_error","message":"no"}}"#, "overloaded"),
        (Some(503), "model not found: loading", "overloaded"),
    ] {
        assert_eq!(class(status, body), wanted, "{status:?} {body}");
    }
}
