//! Hosts that share a database: each conversation is worked on by one host, and a host that was declared gone
//! writes nothing.

use std::time::Duration;

use futures_util::FutureExt as _;
use pmk_stand_ins::patience::PATIENCE;

use super::{
    on_postgres::{Home, asked, asking::asking, home, it_is, number, open},
    *,
};
use crate::{
    chat::{DeletedAuthor, Deletion},
    directive::Kind,
    store::{Bound, Erasing, error::Fault, sql::Connection},
};

const KEY: &str = "slack:dm:U1";

/// Homes of two machines on one database; `None` where tests are to run without PostgreSQL, which the server helper
/// prints.
pub(super) fn two() -> Option<[Home; 2]> {
    let one = home();
    let database = one.database.clone()?;
    Some([one, Home { folder: tempfile::tempdir().unwrap(), database: Some(database) }])
}

pub(super) async fn at_work(home: &Home) -> (Store, HomeLock) {
    let (store, lock) = (open(home), HomeLock::take(home.path()).unwrap());
    store.take_over(&lock).await.unwrap();
    (store, lock)
}

/// As if no host had been heard of for longer than its lease.
pub(super) fn nothing_is_heard(home: &Home) {
    asked(home, |conn| conn.execute("UPDATE host SET until = 0", []).unwrap());
}

/// As if a home's host had not been heard of for longer than its lease, and never would be again.
fn falls_silent(home: &Home) {
    let silent = format!("UPDATE host SET until = 0, lease_ms = -1 WHERE name LIKE '%:{}'", folder(home));
    asked(home, |conn| assert_eq!(conn.execute(&silent, []).unwrap(), 1));
}

/// As if all hosts had been heard of for an hour.
fn are_long_heard(home: &Home) {
    asked(home, |conn| conn.execute("UPDATE host SET heard_since = heard_since - 3600000", []).unwrap());
}

fn folder(home: &Home) -> String {
    home.path().canonicalize().unwrap().display().to_string()
}

pub(super) async fn gone(store: Store) {
    tokio::task::spawn_blocking(move || drop(store)).await.unwrap();
}

pub(super) async fn answer(store: &Store, inbox: InboxId) {
    let turn = ask(store, inbox).await.turn;
    store.record(turn, recorded("q", "a"), NOW).await.unwrap();
    store.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
}

async fn open_at(store: &Store) -> Vec<InboxId> {
    store.open_work().await.unwrap().pending.into_iter().map(|pending| pending.inbox).collect()
}

#[tokio::test]
async fn a_host_that_was_stopped_for_longer_than_its_lease_writes_nothing_once_another_has_taken_over() {
    let Some([one, other]) = two() else { return };
    let (stopped, _lock) = at_work(&one).await;
    let (host, _other_lock) = at_work(&other).await;
    let inbox = accept(&stopped, KEY, "Ev1").await;
    let turn = ask(&stopped, inbox).await.turn;
    assert!(matches!(host.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Elsewhere));
    host.look_after_hosts().await.unwrap();
    assert_eq!(host.hosts_at_work()(), 2);
    falls_silent(&one);
    are_long_heard(&one);
    assert!(host.look_after_hosts().await.unwrap());
    let refused = stopped.record(turn, recorded("q", "the answer of somebody who sleeps"), NOW).await.unwrap_err();
    assert!(matches!(refused, StoreError::TakenOver { .. }), "{refused}");
    assert!(matches!(stopped.accept(&inbound(KEY, "Ev2"), NOW).await, Err(StoreError::TakenOver { .. })));
    assert!(matches!(stopped.lost().await, StoreError::TakenOver { .. }), "it has to end");
    // What it was working on is for the other host to answer.
    assert_eq!(open_at(&host).await, [inbox]);
    answer(&host, inbox).await;
    assert_eq!(number(&one, "SELECT count(*) FROM message"), 2);
    assert!(!host.look_after_hosts().await.unwrap(), "nobody else is there");
    assert_eq!(host.hosts_at_work()(), 1);
}

