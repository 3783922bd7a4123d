//! The client end of the control socket.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::{Reply, Request};
use crate::{
    presence::state::{Phase, State},
    stderr::Spinner,
};
use pmk_system::{
    error::{Failure, OrHint},
    home::{self, HomeError, HomeLock},
};

/// How long a gateway may take to start.
const START: Duration = Duration::from_secs(30);

/// How long a gateway that runs may take to say so.
const ALIVE: Duration = Duration::from_secs(5);

/// How often to check whether it has started.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Sends a request to the gateway of this home and waits for its answer, as long as the work takes. If the gateway is
/// starting, waits for that first.
///
/// # Errors
/// No gateway runs there, it does not answer, or the connection fails.
pub fn ask(home: &Path, request: &Request) -> Result<Reply, Failure> {
    let waiting = Spinner::when_long("waiting for the gateway to start");
    let begun = Instant::now();
    let stream = loop {
        // Checked before connecting: once it has started, it accepts connections.
        let is_starting = is_starting(home);
        match UnixStream::connect(home::control_socket(home)) {
            Ok(stream) => break stream,
            Err(_) if is_starting && begun.elapsed() < START => thread::sleep(LOOK_EVERY),
            Err(error) => return Err(unreachable(home, &error)),
        }
    };
    drop(waiting);
    // The kernel accepts connections for a process that is stopped.
    let lives = within(stream, ALIVE).and_then(|stream| exchange(&stream, &Request::Status));
    if lives.is_err() {
        return Err(Failure::new(format!("the gateway in `{}` does not answer", home.display()))
            .hint("it may be stopped or overloaded: see its log, and `pmk-host status`"));
    }
    let stream = UnixStream::connect(home::control_socket(home)).map_err(|error| unreachable(home, &error))?;
    let _waiting = Spinner::when_long("waiting for the gateway");
    answered(exchange(&stream, request), request)
}

/// Sends a request without waiting for a start, and waits for the answer no longer than `patience`.
///
/// # Errors
/// As [`ask`], and if the gateway does not answer in time.
pub fn ask_within(home: &Path, request: &Request, patience: Duration) -> Result<Reply, Failure> {
    let connected = UnixStream::connect(home::control_socket(home)).and_then(|stream| within(stream, patience));
    let stream = connected.map_err(|error| unreachable(home, &error))?;
    answered(exchange(&stream, request), request)
}

/// The process that listens at the control socket of this home, as this process counts processes; `None` if nobody does
/// or it is in a container of its own.
pub async fn listener(home: &Path) -> Option<u32> {
    let stream = tokio::net::UnixStream::connect(home::control_socket(home)).await.ok()?;
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok()
}

/// Limits how long each read and write of a connection may take.
fn within(stream: UnixStream, patience: Duration) -> io::Result<UnixStream> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Whether a process holds the lock of the home and does not yet accept commands.
fn is_starting(home: &Path) -> bool {
    let Ok(Some(holder)) = HomeLock::holder_of(home) else { return false };
    // State left by another process says nothing about this one.
    let state = State::read(home).filter(|state| state.pid == holder.pid);
    state.is_some_and(|state| state.phase == Phase::Starting)
}

fn answered(exchanged: io::Result<Reply>, request: &Request) -> Result<Reply, Failure> {
    let hint = match request {
        Request::PolicyUse { .. } | Request::PolicyPrevious => {
            "check its log and `policy.swapped` in the ledger: it may have carried out the request all the same"
        }
        Request::SessionsRetry { .. } => {
            "see what is still parked with `pmk-host sessions parked`: it may have carried out the request all the same"
        }
        Request::PolicyStart { .. } | Request::Status => "check its log, and try again",
    };
    exchanged.map_err(|error| format!("the gateway did not answer: {error}")).or_hint(hint)
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
    match HomeLock::holder_of(home) {
        Ok(Some(holder)) if !holder.is_gateway() => {
            HomeError::InUse { home: home.to_owned(), holder: Some(holder) }.into()
        }
        Ok(Some(_)) => Failure::new(format!("the gateway in `{home_shown}` does not accept commands: {error}"))
            .hint("it may be starting: try again in a moment. If that does not help, check that you use the account that runs it; if it has no control socket, its log says so at the start"),
        _ => Failure::new(format!("no gateway is running in `{home_shown}`"))
            .hint("start one with `pmk-host run --policy FILE`, or choose another home with `--home DIR`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: all were sent to look for a swap of policies.
    #[test]
    fn what_became_of_a_retry_that_was_not_answered_was_to_be_looked_up_as_a_swap() {
        let hint = |request: Request| {
            let lost = answered(Err(io::ErrorKind::UnexpectedEof.into()), &request).expect_err("no answer");
            lost.advice().unwrap_or_default().to_owned()
        };
        assert!(hint(Request::PolicyPrevious).contains("`policy.swapped`"));
        assert!(hint(Request::SessionsRetry { key: None }).contains("`pmk-host sessions parked`"));
        assert!(!hint(Request::Status).contains("carried out"));
    }
}
