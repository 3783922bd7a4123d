//! `gateway.json`: the configuration that the operator writes. The format is that of pmk (version 1), so an existing
//! file works unchanged; the keys that only this gateway has are `model`, `baseUrl`, `policy`, `experiment`, `limits`,
//! `hourly`, `language`, `mra`, `tools`, `store`, `storePassword`, `queue`, `historyTurns`, `presence`, `health` and
//! `ledger`.

use std::{
    io,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use pmk_core::Language;
use pmk_knowledge::{Ingest, UnknownIngest};
use pmk_models::{ModelSpec, Provider};
use pmk_system::{error::Failure, files, home, json, stamp::Stamp};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::{access::people::People, embedded, language};

mod document;
mod edit;
mod effective;
pub(crate) mod experiment;
mod followed;
mod keys;
mod people;
mod policy;
mod secret;
mod sections;
mod shape;
mod slack;
mod watched;

pub use effective::{Effective, Origin, Shown, effective};
pub use experiment::{ArmConfig, ArmPolicy, ExperimentConfig};
pub use followed::{EXPERIMENT, NotWritten, SharedKeys, followed, write_followed};
pub use keys::{MOST_DAYS, SQLITE, schema};
pub use policy::{PolicyConfig, PolicyLimits};
pub use secret::{Secret, is_credential};
pub use sections::{
    Feedback, HealthConfig, HourlyConfig, LedgerConfig, LimitsConfig, MraConfig, PresenceConfig, QueueConfig,
    QueueMode, SessionsConfig, ToolStyle,
};
pub use shape::Problem;
pub(crate) use shape::did_you_mean;
pub use slack::SlackSettings;
pub use watched::{Trial, WatchedConfig};

pub use document::{Json, Object, WrongShape};
pub use edit::{EditError, check_kept, edit, note_read, note_start, was_read};

/// The supported version of the format.
const VERSION: u64 = 1;

/// The configuration, every field with its default.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Whether the file exists.
    pub exists: bool,
    /// The stamp of the file when it was read; a different one later means that the file has changed.
    pub stamp: Option<Stamp>,
    pub people: People,
    /// `PROVIDER[:NAME]`.
    pub model: Option<String>,
    pub policy: PolicyConfig,
    /// Policies that are compared on live traffic.
    pub experiment: Option<ExperimentConfig>,
    pub limits: LimitsConfig,
    /// How many questions to others are allowed per hour.
    pub hourly: HourlyConfig,
    pub slack: SlackTokens,
    /// Whether the file has a non-empty `slack` section.
    pub names_slack: bool,
    /// How the bot behaves in Slack.
    pub slack_settings: SlackSettings,
    /// The language of the gateway's own texts, for people and for the model.
    pub language: Language,
    /// The documents that open a session.
    pub default_ingest: Option<Ingest>,
    /// The folder of the repositories; `PMK_MRA_WORKSPACE` takes precedence over the file.
    pub mra_workspace: Option<PathBuf>,
    pub mra: MraConfig,
    /// How the model asks for `mra` and for people.
    pub tools: ToolStyle,
    /// What happens to messages that arrive while one is being answered.
    pub queue: QueueConfig,
    /// The largest number of turns of a direct message that stay in the window.
    pub history_turns: Option<NonZeroU32>,
    /// What people are told when the gateway is away.
    pub presence: PresenceConfig,
    /// Where health probes are answered.
    pub health: HealthConfig,
    /// How long the ledger is kept.
    pub ledger: LedgerConfig,
    /// How long conversations are kept.
    pub sessions: SessionsConfig,
    /// The key of the API of [`whose`](Config::whose) provider, if the file has one.
    pub api_key: Option<Secret>,
    /// The address of that API, if it is not the default one.
    pub base_url: Option<String>,
}

/// Slack's tokens, each written out or with its source.
#[derive(Clone, Debug, Default)]
pub struct SlackTokens {
    pub app_token: Option<Secret>,
    pub bot_token: Option<Secret>,
}

impl Config {
    /// The provider that `apiKey` and `baseUrl` belong to: another provider, named on the command line, uses neither.
    pub fn whose(&self) -> Provider {
        whose(self.model.as_deref())
    }

