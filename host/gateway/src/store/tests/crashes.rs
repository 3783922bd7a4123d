//! Wherever the process dies, the work continues from there.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use pmk_core::{CapVerdict, Language};

use super::*;

const KEY: &str = "slack:dm:U1";

/// A crash right after the turn began may have left a placeholder that no other commit mentions.
#[tokio::test]
async fn what_may_be_shown_at_once_is_remembered_as_the_turn_begins() {
    let home = home();
    for (event_id, hold, placeholder) in [("Ev1", Hold::Showing, true), ("Ev2", Hold::Alone, false)] {
        let inbox = accept(&open(&home), &format!("slack:dm:{event_id}"), event_id).await;
        let BeginOutcome::Ask(first) = open(&home).begin(inbox, None, hold, NOW).await.unwrap() else {
            panic!("it is open")
        };
        assert_eq!((first.may_place, first.begun_with.is_any()), (placeholder, false), "{hold:?}");
        let again = ask(&open(&home), inbox).await;
        assert_eq!((again.resumed, again.may_place), (true, placeholder), "{hold:?}");
        assert_eq!(again.begun_with, Begun { placeholder, stream: false }, "{hold:?}");
    }
}

#[tokio::test]
async fn every_step_survives() {
    let home = home();
    // The store is reopened at each step.
    let inbox = accept(&open(&home), KEY, "Ev1").await;
    let pending = Pending { inbox, key: KEY.parse().unwrap(), ts: String::new() };
    assert_eq!(open(&home).open_work().await.unwrap().pending, [pending]);

    let first = ask(&open(&home), inbox).await;
    assert_eq!(first.inbound, inbound(KEY, "Ev1"));
    assert_eq!(first.placeholder, None);
    let seed = [Message::user("seed"), Message::assistant("ack")];
    let whole = (CapVerdict::Keep, Language::English);
    open(&home).seed(first.session, seed, whole, |_, _| unreachable!("nothing is capped"), NOW).await.unwrap();
    open(&home).placed(first.turn, "17.1").await.unwrap();
    assert!(!first.begun_with.is_any(), "nothing is looked for that nobody has begun");
    open(&home).may_show(first.turn, PreviewKind::Stream).await.unwrap();

    let again = ask(&open(&home), inbox).await;
    assert_eq!((again.turn, again.session), (first.turn, first.session));
    assert_eq!(again.placeholder.as_deref(), Some("17.1"));
    assert_eq!(again.begun_with, Begun { placeholder: false, stream: true });
    assert_eq!(again.live.entries.len(), 2);

    let edit = WindowEdit { removed: vec![1], dropped_turns_total: 1, ..WindowEdit::default() };
    open(&home).edit_live(first.session, edit, vec![], NOW).await.unwrap();
    let edited = ask(&open(&home), inbox).await;
    assert_eq!((edited.live.entries.len(), edited.live.dropped_turns), (1, 1));

    let parts = ["one", "two", "three"].map(Outgoing::reply).into();
    let answer = Recorded { parts, ..recorded("q", "onetwothree") };
    open(&home).record(first.turn, answer, NOW + 5).await.unwrap();
    let BeginOutcome::Deliver(answered) = open(&home).begin(inbox, None, Hold::Alone, NOW).await.unwrap() else {
        panic!("it has an answer")
    };
    assert_eq!(answered.turn, first.turn);
    assert_eq!(answered.inbound, first.inbound);
    assert_eq!(answered.placeholder.as_deref(), Some("17.1"));
    assert!(answered.is_streamed);
    assert_eq!(answered.report, report());
    assert_eq!(
        answered.parts.iter().map(|part| part.outgoing.speech.text.as_str()).collect::<Vec<_>>(),
        ["one", "two", "three"]
    );

    open(&home).part_sent(first.turn, sent(0, Some("17.1")), vec![], NOW + 6).await.unwrap();
    let BeginOutcome::Deliver(rest) = open(&home).begin(inbox, None, Hold::Alone, NOW).await.unwrap() else {
        panic!("it has an answer")
    };
    assert_eq!(rest.parts.iter().map(|part| part.number).collect::<Vec<_>>(), [1, 2]);

    let sent = vec![sent(1, Some("17.2")), sent(2, Some("17.3"))];
    open(&home).finish(first.turn, sent, vec![], NOW + 7).await.unwrap();
    assert!(matches!(open(&home).begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Done));
    assert_eq!(open(&home).open_work().await.unwrap(), OpenWork::default());
    assert_eq!(number(&home, "SELECT count(*) FROM session WHERE lease_owner IS NOT NULL"), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 4);
    assert_eq!(number(&home, "SELECT count(*) FROM outbox WHERE sent_id LIKE '17.%'"), 3);
    let usage = "SELECT input_tokens * 1000 + output_tokens * 100 + cache_read_tokens * 10 + cache_creation_tokens";
    assert_eq!(number(&home, &format!("{usage} FROM turn")), 10_532);
}

