//! Checks what must hold when a world has come to rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::{Range, RangeInclusive},
    path::Path,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use pmk_core::{Origin, structure::pair_tools};
use pmk_host::{
    chat::Inbound,
    front::Kind,
    ledger::report::TurnReport,
    store::{Opening, Parked, Place, Pressed, Store, is_again},
};
use pmk_system::{clock::Clock, home, threads::Threads};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    aging::{self, Stored},
    database::WorldsDatabase,
    model,
    policies::Policies,
    scenario::{Harm, Trouble, What},
    slack::{Done, FIRST_OF_CONTACTS, Known, Post, Question, Refused, Slack, direct, number},
    witness,
    world::World,
};

mod changed;
mod erased;
mod figures;
mod heeded;
mod missed;
mod parts;
mod policy;
mod told;

use heeded::Vote;

/// A model with a smaller window has hardly room for the system prompt and a question.
const LEAST_ROOM: u64 = 2_500;

/// The time within which it is stored which message grows, in milliseconds.
const STORED_WITHIN: u64 = 60_000;

/// Only a message with more characters may be too long for a model.
const LONGEST_LINE: usize = 400;

/// The outcome of a world.
pub struct Outcome {
    pub breaches: Vec<String>,
    /// The content of the ledger's files.
    pub ledger: String,
    /// Answered questions.
    pub answered: usize,
}

/// Checks a world that has come to rest.
pub fn of(
    world: &World,
    slack: &Slack,
    homes: &[TempDir],
    database: Option<&WorldsDatabase>,
    policies: &Policies,
) -> Outcome {
    let mut ledger: String = homes.iter().map(|home| ledger(home.path())).collect();
    // Lines of hosts that are gone for good.
    for line in database.map_or_else(Vec::new, WorldsDatabase::lines_to_come) {
        if !ledger.contains(line.trim_end()) {
            ledger.push_str(line.trim_end());
            ledger.push('\n');
        }
    }
    let home = homes[0].path();
    let place = database.map_or_else(|| home.into(), |database| database.place(home));
    // What is gone since the last look.
    aging::watch(world, slack, &database.map_or(Stored::File(home), Stored::Database));
    let mut breaches = world.breaches();
    let mut kept = Kept::read(place);
    kept.spent = figures::spent(&Store::path(home), database);
    kept.votes = heeded::votes(&Store::path(home), database);
    breaches.extend(match database {
        Some(database) => changed::left_in_database(&world.witness, database),
        None => changed::left_in_file(&world.witness, &Store::path(home)),
    });
    let lines: Vec<Value> = ledger.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let verdict = Verdict {
        world,
        questions: slack.questions(),
        posts: but_named_repeats(slack.posts(), &lines, world),
        done: slack.done(),
        reports: slack.reports(),
        refused: slack.refused(),
        noticed: slack.noticed(),
        silences: slack.silences(),
        ledger: &ledger,
        kept,
        policies,
    };
    let answered = verdict.judge(&mut breaches);
    Outcome { breaches, ledger, answered }
}

/// The ledgers of all months, oldest first.
pub fn ledger(home: &Path) -> String {
    let Ok(folder) = fs::read_dir(home::gateway_dir(home)) else { return String::new() };
    let mut files: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("events-")));
    files.sort();
    files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// The relevant content of the store.
struct Kept {
    parked: Vec<Parked>,
    /// How often each question is in an archive.
    archived: BTreeMap<usize, usize>,
    torn: Vec<String>,
    /// Presses of buttons whose effect is not complete.
    presses: Vec<Pressed>,
    votes: BTreeSet<Vote>,
    /// The input and the output tokens of all turns.
    spent: [u64; 2],
}

