//! What comes with a Slack message: `attachments` (forwarded messages, link previews) and `files`.
//!
//! Both are read item by item and key by key: if an item has an unexpected shape, only the affected part of it is
//! left out, and never the message.

use pmk_core::{session_key, text};
use serde_json::{Map, Value};

use super::{block_text, mrkdwn};
use crate::chat::{Attachments, Content, File, FileSkipReason, Quote, QuoteKind};

/// Further quotes are left out.
const MAX_QUOTES: usize = 20;

/// Further files are counted and not read. Slack allows ten files per message, and a forwarded message brings its
/// own files.
const MAX_FILES: usize = 20;

/// The most characters of one quote. A Slack message has up to 40,000.
const MAX_QUOTE_CHARS: usize = 40_000;

/// The most characters of a name.
const MAX_NAME_CHARS: usize = 120;

/// The name shown for a file without one.
const NAMELESS: &str = "?";

/// Types that are text, in addition to `text/…`.
const TEXT_TYPES: [&str; 13] = [
    "application/json",
    "application/ld+json",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/sql",
    "application/javascript",
    "application/typescript",
    "application/x-sh",
    "application/x-httpd-php",
    "application/csv",
];

/// Image types that models accept.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The keys of an image's previews, the largest first.
const PREVIEWS: [&str; 5] = ["thumb_1024", "thumb_960", "thumb_800", "thumb_720", "thumb_480"];

