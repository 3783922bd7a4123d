//! The client against the stand-in, which is as strict as OpenAI.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
    time::Duration,
};

use pmk_core::{Block, Message, Origin, Role, message};
use pmk_stand_ins::{
    openai::{self as stand_in, KEY, Reply},
    patience::{PATIENCE, let_pass},
};
use secrecy::SecretString;
use serde_json::json;

use super::*;
use crate::{ErrorClass, Listener, Model, Stop, Tool, http};

mod forms;

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
    let answer = client(&server, Some(KEY))
        .ask(&request(vec![Message::user("預算是多少？")]), &Meter::default())
        .await
        .expect("an answer");
    assert_eq!(answer.blocks, [Block::Text { text: "You said: 預算是多少？".into() }]);
    assert_eq!((answer.stop, answer.usage.prompt_tokens(), answer.usage.output_tokens), (Stop::End, 20, 5));
    let body = &server.requests()[0];
    // With room to think.
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(100 + 24_576), &json!(true)));
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
    let answer = client.ask(&request(messages.clone()), &Meter::default()).await.expect("calls");
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
    client.ask(&request(messages.clone()), &Meter::default()).await.expect("an accepted history");
    // The stand-in detects what the real API would.
    server.expect_refusals("must be followed by tool messages");
    let Some(Message { blocks, .. }) = messages.last_mut() else { panic!("a message") };
    blocks.pop();
    let error = client.ask(&request(messages), &Meter::default()).await.expect_err("a call without a result");
    assert_eq!(error.class.name(), "malformed_history");
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
        let error = client(&server, Some(KEY))
            .ask(&request(vec![Message::user("q")]), &Meter::default())
            .await
            .expect_err("a failure");
        assert_eq!((error.class.name(), server.requests().len()), (class, calls), "{error}");
        if let ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } = error.class {
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
        let error = client.ask(&request(vec![Message::user("q")]), &Meter::default()).await.expect_err("no access");
        assert_eq!(error.class.name(), "auth");
    }
}

/// Its status had come, and nobody learnt of it: all the time of the call was spent on a body that never ended.
#[tokio::test]
async fn an_error_whose_body_drips_without_end_hid_its_status() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("its address"));
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (sent, mut pieces) = tokio::sync::mpsc::unbounded_channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert!(stream.read(&mut [0; 1 << 12]).expect("a request") > 0);
        stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ntransfer-encoding: chunked\r\n\r\n").expect("a client");
        let mut piece = "Who are you?";
        while goes_on.recv().is_ok() {
            let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
            if stream.write_all(chunk.as_bytes()).is_err() || sent.send(()).is_err() {
                break;
            }
            piece = ".";
        }
    });
    let url = http::base_url("OPENAI_BASE_URL", &url, false).expect("loopback");
    let mut config = Config::new(None, url, "gpt-5");
    config.limits.idle_timeout = PATIENCE;
    let client = OpenAi::new(config).expect("a client");
    let (asked, meter) = (request(vec![Message::user("q")]), Meter::default());
    let drip = async {
        while go_on.send(()).is_ok() {
            pieces.recv().await.expect("a piece");
            let_pass(Duration::from_secs(1)).await;
        }
    };
    let error = tokio::select! {
        biased;
        outcome = client.ask(&asked, &meter) => outcome.expect_err("no access"),
        () = drip => panic!("the server has gone"),
    };
    assert!(error.class.name() == "auth" && error.to_string().contains("Who are you?"), "{error}");
}

fn text(answer: &Answer) -> String {
    pmk_core::message::plain_text(&answer.blocks)
}

fn chunk(delta: &serde_json::Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

/// Every way in which a stream can break off after an answer has begun.
fn broken_off() -> [Reply; 4] {
    let call = json!({"index": 0, "id": "a", "function": {"name": "mra_ask", "arguments": "{\"repo"}});
    [
        Reply::Cut("half an".into()),
        Reply::Raw(chunk(&json!({"role": "assistant", "content": ""}))),
        Reply::Raw(chunk(&json!({"tool_calls": [call]}))),
        // Some servers send an empty finish reason with each chunk, which is not a finish reason.
        Reply::Raw(format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "half"}, "finish_reason": ""}]}))),
    ]
}

/// Records everything that it receives.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<String>>);

