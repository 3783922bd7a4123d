//! Formats lists of message indexes.

/// Ascending indexes, as `0-1, 62-82`.
pub fn ranges(indexes: &[usize]) -> String {
    let runs = indexes.chunk_by(|a, b| a + 1 == *b);
    let shown = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(usize::to_string).collect(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_shown_as_ranges() {
        assert_eq!(ranges(&[0, 1, 5, 7, 8, 9]), "0-1, 5, 7-9");
        assert_eq!(ranges(&[]), "");
    }
}
