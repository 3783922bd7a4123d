//! Distinguishes directives that the model means from those that it only repeats.
//!
//! Texts are compared by their [spelling](crate::spelling), in overlapping pieces. Of a question that was copied, most
//! pieces are found again, however it was cut up, reordered or decorated. The result depends on what is found and on
//! who wrote it:
//!
//! - A directive that *others* (documents, atoms, results, files, summaries) spelled out, with tag and field, is
//!   theirs.
//! - Text that only they wrote is theirs, with or without a tag near it.
//! - Text that a *person* of the conversation wrote is their request, in whatever words. The exception: if somebody, in
//!   the same message or in one near it, writes the tag as a tag, they spell out a directive for the model to repeat,
//!   or pass on a text that does: `mra-ask` and not "mra, ask…", `escalate` in the marks of code and not in a sentence.
//!
//! Text that nobody has written, or that was translated or rephrased, cannot be distinguished from the model's own. For
//! it there are limits, and the asker's confirmation ([`asked_share`]).

use std::{collections::HashSet, sync::LazyLock};

use pmk_core::{Block, Message, Origin, Role};
use pmk_search::{Query, terms};
use regex::Regex;

use super::{CASE_TAG, Directive, Kind, fence, tools};
use crate::case::Note;
use crate::spelling::{decoded, plain};

/// The weight of a piece: twelve letters, or four Chinese characters.
const PIECE: usize = 12;
const WIDE: usize = 3;

/// The share of its pieces from which on a question counts as contained in a text.
const STANDS: f64 = 0.6;

/// The share of its pieces or words from which on a question counts as asked by the people
/// themselves.
const ASKED: f64 = 0.5;

/// How many messages of people, before and after, count as near.
const NEAR: usize = 2;

