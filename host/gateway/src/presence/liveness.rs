//! What a run leaves in its home about itself: `gateway/heartbeat`, when it last ran; `gateway/silence`, since when nothing
//! from the front can have reached it, if nothing could then or shortly before; and `gateway/shutdown`, if it ended because it was asked to.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;
use pmk_system::files;
use pmk_system::home;
use serde_json::json;

use super::BEAT_EVERY;
use crate::store::LastSign;

/// The liveness files of one home.
#[derive(Clone, Debug)]
pub struct LivenessFiles {
    heartbeat: PathBuf,
    silence: PathBuf,
    marker: PathBuf,
    /// Whether the operator was told that the heartbeat cannot be written.
    told: Arc<AtomicBool>,
}

/// The contents of the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When the gateway last ran, in milliseconds since the epoch.
    pub beat_ms: Option<i64>,
    pub end: End,
}

impl Seen {
    /// Returns when the gateway last ran, in milliseconds since the epoch, if known.
    fn last_ms(self) -> Option<i64> {
        match self.end {
            End::Asked { at_ms } => at_ms.max(self.beat_ms),
            End::Crash => self.beat_ms,
        }
    }

    /// Returns until when the last run stored what people wrote, in milliseconds since the epoch, if known. A heartbeat
    /// proves that it could, and an orderly end that follows one; a run that has ended long after its last heartbeat
    /// could not.
    pub fn stored_until_ms(self) -> Option<i64> {
        match (self.beat_ms, self.last_ms()) {
            (Some(beat), Some(last)) if last - beat > 2 * BEAT_EVERY.as_millis() as i64 => Some(beat),
            (_, last) => last,
        }
    }

    /// Returns the same, unless the database has heard of a host of this gateway after this one last stored anything;
    /// then that is used. That host may be this one: it leaves its marker first.
    #[must_use]
    pub fn or_elsewhere(self, last: Option<LastSign>) -> Seen {
        match last {
            Some(LastSign { at_ms, was_asked }) if self.stored_until_ms().is_none_or(|own_ms| own_ms < at_ms) => {
                let end = if was_asked { End::Asked { at_ms: Some(at_ms) } } else { End::Crash };
                Seen { beat_ms: Some(at_ms), end }
            }
            _ => self,
        }
    }
}

/// How the last run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// It left no marker.
    #[default]
    Crash,
    /// It was asked to, at this time; `None` if the marker cannot be read.
    Asked { at_ms: Option<i64> },
}

impl LivenessFiles {
    /// Returns the paths; nothing is opened yet.
    pub fn of(home: &Path) -> Self {
        let folder = home::gateway_dir(home);
        let [heartbeat, silence, marker] = ["heartbeat", "silence", "shutdown"].map(|name| folder.join(name));
        LivenessFiles { heartbeat, silence, marker, told: Arc::default() }
    }

    /// Reads both files. A file that cannot be read says nothing, but a marker that exists counts.
    pub fn read(&self) -> Seen {
        let beat_ms = text(&self.heartbeat).and_then(|text| time(&text));
        let end = match fs::symlink_metadata(&self.marker) {
            Ok(_) => End::Asked { at_ms: text(&self.marker).and_then(|text| time_of_marker(&text)) },
            Err(_) => End::Crash,
        };
        Seen { beat_ms, end }
    }

    /// Writes the heartbeat.
    pub fn beat(&self, now_ms: i64) {
        match put(&self.heartbeat, &format!("{}\n", shown(now_ms))) {
            Ok(()) => self.told.store(false, Ordering::Relaxed),
            Err(error) if !self.told.swap(true, Ordering::Relaxed) => {
                let path = self.heartbeat.display();
                tracing::warn!("cannot write `{path}`, so this gateway will appear to be down: {error}");
            }
            Err(_) => {}
        }
    }

    /// Returns since when nothing had reached the last run when it ended, in milliseconds since the epoch, if nothing
    /// could.
    pub fn silent_since_ms(&self) -> Option<i64> {
        text(&self.silence).and_then(|text| time(&text))
    }

    /// Writes since when nothing can have arrived; `None` if everything has.
    pub fn set_silent_since(&self, since_ms: Option<i64>) {
        let kept = match since_ms {
            Some(since_ms) => put(&self.silence, &format!("{}\n", shown(since_ms))),
            None => match fs::remove_file(&self.silence) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        };
        if let Err(error) = kept {
            tracing::debug!(%error, "the next run will not know for how long nothing has arrived");
        }
    }

    /// Writes the marker of an orderly shutdown.
    pub fn leave_marker(&self, now_ms: i64) {
        let marker = json!({"at": shown(now_ms), "reason": "shutdown", "pid": std::process::id()});
        if let Err(error) = put(&self.marker, &format!("{marker}\n")) {
            let path = self.marker.display();
            tracing::warn!("cannot write `{path}`, so the next start will treat this shutdown as a crash: {error}");
        }
    }

    /// Removes the marker after it was used. Anything else in its place is removed, too, so that it is
    /// not taken for a marker again.
    pub fn remove_marker(&self) {
        let removed = match fs::remove_file(&self.marker) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => fs::remove_dir_all(&self.marker),
            Ok(()) => home::sync_folder_of(&self.marker),
        };
        if let Err(error) = removed {
            let path = self.marker.display();
            tracing::warn!("cannot remove `{path}`, so the next end will be treated as an orderly shutdown: {error}");
        }
    }

    /// Removes all of them: what ran here was another gateway than the next one.
    pub fn forget(&self) {
        self.remove_marker();
        self.set_silent_since(None);
        if let Err(error) = fs::remove_file(&self.heartbeat) {
            tracing::debug!(%error, "no heartbeat was removed");
        }
    }
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    home::replace_private_file(path, text.as_bytes())
}

