//! Parses the JSON lines that `claude` prints.
//!
//! The answer and every failure of the API are in the last line, of type `result`. A failure there has the subtype
//! `success`; only `is_error` shows it. Lines that are not JSON, and types introduced later, are skipped.

use std::{iter, mem};

use pmk_core::{Block, text};
use serde::Deserialize;
use serde_json::json;

use super::{MAX_SHOWN_CHARS, PROVIDER};
use crate::{
    Answer, ErrorClass, ModelError, Stop, Usage,
    classify::{Failed, classify},
    counts::{self, Count},
    error::MAX_ANSWER_BYTES,
};

/// The output so far.
#[derive(Debug, Default)]
pub struct Transcript {
    /// The kind of failure in a message of type `assistant`.
    failure: Option<String>,
    /// The token counts of the last message of type `assistant`.
    last: Option<Counted>,
    /// What the calls before the newest one have cost, by the events of their streams.
    earlier: Usage,
    /// What the newest call has cost so far.
    newest: Usage,
    result: Option<Outcome>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Assistant {
        error: Option<String>,
        #[serde(default, deserialize_with = "counts::lenient")]
        message: Said,
    },
    Result(Outcome),
    StreamEvent {
        #[serde(default, deserialize_with = "counts::lenient")]
        event: Streamed,
    },
    #[serde(other)]
    Unknown,
}

/// An event of the API, as `claude` receives it.
#[derive(Debug, Default, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Streamed {
    MessageStart {
        #[serde(default, deserialize_with = "counts::lenient")]
        message: Said,
    },
    MessageDelta {
        #[serde(default, deserialize_with = "counts::lenient")]
        usage: Counted,
    },
    #[default]
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    usage: Option<Counted>,
}

#[derive(Debug, Deserialize)]
struct Outcome {
    #[serde(default)]
    subtype: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    result: Option<String>,
    /// The reasons of a failure that has no `result`.
    #[serde(default, deserialize_with = "counts::lenient")]
    errors: Vec<String>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    terminal_reason: Option<String>,
    #[serde(default)]
    api_error_status: Option<u16>,
    #[serde(default, deserialize_with = "counts::lenient")]
    usage: Counted,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counted {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    output_tokens: Count,
}

impl Counted {
    fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.input_tokens.0.unwrap_or_default(),
            output_tokens: self.output_tokens.0.unwrap_or_default(),
            cache_read_tokens: self.cache_read_input_tokens.0.unwrap_or_default(),
            cache_creation_tokens: self.cache_creation_input_tokens.0.unwrap_or_default(),
        }
    }

    /// Replaces what was counted before by what is counted now.
    fn replace(&self, before: &mut Usage) {
        for (total, seen) in [
            (&mut before.input_tokens, self.input_tokens),
            (&mut before.output_tokens, self.output_tokens),
            (&mut before.cache_read_tokens, self.cache_read_input_tokens),
            (&mut before.cache_creation_tokens, self.cache_creation_input_tokens),
        ] {
            *total = seen.0.unwrap_or(*total);
        }
    }

    /// All that was sent.
    fn prompt(&self) -> u64 {
        let parts = [&self.input_tokens, &self.cache_creation_input_tokens, &self.cache_read_input_tokens];
        parts.iter().fold(0, |sum, part| part.0.unwrap_or_default().saturating_add(sum))
    }
}

impl Transcript {
    /// Processes one line.
    pub fn push(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(Line::Assistant { error, message }) => {
                self.failure = error.or(self.failure.take());
                self.last = message.usage.or(self.last.take());
            }
            Ok(Line::Result(result)) => self.result = Some(result),
            Ok(Line::StreamEvent { event: Streamed::MessageStart { message } }) => {
                self.earlier.add(mem::take(&mut self.newest));
                self.newest = message.usage.map(|counted| counted.usage()).unwrap_or_default();
            }
            Ok(Line::StreamEvent { event: Streamed::MessageDelta { usage } }) => usage.replace(&mut self.newest),
            Ok(Line::StreamEvent { event: Streamed::Unknown } | Line::Unknown) => {}
            Err(error) => tracing::debug!("`claude` printed an unknown line: {error}"),
        }
    }

    /// Whether the result, which is the last line, has arrived.
    pub fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// What all calls that `claude` has made by itself have cost, as far as it says: in its result, or until then in the
    /// streams.
    pub fn spent(&self) -> Usage {
        let result = self.result.as_ref().map(|result| &result.usage).filter(|usage| usage.prompt() > 0);
        let mut streamed = self.earlier;
        streamed.add(self.newest);
        match (result, &self.last) {
            (Some(counted), _) => counted.usage(),
            (None, Some(counted)) if streamed.prompt_tokens() == 0 => counted.usage(),
            (None, _) => streamed,
        }
    }

    /// The result; `None` if there was none.
    pub fn finish(&self) -> Option<Result<Answer, ModelError>> {
        let result = self.result.as_ref()?;
        if result.is_error || result.subtype != "success" {
            return Some(Err(failure(result, self.failure.as_deref().unwrap_or_default())));
        }
        let text = result.result.clone().unwrap_or_default();
        if text.len() > MAX_ANSWER_BYTES {
            return Some(Err(ModelError::too_large()));
        }
        let stop = match result.stop_reason.as_deref() {
            Some("max_tokens") => Stop::MaxTokens,
            Some("model_context_window_exceeded") => Stop::WindowFull,
            Some("refusal") => return Some(Err(ModelError::new(ErrorClass::Refused, text))),
            _ => Stop::End,
        };
        // The result adds up all calls that `claude` has made by itself. The last one's prompt is the size that counts;
        // what it says of its answer may be from before the end.
        let prompt = self.last.as_ref().filter(|last| last.prompt() > 0).unwrap_or(&result.usage);
        let usage = Usage { output_tokens: result.usage.usage().output_tokens, ..prompt.usage() };
        let blocks = if text.trim().is_empty() { Vec::new() } else { vec![Block::Text { text }] };
        Some(Ok(Answer { blocks, stop, usage }))
    }
}

