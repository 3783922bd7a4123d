//! What people do besides asking, as reported by Slack: events of edits, deletions, reactions and buttons.

use pmk_host::{
    chat::{
        Attachments, Change, Choice, DeletedAuthor, Deletion, Edit, Inbound, MessageRef, Press, ReactedAuthor, Reaction,
    },
    front::{BackfillRequest, Intake, Kind as Posted, Past},
};
use pmk_system::error::Failure;
use serde_json::Value;

use super::{AGAIN_AFTER, FIRST_OF_CONTACTS, Question, Sending, Slack, State, files};
use crate::{
    deeds::{COMMANDS, Deed, Kind},
    model,
    random::one_of,
    verdict, witness,
    world::{EPOCH_MS, World},
};

/// The content of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carried {
    /// A question, by its index.
    Question(usize),
    /// An action, by its index.
    Done(usize),
}

/// An action that is planned.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub number: usize,
    pub at: u64,
    pub deed: Deed,
}

/// An action that was done.
#[derive(Clone, Debug)]
pub struct Done {
    /// The numbers of the questions that it is about; an answer may be for several.
    pub about: Vec<usize>,
    pub news: News,
    /// When Slack first sent it.
    pub first_sent_at: Option<u64>,
    /// When the gateway first accepted it, and when that delivery was sent.
    pub accepted_at: Option<u64>,
    pub told_at: Option<u64>,
    /// Whether a ledger said by then that the message that it is about is an answer, the only one to its question.
    pub is_to_known: bool,
}

/// What Slack reports.
#[derive(Clone, Debug)]
pub enum News {
    Edited {
        version: u32,
        edit: Box<Edit>,
    },
    Deleted {
        channel: String,
        ts: String,
    },
    /// An answer was deleted; these are the model calls that it consists of.
    AnswerDeleted {
        channel: String,
        ts: String,
        calls: Vec<u64>,
    },
    /// A person wants an answer to stop.
    Stop(Reaction),
    Again(Reaction),
    Thumb(Reaction),
    Press(Press),
}

/// How an action comes to the gateway.
#[derive(Clone, Copy)]
pub(super) struct Comes {
    sent_at: u64,
    first_sent_at: u64,
    is_to_known: bool,
}

/// An answer of this age is known to have been delivered.
const OLD_ENOUGH: u64 = 60_000;

/// What a contact writes.
pub(super) fn words_of_contact(number: usize, version: u32) -> String {
    format!("{} It is part {number} of the gear box, says the drawing.", witness::version(number, version))
}

/// Slack's timestamp of a moment.
pub(super) fn ts(at: u64, number: usize) -> String {
    format!("{}.{:06}", (EPOCH_MS as u64 + at) / 1_000, at % 1_000 * 1_000 / 2 + number as u64 % 500)
}

impl State {
    /// Does what is due.
    pub(super) fn do_what_is_due(&mut self, world: &World, now: u64) {
        while self.due.first().is_some_and(|due| due.at <= now) {
            let due = self.due.remove(0);
            self.act(world, due, now);
        }
    }

