//! The control socket of a running gateway: a Unix domain socket, `<home>/gateway/control.sock`, for commands of the
//! account that runs it and nobody else (mode 0600, and the caller's user id is compared).
//!
//! One connection is one exchange: a line of JSON in, a line of JSON out, both UTF-8, then the gateway closes. A
//! request has at most 64 KiB and must arrive within five seconds; the answer takes as long as the work does. Requests
//! do not wait for each other.
//!
//! | request | what happens |
//! |---|---|
//! | `{"command":"policy.use","files":["/path/a.wasm"]}` | the components of these files decide from the next turn on, the last on top; paths are absolute |
//! | `{"command":"policy.previous"}` | the previous components decide again, with the settings and limits of now |
//! | `{"command":"policy.start","files":["/path/a.wasm"],"settings":{}}` | nothing; returns whether the gateway would start with these in gateway.json, if it were started again with the same options |
//! | `{"command":"status"}` | nothing; returns the status of the gateway |
//! | `{"command":"sessions.retry","key":"slack:dm:U1"}` | parked messages of that conversation are retried; without `key`, those of all |
//!
//! A completed swap is answered with `{"type":"swapped"}` and the fields of [`Swapped`], a start with `{"type":"start"}`
//! and the fields of [`StartLook`], retried messages with `{"type":"retried","messages":N,"unreadable":N}`, the status
//! with `{"type":"status"}` and the fields of [`Report`]. An error is answered with
//! `{"type":"error","message":…,"hint":…}`, as everywhere else, and changes nothing. Later versions may add requests and
//! fields; an unknown request is an error, an unknown field of an answer must be ignored.
//!
//! The socket belongs to the process that holds the home's lock. One left behind by a crash does not answer and is
//! replaced at the next start; an orderly stop removes it.

use std::path::PathBuf;

use pmk_core::SessionKey;
use pmk_policy::ConfiguredSettings;
use pmk_system::error::Failure;
use serde::{Deserialize, Serialize};

use crate::{
    policies::{StartLook, Swapped},
    presence::health::Report,
};

mod client;
mod look;
mod server;

pub use client::{ask, ask_within, listener};
pub use look::{Look, look};
pub use server::{Commands, Server};

/// The most bytes of a request.
const MAX_REQUEST_BYTES: u64 = 64 << 10;

/// A request to a running gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", deny_unknown_fields)]
pub enum Request {
    /// Make these components decide.
    #[serde(rename = "policy.use")]
    PolicyUse { files: Vec<PathBuf> },
    /// Make the previous policies decide again.
    #[serde(rename = "policy.previous")]
    PolicyPrevious,
    /// Look whether the gateway would start with these files and settings in gateway.json.
    #[serde(rename = "policy.start")]
    PolicyStart { files: Vec<PathBuf>, settings: ConfiguredSettings },
    /// Retry parked messages, of one conversation or of all.
    #[serde(rename = "sessions.retry")]
    SessionsRetry {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<SessionKey>,
    },
    /// Return the status.
    #[serde(rename = "status")]
    Status,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Reply {
    Swapped(Swapped),
    Start(StartLook),
    Retried { messages: usize, unreadable: usize },
    Status(Report),
    Error { message: String, hint: Option<String> },
}

impl Reply {
    /// Converts an answer that is not the expected one to a failure.
    pub fn unexpected(self) -> Failure {
        match self {
            Reply::Error { message, hint: Some(hint) } => Failure::new(message).hint(hint),
            Reply::Error { message, hint: None } => Failure::new(message),
            Reply::Swapped(_) | Reply::Start(_) | Reply::Retried { .. } | Reply::Status(_) => {
                Failure::new("the gateway sent the answer to another request")
                    .hint("run the gateway and this command from the same version of pmk-host")
            }
        }
    }
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
            (
                r#"{"command":"policy.start","files":["/path/a.wasm"],"settings":{}}"#,
                Request::PolicyStart { files: vec!["/path/a.wasm".into()], settings: ConfiguredSettings::new() },
            ),
            (r#"{"command":"status"}"#, Request::Status),
            (r#"{"command":"sessions.retry"}"#, Request::SessionsRetry { key: None }),
            (
                r#"{"command":"sessions.retry","key":"slack:dm:U1"}"#,
                Request::SessionsRetry { key: Some("slack:dm:U1".parse().expect("a key")) },
            ),
        ] {
            assert_eq!(serde_json::from_str::<Request>(text).expect(text), request);
            assert_eq!(serde_json::to_string(&request).expect(text), text);
        }
        assert!(serde_json::from_str::<Request>(r#"{"command":"stop"}"#).is_err());
    }
}
