use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{holes, sse::Decoder};

fn run(events: &[Value]) -> Result<Option<Answer>, ModelError> {
    let mut assembly = Assembly::default();
    for data in events {
        let name = data["type"].as_str().unwrap_or("message").to_owned();
        let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        if let Some(answer) = assembly.apply(&Event { name, data })? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"usage": {
        "input_tokens": 3, "cache_creation_input_tokens": null, "cache_read_input_tokens": 40, "output_tokens": 1}}})
}

fn block(index: usize, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn text(index: usize) -> [Value; 4] {
    [
        block(index, json!({"type": "text", "text": ""})),
        delta(index, json!({"type": "text_delta", "text": "Hel"})),
        delta(index, json!({"type": "text_delta", "text": "lo"})),
        stop(index),
    ]
}

/// Marks of quotation without end took the memory of the whole machine where they were read.
#[test]
fn an_answer_of_many_mebibytes_was_kept() {
    let quoted = ">".repeat(1 << 18);
    let said = delta(0, json!({"type": "text_delta", "text": quoted}));
    let input = delta(0, json!({"type": "input_json_delta", "partial_json": quoted}));
    let whole = json!({"type": "message", "content": vec![json!({"type": "text", "text": quoted}); 5], "stop_reason": "end_turn"});
    for large in [vec![said.clone(); 5], vec![input; 5], vec![whole]] {
        let error = run(&large).expect_err("too much");
        assert!(error.to_string().contains("larger than 1048576 bytes"), "{error}");
    }
    // What is thought is not kept.
    let thought = delta(1, json!({"type": "thinking_delta", "thinking": quoted}));
    let answer = run(&[vec![said; 4], vec![thought; 64], end("end_turn").to_vec()].concat());
    assert_eq!(answer.expect("an answer").expect("a whole one").blocks.len(), 1);
}

#[test]
fn an_answer_with_thinking_and_a_tool_call() {
    let events = [
        vec![start(), json!({"type": "ping"}), json!({"type": "later_invention", "x": 1})],
        vec![
            block(0, json!({"type": "thinking", "thinking": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "s"})),
            stop(0),
        ],
        text(1).to_vec(),
        vec![
            block(2, json!({"type": "tool_use", "id": "t", "name": "n", "input": {}})),
            delta(2, json!({"type": "input_json_delta", "partial_json": "{\"a\""})),
            delta(2, json!({"type": "input_json_delta", "partial_json": ":1}"})),
            stop(2),
            block(3, json!({"type": "tool_use", "id": "u", "name": "n", "input": {}})),
            stop(3),
        ],
        end("tool_use").to_vec(),
    ]
    .concat();
    let answer = run(&events).expect("an answer").expect("a whole one");
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(
        answer.blocks,
        [
            Block::Text { text: "Hello".into() },
            Block::ToolUse { id: "t".into(), name: "n".into(), input: json!({"a": 1}) },
            Block::ToolUse { id: "u".into(), name: "n".into(), input: json!({}) },
        ]
    );
    let usage = Usage { input_tokens: 3, output_tokens: 7, cache_read_tokens: 40, cache_creation_tokens: 0 };
    assert_eq!(answer.usage, usage);
    assert_eq!(answer.usage.prompt_tokens(), 43);
}

#[test]
fn why_it_ended() {
    for (reason, expected) in [
        ("end_turn", Ok(Stop::End)),
        ("stop_sequence", Ok(Stop::End)),
        ("max_tokens", Ok(Stop::MaxTokens)),
        ("model_context_window_exceeded", Ok(Stop::WindowFull)),
        ("refusal", Err("refused")),
        // The text is kept, whatever the stop reason is.
        ("pause_turn", Ok(Stop::End)),
        ("invented", Ok(Stop::End)),
    ] {
        let events = [vec![start()], text(0).to_vec(), end(reason).to_vec()].concat();
        let got = run(&events).map(|answer| answer.expect("whole").stop);
        assert_eq!(got.map_err(|error| error.class.name()), expected, "{reason}");
    }
    let nothing_said = run(&[vec![start()], end("invented").to_vec()].concat());
    assert_eq!(nothing_said.map_err(|error| error.class.name()), Err("other"));
}

/// Proxies write what they leave out as `null`, whatever its type: the answer had been paid for, and was thrown away.
#[test]
fn a_null_costs_no_answer() {
    let none = json!(null);
    let call = |id: &Value, name: &Value| json!({"type": "tool_use", "id": id, "name": name, "input": none});
    let whole = [vec![start()], text(0).to_vec(), end("end_turn").to_vec()].concat();
    for (at, odd) in [
        (0, json!({"type": "message_start", "message": none})),
        (1, block(0, json!({"type": "text", "text": none}))),
        (2, delta(0, json!({"type": "text_delta", "text": none}))),
        (2, delta(0, none.clone())),
        (4, block(1, call(&none, &none))),
        (4, none.clone()),
        (5, json!({"type": "message_delta", "delta": none, "usage": none})),
        (5, json!({"type": "message_delta", "delta": {"stop_reason": none, "stop_details": none}})),
    ] {
        let mut events = whole.clone();
        match at {
            // Instead of what was there.
            0 | 1 => events[at] = odd.clone(),
            _ => events.insert(at + 1, odd.clone()),
        }
        if at == 4 && odd != none {
            events.insert(at + 2, stop(1));
        }
        let blocks = run(&events).map(|answer| answer.map(|answer| answer.blocks));
        assert_eq!(blocks, Ok(Some(vec![Block::Text { text: "Hello".into() }])), "{odd}");
    }
    let content = json!([{"type": "text", "text": "Hello"}, none, {"type": "text", "text": none}, call(&none, &none)]);
    for (content, blocks) in [(content, vec![Block::Text { text: "Hello".into() }]), (none, vec![])] {
        let document = json!({"type": "message", "content": content, "stop_reason": "end_turn"});
        let answer = run(&[document]).map(|answer| answer.map(|answer| answer.blocks));
        assert_eq!(answer, Ok(Some(blocks)));
    }
}

/// Proxies and compatible servers, whose answers had been paid for, and were thrown away.
#[test]
fn an_answer_whose_blocks_are_announced_otherwise_is_whole() {
    let hello = |index| text(index).to_vec();
    let call = |index: usize| block(index, json!({"type": "tool_use", "id": "t", "name": "n", "input": {}}));
    let input = |index: usize, json: &str| delta(index, json!({"type": "input_json_delta", "partial_json": json}));
    let unnumbered = |mut event: Value| {
        event.as_object_mut().expect("an event").remove("index");
        event
    };
    let (first, second) = (json!({"type": "thinking", "thinking": ""}), json!({"type": "text_delta", "text": "Hello"}));
    let both = [call(1), input(1, "{\"a\""), input(1, ":1}"), stop(1)];
    let done = json!("[DONE]");
    let called = Block::ToolUse { id: "t".into(), name: "n".into(), input: json!({"a": 1}) };
    let said = Block::Text { text: "Hello".into() };
    for (odd, events, is_called) in [
        ("no stop", hello(0)[..3].to_vec(), false),
        ("no stop before the next start", [&hello(0)[..3], &both[..3]].concat(), true),
        ("a second stop", [&hello(0)[..], &[stop(0), stop(7)]].concat(), false),
        ("no start", hello(0)[1..].to_vec(), false),
        ("no start after thinking", vec![block(0, first.clone()), stop(0), delta(0, second.clone())], false),
        ("no start, and thinking is open", vec![block(0, first), delta(1, second.clone())], false),
        ("counted from 1", [hello(1), vec![call(2), input(2, "{\"a\":1}"), stop(2)]].concat(), true),
        ("always 0", [hello(0), vec![call(0), input(0, "{\"a\":1}"), stop(0)]].concat(), true),
        ("always 0, without a stop", [&hello(0)[..3], &[call(0), input(0, "{\"a\":1}")]].concat(), true),
        ("no index", hello(0).into_iter().chain(both.clone()).map(unnumbered).collect(), true),
        ("a text within a call", [&both[..2], &[delta(1, second)], &both[2..]].concat(), true),
        ("two at once", [&hello(0)[..2], &both[..2], &hello(0)[2..3], &both[2..], &hello(0)[3..]].concat(), true),
    ] {
        for end in [end("end_turn").to_vec(), vec![end("end_turn")[0].clone(), done.clone()]] {
            for start in [vec![start()], vec![]] {
                let answer = run(&[start, events.clone(), end.clone()].concat()).expect(odd).expect(odd);
                let (texts, calls): (Vec<Block>, Vec<Block>) =
                    answer.blocks.into_iter().partition(|block| matches!(block, Block::Text { .. }));
                assert_eq!(texts, std::slice::from_ref(&said), "{odd}");
                assert_eq!(calls, if is_called { vec![called.clone()] } else { vec![] }, "{odd}");
            }
        }
    }
}

#[test]
fn a_call_that_the_room_cut_off_is_left_out_and_one_that_cannot_be_read_goes_back_to_the_model() {
    let call = vec![
        block(0, json!({"type": "tool_use", "id": "t", "name": "n"})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\"a"})),
        stop(0),
    ];
    let cut = run(&[vec![start()], call.clone(), end("max_tokens").to_vec()].concat());
    assert_eq!(cut.expect("an answer").expect("a whole one").blocks, []);
    let whole =
        run(&[vec![start()], call, end("tool_use").to_vec()].concat()).expect("an answer").expect("a whole one");
    let unreadable = Block::ToolUse { id: "t".into(), name: "n".into(), input: json!({"unreadable": "{\"a"}) };
    assert_eq!((whole.stop, whole.blocks), (Stop::ToolUse, vec![unreadable]));
}

