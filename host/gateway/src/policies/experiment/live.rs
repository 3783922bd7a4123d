//! An experiment in a running gateway: which arm a turn uses, when an arm is stopped, and how a change of gateway.json
//! takes effect. Arms are loaded in the background while turns go on unchanged.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use pmk_policy::Suspension;
use pmk_system::{clock::Clock, error::Failure};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};
use tokio_util::task::TaskTracker;

use super::{
    arms::{Arm, Arms, Load},
    figures,
    mended::ArmFiles,
    shared_arms::{NotLoaded, Shared},
};
use crate::{
    config::{ArmConfig, ExperimentConfig, PolicyConfig, Trial, WatchedConfig},
    guard_rail,
    ids::SessionId,
    ledger::{Event, InExperiment, Ledger, LoadedArm},
    messages::Messages,
    operator::admins::Admins,
    policies::{Policies, Promotion, TurnPolicies},
    store::{Design, OpenTurn, Store, StoreError, assignment},
};

/// How long other hosts have to send arms whose files cannot be loaded here before the admins are told: those hosts may
/// have to compile them.
const PATIENCE: Duration = Duration::from_secs(20);

/// The delay before the start is retried when the store could not be used.
const LATER: Duration = Duration::from_secs(5);

/// How often gateway.json is checked for an experiment that begins or ends.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The experiment of a running gateway, if there is one.
pub struct RunningExperiment {
    pub(super) ports: Ports,
    state: Mutex<State>,
    promoted: watch::Sender<Option<Arc<Promotion>>>,
}

/// What an experiment depends on.
pub struct Ports {
    pub clock: Clock,
    pub watched: Arc<WatchedConfig>,
    pub store: Store,
    pub policies: Arc<Policies>,
    pub ledger: Ledger,
    pub admins: Admins,
    pub messages: Arc<Messages>,
    /// Tasks that must end before the gateway does.
    pub tasks: TaskTracker,
    pub load: Load,
}

#[derive(Default)]
struct State {
    tried: Option<Tried>,
    /// The name of the experiment that was last refused, and why.
    refused: Option<(String, String)>,
    on: Option<Arc<ActiveExperiment>>,
}

/// An experiment of gateway.json that was refused as it is there.
pub(crate) struct Refused {
    pub(crate) name: String,
    pub(crate) why: String,
    /// Whether it is on all the same, with the arms that it had before.
    pub(crate) goes_on: bool,
}

/// The configuration that was last loaded or refused.
struct Tried {
    trial: Arc<Trial>,
    again: Again,
}

/// When the same configuration is tried again.
enum Again {
    /// Not before gateway.json changes.
    Never,
    /// At this time, because the store could not be used.
    At(Instant),
    /// Once the files here, which cannot be loaded, have changed, or other hosts have sent their arms.
    OnceLoadable {
        since: Instant,
        files: ArmFiles,
        /// What is wrong with the files, until the admins have been told.
        untold: Option<Failure>,
    },
}

/// An experiment that is on.
pub(super) struct ActiveExperiment {
    pub(super) config: ExperimentConfig,
    pub(super) arms: Arms,
    design: Design,
    /// The `policy` section of gateway.json when the experiment began.
    base: PolicyConfig,
    stopped: Mutex<BTreeSet<String>>,
    /// Limits how many shadow decisions run at once.
    pub(super) shadows: Semaphore,
    /// Shadow decisions skipped because the arms were busy, and not yet written to the ledger.
    pub(super) sat_out: AtomicU64,
}

impl fmt::Debug for RunningExperiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.state().on.as_ref().map(|on| on.config.name.clone());
        f.debug_struct("RunningExperiment").field("experiment", &name).finish_non_exhaustive()
    }
}

impl RunningExperiment {
    /// No experiment is on before [`follow`](RunningExperiment::follow) has run.
    pub fn new(ports: Ports) -> RunningExperiment {
        RunningExperiment { ports, state: Mutex::default(), promoted: watch::Sender::new(None) }
    }

