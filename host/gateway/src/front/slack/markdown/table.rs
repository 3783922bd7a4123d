//! Tables as aligned text, since Slack's text format has none.

use unicode_width::UnicodeWidthStr;

/// Columns are aligned up to this width, so that one long cell does not pad all the others.
const MAX_ALIGNED_WIDTH: usize = 32;

/// Returns the rows of a table as lines with aligned columns, for a fixed-width font. The first row is the
/// header, which may be empty.
pub(super) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width_of = |column: usize| {
        let widths = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        widths.filter(|width| *width <= MAX_ALIGNED_WIDTH).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if number == 0 && row.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        lines.push(line(row, &widths));
        if number == 0 {
            let dashes: Vec<String> = widths.iter().map(|width| "-".repeat((*width).max(1))).collect();
            lines.push(dashes.join("-+-"));
        }
    }
    lines.join("\n")
}

fn line(row: &[String], widths: &[usize]) -> String {
    let padded = row.iter().zip(widths).map(|(cell, width)| {
        let missing = width.saturating_sub(cell.width());
        format!("{cell}{}", " ".repeat(missing))
    });
    padded.collect::<Vec<String>>().join(" | ").trim_end().to_owned()
}
