//! Deterministic simulation: whole turns with the real code, real components and real SQL, in one thread, in virtual
//! time, from one seed. The gateway's environment is simulated, and fails in every way and order that the seed
//! determines.
//!
//! [`scenario`] plans what happens, [`deeds`] what people do besides asking, [`erasing`] what operators erase, and
//! [`retrying`] what they retry, and [`aging`] what is erased for its age; [`run()`] executes it: one [`life`] of a gateway after the other, between [`slack`] and a [`model`], on a [`disk`]
//! that fails, in a [`world`] that determines the time, the current trouble and when the process is killed; [`damage`]
//! is done between two lives. At the end there is a [`verdict`]. [`shrink()`] minimises a failing case.

mod aging;
#[path = "../../../host/policy/tests/policies/component.rs"]
mod component;
mod course;
mod damage;
mod database;
mod deeds;
mod disk;
mod erasing;
mod life;
mod model;
mod panics;
mod policies;
mod random;
mod retrying;
mod run;
mod scenario;
mod shrink;
mod slack;
mod verdict;
mod wire;
mod wiring;
mod witness;
mod world;

pub use database::Fence;
pub use policies::Policies;
pub use run::{Hosts, run};
pub use scenario::{FIRST_OF_STOPS, Scenario};
pub use shrink::shrink;
pub use verdict::Outcome;
