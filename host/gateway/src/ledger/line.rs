//! An event as one line of JSON.

use jiff::Timestamp;
use serde::Serialize;

use super::{Event, Month, Tags};

/// An event, and the policies whose decisions it is about. It gets its time from the write that it is stored with.
#[derive(Clone, Debug)]
pub struct TaggedEvent {
    pub event: Event,
    pub tags: Tags,
}

impl From<Event> for TaggedEvent {
    /// Returns an event that belongs to no turn.
    fn from(event: Event) -> Self {
        TaggedEvent { event, tags: Tags::default() }
    }
}

/// The series of ledger files, by name prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Series {
    #[default]
    Events,
    /// The files of a dry run, which are not counted.
    DryRun,
}

impl Series {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Series::Events => "events",
            Series::DryRun => "dryrun-events",
        }
    }
}

/// An event, rendered for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it was written, milliseconds since the epoch.
    pub at_ms: i64,
    /// The name of the file that it belongs in: that of its month in UTC.
    pub file: String,
    /// JSON, with the line end.
    pub text: String,
}

#[derive(Serialize)]
struct Document<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
    #[serde(flatten)]
    tags: &'a Tags,
}

impl Line {
    /// Renders an event that is written now.
    pub fn new(series: Series, TaggedEvent { event, tags }: &TaggedEvent, now_ms: i64) -> Line {
        let at = Timestamp::from_millisecond(now_ms).unwrap_or_default();
        let document = Document { at: format!("{at:.3}"), event, tags };
        let mut text = serde_json::to_string(&document).expect("an event has string keys only");
        text.push('\n');
        Line { at_ms: now_ms, file: Month::of(at).file(series), text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::InExperiment;

    #[test]
    fn an_event_of_a_turn_says_whose_decisions_it_went_by() {
        let place = InExperiment { experiment: "less".into(), arm: "b".into() };
        let tags = Tags { policy_sha256: Some("abc".into()), place: Some(place) };
        let (actor, session) = ("U1".into(), "slack:dm:U1".into());
        let event = Event::SignalReaction { actor, session, likes: true, replaces: false };
        let line = Line::new(Series::Events, &TaggedEvent { event, tags }, 0);
        let line: serde_json::Value = serde_json::from_str(&line.text).expect("one line of JSON");
        assert_eq!(
            (&line["experiment"], &line["arm"], &line["policySha256"]),
            (&"less".into(), &"b".into(), &"abc".into())
        );
    }

    #[test]
    fn events_are_whole_lines_in_pmks_words_and_belong_to_the_month_they_are_written_in() {
        let event = Event::ContextForcePruned { actor: "U1".into(), dropped_pairs: 6, tokens_after: 4_200 };
        let at: Timestamp = "2026-05-31T23:59:59.999Z".parse().expect("a time");
        let line = Line::new(Series::Events, &event.clone().into(), at.as_millisecond());
        assert_eq!(line.file, "events-2026-05.log");
        assert_eq!(
            line.text,
            "{\"at\":\"2026-05-31T23:59:59.999Z\",\"type\":\"context.force-pruned\",\"actor\":\"U1\",\
             \"droppedPairs\":6,\"tokensAfter\":4200}\n"
        );
        let next = Line::new(Series::DryRun, &event.into(), at.as_millisecond() + 1);
        assert_eq!(next.file, "dryrun-events-2026-06.log");
    }
}
