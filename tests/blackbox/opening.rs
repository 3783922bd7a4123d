//! What a conversation opens with: the knowledge-base seed (specification 003 §3) and the prompt for whoever reads the
//! answer (§5).

use std::path::Path;

use pmk_stand_ins::anthropic::{Anthropic, Recorded};
use serde_json::{Value, json};

use crate::support::{Home, Running, component, finish, of_type, question};

const OPENING: &str = "我先把 workspace 的 PKB context 給你";
const ACKNOWLEDGEMENT: &str = "了解，已載入 workspace PKB context。請繼續。";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// A home with this gateway.json.
fn home(config: &Value) -> Home {
    let home = Home::new();
    home.write("gateway.json", config.to_string());
    home
}

/// A workspace with one repository that has documents, and one that has none.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), ".collab/repos.json", r#"{"repos": [{"name": "erp"}, {"name": "bare"}]}"#);
    write(folder.path(), "bare/README.md", "nothing to see");
    for document in ["sitemap", "architecture", "conventions", "api-surface"] {
        write(folder.path(), &format!("erp/.mra/pkb/{document}.md"), &format!("the {document} of erp, as it was"));
    }
    folder
}

/// Asks, and gives the request that was made of it and standard error.
fn ask(home: &Home, anthropic: &Anthropic, event: &str, more: &[&str]) -> (Recorded, String) {
    let finished = finish(home.asking(anthropic, more), &question(event, event)).ok();
    let last = anthropic.requests().pop().expect("a request");
    assert_eq!(last.refused, None);
    (last, finished.stderr)
}

/// The text of a message of a request.
fn text(request: &Recorded, at: usize) -> String {
    let content = &request.body["messages"][at]["content"];
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    content.as_str().map_or_else(|| texts.join("\n"), str::to_owned)
}

#[test]
fn a_session_opens_with_the_documents_of_every_repository() {
    let workspace = workspace();
    let home = home(&json!({"version": 1, "defaultIngest": "mra:--all", "mraWorkspace": workspace.path()}));
    let anthropic = Anthropic::start_blocking();
    let (first, _) = ask(&home, &anthropic, "Ev1", &[]);
    let seed = text(&first, 0);
    assert!(seed.starts_with(OPENING), "{seed}");
    for document in ["sitemap", "architecture", "conventions", "api-surface"] {
        assert!(seed.contains(&format!("=== erp: {document}.md ===\n\nthe {document} of erp, as it was")), "{seed}");
    }
    assert_eq!((text(&first, 1).as_str(), text(&first, 2).as_str()), (ACKNOWLEDGEMENT, "Ev1"));

    // The second turn has the pair that the first one packed, and no other.
    write(workspace.path(), "erp/.mra/pkb/sitemap.md", "the sitemap of erp, as it is now");
    let (second, _) = ask(&home, &anthropic, "Ev2", &[]);
    assert_eq!(text(&second, 0), seed);
    assert_eq!(second.body["messages"].to_string().matches(OPENING).count(), 1);

    home.run(&["sessions", "reset", "console:dm:U1"], "").ok();
    let (third, _) = ask(&home, &anthropic, "Ev3", &[]);
    assert!(text(&third, 0).contains("the sitemap of erp, as it is now"), "{}", text(&third, 0));
    assert_eq!((text(&third, 1).as_str(), text(&third, 2).as_str()), (ACKNOWLEDGEMENT, "Ev3"));
}

#[test]
fn a_seed_over_the_cap_is_stored_in_part() {
    let docs = tempfile::tempdir().expect("a folder");
    write(docs.path(), "a.md", &"預算分配 ".repeat(1_000));
    write(docs.path(), "b.md", "the last document");
    let home = home(&json!({"version": 1, "defaultIngest": format!("dir:{}", docs.path().display())}));
    let anthropic = Anthropic::start_blocking();
    let strict = component("strict");
    let (request, _) = ask(&home, &anthropic, "Ev1", &["--policy", &strict, "--set", "strict.seed-cap=500"]);
    let seed = text(&request, 0);
    assert!(seed.starts_with(OPENING) && seed.contains("超過 seed cap 500，完整內容仍在 host，id "), "{seed}");
    assert!(!seed.contains("the last document") && seed.chars().count() < 600, "{seed}");
    let full = home.run(&["sessions", "show", "console:dm:U1", "--full"], "").ok().stdout;
    assert!(full.contains("the last document"), "{full}");
    let ledger = home.ledger();
    let [capped] = of_type(&ledger, "message.capped")[..] else { panic!("{ledger:#?}") };
    assert_eq!((&capped["kind"], &capped["actor"]), (&json!("seed"), &json!("U1")));
}

