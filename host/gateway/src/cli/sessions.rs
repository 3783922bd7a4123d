//! `sessions list|show|reset`: conversations, while the gateway runs or not.

use clap::{Args, Subcommand};
use pmk_core::{Block, Marker, Message, Origin, SessionKey, text};
use serde_json::{Value, json};

use super::{Context, block_on, note, print, print_json, table, text::time};
use crate::{
    clock,
    error::Failure,
    store::{SessionSummary, Store, StoredMessage},
};

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List all conversations, the latest first
    List,
    /// Show what the model would see of a conversation
    Show(Show),
    /// Empty a conversation's live window; the archive stays
    Reset(Reset),
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The conversation, as `sessions list` prints it
    key: SessionKey,
    /// Show the whole archive, every original uncut
    #[arg(long)]
    full: bool,
}

#[derive(Debug, Args)]
pub(super) struct Reset {
    /// The conversation, as `sessions list` prints it
    key: SessionKey,
}

impl SessionsCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        block_on(async {
            let store = Store::open_existing(&context.home)?;
            match self {
                SessionsCommand::List => list(context, &store).await,
                SessionsCommand::Show(show) => show.run(context, &store).await,
                SessionsCommand::Reset(reset) => reset.run(context, &store).await,
            }
        })
    }
}

async fn list(context: &Context, store: &Store) -> Result<(), Failure> {
    let sessions = store.sessions().await?;
    if context.json {
        return print_json(&sessions.iter().map(summary).collect());
    }
    if sessions.is_empty() {
        note(format!("no conversations yet in `{}`", context.home.display()));
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
    print(&table::columns(&rows))
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

impl Show {
    async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let session = store.session(&self.key).await?;
        let messages = store.session_messages(&self.key, self.full).await?;
        let marker = self.marker(&session);
        if context.json {
            let marker = marker.map(|marker| json!({"turns": marker.turns, "text": marker.text()}));
            let messages: Vec<Value> = messages.iter().map(|message| self.document(message)).collect();
            return print_json(&json!({"key": self.key, "marker": marker, "messages": messages}));
        }
        if messages.is_empty() {
            context
                .notice(&format!("the model would see nothing of `{}`", self.key), Some("`--full` shows the archive"));
        }
        let is_seed = |stored: &&StoredMessage| matches!(stored.entry.message.origin, Origin::Seed | Origin::SeedAck);
        let seed = messages.iter().take_while(is_seed).count();
        let mut pages: Vec<String> = messages.iter().map(|message| self.page(message)).collect();
        if let Some(marker) = marker {
            pages.insert(
                seed,
                format!("- {} ({} tokens)\n  {}\n", Origin::Marker.name(), marker.tokens(), marker.text()),
            );
        }
        print(&pages.concat())
    }

    /// What stands for the turns that were dropped, where the model would see it.
    fn marker(&self, session: &SessionSummary) -> Option<Marker> {
        if self.full || session.dropped_turns == 0 {
            return None;
        }
        Some(match &session.marker_template {
            Some(words) => Marker::with_template(session.dropped_turns, words).0,
            None => Marker::new(session.dropped_turns),
        })
    }

    /// The original in full, else what the model would see.
    fn shown<'a>(&self, stored: &'a StoredMessage) -> &'a Message {
        if self.full { stored.entry.source() } else { &stored.entry.message }
    }

    fn document(&self, stored: &StoredMessage) -> Value {
        let message = self.shown(stored);
        json!({
            "id": stored.entry.shown_id(),
            "role": message.role,
            "origin": message.origin,
            "content": message.blocks,
            "tokens": stored.entry.tokens,
            "live": stored.live,
            "shortened": stored.entry.original.is_some(),
            "created_at": time(stored.created_at_ms),
        })
    }

    fn page(&self, stored: &StoredMessage) -> String {
        let message = self.shown(stored);
        let state = match (stored.live, stored.entry.original.is_some()) {
            (false, _) => ", archived",
            (true, true) => ", shortened",
            (true, false) => "",
        };
        let mut page = format!(
            "{} {} ({} tokens{state}) {}\n",
            stored.entry.shown_id(),
            message.origin.name(),
            stored.entry.tokens,
            time(stored.created_at_ms)
        );
        for block in &message.blocks {
            page.extend(text::printable(&block_text(block)).lines().map(|line| format!("  {line}\n")));
        }
        page
    }
}

/// A block as people read it.
fn block_text(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::ToolUse { id, name, input } => format!("[tool_use {id}] {name} {input}"),
        Block::ToolResult { tool_use_id, content, .. } => format!("[tool_result {tool_use_id}] {content}"),
    }
}

impl Reset {
    async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let before = store.session(&self.key).await?;
        store.reset(&self.key, clock::now_ms()).await?;
        if context.json {
            return print_json(&json!({"key": self.key, "reset": true}));
        }
        note(match (before.live_messages, before.dropped_turns) {
            (0, 0) => format!("`{}` was empty already", self.key),
            (messages, _) => format!("`{}` starts afresh; its {messages} messages stay in the archive", self.key),
        });
        Ok(())
    }
}