/// Regression: a suspended host posted messages that the other host had posted in its place by then.
#[tokio::test]
async fn a_host_that_was_stopped_went_on_speaking_when_it_went_on() {
    let Some([one, other]) = two() else { return };
    let (stopped, _lock) = at_work(&one).await;
    let (host, _other_lock) = at_work(&other).await;
    let fence = stopped.fence();
    accept(&stopped, KEY, "Ev1").await;
    let time_goes_by = || stopped.shared.link.as_ref().unwrap().is_heard_no_more();
    fence.holds().await.unwrap();
    time_goes_by();
    fence.holds().await.expect("nobody has taken it for gone");
    falls_silent(&one);
    are_long_heard(&one);
    assert!(host.look_after_hosts().await.unwrap());
    fence.holds().await.expect("it was heard of a moment ago");
    time_goes_by();
    assert!(matches!(fence.holds().await, Err(StoreError::TakenOver { .. })));
}

#[tokio::test]
async fn without_its_number_among_the_hosts_nothing_would_keep_a_host_that_slept_from_writing() {
    let Some([one, other]) = two() else { return };
    let (stopped, _lock) = at_work(&one).await;
    let (host, _other_lock) = at_work(&other).await;
    let inbox = accept(&stopped, KEY, "Ev1").await;
    let turn = ask(&stopped, inbox).await.turn;
    falls_silent(&one);
    are_long_heard(&one);
    assert!(host.look_after_hosts().await.unwrap());
    let unfenced = "CREATE OR REPLACE FUNCTION pmk_host_writes(host_id BIGINT) RETURNS VOID LANGUAGE sql AS ''";
    asked(&one, |conn| conn.execute_batch(unfenced).unwrap());
    ask(&host, inbox).await;
    // Then only operations that check the lease are refused.
    assert!(matches!(stopped.record(turn, recorded("q", "late"), NOW).await, Err(StoreError::Changed)));
    host.record(turn, recorded("q", "a"), NOW).await.unwrap();
    stopped.part_sent(turn, sent(0, None), vec![], NOW).await.unwrap();
    assert_eq!(number(&one, "SELECT count(*) FROM outbox WHERE sent_at IS NOT NULL"), 1);
}

#[tokio::test]
async fn where_the_database_was_away_for_a_while_nobody_is_taken_for_gone() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    are_long_heard(&one);
    nothing_is_heard(&one);
    assert!(!first.look_after_hosts().await.unwrap(), "it seems to be gone itself");
    // Its next sign of life is the first for a long time.
    accept(&first, KEY, "Ev1").await;
    falls_silent(&other);
    assert!(!first.look_after_hosts().await.unwrap(), "it has not been there for long itself");
    accept(&second, KEY, "Ev2").await;
}

/// Once, nobody who died was declared gone, and nobody took over its work, before the database's clock had caught up.
#[tokio::test]
async fn a_host_that_died_was_taken_for_alive_after_the_databases_clock_was_set_back() {
    let Some([one, other]) = two() else { return };
    let ahead = |ms: i64| {
        let now = format!(
            "CREATE OR REPLACE FUNCTION pmk_now() RETURNS BIGINT LANGUAGE sql VOLATILE
             AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT + {ms} $$"
        );
        asked(&one, |conn| conn.execute_batch(&now).unwrap());
    };
    let [(first, lock), (second, other_lock)] =
        [&one, &other].map(|home| (open(home), HomeLock::take(home.path()).unwrap()));
    ahead(3_600_000);
    first.take_over(&lock).await.unwrap();
    second.take_over(&other_lock).await.unwrap();
    let taken = accept(&second, KEY, "Ev1").await;
    ahead(0);
    let lives = async || first.other_hosts().await.unwrap()[0].state != HostState::Silent;
    assert!(!first.look_after_hosts().await.unwrap(), "it was not heard of itself for long by the new time");
    second.look_after_hosts().await.unwrap();
    assert!(lives().await, "each has renewed its own");
    assert_eq!(first.other_hosts().await.unwrap()[0].silent_ms / 10_000, 0);
    are_long_heard(&one);
    assert!(!first.look_after_hosts().await.unwrap(), "nobody is gone");
    let as_before = format!("UPDATE host SET until = until + 3600000 WHERE name LIKE '%:{}'", folder(&other));
    asked(&one, |conn| assert_eq!(conn.execute(&as_before, []).unwrap(), 1));
    assert!(!lives().await, "it died before the clock was set back");
    assert!(first.look_after_hosts().await.unwrap());
    assert_eq!(open_at(&first).await, [taken]);
}

