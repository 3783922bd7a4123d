//! Minimises a failing case.

use std::collections::BTreeSet;

use crate::{
    policies::Policies,
    run::{Hosts, run},
    scenario::Scenario,
};

/// The numbers of the events with which a seed fails, as few as can be found; `None` if it does not fail.
pub fn shrink(policies: &Policies, hosts: Hosts, seed: u64) -> Option<BTreeSet<usize>> {
    let fails = |keep: &BTreeSet<usize>| kind(&run(policies, hosts, seed, Some(keep), false).breaches);
    let mut keep: BTreeSet<usize> =
        Scenario::of(seed, hosts.count, None).events.iter().map(|event| event.number).collect();
    let wanted = fails(&keep)?;
    let mut piece = keep.len().div_ceil(2);
    while piece > 0 {
        let all: Vec<usize> = keep.iter().copied().collect();
        for out in all.chunks(piece) {
            let smaller: BTreeSet<usize> = keep.iter().copied().filter(|number| !out.contains(number)).collect();
            if !smaller.is_empty() && fails(&smaller).as_ref() == Some(&wanted) {
                keep = smaller;
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    Some(keep)
}

/// The first breach without its numbers, which differ in a smaller world.
fn kind(breaches: &[String]) -> Option<String> {
    breaches.first().map(|breach| breach.chars().filter(|c| !c.is_ascii_digit()).collect())
}
