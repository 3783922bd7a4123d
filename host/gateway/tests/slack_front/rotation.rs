//! Tokens that change while the front listens.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use pmk_host::front::slack::{TokenPair, TokenSource};
use pmk_system::stamp::Stamp;

use super::*;

/// A file with both tokens, a line each, and how often they were got from it.
#[derive(Debug)]
struct OfFile(PathBuf, Arc<AtomicUsize>);

/// The same, as a command whose output nobody watches.
#[derive(Debug)]
struct OfCommand(OfFile);

#[async_trait]
impl TokenSource for OfCommand {
    fn stamps(&self) -> Vec<Option<Stamp>> {
        vec![]
    }

    async fn get(&self) -> Result<TokenPair, String> {
        self.0.get().await
    }
}

#[async_trait]
impl TokenSource for OfFile {
    fn stamps(&self) -> Vec<Option<Stamp>> {
        vec![Stamp::of(&self.0)]
    }

    async fn get(&self) -> Result<TokenPair, String> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let text = std::fs::read_to_string(&self.0).map_err(|error| error.to_string())?;
        let (app, bot) = text.split_once('\n').ok_or("half a file")?;
        Ok(TokenPair { app: app.into(), bot: bot.into() })
    }
}

/// A front whose tokens are in a file, and the folder of that.
async fn rig() -> (Rig, tempfile::TempDir) {
    let (rig, folder, _) = counting_rig().await;
    (rig, folder)
}

/// The same, and how often the tokens were got.
async fn counting_rig() -> (Rig, tempfile::TempDir, Arc<AtomicUsize>) {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = SlackRules::quick();
    write(&folder, &rules.app_token, &rules.bot_token);
    let got = Arc::new(AtomicUsize::new(0));
    let source: Arc<dyn TokenSource> = Arc::new(OfFile(folder.path().join("tokens"), Arc::clone(&got)));
    (Rig::of(rules, Some(source)).await, folder, got)
}

fn write(folder: &tempfile::TempDir, app: &str, bot: &str) {
    let (new, path) = (folder.path().join("new"), folder.path().join("tokens"));
    std::fs::write(&new, format!("{app}\n{bot}")).expect("a file");
    std::fs::rename(new, path).expect("in its place");
}

/// What comes just as a connection closes is stored, and comes again over another: the intake knows it then. On a busy
/// machine that is more, but never most.
async fn each_is_stored_once(rig: &Rig, sent: &[stand_in::Sent]) {
    for sent in sent {
        assert!(rig.slack.await_ack(&sent.event_id, SOON).await.is_some(), "{sent:?}");
    }
    assert_eq!(rig.messages().len(), sent.len());
    assert!(rig.duplicates() <= 2.max(sent.len() / 2), "{} came again", rig.duplicates());
}

#[tokio::test]
async fn tokens_that_slack_revokes_give_way_to_the_new_ones_and_the_call_that_met_it_is_made_again() {
    let (rig, folder) = rig().await;
    let opened = rig.slack.call_count("apps.connections.open");
    write(&folder, "xapp-2-new", "xoxb-new");
    rig.slack.rotate("xapp-2-new", "xoxb-new");
    // Some come over the old connections, some over the new ones.
    let mut sent: Vec<_> = (0..10).map(|n| rig.slack.dm(&format!("U{n}"), "before?")).collect();
    let posted = rig.front.deliver(part(&place("D1", None), None, &speech("one moment"))).await;
    assert!(matches!(posted, Ok(Some(_))), "{posted:?}");
    sent.extend((0..10).map(|n| rig.slack.dm(&format!("U{n}"), "meanwhile?")));
    // One to see that the new token opens any, and one for each connection.
    until("two successors", || rig.slack.call_count("apps.connections.open") >= opened + 3).await;
    assert!(rig.slack.await_sockets(2, SOON).await);
    sent.extend((0..10).map(|n| rig.slack.dm(&format!("U{n}"), "after?")));
    each_is_stored_once(&rig, &sent).await;
    assert_eq!(rig.notices(), []);
    rig.finish().await;
}

