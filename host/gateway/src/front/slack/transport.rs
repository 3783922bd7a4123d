//! What carries calls and connections to Slack: the network, or a simulated world.

use std::{fmt, io};

use async_trait::async_trait;
use reqwest::{Client, Request, Response};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// A stream of bytes in both directions.
pub trait Pipe: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Pipe for T {}

/// Carries calls and connections to Slack.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Makes a call.
    ///
    /// # Errors
    /// Slack was not reached, or its response was not received.
    async fn call(&self, request: Request) -> reqwest::Result<Response>;

    /// Opens the connection for a WebSocket.
    ///
    /// # Errors
    /// The host was not reached.
    async fn dial(&self, host: &str, port: u16) -> io::Result<Box<dyn Pipe>>;
}

#[async_trait]
impl Transport for Client {
    async fn call(&self, request: Request) -> reqwest::Result<Response> {
        self.execute(request).await
    }

    async fn dial(&self, host: &str, port: u16) -> io::Result<Box<dyn Pipe>> {
        // An address may have brackets that a resolver does not know.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, port)).await?;
        // Without Nagle's algorithm: an acknowledgement is one small frame, and Slack waits for it.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}
