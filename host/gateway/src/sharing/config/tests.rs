//! Tests with real files, and a real PostgreSQL between them.

use std::os::unix::fs::PermissionsExt;

use pmk_stand_ins::postgres;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{config::note_start, database::Database, store::Place};

struct House {
    address: String,
    folder: TempDir,
    lock: HomeLock,
    store: Store,
    shared: SharedConfig,
}

/// Homes on one database; `None` where tests are to run without PostgreSQL, which the server helper prints.
fn houses<const N: usize>(files: [Value; N]) -> Option<[House; N]> {
    let address = postgres::server()?.schema();
    Some(files.map(|file| House::on(&address, &file)))
}

/// Runs a statement in the database of these homes, as an operator would by hand.
fn sql(house: &House, sql: &str) -> String {
    let schema = house.address.rsplit("%3D").next().unwrap();
    postgres::server().unwrap().psql("postgres", &format!("SET search_path = {schema}; {sql}")).unwrap()
}

impl House {
    fn on(address: &str, file: &Value) -> House {
        let folder = tempfile::tempdir().unwrap();
        if *file != Value::Null {
            fs::write(home::config_file(folder.path()), file.to_string()).unwrap();
        }
        House::in_folder(folder, address)
    }

    fn in_folder(folder: TempDir, address: &str) -> House {
        let database = Some(Database::parse(address).unwrap());
        let store = Store::open(Place { home: folder.path().to_owned(), database }).unwrap();
        let lock = HomeLock::take(folder.path()).unwrap();
        note_start(folder.path(), home::config_file(folder.path()).exists()).unwrap();
        let shared = SharedConfig::open(&lock, store.clone(), Clock::system());
        House { address: address.to_owned(), folder, lock, store, shared }
    }

    fn pass(&mut self) {
        self.shared.pass().unwrap();
    }

    fn starts_again(&mut self) {
        note_start(self.folder.path(), home::config_file(self.folder.path()).exists()).unwrap();
        self.shared = SharedConfig::open(&self.lock, self.store.clone(), Clock::system());
    }

    fn write(&self, file: Value) {
        home::replace_private_file(&home::config_file(self.folder.path()), file.to_string().as_bytes()).unwrap();
    }

    fn says(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(home::config_file(self.folder.path())).unwrap()).unwrap()
    }

    fn kept(&self) -> Vec<Value> {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let kept = files.filter(|path| path.to_string_lossy().contains("gateway.json.kept-"));
        kept.map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
    }
}

#[test]
fn who_was_blocked_on_one_host_was_still_heard_on_the_others() {
    let file = json!({"version": 1, "model": "sim", "admins": ["U1"]});
    let Some([mut one, mut other]) = houses([file.clone(), file]) else { return };
    one.pass();
    other.pass();
    one.write(json!({"version": 1, "model": "sim", "admins": ["U1"], "blocklist": ["U9"]}));
    one.pass();
    other.pass();
    assert_eq!(other.says(), json!({"version": 1, "model": "sim", "admins": ["U1"], "blocklist": ["U9"]}));
    other.write(json!({"version": 1, "model": "sim", "admins": ["U1"], "blocklist": []}));
    other.pass();
    one.pass();
    assert_eq!(
        one.says(),
        json!({"version": 1, "model": "sim", "admins": ["U1"], "blocklist": []}),
        "and is heard again"
    );
}

