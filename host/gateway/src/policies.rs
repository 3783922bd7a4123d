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
pub use swap::{
    NextStart, Ports, Promotion, SettingsLook, Source, StartLook, StartRefusal, Swapped, Swapper, identities, names,
};
pub use watch::follow;

use std::{
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use pmk_policy::{Capability, Identity, Stack};
use pmk_system::{clock, threads::offload};

/// The serving policies.
#[derive(Debug)]
pub struct Policies {
    serving: RwLock<TurnPolicies>,
}

/// After a decision that takes longer than this, the next one is made on a blocking thread instead of the async worker
/// thread.
const LONG: Duration = Duration::from_millis(1);
/// After a decision that takes longer than this, all later ones are.
const TOO_LONG: Duration = Duration::from_millis(20);

/// The policies of one turn.
#[derive(Clone, Debug)]
pub struct TurnPolicies {
    stack: Stack,
    /// Whether one of them may read the archive. That blocks on the disk, so such decisions run on a blocking thread.
    reads_archive: bool,
    /// Shared by all clones.
    pace: Arc<Pace>,
}

/// How long decisions take. That one is slow shows in processor time alone, as a busy machine says nothing of a policy.
#[derive(Debug)]
struct Pace {
    /// Whether the next decision is likely to take long: the last one did, or none has been made yet.
    likely_long: AtomicBool,
    /// Whether one has taken too long. Decisions of other kinds and conversations may have been quick since.
    is_slow: AtomicBool,
}

/// A decision that is being made. However it ends, its time counts.
struct Timed<'a> {
    pace: &'a Pace,
    begun: Duration,
    begun_at: Instant,
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
            pace: Arc::new(Pace { likely_long: AtomicBool::new(true), is_slow: AtomicBool::new(false) }),
        }
    }

    /// Runs a decision. A decision usually takes microseconds, less than handing it to another thread, so it runs on
    /// the current thread unless it is likely to take long. A bad component may use all the time it is allowed; it then
    /// blocks a worker thread once for each decision that is being made, and all later decisions are offloaded.
    pub async fn consult<T: Send + 'static>(&self, decide: impl FnOnce(&Stack) -> T + Send + 'static) -> T {
        let TurnPolicies { stack, reads_archive, pace } = self.clone();
        let is_offloaded = reads_archive || pace.expects_long();
        let decide = move || {
            let _timed = pace.timed();
            decide(&stack)
        };
        if is_offloaded { offload(decide).await } else { decide() }
    }

    /// Whether both are the same instance, rather than merely equal.
    fn is(&self, other: &TurnPolicies) -> bool {
        Arc::ptr_eq(&self.pace, &other.pace)
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

impl Pace {
    fn expects_long(&self) -> bool {
        self.likely_long.load(Ordering::Relaxed) || self.is_slow.load(Ordering::Relaxed)
    }

    /// Begins a decision on the current thread.
    fn timed(&self) -> Timed<'_> {
        Timed { pace: self, begun: clock::of_thread(), begun_at: Instant::now() }
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let took = clock::of_thread().saturating_sub(self.begun);
        // It may have waited for an instance, as the next one may have to.
        let has_waited = self.begun_at.elapsed() > TOO_LONG;
        self.pace.likely_long.store(took > LONG || has_waited, Ordering::Relaxed);
        if took > TOO_LONG {
            self.pace.is_slow.store(true, Ordering::Relaxed);
        }
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

    /// Works for that long.
    fn work(time: Duration) {
        let begun = clock::of_thread();
        while clock::of_thread() - begun < time {
            std::hint::spin_loop();
        }
    }

    /// Whether the next decision, a quick one, is made on this thread.
    async fn is_asked_here(deciding: &TurnPolicies) -> bool {
        deciding.consult(|_| std::thread::current().id()).await == std::thread::current().id()
    }

    fn deciding() -> TurnPolicies {
        let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
        let stack = Loader::of(runtime, Named::default()).load(&PolicyConfig::default(), &[]).expect("policies");
        TurnPolicies::new(&stack)
    }

    /// How soon this succeeds depends on how long this machine takes for a decision that decides nothing.
    async fn asked_here(deciding: &TurnPolicies) {
        let asked = async { while !is_asked_here(deciding).await {} };
        tokio::time::timeout(Duration::from_secs(60), asked).await.expect("an answer that takes no thread");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_decides_quickly_is_asked_here_and_who_once_did_not_is_asked_elsewhere() {
        let deciding = deciding();
        assert!(!is_asked_here(&deciding).await, "nobody knows yet");
        asked_here(&deciding).await;
        deciding.consult(|_| work(2 * LONG)).await;
        assert!(!is_asked_here(&deciding).await);
        asked_here(&deciding).await;
    }

    /// Regression: a quick decision, of another kind or conversation, had the next slow one block a worker thread again.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_policy_that_took_very_long_was_trusted_again_after_a_quick_decision() {
        let deciding = deciding();
        asked_here(&deciding).await;
        deciding.consult(|_| work(2 * TOO_LONG)).await;
        for _ in 0..5 {
            assert!(!is_asked_here(&deciding).await);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_has_waited_for_long_is_asked_elsewhere_the_next_time() {
        let deciding = deciding();
        asked_here(&deciding).await;
        deciding.consult(|_| std::thread::sleep(2 * TOO_LONG)).await;
        assert!(!is_asked_here(&deciding).await);
        asked_here(&deciding).await;
    }

    /// Regression: what ended in a panic counted as if it had never been asked.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_decision_that_panicked_did_not_count_however_long_it_took() {
        let deciding = deciding();
        asked_here(&deciding).await;
        let panicking = deciding.clone();
        let decision = async move {
            let trap = |_: &Stack| {
                work(2 * TOO_LONG);
                panic!("a host function fails")
            };
            panicking.consult::<()>(trap).await;
        };
        tokio::spawn(decision).await.expect_err("a panic");
        assert!(!is_asked_here(&deciding).await);
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
