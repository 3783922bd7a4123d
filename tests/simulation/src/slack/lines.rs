//! The sockets of the bot, in worlds over calls: Slack sends each event on one of them, and waits for the acknowledgement.
//! They are cut at any byte, fall silent, or are to be replaced.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadBuf},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    time::{sleep, timeout},
};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

use super::Slack;
use crate::{
    random::one_of,
    scenario::{Harm, Trouble},
};

/// How long Slack waits for an acknowledgement.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often a socket of a host that Slack cannot reach is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A connection, as Slack sees it.
struct Line {
    id: u64,
    host: usize,
    to: UnboundedSender<String>,
}

/// All connections.
#[derive(Default)]
pub(super) struct Lines {
    open: Vec<Line>,
    /// Numbers connections and envelopes.
    last: u64,
    /// The envelopes that were acknowledged.
    acknowledged: Vec<String>,
}

/// A connection that is open until this is dropped.
struct Opened {
    slack: Arc<Slack>,
    id: u64,
    host: usize,
}

impl Drop for Opened {
    fn drop(&mut self) {
        let now = self.slack.world.time();
        let mut state = self.slack.state();
        state.lines.open.retain(|line| line.id != self.id);
        if state.lines.open.iter().all(|line| line.host != self.host) {
            state.sockets.closed(self.host, now);
        }
        drop(state);
        self.slack.heard.notify_waiters();
    }
}

impl Opened {
    fn begin(slack: &Arc<Slack>) -> (Opened, UnboundedReceiver<String>) {
        let (now, host) = (slack.world.time(), slack.world.host());
        let (to, frames) = mpsc::unbounded_channel();
        let mut state = slack.state();
        state.lines.last += 1;
        let id = state.lines.last;
        state.lines.open.push(Line { id, host, to });
        state.sockets.opened(host, now);
        slack.more[host].notify_one();
        (Opened { slack: Arc::clone(slack), id, host }, frames)
    }
}

/// The other end of a new connection.
pub(super) fn dial(slack: &Arc<Slack>) -> DuplexStream {
    let (near, far) = tokio::io::duplex(1 << 16);
    let world = &slack.world;
    let left = world.strikes(Trouble::SocketsCut).then(|| world.dice("cut after").usize(0..20_000));
    let far = Cut { inner: far, left };
    let slack = Arc::clone(slack);
    tokio::spawn(async move {
        let Ok(mut socket) = accept_async(far).await else { return };
        let hello = json!({"type": "hello", "num_connections": 1}).to_string();
        if socket.send(Message::text(hello)).await.is_err() {
            return;
        }
        let (opened, frames) = Opened::begin(&slack);
        if serve(&slack, &mut socket, frames).await {
            // Slack does not notice either.
            let mut silent = socket.into_inner();
            while silent.read(&mut [0; 1_024]).await.is_ok_and(|read| read > 0) {}
        }
        drop(opened);
    });
    near
}

/// Sends frames and takes acknowledgements until the connection ends; returns whether it falls silent instead.
async fn serve(slack: &Slack, socket: &mut WebSocketStream<Cut>, mut frames: UnboundedReceiver<String>) -> bool {
    let mut is_to_be_replaced = false;
    loop {
        if slack.world.is_hit(Harm::OffSlack) {
            sleep(LOOK_EVERY).await;
            continue;
        }
        tokio::select! {
            biased;
            heard = socket.next() => match heard {
                Some(Ok(Message::Text(text))) => slack.acknowledges(&text),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return false,
                // A ping, which is answered.
                Some(Ok(_)) if slack.world.strikes(Trouble::SocketsMute) => return true,
                Some(Ok(_)) => {}
            },
            frame = frames.recv() => {
                let Some(frame) = frame else { return false };
                if socket.send(Message::text(frame)).await.is_err() {
                    return false;
                }
                if slack.world.strikes(Trouble::SocketsReplaced) && !is_to_be_replaced {
                    is_to_be_replaced = true;
                    let warning = json!({"type": "disconnect", "reason": "refresh_requested"}).to_string();
                    if socket.send(Message::text(warning)).await.is_err() {
                        return false;
                    }
                }
            }
        }
    }
}

impl Slack {
    fn acknowledges(&self, text: &str) {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        match answer["envelope_id"].as_str() {
            Some(envelope) => self.state().lines.acknowledged.push(envelope.to_owned()),
            None => self.world.breach(format!("the bot says {text} on its socket")),
        }
        self.heard.notify_waiters();
    }

    /// Sends an envelope on one of the running host's connections; returns whether it is acknowledged in time.
    pub(super) async fn over_a_line(&self, mut envelope: Value) -> bool {
        let host = self.world.host();
        let (line, id) = {
            let mut state = self.state();
            let open: Vec<usize> =
                (0..state.lines.open.len()).filter(|at| state.lines.open[*at].host == host).collect();
            if open.is_empty() || self.world.is_hit(Harm::OffSlack) {
                return false;
            }
            state.lines.last += 1;
            let id = format!("e{}", state.lines.last);
            envelope["envelope_id"] = json!(id);
            let line = &state.lines.open[one_of(&mut self.world.dice("line"), &open)];
            if line.to.send(envelope.to_string()).is_err() {
                return false;
            }
            (line.id, id)
        };
        let acknowledged = async {
            loop {
                let heard = self.heard.notified();
                {
                    let mut state = self.state();
                    if let Some(at) = state.lines.acknowledged.iter().position(|other| *other == id) {
                        state.lines.acknowledged.swap_remove(at);
                        return true;
                    }
                    if state.lines.open.iter().all(|other| other.id != line) {
                        return false;
                    }
                }
                heard.await;
            }
        };
        timeout(PATIENCE, acknowledged).await.unwrap_or(false)
    }
}

/// A stream that is cut after so many bytes, in both directions together.
struct Cut {
    inner: DuplexStream,
    left: Option<usize>,
}

impl Cut {
    /// How many of these bytes still pass.
    fn passes(&mut self, bytes: usize) -> usize {
        let Some(left) = &mut self.left else { return bytes };
        let passes = bytes.min(*left);
        *left -= passes;
        passes
    }
}

impl AsyncRead for Cut {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left == Some(0) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let passes = self.passes(buffer.filled().len() - before);
        buffer.set_filled(before + passes);
        read
    }
}

impl AsyncWrite for Cut {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.left == Some(0) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let most = self.left.map_or(bytes.len(), |left| bytes.len().min(left));
        let written = Pin::new(&mut self.inner).poll_write(cx, &bytes[..most]);
        if let Poll::Ready(Ok(written)) = &written {
            self.passes(*written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
