//! The schema versions that this program knows of a store in PostgreSQL, and whether it may work on the stored one.

use std::{cmp::Ordering, path::Path};

use super::{
    error::{Fault, StoreError},
    sql::Connection,
};

type Schema = (u32, &'static str);

/// Each migrates the schema to its version, in order. The first creates all of it.
const SCHEMAS: &[Schema] = &[
    (20, include_str!("migrations/postgres/0020_base.sql")),
    (21, include_str!("migrations/postgres/0021_waiting.sql")),
    (22, include_str!("migrations/postgres/0022_hosts.sql")),
    (23, include_str!("migrations/postgres/0023_atoms.sql")),
    (24, include_str!("migrations/postgres/0024_common.sql")),
    (25, include_str!("migrations/postgres/0025_leases.sql")),
    (26, include_str!("migrations/postgres/0026_arms.sql")),
    (27, include_str!("migrations/postgres/0027_experiments.sql")),
    (28, include_str!("migrations/postgres/0028_sizes.sql")),
    (29, include_str!("migrations/postgres/0029_in_person.sql")),
    (30, include_str!("migrations/postgres/0030_promoted.sql")),
    (31, include_str!("migrations/postgres/0031_erasing.sql")),
    (32, include_str!("migrations/postgres/0032_apps.sql")),
    (33, include_str!("migrations/postgres/0033_groups.sql")),
    (34, include_str!("migrations/postgres/0034_skipped.sql")),
    (35, include_str!("migrations/postgres/0035_streamed.sql")),
];

/// Programs that know this version or a later one can work on the latest schema beside current ones: later versions
/// only add tables, and columns that may stay empty. A version that changes more has to be entered here.
const OLDEST: u32 = 24;

/// From this version on, hosts report which version their program knows.
pub(super) const FIRST_TOLD: u32 = 24;

/// The versions that a program knows.
pub(super) struct Known<'a> {
    pub schemas: &'a [Schema],
    /// The oldest version whose programs may work beside it.
    pub oldest: u32,
}

pub(super) const OURS: Known<'static> = Known { schemas: SCHEMAS, oldest: OLDEST };

const VERSION: &str = "SELECT version FROM pmk_schema";
/// A newer program stores this.
const OLDEST_PROGRAM: &str = "SELECT coalesce(oldest, version) FROM pmk_schema";

impl Known<'_> {
    pub(super) fn version(&self) -> u32 {
        self.schemas.last().map_or(0, |(version, _)| *version)
    }
}

/// Checks whether a newer program has changed the schema since the store was opened.
///
/// # Errors
/// [`StoreError::Newer`]: in a way that this program does not know.
pub(super) fn check(conn: &Connection, name: &Path) -> Result<(), Fault> {
    of_ours(conn, name, &OURS).map(drop)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaState {
    Empty,
    Older(u32),
    Known,
}

/// Returns the schema state of a database that has a store.
pub(super) fn of_ours(conn: &Connection, name: &Path, known: &Known<'_>) -> Result<SchemaState, Fault> {
    let (found, known) = (conn.query_row(VERSION, [], |row| row.get::<_, u32>(0))?, known.version());
    match found.cmp(&known) {
        Ordering::Equal => Ok(SchemaState::Known),
        Ordering::Less => Ok(SchemaState::Older(found)),
        Ordering::Greater if conn.query_row(OLDEST_PROGRAM, [], |row| row.get::<_, u32>(0))? <= known => {
            Ok(SchemaState::Known)
        }
        Ordering::Greater => Err(StoreError::Newer { path: name.to_owned(), found, known }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::connection::MIGRATIONS;

    #[test]
    fn both_databases_have_the_same_schemas() {
        let last = SCHEMAS.last().map(|(version, _)| *version);
        assert_eq!(last, Some(MIGRATIONS.len() as u32), "what one learns the other has to");
        assert!(SCHEMAS.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0));
        assert!((FIRST_TOLD..=OURS.version()).contains(&OLDEST));
    }
}
