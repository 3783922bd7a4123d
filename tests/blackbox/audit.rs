//! The audit, over a ledger that is written down here.

use serde_json::json;

use crate::{
    readers::in_chinese,
    support::{Home, finish, question},
};

/// Events of the last hours, one of every kind that is counted.
fn ledger(home: &Home) {
    let now = jiff::Timestamp::now();
    let at = |hours: i64| (now - jiff::SignedDuration::from_hours(hours)).to_string();
    let events = [
        json!({"at": at(240), "type": "turn.processed", "actor": "U_OLD", "audience": "tech"}),
        json!({"at": at(5), "type": "turn.processed", "actor": "U1", "audience": "biz", "atomsInjected": 2}),
        json!({"at": at(4), "type": "turn.processed", "actor": "U1", "audience": "biz", "atomsInjected": 0}),
        json!({"at": at(4), "type": "turn.processed", "actor": "U2", "audience": "tech", "atomsInjected": 1}),
        json!({"at": at(4), "type": "turn.parked", "session": "slack:dm:U1", "why": "the store is damaged"}),
        json!({"at": at(4), "type": "turn.panicked", "session": "slack:dm:U1", "place": "src/turn.rs:1"}),
        json!({"at": at(4), "type": "queue.swept", "messages": 3}),
        json!({"at": at(4), "type": "context.exceeded", "actor": "U1", "phase": "first-call"}),
        json!({"at": at(4), "type": "context.exceeded", "actor": "U1", "phase": "synthesise"}),
        json!({"at": at(4), "type": "context.pruned", "actor": "U1", "session": "slack:dm:U1", "turnsDropped": 2,
               "messagesReplaced": 1, "tokensBefore": 9000, "tokensAfter": 6000, "decidedBy": "standard.recency"}),
        json!({"at": at(4), "type": "context.force-pruned", "actor": "U1", "droppedPairs": 6, "tokensAfter": 4200}),
        json!({"at": at(4), "type": "context.compacted", "actor": "U1", "recovering": true}),
        json!({"at": at(4), "type": "context.compacted", "actor": "U1", "recovering": false}),
        json!({"at": at(4), "type": "context.rotated", "actor": "U1", "hasSummary": true}),
        json!({"at": at(4), "type": "context.recovery_failed", "actor": "U1"}),
        json!({"at": at(4), "type": "context.replanned", "actor": "U1", "tokensBefore": 9000, "tokensAfter": 4000}),
        json!({"at": at(4), "type": "context.suspected", "actor": "U1", "because": "empty", "helped": true}),
        json!({"at": at(4), "type": "context.suspected", "actor": "U1", "because": "unexplained", "helped": false}),
        json!({"at": at(4), "type": "message.capped", "actor": "U1", "kind": "seed", "originalChars": 88292}),
        json!({"at": at(4), "type": "message.capped", "actor": "U1", "kind": "mra-result"}),
        json!({"at": at(4), "type": "policy.failed", "actor": "U1", "policy": "mine", "reason": "trap"}),
        json!({"at": at(4), "type": "policy.suspended", "policy": "mine", "failures": 5, "reason": "trap"}),
        json!({"at": at(4), "type": "token.usage", "actor": "U1", "provider": "sim", "model": "sim",
               "inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 50}),
        json!({"at": at(3), "type": "mra-ask.end", "actor": "U1", "repo": "erp", "ok": true, "durationMs": 42000}),
        json!({"at": at(3), "type": "mra-ask.end", "actor": "U1", "repo": "erp", "ok": false, "retried": true,
               "durationMs": 900}),
        json!({"at": at(3), "type": "escalate.triggered", "channelId": "C1", "threadTs": "1.1"}),
        json!({"at": at(2), "type": "escalate.absorbed", "channelId": "C1", "threadTs": "1.1", "atomId": "a"}),
        json!({"at": at(2), "type": "something.new", "actor": "U1"}),
    ];
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    std::fs::create_dir_all(home.path().join("gateway")).expect("a folder");
    home.write("gateway/events.log", lines + "half a li");
}

#[test]
fn the_page() {
    let home = Home::new();
    ledger(&home);
    insta::assert_snapshot!(home.run(&["audit"], "").ok().stdout);
    insta::assert_snapshot!("the_page_in_chinese", in_chinese(&home, &["audit"]));
}

/// The page showed no turn and no flag.
#[test]
fn lines_of_the_ledger_that_wait_in_the_store_are_flagged() {
    let home = Home::new();
    let lock = home.path().join("gateway/events.lock");
    std::fs::create_dir_all(&lock).expect("a folder in the way");
    home.run(&["run", "--model", "sim"], &question("Ev1", "hello")).ok();
    let page = home.run(&["audit"], "").ok().stdout;
    assert!(page.contains("lines of the ledger are not counted yet: they wait in the store"), "{page}");
    std::fs::remove_dir(lock).expect("removed");
    home.run(&["run", "--model", "sim"], "").ok();
    let page = home.run(&["audit"], "").ok().stdout;
    assert!(!page.contains("not counted yet") && page.contains("turns                    1\n"), "{page}");
}

/// They are never counted.
#[test]
fn lines_of_a_dry_run_that_wait_in_the_store_are_not_flagged() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("gateway/events.lock")).expect("a folder in the way");
    let mut run = home.command(&["run", "--model", "sim"]);
    run.env("PMK_DRY_RUN", "1");
    finish(run, &question("Ev1", "hello")).ok();
    let page = home.run(&["audit"], "").ok().stdout;
    assert!(!page.contains("not counted yet"), "{page}");
}

