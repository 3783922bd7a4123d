use std::{collections::BTreeSet, path::Path};

use pmk_policy::{Compiler, Runtime, RuntimeConfig};

use super::*;

/// Texts that are found in printing positions, but are for machines or a file, or the same in any language.
const NOT_SAID: &[&str] = &[
    " at line ",
    "#HANDED ON",
    "(a result of {} characters, left out)",
    ": did not help",
    ": helped",
    "Built-in policies: ",
    "GET, HEAD",
    "Language / 語言",
    "Open questions",
    "Say: ok",
    "Still open",
    "a receipt",
    "application/json; charset=utf-8",
    "cargo component",
    "config check",
    "doctor --offline",
    "earlier summary",
    "error: {}",
    "experiment stop",
    "files.upload to the given address",
    "huge messages",
    "instance size does not fit",
    "loaded policies are not used: others were chosen in the meantime",
    "made private",
    "memory allocation of ",
    "mra ask {} {}",
    "no hash fails",
    "npm run build",
    "pmk-host sessions erase",
    "policies loaded",
    "pooling allocator",
    "prompt is too long: {} tokens > {} maximum",
    "seed pair",
    "sessions reset KEY",
    "several people",
    "standard (embedded)",
    "store check",
    "store copy",
    "store renew",
    "store restore",
    "store restore FILE",
    "store restore {}",
    "--store sqlite store renew",
    "summary and marker",
    "{} of {}",
    "the place of a question",
    "the service manager cannot be told anything: NOTIFY_SOCKET: {}",
    "{}  sha256 {}",
    "{} (embedded)",
    "{} h {} min",
    "{} min",
    "{} ms",
    "{} s",
];

fn chinese(text: &str) -> Cow<'_, str> {
    translated(text, Language::TraditionalChinese)
}

fn texts() -> sources::Texts {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of the crates");
    sources::texts(host)
}

/// Whether people read words of it: several words, or a heading or a label, and not only code. A page of several lines
/// is not a row.
fn wants_a_row(text: &str, is_label: bool) -> bool {
    let has_words = text.split('`').step_by(2).any(|words| words.chars().any(|char| char.is_ascii_alphabetic()));
    let is_loud = |text: &str| text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase);
    let is_sql = !is_loud(text) && text.split(' ').next().is_some_and(|word| word.len() > 3 && is_loud(word));
    let is_sql = is_sql || OF_STATEMENTS.iter().any(|part| text.contains(part));
    let is_name = text.contains(['_', '.']) && !text.contains(' ');
    let has_enough = text.trim().contains(' ') || (is_label && !is_name) || (text.starts_with('#') && is_loud(text));
    has_words && has_enough && !text.contains('\n') && !is_sql && !NOT_SAID.contains(&text)
}

/// How statements, and parts of them, are recognized.
const OF_STATEMENTS: [&str; 9] =
    ["SELECT ", "INSERT INTO ", "BEGIN I", "BEGIN;", "SET LOCAL ", "ORDER BY", " DESC", " RETURNING ", "pg_advisory"];

/// A text as its row has it: a heading without its `#`, an indented text without the indent.
fn row_of(text: &str) -> &str {
    let text = text.strip_prefix('#').filter(|heading| !heading.starts_with(' ')).unwrap_or(text);
    text.strip_prefix("  ").unwrap_or(text)
}

#[test]
fn every_text_of_the_sources_has_its_chinese() {
    let rows: BTreeSet<&str> = pairs(OURS).map(|(english, _)| english).collect();
    let sources::Texts { all, labels } = texts();
    assert!(all.len() > 500 && labels.len() > 100, "{all:#?}");
    let wanted = all.iter().chain(&labels).filter(|text| wants_a_row(text, labels.contains(*text)));
    let missing: BTreeSet<_> = wanted.map(|text| row_of(text)).filter(|row| !rows.contains(row)).collect();
    assert!(missing.is_empty(), "without a row in terminal/zh-TW.txt: {missing:#?}");
}

#[test]
fn every_row_is_said_somewhere() {
    let sources::Texts { all, labels } = texts();
    let said: BTreeSet<&str> = all.iter().chain(&labels).flat_map(|text| [text.as_str(), row_of(text)]).collect();
    let orphans: Vec<_> = pairs(OURS).map(|(english, _)| english).filter(|row| !said.contains(row)).collect();
    assert!(orphans.is_empty(), "said nowhere: {orphans:#?}");
    let stale: Vec<_> = NOT_SAID.iter().filter(|text| !said.contains(**text)).collect();
    assert!(stale.is_empty(), "found nowhere: {stale:#?}");
}

#[test]
fn what_every_embedded_policy_says_of_itself_has_its_chinese() {
    let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
    let mut said = BTreeSet::new();
    for name in crate::embedded::names().split(", ").map(|name| name.trim_matches('`')) {
        let policy = crate::policies::load(&runtime, Path::new(name)).expect("a policy");
        let description = policy.description();
        said.insert(description.about.clone());
        said.extend(description.settings.iter().map(|setting| setting.help.clone()));
    }
    let rows: BTreeSet<String> = pairs(POLICIES).map(|(english, _)| english.to_owned()).collect();
    assert_eq!(rows, said);
}

