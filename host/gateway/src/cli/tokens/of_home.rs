//! Slack's tokens as gateway.json has them now, for a running gateway.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use pmk_system::{error::Failure, home, stamp::Stamp};

use super::{Token, Tokens};
use crate::{
    config::{Config, SlackTokens},
    front::slack::{TokenPair, TokenSource},
};

/// How long the command of a token may take in a running gateway: calls that were refused wait for it.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// The tokens of a home. Those of the environment take precedence, and never change.
#[derive(Debug)]
pub(in crate::cli) struct OfHome(pub PathBuf);

impl OfHome {
    /// Returns the tokens, given those of the environment.
    fn pair(home: &Path, of_environment: Tokens) -> Result<TokenPair, Failure> {
        let tokens = match of_environment {
            // Whatever is wrong with gateway.json, they do not come from there.
            Tokens { app: Some(_), bot: Some(_) } => of_environment,
            _ => Tokens::of(&Config::load_in_gateway(home)?.0.slack),
        };
        match tokens.pair()? {
            Some((app, bot)) => Ok(TokenPair {
                app: app.resolve_within(Some(COMMAND_LIMIT))?,
                bot: bot.resolve_within(Some(COMMAND_LIMIT))?,
            }),
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
        of_environment().bot.is_none()
    }

    async fn get(&self) -> Result<TokenPair, String> {
        let home = self.0.clone();
        // The source may be a command that takes long.
        let got = tokio::task::spawn_blocking(move || OfHome::pair(&home, of_environment()));
        got.await.map_err(|error| error.to_string())?.map_err(|failure| failure.message().to_owned())
    }
}

fn of_environment() -> Tokens {
    Tokens::of(&SlackTokens::default())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrecy::{ExposeSecret, SecretString};

    use super::*;

    /// Regression: reading them again failed for as long as it was gone.
    #[test]
    fn a_lost_file_kept_a_gateway_from_the_tokens_of_its_environment() {
        let folder = tempfile::tempdir().unwrap();
        let (home, file) = (folder.path(), home::config_file(folder.path()));
        fs::write(&file, r#"{"version":1}"#).unwrap();
        Config::load_in_gateway(home).unwrap();
        fs::remove_file(&file).unwrap();
        let token = |text: &str| Some(Token::Known(SecretString::from(text)));
        let pair = OfHome::pair(home, Tokens { app: token("xapp-a"), bot: token("xoxb-b") }).unwrap();
        assert_eq!((pair.app.expose_secret(), pair.bot.expose_secret()), ("xapp-a", "xoxb-b"));
        let lost = OfHome::pair(home, Tokens { app: token("xapp-a"), bot: None }).unwrap_err();
        assert!(lost.message().contains("no longer exists"), "{lost}");
    }
}
