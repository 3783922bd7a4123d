//! What a thread shows while an answer is made.

use pmk_host::front::Lookup;

use super::*;

const CHANNEL: &str = "D1";

/// What the thread of the [`question`] shows.
fn shown(rig: &Rig) -> Option<stand_in::Status> {
    rig.slack.status(CHANNEL, &question(&place(CHANNEL, None)).ts)
}

fn told(rig: &Rig) -> usize {
    rig.slack.call_count("assistant.threads.setStatus")
}

/// Slack forgets a status after two minutes.
#[tokio::test]
async fn a_status_stands_for_as_long_as_the_answer_takes() {
    let rig = Rig::start().await;
    assert!(rig.front.show(&question(&place(CHANNEL, None)), "Thinking…").await);
    for _ in 0..3 {
        rig.slack.age_statuses(Duration::from_secs(100));
        let before = told(&rig);
        until_async("a renewal", || (told(&rig) > before + 1).then_some(())).await;
        assert!(shown(&rig).is_some(), "it was renewed");
    }
    rig.front.over("Ev1").await;
    until_async("its end", || shown(&rig).is_none().then_some(())).await;
    let last = rig.slack.statuses(CHANNEL).pop().expect("a status");
    assert_eq!(last.status, "", "it was taken away, and did not go by itself");
    rig.finish().await;
}

/// Once, a single refusal left a status standing under the answer.
#[tokio::test]
async fn a_status_that_could_not_be_taken_away_is_taken_away_later() {
    for fault in [Fault::RateLimited(1), Fault::Status(500), Fault::Error("internal_error")] {
        let rig = Rig::start().await;
        assert!(rig.front.show(&question(&place(CHANNEL, None)), "Thinking…").await);
        rig.slack.fault_times("assistant.threads.setStatus", 1, fault.clone());
        rig.front.over("Ev1").await;
        let is_clear = || rig.slack.statuses(CHANNEL).last().is_some_and(|last| last.status.is_empty());
        until_async("its end", || is_clear().then_some(())).await;
        rig.finish().await;
    }
}

#[tokio::test]
async fn a_status_that_is_left_when_the_program_ends_is_taken_away() {
    let rig = Rig::start().await;
    assert!(rig.front.show(&question(&place(CHANNEL, None)), "Thinking…").await);
    rig.stop.cancel();
    until_async("the end of hearing", || rig.listening.is_finished().then_some(())).await;
    rig.front.over("Ev1").await;
    rig.front.leave().await;
    assert_eq!(rig.slack.statuses(CHANNEL).last().map(|last| last.status.clone()), Some(String::new()));
    rig.finish().await;
}

/// Once, where Slack says nothing any more, what takes a status away could overtake what shows it.
#[tokio::test]
async fn nothing_overtakes_a_status_that_is_on_its_way() {
    let rig = Rig::start().await;
    rig.slack.fault_times("assistant.threads.setStatus", 1, Fault::Slow(Duration::from_millis(500)));
    let asked = question(&place(CHANNEL, None));
    let waited = timeout(Duration::from_millis(50), rig.front.show(&asked, "Thinking…")).await;
    assert!(waited.is_err(), "who stops waiting loses nothing");
    rig.front.over("Ev1").await;
    let is_clear = || rig.slack.statuses(CHANNEL).last().is_some_and(|last| last.status.is_empty());
    until_async("its end", || is_clear().then_some(())).await;
    let all: Vec<bool> = rig.slack.statuses(CHANNEL).iter().map(|shown| shown.status.is_empty()).collect();
    assert!(!all[0] && all[1..].iter().all(|is_empty| *is_empty), "{all:?}");
    rig.finish().await;
}

/// Where the thread before a question cannot be read, an answer could not be looked for there after a crash.
#[tokio::test]
async fn what_cannot_be_read_before_an_answer_is_answered_by_a_placeholder() {
    let rig = Rig::with(SlackRules::quick()).await;
    rig.slack.keep_out("C9");
    let there = place("C9", Some("1700000000.000100"));
    assert!(rig.front.read_thread(&there, "1700000000.000200", &|_: &str| true).await.is_err());
    assert!(!rig.front.show(&question(&there), "Thinking…").await);
    assert_eq!(told(&rig), 0, "Slack is not even asked");
    rig.finish().await;
}

/// Regression: a refusal in one channel, which says that the bot is no member there, was the end of statuses everywhere.
#[tokio::test]
async fn a_status_that_one_channel_did_not_take_was_shown_in_none() {
    let rig = Rig::start().await;
    for code in ["no_permission", "access_denied"] {
        rig.slack.fault_times("assistant.threads.setStatus", 1, Fault::Error(code));
        let refused = question(&place(if code == "no_permission" { "C2" } else { "C3" }, Some("1700000000.000100")));
        assert!(!rig.front.show(&refused, "Thinking…").await, "{code}");
        assert!(!rig.front.show(&refused, "Thinking…").await, "{code}: it is remembered");
        assert!(rig.front.show(&question(&place(CHANNEL, None)), "Thinking…").await, "{code}");
    }
    rig.front.over("Ev1").await;
    rig.finish().await;
}

/// Regression: a token that was refused once, or a thread that is gone, was the end of statuses in the whole channel.
#[tokio::test]
async fn a_status_that_one_thread_did_not_take_was_shown_in_none_of_its_channel() {
    let rig = Rig::start().await;
    let asked = question(&place(CHANNEL, None));
    for code in ["token_revoked", "invalid_thread_ts", "thread_not_found", "message_not_found"] {
        rig.slack.fault_times("assistant.threads.setStatus", 1, Fault::Error(code));
        assert!(!rig.front.show(&asked, "Thinking…").await, "{code}");
        assert!(rig.front.show(&asked, "Thinking…").await, "{code}: that says nothing of the others");
    }
    let (there, said) = (place(CHANNEL, Some("1700000000.000100")), speech("the answer"));
    for (code, is_refused) in [("token_revoked", true), ("thread_not_found", false)] {
        rig.slack.fault_times("conversations.replies", 1, Fault::Error(code));
        let found = rig.front.find(&part(&there, None, &said), "1700000000.000200", false).await;
        assert_eq!((found.is_err(), matches!(found, Ok(Lookup::Unknown))), (is_refused, !is_refused), "{found:?}");
        assert!(rig.front.show(&asked, "Thinking…").await, "{code}");
    }
    rig.front.over("Ev1").await;
    rig.finish().await;
}
