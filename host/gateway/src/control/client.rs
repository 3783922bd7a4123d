//! An operator's end of the socket.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use super::{Reply, Request};
use pmk_system::{
    error::{Failure, OrHint},
    home::{self, HomeLock},
};

/// Asks the gateway of this home, and waits for its answer.
///
/// # Errors
/// No gateway runs there, or it cannot be talked to.
pub fn ask(home: &Path, request: &Request) -> Result<Reply, Failure> {
    ask_in(home, request, None)
}

/// The same, and waits no longer than this.
///
/// # Errors
/// It did not answer in time, too.
pub fn ask_within(home: &Path, request: &Request, patience: Duration) -> Result<Reply, Failure> {
    ask_in(home, request, Some(patience))
}

fn ask_in(home: &Path, request: &Request, patience: Option<Duration>) -> Result<Reply, Failure> {
    let connected = UnixStream::connect(home::control_socket(home)).and_then(|stream| {
        stream.set_read_timeout(patience)?;
        stream.set_write_timeout(patience)?;
        Ok(stream)
    });
    let stream = connected.map_err(|error| unreachable(home, &error))?;
    exchange(&stream, request).map_err(|error| format!("the gateway did not answer: {error}")).or_hint(
        "look at its log, then at `policy.swapped` in the ledger: \
         it may have done what it was asked for all the same",
    )
}

fn exchange(mut stream: &UnixStream, request: &Request) -> io::Result<Reply> {
    stream.write_all((serde_json::to_string(request)? + "\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

fn unreachable(home: &Path, error: &io::Error) -> Failure {
    let home_shown = home.display();
    match HomeLock::is_held(home) {
        Ok(true) => Failure::new(format!("the gateway of `{home_shown}` takes no commands: {error}"))
            .hint("it may be starting: try again in a moment. If it goes on: are you the account that runs it? its log says at the start when there is no control socket"),
        _ => Failure::new(format!("no gateway runs in `{home_shown}`"))
            .hint("start one with `pmk-host run --policy FILE`, or say which with `--home DIR`"),
    }
}
