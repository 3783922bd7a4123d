//! Pressed buttons: each press is stored, then acknowledged, and then has the same effect as the corresponding
//! reaction. The change of the button's message is stored, too, before it is shown.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    changes,
    verdicts::{self, VerdictOutcome},
};
use crate::{
    chat::{Choice, Press, ReplyTo},
    dispatch::Dispatcher,
    policies::experiment::signals,
    services::Services,
    store::{JudgedAtom, Pressed, RegenerateOutcome, RegenerateTrigger, StoreError, Verdict},
};

/// The pauses before a failed press is retried; the first one also applies to a press whose message is not known yet.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// How many more times an unknown message is looked up although nothing is being delivered: if hosts share their atoms,
/// the others learn of a new notice a moment later.
#[derive(Clone, Copy)]
struct Patience(u32);

impl Patience {
    fn of(services: &Services) -> Patience {
        Patience(if services.store.peers_may_have_work() { 5 } else { 0 })
    }

    fn is_left(self) -> bool {
        self.0 > 0
    }

    fn less(self) -> Patience {
        Patience(self.0.saturating_sub(1))
    }
}

/// Handles pressed buttons.
pub(super) struct Presses {
    services: Arc<Services>,
    dispatcher: Arc<Dispatcher>,
    news: Arc<Notify>,
}

impl Presses {
    pub fn new(services: &Arc<Services>, dispatcher: &Arc<Dispatcher>) -> Presses {
        Presses { services: Arc::clone(services), dispatcher: Arc::clone(dispatcher), news: Arc::default() }
    }

    /// Returns the notification for newly stored presses.
    pub fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.news)
    }

    /// Handles presses in order of arrival until `over` is cancelled. The rest is handled after the next start. Of
    /// several hosts, only the first handles presses, so that verdicts are taken one after the other.
    pub async fn keep_taking(self, over: CancellationToken) {
        let (mut last, mut has_failed) = (0, false);
        loop {
            let taken = match self.services.store.is_first() {
                true => self.take_all(&over, &mut last).await,
                false => Ok(()),
            };
            if let Err(error) = &taken
                && !has_failed
            {
                tracing::warn!(%error, "a pressed button will be handled later");
            }
            has_failed = taken.is_err();
            let looks = has_failed || self.services.store.is_shared();
            // Nothing new begins after the cancellation, and new presses need not wait for a retry.
            tokio::select! {
                biased;
                () = over.cancelled() => return,
                () = self.news.notified() => {}
                () = tokio::time::sleep(WAITS[0]), if looks => {}
            }
        }
    }

    async fn take_all(&self, over: &CancellationToken, last: &mut i64) -> Result<(), StoreError> {
        for pressed in self.services.store.presses(*last).await? {
            if over.is_cancelled() {
                break;
            }
            let number = pressed.number;
            take(&self.services, &self.dispatcher, pressed).await?;
            *last = number;
        }
        Ok(())
    }
}

/// Handles one press.
async fn take(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    Pressed { number, press, shows, atom }: Pressed,
) -> Result<(), StoreError> {
    if let Some(text) = shows {
        match atom.zip(Verdict::of_press(number, &press)) {
            // Judged, perhaps before a crash; it is unknown whether the verdict was carried out.
            Some((atom, verdict)) => carry_out(services, number, press, text, (verdict, atom)),
            None => show(services, number, press, text),
        }
        return Ok(());
    }
    match heed(services, dispatcher, number, &press, Patience::of(services)).await? {
        Some(judged) => settle(services, number, press, judged).await,
        None => {
            look_again(services, dispatcher, number, press);
            Ok(())
        }
    }
}

/// Does what a press asks for. `None` if the message is unknown and may still turn out to be the gateway's.
async fn heed(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    number: i64,
    press: &Press,
    patience: Patience,
) -> Result<Option<VerdictOutcome>, StoreError> {
    let may_be_ours = patience.is_left() || services.store.is_delivering_to(&press.channel).await?;
    let judged = match Verdict::of_press(number, press) {
        Some(verdict) => judge(services, dispatcher, &verdict).await,
        None if press.choice == Choice::Again => again(services, dispatcher, press).await?,
        None => match signals::react(&services.store, &press.reaction(), services.now_ms()).await {
            true => VerdictOutcome::Taken,
            false => VerdictOutcome::NotAwaited,
        },
    };
    Ok((!matches!(judged, VerdictOutcome::NotAwaited) || !may_be_ours).then_some(judged))
}

/// Looks up a message repeatedly until it is known, in a task of its own, so that other presses need not wait. Presses
/// left when the gateway ends are handled after the next start.
fn look_again(services: &Arc<Services>, dispatcher: &Arc<Dispatcher>, number: i64, press: Press) {
    let (looking, dispatcher) = (Arc::clone(services), Arc::clone(dispatcher));
    services.tasks.spawn(async move {
        let mut patience = Patience::of(&looking);
        loop {
            tokio::select! {
                biased;
                () = looking.stop.cancelled() => return,
                () = tokio::time::sleep(WAITS[0]) => {}
            }
            patience = patience.less();
            let settled = match heed(&looking, &dispatcher, number, &press, patience).await {
                Ok(None) => continue,
                Ok(Some(judged)) => settle(&looking, number, press.clone(), judged).await,
                Err(error) => Err(error),
            };
            match settled {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "a pressed button will be handled later"),
            }
        }
    });
}

