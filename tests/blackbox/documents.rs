//! What the documents say is there: links, anchors, paths, tests, commands, codes, events and requirements.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    support::{Home, program, question, replies, repository},
    terminal::Terminal,
};

mod pages;

use pages::{Page, citations, pages};

/// Every file below a folder whose name ends so, built things aside.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

/// The sources of everything in Rust, and of the contract.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = vec![];
    for (folder, ending) in
        [("host", ".rs"), ("plugins", ".rs"), ("tests", ".rs"), ("wit", ".wit"), ("plugins/sdk/wit", ".wit")]
    {
        files(&repository(folder), ending, &mut found);
    }
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).expect("UTF-8"))).collect()
}

/// Every function and module of the sources.
fn names() -> HashSet<String> {
    let mut found = HashSet::new();
    for (path, text) in sources() {
        let functions = text.lines().filter_map(|line| line.trim_start().split_once("fn ")?.1.split_once(['(', '<']));
        found.extend(functions.map(|(name, _)| name.to_owned()));
        found.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        // A test binary of several files is called by its folder.
        found.extend(path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()));
    }
    found
}

#[test]
fn every_test_that_the_pages_name_is_there() {
    let there = names();
    let pages = pages();
    let named: Vec<(&str, &str)> =
        pages.iter().flat_map(|page| page.tests_named().into_iter().map(|name| (page.name.as_str(), name))).collect();
    assert!(named.len() > 130, "{named:?}");
    let missing: Vec<_> =
        named.into_iter().filter(|(_, name)| !there.contains(name.rsplit("::").next().unwrap_or(name))).collect();
    assert!(missing.is_empty(), "no such test: {missing:#?}");
}

#[test]
fn every_link_of_the_pages_leads_somewhere() {
    let pages = pages();
    let anchors: BTreeMap<PathBuf, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.canonicalize().expect("a page"), page.anchors())).collect();
    let mut broken = vec![];
    let mut followed = 0;
    for page in &pages {
        for link in page.links().into_iter().filter(|link| !link.contains("://")) {
            followed += 1;
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() { page.path.clone() } else { page.folder().join(file) };
            let leads = target.canonicalize().is_ok_and(|target| {
                anchor.is_none_or(|anchor| anchors.get(&target).is_some_and(|all| all.contains(anchor)))
            });
            if !leads {
                broken.push(format!("{}: {link}", page.name));
            }
        }
    }
    assert!(followed > 80, "{followed}");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_path_that_the_pages_name_is_there() {
    let missing: Vec<String> = pages()
        .iter()
        .flat_map(|page| page.paths_named().into_iter().map(|path| (page.name.clone(), path)))
        .filter(|(_, path)| !repository(path).exists())
        .map(|(page, path)| format!("{page}: {path}"))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_place_that_the_specification_names_is_there() {
    let page = Page::read("docs/specification.md");
    let places = page.places();
    assert!(places.len() > 80, "{places:?}");
    let roots = ["", "host/gateway/src"].map(repository);
    let missing: Vec<_> = places
        .into_iter()
        .filter(|place| {
            !roots.iter().any(|root| ["", ".rs"].iter().any(|end| root.join(format!("{place}{end}")).exists()))
        })
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_requirement_that_a_comment_cites_is_in_the_specification() {
    let anchors = Page::read("docs/specification.md").anchors();
    let mut cited = 0;
    let mut unknown = vec![];
    for (path, text) in sources() {
        for id in text.lines().flat_map(citations) {
            cited += 1;
            if !anchors.contains(&id) {
                unknown.push(format!("{}: {id}", path.display()));
            }
        }
    }
    assert!(cited > 60, "{cited}");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn the_table_of_codes_is_the_contracts() {
    let page = Page::read("docs/policies.md");
    let told: Vec<(String, String, String)> = page
        .rows("| set | code | name | what it is |")
        .map(|cells| (cells[0].to_owned(), cells[1].to_owned(), cells[2].trim_matches('`').to_owned()))
        .collect();
    let source = std::fs::read_to_string(repository("plugins/sdk/src/codes.rs")).expect("the codes");
    let mut set = "";
    let mut there = vec![];
    for line in source.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("pub mod ").and_then(|rest| rest.strip_suffix(" {")) {
            set = name;
        } else if let Some((name, code)) = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": u8 = ")) {
            let name = name.to_lowercase().replace('_', "-");
            there.push((set.to_owned(), code.trim_end_matches(';').to_owned(), name));
        }
    }
    assert_eq!(told, there);
    let origins =
        pmk_core::Origin::ALL.map(|origin| ("origin".to_owned(), origin.code().to_string(), origin.name().to_owned()));
    assert!(origins.iter().all(|origin| told.contains(origin)), "{told:?}");
}

