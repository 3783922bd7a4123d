use pmk_policy_sdk::{
    rung,
    testing::{Harness, Refused},
};
use standard::Standard;

#[test]
fn the_ladder_goes_from_mild_to_harsh() {
    let harness = Harness::<Standard>::new();
    let mut tried = vec![];
    for expected in [rung::TRIM, rung::COMPACT, rung::ROTATE, rung::GIVE_UP] {
        let chosen = harness.recover(Refused { tried: tried.clone(), ..Refused::default() });
        assert_eq!(chosen, Some(expected));
        tried.push(expected);
    }
}

#[test]
fn a_rung_that_is_not_available_is_passed_over() {
    let available = vec![rung::ROTATE, rung::GIVE_UP];
    let chosen = Harness::<Standard>::new().recover(Refused { available, ..Refused::default() });
    assert_eq!(chosen, Some(rung::ROTATE));
}