/// Shows the result of a press, or tells it to the person who pressed.
async fn settle(services: &Arc<Services>, number: i64, press: Press, judged: VerdictOutcome) -> Result<(), StoreError> {
    let messages = &services.messages;
    match (judged, press.choice) {
        (VerdictOutcome::Kept(text), _) => {
            show(services, number, press, text);
            return Ok(());
        }
        (VerdictOutcome::Shown(_, text) | VerdictOutcome::Known(text), _) => {
            services.store.press_shows(number, &text).await?;
            show(services, number, press, text);
            return Ok(());
        }
        // The buttons are still there, for when the file is mended.
        (VerdictOutcome::Unreadable(text), _) => whisper(services, press, text),
        (VerdictOutcome::NotTheirs, Choice::Again) => whisper(services, press, messages.not_theirs_again()),
        (VerdictOutcome::NotTheirs, _) => whisper(services, press, messages.not_theirs()),
        (VerdictOutcome::NotAwaited, Choice::Like | Choice::Dislike) => {
            tracing::debug!(ts = press.ts, "a vote on a message that is not an answer");
        }
        (VerdictOutcome::NotAwaited, Choice::Again) => whisper(services, press, messages.nothing_again()),
        (VerdictOutcome::NotAwaited, _) => whisper(services, press, messages.not_awaited()),
        (VerdictOutcome::Taken | VerdictOutcome::Failed, _) => {}
    }
    services.store.press_done(number).await
}

/// Asks a question again: only once per message, however often and by whomever the button is
/// pressed.
async fn again(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    press: &Press,
) -> Result<VerdictOutcome, StoreError> {
    let at = (press.channel.as_str(), press.ts.as_str());
    match changes::again(services, dispatcher, &press.user, at, RegenerateTrigger::Button).await {
        Ok(RegenerateOutcome::Taken(_)) => Ok(VerdictOutcome::Shown(place(press), services.messages.asked_once_more())),
        Ok(RegenerateOutcome::Before) => Ok(VerdictOutcome::Known(services.messages.asked_once_more())),
        Ok(RegenerateOutcome::NotTheirs) => Ok(VerdictOutcome::NotTheirs),
        Ok(RegenerateOutcome::Waits | RegenerateOutcome::Nothing) => Ok(VerdictOutcome::NotAwaited),
        Err(error) if error.is_passing() => Err(error),
        Err(error) => {
            tracing::error!(%error, "cannot ask a question again");
            Ok(VerdictOutcome::Failed)
        }
    }
}

/// Does what a yes or no asks for. If that keeps failing, it is given up: the buttons are still there.
async fn judge(services: &Arc<Services>, dispatcher: &Arc<Dispatcher>, verdict: &Verdict) -> VerdictOutcome {
    let mut waits = WAITS.into_iter();
    loop {
        let error = match verdicts::judge(services, dispatcher, verdict).await {
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
fn carry_out(
    services: &Arc<Services>,
    number: i64,
    press: Press,
    text: String,
    (verdict, atom): (Verdict, JudgedAtom),
) {
    let doing = Arc::clone(services);
    services.tasks.spawn(async move {
        let judging = doing.judging.lock(&press.channel).await;
        match verdicts::carry_out(&doing, number, &verdict, atom).await {
            Ok(()) => {
                drop(judging);
                show(&doing, number, press, text);
            }
            Err(error) => {
                tracing::error!(error = error.message(), "a pressed button will be handled after the next start")
            }
        }
    });
}

/// Shows the result on the message, in a task of its own, so that others need not wait for a slow
/// front.
fn show(services: &Arc<Services>, number: i64, press: Press, text: String) {
    let showing = Arc::clone(services);
    services.tasks.spawn(async move {
        let place = place(&press);
        if !verdicts::show(&showing, &place, &press.ts, text).await {
            return;
        }
        while let Err(error) = showing.store.press_done(number).await {
            let may_pass = error.is_passing() && !showing.stop.is_cancelled();
            if !may_pass {
                tracing::warn!(%error, "what a message shows will be shown again after the next start");
                return;
            }
            tokio::select! {
                biased;
                () = showing.stop.cancelled() => {}
                () = tokio::time::sleep(WAITS[0]) => {}
            }
        }
    });
}

/// Tells only the person who pressed.
fn whisper(services: &Arc<Services>, press: Press, text: String) {
    let place = place(&press);
    verdicts::whisper(services, press.user, place, text);
}

fn place(press: &Press) -> ReplyTo {
    ReplyTo { channel: press.channel.clone(), thread_ts: press.thread_ts.clone() }
}
