use proptest::prelude::*;

use super::*;

const HOUR: i64 = FIRST_HOLD_MS;

fn one() -> SessionId {
    SessionId::of(1)
}

fn other() -> SessionId {
    SessionId::of(2)
}

/// Bounds for which 10,000 was answered and 30,000 refused, since 0.
fn known() -> Bounds {
    let mut bounds = Bounds::default();
    bounds.answered(one(), 10_000, None, 0);
    bounds.refused(one(), 30_000, None, Source::Refused, 0);
    bounds
}

#[test]
fn nothing_known_bounds_nothing() {
    let mut bounds = Bounds::default();
    assert_eq!(bounds.most(one(), 0), None);
    assert_eq!(bounds.window(200_000, one(), 0), 200_000);
    assert!(!bounds.may_try_more(one(), 0));
    assert!(bounds.may_be_too_large(1, Source::Empty));
}

#[test]
fn the_limit_lies_between_what_was_answered_and_what_was_refused() {
    let mut bounds = known();
    assert_eq!(bounds.most(one(), 0), Some(20_000));
    bounds.answered(one(), 20_000, None, 1);
    assert_eq!(bounds.most(one(), 1), Some(25_000));
    bounds.refused(one(), 24_000, None, Source::Refused, 2);
    bounds.answered(one(), 23_000, None, 3);
    assert_eq!(bounds.most(one(), 3), Some(23_000), "close enough: what was answered is the limit");
}

#[test]
fn what_cannot_be_smaller_goes_up_to_what_was_refused() {
    let mut bounds = known();
    assert_eq!((bounds.most(one(), 0), bounds.most_alone(one(), 0)), (Some(20_000), Some(29_999)));
    assert!(bounds.may_try_more(one(), HOUR));
    assert_eq!((bounds.most_alone(one(), HOUR), bounds.most_alone(other(), HOUR)), (Some(45_000), Some(29_999)));
}

#[test]
fn a_refusal_below_what_was_answered_begins_anew() {
    let mut bounds = known();
    bounds.refused(other(), 8_000, None, Source::Refused, 1);
    assert_eq!(bounds.most(one(), 1), Some(4_000));
    assert_eq!(bounds.answered.map(|answered| answered.size), Some(10_000), "which is remembered all the same");
}

#[test]
fn numbers_that_are_believed_keep_requests_below_the_refused_one_and_no_more() {
    let mut bounds = Bounds::default();
    assert!(bounds.refused(one(), 30_000, Some(32_768), Source::Refused, 0));
    assert_eq!(bounds.most(one(), 0), Some(29_999));
    assert_eq!(bounds.window(200_000, one(), 0), 32_768);
}

#[test]
fn a_named_window_below_what_was_answered_is_not_believed() {
    let mut bounds = Bounds::default();
    bounds.answered(one(), 9_000, Some(12_000), 0);
    assert!(!bounds.refused(one(), 20_000, Some(4_096), Source::Refused, 1));
    assert_eq!(
        (bounds.window(50_720, one(), 1), bounds.refused.map(|refused| refused.source)),
        (50_720, Some(Source::Refused))
    );
    // After two days without such an answer, it may have become true.
    assert!(bounds.refused(one(), 15_000, Some(4_096), Source::Refused, 48 * HOUR));
    assert_eq!(bounds.window(50_720, one(), 48 * HOUR), 4_096);
}

/// Regression: (101k, 40k) replaced (100k, 60k), and a named 50,000 was believed.
#[test]
fn a_larger_size_with_a_smaller_count_forgets_no_count() {
    let mut bounds = Bounds::default();
    bounds.answered(one(), 100_000, Some(60_000), 0);
    bounds.answered(one(), 101_000, Some(40_000), 1);
    assert!(!bounds.refused(one(), 120_000, Some(50_000), Source::Refused, 2));
}

/// Regression: after a day, the next answer of any size replaced the largest.
#[test]
fn a_small_answer_on_the_next_day_forgets_nothing_of_the_day_before() {
    let mut bounds = Bounds::default();
    bounds.answered(one(), 60_000, None, 23 * HOUR);
    bounds.answered(one(), 500, None, 48 * HOUR);
    assert!(!bounds.may_be_too_large(1_100, Source::Empty));
    assert!(!bounds.refused(one(), 70_000, Some(4_096), Source::Refused, 49 * HOUR - 60_000));
    // What is not seen again is eventually forgotten.
    bounds.answered(one(), 500, None, 73 * HOUR);
    assert!(bounds.refused(one(), 70_000, Some(4_096), Source::Refused, 73 * HOUR));
}

