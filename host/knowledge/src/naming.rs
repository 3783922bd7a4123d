//! Ids and scopes of atoms, identical to those of pmk, so that both can use one folder.

use jiff::Timestamp;
use pmk_core::text;
use sha2::{Digest, Sha256};

/// The default scope.
const GENERAL: &str = "general";

/// The maximum length of a scope's name, in characters.
const MAX_SCOPE_CHARS: usize = 64;

/// The maximum length of the part of an id that comes from the question, in characters.
const MAX_SLUG_CHARS: usize = 30;

/// The name of a scope's folder: ASCII letters, digits, `_` and `-`; any other sequence becomes one `-`. For example,
/// `../../etc/passwd` becomes `etc-passwd`; a name without any letter left becomes `general` (specification 003 §9).
pub fn safe_scope(scope: &str) -> String {
    let name = dashed(scope, |c| c.is_ascii_alphanumeric() || c == '_');
    match name.chars().take(MAX_SCOPE_CHARS).collect::<String>().trim_matches('-') {
        "" => GENERAL.to_owned(),
        name => name.to_owned(),
    }
}

/// The id of an atom: the minute, four hexadecimal digits, and part of the question.
///
/// The digits are derived from `origin` (thread, contributor, reply): the same reply processed twice gives the same id,
/// and hence the same file.
pub fn atom_id(created_at_ms: i64, origin: &[&str], question: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(created_at_ms.to_be_bytes());
    for part in origin.iter().chain([&question]) {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    let stamp = Timestamp::from_millisecond(created_at_ms).unwrap_or_default().strftime("%Y-%m-%dT%H%M");
    let id = format!("{stamp}-{:02x}{:02x}-{}", digest[0], digest[1], slug(question));
    id.trim_end_matches('-').to_owned()
}

/// Letters and digits of any script, in lower case; any other sequence becomes one `-`.
fn slug(question: &str) -> String {
    let dashed = dashed(&question.to_lowercase(), char::is_alphanumeric);
    text::head(&dashed, MAX_SLUG_CHARS).trim_matches('-').to_owned()
}

fn dashed(text: &str, keep: impl Fn(char) -> bool) -> String {
    text.split(|c| !keep(c)).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scopes_are_named_as_pmk_names_them() {
        assert_eq!(safe_scope("erp"), "erp");
        assert_eq!(safe_scope("oss-ui_v2"), "oss-ui_v2");
        assert_eq!(safe_scope("../../etc/passwd"), "etc-passwd");
        assert_eq!(safe_scope("./.."), "general");
        assert_eq!(safe_scope("財務"), "general");
        assert_eq!(safe_scope(""), "general");
        assert_eq!(safe_scope("a -- b"), "a-b");
        assert_eq!(safe_scope(&"x".repeat(100)).len(), 64);
    }

    #[test]
    fn an_id_is_minute_digits_and_question() {
        let id = atom_id(1_777_342_416_133, &["D1:1", "U1", "reply"], "如何查詢本月各部門廣告預算分配比例？");
        assert!(id.starts_with("2026-04-28T0213-"), "{id}");
        assert!(id.ends_with("-如何查詢本月各部門廣告預算分配比例"), "{id}");
        assert_eq!(id, atom_id(1_777_342_416_133, &["D1:1", "U1", "reply"], "如何查詢本月各部門廣告預算分配比例？"));
        assert_ne!(id, atom_id(1_777_342_416_133, &["D1:1", "U2", "reply"], "如何查詢本月各部門廣告預算分配比例？"));
    }

    proptest! {
        #[test]
        fn a_scope_and_an_id_are_each_one_safe_path_segment(text in "(\\PC|\\.\\./|/|\\\\|\0|\n|中){0,80}", at in any::<i64>()) {
            let scope = safe_scope(&text);
            prop_assert!(!scope.is_empty() && scope.len() <= 64);
            prop_assert!(scope.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            let id = atom_id(at, &[&text], &text);
            prop_assert!(id.len() < 200 && !id.starts_with('.'), "{id}");
            prop_assert!(!id.contains(['/', '\\', '\0', '\n']), "{id}");
        }
    }
}
