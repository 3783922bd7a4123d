//! Hosts that work on a shared database at the same time: which host leaves a conversation to another, and until
//! when.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use pmk_core::SessionKey;
use tokio::task::JoinSet;

use super::{
    hosts::{at_work, gone, two},
    on_postgres::{Home, number},
    *,
};
use crate::store::error::Fault;

#[tokio::test]
async fn whoever_stands_back_from_conversations_sees_at_one_look_which_of_them_are_free_by_now() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let keys = ["slack:dm:U1", "slack:dm:U2", "slack:dm:U3", "slack:dm:U4", "slack:dm:U5"];
    let all: Vec<SessionKey> = keys.iter().map(|key| key.parse().unwrap()).collect();
    let free = async |store: &Store| {
        let mut free = store.free_among(all.clone()).await.unwrap();
        free.sort_by_key(|free| free.key.to_string());
        free.iter().map(|free| (free.key.to_string(), free.is_anothers_next)).collect::<Vec<_>>()
    };
    let are = |free: &[(&str, bool)]| free.iter().map(|&(key, next)| (key.to_owned(), next)).collect::<Vec<_>>();
    let theirs = accept(&first, keys[0], "Ev1").await;
    ask(&first, theirs).await;
    let own = accept(&second, keys[1], "Ev2").await;
    ask(&second, own).await;
    turn(&first, keys[2], "Ev3").await;
    let leased = accept(&first, keys[3], "Ev4").await;
    let _lease = first.lease(&all[3], "sessions reset", Duration::ZERO, NOW).await.unwrap();
    assert!(matches!(second.begin(leased, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Busy));
    // The last conversation does not exist, so nobody works on it.
    let [one, two, three, four, five] = keys;
    assert_eq!(free(&first).await, are(&[(one, false), (three, false), (four, false), (five, false)]));
    assert_eq!(free(&second).await, are(&[(two, false), (three, false), (four, true), (five, false)]));
    gone(first).await;
    assert!(second.look_after_hosts().await.unwrap());
    assert_eq!(free(&second).await, are(&[(one, false), (two, false), (three, false), (four, false), (five, false)]));
    assert!(second.free_among(vec![]).await.unwrap().is_empty());
}

/// All of three hosts receive the questions of a few conversations, and each question is answered by the host that
/// gets to it first.
#[tokio::test(flavor = "multi_thread")]
async fn three_hosts_that_work_at_once_answer_each_question_once_and_in_order() {
    const CONVERSATIONS: usize = 5;
    const QUESTIONS: usize = 24;
    let Some([one, other]) = two() else { return };
    let third = Home { folder: tempfile::tempdir().unwrap(), database: one.database.clone() };
    let homes = [one, other, third];
    let mut hosts = Vec::new();
    for home in &homes {
        hosts.push(at_work(home).await);
    }
    let taken: Arc<Mutex<HashSet<SessionId>>> = Arc::default();
    let mut work = JoinSet::new();
    for (store, _) in &hosts {
        for conversation in 0..CONVERSATIONS {
            let store = store.clone();
            work.spawn(async move {
                for n in 1..=QUESTIONS {
                    let asked = inbound(&format!("slack:dm:U{conversation}"), &format!("Ev{conversation}-{n}"));
                    store.accept(&Inbound { ts: format!("{n:04}.000000"), ..asked }, NOW).await.unwrap();
                }
            });
        }
        let (store, taken) = (store.clone(), Arc::clone(&taken));
        work.spawn(async move { answer_all(&store, &taken, CONVERSATIONS * QUESTIONS).await });
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    let count = |query: &str| number(&homes[0], query) as usize;
    assert_eq!(count("SELECT count(*) FROM inbox"), CONVERSATIONS * QUESTIONS);
    assert_eq!(count("SELECT count(*) FROM message"), 2 * CONVERSATIONS * QUESTIONS);
    assert_eq!(count("SELECT count(*) FROM session WHERE lease_owner IS NOT NULL"), 0);
    for conversation in 0..CONVERSATIONS {
        let texts = live_texts(&hosts[0].0, &format!("slack:dm:U{conversation}")).await;
        assert!(texts.iter().step_by(2).is_sorted(), "in the order in which they were asked: {texts:?}");
    }
}

/// Answers what is open until all is answered.
async fn answer_all(store: &Store, taken: &Mutex<HashSet<SessionId>>, questions: usize) {
    let answered = |conn: &Connection| -> Result<i64, Fault> {
        Ok(conn.query_row("SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL", [], |row| row.get(0))?)
    };
    let open = |conn: &Connection| -> Result<Vec<i64>, Fault> {
        let mut open = conn.prepare_cached("SELECT id FROM inbox WHERE message IS NOT NULL ORDER BY ts, id LIMIT 8")?;
        Ok(open.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    };
    while store.read(answered).await.unwrap() < questions as i64 {
        for inbox in store.read(open).await.unwrap() {
            let BeginOutcome::Ask(turn) = store.begin(InboxId(inbox), None, Hold::Alone, NOW).await.unwrap() else {
                continue;
            };
            assert!(taken.lock().unwrap().insert(turn.session), "two hosts are at work in one conversation");
            store.record(turn.turn, recorded(&turn.inbound.ts, "a"), NOW).await.unwrap();
            taken.lock().unwrap().remove(&turn.session);
            store.finish(turn.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
        }
    }
}
