//! What commands tell whoever sits at the terminal, in their language: errors, hints, tables, and what was done. Machines read
//! English in any.

use regex::Regex;

use crate::{
    support::{Finished, Home, component, finish, question, repository},
    terminal::Terminal,
};

pub const CHINESE: &str = "zh_TW.UTF-8";

fn run(home: &Home, language: &str, arguments: &[&str]) -> Finished {
    let mut command = home.command(arguments);
    command.env("LC_ALL", language);
    finish(command, "")
}

/// What a command prints for somebody who reads Chinese, errors and hints among it.
pub fn in_chinese(home: &Home, arguments: &[&str]) -> String {
    let Finished { stdout, stderr, .. } = run(home, CHINESE, arguments);
    format!("$ pmk-host {}\n{stdout}{stderr}\n", arguments.join(" "))
        .replace(&home.path().display().to_string(), "[home]")
}

/// What commands print, one below the other, with what is another on every machine and at every time left out.
fn pages(home: &Home, commands: &[&[&str]]) -> String {
    let mut pages = String::new();
    for arguments in commands {
        let Finished { status, stdout, stderr } = run(home, CHINESE, arguments);
        let code = status.code().expect("it ends by itself");
        pages.push_str(&format!("$ pmk-host {} → {code}\n{stdout}{stderr}\n", arguments.join(" ")));
    }
    let home = home.path().display().to_string();
    let pages = pages.replace(&home, "HOME").replace(&repository("").display().to_string(), "");
    let replaced = [
        (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"sha256( +)[0-9a-f]{12,}", "sha256${1}DIGEST"),
        (r"[\d,]+ µs，燃料 [\d,]+，記憶體最多 \d+", "N µs，燃料 N，記憶體最多 N"),
        (r"[\d.]+ 秒內做了 (\d+) 個決定，每分鐘 [\d,]+ 個", "N 秒內做了 ${1} 個決定，每分鐘 N 個"),
        (r"µs (p50|p95) +[\d,]+ +[\d,]+", "µs ${1} N N"),
        (r"輸入 \d+（快取 \d+），輸出 \d+", "輸入 N（快取 N），輸出 N"),
        (r"U1 \d{3,}", "U1 N"),
    ];
    replaced.iter().fold(pages, |pages, (pattern, word)| {
        Regex::new(pattern).expect("a pattern").replace_all(&pages, *word).into_owned()
    })
}

/// No English sentence is in there, outside code.
pub fn is_chinese(pages: &str) {
    let code = Regex::new(r"`[^`\n]*`|(?m)^\$ .*$").expect("a pattern");
    let sentence = Regex::new(r"[A-Za-z]['A-Za-z]*(?:[ ,;:]+[A-Za-z]['A-Za-z]*){3,}").expect("a pattern");
    let odd: Vec<&str> = sentence.find_iter(pages).map(|found| found.as_str()).collect();
    let odd: Vec<&&str> =
        odd.iter().filter(|found| !code.find_iter(pages).any(|code| code.as_str().contains(**found))).collect();
    assert!(odd.is_empty(), "{odd:#?}\n{pages}");
}

