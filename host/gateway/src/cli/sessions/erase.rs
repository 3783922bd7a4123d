//! `sessions erase`: conversations are erased for good.

use clap::Args;
use pmk_core::SessionKey;
use pmk_system::{clock, error::Failure};
use serde_json::json;

use super::{super::arguments::between, conversations};
use crate::{
    cli::{change::record, context::Context, output::print_json},
    config::MOST_DAYS,
    store::{ErasedConversation, Store, StoreError, TURN_WAIT},
};

/// The action in the admin log.
const ACTION: &str = "sessions.erase";

#[derive(Debug, Args)]
pub(in crate::cli) struct Erase {
    /// Conversations, as printed by `sessions list`
    #[arg(value_name = "KEY", required_unless_present = "idle_days", conflicts_with = "idle_days")]
    keys: Vec<SessionKey>,
    /// All conversations in which nobody has written for N days
    #[arg(long, value_name = "N", value_parser = between::<u32>(1, MOST_DAYS))]
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
        // Names each that does not exist before anything is erased.
        let texts = store.own_texts(keys.clone()).await?;
        if self.dry_run {
            return show(context, &keys);
        }
        let (mut erased, mut kept) = (Vec::new(), Vec::new());
        for key in keys {
            let outcome = store.erase_conversation(&key, &texts, TURN_WAIT, clock::now_ms()).await;
            let is_busy = matches!(
                outcome,
                Err(StoreError::Leased { .. } | StoreError::LeaseLost { .. } | StoreError::Unanswered(_))
            );
            match record(context, ACTION, &[&key.to_string()], outcome.map_err(Failure::from)) {
                Ok(outcome) => erased.push((key, outcome)),
                Err(failure) if is_busy => kept.push((key, failure)),
                Err(failure) => return Err(failure),
            }
        }
        if context.json {
            let erased: Vec<_> = erased.iter().map(|(key, erased)| document(key, *erased)).collect();
            let kept: Vec<_> =
                kept.iter().map(|(key, failure)| json!({"key": key, "why": failure.message()})).collect();
            print_json(&json!({"erased": erased, "kept": kept}))?;
        } else {
            for (key, erased) in &erased {
                say(context, key, *erased);
            }
            if erased.is_empty() && kept.is_empty() {
                context.say("there is nothing to erase");
            }
        }
        match &kept[..] {
            [] => Ok(()),
            [(_, failure)] => Err(failure.clone()),
            [(_, first), ..] => {
                let why = format!("{} were not erased: {}", conversations(kept.len()), first.message());
                Err(Failure::new(why).hint("try again once their messages are answered"))
            }
        }
    }
}

fn show(context: &Context, keys: &[SessionKey]) -> Result<(), Failure> {
    if context.json {
        return print_json(&json!({"would_erase": keys}));
    }
    for key in keys {
        context.say(&format!("`{key}` would be erased"));
    }
    if keys.is_empty() {
        context.say("there is nothing to erase");
    }
    Ok(())
}

fn document(key: &SessionKey, erased: ErasedConversation) -> serde_json::Value {
    let ErasedConversation { messages, parked, asked } = erased;
    json!({"key": key, "messages": messages, "parked": parked, "asked": asked})
}

/// Says what was erased.
fn say(context: &Context, key: &SessionKey, erased: ErasedConversation) {
    let ErasedConversation { messages, parked, asked } = erased;
    context.say(&match messages {
        1 => format!("`{key}` is erased: 1 message"),
        _ => format!("`{key}` is erased: {messages} messages"),
    });
    if parked > 0 {
        context.say(&format!("  parked messages, too: {parked}"));
    }
    if asked > 0 {
        context.say(&format!("  questions to contacts that are no longer awaited: {asked}"));
    }
}
