//! What all hosts of one database go by, whichever of them was told.

use std::process::Command;

use pmk_stand_ins::postgres;
use serde_json::{Value, json};

use crate::support::{Home, Running, component, until};

struct Hosts {
    homes: Vec<Home>,
    store: String,
}

impl Hosts {
    /// None where tests are to do without PostgreSQL, which the server says.
    fn new(count: usize) -> Option<Hosts> {
        Some(Hosts { homes: (0..count).map(|_| Home::new()).collect(), store: postgres::server()?.database() })
    }

    fn start(&self, at: usize) -> Running {
        self.start_with(at, &[])
    }

    /// Starts a host with these variables in its environment.
    fn start_with(&self, at: usize, variables: &[(&str, &str)]) -> Running {
        let mut command = self.command(at, &["run", "--model", "sim"]);
        command.envs(variables.iter().copied());
        let running = Running::start(command);
        until("it says what decides", || self.status(at, at)["policies"]["layers"].is_array().then_some(()));
        running
    }

    fn command(&self, at: usize, arguments: &[&str]) -> Command {
        let mut command = self.homes[at].command(arguments);
        command.env("PMK_STORE", &self.store);
        command
    }

    /// A host, as another home knows of it.
    fn status(&self, at: usize, of: usize) -> Value {
        let mut command = self.command(at, &["--json", "status"]);
        let told = String::from_utf8(command.output().expect("it runs").stdout).expect("UTF-8");
        let status: Value = serde_json::from_str(&told).expect("JSON");
        let folder = self.homes[of].path().canonicalize().expect("a home").display().to_string();
        let hosts = status["store"]["hosts"].as_array().cloned().unwrap_or_default();
        hosts.into_iter().find(|host| host["home"] == folder.as_str()).unwrap_or_default()
    }

    fn use_policies(&self, at: usize, named: &[&str]) -> Value {
        let arguments = [&["--json", "policy", "use"], named].concat();
        self.homes[at].run(&arguments, "").ok().json()
    }

    fn write(&self, at: usize, config: Value) {
        self.homes[at].write("gateway.json", config.to_string());
    }

