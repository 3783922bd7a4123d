//! `PMK_DRY_RUN=1`: everything happens but what would be seen.

use pmk_stand_ins::{
    anthropic::{self, Anthropic, Behaviour},
    slack::Slack,
};

use crate::{
    support::{Home, PATIENCE, finish, until_async},
    workspace::{Gateway, command, rules},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing_to_slack_and_logs_what_it_would() {
    let slack = Slack::start(rules()).await;
    let anthropic = Anthropic::start().await;
    anthropic.push(Behaviour::answer("It is *Friday*."));
    // More than fits in messages: a file.
    anthropic.push(Behaviour::answer("A line of an answer that does not end.\n".repeat(2_000)));
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
    let mut command = command(&home, &slack, &["--model", "anthropic-api"]);
    command.env("ANTHROPIC_API_KEY", anthropic::KEY).env("ANTHROPIC_BASE_URL", anthropic.url());
    command.env("PMK_DRY_RUN", "1");
    let gateway = Gateway::spawn(&home, command);
    assert!(slack.await_connected(PATIENCE).await);
    for (count, text) in [(1, "When is the launch?"), (2, "Tell me everything.")] {
        let asked = slack.dm("U1", text);
        assert!(slack.await_ack(&asked.event_id, PATIENCE).await.is_some());
        until_async("a turn", || {
            let files = std::fs::read_dir(home.path().join("gateway")).expect("a folder").flatten();
            let ledger =
                files.into_iter().find(|file| file.file_name().to_string_lossy().starts_with("dryrun-events-"));
            let text = ledger.and_then(|file| std::fs::read_to_string(file.path()).ok()).unwrap_or_default();
            (text.matches("turn.processed").count() == count).then_some(())
        })
        .await;
    }
    let log = home.path().join("stderr.log");
    assert!(gateway.terminate().success());
    let log = std::fs::read_to_string(log).expect("the log");
    assert!(log.contains(r#"[dry-run] assistant.threads.setStatus channel=D1 text="is working on it…""#), "{log}");
    assert!(log.contains(r#"[dry-run] chat.postMessage channel=D1 text="It is _Friday_.""#), "{log}");
    assert!(log.contains("[dry-run] files.upload channel=D1 text=\"A line of"), "{log}");
    assert!(
        log.contains(r#"[dry-run] chat.postMessage channel=D1 text=":zzz: pmk gateway is away for a while""#),
        "{log}"
    );
    let count = log.matches("[dry-run] ").count() - 1;
    assert!(log.contains(&format!("[dry-run] {count} calls were not made")), "{log}");
    for method in ["chat.postMessage", "chat.update", "chat.delete", "files.getUploadURLExternal"] {
        assert_eq!(slack.calls(method).len(), 0, "{method}");
    }
    assert_eq!(home.ledger().len(), 0, "the ledger that is counted has nothing of it");
}

/// Taken for no, it would write to everybody.
#[test]
fn a_variable_that_is_neither_yes_nor_no_is_refused() {
    let home = Home::new();
    for (value, works) in [("1", true), ("0", true), ("", true), ("yes", false)] {
        let mut command = home.command(&["run", "--model", "sim"]);
        command.env("PMK_DRY_RUN", value).env("LANG", "C");
        let finished = finish(command, "");
        assert_eq!(finished.status.success(), works, "{value}: {}", finished.stderr);
        assert_eq!(finished.stderr.contains("dry run, because PMK_DRY_RUN is set"), value == "1", "{value}");
    }
}
