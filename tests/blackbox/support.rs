//! Starts the built program and talks to it as its users do.

use std::{
    collections::HashMap,
    fs::Permissions,
    io::{BufRead, BufReader, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
};

use pmk_stand_ins::anthropic::{self, Anthropic};
pub use pmk_stand_ins::patience::{PATIENCE, until, until_async};
use serde_json::{Value, json};

/// The program under test: that of this build, or the one that the environment names. Cargo builds this one with every
/// feature that a test's own dependencies want, and the one that people run without.
pub fn program() -> PathBuf {
    std::env::var_os("PMK_TEST_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_pmk-host").into(), PathBuf::from)
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The checked-in component of that name.
pub fn component(name: &str) -> String {
    repository(&format!("plugins/{name}.wasm")).display().to_string()
}

/// A stand-in program, as gateway.json wants a command: it plays this script.
///
/// # Panics
/// It is not built: cargo builds the programs of another package only together with everything else.
pub fn stand_in(name: &str, script: &Path) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_pmk-host")).with_file_name(name);
    assert!(program.exists(), "`{}` is not there; run `cargo build --workspace` first", program.display());
    vec![program.display().to_string(), "--script".into(), script.display().to_string()]
}

/// Whether a process of that number is alive, and not only waits to be reaped.
pub fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// A home of its own. Compiled components are shared between tests, as they would be between starts.
pub struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Home {
        let home = Home::cold();
        // Beside the homes, and this user's alone: compiled code is taken from nowhere else.
        let user = home.path().metadata().expect("a folder").uid();
        let compiled = std::env::temp_dir().join(format!("pmk-host-tests-{user}"));
        std::fs::create_dir_all(&compiled).expect("the shared cache");
        std::fs::set_permissions(&compiled, Permissions::from_mode(0o700)).expect("the shared cache");
        // Only this: the rest of the cache is about the home that it is in.
        let cache = home.path().join("cache");
        std::fs::create_dir(&cache).expect("a folder");
        std::os::unix::fs::symlink(compiled, cache.join("components")).expect("the link to it");
        home
    }

    /// A home in which nothing was ever compiled.
    pub fn cold() -> Home {
        Home { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("a file in the home");
        path
    }

    /// A command of the program in this home, with nothing of the tester's own environment in it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path());
        command.arg("--home").arg(self.path()).args(arguments);
        if arguments.first() == Some(&"run") {
            // What people are told is in the words of the specification, unless a test's gateway.json says otherwise.
            command.env("LANG", "zh_TW.UTF-8");
        }
        command
    }

    /// `run` in the console, with a stand-in's model behind it.
    pub fn asking(&self, anthropic: &Anthropic, more: &[&str]) -> Command {
        let mut command = self.command(&[&["run", "--model", "anthropic-api:claude-haiku-4-5"], more].concat());
        command.env("ANTHROPIC_API_KEY", anthropic::KEY).env("ANTHROPIC_BASE_URL", anthropic.url());
        command
    }

    /// Runs a command to its end with this input.
    pub fn run(&self, arguments: &[&str], input: &str) -> Finished {
        finish(self.command(arguments), input)
    }

    /// The ledger of this home, all months together, without a last line that is just being written.
    pub fn ledger(&self) -> Vec<Value> {
        let Ok(files) = std::fs::read_dir(self.path().join("gateway")) else { return vec![] };
        let mut names: Vec<PathBuf> = files
            .map(|file| file.expect("readable").path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("events-")))
            .collect();
        names.sort();
        names
            .iter()
            .flat_map(|path| {
                let text = std::fs::read_to_string(path).expect("the ledger");
                let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
                whole.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Whether every message that was taken in is answered.
    pub fn is_all_answered(&self) -> bool {
        let store = rusqlite::Connection::open(self.path().join("gateway/pmk-host.db")).expect("the store");
        let waiting = "SELECT count(*) FROM inbox WHERE message IS NOT NULL";
        store.query_row(waiting, [], |row| row.get::<_, i64>(0)).expect("a number") == 0
    }

    /// Those events of the ledger that are of one type.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        self.ledger().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// Waits for so many events of that type.
    pub fn await_events(&self, kind: &str, count: usize) -> Vec<Value> {
        until(&format!("{count} × `{kind}`"), || {
            let events = self.events(kind);
            (events.len() >= count).then_some(events)
        })
    }
}

/// What a command left behind.
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Standard output as JSON lines.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// Standard output as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Fails unless the command worked.
    pub fn ok(self) -> Finished {
        assert!(self.status.success(), "{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// Runs a command to its end with this input. Where nobody says anything, nobody is answered in the words of the specification:
/// what is read is how it starts, or why it does not, in English.
pub fn finish(mut command: Command, input: &str) -> Finished {
    if input.is_empty() {
        command.env_remove("LANG");
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // Written beside reading, so that neither side waits for the other.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let Output { status, stdout, stderr } = child.wait_with_output().expect("the program ends");
    writer.join().expect("the input is written");
    Finished {
        status,
        stdout: String::from_utf8(stdout).expect("UTF-8"),
        stderr: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// One question as a line of input.
pub fn question(event_id: &str, text: &str) -> String {
    json!({"type": "message", "user": "U1", "channel": "D1", "thread_ts": null, "text": text, "event_id": event_id})
        .to_string()
}

/// What was replied, reply by reply.
pub fn replies(lines: &[Value]) -> Vec<&str> {
    of_type(lines, "reply").into_iter().filter_map(|reply| reply["text"].as_str()).collect()
}

/// How often each question was answered, with the same words each time.
pub fn answers(lines: &[Value]) -> HashMap<&str, usize> {
    let mut answers: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in of_type(lines, "reply") {
        let event = line["event_id"].as_str().expect("an event id");
        answers.entry(event).or_default().push(line["text"].as_str().expect("a text"));
    }
    for (event, texts) in &answers {
        assert!(texts.iter().all(|text| text == &texts[0]), "{event} was answered twice: {texts:?}");
    }
    answers.into_iter().map(|(event, texts)| (event, texts.len())).collect()
}

/// The lines of one type.
pub fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// A gateway that is running.
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Running {
    /// Starts one with a pipe on both ends.
    pub fn start(command: Command) -> Running {
        Running::telling(command, Stdio::inherit())
    }

    /// The same, with what it says beside its output going there.
    pub fn telling(mut command: Command, errors: impl Into<Stdio>) -> Running {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let lines = read_lines(child.stdout.take().expect("a pipe"));
        Running { child, stdin, lines }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line; false when the program is gone.
    pub fn say(&mut self, line: &str) -> bool {
        self.write(format!("{line}\n").as_bytes())
    }

    /// Writes bytes; false when the program is gone.
    pub fn write(&mut self, bytes: &[u8]) -> bool {
        let stdin = self.stdin.as_mut().expect("the input is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok()
    }

    /// The next line of output; none when the output has ended.
    pub fn next(&self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {PATIENCE:?}"),
        }
    }

    /// The next line of that type, the others are passed over.
    pub fn next_of(&self, kind: &str) -> Value {
        loop {
            let line = self.next().unwrap_or_else(|| panic!("the output ended before a `{kind}` line"));
            if line["type"] == kind {
                return line;
            }
        }
    }

    /// Ends the input and waits for the program to end by itself; all lines that were left.
    pub fn end(mut self) -> (ExitStatus, Vec<Value>) {
        self.stdin = None;
        let lines = std::iter::from_fn(|| self.next()).collect();
        (exit(&mut self.child), lines)
    }

    /// Waits for the program to end although its input does not; all lines that were left.
    pub fn until_it_ends(mut self) -> (ExitStatus, Vec<Value>) {
        let status = exit(&mut self.child);
        (status, self.lines.iter().collect())
    }

    /// Kills it as the kernel would, and returns the lines it had written.
    pub fn kill(mut self) -> Vec<Value> {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("it is gone");
        self.lines.iter().collect()
    }
}

/// The most memory that a process had, in bytes, without the pages of its own program, of which a build for tests has many.
pub fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel counts it");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    (kib("VmHWM:") - kib("RssFile:")) << 10
}

/// Waits for the program to end by itself.
pub fn exit(child: &mut Child) -> ExitStatus {
    until("the end of the program", || child.try_wait().expect("the process"))
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads whole lines of JSON; a last line that a kill cut off is passed over.
fn read_lines(stdout: ChildStdout) -> Receiver<Value> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { return };
            match serde_json::from_str(&line) {
                Ok(value) => {
                    if sender.send(value).is_err() {
                        return;
                    }
                }
                Err(error) => assert!(error.is_eof(), "{error}: {line}"),
            }
        }
    });
    lines
}
