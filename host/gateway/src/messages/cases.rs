//! Texts about cases.

use pmk_core::text::{self, collapse_whitespace};

use super::{Messages, code};
use crate::case::{Case, CaseId, CaseRefusal, MAX_TITLE_CHARS, Note, NoteKind};

/// The most characters of a note that are shown in a line, and the most notes of a kind that `show` lists.
const SHOWN_CHARS: usize = 300;
const SHOWN_NOTES: usize = 20;

impl Messages {
    /// The reply to opening a case, visible to the whole channel.
    pub fn case_opened(&self, case: &Case) -> String {
        self.text("case-opened", [("case", case.id.to_string().into()), ("title", title(case).into())])
    }

    /// The description of a case.
    pub fn case_shown(&self, case: &Case) -> String {
        let mut said = self.text(
            "case-shown",
            [
                ("case", case.id.to_string().into()),
                ("title", title(case).into()),
                ("since", day(case.opened_at_ms).into()),
                ("signed", if case.opened_by.is_some() { "yes" } else { "no" }.into()),
                ("by", case.opened_by.as_deref().map(|by| format!("`{by}`")).unwrap_or_default().into()),
                ("messages", case.messages.into()),
            ],
        );
        for kind in NoteKind::ALL {
            let all: Vec<&Note> = case.notes_of(kind).map(|kept| &kept.note).collect();
            let left_out = all.len().saturating_sub(SHOWN_NOTES);
            said.extend(all[left_out..].iter().map(|note| self.note(note)));
            if left_out > 0 {
                said.push_str(&format!("\n• {}", self.text("case-more", [("count", left_out.into())])));
            }
        }
        said
    }

    /// The reply to closing a case, visible to the whole channel.
    pub fn case_closed(&self, case: &Case) -> String {
        let count = |kind| case.notes_of(kind).count();
        self.text(
            "case-closed",
            [
                ("case", case.id.to_string().into()),
                ("title", title(case).into()),
                ("messages", case.messages.into()),
                ("hypotheses", count(NoteKind::Hypothesis).into()),
                ("questions", count(NoteKind::Question).into()),
            ],
        )
    }

    /// The cases of a channel, and the number of those that are not listed.
    pub fn cases_listed(&self, cases: &[Case], left_out: usize) -> String {
        if cases.is_empty() {
            return self.text("cases-none", []);
        }
        let mut said = self.text("cases", []);
        for case in cases {
            let state = if case.closed.is_none() { "open" } else { "closed" };
            let filled = [
                ("case", case.id.to_string().into()),
                ("state", state.into()),
                ("since", day(case.opened_at_ms).into()),
                ("title", title(case).into()),
            ];
            said.push_str(&format!("\n• {}", self.text("cases-line", filled)));
        }
        if left_out > 0 {
            said.push_str(&format!("\n• {}", self.text("case-more", [("count", left_out.into())])));
        }
        said
    }

    /// Why nothing was done.
    pub fn case_refused(&self, error: &CaseRefusal) -> String {
        match error {
            CaseRefusal::OpenAlready(case) => {
                self.text("case-open-already", [("case", case.id.to_string().into()), ("title", title(case).into())])
            }
            CaseRefusal::NoneOpen => self.text("case-none-open", []),
            CaseRefusal::NoTitle => self.text("case-no-title", []),
            CaseRefusal::TitleTooLong { chars } => {
                self.text("case-title-too-long", [("chars", (*chars).into()), ("most", MAX_TITLE_CHARS.into())])
            }
            CaseRefusal::NotAChannel => self.text("case-not-a-channel", []),
        }
    }

    /// The store could not be read or written.
    pub fn case_failed(&self) -> String {
        self.text("case-failed", [])
    }

    /// Follows an answer: what it has added to the case.
    pub fn case_tracked(&self, case: CaseId, notes: &[Note]) -> String {
        let mut said = self.text("case-tracked", [("case", case.to_string().into())]);
        said.extend(notes.iter().map(|note| self.note(note)));
        said
    }

