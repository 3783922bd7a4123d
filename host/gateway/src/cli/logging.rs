//! Where the host's log goes: standard error, so that standard output is data alone.

use tracing::{Level, Metadata};
use tracing_subscriber::{EnvFilter, filter::filter_fn, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// The variable that chooses what is logged, in the syntax of `tracing`'s `EnvFilter`.
const VARIABLE: &str = "PMK_LOG";

/// Starts logging. `quiet` is for a terminal chat, where only what needs attention may interrupt.
pub(super) fn start(quiet: bool, json: bool) {
    let ours = if quiet { "" } else { ",pmk_host=info,pmk_policy=info" };
    // An entry of the compile cache that cannot be used is compiled again: nothing for anybody to do.
    let default = format!("warn,wasmtime_internal_cache=error{ours}");
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(default));
    let colour = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour);
    // A second subscriber in one process only happens in tests, which do not read the log.
    let _ = if json {
        log.json().finish().with(filter_fn(tells_no_secret)).try_init()
    } else {
        log.with_target(false).finish().with(filter_fn(tells_no_secret)).try_init()
    };
}

/// Whatever the operator wants to see: at the level `trace` the WebSocket library writes out the ticket that opens a
/// connection, and every frame, which is what people write.
fn tells_no_secret(metadata: &Metadata<'_>) -> bool {
    let of_sockets = ["tungstenite", "tokio_tungstenite"].iter().any(|library| metadata.target().starts_with(library));
    !of_sockets || *metadata.level() < Level::TRACE
}
