//! `doctor`: what a gateway needs, a line each, over the stand-ins.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path, process::Command};

use pmk_stand_ins::{
    anthropic::{self, Anthropic},
    slack::{Slack, SlackRules},
};
use serde_json::{Value, json};

use crate::{
    homes::heeding_modes,
    support::{Finished, Home, PATIENCE, finish, program},
    workspace::{Gateway, rules},
};

/// A home that is set up, a workspace and a model.
struct Clinic {
    home: Home,
    slack: Slack,
    anthropic: Anthropic,
}

impl Clinic {
    async fn new(rules: SlackRules) -> Clinic {
        let (home, slack, anthropic) = (Home::new(), Slack::start(rules).await, Anthropic::start().await);
        home.write("gateway.json", config().to_string());
        std::fs::create_dir(home.path().join("code")).expect("a folder");
        std::fs::set_permissions(home.path(), Permissions::from_mode(0o700)).expect("a mode");
        Clinic { home, slack, anthropic }
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.home.command(&[&["doctor"], more].concat());
        command
            .env("PMK_SLACK_API_URL", self.slack.api_url())
            .env("PMK_SLACK_APP_TOKEN", &self.slack.rules().app_token)
            .env("PMK_SLACK_BOT_TOKEN", &self.slack.rules().bot_token)
            .env("ANTHROPIC_API_KEY", anthropic::KEY)
            .env("ANTHROPIC_BASE_URL", self.anthropic.url())
            .env("PMK_MRA_WORKSPACE", self.home.path().join("code"));
        command
    }

    fn was_not_asked(&self) -> bool {
        ["auth.test", "apps.connections.open"].iter().all(|method| self.slack.calls(method).is_empty())
    }

    async fn look(&self) -> String {
        self.shown(&examine(self.command(&[])).await)
    }

    /// The page and the exit code, without what differs between machines.
    fn shown(&self, finished: &Finished) -> String {
        let page = format!("{}{}", finished.stdout, finished.stderr);
        let rules = self.slack.rules();
        for secret in [&rules.app_token, &rules.bot_token, anthropic::KEY, "sk-wrong"] {
            assert!(!page.contains(secret), "{page}");
        }
        let page = page.replace(&self.home.path().display().to_string(), "HOME");
        let mut shown = format!("{}\n", finished.status);
        for line in page.lines() {
            let line = between(line, "uid ", ",", "UID");
            let line = between(&between(&line, "mode 700, ", " MiB", "N"), "還有 ", " MiB", "N");
            let line = between(&between(&line, "uid ", "，", "UID"), "這個系統的 ", " 張", "N");
            shown += &between(&line, "tls           ", " root", "N");
            shown.push('\n');
        }
        shown
    }

    /// The same without what is well.
    async fn complaints(&self, command: Command) -> String {
        let shown = self.shown(&examine(command).await);
        shown.lines().filter(|line| !line.starts_with('✓')).collect::<Vec<_>>().join("\n")
    }
}

fn config() -> Value {
    json!({
        "version": 1, "model": "anthropic-api:claude-haiku-4-5", "policy": {"files": ["strict"]},
        "mra": {"command": ["sh"]}, "admins": ["U1"],
    })
}

/// A line with another word between these two.
pub fn between(line: &str, before: &str, after: &str, word: &str) -> String {
    let Some((head, rest)) = line.split_once(before) else { return line.to_owned() };
    let Some((_, tail)) = rest.split_once(after) else { return line.to_owned() };
    format!("{head}{before}{word}{after}{tail}")
}

