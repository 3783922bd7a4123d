//! The tokens that are in use. They may be others tomorrow: Slack takes one back, or somebody writes new ones into
//! gateway.json. Then they are got again, and what works on goes over to them.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use pmk_system::stamp::Stamp;
use secrecy::{ExposeSecret, SecretString};
use tokio::{sync::watch, time::Instant};

use super::{token::Token, web::Identity};

/// How often is looked whether there may be others.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long until they are got again that were no good, or could not be asked about.
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
    /// The same without what stands around them where they come from.
    pub(super) fn trimmed(&self) -> TokenPair {
        let trimmed = |token: &SecretString| token.expose_secret().trim().into();
        TokenPair { app: trimmed(&self.app), bot: trimmed(&self.bot) }
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

/// Where tokens come from.
#[async_trait]
pub trait TokenSource: fmt::Debug + Send + Sync {
    /// What differs when they may be others than before. Looking costs next to nothing.
    fn stamps(&self) -> Vec<Option<Stamp>>;

    /// Gets them.
    ///
    /// # Errors
    /// One cannot be got.
    async fn get(&self) -> Result<TokenPair, String>;
}

/// The tokens in use, and where others come from.
pub(super) struct Tokens {
    now: Mutex<Arc<TokenPair>>,
    pub(super) source: Option<Arc<dyn TokenSource>>,
    /// When they were got first.
    pub(super) stamps: Vec<Option<Stamp>>,
    /// Whose they are; others must be the same bot's.
    pub(super) owner: OnceLock<Identity>,
    /// How often the app token has changed: connections are opened with it.
    changes: watch::Sender<u64>,
    /// Held while they are got; when that was last done for a refused call, in vain.
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

    /// From now on these are used.
    pub(super) fn replace(&self, pair: TokenPair) {
        let before = std::mem::replace(&mut *self.now.lock().unwrap_or_else(PoisonError::into_inner), Arc::new(pair));
        if !self.now().has_the_same(Token::App, &before.app) {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Is told when the app token changes.
    pub(super) fn app_changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
