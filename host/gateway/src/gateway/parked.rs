//! Who is told of a message that is set aside: the person who wrote it, and the admins.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{
    front::{Delivery, FrontError, Speech},
    gateway::Gateway,
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
    /// Whether they are to be told of it now.
    fn is_news(&self, why: &str, now: Instant) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now.duration_since(*at) < ONCE_IN);
        if told.contains_key(why) || told.len() >= MAX_TROUBLES {
            return false;
        }
        told.insert(why.to_owned(), now);
        true
    }
}

/// Tells the person in the placeholder's place, or by a message of its own. False where that may go better later.
pub(super) async fn tell(gateway: &Gateway, parked: &Parked) -> bool {
    if gateway.told.is_news(&parked.why, Instant::now()) {
        gateway.tell_admins(gateway.say.parked_for_admins(&parked.key, &parked.why));
    }
    let Some(message) = &parked.message else {
        // Nobody can tell who wrote it.
        return true;
    };
    let speech = Speech { text: gateway.say.parked(), pings: vec![] };
    let notice = Delivery::notice(&message.event_id, &message.reply_to, &speech);
    let replacing = Delivery { replaces: parked.placeholder.as_deref(), ..notice.clone() };
    let told = match gateway.front.deliver(replacing).await {
        Err(FrontError::Refused { .. }) if parked.placeholder.is_some() => gateway.front.deliver(notice).await,
        told => told,
    };
    match told {
        Ok(_) => true,
        Err(FrontError::Transient { what, .. }) => {
            tracing::warn!(session = parked.key, what, "the person does not know yet that the message is parked");
            false
        }
        Err(error) => {
            tracing::error!(session = parked.key, %error, "the person cannot be told that the message is parked");
            true
        }
    }
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
}
