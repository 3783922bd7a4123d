//! Other policies take over in a running gateway: by a command, a changed file, a signal. Nobody in the conversation
//! sees anything of it.

use std::{
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    bombs::{compilers, made},
    moments::Moments,
    support::{Finished, Home, Running, component, question, until},
    terminal::Terminal,
};

/// A gateway in the console, on the model that costs nothing.
fn start(home: &Home, more: &[&str]) -> Running {
    Running::start(home.command(&[&["run", "--model", "sim", "--window", "8000"], more].concat()))
}

/// Who decides now, by asking something.
fn decides(gateway: &mut Running) -> String {
    assert!(gateway.say(&json!({"type": "message", "text": "who decides?"}).to_string()));
    let turn = gateway.next_of("turn");
    turn["policy"]["name"].as_str().unwrap_or_else(|| panic!("{turn}")).to_owned()
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not 0");
    kill_process(pid, signal).expect("it runs");
}

/// Asks until that policy decides.
fn await_policy(gateway: &mut Running, name: &str) {
    until(&format!("`{name}` decides"), || (decides(gateway) == name).then_some(()));
}

/// Waits for so many events of one type, and fails if there are more.
fn await_events(home: &Home, kind: &str, count: usize) -> Vec<Value> {
    let events = home.await_events(kind, count);
    assert_eq!(events.len(), count, "{events:#?}");
    events
}

/// A component of a name of its own in the home.
fn file(home: &Home, name: &str) -> PathBuf {
    home.write("mine.wasm", std::fs::read(component(name)).expect("a component"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn policy_use(home: &Home, more: &[&str]) -> Finished {
    home.run(&[&["policy", "use"], more].concat(), "")
}

/// Shows what a command printed, without what changes from build to build.
macro_rules! assert_shown {
    ($home:expr, $shown:expr) => {
        insta::with_settings!({filters => vec![
            (r"sha256 [0-9a-f]{64}", "sha256 [..]"),
            (r"pmk:policy@[0-9.]+", "pmk:policy@[version]"),
            (regex::escape($home.path().to_str().expect("UTF-8")).as_str(), "[home]"),
        ]}, { insta::assert_snapshot!($shown) })
    };
}

mod files;

/// Regression: the command waited for ever, as the kernel accepts connections for a process that is stopped.
#[test]
fn a_gateway_that_does_not_answer_is_an_error() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");
    let pid = Pid::from_raw(gateway.pid().cast_signed()).expect("a process");
    kill_process(pid, Signal::STOP).expect("it is stopped");
    let refused = policy_use(&home, &["recall"]);
    kill_process(pid, Signal::CONT).expect("it goes on");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("does not answer\n  hint: "), "{}", refused.stderr);
    let (status, _) = gateway.end();
    assert!(status.success());
}

#[test]
fn by_a_command_and_back() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");

    let mut shown = policy_use(&home, &[&component("strict")]).ok().stdout;
    assert_eq!(decides(&mut gateway), "strict");
    shown += &policy_use(&home, &[&component("strict"), &component("rolling-summary")]).ok().stdout;
    assert_eq!(decides(&mut gateway), "rolling-summary");
    shown += &policy_use(&home, &["--previous"]).ok().stdout;
    assert_eq!(decides(&mut gateway), "strict");
    assert_shown!(home, shown);

    let swapped = home.run(&["--json", "policy", "use", "--previous", "--persist"], "").ok().json();
    assert_eq!(decides(&mut gateway), "rolling-summary");
    assert_eq!(swapped["survives_restart"], true, "{swapped:#}");
    assert_eq!(swapped["serving"][0]["name"], "rolling-summary");
    assert_eq!(swapped["before"][0]["name"], "strict");
    drop(gateway);
    let mut again = start(&home, &[]);
    assert_eq!(decides(&mut again), "rolling-summary", "it survives a restart");

    let events = await_events(&home, "policy.swapped", 4);
    assert_eq!(events[0]["by"], "command");
    assert_eq!(events[0]["before"][0]["name"], "standard");
    for key in ["name", "version", "sha256"] {
        assert!(events[0]["serving"][0][key].is_string(), "{key}: {}", events[0]);
    }
}

