//! The client against the strict stand-in.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use pmk_core::{Block, Message, Origin, Role, message};
use pmk_stand_ins::{
    anthropic::{self as stand_in, Behaviour, KEY},
    patience::{PATIENCE, let_pass, until_async},
};
use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{super::open::ANTHROPIC_BASE_URL, *};
use crate::{ErrorClass, Listener, Model, Stop, Usage, http};

fn base_url(text: &str) -> Result<Url, OpenError> {
    http::base_url(ANTHROPIC_BASE_URL, text, true)
}

const SHORT: Duration = Duration::from_millis(200);

/// A client of the stand-in with short timeouts.
fn config(server: &stand_in::Anthropic) -> Config {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = base_url(&server.url()).expect("loopback");
    let mut config = Config::new(Some(SecretString::from(KEY)), url, "claude-haiku-4-5");
    config.limits.first_wait = Duration::from_millis(1);
    config.limits.idle_timeout = PATIENCE;
    config.limits.attempts = 3;
    config
}

fn question(text: &str) -> Request {
    Request {
        system: "Be brief.".into(),
        messages: message::shared([Message::user(text)]),
        max_answer_tokens: 100,
        ..Request::default()
    }
}

/// Sends one request with the behaviours queued; also returns how often the server was asked.
async fn asked(behaviours: Vec<Behaviour>) -> (Result<Answer, ModelError>, usize) {
    let server = stand_in::Anthropic::start().await;
    let mut config = config(&server);
    let idle = config.limits.idle_timeout;
    let stalls = matches!(behaviours[..], [Behaviour::Stall { .. } | Behaviour::Silence]);
    if stalls {
        // The limit on silence has to be the one that ends it.
        config.limits.call_timeout = idle * 100;
    }
    for behaviour in behaviours {
        server.push(behaviour);
    }
    let client = Anthropic::new(config).expect("a client");
    let (hello, meter) = (question("hello"), Meter::default());
    let is_over = Cell::new(false);
    let ask = async {
        let outcome = client.ask(&hello, &meter).await;
        is_over.set(true);
        outcome
    };
    let wait = async {
        if stalls {
            until_async("a request", || server.requests().pop()).await;
        }
        // After what comes just then, the wait begins anew.
        while stalls && !is_over.get() {
            let_pass(idle).await;
            sleep(Duration::from_millis(5)).await;
        }
    };
    let (outcome, ()) = tokio::join!(ask, wait);
    if stalls {
        assert_eq!(outcome.as_ref().err(), Some(&ModelError::silent_for(idle)));
    }
    (outcome, server.requests().len())
}

fn text(answer: &Answer) -> String {
    pmk_core::message::plain_text(&answer.blocks)
}

#[tokio::test]
async fn an_answer_with_its_usage() {
    let server = stand_in::Anthropic::start().await;
    let client = Anthropic::new(config(&server)).expect("a client");
    let answer = client.ask(&question("預算是多少？"), &Meter::default()).await.expect("an answer");
    assert_eq!(text(&answer), "You said: 預算是多少？");
    assert_eq!(answer.stop, Stop::End);
    let [request] = server.requests().try_into().expect("one request");
    let request: stand_in::Recorded = request;
    assert_eq!(answer.usage.prompt_tokens(), request.prompt_tokens);
    assert!(answer.usage.cache_creation_tokens > 0 && answer.usage.output_tokens > 0, "{:?}", answer.usage);
    assert_eq!(request.body["max_tokens"], 100);
    assert_eq!(request.headers["x-api-key"], KEY);
}

#[tokio::test]
async fn a_history_with_repeated_tool_ids_is_accepted() {
    let server = stand_in::Anthropic::start().await;
    let client = Anthropic::new(config(&server)).expect("a client");
    let mut messages = vec![Message::user("look")];
    for _ in 0..3 {
        let call = Block::ToolUse { id: "call:1".into(), name: "grep".into(), input: json!({"q": "x"}) };
        let result = Block::ToolResult { tool_use_id: "call:1".into(), content: String::new(), is_error: true };
        messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] });
        messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] });
    }
    messages.push(Message::assistant("nothing"));
    messages.push(Message::user("and now?"));
    let messages = message::shared(messages);
    let request = Request { system: String::new(), messages, max_answer_tokens: u32::MAX, ..Request::default() };
    let answer = client.ask(&request, &Meter::default()).await.expect("an answer");
    assert_eq!(text(&answer), "You said: and now?");
    assert_eq!(server.requests()[0].body["max_tokens"], 64_000, "no more than the model gives");
}

