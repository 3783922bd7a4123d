//! Tests with real folders, and a real PostgreSQL between them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Instant,
};

use pmk_knowledge::{
    Atom,
    atom::{NewAtom, Source},
    files::AtomFiles,
};
use pmk_stand_ins::{
    patience::{until, until_async},
    postgres::{self, Server},
};
use pmk_system::home;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{
    database::Database,
    sharing::{SyncTask, keep_atoms},
    store::{Place, StoreError},
};

/// A database of its own, in a schema.
struct Base {
    server: &'static Server,
    address: String,
}

/// A home on that database.
struct House {
    folder: TempDir,
    store: Store,
    lock: HomeLock,
    sharing: SharedAtoms,
}

impl Base {
    /// `None` where tests are to run without PostgreSQL, which the server helper prints.
    fn new() -> Option<Base> {
        let server = postgres::server()?;
        Some(Base { server, address: server.schema() })
    }

    fn house(&self) -> House {
        let folder = tempfile::tempdir().unwrap();
        let database = Some(Database::parse(&self.address).unwrap());
        let store = Store::open(Place { home: folder.path().to_owned(), database }).unwrap();
        let lock = HomeLock::take(folder.path()).unwrap();
        let sharing = opened(&lock, &store);
        House { folder, store, lock, sharing }
    }

    fn sql(&self, sql: &str) -> String {
        let schema = self.address.rsplit("%3D").next().unwrap().split('&').next().unwrap();
        self.server.psql("postgres", &format!("SET search_path = {schema}; {sql}")).unwrap()
    }
}

fn opened(lock: &HomeLock, store: &Store) -> SharedAtoms {
    SharedAtoms::open(lock, store.clone(), Clock::system(), || ()).unwrap()
}

impl House {
    fn root(&self) -> PathBuf {
        self.folder.path().join("knowledge")
    }

    /// Edits a file in place.
    fn write(&self, path: &str, text: &str) {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Replaces a file by another, as some programs do.
    fn replace(&self, path: &str, text: &str) {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        home::replace_private_file(&file, text.as_bytes()).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.root().join(path)).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root().join(path)).ok()
    }

    /// Returns the files of the folder by path, except for the lock.
    fn files(&self) -> BTreeMap<String, String> {
        let entries = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let scopes = entries(&self.root()).filter(|path| path.is_dir());
        let files = scopes.flat_map(|scope| entries(&scope).collect::<Vec<_>>());
        let named = |file: PathBuf| file.strip_prefix(self.root()).unwrap().to_str().unwrap().to_owned();
        files.map(|file| (named(file.clone()), fs::read_to_string(file).unwrap())).collect()
    }

    /// Returns those that the library reads.
    fn atoms(&self) -> BTreeMap<String, String> {
        self.files().into_iter().filter(|(path, _)| AtomPath::parse(path).is_some()).collect()
    }

    /// Returns the texts that were kept beside other files.
    fn kept(&self) -> Vec<String> {
        self.files().into_iter().filter(|(path, _)| path.contains(".md.kept-")).map(|(_, text)| text).collect()
    }

    fn pass(&mut self) {
        self.sharing.pass().unwrap();
    }

    /// As after a restart.
    fn starts_again(&mut self) {
        self.sharing = opened(&self.lock, &self.store);
    }

    fn manifest(&self) -> PathBuf {
        home::gateway_dir(self.folder.path()).join("atoms.json")
    }
}

