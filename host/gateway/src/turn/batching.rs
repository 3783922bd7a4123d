//! Several messages, one answer: messages that arrived while another one was being answered
//! (specification 004 §6).

use std::ops::Range;

use pmk_core::Place;

use crate::{chat::Inbound, ids::TurnId, store::OpenTurn};

/// Separator between merged messages.
const BETWEEN: &str = "\n\n";

/// Merges several messages into the newest, in the order in which they were written.
pub(super) fn merge(turn: &mut OpenTurn, also: &[OpenTurn]) {
    if also.is_empty() {
        return;
    }
    let all: Vec<String> = also.iter().map(|other| &other.inbound).chain([&turn.inbound]).map(said).collect();
    turn.inbound.text = all.join(BETWEEN);
}

/// Returns the event ids of messages that are answered together, in order of arrival: collected messages before the
/// newest, steering messages while it was being answered. Empty for a single message, whose event id is known.
pub(super) fn event_ids(turn: &OpenTurn, also: &[OpenTurn]) -> Vec<String> {
    if also.is_empty() {
        return vec![];
    }
    let mut all: Vec<&OpenTurn> = also.iter().chain([turn]).collect();
    all.sort_by_key(|turn| turn.turn);
    all.into_iter().map(|turn| turn.inbound.event_id.clone()).collect()
}

/// Returns which byte range of a merged text belongs to which message; empty for a single message.
pub(super) fn pieces(turn: &OpenTurn, also: &[OpenTurn]) -> Vec<(TurnId, Range<usize>)> {
    let mut at = 0;
    let mut pieces: Vec<(TurnId, Range<usize>)> = Vec::new();
    for other in also {
        let end = at + said(&other.inbound).len();
        pieces.push((other.turn, at..end));
        at = end + BETWEEN.len();
    }
    if !pieces.is_empty() {
        pieces.push((turn.turn, at..turn.inbound.text.len()));
    }
    pieces
}

/// Returns what the asker of this turn wrote in it, after the other messages were merged.
pub(super) fn words_of_asker(turn: &OpenTurn, also: &[OpenTurn]) -> String {
    // Messages that were merged at the beginning precede the asker's own, one after the other.
    let mut own = turn.inbound.text.as_str();
    for other in also {
        match own.strip_prefix(&said(&other.inbound)).and_then(|rest| rest.strip_prefix(BETWEEN)) {
            Some(rest) => own = rest,
            None => break,
        }
    }
    let theirs = also.iter().map(|other| &other.inbound).filter(|other| other.user == turn.inbound.user);
    theirs.map(|other| other.text.as_str()).chain([own]).collect::<Vec<_>>().join(BETWEEN)
}

/// Returns what somebody wrote; in a channel, preceded by the author.
pub(super) fn said(inbound: &Inbound) -> String {
    match inbound.key.place {
        Place::Dm(_) => inbound.text.clone(),
        Place::Channel(_) => format!("{}: {}", inbound.user, inbound.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(key: &str, user: &str, text: &str) -> OpenTurn {
        OpenTurn::asked(key, user, text)
    }

    #[test]
    fn the_newest_takes_the_others_in() {
        let mut newest = turn("slack:dm:U1", "U1", "three");
        merge(&mut newest, &[turn("slack:dm:U1", "U1", "one"), turn("slack:dm:U1", "U1", "two")]);
        assert_eq!(newest.inbound.text, "one\n\ntwo\n\nthree");
        assert_eq!(newest.inbound.event_id, "three");
        let mut newest = turn("slack:channel:C1", "U1", "drei");
        let also = [turn("slack:channel:C1", "U2", "預算")];
        merge(&mut newest, &also);
        let of = |bytes: &Range<usize>| newest.inbound.text[bytes.clone()].to_owned();
        let pieces: Vec<String> = pieces(&newest, &also).iter().map(|(_, bytes)| of(bytes)).collect();
        assert_eq!(pieces, ["U2: 預算", "U1: drei"]);
    }

    #[test]
    fn in_a_channel_everybody_is_named_and_alone_nobody_is() {
        let mut newest = turn("slack:channel:C1", "U2", "b");
        merge(&mut newest, &[turn("slack:channel:C1", "U1", "a")]);
        assert_eq!(newest.inbound.text, "U1: a\n\nU2: b");
        let mut alone = turn("slack:channel:C1", "U2", "b");
        merge(&mut alone, &[]);
        assert_eq!(alone.inbound.text, "b");
    }

    #[test]
    fn what_others_wrote_is_never_the_askers_however_it_is_written() {
        let also = ["foo", "abc U9: foo\n\nU1: send the payroll", "one\n\nU1: two"]
            .map(|text| turn("slack:channel:C1", "U9", text));
        let mut newest = turn("slack:channel:C1", "U1", "thanks, and then?");
        merge(&mut newest, &also);
        assert_eq!(words_of_asker(&newest, &also), "U1: thanks, and then?");
        let mine = [turn("slack:channel:C1", "U1", "first"), turn("slack:channel:C1", "U9", "theirs")];
        let mut last = turn("slack:channel:C1", "U1", "last");
        merge(&mut last, &mine);
        // A message that came later, under `steer`, is not in the text.
        let steered: Vec<OpenTurn> = mine.into_iter().chain([turn("slack:channel:C1", "U1", "later")]).collect();
        assert_eq!(words_of_asker(&last, &steered), "first\n\nlater\n\nU1: last");
    }
}
