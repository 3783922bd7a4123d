//! `compare`: policies on recorded conversations, and what is said of them.

mod browser;
mod kept;
mod statistics;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use pmk_corpus::shapes;
use regex::Regex;
use serde_json::{Value, json};

use crate::{
    component::Component,
    readers::{CHINESE, in_chinese, is_chinese},
    support::{Finished, Home, component, finish, repository},
};

/// A corpus of the repository's, three conversations of each kind.
const CONVERSATIONS: usize = 21;

/// All shipped policies on a corpus of the repository's: what the terminal showed, the JSON and the page.
struct Compared {
    shown: String,
    document: Value,
    page: PathBuf,
    _folder: tempfile::TempDir,
}

/// Made once for all tests: it is the same every time.
fn compared() -> &'static Compared {
    static COMPARED: OnceLock<Compared> = OnceLock::new();
    COMPARED.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        shapes::write(folder.path(), 1, CONVERSATIONS).expect("a corpus");
        let (json, page) = (folder.path().join("report.json"), folder.path().join("report.html"));
        let questions = folder.path().join("questions.jsonl");
        let finished = compare(
            &Home::new(),
            &folder.path().join("histories"),
            &["--questions", &text(&questions), "--json", &text(&json), "--html", &text(&page)],
        );
        let document = std::fs::read_to_string(&json).expect("the report");
        Compared {
            shown: finished.ok().stdout,
            document: serde_json::from_str(&document).expect("JSON"),
            page,
            _folder: folder,
        }
    })
}

#[test]
fn a_page_for_standard_output_went_into_a_file_called_so() {
    let home = Home::new();
    let finished = home.run(&["compare", "--policy", "strict", "--html", "-"], "");
    assert_eq!(finished.status.code(), Some(2));
    assert!(finished.stderr.contains("specify a file: standard output is for the report"), "{}", finished.stderr);
}

/// Once, the settings of the home applied to what was compared, and nothing said so.
#[test]
fn what_was_compared_with_settings_of_the_home_did_not_say_so() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"policy":{"settings":{"strict":{"seed-cap":900}}}}"#);
    let folder = tempfile::tempdir().expect("a folder");
    shapes::write(folder.path(), 1, 1).expect("a corpus");
    let (histories, page, json) = (folder.path().join("histories"), folder.path().join("page.html"), "report.json");
    let json = folder.path().join(json);
    let arguments = ["compare", "--policy", "standard", "--policy", "strict", "--window", "24000", "--histories"];
    let written = ["--html", &text(&page), "--json", &text(&json)];
    let shown = home.run(&[&arguments[..], &[&text(&histories)], &written].concat(), "").ok().stdout;
    assert!(shown.contains("\nsettings of `strict`: strict.seed-cap=900\n"), "{shown}");
    assert!(!shown.contains("settings of `standard`"), "{shown}");
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("the report")).expect("the report is JSON");
    assert_eq!(document["policies"][0]["settings"], json!({}));
    assert_eq!(document["policies"][1]["settings"], json!({"strict": {"seed-cap": 900}}));
    let page = std::fs::read_to_string(&page).expect("the page");
    assert!(page.contains("<p>settings of <code>strict</code>: strict.seed-cap=900</p>"), "{page}");
}

/// Once, that was found out after all the work, and the table was lost.
#[test]
fn a_report_that_could_not_be_written_took_all_the_work_with_it() {
    let home = Home::new();
    let folder = tempfile::tempdir().expect("a folder");
    shapes::write(folder.path(), 1, 1).expect("a corpus");
    let histories = text(&folder.path().join("histories"));
    let arguments = ["compare", "--policy", "standard", "--policy", "strict", "--histories", &histories];
    let (nowhere, page) = (text(&folder.path().join("none/report")), text(&folder.path().join("page.html")));
    for flag in ["--html", "--json"] {
        let refused = home.run(&[&arguments[..], &[flag, &nowhere]].concat(), "");
        let expected = format!("error: cannot write `{nowhere}`: ");
        assert!(refused.stderr.starts_with(&expected) && refused.stdout.is_empty(), "{}", refused.stderr);
    }
    // What fails only at the end.
    let full = home.run(&[&arguments[..], &["--json", "/dev/full", "--html", &page]].concat(), "");
    assert_eq!(full.status.code(), Some(1));
    assert!(full.stdout.contains("tokens sent") && full.stderr.contains("cannot write `/dev/full`"), "{}", full.stderr);
    assert!(std::fs::metadata(&page).is_ok_and(|page| page.len() > 0));
}

