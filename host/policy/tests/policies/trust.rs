//! Components that the operator does not trust are not loaded.

use pmk_policy::{LoadError, Policy, Runtime, Trust};

use crate::{component::Component, good, runtime, small_limits};

fn load(trust: Trust, component: &Component) -> Result<Policy, LoadError> {
    Policy::from_bytes(&runtime().under(small_limits(), trust), "p.wasm", &component.build())
}

fn allowing(digests: &[&str]) -> Trust {
    Trust { allow: Some(digests.iter().map(|&digest| digest.to_owned()).collect()), ..Trust::default() }
}

#[test]
fn only_digests_that_are_allowed_are_loaded() {
    let sha256 = load(Trust::default(), &good()).unwrap().identity().sha256.clone();
    assert!(load(allowing(&[&sha256]), &good()).is_ok());
    for trust in [allowing(&[]), allowing(&[&"0".repeat(64)])] {
        let error = load(trust, &good()).unwrap_err();
        let message = format!("policy `p.wasm` is not allowed: its sha256 {sha256} is not in `policy.allow`");
        assert_eq!(error.to_string(), message);
        assert!(error.hint().unwrap().contains(&sha256));
    }
}

#[test]
fn what_is_not_allowed_is_not_even_compiled() {
    let broken = [b"\0asm\x0d\0\x01\0".to_vec(), vec![0xff; 9]].concat();
    let load = |runtime: &Runtime| Policy::from_bytes(runtime, "p.wasm", &broken).unwrap_err();
    assert!(matches!(load(&runtime()), LoadError::Invalid { .. }));
    let strict = runtime().under(small_limits(), allowing(&[]));
    assert!(matches!(load(&strict), LoadError::NotAllowed { .. }));
}

#[test]
fn without_wasi_only_the_contract_may_be_imported() {
    let strict = || Trust { wasi: false, ..Trust::default() };
    assert!(load(strict(), &good()).is_ok());
    let curious = Component::pruning("(drop (call $now))");
    assert!(load(Trust::default(), &curious).is_ok());
    let error = load(strict(), &curious).unwrap_err();
    assert!(error.to_string().contains("imports `wasi:clocks/monotonic-clock@0.2.3`"), "{error}");
    assert!(error.hint().unwrap().contains("wasm32-unknown-unknown"));
}
