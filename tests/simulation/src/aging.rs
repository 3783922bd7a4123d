//! Conversations that the gateway erases for their age (`sessions.keepDays`): which worlds do, and what is seen of it. The
//! store is looked at every few minutes, so that what is gone is known to be gone by then.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    ops::RangeInclusive,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use fastrand::Rng;
use pmk_host::store::Store;
use rusqlite::{Connection, OpenFlags, Row, types::Value};

use crate::{
    database::WorldsDatabase,
    random::{dice, one_of},
    scenario::{Harm, Said, Trouble, What},
    slack::{FIRST_OF_CONTACTS, Question, Slack},
    wire::Fuse,
    world::World,
};

/// Worlds of smaller seeds are known from before conversations aged, and stay as they were.
const FIRST: u64 = 2_300;

/// The same of worlds of several hosts.
const FIRST_OF_SEVERAL: u64 = 6_000;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The gateway erases nothing while it knows that its clock is further ahead than this, in milliseconds.
const CLOCK_ERROR: i64 = HOUR as i64;

/// How often the store is looked at, in a file and in a database.
const LOOK_EVERY: [u64; 2] = [10 * MINUTE, MINUTE];

/// Within this time the gateway has looked twice for what is old: the first time a conversation may be busy.
const ERASES_WITHIN: u64 = 2 * HOUR + 5 * MINUTE;

/// The gateway looks for what is old when it starts, and so often from then on, or up to `LOOKS_LATE` later.
const GATEWAY_LOOKS_EVERY: u64 = HOUR;
const LOOKS_LATE: u64 = 2 * MINUTE;

/// Several hosts are started again at these times after conversations became old. Whatever a fuse did the first time is
/// made up for the second time.
const STARTED_AFTER: [u64; 2] = [MINUTE, 6 * MINUTE];

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
     JOIN inbox i ON i.id = CASE WHEN json_valid(e.marker)
         THEN CAST(json_extract(e.marker, '$.askedBy') AS BIGINT) END
     JOIN session s ON s.id = i.session_id WHERE e.closed_at IS NULL";
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
    /// What is said until then grows old,
    pub said_until: u64,
    /// from then on.
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
    let probed_at = aged_at + ERASES_WITHIN + 2 * LOOK_EVERY[0];
    all.extend(asked_again(events, probed_at));
    Some(Aging {
        keep_days,
        tells_clock,
        said_until: ages_at - 1,
        ages_at,
        needs_contacts: lately == Some(Trouble::ModelCalls),
        probed_at,
        events: all,
    })
}

/// The same of several hosts, whose conversations first become nearly old.
pub fn of_several(seed: u64, events: &[(u64, What)], hosts: usize, well_at: u64) -> Option<Aging> {
    if seed < FIRST_OF_SEVERAL || !matches!(seed % 10, 4 | 6) {
        return None;
    }
    let mut rng = dice(seed, "aging");
    let (tells_clock, keep_days) = (rng.u8(0..3) == 0, one_of(&mut rng, &[1, 1, 2]));
    let limit = u64::from(keep_days) * DAY;
    let nearly_at = well_at + 5 * MINUTE;
    let ages_at = nearly_at + 8 * MINUTE;
    // By so much they are too young at first, less what passes until they are asked nothing more.
    let youth = one_of(&mut rng, &[20 * MINUTE, 90 * MINUTE, 5 * HOUR, 19 * HOUR]);
    let mut all =
        vec![(nearly_at, What::Clock { by: (limit - youth) as i64 }), (ages_at, What::Clock { by: youth as i64 })];
    // One after the other: which host an event is for depends on its number.
    let mut starts = |from| (0..hosts).for_each(|_| all.push((from + rng.u64(0..MINUTE), What::Restart)));
    starts(nearly_at + MINUTE);
    STARTED_AFTER.iter().for_each(|after| starts(ages_at + after));
    let probed_at = ages_at + 12 * MINUTE;
    if rng.u8(0..3) > 0 {
        let harm = one_of(&mut rng, &[Harm::Stopped, Harm::Stopped, Harm::OffDatabase, Harm::OffSlack]);
        let from = one_of(&mut rng, &[nearly_at, ages_at]) - rng.u64(0..MINUTE);
        let until = ages_at + rng.u64(MINUTE..11 * MINUTE);
        all.push((from, What::Harm { harm, host: rng.usize(..hosts), lasts: until - from }));
    }
    for _ in 0..rng.usize(0..4) {
        let fuse = Fuse { spares: rng.u32(0..60), after: rng.bool(), kills: rng.bool() };
        let from = one_of(&mut rng, &[nearly_at + MINUTE, ages_at + STARTED_AFTER[0]]);
        all.push((from + rng.u64(0..2 * MINUTE), What::Statement { host: rng.usize(..hosts), fuse }));
    }
    let lately = one_of(&mut rng, &[None, Some(Trouble::NotDone), Some(Trouble::ModelCalls)]);
    if let Some(kind) = lately {
        let from = well_at + 2 * MINUTE;
        // Slack takes nothing until after conversations are old.
        let (until, percent) = if kind == Trouble::NotDone { (ages_at + 5 * MINUTE, 100) } else { (nearly_at, 95) };
        all.push((from, What::Trouble { kind, lasts: until - from, percent }));
        for _ in 0..rng.usize(1..5) {
            let said = Said { is_probe: false, ..one_of_those_asked(&mut rng, events) };
            all.push((from + rng.u64(0..MINUTE), What::Says(said)));
        }
    }
    all.extend(asked_again(events, probed_at));
    let needs_contacts = lately == Some(Trouble::ModelCalls);
    Some(Aging { keep_days, tells_clock, said_until: nearly_at - 1, ages_at, needs_contacts, probed_at, events: all })
}

