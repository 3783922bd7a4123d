//! Ctrl-C among the questions leaves the terminal as it was found: a choice hides the cursor, and a secret the echo.

use std::{io, thread};

use dialoguer::console::Term;
use pmk_system::error::Failure;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

/// What a shell says of a program that SIGINT has ended.
const INTERRUPTED: i32 = 130;

/// How the terminal was found.
#[derive(Clone)]
pub(super) struct Found(Option<Termios>);

impl Found {
    /// Looks at it, and from now on leaves it so at SIGINT.
    pub fn watched() -> Result<Found, Failure> {
        let found = Found(tcgetattr(io::stdin()).ok());
        let not_watched = |error: io::Error| Failure::new(format!("cannot start: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(not_watched)?;
        // Before anything is asked, and not once the thread gets its turn.
        let mut interrupts = runtime.block_on(async { signal(SignalKind::interrupt()) }).map_err(not_watched)?;
        let left = found.clone();
        thread::spawn(move || {
            if runtime.block_on(interrupts.recv()).is_some() {
                left.leave();
            }
        });
        Ok(found)
    }

    /// Ends the program.
    pub fn leave(&self) -> ! {
        if let Some(settings) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
        }
        let term = Term::stderr();
        let _ = term.show_cursor();
        // Where the cursor stands there is half a question.
        let _ = term.write_line("");
        std::process::exit(INTERRUPTED)
    }
}