/// What makes `escalate`, which is also an ordinary word, a tag: marks of code before it, or a line of
/// its own.
static MARKED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?im)[`~<\[{]\s*escalate|^\W*escalate\W*$").expect("it is tested"));

/// What is not a tag: the two words, as in a sentence or as the command is typed.
static TWO_WORDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?i)mra[\s.,:;!?，。：；！？、"'“”「」()（）]+ask"#).expect("it is tested"));

/// The same for case notes.
static CASE_UPDATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?i)case[\s.,:;!?，。：；！？、"'“”「」()（）]+update"#).expect("it is tested"));

/// What the model was given, by author.
#[derive(Debug, Default)]
pub struct Given {
    people: Vec<Said>,
    others: Vec<String>,
}

/// Text of a person.
#[derive(Debug)]
struct Said {
    text: String,
    plain: String,
}

impl Given {
    /// Sorts the messages of a request, as they are before neighbours are joined. What the model itself said does not
    /// count, neither as its own nor as anybody else's: it may have repeated something before.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Given {
        let mut given = Given::default();
        let mut asked = vec![];
        for message in messages {
            if message.role == Role::Assistant {
                asked = questions(message);
                continue;
            }
            for block in &message.blocks {
                let Some(text) = block.content() else { continue };
                match (message.origin, block) {
                    (Origin::User, Block::Text { .. }) => {
                        given.people.push(Said { text: text.to_owned(), plain: plain(text) });
                    }
                    // A result repeats what was asked, at least if the call failed.
                    _ => given.others.push(without(text, &asked)),
                }
            }
        }
        given
    }

    /// Returns whether a directive only repeats what the model was given, so that it is not the model's decision and
    /// must not be carried out.
    pub fn holds(&self, directive: &Directive) -> bool {
        let question = plain(directive.question());
        let tag = plain(directive.kind().tag());
        let field = format!("{}{question}", plain("question"));
        if self.others.iter().any(|text| text.split_once(&tag).is_some_and(|(_, after)| after.contains(&field))) {
            return true;
        }
        let pieces = Pieces::of(&question);
        if self.is_spelled_out(directive.kind(), &pieces) {
            return true;
        }
        let theirs = pieces.share_in(self.people.iter().map(|said| &*said.plain));
        // So few letters occur in many texts: then the tag must occur there, too.
        (pieces.are_enough || self.others.iter().any(|text| text.contains(&tag)))
            && pieces.share_in(self.others.iter().map(String::as_str)) >= STANDS
            && theirs < ASKED
            && asked_share(directive.question(), self.people.iter().map(|said| &*said.text)) < ASKED
    }
}

impl Given {
    /// Returns whether this text occurs in what the model was given, whoever wrote it.
    pub fn repeats(&self, words: &str) -> bool {
        let pieces = Pieces::of(&plain(words));
        let texts = self.people.iter().map(|said| &*said.plain).chain(self.others.iter().map(String::as_str));
        pieces.are_enough && pieces.share_in(texts) >= STANDS
    }

    /// Returns whether somebody else has spelled out this case note: tag, field and text. A hypothesis may well come
    /// from documents or from the conversation, so its text alone is no echo.
    pub fn spells_out(&self, note: &Note) -> bool {
        let (tag, words) = (plain(CASE_TAG), plain(&note.text));
        let fields = note.kind.keys().map(|key| format!("{}{words}", plain(key)));
        let has_field = |after: &str| fields.iter().any(|field| after.contains(field));
        self.others.iter().any(|text| text.split_once(&tag).is_some_and(|(_, after)| has_field(after)))
            || self.stands_near(Said::names_case_update, &Pieces::of(&words))
    }

    /// Returns whether somebody has written the tag as a tag, with the question near it.
    fn is_spelled_out(&self, kind: Kind, pieces: &Pieces) -> bool {
        self.stands_near(|said| said.names(kind), pieces)
    }

    /// Returns whether somebody has written a tag, with these pieces near it.
    fn stands_near(&self, names: impl Fn(&Said) -> bool, pieces: &Pieces) -> bool {
        self.people.iter().enumerate().filter(|(_, said)| names(said)).any(|(at, _)| {
            let near = &self.people[at.saturating_sub(NEAR)..(at + NEAR + 1).min(self.people.len())];
            pieces.share_in(near.iter().map(|said| &*said.plain)) >= STANDS
        })
    }
}

impl Said {
    /// Returns whether this contains the tag of case notes: `case-update`, and not "a case update".
    fn names_case_update(&self) -> bool {
        self.plain.matches(&plain(CASE_TAG)).count() > CASE_UPDATE.find_iter(&self.text).count()
    }

    /// Returns whether this contains the tag of a directive.
    fn names(&self, kind: Kind) -> bool {
        let stands = self.plain.matches(&plain(kind.tag())).count();
        match kind {
            Kind::MraAsk => stands > TWO_WORDS.find_iter(&self.text).count(),
            Kind::Escalate => {
                // A disguised spelling is not the ordinary word.
                let words = self.text.to_lowercase().matches(kind.tag()).count();
                stands > words || stands > 0 && MARKED.is_match(&decoded(&self.text))
            }
        }
    }
}

/// Returns the questions of the directives in a message of the model.
fn questions(message: &Message) -> Vec<String> {
    let calls = message.blocks.iter().filter_map(|block| match block {
        Block::ToolUse { name, input, .. } => tools::read_call(name, input).ok(),
        Block::Text { text } => fence::parse(text).directive,
        Block::ToolResult { .. } | Block::Image(_) => None,
    });
    calls.map(|directive| directive.question().to_owned()).filter(|question| !plain(question).is_empty()).collect()
}

/// Returns a result in its plain spelling, without the questions that it answers. A short question is removed only
/// where it stands by itself, since so few letters occur in many words.
fn without(text: &str, asked: &[String]) -> String {
    let (long, short): (Vec<&String>, Vec<&String>) =
        asked.iter().partition(|question| Pieces::of(&plain(question)).are_enough);
    let text = short.iter().fold(text.to_owned(), |text, question| without_words(&text, question));
    long.iter().fold(plain(&text), |text, question| text.replacen(&plain(question), "\n", 1))
}

/// Removes the first occurrence of these words that stands by itself.
fn without_words(text: &str, words: &str) -> String {
    let stands_alone = |(at, _): &(usize, &str)| {
        let (before, after) = (&text[..*at], &text[at + words.len()..]);
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    };
    match text.match_indices(words).find(stands_alone) {
        Some((at, _)) => format!("{}\n{}", &text[..at], &text[at + words.len()..]),
        None => text.to_owned(),
    }
}

/// A question in overlapping pieces.
struct Pieces {
    pieces: HashSet<Vec<char>>,
    /// Whether there is at least one whole piece.
    are_enough: bool,
}

impl Pieces {
    fn of(plain: &str) -> Pieces {
        let chars: Vec<char> = plain.chars().collect();
        let mut pieces: HashSet<Vec<char>> = cut(&chars).map(<[char]>::to_vec).collect();
        let are_enough = !pieces.is_empty();
        if !are_enough && !chars.is_empty() {
            pieces.insert(chars);
        }
        Pieces { pieces, are_enough }
    }

    /// Returns the share of the pieces that occur anywhere in these texts.
    fn share_in<'a>(&self, texts: impl Iterator<Item = &'a str>) -> f64 {
        let mut found: HashSet<&[char]> = HashSet::new();
        for text in texts {
            if found.len() == self.pieces.len() {
                break;
            }
            if !self.are_enough {
                found.extend(
                    self.pieces
                        .iter()
                        .filter(|piece| text.contains(&piece.iter().collect::<String>()))
                        .map(Vec::as_slice),
                );
                continue;
            }
            let chars: Vec<char> = text.chars().collect();
            found.extend(cut(&chars).filter_map(|piece| self.pieces.get(piece)).map(Vec::as_slice));
        }
        if self.pieces.is_empty() { 0.0 } else { found.len() as f64 / self.pieces.len() as f64 }
    }
}

/// Returns the piece that begins at each character, as long as it is a whole one.
fn cut(chars: &[char]) -> impl Iterator<Item = &[char]> {
    let weight = |c: char| if c >= '\u{2e80}' { WIDE } else { 1 };
    let (mut end, mut held) = (0, 0);
    (0..chars.len()).map_while(move |start| {
        while held < PIECE && end < chars.len() {
            held += weight(chars[end]);
            end += 1;
        }
        let piece = (held >= PIECE).then_some(&chars[start..end]);
        held -= weight(chars[start]);
        piece
    })
}

/// Returns the share of a question's content words that also occur in these texts, in any order and form.
pub fn asked_share<'a>(question: &str, texts: impl IntoIterator<Item = &'a str>) -> f64 {
    let query = Query::new(question);
    if query.is_empty() {
        // A question such as "who?" has no content words; it counts only if it occurs literally.
        let question = plain(question);
        let is_said = !question.is_empty() && texts.into_iter().any(|text| plain(text).contains(&question));
        return f64::from(u8::from(is_said));
    }
    let said: HashSet<String> = texts.into_iter().flat_map(terms).collect();
    let stands = query.units().iter().filter(|unit| {
        let parts = unit.parts.iter().filter(|part| said.contains(*part)).count();
        unit.whole.as_ref().is_some_and(|whole| said.contains(whole)) || parts > 0 && 2 * parts >= unit.parts.len()
    });
    stands.count() as f64 / query.units().len() as f64
}

#[cfg(test)]
mod tests;
