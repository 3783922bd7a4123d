//! Which policies decide. A turn takes them once, when it begins, and keeps them to its end, whatever is
//! swapped in meanwhile.
//!
//! [`Loader`] makes layers of files, [`Swapper`] has them take over in a running gateway.

pub mod experiment;
mod hosts;
mod load;
mod loading;
mod shared_choice;
mod swap;
mod watch;

pub(crate) use hosts::{labelled, to_send};
pub use load::{Loader, Named, Origin, open_for_authoring};
pub use loading::{load, load_unseen};
pub use shared_choice::{OnHost, Outcome};
pub use swap::{NextStart, Ports, Promotion, Source, Swapped, Swapper, identities, names};
pub use watch::follow;

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use pmk_policy::{Capability, Stack};
use pmk_system::threads::offload;

/// The policies that serve now.
#[derive(Debug)]
pub struct Policies {
    serving: RwLock<TurnPolicies>,
}

/// A decision that takes longer than this is not made where others wait for the thread.
const LONG: Duration = Duration::from_millis(1);

/// The policies of one turn.
#[derive(Clone, Debug)]
pub struct TurnPolicies {
    stack: Stack,
    /// Whether one of them may look into the archive: that waits for the disk, and is done elsewhere.
    reads_archive: bool,
    /// Whether a decision is likely to take long: the last one did, or there was none. All who decide by these know.
    takes_long: Arc<AtomicBool>,
}

impl Policies {
    /// Begins with these.
    pub fn new(stack: &Stack) -> Policies {
        Policies { serving: RwLock::new(TurnPolicies::new(stack)) }
    }

    /// What a turn that begins now goes by.
    pub fn serving(&self) -> TurnPolicies {
        // Replaced as a whole, so a panic elsewhere leaves nothing half changed.
        self.serving.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets these serve the turns that begin from now on, and gives back those that served until now. Turns that
    /// have begun keep what they took.
    pub fn swap(&self, next: TurnPolicies) -> TurnPolicies {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *serving, next)
    }
}

impl TurnPolicies {
    /// Those that keep failing are suspended for a while, as long as these serve.
    pub fn new(stack: &Stack) -> TurnPolicies {
        let mut capabilities = stack.layers().iter().flat_map(|layer| layer.policy.capabilities());
        TurnPolicies {
            stack: stack.with_breakers(),
            reads_archive: capabilities.any(Capability::reads_archive),
            takes_long: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Has the policies decide something. A decision takes microseconds, less than it takes to have another thread make
    /// it; but a bad component may use all the time it is allowed, and then others have waited for it once.
    pub async fn consult<T: Send + 'static>(&self, decide: impl FnOnce(&Stack) -> T + Send + 'static) -> T {
        let TurnPolicies { stack, reads_archive, takes_long } = self.clone();
        let likely_long = reads_archive || takes_long.load(Ordering::Relaxed);
        let decide = move || {
            let begun = Instant::now();
            let decided = decide(&stack);
            takes_long.store(begun.elapsed() > LONG, Ordering::Relaxed);
            decided
        };
        if likely_long { offload(decide).await } else { decide() }
    }

    /// Whether these are those, and not others that are equal.
    fn is(&self, other: &TurnPolicies) -> bool {
        Arc::ptr_eq(&self.takes_long, &other.takes_long)
    }

    /// The policies themselves.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Name and digest of the policy on top.
    pub fn top(&self) -> (&str, &str) {
        let identity = self.stack.top().map(|layer| layer.policy.identity());
        identity.map_or(("", ""), |identity| (&identity.name, &identity.sha256))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pmk_policy::{Compiler, Runtime, RuntimeConfig};

    use super::*;
    use crate::config::PolicyConfig;

    async fn top(deciding: &TurnPolicies) -> String {
        deciding.consult(|stack| stack.layers()[0].policy.name().to_owned()).await
    }

    /// On a machine that is busy with other things even a quick decision may seem to take long, so it may be asked again.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_decides_quickly_is_asked_here_and_who_once_did_not_is_asked_elsewhere() {
        let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
        let stack = Loader::of(runtime, Named::default()).load(&PolicyConfig::default(), &[]).expect("policies");
        let (deciding, here) = (TurnPolicies::new(&stack), std::thread::current().id());
        assert_ne!(deciding.consult(|_| std::thread::current().id()).await, here, "nobody knows yet");
        // How soon it is, is a matter of how busy the machine is.
        let asked_here = async { while deciding.consult(|_| std::thread::current().id()).await != here {} };
        tokio::time::timeout(Duration::from_secs(60), asked_here).await.expect("an answer that takes no thread");
        deciding.consult(|_| std::thread::sleep(2 * LONG)).await;
        assert_ne!(deciding.consult(|_| std::thread::current().id()).await, here);
    }

    #[tokio::test]
    async fn a_turn_that_has_begun_keeps_what_it_took() {
        let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
        let loader = Loader::of(runtime, Named::default());
        let strict = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/strict.wasm");
        let load = |files: &[_]| loader.load(&PolicyConfig::default(), files).expect("policies");
        let policies = Policies::new(&load(&[]));
        let begun = policies.serving();
        let replaced = policies.swap(TurnPolicies::new(&load(&[strict])));
        assert_eq!(top(&begun).await, "standard");
        assert_eq!(top(&policies.serving()).await, "strict");
        policies.swap(replaced);
        assert_eq!(top(&policies.serving()).await, "standard");
    }
}
