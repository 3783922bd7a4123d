//! `/pmk …`: orders to the gateway in Slack, by slash command and by text, and on the console. None of them is ever a
//! question to the model.

use pmk_stand_ins::slack::{Fault, Message, SlackRules, dm_channel};
use serde_json::{Value, json};

use crate::{
    knowledge::team::{CONTACT, ENGLISH, Team, in_thread},
    operator::terminal::{Terminal, admin_lines},
    support::{Home, PATIENCE, of_type, replies, until_async},
    workspace::{Scene, rules, rules_for_kills},
};

const ADMIN: &str = "U0BOSS";
const NOBODY: &str = "U0NEW";

/// A home with one admin.
async fn office_under(rules: SlackRules) -> Scene {
    Scene::new(rules, &json!({"version": 1, "language": "en", "admins": [ADMIN]})).await
}

async fn office() -> Scene {
    office_under(rules()).await
}

impl Scene {
    /// What is answered to a text.
    async fn say(&self, user: &str, text: &str) -> String {
        let asked = self.slack.dm(user, text);
        self.slack.await_reply(&asked, PATIENCE).await.unwrap_or_else(|| panic!("no answer to `{text}`")).text
    }

    /// What is answered to a slash command, in this channel.
    async fn slash(&self, user: &str, channel: &str, text: &str) -> Message {
        let before = self.slack.replies(channel).len();
        let envelope = self.slack.slash(user, channel, text);
        assert!(self.slack.await_ack(&envelope, PATIENCE).await.is_some(), "`{text}` is not acknowledged");
        assert!(self.slack.await_replies(channel, before + 1, PATIENCE).await, "no answer to `{text}`");
        self.slack.replies(channel).remove(before)
    }

    fn config(&self) -> Value {
        let text = std::fs::read_to_string(self.home.path().join("gateway.json")).expect("gateway.json");
        serde_json::from_str(&text).expect("JSON")
    }

    fn asked_no_model(&self) {
        self.behaved();
        assert!(self.anthropic.requests().is_empty(), "the model was asked");
    }
}

/// Once, it went to the model as a question.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_begins_with_pmk_is_no_question_to_the_model() {
    let office = office().await;
    let _gateway = office.start().await;
    let help = office.say(ADMIN, " /pmk admin help").await;
    assert!(help.contains("/pmk admin audience set @user"), "{help}");
    office.asked_no_model();
}

/// Once, it was acknowledged, and nothing was said.
#[tokio::test(flavor = "multi_thread")]
async fn a_slash_command_is_answered() {
    let office = office().await;
    let _gateway = office.start().await;
    let help = office.slash(ADMIN, &dm_channel(ADMIN), "").await.text;
    assert!(help.contains("/pmk admin help"), "{help}");
    office.asked_no_model();
}

/// What the log says, without when.
fn logged(home: &Home) -> Vec<String> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let shown = |line: Value| {
        let [actor, origin, action, args, reason] =
            ["actor", "origin", "action", "args", "reason"].map(|key| text(&line, key));
        format!("{actor} {origin} {action} [{args}] {} {reason}", line["ok"]).trim_end().to_owned()
    };
    admin_lines(home).into_iter().map(shown).collect()
}

