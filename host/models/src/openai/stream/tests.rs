use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::holes;

fn event(data: impl ToString) -> Event {
    Event { name: "message".into(), data: data.to_string() }
}

fn delta(delta: Value) -> Event {
    event(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null}))
}

fn finish(reason: &str) -> Event {
    event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

fn assemble(events: &[Event]) -> Result<Option<Answer>, ModelError> {
    let mut assembly = Assembly::default();
    for event in events {
        if let Some(answer) = assembly.apply(event)? {
            return Ok(Some(answer));
        }
    }
    assembly.end().transpose()
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input }
}

#[test]
fn text_and_usage() {
    let usage = json!({"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}});
    let events = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "預"})),
        delta(json!({"content": "算", "reasoning_content": "hm"})),
        finish("stop"),
        event(json!({"choices": [], "usage": usage})),
        event("[DONE]"),
    ];
    let answer = assemble(&events).expect("an answer").expect("a whole one");
    assert_eq!(answer.blocks, [Block::Text { text: "預算".into() }]);
    assert_eq!((answer.stop, answer.usage.prompt_tokens(), answer.usage.cache_read_tokens), (Stop::End, 12, 8));
    assert_eq!(assemble(&events[..5]).expect("no [DONE]"), Some(answer));
    assert_eq!(assemble(&events[..3]), Ok(None), "cut off");
}

/// Servers that do not take the thoughts of such models out of their answers: people were shown them.
#[test]
fn thoughts_in_front_of_an_answer_are_not_part_of_it() {
    let events = ["\n<thi", "nk>\nThey ask for", " the sum.</th", "ink>\n\n", "It is", " four."];
    let mut assembly = Assembly::default();
    let mut heard = Vec::new();
    for text in events {
        assembly.apply(&delta(json!({"content": text}))).expect("a piece");
        heard.push(assembly.text().into_owned());
    }
    assert_eq!(heard, ["", "", "", "", "It is", "It is four."]);
    let answer = assembly.end().is_none().then(|| assembly.done()).flatten().expect("an end").expect("an answer");
    assert_eq!(answer.blocks, [Block::Text { text: "It is four.".into() }]);
    // Cut while it thinks, it has said nothing; an element that never ends is no thought.
    let cut = |reason| assemble(&[delta(json!({"content": "<think>so"})), finish(reason)]).expect("an end");
    assert_eq!(cut("length").expect("an answer").blocks, []);
    assert_eq!(cut("stop").expect("an answer").blocks, [Block::Text { text: "<think>so".into() }]);
    let calls = json!({"content": "<think>look", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]});
    let called = assemble(&[delta(calls), finish("tool_calls")]).expect("an end").expect("an answer");
    assert_eq!(called.blocks, [call("a", "f", json!({}))]);
}

/// All that had come was searched once more with each piece: a long answer took time that grew with its square.
#[test]
fn a_mark_that_comes_in_pieces_ends_thoughts_although_no_piece_is_searched_twice() {
    for (text, said) in [
        ("<think>預算？\n</think>\n\n四。", "四。"),
        ("預算？\n</think>\n\n四。", "四。"),
        ("預算</think>四。", "預算</think>四。"),
        ("\n</think>四。", "\n</think>四。"),
    ] {
        let whole = assemble(&[delta(json!({"content": text})), finish("stop")]).expect("an end").expect("an answer");
        let letters = text.chars().map(|letter| delta(json!({"content": letter})));
        let in_letters = letters.chain([finish("stop")]).collect::<Vec<_>>();
        let in_letters = assemble(&in_letters).expect("an end").expect("an answer");
        let blocks = [Block::Text { text: said.into() }];
        assert_eq!([whole.blocks, in_letters.blocks], [blocks.to_vec(), blocks.to_vec()], "{text}");
    }
}

#[test]
fn counts_that_are_none_cost_no_answer() {
    let none = json!(null);
    for usage in [
        json!({"prompt_tokens": -5, "completion_tokens": "many", "total_tokens": 1e300}),
        json!({"prompt_tokens": none, "prompt_tokens_details": none}),
        json!({"prompt_tokens": 12.0, "prompt_tokens_details": 8}),
        json!("a lot"),
        json!([1, 2]),
    ] {
        let events = [
            delta(json!({"content": "預"})),
            finish("stop"),
            event(json!({"choices": [], "usage": usage})),
            event("[DONE]"),
        ];
        let answer = assemble(&events).expect("an answer").expect("a whole one");
        assert_eq!(answer.blocks, [Block::Text { text: "預".into() }], "{usage}");
    }
}

