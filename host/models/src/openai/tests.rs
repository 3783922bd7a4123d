//! The client against the stand-in, which is strict about what OpenAI is strict about.

use std::time::Duration;

use pmk_core::{Block, Message, Origin, Role, message};
use pmk_stand_ins::{
    openai::{self as stand_in, KEY, Reply},
    patience::PATIENCE,
};
use serde_json::json;

use super::*;
use crate::{Stop, Tool, http};

fn client(server: &stand_in::OpenAi, key: Option<&str>) -> OpenAi {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = http::base_url("OPENAI_BASE_URL", &server.url(), true).expect("loopback");
    let mut config = Config::new(key.map(SecretString::from), url, "gpt-5");
    config.limits.first_wait = Duration::from_millis(1);
    config.limits.idle_timeout = PATIENCE;
    config.limits.attempts = 2;
    OpenAi::new(config).expect("a client")
}

fn request(messages: Vec<Message>) -> Request {
    let schema = json!({"type": "object", "properties": {"repo": {"type": "string"}}});
    let tool = Tool { name: "mra_ask".into(), description: "search".into(), input_schema: schema };
    Request {
        system: "Be brief.".into(),
        messages: message::shared(messages),
        max_answer_tokens: 100,
        tools: [tool].into(),
        ..Request::default()
    }
}

#[tokio::test]
async fn an_answer_with_its_usage() {
    let server = stand_in::OpenAi::start();
    let answer =
        client(&server, Some(KEY)).ask(&request(vec![Message::user("預算是多少？")])).await.expect("an answer");
    assert_eq!(answer.blocks, [Block::Text { text: "You said: 預算是多少？".into() }]);
    assert_eq!((answer.stop, answer.usage.prompt_tokens(), answer.usage.output_tokens), (Stop::End, 20, 5));
    let body = &server.requests()[0];
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(100), &json!(true)));
}

#[tokio::test]
async fn a_round_of_tools() {
    let server = stand_in::OpenAi::start();
    server.push(Reply::Calls(vec![
        ("mra_ask".into(), json!({"repo": "erp"})),
        ("mra_ask".into(), json!({"repo": "ui"})),
    ]));
    let client = client(&server, Some(KEY));
    let mut messages = vec![Message::user("compare")];
    let answer = client.ask(&request(messages.clone())).await.expect("calls");
    assert_eq!((answer.stop, answer.blocks.len()), (Stop::ToolUse, 2));
    let results = answer.blocks.iter().filter_map(|block| match block {
        Block::ToolUse { id, input, .. } => {
            Some(Block::ToolResult { tool_use_id: id.clone(), content: input.to_string(), is_error: false })
        }
        _ => None,
    });
    let results: Vec<Block> = results.collect();
    messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: answer.blocks.clone() });
    messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: results });
    client.ask(&request(messages.clone())).await.expect("an accepted history");
    // The stand-in notices what the real one would.
    let Some(Message { blocks, .. }) = messages.last_mut() else { panic!("a message") };
    blocks.pop();
    let error = client.ask(&request(messages)).await.expect_err("a call without a result");
    assert_eq!(error.class(), "malformed_history");
}

#[tokio::test]
async fn failures_have_their_class() {
    let openai_error = |code: &str, message: &str| json!({"error": {"message": message, "type": "x", "code": code}});
    let too_long = "This model's maximum context length is 10 tokens. However, your messages resulted in 20 tokens.";
    for (status, body, class, calls) in [
        (400, openai_error("context_length_exceeded", too_long), "context_overflow", 1),
        (429, openai_error("insufficient_quota", "You exceeded your current quota"), "billing", 1),
        (429, openai_error("rate_limit_exceeded", "Rate limit reached"), "rate_limited", 2),
        (503, json!({"detail": "busy"}), "overloaded", 2),
    ] {
        let server = stand_in::OpenAi::start();
        for _ in 0..2 {
            server.push(Reply::Error(status, body.clone()));
        }
        let error = client(&server, Some(KEY)).ask(&request(vec![Message::user("q")])).await.expect_err("a failure");
        assert_eq!((error.class(), server.requests().len()), (class, calls), "{error}");
        if let ModelError::Overflow { observed_tokens, allowed_tokens, .. } = error {
            assert_eq!((observed_tokens, allowed_tokens), (Some(20), Some(10)));
        }
    }
}

#[tokio::test]
async fn a_wrong_key_and_none_are_said() {
    let server = stand_in::OpenAi::start();
    for key in [Some("sk-secret"), None] {
        let client = client(&server, key);
        assert!(!format!("{client:?}").contains("sk-secret"));
        let error = client.ask(&request(vec![Message::user("q")])).await.expect_err("no access");
        assert_eq!(error.class(), "auth");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_answer() {
    let server = stand_in::OpenAi::start();
    server.push(Reply::Cut("half an".into()));
    let error = client(&server, Some(KEY)).ask(&request(vec![Message::user("q")])).await.expect_err("half an answer");
    assert_eq!((error.class(), server.requests().len()), ("transport", 1));
}
