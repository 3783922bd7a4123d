//! A process's connection to the database: a relay that splits the requests into statements, and can be cut at any of
//! them: before a statement reaches the server, or after it was executed and before the response is passed on. Both
//! ends are Unix sockets, so that a cut takes effect at once.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use tempfile::TempDir;

/// Called when the process at this end is killed by an event on the wire.
type Dies = Box<dyn FnOnce() + Send>;

/// A connection to the database.
pub struct Wire {
    state: Mutex<State>,
    folder: TempDir,
    server: PathBuf,
}

#[derive(Default)]
struct State {
    /// Nothing gets through.
    is_cut: bool,
    fuse: Option<Fuse>,
    /// How many fuses have blown.
    blown: u32,
    dies: Option<Dies>,
    /// The open connections by number, with both ends of each.
    open: BTreeMap<u64, [UnixStream; 2]>,
    next: u64,
    is_gone: bool,
}

/// What will happen to one of the next statements.
#[derive(Clone, Copy, Debug)]
pub struct Fuse {
    /// How many statements get through before it.
    pub spares: u32,
    /// It is executed, but the response is lost.
    pub after: bool,
    /// The process is killed at the same time.
    pub kills: bool,
}

/// What happens to a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Through,
    /// Nothing gets through any more.
    Cut,
    Before {
        kills: bool,
    },
    After {
        kills: bool,
    },
}

impl Wire {
    /// A wire to the server with this socket, until it is [taken down](Wire::take_down).
    pub fn to(server: &Path) -> Arc<Wire> {
        let folder = tempfile::tempdir().expect("a folder");
        let wire = Arc::new(Wire { state: Mutex::default(), folder, server: server.to_owned() });
        let listener = UnixListener::bind(wire.socket()).expect("a socket");
        let relays = Arc::clone(&wire);
        thread::spawn(move || {
            for client in listener.incoming() {
                if relays.state().is_gone {
                    return;
                }
                if let Ok(client) = client {
                    relays.relay(client);
                }
            }
        });
        wire
    }

    /// The folder with its socket, as PostgreSQL clients expect it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn socket(&self) -> PathBuf {
        self.folder().join(".s.PGSQL.5432")
    }

    /// A process starts at this end; `dies` is called when it is killed by an event on the wire.
    pub fn begins(&self, dies: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        state.is_cut = false;
        state.dies = Some(Box::new(dies));
    }

    /// Cuts all connections, and lets none through.
    pub fn cut(&self) {
        let mut state = self.state();
        state.is_cut = true;
        state.hang_up(None);
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.state().is_cut = false;
    }

    /// Makes something happen to one of the next statements.
    pub fn lay(&self, fuse: Fuse) {
        self.state().fuse = Some(fuse);
    }

    /// How many fuses have blown so far.
    pub fn blown(&self) -> u32 {
        self.state().blown
    }

    /// Ends the wire.
    pub fn take_down(&self) {
        {
            let mut state = self.state();
            state.is_gone = true;
            state.dies = None;
            state.hang_up(None);
        }
        // Wakes the thread that accepts connections.
        drop(UnixStream::connect(self.socket()));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn relay(self: &Arc<Self>, client: UnixStream) {
        let mut state = self.state();
        if state.is_cut {
            return;
        }
        let server = UnixStream::connect(&self.server).expect("the server is there");
        let clone = |stream: &UnixStream| stream.try_clone().expect("another handle");
        let number = state.next;
        state.next += 1;
        state.open.insert(number, [clone(&client), clone(&server)]);
        drop(state);
        let answers = Arc::new(Answers::default());
        let down = Down { client: clone(&client), server: clone(&server), answers: Arc::clone(&answers) };
        let up = Up { wire: Arc::clone(self), number, client, server, answers };
        // A side that is cut off notices by reading the end of the stream.
        thread::spawn(move || drop(down.pass()));
        thread::spawn(move || drop(up.pass()));
    }

    /// Decides about the next statement.
    fn judge(&self) -> Verdict {
        let mut state = self.state();
        if state.is_cut {
            return Verdict::Cut;
        }
        match &mut state.fuse {
            Some(Fuse { spares: 0, after, kills }) => {
                let (after, kills) = (*after, *kills);
                state.fuse = None;
                if after { Verdict::After { kills } } else { Verdict::Before { kills } }
            }
            Some(fuse) => {
                fuse.spares -= 1;
                Verdict::Through
            }
            None => Verdict::Through,
        }
    }

    /// Closes all connections, and kills the process if `kills` is set. The connection with the waiting statement is
    /// closed last, so that nobody notices anything before everything is done.
    fn blow(&self, kills: bool, last: u64) {
        let mut state = self.state();
        state.blown += 1;
        state.hang_up(Some(last));
        state.is_cut |= kills;
        let dies = if kills { state.dies.take() } else { None };
        drop(state);
        if let Some(dies) = dies {
            dies();
        }
    }
}

