//! Slack's tokens as gateway.json has them now, for a running gateway.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use pmk_system::{error::Failure, home, stamp::Stamp};

use super::{Token, Tokens};
use crate::{
    config::{Config, SlackTokens},
    front::slack::{TokenPair, TokenSource},
};

/// The tokens of a home. Those of the environment take precedence, and never change.
#[derive(Debug)]
pub(in crate::cli) struct OfHome(pub PathBuf);

impl OfHome {
    fn pair(home: &Path) -> Result<TokenPair, Failure> {
        let (config, _) = Config::load_in_gateway(home)?;
        match Tokens::of(&config.slack).pair()? {
            Some((app, bot)) => Ok(TokenPair { app: app.resolve()?, bot: bot.resolve()? }),
            None => Err(Failure::new("gateway.json no longer has Slack tokens")),
        }
    }

    /// Returns gateway.json, and the files that it names.
    fn files(&self) -> Vec<PathBuf> {
        let config = Config::load(&self.0).map(|(config, _)| config).unwrap_or_default();
        let Tokens { app, bot } = Tokens::of(&config.slack);
        let file = |token: Option<Token>| match token {
            Some(Token::OfFile(secret)) => secret.file(),
            _ => None,
        };
        [Some(home::config_file(&self.0)), file(app), file(bot)].into_iter().flatten().collect()
    }
}

#[async_trait]
impl TokenSource for OfHome {
    fn stamps(&self) -> Vec<Option<Stamp>> {
        self.files().iter().map(|file| Stamp::of(file)).collect()
    }

    fn may_replace_bot(&self) -> bool {
        // The environment stays what it was at the start.
        Tokens::of(&SlackTokens::default()).bot.is_none()
    }

    async fn get(&self) -> Result<TokenPair, String> {
        let home = self.0.clone();
        // The source may be a command that takes long.
        let got = tokio::task::spawn_blocking(move || OfHome::pair(&home)).await.map_err(|error| error.to_string())?;
        got.map_err(|failure| failure.message().to_owned())
    }
}