fn failure(result: &Outcome, kind: &str) -> ModelError {
    let message = result.result.as_deref().unwrap_or_default();
    if message.is_empty() && result.terminal_reason.as_deref() != Some("prompt_too_long") {
        let why: Vec<&str> = iter::once(&result.subtype).chain(&result.errors).map(String::as_str).collect();
        let why = text::collapse_whitespace(&why.join(": "));
        return ModelError::new(ErrorClass::Other, format!("`claude` failed: {}", text::head(&why, MAX_SHOWN_CHARS)));
    }
    let error = json!({"type": kind, "terminal_reason": result.terminal_reason, "message": message});
    let body = json!({"error": error}).to_string();
    classify(&Failed { provider: PROVIDER, status: result.api_error_status, body: &body, ..Failed::default() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn finish(lines: &[serde_json::Value]) -> Option<Result<Answer, ModelError>> {
        let mut transcript = Transcript::default();
        lines.iter().for_each(|line| transcript.push(&line.to_string()));
        transcript.finish()
    }

    fn failed(status: Option<u16>, text: &str, reason: &str, kind: &str) -> ModelError {
        finish(&[
            json!({"type": "assistant", "error": kind, "message": {}}),
            json!({"type": "result", "subtype": "success", "is_error": true, "result": text,
                   "api_error_status": status, "terminal_reason": reason}),
        ])
        .expect("a result")
        .expect_err("a failure")
    }

    #[test]
    fn every_failure_has_its_class() {
        for (status, text, reason, kind, class) in [
            (
                Some(400),
                "Prompt is too long · the request is ~350000 tokens (limit 200000)",
                "prompt_too_long",
                "invalid_request",
                "context_overflow",
            ),
            (None, "Prompt is too long", "completed", "invalid_request", "context_overflow"),
            (Some(401), "Invalid API key · Fix external API key", "completed", "authentication_failed", "auth"),
            (None, "Not logged in · Please run /login", "completed", "authentication_failed", "auth"),
            (Some(400), "Credit balance is too low", "completed", "billing_error", "billing"),
            (Some(413), "Request too large (max 32MB)", "image_error", "invalid_request", "context_overflow"),
            (Some(429), "API Error: Request rejected (429)", "completed", "rate_limit", "rate_limited"),
            (Some(529), "API Error: 529 Overloaded", "completed", "server_error", "overloaded"),
            (Some(400), "API Error: 400 bad things", "completed", "invalid_request", "unexplained"),
        ] {
            assert_eq!(failed(status, text, reason, kind).class.name(), class, "{text}");
        }
    }

    #[test]
    fn an_overflow_has_its_numbers() {
        let numbers = |text| match failed(Some(400), text, "prompt_too_long", "invalid_request").class {
            ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } => (observed_tokens, allowed_tokens),
            other => panic!("{other:?}"),
        };
        let text = "Prompt is too long · the request is ~350,000 tokens (limit 200000) ...";
        assert_eq!(numbers(text), (Some(350_000), Some(200_000)));
        assert_eq!(numbers("Prompt is too long"), (None, None));
        // The first number does not include the room for the answer.
        assert_eq!(
            numbers("Prompt is too long · the request is ~190000 tokens (limit 200000)"),
            (Some(190_000), Some(200_000))
        );
    }

    #[test]
    fn an_answer_has_text_stop_and_usage() {
        let result = |stop: &str, text: &str| {
            json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "stop_reason": stop,
                   "usage": {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3,
                             "output_tokens": 4, "server_tool_use": {}}})
        };
        let usage = Usage { input_tokens: 1, output_tokens: 4, cache_read_tokens: 3, cache_creation_tokens: 2 };
        for (reason, stop) in [
            ("end_turn", Stop::End),
            ("max_tokens", Stop::MaxTokens),
            ("model_context_window_exceeded", Stop::WindowFull),
        ] {
            let blocks = vec![Block::Text { text: "好".into() }];
            assert_eq!(finish(&[result(reason, "好")]), Some(Ok(Answer { blocks, stop, usage })));
        }
        assert_eq!(finish(&[result("end_turn", "")]).expect("a result").expect("an answer").blocks, []);
        assert_eq!(finish(&[result("refusal", "no")]), Some(Err(ModelError::new(ErrorClass::Refused, "no"))));
    }

    /// Marks of quotation without end took the memory of the whole machine where they were read.
    #[test]
    fn an_answer_of_many_mebibytes_was_kept() {
        let result = |text: String| finish(&[json!({"type": "result", "subtype": "success", "result": text})]);
        assert_eq!(result(">".repeat((1 << 20) + 1)), Some(Err(ModelError::too_large())));
        assert!(result(">".repeat(1 << 20)).expect("a result").is_ok());
    }

    /// Once, a long answer that `claude` had continued by itself counted its prompt several times.
    #[test]
    fn of_several_calls_the_last_ones_prompt_counts() {
        let counts = |input: u64, output: u64| json!({"input_tokens": input, "output_tokens": output});
        let said = |usage: serde_json::Value| json!({"type": "assistant", "message": {"usage": usage}});
        let result = json!({"type": "result", "subtype": "success", "result": "x", "stop_reason": "end_turn",
                            "usage": counts(9_000, 700)});
        let of = |lines: &[serde_json::Value]| finish(lines).expect("a result").expect("an answer").usage;
        let usage = of(&[said(counts(4_400, 1)), said(counts(4_600, 1)), said(json!(null)), result.clone()]);
        assert_eq!((usage.input_tokens, usage.output_tokens), (4_600, 700));
        for without in [json!({"type": "assistant"}), json!({"type": "assistant", "message": 7}), said(counts(0, 0))] {
            assert_eq!(of(&[without, result.clone()]).input_tokens, 9_000);
        }
    }

    #[test]
    fn until_the_result_says_what_all_calls_have_cost_their_streams_do() {
        let counts = |input: u64, output: u64| json!({"input_tokens": input, "output_tokens": output});
        let event = |event: serde_json::Value| json!({"type": "stream_event", "event": event});
        let start = event(json!({"type": "message_start", "message": {"usage": counts(4_000, 1)}}));
        let delta = event(json!({"type": "message_delta", "usage": {"input_tokens": null, "output_tokens": 70}}));
        let said = json!({"type": "assistant", "message": {"usage": counts(3_000, 2)}});
        let odd = [event(json!(7)), event(json!({"type": "ping"})), json!({"type": "stream_event"})];
        let result = json!({"type": "result", "subtype": "success", "usage": counts(9_000, 700)});
        let nothing = json!({"type": "result", "subtype": "success", "usage": counts(0, 0)});
        for (lines, input, output) in [
            (vec![&start, &said, &delta], 4_000, 70),
            (vec![&start, &delta, &start, &odd[0], &odd[1], &odd[2]], 8_000, 71),
            (vec![&said, &delta], 3_000, 2),
            (vec![&start, &delta, &result], 9_000, 700),
            (vec![&start, &delta, &nothing], 4_000, 70),
        ] {
            let mut transcript = Transcript::default();
            lines.iter().for_each(|line| transcript.push(&line.to_string()));
            let spent = transcript.spent();
            assert_eq!((spent.input_tokens, spent.output_tokens), (input, output), "{lines:?}");
        }
    }

    #[test]
    fn other_ends_are_failures() {
        let result = json!({"type": "result", "subtype": "error_max_turns", "is_error": false});
        let error = finish(&[result]).expect("a result").expect_err("a failure");
        assert_eq!(error.to_string(), "`claude` failed: error_max_turns");
        assert_eq!(finish(&[json!({"type": "system"}), json!({"type": "new"}), json!(7)]), None);
    }

    /// They are in a list of their own, which was not read.
    #[test]
    fn the_reasons_of_a_failed_run_were_not_told() {
        let failed = |errors: serde_json::Value| {
            let result = json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
                                "errors": errors});
            finish(&[result]).expect("a result").expect_err("a failure").to_string()
        };
        let why = failed(json!(["no room\nis left", "on the disk"]));
        assert_eq!(why, "`claude` failed: error_during_execution: no room is left: on the disk");
        for none in [json!([]), json!(null), json!(7)] {
            assert_eq!(failed(none), "`claude` failed: error_during_execution");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(lines in prop::collection::vec("\\PC{0,40}|\\{\"type\":\"(result|assistant)\",?.{0,30}\\}", 0..10)) {
            let mut transcript = Transcript::default();
            lines.iter().for_each(|line| transcript.push(line));
            let _ = transcript.finish();
        }
    }
}