#[tokio::test]
async fn a_host_that_nobody_has_taken_over_from_goes_on_after_its_lease() {
    let Some([one, _]) = two() else { return };
    let (host, _lock) = at_work(&one).await;
    nothing_is_heard(&one);
    accept(&host, KEY, "Ev1").await;
    assert_eq!(number(&one, "SELECT count(*) FROM host WHERE until > pmk_now()"), 1, "and has a new one");
}

#[tokio::test]
async fn a_host_whose_clock_was_an_hour_ahead_of_the_databases_took_the_others_for_long_silent() {
    let Some([one, other]) = two() else { return };
    let (first, lock) = (open(&one), HomeLock::take(one.path()).unwrap());
    let behind = "CREATE OR REPLACE FUNCTION pmk_now() RETURNS BIGINT LANGUAGE sql VOLATILE
        AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT - 3600000 $$";
    asked(&one, |conn| conn.execute_batch(behind).unwrap());
    assert_eq!(first.take_over(&lock).await.unwrap(), None, "nobody was there");
    let (second, other_lock) = (open(&other), HomeLock::take(other.path()).unwrap());
    let last = second.take_over(&other_lock).await.unwrap().unwrap();
    let silent_ms = pmk_system::clock::now_ms() - last.at_ms;
    assert!((0..600_000).contains(&silent_ms), "{silent_ms}");
}

#[tokio::test]
async fn whoever_starts_took_a_host_that_was_asked_to_end_for_one_that_crashed() {
    let Some([one, _]) = two() else { return };
    let (_killed, lock) = at_work(&one).await;
    let was_asked = async |next: &Store| next.take_over(&lock).await.unwrap().unwrap().was_asked;
    let killed_amid_its_end = open(&one);
    assert!(!was_asked(&killed_amid_its_end).await);
    killed_amid_its_end.leaves().await.unwrap();
    let stopped = open(&one);
    assert!(was_asked(&stopped).await);
    stopped.leaves().await.unwrap();
    gone(stopped).await;
    let failing = open(&one);
    assert!(was_asked(&failing).await);
    gone(failing).await;
    let next = open(&one).take_over(&lock).await.unwrap();
    assert!(next.is_none(), "a start that failed is no sign that anybody was there: {next:?}");
}

#[tokio::test]
async fn hosts_whose_clocks_differ_by_an_hour_told_somebody_twice_an_hour() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let hour = 60 * 60 * 1_000;
    assert_eq!(first.claim_telling("U1", NOW, hour).await.unwrap(), Telling::New);
    assert_eq!(second.claim_telling("U1", NOW + hour, hour).await.unwrap(), Telling::Not);
    asked(&one, |conn| conn.execute("UPDATE told SET at = at - 3600000", []).unwrap());
    assert_eq!(second.claim_telling("U1", NOW, hour).await.unwrap(), Telling::New);
}

#[tokio::test]
async fn hosts_whose_clocks_differ_by_more_than_an_hour_deleted_each_others_counts() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let mut turn = ask(&first, accept(&first, KEY, "Ev1").await).await;
    let (now, ahead) = (number(&one, "SELECT pmk_now()"), 61 * 60 * 1_000);
    let asking = || asking(Kind::Escalate, "U1", turn.session);
    assert_eq!(first.count_asked(asking(), 2, now).await.unwrap(), None);
    assert_eq!(second.count_asked(asking(), 2, now + ahead).await.unwrap(), None);
    assert_eq!(first.count_asked(asking(), 2, now).await.unwrap(), Some(Bound::Person));
    // Questions of apps are received by either clock.
    for (store, by) in [(&first, now - ahead), (&second, now + ahead)] {
        turn.received_at_ms = by;
        assert_eq!(store.count_of_app(&turn, 2, by).await.unwrap(), None);
    }
    turn.received_at_ms = now;
    assert_eq!(first.count_of_app(&turn, 2, now).await.unwrap(), Some(Bound::Person));
    // One that is begun anew has been counted.
    turn.received_at_ms = now - ahead;
    turn.resumed = true;
    for _ in 0..3 {
        assert_eq!(first.count_of_app(&turn, 2, now).await.unwrap(), None);
    }
}

