//! A question from a direct message, which contacts cannot see: each is asked in a message of their own.

use std::time::Duration;

use pmk_stand_ins::{anthropic::Recorded, slack::Upload};

use super::*;
use crate::{
    moments::Moments,
    presence::age,
    support::{stand_in, until_async},
    workspace::rules_for_kills,
};

/// A team whose asker asks in a direct message.
struct Apart<'a> {
    team: &'a Team,
    asked: Sent,
}

impl<'a> Apart<'a> {
    /// Asks, and waits until both contacts are asked.
    async fn ask(team: &'a Team) -> (Apart<'a>, [Message; 2]) {
        let asked = team.slack.dm(ASKER, team.story.question);
        let apart = Apart { team, asked };
        let asking = [apart.asking(CONTACT).await, apart.asking(OTHER_CONTACT).await];
        (apart, asking)
    }

    async fn in_dm(&self, user: &str, what: &str, wanted: impl Fn(&Message) -> bool) -> Message {
        let found = self.team.slack.await_message(&dm_channel(user), PATIENCE, wanted).await;
        found.unwrap_or_else(|| panic!("no {what} in {:#?}", self.team.slack.messages(&dm_channel(user))))
    }

    /// What asks a contact.
    async fn asking(&self, contact: &str) -> Message {
        let forwarded = self.team.story.forwarded;
        self.in_dm(contact, "question", |message| message.by_bot && message.text.contains(forwarded)).await
    }

    /// What tells the asker.
    async fn passed_on(&self) -> Message {
        let has_answered = self.team.story.has_answered;
        self.in_dm(ASKER, "answer", |message| message.by_bot && message.text.contains(has_answered)).await
    }

    fn count(&self, user: &str, wanted: impl Fn(&Message) -> bool) -> usize {
        self.team.slack.messages(&dm_channel(user)).iter().filter(|message| wanted(message)).count()
    }
}

/// A team under `steer` whose lookups take until the file `more` is there.
async fn steering() -> (Team, Gateway) {
    let team = Team::new(&ENGLISH, "auto").await;
    let script = team.home.write("mra.script", "wait more\nout It is in the worker.");
    team.configure(|config| {
        config["mra"] = json!({"command": stand_in("mra", &script)});
        config["queue"] = json!({"mode": "steer"});
    });
    let gateway = team.connect().await;
    (team, gateway)
}

