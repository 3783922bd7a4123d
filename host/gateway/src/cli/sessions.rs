//! `sessions list|show|reset|erase|parked|retry|export|import`: conversations, whether the gateway is running or not.

mod erase;
pub(super) mod export;
mod import;
mod parked;
mod reset;
mod show;

use clap::{Subcommand, ValueEnum};
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::{
    context::{Context, block_on},
    output::{print, print_json},
    text::time,
};
use crate::store::{SessionSummary, Store};

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List all conversations, most recent first
    List,
    /// Show what the model would see of a conversation
    Show(show::Show),
    /// Empty or shorten a conversation's live window; its archive is kept
    Reset(reset::Reset),
    /// Erase conversations for good, with their archive, or what one person has written
    Erase(erase::Erase),
    /// List messages that could not be answered and were parked
    Parked,
    /// Retry parked messages
    Retry(parked::Retry),
    /// Export conversations to files
    Export(export::Export),
    /// Import conversations from files
    Import(import::Import),
}

/// What the files look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// pmk's JSON tree: the texts that the model would see
    Pmk,
    /// A single lossless JSON Lines file
    Full,
}

impl SessionsCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let store = || Ok::<_, Failure>(Store::open_existing(context.place()?)?);
        match self {
            SessionsCommand::List => block_on(async { list(context, &store()?).await }),
            SessionsCommand::Show(show) => block_on(async { show.run(context, &store()?).await }),
            SessionsCommand::Reset(reset) => block_on(async { reset.run(context, &store()?).await }),
            SessionsCommand::Erase(erase) => block_on(async { erase.run(context, &store()?).await }),
            SessionsCommand::Parked => block_on(async { parked::list(context, &store()?).await }),
            SessionsCommand::Retry(retry) => retry.run(context),
            SessionsCommand::Export(export) => block_on(async { export.run(context, &store()?).await }),
            SessionsCommand::Import(import) => import.run(context),
        }
    }
}

async fn list(context: &Context, store: &Store) -> Result<(), Failure> {
    let sessions = store.sessions().await?;
    if context.json {
        return print_json(&sessions.iter().map(summary).collect());
    }
    if sessions.is_empty() {
        context.say(&format!("no conversations yet in `{}`", store.name()));
        return Ok(());
    }
    let heading = ["KEY", "#TURNS", "#LIVE", "#TOKENS", "#DROPPED", "#ARCHIVED", "LAST ACTIVE"];
    let rows: Vec<Vec<String>> = std::iter::once(heading.map(str::to_owned).to_vec())
        .chain(sessions.iter().map(|session| {
            vec![
                session.key.to_string(),
                session.turns.to_string(),
                session.live_messages.to_string(),
                session.live_tokens.to_string(),
                session.dropped_turns.to_string(),
                session.archived_messages.to_string(),
                time(session.active_at_ms),
            ]
        }))
        .collect();
    print(&context.columns(&rows))
}

fn summary(session: &SessionSummary) -> Value {
    json!({
        "key": session.key,
        "turns": session.turns,
        "live_messages": session.live_messages,
        "live_tokens": session.live_tokens,
        "dropped_turns": session.dropped_turns,
        "archived_messages": session.archived_messages,
        "active_at": time(session.active_at_ms),
    })
}

/// A number of conversations in words.
fn conversations(count: usize) -> String {
    match count {
        1 => "1 conversation".to_owned(),
        _ => format!("{count} conversations"),
    }
}
