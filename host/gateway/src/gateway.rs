//! The running gateway: connects the front with the turns.

use std::sync::Arc;

use async_trait::async_trait;
use pmk_knowledge::reaction::ReactionVerdict;
use pmk_system::{error::Failure, panics};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    access::authorization::Action,
    chat::{Accepted, Addressing, Change, Choice, Inbound, Invocation, Notice, Press, Reaction, ThreadMessage},
    dispatch::{Arrival, Batch, Dispatcher, TurnFailure, Turns},
    front::{FrontError, Intake},
    ledger::TaggedEvent,
    policies::experiment::{live, signals},
    presence::{self, health_check::HealthCheck, manager::Manager},
    services::Services,
    store::{Parked, Verdict},
    turn,
};

mod aging;
mod changes;
mod deaf;
mod handler;
mod learnt;
mod looks;
mod notice;
mod parked;
mod presses;
mod verdicts;

#[cfg(test)]
mod tests;

use changes::ReactionCommand;
use handler::Handler;
use looks::Looks;
use presses::{Patience, Presses, WAITS};
use verdicts::VerdictOutcome;

/// Takes in what people say and do, and has it answered.
pub struct Gateway {
    handler: Handler,
}

impl Gateway {
    /// Returns a gateway with these ports.
    pub fn new(services: &Arc<Services>) -> Gateway {
        let turns = Arc::new(Answering { services: Arc::clone(services), told: parked::Told::default() });
        let (store, queue, tasks) = (services.store.clone(), services.config.queue, services.tasks.clone());
        let dispatcher = Dispatcher::new(services.clock.clone(), turns, store, queue, tasks, services.stop.clone());
        Gateway { handler: Handler { services: Arc::clone(services), dispatcher } }
    }

    /// Returns the dispatcher, which runs the turns.
    pub fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.handler.dispatcher
    }

    /// Returns what presence needs of the gateway and its services.
    pub fn presence(&self, vitals: Arc<HealthCheck>, manager: Arc<Manager>) -> presence::Ports {
        let Handler { services, dispatcher } = &self.handler;
        presence::Ports {
            clock: services.clock.clone(),
            store: services.store.clone(),
            front: Arc::clone(&services.front),
            ledger: services.ledger.clone(),
            people: Arc::clone(&services.people),
            admins: services.admins.clone(),
            messages: Arc::clone(&services.messages),
            settings: services.config.presence,
            stop: services.stop.clone(),
            tasks: services.tasks.clone(),
            dispatcher: Arc::clone(dispatcher),
            found: Arc::new(self.handler.clone()),
            vitals,
            manager,
        }
    }

    /// Continues what an earlier run left unfinished, takes messages in until the front's input ends or the
    /// gateway is stopped, and lets the running turns finish.
    ///
    /// # Errors
    /// The front or the store cannot go on.
    pub async fn run(&self) -> Result<(), Failure> {
        panics::note_places();
        let Handler { services, dispatcher } = &self.handler;
        services.experiment.follow().await;
        let sweeping = dispatcher.start().await?;
        let following = tokio::spawn(live::keep_following(Arc::clone(&services.experiment)));
        let adopting = tokio::spawn(learnt::keep_adopting(Arc::clone(services)));
        let aging = tokio::spawn(aging::keep_erasing(Arc::clone(services)));
        let (presses, over) = (Presses::new(&self.handler), services.stop.child_token());
        let pressed = presses.news();
        let pressing = tokio::spawn(presses.keep_taking(over.clone()));
        let door = FrontIntake { handler: self.handler.clone(), pressed };
        // As a task of its own: polled by the thread that waits for the end, it would be woken again and again by the
        // others. The task is aborted if the waiting future is dropped.
        let (front, stop) = (Arc::clone(&services.front), services.stop.clone());
        let mut listening = JoinSet::new();
        listening.spawn(async move { front.listen(&door, stop).await });
        let listened = match listening.join_next().await {
            Some(Err(ended)) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Some(Ok(listened)) => listened,
            // Nothing else could have ended it.
            Some(Err(_)) | None => Err(FrontError::Closed),
        };
        // A press whose handling has begun is handled completely.
        over.cancel();
        let _ = pressing.await;
        // These tasks hold the services, and the ledger writes its last events when it is dropped.
        for task in [following, adopting, aging] {
            task.abort();
            let _ = task.await;
        }
        // No more messages are taken in.
        let store = services.store.clone();
        services.tasks.spawn(async move {
            if let Err(error) = store.leaves().await {
                tracing::debug!(%error, "other hosts will take over what is left once this host is gone");
            }
        });
        let drained = dispatcher.drain().await;
        // Turns being drained may wait for other hosts, which is noticed by polling until the end.
        sweeping.abort();
        let _ = sweeping.await;
        services.front.leave().await;
        drained?;
        match listened {
            Ok(()) | Err(FrontError::Closed) => Ok(()),
            Err(FrontError::Fatal { what, hint }) => Err(Failure::new(what).hint(hint)),
            Err(error) => Err(Failure::new(error)),
        }
    }

    /// Waits until this host of a shared database has received nothing from the front for so long, while another host
    /// does receive, that it must end. Waits forever if that does not happen.
    pub async fn cut_off(&self) -> Failure {
        deaf::until_others_hear_alone(&self.handler.services.store, &*self.handler.services.front).await;
        Failure::new("this host can no longer reach Slack, but another one can")
            .hint("the other hosts answer what it was working on; start it again once its network works")
    }
}

