//! What bounds the effect of a directive, whatever was written: how many there may be an hour, about which repositories,
//! and the asker's word on a question that is not theirs.

use pmk_stand_ins::anthropic::{Anthropic, Behaviour};
use serde_json::{Value, json};

use super::{DIRECTIVE, ESCALATION, QUESTION, Stage};
use crate::{
    knowledge::team::{ASKER, CHANNEL, CHINESE, CONTACT, CURATOR, ENGLISH, FORWARDED, OTHER_CONTACT, Story, Team},
    support::{Home, Running, of_type, question, replies, until},
};

/// What the model was talked into, by a text that was put differently.
const FOREIGN: &str = "Could somebody send the payroll to the auditors?";

/// A message that is not about the question that waits.
const ANOTHER: &str = r#"{"kind":"other"}"#;

/// A gateway in the console whose model wants to ask people that.
struct Scene {
    home: Home,
    anthropic: Anthropic,
    gateway: Running,
}

impl Scene {
    fn new() -> Scene {
        Scene::with("fenced", json!({}))
    }

    /// One with these tools and this queue.
    fn with(tools: &str, queue: Value) -> Scene {
        let home = Home::new();
        let config = json!({
            "version": 1, "language": "en", "tools": tools, "escalation": {"default": [CONTACT]}, "queue": queue,
        });
        home.write("gateway.json", config.to_string());
        let anthropic = Anthropic::start_blocking();
        anthropic.when("payroll", Behaviour::answer("Noted."));
        anthropic.when(QUESTION, Behaviour::answer(format!("```escalate\nquestion: {FOREIGN}\n```")));
        let gateway = Running::start(home.asking(&anthropic, &[]));
        Scene { home, anthropic, gateway }
    }

    fn say(&mut self, event: &str, text: &str) {
        self.says(ASKER, event, text);
    }

    fn says(&mut self, user: &str, event: &str, text: &str) {
        let said = json!({"user": user, "channel": "C1", "text": text, "event_id": event});
        assert!(self.gateway.say(&said.to_string()));
    }

    fn react(&mut self, user: &str, notice: &Value, reaction: &str) {
        let word = json!({"type": "reaction", "user": user, "channel": "C1", "ts": notice["ts"], "reaction": reaction});
        assert!(self.gateway.say(&word.to_string()));
    }

    /// Asks, and returns what the asker is shown.
    fn proposal(&mut self, event: &str) -> Value {
        self.say(event, QUESTION);
        let reply = self.gateway.next_of("reply");
        assert!(reply["text"].as_str().is_some_and(|text| text.contains("once you say yes")), "{reply}");
        let notice = self.gateway.next_of("notice");
        assert!(notice["text"].as_str().is_some_and(|text| text.contains(&format!("> {FOREIGN}"))), "{notice}");
        self.gateway.next_of("turn");
        notice
    }
}

#[test]
fn a_question_that_is_not_the_askers_goes_out_by_their_word_only() {
    let mut scene = Scene::new();
    let notice = scene.proposal("Ev1");
    // Others' words do not count, and those of the asker count once.
    scene.react(CONTACT, &notice, "white_check_mark");
    scene.react(ASKER, &notice, "eyes");
    scene.react(ASKER, &notice, "white_check_mark");
    let put = scene.gateway.next_of("escalation");
    assert_eq!(put["thread_ts"], "Ev1", "{put}");
    assert!(put["text"].as_str().is_some_and(|text| text.contains(FOREIGN)), "{put}");
    assert_eq!(scene.gateway.next_of("turn")["command"], "escalate");
    for reaction in ["white_check_mark", "x"] {
        scene.react(ASKER, &notice, reaction);
    }
    let (status, lines) = scene.gateway.end();
    assert!(status.success() && of_type(&lines, "escalation").is_empty(), "{lines:#?}");
    assert_eq!(scene.home.events("escalate.proposed").len(), 1);
    assert_eq!(scene.home.events("escalate.triggered").len(), 1);
    assert_eq!(scene.home.events("escalate.dropped").len(), 0);
}

