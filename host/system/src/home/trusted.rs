//! Checks whether a home can be trusted, because it controls what is done with the user's rights: its gateway.json
//! names commands that are run to get keys, its cache contains compiled code, its store what people said.

use std::{fs, io, path::Path};

use super::{compile_cache_dir, config_file, control_socket, gateway_dir};
use crate::error::Failure;
use crate::ownership::{self, NotOurs};

/// Checks that only this user and the administrator can change the home and the parts of it that are acted on. Missing
/// parts are safe.
///
/// # Errors
/// If somebody else could have written there; the hint is the command that fixes it, for all parts at once.
pub fn check(home: &Path) -> Result<(), Failure> {
    let cache = compile_cache_dir(home);
    let parts = [
        home.to_owned(),
        config_file(home),
        gateway_dir(home),
        control_socket(home),
        cache.parent().unwrap_or(home).to_owned(),
        cache,
    ];
    let mut writable = Vec::new();
    for part in parts {
        match look(&part) {
            Ok(Ok(())) => {}
            // A command would act on the target of the link, which may be other people's.
            Ok(Err(problem)) if part.is_symlink() => {
                let hint = format!("`{}` is a link: replace it with a file or folder of your own", part.display());
                return Err(untrusted(&problem, hint));
            }
            // The folder of several parts is one problem.
            Ok(Err(problem @ NotOurs::Writable { .. })) => {
                if !writable.contains(&problem) {
                    writable.push(problem);
                }
            }
            Ok(Err(problem)) => return Err(untrusted(&problem, problem.hint())),
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                return Err(Failure::new(format!("cannot access `{}`: {error}", part.display()))
                    .hint("check that you own the folder, or use another `--home`"));
            }
        }
    }
    match writable.first() {
        Some(problem) => Err(untrusted(problem, ownership::chmod(writable.iter().map(NotOurs::path)))),
        None => Ok(()),
    }
}

fn untrusted(problem: &NotOurs, hint: String) -> Failure {
    Failure::new(format!("{problem}, and its contents would run with your permissions")).hint(hint)
}

/// Checks a part, following links, and all folders that it really is in: anybody who can write to one of those could
/// replace it.
fn look(part: &Path) -> io::Result<Result<(), NotOurs>> {
    let judged = ownership::check(part, &fs::metadata(part)?);
    if judged.is_err() {
        return Ok(judged);
    }
    for parent in part.canonicalize()?.ancestors().skip(1) {
        let judged = ownership::check_parent(parent, &fs::metadata(parent)?);
        if judged.is_err() {
            return Ok(judged);
        }
    }
    Ok(Ok(()))
}

/// Nothing is there. If part of the path is a file, the user of the path reports it.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_part_of_a_home_is_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        assert_eq!(check(&home).map_err(|failure| failure.to_string()), Ok(()), "not made yet");
        fs::create_dir_all(compile_cache_dir(&home)).expect("folders");
        fs::create_dir(gateway_dir(&home)).expect("a folder");
        fs::write(config_file(&home), "{}").expect("a file");
        let _socket = std::os::unix::net::UnixListener::bind(control_socket(&home)).expect("a socket");
        let set = |part: &Path, mode| fs::set_permissions(part, fs::Permissions::from_mode(mode)).expect("a mode");
        let parts =
            [home.clone(), config_file(&home), gateway_dir(&home), control_socket(&home), compile_cache_dir(&home)];
        for part in &parts {
            set(part, 0o700);
        }
        set(&home.join("cache"), 0o755);
        assert!(check(&home).is_ok());
        for part in [&parts[..], &[home.join("cache")]].concat() {
            for mode in [0o720, 0o702] {
                set(&part, mode);
                let refused = check(&home).expect_err("others may write").to_string();
                let expected = format!("`{}` can be changed by other users (mode {mode:o})", part.display());
                assert!(refused.starts_with(&expected), "{refused}");
                assert!(refused.contains(&format!("chmod go-w '{}'", part.display())), "{refused}");
            }
            set(&part, 0o700);
        }
    }

    /// Regression: a home that was made with a umask of 002 was refused one path at a time.
    #[test]
    fn all_that_others_can_write_to_is_named_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        fs::create_dir_all(gateway_dir(&home)).expect("folders");
        fs::create_dir(home.join("cache")).expect("a folder");
        fs::write(config_file(&home), "{}").expect("a file");
        let parts = [home.clone(), config_file(&home), gateway_dir(&home), home.join("cache")];
        for part in &parts {
            let mode = if part.is_dir() { 0o775 } else { 0o664 };
            fs::set_permissions(part, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let refused = check(&home).expect_err("others may write").to_string();
        let quoted: Vec<String> = parts.iter().map(|part| format!("'{}'", part.display())).collect();
        assert!(refused.contains(&format!("`chmod go-w {}`", quoted.join(" "))), "{refused}");
    }

    #[test]
    fn nor_can_others_exchange_it_by_way_of_a_folder_above() {
        let folder = tempfile::tempdir().expect("a folder");
        let (above, elsewhere) = (folder.path().join("above"), folder.path().join("elsewhere"));
        let home = above.join("home");
        fs::create_dir_all(&home).expect("folders");
        fs::create_dir(&elsewhere).expect("a folder");
        let set = |part: &Path, mode| fs::set_permissions(part, fs::Permissions::from_mode(mode)).expect("a mode");
        set(&home, 0o700);
        set(&above, 0o1777);
        assert!(check(&home).is_ok(), "as in /tmp");
        set(&above, 0o777);
        assert!(check(&home).expect_err("a rename away").to_string().contains("above` can be changed by other users"));
        set(&above, 0o755);
        // A link is judged by its target.
        fs::write(elsewhere.join("gateway.json"), "{}").expect("a file");
        std::os::unix::fs::symlink(elsewhere.join("gateway.json"), config_file(&home)).expect("a link");
        assert!(check(&home).is_ok());
        set(&elsewhere, 0o777);
        let refused = check(&home).expect_err("a rename away").to_string();
        assert!(refused.contains("elsewhere` can be changed"), "{refused}");
        // The target may be somebody else's own file: no command may change that.
        assert!(refused.contains("gateway.json` is a link") && !refused.contains("chmod"), "{refused}");
    }
}
