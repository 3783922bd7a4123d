//! What operators have erased, by a command beside the running gateway: whole conversations, and where there are several
//! hosts, what a person has written. It may be refused, fail or be killed, and is given again until it has done what it
//! was to do.

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use pmk_core::SessionKey;
use pmk_host::store::{ErasedOfPerson, Erasing, LEASE_FOR, Opening, Place, Store, StoreError, TURN_WAIT};
use pmk_system::{clock::Clock, threads::Threads};
use rusqlite::{Connection, OpenFlags};

use crate::{
    deeds,
    random::{dice, one_of},
    scenario::{Event, Harm, Trouble, What},
    slack::{FIRST_OF_CONTACTS, Question, Slack},
    world::World,
};

/// Worlds of smaller seeds are known from before anything was erased, and stay as they were.
const FIRST: u64 = 2_100;

/// The same of worlds of several hosts.
const FIRST_OF_SEVERAL: u64 = 5_000;

/// A host notices within this time, in milliseconds, that what kept it from the database or the disk is over.
const RECOVERS_WITHIN: u64 = 5_000;

/// What replaces each message of a person that others see.
const WORDS: &str = "(erased)";

const ARCHIVED: &str = "SELECT count(*) FROM session s JOIN message m ON m.session_id = s.id
     JOIN turn t ON t.id = m.turn_id WHERE s.key = ?1 AND t.delivered_at IS NOT NULL";

/// What is to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The conversation of this question.
    Of(usize),
    /// All conversations in which everything is answered.
    Idle,
    /// What the person who asks this question has written, in all conversations.
    From(usize),
}

/// The commands in a world of one host with these questions. None of the seeds that were kept before ends in these
/// digits.
pub fn of(seed: u64, events: &[(u64, What)], calm_at: u64) -> Vec<(u64, What)> {
    if seed < FIRST || !matches!(seed % 10, 4..=6) {
        return vec![];
    }
    commands(seed, events, calm_at, |rng, about| if rng.u8(0..4) == 0 { Wanted::Idle } else { Wanted::Of(about) })
}

/// The same of several hosts.
pub fn of_several(seed: u64, events: &[(u64, What)], calm_at: u64) -> Vec<(u64, What)> {
    if seed < FIRST_OF_SEVERAL || !matches!(seed % 10, 2..=4) {
        return vec![];
    }
    commands(seed, events, calm_at, |rng, about| match rng.u8(0..6) {
        0 => Wanted::Idle,
        1..3 => Wanted::From(about),
        _ => Wanted::Of(about),
    })
}

fn commands(
    seed: u64,
    events: &[(u64, What)],
    calm_at: u64,
    wanted: impl Fn(&mut Rng, usize) -> Wanted,
) -> Vec<(u64, What)> {
    let asked = deeds::asked(events);
    if asked.is_empty() {
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
        let wanted = wanted(&mut rng, about);
        ((asked_at + after).min(calm_at), What::Erases(wanted))
    });
    commands.collect()
}

/// An attempt to erase a conversation that may have changed it.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub key: SessionKey,
    /// Only what this person has written, where others have, too.
    pub of: Option<String>,
    pub began_at: u64,
    /// Whether parked messages may have gone with it.
    pub takes_parked: bool,
}

impl Attempt {
    /// Whether this question may have been erased by it.
    pub fn is_at(&self, question: &Question) -> bool {
        self.key == question.inbound.key && self.of.as_ref().is_none_or(|person| *person == question.inbound.user)
    }
}

/// What has been done about the commands.
#[derive(Default)]
pub struct Erasures(Mutex<State>);

#[derive(Default)]
struct State {
    /// The numbers of the events whose command has done what it was to do.
    done: BTreeSet<usize>,
    /// All attempts, except those that are known to have changed nothing.
    attempts: Vec<Option<Attempt>>,
}

impl Erasures {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn attempts(&self) -> Vec<Attempt> {
        self.state().attempts.iter().flatten().cloned().collect()
    }

    /// An attempt begins: from now on it may change something, until it is known to have changed nothing. Returns its
    /// number.
    fn begins(&self, key: &SessionKey, began_at: u64) -> usize {
        let attempts = &mut self.state().attempts;
        attempts.push(Some(Attempt { key: key.clone(), of: None, began_at, takes_parked: true }));
        attempts.len() - 1
    }

    /// An attempt has changed nothing.
    fn is_refused(&self, number: usize) {
        self.state().attempts[number] = None;
    }

    /// An attempt has succeeded, with so many parked messages, and only those of a person if one is given.
    fn succeeds(&self, number: usize, parked: usize, of: Option<&str>) {
        if let Some(attempt) = &mut self.state().attempts[number] {
            (attempt.takes_parked, attempt.of) = (parked > 0, of.map(str::to_owned));
        }
    }
}

