//! Other policies take over while the gateway runs.
//!
//! They are loaded and checked aside, on a thread that may block, with gateway.json as it is then; turns go on
//! meanwhile, and so do other swaps: loading may take as long as its limits allow, and nothing waits for it. Only when
//! everything about them is good do they replace those that serve, for the turns that begin from then on. Whatever is
//! wrong with them leaves the others serving.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pmk_core::text::hex;
use pmk_policy::{Identity, Stack, compile::Abandon};
use pmk_system::{error::Failure, files, threads::offload};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use super::{
    Loader, Policies,
    for_all::{ForAll, OnHost},
};
use crate::{
    admins::Admins,
    config::{Config, PolicyConfig},
    embedded,
    ledger::{Event, Ledger},
    messages::Messages,
    store::Store,
};

/// What made other policies take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// An operator asked for them.
    Command,
    /// The files of those that serve have changed.
    File,
    /// An operator asked for those that a start would load.
    Signal,
    /// An experiment ended with one of its arms.
    Promotion,
    /// An operator asked for them on another host of the database.
    Host,
}

impl By {
    const fn name(self) -> &'static str {
        match self {
            By::Command => "command",
            By::File => "file",
            By::Signal => "signal",
            By::Promotion => "promotion",
            By::Host => "host",
        }
    }
}

/// A swap that was made, and what it is worth at the next start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swapped {
    /// The layers that decide from the next turn on, the top one first.
    pub serving: Vec<Identity>,
    /// Those that decided until now.
    pub before: Vec<Identity>,
    /// Where the new ones come from, the top one last; the embedded policy has no file.
    pub files: Vec<PathBuf>,
    /// Whether that is what these files still hold.
    pub files_unchanged: bool,
    /// What a start would load, if the gateway were started as it was.
    pub next_start: NextStart,
    /// What the other hosts of the database make of it.
    #[serde(default)]
    pub hosts: Vec<OnHost>,
}

/// What a start would load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStart {
    pub by: Source,
    pub files: Vec<PathBuf>,
}

/// What says which policies a start loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `--policy`, which goes before all else.
    CommandLine,
    /// `policy.files` of gateway.json.
    Config,
    /// Nothing: the embedded policy decides alone.
    Default,
}

/// What a swap needs of the world.
pub struct Ports {
    pub policies: Arc<Policies>,
    pub ledger: Ledger,
    pub admins: Admins,
    pub messages: Arc<Messages>,
    pub store: Store,
    /// The arms of experiments that are promoted.
    pub promotions: watch::Receiver<Option<Arc<Promotion>>>,
}

/// An arm that serves everybody from now on.
#[derive(Debug)]
pub struct Promotion {
    /// Where its policies come from.
    pub files: Vec<PathBuf>,
    pub stack: Stack,
    /// What served until then.
    pub before: Stack,
}

/// Has other policies take over.
pub struct Swapper {
    pub(super) ports: Ports,
    loader: Loader,
    pub(super) home: PathBuf,
    /// Held from what is told to other hosts to the swap here.
    pub(super) swapping: tokio::sync::Mutex<()>,
    /// Locked for the moment of a swap.
    chosen: Mutex<Chosen>,
    /// The files of those that serve, for who watches them.
    files: watch::Sender<Vec<PathBuf>>,
}

pub(super) struct Chosen {
    files: Vec<PathBuf>,
    /// What served before, as it was then: its files may have changed since.
    previous: Option<Previous>,
    /// Whether those serve that served before, whatever their files hold by now.
    went_back: bool,
    /// Whether admins know that the files cannot be used as they are.
    told: bool,
    /// How many swaps there were but by changed files: what was loaded for those that served before is of no use after one.
    swaps: u64,
    /// The number of the last request for a swap, and of the one that serves. Loading takes its time; what was asked
    /// for later goes before what is ready later.
    asked: u64,
    granted: u64,
    /// What is known of what was chosen for all hosts.
    pub(super) for_all: ForAll,
}

/// A swap that is asked for.
struct Wanted {
    request: u64,
    by: By,
    files: Vec<PathBuf>,
    stack: Stack,
    /// Whether it is for all hosts of the database.
    is_for_all: bool,
}