pub async fn examine(command: Command) -> Finished {
    tokio::task::spawn_blocking(move || finish(command, "")).await.expect("it is stopping")
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_well() {
    let clinic = Clinic::new(rules()).await;
    insta::assert_snapshot!(clinic.look().await);
    let document = examine(clinic.command(&["--json"])).await.ok().json();
    assert_eq!(document["ok"], true);
    assert_eq!(document["findings"][0]["state"], "well");
    assert_eq!(clinic.slack.sockets(), 0, "no connection takes a share of the events");
    let asked = clinic.anthropic.requests();
    assert!(asked.iter().all(|asked| asked.body["max_tokens"] == 1), "{asked:?}");
}

/// Errors alone are English: they are what somebody searches for.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_is_in_the_language_of_the_home_and_english_for_programs() {
    let clinic = Clinic::new(rules().without_scopes(&["files:write", "commands"])).await;
    let is_chinese = |text: &str| text.chars().any(|c| ('\u{3000}'..='\u{ffef}').contains(&c));
    let mut config = config();
    config["langauge"] = "x".into();
    config["language"] = "zh-TW".into();
    clinic.home.write("gateway.json", config.to_string());
    let mut alone = clinic.command(&["--offline", "--model", "sim"]);
    alone.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN").env_remove("PMK_MRA_WORKSPACE");
    clinic.anthropic.expect_refusals("invalid x-api-key");
    let mut revoked = clinic.command(&[]);
    revoked.env("PMK_SLACK_BOT_TOKEN", "xoxb-revoked").env("ANTHROPIC_API_KEY", "sk-wrong");
    let mut shown = clinic.look().await;
    for command in [clinic.command(&["--offline"]), alone, revoked] {
        shown += &clinic.shown(&examine(command).await);
    }
    insta::assert_snapshot!(shown);
    for command in [clinic.command(&["--json"]), clinic.command(&["--json", "--offline"])] {
        let document = examine(command).await.stdout;
        assert!(!is_chinese(&document), "{document}");
    }
    config["language"] = "en".into();
    clinic.home.write("gateway.json", config.to_string());
    let mut english = clinic.command(&[]);
    english.env("LC_ALL", "zh_TW.UTF-8");
    let english = clinic.shown(&examine(english).await);
    assert!(!is_chinese(&english), "{english}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_over_the_network_that_is_to_stay_offline() {
    let clinic = Clinic::new(rules()).await;
    insta::assert_snapshot!(clinic.complaints(clinic.command(&["--offline"])).await);
    assert!(clinic.was_not_asked() && clinic.anthropic.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_do_not_do_are_named() {
    let clinic = Clinic::new(rules()).await;
    let rules = clinic.slack.rules();
    let mut half = clinic.command(&[]);
    half.env_remove("PMK_SLACK_APP_TOKEN");
    let mut swapped = clinic.command(&[]);
    swapped.env("PMK_SLACK_APP_TOKEN", &rules.bot_token).env("PMK_SLACK_BOT_TOKEN", &rules.app_token);
    let mut revoked = clinic.command(&[]);
    revoked.env("PMK_SLACK_BOT_TOKEN", "xoxb-revoked");
    let mut none = clinic.command(&[]);
    none.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
    let mut shown = String::new();
    for command in [half, swapped, revoked, none] {
        shown += &(clinic.complaints(command).await + "\n");
    }
    insta::assert_snapshot!(shown);
}

/// Regression: only the first was named, and the other one once that was there.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_tokens_that_were_not_there_only_one_was_named() {
    let clinic = Clinic::new(rules()).await;
    let mut config = config();
    config["slack"] = json!({"appToken": {"env": "APPX"}, "botToken": {"env": "BOTX"}});
    clinic.home.write("gateway.json", config.to_string());
    let mut command = clinic.command(&["--offline"]);
    command.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
    let shown = clinic.complaints(command).await;
    let of_slack: Vec<&str> = shown.lines().filter(|line| line.starts_with("✗ slack ")).collect();
    assert!(matches!(of_slack[..], [app, bot] if app.contains("APPX") && bot.contains("BOTX")), "{shown}");
}

/// Once, it took a reading of the log to find a wrong token.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_refuses_a_token_of_the_wrong_kind_before_anything_is_sent() {
    let clinic = Clinic::new(rules()).await;
    let mut command = clinic.home.command(&["run", "--model", "sim"]);
    command.env("PMK_SLACK_API_URL", clinic.slack.api_url());
    command.env("PMK_SLACK_APP_TOKEN", "xoxb-1").env("PMK_SLACK_BOT_TOKEN", "xoxb-1");
    let refused = examine(command).await;
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        refused.stderr,
        "error: the Slack app token begins with `xoxb-`, so it is the bot token\n  \
         hint: a Slack app token begins with `xapp-`\n"
    );
    assert!(clinic.was_not_asked());
}

