//! Keyboard input, on a thread of its own that waits for keys.

use std::time::{Duration, Instant};

use rustyline::{DefaultEditor, ExternalPrinter, error::ReadlineError};
use tokio::sync::mpsc;

const PROMPT: &str = "› ";
/// Ctrl-C pressed again within this time counts as pressed twice.
const TWICE: Duration = Duration::from_secs(3);

/// Something that was typed.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C: the input line was cleared. The second one in a row ends the program.
    Cleared,
}

/// Starts reading. The thread is never joined, so that leaving does not wait for it. A line that leaves is the last one:
/// at another prompt, the program would end with the terminal set for editing.
pub(super) fn start(
    leaves: impl Fn(&str) -> bool + Send + 'static,
) -> Result<(impl ExternalPrinter + Send + 'static, mpsc::Receiver<Typed>), ReadlineError> {
    let mut editor = DefaultEditor::new()?;
    let printer = editor.create_external_printer()?;
    let (sender, typed) = mpsc::channel(1);
    let read = move || {
        let mut cleared_at: Option<Instant> = None;
        loop {
            let next = match editor.readline(PROMPT) {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => {
                    // A failure only means that the entry is missing from the history.
                    let _ = editor.add_history_entry(&line);
                    Typed::Line(line)
                }
                Err(ReadlineError::Interrupted) if cleared_at.is_none_or(|at| at.elapsed() > TWICE) => Typed::Cleared,
                // Ctrl-D, Ctrl-C again, or a closed terminal.
                Err(_) => return,
            };
            let is_last = matches!(&next, Typed::Line(line) if leaves(line));
            cleared_at = matches!(next, Typed::Cleared).then(Instant::now);
            if sender.blocking_send(next).is_err() || is_last {
                return;
            }
        }
    };
    std::thread::Builder::new().name("console-input".into()).spawn(read)?;
    Ok((printer, typed))
}
