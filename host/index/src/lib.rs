//! A search index in SQLite: FTS5 over terms, ranked by BM25.
//!
//! The table stores no text, only terms and where they occur; the texts are stored by the owner of the index, in the
//! same database and the same transaction.
//!
//! Every text belongs to a group (a conversation), and a search is always within one. Terms are stored with their
//! group, as `GROUP=TERM`: a search reads only its own group, however large the rest is, and term frequencies are
//! counted within the group.

#![deny(missing_docs)]

use pmk_search::{Frequencies, Query, terms};
use rusqlite::{Connection, OptionalExtension, params_from_iter, types::Value};
use thiserror::Error;

/// One column of an index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// A plain SQL identifier.
    pub name: &'static str,
    /// The weight of an occurrence in this column for BM25.
    pub weight: f64,
}

/// An index: a table `NAME` and its auxiliary tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Index {
    /// A plain SQL identifier.
    pub name: &'static str,
    /// In the order of the texts passed to [`add`](Self::add).
    pub columns: &'static [Column],
}

/// Restricts the texts that a query may find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Only texts of this group.
    pub group: i64,
    /// Only texts with a smaller id.
    pub below: Option<i64>,
}

/// A text that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The id passed to [`Index::add`].
    pub id: i64,
    /// Higher is better; comparable only within one query.
    pub score: f64,
}

/// Why an operation of the index failed.
#[derive(Debug, Error)]
pub enum IndexError {
    /// The database returned an error.
    #[error("cannot use the search index `{index}`: {source}")]
    Sqlite {
        /// The index's name.
        index: &'static str,
        /// The database's error.
        source: rusqlite::Error,
    },
}

