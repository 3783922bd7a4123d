//! Hosts that wait for their turn: they are seen, come one after the other, and keep nobody from working.

use tokio::task::JoinHandle;

use super::{
    hosts::{at_work, nothing_is_heard, two},
    on_postgres::{Home, asked, number, open},
    *,
};

const KEY: &str = "slack:dm:U1";
const VERSION: &str = env!("CARGO_PKG_VERSION");

type Waiting = JoinHandle<Result<(Store, HomeLock), StoreError>>;

/// A run that waits for its turn, once it does.
pub(super) async fn waiting(home: &Home) -> Waiting {
    let (told, is_told) = tokio::sync::oneshot::channel();
    let (store, lock) = (open(home), HomeLock::take(home.path()).unwrap());
    let waits = tokio::spawn(async move {
        store.take_over(&lock, |_| told.send(()).unwrap()).await?;
        Ok((store, lock))
    });
    is_told.await.unwrap();
    waits
}

fn third(of: &Home) -> Home {
    Home { folder: tempfile::tempdir().unwrap(), database: of.database.clone() }
}

/// Those that wait may be as slow as they like.
fn patient(home: &Home) {
    let hours = "UPDATE host_waiting SET lease_ms = 7200000, until = until + 7200000";
    asked(home, |conn| conn.execute(hours, []).unwrap());
}

/// As if none of those that wait had been heard of for longer than its lease.
fn nothing_is_heard_of_the_line(home: &Home) {
    asked(home, |conn| conn.execute("UPDATE host_waiting SET until = 0", []).unwrap());
}

async fn gone(store: Store) {
    tokio::task::spawn_blocking(move || drop(store)).await.unwrap();
}

async fn killed(waits: Waiting) {
    waits.abort();
    assert!(waits.await.is_err_and(|error| error.is_cancelled()));
}

async fn seen(store: &Store) -> Vec<(HostState, String)> {
    store.hosts().await.unwrap().into_iter().map(|host| (host.state, host.home)).collect()
}

fn folder(home: &Home) -> String {
    home.path().canonicalize().unwrap().display().to_string()
}

#[tokio::test]
async fn whoever_works_and_whoever_waits_is_listed_with_its_version_and_its_last_sign() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let waits = waiting(&other).await;
    patient(&one);
    assert_eq!(seen(&first).await, [(HostState::Works, folder(&one)), (HostState::Waits, folder(&other))]);
    asked(&one, |conn| conn.execute("UPDATE host_waiting SET version = '7.7.7'", []).unwrap());
    let [works, waits_too]: [Host; 2] = first.hosts().await.unwrap().try_into().unwrap();
    assert_eq!((&*works.version, &*waits_too.version), (VERSION, "7.7.7"));
    assert_eq!((&works.machine, first.host_at_work().await.unwrap()), (&waits_too.machine, Some(works.owner)));
    let now = number(&one, "SELECT pmk_now()");
    for host in [works.since_ms, waits_too.since_ms] {
        assert!((0..600_000).contains(&(now - host)), "{host} of {now}");
    }
    asked(&one, |conn| conn.execute("UPDATE host SET until = until - 100000", []).unwrap());
    let silent_ms = first.hosts().await.unwrap()[0].silent_ms;
    assert!((100_000..700_000).contains(&silent_ms), "{silent_ms}");
    killed(waits).await;
}

#[tokio::test]
async fn who_waits_and_is_killed_is_seen_no_more_after_its_lease_and_keeps_nobody_waiting() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    killed(waiting(&other).await).await;
    nothing_is_heard_of_the_line(&one);
    assert_eq!(seen(&first).await, [(HostState::Works, folder(&one))]);
    let third = third(&one);
    let next = waiting(&third).await;
    assert_eq!(number(&one, "SELECT count(*) FROM host_waiting"), 1, "it is forgotten");
    gone(first).await;
    let (next, _third_lock) = next.await.unwrap().unwrap();
    assert_eq!(seen(&next).await, [(HostState::Works, folder(&third))]);
    assert_eq!(number(&one, "SELECT count(*) FROM host_waiting"), 0, "whoever works does not wait");
}

