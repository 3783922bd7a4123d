//! An independent check, written from the nine rules alone: simple, slow, and without any code of the guard. It
//! determines turns and pairs itself.

use std::{collections::BTreeSet, sync::Arc};

use pmk_core::{
    Block, Edit, Language, Message, Origin, Plan, Role, Transcript,
    plan::Replaced,
    recall,
    replace::{self, Reduction},
    tokens,
};
use unicode_segmentation::UnicodeSegmentation;

/// The settings of a guard.
pub struct Limits {
    pub limit: u64,
    pub seed_may_go: bool,
    pub must_shrink: bool,
}

/// A history, examined message by message.
pub struct Oracle<'a> {
    pub transcript: &'a Transcript,
    pub messages: Vec<&'a Message>,
    pub current: usize,
    pairs: Vec<(usize, usize)>,
}

impl<'a> Oracle<'a> {
    pub fn new(transcript: &'a Transcript) -> Self {
        let messages: Vec<&Message> = transcript.entries().iter().map(|entry| &*entry.message).collect();
        Oracle { pairs: pairs(&messages), transcript, messages, current: transcript.current() }
    }

    pub fn len(&self) -> usize {
        self.messages.len()
    }

    pub fn new_message(&self) -> Option<usize> {
        (self.current < self.len()).then_some(self.current)
    }

    pub fn cost(&self, at: usize) -> u64 {
        u64::from(self.transcript.tokens()[at])
    }

    fn cost_of(&self, messages: impl IntoIterator<Item = usize>) -> u64 {
        messages.into_iter().map(|at| self.cost(at)).sum()
    }

    pub fn is_marker(&self, at: usize) -> bool {
        at != self.current && self.messages[at].origin == Origin::Marker
    }

    pub fn starts_turn(&self, at: usize) -> bool {
        let message = self.messages[at];
        let inserted = [
            Origin::Seed,
            Origin::SeedAck,
            Origin::MraResult,
            Origin::ToolResult,
            Origin::Summary,
            Origin::Marker,
            Origin::Retrieval,
            Origin::Recall,
        ];
        let carries_result = message.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
        let follows_attachment = at > 0 && self.messages[at - 1].origin == Origin::Attachment && at != self.current;
        let came_with_new = (self.stored_end()..self.current).contains(&at);
        let is_asked = message.role == Role::User && !carries_result && !inserted.contains(&message.origin);
        is_asked && !follows_attachment && !came_with_new
    }

    /// Where what was retrieved or recalled for the new message begins.
    fn shown_start(&self) -> usize {
        let shown = |at: &usize| matches!(self.messages[*at].origin, Origin::Retrieval | Origin::Recall);
        self.current - (self.seed_end()..self.current).rev().take_while(shown).count()
    }

    /// Where what came with the new message begins, or what was retrieved or recalled for it.
    pub fn stored_end(&self) -> usize {
        let shown = self.shown_start();
        let attached = |at: &usize| self.messages[*at].origin == Origin::Attachment && self.new_message().is_some();
        shown - (self.seed_end()..shown).rev().take_while(attached).count()
    }

    pub fn seed_end(&self) -> usize {
        let is = |at: usize, origin| at < self.current && self.messages[at].origin == origin;
        match (is(0, Origin::Seed), is(1, Origin::SeedAck)) {
            (true, true) => 2,
            (true, false) => 1,
            (false, _) => 0,
        }
    }

    pub fn in_pair(&self, at: usize) -> bool {
        self.pairs.iter().any(|&(call, result)| call == at || result == at)
    }

    /// All messages that pairs tie to this one, itself included.
    pub fn tied(&self, at: usize) -> BTreeSet<usize> {
        let mut tied = BTreeSet::from([at]);
        loop {
            let before = tied.len();
            for &(call, result) in &self.pairs {
                if tied.contains(&call) || tied.contains(&result) {
                    tied.extend([call, result]);
                }
            }
            if tied.len() == before {
                return tied;
            }
        }
    }

    fn divisible(&self, at: usize) -> bool {
        !self.pairs.iter().any(|&(call, result)| call < at && at <= result)
    }