impl Kept {
    fn read(place: Place) -> Kept {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let threads = Threads::None(Arc::new(|| Duration::ZERO));
            let store = Store::open_with(place, &Opening { clock: Clock::system(), threads }).expect("the store opens");
            let mut kept = Kept {
                parked: store.parked().await.expect("readable"),
                archived: BTreeMap::new(),
                torn: vec![],
                presses: store.presses(0).await.expect("readable"),
                votes: BTreeSet::new(),
                spent: [0; 2],
            };
            for session in store.sessions().await.expect("readable") {
                let all = store.session_messages(&session.key, true).await.expect("readable");
                let live: Vec<_> =
                    all.iter().filter(|stored| stored.live).map(|stored| &stored.entry.message).collect();
                if !pair_tools(&live).orphans.is_empty() {
                    kept.torn.push(session.key.to_string());
                }
                for stored in &all {
                    // The window may hold it shortened.
                    let message = stored.entry.original.as_ref().unwrap_or(&stored.entry.message);
                    if message.origin == Origin::User {
                        for number in model::names(&message.plain_text()) {
                            *kept.archived.entry(number).or_default() += 1;
                        }
                    }
                }
            }
            kept
        })
    }
}

/// The messages that people see, except late answers after another host had given the same answer: they are allowed if
/// that host has recorded that its own may be a repeat, because it could not know.
/// Where that could not be recorded, because the database was out of reach, it cannot be told.
fn but_named_repeats(posts: Vec<Post>, lines: &[Value], world: &World) -> Vec<Post> {
    let named = |ts: &str| lines.iter().any(|line| line["type"] == "reply.may-repeat" && line["replyTs"] == ts);
    let is_off = |at: u64| (0..world.hosts()).any(|host| world.scenario.is_hit(Harm::OffDatabase, host, at));
    let is_repeat = |late: &Post| {
        let is_known = |post: &Post| named(&post.ts) || is_off(post.posted_at);
        let is_first = |post: &Post| post.tag == late.tag && post.ts != late.ts && is_known(post);
        late.known != Known::ToWhoeverLooks && late.tag.kind == Kind::Reply && posts.iter().any(is_first)
    };
    posts.iter().filter(|post| !is_repeat(post)).cloned().collect()
}

/// Whether it concerns a person's answer, which the gateway processes as a separate message.
fn is_passed_on(event_id: &str) -> bool {
    event_id.starts_with(":answer:") || event_id.starts_with(":meant:")
}

/// Whether a message begins an answer.
fn is_answer(post: &Post) -> bool {
    post.shows.kind == Kind::Reply && post.shows.number == 0
}

struct Verdict<'a> {
    world: &'a World,
    questions: Vec<Question>,
    posts: Vec<Post>,
    done: Vec<Done>,
    reports: Vec<TurnReport>,
    refused: Vec<Refused>,
    noticed: BTreeSet<usize>,
    silences: Vec<Range<u64>>,
    ledger: &'a str,
    kept: Kept,
    policies: &'a Policies,
}

/// Whether its author has written a "stop" after it.
fn stopped_by_word(asked: &Question, here: &[&Question]) -> bool {
    let stops = |other: &&&Question| other.is_stop && other.inbound.user == asked.inbound.user;
    let place = |question: &Question| (question.said_at, question.inbound.ts.clone());
    here.iter().filter(stops).any(|stop| place(stop) > place(asked))
}

