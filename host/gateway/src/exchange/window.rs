//! The window of one turn: the messages of its next request. It begins as the conversation's live window
//! with the new message at the end; decisions shrink it, and the turn's messages are added to it.

use std::{collections::HashMap, ops::Range, sync::Arc};

use pmk_core::{Applied, Archive, Block, Entry, Guard, Language, Marker, Message, Origin, Plan, Recall, Transcript};

use crate::store::{FoldEdit, Live, LiveEntry, Replacement, WindowEdit};

/// A part of the window that a summary replaces.
pub(crate) struct Fold {
    pub range: Range<usize>,
    pub summary: Option<Message>,
    /// Whether the count of dropped turns is reset, as in a fresh session.
    pub forget_dropped: bool,
}

/// Messages whose images were replaced by text: each new message, and the entry before.
#[derive(Default)]
pub(crate) struct Hidden(Vec<(Arc<Message>, Entry)>);

/// The window.
#[derive(Clone)]
pub(crate) struct Window {
    rows: Vec<Row>,
    /// The index of the new message, where the current turn begins.
    current: usize,
    /// The archive id of what came with the new message. It precedes what is shown for that message
    /// only.
    attached: Option<i64>,
    dropped_turns: u32,
    marker_template: Option<String>,
    /// The revision of the stored window that it began as.
    revision: i64,
    channel: String,
    language: Language,
    archive: Option<Arc<dyn Archive>>,
}

#[derive(Clone)]
struct Row {
    /// The position in the stored live window; `None` for what is shown in this request only and for what
    /// the turn adds.
    position: Option<i64>,
    entry: Entry,
}

impl Row {
    fn shown(message: Message) -> Self {
        Row { position: None, entry: Entry::new(0, message) }
    }

    /// Its cost was determined when the recall was decided.
    fn recalled(recall: &Recall) -> Self {
        let mut entry = Entry::new(0, (*recall.message).clone());
        entry.tokens = recall.tokens;
        Row { position: None, entry }
    }
}

impl Window {
    /// Returns the live window with its marker after the seed, the retrieved messages, and the new
    /// message.
    pub fn new(
        live: Live,
        retrieved: impl IntoIterator<Item = Message>,
        new_message: Message,
        channel: String,
    ) -> Self {
        let Live { entries, dropped_turns, marker_template, revision } = live;
        let after_seed = entries.iter().position(|kept| !is_seed(&kept.entry)).unwrap_or(entries.len());
        let mut rows: Vec<Row> =
            entries.into_iter().map(|LiveEntry { position, entry }| Row { position: Some(position), entry }).collect();
        if dropped_turns > 0 {
            let marker = match &marker_template {
                Some(words) => Marker::with_template(dropped_turns, words).0,
                None => Marker::new(dropped_turns),
            };
            rows.insert(after_seed, Row::shown(marker.message()));
        }
        rows.extend(retrieved.into_iter().map(Row::shown));
        let current = rows.len();
        rows.push(Row::shown(new_message));
        let language = Language::default();
        let attached = None;
        Window { rows, current, attached, dropped_turns, marker_template, revision, channel, language, archive: None }
    }

    /// Lets policies search the archive.
    pub fn with_archive(self, archive: Arc<dyn Archive>) -> Self {
        Window { archive: Some(archive), ..self }
    }

    /// Adds what came with the new message, which was archived already.
    pub fn with_attached(mut self, attached: Entry) -> Self {
        let is_shown = |row: &&Row| row.position.is_none() && matches!(row.entry.message.origin, Origin::Retrieval);
        let at = self.current - self.rows[..self.current].iter().rev().take_while(is_shown).count();
        self.attached = Some(attached.id);
        self.rows.insert(at, Row { position: None, entry: attached });
        self.current += 1;
        self
    }

    /// Sets the language of the host's own text in it.
    pub fn speaking(self, language: Language) -> Self {
        Window { language, ..self }
    }

    /// Returns the language of the host's own text in it.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns what a policy sees.
    pub fn transcript(&self) -> Arc<Transcript> {
        let entries = self.rows.iter().map(|row| row.entry.clone()).collect();
        let transcript = Transcript::new(entries, self.current, self.channel.clone());
        let transcript = transcript.with_dropped_turns(self.dropped_turns).speaking(self.language);
        Arc::new(match &self.archive {
            Some(archive) => transcript.with_archive(Arc::clone(archive)),
            None => transcript,
        })
    }

