//! The contract as Rust types, generated from `wit/policy.wit`, and its version.

/// The package every policy imports and exports interfaces of.
pub const PACKAGE: &str = "pmk:policy";

/// The version this host offers. A component built against an older minor of the same major runs too.
pub const VERSION: &str = "1.2.0";

/// The full name of one of the contract's interfaces, as components import and export it.
pub fn interface(name: &str) -> String {
    format!("{PACKAGE}/{name}@{VERSION}")
}

/// The imports of the contract. Exports are looked up one by one ([`crate::policy`]), because a component may have
/// any subset of them.
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

/// The handles a component holds. There is one resource of each kind in a decision and it lives in the
/// store's state, so a handle carries nothing.
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
