//! Swaps other policies in while the gateway runs.
//!
//! They are loaded and checked in the background, on a blocking thread, with gateway.json as it is then. Meanwhile
//! turns go on, and so do other swaps: loading may take as long as its limits allow, and nothing waits for it. Only
//! when everything about the new policies is valid do they replace the serving ones, for the turns that begin from then
//! on. If anything is wrong with them, the serving ones stay.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pmk_core::text::hex;
use pmk_policy::{ConfiguredSettings, Identity, Stack, compile::CancelFlag};
use pmk_system::{error::Failure, files, threads::offload};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::{
    Loader, Origin, Overridden, Policies, TurnPolicies,
    hosts::to_send,
    shared_choice::{OnHost, SharedChoice},
};
use crate::{
    config::{Config, PolicyConfig},
    embedded,
    ledger::{Event, Ledger},
    messages::Messages,
    operator::admins::Admins,
    store::Store,
};

#[cfg(test)]
mod tests;

/// What triggered a swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwapTrigger {
    /// An operator chose them.
    Command,
    /// The files of the serving policies have changed.
    File,
    /// An operator sent the signal to load what a start would load.
    Signal,
    /// An arm of an experiment was promoted.
    Promotion,
    /// An operator chose them on another host of the database.
    Host,
}

impl SwapTrigger {
    const fn name(self) -> &'static str {
        match self {
            SwapTrigger::Command => "command",
            SwapTrigger::File => "file",
            SwapTrigger::Signal => "signal",
            SwapTrigger::Promotion => "promotion",
            SwapTrigger::Host => "host",
        }
    }
}

/// A completed swap, and what the next start would load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swapped {
    /// The layers that decide from the next turn on, the top one first.
    pub serving: Vec<Identity>,
    /// The layers that decided until now.
    pub before: Vec<Identity>,
    /// The files of the new ones, the top one last; the embedded policy has no file.
    pub files: Vec<PathBuf>,
    /// Whether these files still hold what was loaded.
    pub files_unchanged: bool,
    /// What a start would load if the gateway were started with the same arguments.
    pub next_start: NextStart,
    /// The policy that a `--set` among these arguments is for, if it is none of the new layers: a start that loads
    /// these is refused.
    #[serde(default)]
    pub missed_by_set: Option<String>,
    /// The outcome on the other hosts of the database.
    #[serde(default)]
    pub hosts: Vec<OnHost>,
}

/// What a start would load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStart {
    pub by: Source,
    pub files: Vec<PathBuf>,
    /// What would become of the settings, if a promoted arm serves again: all others have those of a start anyway.
    #[serde(default)]
    pub settings: Option<SettingsLook>,
}

impl NextStart {
    fn of(loader: &Loader, config: &PolicyConfig) -> NextStart {
        NextStart { by: source(loader, config), files: absolute(loader.files(config)), settings: None }
    }
}

/// The settings of a promoted arm that serves again, and whether a start would give its policies the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsLook {
    pub of_arm: ConfiguredSettings,
    /// With gateway.json as it is.
    pub stay: bool,
    /// Once gateway.json has these; otherwise the options or the environment change them.
    pub stay_once_written: bool,
}

impl SettingsLook {
    fn of(loader: &Loader, config: &PolicyConfig, of_arm: ConfiguredSettings, arm: &Stack) -> SettingsLook {
        let written = PolicyConfig { settings: of_arm.clone(), ..config.clone() };
        SettingsLook {
            of_arm,
            stay: loader.keeps_settings(config, arm),
            stay_once_written: loader.keeps_settings(&written, arm),
        }
    }
}

/// What would become of a start with other files and settings in gateway.json.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartLook {
    pub by: Source,
    /// Why it would be refused, if it is not refused with gateway.json as it is.
    pub refused: Option<StartRefusal>,
    /// The settings that the options or the environment would change.
    #[serde(default)]
    pub overridden: Vec<Overridden>,
}

