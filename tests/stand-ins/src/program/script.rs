//! The steps of a script.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `out TEXT`: a line on standard output.
    Out(String),
    /// `err TEXT`: a line on standard error.
    Err(String),
    /// `flood BYTES`: this many bytes on standard output, in lines of 100 bytes.
    Flood(usize),
    /// `raw HEX`: these bytes on standard output.
    Raw(Vec<u8>),
    /// `sleep MS`
    Sleep(Duration),
    /// `mark NAME`: creates a file with this name beside the script, to show that this step was reached.
    Mark(String),
    /// `wait NAME`: waits for a file with this name beside the script.
    Wait(String),
    /// `spawn`: starts a process that outlives this one unless it is killed; prints `grandchild PID`.
    Spawn,
    /// `hang`: does nothing, forever.
    Hang,
    /// `exit CODE`
    Exit(u8),
}

impl Step {
    /// Parses a line of a script.
    ///
    /// # Errors
    /// If the line is not a step; the error is a message.
    pub fn parse(line: &str) -> Result<Step, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.trim().parse::<usize>().map_err(|error| format!("`{line}`: {error}"));
        match word {
            "out" => Ok(Step::Out(rest.to_owned())),
            "err" => Ok(Step::Err(rest.to_owned())),
            "flood" => number().map(Step::Flood),
            "raw" => rest
                .split_whitespace()
                .map(|byte| u8::from_str_radix(byte, 16).map_err(|error| format!("`{line}`: {error}")))
                .collect::<Result<_, _>>()
                .map(Step::Raw),
            "sleep" => number().map(|ms| Step::Sleep(Duration::from_millis(ms as u64))),
            "mark" => Ok(Step::Mark(rest.to_owned())),
            "wait" => Ok(Step::Wait(rest.to_owned())),
            "spawn" => Ok(Step::Spawn),
            "hang" => Ok(Step::Hang),
            "exit" => number().and_then(|code| u8::try_from(code).map_err(|error| error.to_string())).map(Step::Exit),
            _ => Err(format!("`{line}` is no step of a script")),
        }
    }
}

/// Executes the steps and returns the exit code. If the reader of the output is gone, the program ends, like any other
/// program.
pub(super) fn run(script: &Path, steps: &[Step]) -> Result<u8, String> {
    let mut out = io::stdout().lock();
    for step in steps {
        let done = match step {
            Step::Out(line) => writeln!(out, "{line}").and_then(|()| out.flush()),
            Step::Err(line) => writeln!(io::stderr(), "{line}"),
            Step::Flood(bytes) => flood(&mut out, *bytes),
            Step::Raw(bytes) => out.write_all(bytes).and_then(|()| out.flush()),
            Step::Sleep(time) => {
                thread::sleep(*time);
                Ok(())
            }
            Step::Mark(name) => fs::write(script.with_file_name(name), ""),
            Step::Wait(name) => wait(script, name),
            Step::Spawn => spawn().and_then(|pid| writeln!(out, "grandchild {pid}")).and_then(|()| out.flush()),
            Step::Hang => loop {
                thread::sleep(Duration::from_secs(3600));
            },
            Step::Exit(code) => return Ok(*code),
        };
        done.map_err(|error| error.to_string())?;
    }
    Ok(0)
}

fn flood(out: &mut impl io::Write, bytes: usize) -> io::Result<()> {
    let line = [b"x".repeat(99), b"\n".to_vec()].concat();
    for start in (0..bytes).step_by(line.len()) {
        out.write_all(&line[..line.len().min(bytes - start)])?;
    }
    out.flush()
}

/// Waits for a file. If the test has ended and deleted its script, there is nothing left to wait for.
fn wait(script: &Path, name: &str) -> io::Result<()> {
    let file = script.with_file_name(name);
    while !file.exists() && script.exists() {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Starts a process that keeps standard output open, as a forgotten helper would.
fn spawn() -> io::Result<u32> {
    Ok(Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn()?.id())
}
