//! What is said by a reaction can be said by a button: thumbs under answers, the verdict on an atom, the word on a question.

use std::time::Duration;

use pmk_stand_ins::{
    anthropic::Behaviour,
    postgres,
    relay::Relay,
    slack::{Call, Fault, Message, Sent},
};
use serde_json::{Value, json};

use crate::{
    contacts::verdict,
    knowledge::team::{ASKER, CHANNEL, CONTACT, ENGLISH, OTHER_CONTACT, Team, in_thread},
    moments::Moments,
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, Scene, rules, rules_for_kills},
};

const THUMBS: [(&str, &str); 2] = [("pmk_opinion", "like"), ("pmk_opinion", "dislike")];
const WORDS: [(&str, &str); 2] = [("pmk_word_yes", "yes"), ("pmk_word_no", "no")];

/// Somebody presses a thumb, and Slack is told that it was taken in.
async fn thumb(scene: &Scene, user: &str, answer: &Message, value: &str) {
    let click = scene.slack.click(user, answer, "pmk_opinion", value);
    assert!(scene.slack.await_ack(&click, PATIENCE).await.is_some(), "{value} of {user}");
}

impl Team {
    /// The same for a yes or a no.
    async fn press(&self, user: &str, message: &Message, value: &str) {
        let click = self.slack.click(user, message, &format!("pmk_word_{value}"), value);
        assert!(self.slack.await_ack(&click, PATIENCE).await.is_some(), "{value} of {user}");
    }

    /// Waits until a message says this, and offers nothing any more.
    async fn settled(&self, message: &Message, text: &str) {
        let wanted = |now: &Message| now.ts == message.ts && now.text.contains(text) && now.buttons().is_empty();
        self.message(text, wanted).await;
    }

    /// Somebody is told, alone, that it is not theirs to say.
    async fn told_off(&self, user: &str, message: &Message, count: usize, words: &str) {
        assert!(self.slack.await_whispers(user, count, PATIENCE).await, "{user} is not told");
        let whisper = &self.slack.whispers(user)[count - 1];
        assert!(whisper.text.contains(words), "{whisper:?}");
        assert_eq!((&whisper.channel, &whisper.thread_ts), (&message.channel, &message.thread_ts));
    }
}

/// A workspace whose gateway.json has this section for Slack, and an experiment where one is named.
async fn scene(slack: Value, experiment: bool) -> Scene {
    let mut config = json!({"version": 1, "language": "en", "slack": slack});
    if experiment {
        config["experiment"] = json!({"name": "thumbs", "start": "2026-01-01T00:00:00Z", "control": "a", "arms": [{"name": "a"}, {"name": "b", "weight": 0}]});
    }
    let scene = Scene::new(rules(), &config).await;
    scene.anthropic.when("launch", Behaviour::answer("On *Friday*."));
    scene
}

async fn answer(scene: &Scene, question: &Sent) -> Message {
    scene.slack.await_reply(question, PATIENCE).await.expect("an answer")
}

