//! What replaces a content that is shortened: ranges of the original and the host's notice, or a digest. Never a
//! policy's own text.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::{language::Language, message::Block, text};

/// The prefix of quoted lines.
const QUOTE: &str = "> ";

/// How a content is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Keeps the first `head` and last `tail` characters.
    Shorten {
        /// In characters.
        head: u32,
        /// In characters.
        tail: u32,
    },
    /// Keeps only size, SHA-256, and first and last line.
    Digest,
}

/// The notice of a shortened text (specification 000 §1.3): `kind` names what the content is, `limit` is what the
/// policy allowed in characters, `id` is where the host stores the original.
pub fn notice(original_chars: usize, kind: &str, limit: u64, id: &str, language: Language) -> String {
    match language {
        Language::English => {
            format!(
                "…(shortened from {original_chars} characters by the {kind} cap of {limit}; the host has it all, id {id})"
            )
        }
        Language::TraditionalChinese => {
            format!("…(已自動截斷，原長度 {original_chars}，超過 {kind} cap {limit}，完整內容仍在 host，id {id})")
        }
    }
}

/// Shortens a text to its first and last characters, with the notice after or between them; `None` when the text is no
/// longer than both together.
pub fn shorten(content: &str, head: u32, tail: u32, kind: &str, id: &str, language: Language) -> Option<String> {
    let limit = u64::from(head) + u64::from(tail);
    let chars = content.chars().count();
    if chars as u64 <= limit {
        return None;
    }
    let start = text::head(content, head as usize);
    let notice = notice(chars, kind, limit, id, language);
    let end = text::tail(content, tail as usize);
    let end = if begins_within_a_quoted_line(content, end) { Cow::from(format!("{QUOTE}{end}")) } else { end.into() };
    let lines: Vec<&str> = [start, &notice, &end].into_iter().filter(|line| !line.is_empty()).collect();
    Some(lines.join("\n"))
}

/// Whether the kept end of a text begins inside a quoted line, whose quotation mark is then cut off: without it the
/// rest of that line would appear unquoted.
fn begins_within_a_quoted_line(content: &str, end: &str) -> bool {
    let before = &content[..content.len() - end.len()];
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    !end.is_empty() && line < before.len() && content[line..].starts_with(QUOTE)
}

/// The most characters of a line in a digest.
const MAX_LINE_CHARS: usize = 120;

/// The digest that replaces a content: size, SHA-256, and its first and last line, by which a reader can recognise it.
pub fn digest(content: &str, kind: &str, id: &str, language: Language) -> String {
    let sha256 = text::hex(&Sha256::digest(content.as_bytes()));
    let chars = content.chars().count();
    let notice = match language {
        Language::English => {
            format!("…({kind} taken out, {chars} characters, sha256 {sha256}; the host has it all, id {id})")
        }
        Language::TraditionalChinese => {
            format!("…({kind} 內容已移出，原長度 {chars}，sha256 {sha256}，完整內容仍在 host，id {id})")
        }
    };
    let mut lines = content.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().map(line);
    let last = lines.next_back().map(line);
    [first, Some(notice), last].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn line(line: &str) -> String {
    let shown = text::head(line, MAX_LINE_CHARS);
    if shown.len() < line.len() { format!("{shown}…") } else { shown.to_owned() }
}

/// The same contents after the original's id has changed: their notices name the new id.
pub fn readdressed(blocks: &[Block], from: &str, to: &str) -> Vec<Block> {
    let readdress = |content: &str| {
        // How a notice ends in each language.
        ["，id ", ", id "]
            .iter()
            .fold(content.to_owned(), |content, id| content.replace(&format!("{id}{from})"), &format!("{id}{to})")))
    };
    let content = |block: &Block| block.content().map(|content| block.with_content(readdress(content)));
    blocks.iter().map(|block| content(block).unwrap_or_else(|| block.clone())).collect()
}

/// Reduces a block; `None` where that leaves it unchanged.
fn smaller(block: &Block, reduction: Reduction, kind: &str, id: &str, language: Language) -> Option<Block> {
    let text = match (block, reduction) {
        (Block::Image(image), Reduction::Digest) => return Some(Block::Text { text: image.digest(id, language) }),
        (_, Reduction::Shorten { head, tail }) => shorten(block.content()?, head, tail, kind, id, language)?,
        (_, Reduction::Digest) => digest(block.content()?, kind, id, language),
    };
    Some(block.with_content(text))
}

/// Reduces every content of a message. An image cannot be shortened, only digested. `None` when that would save
/// nothing.
pub fn blocks(
    original: &[Block],
    reduction: Reduction,
    kind: &str,
    id: &str,
    language: Language,
) -> Option<Vec<Block>> {
    let mut changed = false;
    let reduced = original
        .iter()
        .map(|block| match smaller(block, reduction, kind, id, language) {
            Some(smaller) if crate::tokens::block(&smaller) < crate::tokens::block(block) => {
                changed = true;
                smaller
            }
            _ => block.clone(),
        })
        .collect();
    changed.then_some(reduced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_shows_the_first_and_the_last_line() {
        let content = format!("\n$ cargo test\n{}\nerror: 3 failed\n\n", "running\n".repeat(500));
        let digest = digest(&content, "tool-result", "m7", Language::TraditionalChinese);
        let lines: Vec<&str> = digest.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "$ cargo test", "error: 3 failed"));
        let notice = format!("…(tool-result 內容已移出，原長度 {}，sha256 ", content.chars().count());
        assert!(lines[1].starts_with(&notice) && lines[1].ends_with("id m7)"), "{digest}");
    }

    #[test]
    fn what_was_quoted_stays_quoted_at_both_ends() {
        let shortened = |content: &str, tail| shorten(content, 4, tail, "attachment", "m1", Language::English);
        let last =
            |content: &str, tail| shortened(content, tail).and_then(|text| Some(text.lines().last()?.to_owned()));
        assert_eq!(last("A file:\n> do as I say, now", 7).as_deref(), Some("> ay, now"));
        assert_eq!(last("A file:\n> do\n> as I say", 10).as_deref(), Some("> as I say"));
        assert_eq!(last("A file:\n> do as I say", 1).as_deref(), Some("> y"));
        assert_eq!(last("plain words that say it", 2).as_deref(), Some("it"));
    }

    #[test]
    fn one_endless_line_is_shown_once_and_in_part() {
        let digest = digest(&"預".repeat(5_000), "mra-result", "m1", Language::TraditionalChinese);
        assert_eq!(digest.lines().count(), 2);
        assert!(digest.starts_with(&format!("{}…\n…(", "預".repeat(MAX_LINE_CHARS))), "{digest}");
    }
}
