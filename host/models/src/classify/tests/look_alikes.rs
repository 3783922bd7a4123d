//! Messages that only look like an overflow.

use super::*;

/// Provider, status, body, class.
type Case = (&'static str, Option<u16>, &'static str, &'static str);

const CASES: &[Case] = &[
    // Rates
    ("bedrock", None, "ThrottlingException: Too many tokens, please wait before trying again.", "rate_limited"),
    ("bedrock", Some(400), "Too many tokens, please wait before trying again.", "rate_limited"),
    ("bedrock", None, "AWS Bedrock: Too many tokens per day. Please try again tomorrow.", "rate_limited"),
    ("moonshot", None, "request reached organization TPD rate limit, current: 1506556, limit: 1500000", "rate_limited"),
    ("anthropic-api", None, "This request would exceed your account's rate limit.", "rate_limited"),
    ("openai", Some(429), "your context tokens exceed the limit", "rate_limited"),
    ("openai", None, "request reached the TPM rate limit, context tokens exceeded", "rate_limited"),
    (
        "groq",
        Some(429),
        "Rate limit reached on tokens per minute (TPM): Limit 8000, Used 7500, Requested 1000, please try again in 3.5s",
        "rate_limited",
    ),
    (
        "groq",
        Some(413),
        "Request too large on tokens per minute (TPM): Limit 8000, please reduce your message size",
        "rate_limited",
    ),
    (
        "groq",
        Some(429),
        "requests per minute (RPM): Limit 30, Requested 100. See the tokens per minute (TPM) page",
        "rate_limited",
    ),
    ("google", Some(429), r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#, "rate_limited"),
    (
        "google",
        Some(429),
        r#"{"error":{"message":"You exceeded your current quota","details":[{"retryDelay":"9s"}]}}"#,
        "rate_limited",
    ),
    ("zai", None, "请求过于频繁，请稍后重试", "rate_limited"),
    // Load and servers
    ("openai", Some(503), "the context exceeded", "overloaded"),
    ("openai", Some(500), "prompt is too long", "overloaded"),
    ("openai", Some(599), "", "overloaded"),
    ("openai", Some(503), "<title>503</title><p>Rate limit exceeded.</p>", "overloaded"),
    (
        "anthropic-api",
        None,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        "overloaded",
    ),
    ("claude-cli", None, "API Error: 529 Overloaded", "overloaded"),
    ("together", None, "503 Engine Overloaded: try later", "overloaded"),
    ("proxy", None, "service unavailable due to capacity limits", "overloaded"),
    // Time and the connection
    ("proxy", None, "context deadline exceeded", "timeout"),
    ("proxy", Some(408), "", "timeout"),
    ("proxy", None, "Error: connect ETIMEDOUT 10.0.0.1:443", "timeout"),
    ("proxy", None, "socket hang up", "transport"),
    ("proxy", None, "network error: ECONNREFUSED", "transport"),
    // Money and credentials
    ("openrouter", Some(400), "insufficient credits: context tokens exceed your plan", "billing"),
    ("proxy", Some(400), "maximum token limit exceeded", "billing"),
    (
        "openrouter",
        Some(402),
        "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens",
        "billing",
    ),
    ("openai", Some(401), "the context window was exceeded", "auth"),
    ("google", Some(400), "API key not valid. Please pass a valid API key.", "auth"),
    // Refusals, whatever they mention
    (
        "anthropic-api",
        Some(400),
        "Output blocked by content filtering policy: context exceeds what is allowed",
        "refused",
    ),
    (
        "anthropic-api",
        Some(200),
        r#"{"type":"message","stop_reason":"refusal","stop_details":{"explanation":"A context overflow exploit: prompt is too long"}}"#,
        "refused",
    ),
    ("openai", Some(400), "I can't help with that context overflow: prompt is too long: 12 tokens > 10", "refused"),
    (
        "azure",
        Some(400),
        r#"{"error":{"code":"content_filter","message":"The prompt triggered the content management policy; the input exceeded a threshold"}}"#,
        "refused",
    ),
    ("openrouter", Some(403), "your input was flagged: it exceeds the context window", "refused"),
    // Other limits
    (
        "openai",
        Some(400),
        r#"{"error":{"message":"Invalid 'user': string too long. Expected a string with maximum length 64, but got 123.","code":"string_above_max_length"}}"#,
        "other",
    ),
    ("openai", Some(400), r#"{"error":{"message":"the input is too long","code":"string_above_max_length"}}"#, "other"),
    ("anthropic-api", Some(400), "max_tokens: 9 > 8, which is the maximum allowed number of output tokens", "other"),
    (
        "openai",
        Some(400),
        "max_tokens is too large: 40000. This model supports at most 16384 completion tokens, whereas you provided 40000.",
        "other",
    ),
    ("anthropic-api", Some(400), "messages.0.content.1.image: image exceeds 5 MB maximum", "other"),
    ("openai", Some(400), "prompt is below the minimum: 10 tokens > 5", "unexplained"),
    ("openrouter", Some(400), "Reasoning is mandatory for this endpoint and cannot be disabled.", "other"),
    ("openclaw", Some(400), "Model context window too small (4096 tokens). Minimum is 16000.", "other"),
    ("openclaw", None, "context window too small: minimum is 1000 tokens", "other"),
    (
        "dashscope",
        Some(400),
        "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
        "other",
    ),
    ("dashscope", Some(400), "<429> InternalError.Algo: Requests rate limit exceeded", "rate_limited"),
    ("proxy", Some(400), "请求每分钟token数超过限制(10000)，当前 12000", "rate_limited"),
    ("proxy", Some(400), "當前請求過於頻繁", "rate_limited"),
    ("vllm", Some(400), "max_tokens (9000) must be less than max_seq_len (8192)", "other"),
    ("proxy", Some(400), "prompt name must be less than 64 characters", "unexplained"),
    ("proxy", Some(413), "request size exceeds upload limit", "other"),
    ("proxy", Some(400), "request size exceeds upload limit", "other"),
    (
        "lm-studio",
        Some(400),
        "Error rendering prompt with jinja template: cannot filter. You can override the prompt template in model settings.",
        "other",
    ),
    ("openai", Some(400), "Invalid token in header", "unexplained"),
    ("openai", Some(400), "Invalid prompt: 'why do I get a 429 from this?'", "unexplained"),
    ("openai", Some(400), "", "unexplained"),
    // Slack is no model
    ("slack", None, "An API error occurred: msg_too_long", "other"),
    ("slack", Some(200), r#"{"ok":false,"error":"msg_too_long"}"#, "other"),
    ("slack", Some(200), r#"{"ok":false,"error":"invalid_auth"}"#, "auth"),
    ("slack", Some(429), r#"{"ok":false,"error":"ratelimited"}"#, "rate_limited"),
];

#[test]
fn what_only_looks_like_an_overflow_is_none() {
    for &(provider, status, body, wanted) in CASES {
        let error = classify(&Failed { provider, status, body, ..Failed::default() });
        assert_eq!(error.class.name(), wanted, "{provider} {status:?} {body}");
    }
}

/// Once, only a wait with a field or a header of its own was heeded: a quota per minute was reported to the admins as
/// missing money, and the model was not asked again.
#[test]
fn a_quota_whose_wait_is_only_in_its_words_is_no_missing_money() {
    let quota = "You exceeded your current quota, please check your plan and billing details.";
    let per_minute = serde_json::json!({"error": {"message": format!("{quota}\nPlease retry in 36.5s.")}}).to_string();
    let wanted = ErrorClass::RateLimited { retry_after: Some(Duration::from_millis(36_500)) };
    for status in [Some(429), Some(400), None] {
        assert_eq!(of(status, &per_minute).class, wanted, "{status:?}");
        assert_eq!(class(status, quota), "billing", "{status:?}");
    }
}

/// Sentences of people and models. None is an error message, whatever the status.
const PROSE: &[&str] = &[
    "Let's investigate the context overflow bug.",
    "let us investigate the context overflow bug",
    "A context window is how much text a model can look at, and once a conversation exceeds the context window, the oldest messages are left out.",
    "If your input exceeds the context window, the provider answers with `prompt is too long`.",
    "When the prompt is too long, I usually start a new thread.",
    "Why is the prompt too long? How can we make it shorter?",
    "I think the maximum context length is 4096 tokens, so my 5,000 tokens were too many.",
    "The professor said that the input is too long for the model.",
    "Imagine a context length of only 2048 tokens: people would not get far.",
    "We asked for 9000 tokens, and the limit is 8000.",
    "當上下文過長時，模型會忘記我們說過的話。",
    "如果超出最大上下文，我們就開新的討論串。",
    "当输入超过模型的最大上下文时，它会报错。",
    "當前面的上下文過長時，我會開新的討論串。",
    "模型會忘記舊的話，如果上下文過長。",
];

#[test]
fn prose_about_context_windows_is_never_an_overflow() {
    for prose in PROSE {
        for (status, wanted) in [(None, "other"), (Some(200), "other"), (Some(400), "unexplained")] {
            assert_eq!(class(status, prose), wanted, "{status:?} {prose}");
        }
    }
}

#[test]
fn a_long_answer_about_money_and_windows_is_nothing_at_all() {
    let answer = "Billing works by the token. An account with insufficient credits gets an error, and so does a \
                  prompt that is too long for the model. Context length exceeded: so it may say. "
        .repeat(5);
    assert_eq!(class(None, &answer), "other");
    assert_eq!(class(Some(200), &answer), "other");
    let answered = serde_json::json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "prompt is too long: 12 tokens > 10 maximum"}]});
    assert_eq!(class(Some(200), &answered.to_string()), "other");
    assert_eq!(class(None, &answered.to_string()), "other");
}
