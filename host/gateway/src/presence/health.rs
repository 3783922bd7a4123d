//! The health of a gateway, seen from outside: from its files, and from its own report if it
//! answers.

use std::{iter, time::Duration};

use pmk_policy::{ChangedSettings, Identity, Suspension};
use serde::{Deserialize, Serialize, Serializer};

use super::{AWAY_AFTER, state::Phase};
use crate::{
    chat::{Connection, Refusal},
    ledger::LedgerBacklog,
};

/// An older heartbeat is late.
const FRESH_FOR: Duration = Duration::from_secs(30);

/// This many lost connections within a while count as too many.
const MANY_RECONNECTS: u32 = 2;

/// The age class of the heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Freshness {
    Fresh,
    Aging,
    Stale,
}

impl Freshness {
    /// Classifies an age; `None` if there is no heartbeat.
    pub fn of(age: Option<Duration>) -> Freshness {
        match age {
            Some(age) if age < FRESH_FOR => Freshness::Fresh,
            Some(age) if age < AWAY_AFTER => Freshness::Aging,
            Some(_) | None => Freshness::Stale,
        }
    }

    /// Returns the age of a heartbeat. A heartbeat in the future says nothing, unless the difference is small enough
    /// that the clock may have been set back since the heartbeat.
    pub fn age(beat_ms: i64, now_ms: i64) -> Option<Duration> {
        match u64::try_from(now_ms.saturating_sub(beat_ms)) {
            Ok(ms) => Some(Duration::from_millis(ms)),
            Err(_) if Duration::from_millis(beat_ms.abs_diff(now_ms)) < FRESH_FOR => Some(Duration::ZERO),
            Err(_) => None,
        }
    }

    /// Classifies the last heartbeat, if there is one. After the clock was set back, that of a gateway that answers says
    /// nothing until the next one.
    pub fn of_beat(beat_ms: Option<i64>, now_ms: i64, answers: bool) -> Freshness {
        match beat_ms.map(|beat| Freshness::age(beat, now_ms)) {
            Some(None) if answers => Freshness::Aging,
            age => Freshness::of(age.flatten()),
        }
    }

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Freshness::Fresh => "fresh",
            Freshness::Aging => "aging",
            Freshness::Stale => "stale",
        }
    }
}

/// The health level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Healthy,
    /// It is running, but something is wrong.
    Degraded,
    /// It does not answer anybody.
    Down,
}

impl Level {
    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Healthy => "healthy",
            Level::Degraded => "degraded",
            Level::Down => "down",
        }
    }
}

/// What a running gateway reports about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its sockets, if its front has any.
    pub connection: Option<Connection>,
    /// What its front refuses until a person changes something, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// Why it can store nothing, if it cannot: its database is out of reach, or its disk is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_away: Option<String>,
    /// Whether its database may be why no heartbeat is written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excuses_heartbeat: bool,
    /// Why gateway.json cannot be used as it is now, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The experiment of gateway.json that is not in use as it is there, if one is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<RefusedExperiment>,
    /// What keeps lines of the ledger from being written, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerBacklog>,
    /// The policy layers, the top one first; empty if the program does not report them.
    #[serde(default)]
    pub policies: Vec<Identity>,
    /// Their settings that an operator has changed, if the program reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<ChangedSettings>,
    /// The decisions for which they are skipped at present, because they kept failing.
    #[serde(default)]
    pub suspended: Vec<Suspension>,
    /// The same of the arms of the experiment that is on.
    #[serde(default)]
    pub suspended_arms: Vec<SuspendedArm>,
}

/// A decision for which a policy of an experiment's arm is skipped at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendedArm {
    pub experiment: String,
    pub arm: String,
    #[serde(flatten)]
    pub suspension: Suspension,
}

/// An experiment that should be on, and that the gateway could not load as it is in gateway.json.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedExperiment {
    pub name: String,
    pub why: String,
    /// Whether it is on with the arms that it had before a change.
    #[serde(default)]
    pub goes_on: bool,
}

/// What is known of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signals {
    pub is_alive: bool,
    pub phase: Option<Phase>,
    pub heartbeat: Freshness,
    /// `None` if it did not answer.
    pub report: Option<Report>,
}

/// Why a gateway is not healthy. Its text is in English, for programs; people read it in [their
/// language](crate::messages::Messages::status_because).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("no gateway is running here")]
    Nobody,
    #[error("it is starting")]
    Starting,
    #[error("it is running, but its heartbeat has stopped")]
    HeartStopped,
    #[error("its heartbeat is late")]
    HeartLate,
    #[error("it does not answer, so the state of its sockets is unknown")]
    Silent,
    #[error("it is stopping")]
    Leaving,
    #[error("it is reconnecting")]
    Reconnecting,
    #[error("it has reconnected {0} times recently")]
    Reconnects(u32),
    #[error("Slack refuses this app or its token")]
    TokenRefused,
    #[error("it cannot use its database")]
    StoreAway,
    #[error("gateway.json was changed and cannot be used")]
    ConfigUnused,
    #[error("{0} {lines} to be written", lines = noun(*.0))]
    Waiting(u64),
}

