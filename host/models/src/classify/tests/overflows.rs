//! Providers' messages about a prompt that is too long, with the numbers they contain.

use super::*;

/// Provider, status, body, observed and allowed tokens.
pub(super) type Case = (&'static str, Option<u16>, &'static str, Option<u64>, Option<u64>);

const CASES: &[Case] = &[
    // Anthropic
    (
        "anthropic-api",
        Some(400),
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 204,001 tokens > 200,000 maximum"}}"#,
        Some(204_001),
        Some(200_000),
    ),
    (
        "anthropic-api",
        Some(400),
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease either",
        Some(222_000),
        Some(200_000),
    ),
    ("proxy", None, "input length and max_tokens exceed context limit (i.e 7 + 4 > 10)", Some(11), Some(10)),
    (
        "anthropic-api",
        Some(413),
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        None,
        None,
    ),
    ("anthropic-api", Some(413), "<html><title>Payload Too Large</title></html>", None, None),
    (
        "anthropic-api",
        Some(200),
        r#"{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":3}}"#,
        None,
        None,
    ),
    ("anthropic-api", Some(400), "Request size exceeds model context window", None, None),
    // `claude`
    (
        "claude-cli",
        None,
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"terminal_reason":"prompt_too_long","result":"Prompt is too long · the request is ~350,000 tokens (limit 200000)"}"#,
        Some(350_000),
        Some(200_000),
    ),
    ("claude-cli", None, "Prompt is too long", None, None),
    ("claude-cli", Some(413), "Request too large (max 32MB). Go back and try with a smaller file.", None, None),
    // OpenAI and Azure
    (
        "openai",
        Some(400),
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        Some(9_001),
        Some(8_192),
    ),
    ("openai", Some(400), r#"{"error":{"code":"context_length_exceeded"}}"#, None, None),
    (
        "openai",
        None,
        r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":null}}}"#,
        None,
        None,
    ),
    ("openai", None, "Your input exceeds the context window of this model. Please shorten it.", None, None),
    (
        "openai",
        Some(400),
        "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300123 tokens. Please reduce the length of the messages.",
        Some(300_123),
        Some(272_000),
    ),
    (
        "codex",
        None,
        "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
        None,
        None,
    ),
    (
        "azure",
        Some(400),
        r#"{"error":{"code":"content_filter","message":"The prompt is too long for the filter"}}"#,
        None,
        None,
    ),
    // Google
    (
        "google",
        Some(400),
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        Some(1_200_000),
        Some(1_048_576),
    ),
    ("vertex", Some(404), "INVALID_ARGUMENT: input exceeds the maximum number of tokens", None, None),
    ("vertex", None, "HTTP 404: INVALID_ARGUMENT: input exceeds the maximum number of tokens", None, None),
    // Amazon
    ("bedrock", Some(400), "ValidationException: The input is too long for the model", None, None),
    ("bedrock", None, "ValidationException: Input is too long for requested model.", None, None),
    ("bedrock", None, "ModelStreamErrorException: Input is too long for this model", None, None),
    ("bedrock-mantle", Some(400), "prompt tokens (9000) exceed model maximum (8192)", Some(9_000), Some(8_192)),
    // Mistral, Groq, OpenRouter, Poolside, Together, xAI, Cohere
    (
        "mistral",
        Some(400),
        r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}"#,
        Some(40_000),
        Some(32_768),
    ),
    ("mistral", Some(400), "the number of tokens in the prompt exceeds what is possible", None, None),
    ("mistral", Some(400), "", None, None),
    ("groq", Some(400), "Please reduce the length of the messages or completion.", None, None),
    (
        "groq",
        Some(413),
        r#"{"error":{"message":"Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 8098, please reduce your message size","type":"tokens","code":"rate_limit_exceeded"}}"#,
        Some(8_098),
        Some(8_000),
    ),
    (
        "openai",
        Some(429),
        "Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000.",
        Some(45_000),
        Some(30_000),
    ),
    (
        "openrouter",
        Some(400),
        "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000 tokens (60000 of text input, 10000 in the output).",
        Some(70_000),
        Some(65_536),
    ),
    (
        "openrouter",
        Some(400),
        "The prompt exceeds the maximum allowed input length of 131072 tokens",
        None,
        Some(131_072),
    ),
    (
        "together",
        Some(400),
        r#"{"error":{"message":"The input (9000 tokens) is longer than the model's context length (8192 tokens)."}}"#,
        Some(9_000),
        Some(8_192),
    ),
    (
        "xai",
        Some(400),
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        Some(140_000),
        Some(131_072),
    ),
    ("cohere", Some(400), "total tokens exceeds the model's maximum limit of 4096", None, Some(4_096)),
    (
        "cohere",
        Some(400),
        r#"{"message":"too many tokens: the total number of tokens in the prompt exceeds the limit of 4081"}"#,
        None,
        Some(4_081),
    ),
    // Self-hosted servers.
    ("deepseek", Some(400), "This model's maximum context length is 131072 tokens.", None, Some(131_072)),
    (
        "vllm",
        Some(400),
        "maximum context length is 4096 tokens. However, you requested 200 output tokens and your prompt contains at least 3897 input tokens, for a total of at least 4097 tokens.",
        Some(4_097),
        Some(4_096),
    ),
    ("vllm", Some(400), "context length is only 2048 tokens", None, Some(2_048)),
    ("vllm", Some(400), "input length (5000 tokens) exceeds the context length (4096)", Some(5_000), Some(4_096)),
    (
        "hf-tgi",
        Some(422),
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 32000 `inputs` tokens and 1024 `max_new_tokens`","error_type":"validation"}"#,
        Some(33_024),
        Some(32_768),
    ),
    ("hf-tgi", Some(422), "`inputs` must have less than 32768 tokens. Given: 40000", Some(40_000), Some(32_768)),
    (
        "llama.cpp",
        Some(500),
        "request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it",
        Some(66_202),
        Some(65_536),
    ),
    (
        "llama.cpp",
        Some(400),
        r#"{"error":{"code":400,"message":"too much","type":"exceed_context_size_error","n_prompt_tokens":70000,"n_ctx":65536}}"#,
        Some(70_000),
        Some(65_536),
    ),
    // The limit includes the room for the answer, so the prompt alone may be smaller.
    (
        "llama.cpp",
        Some(400),
        "request (130000 tokens) exceeds available context size (131072 tokens)",
        Some(130_000),
        Some(131_072),
    ),
    (
        "llama.cpp",
        Some(500),
        r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
        None,
        None,
    ),
    (
        "llama.cpp",
        None,
        r#"server error (500): {"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
        None,
        None,
    ),
    ("llama.cpp", None, "500 Context size has been exceeded.", None, None),
    ("llama.cpp", Some(400), "Context size has been exceeded.", None, None),
    (
        "lm-studio",
        Some(400),
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        None,
        None,
    ),
    (
        "lm-studio",
        None,
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
        Some(9_000),
        Some(4_096),
    ),
    ("ollama", Some(400), "prompt too long; exceeded max context length by 12 tokens", None, None),
    ("ollama", None, "ollama error: context length exceeded, too many tokens", None, None),
    (
        "ds4",
        Some(400),
        "Prompt has 256468 tokens, but the configured context size is 256000 tokens",
        Some(256_468),
        Some(256_000),
    ),
    // Other hosted providers.
    ("cerebras", Some(413), "413 status code (no body)", None, None),
    ("cerebras", Some(400), "400 status code (no body)", None, None),
    ("api.cerebras.ai", Some(400), "", None, None),
    ("cerebras", Some(400), "Current length is 9000 while limit is 8192", Some(9_000), Some(8_192)),
    (
        "github-copilot",
        Some(400),
        "prompt token count of 140000 exceeds the limit of 128000",
        Some(140_000),
        Some(128_000),
    ),
    (
        "minimax",
        Some(200),
        r#"{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}"#,
        None,
        None,
    ),
    ("minimax", Some(400), "invalid params, context window exceeds limit (2013)", None, None),
    (
        "moonshot",
        Some(400),
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        Some(291_351),
        Some(262_144),
    ),
    (
        "zai",
        Some(400),
        r#"{"error":{"code":"1210","message":"tokens in request more than max tokens allowed"}}"#,
        None,
        None,
    ),
    ("zai", Some(400), r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#, None, None),
    ("dashscope", Some(400), "Range of input length should be [1, 30720]", None, Some(30_720)),
    ("proxy", Some(400), r#"{"error":{"message":"上下文过长，请减少输入"}}"#, None, None),
    ("proxy", None, "错误：上下文过长，请减少输入", None, None),
    ("proxy", None, "上下文超出限制", None, None),
    ("proxy", None, "上下文长度超出模型最大限制", None, None),
    ("proxy", None, "超出最大上下文长度", None, None),
    ("proxy", None, "请压缩上下文后重试", None, None),
    ("replicate", None, "input is too long", None, None),
    // The patterns of specification 000 §2.1 for a model call
    ("claude-cli", None, "An API error occurred: msg_too_long", None, None),
    ("openai", None, r#"{"ok":false,"error":"msg_too_long"}"#, None, None),
    ("claude-cli", None, "the context limit was exceeded", None, None),
    // Only numbers, where the request was at fault.
    ("new", Some(400), r#"{"error":{"message":"Requested 9000 tokens, limit 8192"}}"#, Some(9_000), Some(8_192)),
    ("new", Some(422), "Token sequence length exceeds limit (5000 > 4096)", Some(5_000), Some(4_096)),
    ("new", Some(400), r#"{"detail":[{"msg":"conversation too long, start another one"}]}"#, None, None),
    ("llama-cpp-python", None, "Requested tokens (8193) exceed context window of 8192", Some(8_193), Some(8_192)),
    // Overrides a status that says something else, because waiting never helps.
    ("proxy", Some(500), "upstream: prompt is too long: 12 tokens > 10 maximum", Some(12), Some(10)),
    ("proxy", Some(429), "prompt is too long: 12 tokens > 10 maximum", Some(12), Some(10)),
];

#[test]
fn every_provider_s_overflow_is_one_with_its_numbers() {
    all_overflow(CASES);
}

pub(super) fn all_overflow(cases: &[Case]) {
    for &(provider, status, body, observed, allowed) in cases {
        let error = classify(&Failed { provider, status, body, ..Failed::default() });
        let ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } = error.class else {
            panic!("{provider} {status:?} {body}: {}", error.class.name());
        };
        assert_eq!((observed_tokens, allowed_tokens), (observed, allowed), "{provider} {status:?} {body}");
    }
}

#[test]
fn json_in_a_text_in_json_is_found() {
    let mut body =
        r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 12 tokens > 10 maximum"}}"#
            .to_owned();
    for _ in 0..6 {
        body = serde_json::json!({"error": {"message": format!("upstream said: {body}")}}).to_string();
    }
    let ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } = of(Some(502), &body).class else {
        panic!("the numbers are in there");
    };
    assert_eq!((observed_tokens, allowed_tokens), (Some(12), Some(10)));
    // A code at the maximum depth, and one level below.
    for (wraps, wanted) in [(body::MAX_DEPTH, "context_overflow"), (body::MAX_DEPTH + 1, "unknown_model")] {
        let mut body = r#"{"code":"exceed_context_size_error"}"#.to_owned();
        for _ in 0..wraps {
            body = serde_json::json!({"message": body}).to_string();
        }
        assert_eq!(class(Some(404), &body), wanted, "{wraps}");
    }
}

#[test]
fn an_openrouter_error_says_what_the_provider_said() {
    let raw = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 12 tokens > 10 maximum"}}"#;
    let body =
        serde_json::json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}});
    assert_eq!(class(Some(400), &body.to_string()), "context_overflow");
}
