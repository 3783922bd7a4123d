//! The `pmk-host` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The gateway compiles components in a child process, which is this same program.
    if let Some(done) = pmk_policy::compile::main(std::env::args_os()) {
        return done;
    }
    // The supervisors that keep its other children from outliving it are this program, too.
    if let Some(done) = pmk_system::child::supervisor::main(std::env::args_os()) {
        return done;
    }
    // Two TLS providers in one process panic at the first handshake, so this one is installed explicitly.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("error: a TLS provider was installed twice");
        return ExitCode::from(2);
    }
    pmk_host::cli::main()
}
