//! The state of the stand-in.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, value::RawValue};
use tokio::sync::oneshot;

use super::{
    Fault, TEAM,
    along::{Fetch, Upload},
    blocks,
    files::File,
    limits::{PutOff, Traffic},
    request::Asked,
    sockets::{Command, Socket},
    text,
    whispers::Whisper,
};

/// A message in a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub channel: String,
    pub ts: String,
    pub thread_ts: Option<String>,
    pub user: String,
    pub by_bot: bool,
    pub text: String,
    /// Its blocks; if there are any, people see them instead of the text.
    pub blocks: Vec<Value>,
    /// When its stream began, while it is streamed.
    pub streaming_since: Option<Instant>,
    /// Its text before each edit, oldest first.
    pub history: Vec<String>,
    pub metadata: Option<Value>,
}

impl Message {
    /// Its buttons: the action id and the value of each.
    pub fn buttons(&self) -> Vec<(&str, &str)> {
        blocks::clickable(&self.blocks).map(|(id, value, ..)| (id, value)).collect()
    }

    /// The text that people see.
    pub fn shown(&self) -> String {
        if self.blocks.is_empty() { self.text.clone() } else { blocks::text(&self.blocks) }
    }

    /// Whom it notified: those it mentioned when it was posted. Slack notifies nobody of an edit.
    pub fn notified(&self) -> Vec<&str> {
        text::mentions(self.history.first().unwrap_or(&self.text))
    }
}

/// A message of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The event that requires an answer.
    pub event_id: String,
    pub channel: String,
    pub ts: String,
    pub thread_ts: Option<String>,
}

/// One delivery of an event.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub envelope_id: String,
    /// The socket that it was sent to; `None` if none was open.
    pub socket: Option<u64>,
    pub at: Instant,
}

/// One acknowledgement.
#[derive(Clone, Debug)]
pub struct Ack {
    pub event_id: String,
    pub envelope_id: String,
    /// How long it took.
    pub after: Duration,
}

/// A status that the bot showed in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub channel: String,
    pub thread_ts: String,
    /// Empty if it was cleared.
    pub status: String,
    pub lines: Vec<String>,
    /// The last `ts` of the workspace at that time.
    pub ts: String,
    /// When that was, by the clock for statuses.
    pub(super) at: Instant,
}

/// One call of the Web API.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: String,
    pub body: Arc<Value>,
    pub at: Instant,
}

/// A delivery: the type of the envelope, and its payload as it is sent.
pub(super) struct Envelope {
    pub(super) kind: &'static str,
    pub(super) payload: Box<RawValue>,
}

/// An envelope that waits for its acknowledgement.
pub(super) struct Awaited {
    pub(super) event_id: String,
    pub(super) sent: Instant,
    pub(super) acked: oneshot::Sender<()>,
}

