use futures_util::FutureExt;

use super::*;
use crate::{
    chat::{ReactedAuthor, Reaction},
    ledger::{Event, InExperiment, Tags},
    policies::experiment::figures::{self, Finding, LEAST_CONVERSATIONS},
    store::assignment::{ArmAssignment, Weights},
};

const KEY: &str = "slack:channel:C1";

fn drawn(arm: &str) -> ArmAssignment {
    ArmAssignment { arm: arm.into(), weights: Weights::from([("a".into(), 1), ("b".into(), 1)]) }
}

fn tags(arm: &str) -> Tags {
    let place = InExperiment { experiment: "less".into(), arm: arm.into() };
    Tags { policy_sha256: Some("abc".into()), place: Some(place) }
}

/// A turn of this arm, whose answer is posted under this id.
async fn answered(store: &Store, key: &str, event_id: &str, outcome: TurnOutcome, sent_id: &str) -> OpenTurn {
    let open = ask(store, accept(store, key, event_id).await).await;
    let recorded = Recorded { outcome, ..recorded("q", "a") };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, Some(sent_id))], vec![], NOW + 2_000).await.unwrap();
    open
}

#[tokio::test]
async fn an_experiment_is_known_as_it_was_when_it_last_began() {
    let home = home();
    let store = open(&home);
    assert_eq!(store.design("less").await.unwrap(), None);
    for weight in [1, 2] {
        let arm = DesignedArm { name: "a".into(), weight, ..DesignedArm::default() };
        let design = Design { control: "a".into(), arms: vec![arm], ..Design::default() };
        store.keep_design("less", &design, NOW).await.unwrap();
        assert_eq!(store.design("less").await.unwrap(), Some(design));
    }
}

