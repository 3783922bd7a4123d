//! `gateway.json`: what the operator configured once. The file is pmk's own (version 1), so an
//! existing one works as it is; the keys that only this gateway knows are `model`, `policy`, `experiment`,
//! `limits`, `hourly`, `language`, `mra`, `tools`, `queue`, `historyTurns`, `presence` and `health`.

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use pmk_knowledge::{Ingest, UnknownIngest};
use pmk_system::{error::Failure, files, home, json};
use serde_json::{Map, Value};

use crate::{embedded, language::Language, people::People};

mod document;
mod edit;
pub(crate) mod experiment;
mod people;
mod policy;
mod secret;
mod sections;
mod watched;

pub use experiment::{ArmConfig, ArmPolicy, ExperimentConfig};
pub use policy::{PolicyConfig, PolicyLimits};
pub use secret::Secret;
pub use sections::{
    HealthConfig, HourlyConfig, LimitsConfig, MraConfig, PresenceConfig, QueueConfig, QueueMode, ToolStyle,
};
pub use watched::{Trial, Watched};

pub use document::{Json, Object, WrongShape};
pub use edit::{EditError, edit};

/// The version of the format that is understood.
const VERSION: u64 = 1;

/// The keys of pmk's file that belong to parts this build does not have; they are kept, not used.
const PMK_KEYS: &[&str] = &[
    "version",
    "admins",
    "defaultIngest",
    "mraWorkspace",
    "blocklist",
    "audience",
    "escalation",
    "apiKey",
    "github",
    "review",
    "slack",
    "model",
    "policy",
    "experiment",
    "limits",
    "hourly",
    "language",
    "mra",
    "tools",
    "queue",
    "historyTurns",
    "presence",
    "health",
];

/// The configuration, every field with its default.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Whether there is a file at all.
    pub exists: bool,
    pub people: People,
    /// `PROVIDER[:NAME]`.
    pub model: Option<String>,
    pub policy: PolicyConfig,
    /// Policies that are compared on live traffic.
    pub experiment: Option<ExperimentConfig>,
    pub limits: LimitsConfig,
    /// How often others are asked.
    pub hourly: HourlyConfig,
    pub slack: SlackTokens,
    /// The language of what the gateway itself says.
    pub language: Language,
    /// What opens a session.
    pub default_ingest: Option<Ingest>,
    /// Where the repositories are; `PMK_MRA_WORKSPACE` goes before the file.
    pub mra_workspace: Option<PathBuf>,
    pub mra: MraConfig,
    /// How the model asks for `mra` and for people.
    pub tools: ToolStyle,
    /// What becomes of messages that come while one is being answered.
    pub queue: QueueConfig,
    /// So many turns of a direct message stay in the window at most.
    pub history_turns: Option<NonZeroU32>,
    /// What people get to know of its being away.
    pub presence: PresenceConfig,
    /// Where a machine asks how it does.
    pub health: HealthConfig,
    /// The Anthropic API key, where the file holds it.
    pub api_key: Option<Secret>,
}

/// Slack's tokens, or where to get them.
#[derive(Clone, Debug, Default)]
pub struct SlackTokens {
    pub app_token: Option<Secret>,
    pub bot_token: Option<Secret>,
}

impl Config {
    /// Whether somebody has set this gateway up to answer people, by hand or with pmk: then an absent `model` means
    /// `claude-cli` (specification 000). A file that holds nothing but what a command has written there does not say that.
    pub fn is_set_up(&self) -> bool {
        self.api_key.is_some() || self.slack.app_token.is_some() || self.slack.bot_token.is_some()
    }

