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
    slack_id::Id,
    store::{Digest, ErasedConversation, ErasedMessages, ErasedOfPerson, Erasing, Store, TURN_WAIT, WrittenIn},
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
    /// Everything that this person has written: conversations without others as a whole, in any other only their messages
    #[arg(long, value_name = "USER", group = "which", value_parser = NonEmptyStringValueParser::new())]
    from: Option<String>,
    /// Only show which conversations would be erased
    #[arg(long)]
    dry_run: bool,
}

/// What is erased.
#[derive(Debug)]
enum Target {
    Conversation(SessionKey),
    /// What this person has written in it; `whole`: all of it, because nobody else has.
    From {
        key: SessionKey,
        user: String,
        whole: bool,
    },
}

impl Erase {
    pub(super) async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let targets = self.targets(store).await?;
        // Slack alone has threads that were read, in which people are named by their ids.
        let threads = match &self.from {
            Some(user) if Id::user(user).is_ok() => store.threads_that_name(user).await?,
            _ => vec![],
        };
        if self.dry_run {
            return show(context, store, targets, threads.len()).await;
        }
        let erasing = self.idle_days.map_or(Erasing::Anyway, |days| Erasing::Idle { days });
        let [words, _] = Messages::new(context.language).erased();
        let (mut erased, mut kept) = (Vec::new(), Vec::new());
        for target in targets {
            let now_ms = clock::now_ms();
            let outcome = match &target {
                Target::Conversation(key) => {
                    store.erase_conversation(key, erasing, TURN_WAIT, now_ms).await.map(ErasedOfPerson::Conversation)
                }
                Target::From { key, user, .. } => store.erase_from(key, user, &words, TURN_WAIT, now_ms).await,
            };
            match record(
                context,
                ACTION,
                &target.arguments().iter().map(String::as_str).collect::<Vec<_>>(),
                outcome.map_err(Failure::from),
            ) {
                Ok(of_it) => erased.push((target, of_it)),
                Err(failure) => kept.push((target, failure)),
            }
        }
        let conversation = |erased: &ErasedOfPerson| match erased {
            ErasedOfPerson::Conversation(erased) => Some(*erased),
            ErasedOfPerson::Messages(_) => None,
        };
        let whole: Vec<_> = erased.iter().filter_map(|(_, erased)| conversation(erased)).collect();
        let mut rest = store.erase_receipts(&whole).await.map_err(Failure::from);
        let threads = self.erase_elsewhere(context, store, threads).await.unwrap_or_else(|failure| {
            rest = Err(failure);
            0
        });
        tell(context, &erased, &kept, threads)?;
        rest?;
        match kept.len() {
            0 => Ok(()),
            kept => Err(Failure::new(format!("conversations that were not erased: {kept}"))),
        }
    }

    async fn targets(&self, store: &Store) -> Result<Vec<Target>, Failure> {
        if let Some(user) = &self.from {
            let written_in = store.written_in_by(user).await?;
            if written_in.is_empty() && Id::user(user).is_err() {
                return Err(Failure::new(format!("nothing is stored that `{user}` has written"))
                    .hint("name people by their ids, such as `U012AB3CD`: Slack shows them in profiles"));
            }
            let target = |WrittenIn { key, whole }| Target::From { key, user: user.clone(), whole };
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
        Ok(keys.into_iter().map(Target::Conversation).collect())
    }

    /// Erases what is left of what a person has written outside of conversations. Returns how many texts of threads
    /// these were.
    async fn erase_elsewhere(&self, context: &Context, store: &Store, threads: Vec<Digest>) -> Result<usize, Failure> {
        let Some(user) = &self.from else { return Ok(0) };
        let count = threads.len();
        let outcome = store.erase_elsewhere(user, threads).await.map_err(Failure::from);
        if count == 0 {
            return outcome.map(|()| 0);
        }
        record(context, ACTION, &["--from", user], outcome)?;
        Ok(count)
    }
}

impl Target {
    fn key(&self) -> &SessionKey {
        let (Target::Conversation(key) | Target::From { key, .. }) = self;
        key
    }

    /// As the admin log has it.
    fn arguments(&self) -> Vec<String> {
        let key = self.key().to_string();
        match self {
            Target::Conversation(_) => vec![key],
            Target::From { user, .. } => vec![key, "--from".to_owned(), user.clone()],
        }
    }
}