impl Listener for Heard {
    fn hear(&self, text: &str) {
        self.0.lock().expect("nobody panics").push(text.to_owned());
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_asked_for_once_more() {
    for reply in broken_off() {
        let (server, heard) = (stand_in::OpenAi::start(), Heard::default());
        server.push(reply.clone());
        server.push(Reply::Answer("a whole one".into()));
        let asked = request(vec![Message::user("q")]);
        let answer = client(&server, Some(KEY)).ask_aloud(&asked, &heard, &Meter::default()).await.expect("an answer");
        assert_eq!((text(&answer).as_str(), answer.blocks.len()), ("a whole one", 1), "{reply:?}");
        let heard = heard.0.lock().expect("nobody panics");
        assert!(heard.iter().all(|text| !text.contains("half") || !text.contains("whole")), "{heard:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{reply:?}");
        assert_eq!(requests[0], requests[1]);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_twice_is_no_answer() {
    for reply in broken_off() {
        let server = stand_in::OpenAi::start();
        (0..4).for_each(|_| server.push(reply.clone()));
        let mut config = client(&server, Some(KEY)).config;
        config.limits.attempts = 4;
        let asked = request(vec![Message::user("q")]);
        let error =
            OpenAi::new(config).expect("a client").ask(&asked, &Meter::default()).await.expect_err("half an answer");
        assert_eq!((error.class.name(), server.requests().len()), ("transport", 2), "{reply:?}");
    }
}

/// A server that ends its stream without the line that ends the last event: the answer was lost with it.
#[tokio::test]
async fn a_last_event_without_the_line_that_ends_it_counts() {
    let said = chunk(&json!({"content": "all of it"}));
    let finished = format!("data: {}", json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    for last in [finished.clone(), format!("{finished}\n"), format!("{finished}\r"), "data: [DONE]".to_owned()] {
        let server = stand_in::OpenAi::start();
        server.push(Reply::Raw(format!("{said}{last}")));
        let answer = client(&server, Some(KEY))
            .ask(&request(vec![Message::user("q")]), &Meter::default())
            .await
            .expect("an answer");
        assert_eq!((text(&answer).as_str(), server.requests().len()), ("all of it", 1), "{last:?}");
    }
    let error = json!({"error": {"message": "no money is left", "code": "insufficient_quota"}});
    for (last, class, requests) in [
        (format!("data: {error}"), "billing", 1),
        (format!("event: error\ndata: {error}"), "billing", 1),
        (format!("{}\n\ndata: [DONE]", finished.replace("\"stop\"", "\"content_filter\"")), "refused", 1),
        // Half an event is none.
        (finished[..finished.len() - 3].to_owned(), "transport", 2),
        (format!("event: error\ndata: {}", &error.to_string()[..40]), "transport", 2),
        ("data: ".to_owned(), "transport", 2),
    ] {
        let server = stand_in::OpenAi::start();
        (0..3).for_each(|_| server.push(Reply::Raw(format!("{said}{last}"))));
        let asked = request(vec![Message::user("q")]);
        let error = client(&server, Some(KEY)).ask(&asked, &Meter::default()).await.expect_err("no answer");
        assert_eq!((error.class.name(), server.requests().len()), (class, requests), "{last:?}");
    }
}

/// Once, only an answer was counted.
#[tokio::test]
async fn what_a_content_filter_took_away_was_not_counted() {
    let server = stand_in::OpenAi::start();
    server.push(Reply::Nothing("content_filter"));
    let meter = Meter::default();
    let asked = request(vec![Message::user("q")]);
    let error = client(&server, Some(KEY)).ask(&asked, &meter).await.expect_err("a refusal");
    assert_eq!((error.class.name(), meter.total().input_tokens, meter.total().output_tokens), ("refused", 20, 5));
}

/// The response of a server that ignores `stream`.
fn completion(message: serde_json::Value, finish_reason: &str) -> serde_json::Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 21, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}},
    })
}