#[tokio::test]
async fn a_placeholder_is_known_after_the_next_step_though_nobody_waited_for_it() {
    let home = home();
    let store = open(&home);
    let placeholder = async |inbox| match store.begin(inbox, None, Hold::Alone, NOW).await.unwrap() {
        BeginOutcome::Ask(open) => open.placeholder,
        BeginOutcome::Deliver(answered) => answered.placeholder,
        other => panic!("expected a turn, got {other:?}"),
    };
    let waited_for_by_nobody = accept(&store, KEY, "Ev1").await;
    let turn = ask(&store, waited_for_by_nobody).await.turn;
    drop(store.placed(turn, "17.1"));
    assert_eq!(placeholder(waited_for_by_nobody).await.as_deref(), Some("17.1"));
    store.record(turn, recorded("q", "a"), NOW).await.unwrap();
    assert_eq!(placeholder(waited_for_by_nobody).await.as_deref(), Some("17.1"), "the answer leaves it as it is");
    // The disk was full when it was to be stored.
    let not_stored = accept(&store, "slack:dm:U2", "Ev2").await;
    let turn = ask(&store, not_stored).await.turn;
    let answer = Recorded { placeholder: Some("17.2".into()), ..recorded("q", "a") };
    store.record(turn, answer, NOW).await.unwrap();
    assert_eq!(placeholder(not_stored).await.as_deref(), Some("17.2"));
}

/// Regression: only the host that made an answer knew which message it grows as, and any other took a stop there for
/// nothing.
#[tokio::test]
async fn an_answer_that_grows_could_be_stopped_through_one_host_alone() {
    let home = home();
    let store = open(&home);
    let question = accept(&store, KEY, "Ev1").await;
    let begun = ask(&store, question).await;
    let growing = MessageRef::new("D1", "2.5");
    assert_eq!(store.open_question(&growing).await.unwrap(), None);
    store.streamed(begun.turn, "2.5").await.unwrap();
    let (_, found) = store.open_question(&growing).await.unwrap().expect("it grows");
    assert_eq!(found.inbox, question);
    assert_eq!(store.open_question(&MessageRef::new("D2", "2.5")).await.unwrap(), None);
    let recorded = Recorded { revision: begun.live.revision, ..recorded("q", "a") };
    store.record(begun.turn, recorded, NOW).await.unwrap();
    assert_eq!(store.open_question(&growing).await.unwrap(), None, "it has its answer");
    store.finish(begun.turn, vec![sent(0, Some("2.5"))], vec![], NOW).await.unwrap();
    let late = store.streamed(begun.turn, "2.6").await.unwrap_err();
    assert!(matches!(late, StoreError::WrongState { .. }), "{late}");
}

#[tokio::test]
async fn what_is_done_with_is_not_kept_twice() {
    let home = home();
    turn(&open(&home), KEY, "Ev1").await;
    let left = "SELECT (SELECT count(message) FROM inbox) + (SELECT count(body) FROM outbox)
                     + (SELECT count(report) FROM turn)";
    assert_eq!(number(&home, left), 0);
    assert_eq!(number(&home, "SELECT count(*) FROM message"), 2);
}

#[tokio::test]
async fn a_question_that_needs_no_answer_ends_too() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, KEY, "Ev1").await;
    let open = ask(&store, inbox).await;
    store.finish(open.turn, vec![], vec![], NOW).await.unwrap();
    assert!(matches!(store.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Done));
    assert_eq!(store.session(&KEY.parse().unwrap()).await.unwrap().turns, 0);
}