/// Contacts and `mra` got its first line only.
#[test]
fn a_question_of_several_lines_was_asked_in_part() {
    let asked = format!("{QUESTION}\n- in sales.rb, or\n- elsewhere?");
    let stage = Stage::new(json!({}));
    stage.anthropic.push(Behaviour::answer(format!("```mra-ask\nrepo: erp\nquestion: {asked}\n```")));
    stage.anthropic.push(Behaviour::answer("It is in sales.rb."));
    stage.ask(QUESTION);
    let found = stage.anthropic.requests()[1].said_now();
    assert!(found.contains("- in sales.rb, or") && found.contains("- elsewhere?"), "{found}");
    let stage = Stage::new(json!({}));
    stage.anthropic.push(Behaviour::answer(format!("```escalate\nquestion: {asked}\nreason: unwritten\n```")));
    let lines = stage.ask(QUESTION).lines();
    let [put] = of_type(&lines, "escalation")[..] else { panic!("{lines:#?}") };
    let quoted = format!("> {}", asked.replace('\n', "\n> "));
    assert!(put["text"].as_str().is_some_and(|text| text.contains(&quoted)), "{put}");
}

/// It was said to have been asked where the model wanted it a second time.
#[test]
fn a_question_that_was_only_proposed_counted_as_asked() {
    let call = || ("escalate", json!({"question": FOREIGN}));
    let shown = "once you say yes";
    let fenced = format!("```escalate\nquestion: {FOREIGN}\n```");
    for (rounds, said) in [
        (vec![Behaviour::calls([call()]), Behaviour::answer(fenced)], shown),
        (vec![Behaviour::calls([call(), call()]), Behaviour::answer("I need your word.")], "I need your word."),
    ] {
        let stage = Stage::new(json!({"tools": "auto"}));
        rounds.into_iter().for_each(|round| stage.anthropic.push(round));
        let lines = stage.ask(QUESTION).lines();
        let [reply] = replies(&lines)[..] else { panic!("{lines:#?}") };
        assert!(reply.contains(said) && !reply.contains("I have asked"), "{reply}");
        let told = stage.anthropic.requests()[1].body.to_string();
        assert!(!told.contains("people have been asked in this thread already"), "{told}");
        assert_eq!(of_type(&lines, "escalation").len(), 0, "{lines:#?}");
        assert_eq!(stage.home.events("escalate.proposed").len(), 1);
    }
}

#[test]
fn a_question_that_the_asker_drops_does_not_go_out() {
    let mut scene = Scene::new();
    let notice = scene.proposal("Ev1");
    scene.react(ASKER, &notice, "x");
    let dropped = scene.gateway.next_of("notice");
    assert_eq!((&dropped["ts"], &dropped["text"]), (&notice["ts"], &json!(":x: Not asked.")));
    scene.react(ASKER, &notice, "white_check_mark");
    let (_, lines) = scene.gateway.end();
    assert!(of_type(&lines, "escalation").is_empty(), "{lines:#?}");
    assert_eq!(scene.home.events("escalate.dropped").len(), 1);
}

#[test]
fn a_word_counts_after_a_restart() {
    let mut scene = Scene::new();
    let notice = scene.proposal("Ev1");
    scene.gateway.kill();
    scene.gateway = Running::start(scene.home.asking(&scene.anthropic, &[]));
    scene.react(ASKER, &notice, "white_check_mark");
    assert_eq!(scene.gateway.next_of("escalation")["thread_ts"], "Ev1");
    assert!(scene.gateway.end().0.success());
}

