//! Pressed buttons: each press is stored, then acknowledged, and then has the same effect as the corresponding
//! reaction. The change of the button's message is stored, too, before it is shown.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{handler::Handler, verdicts::VerdictOutcome};
use crate::{
    chat::{Choice, Press, ReplyTo},
    policies::experiment::signals,
    services::Services,
    store::{JudgedAtom, Pressed, RegenerateOutcome, RegenerateTrigger, Store, StoreError, Verdict},
};

/// The pauses before a failed press is retried; the first one also applies to a press whose message is not known yet.
pub(super) const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// How many more times an unknown message is looked up although nothing is being delivered: if hosts share their atoms,
/// the others learn of a new notice a moment later.
#[derive(Clone, Copy)]
pub(super) struct Patience(u32);

impl Patience {
    pub fn of(store: &Store) -> Patience {
        Patience(if store.peers_may_have_work() { 5 } else { 0 })
    }

    pub fn is_left(self) -> bool {
        self.0 > 0
    }

    pub fn less(self) -> Patience {
        Patience(self.0.saturating_sub(1))
    }
}

/// Handles pressed buttons.
pub(super) struct Presses {
    handler: Handler,
    news: Arc<Notify>,
    in_hand: InHand,
}

/// The presses that are being handled, by their number and the front's id.
type InHand = Arc<Mutex<HashSet<(i64, String)>>>;

impl Presses {
    pub fn new(handler: &Handler) -> Presses {
        Presses { handler: handler.clone(), news: Arc::default(), in_hand: Arc::default() }
    }

    /// Returns the notification for newly stored presses.
    pub fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.news)
    }

    /// Handles presses in order of arrival until `over` is cancelled. The rest is handled after the next start. Of
    /// several hosts, only the first that hears handles presses, so that verdicts are taken one after the other.
    pub async fn keep_taking(self, over: CancellationToken) {
        let store = &self.handler.services.store;
        let (mut last, mut has_failed, mut returns) = (0, false, store.returns());
        let mut was_first = store.is_first_to_hear();
        loop {
            let before = std::mem::replace(&mut returns, store.returns());
            if before != returns {
                // The database may have lost presses, and gives their numbers to later ones.
                last = 0;
            }
            let is_first = store.is_first_to_hear();
            // The host that was first until now may not have learnt yet that it no longer is.
            let takes = std::mem::replace(&mut was_first, is_first) && is_first;
            let taken = match takes {
                true => self.take_all(&over, &mut last).await,
                false => Ok(()),
            };
            if let Err(error) = &taken
                && !has_failed
            {
                tracing::warn!(%error, "a pressed button will be handled later");
            }
            has_failed = taken.is_err();
            let looks = has_failed || store.is_shared();
            // Nothing new begins after the cancellation, and new presses need not wait for a retry.
            tokio::select! {
                biased;
                () = over.cancelled() => return,
                () = self.news.notified(), if takes => {}
                () = tokio::time::sleep(WAITS[0]), if looks => {}
            }
        }
    }

    async fn take_all(&self, over: &CancellationToken, last: &mut i64) -> Result<(), StoreError> {
        for pressed in self.handler.services.store.presses(*last).await? {
            if over.is_cancelled() {
                break;
            }
            let Pressed { number, press, shows, atom } = pressed;
            if let Some(hold) = Hold::take(&self.in_hand, (number, press.id.clone())) {
                let in_hand = PressInHand { handler: self.handler.clone(), number, press, _hold: Arc::new(hold) };
                in_hand.handle(shows, atom).await?;
            }
            *last = number;
        }
        Ok(())
    }
}

/// A press that is being handled.
#[derive(Clone)]
struct PressInHand {
    handler: Handler,
    number: i64,
    press: Press,
    _hold: Arc<Hold>,
}

/// Keeps a press from being taken twice until it is dropped.
struct Hold {
    in_hand: InHand,
    press: (i64, String),
}

impl Hold {
    /// `None` where it is in hand already.
    fn take(in_hand: &InHand, press: (i64, String)) -> Option<Hold> {
        let is_new = lock(in_hand).insert(press.clone());
        is_new.then(|| Hold { in_hand: Arc::clone(in_hand), press })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.in_hand).remove(&self.press);
    }
}

