//! `PMK_DRY_RUN=1`: everything happens but what would be seen.

use pmk_stand_ins::{
    anthropic::{self, Anthropic, Behaviour},
    slack::Slack,
};

use crate::{
    posting::{ROOT, paragraphs},
    support::{Home, PATIENCE, finish, until_async},
    workspace::{Gateway, command, rules},
};

/// Starts a dry run that asks a stand-in's model.
async fn dry_run(home: &Home, slack: &Slack, anthropic: &Anthropic) -> Gateway {
    home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
    let mut command = command(home, slack, &["--model", "anthropic-api"]);
    command.env("ANTHROPIC_API_KEY", anthropic::KEY).env("ANTHROPIC_BASE_URL", anthropic.url());
    command.env("PMK_DRY_RUN", "1");
    let gateway = Gateway::spawn(home, command);
    assert!(slack.await_connected(PATIENCE).await);
    gateway
}

/// Waits until so many turns are over.
async fn turns(home: &Home, count: usize) {
    until_async("a turn", || {
        let files = std::fs::read_dir(home.path().join("gateway")).expect("a folder").flatten();
        let ledger = files.into_iter().find(|file| file.file_name().to_string_lossy().starts_with("dryrun-events-"));
        let text = ledger.and_then(|file| std::fs::read_to_string(file.path()).ok()).unwrap_or_default();
        (text.matches("turn.processed").count() == count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing_to_slack_and_logs_what_it_would() {
    let slack = Slack::start(rules()).await;
    let anthropic = Anthropic::start().await;
    anthropic.push(Behaviour::answer("It is *Friday*."));
    // More than fits in messages: a file.
    anthropic.push(Behaviour::answer("A line of an answer that does not end.\n".repeat(2_000)));
    let home = Home::new();
    let gateway = dry_run(&home, &slack, &anthropic).await;
    for (count, text) in [(1, "When is the launch?"), (2, "Tell me everything.")] {
        let asked = slack.dm("U1", text);
        assert!(slack.await_ack(&asked.event_id, PATIENCE).await.is_some());
        turns(&home, count).await;
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

/// Regression: Slack was taken for not keeping the metadata of streams.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_dry_run_no_answer_grew_but_the_first() {
    let (slack, anthropic, home) = (Slack::start(rules()).await, Anthropic::start().await, Home::new());
    let gateway = dry_run(&home, &slack, &anthropic).await;
    for count in 1..=2 {
        let (answer, gate) = Behaviour::gated(paragraphs(40));
        anthropic.push(answer);
        slack.mention("C1", "U1", "tell me", Some(ROOT));
        gate.add_permits(1);
        let begun = || gateway.log().matches("[dry-run] chat.startStream channel=C1").count();
        until_async("a stream", || (begun() == count).then_some(())).await;
        gate.add_permits(3);
        turns(&home, count).await;
    }
    assert!(!gateway.log().contains("does not keep metadata"), "{}", gateway.log());
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