    /// Whether `mra` is to be asked: if there is a workspace, or if the operator has configured a command.
    pub fn uses_mra(&self) -> bool {
        self.mra_workspace.is_some() || self.mra.names_a_command()
    }

    /// Whether this gateway has been set up to answer people, by hand or with pmk. If so, an absent `model` means
    /// `claude-cli` (specification 000). A file that contains only what a command has written there does not count.
    pub fn is_set_up(&self) -> bool {
        self.api_key.is_some() || self.slack.app_token.is_some() || self.slack.bot_token.is_some()
    }

    /// Reads the file of a home; without one, everything has its default. Problems that are not serious are returned as
    /// warnings.
    ///
    /// # Errors
    /// The file cannot be read, is not JSON, is of another version, or something in it has the wrong shape.
    pub fn load(home: &Path) -> Result<(Config, Vec<String>), Failure> {
        let (config, problems) = Config::examine(home)?;
        match config {
            Some(config) => {
                Ok((config, problems.into_iter().map(|problem| format!("gateway.json: {}", problem.what)).collect()))
            }
            None => Err(senseless(home, &refusal(&problems))),
        }
    }

    /// Reads the file for a command, unless it is [lost](check_kept) while a running gateway goes by it.
    ///
    /// # Errors
    /// As [`load`](Config::load), and that it is lost.
    pub fn load_for_command(home: &Path) -> Result<(Config, Vec<String>), Failure> {
        check_kept(home)?;
        Config::load(home)
    }

    /// Reads the file in a running gateway, which goes by it from then on, even if it is lost.
    ///
    /// # Errors
    /// As [`load`](Config::load), and that it is lost.
    pub fn load_in_gateway(home: &Path) -> Result<(Config, Vec<String>), Failure> {
        let loaded = Config::load(home)?;
        if loaded.0.exists {
            if let Err(error) = note_read(home) {
                tracing::warn!("if gateway.json is deleted, the next change begins a new one: {error}");
            }
        } else {
            // It may be there again by now: what counts is that nothing was read.
            edit::refuse_lost(home).map_err(|error| Failure::new(&error).hint(error.hint()))?;
        }
        Ok(loaded)
    }

