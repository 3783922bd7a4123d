//! A dry run: no call that writes reaches Slack. Each such call is counted, logged, and answered as if it had
//! succeeded; calls that read are made.

use std::sync::atomic::{AtomicU64, Ordering};

use pmk_core::text;
use pmk_system::clock;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::failure::Cause;
/// The most characters of a text that are logged.
const MAX_TEXT_CHARS: usize = 500;

/// The number of calls that were not made.
#[derive(Debug, Default)]
pub(super) struct DryRun {
    calls: AtomicU64,
}

impl DryRun {
    /// Notes a call, and returns its response.
    pub(super) fn answer<Q: Serialize, R: DeserializeOwned>(&self, method: &str, request: &Q) -> Result<R, Cause> {
        let request = serde_json::to_value(request).unwrap_or_default();
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::info!("{}", line(method, &request));
        // An edited message keeps its id; a new message gets one.
        let ts = request["ts"].as_str().map_or_else(|| made_up_ts(number), str::to_owned);
        let answer = json!({"ok": true, "channel": request["channel"], "ts": ts, "files": []});
        serde_json::from_value(answer).map_err(|_| Cause::Unreadable)
    }
}

impl Drop for DryRun {
    fn drop(&mut self) {
        let calls = self.calls.load(Ordering::Relaxed);
        tracing::info!("[dry-run] {calls} calls were not made");
    }
}

fn line(method: &str, request: &Value) -> String {
    let channel = ["channel", "channel_id"].iter().find_map(|key| request[*key].as_str()).unwrap_or_default();
    let said = ["text", "markdown_text", "status"].iter().find_map(|key| request[*key].as_str());
    let text = text::head(said.unwrap_or_default(), MAX_TEXT_CHARS);
    // As JSON: one line, whatever is in it.
    format!("[dry-run] {method} channel={channel} text={}", json!(text))
}

/// Returns a unique `ts` for a message that was never posted, with the current time.
fn made_up_ts(number: u64) -> String {
    format!("{}.{:06}", clock::now_ms() / 1_000, number % 1_000_000)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Posted {
        ts: String,
    }

    #[test]
    fn a_call_is_answered_and_told_on_one_line() {
        let dry_run = DryRun::default();
        let post = json!({"channel": "C1", "text": "two\nlines \"quoted\""});
        assert_eq!(
            line("chat.postMessage", &post),
            r#"[dry-run] chat.postMessage channel=C1 text="two\nlines \"quoted\"""#
        );
        let ids = [(); 2].map(|()| dry_run.answer::<_, Posted>("chat.postMessage", &post).expect("an answer").ts);
        assert_ne!(ids[0], ids[1]);
        let update = json!({"channel": "C1", "ts": "1.000001", "text": "x"});
        assert_eq!(dry_run.answer::<_, Posted>("chat.update", &update).expect("an answer").ts, "1.000001");
        assert_eq!(dry_run.calls.load(Ordering::Relaxed), 3);
    }
}