/// Every command on the console, one after the other, as a script reads it.
fn every_command(language: &str) -> String {
    let terminal = Terminal::new();
    terminal.atoms();
    let config = json!({"version": 1, "language": language, "admins": [ADMIN], "defaultIngest": "dir:/srv/notes",
        "mraWorkspace": "/srv/work`space", "escalation": {"default": ["U7"], "repos": {"erp": ["U8", "U9"]}}});
    terminal.home.write("gateway.json", config.to_string());
    let texts = [
        "/pmk",
        "/pmk frob now",
        "/pmk admin",
        "/pmk admin frob",
        "/pmk admin audience",
        "/pmk admin status",
        "/pmk admin audience set <@U1|han> pm",
        "/pmk admin audience set U1 king",
        "/pmk admin audience set-channel <#C1|general> TECH",
        "/pmk admin audience default exec",
        "/pmk admin audience list",
        "/pmk admin audience unset U1",
        "/pmk admin audience unset U1",
        "/pmk admin audience unset-channel C1",
        "/pmk admin escalation add erp @han",
        "/pmk admin escalation add erp U8",
        "/pmk admin escalation add web <@W3>",
        "/pmk admin escalation remove web W3",
        "/pmk admin escalation remove web W3",
        "/pmk admin escalation remove erp U7",
        "/pmk admin escalation list",
        "/pmk admin atoms list",
        "/pmk admin atoms list approved",
        "/pmk admin atoms show 2026-04-28T0213-5388",
        "/pmk admin atoms show 2026-04-28",
        "/pmk admin atoms approve 2026-04-28T0213-5388",
        "/pmk admin atoms reject 2026-04-28T0213-53ff",
        "/pmk admin atoms reject 2026-04-28T0213-53ff",
        "/pmk admin atoms list pending",
        "/pmk admin atoms edit 2026",
        "/pmk admin admins add U2",
        "/pmk admin admins add U2",
        "/pmk admin admins list",
        "/pmk admin admins remove U3",
        "/pmk admin admins remove U2",
        "/pmk admin admins remove U0BOSS",
        "/pmk admin audit 5",
        "/pmk admin audit 0",
    ];
    let lines = said_by_the_admin(&terminal.home, &texts);
    let mut shown = String::new();
    for (number, text) in texts.iter().enumerate() {
        let of_it: Vec<Value> =
            lines.iter().filter(|line| line["event_id"] == format!("Ev{number}")).cloned().collect();
        assert_eq!(of_type(&of_it, "reply").len(), 1, "{text}: {of_it:?}");
        assert_eq!(of_type(&of_it, "turn")[0]["command"], "pmk", "{text}");
        shown.push_str(&format!("› {text}\n{}\n\n", replies(&of_it)[0]));
    }
    shown.push_str(&terminal.config());
    shown.push_str(&logged(&terminal.home).join("\n"));
    without_times(&shown)
}

/// What a gateway prints if the admin says these one after the other, as `Ev0`, `Ev1` and so on.
fn said_by_the_admin(home: &Home, texts: &[&str]) -> Vec<Value> {
    let said = |(number, text): (usize, &&str)| {
        json!({"user": ADMIN, "channel": "D1", "event_id": format!("Ev{number}"), "text": text}).to_string()
    };
    let input: Vec<String> = texts.iter().enumerate().map(said).collect();
    home.run(&["run", "--model", "sim"], &input.join("\n")).ok().lines()
}

