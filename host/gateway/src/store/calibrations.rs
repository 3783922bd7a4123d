//! What was learnt of how models count.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, StoreError, error::Fault};
use crate::calibration::Fit;

pub(super) const LEARN: &str = "INSERT INTO calibration (provider, model, weight, x, y, xx, xy, window)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
     ON CONFLICT (provider, model) DO UPDATE SET weight = excluded.weight, x = excluded.x, y = excluded.y,
            xx = excluded.xx, xy = excluded.xy, window = excluded.window";
const RECALL: &str = "SELECT weight, x, y, xx, xy, window FROM calibration WHERE provider = ?1 AND model = ?2";
const ALL: &str = "SELECT weight, x, y, xx, xy, window, provider, model FROM calibration ORDER BY provider, model";

impl Store {
    /// What was learnt of a model; the default where it is new.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn calibration(&self, provider: &str, model: &str) -> Result<Fit, StoreError> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        self.read(move |conn| {
            let fit = conn.prepare_cached(RECALL)?.query_row(params![provider, model], fit).optional()?;
            Ok(fit.unwrap_or_default())
        })
        .await
    }

    /// What was learnt of every model: provider, model, line.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn calibrations(&self) -> Result<Vec<(String, String, Fit)>, StoreError> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(ALL)?;
            let rows = statement.query_map([], |row| Ok((row.get(6)?, row.get(7)?, fit(row)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }
}

impl Store {
    /// Forgets what was learnt of every model, tools included, and says of how many.
    ///
    /// # Errors
    /// Nothing was forgotten.
    pub async fn forget_calibrations(&self) -> Result<usize, StoreError> {
        self.write(|conn| {
            conn.execute("DELETE FROM model_tools", [])?;
            Ok(conn.execute("DELETE FROM calibration", [])?)
        })
        .await
    }
}

pub(super) fn learn(conn: &Connection, provider: &str, model: &str, fit: Fit) -> Result<(), Fault> {
    let Fit { weight, x, y, xx, xy, window } = fit;
    let window = window.map(|window| i64::try_from(window).unwrap_or(i64::MAX));
    conn.prepare_cached(LEARN)?.execute(params![provider, model, weight, x, y, xx, xy, window])?;
    Ok(())
}

fn fit(row: &rusqlite::Row<'_>) -> rusqlite::Result<Fit> {
    let window: Option<i64> = row.get(5)?;
    Ok(Fit {
        weight: row.get(0)?,
        x: row.get(1)?,
        y: row.get(2)?,
        xx: row.get(3)?,
        xy: row.get(4)?,
        window: window.and_then(|window| u64::try_from(window).ok()),
    })
}
