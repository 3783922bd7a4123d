//! Late answers: a person who asked while no host was running is told first how late the answer is.

use std::time::Duration;

use jiff::SignedDuration;

use crate::{
    services::Services,
    store::{self, OpenTurn},
};

/// The minimum delay between question and start of the answer that counts as late.
const LATE_AFTER: Duration = Duration::from_secs(5 * 60);

/// Returns the notice that precedes the answer to these messages; empty if it is in time. A contact's late answer is
/// not our delay.
pub(super) fn notice(services: &Services, turn: &OpenTurn, merged: &[OpenTurn]) -> String {
    if turn.absorbs().is_some() {
        return String::new();
    }
    let (ahead, now_ms) = (services.front.clock_ahead().unwrap_or_default(), services.now_ms());
    let asked_ms = waiting_since(merged.iter().chain([turn]), ahead, now_ms);
    match asked_ms.and_then(|asked_ms| minutes_late(asked_ms, now_ms)) {
        Some(minutes) => services.messages.late(minutes),
        None => String::new(),
    }
}

/// Returns when the first of these messages was written. One that is asked again is not late, however old it is; what
/// its author has said is no answer has waited for their word.
fn waiting_since<'a>(turns: impl Iterator<Item = &'a OpenTurn>, ahead: SignedDuration, now_ms: i64) -> Option<i64> {
    let asked = |OpenTurn { inbound, received_at_ms, .. }: &OpenTurn| {
        if store::is_own(inbound) {
            return *received_at_ms;
        }
        asked_at_ms(inbound.asked_at.as_deref().unwrap_or(&inbound.ts), ahead, now_ms).unwrap_or(*received_at_ms)
    };
    turns.filter(|turn| !store::is_again(&turn.inbound)).map(asked).min()
}

/// Returns when a message was written, by this machine's clock, from Slack's time of that; `None` if that is not a
/// valid time. When it was received says nothing about it: another host may have received it, by another clock.
fn asked_at_ms(ts: &str, ahead: SignedDuration, now_ms: i64) -> Option<i64> {
    let written = ts.split_once('.').and_then(|(seconds, _)| seconds.parse::<i64>().ok()?.checked_mul(1_000));
    written
        .filter(|written| *written >= 0)
        .and_then(|written| written.checked_add(i64::try_from(ahead.as_millis()).ok()?))
        .filter(|written| (0..=now_ms).contains(written))
}

/// Returns the delay in minutes if it counts as late.
fn minutes_late(asked_ms: i64, now_ms: i64) -> Option<u64> {
    let late = u64::try_from(now_ms.checked_sub(asked_ms)?).ok().map(Duration::from_millis)?;
    (late >= LATE_AFTER).then(|| (late.as_secs() + 30) / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_777_342_416_133;

    #[test]
    fn an_answer_is_late_from_five_minutes_on() {
        for (ago_s, minutes) in
            [(0, None), (299, None), (300, Some(5)), (449, Some(7)), (450, Some(8)), (7_200, Some(120))]
        {
            assert_eq!(minutes_late(NOW - ago_s * 1_000, NOW), minutes, "{ago_s}");
        }
        assert_eq!(minutes_late(NOW + 3_600_000, NOW), None, "clocks differ");
    }

    #[test]
    fn the_question_was_asked_when_it_was_written() {
        let none = SignedDuration::ZERO;
        assert_eq!(asked_at_ms("1777342000.000100", none, NOW), Some(1_777_342_000_000));
        let ahead = SignedDuration::from_secs(100);
        assert_eq!(asked_at_ms("1777342000.000100", ahead, NOW), Some(1_777_342_100_000));
        assert_eq!(asked_at_ms("1777342000.000100", -ahead, NOW), Some(1_777_341_900_000));
        for text in ["", "Ev1", "x.1", "99999999999999999999.0", "1999999999.000100"] {
            assert_eq!(asked_at_ms(text, none, NOW), None, "{text}");
        }
    }

    /// Regression: an answer to both was said to be hours late.
    #[test]
    fn a_question_that_is_asked_again_was_late_where_it_is_answered_with_another() {
        let written = |event_id: &str, ago_s: i64| {
            let mut turn = OpenTurn::asked("slack:dm:U1", "U1", event_id);
            turn.inbound.ts = format!("{}.000100", NOW / 1_000 - ago_s);
            turn
        };
        let (again, earlier) = (written(":again:repeat", 7_200), written("Ev1", 600));
        let since = |turns: &[&OpenTurn]| {
            let since = waiting_since(turns.iter().copied(), SignedDuration::ZERO, NOW);
            since.and_then(|asked_ms| minutes_late(asked_ms, NOW))
        };
        assert_eq!(since(&[&again]), None);
        assert_eq!(since(&[&again, &written("Ev2", 0)]), None);
        assert_eq!(since(&[&earlier, &again]), Some(10), "the other one has waited");
    }

    /// When another host had received the question decided about it, by a clock an hour apart.
    #[test]
    fn an_answer_in_time_was_an_hour_late_where_the_clocks_of_hosts_differ() {
        for ahead_s in [3_600, 0, -3_600] {
            let now = 1_777_342_000_000 + ahead_s * 1_000 + 5_000;
            let asked = asked_at_ms("1777342000.000100", SignedDuration::from_secs(ahead_s), now);
            assert_eq!(asked, Some(now - 5_000), "{ahead_s}");
            assert_eq!(asked.and_then(|asked| minutes_late(asked, now)), None, "{ahead_s}");
        }
    }
}