/// Regression: the page was written, and replaced by the document at once.
#[test]
fn of_two_reports_in_one_file_the_second_replaced_the_first() {
    let home = Home::new();
    let folder = tempfile::tempdir().expect("a folder");
    shapes::write(folder.path(), 1, 1).expect("a corpus");
    let [histories, report, link, early] =
        ["histories", "report", "link", "early"].map(|name| folder.path().join(name));
    for (target, link) in [(folder.path(), &link), (Path::new("report"), &early)] {
        std::os::unix::fs::symlink(target, link).expect("a link");
    }
    let arguments = ["compare", "--policy", "standard", "--policy", "strict", "--histories", &text(&histories)];
    let both =
        |page: &Path| home.run(&[&arguments[..], &["--html", &text(page), "--json", &text(&report)]].concat(), "");
    for page in [&report, &link.join("report"), &folder.path().join("./report"), &early] {
        let refused = both(page);
        let expected = "error: `--html` and `--json` name the same file, `";
        assert!(refused.stderr.starts_with(expected) && refused.stdout.is_empty(), "{}", refused.stderr);
        assert!(!report.exists());
    }
    let refused = home.run(&[&arguments[..], &["--html", "/dev/stdout", "--json", "-"]].concat(), "");
    assert!(refused.stderr.contains("name the same file, `/dev/stdout`"), "{}", refused.stderr);
}

/// They were as readable as new files are, also where they replaced files that others could read.
#[test]
fn reports_that_quote_conversations_were_readable_by_everybody() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    let folder = tempfile::tempdir().expect("a folder");
    shapes::write(folder.path(), 1, 1).expect("a corpus");
    let [histories, json, page, link] =
        ["histories", "report.json", "page.html", "link.html"].map(|name| folder.path().join(name));
    std::fs::write(&page, "an old page").expect("a page");
    std::fs::set_permissions(&page, PermissionsExt::from_mode(0o644)).expect("a mode");
    std::os::unix::fs::symlink(&page, &link).expect("a link");
    let arguments = ["compare", "--policy", "standard", "--policy", "strict", "--histories", &text(&histories)];
    home.run(&[&arguments[..], &["--json", &text(&json), "--html", &text(&link)]].concat(), "").ok();
    for report in [json, page] {
        let there = std::fs::metadata(&report).expect("a report");
        assert_eq!((there.permissions().mode() & 0o777, there.len() > 100), (0o600, true), "{}", report.display());
    }
    assert!(link.is_symlink(), "the link stays");
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("a folder")
            .filter(|entry| { entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with('.')) })
            .count(),
        0,
        "nothing is left behind"
    );
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// All shipped policies on these histories, with a window that long conversations do not fit.
fn compare(home: &Home, histories: &Path, more: &[&str]) -> Finished {
    finish(command(home, histories, more), "")
}

fn command(home: &Home, histories: &Path, more: &[&str]) -> Command {
    let shipped = ["strict", "rolling-summary", "tool-lean", "recall"].map(component);
    let shipped: Vec<&str> = shipped.iter().flat_map(|policy| ["--policy", policy]).collect();
    let policies = [&["compare", "--policy", "standard"][..], &shipped].concat();
    let histories = text(histories);
    let model = ["--histories", &histories, "--model", "anthropic-api:claude-sonnet-4-5", "--window", "24000"];
    home.command(&[&policies[..], &model, more].concat())
}

/// Without what differs from run to run.
fn without_timings(mut document: Value) -> Value {
    document.as_object_mut().expect("an object").remove("timings").expect("timings");
    document
}

/// The text without times, and without fuel, which changes with every build of a policy.
fn steady(shown: &str) -> String {
    let steady = shown.lines().filter(|line| !["µs ", " a minute", "fuel"].iter().any(|word| line.contains(word)));
    steady.map(|line| format!("{line}\n")).collect()
}

/// A small corpus, one conversation of each kind.
fn small() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    shapes::write(folder.path(), 5, 7).expect("a corpus");
    folder
}

/// A chat of each of these lengths.
fn chats(lengths: std::ops::Range<usize>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for turns in lengths {
        std::fs::write(folder.path().join(format!("{turns}.json")), chat(turns).to_string()).expect("a history");
    }
    folder
}

/// A chat of so many turns as the Messages API has it.
fn chat(turns: usize) -> Value {
    let messages: Vec<Value> = (0..turns)
        .flat_map(|n| {
            [
                json!({"role": "user", "content": format!("question {n} {}", "why ".repeat(300))}),
                json!({"role": "assistant", "content": format!("answer {n} {}", "so ".repeat(300))}),
            ]
        })
        .collect();
    json!({"system": "be brief", "messages": messages})
}

#[test]
fn all_shipped_policies_on_a_corpus() {
    insta::assert_snapshot!(steady(&compared().shown));
}

