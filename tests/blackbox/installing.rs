//! `packaging/install.sh`: what it installs, and what it refuses. The packages are made up; CI installs the real one on a
//! Debian that has nothing.

use std::{
    env::consts::ARCH,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::Command,
};

use pmk_stand_ins::not_run;

use crate::support::{Finished, finish, repository};

/// A folder with packages, and a place to install to.
struct Offer {
    folder: tempfile::TempDir,
}

impl Offer {
    /// Of these versions.
    fn of(versions: &[&str]) -> Offer {
        let offer = Offer { folder: tempfile::tempdir().expect("a folder") };
        for version in versions {
            offer.pack(version, &format!("#!/bin/sh\necho pmk-host {version}\n"));
        }
        offer
    }

    fn packages(&self) -> PathBuf {
        self.folder.path().join("packages")
    }

    fn prefix(&self) -> PathBuf {
        self.folder.path().join("a prefix")
    }

    fn tarball(&self, version: &str) -> PathBuf {
        self.packages().join(format!("pmk-host-{version}-{ARCH}-unknown-linux-gnu.tar.gz"))
    }

    /// Packs a program that is this script, and says its checksum.
    fn pack(&self, version: &str, program: &str) {
        let name = format!("pmk-host-{version}-{ARCH}-unknown-linux-gnu");
        let root = self.folder.path().join(&name);
        fs::create_dir_all(root.join("bin")).expect("a folder");
        fs::create_dir_all(root.join("share/doc/pmk-host")).expect("a folder");
        fs::create_dir_all(self.packages()).expect("a folder");
        fs::write(root.join("share/doc/pmk-host/README.md"), version).expect("a file");
        fs::write(root.join("bin/pmk-host"), program).expect("a file");
        let pack = "chmod 755 \"$1/bin/pmk-host\" && tar -czf \"packages/$1.tar.gz\" \"$1\" \
                    && cd packages && sha256sum -- *.tar.gz >SHA256SUMS";
        let packed = Command::new("sh").args(["-c", pack, "sh", &name]).current_dir(self.folder.path()).status();
        assert!(packed.expect("a shell").success());
    }

    fn install(&self, shell: &[&str], arguments: &[&str]) -> Finished {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(repository("packaging/install.sh")).args(arguments);
        command.arg("--prefix").arg(self.prefix()).env("LC_ALL", "C");
        finish(command, "")
    }

    fn install_from_folder(&self, more: &[&str]) -> Finished {
        let from = self.packages().display().to_string();
        self.install(&["sh"], &[&["--from", &from], more].concat())
    }

    /// A `PATH` with what the script needs, and no curl; `None`, with a message, if there is no wget.
    fn path_without_curl(&self) -> Option<String> {
        let (folder, path) = (self.folder.path().join("programs"), std::env::var_os("PATH").expect("a PATH"));
        fs::create_dir_all(&folder).expect("a folder");
        let find = |name: &str| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
        let Some(wget) = find("wget") else {
            not_run::say("no wget is installed, so nothing was downloaded with it");
            return None;
        };
        symlink(wget, folder.join("wget")).expect("a link");
        let others = ["sh", "dirname", "uname", "mktemp", "rm", "sed", "sha256sum", "grep", "tar", "gzip", "head"];
        for name in others.into_iter().chain(["mkdir", "cp", "mv", "cat"]) {
            symlink(find(name).expect(name), folder.join(name)).expect("a link");
        }
        Some(format!("PATH={}", folder.display()))
    }

    /// The version that the installed program says.
    fn installed(&self) -> Option<String> {
        let output = Command::new(self.prefix().join("bin/pmk-host")).output().ok()?;
        Some(String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned())
    }
}

/// What was refused, and why. Nothing may have been installed.
fn refused(offer: &Offer, finished: &Finished, why: &str) {
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
    assert!(finished.stderr.contains("error: ") && finished.stderr.contains(why), "{}", finished.stderr);
    assert!(finished.stderr.contains("\n  hint: "), "{}", finished.stderr);
    assert!(!offer.prefix().exists());
}

/// Answers each request for a path, until the test ends.
fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a caller");
            let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines().map_while(Result::ok);
            let asked = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let name = asked.split(' ').nth(1).and_then(|path| path.strip_prefix('/')).unwrap_or_default();
            let _ = stream.write_all(&answer(name));
        }
    });
    format!("http://{address}")
}

/// Answers with the files below the folder.
fn serve(folder: PathBuf) -> String {
    let head = |code: &str, bytes: usize| {
        format!("HTTP/1.1 {code}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n").into_bytes()
    };
    answering(move |name| match fs::read(folder.join(name)) {
        Ok(file) => [head("200 OK", file.len()), file].concat(),
        Err(_) => head("404 Not Found", 0),
    })
}

/// Sends everybody on to the same path at another address.
fn redirect(to: String) -> String {
    answering(move |name| {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: {to}/{name}\r\nContent-Length: 0\r\nConnection: close");
        format!("{head}\r\n\r\n").into_bytes()
    })
}