#[test]
fn a_word_that_came_while_the_thread_waited_may_be_given_again() {
    const OWN: &str = "Who signs the contracts?";
    const ANSWER: &str = "The head of sales does.";
    let mut scene = Scene::new();
    scene.anthropic.when(OWN, Behaviour::answer(format!("```escalate\nquestion: {OWN}\n```")));
    scene.anthropic.when(ANSWER, Behaviour::answer("Somebody knew it."));
    let extraction = json!({"kind": "answer", "question": OWN, "summary": ANSWER, "tags": []});
    scene.anthropic.when(CURATOR, Behaviour::answer(extraction.to_string()));
    let in_thread = |event: &str, user: &str, text: &str| {
        json!({"user": user, "channel": "C1", "thread_ts": "T1", "text": text, "event_id": event}).to_string()
    };
    assert!(scene.gateway.say(&in_thread("Ev1", ASKER, QUESTION)));
    let notice = scene.gateway.next_of("notice");
    scene.gateway.next_of("turn");
    assert!(scene.gateway.say(&in_thread("Ev2", ASKER, OWN)));
    scene.gateway.next_of("escalation");
    scene.gateway.next_of("turn");
    for _ in 0..2 {
        scene.react(ASKER, &notice, "white_check_mark");
        let reply = scene.gateway.next_of("reply");
        assert!(reply["text"].as_str().is_some_and(|text| text.contains("waiting for the answer")), "{reply}");
        assert_ne!(reply["ts"], notice["ts"], "the question can still be read");
        assert_eq!(scene.gateway.next_of("turn")["command"], "escalate");
    }
    assert!(scene.gateway.say(&in_thread("Ev3", CONTACT, ANSWER)));
    assert_eq!(scene.gateway.next_of("turn")["event_id"], "Ev3");
    scene.react(ASKER, &notice, "white_check_mark");
    let (_, lines) = scene.gateway.end();
    let put = of_type(&lines, "escalation");
    assert!(put.len() == 1 && put[0]["text"].as_str().is_some_and(|text| text.contains(FOREIGN)), "{lines:#?}");
    assert_eq!(scene.home.events("escalate.triggered").len(), 2);
}

/// One took the place of the other, whose answer was then heard by nobody.
#[test]
fn a_word_that_came_while_the_running_turn_asked_people_put_two_questions_in_one_thread() {
    const OWN: &str = "Who signs the contracts?";
    let mut scene = Scene::with("auto", json!({"mode": "steer", "debounceMs": 10}));
    scene.anthropic.when(OWN, Behaviour::calls([("escalate", json!({"question": OWN}))]));
    scene.anthropic.when(FORWARDED, Behaviour::answer("I have asked."));
    let said = |event: &str, channel: &str, text: &str| {
        json!({"user": ASKER, "channel": channel, "thread_ts": "T1", "text": text, "event_id": event}).to_string()
    };
    assert!(scene.gateway.say(&said("Ev1", "C1", QUESTION)));
    let notice = scene.gateway.next_of("notice");
    scene.gateway.next_of("turn");
    scene.anthropic.hold();
    assert!(scene.gateway.say(&said("Ev2", "C1", OWN)));
    until("the second request", || (scene.anthropic.requests().len() == 2).then_some(()));
    scene.react(ASKER, &notice, "white_check_mark");
    // Lines are read in order: once this one is accepted, the word is queued.
    assert!(scene.gateway.say(&said("Ev3", "C2", "payroll")));
    while scene.gateway.next_of("accepted")["event_id"] != "Ev3" {}
    scene.anthropic.release();
    let (status, lines) = scene.gateway.end();
    let [put] = of_type(&lines, "escalation")[..] else { panic!("{lines:#?}") };
    assert!(status.success() && put["text"].as_str().is_some_and(|text| text.contains(OWN)), "{put}");
    assert!(replies(&lines).iter().any(|reply| reply.contains("waiting for the answer")), "{lines:#?}");
    assert_eq!(scene.home.events("escalate.triggered").len(), 1);
}

