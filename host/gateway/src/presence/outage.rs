//! Determines whether the gateway was away, and for how long: from what the last run left, or from
//! clocks.

use std::{collections::VecDeque, time::Duration};

use super::{
    BEAT_EVERY,
    liveness::{End, Seen},
};
use crate::{front::SENT_AGAIN_FOR, store::UnannouncedOutage};
use pmk_system::clock::{self, Clock};

/// An older heartbeat means that no gateway was running.
pub const AWAY_AFTER: Duration = Duration::from_secs(60);

/// Shorter outages are not announced. If it was announced that the gateway goes away, that message is still
/// replaced.
const TOLD_AFTER: Duration = Duration::from_secs(5 * 60);

/// A run that was asked to end has ended by then.
const OUTLIVED_MS: i64 = 60_000;

/// Why the gateway was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It ended without a marker, or was never there.
    CrashRecovery,
    /// It ended without a marker, and was back soon.
    FastRecovery,
    /// It was asked to end, and was back soon.
    GracefulFastRestart,
    /// It was asked to end, and was back later.
    GracefulRestart,
}

impl Reason {
    /// Returns the name used in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::CrashRecovery => "crash-recovery",
            Reason::FastRecovery => "fast-recovery",
            Reason::GracefulFastRestart => "graceful-fast-restart",
            Reason::GracefulRestart => "graceful-restart",
        }
    }
}

/// The gateway is back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Back {
    pub reason: Reason,
    /// When it was last running, if known.
    pub since_ms: Option<i64>,
    pub offline_ms: Option<u64>,
    /// Whether people are to be told.
    pub is_told: bool,
    /// Whether Slack may have given up resending.
    pub is_long: bool,
}

impl Back {
    /// Returns whether people may see that the gateway is away, or are to be told that it was.
    pub fn is_owed(&self) -> bool {
        self.is_told || self.reason == Reason::GracefulFastRestart
    }

    fn after(offline: Option<Duration>, was_asked: bool, now_ms: i64) -> Back {
        // If the duration is unknown, the worst case is assumed.
        let lasted = |least: Duration| offline.is_none_or(|offline| offline >= least);
        let is_told = lasted(TOLD_AFTER);
        let reason = match (was_asked, is_told) {
            (true, false) => Reason::GracefulFastRestart,
            (true, true) => Reason::GracefulRestart,
            (false, false) => Reason::FastRecovery,
            (false, true) => Reason::CrashRecovery,
        };
        let offline_ms = offline.map(|offline| u64::try_from(offline.as_millis()).unwrap_or(u64::MAX));
        let since_ms = offline_ms.and_then(|ms| now_ms.checked_sub(i64::try_from(ms).ok()?));
        Back { reason, since_ms, offline_ms, is_told, is_long: lasted(SENT_AGAIN_FOR) }
    }
}

impl UnannouncedOutage {
    /// Returns whether people are to be told of it. Otherwise, only the message that the gateway is
    /// away is replaced.
    pub(super) fn is_told(&self) -> bool {
        self.since_ms.is_none_or(|since| self.until_ms - since >= TOLD_AFTER.as_millis() as i64)
    }
}

/// Evaluates the files of the last run at a start.
pub(super) fn at_start(seen: Seen, now_ms: i64) -> Back {
    let (was_asked, ended_ms) = match seen.end {
        // A marker that is older than a later heartbeat, because it could not be removed, no longer
        // counts.
        End::Asked { at_ms: Some(at) } if seen.beat_ms.is_some_and(|beat| beat - at > OUTLIVED_MS) => {
            (false, seen.beat_ms)
        }
        // What was said between a last heartbeat and an end long after it was not stored.
        End::Asked { .. } => (true, seen.stored_until_ms()),
        End::Crash => (false, seen.beat_ms),
    };
    // A time in the future comes from another clock setting and says nothing, unless it is only
    // slightly ahead.
    let away_after = AWAY_AFTER.as_millis() as i64;
    let offline = ended_ms.map(|ended| now_ms - ended).filter(|ms| *ms >= -away_after);
    Back::after(offline.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))), was_asked, now_ms)
}

/// For how long nothing that people said can have arrived, or been stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Slack may have given up resending, although the gateway was not away for so long.
    Long(Duration),
    /// Not yet; but a silence that follows, such as until the run is connected, counts together with it.
    Short(Duration),
    /// That follows from how long the gateway was away.
    AsAway,
}

