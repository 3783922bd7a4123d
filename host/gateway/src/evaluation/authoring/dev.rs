//! Live feedback while a policy is written: each build is checked, and compared with the previous build on recorded
//! conversations.
//!
//! [`builder`] makes the component, [`watch`] detects changes, [`sessions`] are the conversations it is tried on, and
//! [`difference`] is what is reported. Decisions are those of a replay, as in [`compare`](crate::evaluation::compare).

pub mod builder;
pub mod difference;
pub mod sessions;
pub mod watch;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use pmk_policy::Identity;
use pmk_system::error::Failure;
use serde::Serialize;

use self::{
    difference::{Changed, Sums},
    sessions::Session,
};
use super::{
    check::{self, Report},
    histories,
};
use crate::{
    config::PolicyConfig,
    evaluation::compare::{
        faults::{Fault, Faults},
        questions::Questions,
        replay::Arm,
        standing::Standing,
    },
    policies::Loader,
};

/// The conversations that builds are tried on, and the last good build's result.
pub struct Desk {
    pub loader: Loader,
    pub config: PolicyConfig,
    pub sessions: Vec<Session>,
    pub questions: Option<Questions>,
    last: Option<Vec<Standing>>,
}

/// The result of a build.
pub struct Tried {
    pub policy: Identity,
    pub check: Report,
    pub sums: Sums,
    /// The comparison with the previous build, if there was one: its sums, and the conversations that ended
    /// differently.
    pub against: Option<(Sums, Vec<Changed>)>,
    pub passed_over: Vec<PassedOver>,
}

/// A conversation of which a layer below decided something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    pub session: String,
    /// Why the policy did not, the most frequent reason first.
    pub reasons: Vec<Fault>,
    /// Who did, and how often.
    pub decided_instead: BTreeMap<String, u64>,
}

impl Desk {
    /// Starts without a previous build.
    pub fn new(loader: Loader, config: PolicyConfig, sessions: Vec<Session>, questions: Option<Questions>) -> Desk {
        Desk { loader, config, sessions, questions, last: None }
    }

    /// Uses a component as the previous build, if it can be loaded.
    pub fn begin_with(&mut self, component: &Path) {
        self.last = self.arm(component).ok().map(|arm| self.replay(&arm));
    }

    /// Runs the quick check on a build with its settings, and compares it with the last good one. If the check passes,
    /// it becomes the last good one.
    ///
    /// # Errors
    /// It cannot be loaded. The previous build stays.
    pub fn try_out(&mut self, component: &Path) -> Result<Tried, Failure> {
        let arm = self.arm(component)?;
        let layer = arm.stack.top();
        let limits = self.config.limits.limits();
        let check = check::quick(layer, &histories::built_in(), &limits, &mut || ());
        let now = self.replay(&arm);
        let sums = |standings: &[Standing]| difference::sums(&self.sessions, standings);
        let against = self
            .last
            .as_ref()
            .map(|before| (sums(before), difference::between(&self.sessions, self.questions.as_ref(), before, &now)));
        let passed_over = self.passed_over(&now);
        let tried = Tried { policy: layer.policy.identity().clone(), check, sums: sums(&now), against, passed_over };
        if tried.check.failed() == 0 {
            self.last = Some(now);
        }
        Ok(tried)
    }

    fn arm(&self, component: &Path) -> Result<Arm, Failure> {
        let stack = self.loader.load(&self.config, &[PathBuf::from(component)])?;
        self.loader.check_settings(&self.config, std::slice::from_ref(&stack))?;
        Ok(Arm { label: String::new(), stack })
    }

    fn passed_over(&self, standings: &[Standing]) -> Vec<PassedOver> {
        let all = self.sessions.iter().zip(standings).map(|(session, standing)| {
            let mut faults = Faults::default();
            faults.add(&standing.faults, &session.name);
            PassedOver {
                session: session.name.clone(),
                reasons: faults.reasons().into_iter().cloned().collect(),
                decided_instead: faults.deciders().clone(),
            }
        });
        all.filter(|one| !one.reasons.is_empty()).collect()
    }

    fn replay(&self, arm: &Arm) -> Vec<Standing> {
        sessions::replay(arm, &self.sessions, self.questions.as_ref())
    }
}