/// Why a start would be refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRefusal {
    pub why: String,
    /// What to do about it, if the options are not at fault.
    pub hint: Option<String>,
    /// Whether it would not be refused without the options.
    pub by_options: bool,
}

/// What determines the policies that a start loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `--policy`, which takes precedence.
    CommandLine,
    /// `policy.files` of gateway.json.
    Config,
    /// Neither: the embedded policy decides alone.
    Default,
}

/// What a swap depends on.
pub struct Ports {
    pub policies: Arc<Policies>,
    pub ledger: Ledger,
    pub admins: Admins,
    pub messages: Arc<Messages>,
    pub store: Store,
    /// The arms of experiments that are promoted.
    pub promotions: watch::Receiver<Option<Arc<Promotion>>>,
}

/// A promoted arm, which serves everybody from now on.
#[derive(Debug)]
pub struct Promotion {
    /// The files of its policies.
    pub files: Vec<PathBuf>,
    pub settings: ConfiguredSettings,
    pub serving: TurnPolicies,
    /// The policies that served until then.
    pub before: TurnPolicies,
}

/// Swaps the policies of a running gateway.
pub struct Swapper {
    pub(super) ports: Ports,
    loader: Loader,
    pub(super) home: PathBuf,
    /// Held from publishing a choice to the other hosts until the swap on this host is done.
    pub(super) swapping: tokio::sync::Mutex<()>,
    /// Locked only for the moment of a swap.
    chosen: Mutex<Chosen>,
    /// The serving policies and their origins, for the watcher of their files. Every swap sends a new value.
    followed: watch::Sender<Followed>,
}

/// Serving policies and their origins.
#[derive(Clone)]
pub(super) struct Followed {
    pub(super) from: Origins,
    serving: TurnPolicies,
}

/// Where the serving policies come from; no files if another host has sent them.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Origins {
    /// The top one last.
    pub(super) files: Vec<PathBuf>,
    /// Whether the components are those that served before, whatever the files hold now.
    pub(super) is_back: bool,
    /// The settings of a promoted arm, which it has on all hosts, whatever else is set there.
    pub(super) settings: Option<ConfiguredSettings>,
}

impl Origins {
    pub(super) fn of(files: Vec<PathBuf>) -> Origins {
        Origins { files, ..Origins::default() }
    }
}

impl Followed {
    fn is(&self, other: &Followed) -> bool {
        self.from == other.from && self.serving.is(&other.serving)
    }
}

pub(super) struct Chosen {
    /// The policies that served before. Their components are kept: the files may have changed since.
    previous: Option<Previous>,
    /// Whether the admins have been told that the changed files cannot be used as they are.
    told: bool,
    /// The number of the last swap request, and of the request that was granted last. Loading takes time; a later
    /// request takes precedence over an earlier one that finishes loading after it.
    asked: u64,
    granted: u64,
    /// What is known of the choice for all hosts.
    pub(super) shared_choice: SharedChoice,
}

/// A swap that is ready to be made.
struct Wanted {
    claim: Claim,
    by: SwapTrigger,
    from: Origins,
    stack: Stack,
}

/// What decides whether a loaded swap may still be made.
enum Claim {
    /// Requested under this number, for all hosts of the database.
    Asked(u64),
    /// The files of these policies have changed. As nobody requested it, it is dropped if anything else was swapped in
    /// meanwhile.
    Changed(Followed),
}

/// What became of changed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reloaded {
    /// They can be used as they are; unless others were chosen meanwhile, they serve.
    Usable,
    /// They cannot be used as they are.
    Unusable,
    /// They could not be published to the other hosts of the database; another attempt may succeed.
    Later,
}

/// Why a swap was not made.
enum NotMade {
    /// A later request, or a swap since the files changed, takes precedence.
    Outdated,
    Failed(Failure),
}

impl From<NotMade> for Failure {
    fn from(not_made: NotMade) -> Failure {
        match not_made {
            NotMade::Outdated => Failure::new("policies that were requested later already decide")
                .hint("run the command again if you want these"),
            NotMade::Failed(failure) => failure,
        }
    }
}

