//! The tokens in use. They may change at run time: Slack revokes one, or somebody writes new ones into
//! gateway.json. Then they are read again, and running work switches to them.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use pmk_system::stamp::Stamp;
use secrecy::{ExposeSecret, SecretString};
use tokio::{sync::watch, time::Instant};

use super::{
    identity::Identity,
    token::{Token, check_app, check_bot},
};
use crate::front::FrontError;

/// How often to check for new tokens.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long until tokens that were no good, or could not be checked, are read again.
pub(super) const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Both tokens.
#[derive(Clone, Debug)]
pub struct TokenPair {
    /// The app-level token, `xapp-…`.
    pub app: SecretString,
    /// The bot token, `xoxb-…`.
    pub bot: SecretString,
}

impl TokenPair {
    /// Returns the tokens without surrounding white space.
    pub(super) fn trimmed(&self) -> TokenPair {
        let trimmed = |token: &SecretString| token.expose_secret().trim().into();
        TokenPair { app: trimmed(&self.app), bot: trimmed(&self.bot) }
    }

    /// Checks their kinds.
    pub(super) fn check(&self) -> Result<(), FrontError> {
        check_app(&self.app)?;
        check_bot(&self.bot)
    }

    pub(super) fn of(&self, token: Token) -> &SecretString {
        match token {
            Token::App => &self.app,
            Token::Bot => &self.bot,
        }
    }

    pub(super) fn has_the_same(&self, token: Token, other: &SecretString) -> bool {
        self.of(token).expose_secret() == other.expose_secret()
    }
}

/// A source of tokens.
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// Returns stamps that change when the tokens may have changed. Checking them is cheap.
    fn stamps(&self) -> Vec<Option<Stamp>>;

    /// Returns whether the bot token may be another one the next time it is read.
    fn may_replace_bot(&self) -> bool {
        true
    }

    /// Reads the tokens.
    ///
    /// # Errors
    /// One cannot be read.
    async fn get(&self) -> Result<TokenPair, String>;
}

/// The tokens in use, and the source of new ones.
pub(super) struct Tokens {
    now: Mutex<Arc<TokenPair>>,
    pub(super) source: Option<Arc<dyn TokenSource>>,
    /// The stamps when they were first read.
    pub(super) stamps: Vec<Option<Stamp>>,
    /// Their owner; new tokens must belong to the same bot.
    pub(super) owner: OnceLock<Identity>,
    /// How often the app token, with which connections are opened, has changed.
    changes: watch::Sender<u64>,
    /// Held while they are read; holds when that was last done for a refused call without success.
    pub(super) renewing: tokio::sync::Mutex<Option<Instant>>,
}

impl Tokens {
    pub(super) fn new(pair: &TokenPair, source: Option<Arc<dyn TokenSource>>) -> Tokens {
        Tokens {
            now: Mutex::new(Arc::new(pair.trimmed())),
            stamps: source.as_ref().map(|source| source.stamps()).unwrap_or_default(),
            source,
            owner: OnceLock::new(),
            changes: watch::Sender::new(0),
            renewing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn now(&self) -> Arc<TokenPair> {
        Arc::clone(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Uses these tokens from now on.
    pub(super) fn replace(&self, pair: TokenPair) {
        let before = std::mem::replace(&mut *self.now.lock().unwrap_or_else(PoisonError::into_inner), Arc::new(pair));
        if !self.now().has_the_same(Token::App, &before.app) {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Returns a receiver that is notified when the app token changes.
    pub(super) fn app_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
