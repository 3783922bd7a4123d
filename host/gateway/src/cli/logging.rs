//! Where the host's log goes: standard error, so that standard output is data alone.

use tracing_subscriber::{EnvFilter, fmt};

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
    let _ = if json { log.json().try_init() } else { log.with_target(false).try_init() };
}
