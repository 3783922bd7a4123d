//! The contract as Rust types, generated from `wit/policy.wit`, and its version.

/// The package of the interfaces that every policy imports and exports.
pub const PACKAGE: &str = "pmk:policy";

/// The version that this host offers. Components built against an older minor version of the same major run as well.
pub const VERSION: &str = "1.2.0";

/// The full name of one of the contract's interfaces, as components import and export it.
pub fn interface(name: &str) -> String {
    format!("{PACKAGE}/{name}@{VERSION}")
}

/// Whether a name is an interface of the contract, of any version.
pub(crate) fn is_of(name: &str) -> bool {
    name.strip_prefix(PACKAGE).is_some_and(|rest| rest.starts_with('/'))
}

/// The contract version of these interfaces; where they differ, the latest.
pub(crate) fn wanted<'a>(interfaces: impl Iterator<Item = &'a str>) -> Option<String> {
    let versions = interfaces.filter(|name| is_of(name)).filter_map(|name| name.split_once('@'));
    let numbers = |version: &str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    versions.map(|(_, version)| version).max_by_key(|version| numbers(version)).map(str::to_owned)
}

/// The imports of the contract. Exports are looked up one by one ([`crate::policy`]), because a component may have any
/// subset of them.
pub(crate) mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package pmk:runtime;
            world imports {
                import pmk:policy/host@1.2.0;
                import pmk:policy/context@1.2.0;
            }",
        world: "pmk:runtime/imports",
        imports: { default: trappable },
        with: {
            "pmk:policy/context.description": crate::contract::handle::Description,
            "pmk:policy/context.transcript": crate::contract::handle::Transcript,
            "pmk:policy/context.budget": crate::contract::handle::Budget,
            "pmk:policy/context.plan": crate::contract::handle::Plan,
            "pmk:policy/context.incoming": crate::contract::handle::Incoming,
            "pmk:policy/context.cap-verdict": crate::contract::handle::CapVerdict,
            "pmk:policy/context.overflow": crate::contract::handle::Overflow,
            "pmk:policy/context.recovery": crate::contract::handle::Recovery,
            "pmk:policy/context.summary": crate::contract::handle::Summary,
        },
    });
}

/// The handles that a component holds. A decision has one resource of each kind, stored in the store's state, so a
/// handle carries no data.
pub(crate) mod handle {
    pub struct Description;
    pub struct Transcript;
    pub struct Budget;
    pub struct Plan;
    pub struct Incoming;
    pub struct CapVerdict;
    pub struct Overflow;
    pub struct Recovery;
    pub struct Summary;
}