fn atoms(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// Runs passes until all homes have the same files: the operating system reports a change in place within moments.
fn settle(houses: &mut [&mut House], expected: &[(&str, &str)]) {
    until(&format!("all have {expected:?}"), || {
        houses.iter_mut().for_each(|house| house.pass());
        houses.iter().all(|house| house.atoms() == atoms(expected)).then_some(())
    });
}

#[test]
fn what_is_new_edited_and_deleted_in_one_home_is_so_in_the_other() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    one.write("erp/a.md", "an answer");
    one.pass();
    other.pass();
    assert_eq!(other.atoms(), atoms(&[("erp/a.md", "an answer")]));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let root = other.root();
    assert_eq!((mode(root.join("erp/a.md")), mode(root.join("erp")), mode(other.manifest())), (0o600, 0o700, 0o600));
    other.write("erp/a.md", "a better one");
    settle(&mut [&mut other, &mut one], &[("erp/a.md", "a better one")]);
    other.write("財務/如何.md", "在財務報表");
    one.remove("erp/a.md");
    settle(&mut [&mut one, &mut other], &[("財務/如何.md", "在財務報表")]);
    // A deleted file may be created again.
    other.write("erp/a.md", "an answer");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "an answer"), ("財務/如何.md", "在財務報表")]);
    assert_eq!((one.files().len(), other.files().len()), (2, 2), "nothing is kept beside anything");
    let changed = shared.sql("SELECT count(*), sum(version) FROM atom_file");
    for house in [&mut one, &mut other] {
        house.pass();
        house.starts_again();
        house.pass();
    }
    assert_eq!(shared.sql("SELECT count(*), sum(version) FROM atom_file"), changed, "nothing is written again");
}

#[test]
fn a_new_home_gets_what_there_is_and_brings_what_it_has() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut new) = (shared.house(), shared.house());
    for (path, text) in [("erp/a.md", "a"), ("erp/same.md", "same"), ("erp/other.md", "of the first")] {
        one.write(path, text);
    }
    one.pass();
    for (path, text) in [("crm/b.md", "b"), ("erp/same.md", "same"), ("erp/other.md", "of the new one")] {
        new.write(path, text);
    }
    let all = [("crm/b.md", "b"), ("erp/a.md", "a"), ("erp/other.md", "of the first"), ("erp/same.md", "same")];
    settle(&mut [&mut new, &mut one], &all);
    assert_eq!((new.kept(), one.kept()), (vec!["of the new one".to_owned()], vec![]));
}

#[test]
fn of_two_who_change_one_file_the_first_has_its_place_and_both_texts_are_there() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    one.write("erp/a.md", "as it was");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "as it was")]);
    one.write("erp/a.md", "by the first");
    settle(&mut [&mut one], &[("erp/a.md", "by the first")]);
    until("it is in the store", || {
        one.pass();
        (shared.sql("SELECT body FROM atom_file") == "by the first").then_some(())
    });
    other.write("erp/a.md", "by the second");
    settle(&mut [&mut other, &mut one], &[("erp/a.md", "by the first")]);
    assert_eq!((other.kept(), one.kept()), (vec!["by the second".to_owned()], vec![]));
    // Another edit of a file that was deleted meanwhile.
    one.remove("erp/a.md");
    one.pass();
    other.write("erp/a.md", "once more");
    settle(&mut [&mut other, &mut one], &[]);
    assert_eq!(
        other.kept().into_iter().collect::<BTreeSet<_>>(),
        ["by the second", "once more"].map(String::from).into()
    );
    // A home that has deleted a file which another has changed gets the changed file.
    one.write("erp/b.md", "as it was");
    settle(&mut [&mut one, &mut other], &[("erp/b.md", "as it was")]);
    one.write("erp/b.md", "changed");
    until("it is in the store", || {
        one.pass();
        (shared.sql("SELECT count(*) FROM atom_file WHERE body = 'changed'") == "1").then_some(())
    });
    other.remove("erp/b.md");
    settle(&mut [&mut other, &mut one], &[("erp/b.md", "changed")]);
    assert_eq!(one.kept().len(), 0);
}

