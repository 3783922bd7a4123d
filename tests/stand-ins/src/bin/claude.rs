//! A stand-in for the `claude` command line; see `pmk_stand_ins::program`.

use pmk_stand_ins::program;

fn main() -> std::process::ExitCode {
    program::main(program::claude::step, program::claude::reads_a_file)
}