/// Servers write what they leave out as `null`, whatever its type: the answer had been paid for, and was thrown away.
#[test]
fn a_null_costs_no_answer() {
    let none = json!(null);
    let whole = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}});
    let unnumbered = json!({"index": none, "id": "a", "function": {"name": "f", "arguments": "{}"}});
    let text = Block::Text { text: "預".into() };
    let called = call("a", "f", json!({}));
    for (odd, blocks) in [
        (json!({"choices": none, "usage": {"prompt_tokens": 3}}), vec![text.clone()]),
        (json!({"choices": [none]}), vec![text.clone()]),
        (none.clone(), vec![text.clone()]),
        (json!(""), vec![text.clone()]),
        (json!({"choices": [{"index": none, "delta": none, "message": none}]}), vec![text.clone()]),
        (json!({"choices": [{"delta": {"content": [none, {"text": none}]}}]}), vec![text.clone()]),
        (json!({"choices": [{"delta": {"tool_calls": [none]}}]}), vec![text.clone()]),
        (json!({"choices": [{"delta": {"tool_calls": [{"id": "a", "function": none}]}}]}), vec![text.clone()]),
        (json!({"choices": [{"delta": {"tool_calls": [unnumbered]}}]}), vec![text.clone(), called.clone()]),
        (json!({"choices": [{"index": none, "delta": {"tool_calls": [whole]}}]}), vec![text.clone(), called]),
    ] {
        // Not a text in JSON, but no data at all.
        let odd = if odd == "" { event("") } else { event(odd) };
        let odd = std::slice::from_ref(&odd);
        let said = [delta(json!({"content": "預"})), finish("stop")];
        for events in [[odd, &said[..]].concat(), [&said[..1], odd, &said[1..]].concat(), [&said[..], odd].concat()] {
            let answer = assemble(&events).map(|answer| answer.map(|answer| answer.blocks));
            assert_eq!(answer, Ok(Some(blocks.clone())), "{odd:?}");
        }
    }
}

#[test]
fn an_error_in_which_nothing_is_said_costs_no_answer() {
    for empty in
        [json!(""), json!({}), json!({"code": 0, "message": ""}), json!([]), json!(false), json!({"a": [null]})]
    {
        let events = [
            event(json!({"error": empty})),
            event(json!({"choices": [{"delta": {"content": "預"}}], "error": empty})),
            event(json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "error": empty})),
            event(json!({"choices": null, "error": empty})),
        ];
        let answer = assemble(&events).map(|answer| answer.map(|answer| answer.blocks));
        assert_eq!(answer, Ok(Some(vec![Block::Text { text: "預".into() }])), "{empty}");
    }
    for error in [json!("busy"), json!({"code": 502, "message": ""}), json!(true), json!([{"message": "busy"}])] {
        let events = [delta(json!({"content": "預"})), event(json!({"choices": [], "error": error})), finish("stop")];
        assert!(assemble(&events).is_err(), "{error}");
    }
}

#[test]
fn several_calls_in_pieces() {
    let piece = |index: usize, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    };
    let open = |index: usize, id: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": "mra_ask", "arguments": ""}}]}),
        )
    };
    let events = [open(0, "a"), piece(0, "{\"repo\":"), piece(0, "\"erp\"}"), open(1, "b"), finish("tool_calls")];
    let answer = assemble(&events).expect("an answer").expect("a whole one");
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(answer.blocks, [call("a", "mra_ask", json!({"repo": "erp"})), call("b", "mra_ask", json!({}))]);
}

#[test]
fn whole_calls_that_all_have_index_0() {
    let whole = |id: &str| json!({"index": 0, "id": id, "function": {"name": "f", "arguments": "{}"}});
    let events = [delta(json!({"tool_calls": [whole("a"), whole("b")]})), finish("stop")];
    let answer = assemble(&events).expect("an answer").expect("a whole one");
    assert_eq!((answer.stop, answer.blocks.len()), (Stop::ToolUse, 2));
}

#[test]
fn a_call_that_is_sent_once_more_is_one() {
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "f", "arguments": arguments});
        delta(json!({"tool_calls": [{"index": 0, "id": id, "function": function}]}))
    };
    let (erp, ui) = ("{\"repo\":\"erp\"}", "{\"repo\":\"ui\"}");
    for (events, calls) in [
        (vec![call("a", erp), call("a", erp)], 1),
        (vec![call("a", &erp[..5]), call("a", &erp[5..]), call("a", erp)], 1),
        (vec![call("a", erp), call("a", "{ \"repo\": \"erp\" }")], 1),
        (vec![call("a", erp), call("b", erp)], 2),
        (vec![call("a", erp), call("a", ui)], 2),
    ] {
        let answer = assemble(&[events, vec![finish("tool_calls"), event("[DONE]")]].concat());
        assert_eq!(answer.expect("an answer").expect("whole").blocks.len(), calls);
    }
}