/// What a swap has replaced by what.
pub(super) struct Replaced {
    before: Vec<Identity>,
    serving: Vec<Identity>,
    /// Of the choice for all hosts, where it is one.
    version: Option<i64>,
}

/// Stops what is being loaded when nobody waits for it any more.
struct Waiting(Abandon);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[derive(Clone)]
struct Previous {
    files: Vec<PathBuf>,
    stack: Stack,
}

impl Swapper {
    /// For a gateway that was started with what this loader gave it.
    pub fn new(home: &Path, ports: Ports, loader: Loader, config: &PolicyConfig) -> Swapper {
        let files = absolute(loader.files(config));
        Swapper {
            ports,
            loader,
            home: home.to_owned(),
            swapping: tokio::sync::Mutex::default(),
            chosen: Mutex::new(Chosen {
                files: files.clone(),
                previous: None,
                went_back: false,
                told: false,
                swaps: 0,
                asked: 0,
                granted: 0,
                for_all: ForAll::default(),
            }),
            files: watch::Sender::new(files),
        }
    }

    /// The files of the policies that serve.
    pub fn files(&self) -> watch::Receiver<Vec<PathBuf>> {
        self.files.subscribe()
    }

    /// Has the components of these files take over, the last on top.
    ///
    /// # Errors
    /// They cannot be loaded, or may not be; those that served still do.
    pub async fn choose(self: &Arc<Self>, files: Vec<PathBuf>) -> Result<Swapped, Failure> {
        let (request, wanted) = (self.chosen().ask(), files.clone());
        let loaded = self.aside(move |loader, config| loader.load(config, &wanted)).await;
        let replaced = match loaded {
            Ok(stack) => {
                self.replace(Wanted { request, by: By::Command, files: files.clone(), stack, is_for_all: true }).await
            }
            Err(failure) => Err(failure),
        };
        match replaced {
            Ok(replaced) => self.swapped(replaced, files).await,
            Err(failure) => {
                self.refused(By::Command, &files, &failure);
                Err(failure)
            }
        }
    }

    /// Has those take over again that served before, as they were then.
    ///
    /// # Errors
    /// There are none, they may not be loaded any more, or others took over meanwhile.
    pub async fn go_back(self: &Arc<Self>) -> Result<Swapped, Failure> {
        let (previous, request) = {
            let mut chosen = self.chosen();
            (chosen.previous.clone(), chosen.ask())
        };
        let Some(Previous { files, stack }) = previous else {
            return Err(Failure::new("no other policies have served since the gateway was started")
                .hint("name the components: `pmk-host policy use FILE…`"));
        };
        let wanted = stack.clone();
        if let Err(failure) = self.aside(move |loader, config| loader.admit(config, &wanted)).await {
            self.refused(By::Command, &files, &failure);
            return Err(failure);
        }
        let wanted = Wanted { request, by: By::Command, files: files.clone(), stack, is_for_all: true };
        let replaced = self.replace(wanted).await?;
        self.chosen().went_back = true;
        self.swapped(replaced, files).await
    }

    /// Whether a file holds another component than the one that was loaded from it: loading takes seconds where it
    /// has to compile.
    pub(super) async fn is_stale(&self) -> bool {
        let (files, went_back) = {
            let chosen = self.chosen();
            (chosen.files.clone(), chosen.went_back)
        };
        let serving = self.serving();
        // What another host has chosen is in no file here.
        !went_back && !files.is_empty() && !offload(move || hold(&files, &serving)).await
    }

    /// Loads files anew: those that serve because one of them has changed, or those of a start because of a signal.
    /// Whoever changed them does not listen, so the admins are told when they cannot be used. May be dropped at any
    /// time; then nothing is swapped.
    pub async fn reload(self: &Arc<Self>, by: By) {
        let (files, swaps, request) = {
            let mut chosen = self.chosen();
            (chosen.files.clone(), chosen.swaps, chosen.ask())
        };
        let wanted = files.clone();
        let loaded = self.aside(move |loader, config| match by {
            By::Signal => Ok((absolute(loader.files(config)), loader.start(config)?)),
            By::File | By::Command | By::Promotion | By::Host => {
                loader.load(config, &wanted).map(|stack| (wanted, stack))
            }
        });
        let (files, stack) = match loaded.await {
            Ok(loaded) => loaded,
            Err(failure) => {
                self.refused(by, &files, &failure);
                if !std::mem::replace(&mut self.chosen().told, true) {
                    self.ports.admins.tell(self.ports.messages.policy_refused(failure.message()));
                }
                return;
            }
        };
        if by == By::File && !self.is_wanted_still(request, swaps, &stack) {
            return;
        }
        // What each host was started with it follows by itself.
        let is_for_all = by != By::File || self.chosen().for_all.is_ours;
        if let Err(failure) = self.replace(Wanted { request, by, files: files.clone(), stack, is_for_all }).await {
            self.refused(by, &files, &failure);
        }
    }