/// What a swap replaced, and with what.
pub(super) struct Replaced {
    before: Vec<Identity>,
    serving: Vec<Identity>,
    /// The version of the choice for all hosts, if it is one.
    version: Option<i64>,
}

/// Cancels loading when its future is dropped.
struct Waiting(CancelFlag);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[derive(Clone)]
struct Previous {
    from: Origins,
    stack: Stack,
}

impl Swapper {
    /// Creates the swapper of a gateway that was started with the policies of this loader.
    pub fn new(home: &Path, ports: Ports, loader: Loader, config: &PolicyConfig) -> Swapper {
        let from = Origins::of(absolute(loader.files(config)));
        let followed = Followed { from, serving: ports.policies.serving() };
        Swapper {
            ports,
            loader,
            home: home.to_owned(),
            swapping: tokio::sync::Mutex::default(),
            chosen: Mutex::new(Chosen {
                previous: None,
                told: false,
                asked: 0,
                granted: 0,
                shared_choice: SharedChoice::default(),
            }),
            followed: watch::Sender::new(followed),
        }
    }

    /// Returns the serving policies and their origins.
    pub(super) fn followed(&self) -> watch::Receiver<Followed> {
        self.followed.subscribe()
    }

    /// Swaps in the components of these files, the top one last.
    ///
    /// # Errors
    /// They cannot or may not be loaded; the serving policies stay.
    pub async fn choose(self: &Arc<Self>, files: Vec<PathBuf>) -> Result<Swapped, Failure> {
        let (request, wanted) = (self.chosen().ask(), files.clone());
        let load = move |loader: &Loader, config: &PolicyConfig| {
            Ok((loader.load(config, &wanted)?, NextStart::of(loader, config)))
        };
        let loaded = self.aside(load).await;
        let (stack, next_start) = loaded.inspect_err(|failure| self.refused(SwapTrigger::Command, &files, failure))?;
        self.swap(request, Origins::of(files), stack, next_start).await
    }

    /// Swaps the components back in that served before, loaded by gateway.json as it is now.
    ///
    /// # Errors
    /// There are none, they may no longer be loaded, or others were swapped in meanwhile.
    pub async fn go_back(self: &Arc<Self>) -> Result<Swapped, Failure> {
        let (previous, request) = {
            let mut chosen = self.chosen();
            (chosen.previous.clone(), chosen.ask())
        };
        let Some(Previous { from, stack }) = previous else {
            return Err(Failure::new("no other policies have been used since the gateway was started")
                .hint("specify the components: `pmk-host policy use FILE…`"));
        };
        let (files, settings) = (from.files.clone(), from.settings.clone());
        let load = move |loader: &Loader, config: &PolicyConfig| {
            let components = to_send(&stack).into_iter().map(|(layer, bytes)| (layer.name, bytes.to_vec()));
            let components = components.collect::<Vec<_>>();
            let stack = loader.take(config, settings.clone(), &components)?;
            let settings = settings.map(|of_arm| SettingsLook::of(loader, config, of_arm, &stack));
            Ok((stack, NextStart { settings, ..NextStart::of(loader, config) }))
        };
        let loaded = self.aside(load).await;
        let (stack, next_start) = loaded.inspect_err(|failure| self.refused(SwapTrigger::Command, &files, failure))?;
        self.swap(request, Origins { is_back: true, ..from }, stack, next_start).await
    }

    /// Makes a swap that an operator has requested. Once it is made, nothing can fail any more.
    async fn swap(
        self: &Arc<Self>,
        request: u64,
        from: Origins,
        stack: Stack,
        next_start: NextStart,
    ) -> Result<Swapped, Failure> {
        let (files, by) = (from.files.clone(), SwapTrigger::Command);
        let replaced = self.replace(Wanted { claim: Claim::Asked(request), by, from, stack }).await;
        let replaced = replaced.map_err(Failure::from).inspect_err(|failure| self.refused(by, &files, failure))?;
        let Replaced { before, serving, version } = replaced;
        let hosts = self.on_hosts(version).await;
        let missed_by_set = self.loader.missed_by_set(&serving);
        let (held, layers) = (files.clone(), serving.clone());
        let files_unchanged = offload(move || hold(&held, &layers)).await;
        Ok(Swapped { serving, before, files, files_unchanged, next_start, missed_by_set, hosts })
    }

