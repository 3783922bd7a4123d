//! Reads [receipts](super::receipt): those of a conversation, alone or with all that is needed to replay it.

use std::collections::BTreeMap;

use pmk_core::SessionKey;

use super::{
    SessionDump, Store, StoreError, codec, dump,
    error::Fault,
    receipt::{Budget, Digest, Receipt, Reference},
    sessions,
    sql::{Connection, OptionalExtension, Row},
};
use crate::ids::{SessionId, TurnId};

pub(super) const FIND_TEXT: &str = "SELECT body FROM text WHERE sha256 = ?1";
pub(super) const OF_SESSION: &str = "SELECT turn_id, body FROM receipt WHERE session_id = ?1 ORDER BY turn_id, call";
const HAS_PARKED: &str =
    "SELECT EXISTS (SELECT 1 FROM inbox WHERE session_id = ?1 AND message IS NOT NULL AND parked_at IS NOT NULL)";

/// A conversation to be replayed.
#[derive(Clone, Debug)]
pub struct Replayable {
    pub dump: SessionDump,
    /// The first request of each turn that has receipts, oldest first.
    pub requests: Vec<FirstRequest>,
    /// The texts that the model was shown beside the conversation.
    pub texts: BTreeMap<Digest, String>,
    /// Whether a question of it is parked.
    pub has_parked: bool,
}

/// What a replay takes from the receipt of a turn's first request: not the messages in view, which may be all that the
/// conversation has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRequest {
    /// The last message in view, where that is one of the archive.
    pub last: Option<i64>,
    pub budget: Budget,
    /// The digest of the system prompt.
    pub system: Digest,
    /// The digest of the tool definitions, as JSON.
    pub tools: Digest,
    /// Whether tool calls and results were sent as text.
    pub as_text: bool,
    /// The digests of what was shown beside the messages of the archive, as JSON.
    pub blocks: Vec<Digest>,
}

impl FirstRequest {
    fn of(receipt: &Receipt) -> FirstRequest {
        let messages = &receipt.before.messages;
        let last = match messages.last() {
            Some(Reference::Whole(id) | Reference::Reduced(id, _)) => Some(*id),
            _ => None,
        };
        let blocks = messages.iter().filter_map(|message| match message {
            Reference::Text { text } => Some(text.clone()),
            _ => None,
        });
        FirstRequest {
            last,
            budget: receipt.budget,
            system: receipt.system.clone(),
            tools: receipt.tools.clone(),
            as_text: receipt.as_text,
            blocks: blocks.collect(),
        }
    }

    /// Returns the texts that the model was shown beside the conversation.
    fn texts(&self) -> impl Iterator<Item = &Digest> {
        [&self.system, &self.tools].into_iter().chain(&self.blocks)
    }
}

impl Store {
    /// Returns the receipts of a conversation, oldest first, each with its turn. Only tests ask for them,
    /// among them the black-box tests, which link the library as it is.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`].
    pub async fn receipts_of_session(&self, key: &SessionKey) -> Result<Vec<(TurnId, Receipt)>, StoreError> {
        let key = key.clone();
        self.read(move |conn| {
            let session = sessions::find(conn, &key)?.ok_or(StoreError::UnknownSession(key))?;
            read(conn, session)
        })
        .await
    }

    /// Returns a conversation with what its turns' first requests were made from, as of one moment. For a thread that
    /// may block.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`].
    pub fn replayable(&self, key: &SessionKey) -> Result<Replayable, StoreError> {
        let key = key.clone();
        self.read_waiting(move |conn| {
            let _moment = conn.snapshot()?;
            let session = sessions::find(conn, &key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
            let requests = first_requests(conn, session)?;
            let mut texts = BTreeMap::new();
            let mut find = conn.prepare_cached(FIND_TEXT)?;
            for digest in requests.iter().flat_map(FirstRequest::texts) {
                if !texts.contains_key(digest)
                    && let Some(text) = find.query_row([&*digest.0], |row| row.get::<_, String>(0)).optional()?
                {
                    texts.insert(digest.clone(), text);
                }
            }
            drop(find);
            let has_parked = conn.query_row(HAS_PARKED, [session.0], |row| row.get(0))?;
            Ok(Replayable { dump: dump::dump(conn, key)?, requests, texts, has_parked })
        })
    }

    /// Returns a text that a receipt refers to; `None` where no text with this digest is stored.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn text(&self, digest: &Digest) -> Result<Option<String>, StoreError> {
        let digest = digest.clone();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(FIND_TEXT)?;
            Ok(statement.query_row([&*digest.0], |row| row.get(0)).optional()?)
        })
        .await
    }
}

fn read(conn: &Connection, session: SessionId) -> Result<Vec<(TurnId, Receipt)>, Fault> {
    let mut statement = conn.prepare_cached(OF_SESSION)?;
    let mut rows = statement.query([session.0])?;
    let mut receipts = Vec::new();
    while let Some(row) = rows.next()? {
        let turn = TurnId(row.get(0)?);
        receipts.push((turn, receipt(&row, turn)?));
    }
    Ok(receipts)
}

/// Reads the receipts one by one, so that there is never more than one that lists all messages in view.
fn first_requests(conn: &Connection, session: SessionId) -> Result<Vec<FirstRequest>, Fault> {
    let mut statement = conn.prepare_cached(OF_SESSION)?;
    let mut rows = statement.query([session.0])?;
    let mut requests = Vec::new();
    let mut previous = None;
    while let Some(row) = rows.next()? {
        let turn = TurnId(row.get(0)?);
        if previous.replace(turn) != Some(turn) {
            requests.push(FirstRequest::of(&receipt(&row, turn)?));
        }
    }
    Ok(requests)
}

/// Reads a row of [`OF_SESSION`].
fn receipt(row: &Row<'_>, turn: TurnId) -> Result<Receipt, Fault> {
    codec::from_json(row.get_ref(1)?, &format!("a receipt of turn {turn}"))
}
