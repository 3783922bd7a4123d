//! Random bodies.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// Fragments of providers' messages, combined at random.
const FRAGMENTS: &[&str] = &[
    "prompt is too long",
    ": 213462 tokens > 200000 maximum",
    "exceed context limit: 1 + 2 > 3",
    "This model's maximum context length is ",
    "tokens per minute (TPM): ",
    "Limit 8000, ",
    "Requested 99999999999999999999",
    "must be <= 32768. Given: 1 `inputs` tokens and ",
    "msg_too_long",
    "上下文过长",
    "retry after 1e999 s",
    "try again in 7m12.5s",
    "{\"error\":",
    "{\"message\":\"",
    "\\\"code\\\":\\\"context_length_exceeded\\\"",
    "\"usage\":{\"prompt_tokens\":18446744073709551615}",
    "\"status\":529",
    "\"retry_after\":-1e300",
    "<title>",
    "</title>",
    "ThrottlingException: ",
    "tool_use ids were found without tool_result blocks",
    "(no body)",
    "}",
    "\"",
    ",",
    " ",
    "\n",
    "9,9,9",
    "İ",
];

fn body() -> impl Strategy<Value = String> {
    let piece = prop_oneof![3 => select(FRAGMENTS).prop_map(str::to_owned), 1 => "\\PC{0,8}"];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// JSON with the relevant keys, nested in texts some levels deep.
fn nested() -> impl Strategy<Value = String> {
    let key = select(&["error", "message", "code", "type", "status", "usage", "detail", "result", "retry_after"][..]);
    (body(), vec((key, any::<bool>()), 0..14)).prop_map(|(body, wraps)| {
        wraps.into_iter().fold(body, |body, (key, as_text)| {
            let inner = match serde_json::from_str(&body) {
                Ok(value) if !as_text => value,
                _ => serde_json::Value::String(body),
            };
            serde_json::json!({ key: inner }).to_string()
        })
    })
}

/// Sentences of people about windows, prompts and tokens.
fn prose() -> impl Strategy<Value = String> {
    let who = select(&["I", "we", "people", "my colleagues", "he", "the team", "a friend of mine", "nobody here"][..]);
    let says =
        select(&["said that", "thinks that", "asked whether", "wrote that", "believes that", "noticed that"][..]);
    let what = select(
        &[
            "the prompt is too long",
            "the input exceeds the context window",
            "the context length was exceeded",
            "the maximum context length is 4096 tokens",
            "the request has 9000 tokens and the limit of 8000 is too small",
            "you requested 9000 tokens",
            "the model's context window is full",
            "too many tokens cost too much",
            "msg_too_long comes from Slack",
            "the conversation is longer than the context length",
        ][..],
    );
    let how = select(&["", " last week", ", which is odd", " again", ": that happens", " when it is late"][..]);
    let sentence = (who, says, what, how).prop_map(|(who, says, what, how)| format!("{who} {says} {what}{how}"));
    vec((sentence, select(&[". ", "! ", "? ", "; ", "\n"][..])), 1..5)
        .prop_map(|sentences| sentences.into_iter().map(|(sentence, end)| sentence + end).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_body_has_a_class(
        provider in select(&["", "slack", "mistral", "anthropic-api"][..]),
        status in prop::option::of(100u16..600),
        window in prop::option::of(any::<u64>()),
        body in prop_oneof![body(), nested()],
    ) {
        let error = classify(&Failed { provider, status, window, body: &body, ..Failed::default() });
        prop_assert!(error.to_string().chars().count() < 400, "people read it on one line");
        prop_assert!(!error.to_string().contains('\n'));
        if provider == "slack" {
            prop_assert_ne!(error.class.name(), "context_overflow");
        }
    }

    #[test]
    fn prose_is_no_overflow(prose in prose(), status in select(&[None, Some(200), Some(400), Some(422)][..])) {
        let error = of(status, &prose);
        prop_assert_ne!(error.class.name(), "context_overflow");
        prop_assert!(!matches!(error.class.name(), "auth" | "refused"));
    }

    #[test]
    fn an_answer_is_no_error_whatever_it_says(text in body()) {
        let answer = serde_json::json!({"type": "message", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 5, "output_tokens": 9}});
        prop_assert_eq!(class(Some(200), &answer.to_string()), "other");
    }
}
