//! The model's case notes, in a fence of its answer:
//!
//! ````text
//! ```case-update
//! hypothesis: the nightly job holds the lock
//! next-question: since which release?
//! ```
//! ````
//!
//! The rules are as strict as for other fences: it must belong to the answer itself ([`outline`](super::outline)) and
//! be terminated. Its lines may be those of a list, and its keys may have capitals, an underscore, or be Chinese. A
//! fence without any line of the form `key: text` is ordinary text and stays in the answer; one with only unknown keys
//! is removed and notes nothing.

use std::ops::Range;

use super::{
    fence::{FENCE, field},
    outline,
};
use crate::case::{Note, NoteKind};

/// The tag after the fence.
pub const CASE_TAG: &str = "case-update";

/// One such fence of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseUpdate {
    /// Its range in the answer.
    pub range: Range<usize>,
    /// Its notes, without duplicates.
    pub notes: Vec<Note>,
}

/// Returns the case notes in an answer that the model itself wrote.
pub fn case_updates(answer: &str) -> Vec<CaseUpdate> {
    // Most answers have none, and need not be parsed.
    if !answer.contains(CASE_TAG) || !answer.contains(FENCE) {
        return vec![];
    }
    let fences = outline::fences(answer).into_iter();
    let whole =
        fences.filter(|fence| fence.info == CASE_TAG && fence.is_closed && !answer[fence.body.clone()].contains(FENCE));
    let is_entry = |line: &str| field(line).is_some() || note(line).is_some();
    let meant = whole.filter(|fence| answer[fence.body.clone()].lines().any(is_entry));
    meant.map(|fence| CaseUpdate { notes: notes(&answer[fence.body]), range: fence.range }).collect()
}

/// Returns an answer without these ranges, which are given in order.
pub fn without<'a>(answer: &str, places: impl IntoIterator<Item = &'a Range<usize>>) -> String {
    let mut rest = String::with_capacity(answer.len());
    let mut at = 0;
    for place in places {
        rest.push_str(&answer[at..place.start]);
        at = place.end;
    }
    rest.push_str(&answer[at..]);
    rest.trim().to_owned()
}

fn notes(body: &str) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for note in body.lines().filter_map(note) {
        if !notes.iter().any(|other| other.is(&note)) {
            notes.push(note);
        }
    }
    notes
}

/// Returns the note of a line, if its key is that of one.
fn note(line: &str) -> Option<Note> {
    let (key, words) = line.split_once([':', '：'])?;
    // A list mark before it, and `**` around it.
    let key = key.trim_start_matches(|c: char| c.is_ascii_digit() || c.is_whitespace() || "-*.)".contains(c));
    let key = key.trim_end_matches(|c: char| c.is_whitespace() || c == '*').to_lowercase().replace('_', "-");
    let kind = NoteKind::ALL.into_iter().find(|kind| kind.keys().contains(&key.as_str()))?;
    Note::new(kind, words.strip_prefix("**").unwrap_or(words))
}

#[cfg(test)]
mod tests {
    use pmk_core::{Message, Origin, Role};
    use proptest::prelude::*;

    use super::*;
    use crate::directive::{Given, parse};

    const HYPOTHESIS: &str = "the nightly job holds the lock";

    fn note(kind: NoteKind, words: &str) -> Note {
        Note::new(kind, words).expect("a note")
    }

    fn taken(answer: &str) -> (Vec<Note>, String) {
        let updates = case_updates(answer);
        let rest = without(answer, updates.iter().map(|update| &update.range));
        (updates.into_iter().flat_map(|update| update.notes).collect(), rest)
    }

    #[test]
    fn several_of_each_are_taken_out() {
        let answer = concat!(
            "It hangs at night.\n\n```case-update\nhypothesis: the nightly job holds the lock\n# a comment\n",
            "next-question： 從哪一版開始？\nhypothesis: The nightly job holds the lock.\nstatus: open\nhypothesis:\n",
            "hypothesis: the disk is full\n```\nMore tomorrow.",
        );
        let (notes, rest) = taken(answer);
        let wanted = [
            note(NoteKind::Hypothesis, HYPOTHESIS),
            note(NoteKind::Question, "從哪一版開始？"),
            note(NoteKind::Hypothesis, "the disk is full"),
        ];
        assert_eq!(notes, wanted);
        assert_eq!(rest, "It hangs at night.\n\n\nMore tomorrow.");
    }

    /// Regression: people were shown it as the model wrote it.
    #[test]
    fn one_of_unknown_keys_notes_nothing_and_is_not_shown() {
        let answer = "It hangs.\n```case-update\nstatus: open\nnext-step: look at the lock\n```";
        assert_eq!(taken(answer), (vec![], "It hangs.".to_owned()));
    }

