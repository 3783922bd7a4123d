//! Cases: opened and closed, and what is stored with them.

pub(super) mod travel;

use pmk_core::FrontName;

use super::{
    Store, StoreError,
    codec::{self, NewMessage},
    error::Fault,
    intake::front_name,
    sql::{Connection, OptionalExtension, Params, Row, params},
};
pub use travel::DumpedCase;

use crate::{
    case::{Case, CaseId, CaseMessage, ImportedCase, KeptNote, Note, NoteKind, Order},
    ledger::Event,
};

macro_rules! cases {
    ($end:literal) => {
        concat!(
            "SELECT c.id, c.front, c.channel, c.title, c.opened_by, c.opened_at, c.closed_by, c.closed_at,
                    (SELECT count(*) FROM case_message m WHERE m.case_id = c.id) AS messages
             FROM case_file c ",
            $end
        )
    };
}
const ALL: &str = cases!("ORDER BY c.closed_at IS NOT NULL, c.opened_at DESC, c.id DESC");
const OF_CHANNEL: &str =
    cases!("WHERE c.front = ?1 AND c.channel = ?2 ORDER BY c.closed_at IS NOT NULL, c.opened_at DESC, c.id DESC");
pub(super) const ONE: &str = cases!("WHERE c.id = ?1");
pub(super) const OPEN_IN: &str =
    "SELECT id, opened_on FROM case_file WHERE front = ?1 AND channel = ?2 AND closed_at IS NULL";
const CLOSED_ON: &str = "SELECT id FROM case_file WHERE front = ?1 AND channel = ?2 AND closed_on = ?3";
const OPEN: &str = "INSERT INTO case_file (front, channel, title, opened_by, opened_at, opened_on)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const CLOSE: &str = "UPDATE case_file SET closed_by = ?2, closed_at = ?3, closed_on = ?4 WHERE id = ?1";
const CHANNELS: &str = "SELECT channel FROM case_file WHERE closed_at IS NULL AND front = ?1 ORDER BY channel";
pub(super) const NOTES: &str = "SELECT kind, text, at, message_id FROM case_note WHERE case_id = ?1 ORDER BY id";
pub(super) const SPELLINGS: &str = "SELECT spelling, text FROM case_note WHERE case_id = ?1 AND kind = ?2";
pub(super) const ADD_NOTE: &str = "INSERT INTO case_note (case_id, kind, spelling, text, at, message_id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (case_id, kind, spelling) DO NOTHING";
pub(super) const ADD_MESSAGE: &str = "INSERT INTO case_message (message_id, case_id, \"user\", at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (message_id) DO NOTHING";
/// The columns that [`codec::entry`] reads: the original messages.
const MESSAGES: &str = "SELECT m.id, m.role, m.origin, m.blocks, NULL, m.tokens, m.chars, s.key, c.user, c.at
     FROM case_message c JOIN message m ON m.id = c.message_id JOIN session s ON s.id = m.session_id
     WHERE c.case_id = ?1 ORDER BY c.at, c.message_id";
/// A case that does not say when it was opened is one of that title that no command has opened here.
pub(super) const IS_KNOWN: &str = "SELECT id FROM case_file WHERE front = ?1 AND channel = ?2 AND title = ?3
       AND (opened_at = ?4 OR (?4 IS NULL AND opened_on IS NULL))";

/// The result of a command to open a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// This case is open now; `again`: the same command has opened it before.
    Case { case: Case, again: bool },
    /// Another case is open.
    Other(Case),
}

/// What a turn adds to its case, beside its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseEntry {
    pub case: CaseId,
    /// Who wrote the question, where that was one person only.
    pub user: Option<String>,
    pub asked_at_ms: i64,
    /// What the answer adds to the case; notes that the case already has are not repeated.
    pub notes: Vec<Note>,
}

