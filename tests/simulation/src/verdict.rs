//! What must hold when a world has come to rest.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use pmk_core::{Origin, structure::pair_tools};
use pmk_host::{
    front::Kind,
    store::{Opening, Parked, Store},
    talk::Inbound,
};
use pmk_system::{clock::Clock, home, threads::Threads};
use serde_json::Value;

use crate::{
    model,
    scenario::{Trouble, What},
    slack::{FIRST_OF_CONTACTS, Post, Question, Slack},
    world::World,
};

/// A model that takes less than this has hardly room for the system prompt and a question.
const LEAST_ROOM: u64 = 2_500;

/// What a world has come to.
pub struct Outcome {
    pub breaches: Vec<String>,
    /// The ledger, as it lies there.
    pub ledger: String,
    /// Answered questions.
    pub answered: usize,
}

/// Holds a world that has come to rest against all that must be.
pub fn of(world: &World, slack: &Slack, home: &Path) -> Outcome {
    let ledger = ledger(home);
    let mut breaches = world.breaches();
    let kept = Kept::read(home);
    let verdict = Verdict { world, questions: slack.questions(), posts: slack.posts(), ledger: &ledger, kept };
    let answered = verdict.judge(&mut breaches);
    Outcome { breaches, ledger, answered }
}

/// All months, the oldest first.
fn ledger(home: &Path) -> String {
    let Ok(folder) = fs::read_dir(home::gateway_dir(home)) else { return String::new() };
    let mut files: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("events-")));
    files.sort();
    files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// What the store holds.
struct Kept {
    parked: Vec<Parked>,
    /// How often each question stands in an archive.
    archived: BTreeMap<usize, usize>,
    torn: Vec<String>,
}

