//! `completions`: what a shell needs to complete this command line.

use clap::Args;
use clap_complete::Shell;
use pmk_system::error::Failure;

use super::output::print;

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell that completes
    shell: Shell,
}

impl Completions {
    pub(super) fn execute(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), super::NAME, &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