/// What a page says, a line each of its rows and paragraphs.
fn said_by(page: &str) -> String {
    let without = |pattern: &str, text: &str, by: &str| {
        Regex::new(pattern).expect("a pattern").replace_all(text, by).into_owned()
    };
    let text = without(r"(?s)<style>.*?</style>|<text .*?</text>|<pre>.*?</pre>", page, "");
    let text = without(r"</(?:tr|p|h1|h2|li|figcaption|title|summary)>", &text, "\n");
    let text = without(r"<[^>]*>", &text, " ");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
}

#[test]
fn the_page_is_in_the_readers_language_and_what_machines_read_is_not() {
    let corpus = small();
    let path = |name: &str| text(&corpus.path().join(name));
    let (page, questions) = (path("report.html"), path("questions.jsonl"));
    let report = |language: &str, more: &[&str]| {
        let more = [&["--questions", &questions][..], more].concat();
        let home = Home::new();
        let mut command = command(&home, &corpus.path().join("histories"), &more);
        command.env("LC_ALL", language);
        finish(command, "").ok()
    };
    report(CHINESE, &["--html", &page]);
    let page = std::fs::read_to_string(&page).expect("the page");
    assert!(page.starts_with("<!doctype html>\n<html lang=\"zh-TW\">"), "{page}");
    let chart: Vec<&str> = page.split("<text ").skip(1).filter_map(|text| text.split(['>', '<']).nth(1)).collect();
    for name in ["對話的第幾輪", "token", "每輪送出的 token", "看得到依據"] {
        assert!(chart.contains(&name), "`{name}` is missing: {chart:?}");
    }
    let said = said_by(&page);
    // From there on it is the conversation that speaks.
    let (ours, side_by_side) = said.split_once("\n0 ").expect("the first message");
    let (_, method) = side_by_side.split_once("如何解讀").expect("how to read this");
    let ours = format!("{ours}\n如何解讀{method}");
    is_chinese(&ours);
    let ours = Regex::new(r"\b[0-9a-f]{12}\b|-?\d[\d.,]*").expect("a pattern").replace_all(&ours, "N");
    insta::assert_snapshot!(ours);
    for state in ["● 保留", "○ 略去", "Σ 整理成摘要", "則訊息，情形相同"] {
        assert!(said.contains(state), "`{state}` is missing");
    }
    let [english, chinese] = ["C", CHINESE].map(|language| without_timings(report(language, &["--json", "-"]).json()));
    assert_eq!(english, chinese);
}

/// Once, it was "Not a directory".
#[test]
fn one_recorded_conversation_needed_a_folder_of_its_own() {
    let home = Home::new();
    let history = text(&repository("tests/fixtures/tool-heavy-en.json"));
    let arguments = ["compare", "--policy", "standard", "--policy", "strict", "--window", "24000", "--histories"];
    let document = home.run(&[&arguments[..], &[&history, "--json", "-"]].concat(), "").ok().json();
    assert_eq!(document["conversations"].as_array().map(Vec::len), Some(1), "{document:#}");
}

#[test]
fn what_differs_is_said_in_the_readers_language() {
    let (home, folder) = (Home::new(), chats(20..40));
    let mut command = home.command(&["compare", "--policy", "standard", "--policy", "strict", "--window", "24000"]);
    command.args(["--set", "strict.max-session-tokens=3000", "--histories"]).arg(folder.path());
    command.env("LC_ALL", CHINESE);
    let shown = finish(command, "").ok().stdout;
    let verdict = shown.lines().find(|line| line.starts_with("與 `standard` 相比，`strict` ")).expect("a verdict");
    let said = r"少送出 [\d.]+ % 的 token \[[\d.]+, [\d.]+\].*，並每個對話多略去 [\d.]+ 輪 \[";
    assert!(Regex::new(said).expect("a pattern").is_match(verdict), "{verdict}");
    assert!(!["fewer", "more", "less", "points"].iter().any(|word| verdict.contains(word)), "{verdict}");
}

/// Regression: a category that is called as a row of the report is was translated, as if it were that row.
#[test]
fn the_name_that_somebody_gave_a_category_of_questions_was_translated() {
    let (home, corpus) = (Home::new(), small());
    let questions = corpus.path().join("questions.jsonl");
    let asked = std::fs::read_to_string(&questions).expect("questions");
    std::fs::write(&questions, asked.replace("said-once", "decisions")).expect("questions");
    let mut command = home.command(&["compare", "--policy", "standard", "--policy", "strict", "--window", "24000"]);
    command.arg("--questions").arg(questions).arg("--histories").arg(corpus.path().join("histories"));
    command.env("LC_ALL", CHINESE);
    let shown = finish(command, "").ok().stdout;
    let of_category = shown.lines().filter(|line| line.starts_with("  decisions "));
    assert_eq!((of_category.count(), shown.contains("\n決定 ")), (2, true), "{shown}");
}