/// Servers that send the whole input of a call with its beginning, and no piece of it: the call was made without any.
#[test]
fn an_input_that_came_with_the_beginning_of_its_call_was_lost() {
    let begun = |input: &Value| block(0, json!({"type": "tool_use", "id": "t", "name": "n", "input": input}));
    let piece = |json: &str| delta(0, json!({"type": "input_json_delta", "partial_json": json}));
    let (whole, none) = (json!({"a": 1}), json!({}));
    for (kind, events) in [
        ("no piece", vec![begun(&whole), stop(0)]),
        ("an empty piece", vec![begun(&whole), piece(""), stop(0)]),
        ("once more in pieces", vec![begun(&whole), piece("{\"a\""), piece(":1}"), stop(0)]),
        ("in pieces alone", vec![begun(&none), piece("{\"a\":1}"), stop(0)]),
    ] {
        for (reason, expected) in [("tool_use", Stop::ToolUse), ("max_tokens", Stop::MaxTokens)] {
            let answer = run(&[vec![start()], events.clone(), end(reason).to_vec()].concat());
            let answer = answer.expect(kind).expect(kind);
            let called = Block::ToolUse { id: "t".into(), name: "n".into(), input: whole.clone() };
            assert_eq!((answer.stop, answer.blocks), (expected, vec![called]), "{kind}");
        }
    }
}

