//! Collects facts from the newest message back, and writes the summary.

use pmk_policy_sdk::{IntegerSetting, LANGUAGE, Row, Summarize, Summary, Transcript, origin};

use crate::{
    FactsSummary,
    facts::{self, Kind},
    sentences,
    words::{self, Subjects},
};

/// Older messages cost fuel and are mostly outdated.
pub const MESSAGES: IntegerSetting =
    IntegerSetting::new("messages", 100, 1..=1_000, "newest messages that facts are looked for in");

/// How many characters of one message are read.
const CHARS: u32 = 1_500;

/// How many characters of all messages together are read: Chinese takes half of the fuel by then.
const ALL_CHARS: u32 = 100_000;

/// The maximum number of entries of one kind.
const FACTS: usize = 12;
const WORDS: usize = 20;

/// The minimum number of characters per 100 tokens in the text that is written here.
const CHARS_A_HUNDRED_TOKENS: usize = 66;

/// The facts found so far, newest first.
#[derive(Default)]
struct Found {
    decisions: Vec<String>,
    corrections: Vec<String>,
    figures: Vec<String>,
    /// The subjects of all of these, computed once.
    settled: Vec<(Kind, Subjects)>,
    names: Vec<String>,
    identifiers: Vec<String>,
    questions: Vec<String>,
    /// The latest request of a person.
    task: Option<String>,
    /// Whether a person, and whether the model, stated something after the messages being read now.
    person_stated: bool,
    model_stated: bool,
}

impl Summarize for FactsSummary {
    fn summarize(transcript: &Transcript, summary: &Summary) {
        let most = MESSAGES.count();
        let mut found = Found::default();
        let (mut seen, mut left) = (0, ALL_CHARS);
        'back: for segment in transcript.segments() {
            for row in segment.rows.iter().rev() {
                if seen == most || left == 0 {
                    break 'back;
                }
                seen += 1;
                if matches!(row.origin, origin::USER | origin::ASSISTANT | origin::SUMMARY) && row.chars > 0 {
                    let chars = CHARS.min(left);
                    left -= row.chars.min(chars);
                    found.take(row, &transcript.text(row.index, 0, chars));
                }
            }
        }
        found.write(transcript, summary);
    }
}

impl Found {
    fn take(&mut self, row: &Row, text: &str) {
        let of_people = row.origin == origin::USER;
        // A question is no longer open once the other side made a statement after it: people may talk among themselves.
        // One in a summary may be of either side.
        let is_answered = match row.origin {
            origin::USER => self.model_stated,
            origin::ASSISTANT => self.person_stated,
            _ => self.model_stated && self.person_stated,
        };
        let sentences = sentences::of(text);
        for sentence in sentences.iter().rev() {
            if facts::is_question(sentence) && !is_answered && self.questions.len() < FACTS {
                self.questions.push(sentence.clone());
            }
            self.take_fact(sentence);
            keep(&mut self.names, words::names, sentence);
            keep(&mut self.identifiers, words::identifiers, sentence);
        }
        if of_people && self.task.is_none() {
            self.task = sentences.first().cloned();
        }
        let stated = if of_people { &mut self.person_stated } else { &mut self.model_stated };
        *stated = *stated || sentences.iter().any(|sentence| !facts::is_question(sentence));
    }

    fn take_fact(&mut self, sentence: &str) {
        let Some(kind) = facts::kind(sentence) else { return };
        let list = match kind {
            Kind::Decision => &mut self.decisions,
            Kind::Correction => &mut self.corrections,
            Kind::Figure => &mut self.figures,
        };
        if list.len() == FACTS {
            return;
        }
        let subjects = Subjects::of(sentence);
        if !self.settled.iter().any(|(kind, newer)| facts::is_outdated_by(&subjects, newer, *kind)) {
            list.push(sentence.to_owned());
            self.settled.push((kind, subjects));
        }
    }

    fn write(&self, transcript: &Transcript, summary: &Summary) {
        let max = usize::try_from(summary.max_tokens()).unwrap_or(usize::MAX);
        let mut page = Page { summary, left: max.saturating_mul(CHARS_A_HUNDRED_TOKENS) / 100 };
        let pick = |english, chinese| LANGUAGE.pick(english, chinese);
        page.line(pick(
            "The conversation had grown too long for the model and goes on in a fresh session. These facts were taken from \
             it, the latest version of each; ask where something needed is missing.",
            "對話太長，已在新的 session 繼續。以下是從中取出的事實，各以最新的為準；缺少需要的內容時請詢問。",
        ));
        if !transcript.channel().is_empty() {
            page.line(&format!("{}{}", pick("Last active channel: ", "最近的頻道："), transcript.channel()));
        }
        if let Some(task) = &self.task {
            page.line(&format!("{}{task}", pick("The latest request: ", "最近的要求：")));
        }
        page.list(pick("Corrections, which hold:", "更正，以此為準："), &self.corrections);
        page.list(pick("Decisions:", "決定："), &self.decisions);
        page.list(pick("Open questions:", "待解的問題："), &self.questions);
        page.list(pick("Figures and dates:", "數字與日期："), &self.figures);
        page.words(pick("Names: ", "名稱："), &self.names);
        page.words(pick("Identifiers: ", "識別碼："), &self.identifiers);
    }
}

/// Adds the new words of a sentence, up to the maximum for one kind.
fn keep(list: &mut Vec<String>, words: fn(&str) -> Vec<String>, sentence: &str) {
    if list.len() == WORDS {
        return;
    }
    for word in words(sentence) {
        if list.len() < WORDS && !list.contains(&word) {
            list.push(word);
        }
    }
}

/// The text written so far, within the available length.
struct Page<'s> {
    summary: &'s Summary,
    left: usize,
}

impl Page<'_> {
    fn line(&mut self, text: &str) -> bool {
        let chars = text.chars().count() + 1;
        let fits = chars <= self.left;
        if fits {
            self.left -= chars;
            self.summary.append(&format!("{text}\n"));
        }
        fits
    }

    /// Writes a list, oldest first; if there is not enough room, only the newest entries.
    fn list(&mut self, heading: &str, newest_first: &[String]) {
        let mut room = self.left.saturating_sub(heading.chars().count() + 2);
        let fitting = newest_first.iter().take_while(|sentence| {
            let chars = sentence.chars().count() + 3;
            let fits = chars <= room;
            room = room.saturating_sub(chars);
            fits
        });
        let shown: Vec<&String> = fitting.collect();
        if !shown.is_empty() && self.line(&format!("\n{heading}")) {
            for sentence in shown.into_iter().rev() {
                self.line(&format!("- {sentence}"));
            }
        }
    }

    fn words(&mut self, heading: &str, words: &[String]) {
        if !words.is_empty() {
            self.line(&format!("\n{heading}{}", words.join(", ")));
        }
    }
}
