//! Keeps Socket Mode connected.
//!
//! slack-morphism's own socket manager closes a connection before it opens the next, waits 30 seconds after
//! one failed attempt, waits forever for a server that stalls, and cannot tell a revoked token from a bad
//! network. So the connections are kept here. Its listener traits are not used either: they take callbacks
//! with a static lifetime, whereas the intake is borrowed; they hide the reason of a `disconnect`; and they
//! acknowledge frames that they cannot read completely. (Its envelope types are private.)

use std::{future::pending, mem, pin::pin, sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use rustls::ClientConfig;
use tokio::{
    sync::{MutexGuard, watch},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    address::is_safe_socket,
    config::Timings,
    credentials::{UNSAFE_SOCKET, UNSAFE_SOCKET_HINT},
    envelope::InboundContext,
    link::{Link, LinkError, ServeOutcome},
    token::Token,
    web::Web,
};
use crate::front::FrontError;

/// What connections are made from.
pub(super) struct Sockets<'a> {
    web: &'a Web,
    tls: &'a Arc<ClientConfig>,
    timings: Timings,
    reception: InboundContext<'a>,
    /// Held by the connection that is being replaced because of a new token: one at a time.
    turn: tokio::sync::Mutex<()>,
}

impl<'a> Sockets<'a> {
    pub(super) fn new(
        web: &'a Web,
        tls: &'a Arc<ClientConfig>,
        timings: Timings,
        reception: InboundContext<'a>,
    ) -> Self {
        Sockets { web, tls, timings, reception, turn: tokio::sync::Mutex::default() }
    }

    /// Takes messages in over several connections at once, so that if one dies unnoticed, another can receive
    /// the redelivery. Returns when `stop` is cancelled and everything is stored, acknowledged and closed.
    ///
    /// Nothing that Slack says ends it: a refused token may be accepted a minute later, and the open connections
    /// continue to work. Whether the app is accepted at all was checked during the start.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        let kept = join_all((0..self.timings.connections).map(|_| self.keep_one(stop)));
        tokio::select! {
            biased;
            _ = kept => {}
            () = self.reception.hearing.tell(self.reception.intake) => {}
        }
        self.reception.hearing.finish(self.reception.intake);
    }

    /// Keeps one connection open until `halt` is cancelled.
    async fn keep_one(&self, halt: &CancellationToken) {
        let mut backoff = Backoff::new(&self.timings);
        let mut retiring = FuturesUnordered::new();
        let mut changes = self.web.app_token_changes();
        let mut open = self.open(halt, &mut backoff).await;
        while let Some(mut link) = open {
            // The predecessor closes while this one already works.
            let halted = async {
                tokio::select! {
                    biased;
                    () = halt.cancelled() => None,
                    turn = self.turn_after(&mut changes) => Some(turn),
                }
            };
            let served = link.serve(while_closing(&mut retiring, halted)).await;
            if link.is_one_too_many() {
                let wait = backoff.one_too_many(link.age());
                tracing::warn!(
                    "Slack closes a connection because this app has too many; opening another in {:.1} s",
                    wait.as_secs_f64()
                );
            } else {
                backoff.served(link.age());
            }
            let _turn = match served {
                ServeOutcome::Until(None) => {
                    retiring.push(link.retire());
                    break;
                }
                ServeOutcome::Until(turn) => turn,
                ServeOutcome::Leaving => None,
                ServeOutcome::LinkError(gone) => {
                    self.lost(link, gone);
                    changes.mark_unchanged();
                    open = while_closing(&mut retiring, self.open(halt, &mut backoff)).await;
                    continue;
                }
            };
            // The successor opens, with the current token, while this one still works.
            changes.mark_unchanged();
            let mut opening = pin!(self.open(halt, &mut backoff));
            open = loop {
                let served = link.serve(while_closing(&mut retiring, &mut opening)).await;
                match served {
                    ServeOutcome::Until(successor) => {
                        retiring.push(link.retire());
                        break successor;
                    }
                    ServeOutcome::Leaving => {}
                    ServeOutcome::LinkError(gone) => {
                        self.lost(link, gone);
                        break while_closing(&mut retiring, opening).await;
                    }
                }
            };
        }
        while retiring.next().await.is_some() {}
    }

    /// Waits for a new token, and then for its turn.
    async fn turn_after(&self, changes: &mut watch::Receiver<u64>) -> MutexGuard<'_, ()> {
        if changes.changed().await.is_err() {
            return pending().await;
        }
        self.turn.lock().await
    }

    /// Opens a connection, retrying until it succeeds; `None` if `halt` was cancelled first.
    async fn open(&self, halt: &CancellationToken, backoff: &mut Backoff) -> Option<Link<'a>> {
        loop {
            let attempt = async {
                sleep(backoff.wait()).await;
                self.attempt().await
            };
            let attempt = tokio::select! {
                biased;
                () = halt.cancelled() => return None,
                attempt = attempt => attempt,
            };
            let (why, retry_after) = match attempt {
                Ok(link) => {
                    self.web.refusals.ends(Token::App);
                    return Some(link);
                }
                Err(LinkError::Refused { what, hint }) => {
                    self.web.refusals.begins(Token::App, what.clone(), hint);
                    (what, None)
                }
                Err(LinkError::Lost { why, retry_after }) => (why, retry_after),
            };
            let wait = backoff.failed(retry_after);
            tracing::warn!("no connection to Slack: {why}; retrying in {:.1} s", wait.as_secs_f64());
        }
    }

    fn lost(&self, link: Link<'a>, gone: LinkError) {
        // From here on, it does not count as open.
        drop(link);
        self.reception.hearing.lost_one();
        match gone {
            LinkError::Lost { why, .. } => tracing::info!("a connection to Slack was lost: {why}"),
            LinkError::Refused { what, hint } => self.web.refusals.begins(Token::App, what, hint),
        }
    }

    async fn attempt(&self) -> Result<Link<'a>, LinkError> {
        let url = self.web.open_connection().await.map_err(|failure| match failure.while_running() {
            FrontError::Fatal { what, hint } => LinkError::Refused { what, hint },
            FrontError::Transient { what, retry_after, .. } => LinkError::Lost { why: what, retry_after },
            other => LinkError::Lost { why: other.to_string(), retry_after: None },
        })?;
        if !is_safe_socket(&url) {
            return Err(LinkError::Refused { what: UNSAFE_SOCKET.to_owned(), hint: UNSAFE_SOCKET_HINT.to_owned() });
        }
        Link::open(url, &*self.web.transport, Arc::clone(self.tls), self.reception, self.timings).await
    }
}

