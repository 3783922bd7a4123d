//! What people change about messages they have sent: edits and deletions; the word or reaction that stops an answer;
//! the reaction that has a question asked again.

use std::{future::Future, sync::Arc};

use crate::{
    access::authorization::Action,
    chat::{Accepted, Addressing, Change, Edit, Inbound, ReactedAuthor, Reaction, ThreadMessage, says_stop},
    dispatch::{Arrival, Dispatcher},
    ids::InboxId,
    ledger::report::TurnReport,
    services::Services,
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

/// Stores a change of a message. When this returns, the change survives a crash.
///
/// # Errors
/// The change could not be stored; it may be retried.
pub(super) async fn take(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    change: Change,
) -> Result<(), StoreError> {
    let (services, dispatcher, tasks) = (Arc::clone(services), Arc::clone(dispatcher), services.tasks.clone());
    whole(&tasks, async move {
        let now_ms = services.now_ms();
        let mut changed = match &change {
            Change::Edited(edit) => services.store.edit(edit, now_ms).await?,
            Change::Deleted(deletion) => {
                let words = (services.config.slack_settings.follow_deletes).then(|| services.messages.erased());
                services.store.delete(deletion, words, now_ms).await?
            }
        };
        // The message was not for the gateway before the edit, and no other event brings it, so it becomes known by the
        // edit. Or it has arrived a moment later, and is edited then.
        if let (Changed::Unknown, Change::Edited(edit)) = (&changed, &change)
            && edit.comes_alone
            && take_in(&services, &dispatcher, edit).await?.is_some()
        {
            changed = services.store.edit(edit, now_ms).await?;
        }
        match changed {
            Changed::Here { ref key, .. } => {
                interrupt(&dispatcher, &changed);
                dispatcher.look_at(key).await
            }
            Changed::Unknown | Changed::Nothing => Ok(()),
        }
    })
    .await
}

/// Takes in the message that results from an edit.
async fn take_in(
    services: &Services,
    dispatcher: &Arc<Dispatcher>,
    edit: &Edit,
) -> Result<Option<Accepted>, StoreError> {
    let message = edit.message.clone();
    match edit.manner.clone() {
        // A person who mentions the bot by an edit is followed like anybody else.
        Some(manner) if services.people.may_hear(&message.user) => {
            dispatcher.hear(ThreadMessage { message, manner }, Arrival::Fresh).await
        }
        _ => dispatcher.take_in(message, Arrival::Fresh).await.map(Some),
    }
}

/// Stops what is being answered if the message is a stop word. Returns false if it is to be treated as an ordinary
/// message, because there is nothing its author may stop.
///
/// # Errors
/// The stop could not be stored; it may be retried.
pub(super) async fn stop_by_word(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    message: &Inbound,
) -> Result<bool, StoreError> {
    if !is_stop(message) {
        return Ok(false);
    }
    let mut open = services.store.open_questions(&message.key).await?;
    // The stop word may arrive late; questions asked after it are not meant.
    open.retain(|open| message.ts.is_empty() || open.ts <= message.ts);
    let under_way = under_way(dispatcher.working(&message.key), &open);
    let theirs = of_theirs(services, &message.user, open);
    // Messages answered together are stopped together; if none is being answered, the next one is
    // stopped.
    let mut stopped: Vec<_> = theirs.iter().map(|open| open.inbox).filter(|inbox| under_way.contains(inbox)).collect();
    if stopped.is_empty() {
        stopped.extend(theirs.first().map(|open| open.inbox));
    }
    if stopped.is_empty() {
        return Ok(false);
    }
    if !services.people.may(&message.user, Action::Stop, Some(&message.reply_to.channel)).is_allowed() {
        return Ok(true);
    }
    let (services, dispatcher, tasks) = (Arc::clone(services), Arc::clone(dispatcher), services.tasks.clone());
    let word = message.clone();
    whole(&tasks, async move {
        let (key, user, event_id) = (word.key.clone(), word.user.clone(), word.event_id.clone());
        let changed = services.store.stop(&key, stopped, &user, Some(word), services.now_ms()).await?;
        interrupt(&dispatcher, &changed);
        let has_stopped = changed != Changed::Nothing;
        if has_stopped {
            report(&services, TurnReport::of_command(event_id, key, "stop"));
        }
        Ok(has_stopped)
    })
    .await
}

/// Reports a stop word as the command that it is. In a task of its own, because the front says first that the word was
/// taken in, and waits for that meanwhile.
fn report(services: &Arc<Services>, report: TurnReport) {
    let (reporting, tasks) = (Arc::clone(services), &services.tasks);
    tasks.spawn(async move {
        if let Err(error) = reporting.front.report(&report.event_id, &report).await {
            tracing::debug!(%error, "a stop word was not reported");
        }
    });
}

/// As [`stop_by_word`], for a message in a thread of a channel: only a stop word that is for the bot stops anything.
///
/// # Errors
/// The stop could not be stored, or it could not be determined whether it is for the bot.
pub(super) async fn stop_by_word_in_thread(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    ThreadMessage { message, manner }: &ThreadMessage,
) -> Result<bool, StoreError> {
    let is_for_us = match manner {
        Addressing::Mention { .. } => {
            if is_stop(message) {
                // They have written in the thread, whatever they stop.
                services.store.mentioned(&message.key, &message.user, &message.ts, false).await?;
            }
            true
        }
        Addressing::Plain { .. } if !manner.goes_on() || !is_stop(message) => false,
        Addressing::Plain { .. } => services.store.overheard(&message.key, &message.user, &message.ts).await?,
    };
    Ok(is_for_us && stop_by_word(services, dispatcher, message).await?)
}

/// Does what a reaction asks for; its author is allowed to. Harmless if repeated. Returns whether the reaction is about
/// anything known.
///
/// # Errors
/// It could not be done; it may be retried.
pub(super) async fn react(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    wish: ReactionCommand,
    reaction: &Reaction,
) -> Result<bool, StoreError> {
    let Reaction { event_id, user, channel, ts, .. } = reaction;
    match wish {
        ReactionCommand::Stop => stop_by_reaction(services, dispatcher, reaction).await,
        ReactionCommand::Again => {
            let name = event_id.clone().unwrap_or_else(|| format!("{ts}:{user}:{}", services.now_ms()));
            Ok(again(services, dispatcher, user, (channel, ts), RegenerateTrigger::Reaction(name)).await?
                != RegenerateOutcome::Nothing)
        }
    }
}

/// As [`stop_at`]; if the question has not arrived yet, the stop is stored.
async fn stop_by_reaction(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    Reaction { user, channel, ts, author, .. }: &Reaction,
) -> Result<bool, StoreError> {
    if stop_at(services, dispatcher, user, (channel, ts)).await? {
        return Ok(true);
    }
    let is_theirs = *author == ReactedAuthor::Themselves;
    if !is_theirs || services.store.stop_early((channel, ts), user, services.now_ms()).await? {
        return Ok(false);
    }
    // It has arrived meanwhile, or it was over before.
    stop_at(services, dispatcher, user, (channel, ts)).await
}

/// Stops the answer to the question that this message is, or of which it is the placeholder. Returns
/// whether there is such a question.
async fn stop_at(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    actor: &str,
    (channel, ts): (&str, &str),
) -> Result<bool, StoreError> {
    let Some((key, open)) = services.store.open_question(channel, ts).await? else { return Ok(false) };
    let mut all = services.store.open_questions(&key).await?;
    let under_way = under_way(dispatcher.working(&key), &all);
    if under_way.contains(&open.inbox) {
        all.retain(|open| under_way.contains(&open.inbox));
    } else {
        all = vec![open];
    }
    let stopped: Vec<_> = of_theirs(services, actor, all).into_iter().map(|open| open.inbox).collect();
    if stopped.is_empty() {
        return Ok(true);
    }
    let (services, dispatcher, tasks) = (Arc::clone(services), Arc::clone(dispatcher), services.tasks.clone());
    let actor = actor.to_owned();
    whole(&tasks, async move {
        let changed = services.store.stop(&key, stopped, &actor, None, services.now_ms()).await?;
        interrupt(&dispatcher, &changed);
        Ok(true)
    })
    .await
}

/// Asks a question again on behalf of its asker: the question that is this message, or that this message answers. Only
/// the asker or an admin may do that.
///
/// # Errors
/// It could not be stored; it may be retried.
pub(super) async fn again(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    actor: &str,
    (channel, ts): (&str, &str),
    by: RegenerateTrigger,
) -> Result<RegenerateOutcome, StoreError> {
    let is_admin = services.people.people().is_admin(actor);
    let [actor, channel, ts] = [actor, channel, ts].map(str::to_owned);
    let (services, dispatcher, tasks) = (Arc::clone(services), Arc::clone(dispatcher), services.tasks.clone());
    whole(&tasks, async move {
        let taken = services.store.again((&actor, is_admin), (&channel, &ts), by, services.now_ms()).await?;
        if let RegenerateOutcome::Taken(pending) = &taken {
            dispatcher.look_at(&pending.key).await?;
        }
        Ok(taken)
    })
    .await
}

/// Returns which open questions of a conversation are being answered, by this host, which is `working` on some, or by
/// another. While another answers, what waits here for more messages to be answered with does not count.
fn under_way(working: Vec<InboxId>, open: &[Open]) -> Vec<InboxId> {
    let begun: Vec<_> = open.iter().filter(|open| open.has_begun).map(|open| open.inbox).collect();
    let is_elsewhere = !begun.is_empty() && !begun.iter().any(|begun| working.contains(begun));
    if working.is_empty() || is_elsewhere { begun } else { working }
}

/// Restarts the running turn if a change affects it.
fn interrupt(dispatcher: &Dispatcher, changed: &Changed) {
    if let Changed::Here { key, anew: true } = changed {
        dispatcher.interrupt(key);
    }
}

/// Returns the questions that this person may stop; an admin may stop all.
fn of_theirs(services: &Services, actor: &str, open: Vec<Open>) -> Vec<Open> {
    let is_admin = services.people.people().is_admin(actor);
    open.into_iter().filter(|open| is_admin || open.user.as_deref() == Some(actor)).collect()
}

/// Runs `doing` to its end even if the caller stops waiting, because what is stored must be acted
/// on.
pub(super) async fn whole<T: Send + 'static>(
    tasks: &tokio_util::task::TaskTracker,
    doing: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    tasks.spawn(doing).await.unwrap_or(Err(StoreError::Closed))
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
}