    /// The messages removed together with this one when nothing is too large: a turn, the turns that pairs tie
    /// together, the messages before the first turn, what came with the new message, what is shown only for it.
    pub fn part(&self, at: usize) -> (usize, usize) {
        let seed_end = self.seed_end();
        let ends = [self.stored_end(), self.shown_start(), self.current];
        let begins = |at: usize| {
            at == seed_end
                || at > seed_end
                    && self.divisible(at)
                    && (ends.contains(&at) || at < self.current && self.starts_turn(at))
        };
        let start = (seed_end..=at).rev().find(|&at| begins(at)).expect("the seed ends before");
        let end = (at + 1..self.len()).find(|&at| at >= seed_end && begins(at) && at <= self.current);
        (start, end.unwrap_or(self.len()))
    }

    pub fn parts(&self) -> Vec<(usize, usize)> {
        let mut parts: Vec<(usize, usize)> = (self.seed_end()..self.len()).map(|at| self.part(at)).collect();
        parts.dedup();
        parts
    }

    pub fn stored_turns(&self, gone: &BTreeSet<usize>) -> u32 {
        gone.iter().filter(|&&at| at < self.current && self.starts_turn(at)).count() as u32
    }

    /// The tokens of the request without these messages, and with the marker that stands for them.
    pub fn cost_without(&self, gone: &BTreeSet<usize>, words: Option<&str>, marker: bool) -> u64 {
        let kept = (0..self.len()).filter(|at| !gone.contains(at) && !self.is_marker(*at));
        self.cost_of(kept) + if marker { self.marker_cost(gone, words) } else { 0 }
    }

    pub fn marker_cost(&self, gone: &BTreeSet<usize>, words: Option<&str>) -> u64 {
        let stored: Vec<usize> = (0..self.len()).filter(|&at| self.is_marker(at)).collect();
        match self.stored_turns(gone) {
            0 if stored.len() <= 1 => self.cost_of(stored),
            turns => {
                let turns = self.transcript.dropped_turns().saturating_add(turns);
                u64::from(tokens::message(&Message::user(marker_text(words, turns))))
            }
        }
    }

    /// Whether a plan breaks no rule.
    pub fn allows(&self, plan: &Plan, words: Option<&str>, limits: &Limits) -> bool {
        let Some((mut gone, replaced)) = self.edits(plan) else { return false };
        let Some(recalled) = self.recalled(plan, &gone) else { return false };
        let seed_end = self.seed_end();
        let seed_gone = (0..seed_end).filter(|at| gone.contains(at)).count();
        if seed_gone > 0 && (!limits.seed_may_go || seed_gone < seed_end) {
            return false;
        }
        if !gone.iter().all(|&at| self.tied(at).is_subset(&gone)) {
            return false;
        }
        let always = |at: &usize| {
            !limits.seed_may_go && *at < seed_end || self.new_message().is_some_and(|new| *at >= self.part(new).0)
        };
        let always: BTreeSet<usize> = (0..self.len()).filter(always).collect();
        for (start, end) in self.parts() {
            // What stands before the new message for its sake goes message by message.
            if self.new_message().is_some_and(|new| self.stored_end() <= start && end <= new) {
                continue;
            }
            let movable: Vec<usize> = (start..end).filter(|&at| !self.is_marker(at)).collect();
            let going: Vec<usize> = movable.iter().copied().filter(|at| gone.contains(at)).collect();
            let needed = self.cost_of(always.iter().copied().chain(start..end).collect::<BTreeSet<_>>());
            let only_pairs = going.iter().all(|&at| self.in_pair(at));
            if !going.is_empty() && going != movable && !(needed > limits.limit && only_pairs) {
                return false;
            }
        }
        if recalled > 0 {
            gone.extend(self.standing_recalls());
        }
        let writes_marker =
            self.stored_turns(&gone) > 0 || (0..self.len()).filter(|&at| self.is_marker(at)).count() > 1;
        let stays = |at: &usize| if self.is_marker(*at) { !writes_marker } else { !gone.contains(at) };
        let first = (0..self.len()).find(stays);
        let marker_first = writes_marker && first.is_none_or(|first| first >= seed_end);
        if !marker_first && first.is_some_and(|first| self.messages[first].role != Role::User) {
            return false;
        }
        let saved: u64 = replaced.iter().map(|by| self.cost(by.index as usize) - u64::from(by.tokens)).sum();
        let without_recall = self.cost_without(&gone, words, true) - saved;
        let after = without_recall + recalled;
        let before = self.cost_of(0..self.len());
        let nothing = before.max(self.cost_without(&BTreeSet::new(), words, true));
        let shrunk = !limits.must_shrink || u128::from(after) * 10 <= u128::from(before) * 9;
        without_recall <= nothing && after <= limits.limit && shrunk
    }

