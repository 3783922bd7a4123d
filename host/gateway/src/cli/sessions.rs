//! `sessions list|show|reset`: conversations, while the gateway runs or not.

use clap::{Args, Subcommand};
use pmk_core::{Block, Message, SessionKey};
use serde_json::{Value, json};

use super::{Context, note, print, print_json, table, text::time};
use crate::{
    clock,
    error::Failure,
    store::{SessionSummary, Store, StoreError, StoredMessage},
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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        runtime.block_on(async {
            match self {
                SessionsCommand::List => list(context).await,
                SessionsCommand::Show(show) => show.run(context, &Store::open_existing(&context.home)?).await,
                SessionsCommand::Reset(reset) => reset.run(context, &Store::open_existing(&context.home)?).await,
            }
        })
    }
}

/// All conversations; a home that no gateway has run in has none.
async fn list(context: &Context) -> Result<(), Failure> {
    let sessions = match Store::open_existing(&context.home) {
        Err(StoreError::Missing { .. }) => vec![],
        store => store?.sessions().await?,
    };
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
        let messages = store.session_messages(&self.key, self.full).await?;
        if context.json {
            let messages: Vec<Value> = messages.iter().map(|message| self.document(message)).collect();
            return print_json(&json!({"key": self.key, "messages": messages}));
        }
        print(&messages.iter().map(|message| self.page(message)).collect::<String>())
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
            page.extend(text(block).lines().map(|line| format!("  {line}\n")));
        }
        page
    }
}

/// A block as people read it.
fn text(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::ToolUse { id, name, input } => format!("[tool_use {id}] {name} {input}"),
        Block::ToolResult { tool_use_id, content, .. } => format!("[tool_result {tool_use_id}] {content}"),
    }
}

impl Reset {
    async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        store.reset(&self.key, clock::now_ms()).await?;
        if context.json {
            return print_json(&json!({"key": self.key, "reset": true}));
        }
        note(format!("`{}` starts afresh; what was said stays in the archive", self.key));
        Ok(())
    }
}