/// Regression: the home that had rejected it got it back, approved.
#[test]
fn what_one_home_rejected_while_another_promoted_it_came_back() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    let atom = Atom::pending(NewAtom {
        created_at_ms: 1_777_342_416_133,
        scope: "erp",
        question: "q",
        summary: "s",
        tags: vec![],
        asked_as: vec![],
        answer: "a",
        source: Source::default(),
        suspicion: None,
    });
    let (path, pending) = (format!("erp/{}.md", atom.meta.id), atom.render().unwrap());
    one.write(&path, &pending);
    settle(&mut [&mut one, &mut other], &[(path.as_str(), pending.as_str())]);
    let files = AtomFiles::open(other.folder.path()).unwrap();
    moderation::approve_file(&files, &files.path_of(&atom)).unwrap();
    until("the approval is in the store", || {
        other.pass();
        (shared.sql("SELECT count(*) FROM atom_file WHERE body LIKE '%status: approved%'") == "1").then_some(())
    });
    one.remove(&path);
    settle(&mut [&mut one, &mut other], &[]);
    assert_eq!((one.kept(), other.kept()), (vec![], vec![]));
    assert_eq!(shared.sql("SELECT count(*) FROM atom_file WHERE body IS NOT NULL"), "0");
}

#[test]
fn a_row_writes_nowhere_but_where_a_library_has_its_atoms() {
    let Some(shared) = Base::new() else { return };
    let mut house = shared.house();
    house.pass();
    let digest = TextDigest::of("x");
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), house.root().join("link")).unwrap();
    let absolute = format!("{}/a.md", outside.path().display());
    let long = format!("erp/{}.md", "x".repeat(300));
    let hostile = [
        "../a.md",
        "erp/../../a.md",
        "/a.md",
        "a.md",
        "erp/a/b.md",
        "erp/.lock",
        "./a.md",
        "erp/a.sh",
        "link/a.md",
        ".x/a.md",
        "../gateway.json",
        "erp/..md/a.md",
        "erp/",
        "",
        &absolute,
        &long,
    ];
    for (version, path) in (1..).zip(hostile) {
        let row = format!("'{path}', {version}, '{}', 'x'", digest.as_str());
        shared.sql(&format!("INSERT INTO atom_file (path, version, sha256, body) VALUES ({row})"));
    }
    // Nor is a text taken that does not match its digest, or that is too long for an atom.
    shared.sql("INSERT INTO atom_file (path, version, sha256, body) VALUES ('erp/other.md', 100, 'abc', 'x')");
    let row = format!("'erp/huge.md', 101, '{}', repeat('x', 2000000)", digest.as_str());
    shared.sql(&format!("INSERT INTO atom_file (path, version, sha256, body) VALUES ({row})"));
    shared.sql(&format!(
        "INSERT INTO atom_file (path, version, sha256, body) VALUES ('erp/good.md', 102, '{}', 'x')",
        digest.as_str()
    ));
    for _ in 0..2 {
        house.pass();
        house.starts_again();
        house.pass();
    }
    assert_eq!(house.atoms(), atoms(&[("erp/good.md", "x")]));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    let there = fs::read_dir(house.folder.path()).unwrap().count();
    assert_eq!(there, 2, "gateway and knowledge");
    assert_eq!(fs::read_dir(house.root()).unwrap().count(), 4, "a scope, the link, the lock and the mark");
}

#[test]
fn what_cannot_be_read_is_left_alone_and_was_not_deleted() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    one.write("erp/a.md", "a");
    one.write("erp/b.md", "b");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "a"), ("erp/b.md", "b")]);
    let [file, folder] = ["erp/a.md", "erp"].map(|path| one.root().join(path));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    other.write("erp/b.md", "better");
    until("the rest is shared", || {
        [&mut other, &mut one].into_iter().for_each(House::pass);
        (one.read("erp/b.md").as_deref() == Some("better")).then_some(())
    });
    assert_eq!(other.read("erp/a.md").as_deref(), Some("a"));
    // Once it is repaired, everything is in step; the same with a scope.
    fs::remove_dir(&file).unwrap();
    one.write("erp/a.md", "mended");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "mended"), ("erp/b.md", "better")]);
    fs::rename(&folder, one.root().join(".aside")).unwrap();
    std::os::unix::fs::symlink(one.root().join(".aside"), &folder).unwrap();
    [&mut one, &mut other].into_iter().for_each(House::pass);
    assert_eq!(other.atoms().len(), 2);
    fs::remove_file(&folder).unwrap();
    // Nor a folder where nothing is mounted any more.
    std::os::unix::fs::symlink("/nowhere", &folder).unwrap();
    for _ in 0..2 {
        [&mut one, &mut other].into_iter().for_each(House::pass);
        one.starts_again();
    }
    assert_eq!(other.atoms().len(), 2);
    fs::remove_file(&folder).unwrap();
    fs::rename(one.root().join(".aside"), &folder).unwrap();
    one.remove("erp/a.md");
    settle(&mut [&mut one, &mut other], &[("erp/b.md", "better")]);
}