#[tokio::test]
async fn every_way_an_answer_ends() {
    for (reason, stop) in
        [("end_turn", Stop::End), ("max_tokens", Stop::MaxTokens), ("model_context_window_exceeded", Stop::WindowFull)]
    {
        let (answer, calls) = asked(vec![Behaviour::stopping("as far as it goes", reason)]).await;
        let answer = answer.expect(reason);
        assert_eq!((answer.stop, text(&answer).as_str(), calls), (stop, "as far as it goes", 1));
    }
    let (refused, calls) = asked(vec![Behaviour::stopping("I would", "refusal")]).await;
    assert_eq!((refused.map_err(|error| error.class.name()), calls), (Err("refused"), 1));
    let call = Behaviour::ToolUse { id: "t1".into(), name: "grep".into(), input: json!({"q": "中文"}) };
    let answer = asked(vec![call]).await.0.expect("a call");
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(answer.blocks, [Block::ToolUse { id: "t1".into(), name: "grep".into(), input: json!({"q": "中文"}) }]);
}

#[tokio::test]
async fn waiting_helps() {
    for failure in [
        Behaviour::error(429, "rate_limit_error", "This request would exceed your account's rate limit."),
        Behaviour::error(429, "rate_limit_error", "slow down").with_header("retry-after", "0"),
        Behaviour::error(529, "overloaded_error", "Overloaded"),
        Behaviour::error(500, "api_error", "Internal server error"),
        Behaviour::Error { status: 502, headers: vec![], body: "<html>Bad gateway</html>".into() },
        Behaviour::ErrorEvent { text: "half".into(), code: "overloaded_error".into(), message: "Overloaded".into() },
        Behaviour::Raw(Vec::new()),
    ] {
        let shown = format!("{failure:?}");
        let (answer, calls) = asked(vec![failure.clone(), failure, Behaviour::answer("at last")]).await;
        assert_eq!(answer.map(|answer| text(&answer)), Ok("at last".to_owned()), "{shown}");
        assert_eq!(calls, 3, "{shown}");
    }
}

#[tokio::test]
async fn it_gives_up_after_a_few_attempts() {
    let overloaded = Behaviour::error(529, "overloaded_error", "Overloaded");
    let (outcome, calls) = asked(vec![overloaded; 5]).await;
    assert_eq!((outcome.map_err(|error| error.class.name()), calls), (Err("overloaded"), 3));
}

