//! Tells people of a parked message: its author, by direct message if its conversation refuses the notice, and the
//! admins.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    chat::{Inbound, MessageBody, ReplyTo},
    front::{Delivery, Front, FrontError, Lookup},
    messages::Messages,
    operator::admins::Admins,
    services::Services,
    store::{Parked, Withdrawal},
    turn::placeholder,
};

/// For this long the admins are not told again of the same problem: `sessions parked` lists every message.
const ONCE_IN: Duration = Duration::from_secs(60 * 60);

/// The most different problems that are remembered.
const MAX_TROUBLES: usize = 64;

/// When the admins were told of which problem.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<HashMap<String, Instant>>);

impl Told {
    /// Returns whether the admins are to be told of it now. Nobody else tells them unless that is
    /// [revoked](Told::in_vain).
    fn is_news(&self, why: &str, now: Instant) -> bool {
        let mut told = self.lock();
        told.retain(|_, at| now.duration_since(*at) < ONCE_IN);
        let kind = kind(why);
        if told.contains_key(&kind) {
            return false;
        }
        if told.len() >= MAX_TROUBLES
            && let Some(oldest) = told.iter().min_by_key(|(_, at)| **at).map(|(kind, _)| kind.clone())
        {
            told.remove(&oldest);
        }
        told.insert(kind, now);
        true
    }

    /// Notes that no admin was reached.
    fn in_vain(&self, why: &str) {
        self.lock().remove(&kind(why));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        // Every entry is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the reason without its numbers (of messages, of minutes), which differ each time for the
/// same problem.
fn kind(why: &str) -> String {
    let mut kind: String = why.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    while kind.contains("##") {
        kind = kind.replace("##", "#");
    }
    kind
}

/// Tells the admins, then the person, by replacing the placeholder or by a separate message; not a person who has the
/// answer. Returns false if the person was not told and may still be told later.
pub(super) async fn tell(services: &Services, known: &Told, parked: &Parked) -> bool {
    let admins_know = tell_admins(&services.admins, &services.messages, known, parked).await;
    let Some(message) = &parked.message else {
        // The author is unknown.
        return true;
    };
    // Another run may have shown it, or another host.
    if let Some(id) = &parked.streamed
        && let Err(error) = services.front.was_streamed(message, id).await
    {
        return not_yet(parked, &error);
    }
    let mut left = None;
    for event_id in [&message.event_id].into_iter().chain(&parked.event_ids) {
        left = services.front.clear(event_id).await.err().or(left);
        services.front.over(event_id).await;
    }
    // The part of an answer that was shown is not removed any more once the person is told.
    if let Some(error) = left {
        return not_yet(parked, &error);
    }
    let withdrawals = match services.store.unsent_withdrawals(parked.inbox).await {
        Ok(withdrawals) => withdrawals,
        Err(error) => return not_yet(parked, &error),
    };
    if let Err(error) = take_away(&*services.front, parked, message, withdrawals).await {
        return not_yet(parked, &error);
    }
    if parked.answered {
        return true;
    }
    if !services.people.may_hear(&message.user) {
        return true;
    }
    match services.store.parked_question(parked.inbox).await {
        Ok(Some(_)) => {}
        // Another host has taken it up meanwhile: the notice must not replace its answer.
        Ok(None) => return false,
        Err(error) => return not_yet(parked, &error),
    }
    let speech = MessageBody { text: services.messages.parked(admins_know), pings: vec![] };
    let notice = Delivery { event_ids: &parked.event_ids, ..notice(parked, message, &message.reply_to, &speech) };
    let told = match &parked.placeholder {
        Some(placeholder) => replace(&*services.front, parked, notice, placeholder).await,
        None => post(&*services.front, parked, notice).await,
    };
    match told {
        Ok(()) => true,
        Err(FrontError::Refused { what, .. }) => in_person(services, parked, message, &speech, what).await,
        Err(error) => not_yet(parked, &error),
    }
}

fn notice<'a>(parked: &Parked, message: &'a Inbound, reply_to: &'a ReplyTo, speech: &'a MessageBody) -> Delivery<'a> {
    Delivery { parked_at_ms: Some(parked.at_ms), ..Delivery::notice(&message.event_id, reply_to, speech) }
}

