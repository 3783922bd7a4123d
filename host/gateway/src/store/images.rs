//! Images: the bytes that messages refer to. They are stored for the question they came with, and deleted when that
//! is erased.

use std::{collections::BTreeMap, sync::Arc};

use pmk_core::ImageId;

use super::{
    Store, StoreError,
    error::Fault,
    sql::{Connection, OptionalExtension, params},
};
use crate::ids::TurnId;

pub(super) const KEEP: &str = "INSERT INTO image (inbox_id, sha256, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
pub(super) const READ: &str = "SELECT bytes FROM image WHERE sha256 = ?1 LIMIT 1";
pub(super) const SIZE: &str = "SELECT octet_length(bytes) FROM image WHERE sha256 = ?1 LIMIT 1";
pub(super) const FORGET: &str = "DELETE FROM image WHERE inbox_id = ?1";

/// A stored image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredImage {
    /// The digest of the bytes.
    pub sha256: ImageId,
    /// The content of the whole file.
    pub bytes: Arc<[u8]>,
}

impl Store {
    /// Returns how many bytes the images with these digests have, as far as they are stored. None of the bytes is read.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn image_sizes(&self, ids: Vec<ImageId>) -> Result<BTreeMap<ImageId, u64>, StoreError> {
        self.read(move |conn| {
            let mut statement = conn.prepare_cached(SIZE)?;
            let mut sizes = BTreeMap::new();
            for sha256 in ids {
                let bytes: Option<i64> = statement.query_row([sha256.as_str()], |row| row.get(0)).optional()?;
                sizes.extend(bytes.map(|bytes| (sha256, u64::try_from(bytes).unwrap_or(0))));
            }
            Ok(sizes)
        })
        .await
    }

    /// Returns the images with these digests, as far as they are stored.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn images(&self, ids: Vec<ImageId>) -> Result<Vec<StoredImage>, StoreError> {
        self.read(move |conn| read(conn, ids)).await
    }
}

/// Returns the images with these digests, as far as they are stored.
pub(super) fn read(conn: &Connection, ids: impl IntoIterator<Item = ImageId>) -> Result<Vec<StoredImage>, Fault> {
    let mut statement = conn.prepare_cached(READ)?;
    let mut images = Vec::new();
    for sha256 in ids {
        let bytes: Option<Vec<u8>> = statement.query_row([sha256.as_str()], |row| row.get(0)).optional()?;
        images.extend(bytes.map(|bytes| StoredImage { sha256, bytes: bytes.into() }));
    }
    Ok(images)
}

/// Stores the images of a question.
pub(super) fn keep(conn: &Connection, turn: TurnId, images: &[StoredImage]) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(KEEP)?;
    for StoredImage { sha256, bytes } in images {
        statement.run(params![turn.0, sha256.as_str(), &**bytes])?;
    }
    Ok(())
}
