//! `sessions reset`: a conversation starts over, or continues from an earlier turn.

use clap::Args;
use pmk_core::SessionKey;
use pmk_system::{clock, error::Failure, home};
use serde_json::json;

use super::super::arguments::number;
use crate::{
    cli::{change::record, context::Context, output::print_json},
    store::{Cut, Store},
};

/// The action in the admin log.
const ACTION: &str = "sessions.reset";

#[derive(Debug, Args)]
pub(in crate::cli) struct Reset {
    /// Conversation, as printed by `sessions list`
    key: SessionKey,
    /// Keep the first N live turns, as `sessions show` numbers them, and what precedes them
    #[arg(long, value_name = "N", value_parser = number::<usize>)]
    to_turn: Option<usize>,
}

impl Reset {
    pub(super) async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        if let Some(turns) = self.to_turn {
            return self.cut_back(context, store, turns).await;
        }
        let reset = store.reset(&self.key, clock::now_ms()).await.map_err(Failure::from);
        let reset = record(context, ACTION, &[&self.key.to_string()], reset)?;
        if context.json {
            return print_json(&json!({"key": self.key, "reset": true}));
        }
        context.say(&match reset {
            None => format!("`{}` was already empty", self.key),
            Some(1) => format!("`{}` starts over; its 1 message stays in the archive", self.key),
            Some(messages) => format!("`{}` starts over; its {messages} messages stay in the archive", self.key),
        });
        Ok(())
    }

    fn beyond(&self, context: &Context, last: usize, wanted: usize) -> Failure {
        let show = home::command(
            &context.home,
            &shlex::try_join(["sessions", "show", &self.key.to_string()]).unwrap_or_default(),
        );
        Failure::new(format!("the live turns of `{}` end at {last}, so it cannot go back to turn {wanted}", self.key))
            .hint(format!(
                "`{show}` numbers the live turns; with `--full`, it also shows those that are no longer live"
            ))
    }

    async fn cut_back(self, context: &Context, store: &Store, turns: usize) -> Result<(), Failure> {
        let cut = store.reset_to_turn(&self.key, turns, clock::now_ms()).await.map_err(Failure::from);
        let cut = cut.and_then(|cut| match cut {
            // Nothing was cut.
            Cut { turns_kept, .. } if turns_kept < turns => Err(self.beyond(context, turns_kept, turns)),
            cut => Ok(cut),
        });
        let arguments = [&*self.key.to_string(), "--to-turn", &turns.to_string()];
        let Cut { turns_kept, turns_removed, messages_removed } = record(context, ACTION, &arguments, cut)?;
        if context.json {
            return print_json(&json!({"key": self.key, "reset": true, "turns_kept": turns_kept,
                "turns_removed": turns_removed, "messages_removed": messages_removed}));
        }
        let key = &self.key;
        if turns_kept > turns && turns_removed > 0 {
            context.notice(&format!("turns {turns} to {turns_kept} share a tool call and must stay together"), None);
        }
        context.say(&match (messages_removed, turns_removed) {
            (0, _) if turns_kept == 0 => format!("`{key}` has no turns"),
            (0, _) if turns_kept == 1 => format!("`{key}` has 1 turn, and it stays"),
            (0, _) => format!("`{key}` has {turns_kept} turns, and all stay"),
            (_, 1) => format!(
                "`{key}` is back at turn {turns_kept}; 1 turn ({messages_removed} messages) stays in the archive"
            ),
            _ => format!(
                "`{key}` is back at turn {turns_kept}; {turns_removed} turns ({messages_removed} messages) stay in the archive"
            ),
        });
        Ok(())
    }
}
