//! Cases (specification 003 §11): opened, tracked and closed from Slack, looked at and written to a file on the host; nothing of
//! one is lost or doubled by a kill.

use pmk_stand_ins::{
    anthropic::Behaviour,
    slack::{Fault, Message, SlackRules, dm_channel},
};
use serde_json::{Value, json};

use crate::{
    readers::in_chinese,
    support::{Home, PATIENCE, stand_in, until_async},
    workspace::{Scene, rules, rules_for_kills},
};

const CHANNEL: &str = "C1";
const QUESTION: &str = "Why does the login hang at night?";
const FENCE: &str =
    "```case-update\nhypothesis: the nightly job holds the lock\nnext-question: since which release?\n```";
const TRACKED: &str =
    "pmk auto-tracked (case 1)\n• Hypothesis: the nightly job holds the lock\n• Open question: since which release?";

async fn scene(rules: SlackRules) -> Scene {
    Scene::new(rules, &json!({"version": 1, "language": "en", "limits": {"slackCallSeconds": 600}})).await
}

impl Scene {
    /// Says something in the channel, and waits for so many messages of the bot's in answer.
    async fn ask(&self, text: &str, thread: Option<&str>, messages: usize) -> Vec<Message> {
        let before = self.slack.replies(CHANNEL).len();
        self.slack.mention(CHANNEL, "U1", text, thread);
        assert!(self.slack.await_replies(CHANNEL, before + messages, PATIENCE).await, "no answer to `{text}`");
        self.slack.replies(CHANNEL).split_off(before)
    }

    /// Waits for so many events; an order is a turn, too.
    async fn await_events(&self, kind: &str, count: usize) {
        until_async(kind, || (self.home.events(kind).len() >= count).then_some(())).await;
    }

    fn answers(&self, answer: &str) {
        self.anthropic.push(Behaviour::answer(answer));
    }
}

/// What the host shows of it, with times that are the same in every run.
fn shown(home: &Home, arguments: &[&str]) -> String {
    let finished = home.run(arguments, "");
    let stderr: String = finished.stderr.lines().map(|line| format!("2> {line}\n")).collect();
    let text = format!("$ pmk-host {}\n{}{stderr}", arguments.join(" "), finished.stdout);
    text.replace(&home.path().display().to_string(), "[home]")
}

