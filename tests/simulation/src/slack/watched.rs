//! Between the real front and the gateway, in worlds over calls: notes what the gateway takes in, and checks that the front
//! has read it as Slack meant it.

use async_trait::async_trait;
use pmk_host::{
    chat::{Accepted, Change, Inbound, Invocation, Notice, Press, Reaction, ThreadMessage},
    front::Intake,
};
use pmk_system::error::Failure;

use super::{News, Slack};

/// Passes everything on.
pub(super) struct Watched<'a> {
    pub(super) slack: &'a Slack,
    pub(super) intake: &'a dyn Intake,
}

impl Watched<'_> {
    /// The question that this message is; checks what the front has made of it.
    fn question(&self, read: &Inbound) -> Option<usize> {
        let state = self.slack.state();
        let is_it = |meant: &Inbound| meant.ts == read.ts && meant.reply_to.channel == read.reply_to.channel;
        let place = state.questions.iter().position(|question| is_it(&question.inbound));
        match place.map(|place| &state.questions[place].inbound) {
            None => self.slack.world.breach(format!("the front reads a message that nobody wrote: {read:?}")),
            Some(meant) => self.slack.compare(read, meant),
        }
        place
    }

    fn done(&self, is_it: impl Fn(&News) -> bool) -> Option<usize> {
        let state = self.slack.state();
        let found = state.done.iter().position(|done| is_it(&done.news));
        if found.is_none() {
            self.slack.world.breach("the front reads something that nobody did".to_owned());
        }
        found
    }

    /// Notes what comes of something that somebody did.
    async fn passes<T>(
        &self,
        done: Option<usize>,
        taken: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(place) = done else { return taken.await };
        let before = self.slack.does(place);
        let taken = taken.await;
        self.slack.did(place, &before, taken.as_ref().map(drop));
        taken
    }
}

#[async_trait]
impl Intake for Watched<'_> {
    async fn accept(&self, message: Inbound) -> Result<Accepted, Failure> {
        let question = self.question(&message);
        if let Some(question) = question {
            self.slack.asks(question);
        }
        let taken = self.intake.accept(message).await;
        if let (Some(question), Ok(_)) = (question, &taken) {
            self.slack.asked(question);
        }
        taken
    }

    async fn hear(&self, message: ThreadMessage) -> Result<Option<Accepted>, Failure> {
        let question = self.question(&message.message);
        if let Some(question) = question {
            self.slack.asks(question);
        }
        let taken = self.intake.hear(message).await;
        if let (Some(question), Ok(Some(_))) = (question, &taken) {
            self.slack.asked(question);
        }
        taken
    }

    fn may_hear(&self, person: &str) -> bool {
        self.intake.may_hear(person)
    }

    async fn react(&self, reaction: Reaction) -> Result<(), Failure> {
        // Slack's own button below a message that grows causes no event.
        let done = reaction.event_id.is_some().then(|| {
            self.done(|news| match news {
                News::Stop(other) | News::Again(other) | News::Thumb(other) => other.event_id == reaction.event_id,
                _ => false,
            })
        });
        self.passes(done.flatten(), self.intake.react(reaction)).await
    }

    async fn change(&self, change: Change) -> Result<(), Failure> {
        let done = match &change {
            Change::Edited(read) => self.done(|news| match news {
                News::Edited { edit, .. } => edit.message.event_id == read.message.event_id,
                _ => false,
            }),
            Change::Deleted(deletion) => self.done(|news| match news {
                News::Deleted { channel, ts } | News::AnswerDeleted { channel, ts, .. } => {
                    *channel == deletion.message.channel && *ts == deletion.message.ts
                }
                _ => false,
            }),
            Change::Reattached(_) => None,
        };
        if let (Some(place), Change::Edited(read)) = (done, &change) {
            let meant = match &self.slack.state().done[place].news {
                News::Edited { edit, .. } => Some(edit.message.clone()),
                _ => None,
            };
            meant.into_iter().for_each(|meant| self.slack.compare(&read.message, &meant));
        }
        self.passes(done, self.intake.change(change)).await
    }

    async fn press(&self, press: Press) -> Result<(), Failure> {
        let done = self.done(|news| matches!(news, News::Press(other) if *other == press));
        self.passes(done, self.intake.press(press)).await
    }

    fn invoke(&self, invocation: Invocation) {
        self.slack.world.breach(format!("the front takes a button for another one: {invocation:?}"));
    }

    fn notice(&self, notice: Notice) {
        if let Notice::Malformed { field } = &notice {
            self.slack.world.breach(format!("the front takes an event for malformed: {field}"));
        }
        self.intake.notice(notice);
    }
}

impl Slack {
    /// Checks that the front has read a message as it was meant.
    fn compare(&self, read: &Inbound, meant: &Inbound) {
        let essence = |message: &Inbound| {
            let Inbound { key, user, reply_to, text, ts, aliases, .. } = message;
            let text = text.trim().to_owned();
            (key.to_string(), user.clone(), reply_to.clone(), text, ts.clone(), aliases.clone())
        };
        if essence(read) != essence(meant) {
            self.world.breach(format!("the front reads {:?} where {:?} was meant", essence(read), essence(meant)));
        }
    }
}
