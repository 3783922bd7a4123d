//! What was learnt of how models count tokens, and of the sizes that they accept.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    Store, StoreError,
    error::Fault,
    hosts,
    sql::{self, Connection, OptionalExtension, PrefetchedRows, Row, Rows, params},
};
use crate::calibration::{
    Bounds, Fit, Source,
    bounds::{Answered, Hold, Named, Refused},
};

pub(super) const LEARN: &str = "INSERT INTO calibration (provider, model, weight, x, y, xx, xy)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
     ON CONFLICT (provider, model) DO UPDATE SET weight = excluded.weight, x = excluded.x, y = excluded.y,
            xx = excluded.xx, xy = excluded.xy";
pub(super) const UNLEARN_BOUNDS: &str = "DELETE FROM bound WHERE provider = ?1 AND model = ?2";
pub(super) const LEARN_BOUND: &str =
    "INSERT INTO bound (provider, model, kind, size, tokens, source, learnt_at, until, times)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
const RECALL: &str = "SELECT weight, x, y, xx, xy FROM calibration WHERE provider = ?1 AND model = ?2";
pub(super) const RECALL_BOUNDS: &str = "SELECT kind, size, tokens, source, learnt_at, until, times FROM bound
     WHERE provider = ?1 AND model = ?2";
const ALL: &str = "SELECT provider, model FROM calibration UNION SELECT provider, model FROM bound ORDER BY 1, 2";

/// What was learnt of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelCalibration {
    pub provider: String,
    pub model: String,
    pub fit: Fit,
    pub bounds: Bounds,
}

impl Store {
    /// Returns what was learnt of a model; the default where it is new.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn calibration(&self, provider: &str, model: &str) -> Result<ModelCalibration, StoreError> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        self.read(move |conn| recall(conn, provider, model)).await
    }

    /// Returns what was learnt of every model.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn calibrations(&self) -> Result<Vec<ModelCalibration>, StoreError> {
        self.read(|conn| {
            let mut statement = conn.prepare_cached(ALL)?;
            let models = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let models: Vec<(String, String)> = models.collect::<Result<_, _>>()?;
            models.into_iter().map(|(provider, model)| recall(conn, provider, model)).collect()
        })
        .await
    }

    /// Deletes what was learnt of every model, tools included, and returns the number of models.
    ///
    /// # Errors
    /// Nothing was forgotten.
    pub async fn forget_calibrations(&self) -> Result<usize, StoreError> {
        self.write(|conn| {
            let models = conn.prepare_cached(ALL)?.query_map([], |_| Ok(()))?.count();
            conn.execute("DELETE FROM bound", [])?;
            conn.execute("DELETE FROM model_tools", [])?;
            conn.execute("DELETE FROM calibration", [])?;
            conn.execute("UPDATE session SET sizes = NULL WHERE sizes IS NOT NULL", [])?;
            Ok(models)
        })
        .await
    }
}

/// Bounds of models as they stand within the transaction with that number: answers recorded in it may have read the
/// bounds before an earlier one changed them. Querying again would cost each of them a round trip to the database.
#[derive(Debug, Default)]
pub(super) struct NewBounds(Mutex<(u64, HashMap<Model, Bounds>)>);

type Model = (String, String);

impl NewBounds {
    fn of(&self, conn: &Connection, model: &Model) -> Option<Bounds> {
        let within = self.lock();
        conn.transaction().filter(|number| *number == within.0).and_then(|_| within.1.get(model).copied())
    }

    fn put(&self, conn: &Connection, model: Model, bounds: Bounds) {
        let Some(number) = conn.transaction() else { return };
        let mut within = self.lock();
        if within.0 != number {
            *within = (number, HashMap::new());
        }
        within.1.insert(model, bounds);
    }

    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<Model, Bounds>)> {
        // Every method leaves it consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests the stored bounds of the model that this was learnt of.
pub(super) fn bounds<'c>(conn: &'c Connection, learnt: &ModelCalibration) -> Result<PrefetchedRows<'c>, Fault> {
    Ok(conn.prefetch(RECALL_BOUNDS, [&learnt.provider, &learnt.model])?)
}