fn text(path: &Path) -> Option<String> {
    files::read_text(path).ok()
}

fn shown(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |at| format!("{at:.3}"))
}

/// Parses a time as written here, or as milliseconds since the epoch.
fn time(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse::<Timestamp>().map(Timestamp::as_millisecond).ok().or_else(|| text.parse().ok())
}

fn time_of_marker(text: &str) -> Option<i64> {
    let marker: serde_json::Value = serde_json::from_str(text).ok()?;
    time(marker.get("at")?.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_another_host_was_there_later_nobody_was_away_since_this_one_was() {
        let asked = Seen { beat_ms: Some(1_000), end: End::Asked { at_ms: Some(2_000) } };
        let sign = |at_ms| Some(LastSign { at_ms, was_asked: false });
        assert_eq!(asked.or_elsewhere(None), asked);
        assert_eq!(asked.or_elsewhere(sign(1_500)), asked);
        let elsewhere = Seen { beat_ms: Some(9_000), end: End::Crash };
        assert_eq!(asked.or_elsewhere(sign(9_000)), elsewhere);
        assert_eq!(Seen::default().or_elsewhere(sign(9_000)), elsewhere);
        // Regression: a host that had ended long after it could last store anything hid that others could since.
        let failing = Seen { beat_ms: Some(1_000), end: End::Asked { at_ms: Some(900_000) } };
        assert_eq!(failing.or_elsewhere(sign(9_000)), elsewhere);
    }

    fn signs() -> (tempfile::TempDir, LivenessFiles) {
        let home = tempfile::tempdir().expect("a home");
        home::create_private_dir(&home::gateway_dir(home.path())).expect("a folder");
        let signs = LivenessFiles::of(home.path());
        (home, signs)
    }

    #[test]
    fn what_a_run_leaves_is_what_the_next_one_reads() {
        let (_home, signs) = signs();
        assert_eq!(signs.read(), Seen::default());
        signs.beat(1_777_342_416_133);
        assert_eq!(fs::read_to_string(&signs.heartbeat).expect("a file"), "2026-04-28T02:13:36.133Z\n");
        assert_eq!(signs.read(), Seen { beat_ms: Some(1_777_342_416_133), end: End::Crash });
        signs.leave_marker(1_777_342_420_000);
        let end = End::Asked { at_ms: Some(1_777_342_420_000) };
        assert_eq!(signs.read(), Seen { beat_ms: Some(1_777_342_416_133), end });
        signs.remove_marker();
        assert_eq!(signs.read().end, End::Crash);
    }

    #[test]
    fn a_silence_is_left_to_the_next_run_until_it_is_over() {
        let (_home, signs) = signs();
        assert_eq!(signs.silent_since_ms(), None);
        signs.set_silent_since(None);
        signs.set_silent_since(Some(1_777_342_416_133));
        assert_eq!(signs.silent_since_ms(), Some(1_777_342_416_133));
        signs.set_silent_since(None);
        assert_eq!(signs.silent_since_ms(), None);
    }

    #[test]
    fn a_run_that_ended_long_after_its_last_heartbeat_stored_nothing_after_that() {
        let end = |at_ms| End::Asked { at_ms: Some(at_ms) };
        for (beat_ms, end, until) in [
            (None, End::Crash, None),
            (Some(1_000_000), End::Crash, Some(1_000_000)),
            (Some(1_000_000), end(1_020_000), Some(1_020_000)),
            (Some(1_000_000), end(9_000_000), Some(1_000_000)),
            (Some(1_000_000), end(900_000), Some(1_000_000)),
            (None, end(900_000), Some(900_000)),
        ] {
            assert_eq!(Seen { beat_ms, end }.stored_until_ms(), until, "{beat_ms:?} {end:?}");
        }
    }

    #[test]
    fn a_heartbeat_in_milliseconds_is_read_and_one_that_is_none_says_nothing() {
        let (_home, signs) = signs();
        for (text, read) in [
            ("1777342416133", Some(1_777_342_416_133)),
            ("2026-04-28T02:13:36Z\n", Some(1_777_342_416_000)),
            ("", None),
            ("soon", None),
        ] {
            fs::write(&signs.heartbeat, text).expect("a file");
            assert_eq!(signs.read().beat_ms, read, "{text}");
        }
    }

    #[test]
    fn a_marker_that_cannot_be_read_was_left_all_the_same_and_is_removed() {
        let (_home, signs) = signs();
        for text in ["", "{", "{\"at\":7}", "[]"] {
            fs::write(&signs.marker, text).expect("a file");
            assert_eq!(signs.read().end, End::Asked { at_ms: None }, "{text}");
            signs.remove_marker();
            assert_eq!(signs.read().end, End::Crash, "{text}");
        }
        fs::create_dir(&signs.marker).expect("a folder");
        assert_eq!(signs.read().end, End::Asked { at_ms: None });
        signs.remove_marker();
        assert_eq!(signs.read().end, End::Crash);
    }
}
