//! Native tool calls: whatever the model calls, and however often, what is stored and sent are valid pairs.

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour, Recorded, WITHOUT_TOOLS},
    openai::{self, OpenAi, Reply},
};
use serde_json::{Value, json};

use crate::support::{Finished, Home, Running, component, finish, of_type, question, replies, until};

const KEY: &str = "console:dm:U1";

/// A home whose `mra` answers with what it was asked.
fn home() -> Home {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "en", "mra": {"command": ["echo"]}}).to_string());
    home
}

fn ask(home: &Home, anthropic: &Anthropic, text: &str) -> Finished {
    let event = format!("Ev-{}", text.replace(' ', "-"));
    finish(home.asking(anthropic, &[]), &question(&event, text)).ok()
}

/// The n-th call.
fn call(n: usize) -> (&'static str, Value) {
    ("mra_ask", json!({"repo": "erp", "question": format!("number {n}?")}))
}

/// The calls and their results as the session has them: name and question of each, with what came of it.
fn pairs(home: &Home) -> Vec<(String, String)> {
    let session = home.run(&["--json", "sessions", "show", KEY, "--full"], "").ok().json();
    let messages = session["messages"].as_array().expect("messages");
    let mut pairs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().expect("blocks");
        let calls: Vec<&Value> = blocks.iter().filter(|block| block["type"] == "tool_use").collect();
        if calls.is_empty() {
            continue;
        }
        let results = messages[at + 1]["content"].as_array().expect("blocks");
        let ids = |blocks: &[&Value], key: &str| blocks.iter().map(|block| block[key].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&calls, "id"), ids(&results.iter().collect::<Vec<_>>(), "tool_use_id"), "{session:#}");
        pairs.extend(calls.iter().zip(results).map(|(call, result)| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&call["input"]["question"]), text(&result["content"]))
        }));
    }
    pairs
}

fn ten_valid_pairs(home: &Home) {
    let pairs = pairs(home);
    assert_eq!(pairs.len(), 10);
    for (n, (asked, result)) in pairs.iter().enumerate() {
        assert_eq!(asked, &format!("number {n}?"));
        assert!(result.ends_with(&format!("ask erp number {n}?")), "{result}");
    }
}

/// Must show 3.
#[test]
fn ten_calls_in_ten_rounds() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    (0..10).for_each(|n| anthropic.push(Behaviour::calls([call(n)])));
    anthropic.push(Behaviour::answer("All ten."));
    let lines = ask(&home, &anthropic, "ten questions").lines();
    assert_eq!(replies(&lines), ["All ten."]);
    let turn = of_type(&lines, "turn")[0];
    assert_eq!((&turn["calls"], &turn["mra_asks"]), (&json!(11), &json!(10)));
    ten_valid_pairs(&home);
    ask(&home, &anthropic, "and now?");
    the_next_request_is_valid(&anthropic, 10);
}

#[test]
fn ten_calls_in_one_round() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    let calls = (0..10).map(call).map(|(name, input)| (name.to_owned(), input)).collect();
    anthropic.push(Behaviour::Calls { text: "Let me look.".into(), calls });
    anthropic.push(Behaviour::answer("All ten."));
    assert_eq!(replies(&ask(&home, &anthropic, "ten questions").lines()), ["All ten."]);
    ten_valid_pairs(&home);
    ask(&home, &anthropic, "and now?");
    the_next_request_is_valid(&anthropic, 10);
}

fn the_next_request_is_valid(anthropic: &Anthropic, calls: usize) {
    let requests = anthropic.requests();
    assert!(requests.iter().all(|request| request.refused.is_none()), "{requests:#?}");
    let last = requests.last().expect("requests");
    assert_eq!(last.question(), "and now?");
    let history = last.body["messages"].to_string();
    assert_eq!(history.matches("\"tool_use\"").count(), calls, "{history}");
    assert_eq!(history.matches("\"tool_result\"").count(), calls, "{history}");
}