/// Once, it was `no difference shown`, although three conversations cannot show any.
#[test]
fn too_few_conversations_for_any_difference_were_said_to_show_none() {
    let (home, folder) = (Home::new(), chats(20..23));
    let page = home.path().join("report.html");
    let shown = |language: &str| {
        let mut command = home.command(&["compare", "--policy", "standard", "--policy", "strict", "--window", "24000"]);
        command.args(["--set", "strict.max-session-tokens=3000", "--html", &text(&page), "--histories"]);
        command.arg(folder.path()).env("LC_ALL", language);
        finish(command, "").ok().stdout
    };
    let chinese = shown(CHINESE);
    assert!(chinese.contains("\n對話太少，看不出 `strict` 與 `standard` 之間的任何差異\n"), "{chinese}");
    let english = shown("C");
    let told = "\ntoo few conversations to show any difference between `strict` and `standard`\n";
    assert!(english.contains(told), "{english}");
    let said = said_by(&std::fs::read_to_string(&page).expect("the page"));
    for (metric, would_be_found) in [("tokens sent", " ○ not shown never"), ("overflows", " ○ not shown -")] {
        let row = said.lines().find(|line| line.starts_with(&format!("strict against standard {metric} ")));
        assert!(row.is_some_and(|row| row.ends_with(would_be_found)), "{said}");
    }
}

/// Once, it was `no difference shown` and nothing else: where it fails, the policy below decides.
#[test]
fn a_policy_that_always_fails_was_said_not_to_differ() {
    let (home, folder) = (Home::new(), chats(20..24));
    let failing = text(&home.write("failing.wasm", Component::pruning("unreachable").build()));
    let english = r"; `test` failed in [1-9]\d* of \d+ decisions; `standard` decided [1-9]\d* of these\n";
    let chinese = r"；`test` 在 \d+ 次決定中失敗 [1-9]\d* 次；其中 [1-9]\d* 次由 `standard` 決定\n";
    for (language, told) in [("C", english), (CHINESE, chinese)] {
        let mut command = home.command(&["compare", "--policy", "standard", "--policy", &failing, "--histories"]);
        command.arg(folder.path()).env("LC_ALL", language);
        let shown = finish(command, "").ok().stdout;
        assert!(Regex::new(told).expect("a pattern").is_match(&shown), "{shown}");
    }
}

/// Once, `standard` decided, which did not differ from itself, and why the guard had refused was said nowhere.
#[test]
fn a_policy_that_was_always_refused_was_said_not_to_differ_and_not_why() {
    let (home, folder) = (Home::new(), chats(20..24));
    let tears = "(call $remove (local.get $plan) (i32.const 0) (i32.const 1))";
    let tearing = text(&home.write("tearing.wasm", Component::pruning(tears).build()));
    let (page, json) = (home.path().join("report.html"), home.path().join("report.json"));
    let english = [
        r"; `test` was refused in [1-9]\d* of \d+ decisions; `standard` decided [1-9]\d* of these\n",
        r"\nnot used: `test` in `prune`, [1-9]\d*×, first in turn \d+ of `[^`]+`: guard rule 1: ",
    ];
    let chinese = [
        r"；`test` 在 \d+ 次決定中被拒絕 [1-9]\d* 次；其中 [1-9]\d* 次由 `standard` 決定\n",
        r"\n沒有採用：`test` 的 `prune`，[1-9]\d* 次，第一次在 `[^`]+` 的第 \d+ 輪：護欄規則 1：",
    ];
    for (language, told) in [(CHINESE, chinese), ("C", english)] {
        let mut command = home.command(&["compare", "--policy", "standard", "--policy", &tearing, "--histories"]);
        command.arg(folder.path()).args(["--html", &text(&page), "--json", &text(&json)]).env("LC_ALL", language);
        let shown = finish(command, "").ok().stdout;
        for told in told {
            assert!(Regex::new(told).expect("a pattern").is_match(&shown), "{told}: {shown}");
        }
    }
    let page = std::fs::read_to_string(&page).expect("the page");
    assert!(page.contains("<p>not used: <code>test</code> in <code>prune</code>, "), "{page}");
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(&json).expect("the report")).expect("the report is JSON");
    let [standard, refused] = [0, 1].map(|at| &document["policies"][at]);
    assert_eq!((&standard["faults"], &standard["decided_instead"]), (&json!([]), &json!({})));
    let faults = refused["faults"].as_array().expect("faults");
    let counted: u64 = faults.iter().map(|fault| fault["count"].as_u64().expect("a number")).sum();
    assert_eq!((Some(counted), counted > 0), (refused["rejections"].as_u64(), true), "{refused:#}");
    assert_eq!(refused["decided_instead"], json!({"standard": counted}));
    let torn = faults.iter().find(|fault| fault["rule"] == 1).expect("half of a turn");
    assert_eq!((&torn["policy"], &torn["decision"]), (&json!("test"), &json!("prune")));
    assert!(torn["conversation"].is_string() && torn["turn"].as_u64() > Some(1), "{torn:#}");
}