/// Gives the commands of the running host's machine, one after the other, for as long as the gateway runs.
pub async fn keep_erasing(world: &Arc<World>, slack: &Slack, place: &Place) -> ! {
    loop {
        for Command { number, at, wanted } in to_do(world) {
            let is_given = at <= world.time() && world.machine_of(number) == world.host();
            if is_given && command(world, slack, place, wanted).await {
                world.erasures.state().done.insert(number);
            }
        }
        let left = to_do(world);
        if left.is_empty() {
            pending::<()>().await;
        }
        let now = world.time();
        let again = now + world.dice("operator").u64(20_000..240_000);
        let next = left.into_iter().map(|Command { at, .. }| if at > now { at } else { again }).min();
        world.until(next.unwrap_or(again)).await;
    }
}

/// A command, with the number and the time of its event.
struct Command {
    number: usize,
    at: u64,
    wanted: Wanted,
}

/// The commands that have not done yet what they were to do.
fn to_do(world: &World) -> Vec<Command> {
    let state = world.erasures.state();
    let events = world.scenario.events.iter().filter(|event| !state.done.contains(&event.number));
    let commands = events.filter_map(|event| match event.what {
        What::Erases(wanted) => Some(Command { number: event.number, at: event.at, wanted }),
        _ => None,
    });
    commands.collect()
}

/// Gives a command once. Returns whether it has done what it was to do.
async fn command(world: &Arc<World>, slack: &Slack, place: &Place, wanted: Wanted) -> bool {
    let (time, pace) = (Arc::clone(world), Arc::clone(world));
    let clock = Clock::of(move || time.clock());
    let threads = Threads::None(Arc::new(move || pace.pace()));
    let began = Began::now(world);
    // As another process: the gateway's store knows nothing of what this one changes.
    let given = match Store::open_with(place.clone(), &Opening { clock, threads }) {
        Ok(store) => Given { world, slack, place, store, wanted, began }.carry_out().await,
        Err(error) => Err(error),
    };
    given.unwrap_or_else(|error| fails(world, place, began, &error))
}

/// When something began that may fail.
#[derive(Clone, Copy)]
struct Began {
    /// The command,
    command_at: u64,
    /// and its attempt at the conversation at hand.
    attempt_at: u64,
    /// How many fuses of the machine's wire had blown before the command.
    blown: u32,
}

impl Began {
    fn now(world: &World) -> Began {
        let now = world.time();
        Began { command_at: now, attempt_at: now, blown: world.blown() }
    }
}

/// A command that is being carried out.
struct Given<'a> {
    world: &'a World,
    slack: &'a Slack,
    place: &'a Place,
    store: Store,
    wanted: Wanted,
    began: Began,
}

