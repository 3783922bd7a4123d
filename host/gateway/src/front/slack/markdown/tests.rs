use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::front::slack::{cpu_time, mrkdwn::counted_len};

/// Text that the parser or Slack could have problems with.
const PIECES: &str = "(\\PC|[ \n*_~`<>&|!\\[\\]():#.-]|<@U1>|<@U2>|<!channel>|<#C1>|<!subteam\\^S1>|\\*\\*|```\n|~~~\n\
                      |> |- |1\\. |\\| a \\||\\|-\\||https://a\\.b/c|\\]\\(https://a\\.b|mailto:a@b\\.c|&lt;|&amp;|中|：|。|\t|\u{3000}){0,120}";

fn plain(source: &str) -> String {
    render(source, &[])
}

#[test]
fn each_construct_is_slacks() {
    for (source, expected) in [
        ("**bold** and *italic* and ~~gone~~", "*bold* and _italic_ and ~gone~"),
        ("***both***", "_*both*_"),
        ("# Title\n\ntext", "*Title*\n\ntext"),
        ("## A **strong** title", "*A strong title*"),
        ("one\ntwo  \nthree", "one\ntwo\nthree"),
        ("**two\nlines**", "*two*\n*lines*"),
        ("`a < b` & c", "`a &lt; b` &amp; c"),
        ("``a ` b``", "a ` b"),
        ("---", "──────────"),
        ("![alt](https://a.b/c.png)", "<https://a.b/c.png|alt>"),
        ("a<br>b", "a\nb"),
        ("<div>x</div>", "&lt;div&gt;x&lt;/div&gt;"),
        ("\\*not italic\\*", "*not italic*"),
    ] {
        assert_eq!(plain(source), expected, "{source}");
    }
}

#[test]
fn links_lead_to_the_web_and_to_mail() {
    for (source, expected) in [
        ("[the page](https://a.b/c?d=1&e=2)", "<https://a.b/c?d=1&amp;e=2|the page>"),
        ("[**the** `page`](https://a.b)", "<https://a.b|the page>"),
        ("[](https://a.b)", "<https://a.b>"),
        ("[x](<https://a.b/c|d>)", "<https://a.b/c%7Cd|x>"),
        ("[x](<https://a.b/c d>)", "<https://a.b/c%20d|x>"),
        ("<https://a.b/c|d>", "<https://a.b/c%7Cd>"),
        ("[mail](mailto:a@b.c)", "<mailto:a@b.c|mail>"),
        ("[x](javascript:alert)", "x (javascript:alert)"),
        ("[x](slack://user?id=U1)", "x (slack://user?id=U1)"),
        ("[README](docs/README.md)", "README (docs/README.md)"),
        ("[x](!channel)", "x (!channel)"),
        ("[<!channel>](https://a.b)", "<https://a.b|&lt;!channel&gt;>"),
        ("see https://a.b/c_(d)?e=1&f=2.", "see <https://a.b/c_(d)?e=1&amp;f=2>."),
        ("(https://a.b/c)。", "(<https://a.b/c>)。"),
        ("請看https://a.b/c，謝謝", "請看<https://a.b/c>，謝謝"),
        ("xhttps://a.b https://", "xhttps://a.b https://"),
    ] {
        assert_eq!(plain(source), expected, "{source}");
    }
}

/// Regression: a link was shown as whatever address its label was.
#[test]
fn a_link_whose_label_was_another_address_led_elsewhere() {
    for (source, expected) in [
        ("[https://a.b](https://c.d)", "https://a.b (<https://c.d>)"),
        ("[acme.example](https://evil.example)", "acme.example (<https://evil.example>)"),
        ("[acme.example](https://evil.example/acme.example)", "acme.example (<https://evil.example/acme.example>)"),
        ("[log in at **acme**.example!](https://c.d)", "log in at acme.example! (<https://c.d>)"),
        ("[請到acme.example登入](https://c.d)", "請到acme.example登入 (<https://c.d>)"),
        ("[acme\u{2024}example](https://c.d)", "acme\u{2024}example (<https://c.d>)"),
        ("[acm\u{200b}e.exa\u{2060}mple](https://c.d)", "acm\u{200b}e.exa\u{2060}mple (<https://c.d>)"),
        ("[10.0.0.1](https://c.d)", "10.0.0.1 (<https://c.d>)"),
        ("[ops@acme.example](mailto:x@c.d)", "ops@acme.example (<mailto:x@c.d>)"),
        ("[https://a.b](https://a.b@c.d)", "https://a.b (<https://a.b@c.d>)"),
        ("[a.b](https://a.b/)", "<https://a.b/|a.b>"),
        ("[x@a.b](mailto:x@a.b)", "<mailto:x@a.b|x@a.b>"),
        ("[version 1.2, e.g. 3.5](https://c.d)", "<https://c.d|version 1.2, e.g. 3.5>"),
    ] {
        assert_eq!(plain(source), expected, "{source}");
    }
}

#[test]
fn definitions_of_links_are_shown() {
    assert_eq!(plain("see [1]\n\n[1]: https://a.b/c"), "see [1]\n\n[1]: <https://a.b/c>");
    assert_eq!(plain("```\n[1]: x\n```"), "```\n[1]: x\n```");
}

#[test]
fn lists_are_indented_by_level() {
    let source = "Steps:\n1. one\n2. two\n   - a\n   - b\n\n     more of b\n3. three\n\nend";
    assert_eq!(plain(source), "Steps:\n\n1. one\n2. two\n\n    ◦ a\n\n    ◦ b\n\n      more of b\n3. three\n\nend");
    assert_eq!(plain("- a\n  - b\n    - c\n- [x] d\n- [ ] e"), "• a\n    ◦ b\n        ▪ c\n☑ d\n☐ e");
    assert_eq!(plain("7. seven\n8. eight"), "7. seven\n8. eight");
}