    /// Whether a file holds another component than the one that was loaded from it. It may have changed during loading,
    /// which takes seconds when it has to compile.
    pub(super) async fn is_stale(&self, followed: &Followed) -> bool {
        let Followed { from: Origins { files, is_back, .. }, serving } = followed.clone();
        // Policies chosen by another host are in no file here.
        !is_back && !files.is_empty() && !offload(move || hold(&files, &identities(serving.stack()))).await
    }

    /// Looks whether a start with the same options would accept these files and settings in gateway.json.
    ///
    /// # Errors
    /// gateway.json cannot be read.
    pub async fn look_at_start(&self, files: Vec<PathBuf>, settings: ConfiguredSettings) -> Result<StartLook, Failure> {
        self.aside(move |loader, now| {
            let wanted = PolicyConfig { files, settings, ..now.clone() };
            let looked = loader.look(&wanted);
            let overridden = match &looked {
                Ok((stack, _)) => loader.overridden(&wanted, stack)?,
                Err(_) => vec![],
            };
            let refused = looked.err().filter(|_| loader.look(now).is_ok()).map(|failure| {
                let (why, hint) = failure.into_parts();
                StartRefusal { why, hint, by_options: loader.without_options().look(&wanted).is_ok() }
            });
            Ok(StartLook { by: source(loader, &wanted), refused, overridden })
        })
        .await
    }

    /// Loads what a start would load, because of a signal.
    pub async fn reload_start(self: &Arc<Self>) {
        let (request, before) = (self.chosen().ask(), self.followed.borrow().from.files.clone());
        let loading = self.aside(|loader, config| Ok((absolute(loader.files(config)), loader.start(config)?)));
        match loading.await {
            Ok((files, stack)) => {
                let (claim, by) = (Claim::Asked(request), SwapTrigger::Signal);
                let wanted = Wanted { claim, by, from: Origins::of(files.clone()), stack };
                if let Err(failure) = self.replace_unheard(wanted).await {
                    self.unusable(by, &files, &failure);
                }
            }
            Err(failure) => self.unusable(SwapTrigger::Signal, &before, &failure),
        }
    }

    /// Reloads the files of the serving policies, as one of them has changed. The future may be dropped at any time;
    /// then nothing is swapped. `was_delayed` says that this is another attempt after [`Reloaded::Later`], which is
    /// reported only once.
    pub(super) async fn reload_changed(self: &Arc<Self>, followed: &Followed, was_delayed: bool) -> Reloaded {
        let (files, from) = (followed.from.files.clone(), followed.from.clone());
        let load = move |loader: &Loader, config: &PolicyConfig| {
            let Origins { files, settings, .. } = from;
            let stack = match settings.clone() {
                Some(settings) => {
                    let arm = PolicyConfig { files: files.clone(), settings, ..config.clone() };
                    loader.arm(&arm, Origin::Files)?
                }
                None => loader.load(config, &files)?,
            };
            let is_of_start = absolute(loader.files(config)) == files;
            let missed = is_of_start.then(|| loader.missed_by_set(&identities(&stack))).flatten();
            Ok((stack, missed, Origins { settings, ..Origins::of(files) }))
        };
        let (stack, missed, from) = match self.aside(load).await {
            Ok(loaded) => loaded,
            Err(failure) => {
                self.unusable(SwapTrigger::File, &files, &failure);
                return Reloaded::Unusable;
            }
        };
        if identities(&stack) == identities(followed.serving.stack()) {
            tracing::debug!("the policy files were rewritten with the same components");
            self.chosen().told = false;
            return Reloaded::Usable;
        }
        if let Some(policy) = missed {
            tracing::warn!("`--set` names policy `{policy}`, which the changed files do not hold: a start is refused");
        }
        let claim = Claim::Changed(followed.clone());
        match self.replace_unheard(Wanted { claim, by: SwapTrigger::File, from, stack }).await {
            Ok(()) => Reloaded::Usable,
            Err(failure) => {
                if was_delayed {
                    tracing::debug!("the changed policy files will be used later: {}", failure.message());
                } else {
                    self.unusable(SwapTrigger::File, &files, &failure);
                }
                Reloaded::Later
            }
        }
    }