/// Every conversation that was asked something when all was well is asked once more.
fn asked_again(events: &[(u64, What)], at: u64) -> impl Iterator<Item = (u64, What)> {
    events.iter().filter_map(move |(_, what)| match what {
        What::Says(said @ Said { is_probe: true, .. }) => Some((at, What::Says(said.clone()))),
        _ => None,
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
    /// The same of a contact's answer, which makes its conversation young again.
    awaited: BTreeMap<String, u64>,
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

/// Where the store is.
pub enum Stored<'a> {
    /// In the home of the only host.
    File(&'a Path),
    Database(&'a WorldsDatabase),
}

impl Stored<'_> {
    /// What a query yields, where the store can be read.
    fn rows(&self, query: &str) -> Option<Vec<Vec<String>>> {
        let home = match self {
            Stored::Database(database) => return Some(database.rows(query)),
            Stored::File(home) => home,
        };
        let store = Connection::open_with_flags(Store::path(home), OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        let mut statement = store.prepare(query).ok()?;
        let columns = 0..statement.column_count();
        let row = |row: &Row<'_>| columns.clone().map(|at| row.get(at).map(text)).collect();
        statement.query_map([], row).ok()?.collect::<Result<_, _>>().ok()
    }
}

fn text(value: Value) -> String {
    match value {
        Value::Text(text) => text,
        Value::Integer(number) => number.to_string(),
        value => format!("{value:?}"),
    }
}

/// Looks at the store of the only host again and again, for as long as the gateway runs.
pub async fn keep_watching(world: &World, slack: &Slack, home: &Path) -> ! {
    let Some(aging) = world.scenario.aging.as_ref().filter(|_| world.hosts() == 1) else { pending().await };
    let begun = world.time();
    loop {
        world.until(world.time() + world.looks_every()).await;
        let Some(look) = watch(world, slack, &Stored::File(home)) else { continue };
        let looked_from = look.at.saturating_sub(ERASES_WITHIN);
        let is_ahead = aging.tells_clock && world.most_ahead(0, looked_from..=look.at) > CLOCK_ERROR;
        if look.at < aging.probed_at && begun.max(aging.ages_at) < looked_from && !is_ahead {
            judge_old(world, slack, aging, (&look, looked_from));
        }
    }
}

/// Looks at the store of several hosts, if it is time again.
pub fn watch_database(world: &World, slack: &Slack, database: &WorldsDatabase) {
    let Some(aging) = &world.scenario.aging else { return };
    let last = world.seen.state().last.as_ref().map(|look| look.at);
    if last.is_some_and(|last| world.time() < last + world.looks_every()) {
        return;
    }
    let Some(look) = watch(world, slack, &Stored::Database(database)) else { return };
    // What waits when conversations become old has been seen by then.
    let looked_from = aging.ages_at + STARTED_AFTER[0];
    let mut hosts = 0..world.hosts();
    if look.at < aging.probed_at && hosts.any(|host| has_looked(world, aging, host, looked_from..=look.at)) {
        judge_old(world, slack, aging, (&look, looked_from));
    }
}

/// Whether one of several hosts has certainly looked for what is old in this period, undisturbed, and erased it.
fn has_looked(world: &World, aging: &Aging, host: usize, period: RangeInclusive<u64>) -> bool {
    let Some(begun) = world.lives_since(host) else { return false };
    let times = period.start().saturating_sub(begun).div_ceil(GATEWAY_LOOKS_EVERY);
    let looks_at = begun + times * GATEWAY_LOOKS_EVERY;
    let is_ahead = aging.tells_clock && world.most_ahead(host, period.clone()) > CLOCK_ERROR;
    looks_at + LOOKS_LATE <= *period.end() && !is_ahead && !world.scenario.is_harmed(host, &period)
}

/// Looks at the store once, and judges what is gone since the last time.
pub fn watch(world: &World, slack: &Slack, stored: &Stored<'_>) -> Option<Look> {
    world.scenario.aging.as_ref()?;
    let now = world.time();
    let look = look(stored, now)?;
    let known = slack.questions().into_iter().filter(|question| question.accepted_at.is_some());
    let keys: BTreeSet<String> = known.map(|question| question.inbound.key.to_string()).collect();
    let last = {
        let mut state = world.seen.state();
        state.awaited.extend(look.waiting.iter().map(|key| (key.clone(), now)));
        state.waited.extend(look.waiting.iter().chain(&look.open).map(|key| (key.clone(), now)));
        state.emptied.extend(keys.into_iter().filter(|key| look.is_empty(key)).map(|key| (key, now)));
        state.last.replace(look.clone())
    };
    if let Some(last) = last {
        world.seen.state().emptied.extend(look.without_what_was_parked(&last).map(|key| (key, now)));
        judge_gone(world, slack, (&last, &look));
    }
    Some(look)
}

/// The store as it is now, where it can be read.
fn look(stored: &Stored<'_>, at: u64) -> Option<Look> {
    let id = |id: &String| id.parse::<i64>().ok();
    let archived = |row: &Vec<String>| Some((row[0].clone(), id(&row[1])?..=id(&row[2])?));
    let archived = stored.rows(ARCHIVED)?.iter().map(archived).collect::<Option<_>>()?;
    let keys = |query: &str| -> Option<BTreeSet<String>> { Some(stored.rows(query)?.into_iter().flatten().collect()) };
    let mut parked: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    for row in stored.rows(PARKED)? {
        parked.entry(row[0].clone()).or_default().insert(id(&row[1])?);
    }
    Some(Look { at, archived, waiting: keys(WAITING)?, open: keys(OPEN)?, parked })
}

/// What is gone since the last look must have been old enough, and nobody may have waited for anything there.
fn judge_gone(world: &World, slack: &Slack, (last, now): (&Look, &Look)) {
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
        if world.all_know_to_be_ahead(last.at..=now.at) {
            world.breach(format!("{key} is gone, although the clock is known to be ahead"));
        }
        world.witness.erased(now.at, &names(world, &here));
    }
}

/// What is old must be gone, except where somebody has waited for something since the gateway began to look.
fn judge_old(world: &World, slack: &Slack, aging: &Aging, (look, looked_from): (&Look, u64)) {
    let newest = world.clocks(0..=aging.said_until).max().unwrap_or_default();
    if world.clocks(looked_from..=look.at).any(|clock| clock - newest < limit(aging)) {
        return;
    }
    let mut questions = slack.questions();
    let keys: BTreeSet<String> = questions.iter().map(|question| question.inbound.key.to_string()).collect();
    // A contact's answer may come later than what makes conversations old.
    questions.retain(|question| question.accepted_at.is_some_and(|accepted| accepted > aging.said_until));
    let goes_on = |key: &&String| questions.iter().any(|question| question.inbound.key.to_string() == **key);
    let (waited, awaited) = {
        let state = world.seen.state();
        (state.waited.clone(), state.awaited.clone())
    };
    let has_waited = |key: &&String| {
        let may_be_answered = awaited.get(*key).is_some_and(|at| at + world.looks_every() > aging.said_until);
        may_be_answered || waited.get(*key).is_some_and(|at| *at >= looked_from)
    };
    for key in keys.iter().filter(|key| !goes_on(key) && !has_waited(key)) {
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
    fn looks_every(&self) -> u64 {
        LOOK_EVERY[usize::from(self.hosts() > 1)]
    }

    /// Whether a question may have been old enough to be erased for its age at some time of this period.
    pub fn may_have_aged(&self, question: &Question, from: u64, to: u64) -> bool {
        let (Some(aging), Some(accepted)) = (&self.scenario.aging, question.accepted_at) else { return false };
        if self.all_know_to_be_ahead(from..=to) {
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

    /// What the clock that counts shows at both ends of a period, and wherever it is set between them.
    fn clocks(&self, period: RangeInclusive<u64>) -> impl Iterator<Item = i64> {
        self.turns(period).map(|at| self.common_clock(at))
    }

    /// Whether every host knows all the time that its clock is ahead, and erases nothing.
    fn all_know_to_be_ahead(&self, period: RangeInclusive<u64>) -> bool {
        let is_ahead = |host| self.turns(period.clone()).all(|at| self.is_ahead_by(host, at) > CLOCK_ERROR);
        self.scenario.aging.as_ref().is_some_and(|aging| aging.tells_clock) && (0..self.hosts()).all(is_ahead)
    }

    /// How far a host's clock is ahead in this period at most.
    fn most_ahead(&self, host: usize, period: RangeInclusive<u64>) -> i64 {
        self.turns(period).map(|at| self.is_ahead_by(host, at)).max().unwrap_or_default()
    }

    /// How far a host's clock is ahead of the true time, in milliseconds. Where there are several, time passes when all
    /// clocks are set.
    pub fn is_ahead_by(&self, host: usize, at: u64) -> i64 {
        if self.hosts() == 1 { self.is_set_by(at) } else { self.is_wrong_by(host, at) }
    }

    fn turns(&self, period: RangeInclusive<u64>) -> impl Iterator<Item = u64> {
        let is_set = |what: &What| matches!(what, What::Clock { .. } | What::ClockOf { .. });
        let set = self.scenario.events.iter().filter(move |event| is_set(&event.what));
        let set = set.flat_map(|event| [event.at.saturating_sub(1), event.at]);
        let between: Vec<u64> = set.filter(|at| period.contains(at)).collect();
        between.into_iter().chain([*period.start(), *period.end()])
    }
}