    fn act(&mut self, world: &World, Due { number, at, deed }: Due, now: u64) {
        // An action that was due while nobody was connected happens now, if it still makes sense.
        let at = at.max(now);
        let Some(place) = self.questions.iter().position(|question| question.number == deed.about) else { return };
        let question = self.questions[place].clone();
        let due = at + deed.after;
        match deed.kind {
            Kind::SaysStop => {
                let stop = self.write(number, at, &question, "stop", due);
                self.questions[stop].is_stop = true;
            }
            Kind::Commands(which) => {
                let order = self.write(number, at, &question, COMMANDS[usize::from(which)], due);
                self.questions[order].is_order = true;
            }
            _ if question.is_deleted => {}
            Kind::Edits => {
                let news = self.edit(world, place, number, at);
                self.tell(number, &[deed.about], news, due, AGAIN_AFTER.len());
            }
            Kind::Deletes => {
                self.questions[place].is_deleted = true;
                let (channel, ts) = (question.inbound.reply_to.channel, question.inbound.ts);
                self.tell(number, &[deed.about], News::Deleted { channel, ts }, due, AGAIN_AFTER.len());
            }
            Kind::Stops => {
                let placeholder = self.posts.iter().find(|post| {
                    post.is_there() && post.shows.kind == Posted::Placeholder && post.shows.is_about(&question)
                });
                let growing = placeholder.filter(|post| post.grows_since.is_some()).map(|post| post.ts.clone());
                if let Some(ts) = growing
                    && world.dice("stop button").bool()
                {
                    self.stop_stream(world, number, &question, &ts);
                    return;
                }
                let placeholder = placeholder.filter(|_| world.dice("stop at").bool()).map(|post| post.ts.clone());
                let reaction = reaction(number, &question, placeholder, "octagonal_sign");
                self.tell(number, &[deed.about], News::Stop(reaction), due, AGAIN_AFTER.len());
            }
            Kind::AsksAgain => {
                let answer = self.answer_to(&question).filter(|_| world.dice("again at").bool());
                let reaction = reaction(number, &question, answer.map(|at| self.posts[at].ts.clone()), "repeat");
                self.tell(number, &[deed.about], News::Again(reaction), due, AGAIN_AFTER.len());
            }
            Kind::Thumbs => {
                let Some(answer) = self.answer_to(&question) else { return };
                let reaction = reaction(number, &question, Some(self.posts[answer].ts.clone()), "+1");
                self.tell(number, &[deed.about], News::Thumb(reaction), due, AGAIN_AFTER.len());
            }
            Kind::DeletesAnswer => {
                let Some(answer) = self.answer_to(&question) else { return };
                let post = &mut self.posts[answer];
                if post.at + OLD_ENOUGH > at {
                    return;
                }
                post.is_erased = true;
                let calls = witness::answers(&post.text).collect();
                let about: Vec<usize> = post.shows.numbers().collect();
                let news = News::AnswerDeleted { channel: post.place.channel.clone(), ts: post.ts.clone(), calls };
                self.tell(number, &about, news, due, AGAIN_AFTER.len());
            }
            Kind::Presses => self.press(world, number, &question, due),
        }
    }

    /// Its reader presses Slack's own button below a message that grows: the bot learns of it when it appends more.
    fn stop_stream(&mut self, world: &World, number: usize, question: &Question, ts: &str) {
        self.may_stop_all_of(world, question);
        if let Some(post) = self.posts.iter_mut().find(|post| post.ts == ts) {
            post.is_stopped = true;
        }
        world.say(|| format!("{ts} is stopped by a person"));
        self.done.push(Done {
            about: vec![question.number],
            news: News::Stop(reaction(number, question, None, "octagonal_sign")),
            first_sent_at: None,
            accepted_at: None,
            told_at: None,
            is_to_known: false,
        });
    }

    /// Many contacts edit or delete what they have just written.
    pub(super) fn have_contact_change_it(&mut self, world: &World, number: usize, at: u64) {
        let mut rng = world.dice("contact's change");
        let kind = match rng.u8(0..4) {
            0 => Kind::Edits,
            1 => Kind::Deletes,
            _ => return,
        };
        let deed = Deed { about: number, kind, after: rng.u64(10..80) };
        let due = Due { number, at: at + rng.u64(0..7_000), deed };
        let place = self.due.partition_point(|other| other.at <= due.at);
        self.due.insert(place, due);
    }

    /// The message that begins the answer to a question.
    fn answer_to(&self, question: &Question) -> Option<usize> {
        self.posts.iter().rposition(|post| {
            let is_answer = post.shows.kind == Posted::Reply && post.shows.number == 0;
            post.is_there() && is_answer && post.shows.is_about(question)
        })
    }

    /// A person writes this in the conversation of a question.
    fn write(&mut self, number: usize, at: u64, question: &Question, text: &str, due: u64) -> usize {
        let (event_id, own_ts) = (format!("Ev{number:03}"), ts(at, number));
        let Inbound { key, user, reply_to, .. } = question.inbound.clone();
        let inbound = Inbound {
            event_id: event_id.clone(),
            aliases: vec![format!("ts:T1:{}:{own_ts}", reply_to.channel)],
            key,
            user,
            reply_to,
            text: text.to_owned(),
            attached: Attachments::default(),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts: own_ts,
        };
        let asked = self.ask(number, inbound, at);
        let carries = Carried::Question(asked);
        self.deliveries.push(Sending::new(carries, event_id, due));
        asked
    }