async fn the_loop_closes_apart(story: &'static Story, in_thread: bool) {
    let team = Team::new(story, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, other]) = Apart::ask(&team).await;
    assert!(asking.text.contains(story.reason) && asking.thread_ts.is_none(), "{asking:?}");
    assert_eq!(asking.notified(), [format!("<@{CONTACT}>"), format!("<@{ASKER}>")]);
    let told = apart.team.slack.await_reply(&apart.asked, PATIENCE).await.expect("a reply");
    assert!(told.text.contains(story.forwarded_notice), "{}", told.text);

    let thread = in_thread.then_some(asking.ts.as_str());
    apart.team.slack.dm_in_thread(CONTACT, story.reply, thread);
    let answer = apart.passed_on().await;
    assert!(answer.text.starts_with(&format!("<@{ASKER}> ")) && answer.text.ends_with(story.answer), "{answer:?}");
    let notice = apart.in_dm(CONTACT, "notice", |message| message.text.starts_with(":inbox_tray:")).await;
    let told = apart.in_dm(OTHER_CONTACT, "word", |message| message.thread_ts.as_ref() == Some(&other.ts)).await;
    assert!(told.by_bot && told.text.contains(CONTACT) && told.notified() == [] as [&str; 0], "{told:?}");
    assert!(apart.team.atom().contains(&format!("contributorUserId: {CONTACT}")), "{}", apart.team.atom());

    apart.team.react(CONTACT, &notice, "white_check_mark").await;
    assert!(apart.team.atom().contains("status: approved"), "{}", apart.team.atom());
    // The answer is part of the asker's conversation.
    apart.team.anthropic.when("And next month?", Behaviour::answer("The same."));
    let more = apart.team.slack.dm(ASKER, "And next month?");
    apart.team.slack.await_reply(&more, PATIENCE).await.expect("a reply");
    let request = apart.team.anthropic.requests().pop().expect("a request");
    assert!(request.body.to_string().contains(story.answer), "{}", request.body);
    apart.team.behaved();
    assert!(gateway.terminate().success());
    let home = &apart.team.home;
    let absorbed = home.events("escalate.absorbed");
    assert!(absorbed.len() == 1 && absorbed[0]["atomId"].is_string(), "{absorbed:?}");
    assert_eq!(home.events("escalate.triggered").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_from_a_direct_message_reaches_contacts_and_its_answer_the_asker() {
    the_loop_closes_apart(&CHINESE, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contact_may_answer_outside_of_the_thread() {
    the_loop_closes_apart(&ENGLISH, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_two_answers_counts_and_the_second_is_thanked() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, other]) = Apart::ask(&team).await;
    for (contact, asking) in [(CONTACT, &asking), (OTHER_CONTACT, &other)] {
        apart.team.slack.dm_in_thread(contact, ENGLISH.reply, Some(&asking.ts));
    }
    apart.passed_on().await;
    // Whoever was second.
    let late = |message: &Message| message.text.starts_with(":information_source:");
    let (one, other) = (dm_channel(CONTACT), dm_channel(OTHER_CONTACT));
    let of = |channel| apart.team.slack.await_message(channel, PATIENCE, late);
    let told = tokio::select! { Some(told) = of(&one) => told, Some(told) = of(&other) => told };
    assert!(told.text.contains("already been answered"));
    assert!(gateway.terminate().success());
    assert_eq!(apart.team.home.events("escalate.absorbed").len(), 1);
    assert_eq!(apart.team.atoms().len(), 1);
    assert_eq!(apart.count(ASKER, |message| message.text.contains(ENGLISH.has_answered)), 1);
}

/// Regression: the other contact had been told that there was nothing left to do.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_told_of_an_answer_is_told_that_it_was_taken_back() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, other]) = Apart::ask(&team).await;
    team.anthropic.when(ARRIVED, Behaviour::Silence);
    let answer = team.slack.dm_in_thread(CONTACT, "In the old report.", Some(&asking.ts));
    apart.in_dm(OTHER_CONTACT, "word", |message| message.text.contains("has answered this")).await;
    team.slack.take_back(&answer).expect("an event");
    let back = apart.in_dm(OTHER_CONTACT, "word", |message| message.text.contains("taken that answer back")).await;
    assert_eq!(back.thread_ts.as_ref(), Some(&other.ts));
    assert!(back.text.contains(ENGLISH.forwarded), "{}", back.text);
    team.anthropic.when(ARRIVED, Behaviour::answer(ENGLISH.answer));
    team.slack.dm_in_thread(OTHER_CONTACT, ENGLISH.reply, Some(&other.ts));
    apart.passed_on().await;
    team.behaved();
    assert!(gateway.terminate().success());
    let told = |message: &Message| message.text.contains("taken that answer back");
    assert_eq!((apart.count(CONTACT, told), apart.count(OTHER_CONTACT, told), apart.count(ASKER, told)), (0, 1, 0));
}

/// Regression: who had asked waited for nobody, and could not ask again.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_is_told_when_no_contact_can_be_reached() {
    let unreached = |message: &Message| message.by_bot && message.text.contains("I could reach none of the people");
    for reachable in [None, Some(CONTACT), Some(OTHER_CONTACT)] {
        let team = Team::new(&ENGLISH, "auto").await;
        for contact in [CONTACT, OTHER_CONTACT].into_iter().filter(|contact| reachable != Some(contact)) {
            team.slack.keep_out(&dm_channel(contact));
        }
        let gateway = team.connect().await;
        let asked = team.slack.dm(ASKER, ENGLISH.question);
        let apart = Apart { team: &team, asked };
        team.home.await_events("turn.processed", 1);
        let pending = team.home.run(&["--json", "escalation", "list"], "").ok().json()["pending"].clone();
        let (told, waits) = (apart.count(ASKER, unreached), pending.as_array().map_or(0, Vec::len));
        assert_eq!((told, waits), if reachable.is_none() { (1, 0) } else { (0, 1) }, "{reachable:?}");
        if let Some(contact) = reachable {
            apart.asking(contact).await;
        }
        assert!(gateway.terminate().success());
        let unreachable = if reachable.is_none() { 2 } else { 1 };
        assert_eq!(team.home.events("reply.undelivered").len(), unreachable, "{reachable:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_came_while_a_tool_ran_was_steered_into_another_question() {
    let (team, gateway) = steering().await;
    let (apart, [asking, _]) = Apart::ask(&team).await;
    let looks = Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]);
    team.anthropic.when("Where is it computed?", looks);
    team.anthropic.when("It is in the worker.", Behaviour::answer("In the worker."));
    let busy = team.slack.dm(ASKER, "Where is it computed?");
    let is_asked = |said: &Recorded| said.said_now().contains("Where is it computed?");
    let asked = || team.anthropic.requests().iter().any(is_asked).then_some(());
    until_async("the model is asked", asked).await;
    apart.team.slack.dm_in_thread(CONTACT, ENGLISH.reply, Some(&asking.ts));
    // Once the contact is asked whether it is to be kept, their answer is on its way.
    apart.in_dm(CONTACT, "notice", |message| message.text.starts_with(":inbox_tray:")).await;
    team.home.write("more", "");
    let reply = apart.team.slack.await_reply(&busy, PATIENCE).await.expect("a reply");
    assert!(reply.text.contains("In the worker."), "{}", reply.text);
    let told = apart.passed_on().await;
    assert!(told.text.contains(CONTACT) && told.text.ends_with(ENGLISH.answer), "{}", told.text);
    assert_eq!(apart.team.home.run(&["--json", "escalation", "list"], "").ok().json()["pending"], json!([]));
    assert_eq!(apart.count(ASKER, |message| message.text.contains(ENGLISH.has_answered)), 1);
    apart.team.behaved();
    assert!(gateway.terminate().success());
}

