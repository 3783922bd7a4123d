//! Tells people that the gateway goes away, or is back: in every direct message that was active in the day before, and
//! in every channel with an open case.
//!
//! One person gets at most one such message an hour. Further news within that hour replaces the last message: an edit
//! notifies nobody, and the message stays true. After an outage too short to be announced, only the message that the
//! gateway goes away is replaced.

use std::collections::BTreeMap;

use futures_util::{StreamExt, stream};
use pmk_core::FrontName;

use super::Ports;
use crate::{
    chat::{MessageBody, ReplyTo},
    front::{Delivery, FrontError},
    store::{DmUser, StoreError, Telling},
};

/// People who talked with the gateway within this time are told.
const ACTIVE_FOR_MS: i64 = 24 * 60 * 60 * 1_000;

/// The least time between two messages to the same person.
const PEACE_MS: i64 = 60 * 60 * 1_000;

/// How many people are told concurrently.
const AT_ONCE: usize = 8;

/// The people to tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circle {
    /// Only people active since then,
    pub active_since_ms: i64,
    /// who also talked with the gateway before this time: to others it is no news.
    pub known_by_ms: i64,
}

impl Circle {
    /// Returns the people who were active in the day before the gateway went away, and are known by
    /// the time it is back.
    pub fn before(went_ms: i64, back_ms: i64) -> Circle {
        Circle { active_since_ms: went_ms.saturating_sub(ACTIVE_FOR_MS), known_by_ms: back_ms }
    }
}

/// A person or channel to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    /// The id of a person or channel.
    id: String,
    /// Where they are told, if known. Slack accepts a person's id for posting to their direct message, but not for
    /// edits.
    channel: Option<String>,
}

/// Tells everybody concerned. Returns whether nobody is left who may be reached later.
pub(super) async fn tell(ports: &Ports, text: &str, circle: Circle) -> bool {
    let Some(listeners) = listeners(ports, circle).await else { return false };
    let speech = MessageBody { text: text.to_owned(), pings: vec![] };
    let told = stream::iter(listeners).map(|listener| tell_one(ports, listener, &speech)).buffer_unordered(AT_ONCE);
    told.fold(true, async |all, one| all && one).await
}

/// Replaces what people were told when the gateway went away, and posts no new messages. Returns whether nobody is left
/// for whom that may work later.
pub(super) async fn correct(ports: &Ports, text: &str, went_ms: i64, circle: Circle) -> bool {
    let Some(listeners) = listeners(ports, circle).await else { return false };
    let speech = MessageBody { text: text.to_owned(), pings: vec![] };
    // That message may have replaced an earlier one within the hour.
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

/// Returns the people and channels to tell, without blocked people.
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

/// Returns false if it may work later.
async fn tell_one(ports: &Ports, listener: Listener, speech: &MessageBody) -> bool {
    // Claimed before it is sent: a kill in between costs the person one message, and never leads to
    // two.
    let now_ms = ports.clock.now_ms();
    let told = match ports.store.claim_telling(&listener.id, now_ms, PEACE_MS).await {
        Ok(Telling::New) => post(ports, &listener, speech).await,
        // To edit it again does no harm: that notifies nobody.
        Ok(Telling::InPlaceOf(last)) => return replace(ports, &listener, &last, speech).await,
        Ok(Telling::Not) => return true,
        Err(error) => {
            not_told(&listener, &error);
            return false;
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
            // A message without a response may have arrived, so it counts as sent.
            let may_be_said = matches!(error, FrontError::Transient { not_made: false, .. });
            if !may_be_said && let Err(error) = ports.store.untold(&listener.id).await {
                tracing::debug!(%error, "somebody who was not told counts as told");
            }
            may_be_said || !may_pass(ports, &error)
        }
    }
}

/// Returns whether the same may work later.
fn may_pass(ports: &Ports, error: &FrontError) -> bool {
    matches!(error, FrontError::Transient { .. }) || ports.is_muted()
}

fn not_told(listener: &Listener, error: &dyn std::fmt::Display) {
    tracing::warn!(to = listener.id, %error, "cannot tell somebody that the gateway is away or back");
}

async fn post(ports: &Ports, listener: &Listener, speech: &MessageBody) -> Result<Option<String>, FrontError> {
    let channel = listener.channel.clone().unwrap_or_else(|| listener.id.clone());
    ports.front.deliver(Delivery::notice("", &ReplyTo { channel, thread_ts: None }, speech)).await
}

/// Replaces the last message. Returns false if it may work later.
async fn replace(ports: &Ports, listener: &Listener, last: &str, speech: &MessageBody) -> bool {
    let Some(channel) = listener.channel.clone() else { return true };
    let reply_to = ReplyTo { channel, thread_ts: None };
    let replacing = Delivery { replaces: Some(last), ..Delivery::notice("", &reply_to, speech) };
    let Err(error) = ports.front.deliver(replacing).await else { return true };
    tracing::warn!(to = listener.id, %error, "cannot replace a notice that the gateway is away or back");
    !may_pass(ports, &error)
}
