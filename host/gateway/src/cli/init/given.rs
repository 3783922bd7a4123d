//! Secrets as they are given to `init`: as a source, or at a terminal as the secret itself. A secret on the command
//! line would be visible to others.

use std::path::Path;

use pmk_system::error::Failure;
use secrecy::{ExposeSecret, SecretString};

use super::super::arguments::variable;
use crate::{
    config::{Json, Object, is_credential},
    front::{FrontError, slack::credentials},
};

/// A secret, or its source.
#[derive(Clone, Debug)]
pub(super) enum SecretGiven {
    Literal(SecretString),
    Env(String),
    File(String),
    Command(String),
}

/// The two tokens of Slack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    App,
    Bot,
}

impl Kind {
    /// Returns the usual prefix; rotated tokens have another one.
    pub fn begins(self) -> &'static str {
        match self {
            Kind::App => "xapp-",
            Kind::Bot => "xoxb-",
        }
    }

    /// Checks that a token is of this kind, with the check that a start uses.
    ///
    /// # Errors
    /// It is of another kind, or not a token.
    pub fn check(self, token: &SecretString) -> Result<(), Failure> {
        let checked = match self {
            Kind::App => credentials::check_app(token),
            Kind::Bot => credentials::check_bot(token),
        };
        checked.map_err(|error| match error {
            FrontError::Fatal { what, hint } => Failure::new(what).hint(hint),
            other => Failure::new(other),
        })
    }

    /// The key within `slack` of gateway.json.
    pub fn key(self) -> &'static str {
        match self {
            Kind::App => "appToken",
            Kind::Bot => "botToken",
        }
    }

    /// The environment variable that takes precedence over it.
    pub fn variable(self) -> &'static str {
        match self {
            Kind::App => "PMK_SLACK_APP_TOKEN",
            Kind::Bot => "PMK_SLACK_BOT_TOKEN",
        }
    }
}

impl SecretGiven {
    /// Parses a flag: `env:NAME`, `file:PATH` or `cmd:COMMAND`.
    ///
    /// # Errors
    /// It is none of them. The error contains nothing of the text, which may be a secret.
    pub fn read(flag: &str, text: &str) -> Result<SecretGiven, Failure> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(SecretGiven::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => {
                let file = Path::new(path);
                match file.is_absolute() || is_credential(file) {
                    true => Ok(SecretGiven::File(path.to_owned())),
                    false => Err(Failure::new(format!("the path in `{flag}` is neither a full path nor the name of a credential"))
                        .hint("give the full path of the file, starting with `/`; a credential of systemd has a name without a folder")),
                }
            }
            Some(("cmd", command)) if !command.trim().is_empty() => Ok(SecretGiven::Command(command.to_owned())),
            Some((kind @ ("env" | "file" | "cmd"), _)) => {
                let kind = format!("{kind}:");
                Err(Failure::new(format!("nothing follows `{kind}` in `{flag}`"))
                    .hint("say where to find it: `env:NAME`, `file:PATH` or `cmd:COMMAND`"))
            }
            _ => Err(Failure::new(format!(
                "`{flag}` does not accept the secret itself: others could read it on the command line"
            ))
            .hint("say where to find it: `env:NAME`, `file:PATH` or `cmd:COMMAND`")),
        }
    }

    /// Checks that it can be that token, as far as it is known already.
    ///
    /// # Errors
    /// It is of another kind.
    pub fn check(&self, kind: Kind) -> Result<(), Failure> {
        match self {
            SecretGiven::Literal(secret) => kind.check(secret),
            SecretGiven::Env(name) => variable(name).map_or(Ok(()), |token| kind.check(&SecretString::from(token))),
            SecretGiven::File(_) | SecretGiven::Command(_) => Ok(()),
        }
    }

    /// Returns its form in gateway.json.
    pub fn json(&self) -> Json {
        let named = |key: &str, value: &str| {
            let mut object = Object::default();
            object.set(key, value);
            Json::Object(object)
        };
        match self {
            SecretGiven::Literal(secret) => secret.expose_secret().into(),
            SecretGiven::Env(name) => named("env", name),
            SecretGiven::File(path) => named("file", path),
            SecretGiven::Command(command) => named("cmd", command),
        }
    }
}