#[derive(Default)]
pub(super) struct State {
    last_ts_us: u64,
    last_id: u64,
    channels: HashMap<String, Vec<Message>>,
    /// Channels that the bot is not in.
    pub(super) kept_out: HashSet<String>,
    /// Channels that are direct messages of several people.
    pub(super) groups: HashSet<String>,
    /// Suggested prompts, by the channel of a direct message.
    pub(super) suggested: HashMap<String, Vec<Value>>,
    /// The current app token and bot token, if they differ from the initial ones, and the revoked ones.
    pub(super) tokens: Option<(String, String)>,
    pub(super) revoked: HashSet<String>,
    pub(super) tickets: HashMap<String, Instant>,
    pub(super) sockets: Vec<Socket>,
    pub(super) events: HashMap<String, Envelope>,
    pub(super) attempts: HashMap<String, Vec<Attempt>>,
    pub(super) awaited: HashMap<String, Awaited>,
    pub(super) acks: Vec<Ack>,
    /// Unexpected acknowledgements, if those are not violations.
    pub(super) strays: Option<Vec<String>>,
    pub(super) given_up: Vec<String>,
    pub(super) calls: Vec<Call>,
    /// Files that were announced, by id.
    pub(super) uploads: HashMap<String, File>,
    /// Files in conversations, by the `ts` of their message.
    pub(super) shared: HashMap<String, File>,
    /// The display name and the real name of people who have told them.
    pub(super) names: HashMap<String, [String; 2]>,
    /// The workspaces of people from other ones.
    pub(super) teams: HashMap<String, String>,
    /// Attachments of people's messages, by their `ts`: additional fields in events and in the history.
    pub(super) along: HashMap<String, Value>,
    /// Files that people have attached, by id, and the requests for them.
    pub(super) attached: HashMap<String, Upload>,
    /// What `files.info` says of them.
    pub(super) described: HashMap<String, Value>,
    pub(super) fetches: Vec<Fetch>,
    /// The bot's reactions: channel, message, name.
    pub(super) reactions: Vec<(String, String, String)>,
    /// Statuses of threads: channel, thread, status, lines; the newest last, with an empty status if it was cleared.
    pub(super) statuses: Vec<Status>,
    /// How far the clock for statuses is ahead of the real time.
    pub(super) passed: Duration,
    /// Streams that a person has stopped, by their channel and `ts`.
    pub(super) stopped: HashSet<(String, String)>,
    pub(super) whispers: Vec<Whisper>,
    /// Methods that were executed without a response, one entry for each time.
    pub(super) lost: Vec<String>,
    /// Calls that are executed [late](super::Fault::Late).
    pub(super) late: Vec<(String, Asked)>,
    pub(super) faults: HashMap<String, (Fault, usize)>,
    /// Methods with a call that [waits](super::Fault::Held).
    pub(super) held: HashSet<String>,
    /// How many calls succeed before a fault begins.
    pub(super) spared: HashMap<String, usize>,
    pub(super) violations: Vec<String>,
    /// WebSockets whose close was not answered.
    pub(super) unanswered_ends: usize,
    pub(super) traffic: Traffic,
    /// Calls that were answered with 429.
    pub(super) put_off: PutOff,
    /// In seconds, as configured.
    pub(super) clock_ahead: i64,
}

impl State {
    /// The state of a workspace whose clock is this many seconds ahead.
    pub(super) fn new(clock_ahead: i64) -> State {
        State { clock_ahead, ..State::default() }
    }