#[tokio::test]
async fn waiting_does_not_help() {
    let invalid = "invalid_request_error";
    let half = || "half an answer".to_owned();
    for (class, behaviour) in [
        ("context_overflow", Behaviour::error(400, invalid, "prompt is too long: 9 tokens > 8 maximum")),
        ("context_overflow", Behaviour::Error { status: 413, headers: vec![], body: "<html>413</html>".into() }),
        ("auth", Behaviour::error(401, "authentication_error", "invalid x-api-key")),
        ("billing", Behaviour::error(400, invalid, "Your credit balance is too low to access the Anthropic API.")),
        ("malformed_history", Behaviour::error(400, invalid, "messages: `tool_use` ids must be unique")),
        ("unknown_model", Behaviour::error(404, "not_found_error", "model: nope")),
        ("transport", Behaviour::Error { status: 307, headers: vec![("location".into(), "/".into())], body: String::new() }),
        ("transport", Behaviour::Error { status: 200, headers: vec![], body: "<html>Log in to the Wi-Fi</html>".into() }),
        ("rate_limited", Behaviour::error(429, "rate_limit_error", "slow").with_header("retry-after", "3600")),
        ("timeout", Behaviour::Stall { text: half() }),
        ("timeout", Behaviour::Silence),
        ("transport", Behaviour::Raw(b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\nevent: message_stop\ndata: {\n\n".to_vec())),
    ] {
        let shown = format!("{behaviour:?}");
        let (outcome, calls) = asked(vec![behaviour]).await;
        assert_eq!((outcome.map_err(|error| error.class.name()), calls), (Err(class), 1), "{shown}");
    }
}

/// Every way in which a stream can break off after an answer has begun.
fn broken_off() -> Vec<Behaviour> {
    let half = || "half an answer".to_owned();
    let sent = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("a type"));
    let start = sent(json!({"type": "message_start", "message": {}}));
    let block = json!({"type": "tool_use", "id": "t", "name": "grep", "input": {}});
    let call = sent(json!({"type": "content_block_start", "index": 0, "content_block": block}));
    let piece = json!({"type": "input_json_delta", "partial_json": "{\"q"});
    let piece = sent(json!({"type": "content_block_delta", "index": 0, "delta": piece}));
    vec![
        Behaviour::Cut { text: half() },
        Behaviour::Truncated { text: half() },
        Behaviour::Raw(start.clone().into()),
        Behaviour::Raw([start, call, piece].concat().into()),
    ]
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_asked_for_once_more() {
    for behaviour in broken_off() {
        let shown = format!("{behaviour:?}");
        let (answer, calls) = asked(vec![behaviour.clone(), Behaviour::answer("a whole one")]).await;
        assert_eq!((answer.map(|answer| text(&answer)), calls), (Ok("a whole one".into()), 2), "{shown}");
        let (twice, calls) = asked(vec![behaviour.clone(), behaviour]).await;
        assert_eq!((twice.map_err(|error| error.class.name()), calls), (Err("transport"), 2), "{shown}");
    }
}

/// It was asked for as often as the limits allow, and paid for each time.
#[tokio::test]
async fn an_answer_that_ends_without_a_reason_is_not_paid_for_again() {
    let sent = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("a type"));
    let begun = sent(json!({"type": "message_start", "message": {}}));
    let text = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "half"}});
    for stream in [
        [begun.clone(), sent(json!({"type": "message_stop"}))].concat(),
        [begun, sent(text.clone()), sent(json!({"type": "message_stop"}))].concat(),
        [sent(text), "data: [DONE]\n\n".to_owned()].concat(),
    ] {
        let (outcome, calls) = asked(vec![Behaviour::Raw(stream.clone().into()); 3]).await;
        assert_eq!((outcome.map_err(|error| error.class.name()), calls), (Err("transport"), 1), "{stream}");
    }
}

/// The response of a server that ignores `stream`.
fn message(content: Value, stop_reason: &str) -> Value {
    let usage = json!({"input_tokens": 13, "cache_read_input_tokens": 8, "output_tokens": 4});
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": usage,
    })
}

fn document(status: u16, body: &Value) -> Behaviour {
    let headers = vec![("content-type".into(), "application/json".into())];
    Behaviour::Error { status, headers, body: body.to_string() }
}

#[tokio::test]
async fn a_message_that_is_not_streamed_is_the_answer() {
    let words = json!({"type": "text", "text": "預算"});
    let call = json!({"type": "tool_use", "id": "t1", "name": "grep", "input": {"q": "中文"}});
    let whole = message(json!([words]), "end_turn");
    for (behaviour, stop, blocks) in [
        (document(200, &whole), Stop::End, 1),
        (Behaviour::Raw(whole.to_string().into()), Stop::End, 1),
        (document(200, &message(json!([words]), "max_tokens")), Stop::MaxTokens, 1),
        (
            document(200, &message(json!([{"type": "thinking", "thinking": "hm"}, words, call]), "tool_use")),
            Stop::ToolUse,
            2,
        ),
    ] {
        let shown = format!("{behaviour:?}");
        let (answer, calls) = asked(vec![behaviour]).await;
        let answer = answer.expect(&shown);
        assert_eq!(
            (text(&answer).as_str(), answer.stop, answer.blocks.len(), calls),
            ("預算", stop, blocks, 1),
            "{shown}"
        );
        assert_eq!((answer.usage.prompt_tokens(), answer.usage.output_tokens), (21, 4), "{shown}");
        if let Some(Block::ToolUse { input, .. }) = answer.blocks.get(1) {
            assert_eq!(*input, json!({"q": "中文"}));
        }
    }
}

