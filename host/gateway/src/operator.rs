//! What operators may change and who may do it, on the command line and by commands in conversations.

pub mod admin;
pub mod admins;
pub mod case_service;
pub mod command;
pub mod model_trouble;
pub mod permissions;
