//! A page of lines, each with a label in front, in the reader's language.

use std::fmt::Display;

use pmk_core::Language;
use pmk_policy::LogLine;
use unicode_width::UnicodeWidthStr;

use super::{table, text::one_line};
use crate::messages::terminal;

/// How wide the labels are where nobody says otherwise, with what keeps them apart from what follows.
const WIDTH: usize = 10;

/// What is written so far. Labels and sentences are given in English and translated here; values stand as they are.
pub(super) struct Page {
    text: String,
    language: Language,
    indent: &'static str,
    width: usize,
}

impl Page {
    pub(super) fn new(language: Language) -> Page {
        Page { text: String::new(), language, indent: "", width: WIDTH }
    }

    /// With lines that begin so, and labels as wide as that.
    pub(super) fn with(self, indent: &'static str, width: usize) -> Page {
        Page { indent, width, ..self }
    }

    /// In the reader's language.
    pub(super) fn translated(&self, text: &str) -> String {
        terminal::translated(text, self.language).into_owned()
    }

    /// A sentence with what somebody has named in its places, in their order, whatever that spells.
    pub(super) fn filled(&self, template: &str, names: &[&str]) -> String {
        let translated = self.translated(template);
        let names = names.iter().copied().chain(std::iter::repeat(""));
        translated.split("{}").zip(names).flat_map(|(words, name)| [words, name]).collect()
    }

    /// A label, and a value.
    pub(super) fn line(&mut self, label: &str, value: impl Display) {
        let label = self.translated(label);
        self.put(&label, value);
    }

    /// What somebody has named, whatever that spells, and a sentence.
    pub(super) fn named(&mut self, name: &str, sentence: &str) {
        let sentence = self.translated(sentence);
        self.put(name, sentence);
    }

    /// What a policy said in a decision, and where it was when it trapped, a line each.
    pub(super) fn said(&mut self, log: &[LogLine], backtrace: &[String]) {
        for line in log {
            self.line("log", one_line(&line.text, 1_000));
        }
        for frame in backtrace {
            self.line("at", one_line(frame, 200));
        }
    }

    fn put(&mut self, label: &str, value: impl Display) {
        let fill = " ".repeat(self.width.saturating_sub(label.width()).max(1));
        let line = format!("{}{label}{fill}{value}", self.indent);
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// A label, and a sentence.
    pub(super) fn tell(&mut self, label: &str, sentence: &str) {
        let sentence = self.translated(sentence);
        self.line(label, sentence);
    }

    /// A sentence on a line of its own.
    pub(super) fn say(&mut self, sentence: &str) {
        let sentence = self.translated(sentence);
        self.text.push_str(&format!("{sentence}\n"));
    }

    /// What to do, below what it is about.
    pub(super) fn hint(&mut self, hint: &str) {
        self.text.push_str(&format!("  {}\n", terminal::hint(hint, self.language)));
    }

    /// Rows in columns, below their heading.
    pub(super) fn columns(&mut self, rows: &[Vec<String>]) {
        self.text.push_str(&table::columns(rows, self.language));
    }

    /// Several sentences as one.
    pub(super) fn joined(&self, sentences: &[String]) -> String {
        let sentences: Vec<String> = sentences.iter().map(|sentence| self.translated(sentence)).collect();
        sentences.join(self.language.pick(", ", "，"))
    }

    /// What is in no language.
    pub(super) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(super) fn done(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(language: Language) -> String {
        let mut page = Page::new(language);
        page.line("policy", "policy");
        page.tell("wasi", "none");
        page.done()
    }

    #[test]
    fn a_name_stays_as_it_is() {
        let page = Page::new(Language::TraditionalChinese);
        assert_eq!(page.filled("{} compared with {}", &["default", "{}"]), "default 與 {} 相比");
        assert_eq!(Page::new(Language::English).filled("{} (control)", &["text"]), "text (control)");
    }

    #[test]
    fn values_stand_below_each_other_in_either_language() {
        assert_eq!(page(Language::English), "policy    policy\nwasi      none\n");
        assert_eq!(page(Language::TraditionalChinese), "策略      policy\nWASI      沒有\n");
    }
}