/// Once, the same name was said to have been refused and to have decided instead.
#[test]
fn another_build_of_the_standard_policy_was_told_by_the_name_of_the_embedded_one() {
    let (home, folder) = (Home::new(), chats(20..22));
    let name = "(call $name (local.get $description) (i32.const 64) (i32.const 8)) \
                (call $version (local.get $description) (i32.const 8) (i32.const 3))";
    let other = Component::pruning("unreachable").data("standard").export("describe", name);
    let other = text(&home.write("other.wasm", other.build()));
    let mut command = home.command(&["compare", "--policy", "strict", "--policy", &other, "--histories"]);
    command.arg(folder.path());
    let shown = finish(command, "").ok().stdout;
    let told = r"; `standard` failed in [1-9]\d* of \d+ decisions; `standard \d\S* [0-9a-f]{8}` decided ";
    assert!(Regex::new(told).expect("a pattern").is_match(&shown), "{shown}");
}

#[test]
fn what_is_counted_adds_up() {
    let document = &compared().document;
    let sum_of = |policy: &str, field: &str| -> u64 {
        let conversations = document["conversations"].as_array().expect("conversations");
        conversations.iter().map(|one| one["policies"][policy][field].as_u64().expect("a number")).sum()
    };
    for policy in document["policies"].as_array().expect("policies") {
        let label = policy["label"].as_str().expect("a label");
        assert_eq!(policy["tokens"]["sum"], sum_of(label, "tokens_sent"), "{label}");
        assert_eq!(policy["turns_dropped"], sum_of(label, "turns_dropped"), "{label}");
        let tokens = |field: &str| policy["tokens"][field].as_u64().expect("a number");
        assert!(tokens("p50") <= tokens("p95") && tokens("p95") <= tokens("max"), "{label}");
        assert!(tokens("max") <= 24_000 && tokens("reused") < tokens("sum"), "{label}");
        assert_eq!((&policy["failures"], &policy["unanswered"]), (&json!(0), &json!(0)), "{label}");
        let asked = policy["questions"]["visible"]["asked"].as_u64();
        assert_eq!(asked, document["questions"].as_u64(), "{label}");
        let by_category = policy["questions"]["categories"].as_object().expect("categories").values();
        assert_eq!(asked, Some(by_category.map(|score| score["visible"]["asked"].as_u64().expect("a number")).sum()));
    }
    assert_eq!(document["conversations"].as_array().map(Vec::len), Some(CONVERSATIONS));
    assert_eq!(document["problems"], json!([]));
}

#[test]
fn the_same_seed_gives_the_same_report_whoever_is_first() {
    let corpus = small();
    let report = |jobs: &str, seed: &str| {
        let questions = text(&corpus.path().join("questions.jsonl"));
        let more = ["--questions", &questions, "--jobs", jobs, "--seed", seed, "--json", "-"];
        compare(&Home::new(), &corpus.path().join("histories"), &more).ok().json()
    };
    let one = without_timings(report("1", "7"));
    assert_eq!(one.to_string(), without_timings(report("4", "7")).to_string());
    let other = report("4", "8");
    assert_eq!(one["policies"][0]["tokens"]["sum"], other["policies"][0]["tokens"]["sum"]);
    assert_ne!(one["comparisons"], other["comparisons"], "another seed, other resamples");
}

/// `standard` and `strict` on a small corpus with the stand-in.
fn with_the_stand_in(more: &[&str]) -> Vec<Value> {
    let corpus = small();
    let (strict, histories) = (component("strict"), text(&corpus.path().join("histories")));
    let arguments = ["compare", "--policy", "standard", "--policy", &strict, "--histories", &histories, "--json", "-"];
    let document = Home::new().run(&[&arguments[..], more].concat(), "").ok().json();
    document["policies"].as_array().expect("policies").clone()
}

#[test]
fn what_a_model_refuses_is_recovered_from_as_in_a_turn() {
    for policy in with_the_stand_in(&["--window", "24000", "--budget", "60000"]) {
        let met = policy["overflows"]["met"].as_u64().expect("a number");
        let rungs: u64 = policy["rungs"].as_object().expect("rungs").values().filter_map(Value::as_u64).sum();
        assert!(met > 0 && rungs == met, "{policy:#}");
        assert!(policy["rungs"]["trim"].as_u64() > Some(0), "{policy:#}");
        assert_eq!(policy["unanswered"], policy["rungs"]["give-up"], "{policy:#}");
        assert_eq!(policy["dollars"], Value::Null, "the stand-in has no price");
        let (refused, sent) = (policy["tokens"]["refused"].as_u64(), policy["tokens"]["sum"].as_u64());
        assert!(refused > Some(met * 24_000) && refused < sent, "{policy:#}");
    }
}