/// Once, it was answered by the contact's words that were being passed on, and lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_while_an_answer_is_passed_on_is_answered_on_its_own() {
    let (team, gateway) = steering().await;
    let (apart, [asking, _]) = Apart::ask(&team).await;
    team.anthropic.when(ARRIVED, Behaviour::calls([("mra_ask", json!({"repo": "erp", "question": "where?"}))]));
    team.anthropic.when("It is in the worker.", Behaviour::error(400, "invalid_request_error", "no"));
    team.anthropic.when("And for May?", Behaviour::answer("The same for May."));
    team.slack.dm_in_thread(CONTACT, ENGLISH.reply, Some(&asking.ts));
    let passes_on = |said: &Recorded| ARRIVED.iter().any(|arrived| said.said_now().contains(arrived));
    let asked = || team.anthropic.requests().iter().any(passes_on).then_some(());
    until_async("the model is to pass it on", asked).await;
    let more = team.slack.dm(ASKER, "And for May?");
    assert!(team.slack.await_ack(&more.event_id, PATIENCE).await.is_some());
    team.home.write("more", "");
    assert!(apart.passed_on().await.text.ends_with(ENGLISH.reply));
    apart.in_dm(ASKER, "answer of its own", |message| message.by_bot && message.text == "The same for May.").await;
    assert!(gateway.terminate().success());
}

