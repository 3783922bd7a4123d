//! What people change about messages they have sent: edits and deletions; the word or reaction that stops an answer;
//! the reaction that has a question asked again.

use std::sync::Arc;

use super::handler::Handler;
use crate::{
    access::authorization::Action,
    chat::{
        Accepted, Addressing, Change, Edit, Inbound, MessageRef, ReactedAuthor, Reaction, Reattached, ThreadMessage,
        says_stop,
    },
    dispatch::{Arrival, Dispatcher},
    ids::InboxId,
    ledger::report::TurnReport,
    operator::permissions::Permissions,
    store::{Changed, Open, RegenerateOutcome, RegenerateTrigger, StoreError},
};

/// What a reaction asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReactionCommand {
    Stop,
    Again,
}

impl ReactionCommand {
    /// Returns what a reaction asks for, if it is one of these.
    pub fn of_reaction(reaction: &str) -> Option<ReactionCommand> {
        match reaction.trim_matches(':') {
            _ if says_stop(reaction) => Some(ReactionCommand::Stop),
            "repeat" | "arrows_counterclockwise" => Some(ReactionCommand::Again),
            emoji if emoji.starts_with(['🔁', '🔄']) => Some(ReactionCommand::Again),
            _ => None,
        }
    }

    /// Returns the action to authorize.
    pub const fn action(self) -> Action {
        match self {
            ReactionCommand::Stop => Action::Stop,
            ReactionCommand::Again => Action::Again,
        }
    }
}

/// Returns whether a message consists of nothing but a stop word.
fn is_stop(message: &Inbound) -> bool {
    let word = message.text.trim().trim_end_matches(['.', '!', '。', '！']).trim_start_matches('/');
    message.attached.is_empty() && (word.eq_ignore_ascii_case("stop") || word == "停")
}

impl Handler {
    /// Stores a change of a message. When this returns, the change survives a crash.
    ///
    /// # Errors
    /// The change could not be stored; it may be retried.
    pub(super) async fn change(&self, change: Change) -> Result<(), StoreError> {
        let handler = self.clone();
        self.whole(async move {
            let now_ms = handler.services.now_ms();
            let words =
                (handler.services.config.slack_settings.follow_deletes).then(|| handler.services.messages.erased());
            let of_file = words.as_ref().map(|[question, _]| question.as_str());
            let mut changed = match &change {
                Change::Edited(edit) => {
                    let edited = handler.services.store.edit(edit, now_ms).await?;
                    let lost = match edit.lost_files {
                        true => {
                            let lost = Reattached { message: edit.message.clone(), lost_files: true };
                            handler.services.store.reattach(&lost, of_file, now_ms).await?
                        }
                        false => Changed::Nothing,
                    };
                    if let Changed::Here { .. } = lost { lost } else { edited }
                }
                Change::Reattached(reattached) => handler.services.store.reattach(reattached, of_file, now_ms).await?,
                Change::Deleted(deletion) => handler.services.store.delete(deletion, words, now_ms).await?,
            };
            // The message was not for the gateway before the edit, and no other event brings it, so it becomes known by
            // the edit. Or it has arrived a moment later, and is edited then.
            if let (Changed::Unknown, Change::Edited(edit)) = (&changed, &change)
                && edit.comes_alone
                && handler.take_in_edited(edit).await?.is_some()
            {
                changed = handler.services.store.edit(edit, now_ms).await?;
            }
            match changed {
                Changed::Here { ref key, .. } => {
                    interrupt(&handler.dispatcher, &changed);
                    handler.dispatcher.look_at(key).await
                }
                Changed::Unknown | Changed::Nothing => Ok(()),
            }
        })
        .await
    }

