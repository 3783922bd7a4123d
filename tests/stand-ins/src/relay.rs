//! Passes on what a client and a server on loopback say to each other, and counts how often the client has waited: it asks,
//! however much at once, and asks again only after an answer.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// One that runs as long as the process.
pub struct Relay {
    address: SocketAddr,
    round_trips: Arc<AtomicUsize>,
}

impl Relay {
    /// One in front of a server.
    ///
    /// # Panics
    /// There is no port to be had.
    pub fn start(server: SocketAddr) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let round_trips = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&round_trips);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                // One that comes to nothing is one that the server has refused.
                thread::spawn(move || TcpStream::connect(server).and_then(|server| between(client, server, counted)));
            }
        });
        Relay { address, round_trips }
    }

    /// Where it takes the server's place.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often clients have waited for an answer so far.
    pub fn round_trips(&self) -> usize {
        self.round_trips.load(Ordering::SeqCst)
    }
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
            // The other side has ended, too, by then or does so now.
            let _ = to.shutdown(Shutdown::Both);
            return Ok(());
        }
        passing();
        to.write_all(&bytes[..read])?;
    }
}