/// The times of the log, which differ from run to run.
fn without_times(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("Z `U0BOSS`") {
        Some((before, after)) => {
            format!("{} [time] `U0BOSS`{after}", &before[..before.len() - "2026-04-28T02:13:36.133".len() - 1])
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_command_in_english() {
    insta::assert_snapshot!(every_command("en"));
}

#[test]
fn every_command_in_chinese() {
    insta::assert_snapshot!(every_command("zh-TW"));
}

/// Specification 003 §11.
#[test]
fn what_only_the_host_may_do_is_no_command() {
    let terminal = Terminal::new();
    terminal.atoms();
    let config = json!({"version": 1, "language": "en", "admins": [ADMIN], "blocklist": ["U9"]}).to_string();
    terminal.home.write("gateway.json", &config);
    let texts = [
        "/pmk admin init",
        "/pmk admin tokens set xoxb-1",
        "/pmk admin stop",
        "/pmk admin restart",
        "/pmk admin blocklist add U1",
        "/pmk admin blocklist remove U9",
        "/pmk admin atoms edit 2026-04-28T0213-5388",
    ];
    let lines = said_by_the_admin(&terminal.home, &texts);
    let told = replies(&lines);
    assert_eq!(told.len(), texts.len(), "{lines:#?}");
    let refused = [":grey_question: Unknown admin subcommand", "Usage:"];
    assert!(told.iter().all(|told| refused.iter().any(|start| told.starts_with(start))), "{told:#?}");
    assert_eq!(terminal.config(), config);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_slacks_are_understood_and_a_change_holds_at_once() {
    let office = office().await;
    let _gateway = office.start().await;
    let dm = dm_channel(ADMIN);
    assert!(
        office.slash(ADMIN, &dm, "admin admins add <@U0NEW|newcomer>").await.text.contains("`U0NEW` is now an admin")
    );
    // The new one is one from now on.
    assert!(office.say(NOBODY, "/pmk admin audience set-channel <#C0ABC|general> exec").await.contains("`C0ABC`"));
    assert_eq!(office.config()["audience"]["channels"], json!({"C0ABC": "exec"}));
    let expected = ["U0BOSS slack admins.add [U0NEW] true", "U0NEW slack audience.set-channel [C0ABC exec] true"];
    assert_eq!(logged(&office.home), expected);
    office.asked_no_model();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_administers_in_a_channel_or_without_being_an_admin() {
    let office = office().await;
    let _gateway = office.start().await;
    let before = office.config();
    let asked = office.slack.mention("C1", ADMIN, "/pmk admin admins add U0NEW", None);
    let said = office.slack.await_reply(&asked, PATIENCE).await.expect("an answer").text;
    assert!(said.starts_with(":no_entry_sign:") && said.contains("only in a direct message (DM)"), "{said}");
    let said = office.slash(NOBODY, "C2", "admin admins list").await.text;
    assert!(said.starts_with(":no_entry_sign:") && said.contains("only in a direct message (DM)"), "{said}");
    let said = office.slash(NOBODY, &dm_channel(NOBODY), "admin admins add U0NEW").await.text;
    assert!(said.starts_with(":no_entry_sign: For admins only"), "{said}");
    assert_eq!(office.config(), before);
    let expected = [
        "U0BOSS slack admins.add [U0NEW] false not a direct message",
        "U0NEW slack admins.list [] false not a direct message",
        "U0NEW slack admins.add [U0NEW] false not an admin",
    ];
    assert_eq!(logged(&office.home), expected);
    let refused = office.home.await_events("access.refused", 3);
    assert!(refused.iter().all(|event| event["action"] == "administer"), "{refused:?}");
    // What is open to all is so everywhere.
    assert!(office.slash(NOBODY, "C3", "help").await.text.contains("/pmk help"));
    office.asked_no_model();
}

/// Once, an app that held a token of an admin administered in their name.
#[tokio::test(flavor = "multi_thread")]
async fn an_app_with_a_token_of_an_admin_administered_in_their_name() {
    let office = office().await;
    let _gateway = office.start().await;
    let before = office.config();
    let by_app = || json!({"bot_id": "B77"});
    let asked = office.slack.dm_with(ADMIN, "/pmk admin admins add U0NEW", by_app());
    let said = office.slack.await_reply(&asked, PATIENCE).await.expect("an answer").text;
    assert!(said.starts_with(":no_entry_sign:") && said.contains("came from an app"), "{said}");
    assert_eq!(office.config(), before);
    assert_eq!(logged(&office.home), ["U0BOSS slack admins.add [U0NEW] false written by an app"]);
    assert_eq!(office.home.await_events("access.refused", 1)[0]["reason"], "by-app");
    // What is open to all is so to apps, too, and the admin still administers.
    let asked = office.slack.dm_with(ADMIN, "/pmk help", by_app());
    let said = office.slack.await_reply(&asked, PATIENCE).await.expect("an answer").text;
    assert!(said.contains("/pmk admin help"), "{said}");
    assert!(office.say(ADMIN, "/pmk admin admins list").await.contains(ADMIN));
    office.asked_no_model();
}

/// Once, the log had what others were refused, and not what people on the blocklist were.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_blocked_person_tried_to_change_was_not_in_the_log() {
    let config = json!({"version": 1, "language": "en", "admins": [ADMIN], "blocklist": [NOBODY]});
    let office = Scene::new(rules(), &config).await;
    let gateway = office.start().await;
    office.slack.dm(NOBODY, "/pmk admin admins add U0NEW");
    until_async("the log", || (!logged(&office.home).is_empty()).then_some(())).await;
    assert_eq!(logged(&office.home), ["U0NEW slack admins.add [U0NEW] false on the blocklist"]);
    assert!(gateway.terminate().success());
    assert!(office.slack.replies(&dm_channel(NOBODY)).is_empty(), "they are not answered");
    office.asked_no_model();
}

/// Slack lets everybody use a slash command everywhere, also where the bot may not post.
#[tokio::test(flavor = "multi_thread")]
async fn a_slash_command_where_the_bot_is_not_is_answered_in_a_direct_message() {
    let office = office().await;
    let _gateway = office.start().await;
    for channel in ["C0CLOSED", "D0OTHERS"] {
        office.slack.keep_out(channel);
        let before = office.slack.replies(&dm_channel(NOBODY)).len();
        let envelope = office.slack.slash(NOBODY, channel, "help");
        assert!(office.slack.await_ack(&envelope, PATIENCE).await.is_some());
        assert!(office.slack.await_replies(&dm_channel(NOBODY), before + 1, PATIENCE).await, "{channel}");
    }
    assert_eq!(office.slack.replies(&dm_channel(NOBODY)).len(), 2);
    office.asked_no_model();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_command_that_comes_twice_is_carried_out_once() {
    let office = office().await;
    let _gateway = office.start().await;
    let dm = dm_channel(ADMIN);
    let envelope = office.slack.slash(ADMIN, &dm, "admin admins add U2");
    assert!(office.slack.await_replies(&dm, 1, PATIENCE).await);
    office.slack.redeliver(&envelope);
    until_async("the second acknowledgement", || (office.slack.acks().len() >= 2).then_some(())).await;
    // Whatever came before it in the conversation is answered before it.
    assert!(office.say(ADMIN, "/pmk help").await.contains("/pmk help"));
    assert_eq!(office.slack.replies(&dm).len(), 2);
    assert_eq!(logged(&office.home), ["U0BOSS slack admins.add [U2] true"]);
    office.asked_no_model();
}

/// Regression: it was taken for one that an earlier attempt might have carried out, although that had asked the model.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_a_question_became_was_answered_as_done_although_it_had_failed() {
    let office = office().await;
    let _gateway = office.start().await;
    office.anthropic.hold();
    let asked = office.slack.dm(ADMIN, "who is asked about the pool?");
    until_async("a request", || office.anthropic.requests().pop()).await;
    office.slack.edit(&asked, "/pmk admin escalation remove nopool U3");
    let said = office.slack.await_reply(&asked, PATIENCE).await.expect("an answer").text;
    assert_eq!(said, ":x: There is no pool `nopool`");
    assert_eq!(logged(&office.home), ["U0BOSS slack escalation.remove [nopool U3] false there is no pool `nopool`"]);
    office.anthropic.release();
    office.behaved();
}

/// A contact may look something up before answering.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_a_contact_is_not_the_awaited_answer() {
    let team = Team::new(&ENGLISH, "auto").await;
    let _gateway = team.connect().await;
    let (asked, _) = team.escalate().await;
    team.slack.mention("C1", CONTACT, "/pmk help", Some(&asked.ts));
    let is_help = |message: &Message| in_thread(message, &asked) && message.text.contains("/pmk admin help");
    team.message("help", is_help).await;
    assert!(team.atoms().is_empty());
    team.reply(CONTACT, &asked);
    assert!(team.passed_on(&asked).await.text.ends_with(ENGLISH.answer));
    team.behaved();
}

/// The change is made, the gateway dies before anybody is told of it, and the next one tells them. The change is made
/// and noted once, although it would be refused the second time.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_killed_between_a_command_and_its_answer_answers_it_after_all() {
    for by_slash in [true, false] {
        let office = office_under(rules_for_kills()).await;
        let gateway = office.start().await;
        let dm = dm_channel(ADMIN);
        office.slack.fault("chat.postMessage", Fault::Stall);
        match by_slash {
            true => drop(office.slack.slash(ADMIN, &dm, "admin escalation add erp U2")),
            false => drop(office.slack.dm(ADMIN, "/pmk admin escalation add erp U2")),
        }
        until_async("the answer on its way", || (!office.slack.calls("chat.postMessage").is_empty()).then_some(()))
            .await;
        gateway.kill();
        office.slack.heal("chat.postMessage");
        let _gateway = office.start().await;
        assert!(office.slack.await_replies(&dm, 1, PATIENCE).await, "by slash: {by_slash}");
        assert!(office.say(ADMIN, "/pmk help").await.contains("/pmk help"));
        let said: Vec<String> = office.slack.replies(&dm).into_iter().map(|reply| reply.text).collect();
        assert!(said.len() == 2 && said[0].contains("`U2` is now in the pool `erp`"), "{said:?}");
        assert_eq!(logged(&office.home), ["U0BOSS slack escalation.add [erp U2] true"]);
        assert_eq!(office.config()["escalation"]["repos"]["erp"], json!(["U2"]));
        office.asked_no_model();
    }
}

/// Killed at any moment: what was acknowledged is answered, once, and is carried out once.
#[tokio::test(flavor = "multi_thread")]
async fn commands_survive_kills_at_any_moment() {
    const COMMANDS: usize = 24;
    let office = office_under(rules_for_kills()).await;
    let mut moments = crate::moments::Moments::new();
    let users: Vec<String> = (0..COMMANDS).map(|number| format!("U0N{number}")).collect();
    for users in users.chunks(4) {
        let gateway = office.start().await;
        for user in users {
            // By text: Slack sends it again until it is acknowledged.
            office.slack.dm(ADMIN, &format!("/pmk admin admins add <@{user}>"));
        }
        moments.pass(std::time::Duration::from_millis(60)).await;
        gateway.kill();
    }
    let _gateway = office.start().await;
    let dm = dm_channel(ADMIN);
    assert!(office.slack.await_replies(&dm, COMMANDS, PATIENCE).await, "{:#?}", office.slack.replies(&dm));
    let said: Vec<String> = office.slack.replies(&dm).into_iter().map(|reply| reply.text).collect();
    assert!(said.len() == COMMANDS && said.iter().all(|said| said.ends_with("is now an admin")), "{said:#?}");
    let admins = office.config()["admins"].as_array().expect("a list").len();
    assert_eq!((admins, logged(&office.home).len()), (COMMANDS + 1, COMMANDS), "{:#?}", logged(&office.home));
    office.asked_no_model();
}

/// A socket that dies after a slash command has come in takes the acknowledgement along, and not the answer; one that
/// dies before is told by Slack.
#[tokio::test(flavor = "multi_thread")]
async fn a_slash_command_over_a_cut_socket_is_answered_or_its_failure_told() {
    const AT_ONCE: usize = 6;
    let office = office().await;
    let gateway = office.start().await;
    let dm = dm_channel(NOBODY);
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.extend((0..AT_ONCE).map(|_| office.slack.slash(NOBODY, &dm, "help")));
        assert!(office.slack.await_dropped(PATIENCE).await);
        assert!(office.slack.await_connected(PATIENCE).await, "{}", gateway.log());
    }
    let acked = office.slack.acks().iter().filter(|ack| sent.contains(&ack.event_id)).count();
    let helped = || office.slack.replies(&dm).iter().filter(|reply| reply.text.contains("/pmk admin help")).count();
    until_async("the answers to all that were acknowledged", || (helped() >= acked).then_some(())).await;
    assert!(helped() <= sent.len(), "{:#?}", office.slack.replies(&dm));
    assert_eq!(office.slack.violations(), Vec::<String>::new());
}

/// Two admins take each other away at the same moment: one of them stays.
#[tokio::test(flavor = "multi_thread")]
async fn two_admins_at_once_never_leave_none() {
    let office = office().await;
    let config = json!({"version": 1, "language": "en", "admins": [ADMIN, NOBODY]});
    office.home.write("gateway.json", config.to_string());
    let _gateway = office.start().await;
    let remove = |user: &str, other: &str| office.slack.dm(user, &format!("/pmk admin admins remove {other}"));
    let asked = [remove(ADMIN, NOBODY), remove(NOBODY, ADMIN)];
    for asked in &asked {
        assert!(office.slack.await_reply(asked, PATIENCE).await.is_some());
    }
    let admins = office.config()["admins"].clone();
    assert!(admins == json!([ADMIN]) || admins == json!([NOBODY]), "{admins}");
    let done: Vec<bool> = admin_lines(&office.home).iter().map(|line| line["ok"] == true).collect();
    assert_eq!(done.iter().filter(|done| **done).count(), 1, "{:?}", logged(&office.home));
    assert_eq!(done.len(), 2);
    office.asked_no_model();
}

/// Changes of the host and of people in Slack at the same time: none is lost.
#[tokio::test(flavor = "multi_thread")]
async fn changes_from_both_sides_at_once_are_all_made() {
    let office = office().await;
    let _gateway = office.start().await;
    let commands: Vec<_> = (0..6)
        .map(|number| {
            let user = format!("U0H{number}");
            office.home.command(&["escalation", "add", "erp", &user]).spawn().expect("the program starts")
        })
        .collect();
    for number in 0..6 {
        office.slack.dm(ADMIN, &format!("/pmk admin escalation add erp U0S{number}"));
    }
    for mut command in commands {
        assert!(command.wait().expect("it is stopping").success());
    }
    assert!(office.slack.await_replies(&dm_channel(ADMIN), 6, PATIENCE).await);
    let contacts = office.config()["escalation"]["repos"]["erp"].as_array().expect("a pool").len();
    assert_eq!((contacts, logged(&office.home).len()), (12, 12));
    office.asked_no_model();
}