/// Servers that number no calls, or all the same, and give them no ids: of several calls, one came out that nobody could
/// read.
#[test]
fn calls_without_an_id_and_a_number_of_their_own_are_several() {
    let piece = |index: Option<usize>, name: &str, arguments: &str| {
        let function = match name {
            "" => json!({"arguments": arguments}),
            _ => json!({"name": name, "arguments": arguments}),
        };
        json!({"index": index, "id": "", "function": function})
    };
    let (erp, ui) = ("{\"repo\":\"erp\"}", "{\"repo\":{\"a\":{}}}");
    let inputs = [json!({"repo": "erp"}), json!({"repo": {"a": {}}})];
    for index in [None, Some(0)] {
        let piece = |name: &str, arguments: &str| piece(index, name, arguments);
        for (kind, pieces, names) in [
            ("whole", vec![piece("f", erp), piece("g", ui)], ["f", "g"]),
            ("whole, of one name", vec![piece("f", erp), piece("f", ui)], ["f", "f"]),
            ("the second without a name", vec![piece("f", erp), piece("", ui)], ["f", "f"]),
            ("the name first", vec![piece("f", ""), piece("", erp), piece("g", ""), piece("", ui)], ["f", "g"]),
            ("the same name first", vec![piece("f", ""), piece("", erp), piece("f", ""), piece("", ui)], ["f", "f"]),
            (
                "in pieces",
                vec![piece("f", &erp[..4]), piece("", &erp[4..]), piece("g", &ui[..9]), piece("", &ui[9..])],
                ["f", "g"],
            ),
            (
                "a name with each piece",
                vec![
                    piece("f", &erp[..4]),
                    piece("f", &erp[4..]),
                    piece("f", ""),
                    piece("f", &ui[..8]),
                    piece("f", &ui[8..13]),
                    piece("f", &ui[13..15]),
                    piece("f", &ui[15..]),
                    piece("f", ""),
                ],
                ["f", "f"],
            ),
        ] {
            let mut events: Vec<Event> = pieces
                .iter()
                .map(|piece| delta(json!({"tool_calls": [piece]})))
                .chain([finish("tool_calls")])
                .collect();
            let wanted = [call("call_0", names[0], inputs[0].clone()), call("call_1", names[1], inputs[1].clone())];
            let answer = assemble(&events).expect(kind).expect(kind);
            assert_eq!(answer.blocks, wanted, "{kind}");
            events.splice(..pieces.len(), [delta(json!({"tool_calls": pieces}))]);
            let at_once = assemble(&events).expect(kind).expect(kind);
            assert_eq!(at_once.blocks, wanted, "{kind}, at once");
        }
    }
    // A piece without a number goes on with the newest call.
    let unnumbered = [
        json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
        json!({"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}}),
        json!({"function": {"arguments": erp}}),
    ];
    let answer = assemble(&[delta(json!({"tool_calls": unnumbered})), finish("tool_calls")]);
    let blocks = answer.expect("an answer").expect("a whole one").blocks;
    assert_eq!(blocks, [call("a", "f", json!({})), call("b", "g", inputs[0].clone())]);
}

#[test]
fn a_text_in_parts_and_arguments_that_are_an_object_cost_no_answer() {
    let parts =
        json!([{"type": "text", "text": "預"}, {"type": "thinking", "thinking": []}, {"type": "text", "text": "算"}]);
    let whole = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": {"repo": "erp"}}});
    let events = [delta(json!({"content": parts})), delta(json!({"tool_calls": [whole]})), finish("tool_calls")];
    let answer = assemble(&events).expect("an answer").expect("a whole one");
    assert_eq!(answer.blocks, [Block::Text { text: "預算".into() }, call("a", "f", json!({"repo": "erp"}))]);
}

#[test]
fn arguments_that_are_no_json() {
    let broken = delta(json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{\"a"}}]}));
    let answer = assemble(&[broken.clone(), finish("tool_calls")]).expect("an answer").expect("a whole one");
    assert_eq!(answer.blocks, [call("call_0", "f", json!({"unreadable": "{\"a"}))]);
    let cut = assemble(&[broken, finish("length")]).expect("an answer").expect("a whole one");
    assert_eq!((cut.stop, cut.blocks.len()), (Stop::MaxTokens, 0));
}

