//! The output of `claude -p --output-format stream-json`, as steps of a script.
//!
//! In addition to the general steps: `answer TEXT` (with `\n` for a line feed) and `failure STATUS`, for 400 (prompt
//! too long), 401, 413, 429 and 529.

use serde_json::{Value, json};

use super::{Call, Step};

/// The real `claude` puts a file that the prompt mentions into its request, by `@` and a path at the beginning of a word,
/// unless told otherwise (2.1.330, against a server of our own that keeps the requests).
pub fn reads_a_file(call: &Call) -> Option<String> {
    if call.environment.get("CLAUDE_CODE_DISABLE_ATTACHMENTS").is_some_and(|set| set == "1") {
        return None;
    }
    let words = call.stdin.split(char::is_whitespace).filter_map(|word| word.strip_prefix('@'));
    let mut files = words.map(|path| call.directory.join(path.trim_matches(['"', '?', '.', ',', ')'])));
    let file = files.find(|file| file.is_file())?;
    Some(format!("`{}` would be read into the request", file.display()))
}

/// Parses a line of a script.
///
/// # Errors
/// If the line is not a step; the error is a message.
pub fn step(line: &str) -> Result<Vec<Step>, String> {
    match line.split_once(' ') {
        Some(("answer", text)) => Ok(lines(&answer(&text.replace("\\n", "\n")))),
        Some(("failure", status)) => {
            let status = status.trim().parse().map_err(|error| format!("`{line}`: {error}"))?;
            let mut steps = lines(&failure(status)?);
            steps.push(Step::Exit(1));
            Ok(steps)
        }
        _ => Step::parse(line).map(|step| vec![step]),
    }
}

fn lines(events: &[Value]) -> Vec<Step> {
    events.iter().map(|event| Step::Out(event.to_string())).collect()
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s1", "model": "claude-sonnet-5", "tools": [],
           "mcp_servers": [], "apiKeySource": "none", "claude_code_version": "2.1.330"})
}

fn answer(text: &str) -> Vec<Value> {
    let event = |event: Value| json!({"type": "stream_event", "event": event, "session_id": "s1"});
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let delta = |text: &str| {
        event(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
    };
    let usage = json!({"input_tokens": 120, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 50,
                       "output_tokens": 9});
    vec![
        init(),
        json!({"type": "system", "subtype": "status", "status": "requesting"}),
        event(json!({"type": "message_start", "message": {"usage": {"input_tokens": 120, "output_tokens": 1}}})),
        event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
        delta(&text[..half]),
        delta(&text[half..]),
        event(json!({"type": "content_block_stop", "index": 0})),
        json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}],
               "stop_reason": null}, "session_id": "s1"}),
        event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}})),
        event(json!({"type": "message_stop"})),
        json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "result": text,
               "stop_reason": "end_turn", "terminal_reason": "completed", "session_id": "s1", "usage": usage,
               "modelUsage": {"claude-sonnet-5": {"contextWindow": 200_000, "maxOutputTokens": 32_000}}}),
    ]
}

/// A failure of the API has the subtype `success`, with `is_error` set, and exit code 1.
fn failure(status: u16) -> Result<Vec<Value>, String> {
    let (text, terminal_reason, error) = match status {
        400 => {
            ("Prompt is too long · the request is ~350000 tokens (limit 200000)", "prompt_too_long", "invalid_request")
        }
        401 => ("Invalid API key · Fix external API key", "completed", "authentication_failed"),
        413 => ("Request too large (max 32MB)", "image_error", "invalid_request"),
        429 => ("API Error: Request rejected (429) · try again later", "completed", "rate_limit"),
        529 => ("API Error: 529 Overloaded", "completed", "server_error"),
        other => return Err(format!("there is no failure {other}")),
    };
    Ok(vec![
        init(),
        json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1, "retry_delay_ms": 500,
               "error_status": status, "error": error}),
        json!({"type": "assistant", "error": error,
               "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}),
        json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": status, "result": text,
               "terminal_reason": terminal_reason, "usage": {"input_tokens": 0, "output_tokens": 0}, "modelUsage": {}}),
    ])
}
