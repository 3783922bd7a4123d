//! A pseudo-terminal with a program on it.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command, ExitStatus},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Instant,
};

use nix::{
    pty::{OpenptyResult, Winsize, openpty},
    sys::termios::{LocalFlags, tcgetattr},
};

use crate::support::{PATIENCE, exit, until};

/// Ctrl-D.
const END: &[u8] = b"\x04";

fn size(columns: u16) -> Winsize {
    Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// A program on a terminal of its own.
pub struct Terminal {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    /// All that was shown, with what steers the terminal.
    pub screen: String,
}

impl Terminal {
    /// On 24 lines of 80 columns.
    pub fn start(command: Command) -> Terminal {
        Terminal::of_columns(80, command)
    }

    /// On 24 lines of so many columns.
    pub fn of_columns(columns: u16, mut command: Command) -> Terminal {
        let OpenptyResult { master, slave } = openpty(Some(&size(columns)), None).expect("a pseudo-terminal");
        let copy = || slave.try_clone().expect("a copy");
        let child = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("the program starts");
        // Only the program has the terminal now, so that its end is seen.
        drop((command, slave));
        let mut display = File::from(master.try_clone().expect("a copy"));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = display.read(&mut chunk) {
                if sender.send(chunk[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keyboard: File::from(master), output, screen: String::new() }
    }

    /// As a person types.
    pub fn type_in(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("the terminal takes keys");
    }

    /// Types what is not to be shown, once it is not.
    pub fn type_unseen(&mut self, keys: &[u8]) {
        self.wait_until_unseen();
        self.type_in(keys);
    }

    /// Waits until what is typed is not shown.
    pub fn wait_until_unseen(&self) {
        until("a terminal that shows nothing", || (!self.shows_typing()).then_some(()));
    }

    /// Whether what is typed is shown.
    pub fn shows_typing(&self) -> bool {
        tcgetattr(&self.keyboard).expect("a terminal").local_flags.contains(LocalFlags::ECHO)
    }

    /// SIGINT, as of Ctrl-C on a terminal that is the program's own.
    pub fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Waits until the screen has shown this text so many times.
    pub fn wait_for(&mut self, text: &str, times: usize) {
        let start = Instant::now();
        while self.screen.matches(text).count() < times {
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.screen.push_str(&String::from_utf8_lossy(&chunk)),
                Err(RecvTimeoutError::Timeout) => panic!("no `{text}` {times} times in: {}", self.screen),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without `{text}`: {}", self.screen),
            }
        }
    }

    /// Takes in what a program that has ended had shown.
    pub fn read_until_its_end(&mut self) {
        self.screen.extend(self.output.iter().map(|chunk| String::from_utf8_lossy(&chunk).into_owned()));
    }

    /// Presses this again and again, as somebody who wants it to end.
    pub fn press_until_it_ends(&mut self, keys: &[u8]) -> ExitStatus {
        until("the end of the program", || {
            // Nobody may read it any more.
            let _ = self.keyboard.write_all(keys);
            self.child.try_wait().expect("the process")
        })
    }

    /// Ends what reads from it.
    pub fn end(mut self) -> ExitStatus {
        self.type_in(END);
        exit(&mut self.child)
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        exit(&mut self.child)
    }

    /// All that it shows until it ends by itself.
    pub fn until_its_end(mut self) -> (ExitStatus, Vec<String>) {
        while let Ok(chunk) = self.output.recv_timeout(PATIENCE) {
            self.screen.push_str(&String::from_utf8_lossy(&chunk));
        }
        (self.wait(), self.lines())
    }

    /// What was shown, line by line, without what steers the terminal. A line that was written over is there for each time.
    pub fn lines(&self) -> Vec<String> {
        let mut plain = String::new();
        let mut rest = self.screen.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            let ends =
                after.strip_prefix('[').and_then(|after| after.find(|c: char| c.is_ascii_alphabetic() || c == '~'));
            // One that goes to another place ends a line.
            if ends.is_some_and(|at| after[1 + at..].starts_with(['A', 'B', 'G', 'H', 'K', 'J'])) {
                plain.push('\n');
            }
            rest = ends.map_or(after.get(1..).unwrap_or_default(), |at| &after[at + 2..]);
        }
        plain.push_str(rest);
        plain.split(['\r', '\n']).map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
