//! Detects the format of a text, which determines which of its ends is more informative.

/// How many characters of a text are examined at either end.
pub const LOOKED_AT: u32 = 4_000;

/// How many lines are examined.
const LINES: usize = 20;

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A JSON object or list.
    Json,
    /// Rows with the same columns, the first of which contains their names.
    Table,
    /// Lines with a time or a level; errors are in the last ones.
    Log,
    /// Anything else.
    Text,
}

impl Look {
    /// The format of a text with this start and end.
    pub fn of(start: &str, end: &str) -> Look {
        let brackets = (start.trim_start().chars().next(), end.trim_end().chars().next_back());
        let lines: Vec<&str> = start.lines().filter(|line| !line.trim().is_empty()).take(LINES).collect();
        if matches!(brackets, (Some('{'), Some('}')) | (Some('['), Some(']'))) && !is_log(&lines) {
            Look::Json
        } else if is_log(&lines) {
            Look::Log
        } else if is_table(&lines) {
            Look::Table
        } else {
            Look::Text
        }
    }
}

/// Whether there are several lines, each with as many separators as the first.
fn is_table(lines: &[&str]) -> bool {
    ['\t', '|', ','].iter().any(|&separator| {
        let columns = |line: &&str| line.matches(separator).count();
        let first = lines.first().map_or(0, columns);
        first > 0 && lines.len() > 2 && lines.iter().all(|line| columns(line) == first)
    })
}

/// Whether most lines begin with a time or contain a level.
fn is_log(lines: &[&str]) -> bool {
    const LEVELS: [&str; 8] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE", "FATAL", "error:", "warning:"];
    let has_time = |line: &str| {
        let start: String = line.trim_start_matches(['[', ' ']).chars().take(20).collect();
        start.starts_with(|c: char| c.is_ascii_digit()) && start.matches(':').count() >= 2
    };
    let like_a_log = |line: &&&str| has_time(line) || LEVELS.iter().any(|level| line.contains(level));
    lines.len() > 2 && lines.iter().filter(like_a_log).count() * 2 > lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_what_it_looks_like() {
        for (text, look) in [
            ("{\"a\": 1}", Look::Json),
            (" [1,\n2]\n", Look::Json),
            ("{unfinished", Look::Text),
            ("name,city\nAnn,Oslo\nBo,Rome\n", Look::Table),
            ("| a | b |\n|---|---|\n| 1 | 2 |", Look::Table),
            ("2026-05-07 10:00:01 started\n2026-05-07 10:00:02 ERROR no\n2026-05-07 10:00:03 done", Look::Log),
            ("[10:00:01] INFO a\n[10:00:02] INFO b\n[10:00:03] INFO c]", Look::Log),
            ("Dear all,\nthe launch is on Friday.\nBye", Look::Text),
            ("", Look::Text),
        ] {
            assert_eq!(Look::of(text, text), look, "{text}");
        }
    }
}
