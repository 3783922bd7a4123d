//! The policies that decide what the model sees. A turn takes the serving policies once, when it begins, and keeps them
//! until it ends, whatever is swapped in meanwhile.
//!
//! [`Loader`] makes layers from files; [`Swapper`] swaps them in while the gateway runs.

pub mod experiment;
mod hosts;
mod load;
mod loading;
mod overridden;
mod shared_choice;
mod swap;
mod watch;

pub(crate) use hosts::{labelled, to_send};
pub use load::{Loader, Named, Origin, open_for_authoring};
pub use loading::{load, load_unseen};
pub use overridden::Overridden;
pub use shared_choice::{OnHost, Outcome};
pub use swap::{NextStart, Ports, Promotion, Source, StartLook, StartRefusal, Swapped, Swapper, identities, names};
pub use watch::follow;

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use pmk_policy::{Capability, Identity, Stack};
use pmk_system::threads::offload;

/// The serving policies.
#[derive(Debug)]
pub struct Policies {
    serving: RwLock<TurnPolicies>,
}

/// A decision that takes longer than this is made on a blocking thread instead of the async worker thread.
const LONG: Duration = Duration::from_millis(1);

/// After one that takes longer than this, which is no accident of a busy machine, so are all others.
const VERY_LONG: Duration = Duration::from_millis(100);

/// The policies of one turn.
#[derive(Clone, Debug)]
pub struct TurnPolicies {
    stack: Stack,
    /// Whether one of them may read the archive. That blocks on the disk, so such decisions run on a blocking thread.
    reads_archive: bool,
    /// Whether the next decision is likely to take long: the last one did, or none has been made yet. Shared by all
    /// clones.
    takes_long: Arc<AtomicBool>,
    /// Whether one has ever taken very long.
    is_slow: Arc<AtomicBool>,
}

impl Policies {
    /// Starts with this stack.
    pub fn new(stack: &Stack) -> Policies {
        Policies { serving: RwLock::new(TurnPolicies::new(stack)) }
    }

    /// Returns the policies for a turn that begins now.
    pub fn serving(&self) -> TurnPolicies {
        // The value is only replaced as a whole, so a panic elsewhere cannot leave it half changed.
        self.serving.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes `next` serve the turns that begin from now on, and returns the policies that served until now. Turns that
    /// have begun keep their policies.
    pub fn swap(&self, next: TurnPolicies) -> TurnPolicies {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *serving, next)
    }

    /// Ends all suspensions of the serving policies, which stay the same instance.
    pub fn close_breakers(&self) {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        serving.stack = serving.stack.with_breakers();
    }
}

impl TurnPolicies {
    /// Wraps a stack with breakers: a policy that keeps failing is suspended for a while, as long as this stack serves.
    pub fn new(stack: &Stack) -> TurnPolicies {
        let mut capabilities = stack.layers().flat_map(|layer| layer.policy.capabilities());
        TurnPolicies {
            stack: stack.with_breakers(),
            reads_archive: capabilities.any(Capability::reads_archive),
            takes_long: Arc::new(AtomicBool::new(true)),
            is_slow: Arc::default(),
        }
    }

    /// Runs a decision. A decision usually takes microseconds, less than handing it to another thread, so it runs on
    /// the current thread unless it is likely to take long. A bad component may use all the time it is allowed; it then
    /// blocks the worker thread once: once one has taken very long, all later ones are offloaded, even after quick ones.
    pub async fn consult<T: Send + 'static>(&self, decide: impl FnOnce(&Stack) -> T + Send + 'static) -> T {
        let TurnPolicies { stack, reads_archive, takes_long, is_slow } = self.clone();
        let likely_long = reads_archive || takes_long.load(Ordering::Relaxed) || is_slow.load(Ordering::Relaxed);
        let decide = move || {
            let begun = Instant::now();
            let decided = decide(&stack);
            let took = begun.elapsed();
            takes_long.store(took > LONG, Ordering::Relaxed);
            is_slow.fetch_or(took > VERY_LONG, Ordering::Relaxed);
            decided
        };
        if likely_long { offload(decide).await } else { decide() }
    }

    /// Whether both are the same instance, rather than merely equal.
    fn is(&self, other: &TurnPolicies) -> bool {
        Arc::ptr_eq(&self.takes_long, &other.takes_long)
    }

    /// The policies themselves.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The top policy.
    pub fn top(&self) -> &Identity {
        self.stack.top().policy.identity()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pmk_policy::{Compiler, Runtime, RuntimeConfig};

    use super::*;
    use crate::config::PolicyConfig;

    async fn top(deciding: &TurnPolicies) -> String {
        deciding.consult(|stack| stack.top().policy.name().to_owned()).await
    }

    /// On a busy machine even a quick decision may seem to take long, so the test may have to repeat it.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_decides_quickly_is_asked_here_and_who_once_did_not_is_asked_elsewhere() {
        let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
        let stack = Loader::of(runtime, Named::default()).load(&PolicyConfig::default(), &[]).expect("policies");
        let (deciding, here) = (TurnPolicies::new(&stack), std::thread::current().id());
        assert_ne!(deciding.consult(|_| std::thread::current().id()).await, here, "nobody knows yet");
        // How soon this succeeds depends on how busy the machine is.
        let asked_here = async { while deciding.consult(|_| std::thread::current().id()).await != here {} };
        tokio::time::timeout(Duration::from_secs(60), asked_here).await.expect("an answer that takes no thread");
        deciding.consult(|_| std::thread::sleep(2 * LONG)).await;
        assert_ne!(deciding.consult(|_| std::thread::current().id()).await, here);
    }

    /// Regression: a quick decision about a short conversation let the next one about a long one block a worker again.
    #[tokio::test(flavor = "multi_thread")]
    async fn who_once_took_very_long_was_asked_here_again_after_a_quick_decision() {
        let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
        let stack = Loader::of(runtime, Named::default()).load(&PolicyConfig::default(), &[]).expect("policies");
        let (deciding, here) = (TurnPolicies::new(&stack), std::thread::current().id());
        deciding.consult(|_| std::thread::sleep(2 * VERY_LONG)).await;
        for _ in 0..10 {
            assert_ne!(deciding.consult(|_| std::thread::current().id()).await, here);
        }
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