/// Regression: the host that took a message in dated it, and the host that erased counted from its own clock.
#[tokio::test]
async fn a_conversation_was_too_young_or_too_old_by_the_clock_of_one_of_its_hosts() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let (now, day) = (number(&one, "SELECT pmk_now()"), 24 * 60 * 60 * 1_000);
    for (event, by) in [("Ev1", now - 2 * day), ("Ev2", now + 2 * day)] {
        let inbox = first.accept(&inbound(KEY, event), by).await.unwrap().unwrap();
        answer(&first, inbox).await;
        for by in [now - 2 * day, now + 2 * day] {
            assert_eq!(second.idle_conversations(1, by).await.unwrap(), []);
            let erasing = Erasing::Idle { days: 1 };
            let kept = second.erase_conversation(&KEY.parse().unwrap(), erasing, Duration::ZERO, by).await;
            assert_eq!(kept.unwrap_err(), StoreError::NotIdle(KEY.parse().unwrap()));
        }
    }
    asked(&one, |conn| conn.execute_batch("UPDATE session SET active_at = active_at - 2 * 86400000").unwrap());
    assert_eq!(second.idle_conversations(1, now - 2 * day).await.unwrap(), [KEY.parse().unwrap()]);
}

#[tokio::test]
async fn a_command_that_died_on_a_machine_whose_clock_is_ahead_kept_its_conversation_for_an_hour() {
    let Some([one, other]) = two() else { return };
    let (host, _lock) = at_work(&one).await;
    let inbox = accept(&host, KEY, "Ev1").await;
    let (hour, lasts) = (60 * 60 * 1_000, lease::LEASE_FOR.as_millis() as i64);
    let now = number(&one, "SELECT pmk_now()");
    let command = Store::open_existing(&other).unwrap();
    let _lost = command.lease(&KEY.parse().unwrap(), "test", Duration::ZERO, now + hour).await.unwrap();
    assert!(matches!(host.begin(inbox, None, Hold::Alone, now + hour).await.unwrap(), BeginOutcome::Busy));
    it_is(&one, now + lasts + 10_000);
    assert!(matches!(host.begin(inbox, None, Hold::Alone, now).await.unwrap(), BeginOutcome::Ask(_)));
}

/// Regression: after a failover, who still had the number of a lost message answered another conversation's in its place.
#[tokio::test]
async fn a_number_that_a_database_gave_again_was_begun_in_the_conversation_that_had_lost_it() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let lost = accept(&first, KEY, "Ev1").await;
    let forget = format!(
        "DELETE FROM inbox; DELETE FROM seen; SELECT setval(pg_get_serial_sequence('inbox', 'id'), {lost}, false)",
    );
    asked(&one, |conn| conn.execute_batch(&forget).unwrap());
    let theirs = accept(&second, "slack:dm:U2", "Ev2").await;
    assert_eq!(theirs, lost, "it has the same number");
    let of = |key: &str| key.parse::<pmk_core::SessionKey>().unwrap();
    let begun = first.begin(lost, Some(&of(KEY)), Hold::Alone, NOW).await.unwrap();
    assert!(matches!(begun, BeginOutcome::Done));
    assert_eq!(number(&one, "SELECT count(*) FROM turn"), 0);
    let begun = second.begin(theirs, Some(&of("slack:dm:U2")), Hold::Alone, NOW).await.unwrap();
    assert!(matches!(begun, BeginOutcome::Ask(_)));
}

