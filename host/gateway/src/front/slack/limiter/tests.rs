//! Tests in virtual time.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::time::sleep;

use super::*;

const UPDATE: Lane = Lane::of("chat.update");

fn alone(limits: Limits) -> Limiter {
    Limiter::new(limits, Sharers::default())
}

fn post(channel: &str) -> Lane {
    Lane { method: "chat.postMessage", channel: Some(channel.to_owned()) }
}

/// Makes this many calls at once, and returns after what time each could go.
async fn all(limiter: &Arc<Limiter>, lane: &Lane, calls: usize) -> Vec<Duration> {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..calls)
        .map(|_| {
            let (limiter, lane) = (Arc::clone(limiter), lane.clone());
            tokio::spawn(async move {
                limiter.turn(&lane, Priority::Answer).await.expect("nobody closes it");
                begun.elapsed()
            })
        })
        .collect();
    let mut went = Vec::new();
    for task in tasks {
        went.push(task.await.expect("no panic"));
    }
    went
}

#[tokio::test(start_paused = true)]
async fn posts_into_one_channel_go_one_a_second_and_others_beside_them() {
    let limiter = Arc::new(alone(Limits::Documented));
    let seconds: Vec<u64> = all(&limiter, &post("C1"), 10).await.iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [0, 0, 0, 0, 0, 5, 5, 5, 5, 5]);
    assert_eq!(all(&limiter, &post("C2"), 1).await, [Duration::ZERO]);
}

#[tokio::test(start_paused = true)]
async fn a_method_keeps_to_its_tier() {
    let limiter = Arc::new(alone(Limits::Documented));
    let went = all(&limiter, &UPDATE, 120).await;
    let in_minute = |minute| went.iter().filter(|at| at.as_secs() / 61 == minute).count();
    assert_eq!([in_minute(0), in_minute(1), in_minute(2)], [50, 50, 20]);
    assert!(went.is_sorted(), "first come, first served");
}

#[tokio::test(start_paused = true)]
async fn each_of_several_gateways_has_its_part_of_a_tier_as_long_as_there_are_several() {
    let hosts = Arc::new(AtomicUsize::new(3));
    let sharers = Sharers::of({
        let hosts = Arc::clone(&hosts);
        move || hosts.load(Ordering::Relaxed)
    });
    let limiter = Arc::new(Limiter::new(Limits::Documented, sharers));
    let at_once = |went: Vec<Duration>| went.iter().filter(|at| at.is_zero()).count();
    assert_eq!(at_once(all(&limiter, &UPDATE, 20).await), 16);
    let narrow = Lane::of("chat.delete");
    limiter.refused(&narrow, Duration::from_secs(1));
    sleep(2 * MINUTE).await;
    // The other hosts are gone.
    hosts.store(1, Ordering::Relaxed);
    assert_eq!(at_once(all(&limiter, &UPDATE, 60).await), 50);
    assert!(at_once(all(&limiter, &narrow, 60).await) < 20, "what was refused counts still");
    hosts.store(usize::MAX, Ordering::Relaxed);
    sleep(MINUTE).await;
    assert_eq!(at_once(all(&limiter, &UPDATE, 2).await), 1);
    assert_eq!(at_once(all(&limiter, &post("C1"), 6).await), 1, "one a minute into the whole workspace");
}

