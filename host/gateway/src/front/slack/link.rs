//! One WebSocket of Socket Mode, from its hello to its last acknowledgement.

use std::{
    future::{pending, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt, SinkExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use reqwest::Url;
use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout},
};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config,
    tungstenite::{Bytes, Error as WsError, Message, error::UrlError, protocol::WebSocketConfig},
};

use super::{
    config::Timings,
    connectivity::Presence,
    envelope::{Frame, InboundContext, acknowledgement},
    failure,
    token::Token,
    transport::{Pipe, Transport},
};

/// How many messages may wait for the intake before reading pauses,
const MAX_IN_FLIGHT: usize = 256;
/// and their total length: each is in memory until it is stored.
const MAX_IN_FLIGHT_BYTES: usize = 16 << 20;
/// How many acknowledgements are sent at once, if that many frames have arrived at once.
const MAX_UNSENT: usize = 32;
/// The longest frame. Slack cuts messages at 40,000 characters; with its blocks, and every character escaped, that
/// is less than one megabyte.
const MAX_FRAME_BYTES: usize = 4 << 20;
/// Why Slack closes a connection if the app has more than ten.
const TOO_MANY: &str = "too_many_websockets";
/// How long to wait for Slack's close frame; nothing depends on it.
const CLOSE_WAIT: Duration = Duration::from_secs(1);

/// An open connection, over TCP with or without TLS; in tests, over a pipe.
pub(super) struct Link<'a, S = MaybeTlsStream<Box<dyn Pipe>>> {
    socket: WebSocketStream<S>,
    reception: InboundContext<'a>,
    timings: Timings,
    /// Messages being stored.
    in_flight: FuturesUnordered<BoxFuture<'a, Done>>,
    in_flight_bytes: usize,
    opened: Instant,
    /// When the last frame arrived.
    heard: Instant,
    /// The first ping since the last pong.
    asked: Option<Instant>,
    /// Acknowledgements that are sent as soon as no further frame has arrived: how many, and since when.
    unsent: Option<(usize, Instant)>,
    /// Set after the hello.
    presence: Option<Presence<'a>>,
    /// Slack has announced that it will close the connection,
    leaving: bool,
    /// because the app has too many.
    is_one_too_many: bool,
}

/// Why [`Link::serve`] returned.
pub(super) enum ServeOutcome<T> {
    /// The awaited future has completed.
    Until(T),
    /// Slack will close this connection soon; it works until then. Returned once.
    Leaving,
    LinkError(LinkError),
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum LinkError {
    /// A new connection may work; not before `retry_after`, if that is known.
    Lost { why: String, retry_after: Option<Duration> },
    /// Slack accepts no connections from this app until a person changes something.
    Refused { what: String, hint: String },
}

/// A frame that has been handled.
struct Done {
    acknowledgement: Option<String>,
    /// Its length.
    bytes: usize,
}

/// What a frame means for its connection.
enum Step {
    Greeted,
    Go,
    Leave,
    Close,
}

impl<'a> Link<'a> {
    /// Connects and waits for Slack's hello: from then on, events may arrive.
    pub(super) async fn open(
        url: Url,
        transport: &dyn Transport,
        tls: Arc<ClientConfig>,
        reception: InboundContext<'a>,
        timings: Timings,
    ) -> Result<Self, LinkError> {
        let late = |_| LinkError::lost(format!("it did not open within {:.1} s", timings.connect.as_secs_f64()));
        let connecting = async {
            let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
                return Err(WsError::Url(UrlError::NoHostName));
            };
            let pipe = transport.dial(host, port).await?;
            client_async_tls_with_config(url.as_str(), pipe, Some(bounds()), Some(Connector::Rustls(tls))).await
        };
        let connected = timeout(timings.connect, connecting).await.map_err(late)?;
        let (socket, _) = connected.map_err(|error| LinkError::lost(describe(&error)))?;
        let mut link = Link::over(socket, reception, timings);
        timeout(timings.connect, link.greeted()).await.map_err(late)??;
        link.presence = Some(reception.hearing.opened());
        Ok(link)
    }
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Link<'a, S> {
    fn over(socket: WebSocketStream<S>, reception: InboundContext<'a>, timings: Timings) -> Self {
        let now = Instant::now();
        Link {
            socket,
            reception,
            timings,
            in_flight: FuturesUnordered::new(),
            in_flight_bytes: 0,
            opened: now,
            heard: now,
            asked: None,
            unsent: None,
            presence: None,
            leaving: false,
            is_one_too_many: false,
        }
    }

    async fn greeted(&mut self) -> Result<(), LinkError> {
        loop {
            let frame = self.socket.next().await;
            match self.read(frame)? {
                Step::Greeted => return Ok(()),
                Step::Leave | Step::Close => return Err(LinkError::lost("Slack rejected it")),
                Step::Go => {}
            }
        }
    }