/// A chat showed its prompt a moment before there was anything that takes commands.
#[test]
fn a_command_to_a_gateway_that_was_starting_was_refused() {
    let home = Home::new();
    let key = home.path().join("key");
    let command = format!("while ! test -e '{0}'; do sleep 0.05; done; cat '{0}'", key.display());
    let config = json!({"version": 1, "apiKey": {"cmd": command}});
    home.write("gateway.json", config.to_string());
    let gateway = Running::start(home.command(&["run", "--model", "anthropic-api:claude-haiku-4-5"]));
    until("it has the home", || home.path().join("gateway/state.json").exists().then_some(()));
    let mut command = home.command(&["policy", "use", "strict"]);
    command.env("TERM", "xterm");
    let mut asking = Terminal::start(command);
    asking.wait_for("waiting for the gateway to start", 1);
    home.write("key", "sk-ant-1\n");
    let (status, shown) = asking.until_its_end();
    assert!(status.success() && shown.concat().contains("strict 1.0.0"), "{shown:#?}");
    gateway.end();
}

#[test]
fn what_comes_with_the_program_is_swapped_in_by_name() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");
    let swapped = policy_use(&home, &["--persist", "recall", "caps"]).ok().stdout;
    assert_eq!(decides(&mut gateway), "recall", "{swapped}");
    policy_use(&home, &["--previous"]).ok();
    assert_eq!(decides(&mut gateway), "standard");
    // A start would take what was to persist.
    send(gateway.pid(), Signal::HUP);
    await_policy(&mut gateway, "recall");
    assert!(home.events("policy.refused").is_empty());
    gateway.end();
}

/// Once, the lower of the two repeated what the upper had failed at, without a word.
#[test]
fn a_policy_that_was_named_twice_was_stacked_on_itself() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    let refused = policy_use(&home, &["strict", "recall", "strict"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.starts_with("error: `strict` is named twice\n  hint: name each policy once"),
        "{}",
        refused.stderr
    );
    assert_eq!(decides(&mut gateway), "standard");
}

#[test]
fn the_settings_of_the_start_hold_for_what_is_swapped_in() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version":1,"policy":{"settings":{"strict":{"max-session-tokens":60}}}}"#);
    let mut gateway = start(&home, &["--set", "standard.seed-cap=9000"]);
    let long = "a fact to remember, ".repeat(30);
    for n in 0..12 {
        assert!(gateway.say(&question(&format!("Ev{n}"), &long)));
    }
    for _ in 0..12 {
        assert_eq!(gateway.next_of("turn")["turns_dropped"], 0);
    }
    policy_use(&home, &[&component("strict")]).ok();
    assert!(gateway.say(&question("Ev99", "and now?")));
    assert_ne!(gateway.next_of("turn")["turns_dropped"], 0, "60 tokens are too few for what was said");
}

#[test]
fn what_is_wrong_with_the_new_one_is_said_and_the_old_one_serves() {
    let home = Home::new();
    let mut gateway = start(&home, &["--policy", &component("strict")]);
    assert_eq!(decides(&mut gateway), "strict");
    let bad = home.write("bad.wasm", b"\0asm\x0d\0\x01\0");
    let mut shown = String::new();
    for more in [&["--previous"][..], &[text(&bad)], &["/nowhere/a.wasm"]] {
        let finished = policy_use(&home, more);
        assert_eq!(finished.status.code(), Some(1), "{more:?}");
        assert_eq!(finished.stdout, "");
        shown += &finished.stderr;
    }
    assert_eq!(policy_use(&home, &[]).status.code(), Some(2));
    assert_eq!(policy_use(&home, &["--previous", text(&bad)]).status.code(), Some(2));
    assert_shown!(home, shown);
    assert_eq!(decides(&mut gateway), "strict");
    // There was nothing to go back to, which is no policy that was refused.
    let events = await_events(&home, "policy.refused", 2);
    assert_eq!(events[0]["by"], "command");
    assert!(events[0]["reason"].as_str().is_some_and(|reason| reason.contains("bad.wasm")), "{}", events[0]);
}

#[test]
fn a_choice_says_whether_it_survives_a_restart() {
    let home = Home::new();
    let mine = file(&home, "strict");
    let strict = component("strict");
    let gateway = start(&home, &["--policy", &strict]);
    gateway_is_up(&home);
    let survives = |more: &[&str]| {
        let shown = policy_use(&home, more).ok().stdout;
        shown.lines().find(|line| line.starts_with("restart")).expect("a line").to_owned()
    };
    let mut shown = vec![survives(&[&component("rolling-summary"), "--persist"]), survives(&[&strict])];
    assert!(gateway.end().0.success());
    // What was persisted is what a start has now.
    let _gateway = start(&home, &[]);
    gateway_is_up(&home);
    shown.push(survives(&[&component("rolling-summary")]));
    shown.push(survives(&[text(&mine), "--persist"]));
    shown.push(survives(&[&component("rolling-summary")]));
    std::fs::write(&mine, std::fs::read(component("rolling-summary")).expect("a component")).expect("a file");
    shown.push(survives(&["--previous"]));
    insta::assert_snapshot!(shown.join("\n"));
}

