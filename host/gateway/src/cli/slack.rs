//! `slack`: what to set up in Slack.

use clap::Subcommand;
use pmk_system::error::Failure;

use super::{
    context::Context,
    output::{note_steps, print_json},
};
use crate::{front::slack::app, messages::Messages};

#[derive(Debug, Subcommand)]
pub(super) enum SlackCommand {
    /// Print the app manifest as JSON, ready to paste
    Manifest,
}

impl SlackCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            SlackCommand::Manifest => manifest(context),
        }
    }
}

/// Prints the manifest to standard output, and the steps to standard error.
fn manifest(context: &Context) -> Result<(), Failure> {
    let messages = Messages::new(context.language);
    print_json(&app::manifest(&messages))?;
    if !context.json {
        note_steps(&format!("\n{}\n{}", messages.manifest_steps(app::CONNECT), messages.manifest_next()));
    }
    Ok(())
}
