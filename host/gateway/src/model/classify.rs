//! What a provider's refusal means.
//!
//! Only what a model call answered is classified here, never what people or models write: prose about
//! context windows is not an overflow. The order matters and is that of [`classify`]: a typed
//! overflow code, explicit token numbers, other typed codes, the status, words about rates and money,
//! refusals, words about size, words about tool history.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::ModelError;

/// The most of a provider's words that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// A call that failed at the provider.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// The HTTP status; `None` where the error came inside a stream.
    pub status: Option<u16>,
    /// What the `retry-after` header asked for.
    pub retry_after: Option<Duration>,
    /// The body as it came: JSON, or whatever a proxy made of it.
    pub body: &'a str,
}

/// Says what kind of failure it was.
pub fn classify(failed: &Failed<'_>) -> ModelError {
    let (codes, text) = parse(failed.body);
    let message = shown(failed.status, &text);
    let retry_after = failed.retry_after;
    let words = text.to_lowercase().replace('`', "");

    let numbers = token_numbers(&words);
    if numbers.is_some() || codes.iter().any(|code| OVERFLOW_CODES.contains(&code.as_str())) {
        let (observed_tokens, allowed_tokens) = numbers.unzip();
        return ModelError::Overflow { observed_tokens, allowed_tokens, message };
    }
    for code in &codes {
        match code.as_str() {
            "authentication_error" | "permission_error" | "invalid_api_key" => return ModelError::Auth { message },
            "billing_error" | "insufficient_quota" => return ModelError::Billing { message },
            "rate_limit_error" | "rate_limit_exceeded" => return ModelError::RateLimited { retry_after, message },
            "overloaded_error" | "api_error" | "timeout_error" | "server_error" => {
                return ModelError::Overloaded { retry_after, message };
            }
            "content_filter" | "content_policy_violation" => return ModelError::Refused { message },
            _ => {}
        }
    }
    match failed.status {
        Some(401 | 403) => return ModelError::Auth { message },
        Some(402) => return ModelError::Billing { message },
        Some(413) => return ModelError::Overflow { observed_tokens: None, allowed_tokens: None, message },
        Some(429) => return ModelError::RateLimited { retry_after, message },
        Some(500..) => return ModelError::Overloaded { retry_after, message },
        _ => {}
    }
    if contains_any(&words, BILLING) {
        ModelError::Billing { message }
    } else if contains_any(&words, RATE_LIMIT) {
        ModelError::RateLimited { retry_after, message }
    } else if contains_any(&words, REFUSAL) {
        ModelError::Refused { message }
    } else if contains_any(&words, OVERFLOW) || words.lines().any(says_context_exceeded) {
        ModelError::Overflow { observed_tokens: None, allowed_tokens: None, message }
    } else if contains_any(&words, MALFORMED_HISTORY) {
        ModelError::MalformedHistory { message }
    } else {
        ModelError::Other { message }
    }
}

// All lower case and without backticks, as `classify` compares them.

/// Anthropic's, OpenAI's and llama.cpp's.
const OVERFLOW_CODES: &[&str] = &["request_too_large", "context_length_exceeded", "exceed_context_size_error"];

const BILLING: &[&str] = &["credit balance", "insufficient credit", "api usage limits"];

const RATE_LIMIT: &[&str] =
    &["rate limit", "too many requests", "per minute", "per day", "too many tokens, please wait"];

const REFUSAL: &[&str] = &["content filtering policy"];

/// Seed 000's patterns for a model call, and the words of providers that speak Anthropic's or OpenAI's
/// protocol.
const OVERFLOW: &[&str] = &[
    "msg_too_long",
    "prompt is too long",
    "exceed context limit",
    "exceeds model context window",
    "exceeds the context window",
    "exceeds the maximum size",
    "exceeds the available context size",
    "maximum context length",
    "maximum prompt length",
    "maximum allowed input length",
    "longer than the model's context length",
    "exceeded model token limit",
    "prompt exceeds max length",
    "input is too long",
    "reduce the length of the messages",
];

/// What stands before the numbers of such messages, more exact ones first.
const OBSERVED: &[&str] =
    &["resulted in", "requested about", "you requested", "requested:", "request contains", "request (", "the input ("];