    /// Whether what a changed file holds is to take over, with so many swaps before it was loaded.
    fn is_wanted_still(&self, request: u64, swaps: u64, stack: &Stack) -> bool {
        let mut chosen = self.chosen();
        if chosen.swaps != swaps || chosen.is_overtaken(request) {
            tracing::debug!("the policy files changed, and meanwhile others took over");
            return false;
        }
        let is_other = identities(stack) != self.serving();
        if !is_other {
            tracing::debug!("the policy files were written anew with the same components");
            chosen.told = false;
        }
        is_other
    }

    /// Keeps up with arms that are promoted: they serve already.
    pub async fn follow_promotions(&self) {
        let mut promotions = self.ports.promotions.clone();
        while promotions.changed().await.is_ok() {
            let Some(promotion) = promotions.borrow_and_update().clone() else { continue };
            let (files, stack) = (absolute(&promotion.files), &promotion.stack);
            let _alone = self.swapping.lock().await;
            if identities(stack) != self.serving() {
                tracing::debug!("an arm was promoted, and meanwhile others took over");
                continue;
            }
            self.taken_over(&mut self.chosen(), By::Promotion, files, stack, promotion.before.clone());
            match self.publish(stack).await {
                Ok(version) => self.chosen().for_all.made(version),
                Err(failure) => tracing::warn!("the arm that was promoted decides on this host alone: {failure}"),
            }
        }
    }

