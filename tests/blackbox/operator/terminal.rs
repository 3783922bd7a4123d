//! What the operator has: a terminal, an editor, and files to look at afterwards.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::support::{Finished, Home, finish};

/// The year 2100: no verdict comes by itself while the tests run.
const FAR_MS: u64 = 4_102_444_800_000;

/// An operator at a terminal, and what it has shown.
pub struct Terminal {
    pub home: Home,
    pub shown: String,
}

impl Terminal {
    pub fn new() -> Terminal {
        Terminal { home: Home::cold(), shown: String::new() }
    }

    pub fn run(&mut self, arguments: &[&str]) -> Finished {
        self.run_with(arguments, &[])
    }

    pub fn run_with(&mut self, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
        let mut command = self.home.command(arguments);
        command.envs(environment.iter().copied());
        let finished = finish(command, "");
        self.shown.push_str(&format!("$ pmk-host {}\n{}", arguments.join(" "), finished.stdout));
        self.shown.extend(finished.stderr.lines().map(|line| format!("2> {line}\n")));
        if let Some(code) = finished.status.code().filter(|code| *code != 0) {
            self.shown.push_str(&format!("[exit {code}]\n"));
        }
        self.shown.push('\n');
        finished
    }

    /// Everything so far, and the admin log.
    pub fn all(&self) -> String {
        let home = self.home.path().canonicalize().expect("the home");
        let mut shown = self.shown.clone();
        shown.push_str(&admin_log(&self.home));
        shown.replace(&home.display().to_string(), "[home]")
    }

    pub fn config(&self) -> String {
        std::fs::read_to_string(self.home.path().join("gateway.json")).expect("gateway.json")
    }

    pub fn atom(&self, id: &str, fields: &str, answer: &str) -> PathBuf {
        let folder = self.home.path().join("knowledge/erp");
        std::fs::create_dir_all(&folder).expect("the folder of the scope");
        let path = folder.join(format!("{id}.md"));
        let text = format!(
            "---\nid: {id}\ncreatedAt: 1777342416133\nscope: erp\n{fields}source:\n  threadKey: 'D1:1777342320.134509'\n  \
             contributorUserId: U_IT1\nsummary: in short\n---\n\n# Question\n\n## Answer\n\n{answer}\n\n## Summary\n\nin short\n"
        );
        std::fs::write(&path, text).expect("an atom");
        path
    }

    /// Three atoms: two that wait, of similar ids, and an approved one.
    pub fn atoms(&self) -> [PathBuf; 3] {
        let pending = format!("status: pending\nexpiresAt: {FAR_MS}\n");
        [
            self.atom(
                "2026-04-28T0213-5388-預算",
                &format!("question: 預算？\ntags: [廣告預算, ads]\n{pending}"),
                "看後台",
            ),
            self.atom("2026-04-28T0213-53ff-b", &format!("question: \"Where?\\e[2J\"\n{pending}"), "here\u{1b}[2J"),
            self.atom("2026-04-29T1000-0001-c", "question: 'Who decides?'\nstatus: approved\n", "Lin"),
        ]
    }

    /// A program that edits the file it is given by this shell script, as $EDITOR would name it.
    pub fn editor(&self, script: &str) -> String {
        let path = self.home.write("an editor.sh", format!("set -e\nfor file; do :; done\n{script}\n"));
        format!("sh '{}' --wait", path.display())
    }
}

/// The admin log without what differs from run to run.
pub fn admin_log(home: &Home) -> String {
    admin_lines(home)
        .into_iter()
        .map(|mut line| {
            let at = line["at"].take();
            assert_eq!(at.as_str().map(str::len), Some("2026-04-28T02:13:36.133Z".len()), "{line}");
            let actor = line["actor"].take();
            assert!(actor.as_str().is_some_and(|actor| actor.len() > 4 && actor.starts_with("cli:")), "{actor}");
            assert_eq!(line["origin"], "cli");
            let reason = line["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{} [{}] {}{reason}\n", line["action"], line["args"].as_str().expect("args"), line["ok"])
        })
        .collect()
}

/// The lines of the admin log; its files are private.
pub fn admin_lines(home: &Home) -> Vec<Value> {
    let Ok(files) = std::fs::read_dir(home.path().join("gateway")) else { return vec![] };
    let mut logs: Vec<PathBuf> = files.map(|file| file.expect("readable").path()).collect();
    logs.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("admin-2")));
    logs.sort();
    logs.iter()
        .flat_map(|path| {
            assert_eq!(mode(path), 0o600);
            let text = std::fs::read_to_string(path).expect("the log");
            text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect::<Vec<_>>()
        })
        .collect()
}

/// The permissions of a file.
pub fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

/// The texts that were kept.
pub fn drafts(home: &Home) -> Vec<PathBuf> {
    let Ok(folders) = std::fs::read_dir(home.path().join("gateway/edits")) else { return vec![] };
    folders
        .flat_map(|folder| std::fs::read_dir(folder.expect("readable").path()).expect("a folder"))
        .map(|file| file.expect("readable").path())
        .collect()
}
