//! What comes with a message, where that changes after the message was sent: somebody deletes a file, or Slack adds the
//! preview of a link.

use super::{
    CalledOff, Changed, Store, StoreError, archive,
    changes::{self, Known},
    codec, erase,
    error::Fault,
    escalations,
    events::EventWriter,
    handed_on, images,
    intake::SET_MESSAGE,
    proposals, receipt,
    sql::{Connection, OptionalExtension, params},
};
use crate::{
    chat::{Attachments, Content, FileSkipReason, Inbound, Reattached},
    ids::TurnId,
    ledger::Event,
};

pub(super) const ATTACHED: &str = "SELECT attached FROM inbox WHERE id = ?1";
pub(super) const SET_ATTACHED: &str = "UPDATE inbox SET attached = ?2 WHERE id = ?1";

impl Store {
    /// Stores what comes with a message by now. One that has lost files and waits is asked without them; of one that was
    /// answered, what had come with it is erased, if there are `words` to replace it. What was added is shown to the
    /// model if the turn has not begun. A change that arrives twice changes nothing. Writes a ledger event if files were
    /// lost.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn reattach(
        &self,
        reattached: &Reattached,
        words: Option<&str>,
        now_ms: i64,
    ) -> Result<Changed, StoreError> {
        let asked = reattached.message.message_ref();
        // Most of these messages are not known here, and then nothing is written.
        if self.read(move |conn| Ok(changes::find(conn, &asked)?.is_empty())).await? {
            return Ok(Changed::Unknown);
        }
        let Reattached { message, lost_files } = reattached.clone();
        let (words, pen, windows) = (words.map(str::to_owned), self.pen(now_ms), self.windows());
        let work = move |conn: &Connection| {
            if !lost_files {
                return add(conn, &message);
            }
            windows.forget_all();
            lose_files(conn, pen, &message, words.as_deref(), now_ms)
        };
        self.write_with_events(work).await
    }
}

/// Adds previews of links to a question that waits for its turn. It stays the same question.
fn add(conn: &Connection, message: &Inbound) -> Result<Changed, Fault> {
    for Known { inbox, message: asked, edited_at, is_begun, .. } in changes::find(conn, &message.message_ref())? {
        let Some(mut asked) = asked else { continue };
        let has_more = message.attached.quotes.len() > asked.attached.quotes.len();
        if !is_begun && has_more && asked.text == message.text {
            asked.attached.quotes.clone_from(&message.attached.quotes);
            conn.prepare_cached(SET_MESSAGE)?.run(params![inbox.0, codec::to_json(&asked), edited_at])?;
        }
    }
    Ok(Changed::Nothing)
}

fn lose_files(
    conn: &Connection,
    pen: EventWriter,
    message: &Inbound,
    words: Option<&str>,
    now_ms: i64,
) -> Result<Changed, Fault> {
    let mut found = changes::find(conn, &message.message_ref())?;
    // An answer that was handed on has them, too.
    let mut handed_on = Vec::new();
    for known in &found {
        for answer in handed_on::by(conn, known.turn())? {
            handed_on.extend(changes::find_handed_on(conn, &answer)?);
        }
    }
    found.extend(handed_on);
    let mut changed = Changed::Nothing;
    for mut known in found.into_iter().filter(|known| known.called_off != Some(CalledOff::Deleted)) {
        let (turn, waits) = (known.turn(), known.message.is_some() && !known.is_answered);
        let stored = known.message.take();
        let had = match &stored {
            Some(asked) => asked.attached.clone(),
            None => attached(conn, turn)?,
        };
        let is_known = had.files.is_empty() || files(&had) == files(&message.attached);
        if is_known || !waits && words.is_none() {
            continue;
        }
        let now = message.attached.clone();
        match stored {
            Some(asked) => {
                let asked = codec::to_json(&Inbound { attached: now, ..asked });
                conn.prepare_cached(SET_MESSAGE)?.run(params![turn.0, asked, known.edited_at])?;
            }
            None => {
                let now = (!now.is_empty()).then(|| codec::to_json(&now));
                conn.prepare_cached(SET_ATTACHED)?.run(params![turn.0, now])?;
            }
        }
        // Read anew, it may be no answer.
        for forget in [images::FORGET, erase::FORGET_READING] {
            conn.prepare_cached(forget)?.run([turn.0])?;
        }
        proposals::reattach(conn, turn, &message.attached)?;
        handed_on::reattach(conn, turn, &message.attached)?;
        if had.files.iter().any(|file| matches!(file.content, Content::Text { .. })) {
            forget_said(conn, &known)?;
        }
        let (anew, summaries) = match words {
            Some(words) if !waits => {
                let mut gone = Vec::new();
                let erased = erase::attached(conn, turn, (words, now_ms), &mut gone)?;
                receipt::erase_texts_of(conn, known.session, &gone)?;
                (erased.is_some(), erased.map_or(0, |erased| erased.summaries))
            }
            _ => {
                archive::forget(conn, turn)?;
                conn.prepare_cached(escalations::RELEASE_CLAIM)?.run([turn.0])?;
                (known.is_begun, 0)
            }
        };
        if anew {
            changes::next_revision(conn, known.session)?;
        }
        let session = known.key.to_string();
        pen.write(conn, Some(turn), Event::MessageDeleted { session, what: "file", waiting: waits, summaries })?;
        if !matches!(changed, Changed::Here { anew: true, .. }) {
            changed = Changed::Here { key: known.key, anew };
        }
    }
    Ok(changed)
}

/// Erases what a message with a file has said about a question that waits, and what it has added to an answer: in these, its
/// text and that of the file are one.
fn forget_said(conn: &Connection, known: &Known) -> Result<(), Fault> {
    let turn = known.turn();
    if let Some(channel) = &known.channel {
        escalations::forget_remark(conn, turn, (known.key.front, channel))?;
    }
    for addition in handed_on::by(conn, turn)?.iter().filter(|answer| handed_on::is_addition(answer)) {
        handed_on::erase(conn, turn)?;
        for mut passed_on in changes::find_handed_on(conn, addition)? {
            changes::call_off(conn, &mut passed_on)?;
        }
    }
    Ok(())
}

/// Returns what came with a message that is done with.
fn attached(conn: &Connection, turn: TurnId) -> Result<Attachments, Fault> {
    let json = conn.prepare_cached(ATTACHED)?.query_row([turn.0], |row| row.get::<_, Option<String>>(0)).optional()?;
    Ok(json.flatten().and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}

/// The files by their names, and whether they are gone.
fn files(attached: &Attachments) -> Vec<(&str, bool)> {
    let is_gone = |content: &Content| *content == Content::Unread(FileSkipReason::Gone);
    attached.files.iter().map(|file| (&*file.name, is_gone(&file.content))).collect()
}