/// Waits for something, while connections that are being closed store and acknowledge what they have received. A pause may
/// be long.
async fn while_closing<T>(
    retiring: &mut FuturesUnordered<impl Future<Output = ()>>,
    awaited: impl Future<Output = T>,
) -> T {
    let mut awaited = pin!(awaited);
    loop {
        tokio::select! {
            biased;
            value = &mut awaited => return value,
            Some(()) = retiring.next() => {}
        }
    }
}

/// The pause before the next attempt: longer after each failed one, with jitter so that many hosts do not
/// come back at the same time. A connection that received a hello resets it, however soon it was closed, unless it was
/// one too many: then the next one is, too.
struct Backoff {
    steps: ExponentialBuilder,
    next: ExponentialBackoff,
    longest: Duration,
    spacing: Duration,
    wait: Duration,
}

impl Backoff {
    fn new(timings: &Timings) -> Self {
        let steps = ExponentialBuilder::default()
            .with_min_delay(timings.retry_min)
            .with_max_delay(timings.retry_max)
            .with_jitter()
            .without_max_times();
        let Timings { retry_max: longest, spacing, .. } = *timings;
        Backoff { next: steps.build(), steps, longest, spacing, wait: Duration::ZERO }
    }

    /// Notes that a connection worked for this long.
    fn served(&mut self, age: Duration) {
        self.next = self.steps.build();
        self.wait = self.spacing.saturating_sub(age);
    }

    /// Notes that a connection is closed after that long because the app has too many. Returns the pause.
    fn one_too_many(&mut self, age: Duration) -> Duration {
        if age > self.longest {
            // It was not when it was opened.
            self.next = self.steps.build();
        }
        self.failed(Some(self.spacing.saturating_sub(age)))
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn connections_that_worked_and_were_cut_do_not_make_the_wait_grow() {
        let mut backoff = Backoff::new(&Timings::default());
        for _ in 0..8 {
            backoff.failed(None);
        }
        for cut in 1..=20 {
            backoff.served(Duration::from_secs(8));
            assert_eq!(backoff.wait(), Duration::ZERO, "deaf after cut {cut}");
            backoff.served(Duration::ZERO);
            let wait = backoff.wait();
            assert!(wait <= Duration::from_millis(1_500), "{wait:?} deaf after cut {cut}, right after the hello");
        }
    }

    /// Regression: each was followed by the next one and a half seconds later, for ever.
    #[test]
    fn connections_of_which_there_were_too_many_were_opened_again_at_once() {
        let timings = Timings::default();
        let mut backoff = Backoff::new(&timings);
        let waits: Vec<Duration> = (0..8).map(|_| backoff.one_too_many(Duration::from_millis(20))).collect();
        assert!(waits[0] >= Duration::from_millis(1_480), "{waits:?}");
        assert!(waits.iter().rev().take(2).all(|wait| *wait >= timings.retry_max), "{waits:?}");
        assert!(backoff.one_too_many(Duration::from_secs(3_600)) <= Duration::from_secs(1), "it worked for an hour");
    }

    /// Regression: during the pause before another connection, the one that it replaces neither stored nor acknowledged
    /// what it had received.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_closes_stood_still_while_another_was_opened() {
        let began = Instant::now();
        let closed = Mutex::new(vec![]);
        let closes = |seconds| {
            let closed = &closed;
            async move {
                for _ in 0..2 {
                    sleep(Duration::from_secs(seconds)).await;
                }
                closed.lock().expect("no test panics with it").push(began.elapsed().as_secs());
            }
        };
        let mut retiring: FuturesUnordered<_> = [3, 1, 50].into_iter().map(closes).collect();
        while_closing(&mut retiring, sleep(Duration::from_secs(60))).await;
        assert_eq!(*closed.lock().expect("no test panics with it"), [2, 6], "the pause is over");
        assert_eq!((retiring.len(), began.elapsed().as_secs()), (1, 60));
        while_closing(&mut FuturesUnordered::<std::future::Ready<()>>::new(), sleep(Duration::from_secs(60))).await;
        assert_eq!(began.elapsed().as_secs(), 120, "there is none");
    }
}
