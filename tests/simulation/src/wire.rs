//! A process's way to the database: a relay of ours, which takes what is asked apart into statements, and is cut where the world
//! wants it to be: before a statement gets there, or after it was carried out and before anybody hears of that. Both ends are
//! sockets of this machine's file system: whoever is cut off there is so at once, and not a moment later.

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

/// Whoever is told that the process at this end was killed by what has happened on the way.
type Dies = Box<dyn FnOnce() + Send>;

/// A way to the database.
pub struct Wire {
    state: Mutex<State>,
    folder: TempDir,
    server: PathBuf,
}

#[derive(Default)]
struct State {
    /// Nobody gets through.
    is_cut: bool,
    fuse: Option<Fuse>,
    dies: Option<Dies>,
    /// Those that are there, by number, both ends of each.
    open: BTreeMap<u64, [UnixStream; 2]>,
    next: u64,
    is_gone: bool,
}

/// What becomes of a statement that is still to come.
#[derive(Clone, Copy, Debug)]
pub struct Fuse {
    /// So many go through before it.
    pub spares: u32,
    /// It is carried out, and nobody hears of it.
    pub after: bool,
    /// And the process is killed with that.
    pub kills: bool,
}

/// What is done with one statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Through,
    Before,
    After { kills: bool },
}

impl Wire {
    /// A way to the server that has this socket, until it is [taken down](Wire::take_down).
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

    /// The folder with the socket where it begins, as clients of a PostgreSQL look for it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn socket(&self) -> PathBuf {
        self.folder().join(".s.PGSQL.5432")
    }

    /// A process begins at this end, which is told when it is killed by what happens on the way.
    pub fn begins(&self, dies: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        state.is_cut = false;
        state.dies = Some(Box::new(dies));
    }

    /// Nobody gets through any more, and whoever had is cut off.
    pub fn cut(&self) {
        let mut state = self.state();
        state.is_cut = true;
        state.hang_up(None);
    }

    /// It leads to the server again.
    pub fn mend(&self) {
        self.state().is_cut = false;
    }

    /// Something happens to one of the next statements.
    pub fn lay(&self, fuse: Fuse) {
        self.state().fuse = Some(fuse);
    }

    /// There is no way any more.
    pub fn take_down(&self) {
        {
            let mut state = self.state();
            state.is_gone = true;
            state.dies = None;
            state.hang_up(None);
        }
        // The thread that waits for somebody to come is waiting for this.
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
        // Whoever is cut off finds out by reading nothing any more.
        thread::spawn(move || drop(down.pass()));
        thread::spawn(move || drop(up.pass()));
    }

    /// What becomes of the next statement, which comes over the connection of that number.
    fn judge(&self, number: u64) -> Verdict {
        let mut state = self.state();
        if state.is_cut {
            return Verdict::Before;
        }
        match &mut state.fuse {
            Some(Fuse { spares: 0, after, kills }) => {
                let (after, kills) = (*after, *kills);
                state.fuse = None;
                if after {
                    return Verdict::After { kills };
                }
                drop(state);
                self.blow(kills, number);
                Verdict::Before
            }
            Some(fuse) => {
                fuse.spares -= 1;
                Verdict::Through
            }
            None => Verdict::Through,
        }
    }

    /// All connections are lost, and what is at this end may be. The one on which somebody waits is the last: nobody sees
    /// anything of it before all of it is true.
    fn blow(&self, kills: bool, last: u64) {
        let mut state = self.state();
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
                // It may be closed.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

/// How many of those statements were answered that were sent on.
#[derive(Default)]
struct Answers {
    counts: Mutex<Counts>,
    more: Condvar,
}

#[derive(Default)]
struct Counts {
    sent: u64,
    answered: u64,
    /// Nobody is to hear of them any more.
    is_mute: bool,
    is_over: bool,
}

impl Answers {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all is answered.
    fn wait_for_all(&self) {
        let mut counts = self.counts();
        while counts.answered < counts.sent && !counts.is_over {
            counts = self.more.wait(counts).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// From the process to the server.
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
        // What is begun is undone by the server when it finds out, and it finds out before anybody else does.
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
        let mut verdict = Verdict::Through;
        loop {
            let frame = frame(&mut client, true)?;
            let kind = frame[0];
            // What carries something out; the rest only prepares or tidies up.
            if matches!(kind, b'Q' | b'E') && verdict == Verdict::Through {
                verdict = self.wire.judge(self.number);
            }
            match verdict {
                Verdict::Through => {}
                Verdict::Before => return Ok(()),
                // Before the server can have answered it.
                Verdict::After { .. } => self.answers.counts().is_mute = true,
            }
            let ends = matches!(kind, b'Q' | b'S');
            if ends {
                self.answers.counts().sent += 1;
            }
            self.server.write_all(&frame)?;
            if let (Verdict::After { kills }, true) = (verdict, ends) {
                self.answers.wait_for_all();
                self.wire.blow(kills, self.number);
                return Ok(());
            }
        }
    }
}

/// And back.
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
        // Of several answers one write is made.
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

/// The next message of the protocol: what it is, but in the first of all, its length, and what it says.
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
