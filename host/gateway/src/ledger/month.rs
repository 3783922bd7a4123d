//! The months that a ledger has files for, and how long those are kept.

use std::{
    fmt, fs, io,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, tz::TimeZone};
use pmk_system::clock::Clock;

use super::Series;

/// A month, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    /// Months since the beginning of the year 0.
    since: i64,
}

impl Month {
    /// Returns the month of a moment.
    pub fn of(at: Timestamp) -> Month {
        let at = at.to_zoned(TimeZone::UTC);
        Month { since: i64::from(at.year()) * 12 + i64::from(at.month()) - 1 }
    }

    /// Returns the month of a file of this series, by its name.
    pub fn of_file(series: Series, name: &str) -> Option<Month> {
        Month::named(series.name(), name)
    }

    /// Returns the month of a file that is called `PREFIX-YYYY-MM.log`.
    pub fn named(prefix: &str, name: &str) -> Option<Month> {
        let month = name.strip_prefix(prefix)?.strip_prefix('-')?.strip_suffix(".log")?;
        let (year, month) = month.split_once('-')?;
        let number = |text: &str, digits: usize| {
            let is_one = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
            is_one.then(|| text.parse::<i64>().ok()).flatten()
        };
        let (year, month) = (number(year, 4)?, number(month, 2)?);
        (1..=12).contains(&month).then_some(Month { since: year * 12 + month - 1 })
    }

    /// Returns the name of the file of this series for this month.
    pub fn file(self, series: Series) -> String {
        self.name(series.name())
    }

    /// Returns the name of the file with this prefix for this month.
    pub fn name(self, prefix: &str) -> String {
        format!("{prefix}-{self}.log")
    }

    /// Returns the next month.
    pub fn next(self) -> Month {
        Month { since: self.since + 1 }
    }

    fn is_kept(self, now: Month, months: NonZeroU32) -> bool {
        self.since + i64::from(months.get()) > now.since
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.since.div_euclid(12), self.since.rem_euclid(12) + 1)
    }
}

/// Deletes files that are no longer kept: at the start, and when a month begins.
#[derive(Debug)]
pub(super) struct Retention {
    /// How many months are kept, the current one included.
    pub months: NonZeroU32,
    clock: Clock,
    /// The month of the last look.
    looked: Option<Month>,
}

impl Retention {
    pub fn new(months: NonZeroU32, clock: Clock) -> Retention {
        Retention { months, clock, looked: None }
    }

    /// Whether nobody has looked yet in this month.
    pub fn is_due(&self) -> bool {
        self.looked != Some(self.now())
    }

    fn now(&self) -> Month {
        Month::of(Timestamp::from_millisecond(self.clock.now_ms()).unwrap_or_default())
    }

    /// Deletes files that are too old, and returns their names.
    pub fn look(&mut self, folder: &Path) -> Vec<String> {
        let now = self.now();
        self.looked = Some(now);
        let mut gone = vec![];
        match old_files(folder, now, self.months) {
            Ok(old) => {
                for (name, path) in old {
                    match fs::remove_file(&path) {
                        Ok(()) => gone.push(name),
                        Err(error) => not_deleted(&path, &error),
                    }
                }
            }
            Err(error) => not_deleted(folder, &error),
        }
        gone
    }
}

fn not_deleted(path: &Path, error: &io::Error) {
    tracing::warn!(path = %path.display(), %error, "cannot delete the ledger of older months; retrying next month");
}