    /// Returns the messages, in order.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.rows.iter().map(|row| &*row.entry.message)
    }

    /// Returns the messages, in order, to be sent as they are.
    pub fn shared(&self) -> impl Iterator<Item = Arc<Message>> {
        self.rows.iter().map(|row| Arc::clone(&row.entry.message))
    }

    /// Applies a decision that was made on this window's transcript. Returns the corresponding edit of
    /// the stored live window.
    pub fn apply(&mut self, applied: &Applied) -> WindowEdit {
        if let Some((marker, _)) = &applied.marker {
            self.marker_template = marker.template().map(str::to_owned);
        }
        self.dropped_turns = applied.turns_dropped_total;
        let mut edit = WindowEdit {
            dropped_turns_total: self.dropped_turns,
            marker_template: self.marker_template.clone(),
            revision: self.revision,
            ..WindowEdit::default()
        };
        edit.removed = applied.removed.iter().filter_map(|&at| self.rows[at as usize].position).collect();
        let mut replaced: HashMap<u32, _> = applied.replaced.iter().map(|by| (by.index, by)).collect();
        let mut marker = applied.marker.as_ref();
        let mut rows = Vec::with_capacity(applied.kept.len() + 1);
        let mut current = self.current;
        for &index in &applied.kept {
            if let Some((written, _)) = marker.take_if(|(_, before)| *before <= index) {
                rows.push(Row::shown(written.message()));
            }
            if index as usize == self.current {
                rows.extend(applied.recall.iter().map(Row::recalled));
                current = rows.len();
            }
            let Row { position, mut entry } = self.rows[index as usize].clone();
            if let Some(by) = replaced.remove(&index) {
                entry.original.get_or_insert(entry.message);
                entry.message = Arc::clone(&by.message);
                (entry.tokens, entry.chars) = (by.tokens, by.chars_after);
                edit.replaced.extend(position.map(|position| Replacement {
                    position,
                    message: Arc::clone(&by.message),
                    tokens: by.tokens,
                    chars: by.chars_after,
                }));
            }
            rows.push(Row { position, entry });
        }
        self.rows = rows;
        self.current = current;
        edit
    }

    /// Replaces all images by text.
    pub fn hide_images(&mut self) -> Hidden {
        let mut hidden = Hidden::default();
        for Row { entry, .. } in &mut self.rows {
            if entry.message.images().next().is_none() {
                continue;
            }
            let id = entry.shown_id();
            let words = |block: &Block| match block {
                Block::Image(image) => Block::Text { text: image.refused(&id, self.language) },
                block => block.clone(),
            };
            let blocks = entry.message.blocks.iter().map(words).collect();
            let standing = entry.standing(Message { blocks, ..(*entry.message).clone() });
            let before = std::mem::replace(entry, standing);
            hidden.0.push((Arc::clone(&entry.message), before));
        }
        hidden
    }

    /// Restores hidden images, except in messages that were changed otherwise since.
    pub fn show_again(&mut self, hidden: Hidden) {
        for (standing, before) in hidden.0 {
            let mut rows = self.rows.iter_mut().map(|row| &mut row.entry);
            if let Some(entry) = rows.find(|entry| Arc::ptr_eq(&entry.message, &standing)) {
                *entry = before;
            }
        }
    }

    /// Returns the edit that hides the images in the stored live window, except in messages that were
    /// changed otherwise since.
    pub fn hiding(&self, hidden: &Hidden) -> WindowEdit {
        let is_hidden = |row: &&Row| hidden.0.iter().any(|(standing, _)| Arc::ptr_eq(&row.entry.message, standing));
        let replacement = |Row { position, entry }: &Row| {
            let message = Arc::clone(&entry.message);
            position.map(|position| Replacement { position, message, tokens: entry.tokens, chars: entry.chars })
        };
        WindowEdit {
            replaced: self.rows.iter().filter(is_hidden).filter_map(replacement).collect(),
            dropped_turns_total: self.dropped_turns,
            marker_template: self.marker_template.clone(),
            revision: self.revision,
            ..WindowEdit::default()
        }
    }

    /// Removes all turns but the newest `most`; `None` if there are no more than that.
    pub fn keep_turns(&mut self, most: u32) -> Option<(WindowEdit, u32)> {
        let transcript = self.transcript();
        let too_many = transcript.turns().checked_sub(most as usize).filter(|&count| count > 0)?;
        let cut = transcript.structure().turn_starts[too_many];
        let mut plan = Plan::new();
        plan.remove(&transcript, u32::try_from(transcript.seed_end()).ok()?, cut);
        let guard = Guard { limit: u64::MAX, seed_may_go: false, must_shrink: false };
        // If a tool pair straddles the cut, or the marker would cost more, everything stays.
        guard.apply(&transcript, &plan).ok().map(|applied| (self.apply(&applied), applied.turns_dropped))
    }

    /// Returns the range between the seed with its marker and the most recent turn, if it is not
    /// empty.
    pub fn middle(&self) -> Option<Range<usize>> {
        let transcript = self.transcript();
        let mut start = transcript.seed_end();
        while transcript.is_marker(start) {
            start += 1;
        }
        self.stored(start..transcript.last_turn())
    }

    /// Returns the range between the seed and this turn with what came with its message or is shown for it, if it is not
    /// empty.
    pub fn before_this_turn(&self) -> Option<Range<usize>> {
        let transcript = self.transcript();
        self.stored(transcript.seed_end()..transcript.shown_part())
    }

    /// Returns the range if any of it is stored.
    fn stored(&self, range: Range<usize>) -> Option<Range<usize>> {
        let rows = self.rows.get(range.clone())?;
        rows.iter().any(|row| row.position.is_some()).then_some(range)
    }

    /// Returns the edit of the stored live window for a fold.
    pub fn fold_edit(&self, fold: &Fold) -> FoldEdit {
        let positions = || self.rows[fold.range.clone()].iter().filter_map(|row| row.position);
        let (first, last) = (positions().min().unwrap_or(0), positions().max().unwrap_or(-1));
        let (dropped_turns, marker_template) =
            if fold.forget_dropped { (0, None) } else { (self.dropped_turns, self.marker_template.clone()) };
        let (summary, revision) = (fold.summary.clone(), self.revision);
        FoldEdit { first, last, summary, dropped_turns, marker_template, revision }
    }

    /// Replaces a range of messages by a summary, which is stored at its own position.
    pub fn fold(&mut self, fold: Fold, stored: Option<LiveEntry>) {
        let Fold { range, forget_dropped, .. } = fold;
        let summary = stored.map(|LiveEntry { position, entry }| Row { position: Some(position), entry });
        self.current = self.current - range.len() + usize::from(summary.is_some());
        self.rows.splice(range, summary);
        if forget_dropped {
            self.dropped_turns = 0;
            self.marker_template = None;
        }
    }

    /// Adds a message that the turn has produced.
    pub fn push(&mut self, entry: Entry) {
        self.rows.push(Row { position: None, entry });
    }

    /// Returns whether a message that was added is still in the window, perhaps shortened.
    pub fn has(&self, id: i64) -> bool {
        self.entries().any(|entry| entry.id == id)
    }

    /// Returns whether a message that was added is still in the window, as it was written.
    pub fn has_whole(&self, id: i64) -> bool {
        self.entries().any(|entry| entry.id == id && entry.original.is_none())
    }

    /// Removes messages that were added.
    pub fn take_out(&mut self, ids: &[i64]) {
        let mut at = 0;
        let current = self.current;
        self.rows.retain(|row| {
            at += 1;
            at <= current + 1 || !ids.contains(&row.entry.id)
        });
    }

    /// Sets the archive id of the new message.
    pub fn new_message_archived(&mut self, id: i64) {
        self.rows[self.current].entry.id = id;
    }

    /// Returns the new message.
    pub fn new_message(&self) -> &Entry {
        &self.rows[self.current].entry
    }

    /// Returns the index of the new message.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Returns the number of dropped turns, and a policy's own text for their marker.
    pub fn dropped(&self) -> (u32, Option<&str>) {
        (self.dropped_turns, self.marker_template.as_deref())
    }

    /// Returns the revision of the stored window that it began as.
    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// Returns what came with the new message, if it is still in the window.
    fn attached(&self) -> impl Iterator<Item = &Entry> {
        let before = self.rows[..self.current].iter().map(|row| &row.entry);
        before.filter(|entry| self.attached.is_some_and(|id| entry.id == id))
    }

    /// Returns what came with the new message, that message, and what the turn has produced since, as far as they are
    /// still in the window.
    pub fn of_this_turn(&self) -> impl Iterator<Item = &Entry> {
        self.attached().chain(self.rows[self.current..].iter().map(|row| &row.entry))
    }

    /// Returns the number of turns dropped since the conversation began.
    pub fn dropped_turns(&self) -> u32 {
        self.dropped_turns
    }

    /// Returns all entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.rows.iter().map(|row| &row.entry)
    }

    /// Returns the live window for the next turn, if the conversation exists only in this window (as in a replay).
    /// Removes what is shown for one request only and, unless the turn was answered, the turn's own messages.
    pub fn into_live(self, answered: bool) -> Live {
        let Window { rows, current, attached, dropped_turns, marker_template, revision, .. } = self;
        let is_old = |row: &Row| row.position.is_some() || answered && attached == Some(row.entry.id);
        let stays = |(at, row): &(usize, Row)| if *at < current { is_old(row) } else { answered };
        let rows = rows.into_iter().enumerate().filter(stays);
        let entries = (0..).zip(rows).map(|(position, (_, row))| LiveEntry { position, entry: row.entry }).collect();
        Live { entries, dropped_turns, marker_template, revision }
    }

    /// Returns whether any message contains a tool call or a tool result.
    pub fn has_tools(&self) -> bool {
        self.messages().any(Message::has_tools)
    }
}

