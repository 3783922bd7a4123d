//! A strict Slack on loopback: the Web API and Socket Mode, with Slack's rules.
//!
//! It enforces these rules of Slack:
//! - an envelope must be acknowledged within 3 s, otherwise the event is sent again, up to three times, with the same
//!   event id and a new envelope id; each delivery goes to exactly one of at most ten sockets;
//! - a ticket opens one socket; the app token opens tickets and nothing else;
//! - `chat.update` accepts at most 4,000 bytes of escaped text, for a message that the bot wrote itself;
//!   `chat.postMessage` truncates at 40,000 characters;
//! - blocks must have a known type, a valid structure and length, and stay until an edit replaces them;
//! - a status is shown in a thread until the bot posts there, or for two minutes;
//! - a streamed message has at most 12,000 characters, and cannot be extended once its reader has stopped it;
//! - a file is announced, uploaded and shared, in this order, and must have the announced length;
//! - a thread is named by the message that begins it, and by no reply;
//! - an attached file is returned to a client with the bot's token; without the required scope, the response is a login
//!   page with a success status;
//! - a file from another workspace arrives as an id alone, and `files.info` describes it;
//! - the history contains metadata only on request, and is returned in pages;
//! - rate limits: about 50 updates per minute, about one post per second and channel, 50 pages per minute of each
//!   method that reads conversations, and for every other method the limit of its tier; beyond that 429 with
//!   Retry-After, before which the same call must not be made again;
//! - a method without its scope is refused, and so is the history of a channel that the bot is not in; messages of a
//!   channel are not sent without the scope to read it;
//! - what the bot posts, edits and deletes is sent to it as events, with its own `bot_id`;
//! - when a WebSocket is closed, both sides must close it before the underlying connection.
//!
//! Anything that Slack would not expect from a program is recorded in [`Slack::violations`], and fails the test when
//! the stand-in is dropped. Requests may be JSON, forms, or in the query string, as the official clients send them. It
//! shares no code with the gateway, and counts bytes itself.

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
pub use rules::{ALL_EVENTS, ALL_SCOPES, Fault, LATE, SlackRules};
pub use sockets::Raw;
pub use state::{Ack, Attempt, Call, Message, Sent, Status};
pub use whispers::Whisper;

use state::State;

/// The workspace's id.
pub const TEAM: &str = "T0STANDIN";
/// The bot's user id, as in mentions.
pub const BOT_USER: &str = "U0BOT";
/// The bot's id.
pub const BOT_ID: &str = "B0BOT";
/// The id of the bot's app.
const APP_ID: &str = "A0STANDIN";