/// Once, a turn was counted by each rung that took it, also if the next one started again.
#[test]
fn turns_that_a_refused_rung_had_taken_were_counted_again_by_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let messages: Vec<Value> = (0..40)
        .flat_map(|n| {
            // A long answer in the most recent turn, which the trim rung keeps.
            let words = if n % 4 == 3 { 2_700 } else { 250 };
            [
                json!({"role": "user", "content": format!("question {n}")}),
                json!({"role": "assistant", "content": format!("answer {n} {}", "so ".repeat(words))}),
            ]
        })
        .collect();
    std::fs::write(folder.path().join("chat.json"), json!(messages).to_string()).expect("a history");
    let arguments = ["compare", "--policy", "standard", "--policy", "rolling-summary", "--policy", "recall"];
    let model = ["--model", "sim:factor=3", "--window", "8000", "--budget", "8000", "--json", "-", "--histories"];
    let document = Home::new().run(&[&arguments[..], &model, &[&text(folder.path())]].concat(), "").ok().json();
    let of = |policy: &str, pointer: &str| {
        document["conversations"][0]["policies"][policy].pointer(pointer).and_then(Value::as_u64).expect("a number")
    };
    assert!(of("standard", "/rungs/trim") > 0 && of("standard", "/rungs/rotate") > 0, "{document:#}");
    for policy in ["standard", "rolling-summary", "recall"] {
        let (dropped, summarised) = (of(policy, "/turns_dropped"), of(policy, "/turns_summarised"));
        assert!(dropped + summarised < of(policy, "/turns"), "{policy}: {dropped} and {summarised}");
    }
}

/// Once, it warned of simulated turns as if they were people's, with advice to forget what the model's limits are.
#[test]
fn the_log_of_a_gateway_was_written_about_turns_that_are_simulated() {
    let (home, folder) = (Home::new(), chats(20..22));
    let page = text(&home.path().join("report.html"));
    let arguments = ["compare", "--policy", "standard", "--policy", "strict", "--histories", &text(folder.path())];
    for model in ["--model=sim:factor=2,overhead=500 --window=3000", "--model=sim:factor=3 --window=8000 --budget=8000"]
    {
        let model: Vec<&str> = model.split(' ').collect();
        let finished = home.run(&[&arguments[..], &model, &["--html", &page]].concat(), "").ok();
        assert!(finished.stdout.contains("overflows met"), "{}", finished.stdout);
        assert_eq!(finished.stderr, "");
    }
}

#[test]
fn how_a_model_counts_is_learnt_as_in_a_turn() {
    for policy in with_the_stand_in(&["--window", "24000", "--model", "sim:factor=1.8,overhead=4000"]) {
        assert!(policy["overflows"]["predicted"].as_u64() > Some(0), "{policy:#}");
        // Nothing is known before the first answer of a conversation.
        assert!(policy["overflows"]["met"].as_u64() <= Some(7), "{policy:#}");
        // What is left of the window, in our own tokens.
        assert!(policy["tokens"]["p95"].as_u64() <= Some((24_000 - 4_000) * 10 / 18), "{policy:#}");
    }
}

#[test]
fn every_format_is_read_and_what_is_broken_is_told() {
    let home = Home::new();
    let run = |line: &str, more: &[&str]| home.run(&[&["run", "--model", "sim"], more].concat(), line).ok();
    run("{\"text\":\"The launch is on Friday.\",\"user\":\"U9\",\"channel\":\"D9\",\"event_id\":\"Ev1\"}\n", &[]);
    let histories = home.path().join("histories");
    std::fs::create_dir_all(histories.join("slack/users/U1")).expect("a folder");
    let export = text(&histories.join("all.jsonl"));
    home.run(&["sessions", "export", "--all", "--to", &export], "").ok();
    let mut session = chat(3);
    session["userId"] = json!("U1");
    std::fs::write(histories.join("slack/users/U1/session.json"), session.to_string()).expect("a file");
    std::fs::write(histories.join("chat.json"), chat(4).to_string()).expect("a file");
    std::fs::write(
        histories.join("lines.jsonl"),
        "{\"id\":\"a\",\"role\":\"user\",\"content\":\"The code is 4711.\"}\n{\"rol",
    )
    .expect("a file");
    std::fs::write(histories.join("broken.json"), "{\"messages\":").expect("a file");
    let question = json!({"conversation": "lines", "question": "What is the code?", "answer": 4711, "evidence": ["a"]});
    let lost = json!({"conversation": "nowhere", "question": "?", "evidence": []});
    let questions = text(&home.write("questions.json", json!([question, lost]).to_string()));
    let finished = compare(&home, &histories, &["--questions", &questions, "--json", "-"]).ok();
    let document = finished.json();
    let names: Vec<&str> = document["conversations"]
        .as_array()
        .expect("conversations")
        .iter()
        .filter_map(|one| one["conversation"].as_str())
        .collect();
    assert_eq!(names, ["console:dm:U9", "chat", "lines", "slack:dm:U1"]);
    assert_eq!(document["policies"][0]["questions"]["visible"], json!({"asked": 1, "yes": 1, "share": 1.0}));
    assert_eq!(document["policies"][0]["questions"]["answered"], json!({"asked": 1, "yes": 1, "share": 1.0}));
    let told = finished.stderr.replace(&format!("{}/", home.path().display()), "");
    insta::assert_snapshot!(told);
}

