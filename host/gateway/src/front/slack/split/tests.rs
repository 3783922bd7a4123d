use pmk_stand_ins::slack::judge_text;
use proptest::{prelude::*, sample::select};

use super::*;
use crate::front::slack::cpu_time;

const MAX: usize = 600;

/// Returns whether the parts make up the whole, without the lines that close and reopen a code block, and without
/// repeated table headers.
fn is_whole(parts: &[String], whole: &str) -> bool {
    let Some((part, later)) = parts.split_first() else { return whole.is_empty() };
    let is_fence = |line: &str| {
        let line = line.trim_start_matches([' ', '>', '\t']);
        line.starts_with("```") || line.starts_with("~~~")
    };
    let opened = part.split_inclusive('\n').next().filter(|line| is_fence(line)).map_or(0, str::len);
    let closed = part.rsplit('\n').next().filter(|line| is_fence(line)).map_or(0, str::len);
    let mut lines = part.split_inclusive('\n');
    let titles = lines.next().map_or(0, str::len);
    let headed = lines.next().filter(|line| lines::is_delimiter_row(line)).map_or(0, |dashes| titles + dashes.len());
    for start in [0, opened, headed] {
        for end in [0, closed, closed + 1] {
            let Some(source) = part.len().checked_sub(end).and_then(|end| part.get(start..end)) else { continue };
            if let Some(rest) = whole.strip_prefix(source)
                && (!source.is_empty() || part.is_empty())
                && is_whole(later, rest)
            {
                return true;
            }
        }
    }
    false
}

fn parts(reply: &str) -> Vec<String> {
    let parts = split(reply, PartLimit::Rendered(MAX));
    assert!(is_whole(&parts, reply), "{parts:#?}");
    for part in &parts {
        assert!(counted_len(&markdown::render(part, &[])) <= MAX, "{part}");
    }
    parts
}

#[test]
fn a_short_reply_is_one_part() {
    assert_eq!(split("hello", PartLimit::Rendered(MAX)), ["hello"]);
    assert_eq!(split("\n  indented\n\n", PartLimit::Rendered(MAX)), ["\n  indented\n\n"]);
}

#[test]
fn nothing_to_say_has_no_parts() {
    assert!(split("", PartLimit::Rendered(MAX)).is_empty());
    assert!(split(" \n\t\u{3000} ", PartLimit::Rendered(MAX)).is_empty());
}

#[test]
fn paragraphs_go_before_lines_lines_before_sentences_sentences_before_words() {
    let word = "word ";
    let sentence = format!("{}end. ", word.repeat(30));
    let line = format!("{}\n", word.repeat(30));
    let paragraph = format!("{}\n\n", word.repeat(70));
    assert!(parts(&paragraph.repeat(3)).iter().all(|part| part.ends_with("\n\n")));
    assert!(parts(&line.repeat(9)).iter().all(|part| part.ends_with('\n')));
    assert!(parts(&sentence.repeat(9)).iter().all(|part| part.ends_with("end. ")));
    assert!(parts(&word.repeat(300)).iter().all(|part| part.ends_with("word ")));
    assert_eq!(parts(&"x".repeat(MAX + 1))[0].len(), MAX);
}

#[test]
fn chinese_is_cut_behind_its_own_marks() {
    let reply = "這個月的廣告預算分配比例，需要再確認一次。".repeat(30);
    assert!(parts(&reply).iter().all(|part| part.ends_with('。')));
    let reply = "這個月的廣告預算分配比例，需要再確認一次，".repeat(30);
    assert!(parts(&reply).iter().all(|part| part.ends_with('，')));
    let reply = "他說：「可以。」".repeat(60);
    assert!(parts(&reply).iter().all(|part| part.ends_with('」')));
}

#[test]
fn decimals_and_names_of_files_are_no_sentence_ends() {
    let reply = "take 1.5 of main.rs and go on ".repeat(40);
    assert!(parts(&reply).iter().all(|part| part.ends_with(' ')));
}

#[test]
fn a_code_block_goes_on_in_its_language() {
    let reply = format!("Look:\n\n```rust\n{}```\n\nThat was it.", "    let x = \"<&>\";\n".repeat(80));
    let parts = parts(&reply);
    assert!(parts.len() > 2);
    let within = &parts[1..parts.len() - 1];
    assert!(!within.is_empty());
    for part in within {
        assert!(part.starts_with("```rust\n    let") && part.trim_end().ends_with(";\n```"), "{part}");
    }
    assert!(parts[0].ends_with(";\n```"), "{}", parts[0]);
    assert!(parts[parts.len() - 1].ends_with("That was it."), "{parts:#?}");
}

