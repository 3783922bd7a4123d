//! Evaluates policies offline: the tools for policy authors, comparisons on recorded conversations, and the demo.

pub mod authoring;
pub mod compare;
pub mod demo;
