use std::os::unix::fs::{PermissionsExt, symlink};

use pmk_stand_ins::patience::until;

use super::*;

fn path(path: &str) -> AtomPath {
    AtomPath::parse(path).expect("a path")
}

fn home() -> (tempfile::TempDir, Mirror) {
    let home = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(home.path(), || ()).unwrap();
    (home, mirror)
}

fn write(mirror: &Mirror, at: &str, text: impl AsRef<[u8]>) {
    let file = mirror.files.root().join(at);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn names(mirror: &Mirror, scope: &str) -> Vec<String> {
    let entries = fs::read_dir(mirror.files.root().join(scope)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_path_is_one_that_a_library_has_a_file_at() {
    let long = format!("erp/{}.md", "x".repeat(MAX_NAME_BYTES - 2));
    for refused in [
        "",
        "a.md",
        "/etc/a.md",
        "../a.md",
        "erp/../a.md",
        "erp/a/b.md",
        "erp//a.md",
        "./a.md",
        "erp/.a.md",
        ".erp/a.md",
        "erp/.md",
        "erp/a.txt",
        "erp/a.md.kept-1",
        "erp/a.MD",
        "erp/a",
        "erp/a\0.md",
        "erp/a\n.md",
        "erp/",
        "/a.md",
        &long,
    ] {
        assert_eq!(AtomPath::parse(refused), None, "{refused}");
    }
    for taken in ["erp/a.md", "財務/如何.md", "a b/c d.md", &long.replacen('x', "", 1)] {
        assert_eq!(path(taken).as_str(), taken);
    }
}

#[test]
fn what_is_new_edited_and_gone_is_told_once() {
    let (_home, mut mirror) = home();
    write(&mirror, "erp/a.md", "one");
    write(&mirror, "erp/b.md", "two");
    write(&mirror, "erp/b.md.kept-1", "no atom");
    assert_eq!(mirror.look().unwrap(), [path("erp/a.md"), path("erp/b.md")].into());
    assert_eq!(mirror.look().unwrap(), [].into());
    write(&mirror, "erp/a.md", "other");
    fs::remove_file(mirror.file(&path("erp/b.md"))).unwrap();
    let mut seen = BTreeSet::new();
    until("both are told", || {
        seen.extend(mirror.look().unwrap());
        (seen.len() == 2).then_some(())
    });
    assert_eq!(mirror.local(&path("erp/a.md")), Local::Text(TextDigest::of("other")));
    assert_eq!(mirror.local(&path("erp/b.md")), Local::Missing);
    fs::remove_dir_all(mirror.files.root().join("erp")).unwrap();
    assert_eq!(mirror.look().unwrap(), [path("erp/a.md")].into());
}

#[test]
fn what_is_put_is_private_and_whole_and_no_news() {
    let (_home, mut mirror) = home();
    mirror.look().unwrap();
    let at = path("erp/a.md");
    for text in [Some("one"), Some("two"), None, None] {
        assert_eq!(mirror.put(&at, text).unwrap(), Put::Done);
        assert_eq!(mirror.text(&at).ok().as_deref(), text);
        assert_eq!(mirror.look().unwrap(), [].into());
    }
    assert_eq!(mirror.put(&at, Some("three")).unwrap(), Put::Done);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = mirror.file(&at);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert_eq!(names(&mirror, "erp"), ["a.md"]);
}

#[test]
fn nothing_is_put_over_what_was_not_seen() {
    let (_home, mut mirror) = home();
    mirror.look().unwrap();
    let at = path("erp/a.md");
    write(&mirror, "erp/a.md", "by hand");
    assert_eq!(mirror.put(&at, Some("from elsewhere")).unwrap(), Put::Changed);
    assert_eq!(mirror.look().unwrap(), [at.clone()].into());
    write(&mirror, "erp/a.md", "by hand, again");
    assert_eq!(mirror.put(&at, None).unwrap(), Put::Changed);
    assert_eq!(mirror.text(&at).unwrap(), "by hand, again");
}

#[test]
fn a_text_is_kept_beside_its_file_once() {
    let (_home, mut mirror) = home();
    write(&mirror, "erp/a.md", "mine");
    mirror.look().unwrap();
    let kept = mirror.keep(&path("erp/a.md")).unwrap();
    assert_eq!(mirror.keep(&path("erp/a.md")).unwrap(), kept);
    assert_eq!(fs::read_to_string(&kept).unwrap(), "mine");
    fs::write(&kept, "worked on").unwrap();
    let other = mirror.keep(&path("erp/a.md")).unwrap();
    assert_eq!(
        (fs::read_to_string(&kept).unwrap(), fs::read_to_string(other).unwrap()),
        ("worked on".into(), "mine".into())
    );
    assert_eq!(names(&mirror, "erp").len(), 3);
    assert_eq!(mirror.files.names("erp").unwrap(), ["a.md"], "no library reads it");
}

#[test]
fn what_is_written_amid_the_taking_of_its_place_is_kept() {
    let (_home, mut mirror) = home();
    write(&mirror, "erp/a.md", "at the last moment");
    mirror.look().unwrap();
    let found = mirror.file(&path("erp/a.md"));
    mirror.keep_what_came(&found, &found, &TextDigest::of("as it was seen")).unwrap();
    assert_eq!(names(&mirror, "erp").len(), 2);
}

#[test]
fn what_is_no_text_of_a_file_in_the_folder_is_left_alone() {
    let (home, mut mirror) = home();
    let outside = home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.md"), "theirs").unwrap();
    symlink(&outside, mirror.files.root().join("link")).unwrap();
    write(&mirror, "erp/binary.md", [0xff, 0xfe]);
    write(&mirror, "erp/huge.md", vec![b'x'; MAX_FILE_BYTES as usize + 1]);
    write(&mirror, "erp/nul.md", "a\0b");
    write(&mirror, &format!("erp/{}.md", "x".repeat(MAX_NAME_BYTES)), "long");
    symlink(outside.join("a.md"), mirror.file(&path("erp/link.md"))).unwrap();
    fs::create_dir(mirror.file(&path("erp/folder.md"))).unwrap();
    fs::write(mirror.files.root().join("file"), "x").unwrap();
    mirror.look().unwrap();
    for at in ["erp/binary.md", "erp/huge.md", "erp/nul.md", "erp/link.md", "erp/folder.md", "link/a.md"] {
        assert!(matches!(mirror.local(&path(at)), Local::Unusable(_)), "{at}");
        assert_eq!(mirror.put(&path(at), Some("x")).unwrap(), Put::Changed, "{at}");
    }
    // Nor through a link that has never been seen.
    assert_eq!(mirror.put(&path("link/b.md"), Some("x")).unwrap(), Put::Changed);
    mirror.put(&path("file/b.md"), Some("x")).unwrap_err();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_folder_in_the_place_of_another_is_told_from_it() {
    let (home, mut mirror) = home();
    write(&mirror, "erp/a.md", "one");
    mirror.look().unwrap();
    let before = mirror.identity().clone();
    fs::rename(mirror.files.root(), home.path().join("aside")).unwrap();
    mirror.look().unwrap_err();
    fs::create_dir(home.path().join("knowledge")).unwrap();
    mirror.look().unwrap();
    assert_ne!(*mirror.identity(), before);
}

/// Regression: file systems give the inode of a deleted folder to the next one, so all atoms counted as deleted.
#[test]
fn a_folder_with_the_inode_of_the_one_before_it_was_taken_for_the_same() {
    let (_home, mut mirror) = home();
    write(&mirror, "erp/a.md", "one");
    mirror.look().unwrap();
    let before = mirror.identity().clone();
    mirror.look().unwrap();
    assert_eq!(*mirror.identity(), before);
    // The folder itself stays, and everything in it goes: as with another one that is mounted there.
    for entry in fs::read_dir(mirror.files.root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }
    mirror.look().unwrap();
    assert_ne!(*mirror.identity(), before);
}

/// Regression: an edit that came between the look and the exchange, and could not be saved, was deleted.
#[test]
fn an_edit_that_cannot_be_saved_stays_where_it_was() {
    let (_home, mirror) = home();
    let (at, edit) = (path("erp/a.md"), vec![0xff; 3]);
    write(&mirror, "erp/a.md", "from another host");
    write(&mirror, "erp/came", &edit);
    let (file, came) = (mirror.file(&at), mirror.files.root().join("erp/came"));
    assert!(mirror.keep_what_came(&file, &came, &TextDigest::of("before")).is_err(), "it is no text");
    assert_eq!(fs::read(&file).unwrap(), edit);
    assert_eq!(names(&mirror, "erp"), ["a.md"]);
}