/// A home with something wrong in it.
fn wronged() -> Home {
    let home = Home::new();
    home.write("empty.json", "[]");
    home.write("cut.json", r#"[{"role":"user","content":"a""#);
    home.write("odd.json", r#"[{"role":"user","content":7}]"#);
    home.write("nothing.wasm", "");
    home.write("text.wasm", "no component");
    home
}

const FAILING: [&[&str]; 25] = [
    &["plan", "--policy", "strict", "--history", "nowhere.json"],
    &["plan", "--policy", "strict", "--history", "HOME/cut.json"],
    &["plan", "--policy", "strict", "--history", "HOME/odd.json"],
    &["plan", "--policy", "strict", "--history", "HOME/empty.json"],
    &["plan", "--policy", "strikt", "--history", "HOME/empty.json"],
    &["policy", "inspect", "HOME/nothing.wasm"],
    &["policy", "inspect", "HOME/text.wasm"],
    &["policy", "inspect", "HOME"],
    &["policy", "new", "Mine"],
    &["policy", "use", "strict"],
    &["policy", "test", "HOME/text.wasm", "--cases", "HOME"],
    &["run", "--model", "nobody"],
    &["run", "--model", "anthropic-api"],
    &["run", "--policy", "strict", "--set", "strict.seed-kap=7", "--model", "sim"],
    &["run", "--policy", "strict", "--set", "strict.seed-cap=many", "--model", "sim"],
    &["run", "--front", "slack", "--model", "sim"],
    &["sessions", "list"],
    &["sessions", "show", "slack:dm:U1"],
    &["sessions", "import", "HOME/empty.json"],
    &["compare", "--policy", "strict"],
    &["experiment", "status"],
    &["experiment", "start"],
    &["audience", "set", "U1", "king"],
    &["escalation", "remove", "default", "U1"],
    &["init"],
];

const SENSELESS: [&[&str]; 14] = [
    &["plan"],
    &["plan", "--histroy", "x"],
    &["statsu"],
    &["run", "--front", "mail"],
    &["model", "explain", "--provider", "openai", "--status", "9", "--body-file", "-"],
    &["policy", "use", "--previous", "strict"],
    &["audit", "--days", "0"],
    &["admin", "log", "--last", "0"],
    &["stop", "--timeout", "soon"],
    &["sessions", "reset", "slack:dm:U1", "--to-turn", "-"],
    &["compare", "--policy", "strict", "--jobs", "0"],
    &["compare", "--policy", "strict", "--seed", "x"],
    &["policy", "dev", "mine", "--most", "none"],
    &["demo", "--seconds", "601"],
];

fn filled(home: &str, commands: &[&[&str]]) -> Vec<Vec<String>> {
    commands.iter().map(|words| words.iter().map(|word| word.replace("HOME", home)).collect()).collect()
}

fn told(home: &Home, commands: &[&[&str]]) -> String {
    let commands = filled(&home.path().display().to_string(), commands);
    let commands: Vec<Vec<&str>> = commands.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    let commands: Vec<&[&str]> = commands.iter().map(Vec::as_slice).collect();
    let pages = pages(home, &commands);
    is_chinese(&pages);
    pages
}

#[test]
fn errors_and_hints_are_in_the_readers_language() {
    insta::assert_snapshot!(told(&wronged(), &FAILING));
}

#[test]
fn arguments_that_make_no_sense_are_refused_in_it_too() {
    insta::assert_snapshot!(told(&wronged(), &SENSELESS));
}

#[test]
fn what_is_odd_in_gateway_json_is_said_in_it_too() {
    let home = wronged();
    let odd = r#"{"version":1,"language":"zh-TW","modle":"sim","tools":"maybe","historyTurns":"ten","admins":[7],
        "audience":{"users":{"U1":"king"}},"policy":{"limits":{"memory":1}},"queue":{"mode":7}}"#;
    home.write("gateway.json", odd);
    insta::assert_snapshot!(told(&home, &[&["config", "check"], &["admin", "list"]]));
}

/// Once they were put together first, and then taken for another sentence: its words were in both languages.
#[test]
fn what_an_import_leaves_out_is_told_in_whole_sentences() {
    let home = Home::new();
    let lines = home.write("lines.jsonl", "{\"role\":\"user\",\"content\":\"q\"}\nno JSON\n");
    let system = home.write("one.json", r#"{"system":"x","messages":[{"role":"user","content":"q"}]}"#);
    for file in [lines, system] {
        let file = file.to_str().expect("a path").to_owned();
        let told = run(&home, CHINESE, &["sessions", "import", &file, "--key", "slack:dm:U1", "--replace"]).stderr;
        let first = told.lines().next().unwrap_or_default();
        assert!(first.starts_with("警告：`slack:dm:U1`"), "{told}");
        let is_left = |word: &&str| word.chars().all(|char| char.is_ascii_lowercase());
        assert_eq!(first.split([' ', '；', '：', '`']).filter(|word| word.len() > 2).find(is_left), None, "{told}");
    }
}

/// A value is what somebody has written, and no word of ours.
#[test]
fn a_value_of_a_setting_is_shown_as_it_is() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"apiKey":"sk-1","slack":{"replyIn":"channel"}}"#);
    let shown = run(&home, CHINESE, &["config", "show"]).ok().stdout;
    let line = |key: &str| {
        let line = shown.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{shown}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("slack.replyIn"), ["slack.replyIn", "channel", "gateway.json"]);
    assert_eq!(line("apiKey"), ["apiKey", "（密鑰）", "gateway.json"]);
    assert_eq!(line("defaultIngest"), ["defaultIngest", "沒有", "預設"]);
    assert_eq!(line("language"), ["language", "zh-TW", "LC_ALL"]);
}

