//! The gateway's end of the control socket.

use std::{fs, io, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc, time::Duration};

use pmk_system::{
    error::{Failure, OrHint},
    home::{self, HomeLock},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
    task::JoinSet,
};

use super::{MAX_REQUEST_BYTES, Reply, Request};
use crate::{dispatch::Dispatcher, policies::Swapper, presence::health_check::Reporter, store::Unparked};

/// How long a caller may take to send its request, and to receive the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often to check whether a caller is still connected.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The most callers that are served at once; more have to wait.
const AT_ONCE: usize = 16;

/// The parts of the gateway that carry commands out.
#[derive(Clone)]
pub struct Commands {
    pub swapper: Arc<Swapper>,
    pub dispatcher: Arc<Dispatcher>,
    /// Reports the status of the gateway to an operator.
    pub report: Reporter,
}

/// Accepts commands; the socket is removed when this is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Creates the socket. The holder of the lock is the only gateway of the home, so an existing socket was left
    /// behind.
    ///
    /// # Errors
    /// It cannot be created; a path of more than about a hundred bytes is too long for a socket.
    pub fn bind(lock: &HomeLock) -> io::Result<Server> {
        let path = home::control_socket(lock.home());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let server = Server { listener: UnixListener::bind(&path)?, path };
        fs::set_permissions(&server.path, fs::Permissions::from_mode(0o600))?;
        Ok(server)
    }

    /// Serves callers, for as long as it is polled.
    pub async fn serve(self, commands: Commands) {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        // The tasks end with this future.
        let mut callers = JoinSet::new();
        loop {
            while callers.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let commands = commands.clone();
                    callers.spawn(async move {
                        answer(stream, &commands).await.unwrap_or_else(|error| unanswered(&error));
                        drop(place);
                    });
                }
                Err(error) => {
                    unanswered(&error);
                    // If no file handles are left, the next call fails at once, too.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

fn unanswered(error: &io::Error) {
    tracing::warn!(%error, "a command over the control socket was not answered");
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

async fn answer(stream: UnixStream, commands: &Commands) -> io::Result<()> {
    let caller = stream.peer_cred()?.uid();
    let mut stream = BufReader::new(stream);
    let reply = if caller != rustix::process::getuid().as_raw() {
        refusal(
            Failure::new("this gateway belongs to another account")
                .hint("run this as the account that runs the gateway"),
        )
    } else {
        match read(&mut stream).await {
            Ok(request) => tokio::select! {
                reply = carry_out(request, commands) => reply,
                // If the caller disconnects, the command is cancelled, or goes on by itself.
                () = hung_up(stream.get_ref()) => return Err(io::ErrorKind::BrokenPipe.into()),
            },
            Err(failure) => refusal(failure),
        }
    };
    let line = serde_json::to_string(&reply).map_err(io::Error::from)? + "\n";
    tokio::time::timeout(PATIENCE, stream.write_all(line.as_bytes())).await?
}

/// Waits until the caller has disconnected. A caller that has only closed its sending side still wants the answer.
async fn hung_up(stream: &UnixStream) {
    // The socket is almost always ready for writing; this readiness also reports when both sides are closed.
    while let Ok(ready) = stream.ready(Interest::WRITABLE).await {
        if ready.is_write_closed() {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn read(stream: &mut BufReader<UnixStream>) -> Result<Request, Failure> {
    let mut line = String::new();
    let mut limited = stream.take(MAX_REQUEST_BYTES);
    let read = tokio::time::timeout(PATIENCE, limited.read_line(&mut line)).await;
    let hint = "a request is one line of JSON, as `pmk-host policy use` sends it";
    read.map_err(|_| "the request did not arrive in time").or_hint(hint)?.or_hint(hint)?;
    if !line.ends_with('\n') {
        let why = if line.len() as u64 == MAX_REQUEST_BYTES { "is too long" } else { "is cut short" };
        return Err(Failure::new(format!("the request {why}")).hint(hint));
    }
    serde_json::from_str(&line).map_err(|error| Failure::new(format!("the request is invalid: {error}")).hint(hint))
}

async fn carry_out(request: Request, commands: &Commands) -> Reply {
    let done = match request {
        Request::PolicyUse { files } => commands.swapper.choose(files).await.map(Reply::Swapped),
        Request::PolicyPrevious => commands.swapper.go_back().await.map(Reply::Swapped),
        Request::PolicyStart { files, settings } => {
            commands.swapper.look_at_start(files, settings).await.map(Reply::Start)
        }
        Request::Status => Ok(Reply::Status((commands.report)())),
        Request::SessionsRetry { key } => {
            let retried = commands.dispatcher.retry(key.as_ref()).await;
            retried.map(retried_as_reply).map_err(Failure::from)
        }
    };
    done.unwrap_or_else(refusal)
}

fn retried_as_reply(unparked: Unparked) -> Reply {
    Reply::Retried { messages: unparked.messages(), unreadable: unparked.unreadable }
}

fn refusal(failure: Failure) -> Reply {
    let (message, hint) = failure.into_parts();
    Reply::Error { message, hint }
}
