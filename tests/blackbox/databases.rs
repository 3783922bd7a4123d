//! A store in PostgreSQL: real hosts on one database.

use std::process::Command;

use pmk_stand_ins::{
    postgres::{self, Server},
    relay::Relay,
};
use serde_json::Value;

use crate::support::{Home, Running, answers, component, finish, program, question, until};

/// Kills after this many answers of both, of one host and the other by turns.
const KILLS: [u64; 4] = [1, 20, 45, 80];
const QUESTIONS: usize = 120;

/// How often a turn of the console waits for the database, with the signs of life that its host gives meanwhile.
const MOST_ROUND_TRIPS: f64 = 8.0;

fn run(home: &Home, store: &str, model: &str) -> Running {
    let strict = component("strict");
    Running::start(home.command(&["run", "--store", store, "--policy", &strict, "--model", model, "--window", "8000"]))
}

fn signal(gateway: &Running, name: &str) {
    let sent = Command::new("kill").args([name, &gateway.pid().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

/// The only database of an address that ends with its name.
fn count(server: &Server, store: &str, sql: &str) -> u64 {
    let database = store.rsplit('/').next().expect("a name");
    server.psql(database, sql).ok().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Whether the host of this home works on the database.
fn works(server: &Server, store: &str, home: &Home) -> bool {
    let folder = home.path().canonicalize().expect("a home");
    let working = format!("SELECT count(*) FROM host WHERE until > pmk_now() AND name LIKE '%:{}'", folder.display());
    count(server, store, &working) == 1
}

#[test]
fn every_question_is_answered_however_often_hosts_on_one_database_are_killed() {
    let Some(server) = postgres::server() else { return };
    killed_by_turns(server, &server.database());
}

#[test]
fn every_question_is_answered_however_often_hosts_behind_a_pooler_are_killed() {
    let Some(server) = postgres::server() else { return };
    let Some(pooler) = server.pooler(&[]) else { return };
    killed_by_turns(server, &pooler.address(&server.database()));
}

fn killed_by_turns(server: &Server, store: &str) {
    let homes = [Home::new(), Home::new()];
    let questions: Vec<String> = (0..QUESTIONS)
        .map(|n| question(&format!("Ev{n}"), &format!("Question {n}: {}", "a fact to remember, ".repeat(20))))
        .collect();
    let mut printed: Vec<Value> = Vec::new();
    let mut hosts: Vec<Running> = homes.iter().map(|home| run(home, store, "sim")).collect();
    for (n, kill_after) in KILLS.into_iter().enumerate() {
        until("its turn comes", || homes.iter().all(|home| works(server, store, home)).then_some(()));
        // Whichever of them hears of a question first has it.
        for host in &mut hosts {
            questions.iter().all(|line| host.say(line));
        }
        let answered = "SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL";
        until("so many are answered", || (count(server, store, answered) >= kill_after).then_some(()));
        let next = run(&homes[n % 2], store, "sim");
        printed.extend(std::mem::replace(&mut hosts[n % 2], next).kill());
    }
    for mut host in hosts {
        questions.iter().all(|line| host.say(line));
        let (status, rest) = host.end();
        assert!(status.success());
        printed.extend(rest);
    }

    assert_eq!(answers(&printed).len(), QUESTIONS, "a question was lost");
    let sessions = homes[0].run(&["--json", "--store", store, "sessions", "list"], "").ok().json();
    assert_eq!(sessions[0]["turns"], QUESTIONS);
    // Each line of the ledger is in the files of one home, once that has run again.
    for home in &homes {
        let (status, _) = run(home, store, "sim").end();
        assert!(status.success());
    }
    let told: usize = homes.iter().map(|home| home.events("turn.processed").len()).sum();
    assert_eq!(told, QUESTIONS);
    assert_eq!(count(server, store, "SELECT count(*) FROM event"), 0);
}

#[test]
fn a_host_at_the_end_of_its_input_waited_for_ever_for_a_conversation_that_another_had_worked_on() {
    let Some(server) = postgres::server() else { return };
    let store = server.database();
    let (one, other) = (Home::new(), Home::new());
    let mut works = run(&one, &store, "sim:delay=6000");
    works.say(&question("Ev1", "what is left of the margin?"));
    until("the turn begins", || (count(server, &store, "SELECT count(*) FROM turn") == 1).then_some(()));
    let mut waits = run(&other, &store, "sim");
    waits.say(&question("Ev2", "and of the budget?"));
    let (status, printed) = waits.end();
    assert!(status.success());
    assert_eq!(answers(&printed).len(), 1, "{printed:?}");
    let (status, printed) = works.end();
    assert!(status.success());
    assert_eq!(answers(&printed).len(), 1, "{printed:?}");
}

#[test]
fn a_host_that_was_stopped_amid_a_turn_writes_nothing_more_and_the_other_answers_once() {
    let Some(server) = postgres::server() else { return };
    stopped_amid_a_turn(server, &server.database());
}

#[test]
fn a_host_behind_a_pooler_that_was_stopped_amid_a_turn_writes_nothing_more_and_the_other_answers_once() {
    let Some(server) = postgres::server() else { return };
    let Some(pooler) = server.pooler(&[]) else { return };
    stopped_amid_a_turn(server, &pooler.address(&server.database()));
}

fn stopped_amid_a_turn(server: &Server, store: &str) {
    let (one, other) = (Home::new(), Home::new());
    let mut stopped = run(&one, store, "sim:delay=60000");
    stopped.say(&question("Ev1", "what is left of the margin?"));
    until("the turn begins", || (count(server, store, "SELECT count(*) FROM turn") == 1).then_some(()));
    signal(&stopped, "-STOP");
    let next = run(&other, store, "sim");
    let reply = next.next_of("reply");
    assert_eq!(reply["event_id"], "Ev1");
    signal(&stopped, "-CONT");
    // It learns of it with its next sign, if not before.
    let (status, printed) = stopped.until_it_ends();
    assert!(!status.success());
    assert!(printed.iter().all(|line| line["type"] != "reply"), "{printed:?}");
    let (status, _) = next.end();
    assert!(status.success());
    assert_eq!(count(server, store, "SELECT count(*) FROM message"), 2);
    assert_eq!(count(server, store, "SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL"), 1);
}

#[test]
fn turns_that_the_database_goes_away_amid_come_to_their_end_once_it_is_back() {
    let Some(server) = postgres::server() else { return };
    let store = server.database();
    let cut = cut_off(&store);
    cut_amid_turns(server, &store, || _ = server.psql("postgres", &cut).expect("cut off"));
}

#[test]
fn turns_that_a_pooler_is_restarted_amid_come_to_their_end() {
    let Some(server) = postgres::server() else { return };
    let Some(mut pooler) = server.pooler(&[]) else { return };
    cut_amid_turns(server, &pooler.address(&server.database()), || pooler.restart());
}

#[test]
fn turns_that_a_pooler_loses_its_connections_amid_come_to_their_end() {
    let Some(server) = postgres::server() else { return };
    let Some(pooler) = server.pooler(&[]) else { return };
    let store = pooler.address(&server.database());
    let cut = cut_off(&store);
    cut_amid_turns(server, &store, || {
        // The database is away behind it, which it says in its own words.
        pooler.leads_to_the_server(false);
        server.psql("postgres", &cut).expect("cut off");
        let before = pooler.failures();
        until("somebody asks in vain", || (pooler.failures() > before).then_some(()));
        pooler.leads_to_the_server(true);
    });
}

/// What ends all connections to the database of a store.
fn cut_off(store: &str) -> String {
    let database = store.rsplit('/').next().expect("a name");
    format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' AND pid <> pg_backend_pid()"
    )
}

fn cut_amid_turns(server: &Server, store: &str, mut cut: impl FnMut()) {
    let home = Home::new();
    let mut gateway = run(&home, store, "sim:delay=200");
    for n in 0..20 {
        gateway.say(&question(&format!("Ev{n}"), &format!("Question {n}")));
    }
    until("all are stored", || (count(server, store, "SELECT count(*) FROM inbox") == 20).then_some(()));
    // While an answer is delivered, and while one is made.
    for kind in ["reply", "turn", "turn", "reply", "turn"] {
        gateway.next_of(kind);
        cut();
    }
    let (status, _) = gateway.end();
    assert!(status.success());
    assert_eq!(count(server, store, "SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL"), 20);
    assert_eq!(count(server, store, "SELECT count(*) FROM message"), 40);
}

#[test]
fn turns_that_the_database_fails_over_amid_come_to_their_end_on_its_standby_and_nothing_is_lost() {
    let Some(mut pair) = postgres::pair() else { return };
    let (home, store) = (Home::new(), pair.database());
    // As `count` takes it.
    let name = store.split_once('?').expect("an address with more").0.to_owned();
    let mut gateway = run(&home, &store, "sim:delay=200");
    for n in 0..20 {
        gateway.say(&question(&format!("Ev{n}"), &format!("Question {n}")));
    }
    until("all are stored", || (count(&pair.primary, &name, "SELECT count(*) FROM inbox") == 20).then_some(()));
    for _ in 0..3 {
        gateway.next_of("turn");
    }
    pair.fail_over();
    let (status, printed) = gateway.end();
    assert!(status.success());
    let standby = &pair.standby;
    assert_eq!(count(standby, &name, "SELECT count(*) FROM turn WHERE delivered_at IS NOT NULL"), 20);
    assert_eq!(count(standby, &name, "SELECT count(*) FROM message"), 40);
    // A third had begun, so these two had come to their end.
    let is_again = |id: &str| printed.iter().any(|line| line["event_id"] == id);
    assert!(!is_again("Ev0") && !is_again("Ev1"), "{printed:?}");
    let others = home.run(&["--json", "--store", &store, "status"], "").json();
    assert_eq!(others["store"]["error"], Value::Null, "{others}");
}

#[test]
fn commands_work_on_the_database_and_name_it_without_its_password() {
    let Some(server) = postgres::server() else { return };
    let (home, store) = (Home::new(), server.database());
    let secret = store.replace("pmk@", "pmk:s3cret@");
    let file = serde_json::json!({"version": 1, "store": secret}).to_string();
    home.write("gateway.json", file);
    let doctor = home.run(&["--json", "doctor", "--offline", "--model", "sim"], "");
    assert!(doctor.stdout.contains("none yet"), "{}", doctor.stdout);
    let mut gateway = Running::start(home.command(&["run", "--policy", &component("strict"), "--model", "sim"]));
    gateway.say(&question("Ev1", "hello"));
    gateway.next_of("turn");
    let status = home.run(&["--json", "status"], "");
    assert_eq!(status.json()["store"]["name"], store.as_str());
    assert_eq!(status.json()["store"]["hosts"][0]["state"], "works");
    for arguments in
        [&["doctor", "--offline", "--model", "sim"][..], &["status"], &["config", "show"], &["sessions", "list"]]
    {
        let shown = home.run(arguments, "");
        assert!(
            !shown.stdout.contains("s3cret") && !shown.stderr.contains("s3cret"),
            "{}{}",
            shown.stdout,
            shown.stderr
        );
        assert!(arguments[0] == "sessions" || shown.stdout.contains(&store), "{}", shown.stdout);
    }
    let (status, _) = gateway.end();
    assert!(status.success());
    let refused = home.run(&["store", "backup", "/tmp/nowhere.db"], "");
    assert!(refused.stderr.contains("is not a file") && refused.stderr.contains("pg_dump"), "{}", refused.stderr);
    assert!(!home.path().join("gateway/pmk-host.db").exists(), "nothing is in the home");

    // What of an address is not understood is said before anything else, and not what it is.
    let other = Home::new();
    other.write("gateway.json", r#"{"version":1,"store":"postgres://pmk:s3cret@db.example/pmk?sslmod=require"}"#);
    for refused in [other.run(&["config", "check"], ""), other.run(&["run", "--model", "sim"], "")] {
        let said = refused.stdout + &refused.stderr;
        assert!(
            !refused.status.success() && said.contains("did you mean `sslmode`?") && !said.contains("s3cret"),
            "{said}"
        );
    }

    // Nor is the database asked with a password file that others may read.
    let passwords = home.write("passwords", "*:*:*:*:s3cret");
    let mut command = home.command(&["--store", &store, "sessions", "list"]);
    command.env("PGPASSFILE", &passwords);
    let refused = finish(command, "").stderr;
    assert!(
        refused.contains("cannot connect to the database ") && refused.contains("can be read by others"),
        "{refused}"
    );
    assert!(refused.contains(&format!("hint: chmod 600 {}", passwords.display())), "{refused}");

    // To a home of its own, and to another database.
    let (back, second) = (Home::new(), server.database());
    let path = back.path().to_str().expect("a path");
    home.run(&["store", "copy", "--from", &store, "--to", path], "").ok();
    back.run(&["store", "copy", "--from", "sqlite", "--to", &second], "").ok();
    let of = |home: &Home, more: &[&str]| home.run(&[more, &["--json", "sessions", "list"]].concat(), "").ok().json();
    assert_eq!(of(&back, &[]), of(&home, &[]));
    assert_eq!(of(&back, &["--store", &second]), of(&home, &[]));
    let again = home.run(&["store", "copy", "--from", &store, "--to", path], "");
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}

/// The home was named, in which nothing is kept.
#[test]
fn a_list_without_conversations_names_the_database_that_was_read() {
    let Some(server) = postgres::server() else { return };
    let (home, store) = (Home::new(), server.database());
    let secret = store.replace("pmk@", "pmk:s3cret@");
    home.write("gateway.json", serde_json::json!({"version": 1, "store": secret}).to_string());
    home.run(&["run", "--model", "sim"], "").ok();
    let listed = home.run(&["sessions", "list"], "").ok();
    assert!(listed.stderr.contains(&format!("no conversations yet in `{store}`")), "{}", listed.stderr);
}

/// Nothing said that the home goes on with the store that was copied, and on the way back each hint led to the next
/// error.
/// Regression: it was said to refuse access, with the hint to check user and password.
#[test]
fn a_database_of_another_encoding_was_said_to_refuse_access() {
    let Some(server) = postgres::server() else { return };
    let made = "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    server.psql("postgres", made).expect("a database");
    let refused = Home::new().run(&["--store", &server.address("latin"), "store", "check"], "").stderr;
    assert!(refused.contains("/latin` has the encoding LATIN1, but must have UTF8\n"), "{refused}");
    assert!(refused.contains("  hint: ") && refused.contains("ENCODING 'UTF8' TEMPLATE template0"), "{refused}");
}

#[test]
fn a_store_moves_to_a_database_and_back_by_what_the_commands_say() {
    let Some(server) = postgres::server() else { return };
    let (home, store) = (Home::new(), server.database());
    home.run(&["run", "--model", "sim"], &question("Ev1", "hello")).ok();
    let there = home.run(&["store", "copy", "--from", "sqlite", "--to", &store], "").ok().stderr;
    assert!(there.contains("this home still uses `") && there.contains("pmk-host.db`"), "{there}");
    assert!(there.contains(&format!("hint: set `store` in gateway.json to `{store}`")), "{there}");

    home.write("gateway.json", serde_json::json!({"version": 1, "store": store}).to_string());
    let back = ["store", "copy", "--from", &store, "--to", "sqlite"];
    let refused = home.run(&back, "").stderr;
    let renew = refused.split('`').find(|part| part.ends_with("store renew")).expect("a command").to_owned();
    let of_this_home = format!("pmk-host --home {} ", home.path().display());
    let words: Vec<&str> = renew.strip_prefix(&of_this_home).expect("of this home").split(' ').collect();
    home.run(&words, "").ok();
    let here = home.run(&back, "").ok().stderr;
    assert!(here.contains(&format!("this home still uses `{store}`")), "{here}");
    assert!(here.contains("hint: set `store` in gateway.json to `sqlite`"), "{here}");
}

/// One that was named by a file was said to be in use, and it wanted a home though it was about two others.
#[test]
fn a_copy_needs_no_home_but_those_that_it_names() {
    let (one, other) = (Home::new(), Home::new());
    one.run(&["run", "--model", "sim"], &question("Ev1", "hello")).ok();
    let [from, to] = [&one, &other].map(|home| home.path().to_str().expect("a path").to_owned());
    let copy = |from: &str, to: &str| {
        let mut command = Command::new(program());
        command.env_clear().env("HOME", one.path().join("nobody")).args(["store", "copy", "--from", from, "--to", to]);
        finish(command, "")
    };
    copy(&from, &to).ok();
    let of_its_home = other.run(&["admin", "log"], "").ok().stdout;
    assert!(of_its_home.contains("store.copy"), "{of_its_home}");
    let file = one.write("file", "");
    let file = file.to_str().expect("a path");
    for refused in [copy(file, &to), copy(&from, file)] {
        assert!(refused.stderr.contains("is not a folder, so it cannot be a home"), "{}", refused.stderr);
    }
    assert!(copy("sqlite", &to).stderr.contains("/.pmk` does not exist"), "of whose home it is the file");
}

#[test]
fn status_lists_the_hosts_in_either_language() {
    let Some(server) = postgres::server() else { return };
    let (homes, store) = ([Home::new(), Home::new()], server.database());
    let first = run(&homes[0], &store, "sim");
    until("it works", || works(server, &store, &homes[0]).then_some(()));
    let mut second = run(&homes[1], &store, "sim:delay=60000");
    second.say(&question("Ev1", "what is left of the margin?"));
    let at_work = "SELECT count(*) FROM session WHERE lease_owner IS NOT NULL";
    until("it works on something", || (count(server, &store, at_work) == 1).then_some(()));
    let json = homes[0].run(&["--json", "--store", &store, "status"], "").json();
    let hosts = json["store"]["hosts"].as_array().expect("hosts");
    let folder = |home: &Home| home.path().canonicalize().expect("a home").display().to_string();
    assert_eq!(hosts.len(), 2, "{json}");
    for (host, turns, home) in [(&hosts[0], 0, &homes[0]), (&hosts[1], 1, &homes[1])] {
        assert_eq!((&host["state"], &host["home"]), (&"works".into(), &folder(home).into()), "{host}");
        assert_eq!(host["turns"], turns);
        assert_eq!(host["version"], env!("CARGO_PKG_VERSION"));
        assert!(
            host["last_sign_seconds"].is_u64() && host["since"].is_string() && host["machine"].is_string(),
            "{host}"
        );
    }
    // What differs from run to run has names.
    let machine = hosts[0]["machine"].as_str().expect("a machine");
    let named = [
        (store.clone(), "STORE"),
        (format!("{machine}:{}", folder(&homes[0])), "ONE"),
        (format!("{machine}:{}", folder(&homes[1])), "OTHER"),
        (hosts[0]["since"].as_str().expect("since").to_owned(), "THEN"),
        (hosts[1]["since"].as_str().expect("since").to_owned(), "LATER"),
        (env!("CARGO_PKG_VERSION").to_owned(), "VERSION"),
    ];
    let told = |language: &str| {
        let mut command = homes[0].command(&["--store", &store, "status"]);
        command.env("LC_ALL", language);
        let told = finish(command, "").stdout;
        let lines = told.lines().filter(|line| line.contains(&store) || line.contains(machine));
        let lines = lines.map(|line| named.iter().fold(line.to_owned(), |line, (text, name)| line.replace(text, name)));
        lines.map(|line| without_seconds(&line)).collect::<Vec<_>>()
    };
    assert_eq!(
        told("C"),
        [
            "  store        `STORE`, in use by 2 hosts",
            "  host         `ONE` works on 0 conversations, version VERSION, since THEN, last heard from N s ago",
            "  host         `OTHER` works on one conversation, version VERSION, since LATER, last heard from N s ago",
        ]
    );
    assert_eq!(
        told("zh_TW.UTF-8"),
        [
            "  資料庫       `STORE`，2 台主機正在使用",
            "  主機         `ONE` 正在處理 0 個對話，版本 VERSION，從 THEN 起，N 秒前有消息",
            "  主機         `OTHER` 正在處理 1 個對話，版本 VERSION，從 LATER 起，N 秒前有消息",
        ]
    );
    second.kill();
    let (status, _) = first.end();
    assert!(status.success());
}

/// A line with `N` for how many seconds ago something was.
fn without_seconds(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for at in 1..words.len() {
        if ["s", "秒前有消息"].contains(&words[at]) {
            words[at - 1] = if words[at - 1].starts_with("起，") { "起，N" } else { "N" };
        }
    }
    words.join(" ")
}

#[test]
fn a_turn_waits_for_the_database_a_few_times_however_much_it_writes() {
    // Beside turns a host looks several times a second what others do, and takes longer for a turn where the machine is busy: what
    // turns take is what those take that are least disturbed.
    const ROUNDS: usize = 10;
    const TURNS: usize = 8;
    let Some(server) = postgres::server() else { return };
    let (home, store) = (Home::new(), server.database());
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into());
    let through = store.replace(&server.port().to_string(), &relay.address().port().to_string());
    let mut gateway = run(&home, &through, "sim");
    let mut ask = |n: usize| {
        gateway.say(&question(&format!("Ev{n}"), &format!("Question {n}: what is left of the margin?")));
        gateway.next_of("turn");
    };
    ask(0);
    let rounds = (0..ROUNDS).map(|round| {
        let before = relay.round_trips();
        (1..=TURNS).for_each(|turn| ask(round * TURNS + turn));
        (relay.round_trips() - before) as f64 / TURNS as f64
    });
    let each = rounds.fold(f64::INFINITY, f64::min);
    println!("{each:.1} round trips a turn");
    assert!(each <= MOST_ROUND_TRIPS, "{each}");
    let (status, _) = gateway.end();
    assert!(status.success());
}