impl Kept {
    fn read(home: &Path) -> Kept {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let threads = Threads::None(Arc::new(|| Duration::ZERO));
            let store = Store::open_with(home, &Opening { clock: Clock::system(), threads }).expect("the store opens");
            let mut kept =
                Kept { parked: store.parked().await.expect("readable"), archived: BTreeMap::new(), torn: vec![] };
            for session in store.sessions().await.expect("readable") {
                let all = store.session_messages(&session.key, true).await.expect("readable");
                let live: Vec<_> =
                    all.iter().filter(|stored| stored.live).map(|stored| &stored.entry.message).collect();
                if !pair_tools(&live).orphans.is_empty() {
                    kept.torn.push(session.key.to_string());
                }
                for stored in &all {
                    let message = &stored.entry.message;
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

/// The name that Slack has for a question's event.
fn event(number: usize) -> String {
    format!("Ev{number:03}")
}

struct Verdict<'a> {
    world: &'a World,
    questions: Vec<Question>,
    posts: Vec<Post>,
    ledger: &'a str,
    kept: Kept,
}

impl Verdict<'_> {
    fn judge(&self, breaches: &mut Vec<String>) -> usize {
        let lines: Vec<Value> = self.ledger.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if lines.len() < self.ledger.lines().count() {
            breaches.push("a line of the ledger is no JSON".to_owned());
        }
        for line in lines.iter().filter(|line| line["type"] == "turn.panicked") {
            breaches.push(format!("a turn panicked at {}", line["place"]));
        }
        for key in &self.kept.torn {
            breaches.push(format!("the live window of {key} holds half a tool pair"));
        }
        let mut answered = 0;
        for question in self.questions.iter().filter(|question| question.number < FIRST_OF_CONTACTS) {
            answered += usize::from(self.judge_question(question, &lines, breaches));
        }
        self.judge_order(breaches);
        self.judge_ledger(&lines, breaches);
        answered
    }

    /// Whether somebody may never hear of something because Slack never takes it.
    fn refuses(&self) -> bool {
        self.has(Trouble::Refuses)
    }

    fn has(&self, trouble: Trouble) -> bool {
        let mut events = self.world.scenario.events.iter();
        events.any(|event| matches!(event.what, What::Trouble { kind, .. } if kind == trouble))
    }

    /// Whether there is a message that says so.
    fn is_told(&self, question: &Question) -> bool {
        let is_its = |id: &String| id.trim_end_matches('m') == question.inbound.event_id;
        let mut notices = self.posts.iter().filter(|post| post.shows.kind == Kind::Notice);
        notices.any(|post| is_its(&post.shows.event_id) || post.shows.event_ids.iter().any(is_its))
    }

    /// What keeps it, by itself or with an answer that is for several.
    fn parked(&self, inbound: &Inbound) -> Option<&Parked> {
        let is_it = |message: &Inbound| message.ts == inbound.ts && message.user == inbound.user;
        let is_its = |id: &String| id.trim_end_matches('m') == inbound.event_id;
        let mut parked = self.kept.parked.iter();
        parked.find(|parked| parked.message.as_ref().is_some_and(is_it) || parked.event_ids.iter().any(is_its))
    }

    fn is_parked(&self, event_id: &str) -> bool {
        let mut messages = self.kept.parked.iter().filter_map(|parked| parked.message.as_ref());
        messages.any(|message| message.event_id == event_id)
    }

    /// The messages that answer it.
    fn replies(&self, question: &Question) -> Vec<&Post> {
        let event_id = &question.inbound.event_id;
        let is_its = |id: &String| id == event_id || id.strip_suffix('m') == Some(event_id);
        let posts = self.posts.iter().filter(|post| !post.is_deleted);
        let replies = posts.filter(|post| post.shows.kind == Kind::Reply && post.shows.number == 0);
        replies.filter(|post| is_its(&post.shows.event_id) || post.shows.event_ids.iter().any(is_its)).collect()
    }

    fn judge_question(&self, question: &Question, lines: &[Value], breaches: &mut Vec<String>) -> bool {
        let Question { number, accepted_at, is_acknowledged, inbound, is_probe, .. } = question;
        let replies = self.replies(question);
        let parked = self.parked(inbound);
        match replies.as_slice() {
            [] if accepted_at.is_none() && !is_acknowledged => {}
            [] => match parked {
                Some(parked) if !parked.told => breaches.push(format!("q{number} is parked, and nobody was told")),
                Some(_) if !self.is_told(question) && !self.refuses() => {
                    breaches.push(format!("q{number} is parked, and its asker sees nothing of it"));
                }
                Some(_) => {}
                None if self.refuses() => {}
                None => breaches.push(format!("q{number} was taken in and never answered")),
            },
            [reply] => {
                // What is steered in is asked last, and answered with what it was steered into.
                let group = [std::slice::from_ref(&reply.shows.event_id), &reply.shows.event_ids].concat();
                let is_asked = |named: &usize| group.iter().any(|id| id.trim_end_matches('m') == event(*named));
                let named = model::names(&reply.text);
                if *is_probe && named.is_empty() && self.world.scenario.setting.room() >= LEAST_ROOM {
                    breaches.push(format!("q{number}, asked when all was well, got no answer but: {}", reply.text));
                }
                if !named.is_empty() && !named.iter().any(is_asked) {
                    breaches.push(format!("q{number} got an answer to {named:?}"));
                }
            }
            several => {
                let repeated = lines.iter().any(|line| line["type"] == "reply.repeated");
                if !repeated {
                    breaches.push(format!("q{number} was answered {} times", several.len()));
                }
            }
        }
        let event_id = &inbound.event_id;
        let waits = self.posts.iter().filter(|post| {
            let id = &post.shows.event_id;
            !post.is_deleted && post.shows.kind == Kind::Placeholder && id.trim_end_matches('m') == event_id
        });
        let has_answer = parked.is_some_and(|parked| parked.answered);
        if has_answer && !self.world.scenario.setting.contacts && self.is_told(question) {
            breaches.push(format!("q{number} has its answer, and its asker is told that there is none"));
        }
        // One that could not be looked for is taken away with what is parked.
        let is_kept = parked.is_some_and(|parked| parked.placeholder.is_none());
        if waits.count() > 0 && !self.refuses() && !is_kept {
            breaches.push(format!("a placeholder for q{number} waits for ever"));
        }
        let archived = self.kept.archived.get(number).copied().unwrap_or(0);
        if archived > 1 {
            breaches.push(format!("q{number} stands {archived} times in the archive"));
        }
        replies.len() == 1
    }

    /// Of two questions of a conversation that came in in the order they were written in, the first is answered first.
    fn judge_order(&self, breaches: &mut Vec<String>) {
        let mut by_key: BTreeMap<String, Vec<&Question>> = BTreeMap::new();
        for question in &self.questions {
            by_key.entry(question.inbound.key.to_string()).or_default().push(question);
        }
        for questions in by_key.values_mut() {
            questions.sort_by_key(|question| question.said_at);
            let done: Vec<(&Question, u64, u64)> = questions
                .iter()
                .filter_map(|question| Some((*question, question.accepted_at?, self.replies(question).first()?.at)))
                .collect();
            for pair in done.windows(2) {
                let [(first, came, answered), (second, _, answered_later)] = pair else { continue };
                // Even what was not taken in for certain may be there.
                if second.first_sent_at.is_some_and(|sent| *came < sent) && answered > answered_later {
                    breaches.push(format!("q{} was answered before q{}", second.number, first.number));
                }
            }
        }
    }

    /// One line for each turn that was answered, and no other.
    fn judge_ledger(&self, lines: &[Value], breaches: &mut Vec<String>) {
        let mut told: BTreeMap<&str, usize> = BTreeMap::new();
        for line in lines.iter().filter(|line| line["type"] == "turn.processed") {
            if let Some(ts) = line["replyTs"].as_str() {
                *told.entry(ts).or_default() += 1;
            }
        }
        for post in &self.posts {
            if post.shows.event_id.len() > event(0).len() + 1 {
                // What contacts say has lines of its own.
                told.remove(post.ts.as_str());
                continue;
            }
            let is_reply = post.shows.kind == Kind::Reply && post.shows.number == 0 && !post.is_deleted;
            let lines = told.remove(post.ts.as_str()).unwrap_or(0);
            match (is_reply, lines) {
                (true, 1) | (false, 0) => {}
                // Half of it was delivered, for long enough.
                (true, 0) if self.is_parked(&post.shows.event_id) => {}
                (true, lines) => breaches.push(format!("the answer {} has {lines} lines in the ledger", post.ts)),
                // What was withdrawn after a refusal.
                (false, _) if self.refuses() => {}
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
