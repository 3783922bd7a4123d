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
        // A direct message is opened with a person; what is sent there names them.
        let channel = match request["users"].as_str() {
            Some(person) => json!({"id": person}),
            None => request["channel"].clone(),
        };
        let message = json!({"metadata": request["metadata"]});
        let answer = json!({"ok": true, "channel": channel, "ts": ts, "message": message, "files": []});
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

    /// Regression: a turn that wrote to somebody in a direct message never ended, as its channel was not understood; and
    /// after one stream, Slack was taken for not keeping the metadata of any.
    #[test]
    fn the_channel_of_a_direct_message_and_the_metadata_of_a_stream_were_missing() {
        let answer =
            |method: &str, request: Value| DryRun::default().answer::<_, Value>(method, &request).expect("an answer");
        assert_eq!(answer("conversations.open", json!({"users": "U1"}))["channel"]["id"], "U1");
        let metadata = json!({"event_type": "pmk_host_part", "event_payload": {"part": "0"}});
        let stop = json!({"channel": "C1", "ts": "1.000001", "metadata": metadata});
        let stopped = answer("chat.stopStream", stop);
        assert_eq!((&stopped["message"]["metadata"], &stopped["channel"]), (&metadata, &json!("C1")));
    }
}