    fn edit(&mut self, world: &World, place: usize, number: usize, at: u64) -> News {
        let question = &mut self.questions[place];
        question.version += 1;
        let version = question.version;
        let asked = question.number;
        let text = match asked < FIRST_OF_CONTACTS {
            true => {
                let named = format!("{}{}", model::name(asked), witness::version(asked, version));
                let more = " 輪軸 gear".repeat((number + version as usize) % 40);
                format!("{named} what, rather, of part {asked}?{more}")
            }
            false => words_of_contact(asked, version),
        };
        let attached = files::attached(world, asked, version);
        let message =
            Inbound { event_id: format!("Ev{asked:03}e{version}"), text, attached, ..question.inbound.clone() };
        // In a channel, an edit is delivered as another mention.
        let comes_alone = !message.reply_to.channel.starts_with('D');
        let at = ts(at, version as usize);
        let edit = Edit { message, at, is_for_us: true, comes_alone, manner: None, lost_files: false };
        News::Edited { version, edit: Box::new(edit) }
    }

    /// Presses a button of a message about the question, otherwise the last button there is.
    fn press(&mut self, world: &World, number: usize, question: &Question, due: u64) {
        let offers = |post: &super::Post| post.is_there() && !post.buttons.is_empty();
        let of_question = self.posts.iter().rfind(|post| offers(post) && post.shows.is_about(question));
        let Some(post) = of_question.or_else(|| self.posts.iter().rfind(|post| offers(post))) else { return };
        let mut rng = world.dice("press");
        let choice = post.buttons[rng.usize(..post.buttons.len())];
        let person = post.place.channel.strip_prefix('D').map(|person| format!("U{person}"));
        let press = Press {
            id: format!("Pr{number}"),
            user: person.unwrap_or_else(|| question.inbound.user.clone()),
            message: MessageRef::new(&post.place.channel, &post.ts),
            thread_ts: post.place.thread_ts.clone(),
            choice,
        };
        let about = self.asked_by(&post.shows.event_id.clone(), post.shows.numbers().collect());
        // Slack delivers a press once.
        self.tell(number, &about, News::Press(press.clone()), due, 0);
        if rng.bool() {
            let press = Press { id: format!("Pr{number}b"), ..press };
            self.tell(number, &about, News::Press(press), due + one_of(&mut rng, &[200, 2_000, 60_000]), 0);
        }
    }

    /// The questions that an answer is for, including after it was requested again.
    fn asked_by(&self, event_id: &str, mut about: Vec<usize>) -> Vec<usize> {
        if let Some(wish) = event_id.strip_prefix(":again:") {
            let wished = self.done.iter().filter(|done| match &done.news {
                News::Again(reaction) => reaction.event_id.as_deref() == Some(wish),
                News::Press(press) => wish == format!("again:{}:{}", press.message.channel, press.message.ts),
                _ => false,
            });
            about.extend(wished.flat_map(|done| &done.about));
        }
        about
    }

    /// These questions and those that were answered together with one of them, which are asked again together.
    fn answered_with(&self, about: &[usize]) -> Vec<usize> {
        let answers = self.posts.iter().filter(|post| post.shows.kind == Posted::Reply);
        let theirs = answers.filter(|post| post.shows.numbers().any(|number| about.contains(&number)));
        theirs.flat_map(|post| post.shows.numbers()).chain(about.iter().copied()).collect()
    }

    fn tell(&mut self, number: usize, about: &[usize], news: News, due: u64, retries: usize) {
        let event_id = match &news {
            News::Press(press) => press.id.clone(),
            _ => format!("De{number:03}"),
        };
        self.done.push(Done {
            about: about.to_vec(),
            news,
            first_sent_at: None,
            accepted_at: None,
            told_at: None,
            is_to_known: false,
        });
        let carries = Carried::Done(self.done.len() - 1);
        let tries = AGAIN_AFTER.len() - retries;
        self.deliveries.push(Sending { tries, ..Sending::new(carries, event_id, due) });
    }