/// Regression: after a failover, an answer that was lost counted as delivered by what was remembered of it.
#[tokio::test]
async fn an_answer_that_a_failed_over_database_had_lost_was_finished_from_memory() {
    let Some([one, _]) = two() else { return };
    let (host, _lock) = at_work(&one).await;
    let turn = ask(&host, accept(&host, KEY, "Ev1").await).await.turn;
    host.record(turn, recorded("q", "a"), NOW).await.unwrap();
    asked(&one, |conn| conn.execute("DELETE FROM outbox", []).unwrap());
    let before = host.returns();
    let torn = |conn: &Connection| -> Result<(), Fault> {
        Ok(conn.query_row("SELECT pg_terminate_backend(pg_backend_pid())", [], |_| Ok(()))?)
    };
    host.write(torn).await.unwrap_err();
    let is_back = async {
        while let Err(error) = host.commit_something().await {
            assert!(error.is_passing(), "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_back).await.expect("a connection");
    assert!(host.returns() > before);
    let refused = host.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap_err();
    assert_eq!(refused, StoreError::Changed, "it is begun anew");
}

#[tokio::test]
async fn one_conversation_is_worked_on_by_one_host_at_a_time() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let earlier = accept(&first, KEY, "Ev1").await;
    let turn = ask(&first, earlier).await.turn;
    let later = accept(&second, KEY, "Ev2").await;
    assert!(matches!(second.begin(later, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Elsewhere));
    let elsewhere = accept(&second, "slack:dm:U2", "Ev3").await;
    answer(&second, elsewhere).await;
    first.record(turn, recorded("q", "a"), NOW).await.unwrap();
    assert!(
        matches!(second.begin(later, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Elsewhere),
        "it is not delivered"
    );
    first.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    answer(&second, later).await;
    assert!(matches!(first.begin(later, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Done));
}

#[tokio::test]
async fn questions_of_a_conversation_are_begun_in_their_order_whichever_hosts_have_taken_them_in() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let written = |event: &str, ts: &str| Inbound { ts: ts.into(), ..inbound(KEY, event) };
    let later = second.accept(&written("Ev2", "1700000002.000100"), NOW).await.unwrap().unwrap();
    let earlier = first.accept(&written("Ev1", "1700000001.000100"), NOW).await.unwrap().unwrap();
    assert!(
        matches!(second.begin(later, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Elsewhere),
        "there is an earlier one"
    );
    let open = second.open_in(&KEY.parse().unwrap()).await.unwrap();
    assert_eq!(open.iter().map(|pending| pending.inbox).collect::<Vec<_>>(), [earlier, later]);
    answer(&second, earlier).await;
    assert!(matches!(first.begin(earlier, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Done));
    answer(&second, later).await;
}

#[tokio::test]
async fn each_host_sees_to_what_it_has_taken_in_and_to_what_one_has_left_that_is_gone() {
    let Some([one, other]) = two() else { return };
    let (first, lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let (theirs, own) = (accept(&first, KEY, "Ev1").await, accept(&second, "slack:dm:U2", "Ev2").await);
    assert_eq!((open_at(&first).await, open_at(&second).await), (vec![theirs], vec![own]));
    gone(first).await;
    assert!(second.look_after_hosts().await.unwrap(), "it has said so");
    assert_eq!(open_at(&second).await, [theirs, own]);
    drop(lock);
    // It is back, and the other host keeps what it took over.
    let (first, _lock) = at_work(&one).await;
    assert_eq!((open_at(&first).await, open_at(&second).await), (vec![], vec![theirs, own]));
}

#[tokio::test]
async fn what_was_said_on_the_terminal_of_a_host_is_answered_there() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let key = "console:dm:U1";
    let theirs = accept(&first, key, "Ev1").await;
    let own = accept(&second, key, "Ev2").await;
    let open = second.open_in(&key.parse().unwrap()).await.unwrap();
    assert_eq!(open.iter().map(|pending| pending.inbox).collect::<Vec<_>>(), [own]);
    answer(&second, own).await;
    answer(&first, theirs).await;
}

#[tokio::test]
async fn what_others_take_in_or_change_of_a_conversation_is_seen_by_who_works_on_it() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let inbox = accept(&first, KEY, "Ev1").await;
    let begun_at = ask(&first, inbox).await.live.revision;
    let later = accept(&second, KEY, "Ev2").await;
    let stopped = second.stop(&KEY.parse().unwrap(), vec![inbox], "U1", None, NOW).await.unwrap();
    assert!(matches!(stopped, Changed::Here { anew: true, .. }), "{stopped:?}");
    let seen = first.under_way().await.unwrap();
    assert_eq!(seen.iter().map(|seen| seen.pending.inbox).collect::<Vec<_>>(), [inbox, later]);
    assert!(seen.iter().all(|seen| seen.revision > begun_at), "{seen:?}");
    assert_eq!(second.under_way().await.unwrap(), []);
}

#[tokio::test]
async fn a_conversation_is_not_free_while_a_turn_is_under_way_that_has_taken_others_along() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let (inbox, along) = (accept(&first, KEY, "Ev1").await, accept(&second, KEY, "Ev2").await);
    let turn = ask(&first, inbox).await.turn;
    let BeginOutcome::Ask(taken) = first.begin(along, None, Hold::Along, NOW).await.unwrap() else {
        panic!("it is open")
    };
    first.finish(taken.turn, vec![], vec![], NOW).await.unwrap();
    assert!(matches!(second.begin(inbox, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Elsewhere));
    first.record(turn, recorded("q", "a"), NOW).await.unwrap();
    first.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    let next = accept(&second, KEY, "Ev3").await;
    answer(&second, next).await;
}

#[tokio::test]
async fn what_another_host_has_begun_anew_is_recorded_by_nobody_else() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let inbox = accept(&first, KEY, "Ev1").await;
    let turn = ask(&first, inbox).await.turn;
    asked(&one, |conn| conn.execute("UPDATE session SET lease_owner = NULL", []).unwrap());
    ask(&second, inbox).await;
    assert!(matches!(first.record(turn, recorded("q", "a"), NOW).await, Err(StoreError::Changed)));
    assert!(matches!(first.begin(inbox, None, Hold::Along, NOW).await.unwrap(), BeginOutcome::Elsewhere));
    second.record(turn, recorded("q", "a"), NOW).await.unwrap();
    second.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
}

#[tokio::test]
async fn who_is_about_to_leave_hands_on_what_it_has_not_begun_and_what_one_does_for_all() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let (begun, waits) = (accept(&first, KEY, "Ev1").await, accept(&first, "slack:dm:U2", "Ev2").await);
    let turn = ask(&first, begun).await.turn;
    assert!(!second.look_after_hosts().await.unwrap() && !second.is_first_to_hear());
    first.leaves().await.unwrap();
    assert!(second.look_after_hosts().await.unwrap(), "there is something to see to");
    assert!(!second.look_after_hosts().await.unwrap(), "once");
    assert!(second.is_first_to_hear() && !second.has_other_hosts());
    assert_eq!((open_at(&first).await, open_at(&second).await), (vec![begun], vec![waits]));
    answer(&second, waits).await;
    // It finishes what it has begun.
    assert!(matches!(second.begin(begun, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Elsewhere));
    first.record(turn, recorded("q", "a"), NOW).await.unwrap();
    first.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    // Without another host it keeps what it has.
    let left = accept(&second, KEY, "Ev3").await;
    gone(first).await;
    second.look_after_hosts().await.unwrap();
    second.leaves().await.unwrap();
    assert_eq!(open_at(&second).await, [left]);
}

/// Regression: each went by its last look, at which the others were still running, and nobody said goodbye.
#[tokio::test]
async fn hosts_that_were_stopped_at_the_same_time_each_left_the_goodbye_to_the_others() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    first.look_after_hosts().await.unwrap();
    assert!(first.has_other_hosts() && second.has_other_hosts());
    first.leaves().await.unwrap();
    second.leaves().await.unwrap();
    assert!(first.others_stay().await, "the second had not said that it leaves");
    assert!(!second.others_stay().await);
}

/// Regression: saying goodbye waited for what it was never told.
#[tokio::test]
async fn a_host_that_could_not_say_that_it_leaves_never_learned_whether_others_go_on() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    falls_silent(&one);
    are_long_heard(&one);
    assert!(second.look_after_hosts().await.unwrap());
    assert!(matches!(first.leaves().await, Err(StoreError::TakenOver { .. })));
    assert_eq!(first.others_stay().now_or_never(), Some(true));
}

/// Regression: it waited until its turns had ended, or left without a goodbye if that took long.
#[tokio::test]
async fn a_host_that_was_alone_learned_only_as_it_ended_that_nobody_goes_on() {
    let Some([one, _]) = two() else { return };
    let (alone, _lock) = at_work(&one).await;
    assert_eq!(alone.others_stay().now_or_never(), Some(false));
}

#[tokio::test]
async fn where_the_database_was_away_for_a_while_one_host_is_the_first_all_the_same() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    nothing_is_heard(&one);
    first.look_after_hosts().await.unwrap();
    second.look_after_hosts().await.unwrap();
    assert!(first.is_first_to_hear() && !second.is_first_to_hear());
}

/// Regression: while the first host could not reach Slack, what everybody had missed was read back by nobody.
#[tokio::test]
async fn the_first_host_put_off_for_all_what_needs_one_that_hears() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    for (deaf, expected) in [
        ([true, true], [true, false]),
        ([true, false], [false, true]),
        ([false, false], [true, false]),
        ([false, true], [true, false]),
    ] {
        first.says_deaf(deaf[0]).await.unwrap();
        second.says_deaf(deaf[1]).await.unwrap();
        first.look_after_hosts().await.unwrap();
        second.look_after_hosts().await.unwrap();
        assert_eq!([first.is_first_to_hear(), second.is_first_to_hear()], expected, "{deaf:?}");
    }
    second.says_deaf(false).await.unwrap();
    second.leaves().await.unwrap();
    first.says_deaf(true).await.unwrap();
    first.look_after_hosts().await.unwrap();
    assert!(first.is_first_to_hear(), "the other one is leaving");
}

