//! A strict Slack on loopback: the Web API and Socket Mode, with Slack's rules and no mercy.
//!
//! What it enforces, because Slack does:
//! - an envelope is acknowledged within 3 s, or the event comes again, up to three times, with the same
//!   event id and a new envelope id; each delivery goes to exactly one of at most ten sockets;
//! - a ticket opens one socket; the app token opens tickets and does nothing else;
//! - `chat.update` takes at most 4,000 bytes of escaped text, of a message that the bot wrote itself;
//!   `chat.postMessage` cuts at 40,000 characters;
//! - blocks are of a kind, a shape and a length that it knows, and stay until an edit says otherwise;
//! - a status is shown in a thread, until the bot posts there, or for two minutes;
//! - a message that grows has at most 12,000 characters, and grows no more once its reader has stopped it;
//! - a file is announced, sent and shared, in this order, and is as long as was announced;
//! - a file that somebody has attached is handed out to who has the bot's token; without the scope for it there is the
//!   page on which people log in, as if all were well;
//! - the history tells metadata only to those who ask for it, and comes in pages;
//! - about 50 updates a minute, about one post a second and channel, 50 pages a minute of each method that reads
//!   conversations, and of every other method as many as its tier has, then 429 with Retry-After;
//! - a method without its scope is refused, and the history of a channel that the bot is not in; what is said in a channel
//!   is not told without the scope to read it;
//! - what the bot posts, edits and deletes comes back to it as events, with its own `bot_id`;
//! - a WebSocket that is closed is closed by both sides, before the connection under it is.
//!
//! What a program does that Slack would not expect ends up in [`Slack::violations`]. Requests are JSON, forms, or
//! in the address, as the official clients send them. It shares no code with the gateway, and counts bytes by itself.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle, time::timeout};

mod along;
mod blocks;
mod edits;
mod events;
mod files;
mod history;
mod limits;
mod methods;
mod places;
mod request;
mod rules;
mod sockets;
mod state;
mod statuses;
mod streams;
mod text;
mod whispers;

pub use along::{Fetch, Upload};
pub use files::File;
pub use limits::Limits;
pub use methods::judge_text;
pub use rules::{ALL_EVENTS, ALL_SCOPES, Fault, SlackRules};
pub use sockets::Raw;
pub use state::{Ack, Attempt, Call, Message, Sent, Status};
pub use whispers::Whisper;

use state::State;

/// The workspace.
pub const TEAM: &str = "T0STANDIN";
/// The bot's user, as mentions name it.
pub const BOT_USER: &str = "U0BOT";
/// The bot itself.
pub const BOT_ID: &str = "B0BOT";
/// The app that the bot is of.
const APP_ID: &str = "A0STANDIN";

/// A running stand-in. It stops when dropped.
pub struct Slack {
    inner: Arc<Inner>,
    address: SocketAddr,
    server: JoinHandle<()>,
}

struct Inner {
    rules: SlackRules,
    address: SocketAddr,
    state: Mutex<State>,
    changed: Notify,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The app token and the bot token that are good now.
    fn tokens(&self) -> (String, String) {
        let tokens = self.state().tokens.clone();
        tokens.unwrap_or_else(|| (self.rules.app_token.clone(), self.rules.bot_token.clone()))
    }

    /// Waits until a method is healed.
    async fn healed(&self, method: &str) {
        self.state().held.insert(method.to_owned());
        self.wait_for(Duration::MAX, |state| (!state.held.contains(method)).then_some(())).await;
    }

    /// Waits until `find` finds something.
    async fn wait_for<T>(&self, limit: Duration, mut find: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let found = async {
            loop {
                let changed = self.changed.notified();
                if let Some(found) = find(&self.state()) {
                    return found;
                }
                changed.await;
            }
        };
        timeout(limit, found).await.ok()
    }
}