    /// Returns the arm that was promoted last, for the code that keeps track of the serving files.
    pub fn promotions(&self) -> watch::Receiver<Option<Arc<Promotion>>> {
        self.promoted.subscribe()
    }

    /// Returns the policies for a turn, and its experiment and arm if an experiment is on. A conversation is assigned
    /// its arm here, at its first turn.
    ///
    /// # Errors
    /// The store cannot be asked for the conversation's arm.
    pub(crate) async fn take_part(&self, turn: &OpenTurn) -> Result<(TurnPolicies, Option<InExperiment>), StoreError> {
        self.end_if_over();
        let Some(on) = self.on() else { return Ok((self.ports.policies.serving(), None)) };
        let experiment = on.config.name.as_str();
        let drawn = match self.ports.store.arm(experiment, turn.session).await? {
            Some(arm) => arm,
            None => {
                let weights = on.arms.weights(|arm| on.is_stopped(arm));
                match assignment::draw(experiment, &turn.inbound.key, &weights) {
                    Some(draw) => {
                        self.ports
                            .store
                            .draw(experiment, turn.session, draw, &on.config.control, self.ports.clock.now_ms())
                            .await?
                    }
                    None => return Ok((self.ports.policies.serving(), None)),
                }
            }
        };
        Ok(self.of_arm(&on, &drawn))
    }

    /// Returns the same without assigning an arm, for commands that only look.
    ///
    /// # Errors
    /// The store cannot be asked for the conversation's arm.
    pub(crate) async fn decides_for(
        &self,
        session: SessionId,
    ) -> Result<(TurnPolicies, Option<InExperiment>), StoreError> {
        let Some(on) = self.on() else { return Ok((self.ports.policies.serving(), None)) };
        let drawn = self.ports.store.arm(&on.config.name, session).await?;
        Ok(drawn.map_or_else(|| (self.ports.policies.serving(), None), |drawn| self.of_arm(&on, &drawn)))
    }

    fn of_arm(&self, on: &ActiveExperiment, drawn: &str) -> (TurnPolicies, Option<InExperiment>) {
        let Some(arm) = on.acting(drawn) else { return (self.ports.policies.serving(), None) };
        let policies = arm.policies.clone().unwrap_or_else(|| self.ports.policies.serving());
        let experiment = on.config.name.as_str().into();
        (policies, Some(InExperiment { experiment, arm: Arc::clone(&arm.name) }))
    }

    /// Applies a changed gateway.json: begins an experiment once its arms are loaded, or ends one.
    pub(crate) async fn follow(&self) {
        self.end_if_over();
        let trial = self.ports.watched.trial();
        let Some(config) = trial.experiment.clone().filter(|config| config.is_on(self.ports.clock.now_ms())) else {
            return;
        };
        if !self.is_to_be_tried(&trial, &config).await {
            return;
        }
        self.next(&trial, Again::Never);
        let files = ArmFiles::of(&config);
        match self.shared(&config).load(&self.ports.load, &trial.policy).await {
            Ok(arms) => self.begin(config, arms, &trial).await,
            Err(NotLoaded::Store(error)) => self.later(&trial, &error),
            Err(NotLoaded::Theirs(failure)) => self.refuse(config.name, &failure),
            Err(NotLoaded::Ours(failure)) => {
                let mut untold = Some(failure);
                if !self.ports.store.has_other_hosts() {
                    untold.take().into_iter().for_each(|failure| self.refuse(config.name.clone(), &failure));
                }
                self.next(&trial, Again::OnceLoadable { since: Instant::now(), files, untold });
            }
        }
    }