/// Evaluates since when the last run had heard nothing, if it did not when it ended.
pub(super) fn silence_at_start(silent_since_ms: Option<i64>, back: Back, now_ms: i64) -> Silence {
    let lasted = |since_ms: i64| u64::try_from(now_ms - since_ms).ok().map(Duration::from_millis);
    let of_last = silent_since_ms.and_then(lasted);
    let away = back.since_ms.and_then(lasted);
    match (of_last.max(away), back.is_long) {
        (Some(_), true) if of_last <= away => Silence::AsAway,
        (Some(whole), _) if whole >= SENT_AGAIN_FOR => Silence::Long(whole),
        (Some(whole), false) => Silence::Short(whole),
        (_, _) => Silence::AsAway,
    }
}

/// Evaluates the time from when things could last be stored until they can be again; `None` if heartbeats follow each
/// other like that. Slack sends in vain what it sends while nothing can be stored, or while the machine sleeps; a store
/// that is only slow, so that nothing has failed, stores it.
pub(super) fn silence_until(now: Reading, stored: Reading, has_failed: bool) -> Option<Silence> {
    let (up, wall) = (now.up_since(stored), now.wall_since(stored));
    let lasted = up.max(wall);
    if lasted >= SENT_AGAIN_FOR {
        return Some(Silence::Long(lasted));
    }
    // A machine that slept may have been frozen as a whole.
    let is_silence = has_failed || wall.saturating_sub(up) > 2 * BEAT_EVERY;
    (is_silence && lasted > 2 * BEAT_EVERY).then_some(Silence::Short(lasted))
}

/// The clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub wall_ms: i64,
    /// Time since the machine was started; it advances during sleep, and nobody can set it.
    pub up: Duration,
}

impl Reading {
    pub fn now(clock: &Clock) -> Reading {
        Reading { wall_ms: clock.now_ms(), up: clock::since_boot() }
    }

    fn up_since(self, earlier: Reading) -> Duration {
        self.up.saturating_sub(earlier.up)
    }

    /// The time by the wall clock; none if it was set back.
    fn wall_since(self, earlier: Reading) -> Duration {
        Duration::from_millis(u64::try_from(self.wall_ms.saturating_sub(earlier.wall_ms)).unwrap_or(0))
    }
}

/// The outages that a run finds by its clocks. Each is kept until it is stored: nothing else tells of it once a later
/// heartbeat is written.
#[derive(Debug, Default)]
pub(super) struct FoundOutages {
    last: Option<Reading>,
    /// With when each was over, oldest first.
    unstored: VecDeque<(Back, i64)>,
}

impl FoundOutages {
    /// Compares the clocks with the last time. Returns the outage since then, if there was one.
    pub fn look(&mut self, now: Reading) -> Option<Back> {
        let found = self.last.replace(now).and_then(|last| between(last, now))?;
        self.unstored.push_back((found, now.wall_ms));
        Some(found)
    }

    /// Returns the oldest outage that is not stored, and when it was over.
    pub fn unstored(&self) -> Option<(Back, i64)> {
        self.unstored.front().copied()
    }

    /// Notes that this outage is stored.
    pub fn stored(&mut self) {
        self.unstored.pop_front();
    }
}

