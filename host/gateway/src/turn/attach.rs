//! Reads what came with a message, before the conversation is gathered: fetches files, and the earlier messages of its
//! thread if none of them is in the window yet. What was read is stored with the question, so that a turn that is run
//! again reads the same. It then stands in the conversation as one message of its own, just before the message it came
//! with. The [thread]'s earlier messages are shown for this turn only and are not kept.
//!
//! None of this is the asker's own text. All of it is [quoted](pmk_core::quoting), and each piece passes through the
//! policies' cap before that.

mod decode;
mod files;
mod frame;
mod thread;
mod told;

use std::sync::Arc;

use pmk_core::{CapVerdict, Entry, Message, Origin, Role, cap, tokens};
use pmk_policy::IncomingInput;

use super::{TurnError, live::LivePorts};
use crate::{
    chat::Attachments,
    config::Config,
    messages::Messages,
    services::Services,
    store::{Live, OpenTurn},
};
use frame::{Piece, pieces};

pub(super) use thread::background;
pub(super) use told::{Told, told};

/// All pieces together take at most 1/`SHARE_OF_LIMIT` of the hard limit, whatever the policies allow: the question
/// and the history must fit beside them.
const SHARE_OF_LIMIT: u64 = 2;

/// How much room there is for attachments, in tokens.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// The hard limit.
    pub limit: u64,
    /// Room already taken by the thread's earlier messages.
    pub taken: u64,
}

/// Reads what came with these messages. If `live` is given and holds nothing of the thread yet, it also reads the
/// messages of the thread before the first of these.
///
/// # Errors
/// What was read could not be stored. Content that cannot be read is marked as unreadable.
pub(super) async fn read(
    services: &Services,
    turn: &OpenTurn,
    merged: &[OpenTurn],
    live: Option<&Live>,
) -> Result<Attachments, TurnError> {
    let mut all = Attachments::default();
    let first = merged.first().unwrap_or(turn);
    let revision = live.unwrap_or(&turn.live).revision;
    for open in merged.iter().chain([turn]) {
        let mut attached = open.inbound.attached.clone();
        // Until they are stored.
        let _room = files::room(services, &attached.files).await;
        let (mut has_read, images) = files::read(services, &mut attached.files).await;
        let is_new = live.is_some_and(|live| thread::is_new_here(&services.config, open, live));
        if is_new && std::ptr::eq(open, first) && attached.thread.is_none() {
            attached.thread = thread::read(services, open).await?;
            has_read |= attached.thread.is_some();
        }
        if has_read {
            services.store.keep_attached(open, revision, &attached, images).await?;
        }
        all.append(attached);
    }
    Ok(all)
}

/// Returns a message's text, or a note that it has none if it consists of attachments alone.
pub(super) fn words(messages: &Messages, text: &str, attached: &Attachments) -> String {
    if text.trim().is_empty() && attached.has_content() { messages.told_no_words() } else { text.to_owned() }
}

/// Returns the text that names the files which were not read; empty if all were.
pub(super) fn not_read(messages: &Messages, config: &Config, attached: &Attachments) -> String {
    if attached.left_out == 0 && attached.unread().next().is_none() {
        return String::new();
    }
    let settings = &config.slack_settings;
    let most = (settings.max_file_kib, settings.max_image_kib);
    messages.not_read(attached.unread(), attached.left_out, most)
}

/// Returns how many tokens attachments may take up beside their message.
pub(super) fn cost(config: &Config, attached: &Attachments, limit: u64) -> u64 {
    let cost = |piece: &Piece| match &piece.image {
        Some(image) => u64::from(image.tokens()),
        None => u64::from(tokens::estimate(&piece.text)),
    };
    pieces(attached, config.language).iter().map(cost).sum::<u64>().min(limit / SHARE_OF_LIMIT)
}

/// What came with a message, and the message, once they are archived.
pub(super) struct Archived {
    /// The window entry of the attachments.
    pub shown: Entry,
    /// The archive id of the message.
    pub message: i64,
    /// The sizes, in characters, of the attachments that were capped, before and after.
    pub capped: Vec<(usize, usize)>,
}

/// Archives what came with a message, and the message after it; `None` if nothing came with it.
pub(super) async fn archive(
    ports: &LivePorts<'_>,
    turn: &OpenTurn,
    attached: &Attachments,
    message: &Message,
    Room { limit, taken }: Room,
) -> Result<Option<Archived>, TurnError> {
    let language = ports.services.config.language;
    let mut pieces = pieces(attached, language);
    if pieces.is_empty() {
        return Ok(None);
    }
    let whole = of_pieces(&pieces);
    let both = [whole.clone(), message.clone()];
    let ids = ports.services.store.archive(turn.session, turn.turn, &both, ports.services.now_ms()).await?;
    let &[id, of_message] = &*ids else { return Ok(None) };
    let mut entry = Entry::new(id, whole);
    let (mut room, mut sizes, mut is_reduced) = ((limit / SHARE_OF_LIMIT).saturating_sub(taken), vec![], false);
    for piece in &mut pieces {
        if let Some(image) = piece.image.take() {
            match room.checked_sub(u64::from(image.tokens())) {
                Some(left) => (room, piece.image) = (left, Some(image)),
                None => (is_reduced, piece.text) = (true, image.digest(&entry.shown_id(), language)),
            }
            continue;
        }
        let text: Arc<str> = Arc::from(piece.text.as_str());
        let incoming = IncomingInput { kind: Origin::Attachment, name: piece.name.clone(), text, limit };
        let verdict = ports.cap(incoming).await;
        let apply = |verdict| cap::apply(&piece.text, verdict, Origin::Attachment.name(), &entry.shown_id(), language);
        let mut capped = apply(verdict);
        let cost = u64::from(tokens::estimate(&capped.text));
        if cost > room {
            capped = apply(within(verdict, &capped.text, cost, room));
        }
        room = room.saturating_sub(u64::from(tokens::estimate(&capped.text)));
        if capped.capped {
            sizes.push((capped.original_chars, capped.text.chars().count()));
        }
        piece.text = capped.text;
    }
    if is_reduced || !sizes.is_empty() {
        entry = entry.standing(of_pieces(&pieces));
    }
    Ok(Some(Archived { shown: entry, message: of_message, capped: sizes }))
}

/// Returns the verdict under which a text of this token cost is shortened to about the room that is
/// left.
fn within(verdict: CapVerdict, text: &str, cost: u64, room: u64) -> CapVerdict {
    let chars = text.chars().count() as u64 * room / cost.max(1);
    verdict.at_most(u32::try_from(chars).unwrap_or(u32::MAX))
}

fn of_pieces(pieces: &[Piece]) -> Message {
    Message { role: Role::User, origin: Origin::Attachment, blocks: pieces.iter().flat_map(Piece::blocks).collect() }
}
