//! `sessions show`: what the model would see of a conversation, or everything ever said in it.

use std::{collections::BTreeMap, ops::Range, str::FromStr};

use clap::Args;
use pmk_core::{Block, Image, Marker, Message, Origin, SessionKey, structure::Structure, text};
use pmk_system::error::Failure;
use serde_json::{Value, json};

use crate::{
    cli::{
        context::Context,
        output::{print, print_json},
        text::time,
    },
    store::{SessionSummary, Store, StoredMessage},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// Conversation, as printed by `sessions list`
    key: SessionKey,
    /// Show the whole archive, with every original uncut
    #[arg(long)]
    full: bool,
    /// Show only these turns, counted from 1: 3..5, 3.., ..5 or 3; with `--full`, turns of the whole archive
    #[arg(long, value_name = "FROM..TO")]
    turns: Option<Turns>,
}

/// The numbers of the turns, by the message that begins each.
#[derive(Default)]
struct Numbers {
    /// In the live window, as `sessions reset --to-turn` counts.
    live: BTreeMap<String, usize>,
    /// In the whole archive, if that is shown.
    all: BTreeMap<String, usize>,
}

impl Numbers {
    fn of(messages: &[StoredMessage]) -> BTreeMap<String, usize> {
        let shown: Vec<&Message> = messages.iter().map(|stored| &*stored.entry.message).collect();
        let begins = Structure::of(&shown).turn_starts.into_iter();
        begins.zip(1..).map(|(at, number)| (messages[at as usize].entry.shown_id(), number)).collect()
    }
}

/// A range of turns, counted from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turns {
    from: usize,
    to: usize,
}

impl Turns {
    /// Returns the messages of these turns. If a tool call ties a turn to its neighbour, the neighbour is included.
    fn range(self, structure: &Structure, len: usize) -> Range<usize> {
        let Structure { turn_starts, cuts, .. } = structure;
        let Some(&start) = turn_starts.get(self.from - 1) else { return len..len };
        let start = cuts.iter().rev().find(|&&cut| cut <= start).map_or(start, |&cut| cut);
        let end = turn_starts.get(self.to).and_then(|end| cuts.iter().find(|cut| *cut >= end));
        start as usize..end.map_or(len, |&end| end as usize)
    }
}

impl FromStr for Turns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, open: usize| match text {
            "" => Some(open),
            text => text.parse().ok(),
        };
        let turns = match text.split_once("..") {
            Some((from, to)) => number(from, 1).zip(number(to, usize::MAX)),
            None => text.parse().ok().map(|only| (only, only)),
        };
        match turns {
            Some((from, to)) if from > 0 && to >= from => Ok(Turns { from, to }),
            _ => Err("expected turns as 3..5, 3.., ..5 or 3, counted from 1".to_owned()),
        }
    }
}

impl Show {
    pub(super) async fn run(self, context: &Context, store: &Store) -> Result<(), Failure> {
        let session = store.session(&self.key).await?;
        let mut messages = store.session_messages(&self.key, self.full).await?;
        let numbers = match self.full {
            true => Numbers {
                live: Numbers::of(&store.session_messages(&self.key, false).await?),
                all: Numbers::of(&messages),
            },
            false => Numbers { live: Numbers::of(&messages), all: BTreeMap::new() },
        };
        let marker = self.marker(&session);
        let mut shown_turns = Value::Null;
        if let Some(turns) = self.turns {
            let shown: Vec<&Message> = messages.iter().map(|message| self.shown(message)).collect();
            let structure = Structure::of(&shown);
            let (range, of) = (turns.range(&structure, shown.len()), structure.turn_starts.len());
            messages = messages.drain(range).collect();
            shown_turns = json!({"from": turns.from, "to": turns.to.min(of), "of": of});
            if messages.is_empty() {
                context.notice(&format!("`{}` has {of} turns", self.key), None);
            }
        }
        if context.json {
            let marker = marker.map(|marker| json!({"turns": marker.turns, "text": marker.text()}));
            let messages: Vec<Value> = messages.iter().map(|message| self.document(message, &numbers)).collect();
            let mut document = json!({"key": self.key, "marker": marker, "messages": messages});
            if self.turns.is_some() {
                document["turns"] = shown_turns;
            }
            return print_json(&document);
        }
        if messages.is_empty() && self.turns.is_none() {
            match session.archived_messages {
                // It was erased, or nobody has been answered in it yet.
                0 => context.notice(&format!("nothing of `{}` is stored", self.key), None),
                _ => context.notice(
                    &format!("the model would see nothing of `{}`", self.key),
                    Some("show the archive with `--full`"),
                ),
            }
        }
        let is_seed = |stored: &&StoredMessage| matches!(stored.entry.message.origin, Origin::Seed | Origin::SeedAck);
        let seed = messages.iter().take_while(is_seed).count();
        let mut pages: Vec<String> = messages.iter().map(|message| self.page(message, &numbers, context)).collect();
        if let Some(marker) = marker {
            pages.insert(seed, {
                let tokens = format!("({} tokens)", marker.tokens());
                format!("- {} {}\n  {}\n", Origin::Marker.name(), context.translated(&tokens), marker.text())
            });
        }
        print(&pages.concat())
    }