    /// Does something with the loader and gateway.json as it is now, where blocking is no harm.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Loader, &PolicyConfig) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let waiting = Waiting(Abandon::default());
        let (loader, home) = (self.loader.until(&waiting.0), self.home.clone());
        offload(move || {
            let (config, _) = Config::load(&home)?;
            work(&loader, &config.policy)
        })
        .await
    }

    /// A swap that was asked for, on all hosts of the database where it is for all. It is done whole, whoever waits for it: what
    /// others are told has to be so here.
    async fn replace(self: &Arc<Self>, wanted: Wanted) -> Result<Replaced, Failure> {
        let this = Arc::clone(self);
        let replacing = tokio::spawn(async move {
            let Wanted { request, by, files, stack, is_for_all } = wanted;
            let _alone = this.swapping.lock().await;
            this.chosen().grant(request)?;
            let version = if is_for_all { this.publish(&stack).await? } else { None };
            let mut chosen = this.chosen();
            let replaced = this.take_over(&mut chosen, by, files, &stack);
            if is_for_all {
                chosen.for_all.made(version);
            }
            Ok(Replaced { version, ..replaced })
        });
        // It has panicked, which was printed, or the gateway ends.
        replacing.await.unwrap_or_else(|ended| Err(Failure::new(format!("the policies were not swapped: {ended}"))))
    }

    /// The moment of the swap.
    pub(super) fn take_over(&self, chosen: &mut Chosen, by: By, files: Vec<PathBuf>, stack: &Stack) -> Replaced {
        let replaced = self.ports.policies.swap(stack);
        self.taken_over(chosen, by, files, stack, replaced)
    }

    /// What follows from a swap.
    fn taken_over(&self, chosen: &mut Chosen, by: By, files: Vec<PathBuf>, stack: &Stack, replaced: Stack) -> Replaced {
        let (before, serving) = (identities(&replaced), identities(stack));
        let files_before = self.follow_files(chosen, files);
        if before != serving {
            chosen.previous = Some(Previous { files: files_before, stack: replaced });
        }
        (chosen.went_back, chosen.told) = (false, false);
        chosen.swaps += u64::from(by != By::File);
        tracing::info!(by = by.name(), "policies swapped: {} instead of {}", names(&serving), names(&before));
        let (from, to) = (before.clone(), serving.clone());
        self.ports.ledger.note(Event::PolicySwapped { by: by.name(), before: from, serving: to });
        Replaced { before, serving, version: None }
    }

    /// From now on changes of these are followed; which were until now.
    fn follow_files(&self, chosen: &mut Chosen, files: Vec<PathBuf>) -> Vec<PathBuf> {
        let before = std::mem::replace(&mut chosen.files, files.clone());
        self.files.send_if_modified(|followed| {
            let differs = *followed != files;
            *followed = files;
            differs
        });
        before
    }

    /// What decides is what was chosen elsewhere, and not what the files here come to hold.
    pub(super) fn follow_no_files(&self, chosen: &mut Chosen) {
        self.follow_files(chosen, vec![]);
    }

    pub(super) fn refused(&self, by: By, files: &[PathBuf], failure: &Failure) {
        tracing::warn!(by = by.name(), "policies not swapped, those before still decide: {failure}");
        let files = files.iter().map(|file| file.display().to_string()).collect();
        let reason = failure.message().to_owned();
        self.ports.ledger.note(Event::PolicyRefused { by: by.name(), files, reason });
    }

    async fn swapped(&self, replaced: Replaced, files: Vec<PathBuf>) -> Result<Swapped, Failure> {
        let Replaced { before, serving, version } = replaced;
        let hosts = self.on_hosts(version).await;
        self.aside(move |loader, config| {
            let by = match (loader.named().files.as_slice(), config.files.as_slice()) {
                ([_, ..], _) => Source::CommandLine,
                ([], [_, ..]) => Source::Config,
                ([], []) => Source::Default,
            };
            let next_start = NextStart { by, files: absolute(loader.files(config)) };
            Ok(Swapped { files_unchanged: hold(&files, &serving), serving, before, files, next_start, hosts })
        })
        .await
    }

    pub(super) fn chosen(&self) -> MutexGuard<'_, Chosen> {
        // Changed field by field after the swap itself, so a panic in between leaves what still makes sense.
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn serving(&self) -> Vec<Identity> {
        identities(self.ports.policies.serving().stack())
    }
}

impl Chosen {
    /// Numbers a request for a swap.
    fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// Others have taken over that nobody has asked for here: whatever was, was asked for before.
    pub(super) fn overtake(&mut self) {
        self.asked += 1;
        self.granted = self.asked;
    }

    /// Whether what was asked for later than by this request decides already.
    fn is_overtaken(&self, request: u64) -> bool {
        request < self.granted
    }

    /// Whether what was asked for by this request may take over.
    fn grant(&mut self, request: u64) -> Result<(), Failure> {
        if self.is_overtaken(request) {
            return Err(Failure::new("policies that were asked for later decide already")
                .hint("ask again if these are the ones that you want"));
        }
        self.granted = request;
        Ok(())
    }
}

pub fn identities(stack: &Stack) -> Vec<Identity> {
    stack.layers().iter().map(|layer| layer.policy.identity().clone()).collect()
}

/// Policies in a line, the deciding one first.
pub fn names(layers: &[Identity]) -> String {
    layers.iter().map(Identity::to_string).collect::<Vec<_>>().join(" over ")
}

fn absolute(files: &[PathBuf]) -> Vec<PathBuf> {
    // Only an empty path has no absolute one, and that is no file.
    files.iter().map(|file| embedded::absolute(file).unwrap_or_else(|_| file.clone())).collect()
}

/// Whether files hold the components of these layers.
fn hold(files: &[PathBuf], layers: &[Identity]) -> bool {
    let digest = |file: &PathBuf| match embedded::component(file) {
        Some(bytes) => Some(hex(&Sha256::digest(bytes))),
        None => files::read(file, files::MAX_TEXT_BYTES).ok().map(|bytes| hex(&Sha256::digest(bytes))),
    };
    // The embedded policy is below all.
    embedded::layers(files).count() + 1 == layers.len()
        && embedded::layers(files).rev().zip(layers).all(|(file, layer)| digest(file).as_ref() == Some(&layer.sha256))
}
