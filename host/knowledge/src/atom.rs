//! An atom: one answer that a person gave, as a Markdown file with YAML front matter (specification 003 §9).
//!
//! People read and edit these files, and pmk reads them as well. So everything in a file that is not known here,
//! further keys and further sections, is preserved when it is rewritten (comments inside the front matter are not).

use pmk_core::text::collapse_whitespace;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use yaml_serde::{Mapping, Value};

use super::naming::{atom_id, safe_scope};

/// How long an atom is pending before it counts as approved (specification 003 §10), in milliseconds.
pub(crate) const PENDING_MS: i64 = 24 * 60 * 60 * 1_000;

/// The maximum number of tags of an atom.
pub(crate) const MAX_TAGS: usize = 8;

/// The maximum number of alternative phrasings of an atom.
pub(crate) const MAX_ASKED_AS: usize = 5;

/// The maximum length of the question that the curator is asked for, in characters.
pub(crate) const MAX_QUESTION_CHARS: usize = 120;

/// Whether the atom takes part in retrieval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Waits for a verdict; not found by retrieval.
    Pending,
    /// Found by retrieval. The default for a file without a status, because older versions wrote none.
    #[default]
    Approved,
}

/// Where an answer came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// `CHANNEL:THREAD_TS` of the thread that the answer was given in.
    #[serde(default)]
    pub thread_key: String,
    /// The person who gave it; only this person's reaction counts.
    #[serde(default)]
    pub contributor_user_id: String,
}

/// The message that asks for a verdict by reaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The channel it was posted in.
    pub channel_id: String,
    /// Its Slack timestamp, which is its id in the channel.
    pub message_ts: String,
}

/// The front matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The minute, four hexadecimal digits and part of the question; also the file's name. Never empty.
    pub id: String,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    /// The repository or subject; also the folder's name.
    #[serde(default)]
    pub scope: String,
    /// The question that is answered, on one line. Never empty.
    pub question: String,
    /// Search terms. In a hand-written file a single word may be given without a list.
    #[serde(default, deserialize_with = "lenient_tags")]
    pub tags: Vec<String>,
    /// Alternative phrasings of the question, searched together with it. Atoms of older versions have none.
    #[serde(
        rename = "asked-as",
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient_phrasings"
    )]
    pub asked_as: Vec<String>,
    /// Thread and contributor; empty where a person wrote the file.
    #[serde(default)]
    pub source: Source,
    /// Whether it is retrieved.
    #[serde(default)]
    pub status: Status,
    /// When a pending atom counts as approved, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<i64>,
    /// The notice posted for it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<Notice>,
    /// The facts in a few sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Whether it reads like instructions to a model: then it is never approved by time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flagged: bool,
    /// Why it is flagged, as told to the contributor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag_reason: Option<String>,
    /// Keys that are not known here.
    #[serde(flatten)]
    pub(crate) other: Mapping,
}

/// One atom.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// The front matter.
    pub meta: Meta,
    /// The text after the front matter, unchanged.
    pub body: String,
}

/// The parts of a new atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAtom<'a> {
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    /// The repository or subject; any text, converted to a safe name.
    pub scope: &'a str,
    /// Converted to one line.
    pub question: &'a str,
    /// May be empty.
    pub summary: &'a str,
    /// Used unchanged.
    pub tags: Vec<String>,
    /// Alternative phrasings of the question.
    pub asked_as: Vec<String>,
    /// The reply, verbatim.
    pub answer: &'a str,
    /// Thread and contributor.
    pub source: Source,
    /// Why it is flagged, if it is.
    pub suspicion: Option<String>,
}

