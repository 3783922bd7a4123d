//! Slack: delivers people's messages until they are acknowledged, accepts the bot's calls, and fails as Slack does.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::FuturesUnordered};
use jiff::SignedDuration;
use pmk_host::{
    chat::{Attachments, Choice, Connection, FileSkipReason, Inbound, ReplyTo},
    front::{BackfillRequest, Delivery, Fetched, Front, FrontError, Intake, Kind, Lookup, Past, Progress},
    ledger::report::TurnReport,
    store::HostFence,
};
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    model,
    scenario::{Harm, Length, Point, Said, Trouble, What, Where},
    witness,
    world::{EPOCH_MS, World},
};

mod calls;
mod doing;
mod files;
mod frames;
mod lines;
mod posts;
mod sockets;
mod watched;
mod web;
mod wired;

pub use calls::Known;
use calls::passing;
use doing::{Carried, Due};
pub use doing::{Done, News};
use lines::Lines;
pub use posts::{Post, Refused, Tag, direct, number};
use sockets::{Came, Sockets};
use web::{Expected, Lane, Upload};
pub use wired::Wired;

/// The delays after which Slack sends an unacknowledged event again: three times, then never.
const AGAIN_AFTER: [u64; 3] = [1_000, 60_000, 300_000];

/// How long after it is due an event is still sent to a client that reconnects.
const LISTENS_SOON: u64 = 30_000;

/// The numbers of contacts' replies begin here; they are not questions.
pub const FIRST_OF_CONTACTS: usize = 10_000;

/// The bot: the id of its user, and its own.
const BOT: [&str; 2] = ["UBOT", "BBOT"];

/// The workspace.
pub struct Slack {
    world: Arc<World>,
    state: Mutex<State>,
    /// Notified when there is more to be sent, by host.
    more: Vec<Notify>,
    /// The fence that says whether a host may still post, by host.
    fences: Mutex<Vec<Option<Arc<HostFence>>>>,
    /// Notified when something was acknowledged, or a connection has ended, in worlds [over calls](wired).
    heard: Notify,
}

#[derive(Default)]
struct State {
    questions: Vec<Question>,
    deliveries: Vec<Sending>,
    posts: Vec<Post>,
    /// What people will do, in order.
    due: Vec<Due>,
    done: Vec<Done>,
    reports: Vec<TurnReport>,
    refused: Vec<Refused>,
    /// The numbers of questions that there was a notice about, or an attempt to give one.
    noticed: BTreeSet<usize>,
    sockets: Sockets,
    /// The homes of the processes.
    homes: BTreeSet<PathBuf>,
    /// What the bot is about to post, in worlds [over calls](wired).
    expected: Expected,
    lines: Lines,
    uploads: Vec<Upload>,
    /// Until when the bot is to wait with calls.
    put_off: BTreeMap<Lane, u64>,
}

/// A person's question.
#[derive(Clone, Debug)]
pub struct Question {
    pub number: usize,
    pub inbound: Inbound,
    /// When the gateway first accepted it.
    pub accepted_at: Option<u64>,
    /// It must get an answer, not an excuse.
    pub is_probe: bool,
    /// When Slack first sent it.
    pub first_sent_at: Option<u64>,
    /// Slack has received the acknowledgement.
    pub is_acknowledged: bool,
    /// When it was written.
    pub said_at: u64,
    /// How often it was edited.
    pub version: u32,
    pub is_deleted: bool,
    /// It is a "stop" message, which gets no answer if it stops one.
    pub is_stop: bool,
    /// It is a command to the gateway, not a question.
    pub is_order: bool,
}

/// An event that is being delivered.
#[derive(Clone, Debug)]
struct Sending {
    carries: Carried,
    event_id: String,
    due: u64,
    /// How often it was sent before.
    tries: usize,
    is_under_way: bool,
    /// The host that it was sent to, and when.
    to: Option<(usize, u64)>,
}

impl Sending {
    fn new(carries: Carried, event_id: String, due: u64) -> Sending {
        Sending { carries, event_id, due, tries: 0, is_under_way: false, to: None }
    }
}

impl Slack {
    pub fn new(world: Arc<World>) -> Slack {
        let mut state = State::default();
        for event in &world.scenario.events {
            if let What::Says(said) = &event.what {
                state.say(event.number, event.at, said, &world);
            }
            if let What::Does(deed) = &event.what {
                state.due.push(Due { number: event.number, at: event.at, deed: deed.clone() });
            }
        }
        let more = (0..world.hosts()).map(|_| Notify::new()).collect();
        let fences = Mutex::new(vec![None; world.hosts()]);
        Slack { world, state: Mutex::new(state), more, fences, heard: Notify::new() }
    }

