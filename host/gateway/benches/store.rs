//! Measures the cost of a turn in the store alone: the work of four commits, without a model or a front.
//!
//! `cargo bench -p pmk-host --bench store`. `turns/64-at-once` is the throughput over 200 conversations; `turns/one` is
//! the latency of a turn that has the store to itself, beside archives of different lengths.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pmk_core::{Entry, Message, SessionKey};
use pmk_host::{
    chat::{Attachments, Inbound, ReplyTo},
    ledger::report::TurnReport,
    store::{BeginOutcome, Hold, Outgoing, Recorded, Sent, Store, WindowEdit},
};
use tokio::runtime::Runtime;

const CONVERSATIONS: usize = 200;
const AT_ONCE: usize = 64;
const NOW: i64 = 1_760_000_000_000;
const QUESTION: &str =
    "本月各部門的廣告預算分配比例如何查詢? Which service computes it, and where is its scope defined?";

/// The live window is pruned from this many messages to half of them, as a policy would do.
const LONGEST_WINDOW: usize = 40;

fn key(conversation: usize) -> SessionKey {
    format!("slack:dm:U{conversation}").parse().expect("a session key")
}

async fn turn(store: &Store, conversation: usize, number: usize) {
    let inbound = Inbound {
        event_id: format!("Ev{number:010}"),
        aliases: vec![format!("ts:T:D{conversation}:{number}")],
        key: key(conversation),
        user: format!("U{conversation}"),
        reply_to: ReplyTo { channel: format!("D{conversation}"), thread_ts: None },
        text: QUESTION.to_owned(),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        ts: format!("{number:010}.000100"),
    };
    let inbox = store.accept(&inbound, NOW).await.expect("accepts").expect("a new message");
    let BeginOutcome::Ask(open) = store.begin(inbox, None, Hold::Alone, NOW).await.expect("begins") else {
        panic!("a new turn")
    };
    let entries = black_box(&open.live.entries);
    if entries.len() >= LONGEST_WINDOW {
        let removed = entries[..LONGEST_WINDOW / 2].iter().map(|entry| entry.position).collect();
        let dropped_turns_total = open.live.dropped_turns + LONGEST_WINDOW as u32 / 4;
        let edit = WindowEdit { removed, dropped_turns_total, ..WindowEdit::default() };
        store.edit_live(open.session, edit, vec![], NOW).await.expect("prunes");
    }
    let answer = QUESTION.repeat(4);
    let report = TurnReport::of_command(open.inbound.event_id.clone(), open.inbound.key.clone(), "none");
    let recorded = Recorded {
        messages: vec![Entry::new(0, Message::user(QUESTION)), Entry::new(0, Message::assistant(answer.clone()))],
        keep_live: true,
        ..Recorded::of(report, vec![Outgoing::reply(answer)], 0)
    };
    store.record(open.turn, recorded, NOW).await.expect("records");
    store
        .finish(open.turn, vec![Sent { part: 0, id: Some("1700000000.000100".into()) }], vec![], NOW)
        .await
        .expect("finishes");
}

/// Runs `turns` turns, `AT_ONCE` of them at a time, those of one conversation one after the other.
async fn many(store: &Store, numbers: &Arc<AtomicUsize>, turns: u64) -> Duration {
    let left = Arc::new(AtomicUsize::new(turns as usize));
    let started = Instant::now();
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|worker| {
            let (store, numbers, left) = (store.clone(), Arc::clone(numbers), Arc::clone(&left));
            tokio::spawn(async move {
                let mut own = (worker..CONVERSATIONS).step_by(AT_ONCE).cycle();
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    let conversation = own.next().unwrap_or(worker);
                    turn(&store, conversation, numbers.fetch_add(1, Ordering::Relaxed)).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker ends");
    }
    started.elapsed()
}

async fn archive(store: &Store, numbers: &AtomicUsize, messages: usize) {
    turn(store, 0, numbers.fetch_add(1, Ordering::Relaxed)).await;
    let inbox = store.open_work().await.expect("reads").pending;
    assert!(inbox.is_empty(), "every turn is finished");
    let filler = (0..messages).map(|n| Entry::new(0, Message::user(format!("{n} {QUESTION}")))).collect();
    let probe = Inbound {
        event_id: "probe".into(),
        aliases: vec![],
        key: key(0),
        user: "U0".into(),
        reply_to: ReplyTo { channel: "D0".into(), thread_ts: None },
        text: String::new(),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        ts: String::new(),
    };
    let inbox = store.accept(&probe, NOW).await.expect("accepts").expect("a new message");
    let BeginOutcome::Ask(open) = store.begin(inbox, None, Hold::Alone, NOW).await.expect("begins") else {
        panic!("a new turn")
    };
    let report = TurnReport::of_command(open.inbound.event_id.clone(), open.inbound.key.clone(), "none");
    let recorded = Recorded { messages: filler, keep_live: true, ..Recorded::of(report, vec![], 0) };
    store.record(open.turn, recorded, NOW).await.expect("records");
    store.finish(open.turn, vec![], vec![], NOW).await.expect("finishes");
    store.reset(&key(0), NOW).await.expect("resets");
}

fn turns(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = criterion.benchmark_group("turns");
    group.throughput(Throughput::Elements(1)).sample_size(20).measurement_time(Duration::from_secs(8));

    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path()).expect("a store");
    let numbers = Arc::new(AtomicUsize::new(0));
    group.bench_function("64-at-once", |bencher| {
        bencher.iter_custom(|turns| runtime.block_on(many(&store, &numbers, turns)));
    });
    drop(store);

    for archived in [0, 1_000, 15_276] {
        let home = tempfile::tempdir().expect("a folder");
        let store = Store::open(home.path()).expect("a store");
        let numbers = AtomicUsize::new(0);
        runtime.block_on(archive(&store, &numbers, archived));
        group.bench_function(format!("one/{archived}-archived"), |bencher| {
            bencher.iter(|| runtime.block_on(turn(&store, 0, numbers.fetch_add(1, Ordering::Relaxed))));
        });
    }
    group.finish();
}

criterion_group!(benches, turns);
criterion_main!(benches);