    /// Reads the file of a home; without one, everything has its default. What is not understood but
    /// harmless comes back as warnings.
    ///
    /// # Errors
    /// The file cannot be read, is not JSON, is of another version, or a key this gateway needs has
    /// the wrong shape.
    pub fn load(home: &Path) -> Result<(Config, Vec<String>), Failure> {
        // Also where it is read again: a running gateway does what it says, too.
        home::check_trusted(home)?;
        let path = home::config_file(home);
        let text = match files::read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Config::default(), vec![])),
            Err(error) => {
                return Err(Failure::new(format!("cannot read `{}`: {error}", path.display()))
                    .hint("is `--home` a folder that you may read?"));
            }
        };
        let (mut config, warnings) = Config::parse(&text).map_err(|what| {
            Failure::new(format!("`{}`: {what}", path.display()))
                .hint("correct the file, or say `--home DIR` for another")
        })?;
        for file in &mut config.policy.files {
            *file = embedded::within(home, file);
        }
        config.experiment = config.experiment.map(|experiment| experiment.within(home));
        Ok((config, warnings))
    }

    fn parse(text: &str) -> Result<(Config, Vec<String>), String> {
        let root: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))?;
        match root.get("version") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => return Err(format!("it has version {version}, this build expects {VERSION}")),
            None => return Err(format!("it has no `version`, this build expects {VERSION}")),
        }
        let mut warnings: Vec<String> = root
            .keys()
            .filter(|key| !PMK_KEYS.contains(&key.as_str()))
            .map(|key| format!("gateway.json: unknown key `{key}` is ignored"))
            .collect();
        let limits: LimitsConfig = section(&root, "limits")?.unwrap_or_default();
        limits.check()?;
        let mra: MraConfig = section(&root, "mra")?.unwrap_or_default();
        mra.check()?;
        let queue: QueueConfig = section(&root, "queue")?.unwrap_or_default();
        queue.check()?;
        let policy: PolicyConfig = section(&root, "policy")?.unwrap_or_default();
        policy.check()?;
        let experiment: Option<ExperimentConfig> = section(&root, "experiment")?;
        experiment.as_ref().map_or(Ok(()), ExperimentConfig::check)?;
        let config = Config {
            exists: true,
            people: People {
                admins: users(&root, "admins")?,
                blocklist: users(&root, "blocklist")?,
                audience: people::audiences(&root, &mut warnings),
                escalation: people::pools(&root, &mut warnings),
            },
            model: part(&root, "model")?,
            policy,
            experiment,
            limits,
            hourly: section(&root, "hourly")?.unwrap_or_default(),
            slack: slack_tokens(&root)?,
            api_key: Secret::read("apiKey", root.get("apiKey"))?,
            language: part(&root, "language")?.unwrap_or_default(),
            default_ingest: ingest(&root)?,
            mra_workspace: part(&root, "mraWorkspace")?,
            mra,
            tools: part(&root, "tools")?.unwrap_or_default(),
            queue,
            history_turns: part(&root, "historyTurns")?,
            presence: section(&root, "presence")?.unwrap_or_default(),
            health: section(&root, "health")?.unwrap_or_default(),
        };
        Ok((config, warnings))
    }
}

/// One key, if it is there.
fn part<T: serde::de::DeserializeOwned>(root: &Map<String, Value>, key: &str) -> Result<Option<T>, String> {
    match root.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::deserialize(value).map(Some).map_err(|error| format!("`{key}`: {error}")),
    }
}

/// The same for an object, which serde would also read from a list.
fn section<T: serde::de::DeserializeOwned>(root: &Map<String, Value>, key: &str) -> Result<Option<T>, String> {
    match root.get(key) {
        None | Some(Value::Null | Value::Object(_)) => part(root, key),
        Some(other) => Err(format!("`{key}` is {}, not an object", json::kind(other))),
    }
}

/// A list that access depends on, each once: half of it is worse than none.
fn users(root: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let items = match root.get(key) {
        None | Some(Value::Null) => return Ok(vec![]),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(format!("`{key}` is {}, not a list of user ids", json::kind(other))),
    };
    let user = |(index, item): (usize, &Value)| match item {
        Value::String(user) => Ok(user.clone()),
        other => Err(format!("`{key}[{index}]` is {}, not a user id", json::kind(other))),
    };
    let mut users: Vec<String> = vec![];
    for user in items.iter().enumerate().map(user) {
        let user = user?;
        if !users.iter().any(|other| other.trim() == user.trim()) {
            users.push(user);
        }
    }
    Ok(users)
}

fn slack_tokens(root: &Map<String, Value>) -> Result<SlackTokens, String> {
    let slack = match root.get("slack") {
        None | Some(Value::Null) => return Ok(SlackTokens::default()),
        Some(Value::Object(slack)) => slack,
        Some(other) => return Err(format!("`slack` is {}, not an object", json::kind(other))),
    };
    let token = |key: &str| Secret::read(&format!("slack.{key}"), slack.get(key));
    Ok(SlackTokens { app_token: token("appToken")?, bot_token: token("botToken")? })
}