    /// Makes a swap whose result no caller waits for, unless others were chosen in the meantime.
    async fn replace_unheard(self: &Arc<Self>, wanted: Wanted) -> Result<(), Failure> {
        let by = wanted.by;
        match self.replace(wanted).await {
            Ok(_) => Ok(()),
            Err(NotMade::Outdated) => {
                tracing::debug!(by = by.name(), "loaded policies are not used: others were chosen in the meantime");
                Ok(())
            }
            Err(NotMade::Failed(failure)) => Err(failure),
        }
    }

    /// Reports files that cannot be used as they are. Whoever changed them or sent the signal gets no reply, so the
    /// admins are told, of changed files once.
    fn unusable(&self, by: SwapTrigger, files: &[PathBuf], failure: &Failure) {
        self.refused(by, files, failure);
        if by != SwapTrigger::File || !std::mem::replace(&mut self.chosen().told, true) {
            self.ports.admins.tell(self.ports.messages.policy_refused(failure.message()));
        }
    }

    /// Runs work with the loader and the current gateway.json on a blocking thread.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Loader, &PolicyConfig) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let waiting = Waiting(CancelFlag::default());
        let (loader, home) = (self.loader.until(&waiting.0), self.home.clone());
        offload(move || {
            let (config, _) = Config::load_in_gateway(&home)?;
            work(&loader, &config.policy)
        })
        .await
    }

    /// Makes a swap, on all hosts of the database if it is for all. It runs to the end even if the caller stops
    /// waiting: what was published to other hosts must hold here, too.
    async fn replace(self: &Arc<Self>, wanted: Wanted) -> Result<Replaced, NotMade> {
        let this = Arc::clone(self);
        let replacing = tokio::spawn(async move {
            let Wanted { claim, by, from, stack } = wanted;
            let _alone = this.swapping.lock().await;
            let is_for_all = this.grant(&claim)?;
            let version = match is_for_all {
                true => this.publish(&stack, from.settings.clone()).await.map_err(NotMade::Failed)?,
                false => None,
            };
            let mut chosen = this.chosen();
            let replaced = this.take_over(&mut chosen, by, from, &stack);
            if is_for_all {
                chosen.shared_choice.made(version);
            }
            Ok(Replaced { version, ..replaced })
        });
        // The task has panicked, which was printed, or the gateway is ending.
        let ended = |ended| NotMade::Failed(Failure::new(format!("the policies were not swapped: {ended}")));
        replacing.await.unwrap_or_else(|error| Err(ended(error)))
    }

    /// Checks that a swap may still be made, and returns whether it is for all hosts.
    fn grant(&self, claim: &Claim) -> Result<bool, NotMade> {
        let mut chosen = self.chosen();
        let (may_be, is_for_all) = match claim {
            Claim::Asked(request) => (chosen.grant(*request), true),
            Claim::Changed(followed) => {
                let serves = |followed: &Followed| self.ports.policies.serving().is(&followed.serving);
                // The policies that each host was started with, it follows by itself.
                (self.followed.borrow().is(followed) && serves(followed), chosen.shared_choice.is_ours)
            }
        };
        may_be.then_some(is_for_all).ok_or(NotMade::Outdated)
    }

    /// Swaps the stack in.
    pub(super) fn take_over(&self, chosen: &mut Chosen, by: SwapTrigger, from: Origins, stack: &Stack) -> Replaced {
        let serving = TurnPolicies::new(stack);
        let replaced = self.ports.policies.swap(serving.clone());
        self.taken_over(chosen, by, from, serving, replaced)
    }

    /// Records a swap that was made: origins, previous policies, log and ledger.
    pub(super) fn taken_over(
        &self,
        chosen: &mut Chosen,
        by: SwapTrigger,
        from: Origins,
        serving: TurnPolicies,
        replaced: TurnPolicies,
    ) -> Replaced {
        let (before, now) = (identities(replaced.stack()), identities(serving.stack()));
        let followed_before = self.followed.send_replace(Followed { from, serving });
        if before != now {
            chosen.previous = Some(Previous { from: followed_before.from, stack: replaced.stack().clone() });
        }
        chosen.told = false;
        tracing::info!(by = by.name(), "policies swapped: {} instead of {}", names(&now), names(&before));
        self.ports.ledger.note(Event::PolicySwapped { by: by.name(), before: before.clone(), serving: now.clone() });
        Replaced { before, serving: now, version: None }
    }

    /// Stops following files: the serving policies were chosen elsewhere and do not depend on files here.
    pub(super) fn follow_no_files(&self, from: Origins) {
        let serving = self.ports.policies.serving();
        self.followed.send_replace(Followed { from, serving });
    }

    pub(super) fn refused(&self, by: SwapTrigger, files: &[PathBuf], failure: &Failure) {
        let (why, hint) = (failure.message(), failure.advice());
        tracing::warn!(by = by.name(), hint, "policies not swapped, the previous ones still decide: {why}");
        let files = files.iter().map(|file| file.display().to_string()).collect();
        let reason = failure.message().to_owned();
        self.ports.ledger.note(Event::PolicyRefused { by: by.name(), files, reason });
    }

    pub(super) fn chosen(&self) -> MutexGuard<'_, Chosen> {
        // The fields are changed one by one after the swap itself, so a panic in between leaves a valid state.
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Chosen {
    /// Numbers a swap request.
    pub(super) fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// Supersedes all earlier requests, because other policies were swapped in that nobody requested here.
    pub(super) fn overtake(&mut self) {
        self.asked += 1;
        self.granted = self.asked;
    }

    /// Whether the policies of this request may be swapped in; then all earlier requests are superseded.
    pub(super) fn grant(&mut self, request: u64) -> bool {
        let may_be = request >= self.granted;
        self.granted = self.granted.max(request);
        may_be
    }
}