impl Store {
    /// Opens a case in a channel that has none open. Writes a ledger event.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn open_case(&self, order: &Order, title: &str, now_ms: i64) -> Result<Opened, StoreError> {
        let (order, title, pen) = (order.clone(), title.to_owned(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            let Order { front, channel, user, event_id } = &order;
            let front = front_name(*front);
            let open = conn.prepare_cached(OPEN_IN)?.query_row(params![front, channel], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?))
            });
            if let Some((id, opened_on)) = open.optional()? {
                let case = one(conn, CaseId(id))?;
                let again = opened_on.as_ref() == Some(event_id);
                return Ok(if again { Opened::Case { case, again } } else { Opened::Other(case) });
            }
            let id = conn.prepare_cached(OPEN)?.insert(params![front, channel, title, user, now_ms, event_id])?;
            let (actor, channel_id) = (user.clone(), channel.clone());
            pen.write(conn, None, Event::CaseOpened { actor, channel_id, case_id: id })?;
            Ok(Opened::Case { case: one(conn, CaseId(id))?, again: false })
        })
        .await
    }

    /// Closes the case that is open in a channel; `None` where none is. Also returns whether the same command has
    /// closed it before. Writes a ledger event once.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn close_case(&self, order: &Order, now_ms: i64) -> Result<Option<(Case, bool)>, StoreError> {
        let (order, pen) = (order.clone(), self.pen(now_ms));
        self.write_with_events(move |conn| {
            let Order { front, channel, user, event_id } = &order;
            let closed = params![front_name(*front), channel, event_id];
            if let Some(id) = conn.prepare_cached(CLOSED_ON)?.query_row(closed, |row| row.get(0)).optional()? {
                return Ok(Some((one(conn, CaseId(id))?, true)));
            }
            let Some(id) = open_in(conn, *front, channel)? else { return Ok(None) };
            conn.prepare_cached(CLOSE)?.run(params![id.0, user, now_ms, event_id])?;
            let case = one(conn, id)?;
            let (actor, channel_id, messages) = (user.clone(), channel.clone(), case.messages);
            pen.write(conn, None, Event::CaseClosed { actor, channel_id, case_id: id.0, messages })?;
            Ok(Some((case, false)))
        })
        .await
    }

    /// Returns the case that is open in a channel.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open_case_of(&self, front: FrontName, channel: &str) -> Result<Option<Case>, StoreError> {
        let channel = channel.to_owned();
        self.read(move |conn| open_in(conn, front, &channel)?.map(|id| one(conn, id)).transpose()).await
    }

    /// Returns a case; `None` where none has that number.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn case(&self, id: CaseId) -> Result<Option<Case>, StoreError> {
        self.read(move |conn| find(conn, ONE, params![id.0]).map(|mut found| found.pop())).await
    }

    /// Returns every case, open ones first, then the newest.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn cases(&self) -> Result<Vec<Case>, StoreError> {
        self.read(|conn| find(conn, ALL, [])).await
    }

    /// Returns the cases of a channel, in the same order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn cases_of(&self, front: FrontName, channel: &str) -> Result<Vec<Case>, StoreError> {
        let channel = channel.to_owned();
        self.read(move |conn| of_channel(conn, front, &channel)).await
    }

    /// Returns the messages that belong to a case, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn case_messages(&self, id: CaseId) -> Result<Vec<CaseMessage>, StoreError> {
        self.read(move |conn| messages(conn, id)).await
    }

    /// Returns the channels of a front in which a case is open.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn channels_with_open_case(&self, front: FrontName) -> Result<Vec<String>, StoreError> {
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(CHANNELS)?;
            let channels = statement.query_map([front_name(front)], |row| row.get(0))?;
            Ok(channels.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Imports a case of pmk's, open as it was there. One that does not say when it was opened counts as opened now.
    /// `Err` with the case that prevents it: one that is open in the channel, or this very case from an earlier import.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn import_case(&self, imported: ImportedCase, now_ms: i64) -> Result<Result<Case, Case>, StoreError> {
        self.write(move |conn| {
            let ImportedCase { front, channel, title, opened_by, opened_at_ms, notes } = &imported;
            let identity = params![front_name(*front), channel, title, opened_at_ms];
            let known = conn.prepare_cached(IS_KNOWN)?.query_row(identity, |row| row.get(0)).optional()?;
            if let Some(id) = known.map(CaseId).or(open_in(conn, *front, channel)?) {
                return Ok(Err(one(conn, id)?));
            }
            let opened_at_ms = opened_at_ms.unwrap_or(now_ms);
            let opened = params![front_name(*front), channel, title, opened_by, opened_at_ms, None::<String>];
            let id = CaseId(conn.prepare_cached(OPEN)?.insert(opened)?);
            add_notes(conn, id, notes, opened_at_ms, None)?;
            one(conn, id).map(Ok)
        })
        .await
    }
}

/// Returns the case that is open in a channel.
pub(super) fn open_in(conn: &Connection, front: FrontName, channel: &str) -> Result<Option<CaseId>, Fault> {
    let values = params![front_name(front), channel];
    Ok(conn.prepare_cached(OPEN_IN)?.query_row(values, |row| row.get(0)).optional()?.map(CaseId))
}

pub(super) fn of_channel(conn: &Connection, front: FrontName, channel: &str) -> Result<Vec<Case>, Fault> {
    find(conn, OF_CHANNEL, params![front_name(front), channel])
}

