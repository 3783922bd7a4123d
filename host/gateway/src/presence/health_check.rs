//! The health of this process, for a machine that asks it: the same that `status` finds from outside.

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use pmk_system::clock;
use serde::Serialize;

use super::{
    LivenessFiles,
    health::{Freshness, Level, Reason, Report, Signals, judge},
    state::Phase,
};

/// Returns what a running gateway reports about itself.
pub type Reporter = Arc<dyn Fn() -> Report + Send + Sync>;

/// What is known of this process.
pub struct HealthCheck {
    signs: LivenessFiles,
    /// Set once the gateway is ready.
    reporter: OnceLock<Reporter>,
    is_leaving: AtomicBool,
}

/// The health of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    pub level: Level,
    /// Whether a message that arrives now is received and answered.
    pub ready: bool,
    /// What is wrong, and whether the gateway is stopping.
    pub reasons: Vec<Reason>,
}

impl HealthCheck {
    /// Returns the health check of a gateway that is starting in this home.
    pub fn starting(home: &Path) -> Arc<HealthCheck> {
        Arc::new(HealthCheck {
            signs: LivenessFiles::of(home),
            reporter: OnceLock::new(),
            is_leaving: AtomicBool::new(false),
        })
    }

    /// Marks the gateway as ready. Only the first call counts.
    pub fn set_ready(&self, reporter: Reporter) {
        let _ = self.reporter.set(reporter);
    }

    /// Marks the gateway as stopping: it takes nothing in any more.
    pub fn set_leaving(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Returns the current health. Reads the heartbeat file.
    pub fn now(&self) -> Condition {
        let report = self.reporter.get().map(|report| report());
        let heartbeat = Freshness::of_beat(self.signs.read().beat_ms, clock::now_ms(), report.is_some());
        let is_leaving = self.is_leaving.load(Ordering::Relaxed);
        let hears = report.as_ref().is_some_and(|report| report.connection.is_none_or(|sockets| sockets.open > 0));
        let speaks = report.as_ref().is_some_and(|report| report.refusal.as_ref().is_none_or(|refusal| !refusal.mutes));
        let can_store = report.as_ref().is_some_and(|report| report.store_away.is_none());
        let phase = match &report {
            _ if is_leaving => Phase::Leaving,
            Some(_) => Phase::Ready,
            None => Phase::Starting,
        };
        let (level, reasons) = judge(&Signals { is_alive: true, phase: Some(phase), heartbeat, report });
        Condition { level, ready: hears && speaks && can_store && level != Level::Down && !is_leaving, reasons }
    }
}

#[cfg(test)]
mod tests {
    use pmk_system::home;

    use super::*;
    use crate::chat::Refusal;

    fn report() -> Report {
        Report {
            connection: None,
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

    /// Regression: until its heartbeat had stopped, a load balancer sent messages to a gateway that could store none.
    #[test]
    fn a_gateway_whose_database_is_away_or_that_cannot_speak_is_not_ready() {
        let home = tempfile::tempdir().expect("a home");
        std::fs::create_dir(home::gateway_dir(home.path())).expect("a folder");
        let refusal = |mutes| Some(Refusal { what: "no".to_owned(), hint: String::new(), mutes });
        let away = Some("no route".to_owned());
        for (store_away, refusal, healthy, ready) in [
            (None, None, true, true),
            (away, None, false, false),
            (None, refusal(true), false, false),
            (None, refusal(false), false, true),
        ] {
            let check = HealthCheck::starting(home.path());
            check.signs.beat(clock::now_ms());
            let report = Report { refusal, store_away, ..report() };
            check.set_ready(Arc::new(move || report.clone()));
            let now = check.now();
            assert_eq!((now.ready, now.level == Level::Healthy), (ready, healthy), "{now:?}");
        }
    }

    /// Regression: its last heartbeat was in the future, so probes had it restarted where `status` called it degraded.
    #[test]
    fn a_gateway_was_down_for_its_probes_because_the_clock_was_set_back() {
        let home = tempfile::tempdir().expect("a home");
        std::fs::create_dir(home::gateway_dir(home.path())).expect("a folder");
        let check = HealthCheck::starting(home.path());
        check.set_ready(Arc::new(report));
        check.signs.beat(clock::now_ms() + 3_600_000);
        let now = check.now();
        assert_eq!((now.level, now.ready, now.reasons), (Level::Degraded, true, vec![Reason::HeartLate]));
    }
}