    /// Recall blocks that an earlier call put before the new message.
    pub fn standing_recalls(&self) -> BTreeSet<usize> {
        (self.shown_start()..self.current).filter(|&at| self.messages[at].origin == Origin::Recall).collect()
    }

    /// The cost of a plan's recall block, if the plan may have one.
    pub fn recalled(&self, plan: &Plan, gone: &BTreeSet<usize>) -> Option<u64> {
        if plan.recalls().is_empty() {
            return Some(0);
        }
        self.new_message()?;
        let reduced = |at| plan.edits().iter().any(|edit| matches!(edit, Edit::Replace { index, .. } if *index == at));
        if self.standing_recalls().into_iter().any(|at| reduced(at as u32)) {
            return None;
        }
        let mut numbers = BTreeSet::new();
        let mut cost = u64::from(recall::frame_tokens(self.transcript.language()));
        for (number, quote) in plan.recalls() {
            let quote = quote.as_ref()?;
            let stays = (0..self.len()).any(|at| !gone.contains(&at) && self.transcript.entries()[at].id == quote.id);
            if stays || !numbers.insert(number) {
                return None;
            }
            cost += u64::from(quote.tokens);
        }
        Some(cost)
    }

    /// The messages that are removed and those that are replaced, if the edits are valid.
    pub fn edits(&self, plan: &Plan) -> Option<(BTreeSet<usize>, Vec<Replaced>)> {
        let mut touched = BTreeSet::new();
        let mut gone = BTreeSet::new();
        let mut replaced = Vec::new();
        if plan.excess().is_some() {
            return None;
        }
        for edit in plan.edits() {
            let indexes: Vec<usize> = match edit {
                Edit::Remove { start, end } if start < end && *end as usize <= self.len() => {
                    (*start as usize..*end as usize).collect()
                }
                Edit::Replace { index, .. } if (*index as usize) < self.len() => vec![*index as usize],
                _ => return None,
            };
            for at in indexes {
                if !touched.insert(at) || self.new_message() == Some(at) {
                    return None;
                }
                if matches!(edit, Edit::Remove { .. }) && !self.is_marker(at) {
                    gone.insert(at);
                }
            }
            if let Edit::Replace { result: Some(result), .. } = edit {
                replaced.push(result.clone());
            }
        }
        Some((gone, replaced))
    }