/// Says what was erased, and why the rest was not.
fn tell(
    context: &Context,
    erased: &[(Target, ErasedOfPerson)],
    kept: &[(Target, Failure)],
    threads: usize,
) -> Result<(), Failure> {
    if context.json {
        let erased: Vec<_> = erased.iter().map(|(target, erased)| document(target, *erased)).collect();
        return print_json(&json!({"erased": erased, "kept": reasons(kept), "threads": threads}));
    }
    for (target, erased) in erased {
        say(context, target, *erased);
    }
    for (_, failure) in kept {
        context.notice(failure.message(), failure.advice());
    }
    if threads > 0 {
        context.say(&format!("texts of threads that name this person are erased: {threads}"));
    } else if erased.is_empty() && kept.is_empty() {
        context.say("there is nothing to erase");
    }
    Ok(())
}

/// Shows what would be erased, and why the rest would not.
async fn show(context: &Context, store: &Store, targets: Vec<Target>, threads: usize) -> Result<(), Failure> {
    let (mut would_erase, mut would_keep) = (Vec::new(), Vec::new());
    for target in targets {
        let outcome = match &target {
            Target::From { key, user, whole: false } => store.messages_may_be_erased(key, user).await,
            Target::Conversation(key) | Target::From { key, .. } => store.may_be_erased(key).await,
        };
        match outcome {
            Ok(()) => would_erase.push(target),
            Err(error) => would_keep.push((target, Failure::from(error))),
        }
    }
    if context.json {
        let is_partly = |target: &Target| matches!(target, Target::From { whole: false, .. });
        let (partly, whole): (Vec<_>, Vec<_>) = would_erase.iter().partition(|target| is_partly(target));
        let keys = |targets: Vec<&Target>| targets.into_iter().map(|target| target.key().clone()).collect::<Vec<_>>();
        return print_json(&json!({"would_erase": keys(whole), "would_erase_messages_in": keys(partly),
            "would_keep": reasons(&would_keep), "threads": threads}));
    }
    for target in &would_erase {
        context.say(&match target {
            Target::From { key, user, whole: false } => format!("in `{key}`, the messages of `{user}` would be erased"),
            Target::Conversation(key) | Target::From { key, .. } => format!("`{key}` would be erased"),
        });
    }
    for (_, failure) in &would_keep {
        context.notice(failure.message(), failure.advice());
    }
    if threads > 0 {
        context.say(&format!("texts of threads that name this person would be erased: {threads}"));
    } else if would_erase.is_empty() && would_keep.is_empty() {
        context.say("there is nothing to erase");
    }
    Ok(())
}

/// Why these conversations are kept.
fn reasons(kept: &[(Target, Failure)]) -> Vec<serde_json::Value> {
    kept.iter().map(|(target, failure)| json!({"key": target.key(), "why": failure.message()})).collect()
}

fn document(target: &Target, erased: ErasedOfPerson) -> serde_json::Value {
    let key = target.key();
    match erased {
        ErasedOfPerson::Conversation(ErasedConversation { messages, parked, .. }) => {
            json!({"key": key, "messages": messages, "parked": parked})
        }
        ErasedOfPerson::Messages(ErasedMessages { messages, parked, summaries, imported }) => {
            json!({"key": key, "partly": true, "messages": messages, "parked": parked, "summaries": summaries,
                "imported": imported})
        }
    }
}

/// Says what was erased.
fn say(context: &Context, target: &Target, erased: ErasedOfPerson) {
    let key = target.key();
    let (what, parked, left) = match erased {
        ErasedOfPerson::Conversation(ErasedConversation { messages, parked, .. }) => {
            let what = match messages {
                1 => format!("`{key}` is erased: 1 message"),
                _ => format!("`{key}` is erased: {messages} messages"),
            };
            (what, parked, None)
        }
        ErasedOfPerson::Messages(of_it) => {
            let what = match of_it.messages {
                1 => format!("in `{key}`, 1 message is erased"),
                messages => format!("in `{key}`, {messages} messages are erased"),
            };
            (what, of_it.parked, Some(of_it))
        }
    };
    context.say(&what);
    if parked > 0 {
        context.say(&format!("  parked messages, too: {parked}"));
    }
    if let Some(left) = left {
        say_left(context, key, left);
    }
}

/// Says what stays in a conversation with others.
fn say_left(context: &Context, key: &SessionKey, ErasedMessages { summaries, imported, .. }: ErasedMessages) {
    let text = key.to_string();
    let quoted = shlex::try_quote(&text).unwrap_or_else(|_| text.as_str().into());
    let whole = format!("`sessions erase {quoted}` erases the whole conversation");
    if summaries > 0 {
        let what = format!("summaries in `{key}` that may still contain what was erased: {summaries}");
        context.notice(&what, Some(&whole));
    }
    if imported > 0 {
        let what = format!("imported messages in `{key}`, of which nobody knows who has written them: {imported}");
        context.notice(&what, Some(&whole));
    }
}