#[tokio::test]
async fn a_reason_to_stop_makes_an_answer_whole() {
    let sent = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("a type"));
    let stream = [
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "all of it"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    ];
    let stream: String = stream.into_iter().map(sent).collect();
    // The last event is whole without the line that ends it, too.
    for stream in [stream.as_str(), stream.trim_end()] {
        let (answer, calls) = asked(vec![Behaviour::Raw(stream.to_owned().into())]).await;
        assert_eq!((answer.map(|answer| text(&answer)), calls), (Ok("all of it".into()), 1));
    }
}

/// An error with its own status means the same with status 200 or within a stream.
#[tokio::test]
async fn an_error_that_comes_as_an_answer_means_the_same() {
    let invalid = "invalid_request_error";
    for (status, code, message, class) in [
        (400, invalid, "prompt is too long: 9 tokens > 8 maximum", "context_overflow"),
        (400, invalid, "the input is over the limit", "context_overflow"),
        (413, "request_too_large", "Request exceeds the maximum size", "context_overflow"),
        (429, "rate_limit_error", "slow down", "rate_limited"),
        (529, "overloaded_error", "Overloaded", "overloaded"),
        (401, "authentication_error", "invalid x-api-key", "auth"),
        (400, invalid, "the grommet is out of plim", "unexplained"),
    ] {
        let error = json!({"type": code, "message": message});
        let typed = json!({"type": "error", "error": error});
        for behaviour in [
            document(status, &typed),
            document(200, &typed),
            document(200, &json!({"error": error})),
            Behaviour::ErrorEvent { text: "half".into(), code: code.into(), message: message.into() },
            Behaviour::Raw(format!("event: error\ndata: {}\n\n", json!({"error": error})).into()),
            Behaviour::Raw(format!("data: {typed}\n\n").into()),
            Behaviour::Raw(format!("data: {}\n\n", json!({"error": error})).into()),
            Behaviour::Raw(typed.to_string().into()),
        ] {
            let shown = format!("{behaviour:?}");
            let (outcome, _) = asked(vec![behaviour; 3]).await;
            assert_eq!(outcome.map_err(|error| error.class.name()), Err(class), "{shown}");
        }
    }
}

/// Nobody knows the key of its words, or it is no event at all: people learnt only that the stream had ended.
#[tokio::test]
async fn the_words_of_an_error_that_is_not_understood_were_lost_in_a_stream() {
    let why = "Der Server ist überlastet";
    let odd = json!({"fehler": why});
    let begun = format!("data: {}\n\n", json!({"type": "message_start", "message": {}}));
    for stream in [
        format!("data: {odd}\n\n"),
        format!("event: fehler\ndata: {odd}\n\nevent: ping\ndata: {{\"type\": \"ping\"}}\n\n"),
        format!("event: fehler\ndata: {why}\n\n"),
        format!("data: {}\n\n", json!({"type": "fehler", "fehler": why})),
        format!("{begun}data: {odd}\n\n"),
        format!("{begun}event: fehler\ndata: {odd}\n\ndata: [DONE]\n\n"),
        format!("{why}: später.\nBitte warten."),
    ] {
        let (outcome, _) = asked(vec![Behaviour::Raw(stream.clone().into()); 3]).await;
        let said = outcome.expect_err("an error").to_string();
        assert!(said.ends_with(why) || said.contains(&format!("{why}: später. Bitte")), "{stream}: {said}");
    }
}

#[tokio::test]
async fn the_wait_the_provider_asks_for_is_kept_and_handed_on() {
    let patient = Behaviour::error(429, "rate_limit_error", "slow").with_header("retry-after", "0.3");
    let before = Instant::now();
    assert!(asked(vec![patient]).await.0.is_ok());
    assert!(before.elapsed() >= Duration::from_millis(300));
    let long = Behaviour::error(429, "rate_limit_error", "slow").with_header("retry-after", "61");
    let error = asked(vec![long]).await.0.expect_err("too long a wait");
    let retry_after = Some(Duration::from_secs(61));
    assert_eq!(error, ModelError::new(ErrorClass::RateLimited { retry_after }, "slow"));
}

#[tokio::test]
async fn a_wait_past_the_deadline_is_not_begun() {
    let server = stand_in::Anthropic::start().await;
    let mut config = config(&server);
    config.limits.max_wait = Duration::from_secs(9_999);
    config.limits.call_timeout = Duration::from_secs(3_000);
    server.push(Behaviour::error(529, "overloaded_error", "Overloaded").with_header("retry-after", "3600"));
    let client = Anthropic::new(config).expect("a client");
    let (hello, before) = (question("hello"), Instant::now());
    assert_eq!(client.ask(&hello, &Meter::default()).await.expect_err("no time").class.name(), "overloaded");
    assert!(before.elapsed() < PATIENCE);
}