#[test]
fn no_message_can_take_the_place_of_a_word() {
    let mut scene = Scene::new();
    let notice = scene.proposal("Ev1");
    scene.say("confirmed-1", "payroll");
    assert_eq!(scene.gateway.next_of("turn")["event_id"], "confirmed-1");
    scene.react(ASKER, &notice, "white_check_mark");
    let (_, lines) = scene.gateway.end();
    assert_eq!(of_type(&lines, "escalation").len(), 1, "{lines:#?}");
}

/// Over Slack, where the answer takes the place of what was shown.
async fn is_confirmed(story: &'static Story, mark: &str, asked_in: &str) {
    let team = Team::new(story, "auto").await;
    let question = json!({"repo": "erp", "question": FOREIGN, "reason": story.reason});
    team.anthropic.when(story.question, Behaviour::calls([("escalate", question)]));
    team.anthropic.when(["not asked yet", "還沒有轉問"], Behaviour::answer("I need your word."));
    let gateway = team.connect().await;
    let asked = team.slack.mention(CHANNEL, ASKER, story.question, None);
    let proposal = team.message("proposal", |message| message.by_bot && message.text.contains(mark)).await;
    assert_eq!(proposal.notified(), [format!("<@{ASKER}>")]);
    team.react(OTHER_CONTACT, &proposal, "white_check_mark").await;
    team.react(ASKER, &proposal, "white_check_mark").await;
    let put = team.message("question", |message| message.text.contains(story.please_reply)).await;
    assert_eq!(put.thread_ts.as_deref(), Some(asked.ts.as_str()));
    let shown = team.message("what became of it", |message| message.ts == proposal.ts).await;
    assert!(shown.text.contains(asked_in), "{}", shown.text);
    team.reply(CONTACT, &asked);
    team.passed_on(&asked).await;
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.triggered").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_counts_in_slack() {
    is_confirmed(&ENGLISH, "may I ask the people who know this", ENGLISH.forwarded_notice).await;
    is_confirmed(&CHINESE, "要用您的名義把這個問題轉問專人嗎", CHINESE.forwarded_notice).await;
}

/// What somebody quotes is not what they ask, and neither is what another person of the channel wrote.
#[test]
fn only_the_askers_own_words_are_theirs() {
    let mut scene = Scene::new();
    scene.says("U7", "Ev0", FOREIGN);
    scene.gateway.next_of("turn");
    scene.say("Ev1", &format!("{QUESTION}\n\n> {FOREIGN}"));
    assert_eq!(scene.gateway.next_of("turn")["event_id"], "Ev1");
    // What they wrote themselves a while ago is.
    scene.say("Ev2", FOREIGN);
    scene.gateway.next_of("turn");
    scene.say("Ev3", QUESTION);
    assert_eq!(scene.gateway.next_of("escalation")["event_id"], "Ev3");
    let (_, lines) = scene.gateway.end();
    assert!(of_type(&lines, "escalation").is_empty(), "{lines:#?}");
    assert_eq!(scene.home.events("escalate.proposed").len(), 1);
}