impl Slack {
    /// Starts on a free port.
    ///
    /// # Panics
    /// Loopback cannot be listened on.
    pub async fn start(rules: SlackRules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Mutex::new(State::new(rules.clock_ahead));
        let inner = Arc::new(Inner { rules, address, state, changed: Notify::new() });
        let app = methods::router(Arc::clone(&inner));
        let listener = listener.tap_io(|stream| {
            stream.set_nodelay(true).ok();
        });
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap_or_default() });
        Slack { inner, address, server }
    }

    /// The address of the Web API.
    pub fn api_url(&self) -> String {
        format!("http://{}/api", self.address)
    }

    pub fn rules(&self) -> &SlackRules {
        &self.inner.rules
    }

    /// The app has other tokens from now on; those of before are revoked. What is connected stays so.
    pub fn rotate(&self, app: &str, bot: &str) {
        let (old_app, old_bot) = self.inner.tokens();
        let mut state = self.inner.state();
        state.revoked.extend([old_app, old_bot]);
        state.tokens = Some((app.to_owned(), bot.to_owned()));
    }

    /// A person writes to the bot.
    pub fn dm(&self, user: &str, text: &str) -> Sent {
        self.dm_in_thread(user, text, None)
    }

    /// A person writes to the bot, in a thread when `thread` names one.
    pub fn dm_in_thread(&self, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::say(&self.inner, &dm_channel(user), user, text, thread)
    }

    /// A person writes to the bot, with a file.
    pub fn dm_with_file(&self, user: &str, text: &str, file: Upload) -> Sent {
        self.dm_with_files(user, text, vec![file])
    }

    /// The same with several.
    pub fn dm_with_files(&self, user: &str, text: &str, files: Vec<Upload>) -> Sent {
        let along = json!({"files": along::attach(&self.inner, user, files)});
        events::say_with(&self.inner, (&dm_channel(user), user), text, None, &along)
    }

    /// A person writes to the bot, with what Slack's event then has beside the text: `attachments`, `files`.
    pub fn dm_with(&self, user: &str, text: &str, along: Value) -> Sent {
        events::say_with(&self.inner, (&dm_channel(user), user), text, None, &along)
    }

    /// A person says something with `attachments` or `files` that brings no event.
    pub fn talk_with(&self, channel: &str, user: &str, text: &str, thread: Option<&str>, along: Value) -> Sent {
        events::talk_with(&self.inner, (channel, user), text, thread, &along)
    }

    /// Who asked for attached files here, and with which token.
    pub fn fetches(&self) -> Vec<Fetch> {
        self.inner.state().fetches.clone()
    }

    /// The address of something here that nobody was told of.
    pub fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A person mentions the bot in a channel; the text is sent as it is, with the mention in front.
    pub fn mention(&self, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::say(&self.inner, channel, user, &format!("<@{BOT_USER}> {text}"), thread)
    }

    /// A person writes in a channel, with or without a mention of the bot; the text is sent as it is. Without an event the id
    /// of it is empty.
    pub fn write(&self, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::say(&self.inner, channel, user, text, thread)
    }

    /// From now on this channel is a direct message of several people.
    pub fn is_group(&self, channel: &str) {
        self.inner.state().groups.insert(channel.to_owned());
    }

    /// A person opens the bot's own pages at this tab; returns the event's id.
    pub fn open_home(&self, user: &str, tab: &str) -> String {
        let event_ts = self.inner.state().ts();
        let channel = dm_channel(user);
        self.send_event(json!({
            "type": "app_home_opened", "user": user, "channel": channel, "tab": tab, "event_ts": event_ts,
        }))
    }

    /// What a person is shown to begin with.
    pub fn suggested(&self, user: &str) -> Option<Vec<Value>> {
        self.inner.state().suggested.get(&dm_channel(user)).cloned()
    }

    /// Somebody reacts to a message; returns the event's id.
    pub fn react(&self, user: &str, message: &Message, reaction: &str) -> String {
        events::react(&self.inner, user, message, reaction)
    }

    /// A person says something that brings no event: talk in a channel, or what nobody was told of.
    pub fn talk(&self, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::talk(&self.inner, channel, user, text, thread)
    }

    /// The same, so long ago.
    pub fn talked(&self, ago: Duration, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::talked(&self.inner, ago, (channel, user), text, thread)
    }

    /// A person edits what they wrote; the ids of the events, that of the mention last.
    pub fn edit(&self, sent: &Sent, text: &str) -> Vec<String> {
        edits::edit(&self.inner, &sent.channel, &sent.ts, text)
    }

    /// A link in what a person wrote unfolds, which is told as an edit is; the id of the event.
    pub fn unfold(&self, sent: &Sent) -> String {
        edits::unfold(&self.inner, &sent.channel, &sent.ts)
    }

    /// A person takes back what they wrote; the id of the event, where the app is told.
    pub fn take_back(&self, sent: &Sent) -> Option<String> {
        edits::delete(&self.inner, &sent.channel, &sent.ts)
    }

    /// An admin of the workspace deletes a message, whoever wrote it; the id of the event, where the app is told.
    pub fn remove(&self, message: &Message) -> Option<String> {
        edits::delete(&self.inner, &message.channel, &message.ts)
    }

    /// Somebody reacts to what a person wrote; returns the event's id.
    pub fn react_to(&self, user: &str, sent: &Sent, reaction: &str) -> String {
        let message = edits::message(&self.inner, &sent.channel, &sent.ts).expect("the message is there");
        events::react(&self.inner, user, &message, reaction)
    }

    /// Sends any event, and returns its id.
    pub fn send_event(&self, event: Value) -> String {
        events::send(&self.inner, event)
    }

    /// Somebody uses a slash command, in this channel; returns an id to await the acknowledgement of. Slack sends it
    /// once: one that is not acknowledged is [given up](Slack::given_up), which the person is told.
    pub fn slash(&self, user: &str, channel: &str, text: &str) -> String {
        let trigger = self.inner.state().number();
        let payload = json!({
            "token": "verification", "team_id": TEAM, "team_domain": "acme", "channel_id": channel,
            "channel_name": "somewhere", "user_id": user, "user_name": "somebody", "command": "/pmk", "text": text,
            "api_app_id": APP_ID, "is_enterprise_install": "false", "response_url": "https://hooks.slack.com/commands/1",
            "trigger_id": format!("{trigger}.474920.8088930838d88f008e0"),
        });
        events::send_once(&self.inner, "slash_commands", payload)
    }

    /// From now on the bot is not in this channel, and cannot post there.
    pub fn keep_out(&self, channel: &str) {
        self.inner.state().kept_out.insert(channel.to_owned());
    }

    /// Somebody clicks what a message that they see offers; returns an id to await the acknowledgement of. Slack sends
    /// it once, and shows the person when it is not acknowledged.
    ///
    /// # Panics
    /// The message offers no such thing.
    pub fn click(&self, user: &str, message: &Message, action_id: &str, value: &str) -> String {
        blocks::click(&self.inner, user, message, action_id, value)
    }

    /// What this person alone was shown.
    pub fn whispers(&self, user: &str) -> Vec<Whisper> {
        self.inner.state().whispers.iter().filter(|whisper| whisper.user == user).cloned().collect()
    }

    /// Waits until this person alone was shown so much.
    pub async fn await_whispers(&self, user: &str, count: usize, limit: Duration) -> bool {
        let of_theirs = |state: &State| state.whispers.iter().filter(|whisper| whisper.user == user).count();
        self.inner.wait_for(limit, |state| (of_theirs(state) >= count).then_some(())).await.is_some()
    }

    /// Somebody clicks a button of another app's making in a message.
    pub fn click_elsewhere(&self, user: &str, channel: &str, action: &str) -> String {
        let payload = json!({
            "type": "block_actions", "team": {"id": TEAM, "domain": "acme"}, "api_app_id": APP_ID,
            "user": {"id": user, "username": "somebody", "team_id": TEAM}, "channel": {"id": channel, "name": "somewhere"},
            "trigger_id": "1.2.3", "container": {"type": "message", "message_ts": "1.1", "channel_id": channel},
            "actions": [{"type": "button", "action_id": action, "block_id": "b", "value": "1", "action_ts": "1.2"}],
        });
        events::send_once(&self.inner, "interactive", payload)
    }

    /// Sends an event once more, as Slack does long after it was answered.
    pub fn redeliver(&self, event_id: &str) {
        events::redeliver(&self.inner, event_id);
    }

    /// From now on this goes wrong.
    pub fn fault(&self, method: &str, fault: Fault) {
        self.fault_times(method, usize::MAX, fault);
    }

    /// This goes wrong the next `times` times.
    pub fn fault_times(&self, method: &str, times: usize, fault: Fault) {
        self.inner.state().faults.insert(method.to_owned(), (fault, times));
    }

    /// This goes well `calls` times, and wrong the next `times` times.
    pub fn fault_after(&self, method: &str, calls: usize, times: usize, fault: Fault) {
        self.inner.state().spared.insert(method.to_owned(), calls);
        self.fault_times(method, times, fault);
    }

    /// How often a method was carried out whose answer was [lost](Fault::Lost).
    pub fn lost(&self, method: &str) -> usize {
        self.inner.state().lost.iter().filter(|lost| *lost == method).count()
    }

    /// Nothing goes wrong with it any more.
    pub fn heal(&self, method: &str) {
        {
            let mut state = self.inner.state();
            state.faults.remove(method);
            state.held.remove(method);
        }
        self.inner.changed.notify_waiters();
    }

    /// Waits until a message of a channel is as `wanted` says.
    pub async fn await_message(
        &self,
        channel: &str,
        limit: Duration,
        wanted: impl Fn(&Message) -> bool,
    ) -> Option<Message> {
        let find = |state: &State| state.channel(channel).iter().find(|message| wanted(message)).cloned();
        self.inner.wait_for(limit, find).await
    }

    /// Every message of a channel, in order.
    pub fn messages(&self, channel: &str) -> Vec<Message> {
        self.inner.state().channel(channel).to_vec()
    }

    /// All that threads of a channel have shown, in order.
    pub fn statuses(&self, channel: &str) -> Vec<Status> {
        self.inner.state().statuses.iter().filter(|shown| shown.channel == channel).cloned().collect()
    }

    /// What a thread shows now.
    pub fn status(&self, channel: &str, thread_ts: &str) -> Option<Status> {
        statuses::standing(&self.inner.state(), channel, thread_ts)
    }

    /// All that threads show now.
    pub fn standing_statuses(&self) -> Vec<Status> {
        statuses::all_standing(&self.inner.state())
    }

    /// So much time passes for all statuses, and for nothing else.
    pub fn age_statuses(&self, by: Duration) {
        self.inner.state().passed += by;
    }

    /// A person presses Slack's own stop under a message that grows.
    pub fn stop_stream(&self, message: &Message) {
        streams::stop_by_person(&mut self.inner.state(), &message.channel, &message.ts);
    }

    /// Waits until the bot has reacted to a message, and returns the names of its reactions.
    pub async fn await_reactions(&self, to: &Sent, limit: Duration) -> Option<Vec<String>> {
        let find = |state: &State| {
            let of_it = state.reactions.iter().filter(|(channel, ts, _)| *channel == to.channel && *ts == to.ts);
            let names: Vec<String> = of_it.map(|(_, _, name)| name.clone()).collect();
            (!names.is_empty()).then_some(names)
        };
        self.inner.wait_for(limit, find).await
    }

    /// The file that came with a message.
    pub fn file(&self, ts: &str) -> Option<File> {
        self.inner.state().shared.get(ts).cloned()
    }

    /// What the bot wrote in a channel and has not left as a placeholder.
    pub fn replies(&self, channel: &str) -> Vec<Message> {
        let state = self.inner.state();
        state.channel(channel).iter().filter(|message| self.is_reply(message)).cloned().collect()
    }

    /// The messages that still say an answer is on its way.
    pub fn placeholders(&self, channel: &str) -> Vec<Message> {
        let state = self.inner.state();
        let waiting = |message: &&Message| message.by_bot && !self.is_reply(message);
        state.channel(channel).iter().filter(waiting).cloned().collect()
    }

    fn is_reply(&self, message: &Message) -> bool {
        message.by_bot && !message.text.starts_with(&self.inner.rules.placeholder)
    }

    /// The first reply after a question, at the place it was asked.
    pub async fn await_reply(&self, question: &Sent, limit: Duration) -> Option<Message> {
        let answers = |message: &&Message| {
            self.is_reply(message) && message.thread_ts == question.thread_ts && message.ts > question.ts
        };
        let find = |state: &State| state.channel(&question.channel).iter().find(answers).cloned();
        self.inner.wait_for(limit, find).await
    }

    /// Waits until a channel holds this many replies.
    pub async fn await_replies(&self, channel: &str, count: usize, limit: Duration) -> bool {
        let count_replies =
            |state: &State| state.channel(channel).iter().filter(|message| self.is_reply(message)).count();
        self.inner.wait_for(limit, |state| (count_replies(state) >= count).then_some(())).await.is_some()
    }

    /// Waits until this many sockets are open.
    pub async fn await_sockets(&self, count: usize, limit: Duration) -> bool {
        self.inner.wait_for(limit, |state| (state.sockets.len() == count).then_some(())).await.is_some()
    }

    /// Waits until somebody is connected.
    pub async fn await_connected(&self, limit: Duration) -> bool {
        self.inner.wait_for(limit, |state| (!state.sockets.is_empty()).then_some(())).await.is_some()
    }

    /// Waits until an event was acknowledged.
    pub async fn await_ack(&self, event_id: &str, limit: Duration) -> Option<Ack> {
        self.inner.wait_for(limit, |state| state.acks.iter().find(|ack| ack.event_id == event_id).cloned()).await
    }

    /// Waits until an event was delivered this many times, and returns the deliveries.
    pub async fn await_attempts(&self, event_id: &str, count: usize, limit: Duration) -> Option<Vec<Attempt>> {
        let find = |state: &State| state.attempts.get(event_id).filter(|attempts| attempts.len() >= count).cloned();
        self.inner.wait_for(limit, find).await
    }

    /// Every acknowledgement, in order.
    pub fn acks(&self) -> Vec<Ack> {
        self.inner.state().acks.clone()
    }

    /// Every delivery of an event.
    pub fn attempts(&self, event_id: &str) -> Vec<Attempt> {
        self.inner.state().attempts.get(event_id).cloned().unwrap_or_default()
    }

    /// What people did that was delivered as often as it may be and never acknowledged.
    pub fn given_up(&self) -> Vec<String> {
        self.inner.state().given_up.clone()
    }

    /// How often a method was called.
    pub fn call_count(&self, method: &str) -> usize {
        self.inner.state().calls.iter().filter(|call| call.method == method).count()
    }

    /// Every call of a method.
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.inner.state().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// What was done that Slack does not allow or expect; also everything that mentioned someone.
    pub fn violations(&self) -> Vec<String> {
        self.inner.state().violations.clone()
    }

    /// How many sockets were left by the other side without a word when they were closed.
    pub fn unanswered_ends(&self) -> usize {
        self.inner.state().unanswered_ends
    }

    /// How many sockets are open.
    pub fn sockets(&self) -> usize {
        self.inner.state().sockets.len()
    }

    /// Which sockets are open.
    pub fn open_sockets(&self) -> Vec<u64> {
        self.inner.state().sockets.iter().map(|open| open.id).collect()
    }

    /// Announces on every socket that it will be closed, for this reason (`warning`, `refresh_requested`,
    /// `link_disabled`), and closes it after the grace period.
    pub fn disconnect(&self, reason: &str) {
        self.inner.state().command(sockets::Command::Disconnect(reason.to_owned()));
    }

    /// Sends a frame as it is over the oldest socket, and returns which that is.
    pub fn send_raw(&self, frame: Raw) -> Option<u64> {
        self.inner.state().command_oldest(sockets::Command::Raw(frame))
    }

    /// From now on it is no violation to acknowledge what nobody waits for, as raw frames are.
    pub fn take_strays(&self) -> Vec<String> {
        self.inner.state().strays.replace(Vec::new()).unwrap_or_default()
    }

    /// How many such acknowledgements there are since they were last taken.
    pub fn strays(&self) -> usize {
        self.inner.state().strays.as_ref().map_or(0, Vec::len)
    }

    /// Waits until that socket is gone.
    pub async fn await_gone(&self, socket: u64, limit: Duration) -> bool {
        let gone = |state: &State| state.sockets.iter().all(|open| open.id != socket).then_some(());
        self.inner.wait_for(limit, gone).await.is_some()
    }

    /// Breaks every connection without a word.
    pub fn drop_connections(&self) {
        self.inner.state().command(sockets::Command::Drop);
    }

    /// Breaks every connection without a word and waits until these are gone, whatever was opened meanwhile.
    pub async fn await_dropped(&self, limit: Duration) -> bool {
        let dropped = self.open_sockets();
        self.drop_connections();
        let gone = |state: &State| state.sockets.iter().all(|open| !dropped.contains(&open.id)).then_some(());
        self.inner.wait_for(limit, gone).await.is_some()
    }

    /// Falls silent on every socket that is open now, without closing it: what is sent there still leaves its
    /// sender, and is never answered.
    pub fn freeze_connections(&self) {
        self.inner.state().command(sockets::Command::Freeze);
    }

    /// Falls silent on the oldest socket only.
    pub fn freeze_oldest(&self) {
        self.inner.state().command_oldest(sockets::Command::Freeze);
    }

    /// Breaks the oldest connection without a word.
    pub fn drop_oldest(&self) {
        self.inner.state().command_oldest(sockets::Command::Drop);
    }

    /// Goes on sending on the oldest socket, and hears nothing there any more.
    pub fn deafen_oldest(&self) {
        self.inner.state().command_oldest(sockets::Command::Deafen);
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        self.server.abort();
        self.drop_connections();
    }
}

/// The channel of a person's direct messages with the bot.
pub fn dm_channel(user: &str) -> String {
    format!("D{}", user.trim_start_matches('U'))
}
