//! Counts how often others were asked on somebody's behalf.

use std::{collections::HashSet, time::Duration};

use pmk_core::FrontName;

use super::{
    OpenTurn, Store, StoreError,
    error::Fault,
    handed_on,
    intake::front_name,
    moment,
    sql::{Connection, params},
};
use crate::directive::Kind;
use crate::ids::SessionId;

/// The period of the limits.
pub const BOUNDED_FOR: Duration = Duration::from_secs(60 * 60);

pub(super) const FORGET: &str = "DELETE FROM asked WHERE at <= ?1";
/// Entries further ahead than the period: the clock was set back.
pub(super) const FORGET_AHEAD: &str = "DELETE FROM asked WHERE at > ?1";
pub(super) const OF_PERSON: &str =
    "SELECT count(*) FROM asked WHERE kind = ?1 AND front = ?2 AND \"user\" = ?3 AND at > ?4";
pub(super) const OF_CONVERSATION: &str = "SELECT count(*) FROM asked WHERE kind = ?1 AND session_id = ?2 AND at > ?3";
pub(super) const ASK: &str = "INSERT INTO asked (kind, front, \"user\", session_id, at) VALUES (?1, ?2, ?3, ?4, ?5)";
pub(super) const IS_COUNTED: &str =
    "SELECT 1 FROM asked WHERE kind = ?1 AND front = ?2 AND \"user\" = ?3 AND session_id = ?4 AND at = ?5";
/// The newest, so many.
pub(super) const TAKE_BACK: &str = "DELETE FROM asked WHERE id IN
     (SELECT id FROM asked WHERE kind = ?1 AND front = ?2 AND \"user\" = ?3 AND session_id = ?4 ORDER BY at DESC LIMIT ?5)";
pub(super) const WRITTEN_BY: &str =
    "SELECT m.id FROM live l JOIN message m ON m.id = l.message_id JOIN turn t ON t.id = m.turn_id
     WHERE l.session_id = ?1 AND t.asked_by = ?2 AND m.origin = 'user'";
/// The messages of a live window in which the gateway passed on what somebody had answered elsewhere.
pub(super) const PASSED_ON: &str =
    "SELECT m.id FROM live l JOIN message m ON m.id = l.message_id JOIN inbox i ON i.id = m.turn_id
     WHERE l.session_id = ?1 AND i.event_id LIKE ?2 || '%' AND m.origin = 'user'";

/// The kind that questions of apps are counted as, beside the kinds of directives.
const OF_APP: &str = "app";

/// A kind of question, the front, who asks, and where.
type Counted<'a> = (&'a str, &'a str, &'a str, SessionId);

/// Who asks, and where.
#[derive(Clone, Debug)]
pub struct Asking {
    pub kind: Kind,
    pub front: FrontName,
    pub user: String,
    pub session: SessionId,
}

/// Whose limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Person,
    Conversation,
}

impl Bound {
    /// The name, for the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Bound::Person => "person",
            Bound::Conversation => "conversation",
        }
    }
}

impl Store {
    /// Counts a question that is about to be put to others, unless this person or this conversation has reached the
    /// limit within the last hour. The counts survive a restart.
    ///
    /// # Errors
    /// Nothing was counted: nobody must be asked.
    pub async fn count_asked(&self, asking: Asking, most: u32, now_ms: i64) -> Result<Option<Bound>, StoreError> {
        self.write(move |conn| {
            let Asking { kind, front, user, session } = &asking;
            let now_ms = moment::of(conn, now_ms)?;
            count(conn, (kind.tag(), front_name(*front), user, *session), (now_ms, now_ms), most)
        })
        .await
    }

    /// Counts a question of an app that is about to be answered, unless this app, or the apps in this conversation,
    /// have reached the limit within the last hour. A question whose turn is begun anew counts once.
    ///
    /// # Errors
    /// Nothing was counted: it must not be answered.
    pub async fn count_of_app(&self, turn: &OpenTurn, most: u32, now_ms: i64) -> Result<Option<Bound>, StoreError> {
        let (front, user) = (turn.inbound.key.front, turn.inbound.user.clone());
        let (session, at, resumed) = (turn.session, turn.received_at_ms, turn.resumed);
        self.write(move |conn| {
            let front = front_name(front);
            if conn.prepare_cached(IS_COUNTED)?.exists(params![OF_APP, front, user, session.0, at])? {
                return Ok(None);
            }
            let now_ms = moment::of(conn, now_ms)?;
            let at = match conn {
                // It has waited for long, or the clock of the host that has received it is wrong: as it is, it would be
                // forgotten at once. By another time an attempt begun anew does not find it.
                Connection::Postgres(_) if at.abs_diff(now_ms) >= BOUNDED_FOR.as_millis() as u64 => {
                    if resumed {
                        return Ok(None);
                    }
                    now_ms
                }
                _ => at,
            };
            count(conn, (OF_APP, front, &user, session), (at, now_ms), most)
        })
        .await
    }

    /// Takes back the newest counts of questions that were not put to others after all.
    ///
    /// # Errors
    /// They still count.
    pub async fn take_back_asked(&self, asking: Asking, times: usize) -> Result<(), StoreError> {
        self.write(move |conn| {
            let Asking { kind, front, user, session } = &asking;
            let (kind, front, times) = (kind.tag(), front_name(*front), i64::try_from(times).unwrap_or(i64::MAX));
            Ok(conn.prepare_cached(TAKE_BACK)?.run(params![kind, front, user, session.0, times])?)
        })
        .await
    }

    /// Returns the messages of the live window that were written by this person only.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn written_by(&self, session: SessionId, user: &str) -> Result<HashSet<i64>, StoreError> {
        self.messages_of(WRITTEN_BY, session, user).await
    }

    /// Returns the messages of the live window in which the gateway passed on what somebody had answered elsewhere.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn passed_on(&self, session: SessionId) -> Result<HashSet<i64>, StoreError> {
        self.messages_of(PASSED_ON, session, handed_on::HANDED_ON).await
    }

    async fn messages_of(
        &self,
        sql: &'static str,
        session: SessionId,
        whose: &str,
    ) -> Result<HashSet<i64>, StoreError> {
        let whose = whose.to_owned();
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(sql)?;
            let ids = statement.query_map(params![session.0, whose], |row| row.get(0))?;
            Ok(ids.collect::<Result<_, _>>()?)
        })
        .await
    }
}

/// Since when questions count.
const fn since(now_ms: i64) -> i64 {
    now_ms.saturating_sub(BOUNDED_FOR.as_millis() as i64)
}

/// Counts a question that was asked `at` a time.
fn count(
    conn: &Connection,
    (kind, front, user, session): Counted<'_>,
    (at, now_ms): (i64, i64),
    most: u32,
) -> Result<Option<Bound>, Fault> {
    let since = since(now_ms);
    conn.prepare_cached(FORGET)?.run([since])?;
    conn.prepare_cached(FORGET_AHEAD)?.run([now_ms.saturating_add(BOUNDED_FOR.as_millis() as i64)])?;
    let of_person: u32 =
        conn.prepare_cached(OF_PERSON)?.query_row(params![kind, front, user, since], |row| row.get(0))?;
    let of_conversation: u32 =
        conn.prepare_cached(OF_CONVERSATION)?.query_row(params![kind, session.0, since], |row| row.get(0))?;
    if of_person >= most {
        return Ok(Some(Bound::Person));
    }
    if of_conversation >= most {
        return Ok(Some(Bound::Conversation));
    }
    conn.prepare_cached(ASK)?.run(params![kind, front, user, session.0, at])?;
    Ok(None)
}
