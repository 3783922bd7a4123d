//! Tests of the store on real databases, one topic per module. What holds for both databases is tested on both;
//! what only a file can do, on SQLite.

mod backups;
mod choices;
mod copies;
mod crashes;
mod damage;
mod database;
mod hosts;
mod in_a_file;
mod losses;
mod names;
mod opening;
mod plans;
mod poolers;
mod prefetch;
mod standing_back;
mod upgrades;

#[path = "tests/each.rs"]
mod on_sqlite;

#[allow(clippy::duplicate_mod, reason = "what holds on one database has to hold on the other")]
#[path = "tests/each.rs"]
mod on_postgres;

use std::path::Path;

use pmk_core::{Entry, Message};
use pmk_models::Usage;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::chat::{Attachments, Inbound, MessageRef, ReplyTo};
use crate::ids::{InboxId, SessionId, TurnId};
use crate::ledger::report::TurnReport;

/// An arbitrary time.
const NOW: i64 = 1_760_000_000_000;

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(home: &TempDir) -> Store {
    Store::open(home.path()).unwrap()
}

/// The file as another program would see it.
fn sql(home: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(Store::path(home)).unwrap()
}

fn number(home: &TempDir, query: &str) -> i64 {
    sql(home.path()).query_row(query, [], |row| row.get(0)).unwrap()
}

fn inbound(key: &str, event_id: &str) -> Inbound {
    Inbound {
        event_id: event_id.into(),
        aliases: vec![],
        key: key.parse().unwrap(),
        user: "U1".into(),
        reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
        text: format!("question {event_id}"),
        attached: Attachments::default(),
        if_awaited: false,
        by_app: false,
        team: None,
        in_group: false,
        asked_at: None,
        ts: String::new(),
    }
}

/// A reaction of this name that has a question asked once more.
fn reaction(name: &str) -> RegenerateTrigger {
    RegenerateTrigger::Reaction(name.to_owned())
}

async fn accept(store: &Store, key: &str, event_id: &str) -> InboxId {
    store.accept(&inbound(key, event_id), NOW).await.unwrap().expect("a new message")
}

async fn ask(store: &Store, inbox: InboxId) -> OpenTurn {
    match store.begin(inbox, None, Hold::Alone, NOW).await.unwrap() {
        BeginOutcome::Ask(open) => open,
        other => panic!("expected an open turn, got {other:?}"),
    }
}

fn recorded(question: &str, answer: &str) -> Recorded {
    Recorded {
        messages: [Message::user(question), Message::assistant(answer)].map(|message| Entry::new(0, message)).into(),
        usage: Usage { input_tokens: 10, output_tokens: 5, cache_read_tokens: 3, cache_creation_tokens: 2 },
        keep_live: true,
        ..Recorded::of(report(), vec![Outgoing::reply(answer)], 0)
    }
}

/// A part that was sent, and its id.
fn sent(part: u32, id: Option<&str>) -> Sent {
    Sent { part, id: id.map(str::to_owned) }
}

/// A whole turn of one part.
async fn turn(store: &Store, key: &str, event_id: &str) -> OpenTurn {
    let inbox = accept(store, key, event_id).await;
    let open = ask(store, inbox).await;
    let answer = format!("answer {event_id}");
    store.record(open.turn, recorded(&open.inbound.text, &answer), NOW).await.unwrap();
    store.finish(open.turn, vec![sent(0, None)], vec![], NOW).await.unwrap();
    open
}

async fn live_texts(store: &Store, key: &str) -> Vec<String> {
    let messages = store.session_messages(&key.parse().unwrap(), false).await.unwrap();
    messages.iter().map(|stored| stored.entry.message.plain_text()).collect()
}

fn report() -> TurnReport {
    TurnReport::of_command("Ev1".into(), "slack:dm:U1".parse().expect("a key"), "nothing")
}
