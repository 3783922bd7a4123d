//! Translates what commands print at the terminal: errors with their hints, results, and the words of tables. All of it
//! is English where it is produced, and stays English in the log and for machines. When it is printed, its Chinese is
//! looked up by the English template that it was made from, as in gettext: `terminal/zh-TW.txt` and
//! `terminal/tables.zh-TW.txt` have the templates of the sources, `terminal/foreign.zh-TW.txt` those of the system and
//! the libraries. Unknown text stays as it is. What the embedded policies say of themselves is in
//! `terminal/policies.zh-TW.txt`.

mod pages;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::LazyLock};

use pmk_core::Language;

const OURS: &str = concat!(include_str!("terminal/zh-TW.txt"), include_str!("terminal/tables.zh-TW.txt"));
const FOREIGN: &str = include_str!("terminal/foreign.zh-TW.txt");
/// The descriptions of the embedded policies.
const POLICIES: &str = include_str!("terminal/policies.zh-TW.txt");

/// Loaded on the first use of Chinese.
static CHINESE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::read(&[OURS, FOREIGN]));

/// How deeply nested errors are looked up.
const MOST_NESTED: usize = 6;
/// A template with fewer letters than this, and without a name, matches many texts that it was not made for; `or`, for
/// example, matches whole sentences of others. It only applies if everything in its holes is known, a number or code;
/// wholly known, if its words do not even begin the text. If it has no letters at all, something in its holes must be
/// known.
const FEW_LETTERS: usize = 5;
/// The quotation marks of names.
const QUOTES: [char; 2] = ['`', '\''];

/// What is between two names of a list.
const BETWEEN_NAMES: &str = "`, `";

/// Translates a text of this program, as far as it is known.
pub fn translated(text: &str, language: Language) -> Cow<'_, str> {
    match language {
        Language::English => Cow::Borrowed(text),
        Language::TraditionalChinese => Cow::Owned(CHINESE.lines(text)),
    }
}

/// Translates the description of a policy or of a setting. That of a policy that is not embedded stays as it is.
pub fn of_a_policy(text: &str, language: Language) -> Cow<'_, str> {
    let known = match language {
        Language::English => None,
        Language::TraditionalChinese => pairs(POLICIES).find(|(english, _)| *english == text),
    };
    known.map_or(Cow::Borrowed(text), |(_, chinese)| Cow::Borrowed(chinese))
}

/// An error, and below it the hint.
pub fn error(what: &str, hint: Option<&str>, language: Language) -> String {
    format!("{}{}", language.pick("error: ", "錯誤："), notice(what, hint, language))
}

/// A warning, and below it the hint.
pub fn warning(what: &str, hint: Option<&str>, language: Language) -> String {
    format!("{}{}", language.pick("warning: ", "警告："), notice(what, hint, language))
}

/// A notice, and below it the hint.
pub fn notice(what: &str, hint: Option<&str>, language: Language) -> String {
    let what = translated(what, language).into_owned();
    hint.map_or_else(|| what.clone(), |hint| format!("{what}\n  {}", self::hint(hint, language)))
}

/// A hint, with the paths of its pages resolved.
pub fn hint(hint: &str, language: Language) -> String {
    format!("{}{}", language.pick("hint: ", "提示："), pages::found(&translated(hint, language)))
}

/// The templates of the sources, with their Chinese.
#[cfg(test)]
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    pairs(OURS)
}

/// Templates: first those that begin with words of their own, because a hole at the beginning takes the words of other
/// templates; among these and among the rest, those with the most literal characters first.
struct Catalogue(Vec<Row>);

/// The Chinese of a text.
struct Known {
    text: String,
    /// Whether all of it is of templates, and not only a part between separators.
    is_whole: bool,
}

struct Row {
    /// The literal parts around the holes: one more than there are holes.
    english: Vec<String>,
    chinese: Vec<String>,
    /// For each hole of the Chinese text, the number of the English one.
    order: Vec<usize>,
}

impl Catalogue {
    fn read(texts: &[&str]) -> Catalogue {
        let mut rows: Vec<Row> = texts.iter().flat_map(|text| pairs(text)).map(|(a, b)| Row::read(a, b)).collect();
        let literals = |row: &Row| row.english.iter().map(String::len).sum::<usize>();
        rows.sort_by_key(|row| (row.is_weak(), !row.leads(), std::cmp::Reverse(literals(row))));
        Catalogue(rows)
    }

