//! The line of a case.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::{
    case::{Note, NoteKind},
    store::DumpedCase,
};

#[derive(Serialize, Deserialize)]
pub(super) struct CaseLine {
    number: i64,
    title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opened_by: Option<String>,
    opened_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed: Option<Closed>,
    notes: Vec<NoteLine>,
    messages: Vec<Member>,
}

#[derive(Serialize, Deserialize)]
struct Closed {
    at_ms: i64,
    by: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct NoteLine {
    kind: String,
    text: String,
    at_ms: i64,
    /// The answer that it comes from, where that is in this conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct Member {
    id: i64,
    user: Option<String>,
    at_ms: i64,
}

impl CaseLine {
    /// Returns the line of a case in a conversation whose messages have these ids.
    pub(super) fn new(case: DumpedCase, ids: &[i64]) -> CaseLine {
        let note = |(note, at_ms, index): (Note, i64, Option<usize>)| NoteLine {
            kind: note.kind.name().to_owned(),
            text: note.text,
            at_ms,
            message: index.map(|index| ids[index]),
        };
        CaseLine {
            number: case.number,
            title: case.title,
            opened_by: case.opened_by,
            opened_at_ms: case.opened_at_ms,
            closed: case.closed.map(|(at_ms, by)| Closed { at_ms, by }),
            notes: case.notes.into_iter().map(note).collect(),
            messages: case
                .messages
                .into_iter()
                .map(|(index, user, at_ms)| Member { id: ids[index], user, at_ms })
                .collect(),
        }
    }

    /// Returns the case; `places` maps message ids to indexes in the dump. `Err` with the id of a message that is
    /// missing. Notes of an unknown kind, and empty ones, are skipped.
    pub(super) fn dumped(self, places: &HashMap<i64, usize>) -> Result<DumpedCase, i64> {
        let place = |id: i64| places.get(&id).copied().ok_or(id);
        let mut messages = Vec::with_capacity(self.messages.len());
        for Member { id, user, at_ms } in self.messages {
            messages.push((place(id)?, user, at_ms));
        }
        let mut notes = Vec::with_capacity(self.notes.len());
        for NoteLine { kind, text, at_ms, message } in self.notes {
            let index = message.map(place).transpose()?;
            let note = NoteKind::from_name(&kind).and_then(|kind| Note::new(kind, &text));
            notes.extend(note.map(|note| (note, at_ms, index)));
        }
        Ok(DumpedCase {
            number: self.number,
            title: self.title,
            opened_by: self.opened_by,
            opened_at_ms: self.opened_at_ms,
            closed: self.closed.map(|Closed { at_ms, by }| (at_ms, by)),
            notes,
            messages,
        })
    }
}
