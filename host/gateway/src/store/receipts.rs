//! Reads [receipts](super::receipt): those of a conversation, alone or with all that is needed to replay it.

use std::collections::BTreeMap;

use pmk_core::SessionKey;

use super::{
    SessionDump, Store, StoreError, codec, dump,
    error::Fault,
    receipt::{Digest, Receipt},
    sessions,
    sql::{Connection, OptionalExtension},
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
    /// The first receipt of each turn that has one, oldest first.
    pub receipts: Vec<Receipt>,
    /// The texts that the model was shown beside the conversation.
    pub texts: BTreeMap<Digest, String>,
    /// Whether a question of it is parked.
    pub has_parked: bool,
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

    /// Returns a conversation with the receipts of its turns' first requests, as of one moment. For a thread that
    /// may block.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`].
    pub fn replayable(&self, key: &SessionKey) -> Result<Replayable, StoreError> {
        let key = key.clone();
        self.read_waiting(move |conn| {
            let _moment = conn.snapshot()?;
            let session = sessions::find(conn, &key)?.ok_or_else(|| StoreError::UnknownSession(key.clone()))?;
            let mut receipts = read(conn, session)?;
            receipts.dedup_by_key(|(turn, _)| *turn);
            let receipts: Vec<Receipt> = receipts.into_iter().map(|(_, receipt)| receipt).collect();
            let mut texts = BTreeMap::new();
            let mut find = conn.prepare_cached(FIND_TEXT)?;
            for digest in receipts.iter().flat_map(Receipt::shown) {
                if !texts.contains_key(digest)
                    && let Some(text) = find.query_row([&*digest.0], |row| row.get::<_, String>(0)).optional()?
                {
                    texts.insert(digest.clone(), text);
                }
            }
            drop(find);
            let has_parked = conn.query_row(HAS_PARKED, [session.0], |row| row.get(0))?;
            Ok(Replayable { dump: dump::dump(conn, key)?, receipts, texts, has_parked })
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
        receipts.push((turn, codec::from_json(row.get_ref(1)?, &format!("a receipt of turn {turn}"))?));
    }
    Ok(receipts)
}