/// Proxies in front of other models end an answer with `end_turn`, whatever is in it: the calls were dropped.
#[test]
fn calls_are_calls_whatever_stop_reason_they_come_with() {
    let call = |input: &str| {
        vec![
            block(0, json!({"type": "tool_use", "id": "t", "name": "n"})),
            delta(0, json!({"type": "input_json_delta", "partial_json": input})),
            stop(0),
        ]
    };
    for (reason, expected) in [
        ("end_turn", Stop::ToolUse),
        ("stop_sequence", Stop::ToolUse),
        ("invented", Stop::ToolUse),
        ("max_tokens", Stop::MaxTokens),
    ] {
        let answer = run(&[vec![start()], call("{\"a\":1}"), end(reason).to_vec()].concat());
        let answer = answer.expect("an answer").expect("a whole one");
        assert_eq!((answer.stop, answer.blocks.len()), (expected, 1), "{reason}");
    }
    let before_its_input = run(&[vec![start()], call(""), end("max_tokens").to_vec()].concat());
    assert_eq!(before_its_input.expect("an answer").expect("a whole one").blocks, [], "cut off before its input");
}

#[test]
fn nothing_partial_is_an_answer() {
    let whole = [vec![start()], text(0).to_vec(), end("end_turn").to_vec()].concat();
    for length in 0..whole.len() {
        assert_eq!(run(&whole[..length]), Ok(None), "after {length} events");
    }
    for (name, events) in [
        ("no stop reason", vec![start(), json!({"type": "message_stop"})]),
        ("a null stop reason", vec![start(), end("")[1].clone()]),
        ("an end without an answer", vec![json!("[DONE]")]),
        ("no content but a text", vec![start(), json!({"type": "content_block_start", "content_block": "text"})]),
        ("too many blocks", [vec![start()], vec![block(0, json!({"type": "image"})); MAX_BLOCKS + 1]].concat()),
    ] {
        assert_eq!(run(&events).map_err(|error| error.class.name()), Err("transport"), "{name}");
    }
}

