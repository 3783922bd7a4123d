//! Real files, and a real PostgreSQL between them.

use pmk_stand_ins::postgres;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{database::Database, store::Place};

struct House {
    folder: TempDir,
    lock: HomeLock,
    store: Store,
    shared: SharedConfig,
}

/// Homes on one database; none where tests are to do without PostgreSQL, which the server says.
fn houses<const N: usize>(files: [Value; N]) -> Option<[House; N]> {
    let address = postgres::server()?.schema();
    Some(files.map(|file| House::on(&address, &file)))
}

impl House {
    fn on(address: &str, file: &Value) -> House {
        let folder = tempfile::tempdir().unwrap();
        if *file != Value::Null {
            fs::write(home::config_file(folder.path()), file.to_string()).unwrap();
        }
        let database = Some(Database::parse(address).unwrap());
        let store = Store::open(Place { home: folder.path().to_owned(), database }).unwrap();
        let lock = HomeLock::take(folder.path()).unwrap();
        let shared = SharedConfig::open(&lock, store.clone(), Clock::system());
        House { folder, lock, store, shared }
    }

    fn pass(&mut self) {
        self.shared.pass().unwrap();
    }

    fn starts_again(&mut self) {
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
    other.write(json!({"version": 1, "model": "sim", "admins": ["U1"]}));
    other.pass();
    one.pass();
    assert_eq!(one.says(), json!({"version": 1, "model": "sim", "admins": ["U1"]}), "and is heard again");
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

#[test]
fn a_home_that_is_new_takes_what_there_is_and_keeps_its_own_file_beside() {
    let (old, new) =
        (json!({"version": 1, "blocklist": ["U9"]}), json!({"version": 1, "admins": ["U7"], "model": "sim"}));
    let Some([mut one, mut other, mut empty]) = houses([old, new.clone(), Value::Null]) else { return };
    one.pass();
    other.pass();
    empty.pass();
    assert_eq!(other.says(), json!({"version": 1, "blocklist": ["U9"], "model": "sim"}));
    assert_eq!((other.kept(), one.kept()), (vec![new], vec![]));
    assert_eq!((empty.says(), empty.kept()), (json!({"version": 1, "blocklist": ["U9"]}), vec![]));
    one.pass();
    assert_eq!(one.says(), json!({"version": 1, "blocklist": ["U9"]}), "nobody lost anything by it");
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
    // A start without one is that of a home that is new.
    one.starts_again();
    one.pass();
    assert_eq!(one.says(), file);
}

#[test]
fn what_the_database_has_and_no_gateway_could_run_with_is_left_there() {
    let file = json!({"version": 1, "blocklist": ["U9"]});
    let Some([mut one, _]) = houses([file.clone(), file.clone()]) else { return };
    one.pass();
    for text in ["[]", r#"{"blocklist": 7}"#, r#"{"experiment": {"name": "a"}}"#] {
        let version = one.store.common_config_version().unwrap();
        one.store.offer_common_config(text.into(), version, 0).unwrap().unwrap();
        assert!(matches!(one.shared.pass(), Err(SharingError::Unusable(_))), "{text}");
        assert_eq!(one.says(), file);
    }
    // Nothing else comes from there.
    let version = one.store.common_config_version().unwrap();
    one.store.offer_common_config(r#"{"model": "other", "admins": ["U1"]}"#.into(), version, 0).unwrap().unwrap();
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