const ALLOWED: &[&str] = &[
    "maximum context length is",
    "configured limit of",
    "available context size (",
    "maximum prompt length is",
    "model token limit:",
    "model's context length (",
];

const MALFORMED_HISTORY: &[&str] = &[
    "tool_use ids were found without tool_result blocks",
    "unexpected tool_use_id found in tool_result blocks",
    "each tool_use must have a single result",
    "tool_use ids must be unique",
    "must have a corresponding tool_use block",
    "roles must alternate",
    "first message must use the \"user\" role",
    "text content blocks must be non-empty",
    "text content blocks must contain non-whitespace text",
    "must have non-empty content",
    "must be followed by tool messages responding to each 'tool_call_id'",
    "must be a response to a preceeding message with 'tool_calls'",
    "must be a response to a preceding message with 'tool_calls'",
];

fn contains_any(words: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| words.contains(pattern))
}

/// Seed 000's `context.+exceed`, but for `context deadline exceeded`, which is how servers written in
/// Go report a timeout.
fn says_context_exceeded(line: &str) -> bool {
    line.split_once("context").is_some_and(|(_, rest)| {
        !rest.starts_with(" deadline exceeded") && rest.rfind("exceed").is_some_and(|at| at > 0)
    })
}

/// Observed and allowed tokens, where the provider names both and the first is the larger. Where it
/// adds the room for the answer to the prompt, so does the observed number.
fn token_numbers(words: &str) -> Option<(u64, u64)> {
    let of_prompt = words.split_once("prompt is too long").and_then(|(_, rest)| {
        let (observed, allowed) = rest.split_once('>')?;
        Some((first_number(observed)?, first_number(allowed)?))
    });
    let with_answer = || {
        let (_, rest) = words.split_once("exceed context limit")?;
        let (asked, allowed) = rest.split_once('>')?;
        let (prompt, answer) = asked.split_once('+')?;
        Some((first_number(prompt)?.checked_add(first_number(answer)?)?, first_number(allowed)?))
    };
    let of_compatible = || {
        let after = |marks: &[&str]| marks.iter().find_map(|mark| first_number(words.split_once(mark)?.1));
        Some((after(OBSERVED)?, after(ALLOWED)?))
    };
    // A request larger than what a minute allows: waiting never helps.
    let of_a_minute = || {
        let (_, rest) = words.split_once("request too large")?;
        let (_, rest) = rest.split_once("limit ")?;
        let (limit, requested) = rest.split_once("requested ")?;
        Some((first_number(requested)?, first_number(limit)?))
    };
    of_prompt
        .or_else(with_answer)
        .or_else(of_compatible)
        .or_else(of_a_minute)
        .filter(|(observed, allowed)| observed > allowed)
}

/// The first number in a text; thousands may be set apart by commas.
fn first_number(text: &str) -> Option<u64> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let digits: String =
        text[start..].chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The typed codes and the words of a body; the body itself where it is not the provider's JSON. Most wrap
/// an object in `error`; some servers put it at the top, or a mere text into `error`.
fn parse(body: &str) -> (Vec<String>, String) {
    let Ok(Value::Object(body_object)) = serde_json::from_str(body) else { return (Vec::new(), body.to_owned()) };
    let error = match body_object.get("error") {
        Some(Value::String(message)) => return (Vec::new(), message.clone()),
        Some(Value::Object(error)) => error,
        _ => &body_object,
    };
    let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
    let codes: Vec<String> = ["type", "code"].into_iter().filter_map(text).collect();
    let message = text("message").unwrap_or_else(|| if codes.is_empty() { body.to_owned() } else { String::new() });
    (codes, message)
}

/// One line for people: a page of HTML says nothing, so then the status does.
fn shown(status: Option<u16>, text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !text.is_empty() && !text.starts_with('<') {
        let short = pmk_core::text::head(&text, MAX_MESSAGE_CHARS);
        return if short.len() < text.len() { format!("{short}…") } else { text };
    }
    match status {
        Some(status) => format!("status {status} without an explanation"),
        None => "an error without an explanation".to_owned(),
    }
}

/// Reads a `retry-after` header: seconds, or an HTTP date; a date that has passed is no wait at all.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(header).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests;