fn is_seed(entry: &Entry) -> bool {
    matches!(entry.message.origin, Origin::Seed | Origin::SeedAck)
}

#[cfg(test)]
mod tests {
    use pmk_core::{Image, ImageId, ImageType, Role, floor, tokens};

    use super::*;

    fn live(messages: &[Message], dropped_turns: u32) -> Live {
        let entries = messages
            .iter()
            .zip(10..)
            .map(|(message, position)| LiveEntry { position, entry: Entry::new(position + 100, message.clone()) });
        Live { entries: entries.collect(), dropped_turns, ..Live::default() }
    }

    fn seeded() -> Vec<Message> {
        vec![
            Message::text(Role::User, Origin::Seed, "我先把 workspace 的 PKB context 給你"),
            Message::text(Role::Assistant, Origin::SeedAck, "了解"),
            Message::user("first ".repeat(40)),
            Message::assistant("one ".repeat(40)),
            Message::user("second ".repeat(40)),
            Message::assistant("two ".repeat(40)),
        ]
    }

    fn picture() -> Message {
        let image = Image { sha256: ImageId::of(b""), media_type: ImageType::Png, width: 300, height: 300 };
        Message { role: Role::User, origin: Origin::Attachment, blocks: vec![Block::Image(image)] }
    }

    /// A plan may have been applied in between: messages it changed stay changed, and messages it removed
    /// stay removed.
    #[test]
    fn images_that_are_hidden_come_back_where_nothing_was_done_to_them() {
        let pictures = [picture(), picture(), Message::user("then"), picture()];
        let mut window = Window::new(live(&pictures, 0), None, Message::user("new"), "D1".into());
        let hidden = window.hide_images();
        assert!(window.messages().all(|message| message.images().next().is_none()));
        assert_eq!(window.hiding(&hidden).replaced.iter().map(|by| by.position).collect::<Vec<_>>(), [10, 11, 13]);
        window.rows.remove(0);
        window.current -= 1;
        window.rows[0].entry = window.rows[0].entry.standing(Message::user("shortened"));
        assert_eq!(window.hiding(&hidden).replaced.iter().map(|by| by.position).collect::<Vec<_>>(), [13]);
        window.show_again(hidden);
        let images: Vec<usize> = window.messages().map(|message| message.images().count()).collect();
        assert_eq!(images, [0, 0, 1, 0]);
        assert!(window.rows[2].entry.original.is_none() && window.rows[2].entry.tokens == tokens::message(&picture()));
    }