    /// Reads the file with all problems in it; there is no configuration if one of them is serious.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn examine(home: &Path) -> Result<(Option<Config>, Vec<Problem>), Failure> {
        let stamp = Stamp::of(&home::config_file(home));
        let Some(text) = text_of(home)? else {
            let language = language::of_home(home, &Map::new());
            return Ok((Some(Config { language, ..Config::default() }), vec![]));
        };
        let (config, problems) = Config::parse(&text, home);
        Ok((config.map(|config| Config { stamp, ..config.within(home) }), problems))
    }

    /// Resolves relative files of policies against the home.
    fn within(mut self, home: &Path) -> Config {
        for file in &mut self.policy.files {
            *file = embedded::within(home, file);
        }
        self.experiment = self.experiment.map(|experiment| experiment.within(home));
        self
    }

    /// Collects all problems before it refuses, so that whoever corrects the file sees all of them at once.
    fn parse(text: &str, home: &Path) -> (Option<Config>, Vec<Problem>) {
        let mut problems = vec![];
        let config = Config::read(text, home, &mut problems);
        let config = config.map_err(|what| problems.push(Problem { what, is_grave: true })).ok();
        (config.filter(|_| problems.iter().all(|problem| !problem.is_grave)), problems)
    }

    /// As [`parse`](Config::parse), with the problem that keeps the text from being used.
    fn usable(text: &str, home: &Path) -> Result<Config, String> {
        let (config, problems) = Config::parse(text, home);
        config.ok_or_else(|| refusal(&problems))
    }

    fn read(text: &str, home: &Path, problems: &mut Vec<Problem>) -> Result<Config, String> {
        let root = object(text)?;
        match root.get("version") {
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => return Err(format!("it has version {version}, this build expects {VERSION}")),
            None => return Err(format!("it has no `version`, this build expects {VERSION}")),
        }
        let root = Value::Object(root);
        let mut twice = vec![];
        if let Ok(root) = serde_json::from_str::<Object>(text) {
            root.twice("", &mut twice);
        }
        problems.extend(
            twice
                .into_iter()
                .map(|key| Problem { what: format!("duplicate key `{key}`; the last one counts"), is_grave: false }),
        );
        keys::file().look("", &root, problems);
        let Value::Object(root) = root else { return Ok(Config::default()) };
        let experiment = part::<ExperimentConfig>(&root, EXPERIMENT);
        if let Ok(Some(experiment)) = &experiment {
            problems.extend(experiment.contradictions());
        }
        if problems.iter().any(|problem| problem.is_grave) {
            return Ok(Config::default());
        }
        let mut warnings = vec![];
        let config = Config {
            exists: true,
            stamp: None,
            people: People {
                admins: users(&root, "admins")?,
                blocklist: users(&root, "blocklist")?,
                audience: people::audiences(&root, &mut warnings),
                escalation: people::pools(&root, &mut warnings),
            },
            model: part(&root, "model")?,
            policy: part(&root, "policy")?.unwrap_or_default(),
            experiment: experiment?,
            limits: part(&root, "limits")?.unwrap_or_default(),
            hourly: part(&root, "hourly")?.unwrap_or_default(),
            slack: slack_tokens(&root)?,
            names_slack: root.get("slack").and_then(Value::as_object).is_some_and(|slack| !slack.is_empty()),
            slack_settings: part(&root, "slack")?.unwrap_or_default(),
            api_key: Secret::read("apiKey", root.get("apiKey"))?,
            base_url: part(&root, "baseUrl")?,
            language: part(&root, "language")?.unwrap_or_else(|| language::of_home(home, &root)),
            default_ingest: ingest(&root, home, &mut warnings)?,
            mra_workspace: part(&root, "mraWorkspace")?
                .filter(|folder: &PathBuf| !folder.as_os_str().is_empty())
                .map(|folder| home.join(folder)),
            mra: part(&root, "mra")?.unwrap_or_default(),
            tools: part(&root, "tools")?.unwrap_or_default(),
            queue: part(&root, "queue")?.unwrap_or_default(),
            history_turns: part(&root, "historyTurns")?,
            presence: part(&root, "presence")?.unwrap_or_default(),
            health: part(&root, "health")?.unwrap_or_default(),
            ledger: part(&root, "ledger")?.unwrap_or_default(),
            sessions: part(&root, "sessions")?.unwrap_or_default(),
        };
        problems.extend(warnings.into_iter().map(|what| Problem { what, is_grave: false }));
        Ok(config)
    }
}

/// The provider that the key and the address in a file with this model belong to.
pub fn whose(model: Option<&str>) -> Provider {
    match model.and_then(|model| model.parse::<ModelSpec>().ok()) {
        Some(ModelSpec { provider: Provider::OpenAi, .. }) => Provider::OpenAi,
        _ => Provider::AnthropicApi,
    }
}

/// Parses an experiment, from the file or given by itself.
///
/// # Errors
/// What is invalid in it.
pub fn experiment_of(written: &Value) -> Result<ExperimentConfig, String> {
    let mut problems = vec![];
    keys::experiment().look(EXPERIMENT, written, &mut problems);
    let config = ExperimentConfig::deserialize(written);
    if let Ok(config) = &config {
        problems.extend(config.contradictions());
    }
    if problems.iter().any(|problem| problem.is_grave) {
        return Err(refusal(&problems));
    }
    config.map_err(|error| format!("`{EXPERIMENT}`: {error}"))
}

/// The store settings of the file.
#[derive(Clone, Debug, Default)]
pub struct StoreSetting {
    pub address: Option<String>,
    pub password: Option<Secret>,
}

/// Reads the store settings of a home, regardless of problems elsewhere in the file.
///
/// # Errors
/// The file cannot be read, is not JSON, or its store settings are invalid.
pub fn store(home: &Path) -> Result<StoreSetting, Failure> {
    // If the home is not a folder, opening the store in it reports that.
    if !home.is_dir() {
        return Ok(StoreSetting::default());
    }
    let Some(text) = text_of(home)? else { return Ok(StoreSetting::default()) };
    let said = || -> Result<StoreSetting, String> {
        let root = object(&text)?;
        let password = Secret::read("storePassword", root.get("storePassword"))?;
        Ok(StoreSetting { address: part(&root, "store")?, password })
    };
    said().map_err(|what| senseless(home, &what))
}

