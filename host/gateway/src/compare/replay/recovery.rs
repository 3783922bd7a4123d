//! The ladder of recovery, by the rules that a turn goes by.

use std::{ops::Range, sync::Arc};

use pmk_core::{Entry, Transcript, tokens};
use pmk_policy::{OverflowInput, Rung};

use super::{Replay, Work};
use crate::{
    store::LiveEntry,
    turn::{
        recover::{
            compact::{self, Material},
            rotate,
            rules::{Base, MAX_RETRIES},
        },
        window::Fold,
    },
};

/// The recovery of one call.
#[derive(Default)]
pub(super) struct Recovery {
    base: Option<Base>,
    tried: Vec<Rung>,
    retries: usize,
}

impl Replay<'_> {
    /// Makes the window smaller by the next rung. False when there is nothing left to try.
    pub(super) fn recover(&mut self, work: &mut Work, recovery: &mut Recovery, counted: u64) -> bool {
        let base = recovery
            .base
            .get_or_insert_with(|| Base { window: work.window.clone(), tokens: work.tokens_after })
            .clone();
        loop {
            let rung = if recovery.retries < MAX_RETRIES {
                self.choose(work, &base, &recovery.tried, counted)
            } else {
                Rung::GiveUp
            };
            recovery.tried.push(rung);
            let taken = match rung {
                Rung::Trim => self.trim(work, &base),
                Rung::Compact => base.window.middle().is_some_and(|middle| self.compact(work, &base, middle, true)),
                Rung::Rotate => self.rotate(work, &base),
                Rung::GiveUp => {
                    if let Some(floor) = base.given_up(&work.window, work.room.limit) {
                        self.carry_out(work, &floor);
                    }
                    *self.seen.tally.rung(rung) += 1;
                    return false;
                }
            };
            if taken {
                recovery.retries += 1;
                *self.seen.tally.rung(rung) += 1;
                self.budget(work);
                return true;
            }
        }
    }

    fn choose(&mut self, work: &Work, base: &Base, tried: &[Rung], counted: u64) -> Rung {
        let decision = self.arm.stack.recover(OverflowInput {
            phase: work.phase,
            tried: tried.to_vec(),
            available: base.available(tried, work.room.limit),
            observed_tokens: Some(counted),
            allowed_tokens: Some(self.setup.window),
        });
        self.note(&decision.records);
        decision.rung
    }

    fn trim(&mut self, work: &mut Work, base: &Base) -> bool {
        let Some(applied) = base.trimmed(work.room.limit) else { return false };
        work.window = base.window.clone();
        self.carry_out(work, &applied);
        true
    }

    fn rotate(&mut self, work: &mut Work, base: &Base) -> bool {
        let Some(range) = base.window.before_this_turn() else { return false };
        let transcript = base.window.transcript();
        let decision = self.arm.stack.summarize(&transcript, rotate::most_tokens(work.room.limit));
        self.note(&decision.records);
        let (fresh, after) = rotate::fresh_session(base, &transcript, range, decision.text.trim());
        if !base.shrinks_to(after) {
            return false;
        }
        self.fold(work, base, &transcript, fresh);
        true
    }

    /// Before the call, because a policy wants it.
    pub(super) fn compact_ahead(&mut self, work: &mut Work, range: Range<usize>) -> bool {
        let base = Base { window: work.window.clone(), tokens: work.window.transcript().total_tokens() };
        self.compact(work, &base, range, false)
    }

    fn compact(&mut self, work: &mut Work, base: &Base, range: Range<usize>, recovering: bool) -> bool {
        let transcript = base.window.transcript();
        let system = u64::from(tokens::estimate(compact::SYSTEM));
        let part = &transcript.entries()[range.clone()];
        let material = Material::of(part, self.room(system).limit);
        for piece in &material.pieces {
            let tokens = system + u64::from(tokens::message(&compact::question(piece)));
            self.send(tokens, false);
            self.seen.tally.tokens_summarised += tokens;
        }
        // What the policies sum up themselves stands for the model's words.
        let part = Arc::new(Transcript::new(part.to_vec(), part.len(), ""));
        let most = u32::try_from(material.allowed()).unwrap_or(u32::MAX);
        let decision = self.arm.stack.summarize(&part, most);
        self.note(&decision.records);
        if decision.text.trim().is_empty() {
            return false;
        }
        let summary = material.with(decision.text.trim().to_owned());
        self.seen.tally.tokens_answered += u64::from(tokens::estimate(&summary));
        let (folded, after) = compact::summed_up(base, &transcript, range, &summary);
        if !compact::helps(base, after, recovering) {
            return false;
        }
        self.fold(work, base, &transcript, folded);
        true
    }

    /// Puts a summary in the place of a part of the base window.
    fn fold(&mut self, work: &mut Work, base: &Base, transcript: &Transcript, fold: Fold) {
        let range = fold.range.clone();
        self.seen.tally.turns_summarised += transcript.turns_in(range.start, range.end) as u64;
        self.seen.summarised.extend(transcript.entries()[range.clone()].iter().map(|entry| entry.id));
        let position = i64::try_from(range.start).unwrap_or(i64::MAX);
        let stored = fold.summary.clone().map(|message| LiveEntry { position, entry: Entry::new(0, message) });
        work.window = base.window.clone();
        work.window.fold(fold, stored);
    }
}