#[test]
fn quotes_are_marked_line_by_line() {
    assert_eq!(plain("> one\n> two\n>\n> three\n\nafter"), "> one\n> two\n>\n> three\n\nafter");
    assert_eq!(plain("before\n> - a\n> - b"), "before\n\n> • a\n> • b");
}

#[test]
fn code_is_kept_as_it_is() {
    assert_eq!(
        plain("a\n```rust\nlet x = \"<&>\";\n\n  **y**\n```\nb"),
        "a\n```\nlet x = \"&lt;&amp;&gt;\";\n\n  **y**\n```\n\nb"
    );
    assert_eq!(plain("```some words\nx\n```"), "```\nsome words\nx\n```");
    assert_eq!(plain("```中文"), "```\n中文\n```");
    assert_eq!(plain("~~~\n```\n~~~"), "```\n`\u{200b}`\u{200b}`\n```");
    assert_eq!(plain("- a\n  ```\n  x\n  ```\n- b"), "• a\n```\nx\n```\n• b");
}

#[test]
fn tables_are_aligned_text() {
    let source = "| 項目 | n |\n|:--|--:|\n| **廣告** | 1 |\n| [x](https://a.b) `c` | 22 |";
    let expected = [
        "```",
        "項目              | n",
        "------------------+---",
        "廣告              | 1",
        "x (https://a.b) c | 22",
        "```",
    ];
    assert_eq!(plain(source), expected.join("\n"));
}

#[test]
fn what_a_cut_has_left_is_made_whole() {
    assert_eq!(plain("| 3 | c |\n| 4 | dd |"), "```\n3 | c\n4 | dd\n```");
    assert_eq!(plain("    - nested\n      more\n\nafter"), "• nested\n  more\n\nafter");
    assert_eq!(plain("     ```py\n     x = 1\n     ```\n     after"), "```\nx = 1\n```\n\nafter");
}

#[test]
fn emphasis_in_chinese_is_seen_by_both() {
    assert_eq!(plain("**預算：**一百萬"), "*預算：*\u{200b}一百萬");
    assert_eq!(plain("含**「重點」**和**「其他」**。"), "含\u{200b}*「重點」*\u{200b}和\u{200b}*「其他」*\u{200b}。");
    assert_eq!(plain("中文`程式`中文"), "中文\u{200b}`程式`\u{200b}中文");
    assert_eq!(plain("(**a**), **b**."), "(*a*), *b*.");
}

#[test]
fn only_who_is_to_be_pinged_is() {
    let pings = ["U1".to_owned(), "!channel".to_owned(), String::new()];
    for (source, expected) in [
        (
            "<@U1> <@U2> <!channel> <!here> <@U10> <@>",
            "<@U1> &lt;@U2&gt; &lt;!channel&gt; &lt;!here&gt; &lt;@U10&gt; &lt;@&gt;",
        ),
        ("**<@U1>**, `<@U1>`", "*<@U1>*, `&lt;@U1&gt;`"),
        ("[<@U1>](https://a.b)", "<https://a.b|&lt;@U1&gt;>"),
    ] {
        assert_eq!(render(source, &pings), expected);
    }
}

#[test]
fn what_shows_nothing_is_shown_as_it_is() {
    for source in ["[]()", "<br>", "#", "&#32;"] {
        assert!(!plain(source).trim().is_empty(), "{source}");
    }
}

#[test]
fn hostile_nesting_takes_no_time() {
    for piece in [">", "- ", "[", "![", "**a", "*a_", "`", "<", "| ", "    ", "[a](", "&", "1. ", "\\", "~~"] {
        let source = piece.repeat(4_000 / piece.len());
        let took = cpu_time::of(|| plain(&source));
        assert!(took < Duration::from_secs(2), "{piece}: {took:?}");
    }
}

/// Returns the sequences in angle brackets.
fn sequences(rendered: &str) -> Vec<&str> {
    rendered.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_but_links_and_allowed_pings_is_ever_made(source in PIECES) {
        let rendered = render(&source, &["U1".to_owned()]);
        for sequence in sequences(&rendered) {
            let target = sequence.split('|').next().unwrap_or_default().to_ascii_lowercase();
            let link = ["http://", "https://", "mailto:"].into_iter().any(|scheme| target.starts_with(scheme));
            prop_assert!(link || sequence == "@U1", "{sequence:?} in {rendered:?}");
            prop_assert!(!sequence.contains('\n'));
        }
        let brackets = rendered.matches('<').count();
        let quotes = rendered.lines().filter(|line| line.starts_with('>')).count();
        prop_assert_eq!(rendered.matches('>').count(), brackets + quotes);
        // The length measured before it is known who may be pinged is never too small.
        let unpinged = plain(&source);
        prop_assert!(!unpinged.contains("<@"));
        prop_assert!(counted_len(&rendered) <= counted_len(&unpinged));
    }

    #[test]
    fn nothing_is_lost_but_marks(source in "([a-z]{1,5}|[ \n*_~`#>-]|中文){0,80}") {
        prop_assume!(!source.contains("```") && !source.contains("~~~"), "the name of a language may go");
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let shown = plain(&source).replace("&gt;", "");
        prop_assert_eq!(letters(&shown), letters(&source));
        prop_assert_eq!(plain(&source).is_empty(), source.trim().is_empty());
    }
}
