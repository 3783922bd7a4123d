//! Trying a smaller request before anything is believed or stored.
//!
//! A refusal that nothing explains, an answer of nothing to a large prompt, and turn after turn that fails may be about the size. The window of
//! a conversation must not suffer from a guess, so what makes the request smaller is kept aside: once a smaller one is
//! answered, the edits are stored and the size is learnt; where none is, the window is as it was, and the same
//! conversation is left in peace for an hour, if one of half the size was among them: a message that is nearly all of a
//! request and too large by itself says nothing of others. The last steps of any recovery are tried in the same way: nobody loses a
//! conversation over one message that is too large by itself.

use super::{Cut, Exchange, Ports, window::Window};

use crate::{
    calibration::{Refusal, Source},
    ledger::Event,
    store::{StoreError, WindowEdit},
};

/// A turn's window before anything was tried, and what was tried since.
pub(crate) struct Trial {
    window: Window,
    tokens_after: u64,
    turns_dropped: u32,
    messages_replaced: usize,
    recalled: Vec<i64>,
    cut: Option<Cut>,
    /// What the stored live window gets when it helps, and what the ledger is to tell of it.
    pub edits: Vec<(WindowEdit, Vec<Event>)>,
    /// What got no answer, where nothing but its size is left to explain that.
    suspect: Option<Suspect>,
    /// Whether a smaller request was sent at all.
    is_sent: bool,
}

/// Requests that got no answer and no reason that is known.
#[derive(Clone, Copy)]
pub(in crate::exchange) struct Suspect {
    source: Source,
    /// The size of the first request.
    first: u64,
    /// The size of the smallest.
    smallest: u64,
}

impl Trial {
    /// From here on requests are only tried.
    pub fn begin(exchange: &mut Exchange) {
        if exchange.trial.is_some() {
            return;
        }
        exchange.trial = Some(Trial {
            window: exchange.window.clone(),
            tokens_after: exchange.tally.tokens_after,
            turns_dropped: exchange.tally.turns_dropped,
            messages_replaced: exchange.tally.messages_replaced,
            recalled: exchange.tally.recalled.clone(),
            cut: exchange.tally.cut,
            edits: vec![],
            suspect: None,
            is_sent: false,
        });
    }

    /// A request of this size got no answer and no reason that is known.
    pub fn suspect(&mut self, source: Source, size: u64) {
        let Suspect { source, first, .. } = self.suspect.unwrap_or(Suspect { source, first: size, smallest: size });
        self.suspect = Some(Suspect { source, first, smallest: size });
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
pub(in crate::exchange) async fn helped(ports: &dyn Ports, exchange: &mut Exchange) -> Result<(), StoreError> {
    let Some(trial) = exchange.trial.take() else { return Ok(()) };
    for (edit, told) in trial.edits {
        ports.edit_window(exchange.session, edit, told).await?;
    }
    if let Some(Suspect { source, smallest, .. }) = trial.suspect {
        exchange.tally.overflowed = true;
        note(ports, exchange, source, smallest, true);
        if source == Source::Failing {
            exchange.sizes.refused(smallest, ports.now_ms());
        } else {
            let refusal = Refusal { observed: None, window: None, source };
            ports.calibration().refused(exchange.session, smallest, refusal, ports.now_ms());
        }
    }
    Ok(())
}

/// Nothing was answered, however small: the window is as it was, and where the size was only suspected, it was not that, unless
/// nothing much smaller could be tried.
pub(in crate::exchange) fn in_vain(ports: &dyn Ports, exchange: &mut Exchange) {
    if let Some(Suspect { source, first, smallest }) = take_back(exchange) {
        exchange.below = None;
        note(ports, exchange, source, smallest, false);
        if smallest <= first / 2 {
            ports.calibration().suspected_in_vain(exchange.session, ports.now_ms());
        }
    }
}

/// The window is as it was before anything was tried. Gives what was suspected and tried.
pub(in crate::exchange) fn take_back(exchange: &mut Exchange) -> Option<Suspect> {
    let trial = exchange.trial.take()?;
    exchange.window = trial.window;
    exchange.tally.tokens_after = trial.tokens_after;
    exchange.tally.turns_dropped = trial.turns_dropped;
    exchange.tally.messages_replaced = trial.messages_replaced;
    exchange.tally.recalled = trial.recalled;
    exchange.tally.cut = trial.cut;
    trial.suspect.filter(|_| trial.is_sent)
}

fn note(ports: &dyn Ports, exchange: &Exchange, source: Source, tokens: u64, helped: bool) {
    let session = exchange.key.clone();
    if helped {
        tracing::warn!(
            session,
            tokens,
            because = source.name(),
            "a smaller prompt was answered: its size was the cause"
        );
    } else {
        tracing::warn!(session, tokens, because = source.name(), "smaller prompts were not answered either");
    }
    let because = source.name();
    ports.note(Event::ContextSuspected { actor: exchange.asker.clone(), session, because, tokens, helped });
}
