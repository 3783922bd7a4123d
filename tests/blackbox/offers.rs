//! Only what can work is offered to the model: no tool and no word of a prompt promises anything else.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour, Recorded};
use serde_json::{Value, json};

use crate::support::{Home, Running, question};

/// The tools that a request defines, and the abilities that its prompt speaks of.
fn offered(request: &Recorded) -> (Vec<&str>, Vec<&'static str>) {
    let tools = request.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let system = request.body["system"].to_string();
    let named = ["mra_ask", "mra-ask", "escalate"].into_iter().filter(|name| system.contains(name)).collect();
    (tools.iter().filter_map(|tool| tool["name"].as_str()).collect(), named)
}

/// A gateway in the console with a model that answers whatever it is asked.
struct Stage {
    home: Home,
    anthropic: Anthropic,
    gateway: Running,
    asked: usize,
}

impl Stage {
    fn new(more: &Value) -> Stage {
        let home = Home::new();
        let mut config = json!({"version": 1, "language": "en"});
        config.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        home.write("gateway.json", config.to_string());
        let anthropic = Anthropic::start_blocking();
        anthropic.when("hello", Behaviour::answer("Hello."));
        let gateway = Running::start(home.asking(&anthropic, &[]));
        Stage { home, anthropic, gateway, asked: 0 }
    }

    /// Asks, and returns what the model was asked.
    fn ask(&mut self, text: &str) -> Vec<Recorded> {
        let before = self.anthropic.requests().len();
        self.asked += 1;
        self.gateway.say(&question(&format!("Ev{}", self.asked), text));
        self.gateway.next_of("turn");
        self.anthropic.requests().split_off(before)
    }
}

#[test]
fn without_workspace_and_contacts_nothing_is_offered() {
    let mut stage = Stage::new(&json!({}));
    assert_eq!(offered(&stage.ask("hello")[0]), (vec![], vec![]));
    let mut stage = Stage::new(&json!({"tools": "fenced"}));
    assert_eq!(offered(&stage.ask("hello")[0]), (vec![], vec![]));
}

#[test]
fn contacts_come_and_go_while_the_gateway_runs() {
    let mut stage = Stage::new(&json!({"mra": {"command": ["echo"]}}));
    assert_eq!(offered(&stage.ask("hello")[0]), (vec!["mra_ask"], vec!["mra_ask"]));
    stage.home.run(&["escalation", "add", "erp", "U0IT"], "").ok();
    assert_eq!(offered(&stage.ask("hello")[0]), (vec!["mra_ask", "escalate"], vec!["mra_ask", "escalate"]));
    stage.home.run(&["escalation", "remove", "erp", "U0IT"], "").ok();
    assert_eq!(offered(&stage.ask("hello")[0]).0, ["mra_ask"]);
}

#[test]
fn who_could_only_ask_themselves_is_offered_nobody() {
    let mut stage = Stage::new(&json!({"escalation": {"default": ["U1"]}}));
    assert_eq!(offered(&stage.ask("hello")[0]), (vec![], vec![]));
    stage.home.run(&["escalation", "add", "default", "U0IT"], "").ok();
    assert_eq!(offered(&stage.ask("hello")[0]), (vec!["escalate"], vec!["escalate"]));
}

/// Regression: it was offered where its folder or its program was missing.
#[test]
fn mra_is_offered_only_while_its_folder_and_its_program_are_there() {
    let mut stage = Stage::new(&json!({"mra": {"command": ["no-such-mra"]}}));
    assert_eq!(offered(&stage.ask("hello")[0]), (vec![], vec![]));
    let folder = tempfile::tempdir().expect("a folder").keep();
    let mut stage = Stage::new(&json!({"mraWorkspace": folder, "mra": {"command": ["echo"]}}));
    assert_eq!(offered(&stage.ask("hello")[0]).0, ["mra_ask"]);
    std::fs::remove_dir(&folder).expect("gone");
    assert_eq!(offered(&stage.ask("hello")[0]), (vec![], vec![]));
    std::fs::create_dir(&folder).expect("a folder");
    assert_eq!(offered(&stage.ask("hello")[0]).0, ["mra_ask"]);
    std::fs::remove_dir(&folder).expect("gone");
}

/// A provider wants tools defined where a history has calls: where none are left, it goes as text.
#[test]
fn a_history_with_calls_is_still_answered_when_nothing_is_offered_any_more() {
    let mut stage = Stage::new(&json!({"escalation": {"default": ["U0IT"]}}));
    let call = json!({"question": "who knows about the budget?", "reason": "unwritten"});
    stage.anthropic.when("budget", Behaviour::calls([("escalate", call)]));
    stage.anthropic.when("put to the people who know", Behaviour::answer("I have asked."));
    stage.ask("who knows about the budget?");
    stage.home.run(&["escalation", "remove", "default", "U0IT"], "").ok();
    stage.anthropic.when("still awaited", Behaviour::answer(r#"{"kind":"other"}"#));
    let requests = stage.ask("hello");
    let last = requests.last().expect("a request");
    assert_eq!((offered(last), &last.refused), ((vec![], vec![]), &None));
}

/// A directive for what is not there costs no question and promises none.
#[test]
fn what_was_not_offered_is_neither_asked_nor_counted() {
    let mut stage = Stage::new(&json!({"tools": "fenced", "hourly": {"escalations": 1, "mraQuestions": 1}}));
    stage.anthropic.when("the scope", Behaviour::answer("```mra-ask\nrepo: erp\nquestion: where is it, my own?\n```"));
    stage.anthropic.when("there is no code to look into here", Behaviour::answer("I cannot tell."));
    for _ in 0..2 {
        let requests = stage.ask("where is the scope?");
        assert!(requests.last().expect("a request").said_now().contains("there is no code to look into here"));
    }
    assert_eq!(stage.home.events("mra-ask.end").len() + stage.home.events("directive.bounded").len(), 0);
}