    /// Returns how long the connection has been open.
    pub(super) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Returns whether Slack closes the connection because the app has too many.
    pub(super) fn is_one_too_many(&self) -> bool {
        self.is_one_too_many
    }

    /// Takes messages in and acknowledges them, until `until` completes or the connection ends.
    pub(super) async fn serve<T>(&mut self, until: impl Future<Output = T>) -> ServeOutcome<T> {
        let mut until = pin!(until);
        let mut ping = interval_at(Instant::now() + self.timings.ping, self.timings.ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let listening = self.in_flight.len() < MAX_IN_FLIGHT && self.in_flight_bytes < MAX_IN_FLIGHT_BYTES;
            if !listening {
                // A pong would not be read either: the store is slow, not Slack.
                self.asked = None;
            }
            let too_late = self.waiting_since().map(|since| since + self.timings.pong);
            let step = tokio::select! {
                // Received frames are handled before timeouts: this process may have been suspended.
                biased;
                value = &mut until => return ServeOutcome::Until(value),
                Some(done) = self.in_flight.next() => self.acknowledge(done).await,
                event = heard_or_sent(&mut self.socket, listening, self.unsent.is_some()) => match event {
                    SocketEvent::Heard(frame) => self.read(frame),
                    SocketEvent::Sent(sent) => self.sent(sent),
                },
                () = reached(too_late) => Err(self.silent()),
                _ = ping.tick(), if listening => self.ping().await,
            };
            match step {
                Ok(Step::Leave) => return ServeOutcome::Leaving,
                Ok(Step::Go | Step::Greeted) => {}
                Ok(Step::Close) => {
                    // Sends our close frame.
                    timeout(CLOSE_WAIT, self.socket.flush()).await.ok();
                    return ServeOutcome::LinkError(LinkError::lost("Slack closed it"));
                }
                Err(gone) => return ServeOutcome::LinkError(gone),
            }
        }
    }

    /// Closes the connection after storing and acknowledging the messages in progress. Messages that
    /// Slack sends before it notices are stored, too; since they can no longer be acknowledged, Slack
    /// will send them again, and the intake will recognize them.
    pub(super) async fn retire(mut self) {
        let drain = self.timings.drain;
        let storing = async {
            if self.flush().await.is_err() {
                return;
            }
            while let Some(done) = self.in_flight.next().await {
                if self.acknowledge(done).await.is_err() || self.flush().await.is_err() {
                    return;
                }
            }
            let closing = async {
                self.socket.close(None).await.ok();
                while let Some(Ok(frame)) = self.socket.next().await {
                    if frame.is_close() || self.read(Some(Ok(frame))).is_err() {
                        break;
                    }
                }
            };
            timeout(CLOSE_WAIT, closing).await.ok();
            while self.in_flight.next().await.is_some() {}
        };
        if timeout(drain, storing).await.is_err() {
            tracing::warn!("cannot store a message in time; Slack will send it again");
        }
    }

    fn read(&mut self, frame: Option<Result<Message, WsError>>) -> Result<Step, LinkError> {
        let frame = match frame {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Err(LinkError::lost(describe(&error))),
            None => return Err(LinkError::lost("it ended without a reason")),
        };
        self.heard = Instant::now();
        let text = match frame {
            Message::Text(text) => text,
            Message::Close(_) => return Ok(Step::Close),
            Message::Pong(_) => {
                self.asked = None;
                return Ok(Step::Go);
            }
            Message::Binary(_) => {
                self.reception.refuse("frame");
                return Ok(Step::Go);
            }
            // Pings are answered while reading.
            Message::Ping(_) | Message::Frame(_) => return Ok(Step::Go),
        };
        match Frame::read(&text) {
            Frame::Hello => return Ok(Step::Greeted),
            Frame::Disconnect { reason } => return self.disconnected(&reason),
            Frame::Event { envelope, callback, again } => {
                self.take(text.len(), self.reception.take(envelope, callback, again).boxed());
            }
            Frame::Command { envelope, message } => {
                self.take(text.len(), self.reception.obey(envelope, message).boxed());
            }
            Frame::Press { envelope, press } => {
                self.take(text.len(), self.reception.press(envelope, press).boxed());
            }
            Frame::Click { envelope, invocation } => {
                self.reception.intake.invoke(invocation);
                self.pass_over(text.len(), Some(envelope));
            }
            Frame::Other { envelope } => self.pass_over(text.len(), envelope),
            Frame::Malformed { part, envelope } => {
                self.reception.refuse(part);
                self.pass_over(text.len(), envelope);
            }
        }
        Ok(Step::Go)
    }

