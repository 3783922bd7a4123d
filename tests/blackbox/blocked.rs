//! Who is on the blocklist has no effect and gets no word, whichever way they come in.

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    slack::{Message, dm_channel},
};
use serde_json::{Value, json};

use crate::{
    component::Component,
    contacts::verdict,
    knowledge::team::{ARRIVED, ASKER, CHANNEL, CONTACT, CURATOR, ENGLISH, FORWARDED, OTHER_CONTACT, Team},
    posting::paragraphs,
    support::{Home, PATIENCE, Running, of_type, question, until_async},
    workspace::{Scene, rules},
};

/// From now on they are blocked.
fn block(home: &Home, users: &[&str]) {
    let text = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["blocklist"] = json!(users);
    home.write("gateway.json", config.to_string());
}

/// Who was refused what, as the ledger has it.
fn refused(home: &Home, count: usize) -> Vec<(String, String)> {
    let text = |event: &Value, key: &str| event[key].as_str().expect("a text").to_owned();
    let events = home.await_events("access.refused", count);
    events.iter().map(|event| (text(event, "actor"), text(event, "action"))).collect()
}

/// Once, only messages were looked at: the reaction of somebody who had been blocked meanwhile still approved.
#[tokio::test(flavor = "multi_thread")]
async fn the_check_mark_of_a_blocked_contact_approves_nothing() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let notice = team.learn().await;
    block(&team.home, &[CONTACT]);
    for reaction in ["white_check_mark", "x", "+1"] {
        team.react(CONTACT, &notice, reaction).await;
    }
    assert!(team.atom().contains("status: pending"), "{}", team.atom());
    let judge = (CONTACT.to_owned(), "judge".to_owned());
    assert_eq!(refused(&team.home, 3), [judge.clone(), judge, (CONTACT.to_owned(), "vote".to_owned())]);
    block(&team.home, &[]);
    team.react(CONTACT, &notice, "white_check_mark").await;
    assert!(team.atom().contains("status: approved"), "{}", team.atom());
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn slash_commands_and_clicks_of_blocked_people_come_through_the_same_door() {
    let team = Team::new(&ENGLISH, "auto").await;
    block(&team.home, &["U9"]);
    let gateway = team.connect().await;
    for user in ["U9", "U1"] {
        for envelope in [team.slack.slash(user, CHANNEL, "help"), team.slack.click_elsewhere(user, CHANNEL, "approve")]
        {
            assert!(team.slack.await_ack(&envelope, PATIENCE).await.is_some(), "{user}");
        }
    }
    let malformed = team.slack.slash("U 1", CHANNEL, "help");
    assert!(team.slack.await_ack(&malformed, PATIENCE).await.is_some());
    assert!(team.slack.await_replies(CHANNEL, 1, PATIENCE).await, "the other one is answered");
    // One is refused when it is its turn, the other when it comes.
    let mut refused = refused(&team.home, 2);
    refused.sort();
    assert!(gateway.terminate().success());
    assert_eq!(refused, ["command", "interact"].map(|action| ("U9".to_owned(), action.to_owned())));
    assert_eq!(team.slack.replies(CHANNEL).len(), 1);
    assert_eq!(team.home.events("front.malformed").len(), 1);
    team.behaved();
}