    /// Takes in the message that results from an edit.
    async fn take_in_edited(&self, edit: &Edit) -> Result<Option<Accepted>, StoreError> {
        let message = Inbound { asked_at: Some(edit.at.clone()), ..edit.message.clone() };
        match edit.manner.clone() {
            // A person who mentions the bot by an edit is followed like anybody else.
            Some(manner) if self.services.people.may_hear(&message.user) => {
                self.dispatcher.hear(ThreadMessage { message, manner }, Arrival::Fresh).await
            }
            _ => self.dispatcher.take_in(message, Arrival::Fresh).await.map(Some),
        }
    }

    /// Stops what is being answered if the message is a stop word. Returns false if it is to be treated as an ordinary
    /// message, because there is nothing its author may stop.
    ///
    /// # Errors
    /// The stop could not be stored; it may be retried.
    pub(super) async fn stop_by_word(&self, message: &Inbound) -> Result<bool, StoreError> {
        if !is_stop(message) {
            return Ok(false);
        }
        let mut open = self.services.store.open_questions(&message.key).await?;
        // The stop word may arrive late; questions asked after it are not meant.
        open.retain(|open| message.ts.is_empty() || open.ts <= message.ts);
        let under_way = under_way(self.dispatcher.working(&message.key), &open);
        let theirs = of_theirs(&self.services.people, &message.user, open);
        // Messages answered together are stopped together; if none is being answered, the next one is
        // stopped.
        let mut stopped: Vec<_> =
            theirs.iter().map(|open| open.inbox).filter(|inbox| under_way.contains(inbox)).collect();
        if stopped.is_empty() {
            stopped.extend(theirs.first().map(|open| open.inbox));
        }
        if stopped.is_empty() {
            return Ok(false);
        }
        if !self.services.people.may(&message.user, Action::Stop, Some(&message.reply_to.channel)).is_allowed() {
            return Ok(true);
        }
        let handler = self.clone();
        let word = message.clone();
        self.whole(async move {
            let (key, user, event_id) = (word.key.clone(), word.user.clone(), word.event_id.clone());
            let changed =
                handler.services.store.stop(&key, stopped, &user, Some(word), handler.services.now_ms()).await?;
            interrupt(&handler.dispatcher, &changed);
            let has_stopped = changed != Changed::Nothing;
            if has_stopped {
                handler.report(TurnReport::of_command(event_id, key, "stop"));
            }
            Ok(has_stopped)
        })
        .await
    }

    /// Reports a stop word as the command that it is. In a task of its own, because the front says first that the word
    /// was taken in, and waits for that meanwhile.
    fn report(&self, report: TurnReport) {
        let front = Arc::clone(&self.services.front);
        self.services.tasks.spawn(async move {
            if let Err(error) = front.report(&report.event_id, &report).await {
                tracing::debug!(%error, "a stop word was not reported");
            }
        });
    }

    /// As [`stop_by_word`](Handler::stop_by_word), for a message in a thread of a channel: only a stop word that is for
    /// the bot stops anything.
    ///
    /// # Errors
    /// The stop could not be stored, or it could not be determined whether it is for the bot.
    pub(super) async fn stop_by_word_in_thread(
        &self,
        ThreadMessage { message, manner }: &ThreadMessage,
    ) -> Result<bool, StoreError> {
        let is_for_us = match manner {
            Addressing::Mention { .. } => {
                if is_stop(message) {
                    // They have written in the thread, whatever they stop.
                    self.services.store.mentioned(&message.key, &message.user, &message.ts, false).await?;
                }
                true
            }
            Addressing::Plain { .. } if !manner.goes_on() || !is_stop(message) => false,
            Addressing::Plain { .. } => self.services.store.overheard(&message.key, &message.user, &message.ts).await?,
        };
        Ok(is_for_us && self.stop_by_word(message).await?)
    }

