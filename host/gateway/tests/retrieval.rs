//! The figures of `docs/retrieval.md`, held; and that the set is what it says it is.

#[path = "../examples/retrieval/measure.rs"]
mod measure;

use std::collections::HashSet;

use measure::{AskedAs, Figures, Part};
use pmk_search::folded_terms;
const PARTS: [&str; 3] = ["tuned-1", "tuned-2", "held-out"];

/// As many as a team has after its first week.
const FEW: usize = 8;

fn assert_held(figures: &Figures, found: f64, wrong: f64) {
    assert!(figures.found_share() >= found, "only {} of {}: {:#?}", figures.found, figures.asked, figures.missed);
    assert!(figures.wrong_share() <= wrong, "{} of {}: {:#?}", figures.wrong.len(), figures.other, figures.wrong);
}

/// Once, 77 of 160 found their atom, with other phrasings in the file or without.
#[test]
fn questions_in_other_words_find_what_nothing_was_tuned_on() {
    let part = Part::read("held-out");
    assert_held(&part.measure(AskedAs::Written, part.atoms.len()), 0.95, 0.058);
    assert_held(&part.measure(AskedAs::Written, FEW), 0.94, 0.02);
    assert_held(&part.measure(AskedAs::Missing, FEW), 0.65, 0.02);
}

#[test]
fn questions_find_what_retrieval_was_tuned_on() {
    for name in ["tuned-1", "tuned-2"] {
        let part = Part::read(name);
        assert_held(&part.measure(AskedAs::Written, FEW), 0.93, 0.025);
        assert_held(&part.measure(AskedAs::Missing, FEW), 0.72, 0.02);
    }
}

#[test]
fn the_set_is_as_large_and_as_honest_as_it_says() {
    for name in PARTS {
        let part = Part::read(name);
        assert!(part.atoms.len() >= 32 && part.other().count() >= 60, "{name}");
        for known in &part.atoms {
            assert_eq!(known.asked.len(), 5, "{}", known.question);
            for asked in &known.asked {
                for written in known.asked_as.iter().chain([&known.question]) {
                    assert!(likeness(asked, written) < 0.8, "{name}: `{asked}` is nearly `{written}`");
                }
            }
        }
    }
}

/// What two phrasings share of all that is in them.
fn likeness(one: &str, other: &str) -> f64 {
    let (one, other): (HashSet<String>, HashSet<String>) =
        (folded_terms(one).into_iter().collect(), folded_terms(other).into_iter().collect());
    let all = one.union(&other).count();
    if all == 0 { 0.0 } else { one.intersection(&other).count() as f64 / all as f64 }
}