/// The turns that the dispatcher runs.
struct Answering {
    services: Arc<Services>,
    /// What the admins have been told of parked messages.
    told: parked::Told,
}

#[async_trait]
impl Turns for Answering {
    async fn run(&self, batch: &Batch) -> Result<(), TurnFailure> {
        turn::run(&self.services, batch).await
    }

    async fn tell_parked(&self, parked: &Parked) -> bool {
        parked::tell(&self.services, &self.told, parked).await
    }

    fn note(&self, TaggedEvent { event, tags }: TaggedEvent) {
        self.services.ledger.note_of(event, tags);
    }
}

/// The intake to which the front passes what people say and do.
#[derive(Clone)]
struct FrontIntake {
    handler: Handler,
    /// Notified when a button was pressed.
    pressed: Arc<Notify>,
}

impl FrontIntake {
    /// Does what a reaction asks for; its author is allowed to. Returns whether the reaction is about
    /// anything known.
    async fn heed(&self, wish: Option<ReactionCommand>, reaction: &Reaction) -> Result<bool, Failure> {
        if let Some(wish) = wish {
            return Ok(self.handler.heed(wish, reaction).await?);
        }
        let is_counted = signals::react(&self.handler.services.store, reaction, self.handler.services.now_ms()).await;
        let Some(verdict) = Verdict::of_reaction(reaction) else { return Ok(is_counted) };
        Ok(self.settle(self.handler.judge(&verdict).await?, reaction) || is_counted)
    }

    /// Shows the result of a verdict, or tells it to the person who reacted. Returns whether a verdict was awaited.
    fn settle(&self, judged: VerdictOutcome, reaction: &Reaction) -> bool {
        match judged {
            VerdictOutcome::NotAwaited => return false,
            VerdictOutcome::Kept(_) => self.pressed.notify_one(),
            VerdictOutcome::Shown(place, text) => {
                // In a task of its own, because Slack waits for the acknowledgement meanwhile.
                let (showing, ts) = (self.handler.clone(), reaction.message.ts.clone());
                self.handler.services.tasks.spawn(async move { showing.show_result(&place, &ts, text).await });
            }
            VerdictOutcome::Unreadable(text) => self.handler.whisper_back(reaction, text),
            VerdictOutcome::NotTheirs(place) => {
                self.handler.whisper(reaction.user.clone(), place, self.handler.services.messages.not_theirs());
            }
            VerdictOutcome::Taken | VerdictOutcome::Failed | VerdictOutcome::Known(_) => {}
        }
        true
    }