/// Shows the notice in place of the placeholder, or posts it if that is refused.
async fn replace(
    front: &dyn Front,
    parked: &Parked,
    notice: Delivery<'_>,
    placeholder: &str,
) -> Result<(), FrontError> {
    let replacing = Delivery { replaces: Some(placeholder), ..notice.clone() };
    match front.deliver(replacing).await {
        Err(FrontError::Refused { .. }) => {
            // Nothing replaces it any more. Removed before anything is posted, because the next attempt may not come here.
            placeholder::withdraw(front, notice.reply_to, placeholder).await?;
            post(front, parked, notice).await
        }
        told => told.map(drop),
    }
}

/// Posts the notice, unless an earlier attempt has posted it. A place that can never be read gets it from each attempt
/// whose outcome is unknown: better told twice than not at all.
async fn post(front: &dyn Front, parked: &Parked, notice: Delivery<'_>) -> Result<(), FrontError> {
    if parked.maybe_told && matches!(front.find(&notice, &parked.ts, false).await?, Lookup::Yes(_)) {
        return Ok(());
    }
    front.deliver(notice).await.map(drop)
}

/// Removes placeholders that neither an answer nor the notice replaces.
async fn take_away(
    front: &dyn Front,
    parked: &Parked,
    Inbound { reply_to, .. }: &Inbound,
    withdrawals: Vec<Withdrawal>,
) -> Result<(), FrontError> {
    let mut shown = parked.placeholder.clone().filter(|_| parked.answered).into_iter().collect::<Vec<_>>();
    for withdrawal in withdrawals {
        let found = placeholder::withdrawn(front, reply_to, &withdrawal).await?;
        shown.extend(found.filter(|found| !shown.contains(found)));
    }
    for placeholder in shown {
        placeholder::withdraw(front, reply_to, &placeholder).await?;
    }
    Ok(())
}

/// Tells the person by direct message, since the message's conversation refuses the notice.
async fn in_person(services: &Services, parked: &Parked, message: &Inbound, told: &MessageBody, what: String) -> bool {
    let sent = match services.front.direct_instead_of(&message.reply_to, &message.user).await {
        Ok(Some(reply_to)) => {
            tracing::warn!(
                session = parked.key,
                what,
                "the person is told by a direct message that the message is parked: its place does not accept the notice"
            );
            let text = services.messages.notice_in_person(&message.text) + &told.text;
            let speech = MessageBody { text, pings: vec![] };
            post(&*services.front, parked, notice(parked, message, &reply_to, &speech)).await
        }
        Ok(None) => Err(FrontError::Refused { what, may_pass: false }),
        Err(error) => Err(error),
    };
    match sent {
        Ok(()) => true,
        Err(FrontError::Refused { what, .. }) => {
            tracing::error!(session = parked.key, what, "cannot tell the person that the message is parked");
            true
        }
        Err(error) => not_yet(parked, &error),
    }
}

/// The next sweep tries again.
fn not_yet(parked: &Parked, error: &dyn Error) -> bool {
    tracing::warn!(session = parked.key, %error, "the person has not been told yet that the message is parked");
    false
}

/// Returns whether any admin knows of the problem, now or since less than an hour ago.
async fn tell_admins(admins: &Admins, messages: &Messages, known: &Told, parked: &Parked) -> bool {
    if !admins.are_any() {
        return false;
    }
    if !known.is_news(&parked.why, Instant::now()) {
        return true;
    }
    let text = match parked.answered {
        true => messages.rest_parked_for_admins(&parked.key, &parked.why),
        false => messages.parked_for_admins(&parked.key, &parked.why),
    };
    let told = admins.reach(&text).await;
    if !told {
        known.in_vain(&parked.why);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admins_are_told_once_an_hour_of_the_same_trouble() {
        let (told, now) = (Told::default(), Instant::now());
        assert!(told.is_news("the store is damaged", now));
        assert!(!told.is_news("the store is damaged", now + ONCE_IN / 2));
        assert!(told.is_news("the program panicked", now + ONCE_IN / 2));
        assert!(told.is_news("the store is damaged", now + ONCE_IN));
    }

    #[test]
    fn a_trouble_with_other_numbers_is_the_same_and_one_that_reached_nobody_is_news() {
        let (told, now) = (Told::default(), Instant::now());
        assert!(told.is_news("question 17 cannot be read", now));
        assert!(!told.is_news("question 1234 cannot be read", now));
        told.in_vain("question 1234 cannot be read");
        assert!(told.is_news("question 5 cannot be read", now));
    }

    #[test]
    fn many_troubles_do_not_hide_a_new_one() {
        let (told, now) = (Told::default(), Instant::now());
        for n in 0..=MAX_TROUBLES {
            let at = now + Duration::from_millis(n as u64);
            assert!(told.is_news(&"x".repeat(n + 1), at), "trouble {n}");
        }
    }
}
