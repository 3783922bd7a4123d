//! The stand-in Slack as a program, for clients that are not written in Rust: prints its address and tokens on standard
//! output, executes the orders on standard input, one JSON object per line, and reports what it saw when the input
//! ends. It fails if a rule was broken; its arguments are violations that are none for this client.

use std::{
    io::{Write, stdout},
    process::ExitCode,
    time::Duration,
};

use pmk_stand_ins::{
    patience::until_async,
    slack::{Message, Sent, Slack, SlackRules},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

/// An order for the workspace.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Order {
    /// A person writes to the bot.
    Dm { user: String, text: String },
    /// A person mentions the bot in a channel.
    Mention { channel: String, user: String, text: String },
    /// A person edits a message.
    Edit { channel: String, ts: String, text: String },
    /// A message is deleted.
    Delete { channel: String, ts: String },
    /// Somebody reacts to a message.
    React { user: String, channel: String, ts: String, reaction: String },
    /// Somebody clicks a button of a message.
    Click { user: String, channel: String, ts: String, action: String, value: String },
    /// Waits for the acknowledgement of an event, and reports how long it took.
    Acked { id: String },
    /// Reports the suggested prompts of a person.
    Suggested { user: String },
    /// Waits for this many replies in a channel, and reports them.
    Replies { channel: String, least: usize },
    /// Announces on every socket that it will be closed, and closes it a moment later.
    Disconnect { reason: String },
    /// Breaks every connection.
    Drop,
    /// Waits for this many acknowledgements: a client that has sent one does not know when it is read.
    Acks { least: usize },
}

#[tokio::main]
async fn main() -> ExitCode {
    let expected = std::env::args().skip(1);
    let rules = SlackRules {
        // So that a renewal of the sockets takes place within a test.
        warning_grace: Duration::from_secs(1),
        retry_delays: [100, 1_000, 5_000].map(Duration::from_millis).to_vec(),
        ..SlackRules::default()
    };
    let slack = Slack::start(rules.expecting(expected)).await;
    let SlackRules { app_token, bot_token, .. } = slack.rules();
    say(&json!({"api_url": slack.api_url(), "app_token": app_token, "bot_token": bot_token}));
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(order) => say(&carry_out(&slack, order).await),
            Err(error) => {
                eprintln!("error: `{line}` is no order: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    say(&json!({"violations": slack.violations(), "given_up": slack.given_up(), "acks": slack.acks().len()}));
    ExitCode::SUCCESS
}

async fn carry_out(slack: &Slack, order: Order) -> Value {
    let sent = |Sent { event_id, channel, ts, .. }| json!({"event_id": event_id, "channel": channel, "ts": ts});
    match order {
        Order::Dm { user, text } => sent(slack.dm(&user, &text)),
        Order::Mention { channel, user, text } => sent(slack.mention(&channel, &user, &text, None)),
        Order::Edit { channel, ts, text } => {
            let written = Sent { event_id: String::new(), channel, ts, thread_ts: None };
            json!(slack.edit(&written, &text))
        }
        Order::Delete { channel, ts } => json!(slack.remove(&message(slack, &channel, &ts))),
        Order::React { user, channel, ts, reaction } => {
            json!(slack.react(&user, &message(slack, &channel, &ts), &reaction))
        }
        Order::Click { user, channel, ts, action, value } => {
            json!(slack.click(&user, &message(slack, &channel, &ts), &action, &value))
        }
        Order::Acked { id } => {
            let ack = || slack.acks().into_iter().find(|ack| ack.event_id == id);
            json!({"after_ms": until_async("the acknowledgement", ack).await.after.as_millis()})
        }
        Order::Suggested { user } => json!(slack.suggested(&user)),
        Order::Replies { channel, least } => {
            until_async("the replies", || (slack.replies(&channel).len() >= least).then_some(())).await;
            json!(slack.replies(&channel).iter().map(|message| &message.text).collect::<Vec<_>>())
        }
        Order::Disconnect { reason } => {
            slack.disconnect(&reason);
            json!({})
        }
        Order::Drop => {
            slack.drop_connections();
            json!({})
        }
        Order::Acks { least } => {
            until_async("the last acknowledgement", || (slack.acks().len() >= least).then_some(())).await;
            json!({})
        }
    }
}

/// The message with this `ts`.
fn message(slack: &Slack, channel: &str, ts: &str) -> Message {
    let found = slack.messages(channel).into_iter().find(|message| message.ts == ts);
    found.expect("the message is there")
}

/// If nobody reads the output any more, nobody sends orders either.
fn say(line: &Value) {
    writeln!(stdout(), "{line}").ok();
}