/// Both changes are atomic.
fn lock(in_hand: &InHand) -> MutexGuard<'_, HashSet<(i64, String)>> {
    in_hand.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PressInHand {
    /// Handles it; `shows` and `atom` are what is stored of its result.
    async fn handle(&self, shows: Option<String>, atom: Option<JudgedAtom>) -> Result<(), StoreError> {
        if let Some(text) = shows {
            match atom.zip(self.verdict()) {
                // Judged, perhaps before a crash; it is unknown whether the verdict was carried out.
                Some((atom, verdict)) => self.carry_out(text, verdict, atom),
                None => self.show(text),
            }
            return Ok(());
        }
        match self.heed(Patience::of(&self.handler.services.store)).await? {
            Some(judged) => self.settle(judged).await,
            None => {
                self.look_again();
                Ok(())
            }
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        Verdict::of_press(self.number, &self.press)
    }

    fn place(&self) -> ReplyTo {
        ReplyTo { channel: self.press.message.channel.clone(), thread_ts: self.press.thread_ts.clone() }
    }

    /// Does what the press asks for. `None` if the message is unknown and may still turn out to be the gateway's.
    async fn heed(&self, patience: Patience) -> Result<Option<VerdictOutcome>, StoreError> {
        let (services, press) = (&self.handler.services, &self.press);
        let may_be_ours = patience.is_left() || services.store.is_delivering_to(&press.message.channel).await?;
        let judged = match self.verdict() {
            Some(verdict) => self.judge(&verdict).await,
            None if press.choice == Choice::Again => self.again().await?,
            None => match signals::react(&services.store, &press.reaction(), services.now_ms()).await {
                true => VerdictOutcome::Taken,
                false => VerdictOutcome::NotAwaited,
            },
        };
        Ok((!matches!(judged, VerdictOutcome::NotAwaited) || !may_be_ours).then_some(judged))
    }

    /// Looks up the message repeatedly until it is known, in a task of its own, so that other presses need not wait.
    /// Presses left when the gateway ends are handled after the next start.
    fn look_again(&self) {
        let looking = self.clone();
        self.handler.services.tasks.spawn(async move {
            let services = &looking.handler.services;
            let mut patience = Patience::of(&services.store);
            loop {
                tokio::select! {
                    biased;
                    () = services.stop.cancelled() => return,
                    () = tokio::time::sleep(WAITS[0]) => {}
                }
                patience = patience.less();
                let settled = match looking.heed(patience).await {
                    Ok(None) => continue,
                    Ok(Some(judged)) => looking.settle(judged).await,
                    Err(error) => Err(error),
                };
                match settled {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%error, "a pressed button will be handled later"),
                }
            }
        });
    }

    /// Shows the result of the press, or tells it to the person who pressed.
    async fn settle(&self, judged: VerdictOutcome) -> Result<(), StoreError> {
        let services = &self.handler.services;
        let messages = &services.messages;
        match (judged, self.press.choice) {
            (VerdictOutcome::Kept(text), _) => {
                self.show(text);
                return Ok(());
            }
            (VerdictOutcome::Shown(_, text) | VerdictOutcome::Known(text), _) => {
                services.store.press_shows(self.number, &text).await?;
                self.show(text);
                return Ok(());
            }
            // The buttons are still there, for when the file is mended.
            (VerdictOutcome::Unreadable(text), _) => self.whisper(text),
            (VerdictOutcome::NotTheirs(_), Choice::Again) => self.whisper(messages.not_theirs_again()),
            (VerdictOutcome::NotTheirs(_), _) => self.whisper(messages.not_theirs()),
            (VerdictOutcome::NotAwaited, Choice::Like | Choice::Dislike) => {
                tracing::debug!(ts = self.press.message.ts, "a vote on a message that is not an answer");
            }
            (VerdictOutcome::NotAwaited, Choice::Again) => self.whisper(messages.nothing_again()),
            (VerdictOutcome::NotAwaited, _) => self.whisper(messages.not_awaited()),
            (VerdictOutcome::Taken | VerdictOutcome::Failed, _) => {}
        }
        services.store.press_done(self.number, &self.press.id).await
    }

    /// Asks a question again: only once per message, however often and by whomever the button is pressed.
    async fn again(&self) -> Result<VerdictOutcome, StoreError> {
        let (press, messages) = (&self.press, &self.handler.services.messages);
        match self.handler.again(&press.user, &press.message, RegenerateTrigger::Button).await {
            Ok(RegenerateOutcome::Taken(_)) => Ok(VerdictOutcome::Shown(self.place(), messages.asked_once_more())),
            Ok(RegenerateOutcome::Before) => Ok(VerdictOutcome::Known(messages.asked_once_more())),
            Ok(RegenerateOutcome::NotTheirs(place)) => Ok(VerdictOutcome::NotTheirs(place)),
            Ok(RegenerateOutcome::Waits | RegenerateOutcome::Nothing) => Ok(VerdictOutcome::NotAwaited),
            Err(error) if error.is_passing() => Err(error),
            Err(error) => {
                tracing::error!(%error, "cannot ask a question again");
                Ok(VerdictOutcome::Failed)
            }
        }
    }

    /// Does what a yes or no asks for. If that keeps failing, it is given up: the buttons are still there.
    async fn judge(&self, verdict: &Verdict) -> VerdictOutcome {
        let mut waits = WAITS.into_iter();
        loop {
            let error = match self.handler.judge(verdict).await {
                Ok(judged) => return judged,
                Err(error) => error,
            };
            let Some(wait) = waits.next() else {
                tracing::error!(error = error.message(), "cannot handle a pressed button");
                return VerdictOutcome::Failed;
            };
            tracing::warn!(error = error.message(), "retrying a pressed button");
            tokio::time::sleep(wait).await;
        }
    }

    /// Carries out a stored verdict and shows it, in a task of its own. If that fails, it is done after the next start.
    fn carry_out(&self, text: String, verdict: Verdict, atom: JudgedAtom) {
        let doing = self.clone();
        self.handler.services.tasks.spawn(async move {
            let judging = doing.handler.services.judging.lock(&verdict.message.channel).await;
            match doing.handler.carry_out(doing.number, &verdict, atom).await {
                Ok(()) => {
                    drop(judging);
                    doing.show(text);
                }
                Err(error) => {
                    tracing::error!(error = error.message(), "a pressed button will be handled after the next start")
                }
            }
        });
    }

    /// Shows the result on the message, in a task of its own, so that others need not wait for a slow front.
    fn show(&self, text: String) {
        let showing = self.clone();
        self.handler.services.tasks.spawn(async move {
            let PressInHand { handler, number, press, .. } = &showing;
            if !handler.show_result(&showing.place(), &press.message.ts, text).await {
                return;
            }
            let Services { store, stop, .. } = &*handler.services;
            while let Err(error) = store.press_done(*number, &press.id).await {
                let may_pass = error.is_passing() && !stop.is_cancelled();
                if !may_pass {
                    tracing::warn!(%error, "what a message shows will be shown again after the next start");
                    return;
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(WAITS[0]) => {}
                }
            }
        });
    }

    /// Tells only the person who pressed.
    fn whisper(&self, text: String) {
        self.handler.whisper(self.press.user.clone(), self.place(), text);
    }
}