#[tokio::test]
async fn a_completion_that_is_not_streamed_is_the_answer() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "mra_ask", "arguments": arguments}});
    let calls = [call("", "{\"repo\":\"erp\"}"), call("", "{\"repo\":\"ui\"}")];
    let whole = completion(json!({"role": "assistant", "content": "預算"}), "stop");
    for (reply, said, stop, blocks) in [
        (Reply::Error(200, whole.clone()), "預算", Stop::End, 1),
        // Whatever the content type.
        (Reply::Raw(whole.to_string()), "預算", Stop::End, 1),
        (Reply::Raw(format!("data: {whole}\n\ndata: [DONE]\n\n")), "預算", Stop::End, 1),
        (Reply::Error(200, completion(json!({"content": "as far"}), "length")), "as far", Stop::MaxTokens, 1),
        (
            Reply::Error(200, completion(json!({"content": null, "tool_calls": calls}), "tool_calls")),
            "",
            Stop::ToolUse,
            2,
        ),
    ] {
        let server = stand_in::OpenAi::start();
        server.push(reply.clone());
        let answer = client(&server, Some(KEY))
            .ask(&request(vec![Message::user("q")]), &Meter::default())
            .await
            .expect("an answer");
        assert_eq!((text(&answer).as_str(), answer.stop, answer.blocks.len()), (said, stop, blocks), "{reply:?}");
        assert_eq!((answer.usage.prompt_tokens(), answer.usage.cache_read_tokens), (21, 8), "{reply:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

/// Proxies whose framework answers each POST with 201: every answer was paid for, and taken for a refusal.
#[tokio::test]
async fn an_answer_with_another_status_of_success_was_taken_for_a_refusal() {
    let server = stand_in::OpenAi::start();
    server.push(Reply::Error(201, completion(json!({"content": "all of it"}), "stop")));
    let meter = Meter::default();
    let asked = request(vec![Message::user("q")]);
    let answer = client(&server, Some(KEY)).ask(&asked, &meter).await.expect("an answer");
    assert_eq!((text(&answer).as_str(), meter.total().prompt_tokens()), ("all of it", 21));
}

#[tokio::test]
async fn half_a_completion_is_asked_for_once_more() {
    let server = stand_in::OpenAi::start();
    let whole = completion(json!({"content": "all of it"}), "stop").to_string();
    server.push(Reply::Raw(whole[..whole.len() - 9].to_owned()));
    let answer =
        client(&server, Some(KEY)).ask(&request(vec![Message::user("q")]), &Meter::default()).await.expect("an answer");
    assert_eq!((answer.blocks.len(), server.requests().len()), (1, 2));
}

/// An error with its own status means the same with status 200 or within a stream.
#[tokio::test]
async fn an_error_that_comes_as_an_answer_means_the_same() {
    let error = |kind: &str, code: Option<&str>, message: &str| json!({"message": message, "type": kind, "code": code});
    let invalid = "invalid_request_error";
    for (status, error, class) in [
        (400, error(invalid, Some("context_length_exceeded"), "too long"), "context_overflow"),
        (400, error(invalid, None, "the input is over the limit"), "context_overflow"),
        (400, json!({"message": "too many tokens", "code": 400}), "context_overflow"),
        (400, json!({"message": "too many tokens"}), "context_overflow"),
        (500, error("server_error", None, "too many tokens are waiting"), "overloaded"),
        (429, error("rate_limit_error", None, "slow down"), "rate_limited"),
        (429, error("insufficient_quota", Some("insufficient_quota"), "no money is left"), "billing"),
        (503, error("server_error", None, "try again later"), "overloaded"),
        (401, error(invalid, Some("invalid_api_key"), "who are you?"), "auth"),
        (400, error("zuvek", None, "the grommet is out of plim"), "unexplained"),
    ] {
        let begun = chunk(&json!({"role": "assistant", "content": "half"}));
        let event = format!("data: {}\n\n", json!({"error": error}));
        for reply in [
            Reply::Error(status, json!({"error": error})),
            Reply::Error(200, json!({"error": error})),
            Reply::Error(200, json!({"error": error, "choices": null})),
            Reply::Raw(json!({"error": error}).to_string()),
            Reply::Raw(event.clone()),
            Reply::Raw(format!("{begun}{event}")),
            Reply::Raw(format!("{begun}event: error\ndata: {}\n\n", json!({"error": error}))),
            Reply::Raw(format!("event: error\ndata: {error}\n\n")),
            Reply::Raw(format!("data: {}\n\n", json!({"error": error, "choices": null}))),
        ] {
            let server = stand_in::OpenAi::start();
            (0..2).for_each(|_| server.push(reply.clone()));
            let asked = request(vec![Message::user("q")]);
            let error = client(&server, Some(KEY)).ask(&asked, &Meter::default()).await.expect_err("an error");
            assert_eq!(error.class.name(), class, "{reply:?}: {error}");
        }
    }
}

/// Nobody knows the key of its words, or it is no event at all: people learnt only that the stream had ended.
#[tokio::test]
async fn the_words_of_an_error_that_is_not_understood_were_lost_in_a_stream() {
    let why = "Der Server ist überlastet";
    let odd = format!("data: {}\n\n", json!({"fehler": why}));
    let begun = chunk(&json!({"role": "assistant", "content": "half"}));
    for reply in [
        Reply::Raw(odd.clone()),
        Reply::Raw(odd.trim_end().to_owned()),
        Reply::Raw(format!("{odd}data: {{}}\n\ndata: [DONE]\n\n")),
        Reply::Raw(format!("{begun}{odd}")),
        Reply::Raw(format!("event: fehler\n{odd}")),
        Reply::Raw(format!("event: error\n{odd}")),
        Reply::Raw(format!("data: {why}\n\n")),
        Reply::Raw(format!("data: {why}")),
        Reply::Raw(format!("{begun}\n{why}\n")),
        Reply::Raw(format!("{why}: später.\nBitte warten.")),
        Reply::Raw(format!("<html>\n<head><title>{why}</title></head>\n</html>")),
        Reply::Raw(format!("{why} {}", "und ".repeat(9_000))),
        Reply::Error(200, json!({"fehler": why})),
        Reply::Error(200, json!(why)),
        Reply::Raw(format!("data: {}\n\n", json!({"error": {"fehler": why}}))),
    ] {
        let server = stand_in::OpenAi::start();
        (0..2).for_each(|_| server.push(reply.clone()));
        let asked = request(vec![Message::user("q")]);
        let error = client(&server, Some(KEY)).ask(&asked, &Meter::default()).await.expect_err("an error");
        let said = error.to_string();
        assert!(said.contains(why) && !said.contains("half") && said.chars().count() < 450, "{reply:?}: {said}");
    }
    // Half an answer explains nothing, and is not told.
    let whole = completion(json!({"content": "all of it"}), "stop").to_string();
    for half in [&whole[..whole.len() - 9], &format!("data: {}", &whole[..whole.len() - 9])] {
        let server = stand_in::OpenAi::start();
        (0..2).for_each(|_| server.push(Reply::Raw(half.to_owned())));
        let asked = request(vec![Message::user("q")]);
        let error = client(&server, Some(KEY)).ask(&asked, &Meter::default()).await.expect_err("half an answer");
        assert_eq!(error.to_string(), "the connection failed: the stream ended before the answer did");
    }
}

/// Regression: people read them as “the server said”, behind what had failed.
#[tokio::test]
async fn thoughts_of_the_model_and_the_name_of_its_provider_were_told_as_words_of_the_server() {
    for key in ["reasoning", "reasoning_content", "thinking", "partial_json", "provider"] {
        let delta = json!({key: "hm, a secret", "tool_calls": "none"});
        for odd in [json!({"choices": [{"index": 0, "delta": delta}]}), json!({"choices": [], key: "hm, a secret"})] {
            for reply in [Reply::Raw(format!("data: {odd}\n\n")), Reply::Error(200, odd)] {
                let server = stand_in::OpenAi::start();
                (0..2).for_each(|_| server.push(reply.clone()));
                let asked = request(vec![Message::user("q")]);
                let error = client(&server, Some(KEY)).ask(&asked, &Meter::default()).await.expect_err("an error");
                assert!(!error.to_string().contains("secret"), "{reply:?}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_that_its_server_ends_with_an_error_is_none() {
    let server = stand_in::OpenAi::start();
    let failed = json!({"choices": [{"delta": {}, "finish_reason": "error"}]});
    server.push(Reply::Raw(format!("{}data: {failed}\n\ndata: [DONE]\n\n", chunk(&json!({"content": "half"})))));
    let answer =
        client(&server, Some(KEY)).ask(&request(vec![Message::user("q")]), &Meter::default()).await.expect("an answer");
    assert_eq!((text(&answer).as_str(), server.requests().len()), ("You said: q", 2));
}

/// OpenAI sends nothing while a model thinks: a hard question ended after a minute, each time.
#[test]
fn a_model_that_thinks_in_silence_was_cut_off() {
    let server = stand_in::OpenAi::start();
    let idle = |model: &str| {
        let mut config = client(&server, Some(KEY)).config;
        config.model = model.to_owned();
        config.limits.idle_timeout = Duration::from_secs(60);
        OpenAi::new(config).expect("a client").config.limits.idle_timeout.as_secs()
    };
    assert_eq!(["gpt-5", "o3", "openai/gpt-5", "gpt-4o", "llama3.2"].map(idle), [300, 300, 300, 60, 60]);
    // Others stream their thoughts, or send signs of life.
    assert_eq!(["anthropic/claude-sonnet-5-5", "openai/gpt-5-chat-latest"].map(idle), [60, 60]);
}

/// Marks of quotation without end took the memory of the whole machine where they were read.
#[tokio::test]
async fn an_answer_of_many_mebibytes_was_kept() {
    let ended = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let answered = async |pieces: String| {
        let server = stand_in::OpenAi::start();
        server.push(Reply::Raw(format!("{pieces}data: {ended}\n\ndata: [DONE]\n\n")));
        client(&server, Some(KEY)).ask(&request(vec![Message::user("q")]), &Meter::default()).await
    };
    let (quoted, arguments) = (">".repeat(1 << 18), "1".repeat(1 << 18));
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}]});
    for large in [chunk(&json!({"content": quoted})), chunk(&json!({"refusal": quoted})), chunk(&call)] {
        let error = answered(large.repeat(5)).await.expect_err("too much");
        assert!(error.to_string().contains("larger than 1048576 bytes"), "{error}");
    }
    answered(chunk(&json!({"content": quoted})).repeat(4)).await.expect("an answer of a mebibyte");
    // One that is not streamed says why, too, and is not paid for again.
    let server = stand_in::OpenAi::start();
    server.push(Reply::Error(200, completion(json!({"content": quoted.repeat(5)}), "stop")));
    let asked = client(&server, Some(KEY)).ask(&request(vec![Message::user("q")]), &Meter::default()).await;
    assert_eq!((asked, server.requests().len()), (Err(ModelError::too_large()), 1));
    // What is thought is not kept, nor is what each piece comes in.
    let thought = chunk(&json!({"content": "", "reasoning_content": "hm".repeat(1 << 10)}));
    let answer = answered(format!("{}{}", thought.repeat(1 << 10), chunk(&json!({"content": "so"})))).await;
    assert_eq!(text(&answer.expect("an answer")), "so");
}

/// Once, all that had been said was told again with each comment that kept the connection alive.
#[tokio::test]
async fn what_adds_nothing_to_an_answer_was_heard_again() {
    let (server, heard) = (stand_in::OpenAi::start(), Heard::default());
    let said = |text: &str| chunk(&json!({"content": text}));
    let ended = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    // More than arrives at once.
    let comments = format!(": still here{}\n\n", ".".repeat(1 << 10)).repeat(1 << 10);
    server.push(Reply::Raw(format!("{comments}{}{comments}{}data: {ended}\n\n", said("one"), said(", two"))));
    let asked = request(vec![Message::user("q")]);
    let answer = client(&server, Some(KEY)).ask_aloud(&asked, &heard, &Meter::default()).await.expect("an answer");
    let heard = heard.0.lock().expect("nobody panics");
    assert_eq!((text(&answer).as_str(), &heard[0]), ("one, two", &"one".to_owned()));
    assert!(heard.len() <= 2, "{heard:?}");
}

/// Some servers give shorter answers than the makers of a model: every question was refused.
#[tokio::test]
async fn a_server_whose_answers_are_shorter_was_asked_for_too_many_tokens_every_time() {
    let error = |message: &str| json!({"error": {"message": message}});
    let asked = 100 + 24_576;
    for body in [
        error(
            "max_tokens is too large: 24676. This model supports at most 4096 completion tokens, whereas you provided 24676.",
        ),
        error("Range of max_tokens should be [1,4096]"),
        error("Expected a value <= 4096, but got 24676 instead."),
        error("Requested 24676 tokens exceeds the limit of 4,096."),
        error("max_tokens参数超过最大值4096"),
        json!({"detail": [{"loc": ["body", "max_tokens"], "msg": "Input should be less than or equal to 4096", "input": asked}]}),
    ] {
        let server = stand_in::OpenAi::start();
        server.refuse_when(|body| body["max_tokens"].as_u64() > Some(4_096), 400, body.clone());
        let client = client(&server, Some(KEY));
        for _ in 0..3 {
            client.ask(&request(vec![Message::user("hello")]), &Meter::default()).await.expect("an answer");
        }
        let rooms: Vec<_> = server.requests().iter().map(|body| body["max_tokens"].clone()).collect();
        assert_eq!(rooms, [asked, 4_096, asked, 4_096, 4_096], "{body}");
        assert_eq!(client.most_given(), Some(4_096), "{body}");
    }
}

/// As vLLM says it in older and newer versions, TGI, and Groq of its tokens per minute: what was asked for did not fit
/// beside any prompt.
#[tokio::test]
async fn every_question_was_refused_where_the_window_was_smaller_than_the_room_for_its_answer() {
    let error = |message: &str| json!({"error": {"message": message}});
    let asked = 100 + 24_576;
    for body in [
        error(
            "This model's maximum context length is 6000 tokens. However, you requested 24976 tokens (300 in the messages, 24676 in the completion). Please reduce the length of the messages or completion.",
        ),
        error(
            "'max_tokens' or 'max_completion_tokens' is too large: 24676. This model's maximum context length is 6000 tokens and your request has 300 input tokens (24676 > 6000 - 300).",
        ),
        json!({"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 6000. Given: 300 `inputs` tokens and 24676 `max_new_tokens`"}),
        error(
            "Request too large for model `llama-3.3-70b-versatile` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 24976, please reduce your message size and try again.",
        ),
    ] {
        let server = stand_in::OpenAi::start();
        server.refuse_when(|body| body["max_tokens"].as_u64() > Some(5_700), 400, body.clone());
        let client = client(&server, Some(KEY));
        for _ in 0..3 {
            client.ask(&request(vec![Message::user("hello")]), &Meter::default()).await.expect("an answer");
        }
        let rooms: Vec<_> = server.requests().iter().map(|body| body["max_tokens"].clone()).collect();
        assert_eq!(rooms, [asked, 1_500, asked, 1_500, 1_500], "{body}");
    }
}

/// vLLM's newest words name what the answer leaves of the window, too, which was taken for the window.
#[tokio::test]
async fn a_window_was_taken_for_its_rest_beside_the_answer() {
    let message = "You passed 400 input tokens and requested 24676 output tokens. However, the model's context length is only \
                   25000 tokens, resulting in a maximum input length of 324 tokens. Please reduce the length of the input \
                   prompt. (parameter=input_tokens, value=400)";
    let error = json!({"message": message, "type": "BadRequestError", "param": "input_tokens", "code": 400});
    let server = stand_in::OpenAi::start();
    server.refuse_when(|body| body["max_tokens"].as_u64() > Some(24_600), 400, json!({"error": error}));
    let client = client(&server, Some(KEY));
    client.ask(&request(vec![Message::user("hello")]), &Meter::default()).await.expect("an answer");
    let rooms: Vec<_> = server.requests().iter().map(|body| body["max_tokens"].clone()).collect();
    assert_eq!(rooms, [100 + 24_576, 6_250]);
}

/// What only looks like the most that a server gives does not make its later answers short.
#[tokio::test]
async fn a_number_in_a_refusal_for_another_reason_changes_nothing() {
    let server = stand_in::OpenAi::start();
    let refused = json!({"error": {"message": "the field `user` takes 2048 characters"}});
    server.refuse_when(|body| body["messages"].to_string().contains("bad"), 400, refused);
    let client = client(&server, Some(KEY));
    client.ask(&request(vec![Message::user("bad")]), &Meter::default()).await.expect_err("a refusal");
    // Nor does a number by chance, before an answer that would have come anyway.
    server.push(Reply::Error(400, json!({"error": {"message": "request 4821 failed"}})));
    for _ in 0..2 {
        client.ask(&request(vec![Message::user("good")]), &Meter::default()).await.expect("an answer");
    }
    let rooms: Vec<_> = server.requests().iter().map(|body| body["max_tokens"].clone()).collect();
    let asked = 100 + 24_576;
    assert_eq!(rooms, [asked, 2_048, asked, 4_821, asked]);
}

/// Where a refusal has no words, its status was taken for the most that a server gives, and all answers were cut there.
#[tokio::test]
async fn a_status_was_taken_for_the_most_that_a_server_gives() {
    for body in [
        json!({"oops": {"note": "no more than a few"}}),
        json!({"error": {"message": "Error code: 400 - bad request"}}),
    ] {
        let server = stand_in::OpenAi::start();
        server.refuse_when(|body| body["max_tokens"].as_u64() > Some(4_096), 400, body.clone());
        let asked = request(vec![Message::user("hello")]);
        client(&server, Some(KEY)).ask(&asked, &Meter::default()).await.expect_err("a refusal");
        assert_eq!(server.requests().len(), 1, "{body}");
    }
}
