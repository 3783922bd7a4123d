//! Circles in a set of arrows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The greatest sets of which each member can be reached from each other one.
pub fn knots<N: Copy + Ord>(arrows: &BTreeSet<(N, N)>) -> Vec<BTreeSet<N>> {
    let ends: BTreeSet<N> = arrows.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let reached: BTreeMap<N, BTreeSet<N>> =
        ends.iter().map(|from| (*from, ways(arrows, *from).into_keys().collect())).collect();
    let knot = |n: &N| reached[n].iter().copied().filter(|other| reached[other].contains(n)).collect::<BTreeSet<N>>();
    ends.iter().map(knot).filter(|knot| knot.len() > 1).collect::<BTreeSet<_>>().into_iter().collect()
}

/// A shortest circle that one of these arrows is part of, as its arrows.
pub fn shortest<N: Copy + Ord>(arrows: &BTreeSet<(N, N)>, through: impl Iterator<Item = (N, N)>) -> Vec<(N, N)> {
    let circles = through.filter(|arrow| arrows.contains(arrow)).filter_map(|(from, to)| {
        let back = ways(arrows, to);
        let mut circle = vec![(from, to)];
        let mut at = from;
        while at != to {
            let before = *back.get(&at)?;
            circle.insert(1, (before, at));
            at = before;
        }
        Some(circle)
    });
    circles.min_by_key(Vec::len).unwrap_or_default()
}

/// All that can be reached over at least one arrow, each with the one before it on a shortest way.
fn ways<N: Copy + Ord>(arrows: &BTreeSet<(N, N)>, from: N) -> BTreeMap<N, N> {
    let mut onward: BTreeMap<N, Vec<N>> = BTreeMap::new();
    arrows.iter().for_each(|(a, b)| onward.entry(*a).or_default().push(*b));
    let mut before = BTreeMap::new();
    let mut waiting = VecDeque::from([from]);
    while let Some(at) = waiting.pop_front() {
        for to in onward.get(&at).into_iter().flatten() {
            before.entry(*to).or_insert_with(|| {
                waiting.push_back(*to);
                at
            });
        }
    }
    before
}