/// Once, only an answer was counted: what was declined, broken off or cut short was paid for, and looked free.
#[tokio::test]
async fn what_was_paid_for_and_brought_no_answer_was_not_counted() {
    let cut = || Behaviour::Cut { text: "half".into() };
    for (behaviours, requests) in [
        (vec![Behaviour::stopping("no", "refusal")], 1),
        (vec![Behaviour::stopping("", "model_context_window_exceeded")], 1),
        (vec![Behaviour::Stall { text: "half".into() }], 1),
        (vec![cut(), cut()], 2),
        (vec![cut(), Behaviour::Echo], 2),
    ] {
        let server = stand_in::Anthropic::start().await;
        behaviours.iter().for_each(|behaviour| server.push(behaviour.clone()));
        let mut config = config(&server);
        config.limits.call_timeout = Duration::from_secs(2);
        let (client, meter) = (Anthropic::new(config).expect("a client"), Meter::default());
        let _ = client.ask(&question("hello"), &meter).await;
        let counted: Vec<u64> = server.requests().iter().map(|asked| asked.prompt_tokens).collect();
        assert_eq!(counted.len(), requests, "{behaviours:?}");
        assert_eq!(meter.total().prompt_tokens(), counted.iter().sum::<u64>(), "{behaviours:?}");
    }
}

#[tokio::test]
async fn a_slow_answer_is_waited_for_until_the_whole_call_takes_too_long() {
    let server = stand_in::Anthropic::start().await;
    let mut config = config(&server);
    let pause = Duration::from_millis(100);
    server.push(Behaviour::slow("one two three four", pause));
    let client = Anthropic::new(config.clone()).expect("a client");
    assert_eq!(
        client.ask(&question("hello"), &Meter::default()).await.map(|answer| text(&answer)),
        Ok("one two three four".into())
    );
    config.limits.call_timeout = SHORT;
    server.push(Behaviour::slow("one two three four", pause));
    let client = Anthropic::new(config).expect("a client");
    assert_eq!(client.ask(&question("hello"), &Meter::default()).await, Err(ModelError::not_done_within(SHORT)));
}

#[tokio::test]
async fn an_answer_is_heard_as_it_grows() {
    #[derive(Default)]
    struct Heard(std::sync::Mutex<Vec<String>>);
    impl Listener for Heard {
        fn hear(&self, text: &str) {
            self.0.lock().expect("no panic").push(text.to_owned());
        }
    }
    let server = stand_in::Anthropic::start().await;
    server.push(Behaviour::slow("one two three four", Duration::from_millis(20)));
    let client = Anthropic::new(config(&server)).expect("a client");
    let heard = Heard::default();
    let answer = client.ask_aloud(&question("hello"), &heard, &Meter::default()).await.expect("an answer");
    let heard = heard.0.into_inner().expect("no panic");
    assert!(heard.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{heard:?}");
    assert!(heard.len() > 2 && text(&answer).starts_with(heard.last().expect("something")), "{heard:?}");
}

#[tokio::test]
async fn the_providers_window_is_learnt_from_its_refusal() {
    let server = stand_in::Anthropic::start().await;
    server.set_window(10);
    let client = Anthropic::new(config(&server)).expect("a client");
    let error = client.ask(&question(&"預算".repeat(20)), &Meter::default()).await.expect_err("too long");
    let observed = server.requests()[0].prompt_tokens;
    let ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } = error.class else { panic!("{error}") };
    assert_eq!((observed_tokens, allowed_tokens), (Some(observed), Some(10)));
}