/// Returns the language of a home, regardless of problems elsewhere in the file.
///
/// # Errors
/// The file cannot be read, is not JSON, or its `language` is invalid.
pub fn language(home: &Path) -> Result<Language, Failure> {
    let Some(text) = text_of(home)? else { return Ok(language::of_home(home, &Map::new())) };
    let said = || -> Result<Language, String> {
        let root = object(&text)?;
        Ok(part(&root, "language")?.unwrap_or_else(|| language::of_home(home, &root)))
    };
    said().map_err(|what| senseless(home, &what))
}

/// The failure for a file that cannot be used.
fn senseless(home: &Path, what: &str) -> Failure {
    let check = home::command(home, "config check");
    Failure::new(format!("`{}`: {what}", home::config_file(home).display()))
        .hint(format!("correct the file, or choose another home with `--home DIR`; `{check}` lists all problems"))
}

/// Parses the file as a JSON object.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    if text.starts_with('\u{feff}') {
        return Err("it begins with a byte-order mark, which JSON must not have: save it as UTF-8 without one".into());
    }
    match serde_json::from_str(text).map_err(|error| no_json(text, &error))? {
        Value::Object(root) => Ok(root),
        other => Err(format!("it is {}, not an object", json::kind(&other))),
    }
}

/// Says why the text is no JSON. The parser says of a comment only what should be in its place.
fn no_json(text: &str, error: &serde_json::Error) -> String {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let rest = line.get(error.column().saturating_sub(1)..).unwrap_or_default();
    match ["//", "/*", "#"].into_iter().any(|begin| rest.starts_with(begin)) {
        true => format!("not a JSON object: line {} has a comment, which JSON must not have", error.line()),
        false => format!("not a JSON object: {error}"),
    }
}

/// The hint if something other than a file is in its place.
const NO_FILE: &str = "put the file in its place, or remove what is there: without the file, defaults are used";

/// Whether the error means that something other than a file is in its place.
fn is_no_file(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory | io::ErrorKind::FileTooLarge)
}

/// Reads the text of the file, if it exists.
fn text_of(home: &Path) -> Result<Option<String>, Failure> {
    // Checked whenever the file is read: a running gateway also follows its changes.
    home::check_trusted(home)?;
    let path = home::config_file(home);
    match files::read_text(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let hint = match error.kind() {
                io::ErrorKind::InvalidData => "save it as UTF-8",
                kind if is_no_file(kind) => NO_FILE,
                _ => "check that `--home` is a folder that you can read",
            };
            Err(Failure::new(format!("cannot read `{}`: {error}", path.display())).hint(hint))
        }
    }
}

/// The first serious problem, and the number of further ones.
fn refusal(problems: &[Problem]) -> String {
    let mut grave = problems.iter().filter(|problem| problem.is_grave);
    let first = grave.next().map_or("it cannot be read", |problem| &problem.what);
    match grave.count() {
        0 => first.to_owned(),
        more => format!("{first} (and {more} more)"),
    }
}

/// Reads one key, if it is present.
fn part<T: serde::de::DeserializeOwned>(root: &Map<String, Value>, key: &str) -> Result<Option<T>, String> {
    match root.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => T::deserialize(value).map(Some).map_err(|error| format!("`{key}`: {error}")),
    }
}

/// Reads a list that access depends on, without duplicates.
fn users(root: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let mut users: Vec<String> = vec![];
    for user in part::<Vec<String>>(root, key)?.unwrap_or_default() {
        if !users.iter().any(|other| other.trim() == user.trim()) {
            users.push(user);
        }
    }
    Ok(users)
}

fn slack_tokens(root: &Map<String, Value>) -> Result<SlackTokens, String> {
    let token = |key: &str| Secret::read(&format!("slack.{key}"), root.get("slack").and_then(|slack| slack.get(key)));
    Ok(SlackTokens { app_token: token("appToken")?, bot_token: token("botToken")? })
}