/// Regression: after a look that failed, what was deleted meanwhile was unknown until a restart.
#[test]
fn what_was_deleted_while_the_folder_could_not_be_listed_stayed_elsewhere() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    one.write("erp/a.md", "a");
    one.write("erp/b.md", "b");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "a"), ("erp/b.md", "b")]);
    let root = one.root();
    // Nobody can list a file, whoever they are.
    let away = root.with_extension("away");
    fs::rename(&root, &away).unwrap();
    fs::write(&root, "").unwrap();
    assert!(one.sharing.pass().is_err());
    fs::remove_file(&root).unwrap();
    fs::rename(&away, &root).unwrap();
    one.remove("erp/a.md");
    settle(&mut [&mut one, &mut other], &[("erp/b.md", "b")]);
}

#[test]
fn a_folder_that_is_gone_or_another_deletes_nothing() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    one.write("erp/a.md", "a");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "a")]);
    fs::rename(one.root(), one.folder.path().join("aside")).unwrap();
    one.sharing.pass().unwrap_err();
    fs::create_dir(one.root()).unwrap();
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "a")]);
}

#[test]
fn without_a_manifest_both_come_to_the_same_and_nothing_is_lost_or_there_twice() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    for path in ["erp/a.md", "erp/b.md", "erp/c.md"] {
        one.write(path, path);
    }
    settle(
        &mut [&mut one, &mut other],
        &[("erp/a.md", "erp/a.md"), ("erp/b.md", "erp/b.md"), ("erp/c.md", "erp/c.md")],
    );
    let before = fs::read(other.manifest()).unwrap();
    one.remove("erp/a.md");
    one.write("erp/b.md", "newer");
    one.write("erp/d.md", "new");
    let now = [("erp/b.md", "newer"), ("erp/c.md", "erp/c.md"), ("erp/d.md", "new")];
    settle(&mut [&mut one, &mut other], &now);
    // A crash between the store and the manifest, and between the folder and the manifest.
    for house in [&mut one, &mut other] {
        fs::write(house.manifest(), &before).unwrap();
        house.starts_again();
    }
    settle(&mut [&mut one, &mut other], &now);
    // The manifest is missing or invalid, and its files have changed.
    fs::remove_file(one.manifest()).unwrap();
    fs::write(other.manifest(), "{").unwrap();
    [&mut one, &mut other].into_iter().for_each(House::starts_again);
    other.write("erp/e.md", "e");
    settle(&mut [&mut one, &mut other], &[now[0], now[1], now[2], ("erp/e.md", "e")]);
    assert_eq!((one.kept().len(), other.kept().len()), (0, 0));
    // A file deleted elsewhere meanwhile is deleted if it was unchanged here; a changed one is kept.
    fs::remove_file(other.manifest()).unwrap();
    one.remove("erp/e.md");
    one.remove("erp/d.md");
    one.pass();
    other.write("erp/d.md", "worked on");
    other.starts_again();
    settle(&mut [&mut other, &mut one], &now[..2]);
    assert_eq!(other.kept(), ["worked on"]);
}

