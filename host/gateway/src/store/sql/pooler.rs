//! Detects whether a session is the client's own, or shared by a pooler in between.
//!
//! The server tells a client the number of the process that serves it, which the client can use to cancel a
//! request; a query returns the same number. A pooler that gives one session to several clients has to invent
//! numbers: with the number of the process, one client could cancel another's request. A relay or tunnel that only
//! forwards bytes forwards the real number, too.
//!
//! The client library does not reveal the number, but writes it into a cancel request; so one is written to a
//! stream that nobody reads.

use std::{
    future::{Ready, ready},
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Client, SimpleQueryMessage,
    tls::{ChannelBinding, TlsConnect, TlsStream},
};

const PROCESS: &str = "SELECT pg_backend_pid()";

/// Whether the session is the client's own.
///
/// # Errors
/// The server does not answer.
pub(super) async fn is_own(client: &Client) -> Result<bool, tokio_postgres::Error> {
    let said = client.simple_query(PROCESS).await?;
    let serves = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse::<i32>().ok(),
        _ => None,
    });
    let mut nobody = Nobody::default();
    client.cancel_token().cancel_query_raw(&mut nobody, AsItIs).await?;
    Ok(serves.is_some() && nobody.process() == serves)
}

/// A stream that keeps what is written to it, and accepts every request for TLS.
#[derive(Default)]
struct Nobody(Vec<u8>);

impl Nobody {
    /// Returns the process number of a cancel request, which ends with the number and a secret.
    fn process(&self) -> Option<i32> {
        let (_, [process @ .., _, _, _, _]) = self.0.split_last_chunk::<8>()?;
        Some(i32::from_be_bytes(*process))
    }
}

impl AsyncRead for Nobody {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        buf.put_slice(b"S");
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Nobody {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for &mut Nobody {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// A stream that nobody reads needs no TLS.
struct AsItIs;

impl<'n> TlsConnect<&'n mut Nobody> for AsItIs {
    type Stream = &'n mut Nobody;
    type Error = io::Error;
    type Future = Ready<io::Result<&'n mut Nobody>>;

    fn connect(self, nobody: &'n mut Nobody) -> Self::Future {
        ready(Ok(nobody))
    }
}