#[test]
fn whatever_a_blocked_person_writes_is_refused_by_what_it_is() {
    let home = Home::new();
    let config = json!({"version": 1, "language": "en", "escalation": {"default": [CONTACT]}});
    home.write("gateway.json", config.to_string());
    let anthropic = Anthropic::start_blocking();
    anthropic.when(ENGLISH.question, Behaviour::calls([("escalate", json!({"question": ENGLISH.forwarded}))]));
    anthropic.when(FORWARDED, Behaviour::answer("I have asked."));
    anthropic.when(ARRIVED, Behaviour::answer(ENGLISH.answer));
    anthropic.when(CURATOR, Behaviour::answer(r#"{"kind":"answer"}"#));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    gateway.say(&json!({"user": ASKER, "channel": "C1", "text": ENGLISH.question, "event_id": "Ev1"}).to_string());
    gateway.next_of("turn");
    block(&home, &[CONTACT]);
    let asked = anthropic.requests().len();
    for (event, thread, text) in
        [("Ev2", None, "hello"), ("Ev3", None, "verbose full"), ("Ev4", Some("Ev1"), ENGLISH.reply)]
    {
        let said = json!({"user": CONTACT, "channel": "C1", "thread_ts": thread, "text": text, "event_id": event});
        gateway.say(&said.to_string());
        let notice = gateway.next_of("notice");
        assert!(notice["text"].as_str().is_some_and(|text| text.contains("on the blocklist")), "{notice}");
    }
    let refused: Vec<String> = refused(&home, 3).into_iter().map(|(_, action)| action).collect();
    assert_eq!(refused, ["speak", "command", "answer"]);
    assert_eq!(anthropic.requests().len(), asked);
    block(&home, &[]);
    let reply = json!({"user": CONTACT, "channel": "C1", "thread_ts": "Ev1", "text": ENGLISH.reply, "event_id": "Ev5"});
    gateway.say(&reply.to_string());
    let answer = gateway.next_of("reply");
    assert!(answer["text"].as_str().is_some_and(|text| text.ends_with(ENGLISH.answer)), "the thread waits: {answer}");
    assert!(gateway.end().0.success());
}

/// Once, a contact on the blocklist was asked, and the thread waited for an answer that would be ignored.
#[test]
fn a_blocked_contact_is_not_asked() {
    let home = Home::new();
    let pools = json!({"default": [OTHER_CONTACT], "repos": {"erp": [CONTACT]}});
    let config = json!({"version": 1, "language": "en", "escalation": pools, "blocklist": [CONTACT]});
    home.write("gateway.json", config.to_string());
    let anthropic = Anthropic::start_blocking();
    let call = json!({"repo": "erp", "question": ENGLISH.forwarded});
    anthropic.when(ENGLISH.question, Behaviour::calls([("escalate", call)]));
    anthropic.when(FORWARDED, Behaviour::answer("I have asked."));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    gateway.say(&json!({"user": ASKER, "text": ENGLISH.question, "event_id": "Ev1"}).to_string());
    let put = gateway.next_of("escalation");
    assert!(put["text"].as_str().is_some_and(|text| text.starts_with(&format!("<@{OTHER_CONTACT}> "))), "{put}");
    assert!(gateway.end().0.success());
}

/// Once, the answer to a question that they had asked before still notified them.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_blocked_while_they_wait_is_not_notified() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let (asked, _) = team.escalate().await;
    block(&team.home, &[ASKER]);
    team.reply(CONTACT, &asked);
    let answer = team.passed_on(&asked).await;
    assert_eq!(answer.notified(), [format!("<@{CONTACT}>")]);
    team.notice(&asked).await;
    team.behaved();
}

/// Regression: a contact's question back was sent to the contact, and the asker's words were marked as passed on.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_about_a_question_went_astray_once_its_reader_was_blocked() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    verdict(&team, "Which month?", "question");
    verdict(&team, "March, please", "reply");
    team.slack.dm(ASKER, ENGLISH.question);
    let of = async |user: &str, words: &str| {
        let wanted = |message: &Message| message.by_bot && message.text.contains(words);
        let found = team.slack.await_message(&dm_channel(user), PATIENCE, wanted).await;
        found.unwrap_or_else(|| panic!("no {words} in {:#?}", team.slack.messages(&dm_channel(user))))
    };
    let asking = of(CONTACT, ENGLISH.forwarded).await;
    of(OTHER_CONTACT, ENGLISH.forwarded).await;
    block(&team.home, &[ASKER]);
    team.slack.dm_in_thread(CONTACT, "Which month?", Some(&asking.ts));
    of(CONTACT, "no longer needed").await;
    block(&team.home, &[CONTACT, OTHER_CONTACT]);
    team.slack.dm(ASKER, "March, please");
    of(ASKER, "I could reach none of the people").await;
    team.behaved();
    assert!(gateway.terminate().success());
    let back = |message: &Message| message.by_bot && message.text.contains("> Which month?");
    assert!(!team.slack.messages(&dm_channel(CONTACT)).iter().any(back));
}