#[test]
fn ten_calls_with_openai() {
    let all: Vec<(String, Value)> = (0..10).map(call).map(|(name, input)| (name.to_owned(), input)).collect();
    for calls_a_round in [1, 10] {
        let (home, openai) = (home(), OpenAi::start());
        all.chunks(calls_a_round).for_each(|round| openai.push(Reply::Calls(round.to_vec())));
        openai.push(Reply::Answer("All ten.".into()));
        let run = |event: &str, text: &str| {
            let mut command = home.command(&["run", "--model", "openai:gpt-4o"]);
            command.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", openai.url());
            finish(command, &question(event, text)).ok().lines()
        };
        assert_eq!(replies(&run("Ev1", "ten questions")), ["All ten."]);
        ten_valid_pairs(&home);
        assert_eq!(replies(&run("Ev2", "and now?")), ["You said: and now?"]);
        let last = openai.requests().pop().expect("requests");
        let of_role = |role: &str| {
            let messages = last["messages"].as_array().expect("messages");
            messages.iter().filter(|message| message["role"] == role).count()
        };
        assert_eq!(of_role("tool"), 10, "{last:#}");
    }
}

/// The answer's limit was reached after a whole call, which was dropped without a word.
#[test]
fn a_whole_call_in_an_answer_that_was_cut_short_is_carried_out() {
    let (home, openai) = (home(), OpenAi::start());
    let call = |index: usize, arguments: &str| {
        let function = json!({"name": "mra_ask", "arguments": arguments});
        json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function})
    };
    let calls = [call(0, &self::call(0).1.to_string()), call(1, "{\"repo\": \"er")];
    let choice = json!({"index": 0, "delta": {"content": "Let me", "tool_calls": calls}, "finish_reason": "length"});
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 8_192});
    let answer = json!({"choices": [choice], "usage": usage});
    openai.push(Reply::Raw(format!("data: {answer}\n\ndata: [DONE]\n\n")));
    openai.push(Reply::Answer("One.".into()));
    let mut command = home.command(&["run", "--model", "openai:gpt-4o"]);
    command.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", openai.url());
    assert_eq!(replies(&finish(command, &question("Ev1", "where?")).ok().lines()), ["One."]);
    let pairs = pairs(&home);
    assert!(pairs.len() == 1 && pairs[0].1.ends_with("ask erp number 0?"), "{pairs:?}");
}

#[test]
fn calls_are_used_up_and_the_turn_ends() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    (0..40).for_each(|n| anthropic.push(Behaviour::calls([call(n)])));
    let lines = ask(&home, &anthropic, "on and on").lines();
    assert_eq!(replies(&lines), [WITHOUT_TOOLS], "what was found is not lost");
    assert_eq!(of_type(&lines, "turn")[0]["mra_asks"], 12);
    let requests = anthropic.requests();
    assert_eq!(requests.len(), 14, "twelve rounds, the news that there are no more, and the last word");
    let last = requests.last().expect("requests").said_now();
    assert!(last.contains("the limit of calls for this question is used up"), "{last}");
    assert_eq!(pairs(&home).len(), 13);

    let (home, anthropic) = (self::home(), Anthropic::start_blocking());
    for n in 0..40 {
        let (name, input) = call(n);
        anthropic.push(Behaviour::Calls { text: format!("So far {n}."), calls: vec![(name.to_owned(), input)] });
    }
    assert_eq!(replies(&ask(&home, &anthropic, "on and on").lines()), ["So far 13."]);
}

/// Fourteen requests for nothing, and no word to the person.
#[test]
fn a_model_that_keeps_calling_what_nobody_has_offered_is_soon_asked_for_words() {
    for wanted in [("web_search", json!({"query": "sales"})), ("mra_ask", json!({"repository": "erp"}))] {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        (0..40).for_each(|_| anthropic.push(Behaviour::calls([wanted.clone()])));
        let lines = ask(&home, &anthropic, "on and on").lines();
        assert_eq!(replies(&lines), [WITHOUT_TOOLS], "{wanted:?}");
        let requests = anthropic.requests();
        assert_eq!(requests.len(), 5, "{wanted:?}");
        let told = requests.last().expect("requests").said_now();
        assert!(told.contains("`mra_ask`"), "it is told each time what there is: {told}");
        assert_eq!(
            replies(&ask(&home, &anthropic, "and now?").lines()),
            [WITHOUT_TOOLS],
            "the next question has its own"
        );
    }
    // As long as something comes of a round now and then, it may go on.
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    for n in 0..9 {
        anthropic.push(Behaviour::calls([if n % 3 == 2 { call(n) } else { ("web_search", json!({})) }]));
    }
    anthropic.push(Behaviour::answer("Here it is."));
    assert_eq!(replies(&ask(&home, &anthropic, "again and again").lines()), ["Here it is."]);
}

