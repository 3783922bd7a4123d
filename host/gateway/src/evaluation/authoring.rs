//! What a policy's author has at the desk: a project to begin with, and recorded conversations to try it on
//! before it decides anything live.
//!
//! [`scaffold`] writes the project, [`dev`] shows what each save of it changes, [`check`] holds a component against every
//! rule, [`cases`] against what it did before, [`bench`](mod@bench) measures it. [`recorded`] reads conversations,
//! [`histories`] makes some, and [`stage`] asks one policy alone, with settings as they come.

pub mod bench;
pub mod cases;
pub mod check;
pub mod dev;
pub mod histories;
mod ranges;
pub mod recorded;
pub mod scaffold;
pub mod stage;
