//! `sessions erase`: conversations are erased for good.

use clap::{ArgGroup, Args};
use pmk_core::SessionKey;
use pmk_system::{clock, error::Failure};
use serde_json::json;

use super::super::arguments::between;
use crate::{
    cli::{change::record, context::Context, output::print_json},
    config::MOST_DAYS,
    store::{ErasedConversation, Erasing, Store, TURN_WAIT},
};

/// The action in the admin log.
const ACTION: &str = "sessions.erase";

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true)))]
pub(in crate::cli) struct Erase {
    /// Conversations, as printed by `sessions list`
    #[arg(value_name = "KEY", group = "which")]
    keys: Vec<SessionKey>,
    /// All conversations in which nobody has written for N days
    #[arg(long, value_name = "N", group = "which", value_parser = between::<u32>(1, MOST_DAYS))]
    idle_days: Option<u32>,
    /// Only show which conversations would be erased
    #[arg(long)]
    dry_run: bool,
}

impl Erase {
    pub(super) async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let keys = match self.idle_days {
            Some(days) => store.idle_conversations(days, clock::now_ms()).await?,
            None => self.keys,
        };
        // Names one that does not exist before anything is erased.
        for key in &keys {
            store.session(key).await?;
        }
        if self.dry_run {
            return show(context, store, keys).await;
        }
        let erasing = self.idle_days.map_or(Erasing::Anyway, |days| Erasing::Idle { days });
        let (mut erased, mut kept) = (Vec::new(), Vec::new());
        for key in keys {
            let outcome =
                store.erase_conversation(&key, erasing, TURN_WAIT, clock::now_ms()).await.map_err(Failure::from);
            match record(context, ACTION, &[&key.to_string()], outcome) {
                Ok(conversation) => erased.push((key, conversation)),
                Err(failure) => kept.push((key, failure)),
            }
        }
        let conversations: Vec<_> = erased.iter().map(|(_, erased)| *erased).collect();
        let receipts = store.erase_receipts(&conversations).await;
        tell(context, &erased, &kept)?;
        receipts?;
        match kept.len() {
            0 => Ok(()),
            kept => Err(Failure::new(format!("conversations that were not erased: {kept}"))),
        }
    }
}

/// Says what was erased, and why the rest was not.
fn tell(
    context: &Context,
    erased: &[(SessionKey, ErasedConversation)],
    kept: &[(SessionKey, Failure)],
) -> Result<(), Failure> {
    if context.json {
        let erased: Vec<_> = erased.iter().map(|(key, erased)| document(key, *erased)).collect();
        return print_json(&json!({"erased": erased, "kept": reasons(kept)}));
    }
    for (key, erased) in erased {
        say(context, key, *erased);
    }
    for (_, failure) in kept {
        context.notice(failure.message(), failure.advice());
    }
    if erased.is_empty() && kept.is_empty() {
        context.say("there is nothing to erase");
    }
    Ok(())
}

/// Shows what would be erased, and why the rest would not.
async fn show(context: &Context, store: &Store, keys: Vec<SessionKey>) -> Result<(), Failure> {
    let (mut would_erase, mut would_keep) = (Vec::new(), Vec::new());
    for key in keys {
        match store.may_be_erased(&key).await {
            Ok(()) => would_erase.push(key),
            Err(error) => would_keep.push((key, Failure::from(error))),
        }
    }
    if context.json {
        return print_json(&json!({"would_erase": would_erase, "would_keep": reasons(&would_keep)}));
    }
    for key in &would_erase {
        context.say(&format!("`{key}` would be erased"));
    }
    for (_, failure) in &would_keep {
        context.notice(failure.message(), failure.advice());
    }
    if would_erase.is_empty() && would_keep.is_empty() {
        context.say("there is nothing to erase");
    }
    Ok(())
}

/// Why these conversations are kept.
fn reasons(kept: &[(SessionKey, Failure)]) -> Vec<serde_json::Value> {
    kept.iter().map(|(key, failure)| json!({"key": key, "why": failure.message()})).collect()
}

fn document(key: &SessionKey, erased: ErasedConversation) -> serde_json::Value {
    let ErasedConversation { messages, parked, .. } = erased;
    json!({"key": key, "messages": messages, "parked": parked})
}

/// Says what was erased.
fn say(context: &Context, key: &SessionKey, erased: ErasedConversation) {
    let ErasedConversation { messages, parked, .. } = erased;
    context.say(&match messages {
        1 => format!("`{key}` is erased: 1 message"),
        _ => format!("`{key}` is erased: {messages} messages"),
    });
    if parked > 0 {
        context.say(&format!("  parked messages, too: {parked}"));
    }
}
