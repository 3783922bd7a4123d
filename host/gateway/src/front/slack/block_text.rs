//! Reads the text of blocks as people see it.
//!
//! Slack adds block types and elements all the time, and apps send what nobody here has seen. So only the elements of
//! rich text, links and tables are read by their type; of everything else, each text is read wherever it stands.

use jiff::Timestamp;
use pmk_core::text;
use serde_json::{Map, Value};

use super::mrkdwn;

/// How deeply nested blocks are read.
const MAX_DEPTH: usize = 16;

/// More is not read. Slack allows 40,000 characters in a message.
const MAX_BYTES: usize = 160_000;

/// Texts that Slack writes where an app has given blocks alone.
const STAND_INS: [&str; 2] = ["This content can't be displayed.", "[no preview available]"];

/// The keys of texts, in the order in which people see them.
const TEXTS: [&str; 9] = ["title", "subtitle", "label", "text", "body", "description", "caption", "alt_text", "url"];

/// The keys of what people do not see: what opens on a click, and the look of an element.
const UNSEEN: [&str; 7] = ["confirm", "metadata", "option_groups", "options", "slack_file", "style", "workflow"];

/// Returns what a message says, given its text as it is read.
///
/// Beside the layout of an app, the text is for notifications alone. Beside rich text it says the same, and is better to
/// read.
pub(super) fn said(text: String, blocks: &Value, me: &str) -> String {
    let is_said_by_text = !text.trim().is_empty() && !STAND_INS.contains(&text.trim());
    if is_said_by_text && !is_layout(blocks) {
        return text;
    }
    read(blocks, me).unwrap_or(text)
}

/// Returns whether blocks, or those of messages, are more than rich text.
fn is_layout(blocks: &Value) -> bool {
    blocks.as_array().into_iter().flatten().any(|block| match block.pointer("/message/blocks") {
        Some(within) => is_layout(within),
        None => block.get("type").and_then(Value::as_str) != Some("rich_text"),
    })
}

/// Returns the text of blocks; `None` if they have none.
pub(super) fn read(blocks: &Value, me: &str) -> Option<String> {
    let mut reader = Reader { me, words: String::new() };
    reader.value(blocks, 0, false);
    let words = text::plain(&reader.words).trim().to_owned();
    (!words.is_empty()).then_some(words)
}

struct Reader<'a> {
    /// The bot, whose mention is left out.
    me: &'a str,
    words: String,
}

