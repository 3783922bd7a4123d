//! The `pmk-host` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Two TLS providers in one process panic at the first handshake; this is the one.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("error: a TLS provider was installed twice");
        return ExitCode::from(2);
    }
    pmk_host::cli::main()
}