    fn says(&self, at: usize) -> Value {
        let text = std::fs::read_to_string(self.homes[at].path().join("gateway.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

/// Which policy decides about a turn.
fn decides(gateway: &mut Running) -> String {
    assert!(gateway.say(&json!({"type": "message", "text": "who decides?"}).to_string()));
    let turn = gateway.next_of("turn");
    turn["policy"]["name"].as_str().unwrap_or_else(|| panic!("{turn}")).to_owned()
}

#[test]
fn policies_that_are_chosen_on_one_host_decide_on_all_as_long_as_one_works() {
    let Some(hosts) = Hosts::new(3) else { return };
    let (mut one, mut other) = (hosts.start(0), hosts.start(1));
    assert_eq!((decides(&mut one), decides(&mut other)), ("standard".into(), "standard".into()));

    // A file that the other has not got.
    let strict = hosts.homes[0].write("mine.wasm", std::fs::read(component("strict")).expect("a component"));
    let chosen = hosts.use_policies(0, &[strict.to_str().expect("UTF-8")]);
    assert_eq!(chosen["hosts"].as_array().map(Vec::len), Some(1), "{chosen}");
    assert_eq!(chosen["hosts"][0]["state"], "decide", "{chosen}");
    assert_eq!((decides(&mut one), decides(&mut other)), ("strict".into(), "strict".into()));
    assert_eq!(hosts.status(0, 1)["policies"]["layers"][0]["name"], "strict");
    assert_eq!(hosts.homes[1].await_events("policy.swapped", 1)[0]["by"], "host");

    // A host that comes later goes by them, and so does one that comes again.
    let mut third = hosts.start(2);
    assert_eq!(decides(&mut third), "strict");
    assert!(one.end().0.success());
    let mut one = hosts.start(0);
    assert_eq!(decides(&mut one), "strict");

    // Back, from another one than where it was chosen.
    let back = hosts.use_policies(1, &["--previous"]);
    assert_eq!(back["hosts"].as_array().map(Vec::len), Some(2), "{back}");
    for host in [&mut one, &mut other, &mut third] {
        assert_eq!(decides(host), "standard");
    }

    // To what another host has chosen, too.
    hosts.use_policies(0, &["strict"]);
    hosts.use_policies(0, &["recall"]);
    until("it has heard of both", || (decides(&mut other) == "recall").then_some(()));
    let back = hosts.use_policies(1, &["--previous"]);
    assert!(back["hosts"].as_array().is_some_and(|hosts| hosts.iter().all(|host| host["state"] == "decide")), "{back}");
    for host in [&mut one, &mut other, &mut third] {
        assert_eq!(decides(host), "strict");
    }
    let kept = hosts.homes[1].run(&["policy", "use", "--previous", "--persist"], "");
    assert!(kept.stderr.contains("are in no file here"), "{}", kept.stderr);
    for host in [&mut one, &mut other, &mut third] {
        assert_eq!(decides(host), "recall");
    }

    // A crash of all ends nothing. Where all have ended, each begins with what it is started with.
    for host in [one, other, third] {
        host.kill();
    }
    let (mut one, mut other) = (hosts.start(0), hosts.start(1));
    assert_eq!((decides(&mut one), decides(&mut other)), ("recall".into(), "recall".into()));
    until("the third is not heard of any more", || hosts.status(0, 2).is_null().then_some(()));
    for host in [one, other] {
        assert!(host.end().0.success());
    }
    assert_eq!(decides(&mut hosts.start(0)), "standard");
}

#[test]
fn a_host_that_may_not_load_what_was_chosen_says_so_and_keeps_what_it_has() {
    let Some(hosts) = Hosts::new(2) else { return };
    hosts.write(1, json!({"version": 1, "policy": {"allow": []}}));
    let (mut one, mut other) = (hosts.start(0), hosts.start(1));
    let chosen = hosts.use_policies(0, &[&component("strict")]);
    assert_eq!(chosen["hosts"][0]["state"], "refused", "{chosen}");
    assert_eq!((decides(&mut one), decides(&mut other)), ("strict".into(), "standard".into()));
    let reason = hosts.status(0, 1)["policies"]["refused"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("is not in `policy.allow`"), "{reason}");
    let told = |language: &str| {
        let mut command = hosts.command(0, &["status"]);
        let told = command.env("LC_ALL", language).output().expect("it runs").stdout;
        String::from_utf8(told).expect("UTF-8")
    };
    let told = [told("C"), told("zh_TW.UTF-8")];
    assert!(told[0].contains("standard 1.0.0, not those chosen for all hosts: policy `"), "{}", told[0]);
    assert!(told[1].contains("standard 1.0.0，沒有採用為所有主機選的策略："), "{}", told[1]);

    // It is tried again once it may be.
    let allowed = &chosen["serving"][0]["sha256"];
    hosts.write(1, json!({"version": 1, "policy": {"allow": [allowed]}}));
    until("it takes them", || (decides(&mut other) == "strict").then_some(()));
}

/// Regression: it said that it uses them, too, but with the limits and the `seedMayGo` of its earlier gateway.json.
#[test]
fn a_host_that_used_what_was_chosen_already_kept_its_old_limits() {
    let Some(hosts) = Hosts::new(2) else { return };
    let (_one, _other) = (hosts.start(0), hosts.start(1));
    hosts.use_policies(0, &["strict"]);
    hosts.homes[1].await_events("policy.swapped", 1);
    hosts.write(1, json!({"version": 1, "policy": {"limits": {"fuelBase": 300_000_000}}}));
    let chosen = hosts.use_policies(0, &["strict"]);
    assert_eq!(chosen["hosts"][0]["state"], "decide", "{chosen}");
    assert_eq!(hosts.homes[1].await_events("policy.swapped", 2)[1]["by"], "host");
}

/// Conversations all draw `mine`, whose component is this file.
fn experiment(name: &str) -> Value {
    let mine = json!({"name": "mine", "policy": {"files": ["mine.wasm"]}});
    json!({"name": name, "start": "2026-01-01T00:00:00Z", "control": "now", "arms": [{"name": "now", "weight": 0}, mine]})
}

/// Which arm, and which of its policies, this host says that it has loaded.
fn loaded(home: &Home, experiment: usize) -> Value {
    home.await_events("experiment.on", experiment)[experiment - 1]["arms"][1].clone()
}

#[test]
fn an_arm_was_another_one_or_none_on_a_host_with_another_file_or_none_under_its_name() {
    let Some(hosts) = Hosts::new(3) else { return };
    let bytes = |name: &str| std::fs::read(component(name)).expect("a component");
    hosts.homes[0].write("mine.wasm", bytes("strict"));
    hosts.homes[1].write("mine.wasm", bytes("recall"));
    hosts.write(0, json!({"version": 1, "experiment": experiment("less")}));
    let mut one = hosts.start(0);
    let first = loaded(&hosts.homes[0], 1);
    let (mut other, mut third) = (hosts.start(1), hosts.start(2));
    for (host, home) in [&mut one, &mut other, &mut third].into_iter().zip(&hosts.homes) {
        assert_eq!(loaded(home, 1), first);
        assert_eq!(decides(host), "strict");
    }

    let told = hosts.command(2, &["--json", "doctor", "--offline"]).output().expect("it runs").stdout;
    let told: Value = serde_json::from_slice(&told).expect("JSON");
    let policies =
        told["findings"].as_array().and_then(|all| all.iter().find(|finding| finding["check"] == "policies"));
    assert_eq!(policies.map(|finding| &finding["state"]), Some(&json!("well")), "{told}");

    // Who has it not got waits for somebody who does, and nobody is told of that.
    hosts.homes[2].write("rarely.wasm", bytes("rolling-summary"));
    let mut rarely = experiment("rarely");
    rarely["arms"][1]["policy"]["files"] = json!(["rarely.wasm"]);
    hosts.write(0, json!({"version": 1, "experiment": rarely}));
    for (host, home) in [&mut one, &mut other, &mut third].into_iter().zip(&hosts.homes) {
        assert_eq!(loaded(home, 2)["policy"], "rolling-summary");
        assert_eq!(decides(host), "rolling-summary");
        assert_eq!(home.events("experiment.refused"), Vec::<Value>::new());
    }

    // Another file under the same name is another arm, and that one is the same everywhere again.
    hosts.homes[1].write("now.wasm", bytes("recall"));
    rarely["arms"][1]["policy"]["files"] = json!(["rarely.wasm", "now.wasm"]);
    hosts.homes[1].write("rarely.wasm", bytes("rolling-summary"));
    hosts.write(0, json!({"version": 1, "experiment": rarely}));
    for (host, home) in [&mut one, &mut other, &mut third].into_iter().zip(&hosts.homes) {
        assert_eq!(loaded(home, 3)["policy"], "recall");
        assert_eq!(decides(host), "recall");
    }

    // It is one thing as long as a host works: also after a crash, and whatever lies there by then.
    hosts.homes[2].write("now.wasm", bytes("strict"));
    hosts.homes[2].write("rarely.wasm", bytes("rolling-summary"));
    third.kill();
    let mut third = hosts.start(2);
    until("it is on again", || (decides(&mut third) == "recall").then_some(()));
    for host in [one, other, third] {
        assert!(host.end().0.success());
    }
    let mut third = hosts.start(2);
    until("the files count again", || (decides(&mut third) == "strict").then_some(()));
}

/// Once, the other hosts took its components, with the settings of their own files.
#[test]
fn the_settings_of_a_promoted_arm_did_not_reach_the_other_hosts() {
    let Some(hosts) = Hosts::new(2) else { return };
    let small = json!({"standard": {"max-session-tokens": 700}});
    let mut tight = experiment("tight");
    tight["arms"][1]["policy"] = json!({"settings": small});
    hosts.write(0, json!({"version": 1, "experiment": tight}));
    let large = json!({"standard": {"max-session-tokens": 90_000}});
    hosts.write(1, json!({"version": 1, "policy": {"settings": large}}));
    let with_its_own = |host: usize| hosts.start_with(host, &[("PMK_MAX_SESSION_TOKENS", "80000")]);
    let (mut one, mut other) = (with_its_own(0), hosts.start(1));
    for home in &hosts.homes {
        home.await_events("experiment.on", 1);
    }
    let promoted = hosts.command(0, &["experiment", "promote", "mine"]).output().expect("it runs");
    assert!(promoted.status.success(), "{promoted:?}");
    let warned = String::from_utf8(promoted.stderr).expect("UTF-8");
    assert!(warned.contains("a setting of the arm does not survive the end of all hosts: "), "{warned}");

    let drops = |gateway: &mut Running| {
        assert!(gateway.say(&json!({"type": "message", "text": "filler ".repeat(150)}).to_string()));
        let turn = gateway.next_of("turn");
        let is_small = turn["tokens"]["after"].as_u64() <= Some(700);
        (turn["turns_dropped"].as_u64() > Some(0) && is_small).then_some(())
    };
    until("the arm's settings decide there", || drops(&mut other));
    let says = |host| until("it says so", || (hosts.status(0, host)["policies"]["settings"] == small).then_some(()));
    [0, 1].into_iter().for_each(says);
    let page = String::from_utf8(hosts.command(0, &["status"]).output().expect("it runs").stdout).expect("UTF-8");
    assert_eq!(page.matches("standard 1.0.0 with standard.max-session-tokens=700\n").count(), 2, "{page}");

    // Whichever host is started again, and whatever is set in its environment.
    assert!(other.end().0.success());
    let mut other = with_its_own(1);
    until("it goes by them again", || drops(&mut other));
    assert!(one.end().0.success());
    one = with_its_own(0);
    until("so does the first", || drops(&mut one));

    // They come back with the arm, wherever somebody goes back to it.
    hosts.use_policies(1, &["recall"]);
    assert_eq!(hosts.status(0, 0)["policies"]["layers"][0]["name"], "recall");
    hosts.use_policies(1, &["--previous"]);
    [0, 1].into_iter().for_each(says);
    // With what is chosen by its name, each home has its own.
    hosts.use_policies(0, &["standard"]);
    until("it has its own again", || (hosts.status(0, 1)["policies"]["settings"] != small).then_some(()));
}

#[test]
fn who_began_alone_without_the_files_of_an_arm_never_took_part() {
    let Some(hosts) = Hosts::new(2) else { return };
    hosts.write(0, json!({"version": 1, "experiment": experiment("less")}));
    let mut one = hosts.start(0);
    assert_eq!(hosts.homes[0].await_events("experiment.refused", 1).len(), 1);
    hosts.homes[1].write("mine.wasm", std::fs::read(component("strict")).expect("a component"));
    let _other = hosts.start(1);
    assert_eq!(loaded(&hosts.homes[1], 1), loaded(&hosts.homes[0], 1));
    assert_eq!(decides(&mut one), "strict");
}

#[test]
fn a_host_that_may_not_load_an_arm_that_another_has_sent_says_so() {
    let Some(hosts) = Hosts::new(2) else { return };
    hosts.homes[0].write("mine.wasm", std::fs::read(component("strict")).expect("a component"));
    hosts.write(0, json!({"version": 1, "experiment": experiment("less")}));
    hosts.write(1, json!({"version": 1, "policy": {"allow": []}}));
    let _one = hosts.start(0);
    loaded(&hosts.homes[0], 1);
    let mut other = hosts.start(1);
    let refused = &hosts.homes[1].await_events("experiment.refused", 1)[0];
    let reason = refused["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("arm `mine`: policy `strict of "), "{reason}");
    assert!(reason.contains("is not in `policy.allow`"), "{reason}");
    assert_eq!(decides(&mut other), "standard");
}

#[test]
fn who_is_blocked_or_made_an_admin_on_one_host_is_so_on_all() {
    let Some(hosts) = Hosts::new(2) else { return };
    hosts.write(0, json!({"version": 1, "model": "sim", "admins": ["U1"]}));
    let (one, other) = (hosts.start(0), hosts.start(1));
    until("a home without a file gets one", || (hosts.says(1)["admins"] == json!(["U1"])).then_some(()));
    hosts.homes[1].run(&["admin", "add", "U2"], "").ok();
    until("it is in the other's file", || (hosts.says(0)["admins"] == json!(["U1", "U2"])).then_some(()));
    hosts.write(0, json!({"version": 1, "model": "sim", "admins": ["U1", "U2"], "blocklist": ["U9"]}));
    until("so is who is blocked", || (hosts.says(1)["blocklist"] == json!(["U9"])).then_some(()));
    assert_eq!(hosts.says(1).get("model"), None, "all else is each home's own");
    // The last word of one that ends, too.
    hosts.write(1, json!({"version": 1, "admins": ["U2"]}));
    assert!(other.end().0.success());
    until("it is known", || (hosts.says(0)["admins"] == json!(["U2"])).then_some(()));
    assert!(one.end().0.success());
}

/// Regression: nobody was left who could change anything from a conversation, and no log said so.
#[test]
fn two_admins_who_blocked_each_other_on_two_hosts_were_both_gone_in_silence() {
    let Some(hosts) = Hosts::new(2) else { return };
    // Each host ends at once, as its input does.
    let run = |at: usize| {
        let output = hosts.command(at, &["run", "--model", "sim"]).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let write = |blocked: [&[&str]; 2]| {
        for (at, blocked) in blocked.into_iter().enumerate() {
            hosts.write(at, json!({"version": 1, "admins": ["U1", "U2"], "blocklist": blocked}));
        }
        [run(0), run(1)]
    };
    write([&[], &[]]);
    let said = write([&["U2"], &["U1"]]);
    assert_eq!(said.each_ref().map(|log| log.contains("have together left no admin")), [false, true], "{said:#?}");
    run(0);
    let blocked = [0, 1].map(|at| hosts.says(at)["blocklist"].as_array().map_or(0, Vec::len));
    assert_eq!(blocked, [2, 2]);
}