    fn texts(window: &Window) -> Vec<String> {
        window.messages().map(|message| message.plain_text().chars().take(9).collect()).collect()
    }

    #[test]
    fn the_marker_follows_the_seed_and_what_was_retrieved_goes_before_the_new_message() {
        let retrieved = Message::text(Role::User, Origin::Retrieval, "found");
        let window = Window::new(live(&seeded(), 3), Some(retrieved), Message::user("new"), "D1".into());
        let texts = texts(&window);
        assert!(texts[2].starts_with("(此處省略 3"), "{texts:?}");
        assert_eq!(texts[7..], ["found", "new"]);
        assert_eq!(window.transcript().current(), 8);
        assert_eq!(window.transcript().dropped_turns(), 3);
    }

    #[test]
    fn a_decision_changes_the_window_and_the_stored_one_alike() {
        let mut window = Window::new(live(&seeded(), 0), None, Message::user("new"), "D1".into());
        window.push(Entry::new(0, Message::assistant("produced")));
        let transcript = window.transcript();
        let guard = Guard { limit: 100_000, seed_may_go: false, must_shrink: true };
        let applied = guard.apply(&transcript, &floor::trim(&transcript)).expect("a good plan");
        let edit = window.apply(&applied);
        assert_eq!((edit.removed, edit.dropped_turns_total), (vec![12, 13], 1));
        assert_eq!(texts(&window)[2..], ["(此處省略 1 輪", "second se", "two two t", "new", "produced"]);
        assert_eq!(window.new_message().message.plain_text(), "new");
        assert_eq!(window.of_this_turn().count(), 2);
        // The request is the same, however it was made.
        let again = window.transcript();
        assert_eq!(again.total_tokens(), applied.tokens_after);
        let nothing = guard.apply(&again, &Plan::new());
        assert!(nothing.is_err(), "nothing is left to shrink");
    }