    /// A process with this home starts posting.
    pub fn speaks(&self, home: &Path, fence: HostFence) {
        self.fences()[self.world.host()] = Some(Arc::new(fence));
        let mut state = self.state();
        state.homes.insert(home.to_owned());
        let host = self.world.host();
        state.put_off.retain(|(of, ..), _| *of != host);
        state.sockets.begins(self.world.time());
    }

    fn fences(&self) -> MutexGuard<'_, Vec<Option<Arc<HostFence>>>> {
        self.fences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn questions(&self) -> Vec<Question> {
        self.state().questions.clone()
    }

    pub fn posts(&self) -> Vec<Post> {
        self.state().posts.clone()
    }

    /// What people did besides asking.
    pub fn done(&self) -> Vec<Done> {
        self.state().done.clone()
    }

    /// The reports on turns.
    pub fn reports(&self) -> Vec<TurnReport> {
        self.state().reports.clone()
    }

    /// What was refused.
    pub fn refused(&self) -> Vec<Refused> {
        self.state().refused.clone()
    }

    /// The numbers of questions that there was a notice about, or an attempt to give one.
    pub fn noticed(&self) -> BTreeSet<usize> {
        self.state().noticed.clone()
    }

    /// When nobody listened, apart by the starts of processes.
    pub fn silences(&self) -> Vec<Range<u64>> {
        self.state().sockets.silences().to_vec()
    }

    /// Whether everything has been sent that ever will be.
    pub fn is_quiet(&self) -> bool {
        let state = self.state();
        state.deliveries.is_empty() && state.due.is_empty()
    }

    /// Disconnects the running host: events that were being delivered to it are not acknowledged.
    pub fn hang_up(&self) {
        let (now, host) = (self.world.time(), self.world.host());
        let mut state = self.state();
        state.sockets.closed(host, now);
        for sending in state.deliveries.iter_mut().filter(|sending| sending.to.is_some_and(|(to, _)| to == host)) {
            sending.to = None;
            if !std::mem::take(&mut sending.is_under_way) {
                continue;
            }
            sending.due = now + AGAIN_AFTER[sending.tries.min(2)];
            sending.tries += 1;
        }
        state.forget_tired();
    }

    /// Events that were due while nobody was connected are lost.
    pub fn give_up(&self) {
        let now = self.world.time();
        let mut state = self.state();
        if state.sockets.somebody_listens() {
            return;
        }
        for sending in &mut state.deliveries {
            while sending.due + LISTENS_SOON <= now && sending.tries <= AGAIN_AFTER.len() {
                sending.due += AGAIN_AFTER[sending.tries.min(2)];
                sending.tries += 1;
            }
        }
        state.forget_tired();
    }

    /// Takes the next event that is due; otherwise returns when the next one is.
    fn take_due(&self) -> Result<Sending, Option<u64>> {
        let (now, host) = (self.world.time(), self.world.host());
        let mut state = self.state();
        state.do_what_is_due(&self.world, now);
        let next_deed = state.due.first().map(|due| due.at);
        let handed_out = state.hand_out(&self.world, now);
        handed_out.into_iter().filter(|to| *to != host).for_each(|to| self.more[to].notify_one());
        if let Some(stale) = state.sockets.next_stale(host) {
            return Ok(stale);
        }
        let looks_again = state.looks_again(&self.world, now);
        let is_ours = |sending: &&mut Sending| sending.to.is_none_or(|(to, _)| to == host);
        let waiting = state.deliveries.iter_mut().filter(|sending| !sending.is_under_way).filter(is_ours);
        let next = waiting.min_by_key(|sending| (sending.due, sending.event_id.clone()));
        match next {
            Some(sending) if sending.due <= now && sending.to.is_some() => {
                sending.is_under_way = true;
                Ok(sending.clone())
            }
            other => {
                let due = other.map(|sending| sending.due).filter(|due| *due > now);
                Err(due.into_iter().chain(next_deed).chain(looks_again).min())
            }
        }
    }

