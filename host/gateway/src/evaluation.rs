//! What tries policies away from people: what their authors work with, comparisons on recorded conversations, and the demo.

pub mod authoring;
pub mod compare;
pub mod demo;
