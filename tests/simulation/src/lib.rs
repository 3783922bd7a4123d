//! Whole turns, the real code, real components, real SQL: in one thread, in virtual time, from one seed. The world around
//! the gateway is simulated, and goes wrong in every way and order that the seed says.
//!
//! [`scenario`] draws up what is to happen, and [`deeds`] what people do besides asking; [`run()`] has it happen: a [`life`] after the other of a gateway between
//! [`slack`] and a [`model`], on a [`disk`] that fails, in a [`world`] that says what time it is, what goes wrong now and
//! when the process is killed; [`damage`] is done between two lives. At the end a [`verdict`] is given. [`shrink()`] makes a
//! failing case small.

#[path = "../../../host/policy/tests/policies/component.rs"]
mod component;
mod course;
mod damage;
mod database;
mod deeds;
mod disk;
mod life;
mod model;
mod policies;
mod random;
mod run;
mod scenario;
mod shrink;
mod slack;
mod verdict;
mod wire;
mod witness;
mod world;

pub use database::Fence;
pub use policies::Policies;
pub use run::{Hosts, run};
pub use scenario::{FIRST_OF_STOPS, Scenario};
pub use shrink::shrink;
pub use verdict::Outcome;