/// What systemd passes to the service is not here. Following the hint that once stood below it broke the service.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_only_the_service_gets_is_not_called_missing() {
    let clinic = Clinic::new(rules()).await;
    let credential = |name: &str| json!({"file": name});
    let mut config = config();
    config["apiKey"] = credential("key");
    config["slack"] = json!({"appToken": credential("app"), "botToken": credential("bot")});
    clinic.home.write("gateway.json", config.to_string());
    let command = || {
        let mut command = clinic.command(&["--offline"]);
        for set in ["PMK_SLACK_APP_TOKEN", "PMK_SLACK_BOT_TOKEN", "ANTHROPIC_API_KEY"] {
            command.env_remove(set);
        }
        command
    };
    let shown = clinic.complaints(command()).await;
    assert!(shown.starts_with("exit status: 0"), "{shown}");
    for line in
        ["- slack         not checked here: systemd passes app, bot to", "- model         not checked here: systemd"]
    {
        assert!(shown.contains(line), "{shown}");
    }
    let with = "-p EnvironmentFile=-/etc/pmk-host/environment -p LoadCredential=app -p LoadCredential=bot \
                -p LoadCredential=key pmk-host --home HOME doctor --offline`";
    let here = std::env::current_dir().expect("a folder");
    let there = format!("`systemd-run --pty -p WorkingDirectory=-{} -p User=", here.display());
    assert!(shown.contains(&there) && shown.contains(with), "{shown}");
    // It checks what was to be checked here.
    let mut named = command();
    named.args(["--policy", "strict", "--policy", "own.wasm", "--set", "standard.language=zh-TW", "--no-wasi"]);
    let shown = clinic.complaints(named).await;
    let folder = here.join("own.wasm").display().to_string();
    let with = format!("doctor --policy strict --policy {folder} --set 'standard.language=zh-TW' --no-wasi --offline`");
    assert!(shown.contains(&with), "{with}: {shown}");
    // The password of the store is such a credential, too.
    config["store"] = "postgres://pmk@127.0.0.1:1/pmk".into();
    config["storePassword"] = credential("db");
    clinic.home.write("gateway.json", config.to_string());
    let shown = clinic.complaints(command()).await;
    assert!(shown.starts_with("exit status: 0"), "{shown}");
    assert!(shown.contains("- store         not checked here: systemd passes db to"), "{shown}");
    assert!(shown.contains("-p LoadCredential=bot -p LoadCredential=db -p LoadCredential=key pmk-host"), "{shown}");
    // The arms of an experiment may be in no file here, but with the host that sent them to that store.
    let arm = json!({"name": "b", "policy": {"files": ["elsewhere.wasm"]}});
    config["experiment"] = json!({"name": "less", "control": "a", "arms": [{"name": "a"}, arm]});
    clinic.home.write("gateway.json", config.to_string());
    let shown = clinic.complaints(command()).await;
    assert!(shown.starts_with("exit status: 0"), "{shown}");
    assert!(shown.contains("- policies      not checked here: systemd passes db to"), "{shown}");
    config.as_object_mut().expect("an object").retain(|key, _| !key.starts_with("store") && key != "experiment");
    clinic.home.write("gateway.json", config.to_string());
    // With what the service manager passes, they are looked at.
    let rules = clinic.slack.rules();
    for (name, secret) in [("app", &*rules.app_token), ("bot", &rules.bot_token), ("key", "sk-1")] {
        clinic.home.write(name, secret);
    }
    let mut passed = command();
    passed.env("CREDENTIALS_DIRECTORY", clinic.home.path());
    let page = clinic.shown(&examine(passed).await);
    assert!(page.contains("✓ slack         both tokens are set"), "{page}");
}

/// `run` refused what `doctor` called people who talk at the console.
#[tokio::test(flavor = "multi_thread")]
async fn slack_in_gateway_json_without_any_token_is_refused_as_a_start_refuses_it() {
    let clinic = Clinic::new(rules()).await;
    let mut config = config();
    config["slack"] = json!({"replyIn": "thread"});
    clinic.home.write("gateway.json", config.to_string());
    let without = |mut command: Command| {
        command.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
        command
    };
    let shown = clinic.complaints(without(clinic.command(&["--offline"]))).await;
    let refused = examine(without(clinic.home.command(&["run", "--model", "sim"]))).await;
    let said = refused.stderr.lines().next().and_then(|line| line.strip_prefix("error: ")).expect("a line");
    assert!(shown.contains(&format!("✗ slack         {said}\n")), "{shown}\n{said}");
    assert!(shown.contains("`slack.appToken` and `slack.botToken` in gateway.json"), "{shown}");
}

