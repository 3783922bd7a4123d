//! Switches to new tokens while calls are being made.

use std::{convert::Infallible, future::pending};

use secrecy::SecretString;
use slack_morphism::prelude::*;
use tokio::time::{Instant, sleep};

use super::{
    address::{AUTH_TEST, OPEN},
    failure::{CallFailure, Cause},
    identity::Identity,
    token::Token,
    tokens::{AGAIN_AFTER, LOOK_EVERY, TokenPair},
    web::Web,
};

/// The result of reading the tokens again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    /// Others are in use from now on.
    Done,
    /// The previous ones stay in use,
    Not,
    /// and so far only because Slack could not check the new ones.
    Unchecked,
}

/// Why tokens that were read are not used.
struct NotUsed {
    why: String,
    /// Whether Slack could not check them now.
    is_unchecked: bool,
}

impl From<String> for NotUsed {
    fn from(why: String) -> Self {
        NotUsed { why, is_unchecked: false }
    }
}

impl Web {
    /// Switches to new tokens whenever there are any. Never ends.
    pub(super) async fn follow_tokens(&self) {
        let Some(source) = &self.tokens.source else { return pending().await };
        let mut seen = self.tokens.stamps.clone();
        loop {
            let stamps = source.stamps();
            if stamps != seen {
                // If they are no good, they are read again once Slack refuses the old ones.
                if self.renew(None).await == Renewal::Unchecked {
                    sleep(AGAIN_AFTER).await;
                    continue;
                }
                seen = stamps;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Asks now and then whether Slack accepts the bot token again while it does not, although nobody says anything. Never
    /// ends.
    pub(super) async fn follow_refusal(&self) -> Infallible {
        loop {
            sleep(AGAIN_AFTER).await;
            if self.refusals.standing().is_some_and(|refusal| refusal.mutes) {
                // Noted on the way.
                let _ = self.identity().await;
            }
        }
    }

    /// Returns a receiver that is notified when the token that opens connections changes.
    pub(super) fn app_token_changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.tokens.app_changes()
    }

    /// Reads the tokens again, and switches to them if they are new and Slack accepts them. After a refusal, they are read
    /// again only at intervals.
    pub(super) async fn renew(&self, refused: Option<(Token, &SecretString)>) -> Renewal {
        let Some(source) = &self.tokens.source else { return Renewal::Not };
        let mut in_vain = self.tokens.renewing.lock().await;
        let before = self.tokens.now();
        if let Some((token, secret)) = refused {
            if !before.has_the_same(token, secret) {
                // Another call has already renewed them.
                return Renewal::Done;
            }
            if in_vain.is_some_and(|at| at.elapsed() < AGAIN_AFTER) {
                return Renewal::Not;
            }
        }
        let renewed = match source.get().await {
            Ok(pair) => self.go_over(&before, pair.trimmed()).await,
            Err(why) => Err(why.into()),
        };
        let renewal = renewed.unwrap_or_else(|NotUsed { why, is_unchecked }| {
            tracing::warn!("Slack's tokens may have changed, but the previous ones stay in use: {why}");
            if is_unchecked { Renewal::Unchecked } else { Renewal::Not }
        });
        // A check because of changed files does not keep a refused call from checking.
        if renewal == Renewal::Done {
            *in_vain = None;
        } else if refused.is_some() {
            *in_vain = Some(Instant::now());
        }
        renewal
    }

    /// Switches to these tokens if they are new, and Slack accepts them.
    async fn go_over(&self, before: &TokenPair, pair: TokenPair) -> Result<Renewal, NotUsed> {
        let changed: Vec<Token> = [Token::App, Token::Bot]
            .into_iter()
            .filter(|token| !before.has_the_same(*token, pair.of(*token)))
            .collect();
        if changed.is_empty() {
            return Ok(Renewal::Not);
        }
        pair.check().map_err(|error| error.to_string())?;
        for token in &changed {
            self.check(*token, &pair).await?;
        }
        self.tokens.replace(pair);
        changed.iter().for_each(|token| self.refusals.ends(*token));
        let changed: Vec<String> = changed.iter().map(Token::to_string).collect();
        tracing::info!("a new Slack token is in use from now on: {}", changed.join(" and "));
        Ok(Renewal::Done)
    }

    /// Checks a token with Slack, as during the start.
    async fn check(&self, token: Token, pair: &TokenPair) -> Result<(), NotUsed> {
        let failed = |method| {
            move |cause: Cause| {
                let failure = CallFailure { method, token, cause };
                NotUsed { why: failure.to_string(), is_unchecked: !failure.is_final() }
            }
        };
        let secret = pair.of(token);
        if token == Token::App {
            let request = self.client.post(self.address.method(OPEN));
            let opened = self.once(request, secret).await;
            let opened = opened.and_then(|opened| opened.read::<SlackApiAppsConnectionOpenResponse>());
            return opened.map(drop).map_err(failed(OPEN));
        }
        let request = self.client.get(self.address.method(AUTH_TEST));
        let met = self.once(request, secret).await;
        let met = met.and_then(|met| met.read::<SlackApiAuthTestResponse>());
        let met = met.map(Identity::of).map_err(failed(AUTH_TEST))?;
        match self.tokens.owner.get() {
            Some(me) if (&me.user, &me.team_id) != (&met.user, &met.team_id) => Err(format!(
                "{token} now belongs to @{} in {}, but this gateway is @{} in {}; to switch to another bot, restart",
                met.name, met.team, me.name, me.team
            )
            .into()),
            _ => Ok(()),
        }
    }
}
