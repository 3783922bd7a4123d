use pmk_core::{Marker, Message, Origin, Role};

use super::{
    talk::{CHINESE, ENGLISH, MAX_QUOTE_CHARS},
    *,
};
use crate::classify::{Failed, classify};

fn request(messages: Vec<Message>) -> Request {
    let messages = pmk_core::message::shared(messages);
    Request { system: "You are a helpful assistant.".into(), messages, max_answer_tokens: 1_000, ..Request::default() }
}

fn say(messages: Vec<Message>) -> String {
    let answer = Sim::new(SimConfig::default()).answer(&request(messages)).expect("an answer");
    pmk_core::message::plain_text(&answer.blocks)
}

fn conversation(question: &str) -> Vec<Message> {
    vec![
        Message::user("The spare key is under the blue flower pot. 北極星專案的預算是五百萬元。"),
        Message::assistant("I will remember that."),
        Message::user("And the release is on Friday! 負責人是王小明。"),
        Message::assistant(ENGLISH.not_found),
        Message::user(question),
    ]
}

#[test]
fn it_quotes_in_the_language_of_the_question() {
    for (question, expected) in [
        ("Where is the spare key?", "From this conversation: \"The spare key is under the blue flower pot.\""),
        ("When is the release?", "From this conversation: \"And the release is on Friday!\""),
        ("北極星專案的預算是多少？", "對話裡提到：「北極星專案的預算是五百萬元。」"),
        ("請問負責人是誰？", "對話裡提到：「負責人是王小明。」"),
    ] {
        assert_eq!(say(conversation(question)), expected, "{question}");
    }
}

#[test]
fn it_says_what_it_cannot_find() {
    for question in ["What is the wifi password?", "", "Where?", "What can I see of this conversation?"] {
        assert_eq!(say(conversation(question)), ENGLISH.not_found, "{question}");
    }
    for question in ["停車場在哪裡？", "嗎"] {
        assert_eq!(say(conversation(question)), CHINESE.not_found, "{question}");
    }
}

/// Regression: every first message of a new user got the same answer.
#[test]
fn what_people_say_first() {
    let mut messages = vec![];
    let mut shown = String::new();
    for said in [
        "hello there",
        "The part number of widget 29 is 4711.",
        "The part number of widget 2 is 815.",
        "part number of widget 2?",
        "What is the part number of widget 3?",
        "what did I say?",
        "who are you?",
        "what can you do?",
        "help",
        "Good morning!",
        "My name is Ann.",
        "What is my name?",
        "thanks!",
        "ok",
        "bye",
        "你好",
        "你好嗎？",
        "好",
        "你能做什麼？",
        "你會做什麼？",
        "說明",
        "我叫小安。",
        "我叫什麼名字？",
        "你還記得我叫什麼嗎？",
        "我說過什麼？",
        "發表會在星期五。",
        "發表會是哪一天？",
        "我剛才說了什麼？",
        "你是誰？",
        "謝謝",
        "再見",
        "停車場在哪裡？",
    ] {
        messages.push(Message::user(said));
        let answer = say(messages.clone());
        shown += &format!("> {said}\n{answer}\n");
        messages.push(Message::assistant(answer));
    }
    messages.splice(..2, [Marker::new(7).message(), Message::assistant("…")]);
    messages.push(Message::user("Who paints the fence?"));
    shown += &format!("> (seven turns are dropped) Who paints the fence?\n{}\n", say(messages));
    insta::assert_snapshot!(shown);
}

#[test]
fn neither_the_question_nor_the_system_prompt_nor_a_marker_is_quoted() {
    let left = |language: &talk::Language, turns: &str| format!("{}{turns}", language.not_found);
    let mut messages = conversation("The wifi password is secret. What is the wifi password?");
    messages.insert(2, Marker::new(3).message());
    assert_eq!(say(messages.clone()), left(&ENGLISH, " Earlier turns that are not in my window any more: 3."));
    messages.push(Message::assistant(ENGLISH.not_found));
    messages.push(Message::user("Are you a helpful assistant?"));
    assert_eq!(say(messages.clone()), left(&ENGLISH, " Earlier turns that are not in my window any more: 3."));
    messages.push(Message::user("省略 3 輪較舊的對話？"));
    assert_eq!(say(messages), left(&CHINESE, "較早的 3 輪已經不在我的視窗裡。"));
}

#[test]
fn context_beside_the_question_counts() {
    let blocks = ["The wifi password is tulip.", "What is the wifi password?"];
    let blocks = blocks.map(|text| Block::Text { text: text.into() }).to_vec();
    let asked = Message { role: Role::User, origin: Origin::User, blocks };
    assert_eq!(say(vec![asked]), "From this conversation: \"The wifi password is tulip.\"");
}