impl State {
    fn hang_up(&mut self, but: Option<u64>) {
        for (number, ends) in std::mem::take(&mut self.open) {
            if Some(number) == but {
                self.open.insert(number, ends);
                continue;
            }
            for stream in ends {
                // It may be closed already.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// How many of the forwarded statements have been answered.
#[derive(Default)]
struct Answers {
    counts: Mutex<Counts>,
    more: Condvar,
}

#[derive(Default)]
struct Counts {
    sent: u64,
    answered: u64,
    /// Responses are no longer passed on.
    is_mute: bool,
    is_over: bool,
}

impl Answers {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all are answered.
    fn wait_for_all(&self) {
        let mut counts = self.counts();
        while counts.answered < counts.sent && !counts.is_over {
            counts = self.more.wait(counts).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Relays from the process to the server.
struct Up {
    wire: Arc<Wire>,
    number: u64,
    client: UnixStream,
    server: UnixStream,
    answers: Arc<Answers>,
}

impl Up {
    fn pass(mut self) -> io::Result<()> {
        let passed = self.pass_all();
        // The server rolls back what was begun when it notices, which it does before anybody else.
        for stream in [&self.server, &self.client] {
            let _ = stream.shutdown(Shutdown::Both);
        }
        passed
    }

    fn pass_all(&mut self) -> io::Result<()> {
        let mut client = io::BufReader::new(self.client.try_clone()?);
        let first = frame(&mut client, false)?;
        self.server.write_all(&first)?;
        self.answers.counts().sent += 1;
        loop {
            // What the process has sent at once is judged before any of it is forwarded: which responses arrive before
            // the connection is lost must not depend on how fast the server is.
            let mut frames = vec![frame(&mut client, true)?];
            while !client.buffer().is_empty() {
                frames.push(frame(&mut client, true)?);
            }
            // Messages that execute something; the others only prepare or clean up.
            let statements = frames.iter().enumerate().filter(|(_, frame)| matches!(frame[0], b'Q' | b'E'));
            let judged =
                statements.map(|(at, _)| (at, self.wire.judge())).find(|(_, verdict)| *verdict != Verdict::Through);
            let kills = match judged {
                None => {
                    self.forward(&frames)?;
                    continue;
                }
                Some((_, Verdict::Through | Verdict::Cut)) => return Ok(()),
                Some((at, Verdict::Before { kills })) => {
                    frames.truncate(at);
                    kills
                }
                Some((at, Verdict::After { kills })) => {
                    let end = loop {
                        match frames[at..].iter().position(|frame| ends(frame)) {
                            Some(end) => break at + end,
                            None => frames.push(frame(&mut client, true)?),
                        }
                    };
                    frames.truncate(end + 1);
                    kills
                }
            };
            // Set before the server can have responded.
            self.answers.counts().is_mute = true;
            self.forward(&frames)?;
            self.answers.wait_for_all();
            self.wire.blow(kills, self.number);
            return Ok(());
        }
    }

    fn forward(&mut self, frames: &[Vec<u8>]) -> io::Result<()> {
        for frame in frames {
            self.answers.counts().sent += u64::from(ends(frame));
            self.server.write_all(frame)?;
        }
        Ok(())
    }
}

/// Whether the server responds once it has got this.
fn ends(frame: &[u8]) -> bool {
    matches!(frame[0], b'Q' | b'S')
}

/// Relays from the server to the process.
struct Down {
    client: UnixStream,
    server: UnixStream,
    answers: Arc<Answers>,
}

impl Down {
    fn pass(mut self) -> io::Result<()> {
        let passed = self.pass_all();
        self.answers.counts().is_over = true;
        self.answers.more.notify_all();
        let _ = self.client.shutdown(Shutdown::Both);
        passed
    }

    fn pass_all(&mut self) -> io::Result<()> {
        let mut server = io::BufReader::new(self.server.try_clone()?);
        // Several responses are written at once.
        let mut waiting = Vec::new();
        loop {
            let frame = frame(&mut server, true)?;
            let ends = frame[0] == b'Z';
            waiting.extend(frame);
            let mut counts = self.answers.counts();
            if ends {
                counts.answered += 1;
                self.answers.more.notify_all();
            }
            let is_mute = counts.is_mute;
            drop(counts);
            if is_mute {
                waiting.clear();
            } else if server.buffer().is_empty() {
                self.client.write_all(&waiting)?;
                waiting.clear();
            }
        }
    }
}

/// The next message of the protocol: its type (missing in the first message), its length, and its content.
fn frame(from: &mut impl Read, has_kind: bool) -> io::Result<Vec<u8>> {
    let kind = usize::from(has_kind);
    let mut frame = vec![0; kind + 4];
    from.read_exact(&mut frame)?;
    let length = frame[kind..].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let header = frame.len();
    frame.resize(kind + length.max(4), 0);
    from.read_exact(&mut frame[header..])?;
    Ok(frame)
}