#[test]
fn too_many_calls_of_one_round_are_told_so() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.push(Behaviour::calls((0..30).map(call)));
    anthropic.push(Behaviour::answer("Enough."));
    let lines = ask(&home, &anthropic, "thirty questions").lines();
    assert_eq!((replies(&lines), &of_type(&lines, "turn")[0]["mra_asks"]), (vec!["Enough."], &json!(24)));
    let results = pairs(&home);
    assert_eq!(results.iter().filter(|(_, result)| result.contains("is used up")).count(), 6);
}

#[test]
fn calls_that_make_no_sense_are_told_so_and_the_others_carried_out() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    let ask_mra = |repo: Value, asked: &str| ("mra_ask", json!({"repo": repo, "question": asked}));
    let long = "預".repeat(10_001);
    let longest = "預".repeat(10_000);
    let calls = [
        (("bash", json!({"command": "id"})), "there is no tool `bash`"),
        (ask_mra(json!(7), "q"), "`mra_ask` needs `repo`"),
        (ask_mra(json!(""), "q"), "`mra_ask` needs `repo`"),
        (ask_mra(json!("erp"), " "), "`mra_ask` needs `question`"),
        (ask_mra(json!("../../etc"), "q"), "`../../etc` is not the name of a repository"),
        (ask_mra(json!("--help"), "q"), "`--help` is not the name of a repository"),
        (ask_mra(json!("erp"), &long), "the question has 10001 characters and may have 10000"),
        (ask_mra(json!("erp"), &longest), &longest),
        (ask_mra(json!("erp"), "--help"), "ask erp Q: --help"),
        (ask_mra(json!("erp"), "$(id) `id` ; id"), "ask erp $(id) `id` ; id"),
    ];
    anthropic.push(Behaviour::calls(calls.iter().map(|(call, _)| call.clone())));
    anthropic.push(Behaviour::answer("Well."));
    assert_eq!(replies(&ask(&home, &anthropic, "anything").lines()), ["Well."]);
    let results = pairs(&home);
    assert_eq!(results.len(), calls.len());
    for ((_, result), (call, wanted)) in results.iter().zip(&calls) {
        assert!(result.contains(wanted), "{call:?}: {result}");
    }
    assert!(anthropic.requests().iter().all(|request| request.refused.is_none()));
}

#[test]
fn a_question_to_people_and_one_to_the_code_go_together() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    let config =
        json!({"version": 1, "language": "en", "mra": {"command": ["echo"]}, "escalation": {"default": ["U2"]}});
    home.write("gateway.json", config.to_string());
    let escalate = |asked: &str| ("escalate", json!({"question": asked, "reason": "live"}));
    anthropic.push(Behaviour::calls([escalate("who decides?"), call(1), escalate("and who else?")]));
    anthropic.push(Behaviour::answer("I asked."));
    let lines = ask(&home, &anthropic, "who decides?").lines();
    assert_eq!(replies(&lines), ["I asked."]);
    let [put] = of_type(&lines, "escalation")[..] else { panic!("{lines:#?}") };
    assert!(put["text"].as_str().is_some_and(|text| text.contains("> who decides?")), "{put}");
    let results: Vec<String> = pairs(&home).into_iter().map(|(_, result)| result).collect();
    assert!(results[0].contains("put to the people who know"), "{results:?}");
    assert!(results[1].contains("ask erp number 1?"), "{results:?}");
    assert!(results[2].contains("people have been asked in this thread already"), "{results:?}");
}

