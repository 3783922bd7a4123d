//! The mra round (specification 003 §6): asked as a program, shown as it works, told to the model as it went.

use std::{path::PathBuf, process::Command, time::Duration};

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    program::{Call, calls},
    slack::{Fault, Message, Sent, Slack},
};
use serde_json::{Value, json};

use crate::{
    support::{
        Finished, Home, PATIENCE, Running, component, finish, is_alive, of_type, question, replies, stand_in, until,
    },
    terminal::Terminal,
    workspace::{Gateway, rules},
};

const QUESTION: &str = "Where is the scope of sales defined?";
const ASKED: &str = "where is the sales_performances scope defined?";
const ANSWER: &str = "It is in app/models/sales.rb.";
const SORRY: &str = "The search failed, and this is why.";

/// How a result and a failure begin what the model is told.
const FOUND: &str = "found; answer the question from it:";
const FAILED: &str = "` failed:\n";

/// A home whose `mra` plays a script, and a model that asks it.
struct Stage {
    home: Home,
    anthropic: Anthropic,
    script: PathBuf,
}

impl Stage {
    /// `mra` is what gateway.json has beside the command. Of its progress nothing but the opening line is due.
    fn new(script: &str, mra: Value) -> Stage {
        Stage::showing(json!({"progressSeconds": 3_600}), script, mra)
    }

