//! Telling people that the gateway goes, or is back: in every direct message that was active in the day before, and in
//! every channel with an open case.
//!
//! One person gets at most one such message an hour. What there is to say within that hour takes the place of the last
//! one: an edit rings nobody's phone, and what stands there is true. After an outage that is too short to be told, only
//! that it goes is taken back.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use pmk_core::FrontName;

use super::Ports;
use crate::{
    chat::{MessageBody, ReplyTo},
    front::{Delivery, FrontError},
    store::{DmUser, StoreError, Telling},
};

/// So long ago somebody may have talked with the gateway to be told.
const ACTIVE_FOR_MS: i64 = 24 * 60 * 60 * 1_000;

/// How long somebody is left in peace after a message.
const PEACE_MS: i64 = 60 * 60 * 1_000;

/// So many are told at once.
const AT_ONCE: usize = 8;

/// Whom it concerns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circle {
    /// Who has been active since,
    pub active_since_ms: i64,
    /// and had talked with the gateway before: to others it is no news.
    pub known_by_ms: i64,
}

impl Circle {
    /// Whoever was active in the day before the gateway went, and is known by the time it is back.
    pub fn before(went_ms: i64, back_ms: i64) -> Circle {
        Circle { active_since_ms: went_ms.saturating_sub(ACTIVE_FOR_MS), known_by_ms: back_ms }
    }
}

/// Somebody who is told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    /// A person, or a channel.
    id: String,
    /// Where they are told, as far as that is known. Slack takes a person's id for their direct message, but edits
    /// nothing there.
    channel: Option<String>,
}

/// Tells everybody whom it concerns. One whom it does not reach keeps it from nobody else. Whether nobody is
/// left who may be reached later.
pub(super) async fn tell(ports: &Ports, text: &str, circle: Circle) -> bool {
    let Some(listeners) = listeners(ports, circle).await else { return false };
    let speech = MessageBody { text: text.to_owned(), pings: vec![] };
    let told = stream::iter(listeners).map(|listener| tell_one(ports, listener, &speech)).buffer_unordered(AT_ONCE);
    told.all(|told| async move { told }).await
}

/// Puts this in the place of what they were told when the gateway went, and tells nobody anew. Whether nobody is left where
/// that may work later.
pub(super) async fn correct(ports: &Ports, text: &str, went_ms: i64, circle: Circle) -> bool {
    let Some(listeners) = listeners(ports, circle).await else { return false };
    let speech = MessageBody { text: text.to_owned(), pings: vec![] };
    // That may have taken the place of what they were told before, within the hour.
    let told_since = went_ms.saturating_sub(PEACE_MS);
    let corrected =
        stream::iter(listeners).map(async |listener| match ports.store.last_told(&listener.id, told_since).await {
            Ok(Some(last)) => replace(ports, &listener, &last, &speech).await,
            Ok(None) => true,
            Err(error) => {
                tracing::warn!(to = listener.id, %error, "cannot find out what somebody was told last");
                false
            }
        });
    corrected.buffer_unordered(AT_ONCE).fold(true, async |all, one| all && one).await
}

async fn listeners(ports: &Ports, circle: Circle) -> Option<Vec<Listener>> {
    match find_listeners(ports, circle).await {
        Ok(listeners) => Some(listeners),
        Err(error) => {
            tracing::warn!(%error, "cannot find out whom to tell that the gateway is away or back");
            None
        }
    }
}

/// Who they are. People who are blocked are told nothing.
async fn find_listeners(
    ports: &Ports,
    Circle { active_since_ms, known_by_ms }: Circle,
) -> Result<Vec<Listener>, StoreError> {
    let mut people: BTreeMap<String, Option<String>> = BTreeMap::new();
    let talks = ports.store.talking_since(FrontName::Slack, active_since_ms, known_by_ms).await?;
    for DmUser { user, channel } in talks {
        let known = people.entry(user).or_default();
        *known = known.take().or(channel);
    }
    people.retain(|user, _| ports.people.may_hear(user));
    let people = people.into_iter().map(|(id, channel)| Listener { id, channel });
    let cases = ports.store.channels_with_open_case(FrontName::Slack).await?;
    let channels = cases.into_iter().map(|channel| Listener { channel: Some(channel.clone()), id: channel });
    Ok(people.chain(channels).collect())
}

/// False where it may work later.
async fn tell_one(ports: &Ports, listener: Listener, speech: &MessageBody) -> bool {
    // Claimed before it is said: a kill in between costs them one word, and never brings them two.
    let now_ms = ports.clock.now_ms();
    let told = match ports.store.claim_telling(&listener.id, now_ms, PEACE_MS).await {
        Ok(Telling::New) => post(ports, &listener, speech).await,
        Ok(Telling::InPlaceOf(last)) => {
            let _ = replace(ports, &listener, &last, speech).await;
            return true;
        }
        Ok(Telling::Not) => return true,
        // What was claimed before stands.
        Err(error) => {
            not_told(&listener, &error);
            return true;
        }
    };
    match told {
        Ok(message) => {
            if let Err(error) = ports.store.told(&listener.id, message).await {
                tracing::debug!(%error, "a broadcast will not be edited");
            }
            true
        }
        Err(error) => {
            not_told(&listener, &error);
            // Nobody knows whether one without an answer has arrived: it counts as said.
            let is_put_off = matches!(error, FrontError::Transient { retry_after: Some(_), .. });
            let was_not_said = is_put_off || !matches!(error, FrontError::Transient { .. });
            if was_not_said && let Err(error) = ports.store.untold(&listener.id).await {
                tracing::debug!(%error, "somebody who was not told counts as told");
            }
            !is_put_off
        }
    }
}

fn not_told(listener: &Listener, error: &dyn std::fmt::Display) {
    tracing::warn!(to = listener.id, %error, "cannot tell somebody that the gateway is away or back");
}

async fn post(ports: &Ports, listener: &Listener, speech: &MessageBody) -> Result<Option<String>, FrontError> {
    let channel = listener.channel.clone().unwrap_or_else(|| listener.id.clone());
    ports.front.deliver(Delivery::notice("", &ReplyTo { channel, thread_ts: None }, speech)).await
}

/// Takes the place of what was said last. False where it may work later.
async fn replace(ports: &Ports, listener: &Listener, last: &str, speech: &MessageBody) -> bool {
    let Some(channel) = listener.channel.clone() else { return true };
    let reply_to = ReplyTo { channel, thread_ts: None };
    let replacing = Delivery { replaces: Some(last), ..Delivery::notice("", &reply_to, speech) };
    let Err(error) = ports.front.deliver(replacing).await else { return true };
    tracing::warn!(to = listener.id, %error, "cannot replace a notice that the gateway is away or back");
    !matches!(error, FrontError::Transient { .. })
}
