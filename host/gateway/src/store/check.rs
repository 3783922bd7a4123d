//! Checks a store: its file, and its content.

use pmk_core::session_key::BadSessionKey;

use super::{
    Store,
    backup::{BackupError, MOST_PROBLEMS, problems},
    dump::dump,
    error::Fault,
    sql::Connection,
};

impl Store {
    /// Returns the problems of the file, or, where that is sound, of conversations in it, one per line. Reads
    /// everything.
    ///
    /// # Errors
    /// It cannot be read at all.
    pub async fn check(&self) -> Result<Vec<String>, BackupError> {
        self.read(|conn| {
            Ok(match conn {
                Connection::Sqlite(file) => Ok(match problems(file)? {
                    sound if sound.is_empty() => unreadable(conn)?,
                    problems => problems,
                }),
                Connection::Postgres(conn) => Err(BackupError::NoFile(conn.link().name().to_owned())),
            })
        })
        .await?
    }
}

/// Returns conversations that cannot be read although the file is sound.
fn unreadable(conn: &Connection) -> Result<Vec<String>, Fault> {
    // Reads one state, whatever a gateway commits meanwhile.
    let _moment = conn.snapshot()?;
    let mut keys = conn.prepare_cached("SELECT key FROM session ORDER BY id")?;
    let keys = keys.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for key in keys {
        let parsed = key.parse().map_err(|error: BadSessionKey| Fault::Damaged(error.to_string()));
        let read = parsed.and_then(|key| dump(conn, key));
        match read {
            Ok(_) => {}
            Err(Fault::Damaged(what)) => found.push(format!("`{key}`: {what}")),
            Err(other) => return Err(other),
        }
        if found.len() == MOST_PROBLEMS as usize {
            break;
        }
    }
    Ok(found)
}