/// Why a text is not an atom.
#[derive(Debug, Error)]
pub enum AtomError {
    /// The first line is not `---`.
    #[error("there is no front matter: the first line must be `---`")]
    NoFrontMatter,
    /// There is no second `---`.
    #[error("the front matter does not end: a second line `---` is missing")]
    Unterminated,
    /// The front matter is not YAML, lacks a key, or cannot be written as YAML.
    #[error("the front matter is not valid: {0}")]
    Yaml(#[from] yaml_serde::Error),
    /// This key must not be empty, and is.
    #[error("`{0}` is empty")]
    Empty(&'static str),
}

impl Atom {
    /// Creates a pending atom.
    pub fn pending(new: NewAtom<'_>) -> Self {
        let NewAtom { created_at_ms, scope, question, summary, tags, asked_as, answer, source, suspicion } = new;
        let question = collapse_whitespace(question);
        let origin = [source.thread_key.as_str(), source.contributor_user_id.as_str(), answer];
        let meta = Meta {
            id: atom_id(created_at_ms, &origin, &question),
            created_at: created_at_ms,
            scope: safe_scope(scope),
            tags,
            asked_as,
            source,
            status: Status::Pending,
            expires_at: suspicion.is_none().then(|| created_at_ms.saturating_add(PENDING_MS)),
            approval: None,
            summary: (!summary.trim().is_empty()).then(|| summary.trim().to_owned()),
            flagged: suspicion.is_some(),
            flag_reason: suspicion,
            other: Mapping::new(),
            question,
        };
        let body = format!("# {}\n\n## Answer\n\n{answer}\n\n## Summary\n\n{}\n", meta.question, summary.trim());
        Atom { meta, body }
    }

    /// Parses a file's text. A byte order mark and carriage returns at line ends are accepted.
    ///
    /// # Errors
    /// [`AtomError`] says what is missing or invalid.
    pub fn parse(text: &str) -> Result<Self, AtomError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (yaml, body) = split(text)?;
        let meta: Meta = yaml_serde::from_str(yaml)?;
        for (name, value) in [("id", &meta.id), ("question", &meta.question)] {
            if value.trim().is_empty() {
                return Err(AtomError::Empty(name));
            }
        }
        Ok(Atom { meta, body: body.trim_start_matches(['\r', '\n']).to_owned() })
    }

    /// Formats the atom as a file's text.
    ///
    /// # Errors
    /// If an unknown value in the front matter cannot be written as YAML.
    pub fn render(&self) -> Result<String, AtomError> {
        Ok(format!("---\n{}---\n\n{}", yaml_serde::to_string(&self.meta)?, self.body))
    }

    /// The reply, verbatim: the text between the first `## Answer` and the last `## Summary`, or the whole body without
    /// its title if a person has structured the file differently.
    pub fn answer(&self) -> &str {
        let body = self.body.as_str();
        let Some((_, start)) = headings(body, "## Answer").next() else {
            let untitled =
                if body.starts_with("# ") { body.split_once('\n').map_or("", |(_, rest)| rest) } else { body };
            return untitled.trim();
        };
        let end = headings(body, "## Summary").map(|(at, _)| at).filter(|&at| at >= start).last();
        body[start..end.unwrap_or(body.len())].trim()
    }

    /// The summary; empty if there is none.
    pub fn summary(&self) -> &str {
        self.meta.summary.as_deref().unwrap_or_default()
    }

    /// Approves the atom, so that retrieval finds it.
    pub fn approve(&mut self) {
        self.meta.status = Status::Approved;
        self.meta.expires_at = None;
    }

    /// When a pending atom counts as approved, in milliseconds since 1970; `None` if it is approved already, or if a
    /// person must approve it: it is flagged, or was approved before and somebody has set it back, as approval removes
    /// the time.
    pub fn due_at_ms(&self) -> Option<i64> {
        self.meta.expires_at.filter(|_| self.meta.status == Status::Pending && !self.meta.flagged)
    }

    /// Whether it is pending and its time for a verdict has passed.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        self.due_at_ms().is_some_and(|at| at <= now_ms)
    }
}

/// Splits a file into front matter and body, by the rules of gray-matter.
fn split(text: &str) -> Result<(&str, &str), AtomError> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err(AtomError::NoFrontMatter);
    }
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((&text[first.len()..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    Err(AtomError::Unterminated)
}

/// Start and end of every line that is this heading.
fn headings<'a>(body: &'a str, heading: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut at = 0;
    body.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        (line.trim_end() == heading).then_some((start, at))
    })
}

/// Accepts tags as people write them: one word instead of a list, a year instead of a string.
fn lenient_tags<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    lenient_list(deserializer, "`tags` must be a list of words")
}

/// The same for questions.
fn lenient_phrasings<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    lenient_list(deserializer, "`asked-as` must be a list of questions")
}