    async fn is_to_be_tried(&self, trial: &Arc<Trial>, config: &ExperimentConfig) -> bool {
        let untold = {
            let mut state = self.state();
            let Some(Tried { again, .. }) = state.tried.as_mut().filter(|tried| tried.trial == *trial) else {
                return true;
            };
            match again {
                Again::Never => return false,
                Again::At(at) => return Instant::now() >= *at,
                Again::OnceLoadable { since, files, untold } => {
                    if files.are_mended(config) {
                        return true;
                    }
                    if since.elapsed() > PATIENCE { untold.take() } else { None }
                }
            }
        };
        let is_sent = self.ports.store.is_shared() && self.shared(config).is_sent().await;
        if let Some(failure) = untold.filter(|_| !is_sent) {
            self.refuse(config.name.clone(), &failure);
        }
        is_sent
    }

    fn shared<'a>(&'a self, config: &'a ExperimentConfig) -> Shared<'a> {
        Shared { store: &self.ports.store, home: self.ports.watched.home(), config }
    }

    fn next(&self, trial: &Arc<Trial>, again: Again) {
        self.state().tried = Some(Tried { trial: Arc::clone(trial), again });
    }

    fn refuse(&self, name: String, failure: &Failure) {
        let (why, hint) = (failure.message(), failure.advice());
        self.state().refused = Some((name.clone(), why.to_owned()));
        let goes_on = self.on().is_some();
        if goes_on {
            tracing::error!(
                experiment = name,
                hint,
                "the change to the experiment is not used, its previous arms go on: {why}"
            );
        } else {
            tracing::error!(experiment = name, hint, "the experiment was not started: {why}");
        }
        self.ports.admins.tell(self.ports.messages.experiment_refused(&name, why, goes_on));
        let reason = failure.message().to_owned();
        self.ports.ledger.note(Event::ExperimentRefused { experiment: name, reason });
    }

    fn later(&self, trial: &Arc<Trial>, error: &StoreError) {
        tracing::warn!(%error, "the experiment will be started later");
        self.next(trial, Again::At(Instant::now() + LATER));
    }

    async fn begin(&self, config: ExperimentConfig, arms: Arms, trial: &Arc<Trial>) {
        let now_ms = self.ports.clock.now_ms();
        let kept = async {
            let design = figures::loaded_design(&config, &arms);
            let design = self.ports.store.keep_design(&config.name, &design, now_ms).await?;
            Ok((design, self.ports.store.stopped_arms(&config.name).await?))
        };
        let (design, stopped): (_, BTreeSet<String>) = match kept.await {
            Ok((Some(design), stopped)) => (design, stopped.into_keys().collect()),
            Ok((None, _)) => return self.refuse(config.name.clone(), &has_run(&config.name)),
            Err(error) => return self.later(trial, &error),
        };
        if let Some(futile) = config.futile() {
            let (why, hint) = (futile.message(), futile.advice());
            tracing::warn!(experiment = config.name, hint, "nothing can be learnt from the experiment: {why}");
        }
        for changed in design.arms.iter().filter(|arm| arm.changes_ms.last() == Some(&now_ms)) {
            let arm = &changed.name;
            if stopped.contains(arm) {
                tracing::warn!(
                    arm,
                    "an arm decides by these policies only from now on, but was stopped: it stays so in this experiment"
                );
            } else {
                tracing::warn!(
                    arm,
                    "an arm decides by these policies only from now on: it is compared in new conversations only"
                );
            }
        }
        let loaded = arms.iter().map(|arm| {
            let policies = arm.policies.clone().unwrap_or_else(|| self.ports.policies.serving());
            let top = policies.top();
            let given = config.arms.iter().find(|given| *given.name == *arm.name);
            LoadedArm {
                arm: arm.name.to_string(),
                policy: top.name.clone(),
                sha256: top.sha256.clone(),
                weight: given.map_or(0, ArmConfig::share),
                shadow: arm.is_shadow,
                settings: given.and_then(|given| Some(given.policy.as_ref()?.settings.clone())).unwrap_or_default(),
            }
        });
        let on = event(&config, loaded.collect());
        tracing::info!(experiment = config.name, "the experiment is running");
        let rivals: Vec<String> = rivals(&config).map(str::to_owned).collect();
        let (shadows, sat_out) = (Semaphore::new(1), AtomicU64::new(0));
        let base = trial.policy.clone();
        // The arms have just been loaded. A suspension of before would hide failures of the serving policies.
        self.ports.policies.close_breakers();
        self.state().on = Some(Arc::new(ActiveExperiment {
            config,
            arms,
            design,
            base,
            stopped: Mutex::new(stopped),
            shadows,
            sat_out,
        }));
        self.state().refused = None;
        self.ports.ledger.note(on);
        // The gateway may have crashed between a turn and the check that should have followed it.
        for arm in rivals {
            self.judge(&arm).await;
        }
    }

