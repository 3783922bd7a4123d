//! Trying a smaller request before anything is believed or stored.
//!
//! A refusal that nothing explains, and an answer of nothing to a large prompt, may be about the size. The window of
//! a conversation must not suffer from a guess, so what makes the request smaller is kept aside: once a smaller one is
//! answered, the edits are stored and the size is learnt; where none is, the window is as it was, and the same
//! conversation is left in peace for an hour. The last steps of any recovery are tried in the same way: nobody loses a
//! conversation over one message that is too large by itself.

use super::super::{TurnError, window::Window, work::Work};
use crate::{
    calibration::{Refusal, Source},
    clock,
    gateway::Gateway,
    ledger::{Event, Noted},
    store::WindowEdit,
};

/// A turn's window before anything was tried, and what was tried since.
pub(in crate::turn) struct Trial {
    window: Window,
    tokens_after: u64,
    turns_dropped: u32,
    messages_replaced: usize,
    recalled: Vec<i64>,
    cut: String,
    /// What the stored live window gets when it helps, and what the ledger is to tell of it.
    pub edits: Vec<(WindowEdit, Vec<Noted>)>,
    /// The smallest request that got no answer, where nothing but its size is left to explain that.
    suspect: Option<(Source, u64)>,
    /// Whether a smaller request was sent at all.
    is_sent: bool,
}

impl Trial {
    /// From here on requests are only tried.
    pub fn begin(work: &mut Work<'_>) {
        if work.trial.is_some() {
            return;
        }
        work.trial = Some(Trial {
            window: work.window.clone(),
            tokens_after: work.tally.tokens_after,
            turns_dropped: work.tally.turns_dropped,
            messages_replaced: work.tally.messages_replaced,
            recalled: work.tally.recalled.clone(),
            cut: work.tally.cut.clone(),
            edits: vec![],
            suspect: None,
            is_sent: false,
        });
    }

    /// A request of this size got no answer and no reason that is known.
    pub fn suspect(&mut self, source: Source, size: u64) {
        let source = self.suspect.map_or(source, |(source, _)| source);
        self.suspect = Some((source, size));
    }

    /// A smaller request is sent.
    pub fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Whether the size was only guessed to be the reason.
    pub fn is_suspicion(&self) -> bool {
        self.suspect.is_some()
    }
}

/// A request was answered: what was tried holds.
pub(in crate::turn) async fn helped(gateway: &Gateway, work: &mut Work<'_>) -> Result<(), TurnError> {
    let Some(trial) = work.trial.take() else { return Ok(()) };
    for (edit, told) in trial.edits {
        gateway.store.edit_live(work.turn.session, edit, told, clock::now_ms()).await?;
    }
    if let Some((source, size)) = trial.suspect {
        work.tally.overflowed = true;
        note(work, source, size, true);
        let refusal = Refusal { observed: None, window: None, source };
        gateway.calibration().refused(work.turn.session, size, refusal, clock::now_ms());
    }
    Ok(())
}

/// Nothing was answered, however small: the window is as it was, and where the size was only suspected, it was not that.
pub(in crate::turn) fn in_vain(gateway: &Gateway, work: &mut Work<'_>) {
    if let Some((source, size)) = take_back(work) {
        work.below = None;
        note(work, source, size, false);
        gateway.calibration().suspected_in_vain(work.turn.session, clock::now_ms());
    }
}

/// The window is as it was before anything was tried. Gives what was suspected and tried.
pub(in crate::turn) fn take_back(work: &mut Work<'_>) -> Option<(Source, u64)> {
    let trial = work.trial.take()?;
    work.window = trial.window;
    work.tally.tokens_after = trial.tokens_after;
    work.tally.turns_dropped = trial.turns_dropped;
    work.tally.messages_replaced = trial.messages_replaced;
    work.tally.recalled = trial.recalled;
    work.tally.cut = trial.cut;
    trial.suspect.filter(|_| trial.is_sent)
}

fn note(work: &Work<'_>, source: Source, tokens: u64, helped: bool) {
    let session = work.turn.inbound.key.to_string();
    if helped {
        tracing::warn!(session, tokens, because = source.name(), "a smaller prompt was answered: it was the size");
    } else {
        tracing::warn!(session, tokens, because = source.name(), "smaller prompts were not answered either");
    }
    let because = source.name();
    work.journal.note(Event::ContextSuspected {
        actor: work.turn.inbound.user.clone(),
        session,
        because,
        tokens,
        helped,
    });
}
