//! Conversations that the gateway erases for their age (`sessions.keepDays`): which worlds do, and what is seen of it. The
//! store is looked at every few minutes, so that what is gone is known to be gone by then.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    ops::RangeInclusive,
    sync::{Mutex, MutexGuard, PoisonError},
};

use fastrand::Rng;
use pmk_host::store::{Place, Store};
use rusqlite::{Connection, OpenFlags};

use crate::{
    random::{dice, one_of},
    scenario::{Said, Trouble, What},
    slack::{FIRST_OF_CONTACTS, Question, Slack},
    world::World,
};

/// Worlds of smaller seeds are known from before conversations aged, and stay as they were.
const FIRST: u64 = 2_300;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The gateway erases nothing while it knows that its clock is further ahead than this, in milliseconds.
const CLOCK_ERROR: i64 = HOUR as i64;

/// How often the store is looked at.
const LOOK_EVERY: u64 = 10 * MINUTE;

/// Within this time the gateway has looked twice for what is old: the first time a conversation may be busy.
const ERASES_WITHIN: u64 = 2 * HOUR + 5 * MINUTE;

/// How long before conversations age something is asked that may still wait for somebody then.
const ASKED_BEFORE: u64 = 40 * MINUTE;

/// Storing a message takes no longer than this.
const STORED_WITHIN: u64 = MINUTE;

/// An attempt of an operator takes no longer than this.
const ERASED_WITHIN: u64 = 5 * MINUTE;

/// The ids of the oldest and of the newest message of answered questions that each conversation has in its archive.
const ARCHIVED: &str = "SELECT s.key, min(m.id), max(m.id) FROM session s JOIN message m ON m.session_id = s.id
     JOIN turn t ON t.id = m.turn_id WHERE t.delivered_at IS NOT NULL GROUP BY s.key";
/// The conversations in which a contact's answer is awaited.
const WAITING: &str = "SELECT DISTINCT s.key FROM escalation e
     JOIN inbox i ON i.id = json_extract(e.marker, '$.askedBy') JOIN session s ON s.id = i.session_id
     WHERE e.closed_at IS NULL AND json_valid(e.marker)";
/// The conversations in which something is neither answered nor parked so that its asker knows.
const OPEN: &str = "SELECT DISTINCT s.key FROM inbox i JOIN session s ON s.id = i.session_id
     WHERE i.message IS NOT NULL AND (i.parked_at IS NULL OR i.parked_told = 0)";
/// The messages that are parked so that their askers know, with their conversations.
const PARKED: &str = "SELECT s.key, i.id FROM inbox i JOIN session s ON s.id = i.session_id
     WHERE i.message IS NOT NULL AND i.parked_at IS NOT NULL AND i.parked_told <> 0";

/// What is planned in a world in which conversations age.
#[derive(Clone, Debug)]
pub struct Aging {
    pub keep_days: u32,
    /// Whether the gateway knows that its clock is wrong, as it does by Slack's responses.
    pub tells_clock: bool,
    /// From then on conversations grow old.
    pub ages_at: u64,
    /// What is asked just before that needs contacts: the model calls tools.
    pub needs_contacts: bool,
    /// Then every conversation is asked once more.
    pub probed_at: u64,
    pub events: Vec<(u64, What)>,
}

