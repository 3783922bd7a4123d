//! Caps large messages by the policy's verdict when they are stored.

use std::sync::Arc;

use pmk_core::{Block, CapVerdict, Entry, Language, Message, Origin, cap};
use pmk_policy::IncomingInput;

use super::{Replay, only};
use crate::{
    directive::{self, Directive, Kind, tools},
    exchange::Ports,
    store::LiveEntry,
};

/// The beginning of the text for a failed `mra` question; such a text is never capped.
const MRA_FAILED: &str = "`mra ask ";

impl Replay<'_> {
    /// Puts what precedes the first turn into the window.
    pub(super) fn open(&mut self) {
        let limit = self.world.token_budget(only(), self.preamble.tokens).limit;
        let kept: Vec<Entry> = self.recording.opening().iter().map(|entry| self.keep(entry, &[], limit)).collect();
        self.live.entries = (0..).zip(kept).map(|(position, entry)| LiveEntry { position, entry }).collect();
    }

    /// Returns a message as it is stored. `said` contains the calls whose results the message carries.
    pub(super) fn keep(&self, entry: &Entry, said: &[&Entry], limit: u64) -> Entry {
        let message = &entry.message;
        let mut name_of_cap = message.origin;
        let mut verdicts = Vec::new();
        for block in &message.blocks {
            let Some(content) = block.content() else { continue };
            verdicts.push(match incoming(message, block, said) {
                Some((kind, name)) => {
                    name_of_cap = kind;
                    self.world.cap(IncomingInput { kind, name, text: Arc::from(content), limit })
                }
                None => CapVerdict::Keep,
            });
        }
        if verdicts.iter().all(|verdict| *verdict == CapVerdict::Keep) {
            return entry.clone();
        }
        let (kept, sizes) =
            cap::message(entry.id, (**message).clone(), name_of_cap.name(), &verdicts, Language::default());
        self.world.seen().tally.contents_capped += sizes.len() as u64;
        kept
    }
}

/// Returns the kind and the name of a content for the policy, if the content is capped.
fn incoming(message: &Message, block: &Block, said: &[&Entry]) -> Option<(Origin, String)> {
    match (message.origin, block) {
        (Origin::Seed, Block::Text { .. }) => Some((Origin::Seed, String::new())),
        (Origin::MraResult, Block::Text { text }) => {
            let asked = |entry: &&Entry| directive::parse(&entry.message.plain_text()).directive;
            (!text.starts_with(MRA_FAILED)).then(|| (Origin::MraResult, repo(said.iter().rev().find_map(asked))))
        }
        (_, Block::ToolResult { tool_use_id, is_error, .. }) => {
            let calls = said.iter().flat_map(|entry| &entry.message.blocks);
            let call = calls.rev().find_map(|call| match call {
                Block::ToolUse { id, name, input } if id == tool_use_id => Some((name.as_str(), input)),
                _ => None,
            });
            match call {
                Some((tool, input)) if tool == Kind::MraAsk.tool() => {
                    (!is_error).then(|| (Origin::MraResult, repo(tools::read_call(tool, input).ok())))
                }
                call => Some((Origin::ToolResult, call.map_or_else(String::new, |(tool, _)| tool.to_owned()))),
            }
        }
        _ => None,
    }
}

/// The repository that `mra` was asked about; empty if that is not known.
fn repo(asked: Option<Directive>) -> String {
    match asked {
        Some(Directive::MraAsk { repo, .. }) => repo,
        _ => String::new(),
    }
}
