//! Whether a session is the client's own, or shared out by a pooler that stands between.
//!
//! The server tells a client the number of the process that serves it, by which the client may have it stopped; and says the
//! same number when it is asked for it. A pooler that hands one session to several clients has to make up numbers of its own:
//! by that of the process, one client would stop what another has asked. What passes on bytes alone, a relay or a tunnel,
//! passes on the number, too.
//!
//! The client's library keeps the number to itself, but writes it into what stops a process; so that is written to nobody.

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

/// # Errors
/// The server does not say.
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

/// Keeps what is written to it, and agrees to whatever it is asked.
#[derive(Default)]
struct Nobody(Vec<u8>);

impl Nobody {
    /// The number in a request to stop a process: its last words are that and a secret.
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

/// What is written to nobody need not be hidden.
struct AsItIs;

impl<'n> TlsConnect<&'n mut Nobody> for AsItIs {
    type Stream = &'n mut Nobody;
    type Error = io::Error;
    type Future = Ready<io::Result<&'n mut Nobody>>;

    fn connect(self, nobody: &'n mut Nobody) -> Self::Future {
        ready(Ok(nobody))
    }
}