#[tokio::test]
async fn who_sets_a_question_aside_does_not_free_the_conversation_that_another_host_works_on() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let (inbox, aside) = (accept(&first, KEY, "Ev1").await, accept(&second, KEY, "Ev2").await);
    let turn = ask(&first, inbox).await.turn;
    second.park(aside, "it cannot be read", vec![], NOW).await.unwrap();
    let next = accept(&second, KEY, "Ev3").await;
    assert!(matches!(second.begin(next, None, Hold::Alone, NOW).await.unwrap(), BeginOutcome::Elsewhere));
    first.record(turn, recorded("q", "a"), NOW).await.unwrap();
    first.finish(turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    answer(&second, next).await;
}

/// Regression: the host that had taken the question in found it lying, and said that this must not happen.
#[tokio::test]
async fn a_question_that_another_host_took_up_again_was_open_where_it_was_accepted() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    for is_stopped in [false, true] {
        let inbox = accept(&first, KEY, &format!("Ev{is_stopped}")).await;
        first.park(inbox, "the model cannot answer it", vec![], NOW).await.unwrap();
        match is_stopped {
            false => drop(second.unpark(None, NOW).await.unwrap()),
            true => drop(second.stop(&KEY.parse().unwrap(), vec![inbox], "U1", None, NOW).await.unwrap()),
        }
        assert_eq!((open_at(&first).await, open_at(&second).await), (vec![], vec![inbox]), "{is_stopped}");
        answer(&second, inbox).await;
    }
}