fn lenient_list<'de, D: serde::Deserializer<'de>>(deserializer: D, wanted: &str) -> Result<Vec<String>, D::Error> {
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(serde::de::Error::custom(wanted)),
    };
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(Vec::new()),
        Value::Sequence(list) => list.into_iter().map(text).collect(),
        one => Ok(vec![text(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An atom as pmk writes it.
    const SAMPLE: &str = "---
id: 2026-04-28T0213-5388-如何查詢本月各部門廣告預算分配比例
createdAt: 1777342416133
scope: erp
question: 如何查詢本月各部門廣告預算分配比例?
tags: [廣告預算, 部門分配, sales_performances, 2026]
source:
  threadKey: 'D0B0E9UV52M:1777342320.134509'
  contributorUserId: U0AVBM41F6Z
status: pending
expiresAt: 1777428816133
approval:
  channelId: D0B0E9UV52M
  messageTs: '1777342420.000100'
summary: '截至 2026-04-28,本月各部門廣告預算分配比例為...'
reviewedBy: {name: Lin, at: 2026-04-29}
---

# 如何查詢本月各部門廣告預算分配比例?

## Answer

先看後台。
## Summary
是回覆裡的一行。

## Summary

截至 2026-04-28

## 補充

自己加的一節
";

    #[test]
    fn a_file_of_pmk_is_read() {
        let atom = Atom::parse(SAMPLE).unwrap();
        assert_eq!(atom.meta.created_at, 1_777_342_416_133);
        assert_eq!(atom.meta.tags, ["廣告預算", "部門分配", "sales_performances", "2026"]);
        assert_eq!(atom.meta.source.contributor_user_id, "U0AVBM41F6Z");
        assert_eq!(atom.meta.status, Status::Pending);
        assert_eq!(atom.meta.approval.as_ref().unwrap().message_ts, "1777342420.000100");
        assert_eq!(atom.answer(), "先看後台。\n## Summary\n是回覆裡的一行。");
    }

    #[test]
    fn what_others_put_into_a_file_survives() {
        let mut atom = Atom::parse(SAMPLE).unwrap();
        atom.approve();
        let text = atom.render().unwrap();
        assert!(text.contains("reviewedBy:\n  name: Lin") && text.contains("自己加的一節"), "{text}");
        assert!(text.contains("status: approved") && !text.contains("expiresAt"), "{text}");
        assert_eq!(Atom::parse(&text).unwrap(), atom);
    }

    #[test]
    fn a_string_that_looks_like_a_number_stays_a_string() {
        let text = Atom::parse(SAMPLE).unwrap().render().unwrap();
        assert!(text.contains("messageTs: '1777342420.000100'"), "{text}");
    }

    #[test]
    fn what_is_flagged_is_never_due_and_says_why() {
        let new = |suspicion: Option<&str>| NewAtom {
            created_at_ms: 1,
            scope: "erp",
            question: "q",
            summary: "s",
            tags: vec![],
            asked_as: vec![],
            answer: "a",
            source: Source::default(),
            suspicion: suspicion.map(str::to_owned),
        };
        let flagged = Atom::pending(new(Some("it gives orders")));
        let file = flagged.render().unwrap();
        assert!(file.contains("flagged: true\nflagReason: it gives orders\n") && !file.contains("expiresAt"), "{file}");
        let mut read = Atom::parse(&file).unwrap();
        assert!(!read.is_due(i64::MAX) && read.due_at_ms().is_none());
        read.approve();
        assert_eq!((read.meta.status, read.meta.flagged), (Status::Approved, true));
        let ordinary = Atom::pending(new(None));
        assert!(ordinary.is_due(i64::MAX) && !ordinary.render().unwrap().contains("flag"));
    }

    /// Regression: its day had passed since it was created, so it was approved again at once.
    #[test]
    fn what_was_approved_and_is_set_back_by_hand_waits_for_a_person() {
        let mut atom = Atom::parse(SAMPLE).unwrap();
        assert!(atom.is_due(i64::MAX));
        atom.approve();
        let edited = atom.render().unwrap().replace("status: approved", "status: pending");
        let mut read = Atom::parse(&edited).unwrap();
        assert_eq!((read.meta.status, read.due_at_ms()), (Status::Pending, None));
        assert!(!read.is_due(i64::MAX));
        read.approve();
        assert_eq!(read.meta.status, Status::Approved);
    }

    #[test]
    fn a_file_without_status_is_approved() {
        let atom = Atom::parse("---\r\nid: a\r\nquestion: q\r\n---\r\nfree text").unwrap();
        assert_eq!((atom.meta.status, atom.answer()), (Status::Approved, "free text"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("", "no front matter"),
            ("# no", "no front matter"),
            ("----\nid: a\n---\n", "no front matter"),
            ("---\nid: a\nquestion: q\n", "does not end"),
            ("---\nid: a\n---\n", "question"),
            ("---\nid: a\nquestion: ''\n---\n", "`question` is empty"),
            ("---\nid: a\nquestion: q\nstatus: maybe\n---\n", "unknown variant `maybe`"),
            ("---\nid: a\nquestion: q\ntags: {a: b}\n---\n", "`tags` must be a list"),
            ("---\nid: a\nquestion: q\nasked-as: {a: b}\n---\n", "`asked-as` must be a list"),
            ("---\nid: [a\n---\n", "not valid"),
        ] {
            let error = Atom::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gives {error:?}");
        }
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut yaml = String::from("---\nid: a\nquestion: q\na0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for n in 1..20 {
            let alias = format!("*a{}, ", n - 1).repeat(9);
            yaml.push_str(&format!("a{n}: &a{n} [{alias}]\n"));
        }
        assert!(Atom::parse(&(yaml + "---\n")).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(question in "\\PC{0,40}[a中]\\PC{0,40}", summary in "(\\PC|\n|---){0,60}",
                answer in "(\\PC|\n|---\n|## Answer\n|中){0,80}", tag in "\\PC{0,10}") {
            let source = Source { thread_key: "D1:1.2".into(), contributor_user_id: "U1".into() };
            let atom = Atom::pending(NewAtom { created_at_ms: 1_777_342_416_133, scope: "erp", question: &question,
                summary: &summary, tags: vec![tag.clone()], asked_as: vec![tag], answer: &answer, source, suspicion: None });
            let read = Atom::parse(&atom.render().unwrap()).unwrap();
            prop_assert_eq!(&read, &atom);
            prop_assert_eq!(read.answer(), answer.trim());
        }

        #[test]
        fn no_text_panics(text in "(---\n|id: |question: |\\PC|\n|tags: |&a|\\*a|## Answer\n){0,30}") {
            if let Ok(atom) = Atom::parse(&text) {
                let _ = atom.answer();
            }
        }
    }
}
