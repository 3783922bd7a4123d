//! Trials: a smaller request is tried before any conclusion is drawn or stored.
//!
//! An unexplained refusal, an empty answer to a large prompt, and repeated failing turns may be caused by the size. A
//! conversation must not lose anything because of a guess, so the edits that make the request smaller are kept aside.
//! Once a smaller request is answered, the edits are stored and the size is learnt. If none is answered, the window is
//! restored; and if a request of half the size was among those tried, the conversation is not suspected again for an
//! hour. (Without such a request nothing is known: a message that makes up nearly all of a request and is too large by
//! itself says nothing about others.) The last steps of any recovery are tried in the same way, so that nobody loses a
//! conversation over one message that is too large by itself.

use super::{Cut, Draft, Exchange, Ports, window::Window};

use crate::{
    calibration::{Refusal, Source},
    ledger::Event,
    store::{StoreError, WindowEdit},
};

/// A turn's request before the trial began, and the changes since.
pub(crate) struct Trial {
    window: Window,
    draft: Draft,
    /// The edits of the stored live window to make if the trial helps, with their ledger events.
    edits: Vec<(WindowEdit, Vec<Event>)>,
    /// The requests that got no answer for which only their size is left as an explanation.
    suspect: Option<Suspect>,
    /// Whether a smaller request was sent at all.
    is_sent: bool,
}

/// Requests that got no answer, for an unknown reason.
#[derive(Clone, Copy)]
pub(in crate::exchange) struct Suspect {
    source: Source,
    /// The size of the first request.
    first: u64,
    /// The size of the smallest request.
    smallest: u64,
}

/// Stores an edit of the live window with its ledger events; during a trial, keeps them aside.
///
/// # Errors
/// Nothing was stored.
pub(in crate::exchange) async fn edit_window(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    edit: WindowEdit,
    told: Vec<Event>,
) -> Result<(), StoreError> {
    match &mut exchange.trial {
        Some(trial) => trial.edits.push((edit, told)),
        None => ports.edit_window(exchange.session, edit, told).await?,
    }
    Ok(())
}

impl Trial {
    /// Begins a trial: further changes are only tried.
    pub fn begin(exchange: &mut Exchange) {
        if exchange.trial.is_some() {
            return;
        }
        exchange.trial = Some(Trial {
            window: exchange.window.clone(),
            draft: exchange.tally.draft.clone(),
            edits: vec![],
            suspect: None,
            is_sent: false,
        });
    }

    /// Notes that a request of this size got no answer, for an unknown reason.
    pub fn suspect(&mut self, source: Source, size: u64) {
        let Suspect { source, first, .. } = self.suspect.unwrap_or(Suspect { source, first: size, smallest: size });
        self.suspect = Some(Suspect { source, first, smallest: size });
    }

    /// Notes that a smaller request is sent.
    pub fn sent(&mut self) {
        self.is_sent = true;
    }

    /// What was removed for good before the trial.
    pub fn cut_before(&self) -> Option<Cut> {
        self.draft.cut
    }

    /// Returns whether the size was only guessed to be the reason.
    pub fn is_suspicion(&self) -> bool {
        self.suspect.is_some()
    }
}

/// Makes the trial's changes permanent, since a request was answered.
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

/// Restores the window, since no request was answered, however small. If the size was only suspected, it was not the
/// cause, unless no much smaller request could be tried.
pub(in crate::exchange) fn in_vain(ports: &dyn Ports, exchange: &mut Exchange) {
    if let Some(Suspect { source, first, smallest }) = take_back(exchange) {
        exchange.below = None;
        note(ports, exchange, source, smallest, false);
        if smallest <= first / 2 {
            ports.calibration().suspected_in_vain(exchange.session, ports.now_ms());
        }
    }
}

/// Restores the window from before the trial. Returns what was suspected, if a smaller request was
/// sent.
pub(in crate::exchange) fn take_back(exchange: &mut Exchange) -> Option<Suspect> {
    let trial = exchange.trial.take()?;
    exchange.window = trial.window;
    exchange.tally.draft = trial.draft;
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