impl Index {
    /// Creates the tables that do not exist.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn create(&self, db: &Connection) -> Result<(), IndexError> {
        let Index { name, .. } = self;
        // Terms are separated by spaces; the tokenizer must not split them again.
        db.execute_batch(&format!(
            "CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5({columns}, content='', contentless_delete=1, \
               tokenize=\"ascii tokenchars '_./-:@#='\");\
             CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name}_terms USING fts5vocab('main', '{name}', 'row');\
             CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name}_places USING fts5vocab('main', '{name}', 'instance');",
            columns = self.column_list()
        ))
        .map_err(|source| self.error(source))
    }

    /// Adds a text or replaces it. `texts` has one entry per column.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn add(&self, db: &Connection, id: i64, group: i64, texts: &[&str]) -> Result<(), IndexError> {
        let terms: Vec<Vec<String>> = texts.iter().map(|text| terms(text)).collect();
        self.remove(db, id)?;
        self.add_terms(db, id, group, &terms)
    }

    /// Adds a text with known terms that is not in the index yet.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn add_terms(
        &self,
        db: &Connection,
        id: i64,
        group: i64,
        terms: &[impl AsRef<[String]>],
    ) -> Result<(), IndexError> {
        debug_assert_eq!(terms.len(), self.columns.len(), "one text per column");
        let places = ", ?".repeat(self.columns.len());
        let of_group = grouped(group, "");
        let indexed = terms.iter().enumerate().map(|(column, terms)| {
            let terms = terms.as_ref();
            let length: usize = terms.iter().map(|term| 1 + of_group.len() + term.len()).sum();
            let mut indexed = String::with_capacity(of_group.len() + length);
            if column == 0 {
                // The empty term is in every text of a group, so that its count is the number of texts.
                indexed.push_str(&of_group);
            }
            for term in terms {
                indexed.extend([" ", &of_group, term]);
            }
            Value::from(indexed)
        });
        let values = [Value::from(id)].into_iter().chain(indexed);
        db.prepare_cached(&format!("INSERT INTO {}(rowid, {}) VALUES (?{places})", self.name, self.column_list()))
            .and_then(|mut insert| insert.execute(params_from_iter(values)))
            .map(drop)
            .map_err(|source| self.error(source))
    }

    /// Removes a text, if it exists.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn remove(&self, db: &Connection, id: i64) -> Result<(), IndexError> {
        db.prepare_cached(&format!("DELETE FROM {} WHERE rowid = ?", self.name))
            .and_then(|mut delete| delete.execute([id]))
            .map(drop)
            .map_err(|source| self.error(source))
    }

    /// Rewrites the index without what was removed: until then its terms are still in the file. Takes time in proportion to
    /// the index.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn purge(&self, db: &Connection) -> Result<(), IndexError> {
        let Index { name, .. } = self;
        db.execute(&format!("INSERT INTO {name} ({name}) VALUES ('optimize')"), [])
            .map(drop)
            .map_err(|source| self.error(source))
    }

    /// The number of texts in a group.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn len(&self, db: &Connection, group: i64) -> Result<u64, IndexError> {
        self.documents(db, group, "")
    }

    /// The number of texts in a group that contain a term.
    fn documents(&self, db: &Connection, group: i64, term: &str) -> Result<u64, IndexError> {
        db.prepare_cached(&format!("SELECT doc FROM temp.{}_terms WHERE term = ?", self.name))
            .and_then(|mut lookup| lookup.query_row([grouped(group, term)], |row| row.get::<_, u32>(0)).optional())
            .map(|documents| documents.map_or(0, u64::from))
            .map_err(|source| self.error(source))
    }

    /// The texts in a group that contain a term, by id, and how often each contains it.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn texts_with(&self, db: &Connection, group: i64, term: &str) -> Result<Vec<(i64, u32)>, IndexError> {
        let mut texts: Vec<(i64, u32)> = Vec::new();
        let mut read = || -> rusqlite::Result<()> {
            let sql = format!("SELECT doc FROM temp.{}_places WHERE term = ?", self.name);
            let mut places = db.prepare_cached(&sql)?;
            let mut rows = places.query([grouped(group, term)])?;
            while let Some(row) = rows.next()? {
                let id: i64 = row.get(0)?;
                match texts.last_mut() {
                    Some((last, count)) if *last == id => *count += 1,
                    _ => texts.push((id, 1)),
                }
            }
            Ok(())
        };
        read().map_err(|source| self.error(source))?;
        Ok(texts)
    }

    /// How common the terms of a question are in a group.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn frequencies(&self, db: &Connection, group: i64, query: &Query) -> Result<Frequencies, IndexError> {
        Frequencies::count(query, self.len(db, group)?, |term| self.documents(db, group, term))
    }

    /// How common terms from any source are in a group.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn frequencies_of<'a>(
        &self,
        db: &Connection,
        group: i64,
        terms: impl Iterator<Item = &'a str>,
    ) -> Result<Frequencies, IndexError> {
        Frequencies::of_terms(terms, self.len(db, group)?, |term| self.documents(db, group, term))
    }

    /// Terms of a group with this prefix; if there are very many, the first of them.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn terms_with(&self, db: &Connection, group: i64, beginning: &str) -> Result<Vec<String>, IndexError> {
        const MOST: u32 = 2_000;
        let (from, own) = (grouped(group, beginning), grouped(group, "").len());
        let to = format!("{from}\u{10ffff}");
        let read = || -> rusqlite::Result<Vec<String>> {
            let sql = format!("SELECT term FROM temp.{}_terms WHERE term >= ? AND term < ? LIMIT {MOST}", self.name);
            let mut select = db.prepare_cached(&sql)?;
            let terms =
                select.query_map([from, to], |row| row.get::<_, String>(0).map(|term| term[own..].to_owned()))?;
            terms.collect()
        };
        read().map_err(|source| self.error(source))
    }

    /// The best matches, best first, of equals ordered by id. Nothing in the question is interpreted as syntax.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn query(&self, db: &Connection, query: &Query, filter: Filter, limit: usize) -> Result<Vec<Hit>, IndexError> {
        self.query_with(db, &self.frequencies(db, filter.group, query)?, filter, limit)
    }

    /// As [`query`](Self::query), with frequencies that were looked up before.
    ///
    /// # Errors
    /// If the database returns an error.
    pub fn query_with(
        &self,
        db: &Connection,
        frequencies: &Frequencies,
        filter: Filter,
        limit: usize,
    ) -> Result<Vec<Hit>, IndexError> {
        let terms = frequencies.telling_terms();
        if terms.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let Index { name, .. } = self;
        let weights = self.columns.iter().map(|column| format!("{:?}", column.weight)).collect::<Vec<_>>().join(", ");
        let below = if filter.below.is_some() { "AND rowid < ?2" } else { "AND ?2 IS NULL" };
        let sql = format!(
            "SELECT rowid, bm25({name}, {weights}) AS score FROM {name} WHERE {name} MATCH ?1 {below} \
             ORDER BY score, rowid LIMIT ?3"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut select = db.prepare_cached(&sql).map_err(|source| self.error(source))?;
        let rows = select
            .query_map((expression(&terms, filter.group), filter.below, limit), |row| {
                Ok(Hit { id: row.get(0)?, score: -row.get::<_, f64>(1)? })
            })
            .map_err(|source| self.error(source))?;
        rows.collect::<Result<_, _>>().map_err(|source| self.error(source))
    }

    fn column_list(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    fn error(&self, source: rusqlite::Error) -> IndexError {
        IndexError::Sqlite { index: self.name, source }
    }
}

/// Builds the FTS5 query. Terms contain no quotes, and each is quoted, so nothing in the question is interpreted as
/// syntax.
fn expression(terms: &[&str], group: i64) -> String {
    terms.iter().map(|term| format!("\"{}\"", grouped(group, term))).collect::<Vec<_>>().join(" OR ")
}

/// The term as it is stored; `=` is not part of any term.
fn grouped(group: i64, term: &str) -> String {
    format!("{group}={term}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TITLED: Index = Index {
        name: "titled",
        columns: &[Column { name: "title", weight: 3.0 }, Column { name: "text", weight: 1.0 }],
    };

    const ALL: Filter = Filter { group: 1, below: None };

    fn index_of(texts: &[(i64, i64, &str, &str)]) -> Connection {
        let db = Connection::open_in_memory().unwrap();
        TITLED.create(&db).unwrap();
        for (id, group, title, text) in texts {
            TITLED.add(&db, *id, *group, &[title, text]).unwrap();
        }
        db
    }

    fn found(db: &Connection, question: &str, filter: Filter) -> Vec<i64> {
        let hits = TITLED.query(db, &Query::new(question), filter, 10).unwrap();
        assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        hits.into_iter().map(|hit| hit.id).collect()
    }

    #[test]
    fn the_heavier_column_wins_and_ties_go_by_id() {
        let db = index_of(&[
            (3, 1, "other", "預算"),
            (2, 1, "other", "預算"),
            (1, 1, "預算", "other"),
            (4, 1, "nothing", "here"),
        ]);
        assert_eq!(found(&db, "預算", ALL), [1, 2, 3]);
    }

    #[test]
    fn a_group_and_an_upper_bound_narrow_the_search() {
        let db = index_of(&[(1, 1, "", "budget"), (2, 2, "", "budget"), (3, 1, "", "budget =1 =2")]);
        assert_eq!(found(&db, "budget", Filter { group: 1, below: None }), [1, 3]);
        assert_eq!(found(&db, "budget", Filter { group: 1, below: Some(3) }), [1]);
        assert_eq!(found(&db, "budget", Filter { group: 3, below: None }), Vec::<i64>::new());
        assert_eq!(found(&db, "1=budget 2=budget", Filter { group: 2, below: None }), [2]);
        assert_eq!((TITLED.len(&db, 1).unwrap(), TITLED.len(&db, 3).unwrap()), (2, 0));
    }

    #[test]
    fn a_text_is_replaced_and_removed() {
        let db = index_of(&[(1, 1, "", "budget")]);
        TITLED.add(&db, 1, 1, &["", "margin"]).unwrap();
        assert_eq!(found(&db, "budget", ALL), Vec::<i64>::new());
        assert_eq!(found(&db, "margin", ALL), [1]);
        TITLED.remove(&db, 1).unwrap();
        assert_eq!(found(&db, "margin", ALL), Vec::<i64>::new());
        assert_eq!(TITLED.len(&db, 1).unwrap(), 0);
    }

    #[test]
    fn a_common_term_is_left_out_unless_it_is_all_there_is() {
        let db = index_of(&[]);
        for id in 0..1_200 {
            TITLED.add(&db, id, 1, &["", if id == 7 { "erp margin" } else { "erp" }]).unwrap();
        }
        assert_eq!(found(&db, "erp margin", ALL), [7]);
        assert_eq!(found(&db, "erp", ALL).len(), 10);
    }

    #[test]
    fn mixed_text_is_found_from_either_side() {
        let db = index_of(&[(1, 1, "erp的sales_performances資料表", ""), (2, 1, "午餐菜單", "")]);
        for question in ["資料表在哪", "sales_performances", "performance", "SalesPerformances", "資料"] {
            assert_eq!(found(&db, question, ALL), [1], "{question}");
        }
    }

    proptest! {
        #[test]
        fn no_question_is_a_syntax_error(question in "(\\PC|\"|'|\\*|\\^|\\(|\\)|NEAR|AND|OR|NOT|-|\\+|:|grp|=1|\0|中文|budget| ){0,40}") {
            let db = index_of(&[(1, 1, "中文", "budget and or not near")]);
            let words: std::collections::HashSet<String> = terms("中文 budget and or not near").into_iter().collect();
            let hits = TITLED.query(&db, &Query::new(&question), ALL, 10).unwrap();
            let asked = Query::new(&question);
            let expected = asked.units().iter().flat_map(|unit| unit.terms()).any(|term| words.contains(term));
            prop_assert_eq!(!hits.is_empty(), expected);
        }
    }
}
