//! A policy while it is written: each build is checked, and held against the build before on recorded conversations.
//!
//! [`builder`] makes the component, [`watch`] tells when to, [`sessions`] are what it is tried on and
//! [`difference`] is what is told. Decisions are those of a replay, as in [`compare`](crate::evaluation::compare).

pub mod builder;
pub mod difference;
pub mod sessions;
pub mod watch;

use std::path::{Path, PathBuf};

use pmk_policy::Identity;
use pmk_system::error::Failure;

use self::{
    difference::{Changed, Sums},
    sessions::Session,
};
use super::{
    check::{self, Report},
    histories,
    stage::Stage,
};
use crate::{
    config::PolicyConfig,
    evaluation::compare::{questions::Questions, replay::Arm, standing::Standing},
    policies::Loader,
};

/// What builds are tried on, and the last good one.
pub struct Desk {
    pub loader: Loader,
    pub config: PolicyConfig,
    pub sessions: Vec<Session>,
    pub questions: Option<Questions>,
    last: Option<Vec<Standing>>,
}

/// What a build came to.
pub struct Tried {
    pub policy: Identity,
    pub check: Report,
    pub sums: Sums,
    /// Against the build before, where there was one: what all came to then, and the conversations that are left otherwise.
    pub against: Option<(Sums, Vec<Changed>)>,
}

impl Desk {
    /// With no build yet.
    pub fn new(loader: Loader, config: PolicyConfig, sessions: Vec<Session>, questions: Option<Questions>) -> Desk {
        Desk { loader, config, sessions, questions, last: None }
    }

    /// Takes a component for the build before. One that cannot be loaded is none.
    pub fn begin_with(&mut self, component: &Path) {
        self.last = self.arm(component).ok().map(|arm| self.replay(&arm));
    }

    /// Checks a build in the quick form, and holds it against the last good one. Where it passes it is that itself from now on.
    ///
    /// # Errors
    /// It cannot be loaded. Then the build before stays.
    pub fn try_out(&mut self, component: &Path) -> Result<Tried, Failure> {
        let arm = self.arm(component)?;
        let Some(layer) = arm.stack.top() else { return Err(Failure::new("there is no policy to try out")) };
        let limits = self.config.limits.limits();
        let check = check::quick(&Stage::new(layer.policy.clone()), &histories::built_in(), &limits, &mut || ());
        let now = self.replay(&arm);
        let sums = |standings: &[Standing]| difference::sums(&self.sessions, standings);
        let against = self
            .last
            .as_ref()
            .map(|before| (sums(before), difference::between(&self.sessions, self.questions.as_ref(), before, &now)));
        let tried = Tried { policy: layer.policy.identity().clone(), check, sums: sums(&now), against };
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

    fn replay(&self, arm: &Arm) -> Vec<Standing> {
        sessions::replay(arm, &self.sessions, self.questions.as_ref())
    }
}
