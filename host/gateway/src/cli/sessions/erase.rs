//! `sessions erase`: conversations, or what a person has written in them, are erased for good.

use clap::{ArgGroup, Args, builder::NonEmptyStringValueParser};
use pmk_core::SessionKey;
use pmk_system::{clock, error::Failure};
use serde_json::json;

use super::super::arguments::between;
use crate::{
    cli::{change::record, context::Context, output::print_json},
    config::MOST_DAYS,
    messages::Messages,
    store::{ErasedConversation, ErasedWords, Erasing, Store, TURN_WAIT, WrittenIn},
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
    /// Everything that this person has written: conversations without others as a whole, in all others only their messages
    #[arg(long, value_name = "USER", group = "which", value_parser = NonEmptyStringValueParser::new())]
    from: Option<String>,
    /// Only show which conversations would be erased
    #[arg(long)]
    dry_run: bool,
}

/// What is erased.
#[derive(Debug)]
struct Target {
    key: SessionKey,
    /// Only what this person has written.
    from: Option<String>,
}

/// What was erased.
#[derive(Debug)]
enum Erased {
    Conversation(ErasedConversation),
    Words(ErasedWords),
}

impl Erase {
    pub(super) async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let targets = self.targets(store).await?;
        if self.dry_run {
            return show(context, store, targets).await;
        }
        let erasing = self.idle_days.map_or(Erasing::Anyway, |days| Erasing::Idle { days });
        let [words, _] = Messages::new(context.language).erased();
        let (mut erased, mut kept) = (Vec::new(), Vec::new());
        for target in targets {
            let now_ms = clock::now_ms();
            let outcome = match &target.from {
                None => {
                    store.erase_conversation(&target.key, erasing, TURN_WAIT, now_ms).await.map(Erased::Conversation)
                }
                Some(user) => store.erase_words(&target.key, user, &words, TURN_WAIT, now_ms).await.map(Erased::Words),
            };
            let key = target.key.to_string();
            let arguments: Vec<&str> = match &target.from {
                None => vec![&key],
                Some(user) => vec![&key, "--from", user],
            };
            match record(context, ACTION, &arguments, outcome.map_err(Failure::from)) {
                Ok(of_it) => erased.push((target, of_it)),
                Err(failure) => kept.push((target, failure)),
            }
        }
        let whole: Vec<_> = erased.iter().filter_map(|(_, erased)| erased.conversation()).collect();
        let receipts = store.erase_receipts(&whole).await;
        let earlier = match &self.from {
            Some(user) => store.erase_earlier_of(user).await,
            None => Ok(()),
        };
        tell(context, &erased, &kept)?;
        receipts?;
        earlier?;
        match kept.len() {
            0 => Ok(()),
            kept => Err(Failure::new(format!("conversations that were not erased: {kept}"))),
        }
    }

    async fn targets(&self, store: &Store) -> Result<Vec<Target>, Failure> {
        if let Some(user) = &self.from {
            let written_in = store.written_in_by(user).await?;
            let target = |WrittenIn { key, alone }| Target { key, from: (!alone).then(|| user.clone()) };
            return Ok(written_in.into_iter().map(target).collect());
        }
        let keys = match self.idle_days {
            Some(days) => store.idle_conversations(days, clock::now_ms()).await?,
            None => self.keys.clone(),
        };
        // Names one that does not exist before anything is erased.
        for key in &keys {
            store.session(key).await?;
        }
        Ok(keys.into_iter().map(|key| Target { key, from: None }).collect())
    }
}

impl Erased {
    fn conversation(&self) -> Option<ErasedConversation> {
        match self {
            Erased::Conversation(erased) => Some(*erased),
            Erased::Words(_) => None,
        }
    }
}

/// Says what was erased, and why the rest was not.
fn tell(context: &Context, erased: &[(Target, Erased)], kept: &[(Target, Failure)]) -> Result<(), Failure> {
    if context.json {
        let erased: Vec<_> = erased.iter().map(|(target, erased)| document(target, erased)).collect();
        return print_json(&json!({"erased": erased, "kept": reasons(kept)}));
    }
    for (target, erased) in erased {
        say(context, target, erased);
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
async fn show(context: &Context, store: &Store, targets: Vec<Target>) -> Result<(), Failure> {
    let (mut would_erase, mut would_keep) = (Vec::new(), Vec::new());
    for target in targets {
        let outcome = match &target.from {
            None => store.may_be_erased(&target.key).await,
            Some(user) => store.words_may_be_erased(&target.key, user).await,
        };
        match outcome {
            Ok(()) => would_erase.push(target),
            Err(error) => would_keep.push((target, Failure::from(error))),
        }
    }
    if context.json {
        let (partly, whole): (Vec<_>, Vec<_>) = would_erase.into_iter().partition(|target| target.from.is_some());
        let keys = |targets: Vec<Target>| targets.into_iter().map(|target| target.key).collect::<Vec<_>>();
        return print_json(&json!({"would_erase": keys(whole), "would_erase_messages_in": keys(partly),
            "would_keep": reasons(&would_keep)}));
    }
    for Target { key, from } in &would_erase {
        context.say(&match from {
            None => format!("`{key}` would be erased"),
            Some(user) => format!("in `{key}`, the messages of `{user}` would be erased"),
        });
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
fn reasons(kept: &[(Target, Failure)]) -> Vec<serde_json::Value> {
    kept.iter().map(|(target, failure)| json!({"key": target.key, "why": failure.message()})).collect()
}

fn document(Target { key, from }: &Target, erased: &Erased) -> serde_json::Value {
    match erased {
        Erased::Conversation(ErasedConversation { messages, parked, .. }) => {
            json!({"key": key, "messages": messages, "parked": parked})
        }
        Erased::Words(ErasedWords { messages, parked, summaries }) => {
            json!({"key": key, "from": from, "messages": messages, "parked": parked, "summaries": summaries})
        }
    }
}

/// Says what was erased.
fn say(context: &Context, Target { key, from }: &Target, erased: &Erased) {
    let (messages, parked, summaries) = match *erased {
        Erased::Conversation(ErasedConversation { messages, parked, .. }) => (messages, parked, 0),
        Erased::Words(ErasedWords { messages, parked, summaries }) => (messages, parked, summaries),
    };
    context.say(&match (from, messages) {
        (None, 1) => format!("`{key}` is erased: 1 message"),
        (None, _) => format!("`{key}` is erased: {messages} messages"),
        (Some(user), 1) => format!("in `{key}`, 1 message of `{user}` is erased"),
        (Some(user), _) => format!("in `{key}`, {messages} messages of `{user}` are erased"),
    });
    if parked > 0 {
        context.say(&format!("  parked messages, too: {parked}"));
    }
    if summaries > 0 {
        let hint = format!(
            "`sessions reset {key}` takes them from the model's view; `sessions erase {key}` erases the whole conversation"
        );
        context
            .notice(&format!("summaries in `{key}` that may still contain what was erased: {summaries}"), Some(&hint));
    }
}
