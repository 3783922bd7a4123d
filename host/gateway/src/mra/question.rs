//! A repository and a question that can be passed to another program.

use pmk_core::text;
use thiserror::Error;

/// The longest question, in characters. Even at four bytes each, it stays far below the 128 KiB
/// that Linux allows for one argument.
pub const MAX_QUESTION_CHARS: usize = 10_000;
/// The longest repository name that a code host allows, in characters, and the longest one including all its
/// groups.
pub const MAX_REPO_CHARS: usize = 100;
const MAX_NESTED_CHARS: usize = 255;
/// The prefix of a question that would otherwise read like a flag.
const PREFIX: &str = "Q: ";
/// How many characters of a question are shown in a message's first line.
const SHOWN_CHARS: usize = 200;

/// A question to `mra`.
///
/// Neither part can be read as a flag, and the repository cannot be a path. The model chose both, and a person
/// may have talked it into anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MraQuestion {
    repo: String,
    argument: String,
}

/// Why a question cannot be asked, for the log; the model is [told](crate::messages::Messages::bad_question) in its
/// language.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadQuestion {
    #[error("the repository is empty")]
    NoRepo,
    #[error(
        "`{0}` is not the name of a repository: use letters, digits, `.`, `_` and `-`, with `/` between the parts of a \
         nested one; no part may begin with `-`, or be `.` or `..`"
    )]
    BadRepo(String),
    #[error("the question is empty")]
    NoQuestion,
    #[error("the question has {chars} characters and may have {MAX_QUESTION_CHARS}")]
    TooLong { chars: usize },
}

/// Returns the name of a repository, trimmed: a simple name, or simple names separated by `/`.
///
/// # Errors
/// It is not such a name.
pub fn repo_name(repo: &str) -> Result<&str, BadQuestion> {
    let repo = repo.trim();
    if repo.is_empty() {
        return Err(BadQuestion::NoRepo);
    }
    if !repo.split('/').all(is_plain) || repo.len() > MAX_NESTED_CHARS {
        let shown = text::printable(repo).replace(['\n', '\t'], " ");
        return Err(BadQuestion::BadRepo(text::head(&shown, MAX_REPO_CHARS).to_owned()));
    }
    Ok(repo)
}

fn is_plain(part: &str) -> bool {
    let is_name = part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    is_name && !part.starts_with('-') && !matches!(part, "" | "." | "..") && part.len() <= MAX_REPO_CHARS
}

impl MraQuestion {
    /// Checks both parts. An invalid repository name is refused. A question is passed unchanged,
    /// except that control characters become blanks and one that begins with `-` gets the prefix
    /// `Q: `: `mra` may or may not support `--`, and a blank alone might be trimmed.
    ///
    /// # Errors
    /// [`BadQuestion`] says which part cannot be passed, and why.
    pub fn new(repo: &str, question: &str) -> Result<Self, BadQuestion> {
        let repo = repo_name(repo)?;
        let question: String =
            question.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
        let question = question.trim();
        if question.is_empty() {
            return Err(BadQuestion::NoQuestion);
        }
        let chars = question.chars().count();
        if chars > MAX_QUESTION_CHARS {
            return Err(BadQuestion::TooLong { chars });
        }
        let prefix = if question.starts_with('-') { PREFIX } else { "" };
        Ok(MraQuestion { repo: repo.to_owned(), argument: format!("{prefix}{question}") })
    }

    pub fn repo(&self) -> &str {
        &self.repo
    }

    /// Returns the question as the program gets it.
    pub fn argument(&self) -> &str {
        &self.argument
    }

    /// Returns the call as a message shows it between backticks: one line, of limited length, without
    /// backticks.
    pub(crate) fn shown(&self) -> String {
        let question = text::collapse_whitespace(&self.argument).replace('`', "'");
        format!("mra ask {} {}", self.repo, text::shortened(&question, SHOWN_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn repositories_are_plain_names_nested_or_not() {
        for repo in ["erp", "oss-ui-v2", " erp ", "a.b_c", "...", "_x", "group/order", "a/b/c.d", &"a".repeat(100)] {
            assert!(MraQuestion::new(repo, "q").is_ok(), "{repo}");
        }
        for repo in [
            "../../etc",
            ".",
            "..",
            "--help",
            "-h",
            "a/../b",
            "/etc",
            "a/",
            "a//b",
            "a/-b",
            "a b",
            "預算",
            "a\0",
            "$(id)",
            "a\nb",
            &"a".repeat(101),
        ] {
            assert!(matches!(MraQuestion::new(repo, "q"), Err(BadQuestion::BadRepo(_))), "{repo}");
        }
        assert_eq!(MraQuestion::new(" ", "q"), Err(BadQuestion::NoRepo));
        let shown = BadQuestion::BadRepo("erp\u{fffd}]0;x\u{fffd} y".into());
        assert_eq!(MraQuestion::new("erp\x1b]0;x\x07\ny", "q"), Err(shown), "it can be logged");
    }

    #[test]
    fn questions_are_never_flags() {
        let argument = |question| MraQuestion::new("erp", question).map(|question| question.argument);
        assert_eq!(argument(" --help"), Ok("Q: --help".into()));
        assert_eq!(argument("-"), Ok("Q: -".into()));
        assert_eq!(argument("a\0b\x1bc\r\n d"), Ok("a b c \n d".into()));
        assert_eq!(argument(" \0\n"), Err(BadQuestion::NoQuestion));
    }

    #[test]
    fn ten_thousand_characters_pass_and_one_more_does_not() {
        let question = "預".repeat(10_000);
        assert_eq!(MraQuestion::new("erp", &question).map(|asked| asked.argument), Ok(question.clone()));
        assert_eq!(MraQuestion::new("erp", &format!("{question}x")), Err(BadQuestion::TooLong { chars: 10_001 }));
    }

    #[test]
    fn what_is_shown_is_one_short_line() {
        let question = MraQuestion::new("erp", &format!("a\n`b` {}", "c".repeat(300))).expect("a good question");
        assert_eq!(question.shown(), format!("mra ask erp a 'b' {}…", "c".repeat(194)));
    }

    proptest! {
        #[test]
        fn whatever_passes_is_safe(repo in "\\PC{0,12}", question in "(\\PC|\0|-|\n){0,40}") {
            if let Ok(asked) = MraQuestion::new(&repo, &question) {
                for argument in [asked.repo(), asked.argument()] {
                    prop_assert!(!argument.starts_with('-') && !argument.is_empty() && !argument.contains('\0'));
                }
                prop_assert!(asked.repo().split('/').all(|part| !part.is_empty() && part != ".."));
                prop_assert!(!asked.shown().contains(['`', '\n']));
            }
        }
    }
}