    /// The model's answer consisted only of notes.
    pub fn case_noted_alone(&self) -> String {
        self.text("case-noted-alone", [])
    }

    /// A note as a bullet.
    fn note(&self, note: &Note) -> String {
        let id = match note.kind {
            NoteKind::Hypothesis => "case-hypothesis",
            NoteKind::Question => "case-question",
        };
        format!("\n• {}", self.text(id, [("text", short(&note.text).into())]))
    }
}

/// A title as it was written, without interpreting links or emphasis in it.
fn title(case: &Case) -> String {
    code(&case.title)
}

fn short(words: &str) -> String {
    text::shortened(&collapse_whitespace(words), SHOWN_CHARS).into_owned()
}

fn day(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms)
        .map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

#[cfg(test)]
pub(super) fn everything(messages: &Messages) -> Vec<String> {
    use crate::case::testing::case;

    let notes = [(NoteKind::Hypothesis, "h"), (NoteKind::Question, "q")];
    let (full, many) = (case("t", &notes), case("t", &[notes[0]; SHOWN_NOTES + 3]));
    let mut unsigned = full.clone();
    unsigned.opened_by = None;
    unsigned.closed = Some((0, None));
    let tracked: Vec<Note> = full.notes.iter().map(|kept| kept.note.clone()).collect();
    let errors = [
        CaseRefusal::OpenAlready(Box::new(full.clone())),
        CaseRefusal::NoneOpen,
        CaseRefusal::NoTitle,
        CaseRefusal::TitleTooLong { chars: 900 },
        CaseRefusal::NotAChannel,
    ];
    let mut said: Vec<String> = errors.iter().map(|error| messages.case_refused(error)).collect();
    said.extend([
        messages.case_failed(),
        messages.case_opened(&full),
        messages.case_shown(&full),
        messages.case_shown(&many),
        messages.case_shown(&unsigned),
        messages.case_closed(&full),
        messages.cases_listed(&[], 0),
        messages.cases_listed(&[full.clone(), unsigned], 3),
        messages.case_tracked(full.id, &tracked),
        messages.case_noted_alone(),
    ]);
    said
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    use crate::case::testing::case;

    #[test]
    fn the_tracked_line_has_a_bullet_for_each() {
        let notes = case("t", &[(NoteKind::Hypothesis, "快取過期"), (NoteKind::Question, "哪一版？")]).notes;
        let notes: Vec<Note> = notes.into_iter().map(|kept| kept.note).collect();
        let said = |language| Messages::new(language).case_tracked(CaseId(7), &notes);
        assert_eq!(
            said(Language::TraditionalChinese),
            ":pushpin: pmk auto-tracked（案件 7）\n• 假設：快取過期\n• 待查：哪一版？"
        );
        assert_eq!(
            said(Language::English),
            ":pushpin: pmk auto-tracked (case 7)\n• Hypothesis: 快取過期\n• Open question: 哪一版？"
        );
    }

    /// Regression: `*b*` was shown in italics, and a link as its text alone.
    #[test]
    fn a_title_is_shown_as_it_was_written() {
        let written = "*b* [see](https://x.example) `c`";
        let (case, messages) = (case(written, &[]), Messages::new(Language::English));
        let shown = [
            messages.case_opened(&case),
            messages.case_shown(&case),
            messages.case_closed(&case),
            messages.cases_listed(&[case], 0),
        ];
        for said in shown {
            assert!(said.contains("`*b* [see](https://x.example) 'c'`"), "{said}");
        }
    }

    #[test]
    fn of_many_notes_the_newest_are_shown() {
        let notes: Vec<String> = (0..SHOWN_NOTES + 5).map(|n| format!("note {n}.")).collect();
        let notes: Vec<(NoteKind, &str)> = notes.iter().map(|note| (NoteKind::Hypothesis, note.as_str())).collect();
        let said = Messages::new(Language::English).case_shown(&case("t", &notes));
        assert!(said.contains("note 24.") && said.contains("note 5.") && !said.contains("note 4."), "{said}");
        assert!(said.ends_with("and 5 more"), "{said}");
    }
}