/// Returns the outage if this process was suspended between two heartbeats: the machine was asleep, or somebody stopped
/// the process. Setting the wall clock does not count as one. But a virtual machine may be frozen as a whole; then only
/// the wall clock tells, once it is set. So after a forward jump of the wall clock, messages are read back, and nobody
/// is told.
fn between(last: Reading, now: Reading) -> Option<Back> {
    let up = now.up_since(last);
    if up > AWAY_AFTER {
        return Some(Back::after(Some(up), false, now.wall_ms));
    }
    let wall = now.wall_since(last);
    let leap = wall.saturating_sub(up);
    (leap >= SENT_AGAIN_FOR).then(|| Back {
        reason: Reason::FastRecovery,
        is_told: false,
        ..Back::after(Some(wall), false, now.wall_ms)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::LastSign;

    const NOW: i64 = 1_777_342_416_133;
    const MINUTE: i64 = 60_000;

    fn start(beat: Option<i64>, end: End) -> (Reason, Option<u64>, bool, bool) {
        let seen = Seen { beat_ms: beat.map(|ago| NOW - ago), end };
        let Back { reason, offline_ms, is_told, is_long, .. } = at_start(seen, NOW);
        (reason, offline_ms, is_told, is_long)
    }

    fn asked(ago: i64) -> End {
        End::Asked { at_ms: Some(NOW - ago) }
    }

    #[test]
    fn a_start_says_what_the_last_run_left() {
        use Reason::*;
        let unreadable = End::Asked { at_ms: None };
        for (beat, end, expected) in [
            // Also the first start ever.
            (None, End::Crash, (CrashRecovery, None, true, true)),
            (Some(7 * MINUTE), End::Crash, (CrashRecovery, Some(420_000), true, true)),
            (Some(5 * MINUTE), End::Crash, (CrashRecovery, Some(300_000), true, true)),
            (Some(5 * MINUTE - 1), End::Crash, (FastRecovery, Some(299_999), false, true)),
            (Some(2 * MINUTE), End::Crash, (FastRecovery, Some(120_000), false, false)),
            (Some(5_000), End::Crash, (FastRecovery, Some(5_000), false, false)),
            (Some(10_000), asked(2_000), (GracefulFastRestart, Some(2_000), false, false)),
            (Some(7 * MINUTE + 20_000), asked(7 * MINUTE), (GracefulRestart, Some(420_000), true, true)),
            // It wrote another heartbeat while its turns finished.
            (Some(10_000), asked(30_000), (GracefulFastRestart, Some(10_000), false, false)),
            // A marker from before a later heartbeat.
            (Some(10_000), asked(9 * MINUTE), (FastRecovery, Some(10_000), false, false)),
            (Some(6 * MINUTE), unreadable, (GracefulRestart, Some(360_000), true, true)),
            (None, unreadable, (GracefulRestart, None, true, true)),
            // The clock was set back.
            (Some(-3_600_000), End::Crash, (CrashRecovery, None, true, true)),
            (Some(-1_000), End::Crash, (FastRecovery, Some(0), false, false)),
        ] {
            assert_eq!(start(beat, end), expected, "{beat:?} {end:?}");
        }
    }

    /// Regression: a run whose database had been away for minutes was asked to end, and the next one went by when that
    /// was: what Slack had sent in vain was not read back.
    #[test]
    fn an_end_in_an_outage_of_the_store_was_taken_for_one_in_good_health() {
        use Reason::*;
        for (beat, expected) in [
            (10 * MINUTE, (GracefulRestart, Some(600_000), true, true)),
            (4 * MINUTE, (GracefulFastRestart, Some(240_000), false, true)),
            (40_000, (GracefulFastRestart, Some(5_000), false, false)),
        ] {
            assert_eq!(start(Some(beat), asked(5_000)), expected, "{beat}");
        }
    }

    /// Regression: a database dates the end of a run a moment after its marker, and that passed for a crash: people read
    /// for good that the gateway is away.
    #[test]
    fn an_end_that_was_asked_for_was_taken_for_a_crash_where_the_store_is_in_a_database() {
        let own = Seen { beat_ms: Some(NOW - 20_000), end: asked(13_000) };
        let reason = |was_asked| {
            let last = LastSign { at_ms: NOW - 10_000, was_asked };
            at_start(own.or_elsewhere(Some(last)), NOW).reason
        };
        assert_eq!(reason(true), Reason::GracefulFastRestart);
        assert_eq!(reason(false), Reason::FastRecovery, "another host was there until it crashed");
    }

    /// Regression: what nothing could be stored of was looked for only if nothing else happened meanwhile, such as a
    /// reaction that changes nothing, and not before something else was said; and what a short sleep and another short
    /// silence had kept out was never looked for.
    #[test]
    fn what_slack_had_sent_in_vain_was_forgotten() {
        use Silence::*;
        let (long, short) = (|s| Some(Long(Duration::from_secs(s))), |s| Some(Short(Duration::from_secs(s))));
        let stored = at(0, 1_000);
        for (now, expected) in [
            (at(20, 1_020), None),
            // A slow machine.
            (at(40, 1_040), None),
            (at(60, 1_060), short(60)),
            (at(239, 1_239), short(239)),
            (at(240, 1_240), long(240)),
            // The clock was set back meanwhile; a virtual machine was frozen.
            (at(-3_600, 1_300), long(300)),
            (at(300, 1_020), long(300)),
            (at(-3_600, 1_020), None),
        ] {
            assert_eq!(silence_until(now, stored, true), expected, "{now:?}");
        }
    }

    /// Regression: a store that was slow, and lost nothing, had everything read back again and again.
    #[test]
    fn a_slow_store_was_taken_for_one_that_had_lost_something() {
        use Silence::*;
        let stored = at(0, 1_000);
        for (now, expected) in [
            (at(60, 1_060), None),
            (at(239, 1_239), None),
            (at(240, 1_240), Some(Long(Duration::from_secs(240)))),
            // A virtual machine was frozen.
            (at(60, 1_020), None),
            (at(61, 1_020), Some(Short(Duration::from_secs(61)))),
        ] {
            assert_eq!(silence_until(now, stored, false), expected, "{now:?}");
        }
    }

    /// Regression: the heart of a run that nothing reaches beats, so its silence was forgotten with it.
    #[test]
    fn a_silence_that_the_last_run_was_in_was_forgotten() {
        use Silence::*;
        let (minute, minutes) = (Duration::from_secs(60), |minutes: i64| minutes * MINUTE);
        for (silent, beat, expected) in [
            (None, minutes(1), Short(minute)),
            (Some(minutes(3)), minutes(1), Short(3 * minute)),
            (Some(minutes(4)), minutes(1), Long(4 * minute)),
            (Some(minutes(9)), minutes(5), Long(9 * minute)),
            (None, minutes(5), AsAway),
            // Left by an earlier one.
            (Some(minutes(3)), minutes(5), AsAway),
            // The clock was set back.
            (Some(minutes(-3)), minutes(1), Short(minute)),
        ] {
            let back = at_start(Seen { beat_ms: Some(NOW - beat), end: End::Crash }, NOW);
            assert_eq!(silence_at_start(silent.map(|ago| NOW - ago), back, NOW), expected, "{silent:?} {beat}");
        }
        let first = at_start(Seen::default(), NOW);
        assert_eq!(silence_at_start(None, first, NOW), AsAway);
        assert_eq!(silence_at_start(Some(NOW - MINUTE), first, NOW), AsAway, "everything is read");
    }

    fn at(wall_s: i64, up_s: u64) -> Reading {
        Reading { wall_ms: NOW + wall_s * 1_000, up: Duration::from_secs(up_s) }
    }

    #[test]
    fn a_machine_that_slept_was_away_and_a_clock_that_was_set_was_not() {
        let before = at(0, 1_000);
        let told = |now| between(before, now).map(|back| (back.reason, back.offline_ms, back.is_told, back.is_long));
        assert_eq!(told(at(30, 1_030)), None);
        assert_eq!(told(at(59, 1_059)), None, "a slow machine");
        assert_eq!(told(at(600, 1_600)), Some((Reason::CrashRecovery, Some(600_000), true, true)));
        assert_eq!(told(at(120, 1_120)), Some((Reason::FastRecovery, Some(120_000), false, false)));
        // The clock was set back during the sleep, and set to the right time after it had lost it.
        assert_eq!(told(at(-3_600, 1_600)), Some((Reason::CrashRecovery, Some(600_000), true, true)));
        assert_eq!(told(at(-3_600, 1_030)), None);
        assert_eq!(told(at(100, 1_030)), None);
        // Set forward by hours, or a frozen virtual machine: nobody is told, and messages that may have
        // been missed are read back.
        assert_eq!(told(at(7_200, 1_030)), Some((Reason::FastRecovery, Some(7_200_000), false, true)));
    }

    /// Regression: what a machine had slept through was forgotten if its database was not there yet when it woke up.
    #[test]
    fn an_outage_that_could_not_be_stored_at_once_was_forgotten() {
        let mut found = FoundOutages::default();
        assert_eq!((found.look(at(0, 1_000)), found.unstored()), (None, None));
        let slept = found.look(at(7_200, 8_200)).expect("it slept for two hours");
        let owed = Some((slept, NOW + 7_200_000));
        // The database stays away for minutes, and the machine sleeps once more.
        assert_eq!((found.look(at(7_220, 8_220)), found.unstored()), (None, owed));
        let again = found.look(at(7_820, 8_820)).expect("it slept for ten minutes");
        assert_eq!(found.unstored(), owed, "the first one first");
        found.stored();
        assert_eq!(found.unstored(), Some((again, NOW + 7_820_000)));
        found.stored();
        assert_eq!((found.look(at(7_840, 8_840)), found.unstored()), (None, None));
    }
}