#[test]
fn tool_results_count_and_the_question_stands_before_them() {
    let call = Block::ToolUse { id: "t".into(), name: "grep".into(), input: serde_json::json!({}) };
    let content = "The owner of module auth is Lin.".into();
    let result = Block::ToolResult { tool_use_id: "t".into(), content, is_error: false };
    let messages = vec![
        Message::user("Who is the owner of module auth?"),
        Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] },
        Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] },
    ];
    assert_eq!(say(messages), "From this conversation: \"The owner of module auth is Lin.\"");
}

#[test]
fn a_quote_of_a_quote_is_framed_once() {
    let mut messages = conversation("Where is the spare key?");
    for _ in 0..3 {
        let answer = say(messages.clone());
        assert_eq!(answer, "From this conversation: \"The spare key is under the blue flower pot.\"");
        messages.push(Message::assistant(answer));
        messages.push(Message::user("Where is the spare key?"));
        messages.remove(0);
    }
}

#[test]
fn it_counts_with_the_hosts_estimator() {
    let sim = |factor, overhead_tokens| Sim::new(SimConfig { factor, overhead_tokens, ..SimConfig::default() });
    let request = request(conversation("Where is the spare key?"));
    let estimate = u64::from(tokens::estimate(&request.system))
        + request.messages.iter().map(|message| u64::from(tokens::message(message))).sum::<u64>();
    let prompt = |sim: Sim| sim.answer(&request).expect("an answer").usage.prompt_tokens();
    assert_eq!(prompt(sim(1.0, 0)), estimate);
    assert_eq!(prompt(sim(2.0, 7)), estimate * 2 + 7);
    let said = sim(1.0, 0).answer(&request).expect("an answer");
    let text = pmk_core::message::plain_text(&said.blocks);
    assert_eq!(said.usage.output_tokens, u64::from(tokens::estimate(&text)));
}

/// It was accepted, and the first question ended the gateway or came out as a prompt of no tokens.
#[test]
fn an_overhead_that_no_sum_can_hold_was_accepted() {
    let most = SimConfig::parse("overhead=4294967295").expect("a large one");
    let refused = Sim::new(most).answer(&request(conversation("Where is the spare key?")));
    let class = refused.expect_err("no window is that large").class;
    assert!(matches!(class, ErrorClass::Overflow { observed_tokens: Some(4_294_967_296..), .. }), "{class:?}");
    for text in ["4294967296", "18446744073709551615", "-1"] {
        let why = format!("`{text}` is not a valid value of `overhead`");
        assert_eq!(SimConfig::parse(&format!("overhead={text}")).map(|config| config.overhead_tokens), Err(why));
    }
}

#[test]
fn over_its_window_it_refuses_as_anthropic_does() {
    let request = request(conversation("Where is the spare key?"));
    let needed = Sim::new(SimConfig::default()).count(&request);
    let with_window = |window| Sim::new(SimConfig { window, ..SimConfig::default() }).answer(&request);
    let message = format!("prompt is too long: {needed} tokens > {} maximum", needed - 1);
    let body = serde_json::json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    let anthropic = classify(&Failed { status: Some(400), body: &body.to_string(), ..Failed::default() });
    assert_eq!(with_window(needed - 1), Err(anthropic));
    // Only the prompt is checked against the window; an answer that does not fit is cut short.
    let full = with_window(needed).expect("no room is not too long a prompt");
    assert_eq!((full.stop, full.blocks), (Stop::WindowFull, vec![]));
    let tight = with_window(needed + 5).expect("an answer");
    assert_eq!(tight.stop, Stop::WindowFull);
    assert!(tight.usage.output_tokens <= 5 && !tight.blocks.is_empty());
}

#[test]
fn an_answer_keeps_to_its_room() {
    let mut asked = request(conversation("Where is the spare key?"));
    asked.max_answer_tokens = 4;
    let answer = Sim::new(SimConfig::default()).answer(&asked).expect("an answer");
    assert_eq!(answer.stop, Stop::MaxTokens);
    assert!(answer.usage.output_tokens <= 4);
    let long = format!("The story of the key {}", "goes on and on ".repeat(100));
    let answer = say(vec![Message::user(long), Message::user("What is the story of the key?")]);
    assert!(answer.ends_with("…\"") && answer.chars().count() < MAX_QUOTE_CHARS + 40, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn it_takes_its_time_and_always_says_the_same() {
    let sim = Sim::new(SimConfig { delay_ms: 30, ..SimConfig::default() });
    let asked = request(conversation("負責人是誰？"));
    let before = tokio::time::Instant::now();
    let first = sim.ask(&asked, &Meter::default()).await;
    assert_eq!(before.elapsed(), Duration::from_millis(30));
    assert_eq!(first, sim.ask(&asked, &Meter::default()).await);
}
