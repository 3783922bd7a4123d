//! Buttons that were pressed: each is stored, then acknowledged, and then it does what the reaction does that says the
//! same. What it changes about its message is stored, too, before that is shown.

use std::{sync::Arc, time::Duration};

use pmk_system::error::Failure;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{
    changes,
    judged::Judged,
    word::{self, Looks},
};
use crate::{
    dispatch::Dispatcher,
    experiment::signals,
    front::FrontError,
    services::Services,
    store::{Again, Pressed, StoreError},
    talk::{Choice, Press, ReplyTo},
};

/// The waits before a press is tried once more that could not be done, or that came before its message was known.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Those who do what was pressed.
pub(super) struct Presses {
    services: Arc<Services>,
    dispatcher: Arc<Dispatcher>,
    news: Arc<Notify>,
}

impl Presses {
    pub fn new(services: &Arc<Services>, dispatcher: &Arc<Dispatcher>) -> Presses {
        Presses { services: Arc::clone(services), dispatcher: Arc::clone(dispatcher), news: Arc::default() }
    }

    /// To be told when something was pressed and is stored.
    pub fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.news)
    }

    /// Does what was pressed, in the order in which it came, until this is over. What is left then is done after the
    /// next start.
    pub async fn keep_taking(self, over: CancellationToken) {
        let mut last = 0;
        loop {
            let taken = self.take_all(&over, &mut last).await;
            if let Err(error) = &taken {
                tracing::warn!(%error, "what was pressed is done later");
            }
            tokio::select! {
                () = over.cancelled() => return,
                () = self.news.notified() => {}
                () = tokio::time::sleep(WAITS[0]), if taken.is_err() => {}
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

/// Does what one asks for.
async fn take(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    Pressed { number, press, shows }: Pressed,
) -> Result<(), StoreError> {
    if let Some(text) = shows {
        show(services, number, press, text);
        return Ok(());
    }
    let judged = match press.choice {
        Choice::Like | Choice::Dislike => {
            vote(services, &press).await;
            Judged::Taken
        }
        Choice::Yes | Choice::No | Choice::Again => heed(services, dispatcher, &press).await,
    };
    match judged {
        Judged::Shown(_, text) | Judged::Known(text) => {
            services.store.press_shows(number, &text).await?;
            show(services, number, press, text);
            return Ok(());
        }
        Judged::NotTheirs => whisper(services, press, services.messages.not_theirs()),
        Judged::NotAwaited => {
            let messages = &services.messages;
            let text = if press.choice == Choice::Again { messages.nothing_again() } else { messages.not_awaited() };
            whisper(services, press, text);
        }
        Judged::Taken => {}
    }
    services.store.press_done(number).await
}

/// Counts what somebody thinks of an answer, which may have reached them before it is known to have gone out.
async fn vote(services: &Services, press: &Press) {
    let mut waits = WAITS.into_iter();
    while !signals::react(&services.store, &press.reaction(), services.now_ms()).await {
        let Some(wait) = waits.next() else {
            tracing::debug!(ts = press.ts, "an opinion on something that is no answer");
            return;
        };
        tokio::time::sleep(wait).await;
    }
}

/// Has a question asked once more: by its message once, whoever presses it how often.
async fn again(services: &Arc<Services>, dispatcher: &Arc<Dispatcher>, press: &Press) -> Result<Judged, Failure> {
    let (at, once) = ((press.channel.as_str(), press.ts.as_str()), format!("again:{}:{}", press.channel, press.ts));
    let mut looks = Looks::at(services, &press.channel).await?;
    loop {
        match changes::again(services, dispatcher, &press.user, at, &once).await? {
            Again::Taken(_) => return Ok(Judged::Shown(place(press), services.messages.asked_once_more())),
            Again::Before => return Ok(Judged::Known(services.messages.asked_once_more())),
            Again::NotTheirs => return Ok(Judged::NotTheirs),
            Again::Nothing => {}
        }
        if !looks.again().await? {
            return Ok(Judged::NotAwaited);
        }
    }
}

/// Does what a word on a message asks for. What cannot be done is given up in the end: its buttons are still there.
async fn heed(services: &Arc<Services>, dispatcher: &Arc<Dispatcher>, press: &Press) -> Judged {
    let mut waits = WAITS.into_iter();
    loop {
        let heeded = match press.choice {
            Choice::Again => again(services, dispatcher, press).await,
            _ => word::judge(services, dispatcher, &press.reaction()).await,
        };
        let error = match heeded {
            Ok(judged) => return judged,
            Err(error) => error,
        };
        let (error, pressed) = (error.message(), press.choice.name());
        let Some(wait) = waits.next() else {
            tracing::error!(error, pressed, "what was pressed cannot be done");
            return Judged::Taken;
        };
        tracing::warn!(error, pressed, "what was pressed is tried again");
        tokio::time::sleep(wait).await;
    }
}

/// Shows what became of a message, aside: others need not wait for a slow front.
fn show(services: &Arc<Services>, number: i64, press: Press, text: String) {
    let showing = Arc::clone(services);
    services.tasks.spawn(async move {
        let place = place(&press);
        if word::show(&showing, &place, &press.ts, text).await
            && let Err(error) = showing.store.press_done(number).await
        {
            tracing::warn!(%error, "what a message shows is shown again after the next start");
        }
    });
}

/// Tells the one who has pressed, and nobody else.
fn whisper(services: &Arc<Services>, press: Press, text: String) {
    let telling = Arc::clone(services);
    services.tasks.spawn(async move {
        match telling.front.whisper(&press.user, &place(&press), &text).await {
            Ok(()) | Err(FrontError::Closed) => {}
            Err(error) => tracing::warn!(%error, "somebody does not learn that a button has no effect"),
        }
    });
}

fn place(press: &Press) -> ReplyTo {
    ReplyTo { channel: press.channel.clone(), thread_ts: press.thread_ts.clone() }
}