#[test]
fn two_who_change_people_at_the_same_time_both_get_their_way() {
    let file = json!({"version": 1, "admins": ["U1"], "escalation": {"default": ["U1"]}});
    let Some([mut one, mut other]) = houses([file.clone(), file]) else { return };
    one.pass();
    other.pass();
    one.write(json!({"version": 1, "model": "sim", "admins": ["U1", "U2"], "escalation": {"default": ["U1"], "repos": {"erp": ["U2"]}}}));
    other.write(json!({"version": 1, "admins": ["U3", "U1"], "escalation": {"default": ["U4"]}}));
    for _ in 0..2 {
        one.pass();
        other.pass();
    }
    let both = json!({"admins": ["U1", "U2", "U3"], "escalation": {"default": ["U4"], "repos": {"erp": ["U2"]}}});
    for (house, model) in [(&one, json!("sim")), (&other, Value::Null)] {
        let says = house.says();
        let mut admins: Vec<&str> = says["admins"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        admins.sort_unstable();
        assert_eq!((json!(admins), &says["escalation"]), (both["admins"].clone(), &both["escalation"]));
        assert_eq!(says["model"], model, "all else is each home's own");
    }
}

/// Regression: each removal left an admin in the file that it was made in, and the two together left nobody.
#[test]
fn two_admins_who_removed_each_other_on_two_hosts_left_nobody_who_could_add_one() {
    let both = json!({"version": 1, "admins": ["U1", "U2"], "blocklist": []});
    let Some([mut one, mut other]) = houses([both.clone(), both.clone()]) else { return };
    one.pass();
    other.pass();
    let settle = |one: &mut House, other: &mut House| {
        for _ in 0..2 {
            one.pass();
            other.pass();
        }
        assert_eq!(one.says(), other.says());
        one.says()
    };
    one.write(json!({"version": 1, "admins": ["U1"], "blocklist": []}));
    other.write(json!({"version": 1, "admins": ["U2"], "blocklist": []}));
    assert_eq!(settle(&mut one, &mut other)["admins"], json!(["U1"]), "who was first stays");
    // One of the two was blocked instead.
    let blocks = json!({"version": 1, "admins": ["U1", "U2"], "blocklist": ["U2"]});
    for is_first in [true, false] {
        one.write(both.clone());
        assert_eq!(settle(&mut one, &mut other), both);
        one.write(blocks.clone());
        other.write(json!({"version": 1, "admins": ["U2"], "blocklist": []}));
        if !is_first {
            other.pass();
        }
        assert_eq!(settle(&mut one, &mut other), blocks);
    }
    // A list that names nobody is meant so.
    one.write(both.clone());
    settle(&mut one, &mut other);
    one.write(json!({"version": 1, "admins": [], "blocklist": []}));
    other.write(json!({"version": 1, "admins": ["U2"], "blocklist": []}));
    assert_eq!(settle(&mut one, &mut other), json!({"version": 1, "blocklist": []}));
}

#[test]
fn a_home_that_is_new_takes_what_there_is_and_keeps_its_own_file_beside() {
    let old = json!({"version": 1, "admins": ["U1"], "blocklist": ["U8"]});
    let new = json!({"version": 1, "admins": ["U7"], "blocklist": ["U9"], "model": "sim"});
    let Some([mut one, mut other, mut empty]) = houses([old, new.clone(), Value::Null]) else { return };
    one.pass();
    other.pass();
    empty.pass();
    assert_eq!(other.says(), json!({"version": 1, "admins": ["U1"], "blocklist": ["U8", "U9"], "model": "sim"}));
    assert_eq!((other.kept(), one.kept()), (vec![new], vec![]));
    one.pass();
    let all = json!({"version": 1, "admins": ["U1"], "blocklist": ["U8", "U9"]});
    assert_eq!((one.says(), empty.says(), empty.kept()), (all.clone(), all, vec![]));
}

#[test]
fn what_was_changed_while_nothing_ran_is_told_at_the_next_start() {
    let file = json!({"version": 1, "admins": ["U1"]});
    let Some([mut one, mut other]) = houses([file.clone(), file]) else { return };
    one.pass();
    other.pass();
    one.write(json!({"version": 1, "admins": ["U1", "U2"]}));
    other.write(json!({"version": 1, "admins": []}));
    other.pass();
    one.starts_again();
    one.pass();
    other.pass();
    assert_eq!((one.says()["admins"].clone(), other.says()["admins"].clone()), (json!(["U2"]), json!(["U2"])));
}

#[test]
fn a_file_that_is_gone_or_makes_no_sense_takes_nothing_from_anybody() {
    let file = json!({"version": 1, "blocklist": ["U9"]});
    let Some([mut one, mut other]) = houses([file.clone(), file.clone()]) else { return };
    one.pass();
    other.pass();
    one.write(json!({"version": 1, "blocklist": "everybody"}));
    assert!(matches!(one.shared.pass(), Err(SharingError::Config(_))));
    fs::remove_file(home::config_file(one.folder.path())).unwrap();
    one.pass();
    assert!(!home::config_file(one.folder.path()).exists());
    other.pass();
    assert_eq!(other.says(), file);
    // Without a token, the home starts as a new one.
    one.starts_again();
    one.pass();
    assert_eq!(one.says(), file);
}

/// Regression: it was shared as it was.
#[test]
fn what_others_could_write_into_a_file_reached_all_hosts() {
    let file = json!({"version": 1, "admins": ["U1"]});
    let Some([mut one, mut other]) = houses([file.clone(), file.clone()]) else { return };
    one.pass();
    other.pass();
    one.write(json!({"version": 1, "admins": ["U9"]}));
    let path = home::config_file(one.folder.path());
    let set = |mode| fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    set(0o666);
    assert!(matches!(one.shared.pass(), Err(SharingError::Config(EditError::Untrusted(_)))));
    other.pass();
    assert_eq!(other.says(), file);
    set(0o600);
    one.pass();
    other.pass();
    assert_eq!(other.says()["admins"], json!(["U9"]));
}

/// Regression: keys that were added before all programs were upgraded had whoever was blocked from then on heard.
#[test]
fn a_host_that_runs_an_older_version_heard_whom_the_others_had_blocked() {
    let newer = json!({"version": 1, "limits": {"aKeyOfTomorrow": 1}, "blocklist": []});
    let Some([mut one, mut older]) = houses([json!({"version": 1, "blocklist": []}), newer]) else { return };
    one.pass();
    older.pass();
    one.write(json!({"version": 1, "blocklist": ["U9"]}));
    one.pass();
    older.pass();
    assert_eq!(older.says(), json!({"version": 1, "limits": {"aKeyOfTomorrow": 1}, "blocklist": ["U9"]}));
}

/// Regression: nothing was shared any more, not even whom somebody had blocked.
#[test]
fn a_slip_in_the_experiment_of_one_host_kept_people_from_being_shared() {
    let file = json!({"version": 1, "admins": ["U1"], "blocklist": []});
    let Some([mut one, mut other]) = houses([file.clone(), file]) else { return };
    one.pass();
    other.pass();
    let slip = json!({"name": "x", "control": "nobody", "arms": []});
    one.write(json!({"version": 1, "admins": ["U1"], "blocklist": ["U9"], "experiment": slip}));
    one.pass();
    other.pass();
    assert_eq!(other.says(), json!({"version": 1, "admins": ["U1"], "blocklist": ["U9"]}));
    let good = json!({"name": "x", "control": "a", "arms": [{"name": "a"}, {"name": "b"}]});
    let all = json!({"version": 1, "admins": ["U1", "U2"], "blocklist": ["U9"], "experiment": good});
    other.write(all.clone());
    for _ in 0..3 {
        other.pass();
        one.pass();
    }
    let left = json!({"version": 1, "admins": ["U1", "U2"], "blocklist": ["U9"], "experiment": slip});
    assert_eq!((one.says(), other.says()), (left, all.clone()), "each keeps its experiment");
    one.write(all);
    one.pass();
    other.pass();
    let stopped = json!({"version": 1, "admins": ["U1", "U2"], "blocklist": ["U9"], "experiment": null});
    one.write(stopped);
    one.pass();
    other.pass();
    assert_eq!(other.says()["experiment"], Value::Null, "and once it is mended, it is shared again");
}

#[test]
fn what_the_database_has_and_no_gateway_could_run_with_is_left_there() {
    let file = json!({"version": 1, "blocklist": ["U9"]});
    let Some([mut one, _]) = houses([file.clone(), file.clone()]) else { return };
    one.pass();
    for text in ["[]", r#"{"blocklist": 7}"#, r#"{"experiment": {"name": "a"}}"#] {
        sql(&one, &format!("UPDATE common_config SET version = version + 1, text = '{text}'"));
        assert!(matches!(one.shared.pass(), Err(SharingError::Unusable(_))), "{text}");
        assert_eq!(one.says(), file);
    }
    // Nothing else is taken from the database.
    sql(&one, r#"UPDATE common_config SET version = version + 1, text = '{"model": "other", "admins": ["U1"]}'"#);
    one.pass();
    assert_eq!(one.says(), json!({"version": 1, "admins": ["U1"]}));
}

#[test]
fn a_link_to_the_file_stays_a_link_when_another_host_changes_what_it_says() {
    let file = json!({"version": 1, "admins": ["U1"]});
    let Some([mut one, mut other]) = houses([file.clone(), file]) else { return };
    one.pass();
    other.pass();
    let (config, elsewhere) = (home::config_file(one.folder.path()), tempfile::tempdir().unwrap());
    let real = elsewhere.path().join("gateway.json");
    fs::copy(&config, &real).unwrap();
    fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink(&real, &config).unwrap();
    other.write(json!({"version": 1, "admins": ["U1", "U2"]}));
    other.pass();
    one.pass();
    assert_eq!(one.says()["admins"], json!(["U1", "U2"]));
    assert!(config.is_symlink());
}

#[test]
fn a_file_without_a_key_says_nothing_of_it_and_an_empty_one_takes_it_away() {
    let file = json!({"version": 1, "admins": ["U1"], "blocklist": ["U9"]});
    let Some([mut one, mut other]) = houses([file.clone(), file.clone()]) else { return };
    one.pass();
    other.pass();
    // As after a new deployment.
    other.write(json!({"version": 1, "model": "sim"}));
    other.pass();
    one.pass();
    assert_eq!((one.says(), other.says()["blocklist"].clone()), (file, json!(["U9"])));
    other.write(json!({"version": 1, "admins": null, "blocklist": []}));
    other.pass();
    one.pass();
    assert_eq!(one.says(), json!({"version": 1, "blocklist": []}));
}

#[test]
fn the_first_home_that_knows_nobody_takes_nobody_from_the_next() {
    let file = json!({"version": 1, "admins": ["U1"], "blocklist": ["U9"]});
    let Some([mut one, mut other]) = houses([Value::Null, file.clone()]) else { return };
    one.pass();
    other.pass();
    one.pass();
    assert_eq!((one.says(), other.says(), other.kept()), (file.clone(), file, vec![]));
}

#[test]
fn who_was_removed_does_not_come_back_by_a_file_that_could_not_be_written() {
    let file = json!({"version": 1, "admins": ["U1"]});
    let Some([mut one, mut other]) = houses([file.clone(), file]) else { return };
    one.pass();
    other.pass();
    let lock = home::open_private_file(&home::gateway_dir(one.folder.path()).join("config.lock")).unwrap();
    lock.lock().unwrap();
    other.write(json!({"version": 1, "admins": ["U1"], "audience": {"default": "pm"}}));
    other.pass();
    one.write(json!({"version": 1, "admins": ["U1", "U7"]}));
    one.pass();
    other.pass();
    assert_eq!(other.says()["admins"], json!(["U1", "U7"]));
    other.write(json!({"version": 1, "admins": ["U1"], "audience": {"default": "pm"}}));
    for _ in 0..3 {
        other.pass();
        one.pass();
    }
    assert_eq!((other.says()["admins"].clone(), one.says()["admins"].clone()), (json!(["U1"]), json!(["U1", "U7"])));
    drop(lock);
    one.pass();
    assert_eq!(one.says(), json!({"version": 1, "admins": ["U1"], "audience": {"default": "pm"}}));
}

#[test]
fn who_was_removed_does_not_come_back_by_a_kill_right_after_a_file_was_written() {
    let file = json!({"version": 1, "admins": ["U1"]});
    let Some([mut one, mut other]) = houses([file.clone(), file.clone()]) else { return };
    one.pass();
    other.pass();
    other.write(json!({"version": 1, "admins": ["U1", "U7"]}));
    other.pass();
    one.pass();
    assert_eq!(one.says()["admins"], json!(["U1", "U7"]));
    one.starts_again();
    other.write(file.clone());
    other.pass();
    one.pass();
    other.pass();
    assert_eq!((one.says(), other.says()), (file.clone(), file));
}

#[test]
fn a_database_that_was_put_back_is_told_what_was_changed_since() {
    let file = json!({"version": 1, "admins": ["U1", "U7"]});
    let Some([mut one, mut other]) = houses([file.clone(), file]) else { return };
    one.pass();
    other.pass();
    sql(&one, "CREATE TABLE before AS TABLE common_config; CREATE TABLE homes_before AS TABLE home_config");
    let now = json!({"version": 1, "admins": ["U1"], "blocklist": ["U9"]});
    one.write(now.clone());
    one.pass();
    other.pass();
    let back = "DELETE FROM common_config; INSERT INTO common_config TABLE before; DELETE FROM home_config; INSERT INTO home_config TABLE homes_before";
    sql(&one, back);
    for _ in 0..2 {
        one.pass();
        other.pass();
    }
    assert_eq!((one.says(), other.says()), (now.clone(), now));
    sql(&one, "DELETE FROM common_config");
    other.pass();
    one.pass();
    assert_eq!(one.says()["blocklist"], json!(["U9"]), "and one that was emptied as well");
}

#[test]
fn a_home_that_comes_to_another_database_is_new_there() {
    let (old, new) = (json!({"version": 1, "admins": ["U1"]}), json!({"version": 1, "admins": ["U2"]}));
    let Some([mut one]) = houses([old.clone()]) else { return };
    let Some([mut elsewhere]) = houses([new.clone()]) else { return };
    one.pass();
    elsewhere.pass();
    let House { folder, lock, store, shared, .. } = one;
    drop((lock, store, shared));
    let mut moved = House::in_folder(folder, &elsewhere.address);
    moved.pass();
    assert_eq!((moved.says(), moved.kept()), (new, vec![old]));
}
