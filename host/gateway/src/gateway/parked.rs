//! Who is told of a message that is set aside: the person who wrote it, in a direct message where its place does not take that,
//! and the admins.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    chat::{Inbound, MessageBody, ReplyTo},
    front::{Delivery, FrontError},
    services::Services,
    store::Parked,
};

/// For so long the admins are not told once more of the same trouble: `sessions parked` lists every message.
const ONCE_IN: Duration = Duration::from_secs(60 * 60);

/// So many different troubles are remembered.
const MAX_TROUBLES: usize = 64;

/// When the admins were told of which trouble.
#[derive(Debug, Default)]
pub(super) struct Told(Mutex<HashMap<String, Instant>>);

impl Told {
    /// Whether they are to be told of it now. Nobody else tells them until that is [taken back](Told::in_vain).
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

    /// It has reached none of them.
    fn in_vain(&self, why: &str) {
        self.lock().remove(&kind(why));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        // Every entry is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same trouble has other numbers in it each time: of messages, of minutes.
fn kind(why: &str) -> String {
    let mut kind: String = why.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    while kind.contains("##") {
        kind = kind.replace("##", "#");
    }
    kind
}

/// Tells the admins, then the person, in the placeholder's place or by a message of its own; not a person who has the
/// answer. False where nobody has said that the person cannot be told, and it was not done.
pub(super) async fn tell(services: &Services, known: &Told, parked: &Parked) -> bool {
    let admins_know = tell_admins(services, known, parked).await;
    let Some(message) = &parked.message else {
        // Nobody can tell who wrote it.
        return true;
    };
    if let Err(error) = services.front.clear(&message.event_id).await {
        tracing::warn!(session = parked.key, %error, "cannot remove the part of an answer that was shown");
    }
    services.front.over(&message.event_id).await;
    if parked.answered {
        return true;
    }
    if !services.people.may_hear(&message.user) {
        return true;
    }
    let speech = MessageBody { text: services.messages.parked(admins_know), pings: vec![] };
    let notice =
        Delivery { event_ids: &parked.event_ids, ..Delivery::notice(&message.event_id, &message.reply_to, &speech) };
    let replacing = Delivery { replaces: parked.placeholder.as_deref(), ..notice.clone() };
    let told = match services.front.deliver(replacing).await {
        Err(FrontError::Refused { .. }) if parked.placeholder.is_some() => services.front.deliver(notice).await,
        told => told,
    };
    match told {
        Ok(_) => true,
        Err(FrontError::Refused { what, .. }) => {
            // Nothing takes its place any more.
            if let Some(placeholder) = &parked.placeholder
                && let Err(error) = services.front.withdraw(&message.reply_to, placeholder).await
            {
                tracing::warn!(%error, "cannot remove a placeholder");
            }
            tracing::warn!(
                session = parked.key,
                what,
                "the person is told by a direct message that the message is parked: its place does not accept the notice"
            );
            in_person(services, parked, message, &speech).await
        }
        Err(error) => not_yet(parked, &error),
    }
}

/// Tells the person where the place of the message does not take it.
async fn in_person(services: &Services, parked: &Parked, message: &Inbound, told: &MessageBody) -> bool {
    let sent = async {
        let channel = services.front.direct(&message.user).await?;
        if channel == message.reply_to.channel {
            let what = "it was written in direct messages".to_owned();
            return Err(FrontError::Refused { what, may_pass: false });
        }
        let reply_to = ReplyTo { channel, thread_ts: None };
        let text = services.messages.in_person(&message.text) + &told.text;
        let speech = MessageBody { text, pings: vec![] };
        services.front.deliver(Delivery::notice(&message.event_id, &reply_to, &speech)).await
    };
    match sent.await {
        Ok(_) => true,
        Err(FrontError::Refused { what, .. }) => {
            tracing::error!(session = parked.key, what, "cannot tell the person that the message is parked");
            true
        }
        Err(error) => not_yet(parked, &error),
    }
}

/// The next sweep tries again.
fn not_yet(parked: &Parked, error: &FrontError) -> bool {
    tracing::warn!(session = parked.key, %error, "the person has not been told yet that the message is parked");
    false
}

/// Whether any of them knows of the trouble, by now or since less than an hour.
async fn tell_admins(services: &Services, known: &Told, parked: &Parked) -> bool {
    if !services.admins.are_any() {
        return false;
    }
    if !known.is_news(&parked.why, Instant::now()) {
        return true;
    }
    let text = match parked.answered {
        true => services.messages.rest_parked_for_admins(&parked.key, &parked.why),
        false => services.messages.parked_for_admins(&parked.key, &parked.why),
    };
    let told = services.admins.reach(&text).await;
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