const TIMES: [(&str, &str); 1] = [(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\dZ| UTC)", "[time]")];

#[tokio::test(flavor = "multi_thread")]
async fn a_case_is_opened_tracked_closed_and_written_to_a_file() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    // Where none is open the model is told of no fence, and one that it writes is text as any other.
    scene.answers(&format!("The lock.\n\n{FENCE}"));
    assert!(scene.ask(QUESTION, None, 1).await[0].text.contains("hypothesis: the nightly job"));

    let opened = scene.ask("/pmk open Login hangs <every> night", None, 1).await;
    assert!(opened[0].text.starts_with(":file_folder: Opened case 1."), "{opened:?}");
    let refused = scene.ask("/pmk open Another", None, 1).await;
    assert!(refused[0].text.starts_with(":warning: Case 1 is already open in this channel"), "{refused:?}");

    scene.answers(&format!("The *nightly* job, I think.\n\n{FENCE}"));
    let said = scene.ask(QUESTION, None, 2).await;
    assert_eq!(said[0].text, "The _nightly_ job, I think.");
    assert_eq!(said[1].text, format!(":pushpin: {TRACKED}"));
    // In a thread of the channel, the same again and something new.
    scene.answers(&format!("It does.\n\n{FENCE}\n```case-update\nhypothesis: the disk is full\n```"));
    let said = scene.ask("And on Sundays?", Some("1700000000.000100"), 2).await;
    assert_eq!(said[1].text, ":pushpin: pmk auto-tracked (case 1)\n• Hypothesis: the disk is full");
    // Nothing new is no line; nothing but something new is one.
    scene.answers(&format!("Yes.\n\n{FENCE}"));
    scene.ask("Are you sure?", None, 1).await;
    scene.answers("```case-update\nnext-question: who runs the job?\n```");
    let said = scene.ask("What else?", None, 2).await;
    assert_eq!((said[0].text.as_str(), said[1].text.lines().count()), ("Noted.", 2));

    let shown_in_slack = scene.ask("/pmk show", None, 1).await.remove(0).text;
    assert!(shown_in_slack.contains("8 messages") && shown_in_slack.contains("• Hypothesis: the disk is full"));
    let closed = scene.ask("/pmk close", None, 1).await;
    assert!(closed[0].text.starts_with(":white_check_mark: Closed case 1: 8 messages, 2 hypotheses, 2 open"));
    scene.answers("Not any more.");
    scene.ask("Does it still hang?", None, 1).await;
    scene.await_events("turn.processed", 10).await;

    let requests = scene.anthropic.requests();
    let told: Vec<bool> = requests.iter().map(|asked| asked.said_now().contains("case-update")).collect();
    assert_eq!(told, [false, true, true, true, true, false]);
    assert!(requests[2].said_now().contains("Hypotheses so far:\n> the nightly job holds the lock"));
    assert_eq!(scene.home.events("case.updated").len(), 3);
    assert_eq!((scene.home.events("case.opened").len(), scene.home.events("case.closed").len()), (1, 1));
    let to = scene.home.path().join("case.md").display().to_string();
    let pages = [
        shown(&scene.home, &["case", "list"]),
        shown(&scene.home, &["case", "show", "1"]),
        shown(&scene.home, &["case", "export", "#1"]),
        shown(&scene.home, &["case", "export", "1", "--to", &to]),
        shown(&scene.home, &["case", "export", "1", "--to", &to]),
        shown(&scene.home, &["case", "show", "9"]),
        shown(&scene.home, &["--json", "case", "list"]),
        shown(&scene.home, &["--json", "case", "export", "1"]),
    ];
    insta::with_settings!({filters => TIMES.to_vec()}, { insta::assert_snapshot!(pages.join("\n")) });
    // Once, it became a file called `-`.
    let exported = |more: &[&str]| scene.home.run(&[&["case", "export", "1"], more].concat(), "").ok().stdout;
    assert_eq!(exported(&["--to", "-"]), exported(&[]));
    let audit = scene.home.run(&["audit"], "").ok().stdout;
    assert!(audit.contains("2 hypotheses and 2 questions in 3 answers"), "{audit}");
    scene.home.write("gateway.json", r#"{"version":1,"language":"zh-TW"}"#);
    let chinese = [&["case", "list"][..], &["case", "show", "1"], &["case", "export", "1"], &["case", "show", "9"]];
    let chinese: String = chinese.iter().map(|arguments| in_chinese(&scene.home, arguments)).collect();
    let audit = in_chinese(&scene.home, &["audit"]);
    let cases = audit.split("\n\n").find(|section| section.starts_with("案件")).expect("a section");
    let chinese = chinese + cases;
    insta::with_settings!({filters => TIMES.to_vec()}, { insta::assert_snapshot!("a_case_in_chinese", chinese) });
    scene.behaved();
}

/// Once, people were shown the block as the model had written it, and of two notes that differ in a sign the second was
/// lost.
#[tokio::test(flavor = "multi_thread")]
async fn notes_in_a_list_or_in_chinese_are_noted_and_signs_tell_them_apart() {
    let scene = scene(rules()).await;
    let gateway = scene.start().await;
    scene.ask("/pmk open Login hangs", None, 1).await;
    scene.answers("The client.\n\n```case-update\n- Hypothesis: C++ 的客戶端逾時\n- 假設：C# 的客戶端逾時\n```");
    let said = scene.ask(QUESTION, None, 2).await;
    let tracked = "pmk auto-tracked (case 1)\n• Hypothesis: C++ 的客戶端逾時\n• Hypothesis: C# 的客戶端逾時";
    assert_eq!((said[0].text.as_str(), said[1].text.clone()), ("The client.", format!(":pushpin: {tracked}")));
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, the question had no author as soon as somebody else wrote while it was being answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_keeps_its_author_when_somebody_else_steers_its_answer() {
    let scene = scene(rules()).await;
    let script = scene.home.write("mra.script", "wait more\nout It is in the nightly job.");
    let mra = json!({"command": stand_in("mra", &script)});
    let queue = json!({"mode": "steer", "debounceMs": 10});
    scene.home.write("gateway.json", json!({"version": 1, "language": "en", "mra": mra, "queue": queue}).to_string());
    let gateway = scene.start().await;
    scene.ask("/pmk open Login hangs", None, 1).await;
    scene.anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    scene.answers("In the nightly job.");
    scene.slack.mention(CHANNEL, "U1", QUESTION, None);
    until_async("the question", || (!scene.anthropic.requests().is_empty()).then_some(())).await;
    let more = scene.slack.mention(CHANNEL, "U2", "Only on Sundays.", None);
    assert!(scene.slack.await_ack(&more.event_id, PATIENCE).await.is_some());
    scene.home.write("more", "");
    until_async("both", || (scene.anthropic.requests().len() == 2).then_some(())).await;
    scene.await_events("turn.processed", 2).await;
    let said = scene.home.run(&["--json", "case", "export", "1"], "").ok().json()["said"].clone();
    let said: Vec<_> = said.as_array().expect("a list").iter().map(|said| (&said["text"], &said["user"])).collect();
    let [(question, author), (more, _), _] = said[..] else { panic!("{said:?}") };
    assert_eq!((question, author, more), (&json!(QUESTION), &json!("U1"), &json!("U2: Only on Sundays.")));
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Regression: nothing of it was kept with the case.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_whose_answer_is_stopped_belongs_to_the_case() {
    let scene = scene(rules()).await;
    let gateway = scene.start().await;
    scene.ask("/pmk open Login hangs", None, 1).await;
    scene.anthropic.hold();
    let asked = scene.slack.mention(CHANNEL, "U1", QUESTION, None);
    until_async("the question", || (!scene.anthropic.requests().is_empty()).then_some(())).await;
    scene.slack.react_to("U1", &asked, "octagonal_sign");
    scene.await_events("turn.stopped", 1).await;
    assert!(scene.slack.await_replies(CHANNEL, 2, PATIENCE).await);
    scene.anthropic.release();
    let said = scene.home.run(&["--json", "case", "export", "1"], "").ok().json()["said"].clone();
    let said: Vec<_> = said.as_array().expect("a list").iter().map(|said| (&said["text"], &said["user"])).collect();
    let stopped = json!(scene.slack.replies(CHANNEL)[1].text);
    assert_eq!(said, [(&json!(QUESTION), &json!("U1")), (&stopped, &Value::Null)]);
    assert!(gateway.terminate().success());
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_spells_out_is_shown_and_not_tracked() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    scene.ask("/pmk open Login", None, 1).await;
    scene.answers(FENCE);
    let said = scene.ask(&format!("End your answer with\n{FENCE}"), None, 1).await;
    assert!(said[0].text.contains("hypothesis: the nightly job holds the lock"), "{said:?}");
    scene.await_events("turn.processed", 2).await;
    assert_eq!(scene.home.events("directive.echoed")[0]["kind"], "case-update");
    assert!(scene.home.events("case.updated").is_empty());
    let case = scene.home.run(&["--json", "case", "show", "1"], "").ok().json();
    assert_eq!((&case["hypotheses"], &case["messages"]), (&json!([]), &json!(2)));
    scene.behaved();
}

/// Kills the gateway where the answer is there and the line after it hangs, and lets another one go on.
async fn killed_before_the_line(fault: Fault) {
    let scene = scene(rules_for_kills()).await;
    let gateway = scene.start().await;
    scene.ask("/pmk open Login", None, 1).await;
    scene.answers(&format!("The lock.\n\n{FENCE}"));
    // The placeholder goes through, and the answer takes its place.
    let posted = scene.slack.call_count("chat.postMessage");
    scene.slack.fault_after("chat.postMessage", 1, 1, fault);
    scene.slack.mention(CHANNEL, "U1", QUESTION, None);
    until_async("the line", || (scene.slack.call_count("chat.postMessage") == posted + 2).then_some(())).await;
    gateway.kill();
    assert!(scene.slack.await_sockets(0, PATIENCE).await);
    let _gateway = scene.start().await;
    scene.await_events("turn.processed", 2).await;
    let said: Vec<String> = scene.slack.replies(CHANNEL).into_iter().skip(1).map(|reply| reply.text).collect();
    assert_eq!(said, ["The lock.".to_owned(), format!(":pushpin: {TRACKED}")]);
    let case = scene.home.run(&["--json", "case", "show", "1"], "").ok().json();
    assert_eq!(case["messages"], 2);
    assert_eq!(
        (case["hypotheses"].as_array().map(Vec::len), case["questions"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
    assert_eq!(scene.anthropic.requests().len(), 1, "the model was asked again");
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_the_answer_and_its_line_loses_no_line() {
    killed_before_the_line(Fault::Stall).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_when_the_line_was_just_posted_doubles_none() {
    killed_before_the_line(Fault::Lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slash_commands_open_and_close_and_a_direct_message_has_no_cases() {
    let scene = scene(rules()).await;
    let _gateway = scene.start().await;
    let slash = async |channel: &str, text: &str| {
        let before = scene.slack.replies(channel).len();
        scene.slack.slash("U1", channel, text);
        assert!(scene.slack.await_replies(channel, before + 1, PATIENCE).await, "no answer to `{text}`");
        scene.slack.replies(channel).remove(before).text
    };
    assert!(slash(CHANNEL, "open  登入失敗").await.contains("Opened case 1."));
    assert!(slash(CHANNEL, "open").await.contains("/pmk open TITLE"));
    assert!(slash(CHANNEL, "cases").await.contains("1 (open, opened"));
    assert!(slash("C2", "cases").await.contains("has no cases"), "a channel's cases are its own");
    assert!(slash(&dm_channel("U1"), "open x").await.starts_with(":no_entry_sign:"));
    assert!(slash(CHANNEL, "close").await.contains("Closed case 1"));
    assert!(slash(CHANNEL, "show").await.starts_with(":warning: No case is open"));
    scene.behaved();
}

#[test]
fn cases_of_pmk_come_along_and_what_is_odd_of_them_is_told() {
    let (home, other) = (Home::new(), Home::new());
    let tree = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &str| {
        let path = tree.path().join("channels").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    };
    write("C1/messages.jsonl", "{\"role\":\"user\",\"content\":\"q\"}\n{\"role\":\"assistant\",\"content\":\"a\"}\n");
    let case = json!({"title": "Login hangs", "openedAt": "2026-05-07T07:39:55Z", "openedBy": "U1",
        "hypotheses": ["the lock", 7, []]});
    write("C1/meta.json", &json!({"activeCase": case}).to_string());
    write("C2/meta.json", r#"{"activeCase": "only a title"}"#);
    write("C3/meta.json", r#"{"activeCase": [1]}"#);
    write("C4/meta.json", "{");
    write("C5/meta.json", r#"{"activeCase": null}"#);
    let path = tree.path().display().to_string();
    let mut pages = shown(&home, &["sessions", "import", &path]);
    pages += &shown(&home, &["--json", "case", "show", "1"]);
    // Once more: the conversation is there, and so are the cases.
    pages += &shown(&home, &["sessions", "import", "--replace", &path]);
    pages += &shown(&home, &["case", "list"]);
    let full = tree.path().join("all.jsonl").display().to_string();
    pages += &shown(&home, &["sessions", "export", "--all", "--to", &full]);
    pages += &shown(&other, &["sessions", "import", &full]);
    pages += &shown(&other, &["case", "list"]);
    let pages = pages.replace(&path, "[tree]");
    insta::with_settings!({filters => TIMES.to_vec()}, { insta::assert_snapshot!(pages) });
}

#[test]
fn a_home_without_a_store_has_no_cases_and_stays_as_it_is() {
    let home = Home::cold();
    let listed = home.run(&["case", "list"], "").ok();
    assert_eq!((listed.stdout.as_str(), listed.stderr), ("", format!("no cases in `{}`\n", home.path().display())));
    assert!(home.run(&["case", "show", "1"], "").stderr.contains("there is no store"));
    assert_eq!(home.run(&["case", "show", "x"], "").status.code(), Some(2));
    assert_eq!(std::fs::read_dir(home.path()).expect("the home").count(), 0);
}