#[tokio::test]
async fn a_change_of_the_file_is_followed_before_slack_refuses_anything() {
    let (rig, folder) = rig().await;
    let opened = rig.slack.call_count("apps.connections.open");
    rig.slack.rotate("xapp-2-new", "xoxb-new");
    write(&folder, "xapp-2-new", "xoxb-new");
    until("two successors", || rig.slack.call_count("apps.connections.open") >= opened + 3).await;
    let sent = [rig.slack.dm("U1", "still there?")];
    each_is_stored_once(&rig, &sent).await;
    assert!(rig.slack.await_sockets(2, SOON).await);
    rig.finish().await;
}

/// Once, it kept a call that was refused soon after from looking for the new ones.
#[tokio::test]
async fn a_file_that_was_written_with_the_same_tokens_changes_nothing() {
    let (rig, folder, got) = counting_rig().await;
    write(&folder, &rig.slack.rules().app_token, &rig.slack.rules().bot_token);
    until("a look at the file", || got.load(Ordering::Relaxed) > 0).await;
    write(&folder, "xapp-2-new", "xoxb-new");
    rig.slack.rotate("xapp-2-new", "xoxb-new");
    let posted = rig.front.deliver(part(&place("D1", None), None, &speech("one moment"))).await;
    assert!(matches!(posted, Ok(Some(_))), "{posted:?}");
    rig.finish().await;
}

#[tokio::test]
async fn tokens_that_slack_does_not_take_change_nothing() {
    let (rig, folder) = rig().await;
    write(&folder, "xapp-9-wrong", "xoxb-wrong");
    until("a look at the new one", || rig.slack.call_count("apps.connections.open") > 2 + 1).await;
    let posted = rig.front.deliver(part(&place("D1", None), None, &speech("one moment"))).await;
    assert!(matches!(posted, Ok(Some(_))), "{posted:?}");
    let sent = [rig.slack.dm("U1", "still there?")];
    each_is_stored_once(&rig, &sent).await;
    rig.finish().await;
}

/// Regression: a removed app's old token was taken for one that Slack accepts.
#[tokio::test]
async fn an_app_that_was_installed_again_was_not_asked_for_its_new_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = SlackRules::quick();
    write(&folder, &rules.app_token, &rules.bot_token);
    let source = OfCommand(OfFile(folder.path().join("tokens"), Arc::default()));
    let rig = Rig::of(rules, Some(Arc::new(source))).await;
    write(&folder, &rig.slack.rules().app_token, "xoxb-new");
    rig.slack.rotate(&rig.slack.rules().app_token, "xoxb-new");
    rig.slack.fault_times("chat.postMessage", 1, Fault::Error("account_inactive"));
    let posted = rig.front.deliver(part(&place("D1", None), None, &speech("one moment"))).await;
    assert!(matches!(posted, Ok(Some(_))), "{posted:?}");
    rig.finish().await;
}

/// Regression: new tokens that Slack could not check just then were not looked at again.
#[tokio::test]
async fn tokens_that_could_not_be_checked_for_a_moment_were_never_used() {
    let (rig, folder) = rig().await;
    let before = rig.slack.call_count("auth.test");
    rig.slack.rotate("xapp-2-new", "xoxb-new");
    rig.slack.fault_times("auth.test", 1, Fault::Status(503));
    write(&folder, "xapp-2-new", "xoxb-new");
    until("another check", || rig.slack.call_count("auth.test") >= before + 2).await;
    let posted = rig.front.deliver(part(&place("D1", None), None, &speech("one moment"))).await;
    assert!(matches!(posted, Ok(Some(_))), "{posted:?}");
    rig.finish().await;
}

/// Regression: what was in progress until the new token was written was parked after six seconds.
#[tokio::test]
async fn a_call_that_waits_for_a_new_token_was_refused_for_good() {
    let (rig, folder) = rig().await;
    let (reply_to, text) = (place("D1", None), speech("one moment"));
    let post = || rig.front.deliver(part(&reply_to, None, &text));
    rig.slack.rotate("xapp-2-new", "xoxb-new");
    let refused = post().await;
    assert!(matches!(refused, Err(FrontError::Transient { .. })), "{refused:?}");
    let opened = rig.slack.call_count("apps.connections.open");
    write(&folder, "xapp-2-new", "xoxb-new");
    until("two successors", || rig.slack.call_count("apps.connections.open") >= opened + 3).await;
    assert!(matches!(post().await, Ok(Some(_))));
    rig.finish().await;
}