    /// Translates a text line by line, as far as it is known.
    fn lines(&self, text: &str) -> String {
        let line = |line: &str| {
            let (indent, words) = line.split_at(line.len() - line.trim_start().len());
            self.known(words, MOST_NESTED).map_or_else(|| line.to_owned(), |known| format!("{indent}{}", known.text))
        };
        text.split('\n').map(line).collect::<Vec<_>>().join("\n")
    }

    /// Translates a text that matches a template, or that ends in one which begins with a separator.
    fn known(&self, text: &str, nested: usize) -> Option<Known> {
        let nested = nested.checked_sub(1)?;
        self.matching(text, nested).or_else(|| {
            self.0.iter().filter(|row| row.is_tail()).find_map(|row| {
                let at = text.rfind(row.english.first()?.as_str()).filter(|at| *at > 0)?;
                let (head, tail) = text.split_at(at);
                let tail = self.filled(row, &row.holes(tail)?, nested)?;
                let head = self.known(head, nested).unwrap_or_else(|| Known { text: head.to_owned(), is_whole: false });
                Some(Known { text: head.text + &tail.text, is_whole: head.is_whole && tail.is_whole })
            })
        })
    }

    /// Translates a text by the first template that leaves nothing of it unknown, or else by the first that it matches.
    fn matching(&self, text: &str, nested: usize) -> Option<Known> {
        let mut first = None;
        for row in &self.0 {
            let Some(known) = row.holes(text).and_then(|holes| self.filled(row, &holes, nested)) else { continue };
            if known.is_whole {
                return Some(known);
            }
            first.get_or_insert(known);
        }
        first
    }

    /// Returns the Chinese of a template, with its holes filled in.
    fn filled(&self, row: &Row, holes: &[&str], nested: usize) -> Option<Known> {
        let known = |(at, hole): (usize, &&str)| if row.quote(at).is_some() { None } else { self.known(hole, nested) };
        let known: Vec<Option<Known>> = holes.iter().enumerate().map(known).collect();
        let is_plain = |hole: &str| is_number(hole) || is_code(hole);
        let is_whole = |(at, hole): (usize, &&str)| {
            let is_known = known[at].as_ref().is_some_and(|known| known.is_whole);
            is_known || row.quote(at).is_some() || is_plain(hole)
        };
        let is_whole = holes.iter().enumerate().all(is_whole);
        let is_meant = match (row.is_weak(), row.letters()) {
            (false, _) => true,
            (true, 0) => known.iter().any(Option::is_some),
            (true, _) if row.leads() => known.iter().zip(holes).all(|(known, hole)| known.is_some() || is_plain(hole)),
            (true, _) => is_whole,
        };
        if !is_meant {
            return None;
        }
        let mut text = String::new();
        let mut is_quoted = false;
        for (literal, at) in row.chinese.iter().zip(row.order.iter().map(Some).chain([None])) {
            put(&mut text, literal, is_quoted);
            is_quoted = at.is_some_and(|at| row.quote(*at).is_some());
            let known = |at: usize| known[at].as_ref().map(|known| Cow::Borrowed(known.text.as_str()));
            if let Some(hole) = at.and_then(|at| known(*at).or_else(|| holes.get(*at).map(|hole| listed(hole)))) {
                put(&mut text, &hole, is_quoted);
            }
        }
        Some(Known { text, is_whole })
    }
}

impl Row {
    fn read(english: &str, chinese: &str) -> Row {
        let (chinese, numbers) = pieces(chinese);
        let order = numbers.iter().enumerate().map(|(at, number)| number.map_or(at, |number| number - 1)).collect();
        Row { english: pieces(english).0, chinese, order }
    }