#[test]
fn a_turn_that_fails_after_calls_leaves_no_half_of_them() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.push(Behaviour::calls([call(0), call(1)]));
    // With the calls as they are, and as text.
    (0..2).for_each(|_| anthropic.push(Behaviour::error(400, "invalid_request_error", "messages: odd")));
    assert!(replies(&ask(&home, &anthropic, "two questions").lines())[0].starts_with(":x: "));
    assert_eq!(pairs(&home).len(), 2, "the archive has them");
    ask(&home, &anthropic, "and now?");
    the_next_request_is_valid(&anthropic, 0);
}

/// The asker was only told to ask again.
#[test]
fn a_turn_that_failed_after_it_had_asked_people_did_not_say_so() {
    for (asked, said, escalations) in [
        ("who decides?", "I have asked the people responsible in direct messages", 1),
        ("anything", "I will ask it once you say yes", 0),
    ] {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        let config =
            json!({"version": 1, "language": "en", "mra": {"command": ["echo"]}, "escalation": {"default": ["U2"]}});
        home.write("gateway.json", config.to_string());
        anthropic.push(Behaviour::calls([("escalate", json!({"question": "who decides?"}))]));
        // With the call as it is, and as text.
        (0..2).for_each(|_| anthropic.push(Behaviour::error(400, "invalid_request_error", "messages: odd")));
        let lines = ask(&home, &anthropic, asked).lines();
        let reply = replies(&lines)[0];
        assert!(reply.starts_with(":x: ") && reply.contains(said), "{reply}");
        assert_eq!(of_type(&lines, "escalation").len(), escalations, "{lines:#?}");
    }
}

#[test]
fn a_session_with_calls_goes_on_with_other_settings_and_another_provider() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.push(Behaviour::calls([call(0), call(1)]));
    anthropic.push(Behaviour::answer("Both."));
    ask(&home, &anthropic, "two questions");

    // The provider wants tools defined where a history has calls, although the model is told to write fences.
    let fenced = json!({"version": 1, "language": "en", "tools": "fenced", "mra": {"command": ["echo"]}});
    home.write("gateway.json", fenced.to_string());
    anthropic.push(Behaviour::answer("```mra-ask\nrepo: erp\nquestion: number 2?\n```"));
    anthropic.push(Behaviour::answer("A third."));
    assert_eq!(replies(&ask(&home, &anthropic, "one more").lines()), ["A third."]);
    assert_eq!(replies(&ask(&home, &anthropic, "and now?").lines()), ["You said: and now?"]);
    the_next_request_is_valid(&anthropic, 2);

    let openai = OpenAi::start();
    let mut command = home.command(&["run", "--model", "openai:gpt-4o"]);
    command.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", openai.url());
    let lines = finish(command, &question("Ev-openai", "still there?")).ok().lines();
    assert_eq!(replies(&lines), ["You said: still there?"]);
    let request = openai.requests().pop().expect("a request").to_string();
    assert_eq!(request.matches("\"tool_call_id\"").count(), 2, "{request}");
}