#[tokio::test]
async fn steps_out_of_order_are_refused_and_change_nothing() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, KEY, "Ev1").await;
    let turn = ask(&store, inbox).await.turn;
    let wrong = |result: Result<(), StoreError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::WrongState { turn: of, .. } if of == turn), "{error}");
    };
    wrong(store.finish(turn, vec![sent(0, None)], vec![], NOW).await);
    store.record(turn, recorded("q", "a"), NOW).await.unwrap();
    wrong(store.record(turn, recorded("q", "b"), NOW).await);
    wrong(store.finish(turn, vec![], vec![], NOW).await);
    wrong(store.part_sent(turn, sent(1, None), vec![], NOW).await);
    store.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    wrong(store.finish(turn, vec![], vec![], NOW).await);
    wrong(store.record(turn, recorded("q", "c"), NOW).await);
    wrong(store.placed(turn, "17.1").await);
    assert_eq!(live_texts(&store, KEY).await, ["q", "a"]);
}

const CHILD_HOME: &str = "PMK_STORE_TEST_HOME";
const THIS_TEST: &str = "store::tests::crashes::what_was_promised_survives_kill_9";

/// The test starts itself again as a child process that works until it is killed, and then checks that the file
/// contains what the child was promised.
#[test]
fn what_was_promised_survives_kill_9() {
    if let Some(home) = std::env::var_os(CHILD_HOME) {
        return work_until_killed(Path::new(&home));
    }
    let home = home();
    let mut accepted = BTreeSet::new();
    let mut answered = BTreeSet::new();
    let mut delivered = BTreeSet::new();
    for round in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", THIS_TEST, "--nocapture"])
            .env(CHILD_HOME, home.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut promised = 0;
        for line in lines {
            let line = line.unwrap();
            let Some((what, inbox)) = line.split_once(' ').filter(|(what, _)| what.ends_with(':')) else { continue };
            let inbox = InboxId(inbox.parse().unwrap());
            match what {
                "accepted:" => accepted.insert(inbox),
                "answered:" => answered.insert(inbox),
                "delivered:" => delivered.insert(inbox),
                other => panic!("{other}"),
            };
            promised += 1;
            if promised == 150 + 40 * round {
                child.kill().unwrap();
            }
        }
        assert!(!child.wait().unwrap().success(), "it was killed");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = open(&home);
        assert!(accepted.len() > 100 && delivered.len() > 50, "{} {}", accepted.len(), delivered.len());
        for inbox in &accepted {
            let event_id = sql(home.path())
                .query_row("SELECT event_id FROM inbox WHERE id = ?1", [inbox.0], |row| row.get::<_, String>(0))
                .unwrap();
            assert_eq!(store.accept(&inbound(KEY, &event_id), NOW).await.unwrap(), None, "{event_id} was lost");
            match store.begin(*inbox, None, Hold::Alone, NOW).await.unwrap() {
                BeginOutcome::Ask(_) => assert!(!answered.contains(inbox), "the answer to {event_id} was lost"),
                BeginOutcome::Deliver(_) => assert!(!delivered.contains(inbox), "{event_id} would be answered twice"),
                BeginOutcome::Done => {}
                BeginOutcome::Busy | BeginOutcome::Elsewhere => panic!("a killed process keeps nobody out"),
            }
        }
    });
}

fn work_until_killed(home: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let store = Store::open(home).unwrap();
    let told = |what: &str, inbox: InboxId| writeln!(std::io::stdout(), "\n{what} {inbox}").unwrap();
    runtime.block_on(async {
        let process = std::process::id();
        let workers = (0..8).map(|worker| {
            let store = store.clone();
            tokio::spawn(async move {
                let key = format!("slack:dm:U{worker}");
                for n in 0..100_000 {
                    let inbox = accept(&store, &key, &format!("Ev{process}-{worker}-{n}")).await;
                    told("accepted:", inbox);
                    let turn = ask(&store, inbox).await.turn;
                    store.record(turn, recorded("q", "a"), NOW).await.unwrap();
                    told("answered:", inbox);
                    store.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
                    told("delivered:", inbox);
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
    });
    panic!("nobody killed it");
}
