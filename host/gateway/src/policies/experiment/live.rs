//! An experiment in a running gateway: which arm a turn uses, when an arm is stopped, and how a change of gateway.json
//! takes effect. Arms are loaded in the background while turns go on unchanged.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    convert::Infallible,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use pmk_policy::Suspension;
use pmk_system::{clock::Clock, error::Failure};
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, sleep},
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
    ids::{SessionId, TurnId},
    ledger::{Event, InExperiment, Ledger, LoadedArm},
    messages::Messages,
    operator::admins::Admins,
    policies::{Policies, Promotion, TurnPolicies},
    store::{ArmConversation, Design, OpenTurn, Store, StoreError, TurnOutcome, assignment},
};

#[cfg(test)]
mod tests;

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
    /// Whether the guard rail has to check the arms, and no check that sees all turns until now has begun.
    is_overdue: AtomicBool,
    /// Taken while the guard rail checks the arms: one check at a time serves all that wait for it.
    judging: tokio::sync::Mutex<()>,
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
        let Some(on) = self.end_if_over() else { return Ok((self.ports.policies.serving(), None)) };
        let experiment = on.config.name.as_str();
        let drawn = match self.ports.store.arm(experiment, turn.session).await? {
            Some(arm) => arm,
            None => {
                let weights = on.arms.weights(|arm| on.is_stopped(arm));
                match assignment::draw(experiment, &turn.inbound.key, &weights) {
                    Some(draw) => {
                        let (store, now_ms) = (&self.ports.store, self.ports.clock.now_ms());
                        let drawn = draw.arm.clone();
                        let acts = store.draw(experiment, turn.session, draw, &on.config.control, now_ms).await?;
                        if acts != drawn {
                            // Another host's guard rail may have stopped it.
                            let stopped = store.stop_reasons(experiment).await?;
                            on.stopped().extend(stopped.into_keys());
                        }
                        acts
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
        let Some(config) = self.wanted(&trial) else { return };
        if !self.is_to_be_tried(&trial, config).await {
            return;
        }
        self.next(&trial, Again::Never);
        let files = ArmFiles::of(config);
        let shared = self.shared(config);
        let loaded = tokio::select! {
            biased;
            loaded = shared.load(&self.ports.load, &trial.policy) => loaded,
            never = self.keep_ending() => match never {},
        };
        if !self.is_current(&trial) {
            // Whatever it says by then is tried at the next look.
            self.state().tried = None;
            return;
        }
        match loaded {
            Ok(arms) => self.begin(config.clone(), arms, &trial).await,
            Err(NotLoaded::Store(error)) => self.later(&trial, &error),
            Err(NotLoaded::Theirs(failure)) => self.refuse(config.name.clone(), &failure),
            Err(NotLoaded::Ours(failure)) => {
                let mut untold = Some(failure);
                if !self.ports.store.has_other_hosts() {
                    untold.take().into_iter().for_each(|failure| self.refuse(config.name.clone(), &failure));
                }
                self.next(&trial, Again::OnceLoadable { since: Instant::now(), files, untold });
            }
        }
    }

    /// Ends what is over while arms are loaded, which may take as long as its limits allow.
    async fn keep_ending(&self) -> Infallible {
        loop {
            sleep(LOOK_EVERY).await;
            self.end_if_over();
        }
    }

    /// Whether gateway.json still says what arms were loaded for.
    fn is_current(&self, trial: &Trial) -> bool {
        *self.ports.watched.trial() == *trial
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
            Ok((design, self.ports.store.stop_reasons(&config.name).await?))
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
        let (shadows, sat_out) = (Semaphore::new(1), AtomicU64::new(0));
        let base = trial.policy.clone();
        let active = Arc::new(ActiveExperiment {
            config,
            arms,
            design,
            base,
            stopped: Mutex::new(stopped),
            // The gateway may have ended between a turn and the check that should have followed it.
            is_overdue: AtomicBool::new(true),
            judging: tokio::sync::Mutex::default(),
            shadows,
            sat_out,
        });
        {
            let mut state = self.state();
            // One that has ended meanwhile would begin again, and its promoted arm serve once more.
            if !self.is_current(trial) {
                state.tried = None;
                return;
            }
            // The arms have just been loaded. A suspension of before would hide failures of the serving policies.
            self.ports.policies.close_breakers();
            state.on = Some(Arc::clone(&active));
            state.refused = None;
        }
        tracing::info!(experiment = active.config.name, "the experiment is running");
        self.ports.ledger.note(on);
        active.judge_if_overdue(&self.ports).await;
    }

    /// Has the guard rail check the arms after a turn that has ended, if something went wrong in it that policies are
    /// responsible for. That may read all turns of the experiment, so nobody waits for it. If the host dies before the
    /// check, the arms are checked when the experiment next begins here, or at the next first trouble of a conversation.
    pub(crate) fn judge(self: &Arc<Self>, turn: TurnId, session: SessionId, outcome: TurnOutcome) {
        let Some((on, since_ms)) = self.guarding(&outcome) else { return };
        let live = Arc::clone(self);
        self.ports.tasks.spawn(async move {
            let is_due = on.is_overdue.load(Ordering::Relaxed)
                || live.ports.store.is_first_trouble(turn, session, &outcome, since_ms).await.unwrap_or(true);
            if is_due {
                on.is_overdue.store(true, Ordering::Relaxed);
                on.judge_if_overdue(&live.ports).await;
            }
        });
    }

    /// Has the guard rail check the arms at the next failure, after a turn that could not be stored: if the connection was
    /// lost in the commit it counts all the same, and nothing else would have it checked.
    pub(crate) fn overdue(&self, outcome: &TurnOutcome) {
        if let Some((on, _)) = self.guarding(outcome) {
            on.is_overdue.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the experiment whose guard rail has to check the arm of a turn with this outcome, and since when it counts
    /// the turns of that arm.
    fn guarding(&self, outcome: &TurnOutcome) -> Option<(Arc<ActiveExperiment>, i64)> {
        let place = outcome.tags.place.as_ref().filter(|_| outcome.failed || outcome.overflowed)?;
        let on = self.on().filter(|on| on.config.name == *place.experiment && on.is_guarded(&place.arm))?;
        let since_ms = on.design.judged_since(&place.arm);
        Some((on, since_ms))
    }

    /// Returns the experiment that is on if it has shadow arms. Where there are none, it does not look at gateway.json.
    pub(super) fn shadowed(&self) -> Option<Arc<ActiveExperiment>> {
        let has_shadows = self.state().on.as_ref().is_some_and(|on| on.arms.iter().any(|arm| arm.is_shadow));
        if has_shadows { self.on() } else { None }
    }

    /// Returns the experiment that is on.
    pub(super) fn on(&self) -> Option<Arc<ActiveExperiment>> {
        let on = self.state().on.clone()?;
        let trial = self.ports.watched.trial();
        self.wanted(&trial).is_some_and(|wanted| on.is(wanted)).then_some(on)
    }

    /// Returns the experiment that should be on and was refused as it is in gateway.json.
    pub(crate) fn refused(&self) -> Option<Refused> {
        let (name, why) = self.state().refused.clone()?;
        let trial = self.ports.watched.trial();
        self.wanted(&trial).filter(|wanted| wanted.name == name)?;
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

    /// Ends an experiment that gateway.json has stopped, or an arm of which it has promoted. Returns the one that is on.
    fn end_if_over(&self) -> Option<Arc<ActiveExperiment>> {
        if matches!(*self.state(), State { tried: None, on: None, .. }) {
            return None;
        }
        let trial = self.ports.watched.trial();
        let wanted = self.wanted(&trial);
        let mut state = self.state();
        if wanted.is_none() {
            state.tried = None;
            state.refused = None;
        }
        let over = state.on.take_if(|on| wanted.is_none_or(|wanted| !on.is(wanted)));
        let Some(over) = over else { return state.on.clone() };
        drop(state);
        if let Some(promotion) = over.end(&self.ports, &trial.policy) {
            self.promoted.send_replace(Some(Arc::new(promotion)));
        }
        None
    }

    /// Returns the experiment that should be on according to this configuration.
    fn wanted<'t>(&self, trial: &'t Trial) -> Option<&'t ExperimentConfig> {
        trial.experiment.as_ref().filter(|config| config.is_on(self.ports.clock.now_ms()))
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
        sleep(LOOK_EVERY).await;
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

    /// Returns the arms that are compared with the control.
    fn rivals(&self) -> Vec<String> {
        rivals(&self.config).map(str::to_owned).collect()
    }

    /// Whether the guard rail may stop this arm.
    fn is_guarded(&self, arm: &str) -> bool {
        rivals(&self.config).any(|rival| rival == arm) && !self.is_stopped(arm)
    }

    fn is_stopped(&self, arm: &str) -> bool {
        self.stopped().contains(arm)
    }

    fn stopped(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // An insertion is whole or did not happen.
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a check that has begun, and stops the arms that are worse than the control beyond doubt, unless another
    /// check that began since has done so.
    async fn judge_if_overdue(&self, ports: &Ports) {
        let _one = self.judging.lock().await;
        if !self.is_overdue.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut read = BTreeMap::new();
        for arm in self.rivals() {
            if self.is_stopped(&arm) {
                continue;
            }
            if let Err(error) = self.judge_arm(ports, &arm, &mut read).await {
                self.is_overdue.store(true, Ordering::Relaxed);
                tracing::warn!(%error, arm, "the guard rail will check an arm at the next failure");
            }
        }
    }

    /// Stops an arm if it is worse. `read` is what was already read, by the time since when turns count.
    async fn judge_arm(
        &self,
        ports: &Ports,
        arm: &str,
        read: &mut BTreeMap<i64, Vec<ArmConversation>>,
    ) -> Result<(), StoreError> {
        let (experiment, control) = (&self.config.name, &self.config.control);
        // Counting only conversations drawn since a change would leave all that existed before unguarded. What the former
        // policies have left in those may count against the new ones.
        let since_ms = self.design.judged_since(arm);
        let conversations: &[ArmConversation] = match read.entry(since_ms) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(ports.store.guarded_conversations(experiment, since_ms).await?),
        };
        let rivals = figures::rivals(rivals(&self.config), conversations, control);
        let Some(verdict) = guard_rail::judge(conversations, arm, control, rivals) else { return Ok(()) };
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

    /// Ends the experiment. If gateway.json now has the files and settings of one of the arms, that arm is promoted: it
    /// serves everybody at once. Where it has had them since the beginning, other changes of `policy` promote nobody.
    fn end(&self, ports: &Ports, now: &PolicyConfig) -> Option<Promotion> {
        let promoted = self
            .config
            .arms
            .iter()
            .filter(|_| (&now.files, &now.settings) != (&self.base.files, &self.base.settings))
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