    /// The same, with limits of its own.
    fn showing(limits: Value, script: &str, mra: Value) -> Stage {
        let home = Home::new();
        let script = home.write("mra.script", script);
        let command = stand_in("mra", &script);
        let mut config = json!({"version": 1, "language": "en", "limits": limits, "mra": {"command": command}});
        // What is said when it goes is no part of this.
        config["presence"] = json!({"broadcast": false});
        config["mra"].as_object_mut().expect("an object").extend(mra.as_object().expect("an object").clone());
        home.write("gateway.json", config.to_string());
        let anthropic = Anthropic::start_blocking();
        anthropic.when(QUESTION, Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": ASKED}))]));
        anthropic.when(FOUND, Behaviour::answer(ANSWER));
        anthropic.when(FAILED, Behaviour::answer(SORRY));
        Stage { home, anthropic, script }
    }

    fn calls(&self) -> Vec<Call> {
        calls(&self.script).expect("recorded calls")
    }

    /// What the model is told in its second prompt.
    fn told(&self) -> String {
        let requests = self.anthropic.requests();
        assert!(requests.iter().all(|request| request.refused.is_none()), "{requests:#?}");
        requests[1].said_now()
    }

    /// Sets the hourly limit.
    fn bound(&self, most: u32) {
        let config = std::fs::read_to_string(self.home.path().join("gateway.json")).expect("gateway.json");
        let mut config: Value = serde_json::from_str(&config).expect("JSON");
        config["hourly"] = json!({"mraQuestions": most});
        self.home.write("gateway.json", config.to_string());
    }

    fn ended(&self) -> Value {
        let ledger = self.home.ledger();
        let [ended] = of_type(&ledger, "mra-ask.end")[..] else { panic!("{ledger:#?}") };
        ended.clone()
    }

    fn ask(&self) -> Finished {
        finish(self.home.asking(&self.anthropic, &[]), &question("Ev1", QUESTION)).ok()
    }

    /// The model was told of the failure in these words, and the log has those.
    fn failed(&self, finished: &Finished, told: &str, logged: &str, is_retried: bool) {
        assert_eq!(replies(&finished.lines()), [SORRY], "{told}");
        let shown = format!("`mra ask erp {ASKED}{FAILED}{told}\n");
        assert!(self.told().contains(&shown), "{told}: {}", self.told());
        assert!(
            finished.stderr.contains("`mra ask` failed") && finished.stderr.contains(logged),
            "{}",
            finished.stderr
        );
        assert_eq!(self.calls().len(), 1 + usize::from(is_retried), "{told}");
        let ended = self.ended();
        assert_eq!((&ended["ok"], &ended["retried"]), (&json!(false), &json!(is_retried)), "{told}");
    }
}

#[test]
fn what_mra_finds_is_in_the_second_prompt() {
    let stage = Stage::new("out [ask] PKB loaded\nout \u{1b}[2min app/models/sales.rb\u{1b}[0m", json!({}));
    let mut command = stage.home.asking(&stage.anthropic, &["--front", "console"]);
    command.env("PMK_SLACK_BOT_TOKEN", "xoxb-secret").env("LANG", "C.UTF-8");
    let lines = finish(command, &question("Ev1", QUESTION)).ok().lines();
    assert_eq!(replies(&lines), [ANSWER]);
    let told = stage.told();
    assert!(
        told.contains(&format!("What `mra ask erp {ASKED}` {FOUND}\n\n[ask] PKB loaded\nin app/models/sales.rb")),
        "{told}"
    );
    let [call] = stage.calls().try_into().expect("one call");
    assert_eq!(call.arguments, ["ask", "erp", ASKED]);
    assert!(call.environment.contains_key("LANG"), "{:?}", call.environment);
    assert!(call.environment.keys().all(|name| !name.contains("SLACK") && !name.contains("ANTHROPIC")), "{call:?}");
    let progress: Vec<&str> = of_type(&lines, "progress").iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(progress, ["Looking into erp…"], "one line at once, the next when it is due");
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(kinds, ["accepted", "progress", "reply", "turn"]);
    let ended = stage.ended();
    assert_eq!((&ended["repo"], &ended["ok"], &ended["retried"]), (&json!("erp"), &json!(true), &json!(false)));
    assert!(ended["durationMs"].is_u64() && ended["actor"] == "U1", "{ended}");
    assert_eq!(of_type(&stage.home.ledger(), "turn.processed")[0]["hadMraAsk"], true);
}

#[test]
fn each_failure_is_told_as_it_is_and_answered() {
    for (script, told, logged, is_retried) in [
        (
            "err fatal: no index\nerr   for erp\nexit 3",
            "exit code 3\nstderr:\nfatal: no index\n  for erp",
            "no index",
            false,
        ),
        ("exit 4", "exit code 4, nothing on stderr", "exit code 4", true),
        ("err warming up", "it printed nothing\nstderr:\nwarming up", "warming up", false),
    ] {
        let stage = Stage::new(script, json!({}));
        stage.failed(&stage.ask(), told, logged, is_retried);
    }
}

#[test]
fn one_that_takes_too_long_is_told_with_what_it_said() {
    for (script, said) in [
        ("out half an answer\nmark said\nhang", ", nothing on stderr"),
        ("err stuck on the lock\nspawn\nmark said\nhang", "\nstderr:\nstuck on the lock"),
    ] {
        // However slow the machine is, within one of these it has come to where it hangs.
        let ended = [0.5, 2.5, 12.5, 62.5].into_iter().find_map(|seconds| {
            let stage = Stage::new(script, json!({"timeLimitSeconds": seconds}));
            let finished = stage.ask();
            stage.home.path().join("said").exists().then_some((stage, finished, seconds))
        });
        let (stage, finished, seconds) = ended.expect("it has said what it says");
        let late = format!("no answer within {seconds} s");
        stage.failed(&finished, &format!("{late}{said}"), &late, false);
    }
}

#[test]
fn a_program_that_cannot_be_started_is_named_and_not_offered() {
    for (config, told) in [
        (json!({"mra": {"command": ["no-such-mra"]}}), "`no-such-mra` was not found"),
        (json!({"mra": {"command": ["/etc"]}}), "this user is not allowed to run `/etc`"),
        (json!({"mraWorkspace": "/no/such/workspace"}), "the working directory `/no/such/workspace` does not exist"),
    ] {
        let stage = Stage::new("out never", json!({}));
        let mut whole = json!({"version": 1, "language": "en", "mra": {"command": stand_in("mra", &stage.script)}});
        whole.as_object_mut().expect("an object").extend(config.as_object().expect("an object").clone());
        stage.home.write("gateway.json", whole.to_string());
        stage.anthropic.when(QUESTION, Behaviour::answer(SORRY));
        let finished = stage.ask();
        assert_eq!(replies(&finished.lines()), [SORRY], "{told}");
        let asked = &stage.anthropic.requests()[0].body;
        assert!(!asked.to_string().contains("mra"), "{asked}");
        assert!(
            finished.stderr.contains(&format!("the model is not offered `mra_ask`: {told}")),
            "{}",
            finished.stderr
        );
        assert_eq!(stage.calls().len(), 0);
    }
}

#[test]
fn a_silent_failure_is_asked_once_more() {
    let stage = Stage::new("exit 1\n---\nout in app/models/sales.rb", json!({}));
    let lines = stage.ask().lines();
    assert_eq!(replies(&lines), [ANSWER]);
    assert_eq!(stage.calls().len(), 2);
    assert_eq!((&stage.ended()["ok"], &stage.ended()["retried"]), (&json!(true), &json!(true)));
}

#[test]
fn a_result_over_the_cap_is_shown_in_part_and_kept_whole() {
    let result: String = (0..1_000).map(|n| format!("out line {n} 預算\n")).collect();
    let stage = Stage::new(&result, json!({}));
    let strict = component("strict");
    let more = ["--policy", &strict, "--set", "strict.mra-result-cap=2000"];
    finish(stage.home.asking(&stage.anthropic, &more), &question("Ev1", QUESTION)).ok();
    let told = stage.told();
    assert!(told.contains("line 5 預算") && !told.contains("line 500 預算"), "{told}");
    assert!(told.contains("by the mra-result cap of 2000; the host has it all, id "), "{told}");
    let show = ["sessions", "show", "console:dm:U1", "--full"];
    let full = stage.home.run(&show, "").ok().stdout;
    assert!((0..1_000).all(|n| full.contains(&format!("line {n} 預算"))), "{full}");
    let window = stage.home.run(&show[..3], "").ok().stdout;
    assert!(window.contains(", shortened)") && !window.contains("line 500 預算"), "{window}");
    let ledger = stage.home.ledger();
    let [capped] = of_type(&ledger, "message.capped")[..] else { panic!("{ledger:#?}") };
    assert_eq!((&capped["actor"], &capped["kind"]), (&json!("U1"), &json!("mra-result")));
    assert!(capped["originalChars"].as_u64() > Some(11_900), "{capped}");
    assert!(capped["cappedChars"].as_u64() < Some(2_200), "{capped}");
}

/// Every result went by the name `mra`, in a turn and in a replay.
#[test]
fn a_cap_by_the_name_of_a_repository_was_never_found() {
    let result: String = (0..1_000).map(|n| format!("out line {n} 預算\n")).collect();
    let stage = Stage::new(&result, json!({}));
    let capped = ["--policy", "caps", "--set", "caps.by-name=erp=2000"];
    finish(stage.home.asking(&stage.anthropic, &capped), &question("Ev1", QUESTION)).ok();
    let told = stage.told();
    assert!(told.contains("line 5 預算") && !told.contains("line 500 預算"), "{told}");
    let compare = [&["compare", "--policy", "standard", "--json", "-"][..], &capped].concat();
    let document = stage.home.run(&compare, "").ok().json();
    let counts = [0, 1].map(|at| document["policies"][at]["contents_capped"].clone());
    assert_eq!(counts, [0, 1].map(Value::from), "{document:#}");
}

#[test]
fn megabytes_of_no_text_are_survived() {
    let stage = Stage::new("raw ff fe 0a\nflood 3000000", json!({}));
    let lines = stage.ask().lines();
    assert_eq!(replies(&lines), [ANSWER]);
    let told = stage.told();
    assert!(
        told.contains("\u{fffd}\u{fffd}\nxxx") && told.contains("by the mra-result cap of 40000"),
        "{} bytes",
        told.len()
    );
    assert!(told.len() < 100_000, "{} bytes", told.len());
}

/// Must show 2. That they are three seconds apart is held where time can be told what it is, in `progress`.
#[tokio::test(flavor = "multi_thread")]
async fn progress_is_shown_as_it_comes_and_never_after_the_answer() {
    let stage = Stage::showing(
        json!({"progressSeconds": 0.001}),
        "wait 0\nout [ask] PKB loaded\nwait 1\nout [ask] querying <!channel> <@U9>\nwait 2",
        json!({}),
    );
    stage.home.run(&["audience", "default", "tech"], "").ok();
    let slack = Slack::start(rules().without_statuses()).await;
    let gateway = Gateway::asking(&stage.home, &slack, &stage.anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let asked = slack.dm("U1", QUESTION);
    let shown = ["Looking into erp…", "[ask] PKB loaded", "[ask] querying &lt;!channel&gt; &lt;@U9&gt;"];
    let waiting = |line: &str| format!(":hourglass_flowing_sand: {line}");
    for (step, line) in shown.into_iter().enumerate() {
        let is_shown = |message: &Message| message.text == waiting(line);
        assert!(slack.await_message(&asked.channel, PATIENCE, is_shown).await.is_some(), "{line}");
        stage.home.write(&step.to_string(), "");
    }
    let answer = slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    assert_eq!(answer.text, ANSWER);
    assert_eq!(answer.history, [&["Thinking…"], &shown[..]].concat().into_iter().map(waiting).collect::<Vec<_>>());
    assert!(gateway.terminate().success());
    assert_eq!(slack.replies(&asked.channel), [answer]);
    assert_eq!(slack.violations(), [] as [&str; 0]);
}

/// Once, `verbose off` was what nobody had chosen, and progress was shown all the same.
#[tokio::test(flavor = "multi_thread")]
async fn verbose_off_silences_progress_on_every_front() {
    let stage = Stage::new("out in app/models/sales.rb", json!({}));
    let input = [question("Ev0", "verbose off"), question("Ev1", QUESTION)].join("\n");
    let lines = finish(stage.home.asking(&stage.anthropic, &[]), &input).ok().lines();
    assert_eq!(of_type(&lines, "progress"), [] as [&Value; 0]);
    assert_eq!(replies(&lines).last(), Some(&ANSWER));
    let slack = Slack::start(rules().without_statuses()).await;
    let gateway = Gateway::asking(&stage.home, &slack, &stage.anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let off = slack.dm("U1", "verbose off");
    assert!(slack.await_reply(&off, PATIENCE).await.is_some());
    let asked = slack.dm("U1", QUESTION);
    let is_answer = |message: &Message| message.text == ANSWER;
    let answer = slack.await_message(&asked.channel, PATIENCE, is_answer).await.expect("a reply");
    assert_eq!(answer.history, [":hourglass_flowing_sand: Thinking…"]);
    assert!(gateway.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_on_its_way_does_not_overwrite_the_answer() {
    let stage = Stage::new("out in app/models/sales.rb", json!({}));
    let slack = Slack::start(rules().without_statuses()).await;
    let gateway = Gateway::asking(&stage.home, &slack, &stage.anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    slack.fault_times("chat.update", 1, Fault::Slow(Duration::from_millis(700)));
    let asked = slack.dm("U1", QUESTION);
    let answer = slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    assert_eq!(answer.text, ANSWER);
    assert!(gateway.terminate().success());
    assert_eq!(slack.replies(&asked.channel), [answer]);
    let texts = slack.calls("chat.update").into_iter().map(|call| call.body["text"].clone());
    assert_eq!(texts.collect::<Vec<_>>(), [":hourglass_flowing_sand: Looking into erp…", ANSWER]);
}

/// Once, everybody was shown paths and names of code.
#[test]
fn who_does_not_read_code_sees_how_far_it_is() {
    let script = "out [ask] PKB loaded\nwait go\nout in app/models/sales.rb";
    for (audience, raw) in [("biz", false), ("pm", false), ("exec", false), ("tech", true)] {
        let stage = Stage::showing(json!({"progressSeconds": 0.001}), script, json!({}));
        stage.home.run(&["audience", "default", audience], "").ok();
        let mut gateway = Running::start(stage.home.asking(&stage.anthropic, &[]));
        gateway.say(&question("Ev1", QUESTION));
        let [begun, shown] = [(); 2].map(|()| gateway.next_of("progress")["text"].to_string());
        assert!(begun.contains("Looking into erp…"), "{audience}: {begun}");
        assert_eq!(
            (shown.contains("PKB loaded"), shown.contains("Looking into erp…")),
            (raw, !raw),
            "{audience}: {shown}"
        );
        stage.home.write("go", "");
        assert_eq!(gateway.next_of("reply")["text"], ANSWER, "{audience}");
        assert!(gateway.end().0.success());
    }
}

/// Regression: after `verbose full`, which anybody may say, everybody was shown what `mra` had printed.
#[test]
fn who_does_not_read_code_was_shown_a_result_in_full() {
    for (audience, is_shown) in [("biz", false), ("pm", false), ("exec", false), ("tech", true)] {
        let stage = Stage::new("out in app/models/sales.rb", json!({}));
        stage.home.run(&["audience", "default", audience], "").ok();
        let input = [question("Ev0", "verbose full"), question("Ev1", QUESTION)].join("\n");
        let lines = finish(stage.home.asking(&stage.anthropic, &[]), &input).ok().lines();
        assert_eq!(replies(&lines).last(), Some(&ANSWER), "{audience}");
        let notices = of_type(&lines, "notice").into_iter().filter_map(|notice| notice["text"].as_str());
        let calls: Vec<&str> = notices.filter(|text| text.contains("erp")).collect();
        let [call] = calls[..] else { panic!("{audience}: {lines:#?}") };
        assert_eq!(call.contains("app/models/sales.rb"), is_shown, "{audience}: {call}");
    }
}

/// Regression: everybody in a channel was shown code, while `mra` worked and in its result, where the asker reads code.
#[test]
fn a_channel_that_does_not_read_code_was_shown_it_where_its_asker_does() {
    let script = "out [ask] PKB loaded\nwait go\nout in app/models/sales.rb";
    for (audience, is_shown) in [("biz", false), ("tech", true)] {
        let stage = Stage::showing(json!({"progressSeconds": 0.001}), script, json!({}));
        stage.home.run(&["audience", "set", "U1", "tech"], "").ok();
        stage.home.run(&["audience", "set", "C1", audience], "").ok();
        let mut gateway = Running::start(stage.home.asking(&stage.anthropic, &[]));
        for (event, text) in [("Ev0", "verbose full"), ("Ev1", QUESTION)] {
            gateway.say(&json!({"user": "U1", "channel": "C1", "text": text, "event_id": event}).to_string());
        }
        let [_, shown] = [(); 2].map(|()| gateway.next_of("progress")["text"].to_string());
        assert_eq!(shown.contains("PKB loaded"), is_shown, "{audience}: {shown}");
        stage.home.write("go", "");
        let call = gateway.next_of("notice")["text"].to_string();
        assert!(call.contains("mra ask erp"), "{audience}: {call}");
        assert_eq!(call.contains("app/models/sales.rb"), is_shown, "{audience}: {call}");
        assert_eq!(gateway.next_of("reply")["text"], ANSWER, "{audience}");
        assert!(gateway.end().0.success());
    }
}

/// Once, what a failed call had printed was thrown away, and with it why it failed.
#[test]
fn what_a_failed_call_printed_is_told() {
    let stage = Stage::new("out no index for erp, run mra index\nerr fatal\nexit 3", json!({}));
    finish(stage.home.asking(&stage.anthropic, &[]), &question("Ev1", QUESTION)).ok();
    let told = stage.told();
    assert!(told.contains("stderr:\nfatal\nstdout:\nno index for erp, run mra index"), "{told}");
}

/// A gateway that searches for the answer to what somebody has asked in a direct message.
async fn searching(stage: &Stage) -> (Slack, Gateway, Sent) {
    let slack = Slack::start(rules().without_statuses()).await;
    let gateway = Gateway::asking(&stage.home, &slack, &stage.anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let asked = slack.dm("U1", QUESTION);
    until("a search", || calls(&stage.script).ok().filter(|calls| !calls.is_empty()));
    (slack, gateway, asked)
}

/// Regression: the ledger had no line of it, although it counts against the hourly limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_an_edit_of_its_question_ended_was_not_counted() {
    let stage = Stage::new("wait more\nout found", json!({}));
    stage.anthropic.when("Something else, please.", Behaviour::answer("All right."));
    let (slack, gateway, asked) = searching(&stage).await;
    slack.edit(&asked, "Something else, please.");
    let is_answer = |message: &Message| message.text == "All right.";
    assert!(slack.await_message(&asked.channel, PATIENCE, is_answer).await.is_some());
    assert!(gateway.terminate().success());
    let ended = stage.ended();
    assert_eq!((&ended["repo"], &ended["ok"], &ended["retried"]), (&json!("erp"), &json!(false), &json!(false)));
}

/// Regression: the ledger had nothing of what a question had cost that became a command.
#[tokio::test(flavor = "multi_thread")]
async fn what_had_been_spent_on_a_question_that_an_edit_made_a_command_was_not_counted() {
    let stage = Stage::new("wait more\nout found", json!({}));
    let (slack, gateway, asked) = searching(&stage).await;
    slack.edit(&asked, "/pmk frob");
    let is_answer = |message: &Message| message.text.contains("There is no command `frob`");
    assert!(slack.await_message(&asked.channel, PATIENCE, is_answer).await.is_some());
    assert!(gateway.terminate().success());
    assert_eq!(stage.ended()["ok"], false);
    assert_eq!(of_type(&stage.home.ledger(), "token.usage").len(), 1);
}

/// The model was told that the search was cancelled, and made its last answer of that.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_a_stop_ends_is_made_again_by_the_next_start() {
    let stage = Stage::new("wait more\nout found", json!({}));
    let (slack, gateway, asked) = searching(&stage).await;
    assert!(gateway.terminate().success());
    assert_eq!(stage.anthropic.requests().len(), 1, "nothing was made of it");
    stage.home.write("more", "");
    let gateway = Gateway::asking(&stage.home, &slack, &stage.anthropic, &[]);
    let answer = slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    assert_eq!((&*answer.text, stage.calls().len()), (ANSWER, 2));
    assert!(gateway.terminate().success());
    assert_eq!(slack.violations(), [] as [&str; 0]);
}

/// Once, the next start was told that the limit is reached, and did not search.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_a_stop_ended_counted_twice_against_the_hourly_limit() {
    let stage = Stage::new("wait more\nout found", json!({}));
    stage.bound(1);
    let (slack, gateway, asked) = searching(&stage).await;
    assert!(gateway.terminate().success());
    stage.home.write("more", "");
    let gateway = Gateway::asking(&stage.home, &slack, &stage.anthropic, &[]);
    let answer = slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    assert_eq!((&*answer.text, stage.calls().len()), (ANSWER, 2));
    // That one counts.
    let asked = slack.dm("U1", QUESTION);
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some());
    assert_eq!((stage.home.await_events("directive.bounded", 1).len(), stage.calls().len()), (1, 2));
    assert!(gateway.terminate().success());
}

/// Once, an edit took the whole round from the hourly limit, also what had not begun: the edited question was told that
/// the limit is reached.
#[tokio::test(flavor = "multi_thread")]
async fn searches_that_an_edit_kept_from_beginning_counted_against_the_hourly_limit() {
    let stage = Stage::new("wait more\nout found", json!({}));
    stage.bound(8);
    let round = |count: u32| {
        let input = |part: u32| json!({"repo": "erp", "question": format!("where is part {part} defined?")});
        Behaviour::calls((0..count).map(|part| ("mra_ask", input(part))))
    };
    stage.anthropic.when(QUESTION, round(8));
    stage.anthropic.when("Something else, please.", round(4));
    let (slack, gateway, asked) = searching(&stage).await;
    let begun = |count| until("four more searches", || calls(&stage.script).ok().filter(|calls| calls.len() == count));
    begun(4);
    slack.edit(&asked, "Something else, please.");
    begun(8);
    stage.home.write("more", "");
    let is_answer = |message: &Message| message.text == ANSWER;
    assert!(slack.await_message(&asked.channel, PATIENCE, is_answer).await.is_some());
    assert_eq!(of_type(&stage.home.ledger(), "directive.bounded"), [] as [&Value; 0]);
    assert!(gateway.terminate().success());
}

/// Once, `mra` and what it had started went on when the gateway was killed.
#[test]
fn nothing_that_mra_has_started_outlives_a_gateway_that_is_killed() {
    let home = Home::new();
    let pids = home.path().join("pids");
    // One child of the group, one that has left it with a child of its own, and the program itself.
    let script = "cd \"$(dirname \"$1\")\"; sleep 1000 & echo $! > new; \
                  setsid sh -c 'echo $$ >> new; sleep 1000 & echo $! >> new; echo done >> new; wait' & \
                  until grep -q done new; do :; done; echo $$ >> new; mv new \"$1\"; wait";
    let command = ["sh", "-c", script, "mra", &pids.display().to_string()];
    home.write("gateway.json", json!({"version": 1, "language": "en", "mra": {"command": command}}).to_string());
    let anthropic = Anthropic::start_blocking();
    anthropic.when(QUESTION, Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": ASKED}))]));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    gateway.say(&question("Ev1", QUESTION));
    let started = until("the children of `mra`", || std::fs::read_to_string(&pids).ok());
    let started: Vec<&str> = started.lines().filter(|line| *line != "done").collect();
    assert!(started.len() == 4 && started.iter().all(|pid| is_alive(pid)), "{started:?}");
    gateway.kill();
    until("the end of all of them", || started.iter().all(|pid| !is_alive(pid)).then_some(()));
}

/// Regression: a repository that the model made up, and what its server answered, reached the operator's terminal as they
/// were: an escape sequence in them took effect. With `--json`, one that begins with U+009B did.
#[test]
fn what_the_model_and_its_server_said_could_steer_the_terminal_that_the_log_is_read_on() {
    const TITLE: &str = "\u{1b}]0;steered\u{7}\u{9b}";
    for (is_chat, is_json) in [(true, false), (false, false), (false, true)] {
        let (more, shown): (&[&str], &str) = if is_json {
            (&["--json"], r"\u001b]0;steered\u0007\u009b")
        } else {
            (&[], "\u{fffd}]0;steered\u{fffd}\u{fffd}")
        };
        let stage = Stage::new("out never", json!({}));
        let call = json!({"repo": format!("erp{TITLE}"), "question": ASKED});
        stage.anthropic.when(QUESTION, Behaviour::calls([("mra_ask", call)]));
        let refused = Behaviour::error(401, "authentication_error", &format!("no {TITLE} finis"));
        stage.anthropic.when("is not the name of a repository", refused);
        let asking = stage.home.asking(&stage.anthropic, more);
        let mut terminal = if is_chat {
            let mut terminal = Terminal::start(asking);
            terminal.type_in(format!("{QUESTION}\r").as_bytes());
            terminal
        } else {
            // Only the log is for the terminal.
            let input = stage.home.write("input", question("Ev1", QUESTION) + "\n");
            let mut command = Command::new("sh");
            command.env_clear().envs(asking.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.args(["-c", "exec \"$@\" < \"$0\" > \"$0.out\""]).arg(input);
            command.arg(asking.get_program()).args(asking.get_args());
            Terminal::start(command)
        };
        terminal.wait_for("finis", 1);
        assert!(terminal.screen.contains(shown), "{more:?}: {}", terminal.screen);
        assert!(!terminal.screen.contains("\u{1b}]0;steered"), "{more:?}: {}", terminal.screen);
        assert!(!terminal.screen.contains('\u{9b}'), "{more:?}: {}", terminal.screen);
        let ended = if is_chat { terminal.press_until_it_ends(b"\x03") } else { terminal.wait() };
        assert!(ended.success());
    }
}
