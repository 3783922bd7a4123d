//! The `pmk-host` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Components are compiled by a child of the gateway, which is this program, too.
    if let Some(done) = pmk_policy::compile::main(std::env::args_os()) {
        return done;
    }
    // So are those who see to it that its other children do not outlive it.
    if let Some(done) = pmk_system::child::supervisor::main(std::env::args_os()) {
        return done;
    }
    // Two TLS providers in one process panic at the first handshake; this is the one.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("error: a TLS provider was installed twice");
        return ExitCode::from(2);
    }
    pmk_host::cli::main()
}