    /// Stops an arm if it is worse than the control beyond doubt. To be called after a turn in which something went
    /// wrong.
    pub(crate) async fn judge(&self, arm: &str) {
        let Some(on) = self.on().filter(|on| on.is_rival(arm) && !on.is_stopped(arm)) else { return };
        if let Err(error) = on.judge(&self.ports, arm).await {
            tracing::warn!(%error, arm, "the guard rail will check an arm at the next failure");
        }
    }

    /// Returns the experiment that is on.
    pub(super) fn on(&self) -> Option<Arc<ActiveExperiment>> {
        let on = self.state().on.clone()?;
        self.wanted().is_some_and(|wanted| on.is(&wanted)).then_some(on)
    }

    /// Returns the experiment that should be on and was refused as it is in gateway.json.
    pub(crate) fn refused(&self) -> Option<Refused> {
        let (name, why) = self.state().refused.clone()?;
        self.wanted().filter(|wanted| wanted.name == name)?;
        Some(Refused { name, why, goes_on: self.on().is_some() })
    }

    /// Returns the decisions for which policies of the arms that answer people are skipped at present.
    pub(crate) fn suspensions(&self) -> Vec<(InExperiment, Suspension)> {
        let Some(on) = self.on() else { return vec![] };
        let serving = self.ports.policies.serving();
        let experiment: Arc<str> = on.config.name.as_str().into();
        let mut found = Vec::new();
        for arm in on.arms.iter().filter(|arm| !arm.is_shadow && !on.is_stopped(&arm.name)) {
            let place = InExperiment { experiment: Arc::clone(&experiment), arm: Arc::clone(&arm.name) };
            let suspended = arm.policies.as_ref().unwrap_or(&serving).stack().suspensions();
            found.extend(suspended.into_iter().map(|suspension| (place.clone(), suspension)));
        }
        found
    }

    /// Ends an experiment that gateway.json has stopped, or an arm of which it has promoted.
    fn end_if_over(&self) {
        if matches!(*self.state(), State { tried: None, on: None, .. }) {
            return;
        }
        let wanted = self.wanted();
        let mut state = self.state();
        if wanted.is_none() {
            state.tried = None;
            state.refused = None;
        }
        let Some(on) = state.on.take_if(|on| wanted.is_none_or(|wanted| !on.is(&wanted))) else { return };
        drop(state);
        if let Some(promotion) = on.end(&self.ports, &self.ports.watched.trial().policy) {
            self.promoted.send_replace(Some(Arc::new(promotion)));
        }
    }