/// The plan of a world with these events, in which conversations were asked something when all was well. None of the seeds
/// that were kept before has this last digit but one.
pub fn of(seed: u64, events: &[(u64, What)], (calm_at, well_at): (u64, u64)) -> Option<Aging> {
    if seed < FIRST || seed / 10 % 10 != 1 {
        return None;
    }
    let mut rng = dice(seed, "aging");
    let tells_clock = rng.u8(0..3) == 0;
    let keep_days = if tells_clock { 1 } else { one_of(&mut rng, &[1, 1, 2]) };
    let mut all = Vec::new();
    // A message is known by its event for a day: no two of these come while Slack may send one again.
    if rng.u8(0..3) == 0 {
        for _ in 0..rng.usize(1..4) {
            let at = rng.u64(0..calm_at);
            let is_near =
                |(other, what): &(u64, What)| matches!(what, What::Clock { .. }) && other.abs_diff(at) < 15 * MINUTE;
            if !events.iter().chain(&all).any(is_near) {
                let by = one_of(&mut rng, &[-2, 1, 13, 13, 20]) * HOUR as i64;
                all.push((at, What::Clock { by }));
            }
        }
    }
    let back: i64 = events.iter().chain(&all).map(|(_, what)| -set_by(what).min(0)).sum();
    let ages_at = well_at + 3 * HOUR;
    let limit = u64::from(keep_days) * DAY;
    // Where the clock is known to be ahead, nothing is erased.
    let idles = rng.u8(0..4) < if tells_clock { 3 } else { 2 };
    let aged_at = if back == 0 && keep_days == 1 && idles {
        ages_at + limit
    } else {
        let by = limit as i64 + back;
        all.push((ages_at, What::Clock { by }));
        ages_at
    };
    let lately = one_of(&mut rng, &[None, Some(Trouble::NotDone), Some(Trouble::ModelCalls)]);
    if let Some(kind) = lately {
        let from = ages_at - ASKED_BEFORE;
        // Slack takes nothing until after conversations are old.
        let (until, percent) = if kind == Trouble::NotDone { (aged_at + HOUR, 100) } else { (from + 10 * MINUTE, 95) };
        all.push((from, What::Trouble { kind, lasts: until - from, percent }));
        for _ in 0..rng.usize(1..5) {
            let said = Said { is_probe: false, ..one_of_those_asked(&mut rng, events) };
            all.push((from + rng.u64(0..5 * MINUTE), What::Says(said)));
        }
    }
    let probed_at = aged_at + ERASES_WITHIN + 2 * LOOK_EVERY;
    all.extend(events.iter().filter_map(|(_, what)| match what {
        What::Says(said @ Said { is_probe: true, .. }) => Some((probed_at, What::Says(said.clone()))),
        _ => None,
    }));
    Some(Aging {
        keep_days,
        tells_clock,
        ages_at,
        needs_contacts: lately == Some(Trouble::ModelCalls),
        probed_at,
        events: all,
    })
}

/// One of the questions that all conversations are asked when all is well.
fn one_of_those_asked(rng: &mut Rng, events: &[(u64, What)]) -> Said {
    let probes = events.iter().filter_map(|(_, what)| if let What::Says(said) = what { Some(said) } else { None });
    let probes: Vec<&Said> = probes.filter(|said| said.is_probe).collect();
    one_of(rng, &probes).clone()
}

/// By how much an event sets the clock, in milliseconds.
fn set_by(what: &What) -> i64 {
    if let What::Clock { by } = what { *by } else { 0 }
}

/// What was seen of the store.
#[derive(Default)]
pub struct Seen(Mutex<State>);

#[derive(Default)]
struct State {
    last: Option<Look>,
    /// When somebody was last seen to wait in a conversation.
    waited: BTreeMap<String, u64>,
    /// When each conversation was last found gone, or without what was parked there, or empty.
    emptied: BTreeMap<String, u64>,
}

/// The store at one time.
#[derive(Clone)]
pub struct Look {
    at: u64,
    archived: BTreeMap<String, RangeInclusive<i64>>,
    /// In which a contact's answer is awaited.
    waiting: BTreeSet<String>,
    open: BTreeSet<String>,
    parked: BTreeMap<String, BTreeSet<i64>>,
}

impl Look {
    fn is_empty(&self, key: &str) -> bool {
        !self.archived.contains_key(key) && !self.open.contains(key) && !self.parked.contains_key(key)
    }

    /// The conversations of which nothing is parked any more that was.
    fn without_what_was_parked(&self, last: &Look) -> impl Iterator<Item = String> {
        let is_left = |key: &str, was: &BTreeSet<i64>| self.parked.get(key).is_some_and(|now| !now.is_disjoint(was));
        last.parked.iter().filter(move |(key, was)| !is_left(key, was)).map(|(key, _)| key.clone())
    }
}

