//! What operators change, who may, and how they say it: on the command line, or where people talk.

pub mod admin;
pub mod admins;
pub mod case_service;
pub mod command;
pub mod permissions;
