//! Plain columns, readable without colour.

use pmk_core::{Language, text};
use unicode_width::UnicodeWidthStr;

use crate::messages::terminal;

/// Formats rows in columns; the first row is the heading, in English. Columns whose heading begins with `#` contain
/// numbers, aligned to the right; the `#` is not shown.
pub(super) fn columns(rows: &[Vec<String>], language: Language) -> String {
    laid_out(rows, |heading| terminal::translated(heading, language).into_owned())
}

/// Formats rows in columns as [`columns`] does, below names, which stay as they are.
pub(super) fn columns_of_names(rows: &[Vec<String>]) -> String {
    laid_out(rows, str::to_owned)
}

fn laid_out(rows: &[Vec<String>], shown_above: impl Fn(&str) -> String) -> String {
    let Some(heading) = rows.first() else { return String::new() };
    let numeric: Vec<bool> = heading.iter().map(|cell| cell.starts_with('#')).collect();
    let shown = |row: usize, cell: &str| match row {
        0 => text::one_line(&shown_above(cell.trim_start_matches('#'))),
        _ => text::one_line(cell),
    };
    let width = |column: usize| {
        rows.iter()
            .enumerate()
            .filter_map(|(row, cells)| cells.get(column).map(|cell| shown(row, cell).width()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut out = String::new();
    for (row, cells) in rows.iter().enumerate() {
        let line: Vec<String> = cells
            .iter()
            .enumerate()
            .map(|(column, cell)| {
                let cell = shown(row, cell);
                let fill = " ".repeat(widths[column].saturating_sub(cell.width()));
                if numeric[column] { fill + &cell } else { cell + &fill }
            })
            .collect();
        out.push_str(line.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = [["key", "#turns"], ["a", "7"], ["bcd", "10"]];
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        assert_eq!(columns(&rows, Language::English), "key  turns\na        7\nbcd     10\n");
    }

    #[test]
    fn a_cell_cannot_move_the_cursor() {
        assert_eq!(
            columns(&[vec!["k".into()], vec!["a\u{1b}[2J\nb".into()]], Language::English),
            "k\na\u{fffd}[2J b\n"
        );
    }
}