#[tokio::test(start_paused = true)]
async fn progress_leaves_room_for_answers_and_never_waits() {
    let limiter = alone(Limits::Documented);
    let mut went = 0;
    while limiter.turn(&UPDATE, Priority::Progress).await.is_ok() {
        went += 1;
    }
    assert_eq!(went, 40);
    let begun = Instant::now();
    for _ in 0..10 {
        limiter.turn(&UPDATE, Priority::Answer).await.expect("there is room");
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let wait = limiter.turn(&UPDATE, Priority::Progress).await.expect_err("there is none left");
    assert_eq!((wait, begun.elapsed()), (MINUTE, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn progress_that_its_channel_has_no_room_for_took_room_from_the_workspace() {
    let limiter = Arc::new(alone(Limits::Documented));
    assert_eq!(all(&limiter, &post("C1"), 5).await, [Duration::ZERO; 5]);
    for _ in 0..600 {
        limiter.turn(&post("C1"), Priority::Progress).await.expect_err("the channel is full");
    }
    limiter.turn(&post("C2"), Priority::Progress).await.expect("this channel and the workspace have room");
}

#[tokio::test(start_paused = true)]
async fn an_answer_overtakes_a_courtesy_and_progress_does_not_overtake_an_answer() {
    let limiter = Arc::new(alone(Limits::Documented));
    all(&limiter, &post("C1"), POSTS.calls).await;
    let order = Arc::new(Mutex::new(vec![]));
    let begin = |name: &'static str, urgency| {
        let (limiter, order) = (Arc::clone(&limiter), Arc::clone(&order));
        tokio::spawn(async move {
            let went = limiter.turn(&post("C1"), urgency).await.is_ok();
            order.lock().expect("no panic").push((name, went));
        })
    };
    let mut tasks = vec![];
    for (name, urgency) in [
        ("courtesy", Priority::Courtesy),
        ("first", Priority::Answer),
        ("second", Priority::Answer),
        ("progress", Priority::Progress),
    ] {
        tasks.push(begin(name, urgency));
        sleep(Duration::from_millis(1)).await;
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, [("progress", false), ("first", true), ("second", true), ("courtesy", true)]);
}

#[tokio::test(start_paused = true)]
async fn who_stops_waiting_holds_nobody_up() {
    let limiter = Arc::new(alone(Limits::Documented));
    all(&limiter, &post("C1"), POSTS.calls).await;
    let lane = post("C1");
    let gave_up = tokio::time::timeout(Duration::from_secs(1), limiter.turn(&lane, Priority::Answer)).await;
    assert!(gave_up.is_err());
    let begun = Instant::now();
    limiter.turn(&lane, Priority::Answer).await.expect("nobody closes it");
    assert_eq!(begun.elapsed(), POSTS.window - Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_waited_for_narrows_the_lane_and_is_forgotten_in_time() {
    let limiter = Arc::new(alone(Limits::Documented));
    limiter.refused(&UPDATE, Duration::from_secs(7));
    limiter.refused(&UPDATE, Duration::from_secs(7));
    let went = all(&limiter, &UPDATE, 50).await;
    assert_eq!(went[0], Duration::from_secs(7));
    assert_eq!(went.iter().filter(|at| at.as_secs() == 7).count(), 37, "three quarters of 50, once");
    sleep(MINUTE * 14).await;
    assert_eq!(all(&limiter, &UPDATE, 51).await.iter().filter(|at| at.is_zero()).count(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_lane_without_a_documented_limit_waits_only_where_slack_says_so() {
    let limiter = Arc::new(alone(Limits::Documented));
    let lane = Lane::of("assistant.threads.setStatus");
    assert!(all(&limiter, &lane, 1_000).await.iter().all(Duration::is_zero));
    limiter.refused(&lane, Duration::from_secs(3));
    assert_eq!(limiter.turn(&lane, Priority::Progress).await, Err(Duration::from_secs(3)));
    assert_eq!(all(&limiter, &lane, 1).await, [Duration::from_secs(3)]);
}

#[tokio::test(start_paused = true)]
async fn a_server_with_other_limits_is_only_held_to_what_it_refuses() {
    let limiter = Arc::new(alone(Limits::Refusals));
    assert!(all(&limiter, &UPDATE, 500).await.iter().all(Duration::is_zero));
    limiter.refused(&UPDATE, Duration::from_secs(2));
    assert!(all(&limiter, &UPDATE, 50).await.iter().all(|went| went.as_secs() == 2));
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_once_it_is_closed() {
    let limiter = Arc::new(alone(Limits::Documented));
    all(&limiter, &post("C1"), POSTS.calls).await;
    let (waiting, lane) = (Arc::clone(&limiter), post("C1"));
    let task = tokio::spawn(async move { waiting.turn(&lane, Priority::Answer).await });
    sleep(Duration::from_secs(1)).await;
    limiter.close();
    assert_eq!(task.await.expect("no panic"), Err(POSTS.window - Duration::from_secs(1)));
    assert_eq!(limiter.turn(&post("C2"), Priority::Answer).await, Ok(()), "what there is room for goes");
}

#[tokio::test(start_paused = true)]
async fn lanes_are_forgotten_once_nothing_goes_on_in_them() {
    let limiter = alone(Limits::Documented);
    for number in 0..MAX_LANES {
        limiter.turn(&post(&number.to_string()), Priority::Answer).await.expect("room");
    }
    // The last calls were made a minute after the first, because of the limit of all channels.
    sleep(2 * MINUTE).await;
    limiter.turn(&post("C1"), Priority::Answer).await.expect("room");
    let left = limiter.lanes.lock().expect("no panic").len();
    assert!(left <= MAX_LANES / 2, "{left}: the first have been idle for a minute when the last come");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whoever calls how and when: in no window does a lane let more calls pass than its limit.
    #[test]
    fn no_window_holds_more_than_its_calls(calls in prop::collection::vec((0u64..3_000, 0u8..3), 1..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let went = runtime.block_on(async {
            let limiter = Arc::new(alone(Limits::Documented));
            let begun = Instant::now();
            let mut tasks = vec![];
            for (pause, kind) in calls {
                sleep(Duration::from_millis(pause)).await;
                let limiter = Arc::clone(&limiter);
                let urgency = [Priority::Answer, Priority::Progress, Priority::Courtesy][usize::from(kind)];
                tasks.push(tokio::spawn(async move {
                    limiter.turn(&post("C1"), urgency).await.ok().map(|()| begun.elapsed())
                }));
            }
            let mut went = vec![];
            for task in tasks {
                went.extend(task.await.expect("no panic"));
            }
            went.sort();
            went
        });
        for span in went.windows(POSTS.calls + 1) {
            prop_assert!(span[POSTS.calls] - span[0] >= POSTS.window, "{span:?}");
        }
    }
}

/// Regression: a refusal for the whole workspace only delayed the channel that it occurred in, and all other
/// channels went on.
#[tokio::test(start_paused = true)]
async fn a_second_channel_that_is_refused_has_all_of_them_wait() {
    let limiter = Arc::new(alone(Limits::Documented));
    for channel in 0..40 {
        all(&limiter, &post(&format!("C{channel}")), 1).await;
    }
    limiter.refused(&post("C1"), Duration::from_secs(30));
    assert_eq!(all(&limiter, &post("C50"), 1).await, [Duration::ZERO], "it may be that channel's");
    limiter.refused(&post("C2"), Duration::from_secs(30));
    // As long as Slack says, and then until the excess calls have left the window.
    let waited = all(&limiter, &post("C51"), 1).await[0];
    assert!((Duration::from_secs(30)..=Duration::from_secs(61)).contains(&waited), "{waited:?}");
    let limiter_of_refusals = Arc::new(alone(Limits::Refusals));
    limiter_of_refusals.refused(&post("C1"), Duration::from_secs(30));
    limiter_of_refusals.refused(&post("C2"), Duration::from_secs(30));
    assert_eq!(all(&limiter_of_refusals, &post("C3"), 1).await, [Duration::from_secs(30)]);
}

/// Regression: everything related to a question waited among the answers: notices of atoms, questions to contacts,
/// lines about tools.
#[tokio::test(start_paused = true)]
async fn what_is_no_answer_waits_in_front_of_none() {
    let limiter = Arc::new(alone(Limits::Documented));
    all(&limiter, &post("C1"), POSTS.calls).await;
    let order = Arc::new(Mutex::new(vec![]));
    let mut tasks = vec![];
    for urgency in [Priority::Courtesy, Priority::Notice, Priority::Answer] {
        let (waiting, order) = (Arc::clone(&limiter), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            waiting.turn(&post("C1"), urgency).await.expect("nobody closes it");
            order.lock().expect("no panic").push(urgency);
        }));
        sleep(Duration::from_millis(1)).await;
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    let order = order.lock().expect("no panic").clone();
    assert_eq!(order, [Priority::Answer, Priority::Notice, Priority::Courtesy]);
}

#[tokio::test(start_paused = true)]
async fn what_goes_at_once_takes_the_last_room_and_never_waits() {
    let (limiter, lane) = (alone(Limits::Documented), Lane::of("chat.stopStream"));
    for _ in 0..20 {
        limiter.turn(&lane, Priority::AtOnce).await.expect("there is room");
    }
    assert_eq!(limiter.turn(&lane, Priority::AtOnce).await, Err(MINUTE));
}