/// The room for the answer alone was more than the window.
#[tokio::test]
async fn every_question_was_refused_where_the_window_was_smaller_than_the_room_for_its_answer() {
    let server = stand_in::Anthropic::start().await;
    server.set_window(6_000);
    server.counts_the_answer();
    let client = Anthropic::new(config(&server)).expect("a client");
    let asked = |text: &str| Request { max_answer_tokens: 8_192, ..question(text) };
    for _ in 0..3 {
        client.ask(&asked("hello"), &Meter::default()).await.expect("an answer");
    }
    let rooms: Vec<_> = server.requests().iter().map(|asked| asked.body["max_tokens"].clone()).collect();
    assert_eq!(rooms, [8_192, 1_500, 8_192, 1_500, 1_500]);
    let too_long = asked(&"預算".repeat(2_500));
    let error = client.ask(&too_long, &Meter::default()).await.expect_err("too long beside any answer");
    assert_eq!((error.class.name(), server.requests().len()), ("context_overflow", 6));
}

/// What was asked for beside a long prompt, to think, was too much for a window that is smaller than stated.
#[tokio::test]
async fn a_prompt_without_room_to_think_beside_it_was_taken_for_too_long() {
    let server = stand_in::Anthropic::start().await;
    server.set_window(140_000);
    server.counts_the_answer();
    let mut config = config(&server);
    config.model = "claude-sonnet-5-5".into();
    let client = Anthropic::new(config).expect("a client");
    let asked = |words: usize| Request { max_answer_tokens: 8_192, ..question(&"budget ".repeat(words)) };
    for _ in 0..2 {
        client.ask(&asked(68_000), &Meter::default()).await.expect("an answer");
    }
    let requests = server.requests();
    let rest = 140_000 - requests[0].prompt_tokens;
    let rooms: Vec<_> = requests.iter().filter_map(|asked| asked.body["max_tokens"].as_u64()).collect();
    assert_eq!(rooms, [32_768, rest, 32_768, rest]);
    assert_eq!(requests[0].body["messages"], requests[1].body["messages"]);
    assert_eq!(client.most_given(), None, "another prompt leaves another rest");
    let error = client.ask(&asked(77_000), &Meter::default()).await.expect_err("too long beside an answer");
    assert_eq!((error.class.name(), server.requests().len()), ("context_overflow", 5));
}

#[tokio::test]
async fn nobody_listening_is_a_failed_connection() {
    let server = stand_in::Anthropic::start().await;
    let mut config = config(&server);
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    config.base_url = base_url(&format!("http://{free}/")).expect("loopback");
    let error = Anthropic::new(config)
        .expect("a client")
        .ask(&question("hello"), &Meter::default())
        .await
        .expect_err("nobody there");
    assert_eq!(error.class.name(), "transport");
    assert!(error.to_string().to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_wrong_key_is_said_and_never_shown() {
    let server = stand_in::Anthropic::start().await;
    server.expect_refusals("invalid x-api-key");
    let mut config = config(&server);
    config.api_key = Some(SecretString::from("sk-secret"));
    let client = Anthropic::new(config).expect("a client");
    assert!(!format!("{client:?}").contains("sk-secret"));
    let error = client.ask(&question("hello"), &Meter::default()).await.expect_err("a wrong key");
    assert_eq!(error, ModelError::new(ErrorClass::Auth, "invalid x-api-key"));
}

#[tokio::test]
async fn the_window_is_known_by_family_and_can_be_set() {
    let server = stand_in::Anthropic::start().await;
    let mut config = config(&server);
    let window = |config: &Config| Anthropic::new(config.clone()).expect("a client").window();
    assert_eq!(window(&config), 200_000);
    config.model = DEFAULT_MODEL.into();
    assert_eq!(window(&config), 1_000_000);
    config.window = Some(8_000);
    assert_eq!(window(&config), 8_000);
}

#[test]
fn a_client_of_the_real_address_can_be_built() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = base_url(DEFAULT_BASE_URL).expect("https");
    let client =
        Anthropic::new(Config::new(Some(SecretString::from(KEY)), url, DEFAULT_MODEL)).expect("a TLS configuration");
    assert_eq!(client.endpoint.url.as_str(), "https://api.anthropic.com/v1/messages");
}

#[test]
fn usage_adds_up() {
    let usage = Usage { input_tokens: 1, output_tokens: 2, cache_read_tokens: 4, cache_creation_tokens: 8 };
    assert_eq!(usage.prompt_tokens(), 13);
    let mut sum = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..usage };
    sum.add(usage);
    assert_eq!((sum.prompt_tokens(), sum.output_tokens), (u64::MAX, u64::MAX));
}