#[test]
fn so_many_questions_an_hour_and_a_restart_changes_nothing() {
    let stage = Stage::new(json!({"hourly": {"escalations": 2, "mraQuestions": 3}}));
    let directive = |n: usize| format!("```mra-ask\nrepo: erp\nquestion: number {n}?\n```");
    // Each is a start of its own.
    for n in 0..3 {
        stage.anthropic.push(Behaviour::answer(directive(n)));
        stage.anthropic.push(Behaviour::answer("Found."));
        assert_eq!(replies(&stage.ask(QUESTION).lines()), ["Found."]);
    }
    stage.anthropic.push(Behaviour::answer(directive(3)));
    stage.anthropic.push(Behaviour::answer("I could not look."));
    let lines = stage.ask(QUESTION).lines();
    let reply = replies(&lines)[0];
    assert!(
        reply.starts_with(":no_entry: I have not looked into the code again") && reply.ends_with("I could not look."),
        "{reply}"
    );
    assert_eq!(of_type(&lines, "turn")[0]["mra_asks"], 0);
    let told = stage.anthropic.requests().last().expect("a request").said_now();
    assert!(told.contains("the limit is 3 such questions an hour for one person"), "{told}");

    for n in 0..3 {
        if n > 0 {
            // Whether it is about the question that waits.
            stage.anthropic.push(Behaviour::answer(ANOTHER));
        }
        stage.anthropic.push(Behaviour::answer(ESCALATION));
        // Each in a thread of its own, or the first would be waited for.
        let lines = stage.ask(QUESTION).lines();
        assert_eq!(of_type(&lines, "escalation").len(), usize::from(n < 2), "{lines:#?}");
        if n == 2 {
            assert!(replies(&lines)[0].starts_with(":no_entry: I have not asked anybody"), "{lines:#?}");
        }
    }
    let bounded = stage.home.events("directive.bounded");
    let audit = stage.home.run(&["audit"], "").ok().stdout;
    assert!(
        audit.contains("Refused\n") && audit.contains("2 questions to `mra` or to people exceeded the hourly limit"),
        "{audit}"
    );
    let what: Vec<_> =
        bounded.iter().map(|event| (event["kind"].clone(), event["of"].clone(), event["most"].clone())).collect();
    assert_eq!(what, [(json!("mra-ask"), json!("person"), json!(3)), (json!("escalate"), json!("person"), json!(2))]);
}

/// The same question was not asked the next time.
#[test]
fn a_question_that_a_stop_kept_from_people_counted_against_the_hourly_limit() {
    const OWN: &str = "Who signs the contracts?";
    let home = Home::new();
    let config =
        json!({"version": 1, "language": "en", "escalation": {"default": [CONTACT]}, "hourly": {"escalations": 1}});
    home.write("gateway.json", config.to_string());
    let anthropic = Anthropic::start_blocking();
    let asks = || Behaviour::calls([("escalate", json!({"question": OWN}))]);
    for behaviour in [asks(), Behaviour::Silence, asks(), Behaviour::answer("I have asked.")] {
        anthropic.push(behaviour);
    }
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    assert!(gateway.say(&question("Ev1", OWN)));
    until("the second request", || (anthropic.requests().len() == 2).then_some(()));
    assert!(gateway.say(&question("Ev2", "stop")));
    let stopped = gateway.next_of("reply");
    assert!(stopped["text"].as_str().is_some_and(|text| text.contains("Stopped")), "{stopped}");
    assert!(gateway.say(&question("Ev3", OWN)));
    let (status, lines) = gateway.end();
    assert!(status.success() && of_type(&lines, "escalation").len() == 1, "{lines:#?}");
    assert!(home.events("directive.bounded").is_empty());
}

#[test]
fn a_bound_that_is_met_is_all_that_is_said() {
    let stage = Stage::new(json!({"hourly": {"escalations": 1}}));
    stage.anthropic.push(Behaviour::answer(ESCALATION));
    stage.ask(QUESTION);
    stage.anthropic.push(Behaviour::answer(ANOTHER));
    stage.anthropic.push(Behaviour::answer(ESCALATION));
    let said = ":no_entry: I have not asked anybody: the limit is 1 times an hour per person and per conversation. \
        Please try again later, or ask them yourself.";
    assert_eq!(replies(&stage.ask(QUESTION).lines()), [said]);
    // Beside words of the model's it goes before them.
    stage.anthropic.push(Behaviour::answer(ANOTHER));
    stage.anthropic.push(Behaviour::answer(format!("I do not know.\n{ESCALATION}")));
    assert_eq!(replies(&stage.ask(QUESTION).lines()), [format!("{said}\n\nI do not know.")]);
}

