//! Measures the search in one conversation of 10,000 messages among 100,000 stored ones, as a policy makes it, and
//! reading a result with its neighbouring messages.
//!
//! `cargo bench -p pmk-host --bench archive`

use std::{cell::Cell, hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use pmk_core::{Archive, Message};
use pmk_host::store::{DumpedMessage, SessionDump, Store, StoreArchive};

const CONVERSATIONS: usize = 10;
const MESSAGES: usize = 10_000;
const FOUND: usize = 60;

const SUBJECTS: [&str; 10] = [
    "廣告預算",
    "離職帳號",
    "發票作廢",
    "採購單",
    "庫存盤點",
    "revenue dashboard",
    "deployment rollback",
    "payment webhook",
    "sales_performances",
    "monthly report",
];
const DEEDS: [&str; 7] = ["查詢", "分配比例", "權限設定", "匯出", "failure", "schedule", "configuration"];
const PLACES: [&str; 9] = ["財務部", "業務部", "行銷部", "倉管", "客服", "backend", "frontend", "staging", "warehouse"];

const QUESTIONS: [&str; 6] = [
    "財務部的廣告預算要怎麼分配？",
    "why did the deployment rollback in staging fail on run 4711?",
    "那是什麼時候的事？上次說的發票作廢",
    "who changed the schedule of the monthly report, and when was that decided?",
    "sales_performances 在倉管的匯出權限是誰設定的",
    "case 1234",
];

/// The nth message of a conversation: words that many messages share, and a few that hardly any other has.
fn said(n: usize) -> Message {
    let pick = |from: &[&'static str], n: usize| from[n % from.len()];
    let (subject, deed, place) = (pick(&SUBJECTS, n), pick(&DEEDS, n / 7), pick(&PLACES, n / 31));
    let text = format!(
        "{place}的{subject}要怎麼{deed}？ case {n}: the {subject} {deed} in {place} came up again on run {}, \
         someone looked into it and wrote down what was decided before the others left",
        n * 7919 % 100_003
    );
    if n.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) }
}

fn conversation(at: usize) -> SessionDump {
    let message = |n| DumpedMessage { id: None, message: said(n + at * 3), tokens: 80, created_at_ms: n as i64 };
    SessionDump {
        key: format!("slack:dm:U{at}").parse().expect("a key"),
        created_at_ms: 0,
        active_at_ms: 0,
        turns: (MESSAGES / 2) as u64,
        dropped_turns: 0,
        marker_template: None,
        verbosity: None,
        messages: (0..MESSAGES).map(message).collect(),
        has_made_up_times: false,
        live: vec![],
        cases: vec![],
        images: vec![],
    }
}

fn archive(store: &Store) -> StoreArchive {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        for at in 0..CONVERSATIONS {
            store.restore(conversation(at), false, 0).await.expect("a store that can be written");
        }
        let key = "slack:dm:U4".parse().expect("a key");
        let lease = store.lease(&key, "a benchmark", Duration::ZERO, 0).await.expect("a conversation that nobody has");
        store.archive_of(lease.session(), MESSAGES as u32)
    })
}

fn search(c: &mut Criterion) {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path()).expect("a store");
    let archive = archive(&store);
    let next = Cell::new(0);
    let question = || {
        next.set(next.get() + 1);
        QUESTIONS[next.get() % QUESTIONS.len()]
    };
    c.bench_function("archive/search/10000_of_100000", |b| {
        b.iter(|| black_box(archive.search(question(), FOUND, &|_| true)));
    });
    c.bench_function("archive/read_5", |b| b.iter(|| black_box(archive.read(5_000..5_005))));
}

criterion_group!(benches, search);
criterion_main!(benches);
