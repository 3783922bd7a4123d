//! The command line, one file a subcommand.

use std::process::ExitCode;

/// Parses the arguments and runs the subcommand.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
