//! Translates statements for PostgreSQL: `$1` where SQLite has `?1`.

use std::sync::Arc;

/// A statement for PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) struct Translated(Arc<str>);

impl Translated {
    /// Translates a statement. Quoted texts contain no parameters.
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

    /// Returns the table's name and the same statement for a row whose `id` is given as an additional last value,
    /// for `INSERT INTO table (…) VALUES (…)` with so many values; `None` for any other statement.
    pub(super) fn with_id(&self, values: usize) -> Option<(&str, Translated)> {
        let (table, rest) = self.0.strip_prefix("INSERT INTO ")?.split_once(" (")?;
        let (columns, given) = rest.split_once("VALUES (")?;
        let sql = format!("INSERT INTO {table} (id, {columns}VALUES (${}, {given}", values + 1);
        Some((table, Translated(sql.into())))
    }

    /// Whether it returns the rows it changes.
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
    fn a_row_gets_the_number_that_it_is_given() {
        let sql = Translated::of("INSERT INTO t (a, \"b\")\n VALUES (?1, coalesce(?2, 0))");
        let with_id = "INSERT INTO t (id, a, \"b\")\n VALUES ($3, $1, coalesce($2, 0))";
        assert_eq!(sql.with_id(2), Some(("t", Translated(with_id.into()))));
        assert_eq!(Translated::of("DELETE FROM t WHERE a = ?1").with_id(1), None);
    }

    #[test]
    fn parameters_are_numbered_with_a_dollar_and_texts_stay() {
        let sql = Translated::of(r#"SELECT '?1', "a?2" FROM t WHERE a = ?1 AND b LIKE '%''?' || ?12"#);
        assert_eq!(sql.sql(), r#"SELECT '?1', "a?2" FROM t WHERE a = $1 AND b LIKE '%''?' || $12"#);
    }
}