    /// Handles a frame of that length while the next ones are read.
    fn take(&mut self, bytes: usize, work: BoxFuture<'a, Option<String>>) {
        self.in_flight_bytes += bytes;
        self.in_flight.push(work.map(move |acknowledgement| Done { acknowledgement, bytes }).boxed());
    }

    fn pass_over(&mut self, bytes: usize, envelope: Option<String>) {
        if let Some(envelope) = envelope {
            self.take(bytes, std::future::ready(Some(acknowledgement(&envelope))).boxed());
        }
    }

    fn disconnected(&mut self, reason: &str) -> Result<Step, LinkError> {
        if failure::is_fatal(reason) {
            let hint = failure::hint(reason, Token::App, None);
            return Err(LinkError::Refused { what: format!("Slack ended Socket Mode: `{reason}`"), hint });
        }
        tracing::debug!(reason, "Slack will close a connection");
        self.is_one_too_many |= reason == TOO_MANY;
        if std::mem::replace(&mut self.leaving, true) { Ok(Step::Go) } else { Ok(Step::Leave) }
    }

    async fn acknowledge(&mut self, done: Done) -> Result<Step, LinkError> {
        self.in_flight_bytes -= done.bytes;
        let Some(ack) = done.acknowledgement else { return Ok(Step::Go) };
        let (count, since) = self.unsent.map_or((1, Instant::now()), |(count, since)| (count + 1, since));
        self.unsent = Some((count, since));
        self.feed(Message::text(ack)).await?;
        if count < MAX_UNSENT { Ok(Step::Go) } else { self.flush().await }
    }

    /// Sends a ping. Only a pong proves that Slack receives, too.
    async fn ping(&mut self) -> Result<Step, LinkError> {
        self.asked.get_or_insert_with(Instant::now);
        self.send(Message::Ping(Bytes::new())).await
    }

    /// Since when Slack has not read what is to be sent, or not answered it.
    fn waiting_since(&self) -> Option<Instant> {
        self.asked.into_iter().chain(self.unsent.map(|(_, since)| since)).min()
    }

    /// Notes that the other end is gone.
    fn silent(&mut self) -> LinkError {
        let waiting_since = self.waiting_since();
        let since = waiting_since.map_or(self.heard, |since| since.min(self.heard));
        if let Some(presence) = &mut self.presence {
            presence.fell_silent(since);
        }
        LinkError::lost(format!("it has not answered for {:.1} s", since.elapsed().as_secs_f64()))
    }

    async fn send(&mut self, frame: Message) -> Result<Step, LinkError> {
        self.feed(frame).await?;
        self.flush().await
    }

    /// Has a frame sent with the next flush.
    async fn feed(&mut self, frame: Message) -> Result<(), LinkError> {
        match timeout(self.timings.pong, self.socket.feed(frame)).await {
            Ok(fed) => fed.map_err(|error| LinkError::lost(describe(&error))),
            Err(_) => Err(self.silent()),
        }
    }

    async fn flush(&mut self) -> Result<Step, LinkError> {
        match timeout(self.timings.pong, self.socket.flush()).await {
            Ok(sent) => self.sent(sent),
            Err(_) => Err(self.silent()),
        }
    }

    /// Notes that everything was sent.
    fn sent(&mut self, sent: Result<(), WsError>) -> Result<Step, LinkError> {
        self.unsent = None;
        sent.map(|()| Step::Go).map_err(|error| LinkError::lost(describe(&error)))
    }
}

/// What has happened on a socket.
enum SocketEvent {
    /// A frame has arrived, or the end.
    Heard(Option<Result<Message, WsError>>),
    /// What was unsent was sent.
    Sent(Result<(), WsError>),
}

/// Reads the next frame; if none has arrived, sends what is unsent.
async fn heard_or_sent<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    listening: bool,
    has_unsent: bool,
) -> SocketEvent {
    poll_fn(|cx| {
        if listening && let Poll::Ready(frame) = socket.poll_next_unpin(cx) {
            return Poll::Ready(SocketEvent::Heard(frame));
        }
        if has_unsent { socket.poll_flush_unpin(cx).map(SocketEvent::Sent) } else { Poll::Pending }
    })
    .await
}

/// The limits of a connection: a longer frame ends it, and is never held in full.
fn bounds() -> WebSocketConfig {
    WebSocketConfig::default().max_frame_size(Some(MAX_FRAME_BYTES)).max_message_size(Some(MAX_FRAME_BYTES))
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

impl LinkError {
    fn lost(why: impl Into<String>) -> Self {
        LinkError::Lost { why: why.into(), retry_after: None }
    }
}

/// Describes the error without a ticket.
fn describe(error: &WsError) -> String {
    match error {
        // This one contains the address.
        WsError::Url(_) => "its address cannot be used".to_owned(),
        WsError::Http(response) => format!("Slack answered HTTP {}", response.status().as_u16()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