/// Regression: it was looked for where the gateway was started.
#[test]
fn a_relative_folder_of_documents_is_in_the_home_wherever_the_gateway_is_started() {
    let workspace = workspace();
    let home = home(&json!({"version": 1, "defaultIngest": "dir:docs"}));
    write(home.path(), "docs/a.md", "the only document");
    std::fs::rename(workspace.path(), home.path().join("code")).expect("moved");
    let anthropic = Anthropic::start_blocking();
    for (event, config, wanted) in [
        ("Ev1", json!({"version": 1, "defaultIngest": "dir:docs"}), "the only document"),
        ("Ev2", json!({"version": 1, "defaultIngest": "mra:--all", "mraWorkspace": "code"}), "the sitemap of erp"),
    ] {
        home.write("gateway.json", config.to_string());
        let mut command = home.asking(&anthropic, &[]);
        command.current_dir("/");
        finish(command, &json!({"user": event, "text": "hello", "event_id": event}).to_string()).ok();
        let request = anthropic.requests().pop().expect("a request");
        assert!(text(&request, 0).contains(wanted), "{config}: {}", text(&request, 0));
    }
}

#[test]
fn a_workspace_that_is_missing_is_one_warning() {
    for (config, warning) in [
        (
            json!({"version": 1, "defaultIngest": "mra:--all", "mraWorkspace": "/no/such/place"}),
            "`/no/such/place` is missing",
        ),
        (json!({"version": 1, "defaultIngest": "dir:/no/such/docs"}), "`/no/such/docs` is missing"),
        (json!({"version": 1, "defaultIngest": "mra:--all"}), "no workspace is set"),
    ] {
        let home = home(&config);
        let anthropic = Anthropic::start_blocking();
        let asked: Vec<String> = (0..3)
            .map(|n| json!({"user": format!("U{n}"), "text": "hello", "event_id": format!("Ev{n}")}).to_string())
            .collect();
        let finished = finish(home.asking(&anthropic, &[]), &asked.join("\n")).ok();
        assert_eq!(finished.stderr.matches(warning).count(), 1, "{}", finished.stderr);
        let requests = anthropic.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| text(request, 0) == "hello"), "{requests:#?}");
    }
}

/// The audience that a system prompt was written for.
fn audience(request: &Recorded) -> &'static str {
    let system = request.body["system"].to_string();
    assert!(system.contains("mra_ask") && system.contains("escalate"), "{system}");
    let roles = [("tech", "app/models/"), ("pm", "PM"), ("exec", "影響（含風險）"), ("biz", "業務助理")];
    let found: Vec<&str> = roles.iter().filter(|(_, word)| system.contains(word)).map(|(name, _)| *name).collect();
    let [audience] = found[..] else { panic!("{found:?}: {system}") };
    audience
}

#[test]
fn each_reader_has_a_prompt_and_a_change_is_followed_at_once() {
    let home =
        home(&json!({"version": 1, "mra": {"command": ["echo"]}, "escalation": {"default": ["U0IT"]}, "audience":
        {"default": "pm", "users": {"U1": "tech"}, "channels": {"C1": "exec"}}}));
    let anthropic = Anthropic::start_blocking();
    let mut gateway = Running::start(home.asking(&anthropic, &[]));
    let mut count = 0;
    let mut ask = |user: &str, channel: &str| {
        count += 1;
        let line = json!({"user": user, "channel": channel, "text": "hello", "event_id": format!("Ev{count}")});
        gateway.say(&line.to_string());
        let turn = gateway.next_of("turn");
        let asked = audience(anthropic.requests().last().expect("a request"));
        assert_eq!(turn["audience"], asked);
        asked
    };
    assert_eq!([ask("U1", "C1"), ask("U2", "C1"), ask("U2", "C2"), ask("U2", "D2")], ["tech", "exec", "pm", "pm"]);
    home.run(&["audience", "set", "U2", "biz"], "").ok();
    assert_eq!([ask("U2", "C1"), ask("U3", "C1"), ask("U3", "D3")], ["biz", "exec", "pm"]);
    home.run(&["audience", "default", "exec"], "").ok();
    home.run(&["audience", "unset", "U1"], "").ok();
    home.run(&["audience", "unset", "C1"], "").ok();
    assert_eq!([ask("U1", "C1"), ask("U2", "D2")], ["exec", "biz"]);
    assert!(gateway.end().0.success());
    let ledger = home.ledger();
    let kept: Vec<&Value> = of_type(&ledger, "turn.processed").into_iter().map(|turn| &turn["audience"]).collect();
    assert_eq!(kept, ["tech", "exec", "pm", "pm", "biz", "exec", "pm", "exec", "biz"], "as it was when each was asked");
}

#[test]
fn an_operators_own_prompt_is_used_with_the_toolbox() {
    let home = home(&json!({"version": 1, "audience": {"default": "exec"}, "mra": {"command": ["echo"]}}));
    write(home.path(), "prompts/exec.md", "Speak like a pirate.");
    write(home.path(), "prompts/tech.md", " ");
    let anthropic = Anthropic::start_blocking();
    let (request, stderr) = ask(&home, &anthropic, "Ev1", &[]);
    let system = request.said_now();
    assert!(system.starts_with("Speak like a pirate.\n\n") && system.contains("`mra_ask`"), "{system}");
    assert!(stderr.contains("tech.md` is empty, so the built-in prompt is used"), "{stderr}");
}