    async fn send(&self, intake: &dyn Intake, sending: Sending) -> Sending {
        let world = &self.world;
        world.step(Point::Slack).await;
        let taken = match (sending.carries, world.scenario.setting.wired) {
            (Carried::Question(question), None) => self.send_question(intake, question, &sending.event_id).await,
            (Carried::Done(done), None) => self.send_done(intake, done).await,
            (carries, Some(_)) => {
                let frame = self.frame(carries, &sending);
                self.over_a_line(frame).await
            }
        };
        let now = world.time();
        // Redeliveries of rare events must happen often enough to be tested.
        let comes_again = matches!(sending.carries, Carried::Done(_)) && world.dice("comes again").u8(0..6) == 0;
        let is_heard = taken && !comes_again && !world.strikes(Trouble::AckLost) && !world.is_hit(Harm::OffSlack);
        world.say(|| format!("{} is sent: taken {taken}, heard {is_heard}", sending.event_id));
        let mut state = self.state();
        if let Carried::Question(question) = sending.carries {
            state.questions[question].is_acknowledged |= is_heard;
        }
        let place = state.deliveries.iter().position(|other| other.event_id == sending.event_id);
        if let Some(place) = place {
            if is_heard {
                state.deliveries.remove(place);
            } else {
                let again = &mut state.deliveries[place];
                // Another host may have received it by now.
                if again.to.is_some_and(|(to, _)| to != world.host()) {
                    return sending;
                }
                (again.is_under_way, again.to) = (false, None);
                again.due = now + AGAIN_AFTER[again.tries.min(2)];
                again.tries += 1;
            }
        }
        state.forget_tired();
        sending
    }

    /// The envelope of an event.
    fn frame(&self, carries: Carried, Sending { event_id, tries, .. }: &Sending) -> Value {
        let (now, mut state) = (self.world.time(), self.state());
        match carries {
            Carried::Question(question) => {
                state.questions[question].first_sent_at.get_or_insert(now);
                state.frame_of_question(question, event_id, *tries)
            }
            Carried::Done(done) => {
                let is_another = state.done[done].first_sent_at.is_some();
                state.frame_of_done(done, event_id, now, *tries + usize::from(is_another))
            }
        }
    }

    /// Delivers a question; returns whether it was accepted.
    async fn send_question(&self, intake: &dyn Intake, question: usize, event_id: &str) -> bool {
        let mut inbound = self.state().questions[question].inbound.clone();
        event_id.clone_into(&mut inbound.event_id);
        self.asks(question);
        let taken = intake.accept(inbound).await;
        if taken.is_ok() {
            self.asked(question);
        }
        taken.is_ok()
    }

    /// A question comes to the gateway.
    fn asks(&self, question: usize) {
        let mut state = self.state();
        state.questions[question].first_sent_at.get_or_insert(self.world.time());
        if state.questions[question].is_stop {
            state.may_stop_all_of(&self.world, &state.questions[question]);
        }
    }

    /// The gateway has taken it in.
    fn asked(&self, question: usize) {
        let mut state = self.state();
        state.questions[question].accepted_at.get_or_insert(self.world.time());
        if state.questions[question].is_stop {
            state.settle_all_of(&self.world, &state.questions[question]);
        }
    }

    fn post(&self, tag: Tag, place: &ReplyTo, text: &str, came: Came) -> String {
        let at = self.world.time();
        let mut state = self.state();
        let ts = format!("{}.{:06}", (EPOCH_MS as u64 + at) / 1_000, 500_000 + state.posts.len());
        let text = text.to_owned();
        self.world.say(|| format!("post {ts} {} {:?}#{}: {}", tag.event_id, tag.kind, tag.number, head(&text)));
        if tag.kind == Kind::Escalation {
            state.have_contact_answer(&self.world, place, &ts, at);
            self.more[self.world.host()].notify_one();
        }
        state.posts.push(Post {
            ts: ts.clone(),
            shows: tag.clone(),
            tag,
            text,
            is_deleted: false,
            is_erased: false,
            place: place.clone(),
            buttons: vec![],
            posted_at: at,
            kept_at: None,
            at,
            known: if came == Came::Late { Known::OnlyTo(self.world.host()) } else { Known::ToWhoeverLooks },
            metadata: Value::Null,
            grows_since: None,
            is_stopped: false,
            named_buttons: vec![],
            file: None,
        });
        ts
    }