#[test]
fn one_refusal_does_not_pin_the_window_for_good() {
    let mut bounds = Bounds::default();
    assert!(bounds.refused(one(), 6_000, Some(4_096), Source::Refused, 0));
    assert!(!bounds.may_try_more(one(), HOUR - 1));
    assert!(bounds.may_try_more(one(), HOUR));
    assert_eq!(bounds.window(50_720, one(), HOUR), 6_144);
    bounds.answered(one(), 6_100, Some(6_100), HOUR);
    assert_eq!((bounds.window(50_720, one(), HOUR), bounds.most(one(), HOUR)), (50_720, None));
}

#[test]
fn one_conversation_at_a_time_goes_above_an_expired_bound() {
    let mut bounds = known();
    assert!(bounds.may_try_more(one(), HOUR) && bounds.may_try_more(one(), HOUR));
    assert!(!bounds.may_try_more(other(), HOUR));
    assert_eq!((bounds.most(one(), HOUR), bounds.most(other(), HOUR)), (Some(45_000), Some(20_000)));
    // A conversation that never returns does not block the others.
    assert!(bounds.may_try_more(other(), HOUR + TRIAL_MS));
    assert_eq!(bounds.most(one(), HOUR + TRIAL_MS), Some(20_000));
}

#[test]
fn a_trial_that_is_refused_doubles_the_time_up_to_a_week() {
    let mut bounds = known();
    let mut now = 0;
    for hours in [1, 2, 4, 8, 16, 32, 64, 128, 168, 168] {
        assert!(!bounds.may_try_more(one(), now + hours * HOUR - 1), "{hours}");
        now += hours * HOUR;
        assert!(bounds.may_try_more(one(), now), "{hours}");
        bounds.refused(one(), 31_000, None, Source::Refused, now);
    }
    assert_eq!(bounds.refused.map(|refused| (refused.size, refused.hold.learnt_ms)), Some((30_000, 0)));
}

#[test]
fn requests_that_were_under_way_confirm_nothing() {
    let mut bounds = known();
    for n in 0..9 {
        bounds.refused(SessionId::of(n), 31_000, None, Source::Refused, 5);
    }
    assert_eq!(bounds.refused.map(|refused| refused.hold.until_ms), Some(HOUR));
}

#[test]
fn what_happens_to_a_small_prompt_is_not_about_its_size() {
    let bounds = known();
    for (source, edge) in [(Source::Empty, 9_000), (Source::Unexplained, 2_500)] {
        assert!(bounds.may_be_too_large(edge, source) && !bounds.may_be_too_large(edge - 1, source), "{source:?}");
    }
}

proptest! {
    /// While a bound holds, no size is refused twice, whatever the model's window, and the search ends after a
    /// few refusals.
    #[test]
    fn no_size_is_refused_twice(window in 2_000u64..200_000, wishes in prop::collection::vec(500u64..600_000, 1..60)) {
        let mut bounds = Bounds::default();
        let mut refused = Vec::new();
        for wish in wishes {
            let mut size = wish.min(bounds.most(one(), 0).unwrap_or(u64::MAX));
            while size > window {
                prop_assert!(!refused.iter().any(|&known| known <= size), "{size} after {refused:?}");
                refused.push(size);
                bounds.refused(one(), size, None, Source::Refused, 0);
                size = size.min(bounds.most(one(), 0).unwrap_or(u64::MAX));
            }
            bounds.answered(one(), size, None, 0);
        }
        prop_assert!(refused.len() <= 16, "{refused:?}");
    }
}