    /// Returns the marker for the dropped turns, if the model would see it.
    fn marker(&self, session: &SessionSummary) -> Option<Marker> {
        if self.full || self.turns.is_some() || session.dropped_turns == 0 {
            return None;
        }
        Some(match &session.marker_template {
            Some(words) => Marker::with_template(session.dropped_turns, words).0,
            None => Marker::new(session.dropped_turns),
        })
    }

    /// Returns the original if `--full` is set, otherwise what the model would see.
    fn shown<'a>(&self, stored: &'a StoredMessage) -> &'a Message {
        if self.full { stored.entry.source() } else { &stored.entry.message }
    }

    fn document(&self, stored: &StoredMessage, numbers: &Numbers) -> Value {
        let message = self.shown(stored);
        let mut document = json!({
            "id": stored.entry.shown_id(),
            "role": message.role,
            "origin": message.origin,
            "content": message.blocks,
            "tokens": stored.entry.tokens,
            "live": stored.live,
            "shortened": stored.entry.original.is_some(),
            "created_at": time(stored.created_at_ms),
        });
        let id = stored.entry.shown_id();
        for (key, numbers) in [("turn", &numbers.all), ("live_turn", &numbers.live)] {
            if let Some(number) = numbers.get(&id) {
                document[key] = json!(number);
            }
        }
        document
    }

    fn page(&self, stored: &StoredMessage, numbers: &Numbers, context: &Context) -> String {
        let message = self.shown(stored);
        let tokens = stored.entry.tokens;
        let state = match (stored.live, stored.entry.original.is_some()) {
            (false, _) => format!("({tokens} tokens, archived)"),
            (true, true) => format!("({tokens} tokens, shortened)"),
            (true, false) => format!("({tokens} tokens)"),
        };
        let id = stored.entry.shown_id();
        let turn = match (numbers.all.get(&id), numbers.live.get(&id)) {
            (Some(turn), Some(live)) => format!("turn {turn}, live turn {live}"),
            (Some(turn), None) => format!("turn {turn}, no longer live"),
            (None, Some(live)) => format!("live turn {live}"),
            (None, None) => String::new(),
        };
        let mut page = match turn.is_empty() {
            true => String::new(),
            false => format!("# {}\n", context.translated(&turn)),
        };
        page.push_str(&format!(
            "{id} {} {} {}\n",
            message.origin.name(),
            context.translated(&state),
            time(stored.created_at_ms)
        ));
        for block in &message.blocks {
            page.extend(text::printable(&block_text(block)).lines().map(|line| format!("  {line}\n")));
        }
        page
    }
}

/// A block as text.
fn block_text(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::ToolUse { id, name, input } => format!("[tool_use {id}] {name} {input}"),
        Block::ToolResult { tool_use_id, content, .. } => format!("[tool_result {tool_use_id}] {content}"),
        Block::Image(Image { sha256, width, height, .. }) => format!("[image {width}×{height}, sha256 {sha256}]"),
    }
}

#[cfg(test)]
mod tests {
    use pmk_core::Role;

    use super::*;

    #[test]
    fn turns_are_counted_from_one() {
        for (text, from, to) in
            [("3..5", 3, 5), ("3..", 3, usize::MAX), ("..5", 1, 5), ("3", 3, 3), ("..", 1, usize::MAX)]
        {
            assert_eq!(text.parse(), Ok(Turns { from, to }), "{text}");
        }
        for text in ["", "0", "0..2", "5..3", "a", "1..b", "-1", "1...3"] {
            assert!(text.parse::<Turns>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_tool_call_between_two_turns_shows_both() {
        let tool = |role, block| Message {
            role,
            origin: if role == Role::User { Origin::ToolResult } else { Origin::Assistant },
            blocks: vec![block],
        };
        let messages = [
            Message::text(Role::User, Origin::Seed, "seed"),
            Message::user("q1"),
            Message::user("q2"),
            tool(Role::Assistant, Block::ToolUse { id: "a".into(), name: "ls".into(), input: json!({}) }),
            Message::user("wait"),
            tool(Role::User, Block::ToolResult { tool_use_id: "a".into(), content: "r".into(), is_error: false }),
            Message::user("q4"),
        ];
        let structure = Structure::of(&messages);
        let range = |text: &str| text.parse::<Turns>().map(|turns| turns.range(&structure, messages.len()));
        for (text, wanted) in
            [("1", 1..2), ("2", 2..6), ("3", 2..6), ("1..2", 1..6), ("4..", 6..7), ("..", 1..7), ("5", 7..7)]
        {
            assert_eq!(range(text), Ok(wanted), "{text}");
        }
    }
}
