//! Damage and bugs end the operation that meets them, and nothing else.

use std::{fs, io::ErrorKind};

use pmk_core::SessionKey;

use super::*;

const PAGE: usize = 4096;

fn key(n: usize) -> String {
    format!("slack:dm:U{n}")
}

/// Fills a page other than the first with noise from a seed.
fn scramble(bytes: &mut [u8], pages: usize, seed: u64) {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for _ in 0..pages {
        let page = 1 + random() % (bytes.len() / PAGE - 1);
        bytes[page * PAGE..(page + 1) * PAGE].fill_with(|| random() as u8);
    }
}

#[tokio::test]
async fn scrambled_pages_are_known_as_damage_by_whoever_needs_them_and_others_go_on() {
    const CONVERSATIONS: usize = 40;
    let home = home();
    let path = Store::path(home.path());
    let store = open(&home);
    for n in 0..CONVERSATIONS {
        let inbox = accept(&store, &key(n), &format!("Ev{n}")).await;
        let open = ask(&store, inbox).await;
        store.record(open.turn, recorded("q", &format!("{n} 預算 ").repeat(1_500)), NOW).await.unwrap();
        store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    let (mut went_on, mut damaged) = (0, 0);
    // If the damaged page is one that every message needs, no operation succeeds; so there are so many tries, some
    // of which must not hit such a page.
    for seed in 0..24 {
        let mut bytes = whole.clone();
        scramble(&mut bytes, 20, seed);
        fs::write(&path, &bytes).unwrap();
        // The damage may also prevent opening.
        let Ok(store) = Store::open(home.path()) else { continue };
        for n in 0..CONVERSATIONS {
            let outcome = async {
                let new = store.accept(&inbound(&key(n), &format!("Ev{seed}-{n}")), NOW).await?;
                store.begin(new.expect("a new message"), None, Hold::Alone, NOW).await
            };
            match outcome.await {
                Ok(begun) => went_on += usize::from(matches!(begun, BeginOutcome::Ask(_))),
                Err(error) => {
                    assert_eq!(error.kind(), StoreErrorKind::Stuck, "seed {seed}: {error}");
                    assert!(error.hint().is_some_and(|hint| hint.contains("sessions reset KEY")), "{error}");
                    damaged += 1;
                }
            }
        }
    }
    assert!(went_on > CONVERSATIONS && damaged > 0, "{went_on} went on, {damaged} met damage");
}

#[tokio::test]
async fn a_value_of_another_type_is_damage() {
    let home = home();
    let store = open(&home);
    turn(&store, "slack:dm:U1", "Ev1").await;
    let error = store
        .read(|conn| Ok(conn.query_row("SELECT 'text'", [], |row| row.get::<_, i64>(0))?))
        .await
        .expect_err("no number");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn a_panic_of_one_operation_is_its_own() {
    let home = home();
    let store = open(&home);
    let inbox = accept(&store, "slack:dm:U1", "Ev1").await;
    let before = number(&home, "SELECT count(*) FROM seen");
    let panicked = store
        .write(|conn| -> Result<(), Fault> {
            conn.execute("DELETE FROM seen", [])?;
            panic!("boom");
        })
        .await
        .unwrap_err();
    assert_eq!(panicked, StoreError::Panicked { message: "boom".into() });
    assert_eq!(panicked.kind(), StoreErrorKind::Stuck);
    assert_eq!(number(&home, "SELECT count(*) FROM seen"), before, "it is undone");
    for _ in 0..3 {
        // More panics than there are threads.
        let panicked = store.read(|_| -> Result<(), Fault> { panic!("boom {}", 2) }).await.unwrap_err();
        assert_eq!(panicked, StoreError::Panicked { message: "boom 2".into() });
    }
    assert!(matches!(store.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Ask(_)));
    assert_eq!(store.sessions().await.unwrap().len(), 1);
}

#[test]
fn every_error_says_whether_to_wait_to_give_up_or_to_end() {
    let path = std::path::PathBuf::from("pmk-host.db");
    let message = String::from("so");
    let key: SessionKey = "slack:dm:U1".parse().unwrap();
    let turn = TurnId(1);
    let of = |errors: Vec<StoreError>, kind: StoreErrorKind| {
        for error in errors {
            assert_eq!(error.kind(), kind, "{error}");
            assert_eq!(
                (error.is_passing(), error.is_lost()),
                (kind == StoreErrorKind::Passing, kind == StoreErrorKind::Lost)
            );
        }
    };
    of(
        vec![
            StoreError::Full { path: path.clone() },
            StoreError::Limited { path: path.clone(), bytes: 1 },
            StoreError::Io { path: path.clone(), message: ErrorKind::PermissionDenied.to_string() },
            StoreError::Busy { path: path.clone() },
            StoreError::NoRoom { path: path.clone(), needed: 2, free: 1 },
            StoreError::Leased { key: key.clone(), owner: "another".into() },
            StoreError::LeaseLost { key: key.clone() },
        ],
        StoreErrorKind::Passing,
    );
    of(
        vec![
            StoreError::Damaged { path: path.clone(), message: message.clone() },
            StoreError::UnknownSession(key.clone()),
            StoreError::Exists(key),
            StoreError::WrongState { turn, why: "is done with" },
            StoreError::NoSuchPosition(3),
            StoreError::Panicked { message: message.clone() },
            StoreError::Sql { path: path.clone(), message: message.clone() },
        ],
        StoreErrorKind::Stuck,
    );
    of(
        vec![
            StoreError::Missing { path: path.clone() },
            StoreError::Newer { path: path.clone(), found: 9, known: 1 },
            StoreError::Outdated { path: path.clone(), found: 0, known: 1 },
            StoreError::OldAndReadOnly { path: path.clone(), found: 0, known: 1 },
            StoreError::NotMigrated { path: path.clone(), found: 0, known: 1, why: message.clone() },
            StoreError::NotUpgraded {
                path: path.clone(),
                found: 0,
                known: 1,
                why: Box::new(StoreError::Full { path: path.clone() }),
                backup: path.clone(),
            },
            StoreError::Foreign { path: path.clone() },
            StoreError::Gone { path: path.clone(), how: Loss::Replaced },
            StoreError::NoDatabase { path, message },
            StoreError::Closed,
        ],
        StoreErrorKind::Lost,
    );
}