/// The page ended with an error, although its files are there.
#[test]
fn the_ledger_is_counted_where_a_service_manager_has_the_password_of_the_store() {
    let home = Home::new();
    ledger(&home);
    let password = json!({"file": "pmk-store-password"});
    let config = json!({"version": 1, "store": "postgres://pmk@127.0.0.1:1/pmk", "storePassword": password});
    home.write("gateway.json", config.to_string());
    let audit = home.run(&["audit"], "").ok();
    assert!(audit.stderr.contains("the store is skipped: "), "{}", audit.stderr);
    assert!(audit.stdout.contains("Conversations"), "{}", audit.stdout);
}

/// It ended with an error, although its files are there.
#[test]
fn the_ledger_is_counted_while_the_database_is_away() {
    let home = Home::new();
    ledger(&home);
    let audit = home.run(&["audit", "--store", "postgres://pmk@127.0.0.1:1/pmk"], "").ok();
    assert!(audit.stderr.contains("the store is skipped: cannot reach the database"), "{}", audit.stderr);
    assert!(audit.stdout.contains("Conversations"), "{}", audit.stdout);
}

#[test]
fn the_document() {
    let home = Home::new();
    ledger(&home);
    insta::assert_json_snapshot!(home.run(&["--json", "audit", "--days", "30"], "").ok().json());
}

/// Once, the median of four was the third, a question that was answered at the second try counted twice, and of two
/// questions in one thread the last was taken for the one that was answered.
#[test]
fn medians_are_true_outcomes_disjoint_and_the_first_asked_is_the_first_answered() {
    let home = Home::new();
    let now = jiff::Timestamp::now();
    let at = |minutes: i64| (now - jiff::SignedDuration::from_mins(minutes)).to_string();
    let asked = |seconds: u64, ok: bool, retried: bool| {
        json!({"at": at(300), "type": "mra-ask.end", "actor": "U1", "repo": "erp", "ok": ok, "retried": retried,
               "durationMs": seconds * 1_000})
    };
    let thread = |kind: &str, minutes: i64, thread: &str| json!({"at": at(minutes), "type": kind, "channelId": "C1", "threadTs": thread});
    let turn = |atoms: u64, mra: bool| {
        json!({"at": at(250), "type": "turn.processed", "actor": "U1", "audience": "biz", "atomsInjected": atoms,
               "hadMraAsk": mra})
    };
    let spent = |user: &str, input: u64| {
        json!({"at": at(240), "type": "token.usage", "actor": user, "provider": "sim", "model": "sim",
               "inputTokens": input, "outputTokens": 10, "cacheReadTokens": 5})
    };
    let events = [
        asked(30, true, false),
        asked(50, true, true),
        asked(70, false, true),
        asked(90, false, false),
        turn(0, true),
        turn(1, false),
        turn(2, false),
        turn(0, false),
        spent("U1", 100),
        spent("U2", 300),
        spent("U1", 50),
        thread("escalate.triggered", 200, "1.1"),
        thread("escalate.triggered", 190, "2.2"),
        thread("escalate.triggered", 100, "1.1"),
        thread("escalate.absorbed", 80, "1.1"),
    ];
    std::fs::create_dir_all(home.path().join("gateway")).expect("a folder");
    home.write("gateway/events.log", events.iter().map(|event| format!("{event}\n")).collect::<String>());
    let audit = home.run(&["--json", "audit"], "").ok().json();
    let mra = &audit["mra_ask"];
    assert_eq!((&mra["median_ms"], &mra["share_of_turns"]), (&json!(60_000), &json!(0.25)));
    assert_eq!((&mra["ok"], &mra["retried"], &mra["failed"]), (&json!(1), &json!(1), &json!(2)));
    assert_eq!(audit["escalate"]["median_ms_to_reply"], 120 * 60_000);
    assert_eq!((&audit["atoms"]["a_turn"], &audit["atoms"]["median_a_turn"]), (&json!(0.75), &json!(1.5)));
    let people =
        json!({"U1": {"calls": 2, "input": 160, "output": 20}, "U2": {"calls": 1, "input": 305, "output": 10}});
    assert_eq!(audit["tokens"]["by_user"], people);
}