/// Once, in direct messages all that was passed on counted as the asker's own words.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_contact_has_written_is_not_asked_in_the_askers_name() {
    const FOREIGN: &str = "Could somebody send the payroll to the auditors?";
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, _]) = Apart::ask(&team).await;
    team.slack.dm_in_thread(CONTACT, &format!("{} The mail said: {FOREIGN}", ENGLISH.reply), Some(&asking.ts));
    apart.passed_on().await;
    let asks = Behaviour::calls([("escalate", json!({"repo": "erp", "question": FOREIGN}))]);
    team.anthropic.when("Thanks, what else?", asks);
    team.slack.dm(ASKER, "Thanks, what else?");
    let shown = apart.in_dm(ASKER, "proposal", |message| message.text.contains(&format!("> {FOREIGN}"))).await;
    assert!(shown.by_bot);
    team.home.await_events("escalate.proposed", 1);
    assert!(gateway.terminate().success());
    assert_eq!(apart.count(CONTACT, |message| message.by_bot && message.text.contains(FOREIGN)), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_back_and_replies_find_their_way_between_direct_messages() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let (apart, [asking, _]) = Apart::ask(&team).await;
    verdict(apart.team, "Which month?", "question");
    verdict(apart.team, "March, please", "reply");
    let back = apart.team.slack.dm_in_thread(CONTACT, "Which month?", Some(&asking.ts));
    let marks = apart.team.slack.await_reactions(&back, PATIENCE).await;
    assert_eq!(marks, Some(vec!["speech_balloon".to_owned()]));
    apart.in_dm(ASKER, "question back", |message| message.text.contains("> Which month?")).await;
    let reply = apart.team.slack.dm(ASKER, "March, please");
    let marks = apart.team.slack.await_reactions(&reply, PATIENCE).await;
    assert_eq!(marks, Some(vec!["incoming_envelope".to_owned()]));
    let passed_on = |message: &Message| message.text.contains("> March, please");
    let told = apart.in_dm(CONTACT, "reply", passed_on).await;
    assert_eq!(told.thread_ts.as_ref(), Some(&asking.ts));
    assert_eq!(apart.count(OTHER_CONTACT, passed_on), 0, "who has not asked is left alone");

    verdict(apart.team, "Never mind", "withdraw");
    apart.team.slack.dm(ASKER, "Never mind, I have it");
    apart.in_dm(OTHER_CONTACT, "word", |message| message.text.contains("no longer needs")).await;
    assert_eq!(apart.team.home.run(&["--json", "escalation", "list"], "").ok().json()["pending"], json!([]));
    apart.team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_in_the_thread_of_what_a_contact_had_asked_back_was_taken_for_a_question() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, _]) = Apart::ask(&team).await;
    verdict(&team, "Which month?", "question");
    verdict(&team, "March, please", "reply");
    let asked_back = team.slack.dm_in_thread(CONTACT, "Which month?", Some(&asking.ts));
    let back = apart.in_dm(ASKER, "question back", |message| message.text.contains("> Which month?")).await;
    assert!(back.text.contains("Reply to this message"), "{}", back.text);
    // By then it is stored which message that is.
    assert!(team.slack.await_reactions(&asked_back, PATIENCE).await.is_some());
    let reply = team.slack.dm_in_thread(ASKER, "March, please", Some(&back.ts));
    let marks = team.slack.await_reactions(&reply, PATIENCE).await;
    assert_eq!(marks, Some(vec!["incoming_envelope".to_owned()]));
    let told = apart.in_dm(CONTACT, "reply", |message| message.text.contains("> March, please")).await;
    assert_eq!(told.thread_ts.as_ref(), Some(&asking.ts));
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.heard").len(), 2);
}

/// Regression: whoever had asked back last got it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_under_what_one_contact_had_asked_back_went_to_another() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, other]) = Apart::ask(&team).await;
    for (words, kind) in [("Which month?", "question"), ("Which year?", "question"), ("March, please", "reply")] {
        verdict(&team, words, kind);
    }
    for (contact, words, thread) in [(CONTACT, "Which month?", &asking.ts), (OTHER_CONTACT, "Which year?", &other.ts)] {
        let back = team.slack.dm_in_thread(contact, words, Some(thread));
        assert!(team.slack.await_reactions(&back, PATIENCE).await.is_some(), "{words}");
    }
    let first = apart.in_dm(ASKER, "question back", |message| message.text.contains("> Which month?")).await;
    let reply = team.slack.dm_in_thread(ASKER, "March, please", Some(&first.ts));
    assert!(team.slack.await_reactions(&reply, PATIENCE).await.is_some());
    let passed_on = |message: &Message| message.text.contains("> March, please");
    let told = apart.in_dm(CONTACT, "reply", passed_on).await;
    assert_eq!(told.thread_ts.as_ref(), Some(&asking.ts));
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(apart.count(OTHER_CONTACT, passed_on), 0);
}

