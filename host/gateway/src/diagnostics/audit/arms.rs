//! Counts the events of the arms of experiments.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Counts, Record, median::middle};

/// Experiments by name, their arms by name.
pub type Arms = BTreeMap<String, BTreeMap<String, Arm>>;

/// The events of one arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Arm {
    pub turns: u64,
    /// The host's estimate of the messages that each turn sent last. What else was sent is only in `tokens_in`.
    pub tokens_sent: u64,
    /// The tokens counted by the provider.
    pub tokens_in: u64,
    pub tokens_out: u64,
    pub overflows: u64,
    /// Rungs of recovery that were used.
    pub rungs: Counts,
    /// Decisions of its policies that failed.
    pub failures: u64,
    pub asked_again: u64,
    pub thumbs_up: u64,
    pub thumbs_down: u64,
    /// The latency from question to delivered reply: the median and the 95th percentile over its turns.
    pub latency_ms_p50: Option<u64>,
    pub latency_ms_p95: Option<u64>,
    /// Why the guard rail stopped it.
    pub stopped: Option<String>,
    /// Its decisions, if it is a shadow arm.
    pub shadow: Option<Shadow>,
}

/// The decisions of a shadow arm compared with those that were carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shadow {
    pub decisions: u64,
    /// Decisions to send the same messages.
    pub agreed: u64,
    pub tokens: u64,
    pub acting_tokens: u64,
    pub failures: u64,
    /// Decisions that it was too busy to make.
    pub sat_out: u64,
}

/// Counts the events of every arm.
pub(super) fn arms(records: &[Record]) -> Arms {
    let mut arms = Arms::new();
    let mut latencies: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for Record { event, .. } in records {
        let text = |key: &str| event[key].as_str().map(str::to_owned);
        let kind = event["type"].as_str().unwrap_or_default();
        let named = match kind {
            "experiment.arm-stopped" => text("stopped"),
            "experiment.shadow" => text("shadow"),
            _ => text("arm"),
        };
        let (Some(experiment), Some(name)) = (text("experiment"), named) else { continue };
        let arm = arms.entry(experiment.clone()).or_default().entry(name.clone()).or_default();
        count(arm, kind, event);
        // How long an answer takes that people have stopped is not known: such a turn has no audience.
        let is_answered = kind == "turn.processed" && event["audience"].as_str().is_some_and(|it| !it.is_empty());
        if is_answered {
            latencies.entry((experiment, name)).or_default().extend(event["latencyMs"].as_u64());
        }
    }
    for ((experiment, name), mut latencies) in latencies {
        latencies.sort_unstable();
        if let Some(arm) = arms.get_mut(&experiment).and_then(|arms| arms.get_mut(&name)) {
            arm.latency_ms_p95 = latencies.get((latencies.len() * 95).div_ceil(100).saturating_sub(1)).copied();
            arm.latency_ms_p50 = middle(&latencies).map(|ms| ms.round() as u64);
        }
    }
    arms
}

fn count(arm: &mut Arm, kind: &str, event: &Value) {
    let number = |key: &str| event[key].as_u64().unwrap_or(0);
    match kind {
        "turn.processed" => {
            arm.turns += 1;
            arm.tokens_sent += number("tokensSent");
            let rungs = event["rungs"].as_array().into_iter().flatten();
            for rung in rungs.filter_map(Value::as_str) {
                *arm.rungs.entry(rung.to_owned()).or_default() += 1;
            }
        }
        "token.usage" => {
            arm.tokens_in += number("inputTokens") + number("cacheReadTokens") + number("cacheCreationTokens");
            arm.tokens_out += number("outputTokens");
        }
        "context.exceeded" => arm.overflows += 1,
        // Nobody said so, but a smaller prompt was answered.
        "context.suspected" if event["helped"] == true => arm.overflows += 1,
        "policy.failed" => arm.failures += 1,
        "signal.reasked" => arm.asked_again += 1,
        "signal.reaction" => {
            let (mut given, mut other) = (&mut arm.thumbs_up, &mut arm.thumbs_down);
            if event["likes"] != true {
                std::mem::swap(&mut given, &mut other);
            }
            *given += 1;
            if event["replaces"] == true {
                *other = other.saturating_sub(1);
            }
        }
        "experiment.arm-stopped" => {
            let worse = event["worse"].as_str().unwrap_or("?");
            let (of_arm, of_control) = (number("armConversations"), number("controlConversations"));
            arm.stopped = Some(verdict(worse, of_arm, of_control));
        }
        "experiment.shadow" => {
            let shadow = arm.shadow.get_or_insert_default();
            shadow.decisions += 1;
            shadow.agreed += u64::from(event["agrees"] == true);
            shadow.tokens += number("tokensAfter");
            shadow.acting_tokens += number("actingTokensAfter");
            shadow.failures += number("failures");
            shadow.sat_out += number("satOut");
        }
        _ => {}
    }
}

/// Describes why an arm was stopped.
fn verdict(worse: &str, of_arm: u64, of_control: u64) -> String {
    format!("{worse} in {of_arm} conversations, the control's in {of_control}")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn of_arm(events: &[Value]) -> Arm {
        let record = |event: &Value| {
            let mut event = event.clone();
            (event["experiment"], event["arm"]) = (json!("less"), json!("b"));
            Record { at: Timestamp::UNIX_EPOCH, event }
        };
        let records: Vec<Record> = events.iter().map(record).collect();
        arms(&records)["less"]["b"].clone()
    }

    /// `experiment status` counts the last word of each person: of 👍 👎 👍 it had one, and `audit` had two 👍 and a 👎.
    #[test]
    fn a_person_of_two_minds_was_counted_as_several() {
        let voted =
            |likes: bool, replaces: bool| json!({"type": "signal.reaction", "likes": likes, "replaces": replaces});
        let arm = of_arm(&[voted(true, false), voted(false, true), voted(true, true)]);
        assert_eq!((arm.thumbs_up, arm.thumbs_down), (1, 0));
        // What it replaces may be from before the days that are looked at.
        let arm = of_arm(&[voted(false, true)]);
        assert_eq!((arm.thumbs_up, arm.thumbs_down), (0, 1));
    }

    #[test]
    fn an_arm_whose_answers_people_stop_looked_fast() {
        let turn = |audience: &str, ms: u64| json!({"type": "turn.processed", "audience": audience, "latencyMs": ms});
        let arm = of_arm(&[turn("biz", 9_000), turn("", 10), turn("", 20), turn("", 30)]);
        assert_eq!((arm.turns, arm.latency_ms_p50, arm.latency_ms_p95), (4, Some(9_000), Some(9_000)));
    }

    #[test]
    fn the_median_of_an_even_number_of_latencies_was_the_upper_one() {
        let latencies = |all: &[u64]| {
            let turn = |ms: &u64| json!({"type": "turn.processed", "audience": "biz", "latencyMs": ms});
            let arm = of_arm(&all.iter().map(turn).collect::<Vec<_>>());
            (arm.latency_ms_p50, arm.latency_ms_p95)
        };
        assert_eq!(latencies(&[9_000, 1_000]), (Some(5_000), Some(9_000)));
        // 95 of 100 are at most so long.
        assert_eq!(latencies(&(1..=100).collect::<Vec<u64>>()), (Some(51), Some(95)));
    }

    #[test]
    fn an_overflow_that_was_only_found_by_asking_for_less_was_missing() {
        let suspected = |helped: bool| json!({"type": "context.suspected", "because": "empty", "helped": helped});
        assert_eq!(of_arm(&[json!({"type": "context.exceeded"}), suspected(true), suspected(false)]).overflows, 2);
    }
}
