//! Programs that the gateway starts, simulated by a script: `mra` and `claude`.
//!
//! Both are called as `PROGRAM --script FILE ARGUMENTS…`. Every call first appends its input to `FILE.calls` ([`Call`],
//! one JSON object per line), then executes its part of the script. Parts are separated by `---`; the first call
//! executes the first part, and so on; calls beyond the last part repeat it.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::{Deserialize, Serialize};

pub mod claude;
mod script;

pub use script::Step;

/// The input of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Without the program and `--script FILE`.
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub stdin: String,
}

/// The recorded calls of a script, oldest first; empty before the first call.
///
/// # Errors
/// If the file exists but cannot be read.
pub fn calls(script: &Path) -> io::Result<Vec<Call>> {
    match fs::read_to_string(calls_file(script)) {
        Ok(text) => text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Executes a script; `step` parses a line of it, and `refuse` says what is wrong with a call.
pub fn main(step: fn(&str) -> Result<Vec<Step>, String>, refuse: fn(&Call) -> Option<String>) -> ExitCode {
    match play(step, refuse) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("stand-in: {error}");
            ExitCode::from(64)
        }
    }
}

fn play(step: fn(&str) -> Result<Vec<Step>, String>, refuse: fn(&Call) -> Option<String>) -> Result<u8, String> {
    let mut arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    if arguments.next().as_deref() != Some("--script") {
        return Err("the first argument must be `--script`".to_owned());
    }
    let script = PathBuf::from(arguments.next().ok_or("`--script` needs a file")?);
    let named = |error: io::Error| format!("{}: {error}", script.display());
    let text = fs::read_to_string(&script).map_err(named)?;
    let (call, earlier) = record(&script, arguments.collect()).map_err(named)?;
    if let Some(why) = refuse(&call) {
        return Err(why);
    }
    let parts: Vec<&str> = text.split("\n---\n").collect();
    let steps: Vec<Step> = parts[earlier.min(parts.len() - 1)]
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(step)
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    script::run(&script, &steps)
}

/// Records the call, and returns it with how many there were before.
fn record(script: &Path, arguments: Vec<String>) -> io::Result<(Call, usize)> {
    let mut stdin = Vec::new();
    io::stdin().read_to_end(&mut stdin)?;
    let call = Call {
        arguments,
        environment: std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect(),
        directory: std::env::current_dir()?,
        stdin: String::from_utf8_lossy(&stdin).into_owned(),
    };
    let mut file = OpenOptions::new().create(true).append(true).open(calls_file(script))?;
    // Concurrent calls must each have their own line and number.
    file.lock()?;
    let earlier = calls(script)?.len();
    file.write_all(format!("{}\n", serde_json::to_string(&call)?).as_bytes())?;
    Ok((call, earlier))
}

fn calls_file(script: &Path) -> PathBuf {
    let mut name = script.as_os_str().to_owned();
    name.push(".calls");
    name.into()
}