    /// Looks again for the atom of a verdict, which another host may have shared by then. In a task of its own, because
    /// Slack waits for the acknowledgement meanwhile. If this host ends before the atom is here, the verdict is lost:
    /// nothing is stored of a reaction to what may be any message of the bot.
    fn judge_later(&self, verdict: Verdict, reaction: Reaction) {
        let judging = self.clone();
        self.handler.services.tasks.spawn(async move {
            let Services { store, stop, .. } = &*judging.handler.services;
            let mut patience = Patience::of(store);
            while patience.is_left() {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(WAITS[0]) => {}
                }
                patience = patience.less();
                let is_settled = match judging.handler.judge_atom(&verdict).await {
                    Ok(judged) => judging.settle(judged, &reaction),
                    Err(error) => {
                        if !patience.is_left() {
                            tracing::error!(error = error.message(), "cannot handle a reaction to a message");
                        }
                        false
                    }
                };
                if is_settled {
                    return;
                }
            }
        });
    }
}

#[async_trait]
impl Intake for FrontIntake {
    async fn accept(&self, message: Inbound) -> Result<Accepted, Failure> {
        Ok(self.handler.take_in(message, Arrival::Fresh).await?)
    }

    async fn hear(&self, word: ThreadMessage) -> Result<Option<Accepted>, Failure> {
        if self.may_hear(&word.message.user) {
            return Ok(self.handler.take_in_thread(word, Arrival::Fresh).await?);
        }
        // A blocked person neither continues a thread nor keeps others from continuing it. Their question is refused in
        // its turn, and that is noted.
        match word.manner {
            Addressing::Mention { .. } => self.accept(word.message).await.map(Some),
            Addressing::Plain { .. } => Ok(None),
        }
    }

    fn may_hear(&self, person: &str) -> bool {
        self.handler.services.people.may_hear(person)
    }

    async fn change(&self, change: Change) -> Result<(), Failure> {
        Ok(self.handler.change(change).await?)
    }

    async fn react(&self, reaction: Reaction) -> Result<(), Failure> {
        let wish = ReactionCommand::of_reaction(&reaction.reaction);
        let action = match ReactionVerdict::of_reaction(&reaction.reaction) {
            Some(_) => Action::Judge,
            None if let Some(wish) = wish => wish.action(),
            None if signals::opinion(&reaction.reaction).is_some() => Action::Vote,
            // Most reactions have no meaning here.
            None => return Ok(()),
        };
        if !self.handler.services.people.may(&reaction.user, action, Some(&reaction.message.channel)).is_allowed() {
            return Ok(());
        }
        let mut looks = Looks::at(&self.handler.services.store, &reaction).await?;
        while !self.heed(wish, &reaction).await? {
            if !looks.again().await? {
                if let Some(verdict) = looks::verdict_elsewhere(&self.handler.services.store, &reaction) {
                    self.judge_later(verdict, reaction);
                }
                break;
            }
        }
        Ok(())
    }

    async fn press(&self, press: Press) -> Result<(), Failure> {
        let action = match press.choice {
            Choice::Like | Choice::Dislike => Action::Vote,
            Choice::Yes | Choice::No => Action::Judge,
            Choice::Again => Action::Again,
        };
        if self.handler.services.people.may(&press.user, action, Some(&press.message.channel)).is_allowed() {
            self.handler.services.store.press(&press).await?;
            self.pressed.notify_one();
        }
        Ok(())
    }

    fn invoke(&self, Invocation { user, channel }: Invocation) {
        if self.handler.services.people.may(&user, Action::Interact, channel.as_deref()).is_allowed() {
            tracing::debug!(user, "nothing here handles a click");
        }
    }

    fn notice(&self, notice: Notice) {
        notice::take(&self.handler.services, notice);
    }
}