#[test]
fn a_database_that_was_put_back_or_is_another_is_told_what_it_does_not_know() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    one.write("erp/a.md", "old");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "old")]);
    let before = shared.sql("SELECT version FROM atom_file");
    one.write("erp/a.md", "newer");
    one.write("erp/b.md", "b");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "newer"), ("erp/b.md", "b")]);
    shared.sql(&format!(
        "DELETE FROM atom_file; INSERT INTO atom_file (path, version, sha256, body)
         VALUES ('erp/a.md', {before}, '{}', 'old')",
        TextDigest::of("old").as_str()
    ));
    one.starts_again();
    other.starts_again();
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "old"), ("erp/b.md", "b")]);
    assert_eq!(one.kept(), ["newer"], "it is the database's word, and nothing is lost");
}

/// Regression: what a home had compared once counted until its next start, and an atom stayed in that home alone.
#[test]
fn a_database_that_had_lost_an_atom_in_a_failover_was_told_of_it_only_after_a_restart() {
    let Some(shared) = Base::new() else { return };
    let shared = Base { address: format!("{}&application_name=failed-over", shared.address), ..shared };
    let (mut one, mut other) = (shared.house(), shared.house());
    one.write("erp/a.md", "a");
    one.pass();
    shared.sql("DELETE FROM atom_file");
    other.write("erp/b.md", "b");
    other.pass();
    let sessions = "FROM pg_stat_activity WHERE application_name = 'failed-over'";
    shared.sql(&format!("SELECT count(pg_terminate_backend(pid)) {sessions}"));
    // Until a home is connected again, its passes may fail.
    until("each has what the other has", || {
        let passed = [one.sharing.pass(), other.sharing.pass()];
        let all = atoms(&[("erp/a.md", "a"), ("erp/b.md", "b")]);
        (passed.iter().all(Result::is_ok) && one.atoms() == all && other.atoms() == all).then_some(())
    });
}

#[test]
fn a_host_that_lost_its_right_shares_nothing_more() {
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(one.store.take_over(&one.lock)).unwrap();
    one.write("erp/a.md", "a");
    settle(&mut [&mut one, &mut other], &[("erp/a.md", "a")]);
    shared.sql("DELETE FROM host");
    one.write("erp/b.md", "b");
    let refused = until("it is refused", || one.sharing.pass().err());
    assert!(matches!(refused, SharingError::Store(StoreError::TakenOver { .. })), "{refused}");
    other.pass();
    assert_eq!(other.atoms().len(), 1);
}

#[test]
fn what_is_changed_is_known_elsewhere_within_moments_of_its_change() {
    let Some(shared) = Base::new() else { return };
    let (one, other) = (shared.house(), shared.house());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (first, second) = (begun(&one).await, begun(&other).await);
        one.write("erp/a.md", "a");
        until_async("it is there", || other.read("erp/a.md")).await;
        other.remove("erp/a.md");
        until_async("it is gone", || one.read("erp/a.md").is_none().then_some(())).await;
        one.write("erp/last.md", "what was learnt last");
        first.end().await;
        second.end().await;
    });
    assert_eq!(other.atoms(), atoms(&[("erp/last.md", "what was learnt last")]));
}

async fn begun(house: &House) -> SyncTask {
    keep_atoms(&house.lock, house.store.clone(), Clock::system()).await.unwrap()
}

/// An action in one home.
#[derive(Clone, Debug)]
enum Deed {
    /// Somebody writes a new text.
    Writes(usize, usize),
    /// The same, by replacing the file.
    Replaces(usize, usize),
    Deletes(usize, usize),
    Passes(usize),
    StartsAgain(usize),
    LosesItsManifest(usize),
}

const PATHS: [&str; 4] = ["erp/a.md", "erp/b.md", "crm/a.md", "財務/如何.md"];

fn deeds(homes: usize) -> impl Strategy<Value = Vec<Deed>> {
    let (home, path) = (0..homes, 0..PATHS.len());
    let deed = prop_oneof![
        3 => (home.clone(), path.clone()).prop_map(|(home, path)| Deed::Writes(home, path)),
        2 => (home.clone(), path.clone()).prop_map(|(home, path)| Deed::Replaces(home, path)),
        2 => (home.clone(), path).prop_map(|(home, path)| Deed::Deletes(home, path)),
        6 => home.clone().prop_map(Deed::Passes),
        1 => home.clone().prop_map(Deed::StartsAgain),
        1 => home.prop_map(Deed::LosesItsManifest),
    ];
    proptest::collection::vec(deed, 1..40)
}