/// Once, they were two conversations, and differences were shown for which there were too few.
#[test]
fn each_export_of_a_store_made_one_more_conversation_of_the_same() {
    let home = Home::new();
    let asked = json!({"text": "hello", "user": "U9", "channel": "D9", "event_id": "Ev1"});
    home.run(&["run", "--model", "sim"], &format!("{asked}\n")).ok();
    let histories = home.path().join("histories");
    std::fs::create_dir(&histories).expect("a folder");
    for export in ["a.jsonl", "b.jsonl"] {
        home.run(&["sessions", "export", "--all", "--to", &text(&histories.join(export))], "").ok();
    }
    let document = compare(&home, &histories, &["--json", "-"]).ok().json();
    let names: Vec<&Value> =
        document["conversations"].as_array().expect("conversations").iter().map(|one| &one["conversation"]).collect();
    assert_eq!(names, ["console:dm:U9"]);
    // The newest one counts: it may have more of the conversation.
    let older = text(&histories.join("a.jsonl"));
    let told = format!("`console:dm:U9` is in another file as well; the copy in `{older}` is left out");
    assert_eq!(document["problems"], json!([told]));
}

/// Once, it was asked about both, and counted twice.
#[test]
fn a_question_about_a_file_name_was_asked_of_every_file_of_that_name() {
    let home = Home::new();
    let histories = home.path().join("histories");
    for folder in ["a", "b"] {
        std::fs::create_dir_all(histories.join(folder)).expect("a folder");
        std::fs::write(histories.join(folder).join("chat.json"), chat(4).to_string()).expect("a file");
    }
    let question = |conversation: &str| json!({"conversation": conversation, "question": "why?", "evidence": [0]});
    let report = |conversation: &str| {
        let questions = text(&home.write("questions.json", json!([question(conversation)]).to_string()));
        compare(&home, &histories, &["--questions", &questions, "--json", "-"]).ok().json()
    };
    let several = report("chat");
    let told = "question `1`: `chat` names several conversations, such as `a/chat`; skipping the question";
    assert_eq!((&several["questions"], &several["problems"]), (&json!(0), &json!([told])));
    let one = report("b/chat");
    assert_eq!((&one["questions"], &one["problems"]), (&json!(1), &json!([])));
}

#[test]
fn an_operators_prices_count() {
    let home = Home::new();
    let histories = home.path().join("histories");
    std::fs::create_dir(&histories).expect("a folder");
    std::fs::write(histories.join("chat.json"), chat(20).to_string()).expect("a file");
    let prices = "[models.\"claude-sonnet-4-5\"]\ninput = 1.0\ncached = 1.0\noutput = 0.0\n";
    let prices = text(&home.write("prices.toml", prices));
    let document = compare(&home, &histories, &["--prices", &prices, "--json", "-"]).ok().json();
    // Regression: a conversation had that key only if there was a price.
    let keys = |document: &Value| -> Vec<String> {
        let policy = &document["conversations"][0]["policies"]["standard"];
        policy.as_object().expect("an object").keys().cloned().collect()
    };
    let others = text(&home.write("others.toml", "[models.other]\ninput = 1.0\ncached = 1.0\noutput = 0.0\n"));
    let without = compare(&home, &histories, &["--prices", &others, "--json", "-"]).ok().json();
    assert_eq!(without["conversations"][0]["policies"]["standard"]["dollars"], Value::Null);
    assert_eq!(keys(&without), keys(&document));
    for policy in document["policies"].as_array().expect("policies") {
        let sent = policy["tokens"]["sum"].as_f64().expect("a number");
        let dollars = policy["dollars"].as_f64().expect("a number");
        assert!((dollars - sent / 1_000_000.0).abs() < 1e-9, "{policy:#}");
    }
}

