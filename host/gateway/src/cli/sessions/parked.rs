//! `sessions parked` and `sessions retry`: messages that could not be answered, and retrying them.

use clap::Args;
use pmk_core::SessionKey;
use pmk_system::{clock, error::Failure, home::HomeLock};
use serde_json::json;

use crate::{
    cli::{
        context::{Context, block_on},
        output::{print, print_json},
        text::time,
    },
    control::{self, Reply, Request},
    store::{Parked, Store},
};

/// Lists the parked messages, the oldest first.
pub(super) async fn list(context: &Context, store: &Store) -> Result<(), Failure> {
    let parked = store.parked().await?;
    if context.json {
        return print_json(&parked.iter().map(document).collect());
    }
    if parked.is_empty() {
        context.say("no message is parked");
        return Ok(());
    }
    let heading = ["KEY", "USER", "PARKED", "TOLD", "WHY"].map(str::to_owned).to_vec();
    let rows = parked.iter().map(|parked| {
        let user = parked.message.as_ref().map_or("?", |message| &message.user);
        let told = context.translated(if parked.told { "yes" } else { "not yet" });
        vec![parked.key.clone(), user.to_owned(), time(parked.at_ms), told.into_owned(), parked.why.clone()]
    });
    print(&context.columns(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()))?;
    context.say("once the cause is fixed: pmk-host sessions retry KEY, or --all");
    Ok(())
}

fn document(parked: &Parked) -> serde_json::Value {
    json!({
        "key": parked.key,
        "event_id": parked.message.as_ref().map(|message| &message.event_id),
        "user": parked.message.as_ref().map(|message| &message.user),
        "parked_at": time(parked.at_ms),
        "told": parked.told,
        "why": parked.why,
    })
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct Retry {
    /// Conversation, as printed by `sessions parked`
    key: Option<SessionKey>,
    /// Retry those of all conversations
    #[arg(long)]
    all: bool,
}

/// Who retries the messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RetriedBy {
    /// The one that runs in this home, at once.
    Gateway,
    /// Another host of the database, when it looks for open work.
    OtherHost,
    NextStart,
}

impl Retry {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let is_running = HomeLock::is_held(&context.home).unwrap_or(true);
        let (messages, unreadable, by) = if is_running { self.ask(context)? } else { self.mark(context)? };
        if context.json {
            let is_running = by != RetriedBy::NextStart;
            return print_json(&json!({"messages": messages, "unreadable": unreadable, "running": is_running}));
        }
        if unreadable > 0 {
            let hint = "`pmk-host store check` shows what is damaged";
            context.notice(&format!("{unreadable} stay parked: their conversation cannot be read"), Some(hint));
        }
        context.say(&match (messages, by) {
            (0, _) => "nothing is parked there".to_owned(),
            (1, RetriedBy::Gateway) => "1 message retried".to_owned(),
            (_, RetriedBy::Gateway) => format!("{messages} messages retried"),
            (1, RetriedBy::OtherHost) => "1 message will be retried by a working host within half a minute".to_owned(),
            (_, RetriedBy::OtherHost) => {
                format!("{messages} messages will be retried by a working host within half a minute")
            }
            (1, RetriedBy::NextStart) => "1 message will be retried at the next start".to_owned(),
            (_, RetriedBy::NextStart) => format!("{messages} messages will be retried at the next start"),
        });
        Ok(())
    }

    /// Asks the running gateway to retry them.
    fn ask(self, context: &Context) -> Result<(usize, usize, RetriedBy), Failure> {
        match control::ask(&context.home, &Request::SessionsRetry { key: self.key })? {
            Reply::Retried { messages, unreadable } => Ok((messages, unreadable, RetriedBy::Gateway)),
            other => Err(other.unexpected()),
        }
    }

    fn mark(self, context: &Context) -> Result<(usize, usize, RetriedBy), Failure> {
        block_on(async {
            let store = Store::open_existing(context.place()?)?;
            let unparked = store.reopen(self.key.as_ref(), clock::now_ms()).await?;
            let by = if store.host_at_work().await?.is_some() { RetriedBy::OtherHost } else { RetriedBy::NextStart };
            Ok((unparked.messages(), unparked.unreadable, by))
        })
    }
}
