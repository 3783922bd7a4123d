//! What is written in the thread of a question without a mention of the bot.

use std::time::Duration;

use super::*;
use crate::{presence::age, support::until};

/// What a contact or the asker writes, and nobody else, is taken in.
async fn passes_by(team: &Team, sent: &Sent) {
    let ack = team.slack.await_ack(&sent.event_id, PATIENCE).await;
    assert!(ack.is_some(), "{sent:?} was not acknowledged");
}

async fn passes_by_all(team: &Team, events: &[String]) {
    for event in events {
        assert!(team.slack.await_ack(event, PATIENCE).await.is_some(), "{event} was not acknowledged");
    }
}

/// How many messages the bot has written in the channel.
fn written(team: &Team) -> usize {
    team.slack.messages(CHANNEL).iter().filter(|message| message.by_bot).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contact_who_answered_in_the_thread_without_a_mention_was_not_heard() {
    let (team, gateway, asked) = waiting(&CHINESE).await;
    let thread = Some(asked.ts.as_str());
    passes_by(&team, &team.slack.write(CHANNEL, "U0BYSTANDER", "財務應該知道。", thread)).await;
    passes_by(&team, &team.slack.write(CHANNEL, ASKER, "謝謝大家。", thread)).await;
    passes_by(&team, &team.slack.write(CHANNEL, CONTACT, &format!("<@{OTHER_CONTACT}> 您知道嗎？"), thread)).await;
    let reply = team.slack.write(CHANNEL, CONTACT, CHINESE.reply, thread);
    let answer = team.passed_on(&asked).await;
    assert!(answer.text.ends_with(CHINESE.answer), "{}", answer.text);
    team.notice(&asked).await;
    assert!(team.atom().contains(&format!("## Answer\n\n{}\n", CHINESE.reply)), "{}", team.atom());
    // It comes again, and they go on talking.
    team.slack.redeliver(&reply.event_id);
    assert!(team.slack.await_attempts(&reply.event_id, 2, PATIENCE).await.is_some());
    passes_by(&team, &team.slack.write(CHANNEL, CONTACT, "不客氣。", thread)).await;
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.heard").len(), 1);
    assert_eq!(team.home.events("turn.processed").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_back_and_its_reply_need_no_mention_either_and_an_answer_may_name_the_asker() {
    let (team, gateway, asked) = waiting(&ENGLISH).await;
    let thread = Some(asked.ts.as_str());
    verdict(&team, "Which month?", "question");
    verdict(&team, "March, please", "reply");
    team.slack.write(CHANNEL, CONTACT, "Which month?", thread);
    let back = team.message("question back", |message| message.by_bot && message.text.contains("> Which month?")).await;
    assert!(in_thread(&back, &asked), "{back:?}");
    team.slack.write(CHANNEL, ASKER, &format!("<@{CONTACT}> March, please"), thread);
    team.message("reply", |message| message.by_bot && message.text.contains("March, please")).await;
    let curated = json!({"kind": "answer", "question": ENGLISH.forwarded, "summary": "s", "tags": []});
    team.anthropic.when(ARRIVED, Behaviour::answer(ENGLISH.answer));
    team.anthropic.when(CURATOR, Behaviour::answer(curated.to_string()));
    team.slack.write(CHANNEL, CONTACT, &format!("<@{ASKER}> {}", ENGLISH.reply), thread);
    team.passed_on(&asked).await;
    team.notice(&asked).await;
    assert!(team.atom().contains(ENGLISH.reply), "{}", team.atom());
    assert!(gateway.terminate().success());
    let heard = team.home.events("escalate.heard");
    let words: Vec<&str> = heard.iter().filter_map(|event| event["word"].as_str()).collect();
    assert_eq!(words, ["question", "reply", "answer"]);
}

/// With a mention it is answered as anything else.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_contact_says_to_nobody_in_particular_and_beside_the_question_is_left_alone() {
    let (team, gateway, asked) = waiting(&ENGLISH).await;
    let before = written(&team);
    team.anthropic.when("<reply>\nWhat a day", Behaviour::answer(r#"{"kind":"other"}"#));
    team.slack.write(CHANNEL, CONTACT, "What a day", Some(&asked.ts));
    team.home.await_events("escalate.heard", 1);
    passes_by(&team, &team.slack.write(CHANNEL, CONTACT, "verbose off", Some(&asked.ts))).await;
    assert_eq!(written(&team), before, "{:#?}", team.slack.messages(CHANNEL));
    then_the_answer_counts(&team, &asked).await;
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.heard").len(), 2);
}

/// What was edited stayed in the store, and was never answered even if it mentioned the bot by then.
#[tokio::test(flavor = "multi_thread")]
async fn of_what_contacts_say_to_each_other_nothing_is_kept_and_it_is_new_once_it_mentions_the_bot() {
    let (team, _gateway, asked) = waiting(&ENGLISH).await;
    team.anthropic.when("Where is lunch?", Behaviour::answer("Downstairs."));
    team.anthropic.when("<reply>\nWhere is lunch?", Behaviour::answer(r#"{"kind":"other"}"#));
    team.anthropic.when("<reply>\nWhen is lunch?", Behaviour::answer(r#"{"kind":"other"}"#));
    let aside = team.slack.write(CHANNEL, CONTACT, "When is lunch?", Some(&asked.ts));
    team.home.await_events("escalate.heard", 1);
    let db = rusqlite::Connection::open(team.home.path().join("gateway/pmk-host.db")).expect("the store");
    let kept = || -> i64 {
        let sql = "SELECT (SELECT count(*) FROM inbox WHERE message IS NOT NULL OR edited IS NOT NULL)
            + (SELECT count(*) FROM turn WHERE reading IS NOT NULL)";
        db.query_row(sql, [], |row| row.get(0)).expect("a count")
    };
    until("nothing is kept of it", || (kept() == 0).then_some(()));
    let typo = team.slack.edit(&aside, "When is lunch today?");
    passes_by_all(&team, &typo).await;
    assert_eq!(kept(), 0);
    team.slack.edit(&aside, &format!("<@{BOT_USER}> Where is lunch?"));
    let reply = team.slack.await_reply(&aside, PATIENCE).await.expect("a reply");
    assert_eq!(reply.text, "Downstairs.");
    then_the_answer_counts(&team, &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_contact_had_said_before_the_question_is_no_answer_to_it() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let began = team.slack.write(CHANNEL, ASKER, "Budgets again.", None);
    let before = team.slack.write(CHANNEL, CONTACT, ENGLISH.reply, Some(&began.ts));
    passes_by(&team, &before).await;
    team.slack.mention(CHANNEL, ASKER, ENGLISH.question, Some(&began.ts));
    team.message("question", |message| message.by_bot && message.text.contains(ENGLISH.please_reply)).await;
    team.slack.redeliver(&before.event_id);
    assert!(team.slack.await_attempts(&before.event_id, 2, PATIENCE).await.is_some());
    team.slack.write(CHANNEL, CONTACT, ENGLISH.reply, Some(&began.ts));
    team.passed_on(&began).await;
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.heard").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_contact_answered_in_a_long_outage_is_found_although_others_have_written_since() {
    let (team, gateway, asked) = waiting(&ENGLISH).await;
    gateway.kill();
    age(&team.home, Duration::from_secs(600));
    let thread = Some(asked.ts.as_str());
    for (user, text) in [(CONTACT, ENGLISH.reply), (ASKER, "Thank you!"), ("U0BYSTANDER", "Good to know.")] {
        team.slack.talk(CHANNEL, user, text, thread);
    }
    let gateway = team.connect().await;
    team.passed_on(&asked).await;
    team.notice(&asked).await;
    assert!(team.atom().contains(ENGLISH.reply), "{}", team.atom());
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("gateway.caught-up")[0]["messages"], 1);
    assert_eq!(team.home.events("escalate.heard").len(), 1);
}
