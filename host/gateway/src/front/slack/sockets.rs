//! Keeping Socket Mode connected.
//!
//! slack-morphism's own socket manager closes a connection before it opens the next, waits 30 seconds
//! after one failed attempt, waits for ever on a server that stalls, and cannot tell a revoked token from
//! a bad network. So the connections are kept here. They do not go through its listener traits either:
//! those take callbacks that live for ever, where the intake is borrowed, keep the reason of a `disconnect` to
//! themselves, and acknowledge what they cannot read whole. (Its types of the envelopes are private.)

use std::{mem, pin::pin, sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use rustls::ClientConfig;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    Timings,
    address::is_safe_socket,
    envelope::Desk,
    link::{Gone, Link, Served},
    web::Web,
};
use crate::front::FrontError;

/// What a connection is made of.
pub(super) struct Sockets<'a> {
    pub(super) web: &'a Web,
    pub(super) tls: &'a Arc<ClientConfig>,
    pub(super) timings: Timings,
    pub(super) desk: Desk<'a>,
}

impl<'a> Sockets<'a> {
    /// Takes messages in over several connections at once, so that one which dies unnoticed leaves another
    /// for the redelivery. Returns when `stop` is cancelled and all is stored, acknowledged and closed.
    ///
    /// # Errors
    /// Slack will not have this app any more.
    pub(super) async fn run(&self, stop: &CancellationToken) -> Result<(), FrontError> {
        let halt = stop.child_token();
        let kept = (0..self.timings.connections).map(async |_| {
            let end = self.keep_one(&halt).await;
            halt.cancel();
            end
        });
        join_all(kept).await.into_iter().collect()
    }

    /// Keeps one connection up until `halt` is cancelled.
    async fn keep_one(&self, halt: &CancellationToken) -> Result<(), FrontError> {
        let mut backoff = Backoff::new(&self.timings);
        let mut retiring = FuturesUnordered::new();
        let mut open = self.open(halt, &mut backoff).await;
        let end = loop {
            let mut link = match open {
                Ok(Some(link)) => link,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            };
            // The predecessor leaves while this one works already.
            let halted = async {
                while retiring.next().await.is_some() {}
                halt.cancelled().await;
            };
            let served = link.serve(halted).await;
            backoff.lived(link.age());
            open = match served {
                Served::Until(()) => {
                    retiring.push(link.retire());
                    break Ok(());
                }
                // The successor opens while this one still works.
                Served::Leaving => {
                    let mut opening = pin!(self.open(halt, &mut backoff));
                    match link.serve(&mut opening).await {
                        Served::Until(successor) => {
                            retiring.push(link.retire());
                            successor
                        }
                        Served::Leaving | Served::Gone(Gone::Lost { .. }) => opening.await,
                        Served::Gone(Gone::Fatal(error)) => break Err(error),
                    }
                }
                Served::Gone(Gone::Lost { why, .. }) => {
                    tracing::info!("a connection to Slack was lost: {why}");
                    self.open(halt, &mut backoff).await
                }
                Served::Gone(Gone::Fatal(error)) => break Err(error),
            };
        };
        while retiring.next().await.is_some() {}
        end
    }

    /// Opens a connection, trying again until it stands; `None` when `halt` was cancelled first.
    async fn open(&self, halt: &CancellationToken, backoff: &mut Backoff) -> Result<Option<Link<'a>>, FrontError> {
        loop {
            let attempt = async {
                sleep(backoff.wait()).await;
                self.attempt().await
            };
            let attempt = tokio::select! {
                () = halt.cancelled() => return Ok(None),
                attempt = attempt => attempt,
            };
            match attempt {
                Ok(link) => return Ok(Some(link)),
                Err(Gone::Fatal(error)) => return Err(error),
                Err(Gone::Lost { why, retry_after }) => {
                    let wait = backoff.failed(retry_after);
                    tracing::warn!("no connection to Slack: {why}; trying again in {:.1} s", wait.as_secs_f64());
                }
            }
        }
    }

    async fn attempt(&self) -> Result<Link<'a>, Gone> {
        let url = self.web.open_connection().await.map_err(|failure| match failure.while_running() {
            fatal @ FrontError::Fatal { .. } => Gone::Fatal(fatal),
            FrontError::Transient { what, retry_after } => Gone::Lost { why: what, retry_after },
            other => Gone::Lost { why: other.to_string(), retry_after: None },
        })?;
        if !is_safe_socket(&url) {
            return Err(Gone::Fatal(FrontError::Fatal {
                what: "Slack named a WebSocket that is neither encrypted nor on this machine".to_owned(),
                hint: "check that the Slack API address is Slack's".to_owned(),
            }));
        }
        Link::open(url, Arc::clone(self.tls), self.desk, self.timings).await
    }
}

/// How long to wait before the next attempt: not at all after a connection that served for a while, else
/// longer each time, with jitter so that many hosts do not come back at once.
struct Backoff {
    steps: ExponentialBuilder,
    next: ExponentialBackoff,
    steady: Duration,
    wait: Duration,
}

impl Backoff {
    fn new(timings: &Timings) -> Self {
        let steps = ExponentialBuilder::default()
            .with_min_delay(timings.retry_min)
            .with_max_delay(timings.retry_max)
            .with_jitter()
            .without_max_times();
        Backoff { next: steps.build(), steps, steady: timings.steady, wait: Duration::ZERO }
    }

    /// A connection served for this long.
    fn lived(&mut self, age: Duration) {
        if age >= self.steady {
            self.next = self.steps.build();
        } else {
            self.failed(None);
        }
    }

    fn failed(&mut self, retry_after: Option<Duration>) -> Duration {
        let step = self.next.next().unwrap_or_default();
        self.wait = step.max(retry_after.unwrap_or_default());
        self.wait
    }

    fn wait(&mut self) -> Duration {
        mem::take(&mut self.wait)
    }
}