impl Given<'_> {
    /// Returns whether it has done what it was to do.
    async fn carry_out(&self) -> Result<bool, StoreError> {
        let Given { world, slack, store, .. } = self;
        let (mut threads, mut person) = (vec![], None);
        let keys = match self.wanted {
            Wanted::Of(question) => {
                let Some(asked) = known(slack, question) else { return Ok(false) };
                vec![asked.inbound.key]
            }
            Wanted::Idle => store.idle_conversations(0, world.clock()).await?,
            Wanted::From(question) => {
                let Some(asked) = known(slack, question) else { return Ok(false) };
                let user = &*person.insert(asked.inbound.user);
                let written_in = store.written_in_by(user).await?;
                threads = store.threads_that_name(user).await?;
                written_in.into_iter().map(|written| written.key).collect()
            }
        };
        let person = person.as_deref();
        let (mut erased, mut names, mut is_done) = (vec![], vec![], true);
        for key in keys {
            let here = said_in(slack, &key);
            let began = Began { attempt_at: world.time(), ..self.began };
            match self.erase(&key, person).await {
                Ok(Some(ErasedOfPerson::Conversation(conversation))) => {
                    if let Some(user) = person
                        && !is_dm_of(&key, user)
                        && here.iter().any(|question| question.inbound.user != user)
                    {
                        world.breach(format!("{key} was erased, and not only what {user} has written there"));
                    }
                    let said = world.witness.said(&here.iter().map(|question| question.number).collect());
                    world.witness.erased(world.time(), &said);
                    erased.push(conversation);
                    names.extend(said);
                }
                Ok(Some(ErasedOfPerson::Messages(_))) => {
                    let theirs = here.iter().filter(|question| person == Some(&question.inbound.user));
                    world.witness.erased_messages(world.time(), theirs.map(|question| question.number));
                }
                // One in which something is going on is no longer idle.
                Ok(None) => is_done &= self.wanted == Wanted::Idle,
                Err(error) => is_done = fails(world, self.place, began, &error),
            }
        }
        store.erase_receipts(&erased).await?;
        world.witness.erased_whole(names);
        if let Some(user) = person {
            store.erase_elsewhere(user, threads).await?;
        }
        Ok(is_done)
    }

    /// Erases a conversation, up to its receipts, or what a person has written in it; `None`: that was refused.
    async fn erase(&self, key: &SessionKey, person: Option<&str>) -> Result<Option<ErasedOfPerson>, StoreError> {
        let Given { world, store, place, .. } = self;
        let before = archived(place, key);
        let attempt = world.erasures.begins(key, world.time());
        let (erasing, wait) = match self.wanted {
            Wanted::Idle => (Erasing::Idle { days: 0 }, Duration::ZERO),
            Wanted::Of(_) | Wanted::From(_) => (Erasing::Anyway, TURN_WAIT),
        };
        // As the command does, anew for each of them: its lease begins then.
        let now_ms = world.clock();
        let outcome = match person {
            Some(user) => store.erase_from(key, user, WORDS, wait, now_ms).await,
            None => store.erase_conversation(key, erasing, wait, now_ms).await.map(ErasedOfPerson::Conversation),
        };
        match outcome {
            Ok(erased) => {
                world.say(|| format!("{key} is erased: {erased:?}"));
                match &erased {
                    ErasedOfPerson::Conversation(whole) => world.erasures.succeeds(attempt, whole.parked, None),
                    ErasedOfPerson::Messages(of_it) => world.erasures.succeeds(attempt, of_it.parked, person),
                }
                Ok(Some(erased))
            }
            Err(error) if is_refusal(&error) => {
                world.say(|| format!("{key} is not erased: {error}"));
                world.erasures.is_refused(attempt);
                if let Some((before, after)) = before.zip(archived(place, key))
                    && after < before
                {
                    world
                        .breach(format!("{key} was not to be erased, and {} of its messages are gone", before - after));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
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

/// A command fails, which it may only while the disk or the database does, or where its lease ends because a clock is
/// set ahead or its machine stands still for long enough. Returns that it has not done what it was to do.
fn fails(world: &World, place: &Place, began: Began, error: &StoreError) -> bool {
    // The path differs between runs.
    let why = error.to_string().replace(&place.name(), "STORE");
    world.say(|| format!("erasing fails: {why}"));
    let is_lost = matches!(error, StoreError::LeaseLost { .. });
    let is_cut_off = is_lost || matches!(error, StoreError::Away { .. });
    let (now, here) = (world.time(), world.host());
    let meets = |event: &Event, lasts: u64| {
        event.at <= now && began.command_at <= event.at.saturating_add(lasts).saturating_add(RECOVERS_WITHIN)
    };
    let outlasts_lease = Duration::from_millis(now - began.attempt_at) > LEASE_FOR;
    let excuses = |event: &Event| match event.what {
        What::Trouble { kind: Trouble::DiskFull | Trouble::DiskBroken | Trouble::DiskUnread, lasts, .. } => {
            meets(event, lasts)
        }
        What::Clock { .. } => is_lost && meets(event, 0),
        What::Harm { harm: Harm::Stopped, host, lasts } => {
            is_lost && outlasts_lease && host == here && meets(event, lasts)
        }
        What::Harm { harm: Harm::OffDatabase, host, lasts } => is_cut_off && host == here && meets(event, lasts),
        _ => false,
    };
    let is_blown = is_cut_off && world.blown() > began.blown;
    if !is_blown && !world.scenario.events.iter().any(excuses) && !world.is_dead() {
        world.breach(format!("conversations could not be erased: {why}"));
    }
    false
}

/// A question whose conversation the gateway may know.
fn known(slack: &Slack, number: usize) -> Option<Question> {
    let questions = slack.questions();
    let question = questions.iter().find(|question| question.number == number)?;
    let is_here = |other: &Question| other.inbound.key == question.inbound.key && other.accepted_at.is_some();
    questions.iter().any(is_here).then(|| question.clone())
}

/// What was said in a conversation, as far as the gateway has acknowledged it. What contacts say is in the conversations
/// of those who asked them as well, and in what was learnt.
fn said_in(slack: &Slack, key: &SessionKey) -> Vec<Question> {
    let mut questions = slack.questions();
    questions.retain(|question| {
        question.inbound.key == *key && question.accepted_at.is_some() && question.number < FIRST_OF_CONTACTS
    });
    questions
}

/// Whether it is a conversation of direct messages with this person.
fn is_dm_of(key: &SessionKey, user: &str) -> bool {
    matches!(&key.place, pmk_core::Place::Dm(of) if of == user)
}

/// How many messages of answered questions a conversation has in its archive, where that is in a file that can be read.
fn archived(place: &Place, key: &SessionKey) -> Option<i64> {
    let store = Connection::open_with_flags(Store::path(&place.home), OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
    store.query_row(ARCHIVED, [key.to_string()], |row| row.get(0)).ok()
}