#[test]
fn code_in_quotes_and_lists_goes_on_there() {
    let reply = format!("> ~~~py\n{}> ~~~\n", "> x = 1\n".repeat(200));
    assert!(parts(&reply)[1..].iter().all(|part| part.starts_with("> ~~~py\n> x")));
    let reply = format!("1. do\n   - this\n\n     ```sh\n{}     ```\n   - and\n     that\n", "     echo\n".repeat(200));
    let parts = parts(&reply);
    assert!(parts[1].starts_with("     ```sh\n     echo"));
    let rendered = markdown::render(parts.last().expect("a part"), &[]);
    assert!(rendered.ends_with("echo\n```\n\n• and\n  that"), "{rendered}");
}

#[test]
fn a_code_block_is_not_begun_at_the_end_of_a_part() {
    let text = "word ".repeat(118);
    let reply = format!("{text}\n```\ncode\n```\n");
    assert_eq!(parts(&reply), [format!("{text}\n"), "```\ncode\n```\n".to_owned()]);
}

#[test]
fn rows_are_whole_and_the_head_of_a_table_has_a_row() {
    let row = "| 這是一個儲存格 | another cell | 3 |\n";
    let reply = format!("Table:\n\n| a | b | c |\n|---|---|---|\n{}\nend", row.repeat(40));
    for part in &parts(&reply)[1..] {
        assert!(part.starts_with("| a | b | c |\n|---|---|---|\n| 這是"), "{part}");
        assert!(markdown::render(part, &[]).starts_with("```\na"), "{part}");
    }
    let wide = format!("| {} | b |\n|---|---|\n", "title ".repeat(80));
    let reply = format!("{wide}{}", row.repeat(40));
    let again = parts(&reply).iter().skip(1).filter(|part| part.contains("|---|---|")).count();
    assert!(again <= 1, "a head that leaves no room for a row does not stand there again");
    let before = "word ".repeat(112);
    let reply = format!("{before}\n\n| a | b |\n|---|---|\n{row}");
    assert!(parts(&reply)[1].starts_with("| a | b |"));
    let huge = format!("| {} |\n", "cell ".repeat(300));
    assert!(parts(&huge).len() > 1, "one that is too large by itself is cut");
}

#[test]
fn links_mentions_and_emoji_are_whole() {
    for whole in [
        "[a label of some words](https://example.com/a/b?c=d)",
        "https://example.com/a/very-long/address?with=parameters",
        "<@U0123456789>",
        ":woman-running:",
        "**a few bold words**",
        "`some code`",
    ] {
        for shift in 0..40 {
            let reply = format!("{}中{}", "x".repeat(540 + shift), format!("{whole}中").repeat(20));
            let parts = parts(&reply);
            let found: usize = parts.iter().map(|part| part.matches(whole).count()).sum();
            assert_eq!(found, 20, "{whole} is cut: {parts:#?}");
        }
    }
    let endless = format!("[{}](https://a.b)", "label ".repeat(300));
    assert!(parts(&endless).len() > 1, "one that is too large by itself is cut");
    let family = "👨‍👩‍👧";
    let endless = format!("x <{}>", family.repeat(60));
    let whole: usize = parts(&endless).iter().map(|part| part.matches(family).count()).sum();
    assert_eq!(whole, 60, "but not within a grapheme");
}

#[test]
fn escaping_and_quoting_count() {
    assert!(parts(&"&".repeat(MAX)).len() >= 5);
    assert!(parts(&"> a\n".repeat(MAX / 4)).len() >= 2);
}

#[test]
fn a_grapheme_larger_than_a_part_is_torn_apart() {
    let zalgo = format!("e{}", "\u{301}".repeat(2 * MAX));
    assert_eq!(split(&zalgo, PartLimit::Rendered(MAX)).concat(), zalgo);
}

#[test]
fn the_time_grows_with_the_length() {
    for piece in ["word ", "[", "`a", "| a |\n", "```\n", "\n", " ", "\u{3000}", "**", "<", "🇹🇼", "h", ":a", "> "]
    {
        cpu_time::assert_in_proportion(piece, 25_000, |text| split(text, PartLimit::Rendered(MAX_PART_BYTES)));
    }
}

