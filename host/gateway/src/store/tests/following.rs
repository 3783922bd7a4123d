//! Who is followed in a thread, in whatever order the messages arrive.

use pmk_core::SessionKey;

use super::*;

const KEY: &str = "slack:channel:C1:100.000000";

/// What happens, in order: who writes when, and whether it is a mention, alone or not.
enum Word {
    Alone(&'static str, &'static str),
    Among(&'static str, &'static str),
    Plain(&'static str, &'static str, bool),
}

use Word::{Alone, Among, Plain};

async fn rules_on(words: &[Word]) {
    let home = home();
    let store = open(&home);
    accept(&store, KEY, "Ev1").await;
    let key: SessionKey = KEY.parse().unwrap();
    for word in words {
        match word {
            Alone(user, ts) => store.mentioned(&key, user, ts, true).await.unwrap(),
            Among(user, ts) => store.mentioned(&key, user, ts, false).await.unwrap(),
            Plain(user, ts, expected) => {
                assert_eq!(store.overheard(&key, user, ts).await.unwrap(), *expected, "{user} at {ts}");
            }
        }
    }
}

#[tokio::test]
async fn who_has_mentioned_it_is_followed_until_somebody_else_writes() {
    rules_on(&[
        Plain("U1", "099.000000", false),
        Alone("U1", "100.000000"),
        Plain("U1", "101.000000", true),
        Plain("U2", "102.000000", false),
        Plain("U1", "103.000000", false),
        Plain("U2", "104.000000", false),
        Alone("U1", "105.000000"),
        Plain("U1", "106.000000", true),
        Among("U2", "107.000000"),
        Plain("U1", "108.000000", false),
        Plain("U2", "109.000000", false),
    ])
    .await;
}

#[tokio::test]
async fn what_counts_is_when_it_was_written() {
    rules_on(&[
        Alone("U1", "100.000000"),
        Plain("U2", "105.000000", false),
        // Written before it, but arrived after it.
        Plain("U1", "104.000000", true),
        Plain("U2", "103.000000", false),
        Plain("U1", "104.000000", false),
        Plain("U1", "102.000000", true),
        // The same mention again, and one from before the other person's message.
        Alone("U1", "100.000000"),
        Alone("U1", "101.000000"),
        Plain("U1", "104.000000", false),
        Alone("U1", "110.000000"),
        Plain("U2", "109.000000", false),
        Plain("U1", "111.000000", true),
    ])
    .await;
}

/// Regression: a message that arrived while nobody was followed was not considered for a mention that was written
/// before it.
#[tokio::test]
async fn a_word_that_comes_before_an_earlier_mention_ends_the_following() {
    rules_on(&[
        Plain("U2", "105.000000", false),
        Plain("U3", "107.000000", false),
        Plain("U1", "106.000000", false),
        Alone("U1", "103.000000"),
        Plain("U1", "104.000000", true),
        Plain("U1", "106.000000", false),
        Plain("U1", "108.000000", false),
        Alone("U1", "109.000000"),
        Plain("U1", "110.000000", true),
        Among("U2", "120.000000"),
        Alone("U1", "115.000000"),
        Plain("U1", "116.000000", true),
        Plain("U1", "121.000000", false),
    ])
    .await;
}

#[tokio::test]
async fn who_was_not_alone_before_the_mention_is_not_followed_by_that_one() {
    let home = home();
    let store = open(&home);
    accept(&store, KEY, "Ev1").await;
    let key: SessionKey = KEY.parse().unwrap();
    store.mentioned(&key, "U1", "100.000000", true).await.unwrap();
    store.was_not_alone(&key, "U1", "099.000000").await.unwrap();
    assert!(store.overheard(&key, "U1", "101.000000").await.unwrap(), "by another mention");
    store.was_not_alone(&key, "U1", "100.000000").await.unwrap();
    assert!(!store.overheard(&key, "U1", "101.000000").await.unwrap());
    // The same mention, delivered again.
    store.mentioned(&key, "U1", "100.000000", true).await.unwrap();
    assert!(!store.overheard(&key, "U1", "101.000000").await.unwrap());
    store.mentioned(&key, "U1", "102.000000", true).await.unwrap();
    assert!(store.overheard(&key, "U1", "103.000000").await.unwrap());
}

#[tokio::test]
async fn a_word_that_changes_nothing_writes_nothing() {
    let home = home();
    let store = open(&home);
    accept(&store, KEY, "Ev1").await;
    let (key, elsewhere): (SessionKey, SessionKey) =
        (KEY.parse().unwrap(), "slack:channel:C1:200.000000".parse().unwrap());
    store.mentioned(&key, "U1", "100.000000", true).await.unwrap();
    store.mentioned(&elsewhere, "U1", "200.000000", true).await.unwrap();
    store.overheard(&key, "U2", "101.000000").await.unwrap();
    let changes = || number(&home, "SELECT count(*) FROM session");
    let log = || match home.database {
        None => std::fs::metadata(Store::path(home.path()).with_file_name("pmk-host.db-wal")).unwrap().len() as i64,
        // A row that is rewritten has another transaction id.
        Some(_) => number(&home, "SELECT CAST(sum(CAST(CAST(xmin AS TEXT) AS BIGINT)) AS BIGINT) FROM session"),
    };
    let before = (changes(), log());
    for n in 2..50 {
        assert!(!store.overheard(&key, "U2", &format!("1{n:02}.000000")).await.unwrap());
        assert!(!store.overheard(&elsewhere, "U1", &format!("2{n:02}.000000")).await.unwrap());
    }
    assert_eq!((changes(), log()), before);
}
