//! Parking: a question that cannot go on is set aside, so that its conversation can. It stays in the inbox until
//! somebody takes it up again.

use pmk_core::SessionKey;
use rusqlite::{Connection, OptionalExtension, Row, params, types::ValueRef};

use super::{InboxId, Parked, Pending, SessionId, Store, StoreError, error::Fault, escalations, intake, lease};
use crate::front::Inbound;

const PARK: &str = "UPDATE inbox SET parked_at = ?2, parked_why = ?3, parked_told = 0
     WHERE id = ?1 AND message IS NOT NULL AND parked_at IS NULL
     RETURNING session_id";
const PARKED: &str = "SELECT i.id, s.key, i.parked_at, i.parked_why, i.parked_told, i.message, t.placeholder
     FROM inbox i JOIN session s ON s.id = i.session_id LEFT JOIN turn t ON t.id = i.id
     WHERE i.parked_at IS NOT NULL AND i.message IS NOT NULL AND (?1 IS NULL OR i.id = ?1)
     ORDER BY i.id";
const TOLD: &str = "UPDATE inbox SET parked_told = 1 WHERE id = ?1 AND parked_at IS NOT NULL";
const UNPARK: &str = "UPDATE inbox SET parked_at = NULL, parked_why = NULL, parked_told = 0
     WHERE parked_at IS NOT NULL AND message IS NOT NULL
       AND (?1 IS NULL OR session_id = (SELECT id FROM session WHERE key = ?1))
     RETURNING id";

impl Store {
    /// Sets a question aside and frees its conversation; an answer that it was taking in is awaited again. `None`
    /// where there is nothing to set aside: the question is done with, or parked already.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn park(&self, inbox: InboxId, why: &str, now_ms: i64) -> Result<Option<Parked>, StoreError> {
        let why = why.to_owned();
        self.write(move |conn| {
            let session: Option<i64> =
                conn.prepare_cached(PARK)?.query_row(params![inbox.0, now_ms, why], |row| row.get(0)).optional()?;
            let Some(session) = session else { return Ok(None) };
            conn.prepare_cached(escalations::RELEASE_CLAIM)?.execute([inbox.0])?;
            lease::free(conn, SessionId(session))?;
            Ok(parked(conn, Some(inbox))?.pop())
        })
        .await
    }

    /// Everything that is parked, in the order it came in.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn parked(&self) -> Result<Vec<Parked>, StoreError> {
        self.read(|conn| parked(conn, None)).await
    }

    /// Remembers that the person knows.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn parked_told(&self, inbox: InboxId) -> Result<(), StoreError> {
        self.write(move |conn| Ok(conn.prepare_cached(TOLD)?.execute([inbox.0]).map(drop)?)).await
    }

    /// Takes parked questions up again, those of one conversation or all. They are open work from now on; those
    /// whose conversation cannot be read are left out of what comes back.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn unpark(&self, key: Option<&SessionKey>) -> Result<Vec<Pending>, StoreError> {
        let key = key.map(SessionKey::to_string);
        self.write(move |conn| {
            let mut statement = conn.prepare_cached(UNPARK)?;
            let ids: Vec<i64> = statement.query_map([key], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let mut open = intake::open_work(conn)?.pending;
            open.retain(|pending| ids.contains(&pending.inbox.0));
            Ok(open)
        })
        .await
    }
}

fn parked(conn: &Connection, inbox: Option<InboxId>) -> Result<Vec<Parked>, Fault> {
    let mut statement = conn.prepare_cached(PARKED)?;
    let rows = statement.query_map([inbox.map(|inbox| inbox.0)], |row| Ok(read(row)))?;
    rows.map(|row| Ok(row??)).collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Parked> {
    let message = match row.get_ref(5)? {
        ValueRef::Text(json) => serde_json::from_slice::<Inbound>(json).ok(),
        _ => None,
    };
    Ok(Parked {
        inbox: InboxId(row.get(0)?),
        key: row.get(1)?,
        at_ms: row.get(2)?,
        why: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        told: row.get(4)?,
        message,
        placeholder: row.get(6)?,
    })
}
