//! How an operator talks to a running gateway: a Unix domain socket, `<home>/gateway/control.sock`, for commands of the
//! account that runs it and nobody else (mode 0600, and the caller's user id is compared).
//!
//! One connection is one exchange: a line of JSON in, a line of JSON out, both UTF-8, then the gateway closes. A
//! request has at most 64 KiB and must be there within five seconds; the answer takes as long as the work does.
//! Requests are answered one after the other.
//!
//! | request | what happens |
//! |---|---|
//! | `{"command":"policy.use","files":["/path/a.wasm"]}` | the components of these files decide from the next turn on, the last on top; paths are absolute |
//! | `{"command":"policy.previous"}` | those decide again that decided before, as they were then |
//!
//! A swap that was made is answered with `{"type":"swapped"}` and the fields of [`Swapped`]; whatever went wrong with
//! `{"type":"error","message":…,"hint":…}`, as everywhere else, and then everything is as it was. Later versions may
//! add requests and fields; an unknown request is an error, an unknown field of an answer is to be passed over.
//!
//! The socket belongs to whoever holds the home's lock. One that a crash left behind answers nobody and is replaced
//! at the next start; an orderly stop removes it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{home, policies::Swapped};

mod client;
mod server;

pub use client::ask;
pub use server::Server;

/// The most bytes of a request.
const MAX_REQUEST_BYTES: u64 = 64 << 10;

/// What a gateway can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", deny_unknown_fields)]
pub enum Request {
    /// Have these components decide.
    #[serde(rename = "policy.use")]
    PolicyUse { files: Vec<PathBuf> },
    /// Have those decide that did before.
    #[serde(rename = "policy.previous")]
    PolicyPrevious,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Reply {
    Swapped(Swapped),
    Error { message: String, hint: Option<String> },
}

fn socket(home: &Path) -> PathBuf {
    home::gateway_dir(home).join("control.sock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_as_documented() {
        for (text, request) in [
            (
                r#"{"command":"policy.use","files":["/path/a.wasm"]}"#,
                Request::PolicyUse { files: vec!["/path/a.wasm".into()] },
            ),
            (r#"{"command":"policy.previous"}"#, Request::PolicyPrevious),
        ] {
            assert_eq!(serde_json::from_str::<Request>(text).expect(text), request);
            assert_eq!(serde_json::to_string(&request).expect(text), text);
        }
        assert!(serde_json::from_str::<Request>(r#"{"command":"stop"}"#).is_err());
    }
}