/// Regression: without tokens, nothing was wrong before a start that was then refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_that_is_neither_yes_nor_no_was_found_at_the_start_only() {
    let clinic = Clinic::new(rules()).await;
    let mut command = clinic.command(&["--offline"]);
    command.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN").env("PMK_DRY_RUN", "yes");
    let shown = clinic.complaints(command).await;
    assert!(shown.starts_with("exit status: 1\n"), "{shown}");
    assert!(shown.contains("✗ slack         PMK_DRY_RUN is neither 0 nor 1\n    hint: set it to 1"), "{shown}");
}

/// The first `run` does not create it.
#[test]
fn a_home_that_is_a_link_to_nothing_is_told_before_the_start() {
    let home = Home::new();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(home.path().join("nowhere"), &link).expect("a link");
    let mut command = Command::new(program());
    command.env_clear().arg("--home").arg(&link).args(["doctor", "--offline"]);
    let told = finish(command, "");
    assert_eq!(told.status.code(), Some(1), "{}", told.stdout);
    assert!(
        told.stdout.contains("✗ home          `") && told.stdout.contains("which does not exist"),
        "{}",
        told.stdout
    );
}

/// Regression: every check was well, and what needs a person was told to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_admins_was_called_well() {
    let clinic = Clinic::new(rules()).await;
    let mut config = config();
    config.as_object_mut().expect("an object").remove("admins");
    for (language, told, hint) in [
        ("en", "! admins        none: nobody is told", "hint: add yourself with"),
        ("zh-TW", "! admins        沒有管理員：", "提示：請用"),
    ] {
        config["language"] = language.into();
        clinic.home.write("gateway.json", config.to_string());
        let shown = clinic.complaints(clinic.command(&["--offline"])).await;
        assert!(shown.starts_with("exit status: 0\n") && shown.contains(told), "{shown}");
        assert!(shown.contains(&format!("    {hint} `pmk-host --home HOME admin add U012AB3CD`")), "{shown}");
        let mut console = clinic.command(&["--offline"]);
        console.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
        let shown = clinic.complaints(console).await;
        assert!(!shown.contains("! admins"), "nobody else is at the console: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_scopes_are_named_with_what_goes_without() {
    let mut shown = String::new();
    for taken in [&["chat:write", "im:history"][..], &["files:write"]] {
        let clinic = Clinic::new(rules().without_scopes(taken)).await;
        shown += &(clinic.complaints(clinic.command(&[])).await + "\n");
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_refuses_is_told() {
    let clinic = Clinic::new(rules()).await;
    clinic.anthropic.expect_refusals("invalid x-api-key");
    let mut wrong = clinic.command(&[]);
    wrong.env("ANTHROPIC_API_KEY", "sk-wrong");
    let mut without = clinic.command(&[]);
    without.env_remove("ANTHROPIC_API_KEY");
    let mut shown = String::new();
    clinic.home.write("gateway.json", r#"{"version":1}"#);
    let mut nobody = clinic.command(&[]);
    nobody.env_remove("PMK_SLACK_APP_TOKEN").env_remove("PMK_SLACK_BOT_TOKEN");
    let nobody = clinic.complaints(nobody).await;
    clinic.home.write("gateway.json", config().to_string());
    for command in [wrong, without, clinic.command(&["--model", "sim"])] {
        shown += &(clinic.complaints(command).await + "\n");
    }
    insta::assert_snapshot!(shown + &nobody);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_off_is_told() {
    let mut shown = String::new();
    for clock_ahead in [600, -120] {
        let clinic = Clinic::new(SlackRules { clock_ahead, ..rules() }).await;
        shown += &(clinic.complaints(clinic.command(&[])).await + "\n");
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_others_may_enter_is_told() {
    let clinic = Clinic::new(rules()).await;
    let mut shown = String::new();
    for mode in [0o755, 0o777] {
        std::fs::set_permissions(clinic.home.path(), Permissions::from_mode(mode)).expect("a mode");
        shown += &(clinic.complaints(clinic.command(&["--offline"])).await + "\n");
    }
    insta::assert_snapshot!(shown);
}

/// What `run` says at once, `doctor` says before, and nothing of the store is another one afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_no_gateway_could_start_with_is_told() {
    let clinic = Clinic::new(rules()).await;
    let of_the_store = async || {
        let shown = clinic.shown(&examine(clinic.command(&["--offline"])).await);
        let lines: Vec<&str> = shown.lines().skip_while(|line| !line.contains(" store ")).collect();
        let count = if lines[0].starts_with('✗') { 2 } else { 1 };
        format!("{}\n{}\n", shown.lines().next().expect("the code"), lines[..count].join("\n"))
    };
    let mut shown = of_the_store().await;
    clinic.home.run(&["run", "--model", "sim"], "").ok();
    shown += &of_the_store().await;
    let file = clinic.home.path().join("gateway/pmk-host.db");
    let sound = std::fs::read(&file).expect("a store");
    let of_schema = |schema: u32| {
        std::fs::write(&file, &sound).expect("written");
        let conn = rusqlite::Connection::open(&file).expect("a store");
        conn.pragma_update(None, "user_version", schema).expect("changed");
        drop(conn);
        std::fs::read(&file).expect("a store")
    };
    let mut scrambled = sound.clone();
    scrambled[20_480..].fill(0xa5);
    for content in
        [vec![], b"no database ".repeat(9_000), sound[..20_480].to_vec(), scrambled, of_schema(99), of_schema(12)]
    {
        std::fs::write(&file, &content).expect("written");
        shown += &of_the_store().await;
        assert!(std::fs::read(&file).expect("a store") == content, "it was changed");
    }
    std::fs::remove_file(&file).expect("deleted");
    shown += &of_the_store().await;
    // The one of this program rises.
    std::fs::write(&file, &sound).expect("written");
    let conn = rusqlite::Connection::open(&file).expect("a store");
    let known: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    let shown = shown.replace(&format!("schema {known}"), "schema NOW").replace(&format!("knows {known}"), "knows NOW");
    insta::assert_snapshot!(shown);
}

/// Where nothing can be made `run` gives up at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_cannot_be_written_is_told() {
    let clinic = Clinic::new(rules()).await;
    clinic.home.write("gateway", "in the way");
    let mut shown = clinic.complaints(clinic.command(&["--offline"])).await;
    std::fs::remove_file(clinic.home.path().join("gateway")).expect("deleted");
    let before: Vec<_> = std::fs::read_dir(clinic.home.path()).expect("the home").flatten().collect();
    std::fs::set_permissions(clinic.home.path(), Permissions::from_mode(0o500)).expect("a mode");
    let told = clinic.complaints(heeding_modes(clinic.command(&["--offline"]))).await;
    assert!(told.contains("✗ home          cannot create a file in `HOME`: Permission denied"), "{told}");
    std::fs::set_permissions(clinic.home.path(), Permissions::from_mode(0o700)).expect("a mode");
    shown += &format!("\n{}", clinic.complaints(clinic.command(&["--offline"])).await);
    let after = std::fs::read_dir(clinic.home.path()).expect("the home").flatten().count();
    assert_eq!(before.len(), after, "nothing is left of the trial");
    insta::assert_snapshot!(shown);
}

/// `run` refused the first two; with the others it wrote nothing of the ledger.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_home_that_a_gateway_could_not_use_is_told() {
    let clinic = Clinic::new(rules()).await;
    clinic.home.run(&["run", "--model", "sim"], "").ok();
    let folder = clinic.home.path();
    let files = std::fs::read_dir(folder.join("gateway")).expect("the folder").flatten();
    let mut names = files.filter_map(|file| file.file_name().into_string().ok());
    let month = names.find(|name| name.starts_with("events-")).expect("a ledger");
    for (name, told) in [
        ("knowledge", "✗ home          cannot create a file in `HOME/knowledge`: "),
        ("gateway/store.mark", "✗ store         cannot use the store `HOME/gateway/store.mark`: "),
        ("gateway/events.lock", "✗ home          cannot write the ledger file `HOME/gateway/events.lock`: "),
        (&*format!("gateway/{month}"), "✗ home          cannot write the ledger file `HOME/gateway/events-"),
    ] {
        let (path, aside) = (folder.join(name), folder.join("aside"));
        std::fs::rename(&path, &aside).expect("moved");
        match name {
            "knowledge" => std::fs::write(&path, "").expect("a file"),
            _ => std::fs::create_dir(&path).expect("a folder"),
        }
        let shown = clinic.complaints(clinic.command(&["--offline"])).await;
        assert!(shown.contains(told), "{name}: {shown}");
        if name == "knowledge" { std::fs::remove_file(&path) } else { std::fs::remove_dir(&path) }.expect("removed");
        std::fs::rename(&aside, &path).expect("moved back");
    }
    for name in ["run.lock", "config.lock", "pmk-host.db-wal", "pmk-host.db-shm", "pmk-host.db-journal"] {
        let (path, aside) = (folder.join("gateway").join(name), folder.join("aside"));
        let was_there = std::fs::rename(&path, &aside).is_ok();
        std::fs::create_dir(&path).expect("a folder");
        let shown = clinic.complaints(clinic.command(&["--offline"])).await;
        assert!(shown.contains(&format!("✗ home          cannot write `HOME/gateway/{name}`: ")), "{name}: {shown}");
        std::fs::remove_dir(&path).expect("removed");
        if was_there {
            std::fs::rename(&aside, &path).expect("moved back");
        }
    }
    let shown = clinic.complaints(clinic.command(&["--offline"])).await;
    assert!(!shown.contains('✗'), "{shown}");
}

/// The first was taken for a folder that is not there yet; with the second, a gateway starts and answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_atoms_is_judged_as_a_start_judges_it() {
    let clinic = Clinic::new(rules()).await;
    std::fs::create_dir(clinic.home.path().join("prompts")).expect("a folder");
    clinic.home.write("prompts/biz.md", "  ");
    let knowledge = clinic.home.path().join("knowledge");
    std::os::unix::fs::symlink(clinic.home.path().join("nowhere"), &knowledge).expect("a link");
    let refused = clinic.home.run(&["run", "--model", "sim"], "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    let shown = clinic.complaints(clinic.command(&["--offline"])).await;
    assert!(shown.contains("✗ home          cannot create a file in `HOME/knowledge`: "), "{shown}");
    assert!(shown.contains("biz.md"), "it hid what else is wrong: {shown}");
    std::fs::remove_file(&knowledge).expect("removed");
    std::fs::remove_file(clinic.home.path().join("prompts/biz.md")).expect("removed");
    std::fs::create_dir(&knowledge).expect("a folder");
    std::fs::set_permissions(&knowledge, Permissions::from_mode(0o500)).expect("a mode");
    finish(heeding_modes(clinic.home.command(&["run", "--model", "sim"])), "").ok();
    let shown = clinic.complaints(heeding_modes(clinic.command(&["--offline"]))).await;
    assert!(shown.starts_with("exit status: 0"), "{shown}");
    assert!(shown.contains("! home          cannot create a file in `HOME/knowledge`: "), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_gone_by_leaves_the_rest_out() {
    let clinic = Clinic::new(rules()).await;
    let mut shown = String::new();
    for (key, value) in [("langauge", json!("en")), ("queue", json!({"mots": 1}))] {
        let mut config = config();
        config[key] = value;
        clinic.home.write("gateway.json", config.to_string());
        shown += &(clinic.complaints(clinic.command(&[])).await + "\n");
    }
    insta::assert_snapshot!(shown);
    clinic.home.write("gateway.json", "{");
    let damaged = clinic.complaints(clinic.command(&[])).await;
    assert!(damaged.contains("- store         not checked, because of gateway.json"), "{damaged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_and_the_workspace_are_tried() {
    let clinic = Clinic::new(rules()).await;
    let mut shown = String::new();
    for (key, value) in [
        ("policy", json!({"files": ["nowhere.wasm"]})),
        ("policy", json!({"files": ["strict"], "settings": {"strict": {"no-such": 1}}})),
        ("policy", json!({"files": ["strict"], "settings": {"strickt": {"seed-cap": 1}}})),
        ("mra", json!({"command": ["no-such-program"]})),
    ] {
        let mut config = config();
        config[key] = value;
        clinic.home.write("gateway.json", config.to_string());
        shown += &(clinic.complaints(clinic.command(&["--offline"])).await + "\n");
    }
    insta::assert_snapshot!(shown);
}

/// Regression: it was the only line about policies, and it failed before the experiment was on.
#[tokio::test(flavor = "multi_thread")]
async fn an_arm_that_does_not_load_hid_the_policies_that_serve() {
    let clinic = Clinic::new(rules()).await;
    let wrong = json!({"settings": {"standard": {"cc": 1}}});
    let arms =
        json!([{"name": "a"}, {"name": "b", "policy": {"files": ["gone.wasm"]}}, {"name": "c", "policy": wrong}]);
    for (start, mark, code) in [("2999-01-01T00:00:00Z", '!', 0), ("2020-01-01T00:00:00Z", '✗', 1)] {
        let mut config = config();
        config["experiment"] = json!({"name": "e", "start": start, "control": "a", "arms": arms});
        clinic.home.write("gateway.json", config.to_string());
        let shown = clinic.shown(&examine(clinic.command(&["--offline"])).await);
        assert!(shown.starts_with(&format!("exit status: {code}\n")), "{shown}");
        assert!(shown.contains("✓ policies      strict 1.0.0 over standard 1.0.0\n"), "{shown}");
        for told in
            ["arm `b`: policy `HOME/gone.wasm` does not exist", "arm `c`: policy `standard` has no setting `cc`"]
        {
            assert!(shown.contains(&format!("{mark} policies      {told}")), "{shown}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_not_used_was_told_by_nobody_before_the_start() {
    let clinic = Clinic::new(rules()).await;
    std::fs::create_dir(clinic.home.path().join("prompts")).expect("a folder");
    clinic.home.write("prompts/tech.md", "You know every gear.");
    let page = clinic.shown(&examine(clinic.command(&["--offline"])).await);
    assert!(page.lines().any(|line| line.starts_with('✓') && line.ends_with("tech.md")), "{page}");
    clinic.home.write("prompts/biz.md", "  ");
    clinic.home.write("prompts/pm.md", "x".repeat((64 << 10) + 1));
    insta::assert_snapshot!(clinic.complaints(clinic.command(&["--offline"])).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_runs_is_told_and_not_disturbed() {
    let clinic = Clinic::new(rules()).await;
    let gateway = Gateway::asking(&clinic.home, &clinic.slack, &clinic.anthropic, &[]);
    assert!(clinic.slack.await_connected(PATIENCE).await);
    assert!(clinic.slack.await_reply(&clinic.slack.dm("U1", "hello"), PATIENCE).await.is_some());
    let sockets = clinic.slack.open_sockets();
    let document = examine(clinic.command(&["--json"])).await.json();
    let findings = document["findings"].as_array().expect("a list").clone();
    let told = findings.iter().find(|finding| finding["check"] == "gateway").expect("a line");
    assert!(told["what"].as_str().is_some_and(|what| what.contains(&gateway.pid().to_string())), "{told}");
    assert_eq!(clinic.slack.open_sockets(), sockets);
    assert!(gateway.terminate().success());
}

/// Once, hints named pages that an installed program does not have.
#[test]
fn an_installed_program_names_pages_that_are_there() {
    let home = Home::new();
    let prefix = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (bin, pages) = (prefix.path().join("bin"), prefix.path().join("share/doc/pmk-host/docs"));
    for folder in [&bin, &pages] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    // A link to the file itself, which is found where it is called.
    let installed = bin.join("pmk-host");
    if std::fs::hard_link(program(), &installed).is_err() {
        std::fs::copy(program(), &installed).expect("a copy");
    }
    let told = |program: &Path| {
        let mut command = Command::new(program);
        command.env_clear().arg("--home").arg(home.path()).args(["doctor", "--offline"]);
        finish(command, "").stdout
    };
    let page = told(&installed);
    assert!(page.contains(&format!("see {}/slack.md#the-app", pages.display())), "{page}");
    let page = told(&program());
    assert!(page.contains("see docs/slack.md#the-app"), "{page}");
}
