//! The native side: the contract's resources, implemented on the host's own types, so that a policy can be tested and
//! timed without wasm. Names and methods are those of the bindings.

mod cap;
mod description;
mod plan;
mod recovery;
mod summary;
mod transcript;
mod value;

pub use cap::{CapVerdict, Incoming};
pub(crate) use description::{
    Decision, Declared, MAX_TEXT_CHARS, is_name, setting_boolean, setting_integer, setting_text, too_long,
};
pub use description::{Description, log};
pub use plan::{Budget, Plan};
pub use recovery::{Overflow, Recovery};
pub use summary::Summary;
pub use transcript::Transcript;
pub use value::Value;
