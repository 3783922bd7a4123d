//! Many turns with a model that has a third of the window it is believed to have, and says so in words that nobody
//! has seen before. What it refuses is known by its size alone.

use std::collections::BTreeSet;

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    openai::{self, OpenAi, Reply},
};
use serde_json::{Value, json};

use crate::{
    made_up::{Chance, seed},
    support::{Home, component, finish, of_type, question, replies},
};

const TURNS: usize = 150;

/// What the gateway is told, in tokens, and a third of it.
const BELIEVED: u64 = 24_000;
const TRUE_WINDOW: u64 = BELIEVED / 3;

const SUMMARY: &str = "They talked about many things, and nothing came of it.";

fn home() -> Home {
    let home = Home::new();
    let mra = json!({"command": ["sh", "-c", "yes 'found nothing much' | head -n 300", "mra"]});
    home.write("gateway.json", json!({"version": 1, "language": "en", "mra": mra}).to_string());
    home
}

/// Questions of very different sizes, some of which want something looked up.
fn questions(chance: &mut Chance, loops: bool) -> String {
    let one = |n: usize| {
        let wish = if loops && chance.below(3) == 0 { "look it up, " } else { "" };
        let words = 5 + chance.below(100) * chance.below(4);
        question(&format!("Ev{n}"), &format!("Question {n}: {wish}{}", chance.words(words)))
    };
    (0..TURNS).map(one).collect::<Vec<_>>().join("\n")
}

fn call() -> (String, Value) {
    ("mra_ask".into(), json!({"repo": "erp", "question": "what is there?"}))
}

/// A body and a status that say nothing to anybody.
fn refusal(chance: &mut Chance) -> (u16, Value) {
    let words = 3 + chance.below(9);
    let (code, message) = (chance.words(1), chance.words(words));
    let body = match chance.below(3) {
        0 => json!({"error": {"type": code, "message": message}}),
        1 => json!({"error": {"code": code, "message": message, "detail": [chance.words(3)]}}),
        _ => json!({"code": code, "message": message}),
    };
    (chance.one_of(&[400, 413, 422]), body)
}

fn by_anthropic(home: &Home, policy: &str, seed: u64, loops: bool) -> (Vec<Value>, Vec<u64>) {
    let anthropic = Anthropic::start_blocking();
    anthropic.set_window(TRUE_WINDOW);
    let mut chance = Chance::new(seed);
    let input = questions(&mut chance, loops);
    anthropic.when_too_large(move || {
        let (status, body) = refusal(&mut chance);
        let headers = vec![("content-type".into(), "application/json".into())];
        match chance.below(4) {
            0 => Behaviour::ErrorEvent { text: String::new(), code: chance.words(1), message: chance.words(4) },
            _ => Behaviour::Error { status, headers, body: body.to_string() },
        }
    });
    anthropic.when("Question", Behaviour::answer("So it is. ".repeat(20)));
    anthropic.when("look it up", Behaviour::Calls { text: String::new(), calls: vec![call()] });
    anthropic.when("found nothing much", Behaviour::answer("There is nothing. ".repeat(20)));
    anthropic.when("<conversation>", Behaviour::answer(SUMMARY));
    let window = BELIEVED.to_string();
    let command = home.asking(&anthropic, &["--window", &window, "--policy", &component(policy)]);
    let lines = finish(command, &input).ok().lines();
    let refused = anthropic.requests().into_iter().filter(|request| request.refused.is_some());
    (lines, refused.map(|request| request.prompt_tokens).collect())
}

fn by_openai(home: &Home, policy: &str, seed: u64, loops: bool) -> (Vec<Value>, Vec<u64>) {
    let server = OpenAi::start();
    let mut chance = Chance::new(seed);
    let input = questions(&mut chance, loops);
    server.set_window(TRUE_WINDOW, move || {
        let (status, body) = refusal(&mut chance);
        if chance.below(4) == 0 { Reply::ErrorEvent(body) } else { Reply::Error(status, body) }
    });
    server.when("Question", Reply::Answer("So it is. ".repeat(20)));
    server.when("look it up", Reply::Calls(vec![call()]));
    server.when("found nothing much", Reply::Answer("There is nothing. ".repeat(20)));
    server.when("<conversation>", Reply::Answer(SUMMARY.into()));
    let window = BELIEVED.to_string();
    let mut command =
        home.command(&["run", "--model", "openai:made-up", "--window", &window, "--policy", &component(policy)]);
    command.env("OPENAI_API_KEY", openai::KEY).env("OPENAI_BASE_URL", server.url());
    let lines = finish(command, &input).ok().lines();
    (lines, server.too_large())
}

/// Nobody loses an answer, no size is refused twice, and the audit says what happened and what to do.
fn holds(home: &Home, lines: &[Value], refused: &[u64]) {
    let said = replies(lines);
    assert_eq!(said.len(), TURNS);
    let lost: Vec<_> = said.iter().enumerate().filter(|(_, reply)| reply.starts_with(":x:")).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    let sizes: BTreeSet<&u64> = refused.iter().collect();
    assert_eq!(sizes.len(), refused.len(), "a size was refused twice: {refused:?}");
    assert!((1..=12).contains(&refused.len()), "{refused:?}");
    let calls: u64 = of_type(lines, "turn").iter().filter_map(|turn| turn["calls"].as_u64()).sum();
    assert!(calls >= TURNS as u64);
    let page = home.run(&["audit"], "").ok().stdout;
    let flags = page.split("Flags").nth(1).unwrap_or_default();
    // A status of 413 is a word, too.
    let said = "refused as too long: lower `max-session-tokens`";
    let guessed = "made smaller: set `--window`";
    assert!(flags.contains(said) || flags.contains(guessed), "{page}");
    assert!(
        ["bound of a model's window was learned", "bounds of a model's window were learned"]
            .iter()
            .any(|one| flags.contains(one))
            && flags.contains("`pmk-host model forget`"),
        "{page}"
    );
    assert!(page.contains("so at most ") && page.contains("on a larger prompt is tried"), "{page}");
}

macro_rules! marathons {
    ($($name:ident: $by:ident, $policy:literal, $loops:literal, $seed:literal;)*) => {$(
        #[test]
        fn $name() {
            let home = home();
            let (lines, refused) = $by(&home, $policy, seed($seed), $loops);
            holds(&home, &lines, &refused);
        }
    )*};
}

marathons! {
    nobody_loses_an_answer_with_anthropic: by_anthropic, "standard", false, 1;
    nobody_loses_an_answer_with_anthropic_in_tool_loops: by_anthropic, "strict", true, 2;
    nobody_loses_an_answer_with_openai: by_openai, "strict", false, 3;
    nobody_loses_an_answer_with_openai_in_tool_loops: by_openai, "standard", true, 4;
}