/// It said `still in use afterwards`, wrote the choice down, and the next start was refused because of its `--set`.
#[test]
fn a_choice_that_the_next_start_would_refuse_is_not_written_down() {
    let home = Home::new();
    home.write("gateway.json", r#"{"version": 1, "policy": {"files": ["strict"]}}"#);
    let arguments = ["--set", "strict.max-session-tokens=9000"];
    let gateway = start(&home, &arguments);
    gateway_is_up(&home);
    let told = policy_use(&home, &["recall", "--persist"]).ok().stdout;
    assert!(told.contains("not in use afterwards") && told.contains("`--set` for policy `strict`"), "{told}");
    let config = std::fs::read_to_string(home.path().join("gateway.json")).expect("gateway.json");
    assert!(config.contains("strict") && !config.contains("recall"), "{config}");
    assert!(policy_use(&home, &["recall", "strict", "--persist"]).ok().stdout.contains("still in use afterwards"));
    assert!(gateway.end().0.success());
    let mut gateway = start(&home, &arguments);
    gateway_is_up(&home);
    assert_eq!(decides(&mut gateway), "strict");
}

/// Waits until commands are taken.
fn gateway_is_up(home: &Home) {
    // It is there a moment before anybody listens.
    let socket = home.path().join("gateway/control.sock");
    until("a control socket", || UnixStream::connect(&socket).ok());
}

/// `--previous` brought back what its file did not hold any more, and half a second later the file was loaded instead.
#[test]
fn what_an_operator_goes_back_to_stays_whatever_its_file_holds_by_then() {
    let home = Home::new();
    let mine = file(&home, "strict");
    let mut gateway = start(&home, &[]);
    gateway_is_up(&home);
    for _ in 0..5 {
        file(&home, "strict");
        policy_use(&home, &[text(&mine)]).ok();
        policy_use(&home, &["caps"]).ok();
        file(&home, "rolling-summary");
        let back = home.run(&["--json", "policy", "use", "--previous"], "").ok().json();
        assert_eq!(back["serving"][0]["name"], "strict", "{back:#}");
        Moments::new().pass_blocking(Duration::from_millis(900));
        assert_eq!(decides(&mut gateway), "strict", "{:#?}", home.events("policy.swapped"));
    }
    // What its file comes to hold afterwards is what somebody wants now.
    file(&home, "recall");
    await_policy(&mut gateway, "recall");
    assert!(home.events("policy.refused").is_empty());
}

/// Regression: on the host where the command was given, `--previous` brought back the settings of then, too.
#[test]
fn what_an_operator_went_back_to_had_settings_that_had_changed_since() {
    let home = Home::new();
    let configure = |tokens: u64| {
        let settings = json!({"strict": {"max-session-tokens": tokens}});
        home.write("gateway.json", json!({"version": 1, "policy": {"settings": settings}}).to_string());
    };
    configure(9_000);
    let mut gateway = start(&home, &[]);
    gateway_is_up(&home);
    policy_use(&home, &["strict"]).ok();
    for n in 0..12 {
        assert!(gateway.say(&question(&format!("Ev{n}"), &"a fact to remember, ".repeat(10))));
        assert_eq!(gateway.next_of("turn")["turns_dropped"], 0);
    }
    policy_use(&home, &["caps"]).ok();
    configure(60);
    policy_use(&home, &["--previous"]).ok();
    assert!(gateway.say(&question("Ev99", "and now?")));
    let turn = gateway.next_of("turn");
    assert_eq!(turn["policy"]["name"], "strict", "{turn}");
    assert_ne!(turn["turns_dropped"], 0, "only ten turns stay above 60 tokens: {turn}");
}

/// A file that had changed half a second ago took over from what the operator had gone back to since.
#[test]
fn a_file_that_has_changed_before_an_operator_chose_does_not_undo_the_choice() {
    let home = Home::new();
    let mine = file(&home, "strict");
    let mut gateway = start(&home, &["--policy", text(&mine)]);
    gateway_is_up(&home);
    for (next, then) in [("rolling-summary", "recall"), ("strict", "caps")] {
        file(&home, next);
        await_policy(&mut gateway, next);
        // On a machine that is slow this one takes over first: then another one is gone back to.
        file(&home, then);
        let back = home.run(&["--json", "policy", "use", "--previous"], "").ok().json();
        Moments::new().pass_blocking(Duration::from_millis(1500));
        assert_eq!(decides(&mut gateway), back["serving"][0]["name"], "{:#?}", home.events("policy.swapped"));
    }
}

#[test]
fn a_socket_is_private_and_one_that_was_left_behind_is_replaced() {
    let home = Home::new();
    let mut shown = policy_use(&home, &[&component("strict")]).stderr;
    let gateway = start(&home, &[]);
    gateway_is_up(&home);
    let socket = home.path().join("gateway/control.sock");
    let mode = std::fs::metadata(&socket).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    gateway.kill();
    assert!(socket.exists(), "a kill leaves it behind");
    shown += &policy_use(&home, &[&component("strict")]).stderr;
    assert_shown!(home, shown);

    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");
    policy_use(&home, &[&component("strict")]).ok();
    assert!(gateway.end().0.success());
    assert!(!socket.exists(), "an orderly stop removes it");
}

#[test]
fn requests_that_make_no_sense_are_answered_and_do_no_harm() {
    use std::net::Shutdown;
    let home = Home::new();
    let _gateway = start(&home, &[]);
    gateway_is_up(&home);
    let ask = |request: &[u8]| -> Value {
        let mut stream = UnixStream::connect(home.path().join("gateway/control.sock")).expect("the socket");
        // One that refuses to read on closes its end, which is an answer, too.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
    };
    for request in [&b"\n"[..], b"{}\n", b"[1]\n", b"{\"command\":\"stop\"}\n", b"\xff\xfe\n", b"", b"{\"command\":"] {
        let answer = ask(request);
        assert_eq!(answer["type"], "error", "{answer}");
        assert!(answer["hint"].as_str().is_some_and(|hint| hint.contains("one line of JSON")), "{answer}");
    }
    let unknown = ask(b"{\"command\":\"policy.use\",\"files\":[\"/nowhere.wasm\"]}\n");
    assert_eq!(unknown["message"], "policy `/nowhere.wasm` does not exist");
    let files = json!({"command": "policy.use", "files": [component("strict")]});
    assert_eq!(ask(format!("{files}\n").as_bytes())["type"], "swapped");
}

#[test]
fn a_cache_that_is_deleted_meanwhile_is_made_anew() {
    let home = Home::cold();
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");
    std::fs::remove_dir_all(home.path().join("cache")).expect("a folder");
    policy_use(&home, &[&component("strict")]).ok();
    assert_eq!(decides(&mut gateway), "strict");
    assert!(files::holds_a_file(&home.path().join("cache/components")));
}

/// A policy beside whose code is a module that takes seconds to be compiled: sections are put one after the other.
fn slow(home: &Home) -> PathBuf {
    let mut policy = std::fs::read(component("rolling-summary")).expect("a component");
    policy.extend(&made::loops(1, 1_000)[8..]);
    home.write("slow.wasm", policy)
}

/// The policy decided, and the command said that it had failed.
#[test]
fn a_swap_was_reported_as_failed_when_gateway_json_had_become_invalid_meanwhile() {
    let home = Home::cold();
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");
    gateway_is_up(&home);
    let asking = ask_for(&home, text(&slow(&home)));
    let compiler = until("it is being compiled", || compilers(gateway.pid()).pop());
    // It was read before anything was compiled.
    send(compiler, Signal::STOP);
    home.write("gateway.json", "{");
    send(compiler, Signal::CONT);
    assert_swapped(asking);
    await_events(&home, "policy.swapped", 1);
    assert!(home.events("policy.refused").is_empty());
}

#[test]
fn what_was_asked_for_later_goes_before_what_is_ready_later() {
    let home = Home::cold();
    let mut gateway = start(&home, &[]);
    assert_eq!(decides(&mut gateway), "standard");
    let slow = slow(&home);
    let asking =
        home.command(&["policy", "use", text(&slow)]).stderr(std::process::Stdio::piped()).spawn().expect("started");
    let compiler = until("it is being compiled", || compilers(gateway.pid()).pop());
    // It takes its time, and as much more as the other one needs.
    send(compiler, Signal::STOP);
    policy_use(&home, &[&component("strict")]).ok();
    send(compiler, Signal::CONT);
    let overtaken = asking.wait_with_output().expect("the command");
    let said = String::from_utf8(overtaken.stderr).expect("UTF-8");
    assert!(said.contains("policies that were requested later already decide"), "{said}");
    assert_eq!(decides(&mut gateway), "strict");
}

/// Regression: it took over from the promoted arm once it was ready.
#[test]
fn what_was_asked_for_before_a_promotion_went_before_it() {
    let home = Home::cold();
    let arms = json!([{"name": "now"}, {"name": "b", "policy": {"files": ["strict"]}}]);
    let experiment = json!({"name": "t", "control": "now", "arms": arms, "start": "2026-05-07T09:00:00Z"});
    home.write("gateway.json", json!({"version": 1, "experiment": experiment}).to_string());
    let mut gateway = start(&home, &[]);
    home.await_events("experiment.on", 1);
    gateway_is_up(&home);
    let slow = slow(&home);
    let asking =
        home.command(&["policy", "use", text(&slow)]).stderr(std::process::Stdio::piped()).spawn().expect("started");
    let compiler = until("it is being compiled", || compilers(gateway.pid()).pop());
    send(compiler, Signal::STOP);
    home.run(&["experiment", "promote", "b"], "").ok();
    await_events(&home, "policy.swapped", 1);
    send(compiler, Signal::CONT);
    let overtaken = asking.wait_with_output().expect("the command");
    let said = String::from_utf8(overtaken.stderr).expect("UTF-8");
    assert!(said.contains("policies that were requested later already decide"), "{said}");
    assert_eq!(decides(&mut gateway), "strict");
}

/// Resident memory in KiB, and how many threads.
fn takes(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux's /proc");
    let number = |name| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    (number("VmRSS:"), number("Threads:"))
}

#[test]
fn a_hundred_swaps_under_load_fail_no_turn_and_take_no_memory_and_no_threads() {
    let home = Home::new();
    let mut gateway = Running::start(home.command(&["run", "--model", "sim", "--window", "8000"]));
    assert_eq!(decides(&mut gateway), "standard");
    let pid = gateway.pid();
    let (policies, mut asked, mut warm) = ([component("strict"), component("rolling-summary")], 0, (0, 0));
    swap_to(&home, &policies[0]);
    assert_eq!(decides(&mut gateway), "strict");
    for swap in 1..100 {
        // Four conversations at once, a question each between two swaps.
        for user in 0..4 {
            asked += 1;
            let message = json!({"type": "message", "user": format!("U{user}"), "channel": format!("D{user}"),
                                 "text": format!("question {swap}"), "event_id": format!("Ev{asked}")});
            assert!(gateway.say(&message.to_string()));
        }
        swap_to(&home, &policies[swap % 2]);
        if swap == 19 {
            warm = takes(pid);
        }
    }
    for _ in 0..asked {
        let turn = gateway.next_of("turn");
        assert_eq!(turn["calls"], 1, "{turn}");
        let decided = turn["policy"]["name"].as_str().expect("a policy");
        assert!(["strict", "rolling-summary"].contains(&decided), "{turn}");
    }
    let after = takes(pid);
    assert_eq!(decides(&mut gateway), "rolling-summary");
    await_events(&home, "policy.swapped", 100);
    await_events(&home, "policy.failed", 0);
    // What SQLite keeps of its pages grows meanwhile; a policy that stayed would take more with every swap.
    assert!(after.0 < warm.0 + 12 * 1_024, "{warm:?}: KiB and threads after 20 swaps, {after:?} after 100");
    assert!(after.1 < warm.1 + 16, "{warm:?}: KiB and threads after 20 swaps, {after:?} after 100");
}

fn swap_to(home: &Home, file: &str) {
    assert_swapped(ask_for(home, file));
}

/// Asks for a swap as the command does, without a process for each.
fn ask_for(home: &Home, file: &str) -> UnixStream {
    let mut stream = UnixStream::connect(home.path().join("gateway/control.sock")).expect("the socket");
    let request = json!({"command": "policy.use", "files": [file]});
    stream.write_all(format!("{request}\n").as_bytes()).expect("a request");
    stream
}

/// Reads the answer to such a request.
fn assert_swapped(mut stream: UnixStream) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains(r#""type":"swapped""#), "{answer}");
}
