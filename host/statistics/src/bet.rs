//! Evidence that an outcome is drawn more often, or less often, than its share says.
//!
//! The evidence is a bet against the shares. If the outcome is `r` times as likely as any other, its share `p` becomes
//! `rp / (rp + 1 - p)`. The likelihood ratio of the two shares, multiplied over the draws and averaged over some `r`,
//! starts at 1 and is never expected to grow if the shares hold. By Ville's inequality it ever exceeds `1/a` with a
//! probability of at most `a`, however often one looks (a mixture sequential probability ratio test). Each draw has a
//! share of its own, so shares may change in between.

/// Returns the evidence: the current value of the bet. A draw is whether the outcome came, and its share.
pub fn evidence(draws: impl Iterator<Item = (bool, f64)>, ratios: &[f64]) -> f64 {
    let draws: Vec<(bool, f64)> = draws.collect();
    let bet = |ratio: f64| {
        let factor =
            |&(is_drawn, share): &(bool, f64)| (if is_drawn { ratio } else { 1.0 }) / (ratio * share + 1.0 - share);
        draws.iter().map(factor).map(f64::ln).sum::<f64>().exp()
    };
    ratios.iter().map(|&ratio| bet(ratio)).sum::<f64>() / ratios.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bet_grows_by_what_is_drawn_too_often_and_by_nothing_else() {
        let draws = |drawn: usize, of: usize, share: f64| (0..of).map(move |n| (n < drawn, share));
        assert!((evidence(draws(0, 0, 0.5), &[2.0]) - 1.0).abs() < 1e-12, "nothing is known yet");
        assert!((evidence(draws(3, 3, 0.5), &[2.0]) - (4.0_f64 / 3.0).powi(3)).abs() < 1e-9);
        assert!(evidence(draws(50, 100, 0.5), &[2.0, 0.5]) < 1.0);
        assert!(evidence(draws(50, 100, 0.1), &[2.0, 0.5]) > 1e6);
        assert!(evidence(draws(50, 100, 0.9), &[2.0, 0.5]) > 1e6);
        assert!((evidence(draws(0, 100, 0.0), &[2.0]) - 1.0).abs() < 1e-12, "what could not come says nothing");
    }
}