/// Guard rules 1 and 9, through the whole program: results that together are far more than the window.
#[test]
fn calls_whose_results_exceed_the_window_stay_valid_pairs() {
    for (calls_a_round, policy) in [(1, "strict"), (1, "standard"), (10, "standard")] {
        let (home, anthropic) = (home(), Anthropic::start_blocking());
        // 1,500 Chinese characters each: about 2,000 tokens, in a window of 12,000.
        let printed = "預算分配比例".repeat(250);
        let config = json!({"version": 1, "language": "en", "mra": {"command": ["sh", "-c", "echo \"$1 $2 $3\" \"$0\"", printed]}});
        home.write("gateway.json", config.to_string());
        let policy = component(policy);
        let more = ["--policy", &policy, "--window", "12000"];
        for turn in 0..3 {
            for round in 0..10 / calls_a_round {
                let first = 100 * turn + round * calls_a_round;
                anthropic.push(Behaviour::calls((first..first + calls_a_round).map(call)));
            }
            anthropic.push(Behaviour::answer(format!("Turn {turn}.")));
            let event = question(&format!("Ev{turn}"), &format!("question {turn}?"));
            let finished = finish(home.asking(&anthropic, &more), &event).ok();
            let lines = finished.lines();
            let refused: Vec<String> = anthropic.requests().into_iter().filter_map(|asked| asked.refused).collect();
            assert_eq!(refused, [] as [&str; 0], "{policy}: {}", finished.stderr);
            assert_eq!(replies(&lines), [format!("Turn {turn}.")], "{policy}: {}", finished.stderr);
            let report = of_type(&lines, "turn")[0];
            assert!(report["tokens"]["after"].as_u64() <= report["tokens"]["limit"].as_u64(), "{report}");
        }
        // The tools and the room for the answer count as well: the API refuses what exceeds the window with them.
        let with_answer = |request: &Recorded| {
            let tools = request.body["tools"].to_string().len().div_ceil(4) as u64;
            request.prompt_tokens + tools + request.body["max_tokens"].as_u64().expect("a number")
        };
        assert!(anthropic.requests().iter().all(|request| with_answer(request) <= 12_000), "{policy}");
        assert_eq!(pairs(&home).len(), 30, "the archive has all of them");
    }
}

#[test]
fn a_turn_that_is_killed_between_its_calls_is_made_anew() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    // The second call does not end before it may.
    let held = r#"case "$3" in *1*) : >"$0.begun"; while [ -d "${0%/*}" ] && ! [ -e "$0" ]; do sleep 0.02; done; esac; echo "$@""#;
    let may_end = home.path().join("may-end");
    let command = json!(["sh", "-c", held, may_end]);
    home.write("gateway.json", json!({"version": 1, "language": "en", "mra": {"command": command}}).to_string());
    anthropic.when("two questions", Behaviour::calls([call(0)]));
    anthropic.when("ask erp number 0?", Behaviour::calls([call(1)]));
    anthropic.when("ask erp number 1?", Behaviour::answer("Both."));
    anthropic.when("and now?", Behaviour::answer("Still both."));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    gateway.say(&question("Ev1", "two questions"));
    until("the second call", || home.path().join("may-end.begun").exists().then_some(()));
    let printed = gateway.kill();
    std::fs::write(may_end, "").expect("a file");
    assert_eq!(replies(&printed), [] as [&str; 0]);

    let lines = ask(&home, &anthropic, "and now?").lines();
    assert_eq!(replies(&lines), ["Both.", "Still both."]);
    assert_eq!(pairs(&home).len(), 2, "what the killed attempt found is forgotten");
    the_next_request_is_valid(&anthropic, 2);
}

#[test]
fn a_second_question_to_people_waits_for_the_answer_to_the_first() {
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    home.write("gateway.json", json!({"version": 1, "language": "en", "escalation": {"default": ["U2"]}}).to_string());
    let escalate = |asked: &str| Behaviour::calls([("escalate", json!({"question": asked, "reason": "live"}))]);
    anthropic.when("about refunds", escalate("how long do refunds take?"));
    anthropic.when("about shipping", escalate("who owns shipping?"));
    anthropic.when("put to the people who know", Behaviour::answer("asked"));
    anthropic.when("people have been asked in this thread already", Behaviour::answer("that has to wait"));
    let said = |user: &str, event: &str, text: &str| {
        json!({"user": user, "channel": "C1", "thread_ts": "1.1", "event_id": event, "text": text}).to_string()
    };
    let input = [said("U1", "Ev1", "about refunds"), said("U3", "Ev2", "about shipping")].join("\n");
    let lines = crate::support::finish(home.asking(&anthropic, &[]), &input).ok().lines();
    assert_eq!(replies(&lines), ["asked", "that has to wait"]);
    assert_eq!(of_type(&lines, "escalation").len(), 1);
    let waiting = home.run(&["escalation", "list", "--json"], "").ok().json();
    assert_eq!(waiting["pending"][0]["askerUserId"], "U1", "{waiting:#}");
}
