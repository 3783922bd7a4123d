//! `completions`: prints a shell completion script for this command line.

use clap::Args;
use clap_complete::Shell;
use pmk_core::Language;
use pmk_system::error::Failure;

use super::{help, output::print};

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Shell to complete for
    shell: Shell,
}

impl Completions {
    pub(super) fn execute(self, language: Language) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut help::command_line(language), super::NAME, &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