    /// Whether the bot is a member, without which it can do nothing there.
    pub(super) fn lets_in(&self, channel: &str) -> Result<(), &'static str> {
        match self.kept_out.contains(channel) {
            false => Ok(()),
            // A bot does not even learn that other people's direct messages exist.
            true if channel.starts_with('D') => Err("channel_not_found"),
            true => Err("not_in_channel"),
        }
    }

    /// The workspace that a person belongs to.
    pub(super) fn team_of(&self, user: &str) -> &str {
        self.teams.get(user).map_or(TEAM, String::as_str)
    }

    /// A new id with this prefix.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.last_id += 1;
        format!("{prefix}{:08X}", self.last_id)
    }

    /// A unique number.
    pub(super) fn number(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The current time as a unique timestamp.
    pub(super) fn ts(&mut self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64);
        let now = now.saturating_add_signed(self.clock_ahead * 1_000_000);
        self.last_ts_us = now.max(self.last_ts_us + 1);
        format!("{}.{:06}", self.last_ts_us / 1_000_000, self.last_ts_us % 1_000_000)
    }

    /// A timestamp this long ago.
    pub(super) fn ts_ago(&mut self, ago: Duration) -> String {
        self.ts();
        let then = self.last_ts_us.saturating_sub(ago.as_micros() as u64);
        format!("{}.{:06}", then / 1_000_000, then % 1_000_000)
    }

    pub(super) fn channel(&self, channel: &str) -> &[Message] {
        self.channels.get(channel).map_or(&[], Vec::as_slice)
    }

    pub(super) fn add(&mut self, message: Message) {
        let messages = self.channels.entry(message.channel.clone()).or_default();
        let at = messages.partition_point(|other| other.ts < message.ts);
        messages.insert(at, message);
    }

    pub(super) fn remove(&mut self, channel: &str, ts: &str) -> Option<Message> {
        let messages = self.channels.get_mut(channel)?;
        let at = messages.iter().position(|message| message.ts == ts)?;
        Some(messages.remove(at))
    }

    /// Finds a message by its `ts`, by which they are sorted.
    pub(super) fn message_mut(&mut self, channel: &str, ts: &str) -> Option<&mut Message> {
        let messages = self.channels.get_mut(channel)?;
        let at = messages.binary_search_by(|message| message.ts.as_str().cmp(ts)).ok()?;
        messages.get_mut(at)
    }

    /// Records a call for a message of the bot in a channel where that message is not.
    pub(super) fn note_place(&mut self, channel: &str, ts: &str) {
        if self.message_mut(channel, ts).is_some() {
            return;
        }
        let is_it = |message: &Message| message.by_bot && message.ts == ts;
        let elsewhere = self.channels.iter().find(|(_, messages)| messages.iter().any(is_it));
        if let Some((other, _)) = elsewhere {
            self.violations.push(format!("{ts} is in {other}, not in {channel}"));
        }
    }

    /// Records a reply that is taken for the beginning of a thread.
    pub(super) fn note_thread(&mut self, channel: &str, thread_ts: Option<&str>) {
        let Some(ts) = thread_ts else { return };
        let within = self.message_mut(channel, ts).and_then(|message| message.thread_ts.as_deref());
        if within.is_some_and(|within| within != ts) {
            self.violations.push(format!("{ts} is a reply and begins no thread"));
        }
    }

    /// The author of the first message in the thread of a reply.
    pub(super) fn parent_user(&self, reply: &Message) -> Option<&str> {
        let thread_ts = reply.thread_ts.as_deref().filter(|thread_ts| *thread_ts != reply.ts)?;
        let parent = self.channel(&reply.channel).iter().find(|message| message.ts == thread_ts)?;
        Some(&parent.user)
    }

    /// The fault of this call, if any.
    pub(super) fn fault(&mut self, method: &str) -> Option<Fault> {
        if let Some(spared) = self.spared.get_mut(method).filter(|spared| **spared > 0) {
            *spared -= 1;
            return None;
        }
        let (fault, times) = self.faults.get_mut(method)?;
        let fault = fault.clone();
        *times -= 1;
        if *times == 0 {
            self.faults.remove(method);
        }
        Some(fault)
    }

    /// Sends a command to the oldest open socket, and returns its id.
    pub(super) fn command_oldest(&mut self, command: Command) -> Option<u64> {
        let socket = self.sockets.first()?;
        socket.commands.send(command).ok();
        Some(socket.id)
    }

    /// Sends a command to every socket.
    pub(super) fn command(&mut self, command: Command) {
        for socket in &self.sockets {
            socket.commands.send(command.clone()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(ts: &str, thread_ts: Option<&str>) -> Message {
        Message {
            channel: "C1".to_owned(),
            ts: ts.to_owned(),
            thread_ts: thread_ts.map(str::to_owned),
            user: "U1".to_owned(),
            by_bot: false,
            text: "hello".to_owned(),
            blocks: Vec::new(),
            streaming_since: None,
            history: Vec::new(),
            metadata: None,
        }
    }

    #[test]
    fn a_reply_begins_no_thread() {
        let mut state = State::new(0);
        for message in [message("1.000001", None), message("1.000002", Some("1.000001"))] {
            state.add(message);
        }
        // One of a thread that it begins itself, and one that is not there.
        state.add(message("1.000003", Some("1.000003")));
        for ts in ["1.000001", "1.000003", "1.000009"] {
            state.note_thread("C1", Some(ts));
        }
        state.note_thread("C1", None);
        state.note_thread("C2", Some("1.000002"));
        assert_eq!(state.violations, [] as [&str; 0]);
        state.note_thread("C1", Some("1.000002"));
        assert_eq!(state.violations, ["1.000002 is a reply and begins no thread"]);
    }

    #[test]
    fn a_message_of_the_bot_is_in_one_channel() {
        let mut state = State::new(0);
        state.add(Message { by_bot: true, ..message("1.000001", None) });
        state.add(message("1.000002", None));
        // One that is there, one of a person, and one that was deleted.
        for (channel, ts) in [("C1", "1.000001"), ("D1", "1.000002"), ("D1", "1.000009")] {
            state.note_place(channel, ts);
        }
        assert_eq!(state.violations, [] as [&str; 0]);
        state.note_place("D1", "1.000001");
        assert_eq!(state.violations, ["1.000001 is in C1, not in D1"]);
    }
}
