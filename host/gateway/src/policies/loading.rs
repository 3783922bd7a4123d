//! Loads a component and shows a spinner meanwhile: one that contains an interpreter compiles for seconds, and on a
//! busy machine any may.

use std::{ffi::OsStr, path::Path};

use pmk_policy::{LoadError, Policy, Runtime, compile::Taken};
use pmk_system::error::Failure;

use crate::{config::did_you_mean, embedded, stderr::Spinner};

/// Loads a component, a file or an [embedded](crate::embedded) one. If that takes long, a terminal shows the elapsed
/// time.
///
/// # Errors
/// Everything that [`LoadError`] lists.
pub fn load(runtime: &Runtime, file: &Path) -> Result<Policy, Failure> {
    let waiting = Spinner::when_long(&format!("compiling `{}`", file.display()));
    let loaded = load_unseen(runtime, file);
    drop(waiting);
    if let Some(Taken { cpu_ms, peak_bytes, confined }) = loaded.as_ref().ok().and_then(Policy::compiled) {
        let (file, peak_mib) = (file.display(), peak_bytes >> 20);
        tracing::debug!(%file, cpu_ms, peak_mib, ?confined, "component compiled");
    }
    loaded
}

/// Loads a component without a spinner.
///
/// # Errors
/// As [`load`].
pub fn load_unseen(runtime: &Runtime, file: &Path) -> Result<Policy, Failure> {
    let loaded = match embedded::component(file) {
        Some(bytes) => Policy::from_bytes(runtime, format!("{} (embedded)", file.display()), bytes),
        None => Policy::load(runtime, file),
    };
    match loaded {
        Err(error @ LoadError::Missing { .. }) => Err(Failure::new(error.to_string()).hint(format!(
            "specify a file by its path, or a built-in policy by its name: {}{}",
            embedded::names(),
            suggestion(file)
        ))),
        loaded => Ok(loaded?),
    }
}

/// Suggests the embedded component of a similar name, as the end of a sentence. What has the ending of a file is meant
/// as one; a name without it may have been taken for a file in the home.
fn suggestion(file: &Path) -> String {
    let name = file.file_name().filter(|_| file.extension().is_none()).and_then(OsStr::to_str);
    name.map(|name| did_you_mean(name, embedded::known())).unwrap_or_default()
}
