//! Holm's method: keeps the probability of any false claim among several p-values at the level for a single one.

/// The p-values, adjusted for their number.
pub(super) fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0f64;
    for (rank, &at) in order.iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[at] * remaining).min(1.0));
        adjusted[at] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_pays_most_and_the_order_stays() {
        assert_eq!(adjusted(&[0.04, 0.01, 0.03]), [0.06, 0.03, 0.06]);
        assert_eq!(adjusted(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(adjusted(&[]).is_empty());
    }
}
