//! What goes wrong along the way: kills, models that fail, a Slack that stalls, commands at once.

use std::{path::PathBuf, time::Duration};

use pmk_stand_ins::{
    anthropic::Behaviour,
    slack::{Call, Fault, Message},
};
use serde_json::json;

use super::team::{ARRIVED, ASKER, CHANNEL, CHINESE, CONTACT, CURATOR, ENGLISH, FORWARDED, Team, in_thread};
use crate::{
    moments::Moments,
    support::{Home, PATIENCE, until_async},
    workspace::rules_for_kills,
};

const ELSEWHERE: &str = "C0ELSEWHERE";

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_acknowledged_while_slack_takes_no_updates() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let notice = team.learn().await;
    team.slack.fault("chat.update", Fault::Stall);
    let event = team.slack.react(CONTACT, &notice, "white_check_mark");
    assert!(team.slack.await_ack(&event, PATIENCE).await.is_some());
    assert_eq!(team.slack.attempts(&event).len(), 1, "it was not acknowledged in time");
    assert!(team.atom().contains("status: approved"), "{}", team.atom());
}

/// Once, a verdict anywhere waited for whatever was being posted to ask for another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_counts_while_the_notice_of_another_channel_cannot_be_posted() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let notice = team.learn().await;
    let asked = team.slack.mention(ELSEWHERE, ASKER, ENGLISH.question, None);
    let is_in_thread = |message: &Message| message.by_bot && in_thread(message, &asked);
    let put = |message: &Message| is_in_thread(message) && message.text.contains(ENGLISH.please_reply);
    assert!(team.slack.await_message(ELSEWHERE, PATIENCE, put).await.is_some(), "the contacts are asked");
    team.home.await_events("turn.processed", 3);
    team.slack.fault_after("chat.postMessage", 1, usize::MAX, Fault::Stall);
    team.slack.mention(ELSEWHERE, CONTACT, ENGLISH.reply, Some(&asked.ts));
    let asks =
        |call: &Call| call.body["channel"] == ELSEWHERE && call.body["text"].to_string().contains(":inbox_tray:");
    let is_stuck = || team.slack.calls("chat.postMessage").iter().any(asks).then_some(());
    until_async("the notice in the other channel", is_stuck).await;
    team.react(CONTACT, &notice, "white_check_mark").await;
    let approved = |(_, atom): &&(PathBuf, String)| atom.contains("status: approved");
    assert_eq!(team.atoms().iter().filter(approved).count(), 1);
}