    /// Returns the contents of the holes, if the text matches this template.
    fn holes<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let (first, rest) = self.english.split_first()?;
        let mut left = text.strip_prefix(first.as_str())?;
        let Some((last, between)) = rest.split_last() else { return left.is_empty().then(Vec::new) };
        let mut holes = Vec::with_capacity(rest.len());
        for literal in between {
            let (hole, after) = left.split_once(literal.as_str())?;
            holes.push(hole);
            left = after;
        }
        holes.push(left.strip_suffix(last.as_str())?);
        let is_whole = |(at, hole): (usize, &&str)| self.quote(at).is_none_or(|quote| !hole.contains(quote));
        holes.iter().enumerate().all(is_whole).then_some(holes)
    }

    /// The quotation mark around a hole, backticks of this program or quotes of clap: its content is a name and is not
    /// translated.
    fn quote(&self, hole: usize) -> Option<char> {
        let (before, after) = self.english.get(hole).zip(self.english.get(hole + 1))?;
        QUOTES.into_iter().find(|quote| before.ends_with(*quote) && after.starts_with(*quote))
    }

    /// Whether it begins with words of its own.
    fn leads(&self) -> bool {
        self.english.first().is_some_and(|first| first.contains(char::is_alphabetic))
    }

    fn is_tail(&self) -> bool {
        self.english.first().is_some_and(|first| first.starts_with([' ', ',', ';']))
    }

    fn letters(&self) -> usize {
        self.english.iter().map(|literal| literal.chars().filter(|char| char.is_alphabetic()).count()).sum()
    }

    fn is_weak(&self) -> bool {
        let names = (0..self.order.len()).any(|hole| self.quote(hole).is_some());
        match self.letters() {
            0 => true,
            letters => !self.order.is_empty() && letters < FEW_LETTERS && !names,
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|char| char.is_ascii_digit() || matches!(char, '.' | ','))
}

fn is_code(text: &str) -> bool {
    text.len() > 1 && text.starts_with('`') && text.ends_with('`')
}

/// A list of names, with the commas of Chinese; anything else stays as it is.
fn listed(text: &str) -> Cow<'_, str> {
    match text.contains(BETWEEN_NAMES) && text.split(", ").all(is_code) {
        true => Cow::Owned(text.replace(BETWEEN_NAMES, "`、`")),
        false => Cow::Borrowed(text),
    }
}

/// Appends a text; a name, and what closes its quotes, without a change.
fn put(text: &mut String, next: &str, is_quoted: bool) {
    if is_quoted { text.push_str(next) } else { join(text, next) }
}

/// Appends a text, with a space between Chinese and Latin, and none between Chinese and Chinese.
fn join(text: &mut String, next: &str) {
    let Some(begins) = next.chars().next() else { return };
    let is_chinese = |char: char| ('\u{3400}'..='\u{9fff}').contains(&char);
    let is_latin = |char: char| char.is_ascii_alphanumeric() || char == '`';
    let begins_latin = is_latin(begins)
        || next.strip_prefix('-').is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()));
    if text.ends_with(' ') && is_chinese(begins) && text.trim_end().ends_with(is_chinese) {
        text.truncate(text.trim_end().len());
    }
    if text.ends_with(is_chinese) && begins_latin || text.ends_with(is_latin) && is_chinese(begins) {
        text.push(' ');
    }
    let next = match next.strip_prefix(' ') {
        Some(rest) if rest.starts_with(is_chinese) && text.ends_with(is_chinese) => rest,
        _ => next,
    };
    text.push_str(next);
}

/// The rows of a catalogue: an English line, and an indented Chinese one.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).collect();
    let (rows, _) = rows.as_chunks::<2>();
    rows.iter().map(|[english, chinese]| (*english, chinese.trim_start())).collect::<Vec<_>>().into_iter()
}

/// Splits a template into the literals around its holes and the numbers of the holes, where they have one.
fn pieces(template: &str) -> (Vec<String>, Vec<Option<usize>>) {
    let (mut literals, mut numbers) = (vec![String::new()], vec![]);
    let mut chars = template.chars().peekable();
    while let Some(char) = chars.next() {
        let literal = match (char, chars.peek()) {
            ('{' | '}', Some(next)) if *next == char => chars.next(),
            ('{', _) => {
                let number: String = chars.by_ref().take_while(|char| *char != '}').collect();
                numbers.push(number.parse().ok());
                literals.push(String::new());
                None
            }
            _ => Some(char),
        };
        if let (Some(char), Some(last)) = (literal, literals.last_mut()) {
            last.push(char);
        }
    }
    (literals, numbers)
}
