//! Tells a workspace that is locked from one place that is. An organization that holds its own keys can withdraw them, for
//! one channel or for everything; Slack then refuses each message with the same code, until the keys are back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::limiter::{Lane, OPENS_DIRECT};

/// The code of a message that is refused because of its keys.
pub(super) const LOCKED: &str = "ekm_access_denied";

/// Calls that say something, and whose lanes name no channel.
const UNPLACED: [&str; 3] = ["chat.update", "chat.startStream", "chat.appendStream"];

/// So many places are refused only if all are.
const ALL: usize = 2;

/// The places that were refused since a message was last accepted.
#[derive(Debug, Default)]
pub(super) struct Locked(Mutex<Vec<String>>);

impl Locked {
    /// Notes that a call is refused with [that code](LOCKED). Returns whether Slack refuses such calls everywhere, as far
    /// as that is known. Of a direct message that is assumed: there is no other place where its person could be told.
    pub(super) fn refuses(&self, lane: &Lane) -> bool {
        let place = place(lane);
        let is_direct = place.as_ref().is_some_and(|place| place.starts_with('D'));
        let mut places = self.places();
        if let Some(place) = place
            && places.len() < ALL
            && !places.contains(&place)
        {
            places.push(place);
        }
        is_direct || places.len() >= ALL
    }

    /// Notes that a call was accepted.
    pub(super) fn accepts(&self, lane: &Lane) {
        match (&lane.channel, lane.method) {
            (Some(_), _) => self.places().clear(),
            (None, method) if UNPLACED.contains(&method) => self.places().clear(),
            (None, OPENS_DIRECT) => self.places().retain(|place| place != OPENS_DIRECT),
            (None, _) => {}
        }
    }

    fn places(&self) -> MutexGuard<'_, Vec<String>> {
        // Every entry is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns where a call posts, or would have led to. A person's id is another name of their direct message.
fn place(Lane { method, channel }: &Lane) -> Option<String> {
    let channel = channel.clone().filter(|channel| !channel.starts_with(['U', 'W']));
    channel.or_else(|| (*method == OPENS_DIRECT).then(|| OPENS_DIRECT.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: whoever asked in a direct message while no other place was in use was never told anything.
    #[test]
    fn a_direct_message_that_was_locked_was_one_place_among_others() {
        let direct = Lane { method: "chat.postMessage", channel: Some("D1".to_owned()) };
        assert!(Locked::default().refuses(&direct));
    }

    /// Regression: only messages showed that Slack accepts them again.
    #[test]
    fn edits_and_streams_that_were_accepted_left_a_workspace_locked() {
        for method in ["chat.update", "chat.startStream", "chat.appendStream"] {
            let posts = |channel: &str| Lane { method: "chat.postMessage", channel: Some(channel.to_owned()) };
            let locked = Locked::default();
            assert!(!locked.refuses(&posts("C1")) && locked.refuses(&posts("C2")));
            locked.accepts(&Lane::of("chat.delete"));
            assert!(locked.refuses(&posts("C1")), "nothing was said");
            locked.accepts(&Lane::of(method));
            assert!(!locked.refuses(&posts("C1")), "{method}");
        }
    }

    #[test]
    fn two_places_that_are_locked_are_all_until_one_is_not() {
        let lane = |channel: Option<&str>| Lane { method: "chat.postMessage", channel: channel.map(str::to_owned) };
        let locked = Locked::default();
        for one in [None, Some("C1"), Some("C1"), Some("U1"), None] {
            assert!(!locked.refuses(&lane(one)), "{one:?}");
        }
        assert!(locked.refuses(&lane(Some("D1"))) && locked.refuses(&lane(Some("C1"))) && locked.refuses(&lane(None)));
        locked.accepts(&lane(None));
        assert!(locked.refuses(&lane(None)), "a call that posts nothing");
        locked.accepts(&lane(Some("C2")));
        assert!(!locked.refuses(&lane(None)) && !locked.refuses(&lane(Some("C1"))));
        let opens = Lane::of(OPENS_DIRECT);
        assert!(locked.refuses(&opens));
        locked.accepts(&opens);
        assert!(!locked.refuses(&lane(Some("C1"))));
    }
}