impl Reader<'_> {
    /// `is_inline`: it stands within a line.
    fn value(&mut self, value: &Value, depth: usize, is_inline: bool) {
        if depth > MAX_DEPTH || self.words.len() > MAX_BYTES {
            return;
        }
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.value(value, depth + 1, is_inline)),
            Value::Object(object) => {
                self.object(object, depth, is_inline);
                if !is_inline {
                    self.end_line();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize, is_inline: bool) {
        let word = |key: &str| object.get(key).and_then(Value::as_str);
        let kind = word("type").unwrap_or_default();
        match (kind, word("url")) {
            ("user", _) => self.name('@', word("user_id").filter(|user| *user != self.me)),
            ("usergroup", _) => self.name('@', word("usergroup_id")),
            ("broadcast", _) => self.name('@', word("range")),
            ("channel", _) => self.name('#', word("channel_id")),
            ("emoji", _) => {
                let name = word("name").map(|name| format!(":{name}:"));
                self.words.push_str(&name.unwrap_or_default());
            }
            ("date", _) => {
                let time = || Timestamp::from_second(object.get("timestamp")?.as_i64()?).ok();
                let shown = word("fallback").map(str::to_owned).or_else(|| time().map(|time| time.to_string()));
                self.words.push_str(&shown.unwrap_or_default());
            }
            // A link within a line, or a button that leads somewhere.
            (_, Some(url)) if is_inline || matches!(kind, "button" | "url") => {
                let label = ["text", "title"].iter().find_map(|key| self.label(object.get(*key)?, depth));
                mrkdwn::push_link(&mut self.words, url, label.as_deref());
            }
            _ => self.parts(object, kind, depth, is_inline),
        }
    }

    /// Reads everything within an object.
    fn parts(&mut self, object: &Map<String, Value>, kind: &str, depth: usize, is_inline: bool) {
        // Their elements make up lines; the parts of anything else are lines of their own.
        let is_line = is_inline || matches!(kind, "rich_text_section" | "rich_text_preformatted" | "rich_text_quote");
        let other = object.keys().map(String::as_str).filter(|key| !TEXTS.contains(key) && !UNSEEN.contains(key));
        for key in TEXTS.into_iter().chain(other) {
            match object.get(key) {
                Some(Value::String(text)) if TEXTS.contains(&key) => {
                    match kind {
                        "mrkdwn" => self.words.push_str(&mrkdwn::plain(text, self.me)),
                        _ => self.words.push_str(text),
                    }
                    if !is_line {
                        self.end_line();
                    }
                }
                Some(Value::Array(rows)) if key == "rows" => rows.iter().for_each(|row| self.row(row, depth + 1)),
                Some(within) => self.value(within, depth + 1, is_line),
                None => {}
            }
        }
    }

    /// Reads a row of a table as one line.
    fn row(&mut self, row: &Value, depth: usize) {
        if self.words.len() > MAX_BYTES {
            return;
        }
        let cells = row.as_array().into_iter().flatten();
        let cells: Vec<String> = cells.map(|cell| self.label(cell, depth).unwrap_or_default()).collect();
        self.words.push_str(&cells.join(" | "));
        self.end_line();
    }

    /// Returns the text of a part, on one line; `None` if it has none.
    fn label(&mut self, value: &Value, depth: usize) -> Option<String> {
        if let Value::String(label) = value {
            return Some(label.clone()).filter(|label| !label.is_empty());
        }
        let before = std::mem::take(&mut self.words);
        self.value(value, depth + 1, false);
        let label = std::mem::replace(&mut self.words, before);
        let label = label.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        Some(label.trim().to_owned()).filter(|label| !label.is_empty())
    }

    fn name(&mut self, sigil: char, name: Option<&str>) {
        if let Some(name) = name {
            self.words.push(sigil);
            self.words.push_str(name);
        }
    }

    fn end_line(&mut self) {
        if !self.words.is_empty() && !self.words.ends_with('\n') {
            self.words.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(blocks: Value) -> String {
        read(&blocks, "UBOT").unwrap_or_default()
    }

    fn rich(elements: Value) -> Value {
        json!([{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}])
    }

    #[test]
    fn every_element_of_rich_text_is_read_within_its_line() {
        let elements = json!([
            {"type": "user", "user_id": "UBOT"}, {"type": "text", "text": " ask "}, {"type": "user", "user_id": "U3"},
            {"type": "text", "text": ", "}, {"type": "usergroup", "usergroup_id": "S1"}, {"type": "text", "text": " or "},
            {"type": "broadcast", "range": "here"}, {"type": "text", "text": " in "},
            {"type": "channel", "channel_id": "C1"}, {"type": "text", "text": " "}, {"type": "emoji", "name": "wave"},
            {"type": "text", "text": " by "}, {"type": "date", "timestamp": 1_720_710_212, "format": "{date}"},
            {"type": "text", "text": " or "}, {"type": "date", "timestamp": 1, "format": "{date}", "fallback": "Friday"},
            {"type": "text", "text": ": "}, {"type": "link", "url": "https://a.b/issues/12", "text": "12"},
            {"type": "text", "text": " "}, {"type": "link", "url": "https://a.b"}, {"type": "new", "text": "!"},
        ]);
        let line = "ask @U3, @S1 or @here in #C1 :wave: by 2024-07-11T15:03:32Z or Friday: \
                    12 (https://a.b/issues/12) https://a.b!";
        assert_eq!(shown(rich(elements)), line);
    }

    #[test]
    fn parts_of_an_apps_layout_stand_on_lines_of_their_own() {
        let text = |text: &str| json!({"type": "mrkdwn", "text": text});
        let button = |label: &str| {
            json!({"type": "button", "text": {"type": "plain_text", "text": label}, "value": "a b",
                                          "confirm": {"title": text("Sure?")}})
        };
        let mut linked = button("Open");
        linked["url"] = json!("https://a.b/open");
        let blocks = json!([
            {"type": "header", "text": {"type": "plain_text", "text": "Disk full"}},
            {"type": "section", "text": text("on <https://a.b|db1>"), "fields": [text("*Since:*\n10:01"), text("*By:* U2")],
             "accessory": linked},
            {"type": "divider"},
            {"type": "context", "elements": [{"type": "image", "image_url": "https://a.b/c.png", "alt_text": "a cat"},
                                             text("prod &amp; test")]},
            {"type": "markdown", "text": "## More"},
            {"type": "actions", "elements": [button("Acknowledge")]},
        ]);
        let lines = "Disk full\non db1 (https://a.b)\nOpen (https://a.b/open)\n*Since:*\n10:01\n*By:* U2\na cat\n\
                     prod & test\n## More\nAcknowledge";
        assert_eq!(shown(blocks), lines);
    }

    #[test]
    fn a_row_of_a_table_is_a_line() {
        let raw = |text: &str| json!({"type": "raw_text", "text": text});
        let rich = rich(json!([{"type": "text", "text": "97 "}, {"type": "link", "url": "https://a.b", "text": "%"}]));
        let rows = json!([[raw("host"), raw("load")], [raw("db1"), rich[0]], [raw("db2"), {}]]);
        let table = json!([{"type": "table", "rows": rows}]);
        assert_eq!(shown(table), "host | load\ndb1 | 97 % (https://a.b)\ndb2 |");
    }

    #[test]
    fn a_block_of_a_type_that_nobody_knows_is_read_by_its_texts() {
        let card = json!([{"type": "card_of_2030", "block_id": "b 1", "title": {"type": "plain_text", "text": "Deploy"},
                           "subtitle": "to prod", "panels": [{"body": {"type": "mrkdwn", "text": "it &lt;failed&gt;"}}]}]);
        assert_eq!(shown(card), "Deploy\nto prod\nit <failed>");
        for none in [json!(null), json!(7), json!([7, "x", []]), json!([{"type": "divider"}])] {
            assert_eq!(read(&none, "UBOT"), None, "{none}");
        }
        assert_eq!(shown(rich(json!([{"type": "text", "text": "pay\u{202e}\u{200b}pal"}]))), "paypal");
    }

    #[test]
    fn what_is_nested_without_end_is_read_to_a_bound() {
        let mut nested = json!({"text": "x"});
        for _ in 0..100 {
            nested = json!([{"elements": nested, "text": "y".repeat(10_000)}]);
        }
        assert!(shown(nested).len() <= MAX_BYTES + 20_000);
    }
}