/// Regression: the answer came out on the terminal of the host where the question was taken up again.
#[tokio::test]
async fn a_question_from_a_hosts_terminal_moved_to_the_host_that_took_it_up_again() {
    let Some([one, other]) = two() else { return };
    let (first, lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    let inbox = accept(&first, "console:dm:U1", "Ev1").await;
    first.park(inbox, "the model cannot answer it", vec![], NOW).await.unwrap();
    let elsewhere = second.unpark(None, NOW).await.unwrap();
    assert_eq!((elsewhere.pending, elsewhere.left), (vec![], 1));
    assert_eq!((open_at(&first).await, open_at(&second).await), (vec![inbox], vec![]));
    assert!(first.open_work().await.unwrap().reopened.contains(&inbox), "it was not lost");
    // What was asked where nobody is any more, whoever takes it up answers.
    first.park(inbox, "the model cannot answer it", vec![], NOW).await.unwrap();
    gone(first).await;
    drop(lock);
    second.look_after_hosts().await.unwrap();
    assert_eq!(second.unpark(None, NOW).await.unwrap().messages(), 1);
    assert_eq!(open_at(&second).await, [inbox]);
}

#[tokio::test]
async fn hosts_are_listed_with_their_version_their_last_sign_and_what_they_work_on_and_the_first_speaks_for_all() {
    let Some([one, other]) = two() else { return };
    let (first, lock) = at_work(&one).await;
    let (second, _other_lock) = at_work(&other).await;
    first.look_after_hosts().await.unwrap();
    assert_eq!((first.is_first_to_hear(), first.has_other_hosts()), (true, true));
    assert_eq!((second.is_first_to_hear(), second.has_other_hosts()), (false, true));
    ask(&first, accept(&first, KEY, "Ev1").await).await;
    asked(&one, |conn| conn.execute("UPDATE host SET version = '7.7.7' WHERE id = 2", []).unwrap());
    assert_eq!(second.hosts().await.unwrap()[0].state, HostState::Deaf, "it has not said that it hears");
    assert!(!second.others_hear(0).await.unwrap());
    first.says_deaf(false).await.unwrap();
    assert!(second.others_hear(0).await.unwrap() && !first.others_hear(0).await.unwrap());
    assert!(!second.others_hear(3_600_000).await.unwrap(), "it was not there an hour ago");
    let [works, works_too]: [Host; 2] = second.hosts().await.unwrap().try_into().unwrap();
    assert_eq!((works.turns, works_too.turns, works.state), (1, 0, HostState::Works));
    assert_eq!((&*works.home, &*works_too.home), (&*folder(&one), &*folder(&other)));
    assert_eq!((&*works.version, &*works_too.version), (env!("CARGO_PKG_VERSION"), "7.7.7"));
    assert_eq!(works.machine, works_too.machine);
    let now = number(&one, "SELECT pmk_now()");
    assert!((0..600_000).contains(&(now - works.since_ms)), "{} of {now}", works.since_ms);
    falls_silent(&one);
    assert_eq!(second.hosts().await.unwrap()[0].state, HostState::Silent);
    are_long_heard(&one);
    assert!(second.look_after_hosts().await.unwrap());
    second.look_after_hosts().await.unwrap();
    assert_eq!((second.is_first_to_hear(), second.has_other_hosts()), (true, false));
    assert_eq!(second.hosts().await.unwrap().len(), 1);
    drop((first, lock));
}

#[tokio::test]
async fn who_was_killed_is_followed_at_once_by_a_run_of_the_same_home() {
    let Some([one, _]) = two() else { return };
    let (killed, lock) = at_work(&one).await;
    let inbox = accept(&killed, KEY, "Ev1").await;
    ask(&killed, inbox).await;
    drop(lock);
    // The host is still there, and its lease is fresh.
    let (next, _lock) = at_work(&one).await;
    ask(&next, inbox).await;
    assert!(matches!(killed.commit_nothing().await, Err(StoreError::TakenOver { .. })));
}

/// Regression: what one host had accepted was new to another whose clock is more than a day ahead.
#[tokio::test]
async fn a_message_was_answered_twice_by_hosts_whose_clocks_are_more_than_a_day_apart() {
    let Some([one, other]) = two() else { return };
    let (behind, _lock) = at_work(&one).await;
    let (ahead, _other_lock) = at_work(&other).await;
    let (message, half_a_day) = (inbound(KEY, "Ev1"), 13 * 60 * 60 * 1_000);
    assert!(behind.accept(&message, NOW - half_a_day).await.unwrap().is_some());
    assert_eq!(ahead.accept(&message, NOW + half_a_day).await.unwrap(), None);
}

/// Regression: that a message was deleted, or what it was edited to, did not count for a host whose clock is more than a day
/// ahead of the clock of the host that heard of it.
#[tokio::test]
async fn a_message_was_answered_that_was_deleted_before_it_came_by_the_clock_of_another_host() {
    let Some([one, other]) = two() else { return };
    let (behind, _lock) = at_work(&one).await;
    let (ahead, _other_lock) = at_work(&other).await;
    let (before, after) = (NOW - 13 * 60 * 60 * 1_000, NOW + 13 * 60 * 60 * 1_000);
    let deletion = |ts: &str| Deletion { message: MessageRef::new("D1", ts), thread: None, of: DeletedAuthor::Us };
    let comes =
        |number: usize| Inbound { ts: format!("170000000{number}.000100"), ..inbound(KEY, &format!("Ev{number}")) };
    for (number, by) in [(1, after), (2, before)] {
        let message = comes(number);
        assert_eq!(behind.delete(&deletion(&message.ts), None, before).await.unwrap(), Changed::Unknown);
        ahead.forget_early_changes(after).await.unwrap();
        assert_eq!(ahead.accept(&message, by).await.unwrap(), None, "{number}");
    }
    let stopped = comes(3);
    assert!(behind.stop_early(&MessageRef::new("D1", &stopped.ts), "U1", before).await.unwrap());
    let inbox = ahead.accept(&stopped, after).await.unwrap().unwrap();
    assert_eq!(ask(&ahead, inbox).await.called_off, Some(CalledOff::Stopped));
}
