//! A deterministic stand-in with a real context window.
