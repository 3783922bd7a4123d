//! Health probes over HTTP: `/healthz` and `/readyz`, on an address that the operator chooses.
//!
//! HTTP is provided by hyper, which is a dependency for the models anyway. Callers are not trusted: a caller has one
//! second to send its request and a few seconds in all, may send at most 8 KiB of headers, and gets one response; a
//! body is not read.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use pmk_system::{error::Failure, threads::offload};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use super::{
    health::Level,
    health_check::{Condition, HealthCheck},
};

/// The time limit for a whole connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time limit for sending the request, so that silent callers, even as many as are answered concurrently, do not
/// keep probes out.
const SILENCE: Duration = Duration::from_secs(1);

/// The most callers answered concurrently; more wait.
const AT_ONCE: usize = 32;

/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 8 << 10;

/// Answers on this address for as long as the returned set is kept; without an address, it does
/// nothing.
///
/// # Errors
/// The address is in use, or does not belong to this machine.
pub async fn start(listen: Option<SocketAddr>, vitals: &Arc<HealthCheck>) -> Result<JoinSet<()>, Failure> {
    let mut tasks = JoinSet::new();
    if let Some(address) = listen {
        let cannot = |error: io::Error| unavailable(address, &error);
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        tracing::info!("health: http://{}/healthz", listener.local_addr().map_err(cannot)?);
        tasks.spawn(serve(listener, Arc::clone(vitals)));
    }
    Ok(tasks)
}

/// Tries whether [`start`] could listen on this address.
///
/// # Errors
/// As [`start`].
pub fn try_address(address: SocketAddr) -> Result<(), Failure> {
    std::net::TcpListener::bind(address).map(drop).map_err(|error| unavailable(address, &error))
}

fn unavailable(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(format!("cannot listen on {address}: {error}"))
        .hint("set the address with `health.listen` in gateway.json; port 0 uses any free port")
}

async fn serve(listener: TcpListener, vitals: Arc<HealthCheck>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    // They end with this future.
    let mut callers = JoinSet::new();
    loop {
        while callers.try_join_next().is_some() {}
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let vitals = Arc::clone(&vitals);
                callers.spawn(async move {
                    // A caller that sends nothing valid, or nothing in time, gets no answer and is not
                    // logged.
                    let _ = tokio::time::timeout(PATIENCE, converse(stream, &vitals)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot answer a health probe");
                // If no file handles are left, the next call fails at once, too.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, vitals: &Arc<HealthCheck>) -> hyper::Result<()> {
    let service = service_fn(|request| answer(request, Arc::clone(vitals)));
    http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

async fn answer(request: Request<Incoming>, vitals: Arc<HealthCheck>) -> Result<Response<String>, hyper::http::Error> {
    let is_well = match request.uri().path() {
        "/healthz" => |now: &Condition| now.level != Level::Down,
        "/readyz" => |now: &Condition| now.ready,
        _ => return refusal(StatusCode::NOT_FOUND, "ask /healthz or /readyz\n"),
    };
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return refusal(StatusCode::METHOD_NOT_ALLOWED, "ask by GET or HEAD\n");
    }
    let now = offload(move || vitals.now()).await;
    let status = if is_well(&now) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json")
        .header(CACHE_CONTROL, "no-store")
        .body(serde_json::to_string(&now).unwrap_or_default() + "\n")
}

fn refusal(status: StatusCode, what: &str) -> Result<Response<String>, hyper::http::Error> {
    Response::builder()
        .status(status)
        .header(ALLOW, "GET, HEAD")
        .header(CONTENT_TYPE, "text/plain")
        .body(what.to_owned())
}
