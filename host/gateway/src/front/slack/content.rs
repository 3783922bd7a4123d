//! The content of a message in Slack's form: a `markdown` block with a text for notifications, or a text alone.
//!
//! Slack documents 12,000 characters of Markdown per message, and refuses fewer if a text is sent with them
//! (`msg_blocks_too_long` near 13,200 for all together). So a block has at most [`MAX_BLOCK_CHARS`], and its text is
//! short.
//!
//! In such a block the text is not escaped, and Slack does not document how it reads `<!channel>` or `<@U1>` there. So
//! anything that would be a mention in Slack's own format, however Markdown may spell it, is broken by an invisible
//! character, and pings are sent only as [`mrkdwn`](super::mrkdwn).

use std::{borrow::Cow, sync::LazyLock};

use pmk_core::text;
use regex::Regex;
use serde_json::{Value, json};

use super::{blocks, markdown, mrkdwn};
use crate::{
    chat::Button,
    front::lines::{self, Kind},
    spelling,
};

/// The most characters of a block's Markdown, and how many more it may have after its mentions are broken.
pub(super) const MAX_BLOCK_CHARS: usize = 11_000;
const MAX_BREAKS: usize = 500;

/// The most bytes of the accompanying text, and how many characters of a longer one are kept.
const MAX_TEXT_BYTES: usize = 2_000;
const HEAD_CHARS: usize = 600;

/// Word joiner: no width, no line break, no letter.
const JOINER: char = '\u{2060}';

/// The content of a message.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Escaped.
    text: String,
    blocks: Vec<Value>,
}

impl Content {
    /// Returns content with a text that is already escaped.
    pub(super) fn text(escaped: String) -> Content {
        Content { text: escaped, blocks: vec![] }
    }

    /// Returns Markdown as a block; `None` if it is too long for one, or has a link that may look like another there.
    pub(super) fn markdown(source: &str) -> Option<Content> {
        let shown = with_emoji(&without_mentions(&markdown::honest(&lines::at_margin(source))?));
        if shown.chars().count() > MAX_BLOCK_CHARS + MAX_BREAKS {
            return None;
        }
        Some(Content { text: beside(source), blocks: vec![json!({"type": "markdown", "text": shown})] })
    }

    /// Returns the escaped text and the blocks.
    pub(super) fn parts(&self) -> (&str, &[Value]) {
        (&self.text, &self.blocks)
    }

    /// Returns the content with these buttons under it.
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

/// Returns the text that accompanies a block: all of it, or its beginning.
fn beside(source: &str) -> String {
    let rendered = markdown::render(source, &[]);
    if rendered.len() <= MAX_TEXT_BYTES {
        return rendered;
    }
    let head = markdown::render(text::head(source, HEAD_CHARS), &[]);
    if head.len() > MAX_TEXT_BYTES { mrkdwn::escape("…") } else { format!("{head} …") }
}

/// Replaces an emoji name at the beginning of a line, as in the bot's own texts, by the emoji itself: Slack does not
/// document whether it reads `:x:` in Markdown.
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

/// What a mention may begin with: its own characters, or an entity.
const BEGINNINGS: [char; 3] = ['<', '&', '@'];

/// The most characters that are read of a possible mention.
const MENTION_CHARS: usize = 80;

/// Breaks everything that Slack could take for a mention in Markdown.
pub(super) fn without_mentions(source: &str) -> String {
    static MENTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // An id has no small letters. At the end of a text it may go on in the next one.
        let id = r"[@#](?:[A-Z0-9]+[<>|&\\]|[A-Z0-9]*$)";
        let word = "!(?i:channel|here|everyone|subteam|date)";
        Regex::new(&format!(r"^(?:<(?:{id}|{word})|@(?:channel|here|everyone)\b)")).ok()
    });
    let Some(mention) = &*MENTION else { return source.replace('<', &format!("<{JOINER}")) };
    let mut shown = String::with_capacity(source.len());
    let mut rest = source;
    // Only possible beginnings are examined, not every character of a long text.
    while let Some(start) = rest.find(BEGINNINGS) {
        let (before, from) = rest.split_at(start);
        shown.push_str(before);
        let (read, first) = as_read(from);
        let is_read = mention.is_match(&read);
        // Slack may look for mentions before it reads the Markdown, or after it.
        let is_one = is_read || mention.is_match(from);
        // After the bracket, or the `@`. What follows may hold the next one.
        let opening = if is_read { first } else { 1 };
        shown.push_str(&from[..opening]);
        if is_one {
            shown.push(JOINER);
        }
        rest = &from[opening..];
    }
    shown.push_str(rest);
    shown
}