    /// What is returned when missed messages are read back.
    pub(super) fn past(&self, place: &BackfillRequest, now: u64) -> Past {
        let is_there = |question: &&Question| {
            let Inbound { reply_to, ts, .. } = &question.inbound;
            let is_here = reply_to.channel == place.channel && reply_to.thread_ts == place.thread_ts;
            is_here && question.said_at <= now && !question.is_deleted && *ts > place.after
        };
        // In a direct message nobody else can have answered.
        let is_open = |question: &&Question| place.channel.starts_with('D') || self.answer_to(question).is_none();
        let mut open: Vec<&Question> = self.questions.iter().filter(is_there).filter(is_open).collect();
        open.sort_by(|one, other| one.inbound.ts.cmp(&other.inbound.ts));
        let message = |question: &Question| {
            let event_id = format!("{}missed", question.inbound.event_id);
            Inbound { event_id, ..self.says_now(question) }
        };
        Past { messages: open.into_iter().map(message).collect(), is_whole: true, ..Past::default() }
    }

    /// All questions of a conversation may have been finished.
    pub(super) fn settle_all_of(&self, world: &World, like: &Question) {
        self.all_of(like).for_each(|number| world.witness.settle(number));
    }

    /// All questions of a conversation may be stopped from now on.
    pub(super) fn may_stop_all_of(&self, world: &World, like: &Question) {
        self.all_of(like).for_each(|number| world.witness.may_stop(number));
    }

    fn all_of(&self, like: &Question) -> impl Iterator<Item = usize> {
        self.questions
            .iter()
            .filter(|question| question.inbound.key == like.inbound.key)
            .map(|question| question.number)
    }

    /// The answer that this is about, where its question has no other.
    fn only_answer(&self, about: &[usize], news: &News) -> Option<String> {
        let is_about = |post: &&super::Post| {
            let is_answer = post.shows.kind == Posted::Reply && post.shows.number == 0 && !post.is_deleted;
            is_answer && post.shows.numbers().any(|number| about.contains(&number))
        };
        let mut answers = self.posts.iter().filter(is_about);
        let (answer, another) = (answers.next()?, answers.next());
        let is_meant = match news {
            News::AnswerDeleted { ts, .. } => *ts == answer.ts,
            News::Thumb(Reaction { message, .. }) | News::Press(Press { message, .. }) => message.ts == answer.ts,
            News::Again(_) => answer.is_there(),
            News::Edited { .. } | News::Deleted { .. } | News::Stop(_) => false,
        };
        (is_meant && another.is_none()).then(|| answer.ts.clone())
    }

    fn says_now(&self, question: &Question) -> Inbound {
        let edits = self.done.iter().rev().filter_map(|done| match &done.news {
            News::Edited { edit, .. } if edit.message.ts == question.inbound.ts => Some(edit.message.clone()),
            _ => None,
        });
        edits.into_iter().next().unwrap_or_else(|| question.inbound.clone())
    }
}

fn reaction(number: usize, question: &Question, to: Option<String>, reaction: &str) -> Reaction {
    let author = if to.is_some() { ReactedAuthor::Bot } else { ReactedAuthor::Themselves };
    Reaction {
        event_id: Some(format!("De{number:03}")),
        user: question.inbound.user.clone(),
        message: match to {
            Some(ts) => MessageRef::new(&question.inbound.reply_to.channel, ts),
            None => question.inbound.message_ref(),
        },
        reaction: reaction.to_owned(),
        author,
    }
}

fn deleted(message: MessageRef, of: DeletedAuthor) -> Change {
    Change::Deleted(Deletion { message, thread: None, of })
}

impl Slack {
    /// Whether a ledger says that this message is an answer.
    fn is_in_ledger(&self, ts: &str) -> bool {
        let homes = self.state().homes.clone();
        let lines = homes.iter().map(|home| verdict::ledger(home)).collect::<String>();
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().any(|line| line["type"] == "turn.processed" && line["replyTs"] == ts)
    }