/// A file that was changed while the gateway was off was taken for the same arm.
#[tokio::test]
async fn an_arm_with_other_policies_is_known_to_have_changed() {
    let home = home();
    let store = open(&home);
    let begins = |policies: [Option<&str>; 2], now_ms| {
        let arm = |(name, policies): (&str, Option<&str>)| DesignedArm {
            name: name.into(),
            policies: policies.map(str::to_owned),
            ..DesignedArm::default()
        };
        let arms = ["a", "b"].into_iter().zip(policies).map(arm).collect();
        let (store, design) = (store.clone(), Design { control: "a".into(), arms, ..Design::default() });
        async move {
            let kept = store.keep_design("less", &design, now_ms).await.unwrap().unwrap();
            assert_eq!(store.design("less").await.unwrap().as_ref(), Some(&kept));
            kept.arms.into_iter().map(|arm| arm.changes_ms).collect::<Vec<_>>()
        }
    };
    let never = Vec::<i64>::new;
    assert_eq!(begins([None, None], NOW).await, [never(), never()], "as an older program stored it");
    assert_eq!(begins([Some("s"), Some("1")], NOW + 1).await, [never(), never()]);
    assert_eq!(begins([Some("s"), Some("1")], NOW + 2).await, [never(), never()]);
    assert_eq!(begins([Some("s"), Some("2")], NOW + 3).await, [never(), vec![NOW + 3]]);
    assert_eq!(begins([Some("s"), Some("2")], NOW + 4).await, [never(), vec![NOW + 3]]);
    assert_eq!(begins([Some("t"), Some("1")], NOW + 5).await, [vec![NOW + 5], vec![NOW + 3, NOW + 5]], "back, too");
    let session = turn(&store, KEY, "Ev1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    let a = DesignedArm { name: "a".into(), policies: Some("t".into()), ..DesignedArm::default() };
    let left_out = Design { control: "a".into(), arms: vec![a], ..Design::default() };
    store.keep_design("less", &left_out, NOW + 6).await.unwrap();
    assert_eq!(begins([Some("t"), Some("1")], NOW + 7).await[1], [NOW + 7], "it was left out");
}

/// Once, `start` in gateway.json was all it took to go on with an experiment that was over, even after a promotion: then
/// the promoted arm was compared with itself.
#[tokio::test]
async fn what_ran_under_a_name_stays_under_it() {
    let home = home();
    let store = open(&home);
    let begins = |start: Option<&str>, now_ms| {
        let arms = vec![DesignedArm { name: "a".into(), ..DesignedArm::default() }];
        let design = Design { start: start.map(str::to_owned), control: "a".into(), arms };
        let store = store.clone();
        async move { store.keep_design("less", &design, now_ms).await.unwrap().is_some() }
    };
    assert!(begins(None, NOW).await, "an older program began it");
    assert!(begins(Some("monday"), NOW + 1).await);
    assert!(begins(Some("tuesday"), NOW + 2).await, "nobody has taken part");
    let session = turn(&store, KEY, "Ev1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    assert!(begins(Some("tuesday"), NOW + 3).await, "it is the same");
    assert!(!begins(Some("wednesday"), NOW + 4).await);
    assert_eq!(store.design("less").await.unwrap().unwrap().start.as_deref(), Some("tuesday"));
}

/// Once, what the control had answered in an arm's conversations while that was a shadow was missing in the arm alone.
#[tokio::test]
async fn an_arm_that_was_a_shadow_for_a_while_is_compared_from_then_on() {
    let home = home();
    let store = open(&home);
    let session = turn(&store, KEY, "Ev1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    let begins = |shadow, now_ms| {
        let arm = |name: &str| DesignedArm {
            name: name.into(),
            policies: Some("1".into()),
            shadow: shadow && name == "b",
            ..DesignedArm::default()
        };
        let (store, design) =
            (store.clone(), Design { control: "a".into(), arms: vec![arm("a"), arm("b")], ..Design::default() });
        async move {
            let kept = store.keep_design("less", &design, now_ms).await.unwrap().unwrap();
            kept.arms.into_iter().map(|arm| arm.changes_ms).collect::<Vec<_>>()
        }
    };
    let never = Vec::<i64>::new;
    assert_eq!(begins(false, NOW + 1).await, [never(), never()]);
    assert_eq!(begins(true, NOW + 2).await, [never(), never()]);
    assert_eq!(begins(false, NOW + 3).await, [never(), vec![NOW + 3]]);
}

#[tokio::test]
async fn a_conversation_keeps_its_arm_over_a_restart() {
    let home = home();
    let store = open(&home);
    let session = turn(&store, KEY, "Ev1").await.session;
    assert_eq!(store.arm("less", session).await.unwrap(), None);
    assert_eq!(store.draw("less", session, drawn("b"), "a", NOW).await.unwrap(), "b");
    assert_eq!(store.draw("less", session, drawn("a"), "a", NOW).await.unwrap(), "b", "it has one");
    drop(store);
    let store = open(&home);
    assert_eq!(store.arm("less", session).await.unwrap().as_deref(), Some("b"));
    assert_eq!(store.arm("more", session).await.unwrap(), None, "another experiment");
    assert_eq!(store.newest_experiment().await.unwrap().as_deref(), Some("less"));
}

#[tokio::test]
async fn a_stopped_arm_gives_its_conversations_to_the_control_once() {
    let home = home();
    let store = open(&home);
    let b = turn(&store, "slack:dm:U1", "Ev1").await.session;
    let a = turn(&store, "slack:dm:U2", "Ev2").await.session;
    store.draw("less", b, drawn("b"), "a", NOW).await.unwrap();
    store.draw("less", a, drawn("a"), "a", NOW).await.unwrap();
    let stopped = |conversations_moved| Event::ExperimentOff {
        experiment: format!("less, for {conversations_moved}"),
        promoted: None,
    };
    assert_eq!(store.stop_arm("less", "b", "a", "worse", stopped, NOW).await.unwrap(), Some(1));
    assert_eq!(store.stop_arm("less", "b", "a", "worse", stopped, NOW).await.unwrap(), None);
    assert_eq!(store.arm("less", b).await.unwrap().as_deref(), Some("a"));
    assert_eq!(store.stopped_arms("less").await.unwrap()["b"].reason, "worse");
    let late = turn(&store, "slack:dm:U3", "Ev3").await.session;
    assert_eq!(store.draw("less", late, drawn("b"), "a", NOW).await.unwrap(), "a", "drawn just before");
    let known = store.arm_conversations("less", i64::MIN).await.unwrap();
    let moved: Vec<(&str, bool)> = known.iter().map(|one| (one.arm.as_str(), one.moved)).collect();
    assert_eq!(moved, [("b", true), ("a", false), ("b", true)], "the drawn arm is remembered");
}

#[tokio::test]
async fn what_came_of_turns_is_added_up_by_conversation() {
    let home = home();
    let store = open(&home);
    let outcome =
        |arm: &str, failed, overflowed| TurnOutcome { tags: tags(arm), failed, overflowed, ..TurnOutcome::default() };
    let session = answered(&store, KEY, "Ev1", outcome("b", true, false), "1.1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    answered(&store, KEY, "Ev2", outcome("b", false, true), "1.2").await;
    // From the time after the arm was stopped.
    answered(&store, KEY, "Ev3", outcome("a", true, true), "1.3").await;
    let known = store.arm_conversations("less", i64::MIN).await.unwrap();
    let expected = ArmConversation {
        arm: "b".into(),
        weights: drawn("b").weights,
        drawn_at_ms: NOW,
        turns: 2,
        failed: 1,
        first_failed_ms: Some(NOW),
        overflowed: 1,
        tokens_in: 30,
        tokens_out: 10,
        latency_ms: 4_000,
        ..ArmConversation::default()
    };
    assert_eq!(known, [expected]);
    let since = store.arm_conversations("less", NOW + 1_000_000_000).await.unwrap();
    assert_eq!([since[0].turns, since[0].failed, since[0].tokens_in], [0; 3], "none was answered since");
}

#[tokio::test]
async fn the_guard_rail_counts_each_kind_of_trouble_once_in_a_conversation() {
    let home = home();
    let store = open(&home);
    let outcome = |failed, overflowed| TurnOutcome { tags: tags("b"), failed, overflowed, ..TurnOutcome::default() };
    let ended = |key: &'static str, event_id: &'static str, [failed, overflowed]: [bool; 2], since_ms| {
        let (store, outcome) = (store.clone(), outcome(failed, overflowed));
        async move {
            let open = answered(&store, key, event_id, outcome.clone(), event_id).await;
            store.draw("less", open.session, drawn("b"), "a", NOW).await.unwrap();
            store.is_first_trouble(open.turn, open.session, &outcome, since_ms).await.unwrap()
        }
    };
    assert!(ended(KEY, "Ev1", [false, true], i64::MIN).await);
    assert!(ended(KEY, "Ev2", [true, false], i64::MIN).await, "another kind");
    assert!(!ended(KEY, "Ev3", [true, true], i64::MIN).await);
    assert!(ended(KEY, "Ev4", [true, false], NOW + 1).await, "the others were before");
    assert!(ended("slack:dm:U2", "Ev5", [true, false], i64::MIN).await, "another conversation");
    let known = store.arm_conversations("less", i64::MIN).await.unwrap();
    let counted = known.into_iter().map(|it| ArmConversation {
        arm: it.arm,
        weights: it.weights,
        turns: it.turns,
        overflowed: it.overflowed,
        first_failed_ms: it.first_failed_ms,
        first_skipped_ms: it.first_skipped_ms,
        ..ArmConversation::default()
    });
    assert_eq!(store.guarded_conversations("less", i64::MIN).await.unwrap(), counted.collect::<Vec<_>>());
}

/// Once, each turn in an experiment handed this to another thread and waited for it.
#[tokio::test]
async fn the_arm_of_a_conversation_was_looked_up_by_another_thread() {
    let home = home();
    let store = open(&home);
    let session = turn(&store, KEY, "Ev1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    // Threads that may block wait for a database over a network.
    if home.database.is_none() {
        let arm = store.arm("less", session).now_or_never().expect("no wait");
        assert_eq!(arm.unwrap().as_deref(), Some("b"));
    }
}

/// Once, a policy that always failed was said to fail less than the control, as it was suspended most of the time.
#[tokio::test]
async fn a_turn_in_which_a_policy_was_suspended_is_none_without_a_failure() {
    let home = home();
    let store = open(&home);
    let outcome = |failed, skipped| TurnOutcome { tags: tags("b"), failed, skipped, ..TurnOutcome::default() };
    let session = answered(&store, KEY, "Ev1", outcome(false, false), "1.1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    for (event, ts, [failed, skipped]) in
        [("Ev2", "1.2", [true, true]), ("Ev3", "1.3", [false, true]), ("Ev4", "1.4", [false, true])]
    {
        answered(&store, KEY, event, outcome(failed, skipped), ts).await;
    }
    let known = &store.arm_conversations("less", i64::MIN).await.unwrap()[0];
    assert_eq!((known.turns, known.failed, known.unseen, known.seen()), (4, 1, 2, 2));
    assert!(known.first_failed_ms.is_some() && known.first_failed_ms == known.first_skipped_ms, "{known:?}");
    // What an older program has not noted may have been hidden: its failures are no evidence.
    store.write(|conn| Ok(conn.execute("UPDATE turn SET skipped = NULL", [])?)).await.unwrap();
    let known = &store.arm_conversations("less", i64::MIN).await.unwrap()[0];
    assert_eq!((known.failed, known.unseen, known.first_failed_ms, known.first_skipped_ms), (1, 0, None, None));
}

/// While Slack was out of reach, answers waited, and each counted as one that took no time.
#[tokio::test]
async fn an_answer_that_is_not_delivered_yet_looked_fast() {
    let home = home();
    let store = open(&home);
    let outcome = || TurnOutcome { tags: tags("b"), ..TurnOutcome::default() };
    let session = answered(&store, KEY, "Ev1", outcome(), "1.1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    let waits = ask(&store, accept(&store, KEY, "Ev2").await).await;
    store.record(waits.turn, Recorded { outcome: outcome(), ..recorded("q", "a") }, NOW).await.unwrap();
    let known = store.arm_conversations("less", i64::MIN).await.unwrap();
    assert_eq!((known[0].turns, known[0].undelivered, known[0].answered(), known[0].latency_ms), (2, 1, 1, 2_000));
    store.finish(waits.turn, vec![sent(0, None)], vec![], NOW + 6_000).await.unwrap();
    let known = store.arm_conversations("less", i64::MIN).await.unwrap();
    assert_eq!((known[0].turns, known[0].undelivered, known[0].answered(), known[0].latency_ms), (2, 0, 2, 8_000));
}

/// Once, a question that was asked again by hand after a weekend counted with the whole weekend.
#[tokio::test]
async fn an_answer_after_an_outage_hid_the_time_of_all_others() {
    let home = home();
    let store = open(&home);
    let outcome = || TurnOutcome { tags: tags("b"), ..TurnOutcome::default() };
    let session = answered(&store, KEY, "Ev1", outcome(), "1.1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    let parked = ask(&store, accept(&store, KEY, "Ev2").await).await;
    let monday = NOW + 200_000_000;
    store.record(parked.turn, Recorded { outcome: outcome(), ..recorded("q", "a") }, monday).await.unwrap();
    store.finish(parked.turn, vec![sent(0, None)], vec![], monday).await.unwrap();
    let known = store.arm_conversations("less", i64::MIN).await.unwrap();
    assert_eq!((known[0].answered(), known[0].latency_ms), (2, 602_000));
}

pub(super) fn liked(user: &str, channel: &str, ts: &str) -> Reaction {
    Reaction {
        event_id: None,
        user: user.into(),
        message: MessageRef::new(channel, ts),
        reaction: "+1".into(),
        author: ReactedAuthor::Unknown,
    }
}

#[tokio::test]
async fn a_vote_finds_its_answer_and_counts_once() {
    let home = home();
    let store = open(&home);
    let outcome = TurnOutcome { tags: tags("b"), ..TurnOutcome::default() };
    let session = answered(&store, KEY, "Ev1", outcome, "1.1").await.session;
    store.draw("less", session, drawn("b"), "a", NOW).await.unwrap();
    let voted = store.vote(&liked("U1", "C1", "1.1"), true, NOW).await.unwrap();
    let Vote::Counted(voted) = voted else { panic!("{voted:?}") };
    assert_eq!((voted.key.to_string().as_str(), voted.tags), (KEY, tags("b")));
    assert_eq!(store.vote(&liked("U1", "C1", "1.1"), true, NOW).await.unwrap(), Vote::Again, "once");
    assert_eq!(store.vote(&liked("U1", "C2", "1.1"), true, NOW).await.unwrap(), Vote::NoAnswer, "another channel");
    assert_eq!(store.vote(&liked("U1", "C1", "9.9"), true, NOW).await.unwrap(), Vote::NoAnswer, "no answer");
    let others = store.vote(&liked("U2", "C1", "1.1"), true, NOW).await.unwrap();
    assert!(matches!(others, Vote::Counted(_)), "{others:?}");
    let another_mind = store.vote(&liked("U1", "C1", "1.1"), false, NOW).await.unwrap();
    assert!(matches!(another_mind, Vote::Counted(_)), "{another_mind:?}");
    let known = store.arm_conversations("less", i64::MIN).await.unwrap();
    assert_eq!((known[0].likes, known[0].dislikes), (1, 1));
}

/// Regression: a contact's 👍 on the question that they were asked was one on the answer, and somebody's on a proposal
/// took back their 👎 on the answer.
#[tokio::test]
async fn a_thumb_on_what_a_turn_has_said_beside_its_answer_was_a_vote_on_the_answer() {
    let home = home();
    let store = open(&home);
    let asked = ask(&store, accept(&store, KEY, "Ev1").await).await;
    let notice = Purpose::Notice { atom: "a file".into(), saved_in: None };
    let beside = [Purpose::Escalation, Purpose::Tracked, Purpose::Proposal, notice, Purpose::PassedOn];
    let mut parts = vec![Outgoing::reply("a")];
    parts.extend(beside.map(|purpose| Outgoing { purpose, ..Outgoing::reply("more") }));
    store.record(asked.turn, Recorded { parts, ..recorded("q", "a") }, NOW).await.unwrap();
    let all = (0..6).map(|part| sent(part, Some(&format!("1.{part}")))).collect();
    store.finish(asked.turn, all, vec![], NOW).await.unwrap();
    let disliked = store.vote(&liked("U1", "C1", "1.0"), false, NOW).await.unwrap();
    assert!(matches!(disliked, Vote::Counted(_)), "{disliked:?}");
    for ts in ["1.1", "1.2", "1.3", "1.4", "1.5"] {
        for user in ["U1", "U2"] {
            assert_eq!(store.vote(&liked(user, "C1", ts), true, NOW).await.unwrap(), Vote::NoAnswer, "{ts}");
        }
    }
    assert_eq!(number(&home, "SELECT count(*) FROM vote WHERE likes = 0"), 1);
    assert_eq!(number(&home, "SELECT count(*) FROM vote"), 1);
}

/// Those of the control went on, and a conversation's prompt grows with its age: the arm was said to take fewer tokens.
#[tokio::test]
async fn identical_arms_were_said_to_differ_once_one_was_stopped() {
    let home = home();
    let store = open(&home);
    let asked = |arm: &'static str, number: usize, tokens: u64, now_ms: i64| {
        let store = store.clone();
        async move {
            let (key, event_id) = (format!("slack:dm:U{arm}{number}"), format!("Ev{arm}{number}at{now_ms}"));
            let open = ask(&store, accept(&store, &key, &event_id).await).await;
            store.draw("less", open.session, drawn(arm), "a", NOW).await.unwrap();
            let acting = store.arm("less", open.session).await.unwrap().expect("an arm");
            let outcome = TurnOutcome { tags: tags(&acting), ..TurnOutcome::default() };
            let usage = Usage { input_tokens: tokens + number as u64, ..Usage::default() };
            store.record(open.turn, Recorded { outcome, usage, ..recorded("q", "a") }, now_ms).await.unwrap();
            store.finish(open.turn, vec![sent(0, None)], vec![], now_ms).await.unwrap();
        }
    };
    for number in 0..LEAST_CONVERSATIONS {
        for arm in ["a", "b"] {
            asked(arm, number, 100, NOW).await;
        }
    }
    let over = |_| Event::ExperimentOff { experiment: "less".into(), promoted: None };
    store.stop_arm("less", "b", "a", "worse", over, NOW + 1).await.unwrap();
    for number in 0..LEAST_CONVERSATIONS {
        for arm in ["a", "b"] {
            asked(arm, number, 10_000, NOW + 2).await;
        }
    }
    let of = |name: &str| DesignedArm { name: name.into(), weight: 1, ..DesignedArm::default() };
    let design = Design { control: "a".into(), arms: vec![of("a"), of("b")], ..Design::default() };
    let (known, stopped) =
        (store.arm_conversations("less", i64::MIN).await.unwrap(), store.stopped_arms("less").await.unwrap());
    let figures = figures::figures("less", Some(&design), &known, &stopped);
    let found = &figures.arms[1].differences;
    assert!(found.iter().all(|it| it.finding == Finding::NoDifferenceShown), "{found:#?}");
    let turns: Vec<u64> = figures.arms.iter().map(|arm| arm.turns).collect();
    assert_eq!(turns, [2, 1].map(|each| each * LEAST_CONVERSATIONS as u64), "the table has all of them");
}