    /// Does what a reaction asks for; its author is allowed to. Harmless if repeated. Returns whether the reaction is
    /// about anything known.
    ///
    /// # Errors
    /// It could not be done; it may be retried.
    pub(super) async fn heed(&self, wish: ReactionCommand, reaction: &Reaction) -> Result<bool, StoreError> {
        let Reaction { event_id, user, message, .. } = reaction;
        match wish {
            ReactionCommand::Stop => self.stop_by_reaction(reaction).await,
            ReactionCommand::Again => {
                let unnamed = || format!("{}:{user}:{}", message.ts, self.services.now_ms());
                let name = event_id.clone().unwrap_or_else(unnamed);
                let outcome = self.again(user, message, RegenerateTrigger::Reaction(name)).await?;
                if let RegenerateOutcome::NotTheirs(place) = &outcome {
                    self.whisper(user.clone(), place.clone(), self.services.messages.not_theirs_again());
                }
                Ok(outcome != RegenerateOutcome::Nothing)
            }
        }
    }

    /// As [`stop_at`](Handler::stop_at); if the question has not arrived yet, the stop is stored.
    async fn stop_by_reaction(&self, Reaction { user, message, author, .. }: &Reaction) -> Result<bool, StoreError> {
        if self.stop_at(user, message).await? {
            return Ok(true);
        }
        let is_theirs = *author == ReactedAuthor::Themselves;
        if !is_theirs || self.services.store.stop_early(message, user, self.services.now_ms()).await? {
            return Ok(false);
        }
        // It has arrived meanwhile, or it was over before.
        self.stop_at(user, message).await
    }

    /// Stops the answer to the question that this message is, or of which it is the placeholder or what there is of the
    /// answer. Returns whether there is such a question.
    async fn stop_at(&self, actor: &str, message: &MessageRef) -> Result<bool, StoreError> {
        let Some((key, open)) = self.services.store.open_question(message).await? else { return Ok(false) };
        let waiting = self.services.store.open_questions(&key).await?;
        let meant = stopped_with(open, waiting, self.dispatcher.working(&key));
        let theirs = of_theirs(&self.services.people, actor, meant);
        let stopped: Vec<_> = theirs.into_iter().map(|open| open.inbox).collect();
        if stopped.is_empty() {
            return Ok(true);
        }
        let handler = self.clone();
        let actor = actor.to_owned();
        self.whole(async move {
            let changed = handler.services.store.stop(&key, stopped, &actor, None, handler.services.now_ms()).await?;
            interrupt(&handler.dispatcher, &changed);
            // One that was parked is in no queue.
            handler.dispatcher.look_at_once_told(&key);
            Ok(true)
        })
        .await
    }

    /// Asks a question again on behalf of its asker: the question that is this message, or that this message answers.
    /// Only the asker or an admin may do that.
    ///
    /// # Errors
    /// It could not be stored; it may be retried.
    pub(super) async fn again(
        &self,
        actor: &str,
        message: &MessageRef,
        by: RegenerateTrigger,
    ) -> Result<RegenerateOutcome, StoreError> {
        let is_admin = self.services.people.people().is_admin(actor);
        let (actor, message, handler) = (actor.to_owned(), message.clone(), self.clone());
        self.whole(async move {
            let now_ms = handler.services.now_ms();
            let taken = handler.services.store.again((&actor, is_admin), &message, by, now_ms).await?;
            if let RegenerateOutcome::Taken(pending) = &taken {
                handler.dispatcher.look_at(&pending.key).await?;
            }
            Ok(taken)
        })
        .await
    }
}

/// Returns which open questions of a conversation are being answered, by this host, which is `working` on some, or by
/// another. While another answers, what waits here for more messages to be answered with does not count.
fn under_way(working: Vec<InboxId>, open: &[Open]) -> Vec<InboxId> {
    let begun: Vec<_> = open.iter().filter(|open| open.has_begun).map(|open| open.inbox).collect();
    let is_elsewhere = !begun.is_empty() && !begun.iter().any(|begun| working.contains(begun));
    if working.is_empty() || is_elsewhere { begun } else { working }
}

