//! The wasm side: the imports of the contract.

pub(crate) mod imports {
    wit_bindgen::generate!({ path: ["../../wit", "wit"], world: "pmk:sdk/imports", generate_all });
}

pub(crate) use imports::pmk::policy::host::{setting_boolean, setting_integer, setting_text};
pub use imports::pmk::policy::{
    context::{Budget, CapVerdict, Description, Incoming, Overflow, Plan, Recovery, Summary, Transcript},
    host::log,
};