impl Verdict<'_> {
    fn judge(&self, breaches: &mut Vec<String>) -> usize {
        let mut lines: Vec<Value> = Vec::new();
        for line in self.ledger.lines() {
            match serde_json::from_str(line) {
                Ok(line) => lines.push(line),
                // It is written anew, unless the disk was full when it was to be stored.
                Err(_) if self.world.has_torn(line) => {}
                Err(_) => breaches.push("a line of the ledger is no JSON".to_owned()),
            }
        }
        for line in lines.iter().filter(|line| line["type"] == "turn.panicked") {
            breaches.push(format!("a turn panicked at {}", line["place"]));
        }
        self.judge_errors(&lines, breaches);
        for key in &self.kept.torn {
            breaches.push(format!("the live window of {key} holds half a tool pair"));
        }
        let mut answered = 0;
        for question in self.questions.iter().filter(|question| question.number < FIRST_OF_CONTACTS) {
            answered += usize::from(self.judge_question(question, breaches));
        }
        // The simulated history can be read, or the call fails: nothing is posted without looking.
        for line in lines.iter().filter(|line| line["type"] == "reply.repeated") {
            breaches.push(format!("a part may have been posted twice: {line}"));
        }
        self.judge_parts(breaches);
        self.judge_order(&lines, breaches);
        self.judge_ledger(&lines, breaches);
        self.judge_wishes(&lines, breaches);
        self.judge_figures(&lines, breaches);
        self.judge_heeded(&lines, breaches);
        self.judge_stops(breaches);
        self.judge_deletions(&lines, breaches);
        self.judge_policies(&lines, breaches);
        self.judge_presence(&lines, breaches);
        self.judge_notices(&lines, breaches);
        answered
    }

    /// What only a bug brings about excuses nothing: a message that nobody worked on, and one that is parked because the
    /// store was used wrongly.
    fn judge_errors(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let is_of_a_bug = |why: &str| {
            why.contains("a bug in this program") || why.contains("has no position") || why.starts_with("turn ")
        };
        for line in lines {
            let why = line["why"].as_str().unwrap_or_default();
            if line["type"] == "queue.swept" && !self.may_be_swept() {
                breaches.push("the sweep found messages that nobody worked on".to_owned());
            } else if line["type"] == "turn.parked" && is_of_a_bug(why) {
                breaches.push(format!("a question was parked because {why}"));
            }
        }
    }

    /// Whether something may be stored although the disk, or the database, said that it was not.
    fn may_be_swept(&self) -> bool {
        self.world.scenario.events.iter().any(|event| match event.what {
            What::Trouble { kind, .. } => {
                matches!(kind, Trouble::DiskFull | Trouble::DiskBroken | Trouble::DiskUnread)
            }
            What::Harm { .. } | What::Statement { .. } => true,
            _ => false,
        })
    }

    /// Whether Slack has permanently refused a message about it.
    fn is_refused(&self, question: &Question) -> bool {
        self.refused.iter().any(|refused| refused.tag.is_about(question))
    }

    /// Whether Slack has permanently refused a change of this message.
    fn is_fixed(&self, ts: &str) -> bool {
        self.refused.iter().any(|refused| refused.replaces.as_deref() == Some(ts))
    }

    /// Whether there was something that this "stop" may have stopped: a question of its author in the same conversation
    /// that came before it, or was to be asked again, and was not answered when it came. Another "stop" with nothing to
    /// stop is a question, too.
    fn has_stopped_one(&self, stop: &Question) -> bool {
        let Some(stopped_at) = stop.accepted_at else { return false };
        let is_same = |asked: &&Question| {
            let is_theirs = asked.inbound.key == stop.inbound.key && asked.inbound.user == stop.inbound.user;
            is_theirs && asked.number != stop.number
        };
        self.questions.iter().filter(is_same).any(|asked| {
            // It may have been read back before an event brought it.
            let is_read_back = self.world.scenario.setting.presence;
            let is_taken_in = is_read_back || asked.accepted_at.is_none_or(|came| came <= stopped_at);
            let has_come = is_taken_in && asked.said_at <= stop.said_at;
            let is_answered = self.replies(asked).iter().any(|reply| reply.at < stop.said_at);
            has_come && !is_answered || self.was_wanted_again(asked.number, stopped_at)
        })
    }

    /// Whether there is a notice about it.
    fn is_told(&self, question: &Question) -> bool {
        let mut notices = self.posts.iter().filter(|post| post.shows.kind == Kind::Notice);
        notices.any(|post| post.shows.is_about(question))
    }

    /// The parked message of this question, itself or as part of an answer for several.
    fn parked(&self, question: &Question) -> Option<&Parked> {
        let asked = &question.inbound;
        let is_it = |message: &Inbound| message.ts == asked.ts && message.user == asked.user && !is_again(message);
        let is_its = |id: &String| number(id) == Some(question.number);
        let mut parked = self.kept.parked.iter();
        parked.find(|parked| parked.message.as_ref().is_some_and(is_it) || parked.event_ids.iter().any(is_its))
    }

    /// Whether the question of this event is parked, or was until its conversation was erased.
    fn is_parked(&self, event_id: &str) -> bool {
        let mut messages = self.kept.parked.iter().filter_map(|parked| parked.message.as_ref());
        messages.any(|message| message.event_id == event_id) || self.event_went_parked(event_id)
    }

    /// The messages that answer it.
    fn replies(&self, question: &Question) -> Vec<&Post> {
        let posts = self.posts.iter().filter(|post| !post.is_deleted);
        let mut replies: Vec<&Post> = posts.filter(|post| is_answer(post) && post.shows.is_about(question)).collect();
        // Where several asked, and their conversation refuses the answer, each gets it in person.
        let own = direct(&question.inbound.user);
        let is_anothers = |post: &&Post| post.is_direct() && post.place.channel != own;
        match replies.iter().all(is_anothers) {
            // It is enough that one of them gets it.
            true => replies.truncate(1),
            false => replies.retain(|post| !is_anothers(post)),
        }
        // An answer that a person deleted is posted again if nobody knew that it existed.
        if replies.len() > 1 {
            replies.retain(|post| !post.is_erased);
        }
        replies
    }

    /// Whether there is a cause for a reply that is no answer: it is long, or to be stopped, or the model did not answer a
    /// request for it.
    fn has_excuse(&self, question: &Question, reply: &Post) -> bool {
        let is_long = |asked: &Question| asked.inbound.text.chars().count() > LONGEST_LINE;
        let here: Vec<&Question> =
            self.questions.iter().filter(|other| other.inbound.key == question.inbound.key).collect();
        // What was answered along and deleted before the answer went out is no longer named there.
        let is_collected = self.world.scenario.setting.queue != "sequential";
        let mut together = here.iter().filter(|other| reply.shows.is_about(other) || is_collected && other.is_deleted);
        let since = question.first_sent_at.unwrap_or_default();
        together.any(|asked| {
            let is_stopped = self.is_to_stop(asked.number) || stopped_by_word(asked, &here);
            is_long(asked) || is_stopped || self.world.witness.is_hindered(asked.number, &(since..=reply.at))
        })
    }

    fn judge_question(&self, question: &Question, breaches: &mut Vec<String>) -> bool {
        let Question { number, accepted_at, is_acknowledged, is_probe, is_stop, is_order, .. } = question;
        let replies = self.replies(question);
        let parked = self.parked(question);
        // One that was asked while the gateway was away may never have been sent.
        let has_come = question.first_sent_at.is_some();
        let must_answer = *is_probe && has_come && self.world.scenario.setting.room() >= LEAST_ROOM;
        match replies.as_slice() {
            [] if must_answer => breaches.push(format!("q{number}, asked when all was well, got no answer")),
            [] if accepted_at.is_none() && !is_acknowledged && !self.is_to_be_read_back(question) => {}
            [] if *is_stop && self.has_stopped_one(question) => {}
            [] if self.is_called_off(question) => {}
            [] => match parked {
                Some(parked) if !parked.told => breaches.push(format!("q{number} is parked, and nobody was told")),
                Some(_) if !self.is_told(question) && !self.is_refused(question) => {
                    breaches.push(format!("q{number} is parked, and its asker sees nothing of it"));
                }
                Some(_) => {}
                None if self.went_parked(question) => {}
                None => breaches.push(format!("q{number} was taken in and never answered")),
            },
            [reply] => {
                // A steered message is asked last, and answered together with the message it was steered into.
                let is_asked = |named: &usize| reply.shows.numbers().any(|asked| asked == *named);
                // A command may be answered with earlier text. A word that found nothing to stop names no question, so
                // its answer is to what was asked together with it.
                let is_models = !*is_stop && witness::answers(&reply.text).next().is_some();
                let named = if is_models { model::names(&reply.text) } else { vec![] };
                if must_answer && named.is_empty() {
                    breaches.push(format!("q{number}, asked when all was well, got no answer but: {}", reply.text));
                }
                if !named.is_empty() && !named.iter().any(is_asked) {
                    breaches.push(format!("q{number} got an answer to {named:?}"));
                }
                if !*is_stop && !*is_order && reply.text.contains(model::SUMMARY) {
                    breaches.push(format!("q{number} got an answer to no question: {}", reply.text));
                }
                if !*is_stop && !*is_order && !is_models && !self.has_excuse(question, reply) {
                    breaches.push(format!("q{number} got no answer, for no reason, but: {}", reply.text));
                }
                if self.world.witness.went_in_time(*number) {
                    breaches.push(format!("q{number} was deleted before it was answered, and was answered"));
                }
            }
            several => breaches.push(format!("q{number} was answered {} times", several.len())),
        }
        let waits = |post: &&Post| {
            let is_there = !post.is_deleted && post.known != Known::ToNobody;
            is_there && post.shows.kind == Kind::Placeholder && post.shows.is_about(question)
        };
        let has_answer = parked.is_some_and(|parked| parked.answered);
        if has_answer && !self.world.scenario.setting.contacts && self.is_told(question) {
            breaches.push(format!("q{number} has its answer, and its asker is told that there is none"));
        }
        // A placeholder that could not be searched for is deleted with what is parked; that of a question which is answered
        // along was to be removed.
        let is_along =
            |parked: &Parked| parked.message.as_ref().is_some_and(|message| message.ts != question.inbound.ts);
        let is_kept = parked.is_some_and(|parked| parked.placeholder.is_none() && !is_along(parked));
        // Which message grows is stored a moment after it began.
        let is_stored =
            |post: &&Post| !self.world.scenario.kills_between(post.posted_at, post.posted_at + STORED_WITHIN);
        let grew = self.posts.iter().filter(waits).any(|post| post.grows_since.is_some() && is_stored(&post));
        if grew && parked.is_some_and(|parked| parked.told) {
            breaches.push(format!("the beginning of an answer to q{number} stays, and it is parked"));
        }
        if self.posts.iter().any(|post| waits(&post)) && !is_kept && !self.went_parked(question) {
            breaches.push(format!("a placeholder for q{number} waits for ever"));
        }
        let archived = self.kept.archived.get(number).copied().unwrap_or(0);
        if archived > 1 + self.wishes_in(question) {
            breaches.push(format!("q{number} stands {archived} times in the archive"));
        }
        if archived == 0 && self.must_be_archived(question, &replies) {
            breaches.push(format!("q{number} was answered, and is not in the archive"));
        }
        replies.len() == 1
    }

    /// Of two questions in a conversation that arrived in the order they were written in, the first must be answered
    /// first.
    fn judge_order(&self, lines: &[Value], breaches: &mut Vec<String>) {
        // A parked question that is retried may have been overtaken since. Its asker was told that it is parked, where Slack
        // could be reached before it was retried.
        let was_parked = |question: &Question, between: RangeInclusive<u64>| {
            let key = question.inbound.key.to_string();
            let parks = |line: &&Value| line["type"] == "turn.parked" && line["session"] == key;
            self.noticed.contains(&question.number)
                && lines.iter().filter(parks).any(|line| self.times_of(line).any(|at| between.contains(&at)))
        };
        let mut by_key: BTreeMap<String, Vec<&Question>> = BTreeMap::new();
        for question in &self.questions {
            by_key.entry(question.inbound.key.to_string()).or_default().push(question);
        }
        for mut questions in by_key.into_values() {
            questions.sort_by(|one, other| (one.said_at, &one.inbound.ts).cmp(&(other.said_at, &other.inbound.ts)));
            let done: Vec<(&Question, u64, &Post)> = questions
                .iter()
                .filter_map(|question| Some((*question, question.accepted_at?, *self.replies(question).first()?)))
                .collect();
            let pairs = done
                .iter()
                .enumerate()
                .flat_map(|(at, first)| done[at + 1..].iter().map(move |second| (first, second)));
            for ((first, came, reply), (second, _, later)) in pairs {
                let (answered, answered_later) = (reply.at, later.at);
                // When several are processed together, those that need no model come first; what is answered together
                // is stopped together.
                let is_stopped = |it: &Question, told: &Post| {
                    let mut about = told.shows.numbers().chain([it.number]);
                    about.any(|number| self.is_to_stop(number)) || stopped_by_word(it, &questions)
                };
                let needs_none = second.is_order || is_stopped(first, reply) || is_stopped(second, later);
                if needs_none && self.world.scenario.setting.queue != "sequential" {
                    continue;
                }
                // Even a message that is not known to have been accepted may have been.
                let is_first = second.first_sent_at.is_some_and(|sent| *came < sent);
                let is_one = reply.shows.event_id == later.shows.event_id;
                if is_first && answered > answered_later && !is_one && !was_parked(first, *came..=answered_later) {
                    breaches.push(format!("q{} was answered before q{}", second.number, first.number));
                }
            }
        }
    }

    /// When a line of the ledger was written, as far as the clocks of the world tell.
    fn times_of(&self, line: &Value) -> impl Iterator<Item = u64> {
        let at = line["at"].as_str().and_then(|at| at.parse::<Timestamp>().ok()).map(Timestamp::as_millisecond);
        at.into_iter().flat_map(|at| self.world.times_of_clocks(at))
    }

    /// There must be exactly one ledger line for each turn that was answered, and no other lines.
    fn judge_ledger(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let mut told: BTreeMap<&str, usize> = BTreeMap::new();
        for line in lines.iter().filter(|line| line["type"] == "turn.processed") {
            if let Some(ts) = line["replyTs"].as_str() {
                *told.entry(ts).or_default() += 1;
            }
        }
        let is_told =
            |post: &Post| lines.iter().any(|line| line["type"] == "turn.processed" && line["replyTs"] == *post.ts);
        let is_same_for_another = |post: &Post, other: &Post| {
            post.is_direct() && other.is_direct() && post.place != other.place && post.shows == other.shows
        };
        for post in &self.posts {
            let of_contact = |id: &str| number(id).is_some_and(|number| number >= FIRST_OF_CONTACTS);
            if [&post.shows, &post.tag].into_iter().any(|tag| of_contact(&tag.event_id) || is_passed_on(&tag.event_id))
            {
                // Replies to contacts have their own kind of line.
                told.remove(post.ts.as_str());
                continue;
            }
            let is_reply = is_answer(post) && !post.is_deleted;
            // A host that finds an answer deleted posts it again.
            if post.is_erased {
                told.remove(post.ts.as_str());
                continue;
            }
            let lines = told.remove(post.ts.as_str()).unwrap_or(0);
            match (is_reply, lines) {
                (true, 1) | (false, 0) => {}
                // Of an answer that several get in person, one has the line.
                (true, 0) if self.posts.iter().any(|other| is_same_for_another(post, other) && is_told(other)) => {}
                // Partly delivered, and then parked.
                (true, 0) if self.is_parked(&post.shows.event_id) => {}
                (true, lines) => breaches.push(format!("the answer {} has {lines} lines in the ledger", post.ts)),
                // Withdrawn after a refusal.
                (false, _) if self.is_fixed(&post.ts) => {}
                (false, lines) => {
                    breaches.push(format!("{} is no answer and has {lines} lines in the ledger", post.ts));
                }
            }
        }
        for ts in told.keys() {
            breaches.push(format!("the ledger tells of an answer {ts} that nobody sees"));
        }
    }
}