/// CI builds a new project and runs its tests.
#[test]
fn the_code_of_the_tutorial_did_not_pass_the_tests_of_its_project() {
    let page = Page::read("docs/policies.md");
    let template = std::fs::read_to_string(repository("plugins/templates/rust/src/lib.rs")).expect("the template");
    let (_, begun) = template.split_once("\n\n").expect("what it says of itself");
    assert_eq!(page.fence("rust"), Some(begun.replace("{{Type}}", "Newest").as_str()));
}

#[test]
fn every_command_has_its_row() {
    let home = Home::new();
    let output = Command::new(program()).arg("--home").arg(home.path()).arg("help").output();
    let help = String::from_utf8(output.expect("the program").stdout).expect("UTF-8");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 15, "{help}");
    let page = Page::read("docs/commands.md");
    let rows: Vec<_> = page.rows("| command | what it does |").map(|cells| cells[0].to_owned()).collect();
    let has_row = |name: &&str| rows.iter().any(|row| row[1..].split([' ', '`']).nth(1) == Some(name));
    let missing: Vec<_> = commands.into_iter().filter(|name| *name != "help" && !has_row(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Regression: the line about prompts was in no table.
#[test]
fn every_check_of_doctor_has_its_row() {
    let mut paths = vec![];
    files(&repository("host/gateway/src/diagnostics/doctor"), ".rs", &mut paths);
    let sources: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).expect("UTF-8")).collect();
    let lines = sources.iter().flat_map(|source| source.lines());
    let named = lines.filter_map(|line| line.split_once("const NAME: &str = \"")?.1.strip_suffix("\";"));
    let there: BTreeSet<&str> = named.collect();
    assert!(there.len() > 10, "{there:?}");
    let page = Page::read("docs/operating.md");
    let told: Vec<_> = page.rows("| check | what it looks at |").map(|cells| cells[0].to_owned()).collect();
    let has_row = |name: &&&str| told.iter().any(|cell| cell.split('`').any(|code| code == **name));
    let missing: Vec<_> = there.iter().filter(|name| !has_row(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Regression: how much one answer may ask for was on no page.
#[test]
fn the_bounds_of_an_answer_are_those_of_the_program() {
    let source = std::fs::read_to_string(repository("host/gateway/src/turn/act.rs")).expect("the program");
    let page = Page::read("docs/directives.md");
    for (constant, before, after) in [
        ("MAX_TOOL_ROUNDS: u32", "at most ", " rounds with tool calls"),
        ("MAX_FENCED_ROUNDS: u32", "or ", " with fenced directives"),
        ("MAX_CALLS: u32", "; ", " calls are looked at"),
        ("CALLS_AT_ONCE: usize", "and ", " run at once"),
        ("MAX_IDLE_ROUNDS: u32", "After ", " rounds in a row"),
    ] {
        let (_, rest) = source.split_once(&format!("const {constant} = ")).expect(constant);
        let (bound, _) = rest.split_once(';').expect("its end");
        assert!(page.says(&format!("{before}{bound}{after}")), "{constant}: {bound}");
    }
}

#[test]
fn every_event_of_the_ledger_has_its_row_and_no_row_is_about_nothing() {
    let sources = sources();
    let (_, ledger) = sources
        .iter()
        .find(|(path, text)| path.starts_with(repository("host")) && text.contains("pub enum Event {"))
        .expect("the events");
    let marks = ledger.lines().filter_map(|line| line.trim().strip_prefix("#[serde(rename = \"")?.split_once('"'));
    let there: BTreeSet<&str> = marks.map(|(name, _)| name).filter(|name| name.contains('.')).collect();
    assert!(there.len() > 50, "{there:?}");
    let page = Page::read("docs/ledger.md");
    let told: BTreeSet<&str> =
        page.rows("| `type` | what happened |").map(|cells| cells[0].trim_matches('`')).collect();
    assert_eq!(told, there);
}

#[test]
fn the_map_has_every_crate_and_every_module_and_nothing_else() {
    let page = Page::read("ARCHITECTURE.md");
    let mapped = |head| -> BTreeSet<String> {
        page.rows(head)
            .map(|cells| cells[0].trim_matches('`').to_owned())
            .filter(|name| !name.contains("tests/"))
            .collect()
    };
    let mut crates = vec![];
    for folder in ["host", "plugins/sdk", "plugins/build"] {
        files(&repository(folder), "Cargo.toml", &mut crates);
    }
    let root = repository("").canonicalize().expect("the repository");
    let crates: BTreeSet<String> = crates
        .into_iter()
        .map(|path| path.canonicalize().expect("a manifest").parent().expect("a folder").to_owned())
        .map(|path| path.strip_prefix(&root).expect("within it").display().to_string())
        .collect();
    assert_eq!(mapped("| crate | what it is | may know |"), crates);
    let library = std::fs::read_to_string(repository("host/gateway/src/lib.rs")).expect("the program's modules");
    let modules: BTreeSet<String> = library
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert!(modules.len() > 20, "{modules:?}");
    assert_eq!(mapped("| module | what it is |"), modules);
}

/// Ten things that newcomers say first, in each language, and what is answered.
fn conversation(readme: &str) -> Vec<(&str, &str)> {
    let (_, rest) = readme.split_once("```text\n› ").expect("a conversation");
    let (shown, _) = rest.split_once("```").expect("its end");
    let exchanges: Vec<(&str, &str)> =
        shown.trim().split("\n› ").map(|exchange| exchange.split_once('\n').expect("an answer")).collect();
    assert_eq!(exchanges.len(), 20);
    exchanges
}

/// The same as [over a pipe](what_the_readme_shows_is_answered_so).
#[test]
fn what_the_readme_shows_is_answered_so_at_a_terminal() {
    let readme = std::fs::read_to_string(repository("README.md")).expect("the page");
    let home = Home::new();
    let mut terminal = Terminal::start(home.command(&["run", "--model", "sim"]));
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    for (turn, (said, answer)) in (1..).zip(conversation(&readme)) {
        terminal.type_in(format!("{said}\r").as_bytes());
        terminal.wait_for("standard：", turn);
        let shown = squeezed(&terminal.lines().concat());
        assert!(shown.contains(&squeezed(answer)), "{said}: {}", terminal.screen);
    }
    assert!(terminal.end().success());
}

#[test]
fn what_the_readme_shows_is_answered_so() {
    let readme = std::fs::read_to_string(repository("README.md")).expect("the page");
    let exchanges = conversation(&readme);
    let home = Home::new();
    let input: String =
        (0..).zip(&exchanges).map(|(at, (said, _))| question(&format!("Ev{at}"), said) + "\n").collect();
    let lines = home.run(&["run", "--model", "sim"], &input).ok().lines();
    let answered: Vec<&str> = exchanges.iter().map(|(_, answer)| *answer).collect();
    assert_eq!(replies(&lines), answered);
}

#[test]
fn the_first_commands_of_the_readme_are_those_that_ci_runs() {
    let readme = Page::read("README.md");
    let ci = std::fs::read_to_string(repository(".ci/run")).expect("the script");
    let commands: Vec<&str> = readme.commands().filter(|line| line.starts_with("cargo ")).collect();
    assert_eq!(commands, ["cargo run --release -- run --policy plugins/strict.wasm", "cargo test --workspace"]);
    assert!(ci.contains("cargo run --release --quiet -- run --policy plugins/strict.wasm"));
    assert!(ci.contains(commands[1]));
}

/// Regression: they were to be put into files before there was an app that gives them.
#[test]
fn tokens_were_to_be_kept_before_their_app_was_made() {
    let page = Page::read("docs/operating.md");
    let line = |what: &str| page.commands().position(|line| line.contains(what)).expect(what);
    assert!(line("slack manifest") < line("/etc/credstore"));
}

/// Regression: what needs a person was told to nobody, because no page said that somebody has to be named.
#[test]
fn no_page_named_the_first_admin() {
    for name in ["README.md", "docs/operating.md"] {
        assert!(Page::read(name).commands().any(|line| line.contains(" admin add U")), "{name}");
    }
}

/// Regression: the first day took Slack's tokens from variables that it did not set.
#[test]
fn a_page_took_variables_that_it_did_not_set() {
    let pages = pages();
    let taken: Vec<_> =
        pages.iter().flat_map(|page| page.variables().into_iter().map(move |name| (page, name))).collect();
    assert!(!taken.is_empty());
    for (page, name) in taken {
        assert!(page.says(&format!("{name}=")), "{}: {name}", page.name);
    }
}

/// The packages hold the whole folder.
#[test]
fn every_page_that_a_hint_names_is_there() {
    let (mut paths, mut named) = (vec![], BTreeSet::new());
    for ending in [".rs", ".ftl", ".txt"] {
        files(&repository("host/gateway/src"), ending, &mut paths);
    }
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for rest in text.split("docs/").skip(1) {
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(rest.len());
            let anchor = rest[end..].strip_prefix(".md").map(|rest| {
                let anchor = rest.strip_prefix('#').unwrap_or_default();
                let end = anchor.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(anchor.len());
                anchor[..end].to_owned()
            });
            named.extend(anchor.map(|anchor| (format!("docs/{}.md", &rest[..end]), anchor)));
        }
    }
    assert!(named.len() > 8, "{named:?}");
    for (page, anchor) in named {
        let is_there = anchor.is_empty() || Page::read(&page).anchors().contains(&anchor);
        assert!(is_there, "no `{anchor}` in {page}");
        assert!(repository(&page).exists(), "{page}");
    }
}