/// Returns the files of months that are no longer kept, oldest first. None if there is none of the month before: a clock
/// that is ahead for the moment must not cost the months that are to be kept. The present month proves nothing, because
/// its file is written by the same clock.
fn old_files(folder: &Path, now: Month, months: NonZeroU32) -> io::Result<Vec<(String, PathBuf)>> {
    let (mut old, mut newest) = (vec![], None);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let month = [Series::Events, Series::DryRun].into_iter().find_map(|series| Month::of_file(series, &name));
        newest = newest.max(month.filter(|month| *month < now));
        // A folder of such a name is not ours.
        if let Some(month) = month.filter(|month| !month.is_kept(now, months))
            && !entry.file_type()?.is_dir()
        {
            old.push((month, name, entry.path()));
        }
    }
    if newest.is_some_and(|newest| newest.next() < now) {
        return Ok(vec![]);
    }
    old.sort();
    Ok(old.into_iter().map(|(_, name, path)| (name, path)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    };

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn kept(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|file| file.expect("a file").file_name().into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_month_goes_when_another_begins_also_over_the_end_of_a_year() {
        let folder = tempfile::tempdir().expect("a folder");
        for month in ["2026-10", "2026-11", "2026-12", "2027-01"] {
            fs::write(folder.path().join(format!("events-{month}.log")), "").expect("a file");
        }
        let now = Arc::new(AtomicI64::new(at("2026-12-31T23:59:59.999Z").as_millisecond()));
        let clock = Clock::of({
            let now = Arc::clone(&now);
            move || now.load(Ordering::Relaxed)
        });
        let mut keeping = Retention::new(NonZeroU32::new(2).expect("two"), clock);
        assert_eq!(keeping.look(folder.path()), ["events-2026-10.log"]);
        assert_eq!(kept(folder.path()), ["events-2026-11.log", "events-2026-12.log", "events-2027-01.log"]);
        assert!(!keeping.is_due());
        now.fetch_add(1, Ordering::Relaxed);
        assert!(keeping.is_due());
        assert_eq!(keeping.look(folder.path()), ["events-2026-11.log"]);
        assert_eq!(kept(folder.path()), ["events-2026-12.log", "events-2027-01.log"]);
    }

    /// Once, a start with a clock a year ahead deleted everything.
    #[test]
    fn a_clock_that_is_ahead_deletes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["events-2026-09.log", "events-2026-10.log", "events-2026-11.log"];
        names.iter().for_each(|name| fs::write(folder.path().join(name), "").expect("a file"));
        for ahead in ["2028-01-01T00:00:00Z", "2027-01-01T00:00:00Z"] {
            let ahead = at(ahead).as_millisecond();
            let mut keeping = Retention::new(NonZeroU32::MIN, Clock::of(move || ahead));
            assert_eq!(keeping.look(folder.path()), [] as [&str; 0]);
        }
        assert_eq!(kept(folder.path()), names);
        // What was written meanwhile makes it no more right.
        fs::write(folder.path().join("events-2028-01.log"), "").expect("a file");
        for (now, gone) in [("2028-01-01T00:00:00Z", 0), ("2026-12-01T00:00:00Z", 3)] {
            let now = at(now).as_millisecond();
            let mut keeping = Retention::new(NonZeroU32::MIN, Clock::of(move || now));
            assert_eq!(keeping.look(folder.path()).len(), gone);
        }
    }

    #[test]
    fn one_month_is_the_present_one_and_what_has_another_name_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let others = [
            "admin-2020-01.log",
            "events-2020-00.log",
            "events-2020-13.log",
            "events-20-01.log",
            "events-2020-01.log.gz",
            "events.log",
        ];
        for name in others.into_iter().chain(["events-2026-12.log", "dryrun-events-2026-12.log", "events-2027-01.log"])
        {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        fs::create_dir(folder.path().join("events-2020-02.log")).expect("a folder");
        let january = at("2027-01-01T00:00:00Z").as_millisecond();
        let mut keeping = Retention::new(NonZeroU32::MIN, Clock::of(move || january));
        assert_eq!(keeping.look(folder.path()), ["dryrun-events-2026-12.log", "events-2026-12.log"]);
        let mut left: Vec<&str> = others.into_iter().chain(["events-2020-02.log", "events-2027-01.log"]).collect();
        left.sort_unstable();
        assert_eq!(kept(folder.path()), left);
    }

    #[test]
    fn a_month_is_told_as_files_are_named() {
        let month = Month::of(at("2026-12-31T23:59:59Z"));
        assert_eq!((month.to_string(), month.next().to_string()), ("2026-12".into(), "2027-01".into()));
        assert_eq!(Month::of_file(Series::Events, "events-2026-12.log"), Some(month));
        assert_eq!(Month::of_file(Series::Events, "dryrun-events-2026-12.log"), None);
    }
}
