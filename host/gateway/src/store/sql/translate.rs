//! Statements as PostgreSQL has them: `$1` where SQLite has `?1`.

use std::sync::Arc;

/// A statement for PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Translated(Arc<str>);

impl Translated {
    /// Texts in quotes hold no parameters.
    pub(super) fn of(sql: &str) -> Translated {
        let mut translated = String::with_capacity(sql.len());
        let mut quote = None;
        for letter in sql.chars() {
            match (letter, quote) {
                ('\'' | '"', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                _ => {}
            }
            translated.push(if letter == '?' && quote.is_none() { '$' } else { letter });
        }
        Translated(translated.into())
    }

    /// The same, which says the `id` of the row that it inserts.
    pub(super) fn returning_id(&self) -> Translated {
        Translated(format!("{} RETURNING id", self.0).into())
    }

    /// Whether what it changes comes back as rows.
    pub(super) fn is_returning(&self) -> bool {
        self.0.contains("RETURNING")
    }

    pub(super) fn sql(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_with_a_dollar_and_texts_stay() {
        let sql = Translated::of(r#"SELECT '?1', "a?2" FROM t WHERE a = ?1 AND b LIKE '%''?' || ?12"#);
        assert_eq!(sql.sql(), r#"SELECT '?1', "a?2" FROM t WHERE a = $1 AND b LIKE '%''?' || $12"#);
    }
}
