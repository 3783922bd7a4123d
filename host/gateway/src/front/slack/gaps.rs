//! Decides when Slack may have given up on a message: it sends one again at once, after a minute and after five, and
//! then no more.

use std::time::Duration;

use tokio::time::Instant;

/// How long after its first attempt Slack sends a message for the last time, at most.
const LAST_ATTEMPT: Duration = Duration::from_secs(6 * 60);

/// Silences of the bot that count together, because a message may have fallen into each of them.
#[derive(Debug)]
pub(super) struct Gaps {
    /// How long after its first attempt Slack may have given up.
    given_up: Duration,
    /// When the first one began.
    from: Option<Instant>,
    /// When the last one ended; `None` while it goes on.
    until: Option<Instant>,
    /// Whether the one that goes on was reported.
    is_told: bool,
}

impl Gaps {
    /// The bot is deaf until its first connection.
    pub(super) fn new(given_up: Duration, now: Instant) -> Gaps {
        Gaps { given_up, from: Some(now), until: None, is_told: false }
    }

    /// Returns how long ago the silence that goes on began, or would go on if the bot became deaf now; or the first of
    /// those that count together with it.
    pub(super) fn goes_on_for(&self, now: Instant) -> Option<Duration> {
        self.goes_on(now).then(|| self.lasted(now)).flatten()
    }

    /// Notes that the bot is deaf since then.
    pub(super) fn begins(&mut self, since: Instant) {
        self.from = Some(match self.from {
            Some(from) if self.goes_on(since) => from.min(since),
            _ => since,
        });
        self.until = None;
    }

    /// Returns whether a silence then counts together with those before: the last attempt at what fell into them may fall
    /// into it.
    fn goes_on(&self, then: Instant) -> bool {
        self.until.is_none_or(|until| then.saturating_duration_since(until) < LAST_ATTEMPT)
    }

    /// Notes that the bot hears again. Returns how long ago the first of these silences began, if messages may be lost.
    pub(super) fn ends(&mut self, now: Instant) -> Option<Duration> {
        (self.until, self.is_told) = (Some(now), false);
        let lasted = self.lasted(now).filter(|lasted| *lasted >= self.given_up)?;
        // What was written until now is looked for.
        self.from = None;
        Some(lasted)
    }

    /// Returns the same for a silence that goes on, once.
    pub(super) fn look(&mut self, now: Instant) -> Option<Duration> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        self.is_told = true;
        self.lasted(now)
    }

    /// Returns when a silence that goes on is to be reported.
    pub(super) fn due(&self) -> Option<Instant> {
        let goes_on = self.until.is_none() && !self.is_told;
        self.from.filter(|_| goes_on).map(|from| from + self.given_up)
    }

    /// Returns whether messages may be lost now: what is looked for would not be the last of them.
    pub(super) fn is_long(&self, now: Instant) -> bool {
        self.until.is_none() && self.lasted(now).is_some_and(|lasted| lasted >= self.given_up)
    }

    pub(super) fn lasted(&self, now: Instant) -> Option<Duration> {
        self.from.map(|from| now.saturating_duration_since(from))
    }
}
