//! A page of lines, each with a label, in the user's language.

use std::fmt::Display;

use pmk_core::Language;
use pmk_policy::LogLine;
use unicode_width::UnicodeWidthStr;

use super::{table, text::one_line};
use crate::messages::terminal;

/// The default width of the labels, including the space after them.
const WIDTH: usize = 10;

/// The page under construction. Labels and sentences are given in English and translated here; values stay as they are.
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

    /// Sets the indent of the lines and the width of the labels.
    pub(super) fn with(self, indent: &'static str, width: usize) -> Page {
        Page { indent, width, ..self }
    }

    /// Translates a text.
    pub(super) fn translated(&self, text: &str) -> String {
        terminal::translated(text, self.language).into_owned()
    }

    /// Fills names into a translated sentence, in their order and without translating them.
    pub(super) fn filled(&self, template: &str, names: &[&str]) -> String {
        let translated = self.translated(template);
        let names = names.iter().copied().chain(std::iter::repeat(""));
        translated.split("{}").zip(names).flat_map(|(words, name)| [words, name]).collect()
    }

    /// Writes a label and a value.
    pub(super) fn line(&mut self, label: &str, value: impl Display) {
        let label = self.translated(label);
        self.put(&label, value);
    }

    /// Writes a name, which is not translated, and a sentence.
    pub(super) fn named(&mut self, name: &str, sentence: &str) {
        let sentence = self.translated(sentence);
        self.put(name, sentence);
    }

    /// Writes the log of a policy in a decision with its levels, and its backtrace if it trapped, one line each.
    pub(super) fn said(&mut self, log: &[LogLine], log_is_cut: bool, backtrace: &[String]) {
        for line in log {
            self.line("log", format!("{}: {}", line.level.name(), one_line(&line.text, 1_000)));
        }
        if log_is_cut {
            self.tell("log", "the rest is dropped: of each decision, only a limited log is kept");
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

    /// Writes a label and a sentence.
    pub(super) fn tell(&mut self, label: &str, sentence: &str) {
        let sentence = self.translated(sentence);
        self.line(label, sentence);
    }

    /// Writes a sentence on a line of its own.
    pub(super) fn say(&mut self, sentence: &str) {
        let sentence = self.translated(sentence);
        self.text.push_str(&format!("{sentence}\n"));
    }

    /// Writes a hint below what it refers to.
    pub(super) fn hint(&mut self, hint: &str) {
        self.text.push_str(&format!("  {}\n", terminal::hint(hint, self.language)));
    }

    /// Writes rows in columns, below their heading.
    pub(super) fn columns(&mut self, rows: &[Vec<String>]) {
        self.text.push_str(&table::columns(rows, self.language));
    }

    /// Joins several sentences.
    pub(super) fn joined(&self, sentences: &[String]) -> String {
        let sentences: Vec<String> = sentences.iter().map(|sentence| self.translated(sentence)).collect();
        sentences.join(self.language.pick(", ", "，"))
    }

    /// Writes text without translating it.
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