#[test]
fn an_error_in_the_stream_keeps_its_meaning() {
    for (code, class) in [("overloaded_error", "overloaded"), ("rate_limit_error", "rate_limited")] {
        let error = json!({"type": "error", "error": {"type": code, "message": "m"}});
        assert_eq!(run(&[start(), error]).map_err(|error| error.class.name()), Err(class));
    }
}

#[test]
fn events_of_other_names_need_not_be_json() {
    let mut assembly = Assembly::default();
    let mut apply = |name: &str, data: &str| assembly.apply(&Event { name: name.into(), data: data.into() });
    assert_eq!(apply("ping", "!"), Ok(None));
    assert_eq!(apply("news", "!"), Ok(None));
    assert_eq!(apply("message_start", "!").map_err(|error| error.class.name()), Err("transport"));
}

proptest! {
    #[test]
    fn an_answer_with_its_text_and_a_reason_to_stop_is_whole_whatever_else_is_missing(holes in holes::some()) {
        let usage = json!({"input_tokens": 3, "output_tokens": 1});
        let call = json!({"type": "tool_use", "id": "t", "name": "n", "input": {}});
        let mut events = [
            vec![json!({"type": "message_start", "message": {"id": "m", "content": [], "usage": usage}})],
            vec![block(0, json!({"type": "thinking", "thinking": ""})), stop(0)],
            text(1).to_vec(),
            vec![block(2, call), delta(2, json!({"type": "input_json_delta", "partial_json": "{}"})), stop(2)],
            text(3).to_vec(),
            end("tool_use").to_vec(),
        ]
        .concat();
        holes::make(&mut events, &holes, &["type", "text", "stop_reason"]);
        let answer = run(&events).map(|answer| answer.map(|answer| pmk_core::message::plain_text(&answer.blocks)));
        prop_assert_eq!(answer, Ok(Some("Hello\nHello".to_owned())));

        let content = json!([{"type": "thinking", "thinking": ""}, {"type": "text", "text": "Hello"}, {"type": "image"}]);
        let mut document = [json!({
            "id": "m", "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn",
            "stop_details": {"explanation": null}, "usage": usage,
        })];
        holes::make(&mut document, &holes, &["type", "text", "stop_reason"]);
        let answer = run(&document).map(|answer| answer.map(|answer| pmk_core::message::plain_text(&answer.blocks)));
        prop_assert_eq!(answer, Ok(Some("Hello".to_owned())));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        feed(&bytes);
    }

    #[test]
    fn no_order_of_events_makes_the_reader_panic(
        picks in prop::collection::vec((0usize..20, 0usize..3), 0..30),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        for (pick, index) in picks {
            let data = match pick {
                0 => start().to_string(),
                1 => block(index, json!({"type": "text", "text": "é"})).to_string(),
                2 => block(index, json!({"type": "tool_use", "id": "", "name": ""})).to_string(),
                3 => block(index, json!({"type": "image"})).to_string(),
                4 => delta(index, json!({"type": "text_delta", "text": "中"})).to_string(),
                5 => delta(index, json!({"type": "input_json_delta", "partial_json": "{}"})).to_string(),
                6 => stop(index).to_string(),
                7..10 => end("end_turn")[0].to_string(),
                10 => end("end_turn")[1].to_string(),
                11 => "{}".into(),
                12 => "null".into(),
                13 => json!({"type": "error"}).to_string(),
                _ => text(0)[pick % 4].to_string(),
            };
            bytes.extend_from_slice(format!("event: message\ndata: {data}\n\n").as_bytes());
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        feed(&bytes);
    }
}

fn feed(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    let mut assembly = Assembly::default();
    for chunk in bytes.chunks(7) {
        for event in decoder.push(chunk).expect("small") {
            if assembly.apply(&event).is_err() {
                return;
            }
        }
    }
}
