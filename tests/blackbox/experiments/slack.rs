//! A bad arm over Slack's protocol: it sends more than the model takes, and the model does not say how much that is.

use pmk_stand_ins::{
    anthropic::{self, Anthropic, Behaviour},
    postgres,
    slack::{Slack, dm_channel},
};
use serde_json::{Value, json};

use super::{failing, users, write};
use crate::{
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, command, rules},
};

/// Everybody says something long, and gets an answer; how many there are by then. The model answers once it has heard
/// everybody, so that nobody is spared by what the gateway learns from another's refusal.
async fn round(slack: &Slack, anthropic: &Anthropic, everybody: &[String], number: usize) {
    anthropic.hold();
    let heard = anthropic.requests().len() + everybody.len();
    for user in everybody {
        slack.dm(user, &format!("Fact {number} of {user}: {}", "filler ".repeat(400)));
    }
    until_async("a request of everybody", || (anthropic.requests().len() >= heard).then_some(())).await;
    anthropic.release();
    for user in everybody {
        let channel = dm_channel(user);
        let answered = slack.await_replies(&channel, number, PATIENCE).await;
        assert!(answered, "{user} is left without an answer: {:#?}", slack.messages(&channel));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_arm_that_overflows_is_stopped_its_conversations_moved_and_nobody_left_without_an_answer() {
    let slack = Slack::start(rules().without_statuses().unlimited()).await;
    let anthropic = Anthropic::start().await;
    anthropic.set_window(6_000);
    anthropic.name_no_numbers();
    let home = Home::new();
    let small = json!({"settings": {"standard": {"max-session-tokens": 1_500}}});
    let large = json!({"settings": {"standard": {"max-session-tokens": 0}}});
    write(&home, "room", &json!([{"name": "small", "policy": small}, {"name": "large", "policy": large}]));
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);

    let everybody = users(30);
    let mut rounds = 0;
    while home.events("experiment.arm-stopped").is_empty() {
        rounds += 1;
        assert!(rounds < 12, "the guard rail does not act: {:#?}", home.events("context.exceeded"));
        round(&slack, &anthropic, &everybody, rounds).await;
    }
    let stopped = &home.await_events("experiment.arm-stopped", 1)[0];
    assert_eq!((&stopped["stopped"], &stopped["worse"]), (&json!("large"), &json!("overflows")), "{stopped}");
    let drawn: Vec<Value> = home.events("turn.processed").into_iter().filter(|it| it["arm"] == "large").collect();
    let mut sessions: Vec<&str> = drawn.iter().filter_map(|event| event["session"].as_str()).collect();
    sessions.sort_unstable();
    sessions.dedup();
    assert_eq!(stopped["conversationsMoved"], sessions.len());
    let told = |text: &str| text.contains("`room`") && text.contains("`large`");
    let admin = slack.await_message(&dm_channel("U0ADMIN"), PATIENCE, |message| told(&message.text)).await;
    assert!(admin.is_some(), "the admins know");

    // Everybody goes on with the control, after a kill, too.
    let before = rounds * everybody.len();
    home.await_events("turn.processed", before);
    round(&slack, &anthropic, &everybody, rounds + 1).await;
    gateway.kill();
    assert!(slack.await_sockets(0, PATIENCE).await, "nothing is sent to the dead");
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    round(&slack, &anthropic, &everybody, rounds + 2).await;
    let since = &home.await_events("turn.processed", before + everybody.len())[before..];
    assert!(since.iter().all(|event| event["arm"] == "small"), "{since:#?}");

    for user in &everybody {
        let replies = slack.replies(&dm_channel(user));
        assert_eq!(replies.len(), rounds + 2, "{user}: {replies:#?}");
        assert!(replies.iter().all(|reply| !reply.text.starts_with(":x:")), "{replies:#?}");
        assert!(slack.placeholders(&dm_channel(user)).is_empty(), "{user} still waits");
    }
    assert_eq!(slack.given_up(), Vec::<String>::new());
    assert_eq!(slack.violations(), Vec::<String>::new());
    assert!(gateway.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn thumbs_and_questions_asked_again_are_counted_for_the_arm() {
    let slack = Slack::start(rules().unlimited()).await;
    let home = Home::new();
    write(&home, "thumbs", &json!([{"name": "a"}, {"name": "b", "weight": 0}]));
    let gateway = Gateway::start(&home, &slack, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    let asked = slack.dm("U1", "Where is the advertising budget of this month divided?");
    let answer = slack.await_reply(&asked, PATIENCE).await.expect("an answer");
    // Nobody is so quick that the answer is not stored as delivered.
    home.await_events("turn.processed", 1);
    for (user, reaction) in [("U1", "+1"), ("U1", "thumbsup"), ("U1", "eyes"), ("U2", "-1")] {
        let event = slack.react(user, &answer, reaction);
        assert!(slack.await_ack(&event, PATIENCE).await.is_some());
    }
    slack.dm("U1", "where exactly is the advertising budget of this month divided?");
    assert!(slack.await_replies(&asked.channel, 2, PATIENCE).await);
    assert!(gateway.terminate().success());
    let reactions = home.events("signal.reaction");
    // The same thumb by another name is the same thumb, and nobody else is in a direct message.
    let [like] = &reactions[..] else { panic!("{reactions:#?}") };
    assert_eq!((&like["likes"], &like["actor"], &like["arm"]), (&json!(true), &json!("U1"), &json!("a")), "{like}");
    let again = &home.events("signal.reasked")[0];
    assert_eq!((&again["arm"], &again["session"]), (&json!("a"), &json!("slack:dm:U1")), "{again}");
    assert!(!again.to_string().contains("budget"), "nothing of the text: {again}");
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    let arm = &status["arms"][0];
    assert_eq!((&arm["likes"], &arm["dislikes"], &arm["reasked"]), (&json!(1), &json!(0), &json!(1)), "{status:#}");
}

/// Once, it was in no arm: its failure, its tokens and the time that people had waited were in no figure, and the
/// slower arm looked the better for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_stopped_or_deleted_was_in_no_arm() {
    let slack = Slack::start(rules().unlimited()).await;
    let anthropic = Anthropic::start().await;
    let home = Home::new();
    let looks = home.path().join("looks");
    let script = format!("touch {}; sleep 1000", looks.display());
    let arms = json!([{"name": "a", "weight": 0}, {"name": "bad", "policy": {"files": [failing(&home)]}}]);
    let experiment = json!({"name": "off", "start": "2026-01-01T00:00:00Z", "control": "a", "arms": arms});
    let config = json!({"version": 1, "mra": {"command": ["sh", "-c", script]}, "experiment": experiment});
    home.write("gateway.json", config.to_string());
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    home.await_events("experiment.on", 1);
    for user in ["U1", "U2"] {
        anthropic.push(Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "when?"}))]));
        let asked = slack.dm(user, "When is the launch?");
        until_async("a look", || std::fs::remove_file(&looks).ok()).await;
        if user == "U1" {
            slack.dm(user, "stop");
            assert!(slack.await_reply(&asked, PATIENCE).await.is_some());
        } else {
            assert!(slack.take_back(&asked).is_some());
            home.await_events("message.deleted", 1);
        }
    }
    let spent = home.await_events("token.usage", 2);
    let failed = home.await_events("policy.failed", 2);
    assert!(spent.iter().chain(&failed).all(|event| event["arm"] == "bad"), "{spent:#?} {failed:#?}");
    assert!(gateway.terminate().success());
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    let bad = &status["arms"][1];
    assert_eq!((&bad["turns"], &bad["failed"], &bad["called_off"]), (&json!(2), &json!(2), &json!(2)), "{bad:#}");
    assert!(bad["tokens_in"].as_u64() > Some(0) && bad["latency_ms"].is_null(), "nobody was answered: {bad:#}");
}