fn noun(lines: u64) -> &'static str {
    if lines == 1 { "line of the ledger waits" } else { "lines of the ledger wait" }
}

impl Reason {
    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::Nobody => "nobody",
            Reason::Starting => "starting",
            Reason::HeartStopped => "heart-stopped",
            Reason::HeartLate => "heart-late",
            Reason::Silent => "silent",
            Reason::Leaving => "leaving",
            Reason::Reconnecting => "reconnecting",
            Reason::Reconnects(_) => "reconnects",
            Reason::TokenRefused => "token-refused",
            Reason::StoreAway => "store-away",
            Reason::ConfigUnused => "config-unused",
            Reason::Waiting(_) => "waiting",
        }
    }

    /// Returns the number in it, or 0.
    pub const fn count(&self) -> u64 {
        match *self {
            Reason::Reconnects(times) => times as u64,
            Reason::Waiting(lines) => lines,
            _ => 0,
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the level and the reasons: what is wrong, and whether the gateway is stopping.
pub fn judge(signals: &Signals) -> (Level, Vec<Reason>) {
    if !signals.is_alive {
        return (Level::Down, vec![Reason::Nobody]);
    }
    let mut reasons = Vec::new();
    let (is_starting, is_leaving) = (signals.phase == Some(Phase::Starting), signals.phase == Some(Phase::Leaving));
    let is_excused = signals.report.as_ref().is_some_and(|report| report.excuses_heartbeat);
    match signals.heartbeat {
        _ if is_starting => reasons.push(Reason::Starting),
        // A stopping gateway writes no heartbeat and has closed its sockets, as it should.
        _ if is_leaving => {}
        // The heartbeat stops with the database, and the next one comes a little after it; the gateway itself works.
        _ if is_excused => {}
        Freshness::Stale => {
            let cannot_store = signals.report.as_ref().is_some_and(|report| report.store_away.is_some());
            let why = cannot_store.then_some(Reason::StoreAway);
            return (Level::Down, iter::once(Reason::HeartStopped).chain(why).collect());
        }
        Freshness::Aging => reasons.push(Reason::HeartLate),
        Freshness::Fresh => {}
    }
    match &signals.report {
        _ if is_leaving => {}
        None if is_starting => {}
        None => reasons.push(Reason::Silent),
        Some(Report { connection: Some(Connection { open: 0, .. }), .. }) => {
            reasons.push(Reason::Reconnecting);
        }
        Some(Report { connection: Some(connection), .. }) if connection.reconnects >= MANY_RECONNECTS => {
            reasons.push(Reason::Reconnects(connection.reconnects));
        }
        Some(_) => {}
    }
    if signals.report.as_ref().is_some_and(|report| report.refusal.is_some()) && !is_leaving {
        reasons.push(Reason::TokenRefused);
    }
    match &signals.report {
        // The ledger waits for the database, too, and the number of waiting lines is unknown.
        Some(Report { store_away: Some(_), .. }) => reasons.push(Reason::StoreAway),
        Some(Report { ledger: Some(LedgerBacklog { waiting, .. }), .. }) => reasons.push(Reason::Waiting(*waiting)),
        _ => {}
    }
    if signals.report.as_ref().is_some_and(|report| report.config.is_some()) && !is_leaving {
        reasons.push(Reason::ConfigUnused);
    }
    let level = if reasons.is_empty() { Level::Healthy } else { Level::Degraded };
    if is_leaving {
        reasons.insert(0, Reason::Leaving);
    }
    (level, reasons)
}

#[cfg(test)]
mod tests {
    use super::{super::BEAT_EVERY, *};

    fn report(connection: Option<Connection>) -> Report {
        Report {
            connection,
            refusal: None,
            store_away: None,
            excuses_heartbeat: false,
            config: None,
            experiment: None,
            ledger: None,
            policies: vec![],
            settings: None,
            suspended: vec![],
            suspended_arms: vec![],
        }
    }

    fn signals(heartbeat: Freshness, connection: Option<Connection>) -> Signals {
        let report = Some(report(connection));
        Signals { is_alive: true, phase: Some(Phase::Ready), heartbeat, report }
    }

    #[test]
    fn a_heartbeat_ages_in_half_minutes() {
        let of = |seconds| Freshness::of(Some(Duration::from_millis(seconds)));
        assert_eq!([of(0), of(29_999)], [Freshness::Fresh; 2]);
        assert_eq!([of(30_000), of(59_999)], [Freshness::Aging; 2]);
        assert_eq!([of(60_000), Freshness::of(None)], [Freshness::Stale; 2]);
    }

    /// Regression: each was written when the last one ceased to be fresh, so a healthy gateway was degraded until it was.
    #[test]
    fn a_gateway_was_degraded_for_a_moment_before_each_heartbeat() {
        let slow_proof = Duration::from_secs(5);
        assert_eq!(Freshness::of(Some(BEAT_EVERY + slow_proof)), Freshness::Fresh);
    }

    #[test]
    fn a_heartbeat_of_the_future_is_no_fresh_one() {
        let of = |beat_ms| Freshness::of(Freshness::age(beat_ms, 100_000));
        assert_eq!([of(100_000), of(71_000), of(129_999)], [Freshness::Fresh; 3]);
        assert_eq!([of(130_000), of(i64::MAX), of(i64::MIN), of(0)], [Freshness::Stale; 4]);
        let of = |beat_ms, answers| Freshness::of_beat(beat_ms, 100_000, answers);
        assert_eq!([of(Some(130_000), true), of(Some(129_999), true)], [Freshness::Aging, Freshness::Fresh]);
        assert_eq!([of(Some(130_000), false), of(Some(0), true), of(None, true)], [Freshness::Stale; 3]);
    }

    /// Regression: the first heartbeat comes a little later, so a load balancer saw every host fail at once.
    #[test]
    fn all_hosts_were_down_at_the_moment_their_database_came_back() {
        let back = Report { excuses_heartbeat: true, ..report(None) };
        let signals = Signals { report: Some(back), ..signals(Freshness::Stale, None) };
        assert_eq!(judge(&signals), (Level::Healthy, vec![]));
    }

    /// Regression: a thread that hangs confirms nothing either.
    #[test]
    fn a_process_that_could_store_nothing_was_taken_for_one_whose_database_is_away() {
        let silent = Report { store_away: Some("it has confirmed nothing for 90 s".into()), ..report(None) };
        let signals = Signals { report: Some(silent), ..signals(Freshness::Stale, None) };
        assert_eq!(judge(&signals), (Level::Down, vec![Reason::HeartStopped, Reason::StoreAway]));
    }

    #[test]
    fn each_level_has_its_reasons() {
        let sockets = |open, reconnects| Some(Connection { open, of: 2, reconnects });
        let fresh = |connection| signals(Freshness::Fresh, connection);
        let dead = Signals { is_alive: false, ..fresh(sockets(2, 0)) };
        let silent = Signals { report: None, ..fresh(None) };
        let trouble = LedgerBacklog { error: "no room".into(), since: "now".into(), waiting: 1 };
        let waits = Report { ledger: Some(trouble), ..report(sockets(2, 0)) };
        let away = Report { store_away: Some("no route".into()), ..waits.clone() };
        let refusal = Refusal { what: "no".into(), hint: String::new(), mutes: true };
        let refused = Report { refusal: Some(refusal), ..report(sockets(2, 0)) };
        let unused = Report { config: Some("not JSON".into()), ..report(sockets(2, 0)) };
        let of = |report: &Report| Signals { report: Some(report.clone()), ..fresh(None) };
        let stale = |report: Report| Signals { heartbeat: Freshness::Stale, ..of(&report) };
        let long_away = stale(Report { excuses_heartbeat: true, ..away.clone() });
        let starting = Signals { phase: Some(Phase::Starting), report: None, ..signals(Freshness::Stale, None) };
        let leaving = Signals { phase: Some(Phase::Leaving), ..signals(Freshness::Stale, sockets(0, 2)) };
        for (signals, level, reason) in [
            (fresh(sockets(2, 0)), Level::Healthy, ""),
            (fresh(sockets(1, 1)), Level::Healthy, ""),
            (fresh(None), Level::Healthy, ""),
            (fresh(sockets(0, 1)), Level::Degraded, "reconnecting"),
            (fresh(sockets(2, 2)), Level::Degraded, "2 times"),
            (signals(Freshness::Aging, sockets(2, 0)), Level::Degraded, "late"),
            (silent, Level::Degraded, "unknown"),
            (starting, Level::Degraded, "starting"),
            (of(&waits), Level::Degraded, "1 line of the ledger waits"),
            (of(&away), Level::Degraded, "it cannot use its database"),
            (long_away, Level::Degraded, "it cannot use its database"),
            (of(&refused), Level::Degraded, "Slack refuses"),
            (of(&unused), Level::Degraded, "gateway.json"),
            (leaving, Level::Healthy, "it is stopping"),
            (signals(Freshness::Stale, sockets(2, 0)), Level::Down, "heart"),
            (dead, Level::Down, "no gateway"),
        ] {
            let (judged, reasons) = judge(&signals);
            assert_eq!(judged, level, "{signals:?}");
            let said: String = reasons.iter().map(ToString::to_string).collect();
            assert!(said.contains(reason) && reasons.is_empty() == reason.is_empty(), "{reasons:?}");
        }
    }
}