    /// Posts a part, or has it replace a message, and returns the message's id.
    fn put(&self, tag: Tag, target: &Target<'_>, speech: &Speech<'_>, came: Came) -> Result<String, Refusal> {
        let Target { place, replaces } = target;
        let name = match replaces {
            Some(ts) => (*ts).to_owned(),
            None => format!("{} {} {:?} {}", place.channel, tag.event_id, tag.kind, tag.number),
        };
        if self.world.refuses(&name) {
            self.world.say(|| format!("slack refuses {} {:?}", tag.event_id, tag.kind));
            self.state().refused.push(Refused { tag, replaces: replaces.map(str::to_owned) });
            // Half of the refusals use an unknown error code.
            let may_pass = name.bytes().map(u32::from).sum::<u32>() % 2 == 0;
            return Err(Refusal { what: if may_pass { "msg_too_weird" } else { "restricted_action" }, may_pass });
        }
        if tag.kind != Kind::Placeholder {
            tag.numbers().for_each(|number| self.world.witness.settle(number));
        }
        let ts = match replaces {
            None => self.post(tag, place, speech.text, came),
            Some(ts) => {
                let at = self.world.time();
                let mut state = self.state();
                let Some(post) = state.posts.iter_mut().find(|post| post.ts == *ts && post.is_there()) else {
                    return Err(Refusal { what: "message_not_found", may_pass: false });
                };
                let text = speech.text;
                self.world.say(|| format!("update {ts} {} {:?}: {}", tag.event_id, tag.kind, head(text)));
                // A notice that a question is asked again replaces a failure message, which was an answer.
                if tag.kind != Kind::Notice || !text.starts_with(":repeat:") {
                    // A late edit only repeats what is already shown.
                    if post.shows != tag {
                        (post.shows, post.at) = (tag, at);
                    }
                }
                text.clone_into(&mut post.text);
                (*ts).to_owned()
            }
        };
        if let Some(post) = self.state().posts.iter_mut().find(|post| post.ts == ts) {
            post.buttons = speech.buttons.to_vec();
        }
        Ok(ts)
    }

    /// Removes a message.
    fn remove(&self, ts: &str) -> Result<(), Refusal> {
        if self.world.refuses(&format!("withdraw {ts}")) {
            self.becomes(ts, Known::ToNobody);
            return Err(Refusal { what: "cant_delete_message", may_pass: false });
        }
        self.delete(ts);
        Ok(())
    }
}

/// Where a part goes.
struct Target<'a> {
    place: &'a ReplyTo,
    /// The message that it replaces.
    replaces: Option<&'a str>,
}

/// What it says.
struct Speech<'a> {
    text: &'a str,
    buttons: &'a [Choice],
}

/// Slack's answer to what it never does.
struct Refusal {
    /// Its error code.
    what: &'static str,
    may_pass: bool,
}

impl From<Refusal> for FrontError {
    fn from(Refusal { what, may_pass }: Refusal) -> FrontError {
        FrontError::Refused { what: what.to_owned(), may_pass }
    }
}

fn head(text: &str) -> String {
    text.chars().take(70).map(|c| if c == '\n' { ' ' } else { c }).collect()
}

impl State {
    fn say(&mut self, number: usize, at: u64, said: &Said, world: &World) {
        let user = format!("U{}", said.person);
        let seconds = (EPOCH_MS as u64 + at) / 1_000;
        let ts = format!("{seconds}.{:06}", at % 1_000 * 1_000 / 2 + number as u64 % 500);
        let thread = |channel: u8, thread: u8| (format!("C{channel}"), Some(format!("1749000000.00000{thread}")));
        let (channel, thread_ts, key) = match said.place {
            Where::Direct => (format!("D{}", said.person), None, format!("slack:dm:{user}")),
            Where::Channel(channel) => (format!("C{channel}"), None, format!("slack:channel:C{channel}")),
            Where::Thread(c, t) => {
                let (channel, thread) = thread(c, t);
                let key = format!("slack:channel:{channel}:{}", thread.as_deref().unwrap_or_default());
                (channel, thread, key)
            }
        };
        let mut rng = crate::random::dice(world.scenario.seed, ("words", number));
        let words = match said.length {
            Length::Line => rng.usize(1..20),
            Length::Page => rng.usize(100..500),
            Length::Flood => rng.usize(2_000..8_000),
        };
        let mut text = format!("{}{} what of part {number}?", model::name(number), witness::version(number, 0));
        for word in 0..words {
            text.push_str([" gear", " wheel", " 齒輪", " shaft", "\nline", " 12"][(word + rng.usize(..3)) % 6]);
        }
        let event_id = format!("Ev{number:03}");
        let inbound = Inbound {
            event_id: event_id.clone(),
            aliases: vec![format!("ts:T1:{channel}:{ts}")],
            key: key.parse().expect("a key"),
            user,
            reply_to: ReplyTo { channel, thread_ts },
            text,
            attached: files::attached(world, number, 0),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts,
        };
        // The gateway may reject it as too long without asking the model.
        if said.length == Length::Flood {
            world.witness.settle(number);
        }
        let question = self.ask(number, inbound, at);
        self.questions[question].is_probe = said.is_probe;
        let mut send = |event_id: String, due: u64| {
            let carries = Carried::Question(question);
            self.deliveries.push(Sending::new(carries, event_id, due));
        };
        let late = world.scenario.events.iter().any(|event| match event.what {
            What::Trouble { kind: Trouble::Late, lasts, percent } => {
                event.at <= at && at < event.at + lasts && rng.u8(0..100) < percent
            }
            _ => false,
        });
        let delay = if late { rng.u64(1_000..20_000) } else { rng.u64(10..80) };
        send(event_id.clone(), at + delay);
        if said.twice {
            send(format!("{event_id}m"), at + rng.u64(10..3_000));
        }
    }