#[test]
fn a_call_that_is_cut_off_before_its_arguments_is_left_out() {
    let begun = |index: usize, arguments: &str| {
        let function = json!({"name": "f", "arguments": arguments});
        delta(json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": function}]}))
    };
    let cut = assemble(&[begun(0, "{\"a\":1}"), begun(1, ""), finish("length")]).expect("an answer");
    let cut = cut.expect("a whole one");
    assert_eq!((cut.stop, cut.blocks), (Stop::MaxTokens, vec![call("c0", "f", json!({"a": 1}))]));
}

#[test]
fn failures_inside_the_stream() {
    let class = |events: &[Event]| assemble(events).expect_err("a failure").class.name();
    let overflow = json!({"error": {"message": "too long", "code": "context_length_exceeded", "type": "x"}});
    assert_eq!(class(&[event(overflow)]), "context_overflow");
    assert_eq!(class(&[finish("content_filter"), event("[DONE]")]), "refused");
    assert_eq!(class(&[delta(json!({"refusal": "I can't"})), finish("stop"), event("[DONE]")]), "refused");
    assert_eq!(class(&[event("{")]), "transport");
    assert_eq!(class(&[event("[DONE]")]), "transport");
}

/// Perplexity repeats all that it has said with each piece: the answer stuttered.
#[test]
fn a_message_beside_the_pieces_was_added_to_them() {
    let both = |piece: &str, message: &str, reason: Option<&str>| {
        let delta = json!({"role": "assistant", "content": piece});
        let message = json!({"role": "assistant", "content": message});
        event(json!({"choices": [{"index": 0, "delta": delta, "message": message, "finish_reason": reason}]}))
    };
    let said = |events: &[Event]| assemble(events).expect("an end").expect("an answer").blocks;
    let pieces = [both("It", "It", None), both(" is", "It is", None), both(" four.", "It is four.", None)];
    let text = [Block::Text { text: "It is four.".into() }];
    for last in [both("", "It is four.", Some("stop")), finish("stop")] {
        assert_eq!(said(&[pieces.as_slice(), &[last]].concat()), text);
    }
    // An empty piece beside a whole message is none.
    assert_eq!(said(&[both("", "It is four.", Some("stop"))]), text);
}

/// DeepSeek, Mistral, Zhipu, vLLM and Gemini have finish reasons of their own, which were taken for `stop`.
#[test]
fn half_an_answer_was_taken_for_a_whole_one() {
    let ended = |reason: &str| assemble(&[delta(json!({"content": "half"})), finish(reason), event("[DONE]")]);
    for reason in [
        "error",
        "abort",
        "insufficient_system_resource",
        "network_error",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
    ] {
        assert_eq!(ended(reason).expect_err(reason).class.name(), "overloaded", "{reason}");
    }
    for reason in
        ["sensitive", "SAFETY", "PROHIBITED_CONTENT", "RECITATION", "CONTENT_FILTER", "content_filter: RECITATION"]
    {
        assert_eq!(ended(reason).expect_err(reason).class.name(), "refused", "{reason}");
    }
    for (reason, stop) in [
        ("length", Stop::MaxTokens),
        ("max_tokens", Stop::MaxTokens),
        ("MAX_TOKENS", Stop::MaxTokens),
        ("STOP", Stop::End),
        ("model_length", Stop::WindowFull),
        ("model_context_window_exceeded", Stop::WindowFull),
    ] {
        let answer = ended(reason).expect(reason).expect(reason);
        assert_eq!((answer.stop, answer.blocks.len()), (stop, 1), "{reason}");
    }
}

proptest! {
    #[test]
    fn an_answer_with_its_text_and_a_reason_to_stop_is_whole_whatever_else_is_missing(holes in holes::some()) {
        let usage = json!({"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}});
        let piece = |index: usize, arguments: &str| {
            let function = json!({"name": "f", "arguments": arguments});
            json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function})
        };
        let said = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "error": {}});
        let mut events = vec![
            json!({"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}], "usage": null}),
            said(json!({"content": "預", "refusal": null, "tool_calls": []})),
            said(json!({"content": [{"type": "text", "text": "算"}, {"type": "thinking", "thinking": []}]})),
            said(json!({"tool_calls": [piece(0, "{\"a\""), piece(0, ":1}"), piece(1, "{}")]})),
            json!({"choices": [{"index": 0, "delta": {"content": null}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": usage}),
        ];
        holes::make(&mut events, &holes, &["content", "text", "finish_reason"]);
        let events: Vec<Event> = events.iter().map(event).chain([event("[DONE]")]).collect();
        let answer = assemble(&events).map(|answer| answer.map(|answer| pmk_core::message::plain_text(&answer.blocks)));
        prop_assert_eq!(answer, Ok(Some("預算".to_owned())));
    }

    #[test]
    fn no_stream_makes_it_panic(datas in prop::collection::vec(
        "\\PC{0,20}|\\{\"choices\":\\[\\{\"delta\":\\{\"tool_calls\":\\[\\{\"index\":[0-9]{1,4},\"id\":\"[ab]?\"\\}\\]\\}\\}\\]\\}|\\[DONE\\]", 0..12)) {
        let events: Vec<Event> = datas.iter().map(event).collect();
        let _ = assemble(&events);
    }
}
