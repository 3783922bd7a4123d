//! `slack`: what has to be done in Slack.

use clap::Subcommand;
use pmk_system::error::Failure;

use super::{
    context::Context,
    output::{note, print_json},
};
use crate::front::slack::app;

#[derive(Debug, Subcommand)]
pub(super) enum SlackCommand {
    /// Print the manifest of the app, as JSON for one paste
    Manifest,
}

impl SlackCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            SlackCommand::Manifest => manifest(context),
        }
    }
}

/// The manifest goes to standard output, what to do with it to who reads it.
fn manifest(context: &Context) -> Result<(), Failure> {
    print_json(&app::manifest())?;
    if !context.json {
        note(format_args!(
            "\n1. https://api.slack.com/apps?new_app=1, \"From a manifest\": choose the workspace, paste the JSON above\n\
             2. \"Install App\": install it, and take the bot token (xoxb-…) as PMK_SLACK_BOT_TOKEN\n\
             3. \"Basic Information\", \"App-Level Tokens\": make one with the scope `{}`,\n   \
             and take it (xapp-…) as PMK_SLACK_APP_TOKEN\n\
             4. pmk-host run",
            app::CONNECT
        ));
    }
    Ok(())
}
