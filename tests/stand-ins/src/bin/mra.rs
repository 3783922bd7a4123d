//! A stand-in for `mra`; see `pmk_stand_ins::program`.

use pmk_stand_ins::program::{self, Step};

fn main() -> std::process::ExitCode {
    program::main(|line| Step::parse(line).map(|step| vec![step]), |_| None)
}
