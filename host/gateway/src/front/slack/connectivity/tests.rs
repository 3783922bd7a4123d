//! Time is paused and advanced by the tests.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use pmk_system::error::Failure;
use tokio::time::advance;
use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};

use super::*;
use crate::chat::{Accepted, Inbound, Reaction};

/// An intake that collects notices: silences that are over, and since when messages may be missing, in seconds.
#[derive(Default)]
struct Told(Mutex<Vec<(u64, u64)>>, Mutex<Vec<u64>>);

#[async_trait]
impl Intake for Told {
    async fn accept(&self, _message: Inbound) -> Result<Accepted, Failure> {
        Ok(Accepted::New)
    }

    async fn react(&self, _reaction: Reaction) -> Result<(), Failure> {
        Ok(())
    }

    fn notice(&self, notice: Notice) {
        match notice {
            Notice::ConnectedAgain { deaf, late } => {
                self.0.lock().expect("no test panics with it").push((deaf.as_millis() as u64, late));
            }
            Notice::MayHaveMissed { since } => {
                self.1.lock().expect("no test panics with it").push(since.as_secs());
            }
            other => panic!("{other:?}"),
        }
    }
}

impl Told {
    /// Returns, for each silence, its milliseconds and its number of late messages.
    fn of(hearing: &Connectivity) -> Vec<(u64, u64)> {
        let told = Told::default();
        hearing.finish(&told);
        told.0.into_inner().expect("no test panics with it")
    }

    /// Returns, where messages may be missing now, since how many seconds.
    fn missing(hearing: &Connectivity) -> Vec<u64> {
        let told = Told::default();
        hearing.look(&told);
        told.1.into_inner().expect("no test panics with it")
    }

    /// The same when the program ends.
    fn missing_at_the_end(hearing: &Connectivity) -> Vec<u64> {
        let told = Told::default();
        hearing.finish(&told);
        told.1.into_inner().expect("no test panics with it")
    }
}

const SECOND: u64 = 1_000;

/// Counts the lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicU64>);

