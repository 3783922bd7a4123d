//! Where the parts of an answer stand that went to people in person, because their conversation refused them: what is
//! done to such a message is done to the answer.

use super::{Store, StoreError, sql::params};
use crate::ids::TurnId;

pub(super) const GOES: &str = "INSERT INTO in_person (turn_id, part, channel) VALUES (?1, ?2, ?3)
     ON CONFLICT (turn_id, part, channel) DO NOTHING";
pub(super) const WENT: &str = "UPDATE in_person SET sent_id = ?4 WHERE turn_id = ?1 AND part = ?2 AND channel = ?3";

impl Store {
    /// Notes that a part of an answer is about to go to a person in this channel.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn goes_in_person(&self, turn: TurnId, part: u32, channel: &str) -> Result<(), StoreError> {
        let channel = channel.to_owned();
        self.write(move |conn| Ok(conn.prepare_cached(GOES)?.run(params![turn.0, part, channel])?)).await
    }

    /// Notes the front's id of the message that it has become there.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn went_in_person(
        &self,
        turn: TurnId,
        part: u32,
        channel: &str,
        sent_id: &str,
    ) -> Result<(), StoreError> {
        let [channel, sent_id] = [channel, sent_id].map(str::to_owned);
        self.write(move |conn| Ok(conn.prepare_cached(WENT)?.run(params![turn.0, part, channel, sent_id])?)).await
    }
}
