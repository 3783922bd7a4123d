//! Long replies on their way to Slack: cut, found again, or a file; and nobody waits for a placeholder.

use crate::{
    support::{Home, PATIENCE, until_async},
    workspace::{Gateway, rules},
};
use pmk_stand_ins::{
    anthropic::{Anthropic, Behaviour},
    slack::{Fault, Message, Sent, Slack},
};

/// A workspace, a model that gives one answer, and a home.
struct Scene {
    slack: Slack,
    anthropic: Anthropic,
    home: Home,
}

impl Scene {
    async fn new(answer: &str) -> Scene {
        Scene::waiting(600, answer).await
    }

    /// One in which an answer of Slack's is lost, for which the gateway waits so many seconds.
    async fn losing(answer: &str) -> Scene {
        Scene::waiting(4, answer).await
    }

    async fn waiting(seconds: u64, answer: &str) -> Scene {
        let slack = Slack::start(rules().unlimited().without_statuses()).await;
        let anthropic = Anthropic::start().await;
        anthropic.push(Behaviour::answer(answer));
        let home = Home::new();
        home.write("gateway.json", format!(r#"{{"version": 1, "limits": {{"slackCallSeconds": {seconds}}}}}"#));
        Scene { slack, anthropic, home }
    }

    async fn start(&self) -> Gateway {
        let gateway = Gateway::asking(&self.home, &self.slack, &self.anthropic, &[]);
        assert!(self.slack.await_connected(PATIENCE).await);
        gateway
    }

    /// The replies, once there are that many and the turn is over.
    async fn replies(&self, asked: &Sent, count: usize) -> Vec<Message> {
        self.slack.await_replies(&asked.channel, count, PATIENCE).await;
        self.until("the end of the turn", |scene| !scene.home.events("turn.processed").is_empty()).await;
        assert_eq!(self.slack.violations(), Vec::<String>::new());
        assert_eq!(self.slack.placeholders(&asked.channel).len(), 0, "somebody still waits");
        self.slack.replies(&asked.channel)
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Scene) -> bool) {
        until_async(what, || is_so(self).then_some(())).await;
    }
}

/// An answer of so many paragraphs, of which two make a part.
fn answer(paragraphs: usize) -> String {
    (0..paragraphs)
        .map(|n| format!("第{n}段。{}\n\n", "這個月的廣告預算分配比例需要再確認一次。".repeat(252)))
        .collect()
}

/// Every paragraph is there once, and in order.
fn is_whole(replies: &[Message], paragraphs: usize) {
    let text: String = replies.iter().map(Message::shown).collect();
    let found: Vec<&str> = text.split('第').skip(1).map(|rest| rest.split('段').next().unwrap_or_default()).collect();
    let wanted: Vec<String> = (0..paragraphs).map(|n| n.to_string()).collect();
    assert_eq!(found, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_goes_as_it_is_and_a_cut_code_block_goes_on() {
    let code = "    print(\"<預算>\")\n".repeat(900);
    let scene = Scene::new(&format!("## 結論\n\n**預算：**見 [表](https://a.b/c)\n\n```python\n{code}```\n\n完")).await;
    let _gateway = scene.start().await;
    let asked = scene.slack.dm("U1", "預算？");
    let replies = scene.replies(&asked, 2).await;
    let first = "## 結論\n\n**預算：**見 [表](https://a.b/c)\n\n```python\n    print(\"<預算>\")";
    assert!(replies[0].shown().starts_with(first), "{replies:#?}");
    assert!(replies[0].text.starts_with("*結論*\n\n*預算：*"), "a text stands for it: {replies:#?}");
    for reply in &replies[1..] {
        assert!(reply.shown().starts_with("```python\n    print(\"<預算>\")"), "{reply:?}");
    }
    let printed: usize = replies.iter().map(|reply| reply.shown().matches("print").count()).sum();
    assert_eq!(printed, 900);
    let split = scene.home.events("reply.split");
    assert_eq!(split.len(), 1);
    assert_eq!((&split[0]["actor"], &split[0]["parts"]), (&"U1".into(), &replies.len().into()));
}

/// The placeholder and one part are posted; of the next nobody learns that it was.
fn lose_a_part(slack: &Slack) {
    slack.fault_after("chat.postMessage", 2, 1, Fault::Lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_in_doubt_is_looked_for_before_it_is_posted_again() {
    let scene = Scene::losing(&answer(8)).await;
    let _gateway = scene.start().await;
    lose_a_part(&scene.slack);
    let asked = scene.slack.dm("U1", "預算？");
    is_whole(&scene.replies(&asked, 4).await, 8);
    assert_eq!(scene.slack.call_count("conversations.history"), 1);
    assert!(scene.home.events("reply.repeated").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_there_once_after_a_kill_in_the_middle_of_a_reply() {
    let scene = Scene::new(&answer(8)).await;
    let gateway = scene.start().await;
    lose_a_part(&scene.slack);
    let asked = scene.slack.dm_in_thread("U1", "預算？", Some("1700000000.000100"));
    scene.until("the third post", |scene| scene.slack.call_count("chat.postMessage") == 3).await;
    gateway.kill();
    assert!(scene.slack.await_sockets(0, PATIENCE).await);
    let _gateway = scene.start().await;
    is_whole(&scene.replies(&asked, 4).await, 8);
    // Once for what is above the question, and once for the part.
    assert_eq!(scene.slack.call_count("conversations.replies"), 2);
    assert!(scene.home.events("reply.repeated").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_look_one_part_is_repeated_and_the_ledger_says_so() {
    let scene = Scene::losing(&answer(8)).await;
    scene.slack.fault("conversations.history", Fault::Error("missing_scope"));
    let _gateway = scene.start().await;
    lose_a_part(&scene.slack);
    let asked = scene.slack.dm("U1", "預算？");
    let mut replies = scene.replies(&asked, 5).await;
    let repeated = scene.home.events("reply.repeated");
    assert_eq!(repeated.len(), 1);
    assert_eq!((&repeated[0]["actor"], &repeated[0]["part"]), (&"U1".into(), &2.into()));
    assert_eq!(replies[2].shown(), replies[3].shown());
    replies.remove(3);
    is_whole(&replies, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_was_put_off_is_not_in_doubt() {
    let scene = Scene::new(&answer(4)).await;
    let _gateway = scene.start().await;
    scene.slack.fault_after("chat.postMessage", 1, 1, Fault::RateLimited(1));
    let asked = scene.slack.dm("U1", "預算？");
    is_whole(&scene.replies(&asked, 2).await, 4);
    assert!(scene.slack.calls("conversations.history").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_very_long_answer_is_its_first_part_and_a_file() {
    let whole = answer(40);
    let scene = Scene::new(&whole).await;
    let _gateway = scene.start().await;
    let asked = scene.slack.dm("U1", "預算？");
    let replies = scene.replies(&asked, 2).await;
    assert_eq!(replies.len(), 2, "{replies:#?}");
    is_whole(&replies[..1], 2);
    let content = scene.slack.file(&replies[1].ts).expect("a file").content.expect("its content");
    assert_eq!(String::from_utf8(content).expect("text").trim_end(), whole.trim_end());
    let split = scene.home.events("reply.split");
    assert_eq!((&split[0]["parts"], &split[0]["chars"]), (&2.into(), &whole.trim_end().chars().count().into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_doubt_is_looked_for() {
    let scene = Scene::losing(&answer(40)).await;
    let _gateway = scene.start().await;
    scene.slack.fault_times("files.completeUploadExternal", 1, Fault::Lost);
    let asked = scene.slack.dm("U1", "預算？");
    assert_eq!(scene.replies(&asked, 2).await.len(), 2);
    assert_eq!(scene.slack.call_count("files.completeUploadExternal"), 1);
}

/// Regression: one failure, and only its beginning was posted.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_was_cut_because_its_file_could_not_be_uploaded_at_once() {
    let scene = Scene::new(&answer(30)).await;
    let _gateway = scene.start().await;
    scene.slack.fault_times("files.getUploadURLExternal", 1, Fault::Status(503));
    scene.slack.fault_times("upload", 1, Fault::Status(500));
    let asked = scene.slack.dm("U1", "預算？");
    assert_eq!(scene.replies(&asked, 2).await.len(), 2, "its first part and its file");
    assert!(scene.home.events("reply.cut").is_empty());
}

/// Once, an answer became 225 posts when no file could be uploaded.
#[tokio::test(flavor = "multi_thread")]
async fn where_files_are_refused_an_answer_without_end_is_not_posted_without_end() {
    let scene = Scene::new(&answer(30)).await;
    let _gateway = scene.start().await;
    scene.slack.fault("upload", Fault::Status(500));
    let asked = scene.slack.dm("U1", "預算？");
    let replies = scene.replies(&asked, 5).await;
    assert_eq!(replies.len(), 5, "as many as an answer may have");
    is_whole(&replies[..4], 8);
    let key = "slack:dm:U1";
    assert!(replies[4].text.starts_with(":scissors:") && replies[4].text.contains(key), "{:?}", replies[4]);
    let kept = scene.home.run(&["sessions", "show", key, "--full"], "").ok().stdout;
    assert!(kept.contains("第29段。"), "the rest is kept on the host");
    let cut = scene.home.events("reply.cut");
    assert_eq!((cut.len(), &cut[0]["session"]), (1, &key.into()));
    assert!(scene.home.events("reply.undelivered").is_empty());
    let audit = scene.home.run(&["audit"], "").ok().stdout;
    assert!(audit.contains("1 reply was too long and could not be posted as a file"), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_that_cannot_be_edited_goes_when_the_answer_comes() {
    let scene = Scene::new("the answer").await;
    let _gateway = scene.start().await;
    scene.slack.fault("chat.update", Fault::Error("edit_window_closed"));
    let asked = scene.slack.dm("U1", "hello");
    let replies = scene.replies(&asked, 1).await;
    assert_eq!(replies.len(), 1, "{replies:#?}");
    assert_eq!(replies[0].text, "the answer");
    assert_eq!(scene.home.events("turn.processed")[0]["replyTs"], replies[0].ts.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_slack_never_takes_leaves_nobody_waiting() {
    let scene = Scene::new("the answer").await;
    let _gateway = scene.start().await;
    // The answer is refused in all its forms at the placeholder and as a post; then it is up to us.
    scene.slack.fault_times("chat.update", 5, Fault::Error("invalid_blocks"));
    scene.slack.fault_after("chat.postMessage", 1, usize::MAX, Fault::Error("invalid_blocks"));
    let asked = scene.slack.dm("U1", "hello");
    scene
        .until("the word that it is parked", |scene| {
            scene.slack.replies(&asked.channel).first().is_some_and(|reply| reply.text.starts_with(":x:"))
        })
        .await;
    assert_eq!(scene.home.await_events("turn.parked", 1).len(), 1);
    assert_eq!(scene.slack.placeholders(&asked.channel).len(), 0, "somebody still waits");
}

/// Once, it stayed for ever beside the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_that_cannot_be_edited_goes_though_it_could_not_be_removed_at_once() {
    let scene = Scene::new("the answer").await;
    let _gateway = scene.start().await;
    scene.slack.fault("chat.update", Fault::Error("edit_window_closed"));
    scene.slack.fault_times("chat.delete", 2, Fault::Status(500));
    let asked = scene.slack.dm("U1", "hello");
    let replies = scene.replies(&asked, 1).await;
    assert_eq!(replies.len(), 1, "{replies:#?}");
    assert_eq!(replies[0].text, "the answer");
}

/// An answer in pieces begins where the placeholder was, and only its last piece is found when it is in doubt.
#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_placeholders_place_is_not_removed_with_it() {
    let answer = format!("It begins here. {} It ends here.", "And it goes on and on. ".repeat(300));
    let scene = Scene::new(&answer).await;
    let gateway = scene.start().await;
    scene.slack.fault_times("chat.update", 1, Fault::Error("invalid_blocks"));
    // The first is the placeholder.
    scene.slack.fault_after("chat.postMessage", 1, 1, Fault::Lost);
    let asked = scene.slack.dm("U1", "hello");
    let is_there = || scene.slack.replies(&asked.channel).iter().any(|reply| reply.text.contains("It ends here."));
    until_async("the end of the answer", || is_there().then_some(())).await;
    gateway.kill();
    let _gateway = scene.start().await;
    scene.home.await_events("turn.processed", 1);
    let replies = scene.slack.replies(&asked.channel);
    let all: String = replies.iter().map(|reply| reply.text.as_str()).collect();
    assert!(replies.len() > 1 && all.contains("It begins here.") && all.contains("It ends here."), "{replies:#?}");
    assert_eq!(all.matches("And it goes on and on.").count(), 300, "{replies:#?}");
}

/// Once, it stayed beside the word that the message is parked.
#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_that_cannot_be_edited_goes_when_its_question_is_parked() {
    let scene = Scene::new("the answer").await;
    let _gateway = scene.start().await;
    scene.slack.fault("chat.update", Fault::Error("edit_window_closed"));
    // The placeholder is posted, and the answer refused in all its forms.
    scene.slack.fault_after("chat.postMessage", 1, 5, Fault::Error("invalid_blocks"));
    // Not removed at once, either: until it is, nobody has been told.
    scene.slack.fault_times("chat.delete", 1, Fault::Error("internal_error"));
    let asked = scene.slack.dm("U1", "hello");
    let notices = || scene.slack.replies(&asked.channel).iter().filter(|reply| reply.text.starts_with(":x:")).count();
    until_async("the word that it is parked", || (notices() > 0).then_some(())).await;
    assert_eq!(scene.slack.placeholders(&asked.channel).len(), 0, "somebody still waits");
    assert_eq!((notices(), scene.home.events("turn.parked").len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_in_doubt_is_the_one_that_the_answer_replaces() {
    let scene = Scene::losing("the answer").await;
    let gateway = scene.start().await;
    scene.slack.fault_times("chat.postMessage", 1, Fault::Lost);
    scene.anthropic.push(Behaviour::answer("the answer"));
    let asked = scene.slack.dm("U1", "hello");
    scene.until("a placeholder", |scene| !scene.slack.placeholders(&asked.channel).is_empty()).await;
    gateway.kill();
    assert!(scene.slack.await_sockets(0, PATIENCE).await);
    let _gateway = scene.start().await;
    let replies = scene.replies(&asked, 1).await;
    assert_eq!(replies.len(), 1, "{replies:#?}");
    assert_eq!(scene.slack.messages(&asked.channel).len(), 2, "the question and the answer");

    scene.slack.fault_times("chat.postMessage", 1, Fault::Lost);
    let asked = scene.slack.dm("U2", "hello");
    assert!(scene.slack.await_replies(&asked.channel, 1, PATIENCE).await);
    assert!(scene.slack.placeholders(&asked.channel).is_empty(), "somebody still waits");
}

/// People saw an address, and were led to another.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_was_shown_as_whatever_address_its_label_was() {
    let scene = Scene::new("Log in at [https://login.acme.example](https://evil.example/x).").await;
    let _gateway = scene.start().await;
    let asked = scene.slack.dm("U1", "where?");
    let replies = scene.replies(&asked, 1).await;
    let shown = "Log in at https://login.acme.example (<https://evil.example/x>).";
    assert_eq!((replies[0].shown().as_str(), replies[0].text.as_str()), (shown, shown));
}
