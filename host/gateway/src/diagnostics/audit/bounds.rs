//! The learned bounds of a model's window, for display.

use jiff::Timestamp;
use serde::Serialize;

use crate::calibration::bounds::{Bounds, Hold, Named, Refused};

/// One bound, and its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// `refused`: requests of that size and above are not sent. `window`: a window size that a refusal named.
    pub kind: &'static str,
    /// In the host's estimate of a whole request; for a window, in the provider's tokens.
    pub tokens: u64,
    /// The largest request that is sent while the bound holds, in the host's estimate.
    pub most: Option<u64>,
    /// How it is known: `named`, `refused`, `unexplained`, `empty`.
    pub source: &'static str,
    pub learnt: String,
    /// When it expires: after that a larger request is tried.
    pub until: String,
    /// How often something above it was refused.
    pub times: u32,
}

impl Bound {
    fn new(kind: &'static str, tokens: u64, most: Option<u64>, source: &'static str, hold: Hold) -> Bound {
        let Hold { learnt_ms, until_ms, times } = hold;
        Bound { kind, tokens, most, source, learnt: time(learnt_ms), until: time(until_ms), times }
    }
}

/// Returns all bounds known of a model.
pub(super) fn shown(bounds: &Bounds) -> Vec<Bound> {
    let refused = bounds.refused.as_ref();
    let refused = refused.map(|refused @ Refused { size, source, hold, .. }| {
        Bound::new("refused", *size, Some(refused.most()), source.name(), *hold)
    });
    let named = bounds.named.map(|Named { tokens, hold }| Bound::new("window", tokens, None, "named", hold));
    refused.into_iter().chain(named).collect()
}

fn time(ms: i64) -> String {
    let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}
