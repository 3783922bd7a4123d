//! Socket Mode's WebSockets.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{
        RawQuery, State as Shared,
        ws::{Message as Frame, WebSocket, WebSocketUpgrade},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant as TokioInstant, interval, sleep_until, timeout},
};

use super::{APP_ID, Fault, Inner, events};

/// The lifetime of a ticket.
const TICKET_LIFE: Duration = Duration::from_secs(30);
/// The maximum number of sockets of an app.
const MAX_SOCKETS: usize = 10;
/// How long the other side may take to answer a WebSocket close.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// An open socket.
pub(super) struct Socket {
    pub(super) id: u64,
    pub(super) commands: mpsc::UnboundedSender<Command>,
}

/// A frame that Slack would never send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    Text(String),
    Binary(Vec<u8>),
}

/// A command to a socket.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Send(String),
    /// Sends a raw frame.
    Raw(Raw),
    /// Announces the end, with this reason, and closes after the grace period.
    Disconnect(String),
    /// Breaks the connection.
    Drop,
    /// Neither sends nor reads any more. The kernel accepts what is sent here.
    Freeze,
    /// Stops reading, and continues to send.
    Deafen,
}

/// `GET /link/?ticket=…`
pub(super) async fn link(
    Shared(inner): Shared<Arc<Inner>>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let fault = inner.state().fault("link");
    match fault {
        Some(Fault::Status(status)) => {
            return StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY).into_response();
        }
        Some(_) => pending().await,
        None => {}
    }
    let query = query.unwrap_or_default();
    let ticket = query.split('&').find_map(|pair| pair.strip_prefix("ticket=")).unwrap_or_default();
    let made = inner.state().tickets.remove(ticket);
    if made.is_none_or(|made| made.elapsed() > TICKET_LIFE) {
        inner.state().violations.push("a socket was opened with a ticket that is used, old or unknown".to_owned());
        return StatusCode::FORBIDDEN.into_response();
    }
    upgrade.on_upgrade(move |socket| serve(inner, socket))
}

async fn serve(inner: Arc<Inner>, mut socket: WebSocket) {
    let (commands, mut orders) = mpsc::unbounded_channel();
    let (id, open) = {
        let mut state = inner.state();
        (state.number(), state.sockets.len() + 1)
    };
    if open > MAX_SOCKETS {
        socket.send(Frame::text(disconnect("too_many_websockets"))).await.ok();
        return close(&inner, &mut socket).await;
    }
    let hello = json!({
        "type": "hello", "num_connections": open, "connection_info": {"app_id": APP_ID},
        "debug_info": {"host": "applink-stand-in", "build_number": 10, "approximate_connection_time": 18060},
    });
    if socket.send(Frame::text(hello.to_string())).await.is_err() {
        return;
    }
    if let Some(Fault::Error(reason)) = inner.state().fault("hello") {
        commands.send(Command::Disconnect(reason.to_owned())).ok();
    }
    inner.state().sockets.push(Socket { id, commands });
    inner.changed.notify_waiters();
    converse(&inner, &mut socket, &mut orders).await;
    inner.state().sockets.retain(|socket| socket.id != id);
    inner.changed.notify_waiters();
}

/// Runs a socket until one of the two sides closes it.
async fn converse(inner: &Inner, socket: &mut WebSocket, orders: &mut mpsc::UnboundedReceiver<Command>) {
    let mut ping = interval(inner.rules.ping_every);
    let mut closing_at = None;
    let mut deaf = false;
    loop {
        let sent = tokio::select! {
            frame = socket.recv(), if !deaf => match frame {
                Some(Ok(Frame::Text(text))) => {
                    events::acknowledge(inner, &text);
                    Ok(())
                }
                Some(Ok(Frame::Close(_))) => {
                    // Reading on sends our own close frame.
                    farewell(inner, socket).await;
                    return;
                }
                Some(Err(_)) | None => return,
                Some(Ok(_)) => Ok(()),
            },
            order = orders.recv() => match order {
                Some(Command::Send(text)) => socket.send(Frame::text(text)).await,
                Some(Command::Raw(Raw::Text(text))) => socket.send(Frame::text(text)).await,
                Some(Command::Raw(Raw::Binary(bytes))) => socket.send(Frame::binary(bytes)).await,
                Some(Command::Disconnect(reason)) => {
                    closing_at = Some(TokioInstant::now() + inner.rules.warning_grace);
                    socket.send(Frame::text(disconnect(&reason))).await
                }
                Some(Command::Freeze) => freeze(orders).await,
                Some(Command::Deafen) => {
                    deaf = true;
                    Ok(())
                }
                Some(Command::Drop) | None => return,
            },
            _ = ping.tick() => socket.send(Frame::Ping("Ping from applink-stand-in".into())).await,
            () = elapsed(closing_at) => return close(inner, socket).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Closes a WebSocket according to the protocol, and records if the other side did not.
async fn close(inner: &Inner, socket: &mut WebSocket) {
    let answered = socket.send(Frame::Close(None)).await.is_ok() && farewell(inner, socket).await;
    if !answered {
        inner.state().unanswered_ends += 1;
    }
}

/// Reads until the connection ends, processing remaining frames; returns whether the other side sent a close frame.
async fn farewell(inner: &Inner, socket: &mut WebSocket) -> bool {
    let mut closed = false;
    let last_words = async {
        while let Some(Ok(frame)) = socket.recv().await {
            match frame {
                Frame::Text(text) => events::acknowledge(inner, &text),
                Frame::Close(_) => closed = true,
                _ => {}
            }
        }
    };
    timeout(CLOSE_WAIT, last_words).await.ok();
    closed
}

async fn elapsed(at: Option<TokioInstant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

/// Drops everything that is to be sent, until the connection is to be broken.
async fn freeze(orders: &mut mpsc::UnboundedReceiver<Command>) -> Result<(), axum::Error> {
    while let Some(order) = orders.recv().await {
        if matches!(order, Command::Drop) {
            break;
        }
    }
    Err(axum::Error::new("the connection was frozen and then broken"))
}

fn disconnect(reason: &str) -> String {
    json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-stand-in"}}).to_string()
}

/// Creates a ticket.
pub(super) fn ticket(inner: &Inner) -> String {
    let mut state = inner.state();
    let ticket = state.id("ticket-");
    state.tickets.insert(ticket.clone(), Instant::now());
    ticket
}
