//! Atoms that several homes share, read on threads that may block.

use super::*;
use crate::store::{AtomOffer, AtomRow};

fn offer(path: &str, text: Option<&str>, base: Option<&str>) -> AtomOffer {
    let sha256 = text.or(base).unwrap_or_default().to_owned();
    AtomOffer { path: path.into(), sha256, text: text.map(Into::into), base: base.map(Into::into) }
}

/// The text is used as its own digest here.
fn row(path: &str, version: i64, sha256: &str, bytes: Option<u64>) -> AtomRow {
    AtomRow { path: path.into(), version, sha256: sha256.into(), bytes }
}

#[test]
fn of_two_who_have_changed_one_file_the_second_is_refused() {
    let home = home();
    let (store, late) = (open(&home), NOW + 100);
    let offered = |offers: &[AtomOffer], now_ms| store.offer_atoms(offers.to_vec(), now_ms).unwrap();
    let new = [offer("erp/a.md", Some("one"), None), offer("erp/b.md", Some("表"), None)];
    assert_eq!(offered(&new, NOW), [Some(NOW + 1), Some(NOW + 2)]);
    assert_eq!(offered(&[offer("erp/a.md", Some("mine"), None)], late), [None]);
    assert_eq!(offered(&[offer("erp/a.md", Some("mine"), Some("other"))], late), [None]);
    // A refused change does not prevent the others.
    let some = [
        offer("erp/a.md", Some("two"), Some("one")),
        offer("erp/b.md", None, Some("one")),
        offer("c/c.md", Some("c"), None),
    ];
    assert_eq!(offered(&some, late), [Some(late + 1), None, Some(late + 3)]);
    // A clock that is wrong never lowers the version.
    assert_eq!(offered(&[offer("erp/a.md", None, Some("two"))], 5), [Some(late + 4)]);
    let all = [
        row("erp/b.md", NOW + 2, "表", Some(3)),
        row("c/c.md", late + 3, "c", Some(1)),
        row("erp/a.md", late + 4, "two", None),
    ];
    assert_eq!(store.atoms_since(0).unwrap(), all);
    assert_eq!(store.atoms_since(NOW + 2).unwrap(), all[1..]);
    assert_eq!(store.atoms_since(late + 4).unwrap(), []);
    assert_eq!(store.atom_texts(NOW, 3).unwrap(), [(NOW + 2, "表".into()), (late + 3, "c".into())]);
    assert_eq!(store.atom_texts(NOW, 2).unwrap(), [(late + 3, "c".into())], "none that is too long");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let is_deleted = |path: &str| runtime.block_on(store.is_atom_deleted(path)).unwrap();
    assert!(is_deleted("erp/a.md") && !is_deleted("erp/b.md") && !is_deleted("erp/unknown.md"));
    // A deleted file can be restored, but only by a change based on the deletion.
    assert_eq!(offered(&[offer("erp/a.md", Some("three"), Some("two"))], late), [None]);
    assert_eq!(offered(&[offer("erp/a.md", Some("three"), None)], late), [Some(late + 5)]);
}

#[test]
fn however_many_there_are_each_is_told_once_in_its_order() {
    let home = home();
    let store = open(&home);
    let offers = (0..2_500).map(|number| offer(&format!("erp/{number}.md"), Some("x"), None)).collect();
    store.offer_atoms(offers, NOW).unwrap();
    let versions: Vec<i64> = store.atoms_since(0).unwrap().iter().map(|row| row.version).collect();
    assert_eq!(versions, (NOW + 1..=NOW + 2_500).collect::<Vec<_>>());
}
