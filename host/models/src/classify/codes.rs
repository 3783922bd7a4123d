//! The meaning of typed codes. Codes are compared in lower case.

/// The meaning of one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The prompt is too long, whatever else is said.
    Overflow,
    /// The model, or a filter before it, declined.
    Refusal,
    /// As if the response had this status.
    Status(u16),
}

/// The meaning of a code; `None` if it does not determine the class.
pub(super) fn meaning(code: &str) -> Option<Meaning> {
    TABLE.iter().find(|(codes, _)| codes.contains(&code)).map(|&(_, meaning)| meaning)
}

/// Whether a code names an error in a request that has nothing to do with its size.
pub(super) fn names_a_fault(code: &str) -> bool {
    FAULTS.contains(&code)
}

/// Codes of OpenAI, Anthropic, and compatible servers.
const FAULTS: &[&str] = &[
    "invalid_function_parameters",
    "invalid_image",
    "invalid_json",
    "missing_required_parameter",
    "string_above_max_length",
    "unknown_parameter",
    "unsupported_parameter",
    "unsupported_value",
];

/// Codes of Anthropic, OpenAI, Azure, Google, AWS, GitHub, Moonshot, llama.cpp, `claude` and Slack.
const TABLE: &[(&[&str], Meaning)] = &[
    (
        &[
            "context_length_exceeded",
            "context_overflow",
            "context_window_exceeded",
            "contextwindowexceedederror",
            "exceed_context_size_error",
            "input_context_length_exceeded",
            "model_context_window_exceeded",
            "model_max_prompt_tokens_exceeded",
            "msg_too_long",
            "prompt_too_long",
            "request_too_large",
            "tokens_limit_reached",
        ],
        Meaning::Overflow,
    ),
    (
        &[
            "blocklist",
            "content_filter",
            "content_filtered",
            "content_policy_violation",
            "image_safety",
            "moderation_blocked",
            "prohibited_content",
            "refusal",
            "responsibleaipolicyviolation",
            "safety",
            "spii",
        ],
        Meaning::Refusal,
    ),
    (
        &[
            "account_inactive",
            "authentication_error",
            "authentication_failed",
            "authenticationerror",
            "expiredtokenexception",
            "invalid_api_key",
            "invalid_auth",
            "invalid_authentication",
            "not_authed",
            "token_expired",
            "token_revoked",
            "unauthenticated",
            "unauthorized",
            "unrecognizedclientexception",
        ],
        Meaning::Status(401),
    ),
    (
        &[
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_balance",
            "insufficient_credits",
            "insufficient_quota",
            "payment_required",
        ],
        Meaning::Status(402),
    ),
    (
        &["accessdeniedexception", "forbidden", "permission_denied", "permission_error", "permissiondeniederror"],
        Meaning::Status(403),
    ),
    (
        &[
            "quota_exceeded",
            "rate_limit",
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limit_reached_error",
            "rate_limited",
            "ratelimited",
            "ratelimiterror",
            "resource_exhausted",
            "servicequotaexceededexception",
            "throttlingexception",
            "too_many_requests",
            "toomanyrequestsexception",
        ],
        Meaning::Status(429),
    ),
    (&["modeltimeoutexception", "request_timeout", "timeout", "timeout_error"], Meaning::Status(408)),
    (
        &[
            "api_error",
            "internal",
            "internal_error",
            "internal_server_error",
            "internalservererror",
            "internalserverexception",
            "server_error",
        ],
        Meaning::Status(500),
    ),
    (
        &[
            "engine_overloaded",
            "engine_overloaded_error",
            "modelnotreadyexception",
            "overloaded",
            "overloaded_error",
            "service_unavailable",
            "serviceunavailableexception",
            "unavailable",
        ],
        Meaning::Status(503),
    ),
    (
        &[
            "bad_request_error",
            "badrequesterror",
            "invalid_argument",
            "invalid_request",
            "invalid_request_error",
            "modelstreamerrorexception",
            "validation_error",
            "validationexception",
        ],
        Meaning::Status(400),
    ),
];
