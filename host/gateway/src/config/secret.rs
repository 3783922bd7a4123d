//! The secrets of gateway.json: written out, or with their source. A secret is only fetched when it is needed.

use std::{
    ffi::OsStr,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use pmk_system::{
    child::supervisor,
    error::{Failure, OrHint},
    files, json,
};
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

/// How long a secret's command may run before a warning says what the start is waiting for.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// Names the folder in which systemd has put the credentials of a unit.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// A secret, and its key in gateway.json.
#[derive(Clone, Debug)]
pub struct Secret {
    key: String,
    source: Source,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Source {
    Literal(SecretString),
    Env(OfEnvironment),
    Command(OfCommand),
    File(OfFile),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfEnvironment {
    env: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfCommand {
    cmd: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfFile {
    file: PathBuf,
}

impl Source {
    /// Whether the name of its source is empty.
    fn is_empty(&self) -> bool {
        match self {
            Source::Literal(_) => false,
            Source::Env(OfEnvironment { env: name }) | Source::Command(OfCommand { cmd: name }) => {
                name.trim().is_empty()
            }
            Source::File(OfFile { file }) => file.as_os_str().is_empty(),
        }
    }
}

impl Secret {
    /// Reads the value of a key; an empty text is none. The error never contains the value: it may be part of a secret.
    pub(super) fn read(key: &str, value: Option<&Value>) -> Result<Option<Secret>, String> {
        let value = match value {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
            Some(value) => value,
        };
        let source = match value {
            Value::String(_) | Value::Object(_) => Source::deserialize(value).ok(),
            // A list would be read as the fields of an object, one after the other.
            _ => None,
        };
        let source = source.ok_or_else(|| {
            let kind = json::kind(value);
            format!(r#"`{key}` is {kind}, not a string, {{"env":"NAME"}}, {{"file":"PATH"}} or {{"cmd":"COMMAND"}}"#)
        })?;
        match &source {
            source if source.is_empty() => Err(format!("`{key}` names its source with an empty string")),
            Source::File(OfFile { file }) if !file.is_absolute() && !is_credential(file) => {
                Err(format!("`{key}.file` is `{}`, neither a full path nor the name of a credential", file.display()))
            }
            _ => Ok(Some(Secret { key: key.to_owned(), source })),
        }
    }

    /// Fetches the secret.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read or is empty, or the command fails or prints nothing.
    pub fn resolve(&self) -> Result<SecretString, Failure> {
        self.resolve_within(None)
    }

    /// As [`resolve`](Secret::resolve); a command is ended after this time.
    ///
    /// # Errors
    /// The same, or the command has not ended by then.
    pub fn resolve_within(&self, limit: Option<Duration>) -> Result<SecretString, Failure> {
        match &self.source {
            Source::Literal(secret) => Ok(secret.clone()),
            Source::Env(OfEnvironment { env }) => self.of_environment(env),
            Source::Command(OfCommand { cmd }) => self.of_command(cmd, limit),
            Source::File(OfFile { file }) => self.of_file(file),
        }
    }

    /// Returns the secret, if it is written out.
    pub fn literal(&self) -> Option<&SecretString> {
        match &self.source {
            Source::Literal(secret) => Some(secret),
            Source::Env(_) | Source::Command(_) | Source::File(_) => None,
        }
    }

    /// Returns the name of the variable, if the secret is in one.
    pub fn variable(&self) -> Option<&str> {
        match &self.source {
            Source::Env(OfEnvironment { env }) => Some(env),
            Source::Literal(_) | Source::Command(_) | Source::File(_) => None,
        }
    }

    /// Returns the path of the file, if the secret is in one.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.source {
            Source::File(OfFile { file }) => Some(match std::env::var_os(CREDENTIALS) {
                Some(folder) => Path::new(&folder).join(file),
                None => file.clone(),
            }),
            Source::Literal(_) | Source::Env(_) | Source::Command(_) => None,
        }
    }

    /// Returns the name of the credential that a service manager will pass, if this process was not passed any.
    pub fn awaited_credential(&self) -> Option<&str> {
        match &self.source {
            Source::File(OfFile { file }) if is_credential(file) && std::env::var_os(CREDENTIALS).is_none() => {
                file.to_str()
            }
            _ => None,
        }
    }

    fn of_environment(&self, name: &str) -> Result<SecretString, Failure> {
        let set = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        set.map(SecretString::from).ok_or_else(|| {
            Failure::new(format!("`{}` in gateway.json names the variable `{name}`, which is not set", self.key))
                .hint("set it in the environment that the gateway is started in")
        })
    }

    /// Reads the secret from a file. A relative path names a credential that the service manager passes.
    fn of_file(&self, file: &Path) -> Result<SecretString, Failure> {
        let key = &self.key;
        let path = match std::env::var_os(CREDENTIALS) {
            Some(folder) => Path::new(&folder).join(file),
            None if is_credential(file) => {
                let file = file.display();
                return Err(Failure::new(format!(
                    "`{key}.file` in gateway.json names the credential `{file}`, but no service manager passed any credentials"
                ))
                .hint("systemd passes it to the service alone: start that with `systemctl`, or name another source"));
            }
            None => file.to_owned(),
        };
        let shown = path.display();
        let text = files::read_text(&path)
            .map_err(|error| format!("`{key}.file` in gateway.json: cannot read `{shown}`: {error}"))
            .or_hint("check that the file exists and that the gateway's account can read it")?;
        match text.trim() {
            "" => Err(Failure::new(format!("`{key}.file` in gateway.json: `{shown}` is empty"))
                .hint("the file must contain the secret, and nothing else")),
            text => Ok(SecretString::from(text.to_owned())),
        }
    }

    fn of_command(&self, command: &str, limit: Option<Duration>) -> Result<SecretString, Failure> {
        let key = &self.key;
        let hint = "run it by hand: it must print the secret, and nothing else, on standard output";
        let output = match self.output_of(command, limit) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(Failure::new(format!("`{key}.cmd` in gateway.json did not end in time")).hint(hint));
            }
            output => output.or_hint(format!("`{key}.cmd` in gateway.json is run by `sh -c`"))?,
        };
        if !output.status.success() {
            let status = output.status;
            return Err(Failure::new(format!("`{key}.cmd` in gateway.json failed with {status}")).hint(hint));
        }
        let text = String::from_utf8(output.stdout).map_err(|_| {
            Failure::new(format!("`{key}.cmd` in gateway.json printed something that is not text")).hint(hint)
        })?;
        match text.trim() {
            "" => Err(Failure::new(format!("`{key}.cmd` in gateway.json printed nothing")).hint(hint)),
            text => Ok(SecretString::from(text.to_owned())),
        }
    }

    /// Runs the command to its end, or to the limit. It may take long or prompt somebody. The command is never shown: it may
    /// contain a secret.
    fn output_of(&self, command: &str, limit: Option<Duration>) -> io::Result<Output> {
        let mut shell = supervisor::command(OsStr::new("sh"));
        // A process group of its own lets its supervisor end it as a whole.
        shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::inherit()).process_group(0);
        let child = shell.stdout(Stdio::piped()).spawn()?;
        let group = Pid::from_child(&child);
        let (sender, ended) = mpsc::channel();
        // After the limit, nobody receives it: a process that left the group may keep the pipe open for ever.
        thread::spawn(move || drop(sender.send(child.wait_with_output())));
        let told_after = limit.map_or(TOLD_AFTER, |limit| limit.min(TOLD_AFTER));
        let output = ended.recv_timeout(told_after).or_else(|_| {
            tracing::warn!("waiting for the command in `{}.cmd` of gateway.json", self.key);
            match limit {
                Some(limit) => ended.recv_timeout(limit.saturating_sub(told_after)),
                None => ended.recv().map_err(RecvTimeoutError::from),
            }
        });
        output.unwrap_or_else(|_| {
            // An error means that there is nothing left to kill.
            let _ = kill_process_group(group, Signal::KILL);
            Err(io::ErrorKind::TimedOut.into())
        })
    }
}

/// Whether it is the name of a credential, which has no folder.
pub fn is_credential(file: &Path) -> bool {
    file.file_name() == Some(file.as_os_str())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::json;

    use super::*;

    fn resolve(value: Value) -> Result<String, String> {
        let secret = Secret::read("slack.botToken", Some(&value))?.ok_or("none")?;
        secret.resolve().map(|secret| secret.expose_secret().to_owned()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_secret_is_written_out_or_got() {
        assert_eq!(resolve(json!("xoxb-1")), Ok("xoxb-1".into()));
        assert_eq!(resolve(json!({"cmd": "printf ' xoxb-2\\n'"})), Ok("xoxb-2".into()));
        let path = std::env::var("PATH").expect("a path");
        assert_eq!(resolve(json!({"env": "PATH"})), Ok(path));
        assert_eq!(resolve(json!("  ")), Err("none".into()));
    }

    /// Regression: a running gateway waited for it for ever, and for every token after it.
    #[test]
    fn a_command_that_hung_was_waited_for_without_end() {
        let limit = Some(std::time::Duration::from_millis(100));
        let read = |value: Value| Secret::read("slack.botToken", Some(&value)).expect("a secret").expect("one");
        let late = read(json!({"cmd": "printf xoxb-1; sleep 600"})).resolve_within(limit).expect_err("it hangs");
        assert!(late.to_string().contains("did not end in time"), "{late}");
        let got = read(json!({"cmd": "printf xoxb-1"})).resolve_within(limit.map(|limit| limit * 100));
        assert_eq!(got.expect("a token").expose_secret(), "xoxb-1");
    }

    /// Regression: the limit did not help against what had left the group and kept standard output open.
    #[test]
    fn what_a_command_had_started_elsewhere_was_waited_for_without_end() {
        let folder = tempfile::tempdir().expect("a folder");
        // It goes on for as long as the folder is there.
        let loops = format!("while [ -e {} ]; do sleep 0.1; done", folder.path().display());
        let command = format!("setsid sh -c '{loops}' 2>/dev/null");
        let secret = Secret::read("slack.botToken", Some(&json!({"cmd": command}))).expect("a secret").expect("one");
        let late = secret.resolve_within(Some(Duration::from_secs(1))).expect_err("it hangs");
        assert!(late.to_string().contains("did not end in time"), "{late}");
    }

    #[test]
    fn what_gives_no_secret_is_named_and_nothing_of_it_is_shown() {
        for (value, wanted) in [
            (json!({"env": "PMK_NO_SUCH_VARIABLE"}), "names the variable `PMK_NO_SUCH_VARIABLE`, which is not set"),
            (json!({"cmd": "exit 3"}), "failed with exit status: 3"),
            (json!({"cmd": "true"}), "printed nothing"),
            (json!({"cmd": "printf '\\377'"}), "not text"),
            (json!({"env": "A", "cmd": "b"}), "not a string, {"),
            (json!({"file": "/no/such/file"}), "cannot read `/no/such/file`"),
            (json!({"file": "bot-token"}), "names the credential `bot-token`, but no service manager"),
            (
                json!({"file": "secrets/bot-token"}),
                "is `secrets/bot-token`, neither a full path nor the name of a credential",
            ),
            (json!(["xoxb-secret"]), "is a list, not a string"),
            (json!({"env": ""}), "with an empty string"),
            (json!({"cmd": " "}), "with an empty string"),
            (json!({"file": ""}), "with an empty string"),
        ] {
            let error = resolve(value.clone()).expect_err("no secret");
            assert!(error.contains("`slack.botToken") && error.contains(wanted), "{value}: {error}");
            assert!(!error.contains("xoxb-secret"), "{error}");
        }
    }
}