pub(super) fn learn(
    conn: &Connection,
    learnt: &ModelCalibration,
    mut stored: PrefetchedRows<'_>,
    new_bounds: &NewBounds,
) -> Result<(), Fault> {
    let ModelCalibration { provider, model, fit: Fit { weight, x, y, xx, xy }, bounds } = learnt;
    conn.prepare_cached(LEARN)?.run(params![provider, model, weight, x, y, xx, xy])?;
    let of = (provider.clone(), model.clone());
    let known = match new_bounds.of(conn, &of) {
        Some(known) => known,
        None => bounds_in(stored.query()?)?,
    };
    let bounds = if hosts::is_one(conn) { bounds.and_stored(&known) } else { *bounds };
    // Most turns change nothing about them.
    if known == bounds {
        return Ok(());
    }
    new_bounds.put(conn, of, bounds);
    conn.prepare_cached(UNLEARN_BOUNDS)?.run(params![provider, model])?;
    let mut add = conn.prepare_cached(LEARN_BOUND)?;
    let refused = bounds.refused.map(|Refused { size, fits, source, hold }| {
        ("refused", Some(sql(size)), sql(fits), Some(source.name()), hold.learnt_ms, Some(hold.until_ms), hold.times)
    });
    let named = bounds.named.map(|Named { tokens, hold }| {
        ("named", None, sql(tokens), None, hold.learnt_ms, Some(hold.until_ms), hold.times)
    });
    let answered = |kind, day: Option<Answered>| {
        day.map(|Answered { size, tokens, since_ms, at_ms }| {
            (kind, Some(sql(size)), sql(tokens), None, since_ms, Some(at_ms), 1)
        })
    };
    let days = [answered("answered", bounds.answered), answered("answered-before", bounds.answered_before)];
    for (kind, size, tokens, source, learnt_at, until, times) in [refused, named].into_iter().chain(days).flatten() {
        add.run(params![provider, model, kind, size, tokens, source, learnt_at, until, times])?;
    }
    Ok(())
}

fn sql(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

fn recall(conn: &Connection, provider: String, model: String) -> Result<ModelCalibration, Fault> {
    let fit = conn.prepare_cached(RECALL)?.query_row(params![provider, model], fit).optional()?.unwrap_or_default();
    let bounds = bounds_in(conn.prepare_cached(RECALL_BOUNDS)?.query([&provider, &model])?)?;
    Ok(ModelCalibration { provider, model, fit, bounds })
}

fn bounds_in(mut rows: Rows<'_>) -> Result<Bounds, Fault> {
    let mut bounds = Bounds::default();
    while let Some(row) = rows.next()? {
        bound(row, &mut bounds)?;
    }
    Ok(bounds)
}

fn fit(row: Row<'_>) -> sql::Result<Fit> {
    Ok(Fit { weight: row.get(0)?, x: row.get(1)?, y: row.get(2)?, xx: row.get(3)?, xy: row.get(4)? })
}

/// Sets the bound of one row; ignores an unknown kind, which a newer version has written.
fn bound(row: Row<'_>, bounds: &mut Bounds) -> sql::Result<()> {
    let count = |at| row.get::<_, Option<i64>>(at).map(|count| u64::try_from(count.unwrap_or(0)).unwrap_or(0));
    let (kind, source): (String, Option<String>) = (row.get(0)?, row.get(3)?);
    let learnt_ms: i64 = row.get(4)?;
    let until_ms = row.get::<_, Option<i64>>(5)?.unwrap_or(learnt_ms);
    let hold = Hold { learnt_ms, until_ms, times: row.get(6)? };
    let (size, tokens) = (count(1)?, count(2)?);
    let answered = Answered { size, tokens, since_ms: learnt_ms, at_ms: until_ms };
    match kind.as_str() {
        "refused" => {
            let source = source.and_then(|name| Source::of_name(&name)).unwrap_or(Source::Refused);
            bounds.refused = Some(Refused { size, fits: tokens, source, hold });
        }
        "named" => bounds.named = Some(Named { tokens, hold }),
        "answered" => bounds.answered = Some(answered),
        "answered-before" => bounds.answered_before = Some(answered),
        _ => {}
    }
    Ok(())
}