/// Regression: the asker was told that nobody can be reached, although another contact could.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_to_a_contact_who_was_blocked_since_they_asked_back_reached_nobody() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, other]) = Apart::ask(&team).await;
    verdict(&team, "Which month?", "question");
    verdict(&team, "March, please", "reply");
    let back = team.slack.dm_in_thread(CONTACT, "Which month?", Some(&asking.ts));
    assert!(team.slack.await_reactions(&back, PATIENCE).await.is_some());
    team.configure(|config| config["blocklist"] = json!([CONTACT]));
    let reply = team.slack.dm(ASKER, "March, please");
    let passed_on = |message: &Message| message.by_bot && message.text.contains("> March, please");
    let told = apart.in_dm(OTHER_CONTACT, "reply", passed_on).await;
    assert_eq!(told.thread_ts.as_ref(), Some(&other.ts));
    let marks = team.slack.await_reactions(&reply, PATIENCE).await;
    assert_eq!(marks, Some(vec!["incoming_envelope".to_owned()]));
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(apart.count(CONTACT, passed_on), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_contact_answered_in_the_thread_during_a_long_outage_was_not_found() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    team.anthropic.when("hello", Behaviour::answer("Hello!"));
    team.slack.await_reply(&team.slack.dm(CONTACT, "hello"), PATIENCE).await.expect("a reply");
    let (apart, [asking, _]) = Apart::ask(&team).await;
    gateway.kill();
    age(&team.home, Duration::from_secs(600));
    team.slack.talk(&dm_channel(CONTACT), CONTACT, ENGLISH.reply, Some(&asking.ts));
    let gateway = team.connect().await;
    apart.passed_on().await;
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("gateway.caught-up")[0]["messages"], 1);
    assert!(team.atom().contains(ENGLISH.reply), "{}", team.atom());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_contact_added_to_their_own_answer_reached_nobody() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, other]) = Apart::ask(&team).await;
    team.slack.dm_in_thread(CONTACT, ENGLISH.reply, Some(&asking.ts));
    apart.passed_on().await;
    team.slack.dm_in_thread(CONTACT, "Correction: on the second.", Some(&asking.ts));
    let added = |message: &Message| message.text.ends_with("> Correction: on the second.");
    let told = apart.in_dm(ASKER, "addition", added).await;
    assert!(told.text.contains(ENGLISH.forwarded) && told.notified()[0] == format!("<@{ASKER}>"), "{told:?}");
    apart.in_dm(CONTACT, "word", |message| message.text.contains("Passed on to the person who asked")).await;
    assert!(team.atom().contains(ENGLISH.reply) && !team.atom().contains("Correction"), "{}", team.atom());
    // Of anybody else, the first answer still counts.
    team.slack.dm_in_thread(OTHER_CONTACT, "On the third.", Some(&other.ts));
    apart.in_dm(OTHER_CONTACT, "word", |message| message.text.contains("already been answered")).await;
    assert_eq!(apart.count(ASKER, |message| message.text.contains("third")), 0);
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.absorbed").len(), 1);
}

