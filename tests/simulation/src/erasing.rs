//! What operators have erased: whole conversations, by a command beside the running gateway. It may be refused, fail or
//! be killed, and is given again until it has done what it was to do.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pmk_core::SessionKey;
use pmk_host::store::{ErasedConversation, Erasing, Opening, Place, Store, StoreError, TURN_WAIT};
use pmk_system::{clock::Clock, threads::Threads};
use rusqlite::{Connection, OpenFlags};

use crate::{
    deeds,
    random::{dice, one_of},
    scenario::{Trouble, What},
    slack::{FIRST_OF_CONTACTS, Slack},
    world::World,
};

/// Worlds of smaller seeds are known from before anything was erased, and stay as they were.
const FIRST: u64 = 2_100;

const ARCHIVED: &str = "SELECT count(*) FROM session s JOIN message m ON m.session_id = s.id
     JOIN turn t ON t.id = m.turn_id WHERE s.key = ?1 AND t.delivered_at IS NOT NULL";

/// What is to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The conversation of this question.
    Of(usize),
    /// All conversations in which nobody has written since the command was given.
    Idle,
}

/// Whether anything is erased in the world of this seed. None of the seeds that were kept before ends in these digits.
fn is_in(seed: u64) -> bool {
    seed >= FIRST && matches!(seed % 10, 4..=6)
}

/// The commands in a world with these questions.
pub fn of(seed: u64, events: &[(u64, What)], calm_at: u64) -> Vec<(u64, What)> {
    let asked = deeds::asked(events);
    if !is_in(seed) || asked.is_empty() {
        return vec![];
    }
    let mut rng = dice(seed, "erasing");
    let commands = (0..rng.usize(1..6)).map(|_| {
        let (about, asked_at) = one_of(&mut rng, &asked);
        // Mostly just when it may be answered.
        let after = match rng.u8(0..4) {
            0 => rng.u64(0..calm_at.saturating_sub(asked_at).max(1)),
            _ => rng.u64(0..60_000),
        };
        let wanted = if rng.u8(0..4) == 0 { Wanted::Idle } else { Wanted::Of(about) };
        ((asked_at + after).min(calm_at), What::Erases(wanted))
    });
    commands.collect()
}

/// An attempt to erase a conversation that may have changed it.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub key: SessionKey,
    pub began_at: u64,
    /// Whether parked messages may have gone with it.
    pub takes_parked: bool,
}

/// What has been done about the commands.
#[derive(Default)]
pub struct Erasures(Mutex<State>);

#[derive(Default)]
struct State {
    /// The numbers of the events whose command has done what it was to do.
    done: BTreeSet<usize>,
    attempts: Vec<Attempt>,
}

impl Erasures {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn attempts(&self) -> Vec<Attempt> {
        self.state().attempts.clone()
    }

    /// An attempt begins: from now on it may change something, until it is known to have changed nothing.
    fn begins(&self, key: &SessionKey, began_at: u64) {
        self.state().attempts.push(Attempt { key: key.clone(), began_at, takes_parked: true });
    }

    /// The last attempt has changed nothing.
    fn is_refused(&self) {
        self.state().attempts.pop();
    }

    /// The last attempt has succeeded, with so many parked messages.
    fn succeeds(&self, parked: usize) {
        if let Some(attempt) = self.state().attempts.last_mut() {
            attempt.takes_parked = parked > 0;
        }
    }
}

/// Gives the commands, one after the other, for as long as the gateway runs.
pub async fn keep_erasing(world: &Arc<World>, slack: &Slack, place: &Place) -> ! {
    loop {
        for (number, at, wanted) in to_do(world) {
            if at <= world.time() && command(world, slack, place, wanted).await {
                world.erasures.state().done.insert(number);
            }
        }
        let left = to_do(world);
        if left.is_empty() {
            pending::<()>().await;
        }
        let now = world.time();
        let again = now + world.dice("operator").u64(20_000..240_000);
        let next = left.into_iter().map(|(_, at, _)| if at > now { at } else { again }).min();
        world.until(next.unwrap_or(again)).await;
    }
}

/// The commands that have not done yet what they were to do, with the numbers of their events and their times.
fn to_do(world: &World) -> Vec<(usize, u64, Wanted)> {
    let state = world.erasures.state();
    let events = world.scenario.events.iter().filter(|event| !state.done.contains(&event.number));
    let commands = events.filter_map(|event| match event.what {
        What::Erases(wanted) => Some((event.number, event.at, wanted)),
        _ => None,
    });
    commands.collect()
}