#[test]
fn what_two_hosts_have_learnt_is_known_by_both_but_what_was_answered_since() {
    let session = SessionId::of(1);
    let (mut one, mut other) = (Bounds::default(), Bounds::default());
    one.refused(session, 1_000, None, Source::Refused, 1);
    other.answered(session, 400, None, 2);
    let both = other.and_stored(&one);
    assert_eq!(both.refused.map(|refused| refused.size), Some(1_000), "of a host that has not met it");
    assert_eq!(both.answered.map(|answered| answered.size), Some(400));
    assert_eq!(one.and_stored(&other).refused, both.refused, "whoever of them stores it");
    other.answered(session, 1_200, None, 3);
    assert_eq!(other.and_stored(&one).refused, None, "it fits");
    assert_eq!(one.and_stored(&other).refused, None);
    other.refused(session, 1_500, None, Source::Refused, 4);
    assert_eq!(one.and_stored(&other).refused.map(|refused| refused.size), Some(1_500));
}

/// Regression: what had fitted since, and for how long the bound holds, was never stored; every few seconds the former
/// state came back.
#[test]
fn what_a_host_had_learnt_of_a_bound_since_it_was_stored_was_lost() {
    let stored = known();
    let mut mine = stored;
    mine.answered(one(), 20_000, None, 1);
    assert!(mine.may_try_more(one(), HOUR));
    mine.refused(one(), 31_000, Some(32_768), Source::Refused, HOUR);
    mine.refused(one(), 32_000, Some(32_768), Source::Refused, 2 * HOUR);
    let refused = mine.refused.expect("a bound");
    assert_eq!((refused.fits, refused.hold.learnt_ms, refused.hold.times), (20_000, 0, 2));
    assert_eq!(mine.named.map(|named| named.hold.times), Some(2));
    for both in [mine.and_stored(&stored), stored.and_stored(&mine), mine.with_stored(&stored)] {
        assert_eq!((both.refused, both.named), (mine.refused, mine.named));
    }
    // Each of two hosts may know something that the other does not.
    let mut theirs = stored;
    theirs.answered(other(), 25_000, None, 2);
    let both = theirs.and_stored(&mine).refused.map(|refused| (refused.fits, refused.hold));
    assert_eq!(both, Some((25_000, refused.hold)));
}

/// Regression: a server whose window became smaller was asked for as much as ever, and refused it each time.
#[test]
fn a_refusal_below_what_another_host_was_answered_before_was_not_stored() {
    let (mut mine, mut theirs) = (Bounds::default(), Bounds::default());
    theirs.answered(other(), 50_000, None, 0);
    mine.refused(one(), 30_000, None, Source::Refused, 1);
    // Neither is a small answer on any host one of the refused size.
    theirs.answered(other(), 500, None, 2);
    mine.answered(one(), 600, None, 3);
    for both in [mine.and_stored(&theirs), theirs.and_stored(&mine)] {
        assert_eq!(both.refused.map(|refused| (refused.size, refused.fits)), Some((30_000, 600)));
        assert_eq!(both.answered.map(|answered| (answered.size, answered.at_ms)), Some((50_000, 0)));
        theirs = both;
    }
    // But one since is, although a larger one was answered before.
    let stored = theirs;
    theirs.answered(other(), 40_000, None, 4);
    for both in [theirs.and_stored(&stored), stored.and_stored(&theirs), mine.and_stored(&theirs)] {
        assert_eq!(both.refused, None);
    }
}

/// Regression: it counted as an answer of the largest size, because the provider had counted more tokens for it, or more
/// than a window that had been named.
#[test]
fn a_small_answer_of_many_tokens_made_hosts_forget_what_was_refused() {
    for window in [None, Some(45_500)] {
        let mut mine = Bounds::default();
        mine.answered(one(), 50_000, Some(45_000), 0);
        mine.refused(one(), 40_000, window, Source::Refused, 1);
        mine.answered(one(), 20_000, Some(46_000), 2);
        assert_eq!(mine.and_stored(&mine).refused.map(|refused| refused.size), Some(40_000), "{window:?}");
        assert_eq!(mine.and_stored(&mine).named, None);
    }
}

#[test]
fn what_is_adopted_leaves_a_conversation_its_trial() {
    let mut bounds = known();
    assert!(bounds.may_try_more(one(), HOUR));
    bounds = bounds.with_stored(&Bounds::default());
    assert_eq!((bounds.most(one(), HOUR), bounds.most(other(), HOUR)), (Some(45_000), Some(20_000)));
}
