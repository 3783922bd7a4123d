//! Answers that are empty because the prompt filled the window, without an error.

use pmk_core::Block;

use super::*;
use crate::Usage;

#[test]
fn an_answer_of_nothing_to_a_prompt_that_fills_the_window() {
    let said = |text: &str| if text.is_empty() { vec![] } else { vec![Block::Text { text: text.into() }] };
    let answer = |text: &str, stop, input_tokens| Answer {
        blocks: said(text),
        stop,
        usage: Usage { input_tokens, ..Usage::default() },
    };
    for (text, stop, prompt, overflows) in [
        ("", Stop::MaxTokens, 990, true),
        ("", Stop::MaxTokens, 1_200, true),
        ("", Stop::MaxTokens, 989, false),
        ("so", Stop::MaxTokens, 999, false),
        ("", Stop::End, 999, false),
        ("", Stop::WindowFull, 0, true),
        ("so", Stop::WindowFull, 999, false),
    ] {
        let outcome = accept(answer(text, stop, prompt), 1_000);
        assert_eq!(outcome.is_err(), overflows, "{text:?} {stop:?} {prompt}");
        if let Err(error) = outcome {
            let observed_tokens = (prompt > 0).then_some(prompt);
            let class = ErrorClass::Overflow { observed_tokens, allowed_tokens: None, is_of_request: false };
            assert_eq!(error.class, class);
        }
    }
    let huge = answer("", Stop::MaxTokens, u64::MAX);
    assert!(accept(huge, u64::MAX).is_err());
}

#[test]
fn the_same_as_a_body() {
    let body = |prompt: u64, output: u64, finish: &str, model: &str| {
        serde_json::json!({"model": model, "choices": [{"finish_reason": finish, "message": {"content": ""}}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": output}})
        .to_string()
    };
    let class =
        |body: &str, window| classify(&Failed { status: Some(200), window, body, ..Failed::default() }).class.name();
    assert_eq!(class(&body(990, 0, "length", "m"), Some(1_000)), "context_overflow");
    assert_eq!(class(&body(989, 0, "length", "m"), Some(1_000)), "other");
    assert_eq!(class(&body(990, 1, "length", "m"), Some(1_000)), "other");
    assert_eq!(class(&body(990, 0, "stop", "m"), Some(1_000)), "other");
    assert_eq!(class(&body(990, 0, "length", "m"), None), "other", "nothing is known of the window");
    assert_eq!(class(&body(127_999, 0, "length", "openai/gpt-4o"), None), "context_overflow");
    let anthropic =
        r#"{"stop_reason":"max_tokens","usage":{"input_tokens":1,"cache_read_input_tokens":990,"output_tokens":0}}"#;
    assert_eq!(class(anthropic, Some(1_000)), "context_overflow");
}
