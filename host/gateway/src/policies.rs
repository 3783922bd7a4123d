//! Which policies decide. A turn takes them once, when it begins, and keeps them to its end, whatever is
//! swapped in meanwhile.

use std::sync::Arc;

use pmk_policy::Stack;

/// The policies that serve now.
pub(crate) struct Policies {
    serving: Deciding,
}

/// The policies of one turn.
#[derive(Clone)]
pub(crate) struct Deciding(Arc<Stack>);

impl Policies {
    pub fn new(stack: Stack) -> Policies {
        Policies { serving: Deciding(Arc::new(stack)) }
    }

    /// What a turn that begins now goes by.
    pub fn serving(&self) -> Deciding {
        self.serving.clone()
    }
}

impl Deciding {
    /// Has the policies decide something. A decision takes microseconds, but a bad component may use all the
    /// time it is allowed.
    pub async fn consult<T: Send + 'static>(&self, decide: impl FnOnce(&Stack) -> T + Send + 'static) -> T {
        let Deciding(stack) = self.clone();
        tokio::task::spawn_blocking(move || decide(&stack))
            .await
            .expect("a policy decision does not panic on the host's side")
    }
}
