//! Edits an atom in the operator's editor: on a private copy, which is checked before it is saved and never lost.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use pmk_knowledge::{
    files::{AtomFiles, read_text},
    moderation,
};
use pmk_system::{
    error::{Failure, OrHint},
    home,
};
use tempfile::TempDir;

const NAME_ONE: &str = "set for example `EDITOR=nano` or `VISUAL='code --wait'`";

/// The outcome of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edited {
    Saved,
    Unchanged,
}

/// Opens an editor on an atom and saves the result once it is checked.
pub(super) fn edit(home: &Path, files: &AtomFiles, atom: &Path) -> Result<Edited, Failure> {
    let editor = Editor::of_environment()?;
    let original = read_text(atom)?;
    let draft = Draft::new(home, atom, &original)?;
    let outcome = editor.open(&draft.file).and_then(|()| save(files, atom, &original, &draft));
    outcome.map_err(|failure| match draft.is_empty() || !draft.differs_from(&original) {
        true => failure,
        false => draft.keep(&failure),
    })
}

fn save(files: &AtomFiles, atom: &Path, original: &str, draft: &Draft) -> Result<Edited, Failure> {
    if draft.is_empty() {
        return Err(Failure::new("the edited text is empty")
            .hint("the atom is unchanged; to delete it, use `pmk-host atoms reject ID`"));
    }
    let edited = read_text(&draft.file)?;
    if edited == original {
        return Ok(Edited::Unchanged);
    }
    moderation::save_edit(files, atom, original, &edited)?;
    Ok(Edited::Saved)
}

/// The copy that is edited, in a folder of its own that only the operator can read: editors write a new file and leave
/// others beside it. It is in the home, so that it survives even if the machine stops meanwhile.
struct Draft {
    folder: TempDir,
    file: PathBuf,
}

impl Draft {
    fn new(home: &Path, atom: &Path, text: &str) -> Result<Draft, Failure> {
        let drafts = home::gateway_dir(home).join("edits");
        let made = home::create_private_dir(&drafts).and_then(|()| {
            let folder = TempDir::new_in(&drafts)?;
            let file = folder.path().join(atom.file_name().unwrap_or("atom.md".as_ref()));
            home::replace_private_file(&file, text.as_bytes())?;
            Ok(Draft { folder, file })
        });
        made.map_err(|error| format!("cannot write a copy for editing to `{}`: {error}", drafts.display()))
            .or_hint("check that you own the folder and can write to it")
    }

    /// Whether there is no text that could be lost.
    fn is_empty(&self) -> bool {
        match fs::read(&self.file) {
            Ok(bytes) => bytes.trim_ascii().is_empty(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    fn differs_from(&self, original: &str) -> bool {
        fs::read(&self.file).is_ok_and(|bytes| bytes != original.as_bytes())
    }

    /// Keeps the text and says where it is.
    fn keep(self, failure: &Failure) -> Failure {
        let _folder = self.folder.keep();
        Failure::new(failure.message()).hint(format!(
            "the atom is unchanged; your text is in `{}`, copy it from there and edit again",
            self.file.display()
        ))
    }
}

/// A program and its first arguments.
#[derive(Debug, PartialEq, Eq)]
struct Editor {
    program: String,
    arguments: Vec<String>,
}

impl Editor {
    fn of_environment() -> Result<Editor, Failure> {
        let set = |name: &'static str| {
            let value = env::var(name).ok().filter(|value| !value.trim().is_empty())?;
            Some((name, value))
        };
        let (name, value) = set("VISUAL")
            .or_else(|| set("EDITOR"))
            .ok_or_else(|| Failure::new("no editor is set in VISUAL or EDITOR").hint(NAME_ONE))?;
        Editor::parse(&value).ok_or_else(|| Failure::new(format!("{name} is not a command: `{value}`")).hint(NAME_ONE))
    }

    /// Splits a command into words by the quoting rules of a shell, without running one.
    fn parse(command: &str) -> Option<Editor> {
        let mut words = shlex::split(command)?.into_iter();
        Some(Editor { program: words.next()?, arguments: words.collect() })
    }

    /// Runs the editor and waits until it is closed.
    fn open(&self, file: &Path) -> Result<(), Failure> {
        let Editor { program, arguments } = self;
        let status = Command::new(program)
            .args(arguments)
            .arg(file)
            .status()
            .map_err(|error| format!("cannot start the editor `{program}`: {error}"))
            .or_hint(NAME_ONE)?;
        if !status.success() {
            return Err(
                Failure::new(format!("the editor `{program}` exited with {status}")).hint("the atom is unchanged")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_into_words_without_a_shell() {
        let words = |command: &str| {
            let Editor { program, arguments } = Editor::parse(command)?;
            Some([vec![program], arguments].concat())
        };
        assert_eq!(words("code --wait").unwrap(), ["code", "--wait"]);
        assert_eq!(words(r#"emacsclient -c -a """#).unwrap(), ["emacsclient", "-c", "-a", ""]);
        assert_eq!(words("'/opt/my editor' $HOME;ls").unwrap(), ["/opt/my editor", "$HOME;ls"]);
        for bad in ["'vim", "", "  "] {
            assert_eq!(words(bad), None, "{bad}");
        }
    }
}