/// Stores question and answer of a turn with its case, and what the answer adds to it. `messages` are in order,
/// with their ids; the answer is the last one, if there is one.
pub(super) fn keep(
    conn: &Connection,
    CaseEntry { case, user, asked_at_ms, notes }: &CaseEntry,
    messages: &[(i64, &NewMessage)],
    answer: Option<i64>,
    now_ms: i64,
) -> Result<(), Fault> {
    let mut add = conn.prepare_cached(ADD_MESSAGE)?;
    let asked = messages.iter().filter(|(_, message)| message.origin == pmk_core::Origin::User.name());
    for (nth, (id, _)) in asked.enumerate() {
        // Later messages that were answered along contain their authors' names.
        let (user, at_ms) = if nth == 0 { (user.as_deref(), *asked_at_ms) } else { (None, now_ms) };
        add.run(params![id, case.0, user, at_ms])?;
    }
    if let Some(id) = answer {
        add.run(params![id, case.0, None::<String>, now_ms])?;
    }
    add_notes(conn, *case, notes, now_ms, answer)
}

fn add_notes(conn: &Connection, case: CaseId, notes: &[Note], at_ms: i64, message: Option<i64>) -> Result<(), Fault> {
    let mut add = conn.prepare_cached(ADD_NOTE)?;
    for note in notes {
        let spelling = stored_spelling(conn, case, note)?;
        add.run(params![case.0, note.kind.name(), spelling, note.text, at_ms, message])?;
    }
    Ok(())
}

/// Returns the form by which a note is stored: that of the same one, if it is there already. Older programs had another
/// form.
fn stored_spelling(conn: &Connection, case: CaseId, note: &Note) -> Result<String, Fault> {
    let spelling = note.spelling();
    let mut statement = conn.prepare_cached(SPELLINGS)?;
    let mut rows = statement.query(params![case.0, note.kind.name()])?;
    while let Some(row) = rows.next()? {
        let stored = Note::new(note.kind, &row.get::<_, String>(1)?);
        if stored.is_some_and(|stored| stored.spelling() == spelling) {
            return Ok(row.get(0)?);
        }
    }
    Ok(spelling)
}

fn one(conn: &Connection, id: CaseId) -> Result<Case, Fault> {
    find(conn, ONE, params![id.0])?.pop().ok_or_else(|| Fault::Damaged(format!("case {id} no longer exists")))
}

fn find(conn: &Connection, sql: &str, values: impl Params) -> Result<Vec<Case>, Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut cases = Vec::new();
    while let Some(row) = rows.next()? {
        cases.push(case(conn, row)?);
    }
    Ok(cases)
}

fn case(conn: &Connection, row: Row<'_>) -> Result<Case, Fault> {
    let id = CaseId(row.get("id")?);
    let front = match codec::text(row.get_ref("front")?, "the front of a case")? {
        "console" => FrontName::Console,
        _ => FrontName::Slack,
    };
    let closed_at: Option<i64> = row.get("closed_at")?;
    let closed_by: Option<String> = row.get("closed_by")?;
    Ok(Case {
        id,
        front,
        channel: row.get("channel")?,
        title: row.get("title")?,
        opened_by: row.get("opened_by")?,
        opened_at_ms: row.get("opened_at")?,
        closed: closed_at.map(|at_ms| (at_ms, closed_by)),
        notes: notes(conn, id)?,
        messages: u64::try_from(row.get::<_, i64>("messages")?).unwrap_or(0),
    })
}

fn notes(conn: &Connection, id: CaseId) -> Result<Vec<KeptNote>, Fault> {
    let mut statement = conn.prepare_cached(NOTES)?;
    let mut rows = statement.query([id.0])?;
    let mut notes = Vec::new();
    while let Some(row) = rows.next()? {
        let kind = NoteKind::from_name(codec::text(row.get_ref(0)?, "the kind of a note")?);
        let kind = kind.ok_or_else(|| Fault::Damaged(format!("a note of case {id} has an unknown kind")))?;
        notes.push(KeptNote { note: Note { kind, text: row.get(1)? }, at_ms: row.get(2)?, message: row.get(3)? });
    }
    Ok(notes)
}

pub(super) fn messages(conn: &Connection, id: CaseId) -> Result<Vec<CaseMessage>, Fault> {
    let mut statement = conn.prepare_cached(MESSAGES)?;
    let mut rows = statement.query([id.0])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let entry = codec::entry(row)?;
        messages.push(CaseMessage {
            id: entry.id,
            key: codec::key(row.get_ref("key")?)?,
            user: row.get("user")?,
            at_ms: row.get("at")?,
            message: std::sync::Arc::unwrap_or_clone(entry.message),
        });
    }
    Ok(messages)
}