#[test]
fn the_arms_of_an_experiment() {
    let home = Home::new();
    let at = jiff::Timestamp::now().to_string();
    let of_arm = |arm: &str, mut event: serde_json::Value| {
        (event["at"], event["experiment"], event["arm"]) = (json!(at), json!("less"), json!(arm));
        event
    };
    let turn = |latency: u64, rungs: &[&str]| {
        json!({"type": "turn.processed", "actor": "U1", "audience": "biz", "tokensSent": 1000, "latencyMs": latency,
               "rungs": rungs})
    };
    let mut events: Vec<serde_json::Value> =
        (1..=40).map(|n| of_arm("a", turn(n * 100, if n == 7 { &["trim"] } else { &[] }))).collect();
    events.extend([
        of_arm("b", turn(900, &["trim", "compact"])),
        of_arm("b", json!({"type": "context.exceeded", "actor": "U1", "phase": "first-call"})),
        of_arm("b", json!({"type": "policy.failed", "actor": "U1", "policy": "mine"})),
        of_arm("b", json!({"type": "signal.reasked", "actor": "U1", "afterMs": 5000, "similarity": 0.8})),
        of_arm("b", json!({"type": "signal.reaction", "actor": "U1", "likes": false})),
        of_arm("a", json!({"type": "signal.reaction", "actor": "U1", "likes": true})),
        of_arm(
            "a",
            json!({"type": "token.usage", "actor": "U1", "provider": "sim", "model": "sim",
                           "inputTokens": 70, "cacheReadTokens": 30, "outputTokens": 20}),
        ),
        of_arm(
            "a",
            json!({"type": "experiment.shadow", "shadow": "c", "tokensAfter": 700, "actingTokensAfter": 1000,
                           "agrees": false, "failures": 1, "satOut": 3}),
        ),
        json!({"at": at, "type": "experiment.arm-stopped", "experiment": "less", "stopped": "b", "worse": "overflows",
               "armConversations": 7, "controlConversations": 0}),
    ]);
    std::fs::create_dir_all(home.path().join("gateway")).expect("a folder");
    home.write("gateway/events.log", events.iter().map(|event| format!("{event}\n")).collect::<String>());
    let page = home.run(&["audit"], "").ok().stdout;
    let section = page.split("\n\n").find(|section| section.starts_with("Experiment")).expect("a section");
    let document = home.run(&["--json", "audit"], "").ok().json();
    insta::assert_snapshot!(format!("{section}\n\n{:#}\n", document["experiments"]));
    insta::assert_snapshot!("the_arms_in_chinese", in_chinese(&home, &["audit"]));
}

#[test]
fn a_home_without_a_ledger_has_an_empty_audit_and_looking_makes_nothing() {
    let home = Home::cold();
    insta::assert_snapshot!(home.run(&["audit", "--days", "1"], "").ok().stdout);
    assert_eq!(std::fs::read_dir(home.path()).expect("the home").count(), 0);
}

#[test]
fn what_a_model_counts_beyond_what_is_sent_is_shown() {
    let home = Home::new();
    let input: Vec<String> = (0..6)
        .map(|n| crate::support::question(&format!("Ev{n}"), &format!("Number {n} {}", "filler ".repeat(100 * n))))
        .collect();
    home.run(&["run", "--model", "sim:factor=2,overhead=5000"], &input.join("\n")).ok();
    let audit = home.run(&["--json", "audit"], "").ok().json();
    let tokens = &audit["tokens"]["by_model"]["sim:sim"];
    let (factor, overhead) = (tokens["factor"].as_f64().expect("a factor"), tokens["overhead"].as_f64().expect("one"));
    assert!((1.9..2.1).contains(&factor) && (4_500.0..5_500.0).contains(&overhead), "{tokens:#}");
}

