//! What a message says, as Slack takes it: a `markdown` block with a text that stands for it in notifications, or a text alone.
//!
//! Slack documents 12,000 characters of Markdown for a message, and refuses less where a text comes with it
//! (`msg_blocks_too_long` near 13,200 for all together). So a block has [`MAX_BLOCK_CHARS`] at most, and the text beside it is short.
//!
//! In such a block the text is not escaped, and how Slack reads `<!channel>` or `<@U1>` in there is nowhere promised. So what
//! would be a mention in Slack's own format is broken by a character that nobody sees, and pings go as
//! [`mrkdwn`](super::mrkdwn) only.

use std::{borrow::Cow, sync::LazyLock};

use pmk_core::text;
use regex::Regex;
use serde_json::{Value, json};

use super::{
    blocks,
    lines::{self, Kind},
    markdown, mrkdwn,
};
use crate::chat::Button;

/// The most characters of the Markdown of a block, and how many more it may have once its mentions are broken.
pub(super) const MAX_BLOCK_CHARS: usize = 11_000;
const MAX_BREAKS: usize = 500;

/// The most bytes of the text beside it, and how many characters it begins with where it would be longer.
const MAX_TEXT_BYTES: usize = 2_000;
const HEAD_CHARS: usize = 600;

/// Word joiner: no width, no line break, no letter.
const JOINER: char = '\u{2060}';

/// What a message says.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Escaped.
    text: String,
    blocks: Vec<Value>,
}

impl Content {
    /// A text that is escaped already.
    pub(super) fn text(escaped: String) -> Content {
        Content { text: escaped, blocks: vec![] }
    }

    /// Markdown as a block; `None` where it is too long for one.
    pub(super) fn markdown(source: &str) -> Option<Content> {
        let shown = with_emoji(&without_mentions(source));
        if shown.chars().count() > MAX_BLOCK_CHARS + MAX_BREAKS {
            return None;
        }
        Some(Content { text: beside(source), blocks: vec![json!({"type": "markdown", "text": shown})] })
    }

    /// The text, escaped, and the blocks.
    pub(super) fn parts(&self) -> (&str, &[Value]) {
        (&self.text, &self.blocks)
    }

    /// With these buttons under it.
    pub(super) fn with_buttons(&self, buttons: &[Button]) -> Cow<'_, Content> {
        if buttons.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut with = self.clone();
        match with.blocks.is_empty() {
            true => with.blocks = blocks::blocks(&with.text, buttons).into_iter().map(|block| json!(block)).collect(),
            false => with.blocks.push(json!(blocks::row(buttons))),
        }
        Cow::Owned(with)
    }
}

/// The text that stands for a block: all of it, or what it begins with.
fn beside(source: &str) -> String {
    let rendered = markdown::render(source, &[]);
    if rendered.len() <= MAX_TEXT_BYTES {
        return rendered;
    }
    let head = markdown::render(text::head(source, HEAD_CHARS), &[]);
    if head.len() > MAX_TEXT_BYTES { mrkdwn::escape("…") } else { format!("{head} …") }
}

/// What stands for an emoji at the beginning of a line, as in the bot's own words, as the emoji itself: whether Slack reads
/// `:x:` in Markdown is nowhere promised.
fn with_emoji(source: &str) -> String {
    let mut shown = String::with_capacity(source.len());
    for line in lines::scan(source) {
        let text = &source[line.range];
        let named = text.strip_prefix(':').and_then(|rest| rest.split_once(':'));
        match named.and_then(|(name, rest)| Some((gh_emoji::get(name)?, rest))) {
            Some((emoji, rest)) if line.kind == Kind::Text => {
                shown.push_str(emoji);
                shown.push_str(rest);
            }
            _ => shown.push_str(text),
        }
    }
    shown
}

/// Nothing in it is a mention, whatever Slack takes for one in Markdown.
pub(super) fn without_mentions(source: &str) -> String {
    static MENTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let opening = r"(?:<|&lt;|&#0*60;|&#x0*3c;)(?:@[A-Z]|#[A-Z]|!(?:channel|here|everyone|subteam|date))";
        Regex::new(&format!(r"^(?:(?i:{opening})|@(?:channel|here|everyone)\b)")).ok()
    });
    let Some(mention) = &*MENTION else { return source.replace('<', &format!("<{JOINER}")) };
    let mut shown = String::with_capacity(source.len());
    let mut rest = source;
    // Looked for where one may begin, and not at each character of a long text.
    while let Some(start) = rest.find(['<', '&', '@']) {
        let (before, from) = rest.split_at(start);
        shown.push_str(before);
        let Some(found) = mention.find(from) else {
            shown.push_str(&from[..1]);
            rest = &from[1..];
            continue;
        };
        // Behind the bracket, or the `@`.
        let opening = found.as_str().rfind(['<', ';']).map_or(1, |at| at + 1);
        shown.push_str(&from[..opening]);
        shown.push(JOINER);
        shown.push_str(&from[opening..found.end()]);
        rest = &from[found.end()..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_a_block_with_a_text_that_stands_for_it() {
        let content = Content::markdown("**Yes**, 1 < 2.").expect("short");
        let block = json!({"type": "markdown", "text": "**Yes**, 1 < 2."});
        assert_eq!(content.parts(), ("*Yes*, 1 &lt; 2.", &[block][..]));
    }

    #[test]
    fn the_text_beside_a_long_block_is_short() {
        let content = Content::markdown(&"**word** & ".repeat(900)).expect("it fits");
        let (text, _) = content.parts();
        assert!(text.len() <= MAX_TEXT_BYTES && text.ends_with(" …") && text.starts_with("*word* &amp; "), "{text}");
        assert!(Content::markdown(&"x".repeat(MAX_BLOCK_CHARS + MAX_BREAKS + 1)).is_none());
    }

    #[test]
    fn a_line_that_begins_with_an_emoji_has_it() {
        assert_eq!(
            with_emoji(":x: no\nat :x:\n:nothing: 10:30:\n```\n:x:\n```\n"),
            "❌ no\nat :x:\n:nothing: 10:30:\n```\n:x:\n```\n"
        );
    }

    #[test]
    fn nothing_in_a_block_mentions_anybody_and_nothing_else_changes() {
        for mention in [
            "<!channel>",
            "&lt;!here&gt;",
            "&#x3C;@U1>",
            "<!here|x>",
            "<!everyone>",
            "<!subteam^S1>",
            "<@U1>",
            "<@W1|han>",
            "<#C1>",
            "@here",
            "@channel",
        ] {
            for around in ["{}", "see `{}` there", "```\n{}\n```"] {
                let source = around.replace("{}", mention);
                let shown = without_mentions(&source);
                assert!(!shown.contains(mention), "{shown}");
                assert_eq!(shown.replace(JOINER, ""), source);
            }
        }
        for plain in
            ["<!-- a comment -->", "<!DOCTYPE html>", "<https://a.example>", "a < b", "x@hereford.example", "<div>"]
        {
            assert_eq!(without_mentions(plain), plain);
        }
    }
}