/// `defaultIngest`; an empty one is none.
fn ingest(root: &Map<String, Value>) -> Result<Option<Ingest>, String> {
    let text: Option<String> = part(root, "defaultIngest")?;
    text.filter(|text| !text.trim().is_empty())
        .map(|text| text.parse().map_err(|error: UnknownIngest| error.to_string()))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_pmk_is_taken_as_it_is() {
        let (config, warnings) = Config::parse(
            r#"{"version":1,"admins":["U1"],"defaultIngest":"mra:--all","mraWorkspace":"/w","blocklist":["U9"],"surprise":1,
                "audience":{"default":"biz"},"escalation":{"default":["U2"]},"github":{},"slack":{"appToken":"xapp-1"}}"#,
        )
        .expect("a configuration");
        assert_eq!(config.people.blocklist, ["U9"]);
        assert!(config.slack.app_token.is_some() && config.slack.bot_token.is_none());
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    /// Once, an admin who stood there twice was listed, and told everything, twice.
    #[test]
    fn who_stands_in_a_list_twice_is_in_it_once() {
        let text = r#"{"version":1,"admins":["U1"," U1 ","U2","U1"],"blocklist":["U9","U9"]}"#;
        let (config, _) = Config::parse(text).expect("a configuration");
        assert_eq!(
            (&config.people.admins[..], &config.people.blocklist[..]),
            (&["U1".into(), "U2".into()][..], &["U9".into()][..])
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, wanted) in [
            ("{}", "no `version`"),
            (r#"{"version":2}"#, "version 2"),
            (r#"{"version":1,"policy":{"file":"x"}}"#, "`policy`: unknown field `file`"),
            (r#"{"version":1,"limits":{"modelIdleSeconds":-1}}"#, "`limits.modelIdleSeconds`"),
            ("[]", "not a JSON object"),
            (r#"{"version":1,"blocklist":"U9"}"#, "`blocklist` is a text, not a list of user ids"),
            (r#"{"version":1,"blocklist":["U9",7]}"#, "`blocklist[1]` is a number, not a user id"),
            (r#"{"version":1,"admins":{"U1":true}}"#, "`admins` is an object, not a list of user ids"),
            (r#"{"version":1,"policy":[["a.wasm"]]}"#, "`policy` is a list, not an object"),
            (r#"{"version":1,"experiment":[]}"#, "`experiment` is a list, not an object"),
            (r#"{"version":1,"health":{"listen":"8086"}}"#, "`health`: `listen` is `8086`, not an address with a port"),
            (r#"{"version":1,"slack":["xapp-1"]}"#, "`slack` is a list, not an object"),
            (r#"{"version":1,"slack":{"botToken":["xoxb-1"]}}"#, "`slack.botToken` is a list, neither a text nor"),
            (r#"{"version":1,"apiKey":7}"#, "`apiKey` is a number, neither a text nor"),
            (r#"{"version":1,"slack":{"appToken":{"cmd":7}}}"#, "`slack.appToken` is an object, neither a text nor"),
        ] {
            let error = Config::parse(text).expect_err(text);
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn a_relative_policy_is_in_the_home_wherever_the_program_is_started() {
        let home = tempfile::tempdir().expect("a folder");
        let file = r#"{"version":1,"policy":{"files":["mine/a.wasm","/etc/b.wasm"]}}"#;
        std::fs::write(home.path().join("gateway.json"), file).expect("a file");
        let (config, _) = Config::load(home.path()).expect("a configuration");
        assert_eq!(config.policy.files, [home.path().join("mine/a.wasm"), "/etc/b.wasm".into()]);
    }

    #[test]
    fn a_secret_is_never_printed() {
        let (config, _) = Config::parse(r#"{"version":1,"apiKey":"sk-secret"}"#).expect("a configuration");
        assert!(!format!("{config:?}").contains("sk-secret"));
    }

    #[test]
    fn every_key_has_its_row_in_the_reference() {
        let page = include_str!("../../../docs/settings.md");
        let named = |key: &&str| page.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{key}`")));
        let missing: Vec<_> = PMK_KEYS.iter().filter(|key| !named(key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let (_, rest) = page.split_once("```json\n").expect("an example");
        let (example, _) = rest.split_once("```").expect("the end of the example");
        let (_, warnings) = Config::parse(example).expect("the example");
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}