#[test]
fn what_a_policy_of_somebody_else_says_stays_as_it_is() {
    let chinese = |text| of_a_policy(text, Language::TraditionalChinese);
    assert_eq!(chinese("tokens above which a session is pruned"), "session 超過幾個 token 就修剪");
    assert_eq!(chinese("it is empty"), "it is empty");
    assert_eq!(of_a_policy("tokens above which a session is pruned", Language::English).len(), 38);
}

#[test]
fn a_row_has_the_same_holes_in_both_languages_and_stands_there_once() {
    let mut seen = BTreeSet::new();
    for text in [OURS, FOREIGN, POLICIES] {
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).collect();
        assert!(lines.iter().enumerate().all(|(at, line)| line.starts_with("  ") == (at % 2 == 1)), "two lines a row");
        for (english, chinese) in pairs(text) {
            assert!(seen.insert(english), "twice: {english}");
            let row = Row::read(english, chinese);
            let mut order = row.order.clone();
            order.sort_unstable();
            assert_eq!(order, (0..row.english.len() - 1).collect::<Vec<_>>(), "{english}\n{chinese}");
            assert_eq!(row.chinese.len(), row.english.len(), "{english}\n{chinese}");
            assert_eq!(english.matches('`').count(), chinese.matches('`').count(), "{english}\n{chinese}");
        }
    }
}

#[test]
fn errors_that_hold_errors_are_translated_to_the_bottom() {
    let cases = [
        (
            "cannot read the history `a.json`: No such file or directory (os error 2)",
            "無法讀取歷史 `a.json`：沒有這個檔案或資料夾（os error 2）",
        ),
        ("a.json: line 3 is not JSON: expected value at column 7", "a.json：第 3 行不是 JSON：這裡應該有值（第 7 欄）"),
        ("`model` is 7, not a string", "`model` 是 7，不是字串"),
        ("`ANTHROPIC_BASE_URL` must be a URL", "`ANTHROPIC_BASE_URL` 必須是網址"),
        ("`--base-url` would send a key in clear text", "`--base-url` 會以明文送出金鑰"),
        (
            "`/h` is in use by `pmk-host run` (pid 7: pmk-host run)",
            "`/h` 正由 `pmk-host run` 使用（pid 7：pmk-host run）",
        ),
        ("the store `s` is damaged in at least 1 place", "資料庫 `s` 至少有 1 處損壞"),
        (
            "`tools` is `x`, not `auto` or `fenced`; did you mean `auto`?",
            "`tools` 是 `x`，不是 `auto` 或 `fenced`；你是指 `auto` 嗎？",
        ),
        (
            "compiling policy `a.wasm` takes more than 512 MiB of memory, all that the system allows",
            "編譯策略 `a.wasm` 需要超過 512 MiB 的記憶體，這已是系統允許的全部",
        ),
        (
            "policy `a.wasm` could not describe itself: it used up its 7 units of fuel",
            "策略 `a.wasm` 無法描述自己：它用完了 7 單位的燃料",
        ),
        ("keeps 29 points more evidence [19, 39]", "多保留 29 個百分點的依據 [19, 39]"),
        ("sends 4.2 % fewer tokens [2.9, 5.4]", "少送出 4.2 % 的 token [2.9, 5.4]"),
        (
            "`auth.test` with the bot token (xoxb-…) failed: Slack says `fatal_error`",
            "以 bot token（xoxb-…）呼叫 `auth.test` 失敗：Slack 說 `fatal_error`",
        ),
        ("there is no `預算`", "沒有 `預算`"),
        (
            "`a.txt` is not text: invalid utf-8 sequence of 1 bytes from index 7",
            "`a.txt` 不是文字：從第 7 個位元組起有 1 個位元組不是 UTF-8",
        ),
        (
            "cannot reach the database `postgres://h/d`: error connecting to server: Connection refused (os error 111)",
            "資料庫 `postgres://h/d` 連不上：連不上伺服器：連線被拒絕（os error 111）",
        ),
        (
            "the address of the store is not a PostgreSQL address: unexpected EOF",
            "資料庫的位址不是 PostgreSQL 的位址：還沒寫完就結束了",
        ),
        ("nothing of the history `h` would be sent: it has no messages", "歷史 `h` 沒有任何內容會送出：沒有訊息"),
    ];
    for (english, expected) in cases {
        assert_eq!(chinese(english), expected);
    }
}

/// Regression: “conversations that are built in” took the whole sentence that ends so, and tore it at the number.
#[test]
fn a_sentence_is_not_torn_at_a_number_in_it() {
    let cases = [
        ("as with `m.wasm` as it was, in 6 conversations that are built in", "6 個內建的對話都與原本的 `m.wasm` 一樣"),
        (
            "from `m.wasm` as it was in 5 of 6 conversations that are built in",
            "6 個內建的對話裡有 5 個與原本的 `m.wasm` 不同",
        ),
        ("as with the last good build, in 6 conversations of `h`", "`h` 的 6 個對話都與上一次成功的建置一樣"),
        ("6 conversations that are built in", "6 個內建的對話"),
    ];
    for (english, expected) in cases {
        assert_eq!(chinese(english), expected);
    }
}