/// Returns the beginning of a text as a Markdown parser reads it, without escapes and entities, and how many bytes its
/// first character is written in.
fn as_read(text: &str) -> (String, usize) {
    let (mut read, mut first, mut at) = (String::new(), None, 0);
    for _ in 0..MENTION_CHARS {
        let rest = &text[at..];
        let mut chars = rest.chars();
        let (Some(c), next) = (chars.next(), chars.next()) else { break };
        let entity = (c == '&').then(|| spelling::entity(rest)).flatten();
        let escaped = next.filter(|next| c == '\\' && next.is_ascii_punctuation());
        at += match (entity, escaped) {
            (Some((characters, written)), _) => {
                read.push_str(&characters);
                written
            }
            (None, Some(escaped)) => {
                read.push(escaped);
                2
            }
            (None, None) => {
                read.push(c);
                c.len_utf8()
            }
        };
        first.get_or_insert(at);
    }
    (read, first.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use comrak::nodes::NodeValue;
    use proptest::prelude::*;

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
            r"<\!channel>",
            r"<\@U1>",
            r"\<\@U1\|han\>",
            "<&#33;channel>",
            "<&#64;U1>",
            "&#60;&commat;U1&#x3e;",
            "<!ch&#97;nnel>",
            "<@&#85;1>",
            "&#064;channel",
            "@ch&#97;nnel",
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

    /// Regression: the rest of a nested list was shown as code.
    #[test]
    fn a_part_that_begins_within_a_list_is_no_code() {
        let shown = |source: &str| Content::markdown(source).expect("short").blocks[0]["text"].clone();
        assert_eq!(
            shown("    - nine\n      more\n    - ten\n- two\n    - one\n"),
            "- nine\n  more\n- ten\n- two\n    - one\n"
        );
        assert_eq!(
            shown("    ```rust\n    let x = 1;\n      y\n    ```\n\ntext"),
            "```rust\nlet x = 1;\n  y\n```\n\ntext"
        );
        assert_eq!(shown("    ```\n    a\n\n    b\n    ```\n    - c"), "```\na\n\nb\n```\n- c");
        assert_eq!(shown("text\n\n    code\n"), "text\n\n    code\n");
    }

    /// Regression: code that somebody copied had an invisible character in it, and did not compile.
    #[test]
    fn code_that_only_looks_like_a_mention_stays_as_it_is() {
        for code in [
            "List<@NotNull String> names;",
            "Map<@Unsigned Long, @U Integer>",
            "<#if user??>${user}</#if>",
            "<#list xs as x>",
            "vec<@u1>",
            "a<#>b <@>",
        ] {
            assert_eq!(without_mentions(code), code);
        }
    }

    #[test]
    fn what_follows_a_mention_is_looked_at_too_and_so_is_one_that_is_cut() {
        for (source, marks) in [
            ("<@U1>&lt;!here&gt;", 2),
            ("&lt;@U1&lt;@U2&gt;", 2),
            ("<@U1|@here>", 2),
            (r"\<@U1\> and \<@U1\|han>", 2),
            ("wait for <@U02", 1),
            ("see <#", 1),
        ] {
            let shown = without_mentions(source);
            assert_eq!(
                (shown.matches(JOINER).count(), shown.replace(JOINER, "")),
                (marks, source.to_owned()),
                "{shown}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Regression: `<\!channel>` and `&#064;channel` became mentions once their Markdown was read.
        #[test]
        fn nothing_that_markdown_makes_of_a_block_mentions_anybody(
            source in "(<|&lt;|&#60;|&#x3C;|\\\\|!|&#33;|&excl;|@|&#064;|&commat;|channel|ch&#97;nnel|here|U1|&#85;1|>|\\||&gt;| |a){0,12}"
        ) {
            let mention = Regex::new(r"<(?:@[A-Z0-9]+[>|]|!(?:channel|here))|@(?:channel|here)\b").expect("a pattern");
            let shown = without_mentions(&source);
            prop_assert_eq!(shown.replace(JOINER, ""), source);
            prop_assert!(!mention.is_match(&shown), "{}", shown);
            for text in texts(&shown) {
                prop_assert!(!mention.is_match(&text), "{} in {}", text, shown);
            }
        }
    }

    /// The texts that Markdown is read as.
    fn texts(source: &str) -> Vec<String> {
        let arena = comrak::Arena::new();
        let document = comrak::parse_document(&arena, source, &comrak::Options::default());
        let mut texts = vec![String::new()];
        for node in document.descendants() {
            match (&node.data().value, texts.last_mut()) {
                // One text may be several nodes.
                (NodeValue::Text(text), Some(last)) => last.push_str(text),
                (NodeValue::HtmlInline(html), _) => texts.extend([html.clone(), String::new()]),
                (NodeValue::HtmlBlock(html), _) => texts.extend([html.literal.clone(), String::new()]),
                _ => texts.push(String::new()),
            }
        }
        texts
    }

    /// Regression: in a block, a link was whatever its label said that it was.
    #[test]
    fn a_link_that_looked_like_another_address_shows_its_own() {
        for (source, expected) in [
            ("see [https://a.b](https://c.d) there", "see https://a.b (<https://c.d>) there"),
            (
                "- [**login.acme.example**](https://evil.example/x)",
                "- **login.acme.example** (<https://evil.example/x>)",
            ),
            ("| 表 |\n|--|\n| 請[www.a.b](https://c.d) |", "| 表 |\n|--|\n| 請www.a.b (<https://c.d>) |"),
            (
                "[a.example][1] or [b.example]\n\n[1]: https://c.d\n[b.example]: https://c.d",
                "a.example (<https://c.d>) or b.example (<https://c.d>)\n\n[1]: https://c.d\n[b.example]: https://c.d",
            ),
            ("[see ![https://a.b](https://c.d)](https://e.f)", "see https://a.b (<https://c.d>) (<https://e.f>)"),
            ("[https://a.b](slack://user)", "https://a.b (slack://user)"),
            (
                "<https://c.d|https://a.b/login> <https://c.d|the page>",
                "https://a.b/login (<https://c.d>) <https://c.d|the page>",
            ),
        ] {
            let content = Content::markdown(source).expect("it can be written");
            assert_eq!(content.blocks[0]["text"], expected);
            assert!(!content.text.contains("|https://a.b>") && !content.text.contains(".example>"), "{}", content.text);
        }
        for honest in [
            "[a.b](https://a.b/) [https://a.b/c](https://a.b/c) [x@a.b](mailto:x@a.b) [the page](https://a.b/c)",
            "`[https://a.b](https://c.d)`\n\n```\n[https://a.b](https://c.d)\n```",
            "[1]: https://a.b",
            "<https://a.b/c> https://c.d [ ] a.b",
        ] {
            assert_eq!(Content::markdown(honest).expect("short").blocks[0]["text"], honest);
        }
    }
}
