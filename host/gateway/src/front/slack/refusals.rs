//! Tells what Slack refuses, until a person changes something: new connections, or the bot token and with it every call. Each
//! is reported when it begins and when it ends.

use std::{
    convert::Infallible,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::token::Token;
use crate::{
    chat::{Notice, Refusal},
    front::Intake,
};

/// How long a refusal is not reported again, even if Slack accepted the token in between.
const TOLD_FOR: Duration = Duration::from_secs(3_600);

/// What Slack refuses, by the token that it concerns.
#[derive(Default)]
pub(super) struct Refusals {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    app: OfToken,
    bot: OfToken,
    /// What the intake was not told yet.
    untold: Vec<Notice>,
}

impl State {
    fn of(&mut self, token: Token) -> &mut OfToken {
        match token {
            Token::App => &mut self.app,
            Token::Bot => &mut self.bot,
        }
    }
}

#[derive(Default)]
struct OfToken {
    /// What Slack refuses now.
    stands: Option<Refusal>,
    /// Whether that was reported, and when a refusal was last.
    is_told: bool,
    last_told: Option<Instant>,
}

impl Refusals {
    /// Notes a refusal.
    pub(super) fn begins(&self, token: Token, what: String, hint: String) {
        let mut state = self.state();
        let refusal = Refusal { what, hint, mutes: token == Token::Bot };
        let known = state.of(token);
        known.stands = Some(refusal.clone());
        if known.is_told || known.last_told.is_some_and(|last| last.elapsed() < TOLD_FOR) {
            return;
        }
        (known.is_told, known.last_told) = (true, Some(Instant::now()));
        let Refusal { what, hint, mutes } = &refusal;
        match mutes {
            true => tracing::error!(hint, "Slack refuses everything that this app says: {what}"),
            false => tracing::error!(hint, "Slack refuses connections from this app: {what}"),
        }
        state.untold.push(Notice::Refused(refusal));
        drop(state);
        self.changed.notify_one();
    }

    /// Notes that Slack accepts the token.
    pub(super) fn ends(&self, token: Token) {
        let mut state = self.state();
        let known = state.of(token);
        known.stands = None;
        if !mem::take(&mut known.is_told) {
            return;
        }
        let muted = token == Token::Bot;
        match muted {
            true => tracing::info!("Slack accepts what this app says again"),
            false => tracing::info!("Slack accepts connections from this app again"),
        }
        state.untold.push(Notice::Accepted { muted });
        drop(state);
        self.changed.notify_one();
    }

    /// Returns the refusal that stands; that of the bot token if both are refused.
    pub(super) fn standing(&self) -> Option<Refusal> {
        let state = self.state();
        state.bot.stands.clone().or_else(|| state.app.stands.clone())
    }

    /// Reports what begins and ends, for as long as it is polled.
    pub(super) async fn tell(&self, intake: &dyn Intake) -> Infallible {
        loop {
            let changed = self.changed.notified();
            self.tell_now(intake);
            changed.await;
        }
    }

    /// Reports what was not reported yet.
    pub(super) fn tell_now(&self, intake: &dyn Intake) {
        let untold = mem::take(&mut self.state().untold);
        untold.into_iter().for_each(|notice| intake.notice(notice));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each of its methods leaves it consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(refusals: &Refusals) -> Vec<&'static str> {
        let untold = mem::take(&mut refusals.state().untold);
        let name = |notice: &Notice| match notice {
            Notice::Refused(refusal) if refusal.mutes => "mute",
            Notice::Refused(_) => "refused",
            Notice::Accepted { muted: true } => "speaks",
            _ => "accepted",
        };
        untold.iter().map(name).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_and_its_end_are_told_once_and_not_again_within_the_hour() {
        let refusals = Refusals::default();
        let begins = |token| refusals.begins(token, "refused".to_owned(), "a hint".to_owned());
        refusals.ends(Token::Bot);
        assert_eq!(told(&refusals), [] as [&str; 0]);
        begins(Token::App);
        begins(Token::App);
        assert!(refusals.standing().is_some_and(|refusal| !refusal.mutes));
        begins(Token::Bot);
        assert!(refusals.standing().is_some_and(|refusal| refusal.mutes));
        refusals.ends(Token::Bot);
        assert!(refusals.standing().is_some_and(|refusal| !refusal.mutes));
        refusals.ends(Token::App);
        assert_eq!(refusals.standing(), None);
        assert_eq!(told(&refusals), ["refused", "mute", "speaks", "accepted"]);
        begins(Token::Bot);
        assert!(refusals.standing().is_some(), "it stands, although nobody is told again so soon");
        refusals.ends(Token::Bot);
        assert_eq!((refusals.standing(), told(&refusals)), (None, vec![]));
        tokio::time::advance(TOLD_FOR).await;
        begins(Token::Bot);
        assert_eq!(told(&refusals), ["mute"]);
    }
}