fn run(shared: &Base, homes: usize, deeds: &[Deed]) {
    let mut houses: Vec<House> = (0..homes).map(|_| shared.house()).collect();
    shared.sql("DELETE FROM atom_file");
    // Every text that ever existed, and those that somebody deleted or replaced.
    let (mut texts, mut gone) = (BTreeSet::new(), BTreeSet::new());
    for (number, deed) in deeds.iter().enumerate() {
        match *deed {
            Deed::Writes(home, path) | Deed::Replaces(home, path) => {
                let (house, path, text) = (&houses[home], PATHS[path], format!("text {number}"));
                gone.extend(house.read(path));
                texts.insert(text.clone());
                match deed {
                    Deed::Replaces(..) => house.replace(path, &text),
                    _ => house.write(path, &text),
                }
            }
            Deed::Deletes(home, path) => {
                if let Some(text) = houses[home].read(PATHS[path]) {
                    houses[home].remove(PATHS[path]);
                    gone.insert(text);
                }
            }
            Deed::Passes(home) => houses[home].pass(),
            Deed::StartsAgain(home) => houses[home].starts_again(),
            Deed::LosesItsManifest(home) => {
                let _ = fs::remove_file(houses[home].manifest());
                houses[home].starts_again();
            }
        }
    }
    let in_store = || {
        let rows = shared.sql("SELECT path || '=' || body FROM atom_file WHERE body IS NOT NULL ORDER BY path");
        rows.lines()
            .filter_map(|row| row.split_once('='))
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .collect()
    };
    until("all are the same", || {
        houses.iter_mut().for_each(House::pass);
        let store: BTreeMap<String, String> = in_store();
        houses.iter().all(|house| house.atoms() == store).then_some(())
    });
    let mut there: BTreeSet<String> = houses.iter().flat_map(|house| house.files().into_values()).collect();
    there.extend(gone);
    let lost: Vec<&String> = texts.iter().filter(|text| !there.contains(*text)).collect();
    assert!(lost.is_empty(), "{lost:?} of {deeds:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_in_several_homes_they_come_to_the_same_and_no_text_is_lost(
        (homes, deeds) in (2..=3_usize).prop_flat_map(|homes| (Just(homes), deeds(homes)))
    ) {
        thread_local!(static SHARED: Option<Base> = Base::new());
        SHARED.with(|shared| shared.iter().for_each(|shared| run(shared, homes, &deeds)));
    }
}

/// Measures what a host does each second, and its start; run by hand with `--ignored`.
#[test]
#[ignore = "it measures"]
fn figures_of_ten_thousand_atoms() {
    const ATOMS: usize = 10_000;
    let Some(shared) = Base::new() else { return };
    let (mut one, mut other) = (shared.house(), shared.house());
    for number in 0..ATOMS {
        one.write(
            &format!("scope{}/{number}.md", number % 4),
            &format!("{number} {}", "what somebody knows. ".repeat(90)),
        );
    }
    let timed = |what: &str, work: &mut dyn FnMut()| {
        let begun = Instant::now();
        work();
        println!("{what}: {:.1} ms", begun.elapsed().as_secs_f64() * 1_000.0);
    };
    timed("all are offered", &mut || one.pass());
    timed("all are fetched", &mut || other.pass());
    assert_eq!(other.atoms().len(), ATOMS);
    // What was just written is read once more.
    for pass in ["after that", "and once more", "and again"] {
        timed(pass, &mut || other.pass());
    }
    let mut nothing = || (0..100).for_each(|_| other.pass());
    timed("100 passes without a change", &mut nothing);
    other.write("scope0/new.md", "new");
    timed("one is new", &mut || other.pass());
    timed("it is fetched", &mut || one.pass());
    other.starts_again();
    timed("a start", &mut || other.pass());
}