/// Once, an atom that was rejected while its notice could not be posted was saved again with the next attempt.
#[tokio::test(flavor = "multi_thread")]
async fn an_atom_that_was_rejected_before_its_notice_was_posted_came_back() {
    let team = Team::under(rules_for_kills(), &ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (asked, _) = team.escalate().await;
    team.home.await_events("turn.processed", 1);
    // What tells the asker goes out, and the notice does not.
    team.slack.fault_after("chat.postMessage", 1, usize::MAX, Fault::Status(503));
    team.reply(CONTACT, &asked);
    team.passed_on(&asked).await;
    let pending = || team.home.run(&["--json", "atoms", "list", "--pending"], "").ok().json();
    let id = until_async("the atom", || pending()[0]["id"].as_str().map(str::to_owned)).await;
    let tried = || team.slack.call_count("chat.postMessage");
    let before = tried();
    until_async("another attempt", || (tried() > before).then_some(())).await;
    team.home.run(&["atoms", "reject", &id], "").ok();
    let before = tried();
    until_async("an attempt since", || (tried() > before).then_some(())).await;
    assert_eq!(team.atoms(), []);
    gateway.kill();
    let gateway = team.connect().await;
    team.slack.heal("chat.postMessage");
    team.message("rejection", |message| in_thread(message, &asked) && message.text.contains(ENGLISH.rejected)).await;
    team.home.await_events("turn.processed", 2);
    assert_eq!(team.atoms(), []);
    assert!(gateway.terminate().success());
    team.behaved();
}

/// Once, whoever decided was told that it had been decided, or nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_on_an_atom_whose_file_was_broken_by_hand_was_not_awaited() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let notice = team.learn().await;
    // By then the file names the notice.
    team.home.await_events("turn.processed", 2);
    let [(path, text)] = team.atoms().try_into().expect("one atom");
    std::fs::write(&path, text.replace("question: ", "question: [")).expect("somebody breaks it");
    let click = team.slack.click(CONTACT, &notice, "pmk_word_yes", "yes");
    assert!(team.slack.await_ack(&click, PATIENCE).await.is_some());
    assert!(team.slack.await_whispers(CONTACT, 1, PATIENCE).await, "a press");
    team.react(CONTACT, &notice, "x").await;
    assert!(team.slack.await_whispers(CONTACT, 2, PATIENCE).await, "a reaction");
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let home = team.home.path().display().to_string();
    for told in team.slack.whispers(CONTACT) {
        assert!(told.text.contains("cannot be read") && told.text.contains("front matter is not valid"), "{told:?}");
        assert!(told.text.contains(&format!("knowledge/erp/{name}")) && !told.text.contains(&home), "{told:?}");
    }
    let now = team.message("notice", |message| message.ts == notice.ts).await;
    assert_eq!((now.text.as_str(), now.buttons()), (notice.text.as_str(), notice.buttons()), "it is still open");
    std::fs::write(&path, text).expect("somebody mends it");
    let click = team.slack.click(CONTACT, &notice, "pmk_word_yes", "yes");
    assert!(team.slack.await_ack(&click, PATIENCE).await.is_some());
    team.message("approval", |message| message.ts == notice.ts && message.text.contains(ENGLISH.approved)).await;
    assert!(team.atom().contains("status: approved"), "{}", team.atom());
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_the_steps_loses_nothing_and_doubles_no_atom() {
    let team = Team::under(rules_for_kills(), &CHINESE, "auto").await;
    let mut moments = Moments::new();
    let mut gateway = team.connect().await;
    for round in 0..6 {
        // The kills fall into different steps, of the question and of the answer.
        let asked = team.slack.mention(CHANNEL, ASKER, CHINESE.question, None);
        moments.pass(Duration::from_millis(70)).await;
        gateway.kill();
        gateway = team.connect().await;
        let put = |message: &Message| in_thread(message, &asked) && message.text.contains(CHINESE.please_reply);
        team.message("question to the contacts", put).await;
        team.reply(CONTACT, &asked);
        moments.pass(Duration::from_millis(90)).await;
        gateway.kill();
        gateway = team.connect().await;
        team.passed_on(&asked).await;
        let notice = team.notice(&asked).await;
        assert_eq!(team.atoms().len(), round + 1);
        team.react(CONTACT, &notice, "white_check_mark").await;
        let approved = |message: &Message| message.ts == notice.ts && message.text.contains(CHINESE.approved);
        team.message("approval", approved).await;
    }
    assert!(team.atoms().iter().all(|(_, atom)| atom.contains("status: approved")));
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_counts_that_comes_before_a_start_knows_its_notice_for_posted() {
    let team = Team::under(rules_for_kills(), &ENGLISH, "auto").await;
    let mut gateway = team.connect().await;
    let (asked, _) = team.escalate().await;
    // What tells the asker has gone out, and the notice, whose answer never comes.
    team.slack.fault_after("chat.postMessage", 1, usize::MAX, Fault::Lost);
    team.reply(CONTACT, &asked);
    let notice = team.notice(&asked).await;
    gateway.kill();
    team.slack.heal("chat.postMessage");
    // The start cannot look for it at once.
    team.slack.fault("conversations.replies", Fault::Status(503));
    gateway = team.connect().await;
    let event = team.slack.react(CONTACT, &notice, "white_check_mark");
    assert!(team.slack.await_attempts(&event, 1, PATIENCE).await.is_some());
    let looked = || team.slack.call_count("conversations.replies");
    let before = looked();
    until_async("another look in vain", || (looked() > before).then_some(())).await;
    assert!(team.slack.acks().iter().all(|ack| ack.event_id != event), "nobody knows what it is about");
    team.slack.heal("conversations.replies");
    assert!(team.slack.await_ack(&event, PATIENCE).await.is_some());
    let approved = |message: &Message| message.ts == notice.ts && message.text.contains(ENGLISH.approved);
    team.message("approval", approved).await;
    drop(gateway);
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_curator_says_the_reply_is_kept_once_it_is_known_to_be_one() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let good = json!({"kind": "answer", "question": ENGLISH.forwarded, "summary": ENGLISH.summary, "tags": vec!["Budget"; 20]});
    let wrong =
        json!({"kind": "answer", "question": ENGLISH.forwarded, "summary": [ENGLISH.summary], "tags": "budget"});
    for (curated, is_read, is_good) in [
        (Behaviour::answer(format!("Here you are:\n```json\n{good}\n```")), true, true),
        (Behaviour::answer("I would rather write a poem."), false, false),
        (Behaviour::answer(wrong.to_string()), true, false),
        (Behaviour::stopping(good.to_string(), "max_tokens"), false, false),
        (Behaviour::error(400, "invalid_request_error", "no"), false, false),
    ] {
        team.anthropic.when(CURATOR, curated.clone());
        let (asked, _) = team.escalate().await;
        team.reply(CONTACT, &asked);
        if !is_read {
            let asks = |message: &Message| in_thread(message, &asked) && message.text.starts_with(":grey_question:");
            let shown = team.message("question whether that is the answer", asks).await;
            team.react(CONTACT, &shown, "white_check_mark").await;
        }
        team.passed_on(&asked).await;
        let notice = team.notice(&asked).await;
        let atom = team.atom();
        assert!(atom.contains(&format!("## Answer\n\n{}\n", ENGLISH.reply)), "{curated:?}: {atom}");
        assert_eq!(atom.contains(ENGLISH.summary), is_good, "{curated:?}: {atom}");
        team.react(CONTACT, &notice, "x").await;
        assert_eq!(team.atoms(), []);
    }
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_the_model_cannot_write_reaches_the_asker_word_for_word() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    team.anthropic.when(ARRIVED, Behaviour::error(400, "invalid_request_error", "messages: odd"));
    let (asked, _) = team.escalate().await;
    team.reply(CONTACT, &asked);
    let answer = team.passed_on(&asked).await;
    assert!(answer.text.ends_with(ENGLISH.reply), "{}", answer.text);
    team.notice(&asked).await;
    assert_eq!(team.atoms().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_has_nothing_to_say_does_not_keep_the_answer_back() {
    for (tools, empty) in [
        ("fenced", format!("```escalate\nquestion: {}\n```", ENGLISH.similar)),
        ("fenced", "```mra-ask\nrepo: erp\n```".into()),
        ("auto", " ".into()),
    ] {
        let team = Team::new(&ENGLISH, tools).await;
        let _gateway = team.connect().await;
        team.anthropic.when(ARRIVED, Behaviour::answer(&empty));
        let (asked, _) = team.escalate().await;
        team.reply(CONTACT, &asked);
        let answer = team.passed_on(&asked).await;
        assert!(answer.text.ends_with(ENGLISH.reply), "{empty}: {}", answer.text);
        team.notice(&asked).await;
        team.behaved();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_goes_to_the_contacts_even_if_the_model_then_fails() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    team.anthropic.when(FORWARDED, Behaviour::error(400, "invalid_request_error", "messages: odd"));
    let (asked, _) = team.escalate().await;
    let told = team.slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    assert!(told.text.starts_with(":x: "), "{}", told.text);
    team.reply(CONTACT, &asked);
    assert!(team.passed_on(&asked).await.text.ends_with(ENGLISH.answer));
}

#[test]
fn processes_that_promote_one_atom_do_no_harm() {
    let home = Home::new();
    let folder = home.path().join("knowledge/erp");
    std::fs::create_dir_all(&folder).expect("a folder");
    let front = "id: a\ncreatedAt: 1\nscope: erp\nquestion: q\ntags: [t]\nsource:\n  threadKey: C1:1.1\n  \
                 contributorUserId: U0IT\nstatus: pending\nexpiresAt: 2\n";
    std::fs::write(folder.join("a.md"), format!("---\n{front}---\n\n# q\n\n## Answer\n\nthe answer\n"))
        .expect("an atom");
    let listed = std::thread::scope(|scope| {
        let list = || home.run(&["--json", "atoms", "list"], "").ok().json();
        let running: Vec<_> = (0..6).map(|_| scope.spawn(list)).collect();
        running.into_iter().map(|list| list.join().expect("it lists")).collect::<Vec<_>>()
    });
    assert!(listed.iter().all(|atoms| atoms[0]["status"] == "approved"), "{listed:?}");
    let atom = std::fs::read_to_string(folder.join("a.md")).expect("the atom");
    assert!(atom.contains("status: approved") && atom.contains("the answer"), "{atom}");
    assert!(!atom.contains("expiresAt"), "{atom}");
}