    /// Delivers an action; returns whether it was accepted.
    pub(super) async fn send_done(&self, intake: &dyn Intake, place: usize) -> bool {
        let before = self.does(place);
        let news = self.state().done[place].news.clone();
        let taken = match news {
            News::Edited { edit, .. } => intake.change(Change::Edited(edit)).await,
            News::Deleted { channel, ts } => {
                intake.change(deleted(MessageRef { channel, ts }, DeletedAuthor::Us)).await
            }
            News::AnswerDeleted { channel, ts, .. } => {
                intake.change(deleted(MessageRef { channel, ts }, DeletedAuthor::Own)).await
            }
            News::Stop(reaction) | News::Again(reaction) | News::Thumb(reaction) => intake.react(reaction).await,
            News::Press(press) => intake.press(press).await,
        };
        self.did(place, &before, taken.as_ref().map(drop))
    }

    /// An action comes to the gateway.
    pub(super) fn does(&self, place: usize) -> Comes {
        let (world, sent_at) = (&self.world, self.world.time());
        let (Done { about, news, .. }, first_sent_at) = {
            let done = &mut self.state().done[place];
            let first_sent_at = *done.first_sent_at.get_or_insert(sent_at);
            (done.clone(), first_sent_at)
        };
        world.say(|| format!("{news:?}"));
        if let News::Again(_) | News::Press(Press { choice: Choice::Again, .. }) = &news {
            let all = self.state().answered_with(&about);
            all.into_iter().for_each(|number| world.witness.wanted_again(number));
        }
        // An edit may bring its question before anything else does.
        if matches!(&news, News::Edited { edit, .. } if edit.comes_alone) {
            for question in self.state().questions.iter_mut().filter(|question| about.contains(&question.number)) {
                question.first_sent_at.get_or_insert(sent_at);
            }
        }
        let answer = self.state().only_answer(&about, &news);
        let is_to_known = answer.is_some_and(|ts| self.is_in_ledger(&ts));
        if let News::Stop(_) = &news {
            let state = self.state();
            let stopped = state.questions.iter().filter(|question| about.contains(&question.number));
            stopped.for_each(|question| state.may_stop_all_of(world, question));
        }
        Comes { sent_at, first_sent_at, is_to_known }
    }

    /// The gateway has taken in an action, or failed to; returns whether it counts as taken in.
    pub(super) fn did(&self, place: usize, comes: &Comes, taken: Result<(), &Failure>) -> bool {
        let (world, Comes { sent_at, first_sent_at, is_to_known }) = (&self.world, *comes);
        if let Err(failure) = taken {
            world.say(|| format!("not taken in: {}", World::why(failure.message())));
            return false;
        }
        // A killed process takes in nothing, although a vote that cannot be stored is no error.
        if world.is_dead() {
            return false;
        }
        let mut state = self.state();
        let done = &mut state.done[place];
        if done.accepted_at.is_none() {
            (done.accepted_at, done.told_at, done.is_to_known) = (Some(world.time()), Some(sent_at), is_to_known);
        }
        let (at, follows) = (world.time(), world.scenario.setting.follows_deletes);
        let (about, news) = (state.done[place].about.clone(), state.done[place].news.clone());
        match news {
            News::Edited { version, .. } => {
                for question in state.questions.iter().filter(|question| about.contains(&question.number)) {
                    let is_known = question.accepted_at.is_some_and(|accepted| accepted < first_sent_at);
                    world.witness.edited(at, question.number, version, is_known);
                }
            }
            News::Deleted { .. } => about.iter().for_each(|&number| {
                // What a contact has said may have been passed on.
                world.witness.deleted(at, number, follows && number < FIRST_OF_CONTACTS);
            }),
            // What the gateway does not know to have posted, it cannot erase.
            News::AnswerDeleted { calls, .. } if follows && is_to_known => {
                world.witness.answers_deleted(at, calls.into_iter());
            }
            News::Stop(reaction) => {
                for question in state.questions.iter().filter(|question| about.contains(&question.number)) {
                    // It may arrive before the message that it is about, but not together with it.
                    let is_in_order = question.accepted_at.is_none_or(|accepted| accepted < sent_at);
                    if is_in_order && reaction.message.ts == question.inbound.ts {
                        world.witness.stopped(at, question.number);
                    }
                    // Messages that are answered together are stopped together.
                    state.settle_all_of(world, question);
                }
            }
            _ => {}
        }
        true
    }
}
