//! The median, as a person means it.

/// Returns the middle value, or the average of the two middle values.
pub(super) fn median(mut values: Vec<u64>) -> Option<f64> {
    values.sort_unstable();
    middle(&values)
}

/// Returns the median of values that are sorted.
pub(super) fn middle(sorted: &[u64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some((lower as f64 + upper as f64) / 2.0)
}