/// Once, what was cancelled was missing between what was asked and what came of it, commands were turns of an audience
/// `?`, and an atom that nothing but a person's word promotes was one that was stuck.
#[test]
fn questions_to_people_add_up_commands_are_no_turns_and_what_waits_for_a_person_is_not_stuck() {
    let home = Home::new();
    let now = jiff::Timestamp::now();
    let at = |minutes: i64| (now - jiff::SignedDuration::from_mins(minutes)).to_string();
    let thread =
        |kind: &str, minutes: i64| json!({"at": at(minutes), "type": kind, "channelId": "C1", "threadTs": "1.1"});
    let events = [
        json!({"at": at(300), "type": "turn.processed", "actor": "U1", "audience": "biz"}),
        json!({"at": at(290), "type": "turn.processed", "actor": "U1", "audience": "", "command": "pmk"}),
        json!({"at": at(280), "type": "turn.processed", "actor": "U1", "audience": "", "command": "stop"}),
        thread("escalate.triggered", 200),
        thread("escalate.cancelled", 190),
        thread("escalate.triggered", 100),
        thread("escalate.absorbed", 40),
    ];
    std::fs::create_dir_all(home.path().join("gateway")).expect("a folder");
    home.write("gateway/events.log", events.iter().map(|event| format!("{event}\n")).collect::<String>());
    let created = (now - jiff::SignedDuration::from_hours(48)).as_millisecond();
    let atom = |id: &str, flag: &str| {
        let text = format!(
            "---\nid: {id}\ncreatedAt: {created}\nscope: erp\nquestion: q\ntags: [t]\nsource:\n  threadKey: C1:1.1\n  \
             contributorUserId: U2\nstatus: pending\n{flag}---\n\n# q\n\n## Answer\n\nthe answer\n"
        );
        std::fs::create_dir_all(home.path().join("knowledge/erp")).expect("a folder");
        home.write(&format!("knowledge/erp/{id}.md"), text);
    };
    atom("flagged-one", "flagged: true\nflagReason: orders\n");
    let audit = home.run(&["--json", "audit"], "").ok().json();
    let escalate = &audit["escalate"];
    assert_eq!(
        (&escalate["triggered"], &escalate["absorbed"], &escalate["cancelled"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(escalate["median_ms_to_reply"], 60 * 60_000, "the one that was cancelled got no reply");
    let talk = &audit["conversations"];
    assert_eq!((&talk["turns"], &talk["orders"], &talk["by_audience"]), (&json!(1), &json!(1), &json!({"biz": 1})));
    assert_eq!(talk["stopped"], 1);
    assert_eq!((&audit["atoms"]["pending"], &audit["flags"]), (&json!(1), &json!([])));
    atom("set-back-one", "");
    assert_eq!(home.run(&["--json", "audit"], "").ok().json()["flags"], json!([]));
    atom("stuck-one", "expiresAt: 1\n");
    let audit = home.run(&["--json", "audit"], "").ok().json();
    assert_eq!(audit["flags"], json!(["1 atom has been pending for more than 24 h: `atoms list` promotes it"]));
}

/// A file of the ledger of a month that many months ago, with one turn in it.
fn old_month(home: &Home, months: i64) -> String {
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let then = now.first_of_month().expect("a day").saturating_sub(jiff::Span::new().months(months));
    let name = then.strftime("events-%Y-%m.log").to_string();
    let turn = json!({"at": then.timestamp().to_string(), "type": "turn.processed", "actor": "U1", "audience": "biz"});
    home.write(&format!("gateway/{name}"), format!("{turn}\n"));
    name
}

#[test]
fn months_that_are_not_kept_are_deleted_at_the_start_and_told_and_the_audit_says_what_it_misses() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("gateway")).expect("a folder");
    let files: Vec<String> = [14, 3, 2, 1, 0].map(|months| old_month(&home, months)).into();
    let run = |config: &str| {
        home.write("gateway.json", config);
        home.run(&["run", "--model", "sim", "--front", "console"], "").ok().stderr
    };
    let there = || files.iter().filter(|name| home.path().join("gateway").join(name).exists()).collect::<Vec<_>>();
    let turns = |days: &str| home.run(&["--json", "audit", "--days", days], "").ok().json();

    run(r#"{"version": 1}"#);
    assert_eq!((there().len(), turns("1000")["conversations"]["turns"].as_u64()), (5, Some(5)));

    // Were they all touched today, their names would still say what they are of.
    let log = run(r#"{"version": 1, "ledger": {"keepMonths": 2}}"#);
    assert_eq!(there(), [&files[3], &files[4]]);
    let told: Vec<&str> = log.lines().filter(|line| line.contains("INFO") && line.contains("events-")).collect();
    assert!(matches!(&told[..], [line] if files[..3].iter().all(|name| line.contains(name.as_str()))), "{log}");
    let noted = home.events("ledger.forgotten");
    assert!(
        matches!(&noted[..], [event] if event["files"] == json!(files[..3]) && event["keepMonths"] == 2),
        "{noted:?}"
    );
    let first = files[3].trim_start_matches("events-").trim_end_matches(".log");
    let audit = turns("1000");
    assert_eq!((&audit["counted_from"], &audit["conversations"]["turns"]), (&json!(first), &json!(2)));
    let page = home.run(&["audit", "--days", "1000"], "").ok().stdout;
    assert!(page.contains(&format!("counted from {first} on")), "{page}");
    assert_eq!(turns("1").get("counted_from"), None);

    // Nothing is left to be deleted, and nothing is told.
    assert!(!run(r#"{"version": 1, "ledger": {"keepMonths": 2}}"#).contains("events-"));
    assert_eq!(home.events("ledger.forgotten").len(), 1);
}