/// Returns the questions that are stopped with this one: those that it is being answered with. A parked one is not
/// among those `waiting`; it is stopped alone, also while this host, which has just parked it, still counts it as
/// `working`.
fn stopped_with(open: Open, mut waiting: Vec<Open>, working: Vec<InboxId>) -> Vec<Open> {
    let is_parked = !waiting.iter().any(|waiting| waiting.inbox == open.inbox);
    let under_way = under_way(working, &waiting);
    if is_parked || !under_way.contains(&open.inbox) {
        return vec![open];
    }
    waiting.retain(|waiting| under_way.contains(&waiting.inbox));
    waiting
}

/// Restarts the running turn if a change affects it.
fn interrupt(dispatcher: &Dispatcher, changed: &Changed) {
    if let Changed::Here { key, anew: true } = changed {
        dispatcher.interrupt(key);
    }
}

/// Returns the questions that this person may stop; an admin may stop all.
fn of_theirs(people: &Permissions, actor: &str, open: Vec<Open>) -> Vec<Open> {
    let is_admin = people.people().is_admin(actor);
    open.into_iter().filter(|open| is_admin || open.user.as_deref() == Some(actor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::OpenTurn;

    #[test]
    fn reactions_that_ask_for_something_are_told_from_others() {
        for (reaction, wish) in [
            ("black_square_for_stop", Some(ReactionCommand::Stop)),
            ("octagonal_sign", Some(ReactionCommand::Stop)),
            (":stop_button:", Some(ReactionCommand::Stop)),
            ("⏹️", Some(ReactionCommand::Stop)),
            ("repeat", Some(ReactionCommand::Again)),
            ("arrows_counterclockwise", Some(ReactionCommand::Again)),
            ("🔁", Some(ReactionCommand::Again)),
            ("repeat_one", None),
            ("+1", None),
            ("", None),
        ] {
            assert_eq!(ReactionCommand::of_reaction(reaction), wish, "{reaction}");
        }
    }

    #[test]
    fn only_the_word_alone_stops() {
        let says = |text: &str| is_stop(&OpenTurn::asked("slack:dm:U1", "U1", text).inbound);
        assert!([" stop ", "Stop!", "STOP.", "/stop", "停", "停。"].into_iter().all(says));
        assert!(!["", "stop it", "don't stop", "停車場在哪裡？", "stop?"].into_iter().any(says));
    }

    #[test]
    fn a_stop_was_for_what_waits_here_for_more_and_not_for_what_another_host_answers() {
        let open = |inbox, has_begun| Open { inbox: InboxId(inbox), user: None, has_begun, ts: String::new() };
        let [first, second] = [InboxId(1), InboxId(2)];
        assert_eq!(
            under_way(vec![second], &[open(1, true), open(2, false)]),
            [first],
            "another host answers the first"
        );
        assert_eq!(under_way(vec![first], &[open(1, true), open(2, false)]), [first]);
        assert_eq!(under_way(vec![first, second], &[open(1, true), open(2, false)]), [first, second]);
        assert_eq!(under_way(vec![second], &[open(2, false)]), [second], "nobody answers anything yet");
        assert_eq!(under_way(vec![], &[open(1, true), open(2, false)]), [first]);
    }

    /// Regression: a stop of a question that was parked a moment before stopped nothing.
    #[test]
    fn a_stop_of_what_this_host_had_just_parked_stopped_nothing() {
        let open = |inbox| Open { inbox: InboxId(inbox), user: None, has_begun: true, ts: String::new() };
        let [first, second] = [InboxId(1), InboxId(2)];
        let stopped = |waiting: Vec<Open>, working| -> Vec<InboxId> {
            stopped_with(open(1), waiting, working).iter().map(|open| open.inbox).collect()
        };
        assert_eq!(stopped(vec![], vec![first]), [first], "it still counts as being worked on");
        assert_eq!(stopped(vec![open(2)], vec![second]), [first], "the next question is being answered");
        assert_eq!(stopped(vec![open(1), open(2)], vec![first, second]), [first, second], "they have one answer");
        assert_eq!(stopped(vec![open(1), open(2)], vec![second]), [first], "it waits");
    }
}