/// Once, only a question that had been answered could be asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_asked_again_after_it_was_stopped_was_not_counted() {
    let slack = Slack::start(rules().unlimited()).await;
    let (anthropic, home) = (Anthropic::start().await, Home::new());
    write(&home, "again", &json!([{"name": "a"}, {"name": "b", "weight": 0}]));
    let gateway = Gateway::asking(&home, &slack, &anthropic, &[]);
    assert!(slack.await_connected(PATIENCE).await);
    home.await_events("experiment.on", 1);
    anthropic.hold();
    let asked = slack.dm("U1", "Where is the advertising budget of this month divided?");
    until_async("a request", || (anthropic.requests().len() == 1).then_some(())).await;
    slack.dm("U1", "stop");
    assert!(slack.await_reply(&asked, PATIENCE).await.is_some());
    anthropic.release();
    let again = slack.dm("U1", "where exactly is the advertising budget of this month divided?");
    assert!(slack.await_reply(&again, PATIENCE).await.is_some());
    assert_eq!(home.await_events("signal.reasked", 1)[0]["arm"], "a");
    assert!(gateway.terminate().success());
    let arm = &home.run(&["--json", "experiment", "status"], "").ok().json()["arms"][0];
    assert_eq!((&arm["turns"], &arm["called_off"], &arm["reasked"]), (&json!(2), &json!(1), &json!(1)), "{arm:#}");
}