impl Subscriber for Lines {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().target() == module_path!().trim_end_matches("::tests") {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

fn hearing() -> Connectivity {
    Connectivity::new(&Timings::default())
}

async fn pass(ms: u64) {
    advance(Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn the_bot_is_deaf_from_the_last_connection_to_the_next() {
    let hearing = hearing();
    let (first, second) = (hearing.opened(), hearing.opened());
    drop(first);
    pass(500).await;
    let replaced = hearing.opened();
    assert_eq!(Told::of(&hearing), [], "the other one heard everything");
    drop(second);
    drop(replaced);
    pass(840).await;
    let _open = (hearing.opened(), hearing.opened());
    assert_eq!(Told::of(&hearing), [(840, 0)], "once for both");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_fell_silent_was_deaf_since_then() {
    let hearing = hearing();
    let (mut dead, _alive) = (hearing.opened(), hearing.opened());
    let since = Instant::now();
    pass(3_000).await;
    hearing.came(true, None);
    pass(4_000).await;
    dead.fell_silent(since);
    drop(dead);
    // Refused for an hour, but the other connection receives everything.
    pass(3_600_000).await;
    let _open = hearing.opened();
    assert_eq!(Told::of(&hearing), [(7_000, 1)], "what came again over the other one was late");
}

#[tokio::test(start_paused = true)]
async fn silences_soon_after_each_other_are_one_and_what_was_heard_in_between_does_not_count() {
    let hearing = hearing();
    drop(hearing.opened());
    let began = Instant::now();
    pass(100).await;
    let mut dead = hearing.opened();
    pass(1_000).await;
    drop(hearing.opened());
    dead.fell_silent(began);
    drop(dead);
    pass(200).await;
    let _open = hearing.opened();
    assert_eq!(Told::of(&hearing), [(1_300, 0)], "the second began with the first");
    drop(hearing.opened());
    let (first, second) = (hearing.opened(), hearing.opened());
    drop((first, second));
    assert_eq!(Told::of(&hearing), [], "somebody listened");
}

#[tokio::test(start_paused = true)]
async fn late_is_what_was_sent_again_or_before_the_end() {
    let hearing = hearing();
    drop(hearing.opened());
    pass(1_000).await;
    let _open = hearing.opened();
    let now_s = clock::now_ms() / 1_000;
    hearing.came(true, Some(now_s - 1));
    hearing.came(false, Some(now_s - 60));
    hearing.came(false, Some(now_s + 60));
    hearing.came(false, None);
    assert_eq!(Told::of(&hearing), [(1_000, 2)]);
}

#[tokio::test(start_paused = true)]
async fn each_silence_is_told_once_with_what_came_late_in_the_end() {
    let hearing = hearing();
    let told = Told::default();
    let timings = Timings::default();
    drop(hearing.opened());
    pass(100).await;
    let open = hearing.opened();
    assert_eq!(hearing.look(&told), Some(Instant::now() + timings.settle));
    advance(timings.settle).await;
    assert_eq!(hearing.look(&told), Some(Instant::now() + timings.stragglers - timings.settle));
    hearing.came(true, None);
    assert_eq!(*told.0.lock().expect("no panic"), [], "more may come");
    advance(timings.stragglers - timings.settle).await;
    assert_eq!(hearing.look(&told), None);
    assert_eq!(*told.0.lock().expect("no panic"), [(100, 1)]);
    // Another silence begins while the last one is still being counted.
    drop(open);
    pass(200).await;
    let open = hearing.opened();
    pass(8_000).await;
    drop(open);
    pass(300).await;
    let _open = hearing.opened();
    assert_eq!(Told::of(&hearing), [(200, 0), (300, 0)]);
}

/// Regression: a gateway that was ending logged that it was connected again.
#[tokio::test(start_paused = true)]
async fn who_ends_does_not_say_that_it_is_connected_again() {
    let lines = Lines::default();
    let _logged = tracing::subscriber::set_default(lines.clone());
    let said = || lines.0.load(Ordering::Relaxed);
    let hearing = hearing();
    let silence = || async {
        drop(hearing.opened());
        pass(300).await;
        hearing.opened()
    };
    let open = silence().await;
    assert_eq!((Told::of(&hearing), said()), (vec![(300, 0)], 0), "the ledger has it");
    drop(open);
    let _open = silence().await;
    let told = Told::default();
    pass(Timings::default().settle.as_millis() as u64).await;
    hearing.look(&told);
    assert_eq!(said(), 1, "one that goes on does");
}

/// Regression: what was missed in a long silence was noted 75 s after its end: a process that ended before forgot it, and
/// its successor took it for one that had heard everything until then.
#[tokio::test(start_paused = true)]
async fn what_was_missed_in_a_silence_was_forgotten_with_the_process() {
    let hearing = hearing();
    drop(hearing.opened());
    pass(239 * SECOND).await;
    assert_eq!((Told::missing(&hearing), hearing.may_be_missing()), (vec![], false), "Slack still sends again");
    assert_eq!(hearing.look(&Told::default()), Some(Instant::now() + Duration::from_secs(1)));
    pass(SECOND).await;
    assert_eq!((Told::missing(&hearing), hearing.may_be_missing()), (vec![240], true), "while it goes on");
    pass(3_600 * SECOND).await;
    assert_eq!(Told::missing(&hearing), [] as [u64; 0], "it is known");
    let _open = hearing.opened();
    assert_eq!((Told::missing(&hearing), hearing.may_be_missing()), (vec![3_840], false), "as soon as it is over");
    assert_eq!(Told::missing(&hearing), [] as [u64; 0]);
}

/// Regression: a process that was never connected did not know that it was deaf.
#[tokio::test(start_paused = true)]
async fn who_was_never_connected_was_not_deaf() {
    let hearing = hearing();
    pass(300 * SECOND).await;
    assert_eq!(Told::missing(&hearing), [300]);
    let _open = hearing.opened();
    assert_eq!(Told::missing(&hearing), [300]);
    assert_eq!(Told::of(&hearing), [], "it is not connected again");
}

/// Regression: a process that was deaf when it was asked to end did not pass that on.
#[tokio::test(start_paused = true)]
async fn who_ended_deaf_did_not_say_so() {
    let open = hearing();
    drop(open.opened());
    pass(3 * SECOND).await;
    assert_eq!(Told::missing_at_the_end(&open), [] as [u64; 0], "it has closed its connections");
    let deaf = hearing();
    drop(deaf.opened());
    pass(120 * SECOND).await;
    assert_eq!(Told::missing_at_the_end(&deaf), [120], "nobody knows how long it lasts");
}

/// Regression: a message whose first attempts fell into one short silence, and whose last one fell into the next, was lost.
#[tokio::test(start_paused = true)]
async fn what_fell_into_two_short_silences_was_lost() {
    let hearing = hearing();
    let open = hearing.opened();
    pass(3_600 * SECOND).await;
    drop(open);
    pass(90 * SECOND).await;
    let open = hearing.opened();
    pass(210 * SECOND).await;
    assert_eq!(Told::missing(&hearing), [] as [u64; 0]);
    drop(open);
    pass(75 * SECOND).await;
    let open = hearing.opened();
    assert_eq!(Told::missing(&hearing), [375], "since the first one began");
    // What was written until now is looked for: what follows counts by itself.
    pass(300 * SECOND).await;
    drop(open);
    pass(10 * SECOND).await;
    let open = hearing.opened();
    assert_eq!(Told::missing(&hearing), [] as [u64; 0]);
    pass(3_600 * SECOND).await;
    drop(open);
    pass(10 * SECOND).await;
    let _open = hearing.opened();
    assert_eq!(Told::missing(&hearing), [] as [u64; 0], "Slack has sent everything again in between");
}

/// Regression: a process that began during a silence counted from its own beginning.
#[tokio::test(start_paused = true)]
async fn what_was_missed_in_a_silence_across_a_restart_was_forgotten() {
    let hearing = hearing();
    hearing.was_deaf(Duration::from_secs(200));
    assert_eq!((hearing.deaf_for(), Told::missing(&hearing)), (Some(Duration::from_secs(200)), vec![]));
    pass(39 * SECOND).await;
    assert_eq!(Told::missing(&hearing), [] as [u64; 0]);
    pass(2 * SECOND).await;
    let open = hearing.opened();
    assert_eq!((hearing.deaf_for(), Told::missing(&hearing)), (None, vec![241]));
    drop(open);
    pass(7 * SECOND).await;
    assert_eq!(hearing.deaf_for(), Some(Duration::from_secs(7)), "what was written before is looked for");
}

/// Regression: a machine that slept for minutes, and could not be reached for some more after that, had missed nothing.
#[tokio::test(start_paused = true)]
async fn what_fell_into_a_sleep_and_a_short_silence_was_lost() {
    let hearing = hearing();
    let open = hearing.opened();
    pass(3_600 * SECOND).await;
    hearing.was_deaf(Duration::from_secs(200));
    assert_eq!((hearing.deaf_for(), Told::missing(&hearing)), (Some(Duration::from_secs(200)), vec![]));
    drop(open);
    pass(120 * SECOND).await;
    let _open = hearing.opened();
    assert_eq!(Told::missing(&hearing), [320], "since it fell asleep");
    // What was written until now is looked for.
    hearing.was_deaf(Duration::from_secs(100));
    assert_eq!(Told::missing(&hearing), [] as [u64; 0]);
    pass(60 * SECOND).await;
    hearing.was_deaf(Duration::from_secs(30));
    assert_eq!(Told::missing(&hearing), [] as [u64; 0], "160 s since the first one began");
    pass(120 * SECOND).await;
    hearing.was_deaf(Duration::from_secs(60));
    assert_eq!(Told::missing(&hearing), [280], "without a single connection lost");
}

/// Regression: a short silence was forgotten as soon as it was over, so that the next run did not know of it: the last
/// attempt at what had been written in it fell into the restart.
#[tokio::test(start_paused = true)]
async fn a_silence_that_was_over_before_a_restart_was_forgotten() {
    let hearing = hearing();
    let open = hearing.opened();
    pass(3_600 * SECOND).await;
    assert_eq!(hearing.deaf_for(), None, "Slack has sent everything again");
    drop(open);
    pass(180 * SECOND).await;
    let _open = hearing.opened();
    pass(120 * SECOND).await;
    assert_eq!((hearing.deaf_for(), Told::missing(&hearing)), (Some(Duration::from_secs(300)), vec![]));
    pass(240 * SECOND).await;
    assert_eq!(hearing.deaf_for(), None, "the last attempts have come");
}