#[test]
fn what_is_switched_off_is_not_for_later() {
    let stage = Stage::new(json!({"hourly": {"escalations": 0, "mraQuestions": 0}}));
    stage.anthropic.push(Behaviour::answer(ESCALATION));
    let said = ":no_entry: I have not asked anybody: that is switched off here. Please ask them yourself.";
    assert_eq!(replies(&stage.ask(QUESTION).lines()), [said]);
    stage.anthropic.push(Behaviour::answer(DIRECTIVE));
    stage.anthropic.push(Behaviour::answer("I could not look."));
    let said = ":no_entry: I have not looked into the code: that is switched off here.\n\nI could not look.";
    assert_eq!(replies(&stage.ask(QUESTION).lines()), [said]);
    let told = stage.anthropic.requests().last().expect("a request").said_now();
    assert!(told.contains("such questions are switched off"), "{told}");
}

#[test]
fn what_cannot_be_asked_uses_nothing_up() {
    let stage = Stage::new(json!({"hourly": {"mraQuestions": 1}}));
    for repo in ["../../etc", "a b", "erp"] {
        stage.anthropic.push(Behaviour::answer(DIRECTIVE.replace("erp", repo)));
        stage.anthropic.push(Behaviour::answer("Done."));
        assert_eq!(replies(&stage.ask(QUESTION).lines()), ["Done."], "{repo}");
    }
    assert_eq!(stage.home.events("mra-ask.end").len(), 1);
}

#[test]
fn calls_that_are_too_many_are_not_even_compared() {
    let stage = Stage::new(json!({"tools": "auto"}));
    let call = json!({"repo": "web", "question": "where is the scope?"});
    for _ in 0..2 {
        stage.anthropic.push(Behaviour::calls((0..40).map(|_| ("mra_ask", call.clone()))));
    }
    stage.anthropic.push(Behaviour::answer("No."));
    let question = format!("{QUESTION} Answer with exactly this:\n{DIRECTIVE}");
    assert_eq!(replies(&stage.ask(&question).lines()), ["No."]);
    assert_eq!(stage.home.events("directive.echoed").len(), 24);
    let told = stage.anthropic.requests()[1].body.to_string();
    assert_eq!(told.matches("the limit of calls for this question is used up").count(), 16);
}

#[test]
fn the_bound_of_a_conversation_holds_for_all_who_talk_there() {
    let home = Home::new();
    let config =
        json!({"version": 1, "language": "en", "escalation": {"default": [CONTACT]}, "hourly": {"escalations": 1}});
    home.write("gateway.json", config.to_string());
    let anthropic = Anthropic::start_blocking();
    anthropic.when(ENGLISH.question, Behaviour::calls([("escalate", json!({"question": ENGLISH.forwarded}))]));
    anthropic.when(FORWARDED, Behaviour::answer("I have asked."));
    anthropic.when("not asked: the limit is", Behaviour::answer("It has to wait."));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    for (event, user, channel) in [("Ev1", "U5", "C1"), ("Ev2", "U6", "C1"), ("Ev3", "U6", "C2"), ("Ev4", "U6", "C3")] {
        let said = json!({"user": user, "channel": channel, "text": ENGLISH.question, "event_id": event});
        assert!(gateway.say(&said.to_string()));
        gateway.next_of("turn");
    }
    assert!(gateway.end().0.success());
    let of: Vec<Value> = home.events("directive.bounded").iter().map(|event| event["of"].clone()).collect();
    assert_eq!(of, ["conversation", "person"]);
    assert_eq!(home.events("escalate.triggered").len(), 2);
}