/// A running stand-in. It stops when dropped.
///
/// # Panics
/// When it is dropped, if there are [violations](Slack::violations).
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

    /// The app token and the bot token that are valid now.
    fn tokens(&self) -> (String, String) {
        let tokens = self.state().tokens.clone();
        tokens.unwrap_or_else(|| (self.rules.app_token.clone(), self.rules.bot_token.clone()))
    }

    /// Waits until a method is healed.
    async fn healed(&self, method: &str) {
        self.state().held.insert(method.to_owned());
        self.wait_for(Duration::MAX, |state| (!state.held.contains(method)).then_some(())).await;
    }

    /// Waits until `find` returns something.
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
    /// Starts a stand-in on a free port.
    ///
    /// # Panics
    /// If loopback has no free port.
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

    /// Gives the app new tokens and revokes the previous ones. Open connections stay open.
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

    /// A person writes to the bot, in a thread if `thread` is given.
    pub fn dm_in_thread(&self, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::say(&self.inner, &dm_channel(user), user, text, thread)
    }

    /// A person writes to the bot, with a file.
    pub fn dm_with_file(&self, user: &str, text: &str, file: Upload) -> Sent {
        self.dm_with_files(user, text, vec![file])
    }

    /// A person writes to the bot, with several files.
    pub fn dm_with_files(&self, user: &str, text: &str, files: Vec<Upload>) -> Sent {
        let along = json!({"files": along::attach(&self.inner, user, files)});
        events::say_with(&self.inner, (&dm_channel(user), user), text, None, &along)
    }

    /// A person writes to the bot, with additional fields of Slack's event: `attachments`, `files`.
    pub fn dm_with(&self, user: &str, text: &str, along: Value) -> Sent {
        events::say_with(&self.inner, (&dm_channel(user), user), text, None, &along)
    }

    /// A person writes a message with `attachments` or `files` that causes no event.
    pub fn talk_with(&self, channel: &str, user: &str, text: &str, thread: Option<&str>, along: Value) -> Sent {
        events::talk_with(&self.inner, (channel, user), text, thread, &along)
    }

    /// The requests for attached files, with their tokens.
    pub fn fetches(&self) -> Vec<Fetch> {
        self.inner.state().fetches.clone()
    }

    /// The address of a path on this server that was not announced.
    pub fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A person mentions the bot in a channel; the text is sent unchanged after the mention.
    pub fn mention(&self, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::say(&self.inner, channel, user, &format!("<@{BOT_USER}> {text}"), thread)
    }

    /// An app mentions the bot in a channel, by the user of its own bot.
    pub fn mention_by_app(&self, channel: &str, user: &str, text: &str) -> Sent {
        let along = json!({"bot_id": "B77"});
        events::say_with(&self.inner, (channel, user), &format!("<@{BOT_USER}> {text}"), None, &along)
    }

    /// A person writes in a channel, with or without a mention of the bot; the text is sent unchanged. If there is no
    /// event, its id is empty.
    pub fn write(&self, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::say(&self.inner, channel, user, text, thread)
    }

    /// Makes this channel a direct message of several people.
    pub fn is_group(&self, channel: &str) {
        self.inner.state().groups.insert(channel.to_owned());
    }

    /// A person opens a tab of the bot's App Home; returns the event's id.
    pub fn open_home(&self, user: &str, tab: &str) -> String {
        let event_ts = self.inner.state().ts();
        let channel = dm_channel(user);
        self.send_event(json!({
            "type": "app_home_opened", "user": user, "channel": channel, "tab": tab, "event_ts": event_ts,
        }))
    }

    /// The prompts suggested to a person.
    pub fn suggested(&self, user: &str) -> Option<Vec<Value>> {
        self.inner.state().suggested.get(&dm_channel(user)).cloned()
    }

    /// Somebody reacts to a message; returns the event's id.
    pub fn react(&self, user: &str, message: &Message, reaction: &str) -> String {
        events::react(&self.inner, user, message, reaction)
    }

    /// A person writes a message that causes no event: talk in a channel, or a message whose event was lost.
    pub fn talk(&self, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::talk(&self.inner, channel, user, text, thread)
    }

    /// As [`talk`](Slack::talk), but this long ago.
    pub fn talked(&self, ago: Duration, channel: &str, user: &str, text: &str, thread: Option<&str>) -> Sent {
        events::talked(&self.inner, ago, (channel, user), text, thread)
    }

    /// A person edits a message; returns the ids of the events, that of the mention last.
    pub fn edit(&self, sent: &Sent, text: &str) -> Vec<String> {
        edits::edit(&self.inner, &sent.channel, &sent.ts, text)
    }

    /// A link in a person's message unfolds, which Slack reports like an edit; returns the id of the event.
    pub fn unfold(&self, sent: &Sent) -> String {
        edits::unfold(&self.inner, &sent.channel, &sent.ts)
    }

    /// A person deletes their message; returns the id of the event, if the app gets one.
    pub fn take_back(&self, sent: &Sent) -> Option<String> {
        edits::delete(&self.inner, &sent.channel, &sent.ts)
    }

    /// An admin of the workspace deletes anybody's message; returns the id of the event, if the app gets one.
    pub fn remove(&self, message: &Message) -> Option<String> {
        edits::delete(&self.inner, &message.channel, &message.ts)
    }

    /// Somebody reacts to a person's message; returns the event's id.
    pub fn react_to(&self, user: &str, sent: &Sent, reaction: &str) -> String {
        let message = edits::message(&self.inner, &sent.channel, &sent.ts).expect("the message is there");
        events::react(&self.inner, user, &message, reaction)
    }

    /// Sends any event, and returns its id.
    pub fn send_event(&self, event: Value) -> String {
        events::send(&self.inner, event)
    }

    /// Somebody uses a slash command in this channel; returns an id to await the acknowledgement of. Slack sends it
    /// once: if it is not acknowledged, it is [given up](Slack::given_up), and the person is told.
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

    /// Somebody tells their display name, which may be empty, and their real name.
    pub fn named(&self, user: &str, display_name: &str, real_name: &str) {
        self.inner.state().names.insert(user.to_owned(), [display_name, real_name].map(str::to_owned));
    }

    /// Somebody is from another workspace, as in a shared channel.
    pub fn belongs_to(&self, user: &str, team: &str) {
        self.inner.state().teams.insert(user.to_owned(), team.to_owned());
    }

    /// Removes the bot from this channel, so that it can neither post, nor change what it has posted, nor read there.
    pub fn keep_out(&self, channel: &str) {
        self.inner.state().kept_out.insert(channel.to_owned());
    }

    /// Somebody clicks a button of a message that they see; returns an id to await the acknowledgement of. Slack sends
    /// it once, and tells the person if it is not acknowledged.
    ///
    /// # Panics
    /// If the message has no such button.
    pub fn click(&self, user: &str, message: &Message, action_id: &str, value: &str) -> String {
        blocks::click(&self.inner, user, message, action_id, value)
    }

    /// The ephemeral messages that this person was shown.
    pub fn whispers(&self, user: &str) -> Vec<Whisper> {
        self.inner.state().whispers.iter().filter(|whisper| whisper.user == user).cloned().collect()
    }

    /// Waits until this person was shown this many ephemeral messages.
    pub async fn await_whispers(&self, user: &str, count: usize, limit: Duration) -> bool {
        let of_theirs = |state: &State| state.whispers.iter().filter(|whisper| whisper.user == user).count();
        self.inner.wait_for(limit, |state| (of_theirs(state) >= count).then_some(())).await.is_some()
    }

    /// Somebody clicks a button that this app did not create.
    pub fn click_elsewhere(&self, user: &str, channel: &str, action: &str) -> String {
        let payload = json!({
            "type": "block_actions", "team": {"id": TEAM, "domain": "acme"}, "api_app_id": APP_ID,
            "user": {"id": user, "username": "somebody", "team_id": TEAM}, "channel": {"id": channel, "name": "somewhere"},
            "trigger_id": "1.2.3", "container": {"type": "message", "message_ts": "1.1", "channel_id": channel},
            "actions": [{"type": "button", "action_id": action, "block_id": "b", "value": "1", "action_ts": "1.2"}],
        });
        events::send_once(&self.inner, "interactive", payload)
    }

    /// Sends an event again, as Slack does even long after it was acknowledged.
    pub fn redeliver(&self, event_id: &str) {
        events::redeliver(&self.inner, event_id);
    }

    /// From now on, this method fails in this way.
    pub fn fault(&self, method: &str, fault: Fault) {
        self.fault_times(method, usize::MAX, fault);
    }

    /// This method fails in this way the next `times` times.
    pub fn fault_times(&self, method: &str, times: usize, fault: Fault) {
        self.inner.state().faults.insert(method.to_owned(), (fault, times));
    }

    /// This method succeeds `calls` times, then fails the next `times` times.
    pub fn fault_after(&self, method: &str, calls: usize, times: usize, fault: Fault) {
        self.inner.state().spared.insert(method.to_owned(), calls);
        self.fault_times(method, times, fault);
    }

    /// How often a method was executed whose response was [lost](Fault::Lost).
    pub fn lost(&self, method: &str) -> usize {
        self.inner.state().lost.iter().filter(|lost| *lost == method).count()
    }

    /// Removes the method's fault, and the waits that came of it: a gateway that is killed does not know of them.
    pub fn heal(&self, method: &str) {
        {
            let mut state = self.inner.state();
            state.faults.remove(method);
            state.held.remove(method);
            state.put_off.forget(method);
        }
        self.inner.changed.notify_waiters();
    }

    /// Waits until a message of a channel satisfies `wanted`.
    pub async fn await_message(
        &self,
        channel: &str,
        limit: Duration,
        wanted: impl Fn(&Message) -> bool,
    ) -> Option<Message> {
        let find = |state: &State| state.channel(channel).iter().find(|message| wanted(message)).cloned();
        self.inner.wait_for(limit, find).await
    }

    /// All messages of a channel, in order.
    pub fn messages(&self, channel: &str) -> Vec<Message> {
        self.inner.state().channel(channel).to_vec()
    }

    /// All statuses that threads of a channel have shown, in order.
    pub fn statuses(&self, channel: &str) -> Vec<Status> {
        self.inner.state().statuses.iter().filter(|shown| shown.channel == channel).cloned().collect()
    }

    /// The status that a thread shows now.
    pub fn status(&self, channel: &str, thread_ts: &str) -> Option<Status> {
        statuses::standing(&self.inner.state(), channel, thread_ts)
    }

    /// All statuses that threads show now.
    pub fn standing_statuses(&self) -> Vec<Status> {
        statuses::all_standing(&self.inner.state())
    }

    /// Advances the time for statuses only.
    pub fn age_statuses(&self, by: Duration) {
        self.inner.state().passed += by;
    }

    /// A person presses Slack's stop button below a streamed message.
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

    /// The file of a message.
    pub fn file(&self, ts: &str) -> Option<File> {
        self.inner.state().shared.get(ts).cloned()
    }

    /// The bot's messages in a channel, except placeholders.
    pub fn replies(&self, channel: &str) -> Vec<Message> {
        let state = self.inner.state();
        state.channel(channel).iter().filter(|message| self.is_reply(message)).cloned().collect()
    }

    /// The bot's messages that are still placeholders.
    pub fn placeholders(&self, channel: &str) -> Vec<Message> {
        let state = self.inner.state();
        let waiting = |message: &&Message| message.by_bot && !self.is_reply(message);
        state.channel(channel).iter().filter(waiting).cloned().collect()
    }

    fn is_reply(&self, message: &Message) -> bool {
        message.by_bot && !message.text.starts_with(&self.inner.rules.placeholder)
    }

    /// Waits for the first reply to a question, in the same place.
    pub async fn await_reply(&self, question: &Sent, limit: Duration) -> Option<Message> {
        let answers = |message: &&Message| {
            self.is_reply(message) && message.thread_ts == question.thread_ts && message.ts > question.ts
        };
        let find = |state: &State| state.channel(&question.channel).iter().find(answers).cloned();
        self.inner.wait_for(limit, find).await
    }

    /// Waits until a channel has this many replies.
    pub async fn await_replies(&self, channel: &str, count: usize, limit: Duration) -> bool {
        let count_replies =
            |state: &State| state.channel(channel).iter().filter(|message| self.is_reply(message)).count();
        self.inner.wait_for(limit, |state| (count_replies(state) >= count).then_some(())).await.is_some()
    }

    /// Waits until this many sockets are open.
    pub async fn await_sockets(&self, count: usize, limit: Duration) -> bool {
        self.inner.wait_for(limit, |state| (state.sockets.len() == count).then_some(())).await.is_some()
    }

    /// Waits until a socket is open.
    pub async fn await_connected(&self, limit: Duration) -> bool {
        self.inner.wait_for(limit, |state| (!state.sockets.is_empty()).then_some(())).await.is_some()
    }

    /// Waits until an event is acknowledged.
    pub async fn await_ack(&self, event_id: &str, limit: Duration) -> Option<Ack> {
        self.inner.wait_for(limit, |state| state.acks.iter().find(|ack| ack.event_id == event_id).cloned()).await
    }

    /// Waits until an event has been delivered this many times, and returns the deliveries.
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

    /// Actions of people that were delivered as often as allowed and never acknowledged.
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

    /// Everything that Slack does not allow or expect, and every text that mentioned someone; but for what the rules
    /// [expect](SlackRules::expecting).
    pub fn violations(&self) -> Vec<String> {
        let mut violations = self.inner.state().violations.clone();
        violations.retain(|violation| !self.inner.rules.is_expected(violation));
        violations
    }

    /// How many sockets the other side did not close properly when they were closed.
    pub fn unanswered_ends(&self) -> usize {
        self.inner.state().unanswered_ends
    }

    /// The number of open sockets.
    pub fn sockets(&self) -> usize {
        self.inner.state().sockets.len()
    }

    /// The ids of the open sockets.
    pub fn open_sockets(&self) -> Vec<u64> {
        self.inner.state().sockets.iter().map(|open| open.id).collect()
    }

    /// Announces on every socket that it will be closed, for this reason (`warning`, `refresh_requested`,
    /// `link_disabled`), and closes it after the grace period.
    pub fn disconnect(&self, reason: &str) {
        self.inner.state().command(sockets::Command::Disconnect(reason.to_owned()));
    }

    /// Sends a raw frame over the oldest socket, and returns the socket's id.
    pub fn send_raw(&self, frame: Raw) -> Option<u64> {
        self.inner.state().command_oldest(sockets::Command::Raw(frame))
    }

    /// From now on, an unexpected acknowledgement, as for a raw frame, is not a violation. Returns those so far.
    pub fn take_strays(&self) -> Vec<String> {
        self.inner.state().strays.replace(Vec::new()).unwrap_or_default()
    }

    /// Waits until that socket is gone.
    pub async fn await_gone(&self, socket: u64, limit: Duration) -> bool {
        let gone = |state: &State| state.sockets.iter().all(|open| open.id != socket).then_some(());
        self.inner.wait_for(limit, gone).await.is_some()
    }

    /// Breaks every connection without closing it properly.
    pub fn drop_connections(&self) {
        self.inner.state().command(sockets::Command::Drop);
    }

    /// Breaks every connection and waits until these are gone, whatever was opened in the meantime.
    pub async fn await_dropped(&self, limit: Duration) -> bool {
        let dropped = self.open_sockets();
        self.drop_connections();
        let gone = |state: &State| state.sockets.iter().all(|open| !dropped.contains(&open.id)).then_some(());
        self.inner.wait_for(limit, gone).await.is_some()
    }

    /// Goes silent on every open socket without closing it: data can still be sent to it, and is never answered.
    pub fn freeze_connections(&self) {
        self.inner.state().command(sockets::Command::Freeze);
    }

    /// Goes silent on the oldest socket only.
    pub fn freeze_oldest(&self) {
        self.inner.state().command_oldest(sockets::Command::Freeze);
    }

    /// Breaks the oldest connection without closing it properly.
    pub fn drop_oldest(&self) {
        self.inner.state().command_oldest(sockets::Command::Drop);
    }

    /// Continues to send on the oldest socket, but stops reading from it.
    pub fn deafen_oldest(&self) {
        self.inner.state().command_oldest(sockets::Command::Deafen);
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        self.server.abort();
        self.drop_connections();
        // A test that fails already has said why.
        if !std::thread::panicking() {
            assert_eq!(self.violations(), [] as [&str; 0]);
        }
    }
}

/// The channel of a person's direct messages with the bot.
pub fn dm_channel(user: &str) -> String {
    format!("D{}", user.trim_start_matches('U'))
}
