//! The wait that a provider asks for.

use std::{sync::LazyLock, time::Duration};

use jiff::Timestamp;
use regex::Regex;

use super::words::pattern;

/// Parses a `retry-after` header: seconds, or an HTTP date; a date in the past means no wait.
pub fn retry_after(header: &str, now: Timestamp) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(header).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// The wait in a lower-case text: `please try again in 7m12.5s`.
pub(super) fn in_words(words: &str) -> Option<Duration> {
    duration(&ASKED.captures(words)?[1])
}

/// `34s`, `1.5 seconds`, `7m12.5s`, `2 hours`; a bare number is seconds.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut total = None;
    for part in PART.captures_iter(text) {
        let number: f64 = part[1].parse().ok()?;
        let unit = match &part[2] {
            "ms" | "millis" | "millisecond" | "milliseconds" => 0.001,
            unit if unit.starts_with('s') => 1.0,
            unit if unit.starts_with('m') => 60.0,
            unit if unit.starts_with('h') => 3_600.0,
            _ => 86_400.0,
        };
        let wait = Duration::try_from_secs_f64(number * unit).ok()?;
        total = Some(total.map_or(Some(wait), |sum: Duration| sum.checked_add(wait))?);
    }
    total
}

static ASKED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:try again (?:in|after)|retry (?:in|after)|retry[-_]after\W{0,3}|wait|resets? (?:in|after)) (?:for |about |approximately )?((?:\d+(?:\.\d+)?[dhm])*\d+(?:\.\d+)? ?(?:millis(?:econds?)?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)?)\b",
    )
});

static PART: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(\d+(?:\.\d+)?) ?(millis(?:econds?)?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_in_both_forms() {
        let now: Timestamp = "2015-10-21T07:27:30Z".parse().expect("a time");
        assert_eq!(retry_after("30", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after(" 0.5 ", now), Some(Duration::from_millis(500)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:20:00 GMT", now), Some(Duration::ZERO));
        for nonsense in ["", "-1", "soon", "NaN", "inf", "1e40"] {
            assert_eq!(retry_after(nonsense, now), None, "{nonsense}");
        }
    }

    #[test]
    fn waits_are_found_in_words() {
        for (words, ms) in [
            ("rate limit reached, please try again in 20ms.", 20),
            ("please try again in 7m12.5s. visit us", 432_500),
            ("rpm limit exceeded; retry-after: 2 hours", 7_200_000),
            ("please retry after 6 seconds", 6_000),
            ("retry after 30", 30_000),
            ("your quota resets in 1 day", 86_400_000),
        ] {
            assert_eq!(in_words(words), Some(Duration::from_millis(ms)), "{words}");
        }
        for nothing in ["please wait before trying again", "try again later", "retry after lunch", ""] {
            assert_eq!(in_words(nothing), None, "{nothing}");
        }
        assert_eq!(duration("34s"), Some(Duration::from_secs(34)));
        assert_eq!(duration("99999999999999999999999999d"), None);
    }
}