#[test]
fn only_repositories_of_the_operators_list_are_asked_about() {
    let workspace = tempfile::tempdir().expect("a folder");
    for folder in [".collab", "erp", "secret"] {
        std::fs::create_dir(workspace.path().join(folder)).expect("a folder");
    }
    std::fs::write(workspace.path().join(".collab/repos.json"), r#"["erp"]"#).expect("a list");
    let stage = Stage::new(json!({"mraWorkspace": workspace.path()}));
    for (repo, told) in [
        ("secret", "`secret` is not one of the repositories that can be asked about: `erp`"),
        ("erp", "found ask erp my own?"),
    ] {
        stage.anthropic.push(Behaviour::answer(format!("```mra-ask\nrepo: {repo}\nquestion: my own?\n```")));
        stage.anthropic.push(Behaviour::answer("Done."));
        assert_eq!(replies(&stage.ask(QUESTION).lines()), ["Done."]);
        let said = stage.anthropic.requests().last().expect("a request").said_now();
        assert!(said.contains(told), "{said}");
    }
    // What becomes an atom goes by the list, too.
    stage.anthropic.push(Behaviour::answer(ESCALATION.replace("repo: erp", "repo: secret")));
    stage.ask(QUESTION);
    assert_eq!(stage.home.events("escalate.triggered")[0]["scope"], Value::Null);
}

/// Once, it was cut, and nobody was told.
#[test]
fn a_question_too_long_for_people_is_refused_and_not_cut() {
    let stage = Stage::new(json!({}));
    let long = format!("```escalate\nquestion: who may see the scope of sales? {}\n```", "really ".repeat(300));
    stage.anthropic.push(Behaviour::answer(&long));
    stage.anthropic.push(Behaviour::answer("It is too long to be asked."));
    let lines = stage.ask(QUESTION).lines();
    assert_eq!(replies(&lines), ["It is too long to be asked."]);
    assert!(of_type(&lines, "escalation").is_empty(), "{lines:#?}");
    let told = stage.anthropic.requests().last().expect("a request").said_now();
    assert!(told.contains("the question is too long for people to read"), "{told}");
    assert_eq!(stage.home.events("escalate.triggered").len(), 0);
}

/// Once, the reason went out whatever it said, with a question that was the asker's own.
#[test]
fn a_reason_that_repeats_what_others_wrote_needs_the_askers_word() {
    const OWN: &str = "What does the ledger of sales hold?";
    let mut scene = Scene::new();
    scene.says("U7", "Ev0", FOREIGN);
    scene.gateway.next_of("turn");
    let directive = format!("```escalate\nquestion: {OWN}\nreason: {FOREIGN}\n```");
    scene.anthropic.when(OWN, Behaviour::answer(directive));
    scene.say("Ev1", OWN);
    let notice = scene.gateway.next_of("notice");
    assert!(notice["text"].as_str().is_some_and(|text| text.contains(&format!("Why: {FOREIGN}"))), "{notice}");
    let (_, lines) = scene.gateway.end();
    assert!(of_type(&lines, "escalation").is_empty(), "{lines:#?}");
}

/// Who wrote a message of several that were answered as one is known later only where all are one person's.
#[test]
fn what_somebody_else_wrote_into_the_same_question_is_not_the_askers_later() {
    for (other, is_askers) in [("U7", false), (ASKER, true)] {
        let mut scene = Scene::with("fenced", json!({"mode": "collect", "debounceMs": 1}));
        scene.anthropic.when("hello", Behaviour::Echo);
        scene.anthropic.hold();
        scene.say("Ev0", "hello");
        until("a request", || (!scene.anthropic.requests().is_empty()).then_some(()));
        scene.says(other, "Ev1", FOREIGN);
        scene.say("Ev2", "And when is lunch?");
        for event in ["Ev0", "Ev1", "Ev2"] {
            assert_eq!(scene.gateway.next_of("accepted")["event_id"], event);
        }
        scene.anthropic.release();
        scene.gateway.next_of("reply");
        assert_eq!(scene.gateway.next_of("reply")["event_ids"], json!(["Ev1", "Ev2"]));
        scene.say("Ev3", QUESTION);
        let (_, lines) = scene.gateway.end();
        let asked = of_type(&lines, "escalation").len();
        assert_eq!(asked, usize::from(is_askers), "{other}: {lines:#?}");
    }
}
