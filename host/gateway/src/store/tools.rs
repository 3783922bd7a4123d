//! Which models support tools.

use super::{
    Store, StoreError,
    sql::{OptionalExtension, params},
};

/// A refusal is 0.
pub(super) const LEARN: &str = "INSERT INTO model_tools (provider, model, takes) VALUES (?1, ?2, ?3)
     ON CONFLICT (provider, model) DO UPDATE SET takes = excluded.takes WHERE model_tools.takes > excluded.takes";
const RECALL: &str = "SELECT takes FROM model_tools WHERE provider = ?1 AND model = ?2";

impl Store {
    /// Returns whether a model's server supports tools; `None` where that is not known yet.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn takes_tools(&self, provider: &str, model: &str) -> Result<Option<bool>, StoreError> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        self.read(move |conn| {
            let mut recall = conn.prepare_cached(RECALL)?;
            Ok(recall.query_row(params![provider, model], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// Stores whether it does. An answer does not override a refusal, not even one that another host got.
    ///
    /// # Errors
    /// It was not stored.
    pub async fn learn_tools(&self, provider: &str, model: &str, takes: bool) -> Result<(), StoreError> {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        self.write(move |conn| {
            conn.prepare_cached(LEARN)?.run(params![provider, model, takes])?;
            Ok(())
        })
        .await
    }
}
