//! What the stand-ins for models have in common: a server in a thread of its own, and the rules of the API that requests
//! broke.

use std::{
    net::{SocketAddr, TcpListener},
    thread,
};

use axum::Router;
use tokio::sync::oneshot;

/// A server on a free port of the loopback interface; it stops when dropped. It runs on a separate thread, so a test may
/// block on the program under test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Served {
    pub(crate) fn start(app: Router) -> Served {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on the loopback interface");
        listener.set_nonblocking(true).expect("a socket that can be polled");
        let address = listener.local_addr().expect("the address just bound");
        let (stop, stopped) = oneshot::channel::<()>();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("the socket just bound");
                // Open streams are cut off, because some of them would never end.
                tokio::select! {
                    served = axum::serve(listener, app) => served.expect("a running server"),
                    _ = stopped => {}
                }
            });
        });
        Served { address, _stop: stop }
    }
}

/// The rules that requests broke, and the words of those that were to be broken.
#[derive(Default)]
pub(crate) struct Broken {
    broken: Vec<String>,
    expected: Vec<String>,
}

impl Broken {
    /// Notes the message of a rule that a request broke.
    pub(crate) fn note(&mut self, message: impl Into<String>) {
        self.broken.push(message.into());
    }

    /// The test's own requests break rules whose message contains this.
    pub(crate) fn expect(&mut self, words: &str) {
        self.expected.push(words.to_owned());
    }

    /// Fails a test at its end if a rule was broken that it did not expect.
    pub(crate) fn fail_at_the_end(&self) {
        let is_left = |message: &&String| !self.expected.iter().any(|words| message.contains(words));
        let left: Vec<&String> = self.broken.iter().filter(is_left).collect();
        // A test that fails already has said why.
        if !thread::panicking() {
            assert_eq!(left, [] as [&str; 0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> Broken {
        let mut broken = Broken::default();
        broken.note("a rule was broken");
        broken
    }

    #[test]
    #[should_panic(expected = "a rule was broken")]
    fn a_violation_that_a_test_does_not_look_at_fails_it() {
        broken().fail_at_the_end();
    }

    #[test]
    fn a_violation_that_a_test_expects_does_not_fail_it() {
        let mut broken = broken();
        broken.expect("a rule");
        broken.fail_at_the_end();
    }
}