impl Seen {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the store again and again, for as long as the gateway runs.
pub async fn keep_watching(world: &World, slack: &Slack, place: &Place) -> ! {
    let Some(aging) = &world.scenario.aging else { pending().await };
    let begun = world.time();
    loop {
        world.until(world.time() + LOOK_EVERY).await;
        let Some(look) = watch(world, slack, place) else { continue };
        if look.at < aging.probed_at && begun.max(aging.ages_at) + ERASES_WITHIN < look.at {
            judge_old(world, slack, aging, &look);
        }
    }
}

/// Looks at the store once, and judges what is gone since the last time.
pub fn watch(world: &World, slack: &Slack, place: &Place) -> Option<Look> {
    let aging = world.scenario.aging.as_ref()?;
    let now = world.time();
    let look = look(place, now)?;
    let known = slack.questions().into_iter().filter(|question| question.accepted_at.is_some());
    let keys: BTreeSet<String> = known.map(|question| question.inbound.key.to_string()).collect();
    let last = {
        let mut state = world.seen.state();
        state.waited.extend(look.waiting.iter().chain(&look.open).map(|key| (key.clone(), now)));
        state.emptied.extend(keys.into_iter().filter(|key| look.is_empty(key)).map(|key| (key, now)));
        state.last.replace(look.clone())
    };
    if let Some(last) = last {
        world.seen.state().emptied.extend(look.without_what_was_parked(&last).map(|key| (key, now)));
        judge_gone(world, slack, aging, (&last, &look));
    }
    Some(look)
}

/// The store as it is now, where it can be read.
fn look(place: &Place, at: u64) -> Option<Look> {
    let store = Connection::open_with_flags(Store::path(&place.home), OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    let mut archived = store.prepare(ARCHIVED).ok()?;
    let rows = archived.query_map([], |row| Ok((row.get(0)?, row.get(1)?..=row.get(2)?))).ok()?;
    let archived: BTreeMap<_, _> = rows.collect::<Result<_, _>>().ok()?;
    let keys = |query: &str| -> Option<BTreeSet<String>> {
        store.prepare(query).ok()?.query_map([], |row| row.get(0)).ok()?.collect::<Result<_, _>>().ok()
    };
    let mut rows = store.prepare(PARKED).ok()?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
    let mut parked: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for (key, id) in rows.collect::<Result<Vec<(String, i64)>, _>>().ok()? {
        parked.entry(key).or_default().insert(id);
    }
    Some(Look { at, archived, waiting: keys(WAITING)?, open: keys(OPEN)?, parked })
}

/// What is gone since the last look must have been old enough, and nobody may have waited for anything there.
fn judge_gone(world: &World, slack: &Slack, aging: &Aging, (last, now): (&Look, &Look)) {
    let is_left = |key: &str, was: &RangeInclusive<i64>| {
        now.archived.get(key).is_some_and(|archived| archived.start() <= was.end())
    };
    for (key, _) in last.archived.iter().filter(|(key, was)| !is_left(key, was)) {
        let attempts = world.erasures.attempts();
        let may_be_operators = attempts.iter().any(|attempt| {
            attempt.key.to_string() == *key
                && (last.at.saturating_sub(ERASED_WITHIN)..=now.at).contains(&attempt.began_at)
        });
        if may_be_operators {
            continue;
        }
        world.say(|| format!("{key} is gone for its age"));
        world.seen.state().emptied.insert(key.clone(), now.at);
        let here = said_in(slack, key, last.at);
        for question in here.iter().filter(|question| !world.may_have_aged(question, last.at, now.at)) {
            world.breach(format!("{key} is gone, although q{} is not that old", question.number));
        }
        if last.waiting.contains(key) && now.waiting.contains(key) {
            world.breach(format!("{key} is gone, although a contact's answer is awaited there"));
        }
        if aging.tells_clock && world.least_ahead(last.at..=now.at) > CLOCK_ERROR {
            world.breach(format!("{key} is gone, although the clock is known to be ahead"));
        }
        world.witness.erased(now.at, &names(world, &here));
    }
}

/// What is old must be gone, except where somebody has waited for something since the gateway began to look.
fn judge_old(world: &World, slack: &Slack, aging: &Aging, look: &Look) {
    let looked_from = look.at - ERASES_WITHIN;
    let newest = world.clocks(0..=aging.ages_at - 1).max().unwrap_or_default();
    let is_old = world.clocks(looked_from..=look.at).all(|clock| clock - newest >= limit(aging));
    let is_ahead = aging.tells_clock && world.most_ahead(looked_from..=look.at) > CLOCK_ERROR;
    if !is_old || is_ahead {
        return;
    }
    let keys: BTreeSet<String> = slack.questions().iter().map(|question| question.inbound.key.to_string()).collect();
    let waited = world.seen.state().waited.clone();
    for key in keys.iter().filter(|key| waited.get(*key).is_none_or(|at| *at < looked_from)) {
        if look.archived.contains_key(key) {
            world.breach(format!("{key} is older than it is to be kept, and still there"));
        }
        let here = said_in(slack, key, look.at);
        let names = names(world, &here);
        world.witness.erased(look.at, &names);
        world.witness.erased_whole(names);
        let questions = slack.questions();
        let probes = questions.iter().filter(|question| question.said_at >= aging.probed_at);
        let next = probes.filter(|question| question.inbound.key.to_string() == *key);
        next.for_each(|question| world.witness.begins_anew(question.number));
    }
}

fn limit(aging: &Aging) -> i64 {
    i64::from(aging.keep_days) * DAY as i64
}

/// What was said in a conversation and acknowledged by then.
fn said_in(slack: &Slack, key: &str, by: u64) -> Vec<Question> {
    let mut questions = slack.questions();
    questions.retain(|question| {
        question.inbound.key.to_string() == key && question.accepted_at.is_some_and(|accepted| accepted <= by)
    });
    questions
}

/// The names of what these questions say. What contacts say is elsewhere as well.
fn names(world: &World, questions: &[Question]) -> Vec<String> {
    let numbers = questions.iter().map(|question| question.number).filter(|number| *number < FIRST_OF_CONTACTS);
    world.witness.said(&numbers.collect())
}

impl World {
    /// Whether a question may have been old enough to be erased for its age at some time of this period.
    pub fn may_have_aged(&self, question: &Question, from: u64, to: u64) -> bool {
        let (Some(aging), Some(accepted)) = (&self.scenario.aging, question.accepted_at) else { return false };
        if aging.tells_clock && self.least_ahead(from..=to) > CLOCK_ERROR {
            return false;
        }
        let oldest = self.clocks(accepted.saturating_sub(STORED_WITHIN)..=accepted).min();
        let newest = self.clocks(from..=to).max();
        oldest.zip(newest).is_some_and(|(oldest, newest)| newest - oldest >= limit(aging))
    }

    /// Whether the conversation of a question was found gone, or without what was parked there, since it was accepted.
    pub fn was_emptied_since(&self, question: &Question) -> bool {
        let emptied = self.seen.state().emptied.get(&question.inbound.key.to_string()).copied();
        emptied.zip(question.accepted_at).is_some_and(|(emptied, accepted)| accepted <= emptied)
    }

    /// What the clock of the first machine shows at both ends of a period, and wherever it is set between them.
    fn clocks(&self, period: RangeInclusive<u64>) -> impl Iterator<Item = i64> {
        self.turns(period).map(|at| self.clock_of(0, at))
    }

    /// How far that clock is ahead in this period at least.
    fn least_ahead(&self, period: RangeInclusive<u64>) -> i64 {
        self.turns(period).map(|at| self.is_ahead_by(at)).min().unwrap_or_default()
    }

    /// And at most.
    fn most_ahead(&self, period: RangeInclusive<u64>) -> i64 {
        self.turns(period).map(|at| self.is_ahead_by(at)).max().unwrap_or_default()
    }

    /// How far the clocks have been set ahead at this time, in milliseconds.
    pub fn is_ahead_by(&self, at: u64) -> i64 {
        self.scenario.events.iter().filter(|event| event.at <= at).map(|event| set_by(&event.what)).sum()
    }

    fn turns(&self, period: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        let set = self.scenario.events.iter().filter(|event| matches!(event.what, What::Clock { .. }));
        let set = set.flat_map(|event| [event.at.saturating_sub(1), event.at]);
        let between: Vec<u64> = set.filter(|at| period.contains(at)).collect();
        between.into_iter().chain([*period.start(), *period.end()])
    }
}