/// Name extensions of text files, for files whose type does not say so: Slack sometimes takes logs for binary
/// files.
const TEXT_ENDINGS: [&str; 40] = [
    "c",
    "cc",
    "cfg",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "diff",
    "env",
    "go",
    "h",
    "hpp",
    "ini",
    "java",
    "js",
    "json",
    "jsonl",
    "kt",
    "log",
    "lua",
    "md",
    "patch",
    "php",
    "pl",
    "properties",
    "py",
    "rb",
    "rs",
    "scala",
    "sh",
    "sql",
    "swift",
    "toml",
    "ts",
    "tsv",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// Returns what comes with a message; `me` is the bot.
pub(super) fn read(attachments: &Value, files: &Value, me: &str) -> Attachments {
    let attachments: Vec<&Map<String, Value>> = objects(attachments).take(MAX_QUOTES).collect();
    let quotes = attachments.iter().filter_map(|attachment| quote(attachment, me)).collect();
    // A forwarded message brings its files.
    let forwarded = attachments.iter().filter_map(|attachment| attachment.get("files"));
    let mut files = std::iter::once(files).chain(forwarded).flat_map(elements);
    let first = files.by_ref().take(MAX_FILES).map(file).collect();
    Attachments { quotes, files: first, left_out: files.count(), thread: None }
}

/// Returns the texts of `attachments` alone, for a message that is itself quoted.
pub(super) fn words(attachments: &Value, me: &str) -> Vec<String> {
    let quotes = objects(attachments).take(MAX_QUOTES).filter_map(|attachment| quote(attachment, me));
    quotes.map(|quote| quote.text).collect()
}

/// Returns the names of files.
pub(super) fn names(files: &Value) -> impl Iterator<Item = String> + '_ {
    elements(files).take(MAX_FILES).map(|file| file.as_object().map_or_else(|| NAMELESS.to_owned(), name))
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn objects(list: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    elements(list).filter_map(Value::as_object)
}

fn quote(attachment: &Map<String, Value>, me: &str) -> Option<Quote> {
    let field = |key: &str| attachment.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let plain = |key: &str| field(key).map(|text| mrkdwn::plain(text, me));
    let mut blocks = ["message_blocks", "blocks"].iter().filter_map(|key| attachment.get(*key));
    let blocks = blocks.find(|blocks| elements(blocks).next().is_some()).unwrap_or(&Value::Null);
    let body = Some(block_text::said(plain("text").unwrap_or_default(), blocks, me)).filter(|body| !body.is_empty());
    let mut lines: Vec<String> = [plain("pretext"), plain("title"), body].into_iter().flatten().collect();
    for field in attachment.get("fields").map(objects).into_iter().flatten() {
        let part = |key: &str| field.get(key).and_then(Value::as_str).map(|text| mrkdwn::plain(text, me));
        lines.extend([part("title"), part("value")].into_iter().flatten());
    }
    if lines.is_empty() {
        // Slack's own text for what it cannot show; some attachments have no other text.
        lines.extend(plain("fallback"));
    }
    let words = lines.join("\n");
    let words = text::plain(&words);
    let text = text::head(words.trim(), MAX_QUOTE_CHARS);
    let is_forwarded = ["is_share", "is_msg_unfurl"].iter().any(|key| attachment.get(*key) == Some(&Value::Bool(true)))
        || attachment.contains_key("message_blocks");
    let by = ["author_name", "author_id", "service_name", "from_url"].iter().find_map(|key| field(key));
    (!text.is_empty()).then(|| Quote {
        kind: if is_forwarded { QuoteKind::Forwarded } else { QuoteKind::Aside },
        by: text::head(&text::plain_line(by.unwrap_or_default()), MAX_NAME_CHARS).to_owned(),
        text: text.to_owned(),
        is_cut: text.len() < words.trim().len(),
    })
}

/// Returns a file as Slack describes it.
pub(super) fn file(file: &Value) -> File {
    let nothing = Map::new();
    let file = file.as_object().unwrap_or(&nothing);
    let word = |key: &str| file.get(key).and_then(Value::as_str);
    let (whole_name, name) = (whole_name(file), name(file));
    let address = word("url_private_download").or_else(|| word("url_private")).map(str::to_owned);
    // From another workspace; nothing but its id is known.
    let id = word("id").filter(|_| word("file_access") == Some("check_file_info")).map(str::to_owned);
    let content = match (word("mode"), &address) {
        _ if id.is_some() => Content::Awaited,
        (Some("tombstone" | "hidden_by_limit"), _) => Content::Unread(FileSkipReason::Gone),
        (Some("external"), _) => Content::Unread(FileSkipReason::Elsewhere),
        (mode, address) if mode == Some("snippet") || is_text(word("mimetype"), &whole_name) => match address {
            Some(_) => Content::Awaited,
            None => Content::Unread(FileSkipReason::NotFetched),
        },
        (_, Some(_)) if word("mimetype").is_some_and(|kind| IMAGE_TYPES.contains(&kind)) => Content::AwaitedImage,
        _ if word("mimetype").is_some_and(|kind| kind.starts_with("image/")) => {
            Content::Unread(FileSkipReason::OddImage)
        }
        _ => Content::Unread(FileSkipReason::NoText),
    };
    let preview = match content {
        Content::AwaitedImage => PREVIEWS.into_iter().find_map(word).map(str::to_owned),
        _ => None,
    };
    File { id, name, bytes: file.get("size").and_then(Value::as_u64), address, preview, content }
}

fn name(file: &Map<String, Value>) -> String {
    text::head(&whole_name(file), MAX_NAME_CHARS).to_owned()
}

/// Returns a name of any length, which still has its extension.
fn whole_name(file: &Map<String, Value>) -> String {
    let given = ["name", "title", "id"].iter().filter_map(|key| file.get(*key)?.as_str());
    let mut names = given.map(text::plain_line).filter(|name| !name.is_empty());
    names.next().unwrap_or_else(|| NAMELESS.to_owned())
}

fn is_text(kind: Option<&str>, name: &str) -> bool {
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    // By its extension, a TypeScript source may be typed as a video.
    kind.starts_with("text/")
        || TEXT_TYPES.contains(&kind.as_str())
        || !["image/", "audio/"].iter().any(|media| kind.starts_with(media))
            && ending.is_some_and(|ending| TEXT_ENDINGS.contains(&ending.as_str()))
}

/// Returns the author of a message in a thread: the id of a person, or else of an app.
pub(super) fn writer(message: &Map<String, Value>) -> Option<&str> {
    let ids = ["user", "bot_id"].iter().filter_map(|key| message.get(*key)?.as_str());
    ids.into_iter().find(|id| session_key::is_id(id))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn quotes(attachments: Value) -> Vec<(QuoteKind, String, String)> {
        let Attachments { quotes, .. } = read(&attachments, &Value::Null, "UBOT");
        quotes.into_iter().map(|quote| (quote.kind, quote.by, quote.text)).collect()
    }

    fn contents(files: Value) -> Vec<(String, Content)> {
        let Attachments { files, .. } = read(&Value::Null, &files, "UBOT");
        files.into_iter().map(|file| (file.name, file.content)).collect()
    }

    #[test]
    fn a_forwarded_message_is_read_with_who_wrote_it() {
        let forwarded = json!([{
            "is_share": true, "author_name": "Ann\nLee", "author_id": "U2", "text": "deploy <https://a.b|here> &amp; wait",
            "fallback": "[Nov 3rd] Ann: deploy", "ts": "1.2", "channel_id": "C9",
        }]);
        assert_eq!(
            quotes(forwarded),
            [(QuoteKind::Forwarded, "Ann Lee".into(), "deploy here (https://a.b) & wait".into())]
        );
    }

    #[test]
    fn words_that_stand_in_blocks_alone_are_found_there() {
        let section = json!({"type": "rich_text_section", "elements": [
            {"type": "text", "text": "ask "}, {"type": "user", "user_id": "U3"}, {"type": "text", "text": " now"}]});
        let list = json!({"type": "rich_text_list", "elements": [
            {"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]},
            {"type": "rich_text_section", "elements": [{"type": "link", "url": "https://a.b"}]}]});
        let blocks = json!([{"type": "rich_text", "elements": [section, list]}]);
        let forwarded = json!([{"author_id": "U2", "message_blocks": [{"team": "T1", "message": {"blocks": blocks}}]}]);
        assert_eq!(quotes(forwarded), [(QuoteKind::Forwarded, "U2".into(), "ask @U3 now\none\nhttps://a.b".into())]);
    }

    /// Regression: Chinese text in blocks was cut at a third of the limit, without being marked as
    /// cut.
    #[test]
    fn a_long_message_is_cut_by_characters_and_known_to_be() {
        let forwarded = |sections: usize| {
            let section =
                json!({"type": "rich_text_section", "elements": [{"type": "text", "text": "預算".repeat(500)}]});
            let blocks = json!([{"type": "rich_text", "elements": vec![section; sections]}]);
            let attachments = json!([{"author_id": "U2", "message_blocks": [{"message": {"blocks": blocks}}]}]);
            let quote = read(&attachments, &Value::Null, "UBOT").quotes.remove(0);
            (quote.text.chars().count(), quote.is_cut)
        };
        assert_eq!(forwarded(39), (39 * 1_001 - 1, false));
        assert_eq!(forwarded(90), (MAX_QUOTE_CHARS, true));
    }

    #[test]
    fn what_nobody_sees_is_not_read() {
        let forwarded =
            json!([{"is_share": true, "author_id": "U2", "text": "pay\u{202e}\u{200b}pal\u{0}\u{1b}[2J 👨‍👩‍👧"}]);
        assert_eq!(quotes(forwarded)[0].2, "paypal[2J 👨‍👩‍👧");
        assert_eq!(quotes(json!([{"is_share": true, "text": "\u{200b}\u{2060}"}])), []);
    }

    #[test]
    fn what_a_link_leads_to_is_no_forwarded_message() {
        let unfurled = json!([{"service_name": "Wiki", "title": "Plans", "title_link": "https://w", "text": "Be quick.",
                               "fields": [{"title": "Owner", "value": "ann"}, 7]}]);
        assert_eq!(quotes(unfurled), [(QuoteKind::Aside, "Wiki".into(), "Plans\nBe quick.\nOwner\nann".into())]);
        assert_eq!(quotes(json!([{"fallback": "a chart"}])), [(QuoteKind::Aside, String::new(), "a chart".into())]);
    }

    /// Regression: people saw the blocks, and the model `[no preview available]`.
    #[test]
    fn blocks_of_an_attachment_come_before_what_stands_in_for_them() {
        let blocks = json!([{"type": "section", "text": {"type": "plain_text", "text": "disk full"}}]);
        let quoted =
            |attachment: Value| quotes(json!([attachment])).into_iter().map(|(.., text)| text).collect::<Vec<_>>();
        assert_eq!(quoted(json!({"fallback": "[no preview available]", "blocks": blocks})), ["disk full"]);
        assert_eq!(quoted(json!({"fallback": "disk full on db1", "blocks": blocks})), ["disk full"]);
        assert_eq!(quoted(json!({"fallback": "a chart", "blocks": [{"type": "divider"}]})), ["a chart"]);
        assert_eq!(quoted(json!({"text": "kept", "blocks": []})), ["kept"]);
        let forwarded = json!({"is_share": true, "text": "This content can't be displayed.",
                               "message_blocks": [{"message": {"blocks": blocks}}]});
        assert_eq!(quoted(forwarded), ["disk full"]);
    }

    #[test]
    fn files_are_told_apart_before_any_is_fetched() {
        let file = |name: &str, kind: &str, more: Value| {
            let mut file = json!({"id": "F1", "name": name, "mimetype": kind, "size": 9, "mode": "hosted",
                                  "url_private": "https://files.slack.com/a", "url_private_download": "https://files.slack.com/b"});
            file.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            contents(json!([file])).remove(0).1
        };
        let unread = Content::Unread;
        for (name, kind, wanted) in [
            ("a.txt", "text/plain", Content::Awaited),
            ("a.html", "text/html", Content::Awaited),
            ("a.json", "application/json", Content::Awaited),
            ("server.LOG", "application/octet-stream", Content::Awaited),
            ("a.ts", "video/mp2t", Content::Awaited),
            ("a.pdf", "application/pdf", unread(FileSkipReason::NoText)),
            ("a.zip", "application/zip", unread(FileSkipReason::NoText)),
            ("a.png", "image/png", Content::AwaitedImage),
            ("a.svg.txt", "image/svg+xml", unread(FileSkipReason::OddImage)),
        ] {
            assert_eq!(file(name, kind, json!({})), wanted, "{name} {kind}");
        }
        assert_eq!(file("a", "text/x-odd", json!({"mode": "snippet"})), Content::Awaited);
        assert_eq!(file("a.txt", "text/plain", json!({"mode": "tombstone"})), unread(FileSkipReason::Gone));
        assert_eq!(file("a.txt", "text/plain", json!({"mode": "external"})), unread(FileSkipReason::Elsewhere));
        let email = json!({"mode": "email"});
        assert_eq!(file("An offer", "text/html", email.clone()), Content::Awaited, "Slack stores what is mailed to it");
        assert_eq!(file("An offer", "application/pdf", email), unread(FileSkipReason::NoText));
        let theirs = json!([{"id": "F8", "mode": "file_access", "file_access": "check_file_info"}]);
        assert_eq!(read(&Value::Null, &theirs, "UBOT").files[0].id.as_deref(), Some("F8"));
        assert_eq!(contents(theirs), [("F8".to_owned(), Content::Awaited)]);
        let bare = contents(json!([{"id": "F7", "mimetype": "text/plain"}]));
        assert_eq!(bare, [("F7".to_owned(), unread(FileSkipReason::NotFetched))]);
    }

    /// Regression: the name was cut before its extension was looked at.
    #[test]
    fn a_log_with_a_long_name_was_no_text() {
        let file = json!([{"id": "F1", "name": format!("{}.log", "x".repeat(MAX_NAME_CHARS)),
                           "mimetype": "application/octet-stream", "url_private": "https://files.slack.com/a"}]);
        assert_eq!(contents(file), [("x".repeat(MAX_NAME_CHARS), Content::Awaited)]);
    }

    #[test]
    fn of_an_image_the_largest_smaller_picture_is_known() {
        let image = json!([{"name": "a.png", "mimetype": "image/png", "url_private": "https://files.slack.com/a",
                            "thumb_480": "https://files.slack.com/480", "thumb_1024": "https://files.slack.com/1024"}]);
        let Attachments { files, .. } = read(&Value::Null, &image, "UBOT");
        assert_eq!(files[0].preview.as_deref(), Some("https://files.slack.com/1024"));
        let text = json!([{"name": "a.txt", "mimetype": "text/plain", "url_private": "https://files.slack.com/a",
                           "thumb_480": "https://files.slack.com/480"}]);
        assert_eq!(read(&Value::Null, &text, "UBOT").files[0].preview, None);
    }

    #[test]
    fn a_forwarded_message_brings_its_files_along() {
        let attachments = json!([{"is_share": true, "text": "see", "files": [{"name": "b.txt", "mode": "tombstone"}]}]);
        let Attachments { files, .. } = read(&attachments, &json!([{"name": "a.pdf"}]), "UBOT");
        assert_eq!(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a.pdf", "b.txt"]);
    }

    #[test]
    fn files_beyond_the_bound_are_counted() {
        let files = |many: usize| Value::from(vec![json!({"name": "a.log", "mimetype": "text/plain"}); many]);
        let attachments = json!([{"is_share": true, "text": "see", "files": files(15)}]);
        let Attachments { files, left_out, .. } = read(&attachments, &files(10), "UBOT");
        assert_eq!((files.len(), left_out), (MAX_FILES, 5));
    }

    fn odd() -> impl Strategy<Value = Value> {
        let key = prop::sample::select(vec![
            "text",
            "title",
            "pretext",
            "fallback",
            "fields",
            "value",
            "files",
            "name",
            "mode",
            "mimetype",
            "id",
            "file_access",
            "size",
            "message_blocks",
            "message",
            "blocks",
            "elements",
            "type",
            "user_id",
            "url",
            "author_name",
            "is_share",
            "url_private",
            "url_private_download",
            "thumb_1024",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "(\\PC|\n|<|>|&|\\||\u{202e}){0,12}".prop_map(Value::from),
            prop::sample::select(vec![
                "snippet",
                "rich_text_section",
                "mrkdwn",
                "text/plain",
                "image/png",
                "check_file_info",
            ])
            .prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, move |inner| {
            let object = prop::collection::vec((key.clone(), inner.clone()), 0..6).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            });
            prop_oneof![prop::collection::vec(inner, 0..5).prop_map(Value::from), object]
        })
    }

    proptest! {
        #[test]
        fn whatever_comes_nothing_panics_and_all_is_bounded(attachments in odd(), files in odd()) {
            let attached = read(&attachments, &files, "UBOT");
            prop_assert!(attached.quotes.len() <= MAX_QUOTES && attached.files.len() <= MAX_FILES);
            for Quote { by, text, .. } in &attached.quotes {
                let is_one_line = !by.contains(['\n', '\u{202e}']);
                prop_assert!(!text.trim().is_empty() && is_one_line && text::plain(text) == text.as_str());
            }
            for File { id, name, content, address, .. } in &attached.files {
                prop_assert!(!name.is_empty() && !name.contains('\n'));
                let is_awaited = matches!(content, Content::Awaited | Content::AwaitedImage);
                prop_assert!(!is_awaited || address.is_some() || id.is_some());
            }
        }

        #[test]
        fn one_that_is_odd_takes_no_other_along(odd in odd()) {
            let good = json!({"text": "good", "author_name": "Ann"});
            let read = quotes(json!([odd, good]));
            prop_assert_eq!(read.last(), Some(&(QuoteKind::Aside, "Ann".to_owned(), "good".to_owned())));
        }
    }
}
