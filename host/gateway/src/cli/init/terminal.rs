//! Restores the terminal on Ctrl-C during the questions: a choice hides the cursor, and a secret turns echo off.

use std::{io, thread};

use dialoguer::console::Term;
use pmk_system::error::Failure;
use tokio::signal::unix::{SignalKind, signal};

use super::super::tty;

/// The exit code by which shells report a program ended by SIGINT.
const INTERRUPTED: i32 = 130;

/// The settings that the terminal had.
#[derive(Clone)]
pub(super) struct Found(tty::Found);

impl Found {
    /// Records the settings, and from now on restores them on SIGINT.
    pub fn watched() -> Result<Found, Failure> {
        let found = Found(tty::Found::now());
        let not_watched = |error: io::Error| Failure::new(format!("cannot start: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(not_watched)?;
        // Registered before the first question, rather than when the thread runs.
        let mut interrupts = runtime.block_on(async { signal(SignalKind::interrupt()) }).map_err(not_watched)?;
        let left = found.clone();
        thread::spawn(move || {
            if runtime.block_on(interrupts.recv()).is_some() {
                left.leave();
            }
        });
        Ok(found)
    }

    /// Restores the terminal and ends the program.
    pub fn leave(&self) -> ! {
        self.0.restore();
        let term = Term::stderr();
        let _ = term.show_cursor();
        // The cursor is in the line of a question.
        let _ = term.write_line("");
        std::process::exit(INTERRUPTED)
    }
}
