//! The prices of host calls.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use pmk_core::Origin;
use pmk_policy::{IncomingInput, OverflowInput, Record, Rung, Stack, prices};

use crate::{
    component::{
        Component,
        functions::{FUNCTIONS, Function},
    },
    layer, room, runtime, transcript,
};

/// The functions of the contract, named as in `policy inspect`.
fn offered() -> BTreeSet<String> {
    let contract = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/policy.wit")).unwrap();
    let (imports, _) = contract.split_once("interface describe").unwrap();
    let mut resource = String::new();
    let mut offered = BTreeSet::new();
    for line in imports.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("resource ").and_then(|rest| rest.strip_suffix(" {")) {
            resource = format!("{name}.");
        } else if let Some((name, _)) = line.split_once(": func(").filter(|_| !line.starts_with("///")) {
            offered.insert(resource.clone() + name.trim_start_matches('%'));
        }
    }
    offered
}

#[test]
fn every_call_of_the_contract_has_a_price() {
    let priced: BTreeSet<String> = prices::OF_CALLS.iter().map(|(call, ..)| (*call).to_owned()).collect();
    assert_eq!(priced, offered());
    let called = FUNCTIONS.iter().filter(|function| ["host", "context"].contains(&function.interface));
    assert_eq!(called.map(|function| function.shown().to_owned()).collect::<BTreeSet<_>>(), offered());
}

#[test]
fn the_prices_are_these() {
    let mut table = String::new();
    for (call, fuel, more) in prices::OF_CALLS {
        writeln!(table, "{call}: {fuel}{}{more}", if more.is_empty() { "" } else { ", " }).unwrap();
    }
    let parts = [
        ("ELEMENT", prices::ELEMENT),
        ("LOOKED_UP", prices::LOOKED_UP),
        ("BYTE", prices::BYTE),
        ("WALKED_BYTE", prices::WALKED_BYTE),
        ("COUNTED_BYTE", prices::COUNTED_BYTE),
        ("HANDLE", prices::HANDLE),
        ("EDIT", prices::EDIT),
        ("READ", prices::READ),
        ("MESSAGE", prices::MESSAGE),
        ("ROW", prices::ROW),
        ("SEARCH", prices::SEARCH),
        ("LENGTH", prices::LENGTH),
        ("SEARCHED", prices::SEARCHED),
        ("TERM", prices::TERM),
        ("DOCUMENT", prices::DOCUMENT),
        ("PLACE", prices::PLACE),
    ];
    parts.iter().for_each(|(name, fuel)| writeln!(table, "{name} = {fuel}").unwrap());
    insta::assert_snapshot!(table);
}

/// Fuel of a decision in which a function is called this many times with all arguments zero, mostly without effect.
fn fuel_of(function: &Function, times: usize) -> u64 {
    let runtime = runtime();
    let component = Component::new().export(function.export(), &function.call().repeat(times));
    let stack = Stack::new([], layer(&runtime, &component.realloc("", "(i32.const 65536)")));
    ask(&stack, function.export()).fuel
}

fn ask(stack: &Stack, export: &str) -> Record {
    let transcript = transcript(5);
    let text = "a line of what was found".into();
    let incoming = IncomingInput { kind: Origin::ToolResult, name: String::new(), text, limit: 8_000 };
    let overflow = OverflowInput { available: vec![Rung::Trim], ..OverflowInput::default() };
    let mut records = match export {
        "prune" => stack.prune(&transcript, room()).records,
        "summarize" => stack.summarize(&transcript, 600).records,
        "cap" => stack.cap(incoming).records,
        _ => stack.recover(overflow).records,
    };
    records.remove(0)
}

#[test]
fn nothing_is_asked_for_below_its_price() {
    // A self-description leaves no record; that fuel limits it is tested in the hostile corpus.
    for function in FUNCTIONS.iter().filter(|function| function.export() != "describe") {
        let Some((call, fuel, _)) = prices::OF_CALLS.iter().find(|(call, ..)| *call == function.shown()) else {
            continue;
        };
        let cost = fuel_of(function, 2) - fuel_of(function, 1);
        assert!(cost >= *fuel, "{call} costs {cost}, not the {fuel} of the table");
    }
}
