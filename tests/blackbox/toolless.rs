//! Servers without tools: they refuse whatever speaks of tools, each in its own words.

use std::process::Command;

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    openai::{self, OpenAi, Reply, has_called_tools, speaks_of_tools},
};
use serde_json::{Value, json};

use crate::support::{Finished, Home, finish, of_type, question, replies};

const FENCE: &str = "Let me look.\n```mra-ask\nrepo: erp\nquestion：where is it?\n```";

/// A home whose `mra` answers with what it was asked.
fn home() -> Home {
    let home = Home::new();
    let config = json!({"version": 1, "language": "en", "admins": ["U0ADMIN"], "mra": {"command": ["echo", "found"]}});
    home.write("gateway.json", config.to_string());
    home
}

fn command(home: &Home, openai: &OpenAi) -> Command {
    let mut command = home.command(&["run", "--model", "openai:llama3"]);
    command.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", openai.url());
    command
}

fn ask(home: &Home, openai: &OpenAi, text: &str) -> Finished {
    let event = format!("Ev{}", openai.requests().len());
    finish(command(home, openai), &question(&event, text)).ok()
}

fn learnt(home: &Home) -> Vec<Value> {
    let ledger = home.ledger();
    of_type(&ledger, "model.no-tools").into_iter().cloned().collect()
}

fn ollama_s() -> (u16, Value) {
    let message = "registry.ollama.ai/library/gemma3:latest does not support tools";
    (400, json!({"error": {"message": message, "type": "api_error", "param": null, "code": null}}))
}

fn vllm_s() -> (u16, Value) {
    let message = "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
    (400, json!({"object": "error", "message": message, "type": "BadRequestError", "param": null, "code": 400}))
}

fn nobody_s() -> (u16, Value) {
    (400, json!({"error": {"message": "the wombat has no pockets", "type": "invalid_request_error"}}))
}

#[test]
fn a_server_without_tools_is_asked_by_fences_and_that_is_remembered() {
    for ((status, body), refused_and_small) in [(ollama_s(), (1, 0)), (vllm_s(), (1, 0)), (nobody_s(), (1, 1))] {
        let (home, openai) = (home(), OpenAi::start());
        openai.refuse_tools(status, body.clone());
        openai.push(Reply::Answer(FENCE.into()));
        openai.push(Reply::Answer("It is in sales.rb.".into()));
        let finished = ask(&home, &openai, "where?");
        let lines = finished.lines();
        assert_eq!(replies(&lines), ["It is in sales.rb."], "{body}: {}", finished.stderr);
        let with_tools = openai.requests().iter().filter(|body| speaks_of_tools(body)).count();
        assert_eq!((with_tools, openai.requests().len()), (refused_and_small.0 + refused_and_small.1, with_tools + 2));
        let told = openai.requests().pop().expect("requests")["messages"].to_string();
        assert!(told.contains("found ask erp where is it?"), "a fence is carried out: {told}");

        // Once: in the log, the ledger, to the admins.
        assert_eq!(
            finished.stderr.matches("the model's server does not accept tools").count(),
            1,
            "{}",
            finished.stderr
        );
        let notices = of_type(&lines, "notice");
        assert_eq!(notices.iter().filter(|notice| notice["channel"] == "U0ADMIN").count(), 1, "{lines:#?}");
        let [event] = &learnt(&home)[..] else { panic!("one event") };
        assert_eq!((&event["provider"], &event["model"]), (&json!("openai"), &json!("llama3")));
        assert!(home.run(&["audit"], "").ok().stdout.contains("`model forget`"));

        // The next start knows.
        let before = openai.requests().len();
        assert_eq!(replies(&ask(&home, &openai, "and now?").lines()), ["You said: and now?"]);
        assert_eq!((openai.requests().len(), learnt(&home).len()), (before + 1, 1));
        home.run(&["model", "forget"], "").ok();
        assert_eq!(replies(&ask(&home, &openai, "still there?").lines()), ["You said: still there?"]);
        assert_eq!(learnt(&home).len(), 2, "forgotten, and learnt anew");
    }
}

#[test]
fn a_history_with_calls_is_sent_as_text_where_there_are_no_tools() {
    let call = || vec![("mra_ask".to_owned(), json!({"repo": "erp", "question": "number 1?"}))];
    let (home, openai) = (home(), OpenAi::start());
    openai.push(Reply::Calls(call()));
    openai.push(Reply::Answer("One.".into()));
    assert_eq!(replies(&ask(&home, &openai, "one question").lines()), ["One."]);
    let (status, body) = ollama_s();
    openai.refuse_tools(status, body);
    assert_eq!(replies(&ask(&home, &openai, "and now?").lines()), ["You said: and now?"]);
    let last = openai.requests().pop().expect("requests");
    let history = last["messages"].to_string();
    assert!(!speaks_of_tools(&last), "{last:#}");
    assert!(history.contains("```mra-ask\\nrepo: erp\\nquestion: number 1?\\n```"), "{history}");
    assert!(history.contains("found ask erp number 1?"), "{history}");

    let anthropic = Anthropic::start_blocking();
    anthropic.refuse_tools(400, "invalid_request_error", "the wombat has no pockets");
    let lines = finish(home.asking(&anthropic, &[]), &question("Ev-anthropic", "there?")).ok().lines();
    assert_eq!(replies(&lines), ["You said: there?"]);
    let asked = anthropic.requests();
    assert_eq!(asked.iter().filter(|asked| asked.refused.is_some()).count(), 2, "the question, and the trial");
    let history = asked[1].body["messages"].to_string();
    assert!(history.contains("```mra-ask") && !history.contains("tool_use"), "{history}");
}