#[tokio::test]
async fn a_host_that_waits_is_never_taken_for_one_that_works() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let waits = waiting(&other).await;
    accept(&first, KEY, "Ev1").await;
    killed(waits).await;
    patient(&one);
    gone(first).await;
    // It is in the line still, and is heard of.
    let store = open(&one);
    assert_eq!(store.host_at_work().await.unwrap(), None);
    assert_eq!(seen(&store).await, [(HostState::Waits, folder(&other))]);
    accept(&store, KEY, "Ev2").await;
    nothing_is_heard_of_the_line(&one);
    let (third, _third_lock) = at_work(&third(&one)).await;
    accept(&third, KEY, "Ev3").await;
}

#[tokio::test]
async fn hosts_take_over_in_the_order_in_which_they_came() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let mut second = waiting(&other).await;
    let third_home = third(&one);
    let mut third = waiting(&third_home).await;
    patient(&one);
    gone(first).await;
    let (second, _second_lock) = tokio::select! {
        biased;
        second = &mut second => second.unwrap().unwrap(),
        _ = &mut third => panic!("it was not its turn"),
    };
    assert_eq!(seen(&second).await, [(HostState::Works, folder(&other)), (HostState::Waits, folder(&third_home))]);
    gone(second).await;
    let (third, _third_lock) = third.await.unwrap().unwrap();
    assert_eq!(seen(&third).await, [(HostState::Works, folder(&third_home))]);
}

#[tokio::test]
async fn whoever_came_later_lets_who_came_before_go_first_while_that_is_heard_of() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    killed(waiting(&other).await).await;
    let next = waiting(&third(&one)).await;
    patient(&one);
    gone(first).await;
    // Each of its signs is a try.
    let mut signs = std::collections::BTreeSet::new();
    while signs.len() < 3 {
        signs.insert(number(&one, "SELECT until FROM host_waiting ORDER BY id DESC LIMIT 1"));
        assert!(!next.is_finished(), "it was not its turn");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    nothing_is_heard_of_the_line(&one);
    next.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_home_that_waits_anew_has_one_place_in_the_line() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    killed(waiting(&other).await).await;
    patient(&one);
    let again = waiting(&other).await;
    assert_eq!(number(&one, "SELECT count(*) FROM host_waiting"), 1);
    gone(first).await;
    again.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_host_that_has_worked_and_is_silent_is_listed_until_another_takes_over() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    nothing_is_heard(&one);
    let looks = open(&other);
    assert_eq!(seen(&looks).await, [(HostState::Silent, folder(&one))]);
    let (second, _other_lock) = at_work(&other).await;
    assert_eq!(seen(&second).await, [(HostState::Works, folder(&other))]);
    gone(second).await;
    assert_eq!(seen(&first).await, [], "one that has ended is not silent");
}

#[tokio::test]
async fn a_host_that_waited_while_a_newer_program_changed_the_schema_does_not_work_on_it() {
    let Some([one, other]) = two() else { return };
    let (first, _lock) = at_work(&one).await;
    let waits = waiting(&other).await;
    asked(&one, |conn| conn.execute("UPDATE pmk_schema SET version = 99", []).unwrap());
    gone(first).await;
    let refused = waits.await.unwrap().err().unwrap();
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused}");
    assert_eq!(number(&one, "SELECT count(*) FROM host WHERE until > pmk_now()"), 0);
}

#[tokio::test]
async fn a_host_that_was_stopped_while_the_schema_changed_writes_nothing_in_the_new_one() {
    let Some([one, other]) = two() else { return };
    let (stopped, _lock) = at_work(&one).await;
    nothing_is_heard(&one);
    asked(&one, |conn| {
        conn.execute_batch("DROP TABLE host_waiting, atom_file; UPDATE pmk_schema SET version = 20").unwrap()
    });
    drop(open(&other));
    assert_eq!(number(&one, "SELECT version FROM pmk_schema"), connection::MIGRATIONS.len() as i64, "another one");
    assert!(matches!(stopped.accept(&inbound(KEY, "Ev1"), NOW).await, Err(StoreError::TakenOver { .. })));
}