#[test]
fn it_installs_from_a_folder_in_every_shell_and_says_what_is_next() {
    for shell in [&["sh"][..], &["dash"], &["bash", "--posix"], &["busybox", "sh"]] {
        if Command::new(shell[0]).args(["-c", "true"]).output().is_err() {
            continue;
        }
        let offer = Offer::of(&["1.2.3"]);
        let done = offer.install(shell, &["--from", &offer.packages().display().to_string()]).ok();
        assert_eq!(offer.installed().as_deref(), Some("pmk-host 1.2.3"), "{shell:?}");
        assert!(done.stdout.starts_with("installed: pmk-host 1.2.3, "), "{}", done.stdout);
        assert!(
            done.stdout.contains("next: ") && done.stdout.contains("pmk-host run --policy recall"),
            "{}",
            done.stdout
        );
        assert!(offer.prefix().join("share/doc/pmk-host/README.md").exists());
    }
}

/// Regression: where root's new files are root's alone, the service's account could not run the program.
#[test]
fn what_was_installed_under_a_strict_umask_could_be_run_by_nobody_else() {
    let offer = Offer::of(&["1.2.3"]);
    let from = offer.packages().display().to_string();
    offer.install(&["sh", "-c", r#"umask 077; exec sh "$@""#, "sh"], &["--from", &from]).ok();
    let mode = |path: &str| fs::metadata(offer.prefix().join(path)).expect(path).permissions().mode() & 0o777;
    let modes = ["bin", "bin/pmk-host", "share/doc/pmk-host/README.md"].map(mode);
    assert_eq!(modes, [0o755, 0o755, 0o644]);
}

#[test]
fn it_downloads_from_an_address() {
    let offer = Offer::of(&["1.2.3"]);
    let address = serve(offer.packages());
    offer.install(&["sh"], &["--from", &address]).ok();
    assert_eq!(offer.installed().as_deref(), Some("pmk-host 1.2.3"));
    let offer = Offer::of(&["1.2.3"]);
    refused(&offer, &offer.install(&["sh"], &["--from", &format!("{address}/nothing")]), "cannot download");
    for elsewhere in ["http://example.com", "http://127.0.0.1.example.com/", "ftp://example.com"] {
        refused(&offer, &offer.install(&["sh"], &["--from", elsewhere]), "is no https:// address");
    }
    let hidden = offer.install(&["sh"], &["--from", "http://127.0.0.1:1@example.com"]);
    refused(&offer, &hidden, "names somebody before an @");
}

/// Regression: it was followed, so that the checksum could be anybody's.
#[test]
fn an_address_that_sent_it_on_to_http_was_believed() {
    let offer = Offer::of(&["1.2.3"]);
    let direct = serve(offer.packages());
    let redirected = redirect(direct.clone());
    refused(&offer, &offer.install(&["sh"], &["--from", &redirected]), "cannot download");
    let Some(path) = offer.path_without_curl() else { return };
    refused(&offer, &offer.install(&["env", &path, "sh"], &["--from", &redirected]), "cannot download");
    offer.install(&["env", &path, "sh"], &["--from", &direct]).ok();
}

#[test]
fn what_is_not_as_its_checksum_says_is_not_installed() {
    let offer = Offer::of(&["1.2.3"]);
    let sums = offer.packages().join("SHA256SUMS");
    let good = (fs::read(offer.tarball("1.2.3")).expect("a file"), fs::read_to_string(&sums).expect("a file"));
    let mut longer = good.0.clone();
    longer.push(b'x');
    fs::write(offer.tarball("1.2.3"), longer).expect("a file");
    refused(&offer, &offer.install_from_folder(&[]), "is not what SHA256SUMS says; nothing was installed");
    fs::write(offer.tarball("1.2.3"), &good.0).expect("a file");
    // Of another file, of nothing, and none.
    let name = good.1.split_once("  ").expect("two columns").1;
    for (text, why) in [
        (format!("{}  {name}", "0".repeat(64)), "is not what SHA256SUMS says"),
        (format!("  {name}"), "names no such package"),
        (good.1.replace(".tar.gz", ".tar.gz.sig"), "names no such package"),
        (String::new(), "names no such package"),
    ] {
        fs::write(&sums, text).expect("a file");
        refused(&offer, &offer.install_from_folder(&[]), why);
    }
    fs::remove_file(&sums).expect("gone");
    refused(&offer, &offer.install_from_folder(&[]), "there is no SHA256SUMS in");
    fs::write(&sums, &good.1).expect("a file");
    offer.install_from_folder(&[]).ok();
}

#[test]
fn of_several_versions_one_is_named_and_a_newer_one_takes_the_place() {
    let offer = Offer::of(&["1.2.3", "1.2.4"]);
    refused(&offer, &offer.install_from_folder(&[]), "there are several versions");
    refused(&offer, &offer.install_from_folder(&["--version", "1.2"]), "names no such package");
    refused(&offer, &offer.install_from_folder(&["--version", "../1.2.3"]), "is no version");
    for version in ["1.2.3", "1.2.4"] {
        offer.install_from_folder(&["--version", version]).ok();
        assert_eq!(offer.installed(), Some(format!("pmk-host {version}")));
    }
}

/// A glibc that is too old, for one.
#[test]
fn what_this_machine_cannot_run_leaves_what_was_there() {
    let offer = Offer::of(&["1.2.3"]);
    offer.install_from_folder(&[]).ok();
    fs::remove_file(offer.tarball("1.2.3")).expect("gone");
    offer.pack("1.2.4", "#!/bin/sh\necho \"version 'GLIBC_9.99' not found\" >&2\nexit 1\n");
    let failed = offer.install_from_folder(&[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(failed.stderr.contains("cannot run it: version 'GLIBC_9.99' not found"), "{}", failed.stderr);
    assert_eq!(offer.installed().as_deref(), Some("pmk-host 1.2.3"));
}

/// Regression: in another language, that was said to come from an older glibc.
#[test]
fn why_a_program_may_not_run_was_understood_in_english_only() {
    let offer = Offer::of(&[]);
    let says =
        "#!/bin/sh\n[ \"$LC_ALL\" = C ] && echo 'Permission denied' >&2 || echo 'Keine Berechtigung' >&2\nexit 126\n";
    offer.pack("1.2.3", says);
    let from = offer.packages().display().to_string();
    let failed = offer.install(&["env", "LC_ALL=de_DE.UTF-8", "sh"], &["--from", &from]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(failed.stderr.contains("error: nothing may run from "), "{}", failed.stderr);
    assert_eq!(fs::read_dir(offer.prefix().join("bin")).expect("a folder").count(), 0);
}

/// Regression: that was said to come from an older glibc.
#[test]
fn nothing_could_be_installed_where_nothing_may_run_from_the_temporary_folder() {
    let offer = Offer::of(&["1.2.3"]);
    let scratch = offer.folder.path().join("scratch");
    fs::create_dir(&scratch).expect("a folder");
    let mounted = format!("mount -t tmpfs -o noexec none '{}' && exec \"$@\"", scratch.display());
    let inside = ["unshare", "--mount", "--map-root-user", "sh", "-c", &mounted, "sh"];
    if !Command::new(inside[0]).args(&inside[1..]).arg("true").output().is_ok_and(|tried| tried.status.success()) {
        not_run::say("no folder could be mounted, so none from which nothing may run was tried");
        return;
    }
    let (folder, from) = (format!("TMPDIR={}", scratch.display()), offer.packages().display().to_string());
    offer.install(&[&inside[..], &["env", &folder, "sh"]].concat(), &["--from", &from]).ok();
    assert_eq!(offer.installed().as_deref(), Some("pmk-host 1.2.3"));
}

/// As the program itself goes by the environment.
#[test]
fn it_speaks_the_language_of_whoever_installs() {
    let is_chinese = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    let script = repository("packaging/install.sh");
    let run = |language: &str, arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(&script).args(arguments).env_remove("LC_ALL").env_remove("LC_MESSAGES");
        command.env("LC_MESSAGES", language);
        finish(command, "")
    };
    for (language, chinese) in [("zh_TW.UTF-8", true), ("en_US.UTF-8", false), ("zh_CN.UTF-8", false), ("C", false)] {
        let offer = Offer::of(&["1.2.3"]);
        let (from, prefix) = (offer.packages().display().to_string(), offer.prefix().display().to_string());
        let refused = run(language, &["--from", "/no/such/folder", "--prefix", &prefix]);
        let done = run(language, &["--from", &from, "--prefix", &prefix]).ok();
        let help = run(language, &["--help"]).ok();
        for text in [&refused.stderr, &done.stdout, &help.stdout] {
            assert_eq!(is_chinese(text), chinese, "{language}: {text}");
        }
        assert_eq!(refused.stderr.lines().count(), 2, "{}", refused.stderr);
    }
    // Nothing is said in one of the two alone.
    let text = fs::read_to_string(script).expect("the script");
    let texts = text.lines().filter(|line| line.trim_start().starts_with("echo ")).count();
    assert_eq!(texts, 0, "what is said goes through `pick`");
}

#[test]
fn arguments_that_make_no_sense_are_told() {
    let offer = Offer::of(&["1.2.3"]);
    for arguments in [&["--form", "x"][..], &["x"], &["--from"]] {
        let mut command = Command::new("sh");
        command.arg(repository("packaging/install.sh")).args(arguments).env("LC_ALL", "C");
        let told = finish(command, "");
        assert_eq!(
            (told.status.code(), told.stderr.starts_with("usage: install.sh")),
            (Some(2), true),
            "{arguments:?}"
        );
    }
    assert!(offer.install(&["sh"], &["--help"]).ok().stdout.starts_with("usage: install.sh"));
}