/// Answers as models write them.
fn answer() -> impl Strategy<Value = String> {
    let sentence = select(vec![
        "這個月的廣告預算分配比例需要再確認一次，請行銷團隊在週五前回覆。",
        "他說：「**重點**是成本！」然後呢？",
        "The launch is on Friday, and the budget (about 1.5 M) is fixed. ",
        "See [the plan](https://example.com/plan?a=1&b=2) and <https://example.com/x>; ask <@U1>. ",
        "我們用 `cargo test` 跑 tests，結果 :tada: 很好。",
        "A <b>tag</b> & an *emphasis*, 👨‍👩‍👧 and e\u{301}, <!channel>. ",
        "詳見[規格書](https://例子.測試/a(b)c)、https://example.com/中文。",
        "supercalifragilisticexpialidocious",
    ]);
    let text = proptest::collection::vec(sentence, 1..40).prop_map(|sentences| sentences.concat());
    let line =
        select(vec!["let x = vec![1, 2];", "    // 註解 <&>", "", "print(\"中文\")", "`````", "| a |", "# no title"]);
    let code = (
        select(vec!["```", "````", "~~~"]),
        select(vec!["", "rust", "python"]),
        proptest::collection::vec(line, 1..60),
    )
        .prop_filter_map("a fence that its code does not close", |(fence, language, lines)| {
            let code = lines.join("\n");
            (!code.contains(fence) || fence == "~~~").then(|| format!("{fence}{language}\n{code}\n{fence}"))
        });
    let row = (text.clone(), 0usize..1000).prop_map(|(text, n)| {
        format!("| {} | {n} | [x](https://a.b/{n}) |", text.chars().take(40).collect::<String>().replace('|', ""))
    });
    let table = proptest::collection::vec(row, 1..40)
        .prop_map(|rows| format!("| 項目 | n | link |\n|:--|--:|---|\n{}", rows.join("\n")));
    let list = proptest::collection::vec((text.clone(), 0usize..3), 1..12).prop_map(|items| {
        let items = items.into_iter().map(|(text, depth)| format!("{}- {text}", "    ".repeat(depth)));
        items.collect::<Vec<String>>().join("\n")
    });
    let heading = select(vec!["# 結論", "## Next steps", "### **三** 點"]).prop_map(str::to_owned);
    let quote = text.clone().prop_map(|text| format!("> {text}\n> - {text}"));
    let block = prop_oneof![4 => text, 2 => code, 1 => table, 1 => list, 1 => heading, 1 => quote];
    proptest::collection::vec((block, select(vec!["\n\n", "\n", "\r\n\r\n", "\n\n\n"])), 1..14)
        .prop_map(|blocks| blocks.into_iter().map(|(block, gap)| block + gap).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn slack_takes_every_part_and_the_parts_are_the_answer(answer in answer()) {
        let parts = split(&answer, PartLimit::Rendered(MAX_PART_BYTES));
        for part in &parts {
            let rendered = markdown::render(part, &[]);
            prop_assert_eq!(judge_text(&rendered), (None, vec![]), "{}", part);
        }
        prop_assert!(is_whole(&parts, &answer), "{:#?}", parts);
        let graphemes: Vec<usize> = answer.grapheme_indices(true).map(|(at, _)| at).collect();
        for cut in cuts(&answer, PartLimit::Rendered(MAX_PART_BYTES)) {
            prop_assert!(graphemes.binary_search(&cut).is_ok(), "a grapheme is torn at {}", cut);
        }
    }

    #[test]
    fn whatever_is_written_is_cut_to_size(
        reply in "(\\PC|[ \n<>&*_`~|\\[\\]():#-]|\r\n|👨‍👩‍👧|e\u{301}|中|。|```\n|> |\\| a \\|\n|\\|-\\|\n|    ){0,900}",
        max in 500usize..700,
    ) {
        let parts = split(&reply, PartLimit::Rendered(max));
        for part in &parts {
            let rendered = markdown::render(part, &[]);
            prop_assert!(counted_len(&rendered) <= max, "{} bytes of {:?}", counted_len(&rendered), part);
            prop_assert!(!rendered.trim().is_empty());
        }
        prop_assert!(is_whole(&parts, &reply) || reply.trim().is_empty(), "{:#?}", parts);
        let parts = split(&reply, PartLimit::Chars(max));
        for part in &parts {
            prop_assert!(part.chars().count() <= max && !part.trim().is_empty(), "{:?}", part);
        }
        prop_assert!(is_whole(&parts, &reply) || reply.trim().is_empty(), "{:#?}", parts);
    }
}

/// Returns where a reply is cut.
fn cuts(reply: &str, most: PartLimit) -> Vec<usize> {
    let splitter = Splitter::new(reply, most);
    let mut cuts = vec![0];
    while cuts.last().is_some_and(|at| !reply[*at..].trim().is_empty()) {
        cuts.push(splitter.next_cut(cuts[cuts.len() - 1]));
    }
    cuts.pop();
    cuts
}