    /// A contact usually answers in the thread of the question.
    fn have_contact_answer(&mut self, world: &World, place: &ReplyTo, ts: &str, at: u64) {
        let mut rng = world.dice("contact");
        if rng.u8(0..10) < 3 || !place.channel.starts_with('D') {
            return;
        }
        let at = at + rng.u64(2_000..400_000);
        let number = self.questions.len() + FIRST_OF_CONTACTS;
        let event_id = format!("Ev{number:03}");
        let own_ts = doing::ts(at, number);
        let user = "UHELP".to_owned();
        let inbound = Inbound {
            event_id: event_id.clone(),
            aliases: vec![format!("ts:T1:{}:{own_ts}", place.channel)],
            key: format!("slack:dm:{user}:{ts}").parse().expect("a key"),
            user,
            reply_to: ReplyTo { channel: place.channel.clone(), thread_ts: Some(ts.to_owned()) },
            text: doing::words_of_contact(number, 0),
            attached: Attachments::default(),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts: own_ts,
        };
        let carries = Carried::Question(self.ask(number, inbound, at));
        self.deliveries.push(Sending::new(carries, event_id, at + 50));
        self.have_contact_change_it(world, number, at);
    }

    fn ask(&mut self, number: usize, inbound: Inbound, said_at: u64) -> usize {
        self.questions.push(Question {
            number,
            inbound,
            is_probe: false,
            accepted_at: None,
            first_sent_at: None,
            is_acknowledged: false,
            said_at,
            version: 0,
            is_deleted: false,
            is_stop: false,
            is_order: false,
        });
        self.questions.len() - 1
    }

    /// Drops events that Slack gives up on.
    fn forget_tired(&mut self) {
        self.deliveries.retain(|sending| sending.tries <= AGAIN_AFTER.len());
    }
}

#[async_trait]
impl Front for Slack {
    async fn listen(&self, intake: &dyn Intake, stop: CancellationToken) -> Result<(), FrontError> {
        let mut under_way = FuturesUnordered::new();
        let is_wired = self.world.scenario.setting.wired.is_some();
        if !is_wired {
            self.state().sockets.opened(self.world.host(), self.world.time());
        }
        loop {
            let due = self.take_due();
            let next = match due {
                Ok(sending) => {
                    under_way.push(self.send(intake, sending));
                    continue;
                }
                Err(next) => next,
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(_) = under_way.next(), if !under_way.is_empty() => {}
                () = self.more[self.world.host()].notified() => {}
                () = self.world.until(next.unwrap_or(u64::MAX)), if next.is_some() => {}
            }
        }
        if !is_wired {
            self.state().sockets.closed(self.world.host(), self.world.time());
        }
        while under_way.next().await.is_some() {}
        Ok(())
    }

    fn clock_ahead(&self) -> Option<SignedDuration> {
        let tells = self.world.scenario.aging.as_ref().is_some_and(|aging| aging.tells_clock);
        tells.then(|| SignedDuration::from_millis(self.world.is_ahead_by(self.world.host(), self.world.time())))
    }

    fn connection(&self) -> Option<Connection> {
        let open = usize::from(!self.world.is_hit(Harm::OffSlack));
        (self.world.hosts() > 1).then_some(Connection { open, of: 1, reconnects: 0 })
    }