/// Reads `defaultIngest`; an empty string counts as none. A relative folder is in the home.
fn ingest(root: &Map<String, Value>, home: &Path, warnings: &mut Vec<String>) -> Result<Option<Ingest>, String> {
    let text: Option<String> = part(root, "defaultIngest")?;
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    Ok(Some(match text.parse().map_err(|error: UnknownIngest| error.to_string())? {
        Ingest::Folder(folder) => {
            let folder = home.join(folder);
            if !folder.is_dir() {
                warnings.push(format!("`defaultIngest` names a folder that does not exist: `{}`", folder.display()));
            }
            Ingest::Folder(folder)
        }
        Ingest::AllRepositories => Ingest::AllRepositories,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration and the messages of all problems.
    fn read(text: &str) -> (Config, Vec<String>) {
        let (config, problems) = Config::parse(text, Path::new(""));
        let told = problems.into_iter().map(|problem| problem.what).collect();
        (config.unwrap_or_else(|| panic!("{told:?}")), told)
    }

    fn refused(text: &str) -> Vec<String> {
        let (config, problems) = Config::parse(text, Path::new(""));
        assert!(config.is_none(), "{text}");
        problems.into_iter().filter(|problem| problem.is_grave).map(|problem| problem.what).collect()
    }

    #[test]
    fn a_file_of_pmk_is_taken_as_it_is() {
        let (config, warnings) = read(
            r#"{"version":1,"admins":["U1"],"defaultIngest":"mra:--all","mraWorkspace":"/w","blocklist":["U9"],"surprise":1,
                "audience":{"default":"biz"},"escalation":{"default":["U2"]},"github":{},
                "slack":{"appToken":"xapp-1","botUserId":"U0BOT","workspaceName":"Team"}}"#,
        );
        assert_eq!(config.people.blocklist, ["U9"]);
        assert!(config.slack.app_token.is_some() && config.slack.bot_token.is_none());
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    /// Regression: an admin listed twice was shown and notified twice.
    #[test]
    fn who_stands_in_a_list_twice_is_in_it_once() {
        let text = r#"{"version":1,"admins":["U1"," U1 ","U2","U1"],"blocklist":["U9","U9"]}"#;
        let (config, _) = read(text);
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
            ("[]", "it is a list, not an object"),
            (r#"{"version":1,"policy":{"file":"x"}}"#, "unknown key `policy.file`; did you mean `files`?"),
            (r#"{"version":1,"queue":{"zzz":1}}"#, "unknown key `queue.zzz`; there are `mode`, `debounceMs`, `most`"),
            (r#"{"version":1,"limits":{"modelIdleSeconds":-1}}"#, "`limits.modelIdleSeconds` is -1, not a number of"),
            (r#"{"version":1,"limits":{"modelIdleSeconds":0}}"#, "is 0, not a number of seconds above 0"),
            (
                r#"{"version":1,"limits":{"modelIdleSeconds":"60"}}"#,
                "`limits.modelIdleSeconds` is a string, not a number",
            ),
            (r#"{"version":1,"policy":{"limits":{"memory":1}}}"#, "`policy.limits.memory`; did you mean `memoryMiB`?"),
            (
                r#"{"version":1,"policy":{"limits":{"memoryMiB":0}}}"#,
                "`policy.limits.memoryMiB` is 0, not a whole number",
            ),
            // The built-in policy alone needs more than that.
            (
                r#"{"version":1,"policy":{"limits":{"memoryMiB":1}}}"#,
                "`policy.limits.memoryMiB` is 1, not a whole number from 2 to 4096",
            ),
            (r#"{"version":1,"policy":{"allow":["abc"]}}"#, "`policy.allow[0]` is `abc`, not a sha256"),
            (r#"{"version":1,"queue":{"most":101}}"#, "`queue.most` is 101, not a whole number from 1 to 100"),
            (
                r#"{"version":1,"queue":{"mode":"colect"}}"#,
                "`sequential`, `collect` or `steer`; did you mean `collect`?",
            ),
            (r#"{"version":1,"mra":{"command":[" "]}}"#, "`mra.command` does not name a program"),
            (r#"{"version":1,"historyTurns":0}"#, "`historyTurns` is 0, not a whole number from 1"),
            (r#"{"version":1,"language":"fr"}"#, "`language` is `fr`, not `en` or `zh-TW`"),
            (r#"{"version":1,"defaultIngest":"mra"}"#, "`defaultIngest` is `mra`, not `mra:--all` or `dir:PATH`"),
            (r#"{"version":1,"blocklist":"U9"}"#, "`blocklist` is a string, not a list of user ids"),
            (r#"{"version":1,"blocklist":["U9",7]}"#, "`blocklist[1]` is a number, not a user id"),
            (r#"{"version":1,"admins":{"U1":true}}"#, "`admins` is an object, not a list of user ids"),
            (r#"{"version":1,"policy":[["a.wasm"]]}"#, "`policy` is a list, not an object"),
            (r#"{"version":1,"experiment":[]}"#, "`experiment` is a list, not an object"),
            (r#"{"version":1,"health":{"listen":"8086"}}"#, "`health.listen` is `8086`, not an address with a port"),
            (r#"{"version":1,"slack":{"feedback":"yes"}}"#, "`slack.feedback` is `yes`, not `auto`, `on` or `off`"),
            (r#"{"version":1,"slack":["xapp-1"]}"#, "`slack` is a list, not an object"),
            (r#"{"version":1,"slack":{"botToken":["xoxb-1"]}}"#, "`slack.botToken` is a list, not a string, {"),
            (r#"{"version":1,"slack":{"replyIn":"thraed"}}"#, "`channel` or `thread`; did you mean `thread`?"),
            (
                r#"{"version":1,"slack":{"followThreads":"yes"}}"#,
                "`slack.followThreads` is a string, not true or false",
            ),
            (r#"{"version":1,"slack":{"suggestedPrompts":[{"title":"a"}]}}"#, "Prompts[0].message` is missing"),
            (r#"{"version":1,"apiKey":7}"#, "`apiKey` is a number, not a string, {"),
            (r#"{"version":1,"slack":{"appToken":{"cmd":7}}}"#, "`slack.appToken` is an object, not a string, {"),
        ] {
            let refused = refused(text);
            assert!(matches!(&refused[..], [only] if only.contains(wanted)), "{refused:?}");
        }
    }

    #[test]
    fn more_prompts_than_slack_shows_are_refused() {
        let prompts = |count| vec![serde_json::json!({"title": "a", "message": "b"}); count];
        let file = |count| serde_json::json!({"version": 1, "slack": {"suggestedPrompts": prompts(count)}}).to_string();
        assert_eq!(read(&file(4)).0.slack_settings.suggested_prompts.len(), 4);
        assert_eq!(refused(&file(5)), ["`slack.suggestedPrompts` has 5, which is more than 4"]);
    }

    #[test]
    fn whoever_corrects_a_file_learns_of_everything_at_once() {
        let text = r#"{"version":1,"queue":{"most":0},"limits":{"x":1},"langauge":"en","slack":{"appTokn":"xapp-1"},
                       "audience":{"defualt":"pm"}}"#;
        let (config, problems) = Config::parse(text, Path::new(""));
        assert!(config.is_none());
        assert_eq!(
            refusal(&problems),
            "unknown key `limits.x`; there are `modelIdleSeconds`, `modelTotalSeconds`, `slackCallSeconds`, `progressSeconds` (and 1 more)"
        );
        let (_, told) = read(&text.replace(r#""queue":{"most":0},"limits":{"x":1},"#, ""));
        assert_eq!(
            told,
            [
                "unknown key `audience.defualt` is ignored; did you mean `default`?",
                "unknown key `langauge` is ignored; did you mean `language`?",
                "unknown key `slack.appTokn` is ignored; did you mean `appToken`?",
            ]
        );
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
        let (config, _) = read(r#"{"version":1,"apiKey":"sk-secret"}"#);
        assert!(!format!("{config:?}").contains("sk-secret"));
    }

    #[test]
    fn every_key_has_its_row_in_the_reference() {
        let page = include_str!("../../../docs/settings.md");
        let named = |key: &str| page.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{key}`")));
        let missing: Vec<_> = keys::keys().into_iter().map(|key| key.name).filter(|key| !named(key)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let (_, rest) = page.split_once("```json\n").expect("an example");
        let (example, _) = rest.split_once("```").expect("the end of the example");
        let (_, warnings) = read(example);
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}
