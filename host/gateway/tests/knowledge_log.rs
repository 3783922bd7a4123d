//! What the operator is told of files that hold no atom. A process of its own: the log is the process's.

use std::{
    fs, io,
    sync::{Arc, Mutex, PoisonError},
};

use pmk_knowledge::Library;
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_malformed_file_is_warned_about_once() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_writer(move || writer.clone()).init();
    let home = tempfile::tempdir().expect("a home");
    let scope = home.path().join("knowledge/erp");
    fs::create_dir_all(&scope).expect("a scope");
    fs::write(scope.join("broken.md"), "no front matter").expect("a file");
    let mut library = Library::open(home.path()).expect("a library");
    for n in 0..3 {
        let atom = format!("---\nid: a{n}\nquestion: 發票怎麼作廢 {n}\n---\n\n隔月十五日前按作廢\n");
        fs::write(scope.join(format!("a{n}.md")), atom).expect("a file");
        assert_eq!(library.retrieve("發票怎麼作廢", 0, 9).expect("found").len(), n + 1);
    }
    let log = String::from_utf8(log.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).expect("text");
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("broken.md")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("WARN") && warnings[0].contains("is skipped"), "{log}");
}
