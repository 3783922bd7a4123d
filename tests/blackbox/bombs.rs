//! Components made to take all memory and time of whoever compiles them, at every door that components come in by.
//! The limits are lowered here, so that each is ended within a second; what the defaults make of them is measured by
//! `cargo bench --bench bombs`.

use std::{path::Path, time::Instant};

use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
use serde_json::json;

use self::made::Bomb;
use crate::support::{Home, Running, component, program, repository, until};

#[path = "bombs/made.rs"]
pub mod made;

/// A second and 256 MiB are more than any component needs that comes with the gateway.
const LOWERED: &str = r#"{"version":1,"language":"en","admins":["UADMIN"],
    "policy":{"limits":{"compileCpuSeconds":1,"compileMemoryMiB":256}}}"#;

fn lowered() -> Home {
    let home = Home::new();
    home.write("gateway.json", LOWERED);
    home
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// What a refusal says of it, without what changes from machine to machine.
fn reason(stderr: &str) -> String {
    let (_, reason) = stderr.split_once("bomb.wasm` ").unwrap_or_else(|| panic!("{stderr}"));
    reason.trim_end().to_owned()
}

#[test]
fn each_is_refused_by_the_limit_that_it_goes_for() {
    let home = lowered();
    let mut shown = String::new();
    for Bomb { name, bytes } in made::all() {
        let bomb = home.write("bomb.wasm", bytes);
        let finished = home.run(&["policy", "inspect", text(&bomb)], "");
        assert_eq!(finished.status.code(), Some(1), "{name}: {}", finished.stderr);
        shown.push_str(&format!("{name}\n  {}\n", reason(&finished.stderr)));
    }
    insta::with_settings!({filters => vec![
        // Which of them comes first is a matter of the machine's speed.
        (r"takes more than (1 s of processor time|256 MiB of memory|10 s on the clock)", "takes more than [it may]"),
        (r"compileCpuSeconds|compileMemoryMiB", "compile[..]"),
    ]}, { insta::assert_snapshot!(shown) });
}

#[test]
fn every_door_has_the_limits() {
    let home = lowered();
    let history = repository("tests/fixtures/tool-heavy-en.json");
    let histories = repository("tests/fixtures");
    for (Bomb { name, bytes }, said) in
        [(made::slow(), "takes more than"), (made::types_within_types(), "has 33 levels of types")]
    {
        let bomb = home.write("bomb.wasm", bytes);
        for arguments in [
            &["policy", "check", text(&bomb)][..],
            &["policy", "bench", text(&bomb)],
            &["run", "--model", "sim", "--policy", text(&bomb)],
            &["plan", "--policy", text(&bomb), "--history", text(&history)],
            &["compare", "--policy", text(&bomb), "--policy", &component("strict"), "--histories", text(&histories)],
        ] {
            let finished = home.run(arguments, "");
            assert_eq!(finished.status.code(), Some(1), "{name}: {arguments:?}: {}", finished.stderr);
            let said = format!("bomb.wasm` {said}");
            assert!(finished.stderr.contains(&said), "{name}: {arguments:?}: {}", finished.stderr);
        }
    }
}

/// Who decides now, by asking something.
fn decides(gateway: &mut Running) -> String {
    assert!(gateway.say(&json!({"type": "message", "text": "who decides?"}).to_string()));
    gateway.next_of("turn")["policy"]["name"].as_str().expect("a policy").to_owned()
}

/// The most memory that a process ever had, in KiB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux's /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Limits under which a bomb is not ended while a test runs.
fn patient() -> Home {
    let home = Home::new();
    home.write(
        "gateway.json",
        LOWERED.replace(r#""compileCpuSeconds":1"#, r#""compileCpuSeconds":600"#).replace("256", "8192"),
    );
    home
}

fn start(home: &Home, policy: &Path) -> Running {
    Running::start(home.command(&["run", "--model", "sim", "--policy", text(policy)]))
}

fn await_compilers(gateway: &Running, count: usize) {
    until(&format!("{count} components are being compiled"), || {
        (compilers(gateway.pid()).len() == count).then_some(())
    });
}

#[test]
fn a_running_gateway_neither_grows_nor_waits() {
    let home = patient();
    let mine = home.write("mine.wasm", std::fs::read(component("strict")).expect("a component"));
    let mut gateway = start(&home, &mine);
    assert_eq!(decides(&mut gateway), "strict");
    let before = peak(gateway.pid());

    let bomb = home.write("bomb.wasm", made::slow().bytes);
    let mut asking = home.command(&["policy", "use", text(&bomb)]).spawn().expect("the program");
    await_compilers(&gateway, 1);
    // Turns, other commands, the way back and changed files go on.
    assert_eq!(decides(&mut gateway), "strict");
    home.run(&["policy", "use", &component("rolling-summary")], "").ok();
    assert_eq!(decides(&mut gateway), "rolling-summary");
    home.run(&["policy", "use", "--previous"], "").ok();
    assert_eq!(decides(&mut gateway), "strict");
    home.run(&["policy", "use", text(&mine)], "").ok();
    std::fs::write(&mine, made::slow().bytes).expect("a file");
    await_compilers(&gateway, 2);
    std::fs::write(&mine, std::fs::read(component("rolling-summary")).expect("a component")).expect("a file");
    until("what was put in its place decides", || (decides(&mut gateway) == "rolling-summary").then_some(()));
    await_compilers(&gateway, 1);

    let after = peak(gateway.pid());
    assert!(after < before + 48 * 1_024, "{before} KiB before, {after} KiB after");
    // Nobody is left behind.
    let left = compilers(gateway.pid());
    gateway.kill();
    for pid in left {
        until("a compiler without a gateway ends", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    }
    assert!(!asking.wait().expect("the command").success());
}

/// The parts are counted in the gateway itself, which a file in the place of its policy must not end.
#[test]
fn types_within_types_do_not_end_a_running_gateway() {
    let home = lowered();
    let mut gateway = start(&home, Path::new(&component("strict")));
    assert_eq!(decides(&mut gateway), "strict");
    let bomb = home.write("bomb.wasm", made::types_within_types().bytes);
    let refused = home.run(&["policy", "use", text(&bomb)], "");
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("levels of types"), "{}", refused.stderr);
    assert_eq!(decides(&mut gateway), "strict");
}

#[test]
fn a_good_file_is_taken_after_any_number_of_bad_ones() {
    let home = patient();
    let mine = home.write("mine.wasm", std::fs::read(component("strict")).expect("a component"));
    let mut gateway = start(&home, &mine);
    // One more than are compiled at once.
    for n in 0..5 {
        let mut bomb = made::slow().bytes;
        // Another component each time: a section that nobody reads.
        bomb.extend([0, 2, 1, b'a' + n]);
        let before = compilers(gateway.pid());
        std::fs::write(&mine, bomb).expect("a file");
        until("the next one is being compiled, and it alone", || {
            let now = compilers(gateway.pid());
            (now.len() == 1 && now != before).then_some(())
        });
    }
    std::fs::write(&mine, std::fs::read(component("rolling-summary")).expect("a component")).expect("a file");
    until("the good one decides", || (decides(&mut gateway) == "rolling-summary").then_some(()));
    await_compilers(&gateway, 0);
}

#[test]
fn a_command_that_nobody_waits_for_any_more_is_not_carried_out() {
    let home = patient();
    let mine = home.write("mine.wasm", std::fs::read(component("strict")).expect("a component"));
    let gateway = start(&home, &mine);
    let bomb = home.write("bomb.wasm", made::slow().bytes);
    let mut asking = home.command(&["policy", "use", text(&bomb)]).spawn().expect("the program");
    await_compilers(&gateway, 1);
    asking.kill().expect("the command");
    asking.wait().expect("the command");
    await_compilers(&gateway, 0);
}

/// The children of a process, which are compilers all.
pub fn compilers(pid: u32) -> Vec<u32> {
    let parent = |stat: &str| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok();
    let processes = std::fs::read_dir("/proc").expect("Linux's /proc").flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    let stat = |process: &u32| std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    numbers.filter(|process| parent(&stat(process)) == Some(pid)).collect()
}

#[test]
fn what_passes_the_compiler_is_kept_from_everything_else() {
    // The kernel of the machine may not be able to; it is said then.
    let home = lowered();
    let begun = Instant::now();
    let document = home.run(&["--json", "policy", "bench", "--time", "0.01", &component("strict")], "").ok().json();
    let compiled = &document["load"]["compiled"];
    let processors = std::fs::read_to_string("/proc/cpuinfo").expect("Linux's /proc").matches("processor\t").count();
    let most_ms = begun.elapsed().as_millis() * processors as u128;
    assert_eq!(compiled["confined"] != "no", kernel_confines(), "{document:#}");
    assert!(["fully", "partly", "no"].iter().any(|word| compiled["confined"] == *word), "{document:#}");
    assert!(compiled["cpu_ms"].as_u64().is_some_and(|ms| (1..=most_ms).contains(&u128::from(ms))), "{document:#}");
    assert!(compiled["peak_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{document:#}");
}

/// Whether the kernel of this machine can keep a process from something; nothing is kept from this one.
fn kernel_confines() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::Execute).and_then(Ruleset::create).is_ok()
}

#[test]
fn a_limit_of_the_system_is_told_from_one_of_gateway_json() {
    let home = Home::cold();
    let inspect = |limit: &str| {
        let mut command = std::process::Command::new("sh");
        let (program, home) = (program(), home.path());
        let line = format!("{limit}; exec '{}' --home '{}' policy inspect \"$1\"", program.display(), home.display());
        command.args(["-c", &line, "sh", &component("strict")]);
        let finished = crate::support::finish(command, "");
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
        finished.stderr
    };
    let said = inspect("ulimit -f 100");
    assert!(said.contains("MiB for the compiled code, all that the system allows"), "{said}");
    assert!(said.contains("`ulimit -f` in the environment of pmk-host is lower"), "{said}");
}
