//! Who is answered, what they may do, and for which audience an answer is written.

pub mod audience;
pub mod authorization;
pub mod people;