/// Gives a command once. Returns whether it has done what it was to do.
async fn command(world: &Arc<World>, slack: &Slack, place: &Place, wanted: Wanted) -> bool {
    let (time, pace) = (Arc::clone(world), Arc::clone(world));
    let clock = Clock::of(move || time.clock());
    let threads = Threads::None(Arc::new(move || pace.pace()));
    // As another process: the gateway's store knows nothing of what this one changes.
    let store = match Store::open_with(place.clone(), &Opening { clock, threads }) {
        Ok(store) => store,
        Err(error) => return fails(world, place, &error),
    };
    let now_ms = world.clock();
    let (keys, erasing, wait) = match wanted {
        Wanted::Of(question) => {
            let Some(key) = conversation_of(slack, question) else { return false };
            (vec![key], Erasing::Anyway, TURN_WAIT)
        }
        Wanted::Idle => match store.idle_conversations(0, now_ms).await {
            Ok(keys) => (keys, Erasing::Idle { days: 0 }, Duration::ZERO),
            Err(error) => return fails(world, place, &error),
        },
    };
    let (mut erased, mut names, mut is_done) = (vec![], vec![], true);
    for key in keys {
        let said = said_in(world, slack, &key);
        match erase(world, (&store, place), &key, (erasing, wait), now_ms).await {
            Ok(Some(conversation)) => {
                world.witness.erased(world.time(), &said);
                erased.push(conversation);
                names.extend(said);
            }
            // One in which something is going on is no longer idle.
            Ok(None) => is_done &= wanted == Wanted::Idle,
            Err(error) => is_done = fails(world, place, &error),
        }
    }
    match store.erase_receipts(&erased).await {
        Ok(()) => world.witness.erased_whole(names),
        Err(error) => return fails(world, place, &error),
    }
    is_done
}

/// Erases a conversation, up to its receipts; `None`: that was refused.
async fn erase(
    world: &World,
    (store, place): (&Store, &Place),
    key: &SessionKey,
    (erasing, wait): (Erasing, Duration),
    now_ms: i64,
) -> Result<Option<ErasedConversation>, StoreError> {
    let before = archived(place, key);
    world.erasures.begins(key, world.time());
    match store.erase_conversation(key, erasing, wait, now_ms).await {
        Ok(erased) => {
            world.say(|| format!("{key} is erased: {erased:?}"));
            world.erasures.succeeds(erased.parked);
            Ok(Some(erased))
        }
        Err(error) if is_refusal(&error) => {
            world.say(|| format!("{key} is not erased: {error}"));
            world.erasures.is_refused();
            if let Some((before, after)) = before.zip(archived(place, key))
                && after < before
            {
                world.breach(format!("{key} was not to be erased, and {} of its messages are gone", before - after));
            }
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether a conversation was to be left as it was: it is busy, or not known yet.
fn is_refusal(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unanswered(_)
            | StoreError::AwaitsContact(_)
            | StoreError::NotIdle(_)
            | StoreError::Leased { .. }
            | StoreError::UnknownSession(_)
    )
}

/// A command fails, which it may only where the disk does, or where a clock that was set ahead ends its lease. Returns
/// that it has not done what it was to do.
fn fails(world: &World, place: &Place, error: &StoreError) -> bool {
    // The path differs between runs.
    let why = error.to_string().replace(&place.name(), "STORE");
    world.say(|| format!("erasing fails: {why}"));
    let excuses = |what: &What| match what {
        What::Trouble { kind, .. } => matches!(kind, Trouble::DiskFull | Trouble::DiskBroken | Trouble::DiskUnread),
        What::Clock { .. } => matches!(error, StoreError::LeaseLost { .. }),
        _ => false,
    };
    let now = world.time();
    let is_excused = world.scenario.events.iter().any(|event| event.at <= now && excuses(&event.what));
    if !is_excused && !world.is_dead() {
        world.breach(format!("conversations could not be erased: {why}"));
    }
    false
}

/// The conversation of a question, once the gateway may know it.
fn conversation_of(slack: &Slack, question: usize) -> Option<SessionKey> {
    let questions = slack.questions();
    let key = &questions.iter().find(|other| other.number == question)?.inbound.key;
    let is_known = questions.iter().any(|other| other.inbound.key == *key && other.accepted_at.is_some());
    is_known.then(|| key.clone())
}

/// The names of what was said in a conversation, as far as the gateway has acknowledged it. What contacts say is in the
/// conversations of those who asked them as well, and in what was learnt.
fn said_in(world: &World, slack: &Slack, key: &SessionKey) -> Vec<String> {
    let questions = slack.questions();
    let here = questions.iter().filter(|question| question.inbound.key == *key && question.accepted_at.is_some());
    let numbers = here.map(|question| question.number).filter(|number| *number < FIRST_OF_CONTACTS);
    world.witness.said(&numbers.collect::<BTreeSet<usize>>())
}

/// How many messages of answered questions a conversation has in its archive, where that can be read.
fn archived(place: &Place, key: &SessionKey) -> Option<i64> {
    let store = Connection::open_with_flags(Store::path(&place.home), OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    store.query_row(ARCHIVED, [key.to_string()], |row| row.get(0)).ok()
}
