//! What was learnt of a model survives a restart.

use super::*;
use crate::calibration::{Bounds, Fit, Source};

fn learnt(bounds: Bounds) -> ModelCalibration {
    let fit = Fit { weight: 1.0, x: 2.0, y: 3.0, xx: 4.0, xy: 6.0 };
    ModelCalibration { provider: "openai".into(), model: "made-up".into(), fit, bounds }
}

async fn learn(store: &Store, event: &str, learnt: ModelCalibration) {
    let inbox = accept(store, "slack:dm:U1", event).await;
    let open = ask(store, inbox).await;
    let recorded = Recorded { calibration: Some(learnt), ..recorded("question", "answer") };
    store.record(open.turn, recorded, NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
}

/// After a restart, that one too offered tools again, and was refused.
#[tokio::test]
async fn an_answer_to_one_host_overwrote_that_another_was_refused() {
    let home = home();
    let [store, other] = [open(&home), open(&home)];
    other.learn_tools("openai", "m", true).await.unwrap();
    assert_eq!(store.takes_tools("openai", "m").await.unwrap(), Some(true));
    store.learn_tools("openai", "m", false).await.unwrap();
    other.learn_tools("openai", "m", true).await.unwrap();
    assert_eq!(store.takes_tools("openai", "m").await.unwrap(), Some(false));
    store.forget_calibrations().await.unwrap();
    other.learn_tools("openai", "m", true).await.unwrap();
    assert_eq!(store.takes_tools("openai", "m").await.unwrap(), Some(true), "it was to be tried again");
}

#[tokio::test]
async fn bounds_survive_a_restart_and_go_when_they_are_gone_or_forgotten() {
    let home = home();
    let mut bounds = Bounds::default();
    bounds.answered(SessionId::of(1), 11_000, Some(9_000), NOW - 25 * 60 * 60 * 1_000);
    bounds.answered(SessionId::of(1), 10_000, Some(12_000), NOW);
    bounds.answered(SessionId::of(1), 10_000, Some(12_000), NOW + 1);
    assert!(bounds.answered_before.is_some() && bounds.answered.is_some_and(|day| day.at_ms > day.since_ms));
    bounds.refused(SessionId::of(1), 30_000, Some(32_768), Source::Refused, NOW);
    learn(&open(&home), "a", learnt(bounds)).await;

    let store = open(&home);
    assert_eq!(store.calibration("openai", "made-up").await.unwrap(), learnt(bounds));
    assert_eq!(store.calibrations().await.unwrap(), [learnt(bounds)]);
    assert_eq!(store.calibration("openai", "other").await.unwrap().bounds, Bounds::default());

    bounds.answered(SessionId::of(1), 40_000, Some(48_000), NOW + 1);
    assert_eq!((bounds.refused, bounds.named), (None, None));
    learn(&store, "b", learnt(bounds)).await;
    assert_eq!(store.calibration("openai", "made-up").await.unwrap().bounds, bounds);
    assert_eq!(store.forget_calibrations().await.unwrap(), 1);
    assert_eq!(store.calibrations().await.unwrap(), []);
    assert_eq!(number(&home, "SELECT count(*) FROM bound"), 0);
}
