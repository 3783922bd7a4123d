//! Which policies decide. A turn takes them once, when it begins, and keeps them to its end, whatever is
//! swapped in meanwhile.
//!
//! [`Loader`] makes layers of files, [`Swapper`] has them take over in a running gateway.

mod load;
mod loading;
mod swap;
mod watch;

pub use load::{Loader, Named, open_for_authoring};
pub use loading::{busy, load};
pub use swap::{By, NextStart, Ports, Promotion, Source, Swapped, Swapper};
pub use watch::follow;

use std::sync::{PoisonError, RwLock};

use pmk_policy::Stack;

/// The policies that serve now.
#[derive(Debug)]
pub struct Policies {
    serving: RwLock<Deciding>,
}

/// The policies of one turn.
#[derive(Clone, Debug)]
pub struct Deciding(Stack);

impl Policies {
    /// Begins with these.
    pub fn new(stack: &Stack) -> Policies {
        Policies { serving: RwLock::new(Deciding::new(stack)) }
    }

    /// What a turn that begins now goes by.
    pub fn serving(&self) -> Deciding {
        // Replaced as a whole, so a panic elsewhere leaves nothing half changed.
        self.serving.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets these serve the turns that begin from now on, and gives back those that served until now. Turns that
    /// have begun keep what they took.
    pub fn swap(&self, stack: &Stack) -> Stack {
        let mut serving = self.serving.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *serving, Deciding::new(stack)).0
    }
}

impl Deciding {
    /// Those that keep failing are suspended for a while, as long as these serve.
    pub fn new(stack: &Stack) -> Deciding {
        Deciding(stack.with_breakers())
    }

    /// Has the policies decide something. A decision takes microseconds, but a bad component may use all the
    /// time it is allowed.
    pub async fn consult<T: Send + 'static>(&self, decide: impl FnOnce(&Stack) -> T + Send + 'static) -> T {
        let Deciding(stack) = self.clone();
        tokio::task::spawn_blocking(move || decide(&stack))
            .await
            .expect("a policy decision does not panic on the host's side")
    }

    /// The policies themselves.
    pub fn stack(&self) -> &Stack {
        &self.0
    }

    /// Name and digest of the policy on top.
    pub fn top(&self) -> (&str, &str) {
        let identity = self.0.top().map(|layer| layer.policy.identity());
        identity.map_or(("", ""), |identity| (&identity.name, &identity.sha256))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pmk_policy::{Compiler, Runtime, RuntimeConfig};

    use super::*;
    use crate::config::PolicyConfig;

    async fn top(deciding: &Deciding) -> String {
        deciding.consult(|stack| stack.layers()[0].policy.name().to_owned()).await
    }

    #[tokio::test]
    async fn a_turn_that_has_begun_keeps_what_it_took() {
        let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
        let loader = Loader::of(runtime, Named::default());
        let strict = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/strict.wasm");
        let load = |files: &[_]| loader.load(&PolicyConfig::default(), files).expect("policies");
        let policies = Policies::new(&load(&[]));
        let begun = policies.serving();
        let replaced = policies.swap(&load(&[strict]));
        assert_eq!(top(&begun).await, "standard");
        assert_eq!(top(&policies.serving()).await, "strict");
        policies.swap(&replaced);
        assert_eq!(top(&policies.serving()).await, "standard");
    }
}