/// What the arm that has everybody was given.
fn opinions(home: &Home) -> (Value, Value) {
    let status = home.run(&["--json", "experiment", "status"], "").ok().json();
    (status["arms"][0]["likes"].clone(), status["arms"][0]["dislikes"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thumb_is_a_signal_of_the_experiment_one_a_person_whoever_changes_their_mind() {
    let scene = scene(json!({}), true).await;
    let gateway = scene.start().await;
    let asked = scene.slack.mention(CHANNEL, "U1", "When is the launch?", None);
    let answer = answer(&scene, &asked).await;
    assert_eq!((answer.buttons(), answer.shown().as_str()), (THUMBS.to_vec(), "On *Friday*."));
    assert_eq!(answer.text, "On _Friday_.", "what is read aloud says the same");
    for (user, value) in [("U1", "like"), ("U1", "like"), ("U2", "like"), ("U1", "dislike")] {
        thumb(&scene, user, &answer, value).await;
    }
    let signals = scene.home.await_events("signal.reaction", 3);
    let said = ["actor", "likes", "replaces"].map(|key| signals.iter().map(|signal| signal[key].clone()).collect());
    let said: [Vec<Value>; 3] = said;
    assert_eq!(said[0], ["U1", "U2", "U1"]);
    assert_eq!(said[1], [true, true, false]);
    assert_eq!(said[2], [false, false, true], "the ledger adds up to what the status has");
    assert!(gateway.terminate().success());
    assert_eq!(scene.home.events("signal.reaction").len(), 3);
    assert_eq!(opinions(&scene.home), (json!(1), json!(1)));
    // An opinion is asked for as long as there is an answer.
    assert_eq!(scene.slack.messages(CHANNEL).last().map(Message::buttons), Some(THUMBS.to_vec()));
    scene.behaved();
}

/// Regression: after a failover or a restore, presses whose numbers the database gave again waited for the next start.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_pressed_after_a_database_had_lost_presses_was_not_looked_at() {
    let Some(server) = postgres::server() else { return };
    let store = server.database();
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into());
    let through = store.replace(&server.port().to_string(), &relay.address().port().to_string());
    let scene = scene(json!({}), true).await;
    let gateway = Gateway::asking(&scene.home, &scene.slack, &scene.anthropic, &["--store", &through]);
    assert!(scene.slack.await_connected(PATIENCE).await);
    let answer = answer(&scene, &scene.slack.mention(CHANNEL, "U1", "When is the launch?", None)).await;
    for (user, count) in [("U1", 1), ("U2", 2)] {
        thumb(&scene, user, &answer, "like").await;
        scene.home.await_events("signal.reaction", count);
    }
    relay.cut();
    until_async("it is away", || gateway.log().contains("cannot reach the database").then_some(())).await;
    let name = store.rsplit('/').next().expect("a name");
    let again = "SELECT setval(pg_get_serial_sequence('press', 'number'), 1, false)";
    server.psql(name, again).expect("the numbers begin anew");
    relay.mend();
    until_async("it is back", || gateway.log().contains("can be reached again").then_some(())).await;
    thumb(&scene, "U1", &answer, "dislike").await;
    scene.home.await_events("signal.reaction", 3);
}

/// By a reaction or by a button: it is one signal.
#[tokio::test(flavor = "multi_thread")]
async fn a_thumb_by_a_button_and_one_by_a_reaction_are_the_same() {
    let scene = scene(json!({}), true).await;
    let gateway = scene.start().await;
    let answer = answer(&scene, &scene.slack.dm("U1", "When is the launch?")).await;
    thumb(&scene, "U1", &answer, "like").await;
    scene.home.await_events("signal.reaction", 1);
    let event = scene.slack.react("U1", &answer, "+1");
    assert!(scene.slack.await_ack(&event, PATIENCE).await.is_some());
    // Nobody else is in a direct message.
    thumb(&scene, "U2", &answer, "like").await;
    thumb(&scene, "U1", &answer, "dislike").await;
    scene.home.await_events("signal.reaction", 2);
    assert!(gateway.terminate().success());
    assert_eq!(opinions(&scene.home), (json!(0), json!(1)));
    assert_eq!(scene.slack.whispers("U2"), []);
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn which_answers_have_thumbs_is_a_setting() {
    for (slack, experiment, has) in [
        (json!({}), false, false),
        (json!({"feedback": "auto"}), true, true),
        (json!({"feedback": "on"}), false, true),
        (json!({"feedback": "off"}), true, false),
    ] {
        let scene = scene(slack.clone(), experiment).await;
        let _gateway = scene.start().await;
        let answer = answer(&scene, &scene.slack.dm("U1", "When is the launch?")).await;
        assert_eq!(answer.buttons(), if has { THUMBS.to_vec() } else { vec![] }, "{slack} {experiment}");
        // What is said in an answer's place is none.
        let ordered = scene.slack.dm("U1", "/pmk status");
        let told = scene.slack.await_reply(&ordered, PATIENCE).await.expect("an answer to the command");
        assert!(told.buttons().is_empty(), "{told:?}");
        scene.behaved();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_end_of_a_long_answer_has_thumbs_and_where_the_rest_is_a_file_what_goes_before_it() {
    let scene = scene(json!({"feedback": "on"}), false).await;
    let paragraph = "The launch is on Friday, as I have said before, and as I shall say again. ".repeat(36);
    scene.anthropic.when("in words", Behaviour::answer([paragraph.trim_end(); 9].join("\n\n")));
    scene.anthropic.when("in full", Behaviour::answer([paragraph.trim_end(); 90].join("\n\n")));
    let _gateway = scene.start().await;
    for (user, question, parts, with_thumbs) in [("U1", "Tell me in words", 3, 2), ("U2", "Tell me in full", 2, 0)] {
        let asked = scene.slack.dm(user, question);
        assert!(scene.slack.await_replies(&asked.channel, parts, PATIENCE).await, "{question}");
        let replies = scene.slack.replies(&asked.channel);
        assert_eq!(replies.len(), parts, "{question}");
        for (at, reply) in replies.iter().enumerate() {
            assert_eq!(!reply.buttons().is_empty(), at == with_thumbs, "{question}: {at}");
        }
    }
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_slack_refuses_to_show_goes_without_buttons_and_is_not_offered_again() {
    let scene = scene(json!({"feedback": "on"}), false).await;
    let gateway = scene.start().await;
    scene.slack.fault_times("chat.postMessage", 1, Fault::Error("invalid_blocks"));
    for round in 1..=2 {
        let answer = answer(&scene, &scene.slack.dm("U1", &format!("Once more ({round}): the launch?"))).await;
        assert_eq!((answer.text.as_str(), answer.buttons().len()), ("On _Friday_.", 0));
    }
    let posts = scene.slack.calls("chat.postMessage");
    let offered = posts.iter().filter(|call| call.body["blocks"].to_string().contains("context_actions"));
    assert_eq!(offered.count(), 1, "{posts:#?}");
    assert!(gateway.log().contains("does not accept the buttons"), "{}", gateway.log());
    assert!(gateway.terminate().success());
    // The next one tries again.
    let _gateway = scene.start().await;
    let answer = answer(&scene, &scene.slack.dm("U2", "The launch?")).await;
    assert_eq!(answer.buttons(), THUMBS);
    scene.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gave_an_answer_approves_it_by_a_button_and_nobody_else() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let notice = team.learn().await;
    assert_eq!((notice.buttons(), notice.shown()), (WORDS.to_vec(), notice.text.clone()));
    for value in ["yes", "no"] {
        team.press(OTHER_CONTACT, &notice, value).await;
    }
    team.told_off(OTHER_CONTACT, &notice, 2, "Only the person").await;
    assert!(team.atom().contains("status: pending"), "{}", team.atom());
    let before = team.message("the notice", |message| message.ts == notice.ts).await;
    assert_eq!((before.buttons(), &before.text), (WORDS.to_vec(), &notice.text));

    // Twice, as from two screens.
    team.press(CONTACT, &notice, "yes").await;
    team.press(CONTACT, &notice, "yes").await;
    team.settled(&notice, team.story.approved).await;
    assert!(team.atom().contains("status: approved"), "{}", team.atom());
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("atom.approved").len(), 1);
    assert_eq!(team.slack.whispers(CONTACT), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gave_an_answer_takes_it_back_by_a_button_and_then_it_is_decided() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let notice = team.learn().await;
    team.press(CONTACT, &notice, "no").await;
    team.settled(&notice, team.story.rejected).await;
    assert_eq!(team.atoms(), []);
    team.press(CONTACT, &notice, "yes").await;
    team.told_off(CONTACT, &notice, 1, "already been decided").await;
    assert_eq!(team.atoms(), []);
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("atom.rejected").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contact_says_by_a_button_whether_it_was_the_answer() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (asked, _) = team.escalate().await;
    verdict(&team, "thumbs", "nobody knows");
    let is_asked = async |text: &str| {
        team.slack.mention(CHANNEL, CONTACT, text, Some(&asked.ts));
        let wanted =
            |it: &Message| in_thread(it, &asked) && it.text.starts_with(":grey_question:") && it.text.contains(text);
        team.message("question", wanted).await
    };
    let shown = is_asked("thumbs up").await;
    assert_eq!(shown.buttons(), WORDS);
    team.press(OTHER_CONTACT, &shown, "yes").await;
    team.told_off(OTHER_CONTACT, &shown, 1, "Only the person").await;
    team.press(CONTACT, &shown, "no").await;
    team.settled(&shown, ":ok_hand:").await;
    assert_eq!(team.atoms(), []);

    let shown = is_asked("thumbs: finance, on the first").await;
    team.press(CONTACT, &shown, "yes").await;
    team.press(CONTACT, &shown, "yes").await;
    team.settled(&shown, "Thank you, I will pass it on").await;
    team.passed_on(&asked).await;
    team.notice(&asked).await;
    assert!(team.atom().contains("## Answer\n\nthumbs: finance, on the first\n"), "{}", team.atom());
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.absorbed").len(), 1);
}

/// Regression: by a reaction, nothing happened and nobody was told why.
#[tokio::test(flavor = "multi_thread")]
async fn whose_reaction_is_not_theirs_to_give_is_told_as_by_the_button() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (asked, _) = team.escalate().await;
    team.reply(CONTACT, &asked);
    let notice = team.notice(&asked).await;
    team.react(OTHER_CONTACT, &notice, "white_check_mark").await;
    assert!(team.slack.await_whispers(OTHER_CONTACT, 1, PATIENCE).await, "a verdict");
    assert!(team.atom().contains("status: pending"), "{}", team.atom());
    team.home.await_events("turn.processed", 2);
    team.slack.react_to(OTHER_CONTACT, &asked, "repeat");
    assert!(team.slack.await_whispers(OTHER_CONTACT, 2, PATIENCE).await, "once more");
    let whispers = team.slack.whispers(OTHER_CONTACT);
    let told: Vec<_> = whispers.iter().map(|whisper| (whisper.channel.as_str(), whisper.text.as_str())).collect();
    let [(CHANNEL, judged), (CHANNEL, again)] = told[..] else { panic!("{told:?}") };
    assert!(judged.contains("Only the person named there") && again.contains("Only the person who asked"), "{told:?}");
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("turn.again"), [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_somebodys_name_goes_out_by_their_button_only() {
    const FOREIGN: &str = "Could somebody send the payroll to the auditors?";
    let team = Team::new(&ENGLISH, "auto").await;
    let call = Behaviour::calls([("escalate", json!({"repo": "erp", "question": FOREIGN}))]);
    team.anthropic.when("What is new", call);
    team.anthropic.when("shown the question", Behaviour::answer("You see it first."));
    let gateway = team.connect().await;
    let asked = team.slack.mention(CHANNEL, ASKER, "What is new?", None);
    let shown = team
        .message("question", |it| it.by_bot && it.text.starts_with(":question:") && it.text.contains(FOREIGN))
        .await;
    assert_eq!(shown.buttons(), WORDS);
    team.press(CONTACT, &shown, "yes").await;
    team.told_off(CONTACT, &shown, 1, "Only the person").await;
    team.press(ASKER, &shown, "yes").await;
    team.press(ASKER, &shown, "yes").await;
    let put =
        |it: &Message| in_thread(it, &asked) && it.text.contains(FOREIGN) && it.text.contains(team.story.please_reply);
    team.message("question to the contacts", put).await;
    let settled = |it: &Message| it.ts == shown.ts && it.buttons().is_empty() && !it.text.contains(FOREIGN);
    team.message("end of the question", settled).await;
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.triggered").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_click_of_a_blocked_person_has_no_effect_and_gets_no_word() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let notice = team.learn().await;
    let text = std::fs::read_to_string(team.home.path().join("gateway.json")).expect("gateway.json");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["blocklist"] = json!([CONTACT]);
    team.home.write("gateway.json", config.to_string());
    team.press(CONTACT, &notice, "yes").await;
    let refused = team.home.await_events("access.refused", 1);
    assert_eq!((&refused[0]["actor"], &refused[0]["action"]), (&json!(CONTACT), &json!("judge")));
    assert!(gateway.terminate().success());
    assert!(team.atom().contains("status: pending"), "{}", team.atom());
    assert_eq!(team.slack.whispers(CONTACT), []);
    team.behaved();
}

/// Slack waits for an acknowledgement for three seconds, and for this one here it would wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_click_is_acknowledged_however_slow_slack_is_and_shown_after_a_kill() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let notice = team.learn().await;
    team.home.await_events("turn.processed", 2);
    team.slack.fault("chat.update", Fault::Stall);
    team.press(CONTACT, &notice, "yes").await;
    team.home.await_events("atom.approved", 1);
    let shows = |call: &Call| call.body["text"].to_string().contains(team.story.approved);
    until_async("the verdict on its way", || team.slack.calls("chat.update").iter().any(shows).then_some(())).await;
    gateway.kill();
    assert!(team.slack.await_sockets(0, PATIENCE).await);
    let still = team.message("the notice", |message| message.ts == notice.ts).await;
    assert_eq!(still.buttons(), WORDS);

    team.slack.heal("chat.update");
    let gateway = team.connect().await;
    team.settled(&notice, team.story.approved).await;
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("atom.approved").len(), 1);
}

/// While something that asks for a word is on its way to Slack, none is taken: what is pressed then waits, and is not
/// lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_click_that_has_to_wait_is_acknowledged_and_survives_a_kill() {
    let team = Team::under(rules().without_statuses(), &ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let notice = team.learn().await;
    let path = team.atoms().remove(0).0;
    team.home.await_events("turn.processed", 2);
    let (asked, _) = team.escalate().await;
    team.home.await_events("turn.processed", 3);
    let asks = |call: &&Call| call.body["text"].to_string().contains(":inbox_tray:");
    let on_their_way = || team.slack.calls("chat.update").iter().filter(asks).count();
    let before = on_their_way();
    team.slack.fault("chat.update", Fault::Stall);
    team.reply(OTHER_CONTACT, &asked);
    until_async("another notice on its way", || (on_their_way() > before).then_some(())).await;
    team.press(CONTACT, &notice, "yes").await;
    gateway.kill();
    assert!(team.slack.await_sockets(0, PATIENCE).await);
    let atom = || std::fs::read_to_string(&path).expect("the atom");
    assert!(atom().contains("status: pending"), "{}", atom());

    team.slack.heal("chat.update");
    let gateway = team.connect().await;
    team.settled(&notice, team.story.approved).await;
    assert!(atom().contains("status: approved"), "{}", atom());
    team.behaved();
    assert!(gateway.terminate().success());
}

/// Presses a verdict and kills the gateway soon after, again and again. What was acknowledged has its effect once, and what was
/// not can be pressed again: then Slack shows the person that it was not taken in. `judge` sees each team in the end.
async fn killed_after(action: &str, verdict: &str, word: impl Fn(&Team) -> &str, judge: impl Fn(&Team)) {
    let mut moments = Moments::new();
    for _ in 0..5 {
        let team = Team::under(rules_for_kills(), &ENGLISH, "auto").await;
        let gateway = team.connect().await;
        let notice = team.learn().await;
        let click = team.slack.click(CONTACT, &notice, action, verdict);
        moments.pass(Duration::from_millis(40)).await;
        gateway.kill();
        assert!(team.slack.await_sockets(0, PATIENCE).await);
        let acknowledged = team.slack.acks().iter().any(|ack| ack.event_id == click);
        let gateway = team.connect().await;
        if !acknowledged {
            team.press(CONTACT, &notice, verdict).await;
        }
        team.settled(&notice, word(&team)).await;
        assert!(gateway.terminate().success());
        judge(&team);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_whole_whenever_the_gateway_is_killed() {
    let judge = |team: &Team| assert!(team.atom().contains("status: approved"), "{}", team.atom());
    killed_after("pmk_word_yes", "yes", |team| team.story.approved, judge).await;
}

/// Once, a kill just after a "no" left its message with buttons for ever, and the ledger without a word of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_no_is_whole_whenever_the_gateway_is_killed() {
    let judge = |team: &Team| {
        assert_eq!(team.atoms(), []);
        assert_eq!(team.home.events("atom.rejected").len(), 1);
    };
    killed_after("pmk_word_no", "no", |team| team.story.rejected, judge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_is_asked_once_whenever_the_gateway_is_killed() {
    let mut moments = Moments::new();
    for _ in 0..5 {
        let team = Team::under(rules_for_kills(), &ENGLISH, "auto").await;
        let gateway = team.connect().await;
        let (asked, _) = team.escalate().await;
        team.anthropic.when("When is lunch?", Behaviour::answer("At noon."));
        team.anthropic.when("<reply>\nWhen is lunch?", Behaviour::answer("no idea"));
        team.slack.mention(CHANNEL, CONTACT, "When is lunch?", Some(&asked.ts));
        let asks = |it: &Message| in_thread(it, &asked) && it.text.starts_with(":grey_question:");
        let shown = team.message("question", asks).await;
        let click = team.slack.click(CONTACT, &shown, "pmk_word_no", "no");
        moments.pass(Duration::from_millis(40)).await;
        gateway.kill();
        assert!(team.slack.await_sockets(0, PATIENCE).await);
        let acknowledged = team.slack.acks().iter().any(|ack| ack.event_id == click);
        let gateway = team.connect().await;
        if !acknowledged {
            team.press(CONTACT, &shown, "no").await;
        }
        team.settled(&shown, ":ok_hand:").await;
        let noon = |it: &Message| in_thread(it, &asked) && it.text == "At noon.";
        team.message("answer", noon).await;
        assert!(gateway.terminate().success());
        assert_eq!(team.slack.messages(CHANNEL).into_iter().filter(noon).count(), 1);
    }
}

/// As after a kill between the verdict and the end of the file, or between that and the word on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_that_was_begun_before_a_kill_is_carried_out_after_it() {
    for is_deleted in [false, true] {
        let team = Team::new(&ENGLISH, "auto").await;
        let gateway = team.connect().await;
        let notice = team.learn().await;
        team.home.await_events("turn.processed", 2);
        let path = team.atoms().remove(0).0;
        // What is pressed now waits for the front, and the kill comes first.
        team.slack.fault("chat.update", Fault::Stall);
        team.press(CONTACT, &notice, "no").await;
        team.home.await_events("atom.rejected", 1);
        gateway.kill();
        assert!(team.slack.await_sockets(0, PATIENCE).await);
        if !is_deleted {
            std::fs::write(&path, "---\n---\n").expect("the atom is back");
        }
        let store = team.home.path().join("gateway/pmk-host.db");
        let db = rusqlite::Connection::open(store).expect("the store");
        let atom = json!({"id": "an-atom", "path": path}).to_string();
        assert_eq!(db.execute("UPDATE press SET atom = ?1", [atom]).expect("an update"), 1);
        drop(db);
        team.slack.heal("chat.update");
        let gateway = team.connect().await;
        team.settled(&notice, team.story.rejected).await;
        assert!(!path.exists());
        assert!(gateway.terminate().success());
        assert_eq!(team.home.events("atom.rejected").len(), 2, "it is told by whoever carries it out");
    }
}

/// Regression: in a thread, they were told in the channel, where they were not looking.
#[tokio::test(flavor = "multi_thread")]
async fn whose_reaction_in_a_thread_is_not_theirs_to_give_was_told_in_the_channel() {
    let scene = scene(json!({}), false).await;
    let gateway = scene.start().await;
    let root = scene.slack.talk(CHANNEL, "U2", "What is ahead", None);
    let asked = scene.slack.mention(CHANNEL, "U1", "When is the launch?", Some(&root.ts));
    answer(&scene, &asked).await;
    scene.home.await_events("turn.processed", 1);
    scene.slack.react_to("U9", &asked, "repeat");
    assert!(scene.slack.await_whispers("U9", 1, PATIENCE).await);
    let whispers = scene.slack.whispers("U9");
    assert_eq!(whispers[0].thread_ts.as_deref(), Some(root.ts.as_str()), "{whispers:?}");
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// A question that a reaction had asked once more, and that was answered, was asked a third time by the button under the
/// answer that had failed.
#[tokio::test(flavor = "multi_thread")]
async fn the_button_under_a_failure_asks_nothing_that_was_asked_again_since() {
    let scene = scene(json!({}), false).await;
    scene.anthropic.when("outage", Behaviour::error(401, "authentication_error", "invalid x-api-key"));
    let gateway = scene.start().await;
    let asked = scene.slack.mention(CHANNEL, "U1", "Is there an outage?", None);
    let failed = answer(&scene, &asked).await;
    scene.home.await_events("turn.processed", 1);
    scene.anthropic.when("outage", Behaviour::answer("It is over."));
    scene.slack.react_to("U1", &asked, "repeat");
    let is_over = |message: &Message| message.by_bot && message.text.contains("It is over.");
    assert!(scene.slack.await_message(CHANNEL, PATIENCE, is_over).await.is_some());
    scene.home.await_events("turn.processed", 2);
    for user in ["U9", "U1"] {
        let click = scene.slack.click(user, &failed, "pmk_word_again", "again");
        assert!(scene.slack.await_ack(&click, PATIENCE).await.is_some());
    }
    // Who asked sees what became of it, and who did not is told why nothing happens.
    let asked_again = |message: &Message| message.ts == failed.ts && message.text.starts_with(":repeat:");
    assert!(scene.slack.await_message(CHANNEL, PATIENCE, asked_again).await.is_some());
    assert!(scene.slack.await_whispers("U9", 1, PATIENCE).await);
    assert!(
        scene.slack.whispers("U9")[0].text.contains("Only the person who asked"),
        "{:?}",
        scene.slack.whispers("U9")
    );
    // A later question shows that nothing more came of it.
    scene.slack.mention(CHANNEL, "U1", "When is the launch?", None);
    scene.home.await_events("turn.processed", 3);
    assert_eq!(scene.home.await_events("turn.again", 1).len(), 1);
    assert_eq!(scene.slack.replies(CHANNEL).iter().filter(|reply| is_over(reply)).count(), 1);
    assert!(gateway.terminate().success());
    scene.behaved();
}

/// What is said after an outage of the model's has a button, which asks once more: whoever presses it how often, and not who
/// did not ask.
#[tokio::test(flavor = "multi_thread")]
async fn after_an_outage_of_the_model_a_button_takes_the_question_up_once() {
    let scene = scene(json!({}), false).await;
    scene.anthropic.when("outage", Behaviour::error(401, "authentication_error", "invalid x-api-key"));
    let gateway = scene.start().await;
    let asked = scene.slack.mention(CHANNEL, "U1", "Is there an outage?", None);
    let failed = answer(&scene, &asked).await;
    assert_eq!(failed.buttons(), [("pmk_word_again", "again")], "{failed:?}");
    let click = scene.slack.click("U9", &failed, "pmk_word_again", "again");
    assert!(scene.slack.await_ack(&click, PATIENCE).await.is_some());
    scene.anthropic.when("outage", Behaviour::answer("It is over."));
    for _ in 0..2 {
        let click = scene.slack.click("U1", &failed, "pmk_word_again", "again");
        assert!(scene.slack.await_ack(&click, PATIENCE).await.is_some());
    }
    let is_over = |message: &Message| message.by_bot && message.text.contains("It is over.");
    assert!(scene.slack.await_message(CHANNEL, PATIENCE, is_over).await.is_some());
    scene.home.await_events("turn.processed", 2);
    assert_eq!(scene.slack.replies(CHANNEL).iter().filter(|reply| is_over(reply)).count(), 1);
    assert_eq!(scene.home.await_events("turn.again", 1)[0]["actor"], "U1");
    // The failure is no news any more, and who did not ask is told why nothing happens.
    let asked_again = |message: &Message| message.ts == failed.ts && message.text.starts_with(":repeat:");
    let shown = scene.slack.await_message(CHANNEL, PATIENCE, asked_again).await.expect("it says so");
    assert_eq!(shown.buttons(), [] as [(&str, &str); 0]);
    assert!(scene.slack.await_whispers("U9", 1, PATIENCE).await);
    let whispered = scene.slack.whispers("U9");
    assert!(whispered.len() == 1 && whispered[0].text.contains("Only the person who asked"), "{whispered:?}");
    assert!(gateway.terminate().success());
    scene.behaved();
}