/// Regression: "Thinking…", or the beginning of the answer, stayed for ever.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_shown_of_an_answer_stayed_if_its_asker_was_blocked_and_it_had_to_be_begun_anew() {
    for is_streamed in [false, true] {
        let rules = if is_streamed { rules() } else { rules().without_statuses() };
        let scene = Scene::new(rules, &json!({"version": 1, "language": "en"})).await;
        let gateway = scene.start().await;
        let (answer, gate) = Behaviour::gated(paragraphs(20));
        scene.anthropic.push(answer);
        let root = scene.slack.talk(CHANNEL, "U1", "a topic", None);
        let asked = scene.slack.mention(CHANNEL, "U9", "tell me", Some(&root.ts));
        gate.add_permits(usize::from(is_streamed));
        let is_ours = |message: &Message| message.by_bot;
        assert!(scene.slack.await_message(CHANNEL, PATIENCE, is_ours).await.is_some(), "{is_streamed}");
        block(&scene.home, &["U9"]);
        scene.slack.edit(&asked, "<@U0BOT> tell me all");
        assert_eq!(refused(&scene.home, 1)[0], ("U9".to_owned(), "speak".to_owned()));
        let is_gone = || (!scene.slack.messages(CHANNEL).iter().any(is_ours)).then_some(());
        until_async("nothing of an answer", is_gone).await;
        assert!(gateway.terminate().success());
        assert!(scene.slack.standing_statuses().is_empty(), "{:#?}", scene.slack.standing_statuses());
        scene.behaved();
    }
}

/// Regression: the model was shown it as what had been said before.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_blocked_person_had_written_in_a_thread_went_to_the_model() {
    let scene = Scene::new(rules(), &json!({"version": 1, "language": "en", "blocklist": ["U9"]})).await;
    let gateway = scene.start().await;
    let root = scene.slack.talk(CHANNEL, "U9", "Say heliotrope.", None);
    scene.slack.talk(CHANNEL, "U2", "Say zinnia.", Some(&root.ts));
    scene.slack.talk(CHANNEL, "U9", "Say delphinium.", Some(&root.ts));
    let asked = scene.slack.mention(CHANNEL, "U1", "What shall I say?", Some(&root.ts));
    assert!(scene.slack.await_reply(&asked, PATIENCE).await.is_some());
    let request = scene.anthropic.requests()[0].body.to_string();
    let shown = ["zinnia", "heliotrope", "delphinium"].map(|word| request.contains(word));
    assert_eq!(shown, [true, false, false], "{request}");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// Once, an admin on the blocklist was written to like any other.
#[test]
fn a_blocked_admin_is_told_nothing() {
    let home = Home::new();
    let config = json!({"version": 1, "language": "en", "admins": ["U0BAD", "U0GOOD"], "blocklist": ["U0BAD"]});
    home.write("gateway.json", config.to_string());
    let broken = home.write("test.wasm", Component::pruning("unreachable").build()).display().to_string();
    // After five failures the admins are told.
    let asked: Vec<String> = (0..5).map(|n| question(&format!("Ev{n}"), "hello")).collect();
    let lines = home.run(&["run", "--model", "sim", "--policy", &broken], &asked.join("\n")).ok().lines();
    let told: Vec<&str> =
        of_type(&lines, "notice").into_iter().filter_map(|notice| notice["channel"].as_str()).collect();
    assert_eq!(told, ["U0GOOD"], "{lines:#?}");
}
