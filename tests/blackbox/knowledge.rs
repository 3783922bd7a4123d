//! The knowledge loop over Slack's protocol (specification 003 §7 to §10): a question that nobody's documents answer
//! goes to the people who know, what they say reaches who asked, and, once approved, everybody else.

use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    postgres,
    slack::Message,
};
use serde_json::json;

use self::team::{
    ARRIVED, ASKER, CHANNEL, CHINESE, CONTACT, CURATOR, ENGLISH, FORWARDED, OTHER_CONTACT, Story, Team, in_thread,
};
use crate::{
    receipts,
    support::{Home, PATIENCE, Running, finish, of_type, question},
    workspace::Gateway,
};

mod mishaps;
pub mod team;

/// The loop from the question to the next person's answer, and back again.
async fn the_loop_closes(story: &'static Story, tools: &str) {
    let team = Team::new(story, tools).await;
    let gateway = team.connect().await;

    let (asked, put) = team.escalate().await;
    assert_eq!(put.notified(), [format!("<@{CONTACT}>"), format!("<@{OTHER_CONTACT}>"), format!("<@{ASKER}>")]);
    assert!(put.text.contains(story.forwarded) && put.text.contains(story.reason), "{}", put.text);
    let told = team.slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    assert!(told.text.contains(story.forwarded_notice), "{}", told.text);
    assert!(!told.text.contains("escalate"), "{}", told.text);

    // Somebody who was not asked says something in between.
    team.anthropic.when("lunch", Behaviour::answer("Enjoy."));
    let aside = team.slack.mention(CHANNEL, "U0BYSTANDER", "lunch?", Some(&asked.ts));
    let enjoy = team.slack.await_reply(&aside, PATIENCE).await.expect("a reply");
    assert_eq!(enjoy.text, "Enjoy.");
    assert_eq!(team.atoms(), []);

    team.reply(CONTACT, &asked);
    let answer = team.passed_on(&asked).await;
    assert!(answer.text.starts_with(&format!("<@{ASKER}> ")) && answer.text.ends_with(story.answer), "{answer:?}");
    assert_eq!(answer.notified(), [format!("<@{ASKER}>"), format!("<@{CONTACT}>")]);
    let notice = team.notice(&asked).await;
    assert!(notice.text.contains(story.forwarded), "{}", notice.text);
    assert_eq!(notice.notified(), [format!("<@{CONTACT}>"), format!("<@{CONTACT}>")], "whose word is asked for");
    assert_eq!(team.slack.placeholders(CHANNEL), []);

    let pending = team.home.run(&["--json", "atoms", "list", "--pending"], "").ok().json();
    let id = pending[0]["id"].as_str().expect("one atom is pending").to_owned();
    assert!(notice.text.contains(&id), "{}", notice.text);
    let [(path, atom)] = team.atoms().try_into().expect("one atom");
    assert!(path.starts_with(team.home.path().join("knowledge/erp")), "{}", path.display());
    assert!(atom.contains("status: pending") && atom.contains("expiresAt: "), "{atom}");
    assert!(atom.contains(&format!("{CHANNEL}:{}", asked.ts)), "{atom}");
    assert!(atom.contains(&format!("contributorUserId: {CONTACT}")), "{atom}");
    assert!(atom.contains(&format!("## Answer\n\n{}\n", story.reply)), "word for word: {atom}");
    assert!(story.tags.iter().all(|tag| atom.contains(tag)) && atom.contains(story.summary), "{atom}");

    let (request, _) = team.ask_similar("U0EARLY").await;
    assert!(!request.body.to_string().contains(&id), "what is pending is not shown");

    team.react(CONTACT, &notice, "white_check_mark").await;
    let wanted = |message: &Message| message.ts == notice.ts && message.text.contains(story.approved);
    team.message("approval", wanted).await;
    assert!(team.atom().contains("status: approved") && !team.atom().contains("expiresAt"), "{}", team.atom());
    let (request, reply) = team.ask_similar("U0NEXT").await;
    let said = request.said_now();
    assert!(said.contains(&id) && said.contains(story.reply) && said.ends_with(story.similar), "{said}");
    assert_eq!(reply, story.answer_to_similar);

    team.react(CONTACT, &notice, "x").await;
    let wanted = |message: &Message| message.ts == notice.ts && message.text.contains(story.rejected);
    team.message("rejection", wanted).await;
    assert_eq!(team.atoms(), []);
    let (request, _) = team.ask_similar("U0LATE").await;
    assert!(!request.body.to_string().contains(&id), "what was taken back is not shown");

    team.behaved();
    assert!(gateway.terminate().success());
    let ledger = team.home.ledger();
    let [triggered] = of_type(&ledger, "escalate.triggered")[..] else { panic!("{ledger:#?}") };
    assert_eq!(
        (&triggered["channelId"], &triggered["threadTs"], &triggered["scope"]),
        (&json!(CHANNEL), &json!(asked.ts), &json!("erp"))
    );
    let [absorbed] = of_type(&ledger, "escalate.absorbed")[..] else { panic!("{ledger:#?}") };
    assert_eq!((&absorbed["threadTs"], &absorbed["atomId"]), (&json!(asked.ts), &json!(id)));
    let turns = of_type(&ledger, "turn.processed");
    let by = |actor: &str| *turns.iter().find(|turn| turn["actor"] == actor).expect(actor);
    assert_eq!((&by(ASKER)["audience"], &by(ASKER)["atomsInjected"]), (&json!("pm"), &json!(0)));
    assert_eq!(by(CONTACT)["audience"], "pm", "the answer is written for who asked");
    let next = by("U0NEXT");
    assert_eq!((&next["atomsInjected"], &next["atomIds"]), (&json!(1), &json!([id])));
    assert_eq!((&next["hadMraAsk"], &next["audience"]), (&json!(false), &json!("biz")));
    assert_eq!(by("U0EARLY")["atomsInjected"], 0);
    assert_eq!(of_type(&ledger, "atom.approved").len(), 1);
    assert_eq!(of_type(&ledger, "atom.rejected").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loop_closes_in_chinese() {
    the_loop_closes(&CHINESE, "auto").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loop_closes_in_english_with_fenced_directives() {
    the_loop_closes(&ENGLISH, "fenced").await;
}

/// Specification 003 §4.
#[test]
fn an_atom_is_shown_with_the_message_that_it_answers_and_not_stored() {
    let (home, anthropic) = (Home::new(), Anthropic::start_blocking());
    receipts::plant(&home);
    (0..2).for_each(|_| anthropic.push(Behaviour::answer("Yes.")));
    let input = [question("Ev1", "Where is the scope of sales performances defined?"), question("Ev2", "Thanks.")];
    finish(home.asking(&anthropic, &[]), &input.join("\n")).ok();
    let requests = anthropic.requests();
    let shown: Vec<bool> =
        requests.iter().map(|request| request.body.to_string().contains("In app/models/sales.rb.")).collect();
    assert_eq!(shown, [true, false], "{requests:#?}");
    let stored = home.run(&["sessions", "show", "console:dm:U1", "--full"], "").ok().stdout;
    assert!(stored.contains("sales performances") && !stored.contains("app/models/sales.rb"), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_host_of_a_database_has_learnt_the_next_one_knows() {
    let Some(server) = postgres::server() else { return };
    let store = server.database();
    let team = Team::new(&CHINESE, "auto").await;
    let other = Home::new();
    std::fs::copy(team.home.path().join("gateway.json"), other.path().join("gateway.json")).expect("the same settings");
    let connect = async |home: &Home| {
        let gateway = Gateway::asking(home, &team.slack, &team.anthropic, &["--store", &store]);
        assert!(team.slack.await_connected(PATIENCE).await);
        gateway
    };
    let gateway = connect(&team.home).await;
    let notice = team.learn().await;
    assert!(gateway.terminate().success());
    // Who takes over has the atom, and knows which message asks for a verdict on it.
    let gateway = connect(&other).await;
    team.react(CONTACT, &notice, "white_check_mark").await;
    team.message("approval", |message| message.ts == notice.ts && message.text.contains(CHINESE.approved)).await;
    let (request, _) = team.ask_similar("U0NEXT").await;
    assert!(request.said_now().contains(CHINESE.reply), "{}", request.said_now());
    // A verdict that is given at a terminal while nobody runs is the next one's, too.
    assert!(gateway.terminate().success());
    assert!(team.atom().contains("status: pending"), "{}", team.atom());
    let gateway = connect(&team.home).await;
    assert!(team.atom().contains("status: approved"), "{}", team.atom());
    assert!(gateway.terminate().success());
    let id = other.run(&["--json", "atoms", "list"], "").ok().json()[0]["id"].as_str().expect("an atom").to_owned();
    other.run(&["atoms", "reject", &id], "").ok();
    assert!(connect(&other).await.terminate().success());
    let _gateway = connect(&team.home).await;
    assert_eq!(team.atoms(), []);
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_contributors_first_verdict_counts() {
    let team = Team::new(&CHINESE, "auto").await;
    let _gateway = team.connect().await;
    let notice = team.learn().await;
    for (user, reaction) in [(ASKER, "white_check_mark"), (OTHER_CONTACT, "x"), ("U0ITX", "x"), (CONTACT, "eyes")] {
        team.react(user, &notice, reaction).await;
    }
    assert!(team.atom().contains("status: pending"), "{}", team.atom());

    team.react(CONTACT, &notice, "white_check_mark").await;
    team.react(CONTACT, &notice, "white_check_mark").await;
    let approved = team.message("approval", |message| message.text.contains(CHINESE.approved)).await;
    assert!(team.atom().contains("status: approved"), "{}", team.atom());
    team.react(CONTACT, &notice, "x").await;
    let wanted = |message: &Message| message.ts == notice.ts && message.text.contains(CHINESE.rejected);
    let rejected = team.message("rejection", wanted).await;
    assert_eq!(rejected.history.len(), approved.history.len() + 1, "a verdict is told once: {rejected:#?}");
    for reaction in ["white_check_mark", "x"] {
        team.react(CONTACT, &notice, reaction).await;
    }
    assert_eq!(team.atoms(), []);

    let notice = team.learn().await;
    let [(path, _)] = team.atoms().try_into().expect("one atom");
    std::fs::remove_file(path).expect("somebody deletes it");
    team.react(CONTACT, &notice, "white_check_mark").await;
    assert_eq!(team.atoms(), []);
    let now = team.message("notice", |message| message.ts == notice.ts).await;
    assert_eq!(now.text, notice.text);
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_contacts_at_once_make_one_atom() {
    let team = Team::new(&CHINESE, "auto").await;
    let gateway = team.connect().await;
    // What comes after the awaited answer is a message like any other.
    team.anthropic.when(CHINESE.reply, Behaviour::answer("Thanks, noted."));
    team.anthropic.when(ARRIVED, Behaviour::answer(CHINESE.answer));
    let curated =
        json!({"kind": "answer", "question": CHINESE.forwarded, "summary": CHINESE.summary, "tags": CHINESE.tags});
    team.anthropic.when(CURATOR, Behaviour::answer(curated.to_string()));
    let (asked, _) = team.escalate().await;
    team.reply(CONTACT, &asked);
    team.reply(OTHER_CONTACT, &asked);
    team.passed_on(&asked).await;
    team.message("reply to the second", |message| message.text == "Thanks, noted.").await;
    team.notice(&asked).await;
    assert_eq!(team.atoms().len(), 1);
    team.behaved();
    assert!(gateway.terminate().success());
    assert_eq!(of_type(&team.home.ledger(), "escalate.absorbed").len(), 1);
    assert_eq!(team.slack.placeholders(CHANNEL), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_passed_on_whole() {
    let team = Team::new(&CHINESE, "auto").await;
    let _gateway = team.connect().await;
    let long = format!("{}完", "部門分配頁籤，財務每月一號更新。\n".repeat(300));
    team.anthropic.when(ARRIVED, Behaviour::answer(&long));
    let (asked, _) = team.escalate().await;
    team.reply(CONTACT, &asked);
    team.message("end of the answer", |message| message.by_bot && message.text.ends_with('完')).await;
    team.notice(&asked).await;
    let messages = team.slack.messages(CHANNEL);
    let of_thread = messages.iter().filter(|message| message.by_bot && in_thread(message, &asked));
    let passed_on: String = of_thread
        .filter(|message| !message.text.starts_with(":inbox_tray:") && !message.text.contains(CHINESE.please_reply))
        .map(|message| message.text.as_str())
        .collect();
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    assert!(letters(&passed_on).ends_with(&letters(&long)), "{passed_on}");
    team.behaved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_pmk_left_waiting_gets_its_answer() {
    let team = Team::new(&CHINESE, "auto").await;
    let asked = team.slack.mention(CHANNEL, ASKER, CHINESE.question, None);
    let folder = team.home.path().join("gateway/slack/escalations");
    std::fs::create_dir_all(&folder).expect("a folder");
    // An older pmk kept neither asker nor scope.
    let marker = json!({"channelId": CHANNEL, "threadTs": asked.ts, "question": CHINESE.forwarded,
        "pendingSince": 1_777_342_416_133_u64, "mentionedUserIds": [CONTACT]});
    std::fs::write(folder.join(format!("{CHANNEL}__{}.json", asked.ts)), marker.to_string()).expect("a marker");
    team.home.run(&["escalation", "import"], "").ok();
    let _gateway = team.connect().await;
    team.reply(CONTACT, &asked);
    let answer = team.passed_on(&asked).await;
    assert!(answer.text.starts_with("您先前的問題") && answer.text.ends_with(CHINESE.answer), "{}", answer.text);
    team.notice(&asked).await;
    let [(path, _)] = team.atoms().try_into().expect("one atom");
    assert!(path.starts_with(team.home.path().join("knowledge/general")), "{}", path.display());
}

/// Regression: nothing was said to be waiting where it could not be read, and that was a success.
#[test]
fn threads_of_pmk_that_cannot_be_read_were_imported_with_success() {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "en"}).to_string());
    let folder = home.path().join("gateway/slack/escalations");
    std::fs::create_dir_all(&folder).expect("a folder");
    let torn = folder.join("C1__1.1.json");
    std::fs::write(&torn, "{").expect("a marker");
    let told = home.run(&["escalation", "import"], "");
    assert_eq!(told.status.code(), Some(1), "{}", told.stderr);
    assert!(told.stderr.contains("error: 1 of 1 waiting threads not taken over\n  hint: "), "{}", told.stderr);
    assert!(!told.stderr.contains("no threads are waiting"), "{}", told.stderr);
    let marker = json!({"channelId": "C1", "threadTs": "2.2", "question": ENGLISH.forwarded,
        "pendingSince": 1_777_342_416_133_u64, "mentionedUserIds": [CONTACT]});
    std::fs::write(folder.join("C1__2.2.json"), marker.to_string()).expect("a marker");
    let told = home.run(&["--json", "escalation", "import"], "");
    let expected = json!({"found": 1, "imported": 1, "unreadable": 1});
    assert_eq!((told.status.code(), told.json()), (Some(1), expected), "{}", told.stderr);
    std::fs::remove_file(torn).expect("removed");
    home.run(&["escalation", "import"], "").ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_the_model_or_a_contact_writes_pings_anybody_else() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let shout = format!("<!channel> <!here> <@U0OUT> <!subteam^S1> <@{CONTACT}|x> &lt;!everyone&gt;");
    let question = format!("{shout}\n{}\n{}", ENGLISH.forwarded, ENGLISH.question);
    let input = json!({"repo": "erp", "question": question, "reason": shout});
    team.anthropic.when(ENGLISH.question, Behaviour::calls([("escalate", input)]));
    team.anthropic.when(FORWARDED, Behaviour::answer(&shout));
    team.anthropic.when(ARRIVED, Behaviour::answer(&shout));
    let curated = json!({"kind": "answer", "question": shout, "summary": shout, "tags": [shout]});
    team.anthropic.when(CURATOR, Behaviour::answer(curated.to_string()));
    let (asked, put) = team.escalate().await;
    let told = team.slack.await_reply(&asked, PATIENCE).await.expect("a reply");
    team.slack.mention(CHANNEL, CONTACT, &format!("{shout} {}", ENGLISH.reply), Some(&asked.ts));
    let answer = team.passed_on(&asked).await;
    let notice = team.notice(&asked).await;
    let [asker, contact, other] = [ASKER, CONTACT, OTHER_CONTACT].map(|user| format!("<@{user}>"));
    assert_eq!(put.notified(), [contact.clone(), other, asker.clone()]);
    assert_eq!(told.text.matches('<').count(), 0, "{}", told.text);
    assert_eq!(answer.notified(), [asker, contact.clone()]);
    assert_eq!(notice.text.matches("<@").count(), notice.text.matches(&contact).count(), "{}", notice.text);
    assert!(!notice.text.contains("<!"), "{}", notice.text);
    team.behaved();
}

#[test]
fn contacts_that_are_added_are_asked_at_once() {
    let home = Home::new();
    home.write("gateway.json", json!({"version": 1, "language": "en", "tools": "fenced"}).to_string());
    let anthropic = Anthropic::start_blocking();
    let directive = format!("```escalate\nrepo: erp\nquestion: {}\n```", ENGLISH.forwarded);
    anthropic.when(ENGLISH.question, Behaviour::answer(directive));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    let ask = |event: &str| json!({"user": ASKER, "text": ENGLISH.question, "event_id": event}).to_string();
    gateway.say(&ask("Ev1"));
    let reply = gateway.next_of("reply");
    assert!(reply["text"].as_str().is_some_and(|text| text.contains("nobody is set up to be asked")), "{reply}");
    gateway.next_of("turn");
    home.run(&["escalation", "add", "erp", CONTACT], "").ok();
    gateway.say(&ask("Ev2"));
    let put = gateway.next_of("escalation");
    assert!(put["text"].as_str().is_some_and(|text| text.starts_with(&format!("<@{CONTACT}> "))), "{put}");
    assert!(gateway.end().0.success());
}

#[test]
fn a_script_drives_the_loop_in_the_console() {
    let home = Home::new();
    let config = json!({"version": 1, "language": "en", "escalation": {"default": [CONTACT]}});
    home.write("gateway.json", config.to_string());
    let anthropic = Anthropic::start_blocking();
    anthropic.when(ENGLISH.question, Behaviour::calls([("escalate", json!({"question": ENGLISH.forwarded}))]));
    anthropic.when(FORWARDED, Behaviour::answer("I have asked."));
    anthropic.when(ARRIVED, Behaviour::answer(ENGLISH.answer));
    let curated =
        json!({"kind": "answer", "question": ENGLISH.forwarded, "summary": ENGLISH.summary, "tags": ENGLISH.tags});
    anthropic.when(CURATOR, Behaviour::answer(curated.to_string()));
    anthropic.when(ENGLISH.similar, Behaviour::answer(ENGLISH.answer_to_similar));
    let mut gateway = Running::start(home.asking(&anthropic, &[]));

    gateway.say(&json!({"user": ASKER, "channel": "C1", "text": ENGLISH.question, "event_id": "Ev1"}).to_string());
    let put = gateway.next_of("escalation");
    assert_eq!(put["thread_ts"], "Ev1", "{put}");
    let reply = json!({"user": CONTACT, "channel": "C1", "thread_ts": "Ev1", "text": ENGLISH.reply, "event_id": "Ev2"});
    gateway.say(&reply.to_string());
    let answer = gateway.next_of("reply");
    assert!(answer["text"].as_str().is_some_and(|text| text.ends_with(ENGLISH.answer)), "{answer}");
    let notice = gateway.next_of("notice");
    let verdict = json!({"type": "reaction", "user": CONTACT, "channel": "C1", "ts": notice["ts"],
        "reaction": "white_check_mark"});
    gateway.say(&verdict.to_string());
    let shown = gateway.next_of("notice");
    assert_eq!(shown["ts"], notice["ts"]);
    gateway.say(&json!({"user": "U3", "text": ENGLISH.similar, "event_id": "Ev3"}).to_string());
    assert_eq!(gateway.next_of("reply")["text"], ENGLISH.answer_to_similar);
    assert_eq!(gateway.next_of("turn")["atoms"].as_array().map(Vec::len), Some(1));
    assert!(gateway.end().0.success());
    assert!(anthropic.requests().last().is_some_and(|last| last.said_now().contains(ENGLISH.reply)));
}