    async fn placeholder(&self, question: &Inbound, text: &str) -> Result<Option<String>, FrontError> {
        let Inbound { event_id, reply_to, .. } = question;
        let came = self.before_saying(Some(&reply_to.channel)).await?;
        if self.world.refuses(&format!("placeholder {event_id}")) {
            return Err(FrontError::Refused { what: "msg_too_weird".to_owned(), may_pass: false });
        }
        let tag = Tag {
            event_id: event_id.clone(),
            event_ids: vec![],
            number: 0,
            kind: Kind::Placeholder,
            parked_at_ms: None,
        };
        let ts = self.post(tag, reply_to, text, came);
        let heard = self.after().await;
        if heard.is_err() && came == Came::Late {
            self.becomes(&ts, Known::ToNobody);
        }
        heard.map(|()| Some(ts))
    }

    async fn progress(&self, _progress: &Progress) -> Result<(), FrontError> {
        self.before_saying(None).await.map(drop)
    }

    fn split(&self, text: &str, _kind: Kind) -> Vec<String> {
        let mut pieces = vec![String::new()];
        for line in text.split_inclusive(' ') {
            let last = pieces.last_mut().expect("there is one");
            if last.len() + line.len() > 2_500 && !last.is_empty() {
                pieces.push(line.to_owned());
            } else {
                last.push_str(line);
            }
        }
        pieces
    }

    async fn deliver(&self, part: Delivery<'_>) -> Result<Option<String>, FrontError> {
        let tag = Tag::of(&part);
        if tag.kind == Kind::Notice {
            self.state().noticed.extend(tag.numbers());
        }
        let came = self.before_saying(Some(&part.reply_to.channel)).await?;
        let buttons: Vec<Choice> = part.buttons.iter().map(|button| button.choice).collect();
        let target = Target { place: part.reply_to, replaces: part.replaces };
        let ts = self.put(tag, &target, &Speech { text: &part.speech.text, buttons: &buttons }, came)?;
        self.after().await?;
        Ok(Some(ts))
    }

    async fn find(&self, part: &Delivery<'_>, after: &str, _is_streamed: bool) -> Result<Lookup, FrontError> {
        self.before(None).await?;
        if self.world.strikes(Trouble::CannotLook) {
            return Err(passing("HTTP 500"));
        }
        let state = self.state();
        let is_read = |post: &&Post| post.place == *part.reply_to && post.ts.as_str() > after;
        let found = state.posts.iter().filter(is_read).find(|post| post.tag.is(part) && post.is_there());
        Ok(found.map_or(Lookup::No, |post| Lookup::Yes(Some(post.ts.clone()))))
    }

    async fn withdraw(&self, _reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        self.before_saying(None).await?;
        self.remove(id)?;
        self.after().await
    }

    async fn take_back(&self, _reply_to: &ReplyTo, id: &str) -> Result<(), FrontError> {
        let came = self.before(None).await;
        came.map_err(FrontError::from).inspect_err(|_| self.keeps(id))?;
        self.delete(id);
        self.after().await
    }

    async fn mark(&self, _event_id: &str, _reply_to: &ReplyTo, _ts: &str, _emoji: &str) -> Result<(), FrontError> {
        self.before_saying(None).await?;
        self.after().await
    }

    async fn direct(&self, person: &str) -> Result<String, FrontError> {
        self.before(None).await?;
        Ok(direct(person))
    }

    async fn report(&self, _event_id: &str, report: &TurnReport) -> Result<(), FrontError> {
        self.state().reports.push(report.clone());
        Ok(())
    }

    async fn fetch(&self, address: &str, _said_bytes: Option<u64>, _most: u64) -> Result<Fetched, FrontError> {
        self.before(None).await?;
        tokio::time::sleep(Duration::from_millis(self.world.dice("fetch").u64(20..3_000))).await;
        self.after().await?;
        self.world.say(|| format!("{address} is fetched"));
        Ok(files::content(address).ok_or(FileSkipReason::NotFetched))
    }

    fn reaches_absent(&self) -> bool {
        true
    }

    async fn look_back(&self, place: &BackfillRequest) -> Result<Past, FrontError> {
        self.before(Some(&place.channel)).await?;
        if self.world.strikes(Trouble::CannotLook) {
            return Err(passing("HTTP 500"));
        }
        Ok(self.state().past(place, self.world.time()))
    }
}