/// What determines the policies of a start with this configuration.
fn source(loader: &Loader, config: &PolicyConfig) -> Source {
    match (loader.named().files.as_slice(), config.files.as_slice()) {
        ([_, ..], _) => Source::CommandLine,
        ([], [_, ..]) => Source::Config,
        ([], []) => Source::Default,
    }
}

pub fn identities(stack: &Stack) -> Vec<Identity> {
    stack.layers().map(|layer| layer.policy.identity().clone()).collect()
}

/// Policies in a line, the deciding one first.
pub fn names(layers: &[Identity]) -> String {
    layers.iter().map(Identity::to_string).collect::<Vec<_>>().join(" over ")
}

pub(super) fn absolute(files: &[PathBuf]) -> Vec<PathBuf> {
    // Only an empty path cannot be made absolute, and it names no file.
    files.iter().map(|file| embedded::absolute(file).unwrap_or_else(|_| file.clone())).collect()
}

/// Whether the files hold the components of these layers.
fn hold(files: &[PathBuf], layers: &[Identity]) -> bool {
    let digest = |file: &PathBuf| match embedded::component(file) {
        Some(bytes) => Some(hex(&Sha256::digest(bytes))),
        None => files::read(file, files::MAX_TEXT_BYTES).ok().map(|bytes| hex(&Sha256::digest(bytes))),
    };
    // The embedded policy is below all others.
    embedded::layers(files).count() + 1 == layers.len()
        && embedded::layers(files).rev().zip(layers).all(|(file, layer)| digest(file).as_ref() == Some(&layer.sha256))
}