#[test]
fn machines_read_the_same_in_every_language() {
    let home = wronged();
    let commands = [&FAILING[..], &SENSELESS[..]].concat();
    for words in filled(&home.path().display().to_string(), &commands) {
        let words: Vec<&str> = std::iter::once("--json").chain(words.iter().map(String::as_str)).collect();
        let [english, chinese] = ["C", CHINESE].map(|language| run(&home, language, &words));
        assert_eq!((english.stdout, english.stderr), (chinese.stdout, chinese.stderr), "{words:?}");
    }
}

/// Somebody has talked, and an operator has changed something.
fn lived_in() -> Home {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"language":"en"}"#);
    let said: Vec<String> = (1..=4).map(|n| question(&format!("Ev{n}"), "The launch is on Friday.")).collect();
    finish(home.command(&["run", "--model", "sim"]), &(said.join("\n") + "\n")).ok();
    home.write("gateway.json", r#"{"version":1}"#);
    home
}

#[test]
fn tables_and_what_was_done_are_in_the_readers_language() {
    let home = lived_in();
    let history = repository("tests/fixtures/tool-heavy-en.json").display().to_string();
    let histories = home.path().join("histories").display().to_string();
    std::fs::create_dir(&histories).expect("a folder");
    std::fs::copy(&history, format!("{histories}/one.json")).expect("a history");
    let (strict, body) = (component("strict"), home.write("body", "Rate limit reached").display().to_string());
    let pages = pages(
        &home,
        &[
            &["sessions", "list"],
            &["sessions", "show", "console:dm:U1", "--turns", "1"],
            &["sessions", "parked"],
            &["audit"],
            &["admin", "add", "U7"],
            &["audience", "set", "U1", "tech"],
            &["audience", "list"],
            &["escalation", "add", "default", "U7"],
            &["escalation", "list"],
            &["case", "list"],
            &["atoms", "list"],
            &["config", "check"],
            &["policy", "inspect", &strict],
            &["policy", "check", &strict],
            &["plan", "--policy", "strict", "--history", &history, "--budget", "8000"],
            &["compare", "--policy", "standard", "--policy", "strict", "--histories", &histories, "--window", "8000"],
            &["model", "explain", "--provider", "openai", "--status", "429", "--body-file", &body],
            &["model", "tokens", "--model", "claude-haiku-4-5", &history],
            &["store", "check"],
            &["sessions", "reset", "console:dm:U1"],
            &["stop"],
        ],
    );
    insta::assert_snapshot!(pages);
}

/// The policies that come along say it in English, and are read in the reader's language; those of others stay as they are.
#[test]
fn what_policies_say_of_themselves_is_in_the_readers_language() {
    let home = Home::new();
    let told = |page: &str| {
        let is_told = |line: &&str| line.starts_with(['$', '說', ' ']) && !line.contains("     description: ");
        let lines =
            page.lines().filter(is_told).filter(|line| !line.starts_with("            ") && !line.contains('@'));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let names = ["caps", "facts-summary", "recall", "rolling-summary", "standard", "strict", "tool-lean"];
    let pages: String = names.iter().map(|name| told(&in_chinese(&home, &["policy", "inspect", name]))).collect();
    is_chinese(&pages);
    insta::assert_snapshot!(pages);
    let of_others = repository("tests/contract-1.0.0/strict.wasm").display().to_string();
    let machine = run(&home, CHINESE, &["--json", "policy", "inspect", "strict"]).ok().json();
    assert!(machine["about"].as_str().is_some_and(|about| about.starts_with("keeps the seed pair")), "{machine:#}");
    assert!(in_chinese(&home, &["policy", "inspect", &of_others]).contains("\n說明      "));
}

#[test]
fn what_is_under_way_is_told_in_the_readers_language() {
    let home = Home::new();
    let mut command = home.command(&["policy", "check", &component("strict")]);
    command.env("LC_ALL", CHINESE).env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("個問題，", 1);
    assert!(terminal.wait().success());
}
