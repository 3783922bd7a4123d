//! Measures the retrieval of atoms, and the search inside one conversation of a large archive.
//!
//! `cargo bench -p pmk-host --bench retrieval`

use std::{hint::black_box, path::Path};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pmk_index::{Column, Filter, Index};
use pmk_knowledge::{
    Atom, Library, MAX_RETRIEVED,
    atom::{NewAtom, Source},
    moderation,
};
use pmk_search::Query;
use rusqlite::Connection;

const CREATED_MS: i64 = 1_777_342_416_133;

const SUBJECTS: [&str; 12] = [
    "廣告預算",
    "離職帳號",
    "發票作廢",
    "採購單",
    "庫存盤點",
    "客訴紀錄",
    "revenue dashboard",
    "deployment rollback",
    "payment webhook",
    "sales_performances",
    "access control",
    "monthly report",
];
const DEEDS: [&str; 8] = ["查詢", "分配比例", "權限設定", "匯出", "審核流程", "failure", "schedule", "configuration"];
const PLACES: [&str; 10] =
    ["財務部", "業務部", "行銷部", "倉管", "客服", "backend", "frontend", "staging", "production", "warehouse"];

fn pick<'a>(from: &[&'a str], n: usize) -> &'a str {
    from[n % from.len()]
}

/// The nth of many texts that share words like the texts of one team.
fn sentence(n: usize) -> String {
    let (subject, deed, place) = (pick(&SUBJECTS, n), pick(&DEEDS, n / 12), pick(&PLACES, n / 96));
    format!("{place}的{subject}要怎麼{deed}？ case {n} of the {subject} {deed} in {place}")
}

fn fill(home: &Path, atoms: usize) {
    let library = Library::open(home).expect("a temporary home");
    for n in 0..atoms {
        let question = sentence(n);
        let answer =
            format!("{} 先到後台，再看設定。{} 有問題找 {}。", sentence(n + 7), sentence(n + 31), pick(&PLACES, n));
        let mut atom = Atom::pending(NewAtom {
            created_at_ms: CREATED_MS + n as i64 * 60_000,
            scope: pick(&["erp", "crm", "oss-ui-v2", "general"], n),
            question: &question,
            summary: &answer,
            tags: vec![pick(&SUBJECTS, n).to_owned(), pick(&DEEDS, n / 12).to_owned()],
            asked_as: Vec::new(),
            answer: &answer,
            source: Source::default(),
            suspicion: None,
        });
        atom.approve();
        library.files().save_new(&atom).expect("a temporary home");
    }
}

const QUESTIONS: [&str; 4] = [
    "行銷部這個月的廣告預算怎麼分配？",
    "How is the deployment rollback configured in production?",
    "sales_performances 的權限在哪裡設定",
    "I was talking to the people in the warehouse yesterday, and 他們說庫存盤點的審核流程 changed; which schedule holds now?",
];

fn atoms(c: &mut Criterion) {
    let mut group = c.benchmark_group("atoms");
    for size in [100, 1_000, 10_000] {
        let home = tempfile::tempdir().expect("a temporary folder");
        fill(home.path(), size);
        let mut library = Library::open(home.path()).expect("a temporary home");
        library.refresh(CREATED_MS).expect("a readable home");
        // After a moment, nothing has to be read again.
        std::thread::sleep(std::time::Duration::from_millis(300));
        library.refresh(CREATED_MS).expect("a readable home");
        let mut n = 0;
        group.bench_function(BenchmarkId::new("retrieve", size), |b| {
            b.iter(|| {
                n += 1;
                let question = QUESTIONS[n % QUESTIONS.len()];
                black_box(library.retrieve(question, CREATED_MS, MAX_RETRIEVED).expect("a readable home"))
            });
        });
        group.sample_size(10);
        group.bench_function(BenchmarkId::new("load", size), |b| {
            b.iter(|| moderation::load(library.files(), CREATED_MS, moderation::Promote::No).expect("a readable home"));
        });
        group.bench_function(BenchmarkId::new("restart", size), |b| {
            b.iter(|| {
                let mut library = Library::open(home.path()).expect("a temporary home");
                library.retrieve(QUESTIONS[0], CREATED_MS, MAX_RETRIEVED).expect("a readable home")
            });
        });
    }
    group.finish();
}

fn archive(c: &mut Criterion) {
    const INDEX: Index = Index { name: "archive", columns: &[Column { name: "text", weight: 1.0 }] };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let db = Connection::open(dir.path().join("archive.sqlite")).expect("a temporary database");
    INDEX.create(&db).expect("a new database");
    let transaction = db.unchecked_transaction().expect("a new database");
    for n in 0..100_000_usize {
        let text = format!("{} {} {}", sentence(n), sentence(n.wrapping_mul(31) % 9_973), sentence(n / 7));
        INDEX.add(&db, n as i64, (n / 10_000) as i64, &[&text]).expect("a new database");
    }
    transaction.commit().expect("a new database");
    let mut group = c.benchmark_group("archive");
    for (name, question) in [
        ("four words", "production payment webhook failure"),
        (
            "twelve words",
            "the case of the revenue dashboard configuration in production, and the monthly report schedule for frontend and warehouse 庫存盤點",
        ),
    ] {
        group.bench_function(BenchmarkId::new("one conversation", name), |b| {
            let filter = Filter { group: 3, below: None };
            b.iter(|| INDEX.query(&db, &Query::new(question), filter, 20).expect("a good database"));
        });
    }
    group.finish();
}

criterion_group!(benches, atoms, archive);
criterion_main!(benches);
