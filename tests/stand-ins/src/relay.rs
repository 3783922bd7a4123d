//! A relay between a client and a server on loopback that counts the client's round trips: a request, of any size,
//! after a response counts as one. It can be cut.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// A relay, which runs as long as the process.
pub struct Relay {
    address: SocketAddr,
    round_trips: Arc<AtomicUsize>,
    /// The open connections; `None` while it is cut.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Relay {
    /// Starts a relay in front of a server.
    ///
    /// # Panics
    /// If there is no free port.
    pub fn start(server: SocketAddr) -> Relay {
        Relay::over(TcpListener::bind("127.0.0.1:0").expect("a port"), server)
    }

    /// Starts a relay on this listener.
    ///
    /// # Panics
    /// If the listener has no address.
    pub fn over(listener: TcpListener, server: SocketAddr) -> Relay {
        let address = listener.local_addr().expect("an address");
        let round_trips = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(Mutex::new(Some(vec![])));
        let (counted, connected) = (Arc::clone(&round_trips), Arc::clone(&open));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                match (&mut *lock(&connected), client.try_clone()) {
                    (Some(open), Ok(client)) => open.push(client),
                    _ => continue,
                }
                // An error means that the server refused the connection.
                thread::spawn(move || TcpStream::connect(server).and_then(|server| between(client, server, counted)));
            }
        });
        Relay { address, round_trips, open }
    }

    /// The address that takes the server's place.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes every connection, and accepts no others until it is mended.
    pub fn cut(&self) {
        for connection in lock(&self.open).take().into_iter().flatten() {
            // It may be closed already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Accepts connections again.
    pub fn mend(&self) {
        lock(&self.open).get_or_insert_default();
    }

    /// The number of round trips so far.
    pub fn round_trips(&self) -> usize {
        self.round_trips.load(Ordering::SeqCst)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn between(client: TcpStream, server: TcpStream, round_trips: Arc<AtomicUsize>) -> io::Result<()> {
    let is_answered = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&is_answered);
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        pass_on(from_client, to_server, || {
            if asked.swap(false, Ordering::SeqCst) {
                round_trips.fetch_add(1, Ordering::SeqCst);
            }
        })
    });
    pass_on(server, client, || is_answered.store(true, Ordering::SeqCst))
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, passing: impl Fn()) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    to.set_nodelay(true)?;
    loop {
        let read = from.read(&mut bytes).unwrap_or(0);
        if read == 0 {
            // The other side has been closed by then, or is closed now.
            let _ = to.shutdown(Shutdown::Both);
            return Ok(());
        }
        passing();
        to.write_all(&bytes[..read])?;
    }
}