/// Regression: of two templates that a text matches, the longer one was taken, although its hole at the beginning tore
/// the other, or although only the shorter one knew every word.
#[test]
fn a_template_that_knows_a_part_was_preferred_to_one_that_knows_all() {
    let cases = [
        (
            "`slack:dm:U1` is not imported: conversation `slack:dm:U1` already exists",
            "`slack:dm:U1` 沒有匯入：已經有對話 `slack:dm:U1`",
        ),
        (
            "the compile cache is not used: 3 of its entries of kind `event` could not be read",
            "不使用編譯快取：種類 `event` 的項目有 3 個無法讀取",
        ),
        ("policy `a.wasm` gave no usable answer (and 7 more)", "策略 `a.wasm` 沒有給出任何能用的答案（還有 7 個）"),
        ("policy `a.wasm` gave 25 bad answers to 50 questions", "策略 `a.wasm` 對 50 個問題給了 25 個不合格的答案"),
        ("6 of 9 conversations not imported", "9 個對話中有 6 個沒有匯入"),
    ];
    for (english, expected) in cases {
        assert_eq!(chinese(english), expected);
    }
}

/// Regression: the names of a list kept their English commas.
#[test]
fn a_list_of_names_had_the_commas_of_another_language() {
    let cases = [
        ("its settings are `a`, `b`, `c`", "可用的有 `a`、`b`、`c`"),
        ("unknown key `x.y`; there are `a`, `b` (and 1 more)", "不認得的鍵 `x.y`；可用的有 `a`、`b`（還有 1 個）"),
        ("there is no conversation `a, b`", "沒有對話 `a, b`"),
    ];
    for (english, expected) in cases {
        assert_eq!(chinese(english), expected);
    }
}

#[test]
fn what_libraries_say_is_translated_and_numbers_stand_apart() {
    let cases = [
        ("file is not a database", "這個檔案不是資料庫"),
        ("unexpected end-of-file (at offset 0x5b9)", "檔案還沒完就結束了（位置 0x5b9）"),
        ("line 3: string values must be quoted, expected literal string", "第 3 行：字串值要加引號"),
        ("policy `strict` logged: trap", "策略 `strict` 的記錄：trap"),
        ("`a` is -1, not a string", "`a` 是 -1，不是字串"),
    ];
    for (english, expected) in cases {
        assert_eq!(chinese(english), expected);
    }
}

#[test]
fn names_stay_as_they_are_whatever_they_spell() {
    assert_eq!(chinese("there is no conversation `try again`"), "沒有對話 `try again`");
    assert_eq!(chinese("policy `it is empty` does not exist"), "策略 `it is empty` 不存在");
    assert_eq!(chinese("  tip: a similar subcommand exists: 'status'"), "  提示：有相近的指令：'status'");
}

/// Regression: single words of a foreign sentence that are also rows of ours, such as `or` and `to`, were translated.
#[test]
fn single_words_of_somebody_elses_sentence_were_taken_for_ours() {
    for foreign in [
        "error encoding message to server",
        "open or something else",
        "no route to host",
        "failed to do: it is empty",
        "closed or broken: try again",
    ] {
        assert!(!chinese(foreign).contains(['到', '或']), "{}", chinese(foreign));
    }
    let chain =
        "error sending request: error resolving DNS: failed to lookup address information: Name or service not known";
    assert_eq!(chinese(chain), "請求送不出去：查詢主機名稱時出錯：查不到位址：沒有這個名稱");
    assert_eq!(chinese("cannot create `/h/config.lock`: it is a folder"), "無法建立 `/h/config.lock`：它是資料夾");
}

#[test]
fn what_is_not_known_stays_as_it_is() {
    for text in ["", ": ", "upstream said: nothing useful; or else", "這句已經是中文：好"] {
        assert_eq!(chinese(text), text);
    }
    assert_eq!(chinese("cannot use the store `x`: disk I/O gremlin"), "無法使用資料庫 `x`：disk I/O gremlin");
    assert_eq!(translated("try again", Language::English), "try again");
}

#[test]
fn a_page_is_translated_line_by_line() {
    let page = "unexpected argument '--x' found\n\n  tip: a similar argument exists: '--y'\n\nUsage: pmk-host run";
    let expected = "不認得的參數 '--x'\n\n  提示：有相近的參數：'--y'\n\n用法：pmk-host run";
    assert_eq!(chinese(page), expected);
}

#[test]
fn an_error_and_its_hint_are_labelled() {
    let error = |language| error("it is empty", Some("try again"), language);
    assert_eq!(error(Language::English), "error: it is empty\n  hint: try again");
    assert_eq!(error(Language::TraditionalChinese), "錯誤：它是空的\n  提示：請再試一次");
}