    /// Returns the experiment that should be on according to gateway.json.
    fn wanted(&self) -> Option<ExperimentConfig> {
        self.ports.watched.trial().experiment.clone().filter(|config| config.is_on(self.ports.clock.now_ms()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each field is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns why an experiment of that name does not begin: the figures under a name must stay those of one experiment.
pub(crate) fn has_run(name: &str) -> Failure {
    Failure::new(format!("an experiment `{name}` has already run")).hint(
        "give this one another `name`; `experiment status` still shows the results of the old one. To change only \
         weights, edit `experiment` in gateway.json while the experiment runs",
    )
}

/// Checks gateway.json periodically and begins or ends experiments, for as long as it is polled.
pub(crate) async fn keep_following(live: Arc<RunningExperiment>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        live.follow().await;
    }
}

impl ActiveExperiment {
    /// Whether this is that experiment, whatever has changed in it. One that was started again is another one: the first
    /// may have ended with a promotion in the meantime.
    fn is(&self, wanted: &ExperimentConfig) -> bool {
        self.config.name == wanted.name && self.config.start == wanted.start
    }

    /// Returns the arm that acts for a conversation that was assigned `drawn`: the control, if that arm was stopped or
    /// is gone.
    fn acting(&self, drawn: &str) -> Option<&Arm> {
        let arm = self.arms.get(drawn).filter(|arm| !arm.is_shadow && !self.is_stopped(&arm.name));
        arm.or_else(|| self.arms.get(&self.config.control))
    }

    fn is_rival(&self, arm: &str) -> bool {
        rivals(&self.config).any(|rival| rival == arm)
    }

    fn is_stopped(&self, arm: &str) -> bool {
        self.stopped().contains(arm)
    }

    fn stopped(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // An insertion is whole or did not happen.
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn judge(&self, ports: &Ports, arm: &str) -> Result<(), StoreError> {
        let (experiment, control) = (&self.config.name, &self.config.control);
        // Counting only conversations drawn since a change would leave all that existed before unguarded. What the former
        // policies have left in those may count against the new ones.
        let conversations = ports.store.arm_conversations(experiment, self.design.judged_since(arm)).await?;
        let rivals = figures::rivals(rivals(&self.config), &conversations, control);
        let Some(verdict) = guard_rail::judge(&conversations, arm, control, rivals) else { return Ok(()) };
        let reason = verdict.to_string();
        let event = {
            let (experiment, stopped) = (experiment.clone(), arm.to_owned());
            let (arm, control, worse) = (verdict.arm.bad, verdict.control.bad, verdict.worse.name());
            let (evidence, bound) = (verdict.evidence, verdict.bound);
            move |conversations_moved| Event::ExperimentArmStopped {
                experiment: experiment.clone(),
                stopped: stopped.clone(),
                worse,
                arm_conversations: arm,
                control_conversations: control,
                evidence,
                bound,
                conversations_moved,
            }
        };
        let moved = ports.store.stop_arm(experiment, arm, control, &reason, event, ports.clock.now_ms()).await?;
        self.stopped().insert(arm.to_owned());
        // Two turns may come to the same verdict at once.
        let Some(conversations_moved) = moved else { return Ok(()) };
        tracing::error!(experiment, arm, reason, conversations_moved, "the guard rail has stopped an arm");
        ports.admins.tell(ports.messages.arm_stopped(experiment, arm, control, &verdict));
        Ok(())
    }

    /// Ends the experiment. If gateway.json now has the `policy` section of one of the arms, that arm is promoted: it
    /// serves everybody at once.
    fn end(&self, ports: &Ports, now: &PolicyConfig) -> Option<Promotion> {
        let promoted = self
            .config
            .arms
            .iter()
            .filter(|_| *now != self.base)
            .find(|arm| arm.policy.as_ref().is_some_and(|policy| policy.over(now) == *now));
        let arm = promoted.and_then(|arm| self.arms.get(&arm.name));
        let promotion = arm.and_then(|arm| arm.policies.as_ref()).map(|policies| {
            let serving = TurnPolicies::new(policies.stack());
            let before = ports.policies.swap(serving.clone());
            Promotion { files: now.files.clone(), settings: now.settings.clone(), serving, before }
        });
        let promoted = arm.map(|arm| arm.name.to_string());
        tracing::info!(experiment = self.config.name, promoted, "the experiment is over");
        ports.ledger.note(Event::ExperimentOff { experiment: self.config.name.clone(), promoted });
        promotion
    }
}

/// The arms that are compared with the control.
fn rivals(config: &ExperimentConfig) -> impl Iterator<Item = &str> {
    config.arms.iter().filter(|arm| !arm.shadow && arm.name != config.control).map(|arm| arm.name.as_str())
}

fn event(config: &ExperimentConfig, arms: Vec<LoadedArm>) -> Event {
    Event::ExperimentOn { experiment: config.name.clone(), control: config.control.clone(), arms }
}