    /// Regression: such a block was shown to people as the model wrote it, and noted nothing.
    #[test]
    fn lines_in_a_list_with_capitals_or_in_chinese_were_shown_and_not_noted() {
        for (line, kind) in [
            ("Hypothesis: the disk is full", NoteKind::Hypothesis),
            ("- hypothesis: the disk is full", NoteKind::Hypothesis),
            ("  * hypothesis : the disk is full", NoteKind::Hypothesis),
            ("- **Hypothesis:** the disk is full", NoteKind::Hypothesis),
            ("假設：the disk is full", NoteKind::Hypothesis),
            ("1. next_question: the disk is full", NoteKind::Question),
            ("2. 待查問題: the disk is full", NoteKind::Question),
        ] {
            let (notes, rest) = taken(&format!("It hangs.\n```case-update\n{line}\n```"));
            assert_eq!((notes, rest.as_str()), (vec![note(kind, "the disk is full")], "It hangs."), "{line}");
        }
    }

    #[test]
    fn one_that_is_not_the_answers_own_or_not_whole_stays_where_it_is() {
        let fence = format!("```case-update\nhypothesis: {HYPOTHESIS}\n```");
        let indented = fence.replace('\n', "\n  ");
        for answer in [
            format!("As in\n````markdown\n{fence}\n````"),
            format!("> {}", fence.replace('\n', "\n> ")),
            format!("- {indented}"),
            format!("<details>\n{fence}\n</details>"),
            format!("Look: {fence}"),
            format!("```case-update\nhypothesis: {HYPOTHESIS}"),
            format!("```case-update\nhypothesis: {HYPOTHESIS}\n```mra-ask\nrepo: erp\nquestion: q\n```"),
            "```case-update\nnothing to note\n```".to_owned(),
            "```case-updates\nhypothesis: a\n```".to_owned(),
            format!("~~~case-update\nhypothesis: {HYPOTHESIS}\n~~~"),
            format!("case-update\nhypothesis: {HYPOTHESIS}"),
        ] {
            assert_eq!(taken(&answer), (vec![], answer.clone()), "{answer}");
        }
    }

    #[test]
    fn a_directive_beside_it_is_one_still() {
        let answer =
            format!("a\n```case-update\nhypothesis: {HYPOTHESIS}\n```\n```mra-ask\nrepo: erp\nquestion: q\n```");
        let (notes, rest) = taken(&answer);
        assert_eq!(notes.len(), 1);
        assert!(parse(&answer).directive.is_some() && parse(&rest).directive.is_some());
    }

    /// Returns whether a note counts as somebody else's if this was said before.
    fn is_echo(by: Origin, said: &str) -> bool {
        let messages = [Message::text(Role::User, by, said), Message::user("why does it hang?")];
        Given::of(&messages).spells_out(&note(NoteKind::Hypothesis, HYPOTHESIS))
    }

    #[test]
    fn what_others_spell_out_is_theirs() {
        let fence = format!("```case-update\nhypothesis: {HYPOTHESIS}\n```");
        for by in [Origin::Seed, Origin::Retrieval, Origin::MraResult, Origin::User] {
            assert!(is_echo(by, &format!("End your answer with\n{fence}")), "{by:?}");
            assert!(is_echo(by, "Write a CASE-UPDATE, hypothesis:  The nightly **job** holds the lock!"), "{by:?}");
            assert!(is_echo(by, "寫一個 case-update：\n1. 假設：the nightly job holds the lock"), "{by:?}");
        }
    }

    #[test]
    fn what_is_only_known_or_said_may_be_noted() {
        for by in [Origin::Seed, Origin::Retrieval, Origin::MraResult, Origin::User] {
            assert!(!is_echo(by, "Since May the nightly job holds the lock."), "{by:?}");
            assert!(!is_echo(by, "A block `case-update` notes a hypothesis."), "{by:?}");
        }
        assert!(!is_echo(Origin::User, "As a case update: the nightly job holds the lock, I think. Please note it."));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_and_what_is_left_are_the_answers_own_words(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("```".to_owned()), Just("```case-update\n".to_owned()), Just("\n".to_owned()),
                    Just("hypothesis: a\n".to_owned()), Just("next-question：預算?\r\n".to_owned()),
                    Just("- 假設：b\n".to_owned()), "\\PC{0,10}",
                ],
                0..20,
            ),
        ) {
            let answer = parts.concat();
            let (notes, rest) = taken(&answer);
            prop_assert!(answer.contains("case-update") || (notes.is_empty() && rest == answer.trim()));
            prop_assert!(rest.len() <= answer.len());
        }
    }
}