    /// Rule 7: a replacement consists of ranges of the original, cut at graphemes, and the host's notice.
    pub fn check_replacement(&self, by: &Replaced, reduction: Reduction) {
        let entry = &self.transcript.entries()[by.index as usize];
        let (source, id) = (entry.source(), entry.shown_id());
        let kind = source.origin.name();
        assert_eq!((by.message.role, by.message.origin), (source.role, source.origin));
        assert_eq!(by.message.blocks.len(), source.blocks.len());
        assert!(by.tokens < entry.tokens && by.tokens == tokens::message(&by.message));
        assert_eq!(
            by.chars_after as usize,
            by.message.blocks.iter().filter_map(Block::content).map(|c| c.chars().count()).sum::<usize>()
        );
        for (new, old) in by.message.blocks.iter().zip(&source.blocks) {
            if new == old {
                continue;
            }
            if let (Block::Image(old), Some(new)) = (old, new.content()) {
                assert_eq!((reduction, new), (Reduction::Digest, &*old.digest(&id, Language::default())));
                continue;
            }
            let (Some(new), Some(old)) = (new.content(), old.content()) else { panic!("a call was changed") };
            let Reduction::Shorten { head, tail } = reduction else {
                assert_eq!(new, replace::digest(old, kind, &id, Language::default()));
                continue;
            };
            let chars = old.chars().count();
            let notice = replace::notice(chars, kind, u64::from(head) + u64::from(tail), &id, Language::default());
            let (start, end) = new.split_once(&notice).expect("the notice");
            let (start, end) = (start.strip_suffix('\n').unwrap_or(start), end.strip_prefix('\n').unwrap_or(end));
            let boundaries: BTreeSet<usize> = old.grapheme_indices(true).map(|(at, _)| at).chain([old.len()]).collect();
            assert!(
                old.starts_with(start) && boundaries.contains(&start.len()) && start.chars().count() <= head as usize
            );
            assert!(old.ends_with(end) && boundaries.contains(&(old.len() - end.len())));
            assert!(end.chars().count() <= tail as usize);
        }
    }
}

/// The marker's text, by rule 6.
pub fn marker_text(words: Option<&str>, turns: u32) -> String {
    match words {
        Some(words) if words.contains("{turns}") && words.chars().count() <= 300 => {
            words.replace("{turns}", &turns.to_string())
        }
        _ => format!("(此處省略 {turns} 輪較舊的對話以節省 context)"),
    }
}

/// Message indexes of each call and its result, found by searching forward from every call.
fn pairs(messages: &[&Message]) -> Vec<(usize, usize)> {
    let mut used = BTreeSet::new();
    let mut pairs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for block in &message.blocks {
            let Block::ToolUse { id, .. } = block else { continue };
            let ahead = (at + 1..messages.len())
                .skip_while(|&later| messages[later].role == Role::Assistant)
                .take_while(|&later| messages[later].role == Role::User);
            let answer = ahead
                .flat_map(|later| (0..messages[later].blocks.len()).map(move |block| (later, block)))
                .find(|&(later, block)| {
                    matches!(&messages[later].blocks[block], Block::ToolResult { tool_use_id, .. } if tool_use_id == id)
                        && !used.contains(&(later, block))
                });
            let answer = answer.expect("every call has its result");
            used.insert(answer);
            pairs.push((at, answer.0));
        }
    }
    pairs
}

/// Checks what Anthropic's Messages API accepts: a user message first, alternating roles, nothing empty, and every call
/// answered once at the very start of the next message, with no other results there.
pub fn check_sendable(sent: &[Arc<Message>]) {
    let mut ids = BTreeSet::new();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in sent.iter().enumerate() {
        assert_eq!(message.role, if at % 2 == 0 { Role::User } else { Role::Assistant }, "message {at}");
        assert!(!message.blocks.is_empty(), "message {at} is empty");
        let mut said_something = false;
        for block in &message.blocks {
            match block {
                Block::Text { text } => {
                    assert!(!text.trim().is_empty(), "message {at} has an empty text");
                    assert!(
                        open.is_empty() || message.role == Role::Assistant,
                        "message {at} speaks before it answers"
                    );
                    said_something = true;
                }
                Block::Image(_) => {
                    assert!(
                        open.is_empty() && message.role == Role::User,
                        "an image where none may be in message {at}"
                    );
                    said_something = true;
                }
                Block::ToolUse { id, .. } => {
                    assert_eq!(message.role, Role::Assistant, "message {at} calls a tool");
                    assert!(ids.insert(id.as_str()), "call id `{id}` is used again in message {at}");
                    open.insert(id);
                }
                Block::ToolResult { tool_use_id, .. } => {
                    assert!(open.remove(tool_use_id.as_str()) && !said_something, "a stray result in message {at}");
                }
            }
        }
        assert!(open.is_empty() || message.role == Role::Assistant, "{open:?} unanswered in message {at}");
    }
    assert!(open.is_empty(), "{open:?} unanswered at the end");
}