/// Regression: it was posted at once, while the answer waited for the model.
#[tokio::test(flavor = "multi_thread")]
async fn a_correction_reached_the_asker_before_the_answer_that_it_corrects() {
    let team = Team::new(&ENGLISH, "auto").await;
    let gateway = team.connect().await;
    let (apart, [asking, _]) = Apart::ask(&team).await;
    let (answer, gate) = Behaviour::gated(ENGLISH.answer);
    team.anthropic.when(ARRIVED, answer);
    team.slack.dm_in_thread(CONTACT, ENGLISH.reply, Some(&asking.ts));
    apart.in_dm(CONTACT, "notice", |message| message.text.starts_with(":inbox_tray:")).await;
    team.slack.dm_in_thread(CONTACT, "Correction: on the second.", Some(&asking.ts));
    apart.in_dm(CONTACT, "word", |message| message.text.contains("Passed on to the person who asked")).await;
    gate.add_permits(4);
    let added = |message: &Message| message.text.ends_with("> Correction: on the second.") && message.by_bot;
    let correction = apart.in_dm(ASKER, "addition", added).await;
    let answer = apart.passed_on().await;
    assert!(answer.ts < correction.ts, "{:#?}", team.slack.messages(&dm_channel(ASKER)));
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(apart.count(ASKER, added), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_a_file_was_no_answer_and_what_came_with_words_was_not_kept() {
    for (text, kept) in [
        ("", "## Answer\n\n> file: shares.csv\n> sales,60\n> press,40\n"),
        ("Here:", "## Answer\n\nHere:\n\n> file: shares.csv\n> sales,60\n> press,40\n"),
    ] {
        let team = Team::new(&ENGLISH, "auto").await;
        let gateway = team.connect().await;
        let (apart, _) = Apart::ask(&team).await;
        let files = vec![
            Upload::new("shares.csv", "text/csv", "sales,60\npress,40\n"),
            Upload::new("plan.pdf", "application/pdf", b"%PDF-1.7"),
        ];
        team.slack.dm_with_files(CONTACT, text, files);
        let answer = apart.passed_on().await;
        assert!(answer.text.contains("Not read: `plan.pdf`") && answer.text.ends_with(ENGLISH.answer), "{answer:?}");
        let requests = team.anthropic.requests();
        let arrived = |request: &&Recorded| ARRIVED.iter().any(|arrived| request.said_now().contains(arrived));
        let request = requests.iter().find(arrived).expect("the model was told");
        assert!(request.body.to_string().contains("sales,60"), "{}", request.body);
        let told = apart.in_dm(CONTACT, "word", |message| message.text.contains("`plan.pdf`")).await;
        assert!(told.text.contains("do not reach") && !told.text.contains("shares"), "{}", told.text);
        team.behaved();
        assert!(gateway.terminate().success());
        let atom = team.atom();
        assert!(atom.contains(kept) && atom.contains("> file: plan.pdf\n"), "{atom}");
    }
}

/// Regression: who had asked read that it was answered, and no word of the answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_a_file_did_not_reach_who_asked_if_the_model_had_only_a_directive_for_them() {
    let team = Team::new(&ENGLISH, "auto").await;
    let directive = "```escalate\nrepo: erp\nquestion: Which accountant signs travel vouchers?\n```";
    team.anthropic.when(ARRIVED, Behaviour::answer(directive));
    let gateway = team.connect().await;
    let (apart, _) = Apart::ask(&team).await;
    team.slack.dm_with_file(CONTACT, "", Upload::new("shares.csv", "text/csv", "sales,60\npress,40\n"));
    let answer = apart.passed_on().await;
    assert!(answer.text.contains("shares.csv") && answer.text.contains("sales,60"), "{answer:?}");
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(team.home.events("escalate.triggered").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_attached_to_a_question_back_or_forwarded_with_its_reply_was_lost() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let (apart, _) = Apart::ask(&team).await;
    verdict(&team, "Which of these?", "question");
    verdict(&team, "As she says", "reply");
    team.slack.dm_with_file(CONTACT, "Which of these?", Upload::new("months.txt", "text/plain", "March\nApril"));
    let back = apart.in_dm(ASKER, "question back", |message| message.text.contains("> Which of these?")).await;
    assert!(back.text.contains("months.txt") && back.text.contains("April"), "{}", back.text);
    let forwarded = json!({"attachments": [
        {"is_share": true, "author_name": "Ann", "text": "April, and no other"},
        {"title": "A page", "title_link": "https://example.org", "text": "A preview"},
    ]});
    team.slack.dm_with(ASKER, "As she says: https://example.org", forwarded);
    let told = apart.in_dm(CONTACT, "reply", |message| message.text.contains("> As she says")).await;
    assert!(told.text.contains("April, and no other") && told.text.contains("Ann"), "{}", told.text);
    assert!(!told.text.contains("preview"), "{}", told.text);
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_loses_no_answer_and_repeats_none() {
    let team = Team::under(rules_for_kills(), &CHINESE, "auto").await;
    let mut moments = Moments::new();
    let mut gateway = team.connect().await;
    let asked = team.slack.dm(ASKER, CHINESE.question);
    let apart = Apart { team: &team, asked };
    for _ in 0..3 {
        moments.pass(Duration::from_millis(120)).await;
        gateway.kill();
        gateway = apart.team.connect().await;
    }
    let asking = apart.asking(CONTACT).await;
    apart.asking(OTHER_CONTACT).await;
    apart.team.slack.dm_in_thread(CONTACT, CHINESE.reply, Some(&asking.ts));
    for _ in 0..4 {
        moments.pass(Duration::from_millis(150)).await;
        gateway.kill();
        gateway = apart.team.connect().await;
    }
    apart.passed_on().await;
    apart.in_dm(CONTACT, "notice", |message| message.text.starts_with(":inbox_tray:")).await;
    apart.in_dm(OTHER_CONTACT, "word", |message| message.by_bot && message.thread_ts.is_some()).await;
    // All of that may be an earlier one's: the last one has to be there before it can end in order.
    apart.team.anthropic.when("Still there?", Behaviour::answer("Yes."));
    let probe = apart.team.slack.dm("U0PROBE", "Still there?");
    apart.team.slack.await_reply(&probe, PATIENCE).await.expect("a reply");
    assert!(gateway.terminate().success());
    for contact in [CONTACT, OTHER_CONTACT] {
        let asks = |message: &Message| message.by_bot && message.text.contains("想請您協助");
        assert_eq!(apart.count(contact, asks), 1, "{:#?}", apart.team.slack.messages(&dm_channel(contact)));
    }
    assert_eq!(apart.count(ASKER, |message| message.text.contains(CHINESE.has_answered)), 1);
    assert_eq!(apart.count(CONTACT, |message| message.text.starts_with(":inbox_tray:")), 1);
    assert_eq!(apart.team.atoms().len(), 1);
    apart.team.behaved();
}