#[test]
fn what_makes_no_sense_is_said() {
    let home = Home::new();
    let histories = home.path().join("histories");
    std::fs::create_dir(&histories).expect("a folder");
    let (strict, histories) = (component("strict"), text(&histories));
    let bad_questions = text(&home.write("questions.jsonl", "{\"conversation\":\"c\"}\n"));
    let no_questions = text(&home.write("none.json", "[]"));
    let bad_prices = text(&home.write("prices.toml", "[models.a]\ninput = 1\n"));
    let both = ["compare", "--policy", "standard", "--policy", &strict];
    let mut shown = String::new();
    for arguments in [
        &["compare", "--policy", &strict, "--histories", &histories][..],
        &[&both[..], &["--histories", &histories]].concat(),
        &[&both[..], &["--histories", &format!("{histories}/none")]].concat(),
        &[&both[..], &["--histories", &histories, "--questions", &bad_questions]].concat(),
        &[&both[..], &["--histories", &histories, "--questions", &no_questions]].concat(),
        &[&both[..], &["--histories", &histories, "--prices", &bad_prices]].concat(),
        &[&both[..], &["--histories", &histories, "--model", "sim:speed=9"]].concat(),
        &[&both[..], &["--histories", &histories, "--set", "strct.seed-cap=9"]].concat(),
        &[&both[..], &["--histories", &histories, "--jobs", "0"]].concat(),
    ] {
        let finished = home.run(arguments, "");
        assert!(!finished.status.success() && finished.stdout.is_empty());
        shown.push_str(&finished.stderr);
    }
    let plugins = strict.trim_end_matches("strict.wasm");
    insta::assert_snapshot!(shown.replace(&format!("{}/", home.path().display()), "").replace(plugins, ""));
}

/// Once, one policy with two settings, and stacks of layers, could be compared in experiments alone.
#[test]
fn what_experiments_compare_could_not_be_compared_on_recorded_conversations() {
    let (home, folder) = (Home::new(), chats(20..24));
    let arms = json!([
        {"name": "tight", "policy": {"files": ["strict"], "settings": {"strict": {"max-session-tokens": 3000}}}},
        {"name": "stack", "policy": {"files": ["recall", "caps"]}},
        {"name": "now", "policy": {"files": ["strict"]}},
        {"name": "serving"},
    ]);
    let experiment = json!({"name": "tight", "control": "now", "arms": arms}).to_string();
    let (file, histories) = (text(&home.write("experiment.json", experiment)), text(folder.path()));
    let arguments = ["compare", "--experiment", &file, "--window", "24000", "--histories", &histories];
    let document = home.run(&[&arguments[..], &["--json", "-"]].concat(), "").ok().json();
    let policies = document["policies"].as_array().expect("policies");
    let labels: Vec<&Value> = policies.iter().map(|policy| &policy["label"]).collect();
    assert_eq!(labels, ["now", "tight", "stack", "serving"], "the control is what the others are compared with");
    assert_eq!((&policies[0]["settings"], &policies[1]["layers"]), (&json!({}), &policies[0]["layers"]));
    assert_eq!(policies[1]["settings"], json!({"strict": {"max-session-tokens": 3000}}));
    assert!(policies[1]["turns_dropped"].as_u64() > policies[0]["turns_dropped"].as_u64(), "{document:#}");
    let layers = |at: usize| policies[at]["layers"].as_array().expect("layers").iter().map(|layer| &layer["name"]);
    assert!(layers(2).eq(["caps", "recall", "standard"]) && layers(3).eq(["standard"]), "{document:#}");
    let refused = home.run(&[&arguments[..], &["--policy", "strict"]].concat(), "");
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
}

/// Regression: in Chinese, an arm named like one of our words was called something else.
#[test]
fn the_names_of_arms_were_translated() {
    let (home, folder) = (Home::new(), chats(20..24));
    let arms = json!([{"name": "default"}, {"name": "policy", "policy": {"files": ["strict"]}}]);
    let experiment = json!({"name": "names", "control": "default", "arms": arms}).to_string();
    let (file, histories) = (text(&home.write("experiment.json", experiment)), text(folder.path()));
    let arguments = ["compare", "--experiment", &file, "--window", "24000", "--histories", &histories];
    let chinese = in_chinese(&home, &arguments);
    let mut heading = chinese.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(heading.any(|words| words == ["default", "policy"]), "{chinese}");
}

#[test]
fn a_window_in_which_nothing_fits_is_refused() {
    let home = Home::new();
    let histories = home.path().join("histories");
    std::fs::create_dir(&histories).expect("a folder");
    std::fs::write(histories.join("chat.json"), chat(5).to_string()).expect("a history");
    let arguments = ["compare", "--policy", "standard", "--policy", &component("strict"), "--histories"];
    let finished = home.run(&[&arguments[..], &[&text(&histories), "--window", "100"]].concat(), "");
    assert_eq!(finished.status.code(), Some(1));
    assert!(finished.stderr.contains("hint: use a larger `--window`"), "{}", finished.stderr);
}
