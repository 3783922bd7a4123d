//! The settings of the terminal, for a program that may end while it asks or edits a line.

use std::{
    io::{self, Write},
    sync::mpsc::channel,
    thread,
    time::Duration,
};

use rustix::{
    process::getpgrp,
    termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr},
};

/// Takes away what a line editor leaves behind if the program ends amid a line: that line, and that pastes come in
/// brackets.
const NO_EDITOR: &str = "\r\x1b[K\x1b[?2004l";

/// A terminal that has not taken that by now, as after Ctrl-S, takes nothing.
const TAKEN_WITHIN: Duration = Duration::from_millis(200);

/// The settings that the terminal had.
#[derive(Clone)]
pub(super) struct Found(Option<Termios>);

impl Found {
    /// Records the settings of standard input, if it is a terminal.
    pub(super) fn now() -> Found {
        Found(tcgetattr(io::stdin()).ok())
    }

    /// Restores them.
    pub(super) fn restore(&self) {
        if let Some(settings) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
        }
    }

    /// Restores them if a line editor, whose thread cannot be woken, still has its own. Never waits for long.
    pub(super) fn end_editing(&self) {
        // In the background, the terminal is the shell's, and setting it would stop this process.
        if tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != getpgrp()) {
            return;
        }
        let is_editing = match (&self.0, tcgetattr(io::stdin())) {
            (Some(found), Ok(now)) => now.local_modes != found.local_modes,
            _ => false,
        };
        if is_editing {
            self.restore();
            let (written, wait) = channel();
            let write = move || {
                let mut stdout = io::stdout();
                let outcome = stdout.write_all(NO_EDITOR.as_bytes()).and_then(|()| stdout.flush());
                let _ = written.send(outcome);
            };
            // If it cannot be written, nobody sees the terminal any more.
            let _ = thread::Builder::new().spawn(write);
            let _ = wait.recv_timeout(TAKEN_WITHIN);
        }
    }
}

/// Ends the editing of lines when it is dropped, so after a panic, too.
pub(super) struct EndsEditing(pub(super) Found);

impl Drop for EndsEditing {
    fn drop(&mut self) {
        self.0.end_editing();
    }
}