/// The disk is full for answers.
const FULL: &str = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER no_room BEFORE UPDATE OF answered_at ON turn FOR EACH ROW EXECUTE FUNCTION refuse()";

/// Once, what an attempt had come to was in no figure, and what it had said was not shown, if the answer could not be
/// stored before somebody stopped it, or could not be stored as stopped at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_could_not_be_stored_before_it_was_stopped_was_in_no_figure() {
    let Some(server) = postgres::server() else { return };
    let store = server.database();
    let database = store.rsplit('/').next().expect("a name");
    let slack = Slack::start(rules().unlimited()).await;
    let (anthropic, home) = (Anthropic::start().await, Home::new());
    let arms = json!([{"name": "a", "weight": 0}, {"name": "bad", "policy": {"files": [failing(&home)]}}]);
    let experiment = json!({"name": "full", "start": "2026-01-01T00:00:00Z", "control": "a", "arms": arms});
    home.write("gateway.json", json!({"version": 1, "language": "en", "experiment": experiment}).to_string());
    let mut command = command(&home, &slack, &["--model", "anthropic-api", "--store", &store]);
    command.env("ANTHROPIC_API_KEY", anthropic::KEY).env("ANTHROPIC_BASE_URL", anthropic.url());
    command.env("PMK_LOG", "debug");
    let gateway = Gateway::spawn(&home, command);
    assert!(slack.await_connected(PATIENCE).await);
    home.await_events("experiment.on", 1);
    server.psql(database, FULL).expect("a trigger");
    let delayed = |times: usize| {
        let is_delayed =
            |line: &&str| line.contains("the turn is delayed and") || line.contains("this turn is delayed");
        (gateway.log().lines().filter(is_delayed).count() >= times).then_some(())
    };
    for _ in 0..3 {
        anthropic.push(Behaviour::answer("It is on Friday."));
    }
    let asked = slack.dm("U1", "When is the launch?");
    // The fourth comes seconds later.
    until_async("three attempts", || delayed(3)).await;
    slack.dm("U1", "stop");
    until_async("an end that cannot be stored either", || delayed(4)).await;
    assert_eq!(anthropic.requests().len(), 3, "it was stopped");
    server.psql(database, "DROP TRIGGER no_room ON turn").expect("room");
    let reply = slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    assert!(reply.shown().starts_with("It is on Friday.") && reply.shown().ends_with(" Stopped"), "{}", reply.shown());
    home.await_events("token.usage", 3);
    assert!(gateway.terminate().success());
    let spent = home.events("token.usage");
    assert!(spent.len() == 3 && spent.iter().all(|line| line["arm"] == "bad"), "each was paid for: {spent:#?}");
}