    #[test]
    fn only_the_newest_turns_stay_where_a_limit_says_so() {
        let mut messages = seeded();
        messages.extend([Message::user("third ".repeat(40)), Message::assistant("three ".repeat(40))]);
        let mut window = Window::new(live(&messages, 0), None, Message::user("new"), "D1".into());
        assert!(window.keep_turns(3).is_none());
        let (edit, dropped) = window.keep_turns(1).expect("two go");
        assert_eq!((edit.removed, edit.dropped_turns_total, dropped), (vec![12, 13, 14, 15], 2, 2));
        assert_eq!(texts(&window)[2..4], ["(此處省略 2 輪", "third thi"]);
    }

    #[test]
    fn what_came_with_the_message_stands_before_it_and_is_of_its_turn() {
        let retrieved = Message::text(Role::User, Origin::Retrieval, "found");
        let attached = Entry::new(7, Message::text(Role::User, Origin::Attachment, "attached".repeat(40)));
        let window = Window::new(live(&seeded(), 0), Some(retrieved), Message::user("new"), "D1".into());
        let mut window = window.with_attached(attached);
        assert_eq!(texts(&window)[5..], ["two two t", "attacheda", "found", "new"]);
        assert_eq!(window.new_message().message.plain_text(), "new");
        assert_eq!(window.of_this_turn().map(|entry| entry.id).collect::<Vec<_>>(), [7, 0]);
        // Neither a summary nor a new session takes it, or what was found, from the message.
        assert_eq!((window.middle(), window.before_this_turn()), (Some(2..4), Some(2..6)));
        // A policy may remove it; it then no longer belongs to the turn.
        let transcript = window.transcript();
        let mut plan = Plan::new();
        plan.remove(&transcript, 6, 7);
        let guard = Guard { limit: 100_000, seed_may_go: false, must_shrink: false };
        let edit = window.apply(&guard.apply(&transcript, &plan).expect("a good plan"));
        assert!(edit.removed.is_empty(), "it is not stored yet");
        assert_eq!(window.of_this_turn().count(), 1);
    }

    #[test]
    fn a_message_that_was_added_can_be_taken_out_again() {
        let mut window = Window::new(live(&seeded(), 0), None, Message::user("new"), "D1".into());
        for (id, text) in [(7, "attached"), (8, "more"), (9, "yet more")] {
            window.push(Entry::new(id, Message::user(text)));
        }
        assert!(window.has_whole(8) && !window.has(6));
        window.rows[8].entry = window.rows[8].entry.standing(Message::user("m…"));
        assert!(window.has(8) && !window.has_whole(8) && window.has_whole(9));
        window.take_out(&[7, 8, 112]);
        assert_eq!(texts(&window)[5..], ["two two t", "new", "yet more"]);
        assert_eq!(window.new_message().message.plain_text(), "new");
    }

    #[test]
    fn what_the_turn_produced_may_be_reduced_and_its_original_stays() {
        let mut window = Window::new(live(&[], 0), None, Message::user("new"), "D1".into());
        window.push(Entry::new(7, Message::text(Role::User, Origin::MraResult, "result ".repeat(100))));
        let transcript = window.transcript();
        let mut plan = Plan::new();
        plan.replace(&transcript, 1, pmk_core::replace::Reduction::Shorten { head: 20, tail: 0 });
        let guard = Guard { limit: 100_000, seed_may_go: false, must_shrink: false };
        let edit = window.apply(&guard.apply(&transcript, &plan).expect("a good plan"));
        assert!(edit.replaced.is_empty() && edit.removed.is_empty());
        let produced = window.of_this_turn().last().expect("a message");
        assert_eq!(produced.id, 7);
        assert!(produced.original.is_some() && produced.tokens < 100);
    }
}