#[test]
fn a_refusal_that_has_nothing_to_do_with_tools_is_not_taken_for_one() {
    // It passes without tools, but so does a small request with them: it was the size, or chance.
    let (home, anthropic) = (home(), Anthropic::start_blocking());
    anthropic.push(Behaviour::error(400, "invalid_request_error", "the wombat is overfed"));
    anthropic.push(Behaviour::answer("Here I am."));
    let ask = |event: &str| finish(home.asking(&anthropic, &[]), &question(event, "there?")).ok().lines();
    assert_eq!(replies(&ask("Ev1")), ["Here I am."]);
    assert_eq!(learnt(&home), [] as [Value; 0]);
    let has_tools = |at: usize| anthropic.requests()[at].body.get("tools").is_some();
    assert_eq!(replies(&ask("Ev2")), ["You said: there?"]);
    assert_eq!((0..4).map(has_tools).collect::<Vec<_>>(), [true, false, true, true]);
    // Tools were taken once: what is refused now is refused for another reason.
    anthropic.push(Behaviour::error(400, "invalid_request_error", "the wombat is overfed"));
    ask("Ev3");
    assert!((4..anthropic.requests().len()).all(has_tools));
    assert_eq!(learnt(&home), [] as [Value; 0]);
}

/// Servers that want back what came with a call and means nothing to others: a signature, the model's thoughts. Their
/// size was suspected, in every turn with a call.
#[test]
fn a_server_that_takes_tools_and_no_calls_in_its_history_is_asked_by_fences() {
    let call = || vec![("mra_ask".to_owned(), json!({"repo": "erp", "question": "number 1?"}))];
    let (home, openai) = (home(), OpenAi::start());
    openai.push(Reply::Calls(call()));
    openai.push(Reply::Answer("It is in sales.rb.".into()));
    let (status, body) = nobody_s();
    openai.refuse_when(has_called_tools, status, body);
    assert_eq!(replies(&ask(&home, &openai, "where?").lines()), ["It is in sales.rb."]);
    let requests = openai.requests();
    let refused: Vec<bool> = requests.iter().map(has_called_tools).collect();
    assert_eq!(refused, [false, true, false, true], "the call, its result, as text, and the trial");
    assert!(requests[2]["messages"].to_string().contains("found ask erp number 1?"), "{:#}", requests[2]);
    assert_eq!(learnt(&home).len(), 1);
    assert_eq!(replies(&ask(&home, &openai, "and now?").lines()), ["You said: and now?"]);
    assert_eq!(openai.requests().iter().filter(|body| speaks_of_tools(body)).count(), 3, "the next turn knows");
}

/// Once, a history that needed no repair was refused for good: every question of the conversation was.
#[test]
fn a_sound_history_that_a_server_calls_malformed_is_sent_as_text() {
    let call = || vec![("mra_ask".to_owned(), json!({"repo": "erp", "question": "number 1?"}))];
    let (home, openai) = (home(), OpenAi::start());
    openai.push(Reply::Calls(call()));
    openai.push(Reply::Answer("It is in sales.rb.".into()));
    let message = "Please ensure that the number of function response parts is equal to the number of function call \
                   parts of the function call turn.";
    openai.refuse_when(has_called_tools, 400, json!({"error": {"message": message, "code": 400}}));
    assert_eq!(replies(&ask(&home, &openai, "where?").lines()), ["It is in sales.rb."]);
    let refused: Vec<bool> = openai.requests().iter().map(has_called_tools).collect();
    assert_eq!(refused, [false, true, false, true], "the call, its result, as text, and the trial");
    assert_eq!(learnt(&home).len(), 1);
    assert_eq!(replies(&ask(&home, &openai, "and now?").lines()), ["You said: and now?"]);
}

/// Some servers refuse calls in the history unless the request offers tools, and the last one offers none.
#[test]
fn a_server_that_takes_calls_only_beside_tools_gets_the_last_request_as_text() {
    let (home, openai) = (home(), OpenAi::start());
    for n in 0..13 {
        openai.push(Reply::Calls(vec![("mra_ask".to_owned(), json!({"repo": "erp", "question": format!("{n}?")}))]));
    }
    openai.push(Reply::Answer("This is what I have found.".into()));
    let message = "litellm.UnsupportedParamsError: Anthropic expects the `tools=` param to be passed in. Pass `tools=` \
                   param OR set `litellm.modify_params = True` to add dummy tool to the request";
    let body = json!({"error": {"message": message, "type": null, "param": null, "code": "400"}});
    openai.refuse_when(|body| has_called_tools(body) && body.get("tools").is_none(), 400, body);
    let lines = ask(&home, &openai, "on and on").lines();
    assert_eq!(replies(&lines), ["This is what I have found."]);
    assert_eq!(learnt(&home), [] as [Value; 0], "it takes tools");
    assert_eq!(of_type(&home.ledger(), "context.suspected").len(), 0);
}

#[test]
fn a_model_that_the_server_does_not_know_is_named() {
    let error = json!({"message": "model \"llama3\" not found, try pulling it first", "type": "api_error"});
    for body in [json!({"error": error}), json!({"detail": "Not Found"})] {
        let (home, openai) = (home(), OpenAi::start());
        openai.push(Reply::Error(404, body));
        let finished = ask(&home, &openai, "there?");
        let lines = finished.lines();
        let reply = replies(&lines)[0];
        assert!(reply.starts_with(":x: ") && reply.contains("`llama3`"), "{reply}");
        assert_eq!(openai.requests().len(), 1, "no wait helps");
        assert!(finished.stderr.contains("unknown_model"), "{}", finished.stderr);
    }
}
