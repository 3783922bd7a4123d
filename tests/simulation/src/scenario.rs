//! What is to happen in a world: who says what when, and what goes wrong. All of it comes of one number; for a smaller
//! case of the same trouble, some of it is left out.

use std::collections::BTreeSet;

use fastrand::Rng;

use crate::{
    deeds::{self, Deed},
    random::{dice, one_of},
    wire::Fuse,
};

mod several;

pub use several::FIRST_OF_STOPS;

/// A world's plan.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub setting: Setting,
    /// In the order of their times.
    pub events: Vec<Event>,
    /// When nothing goes wrong any more, in milliseconds of the world's time.
    pub calm_at: u64,
}

/// What does not change while it runs.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Components, the last on top.
    pub policies: &'static [&'static str],
    /// The window that the gateway is told.
    pub window: u64,
    /// What the model really takes, in percent of that.
    pub truth: u64,
    /// How many tokens the model counts for a hundred of ours.
    pub counts: u64,
    pub overflow: Overflow,
    /// `queue.mode` of gateway.json.
    pub queue: &'static str,
    pub tools: bool,
    pub language: &'static str,
    /// Whether somebody can be asked, and whether somebody is told of trouble.
    pub contacts: bool,
    pub admins: bool,
    /// Whether it tells people that it goes and is back, and reads what it has missed.
    pub presence: bool,
    /// The policies of the other arm of an experiment, where one is on.
    pub arm: Option<&'static [&'static str]>,
    /// `slack.followDeletes` of gateway.json.
    pub follows_deletes: bool,
    /// By how many milliseconds the clocks of the machines of several hosts are wrong.
    pub wrong_clocks: Vec<i64>,
    /// How long of several hosts one works at most before the next does.
    pub span: u64,
}

/// How the model says that a prompt is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    Numbers,
    Words,
    /// Words that nobody knows.
    Riddle,
    /// It says nothing.
    Silence,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub struct Event {
    /// Where it stands in the whole plan, whatever is left out.
    pub number: usize,
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Says(Said),
    Does(Deed),
    /// Other policies take over.
    Swap(&'static [&'static str]),
    /// For so long, so often of a hundred times.
    Trouble {
        kind: Trouble,
        lasts: u64,
        percent: u8,
    },
    /// The process is killed when it comes to this point for so many times.
    Kill {
        point: Point,
        times: u32,
    },
    /// It is asked to end, and started again; of several, one.
    Restart,
    /// Before the next start something in the home is damaged.
    Damage(Damage),
    /// The machine's clock is set, by so many milliseconds.
    Clock {
        by: i64,
    },
    /// One of several hosts is hit by this for so long.
    Harm {
        harm: Harm,
        host: usize,
        lasts: u64,
    },
    /// Something happens to a statement on one host's way to the database.
    Statement {
        host: usize,
        fuse: Fuse,
    },
}

/// What is done to one of several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It stands still, as a process that is stopped.
    Stopped,
    /// It does not reach the database,
    OffDatabase,
    /// or Slack,
    OffSlack,
    /// or the model.
    OffModel,
}

/// Somebody asks something.
#[derive(Clone, Debug)]
pub struct Said {
    pub person: u8,
    pub place: Where,
    pub length: Length,
    /// Slack sends an event of its own for the mention.
    pub twice: bool,
    /// Whether the conversation works is to be seen by it.
    pub is_probe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Direct,
    Channel(u8),
    Thread(u8, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Line,
    Page,
    Flood,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// Slack: asked to wait.
    PutOff,
    /// Slack: an error, and nothing was done.
    NotDone,
    /// Slack: done, and nobody hears of it.
    AnswerLost,
    /// Slack: no answer within the time there is.
    SlackHangs,
    /// Slack: this message it never takes, or this one cannot be changed any more.
    Refuses,
    /// Slack: in one place nothing works.
    PlaceDown,
    /// Slack: what was posted cannot be looked for.
    CannotLook,
    /// Slack: what was acknowledged comes again.
    AckLost,
    /// Slack: it comes late, and after what was said after it.
    Late,
    ModelBusy,
    ModelHangs,
    ModelBreaksOff,
    ModelEmpty,
    ModelRiddle,
    ModelDeclines,
    /// The model calls tools, with nonsense among it.
    ModelCalls,
    DiskFull,
    DiskBroken,
    DiskUnread,
    DiskSlow,
}

impl Trouble {
    pub const ALL: [Trouble; 20] = [
        Trouble::PutOff,
        Trouble::NotDone,
        Trouble::AnswerLost,
        Trouble::SlackHangs,
        Trouble::Refuses,
        Trouble::PlaceDown,
        Trouble::CannotLook,
        Trouble::AckLost,
        Trouble::Late,
        Trouble::ModelBusy,
        Trouble::ModelHangs,
        Trouble::ModelBreaksOff,
        Trouble::ModelEmpty,
        Trouble::ModelRiddle,
        Trouble::ModelDeclines,
        Trouble::ModelCalls,
        Trouble::DiskFull,
        Trouble::DiskBroken,
        Trouble::DiskUnread,
        Trouble::DiskSlow,
    ];
}

/// What a crash of the machine, or somebody, has done to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// What the ledger was given last never came to the disk.
    LedgerTail,
    /// The log of the database ends in noise.
    LogTail,
    /// The index of the log is gone.
    LogIndex,
    /// What is only made of other things is noise.
    Caches,
}

impl Damage {
    pub const ALL: [Damage; 4] = [Damage::LedgerTail, Damage::LogTail, Damage::LogIndex, Damage::Caches];
}

/// Where a process can be killed: before each of them is done, and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    DiskWrite,
    DiskSync,
    Slack,
    Model,
}

pub const STACKS: [&[&str]; 13] = [
    &[],
    &["strict"],
    &["recall"],
    &["rolling-summary"],
    &["caps", "strict"],
    &["tool-lean"],
    &["facts-summary"],
    &["recall", "caps"],
    &["traps"],
    &["strict", "traps"],
    &["recall", "loops"],
    &["strict", "tears"],
    &["idles"],
];

/// So long after the last trouble conversations are tried: some of what it has led to is left to pass.
const PROBED_AFTER: u64 = 65 * 60_000;

/// So long the troubles go on, at most.
const HOURS: u64 = 60 * 60 * 1_000;

impl Scenario {
    /// The plan of a seed for so many hosts; of its events only those of these numbers, where some are named.
    pub fn of(seed: u64, hosts: usize, keep: Option<&BTreeSet<usize>>) -> Scenario {
        let Scenario { seed, setting, mut events, calm_at } = match hosts {
            0 | 1 => Scenario::of_one(seed),
            several => Scenario::of_several(seed, several),
        };
        events.retain(|event| keep.is_none_or(|keep| keep.contains(&event.number)));
        events.sort_by_key(|event| event.at);
        Scenario { seed, setting, events, calm_at }
    }

    fn of_one(seed: u64) -> Scenario {
        let mut rng = dice(seed, "scenario");
        let setting = Setting::of(&mut rng, seed);
        let lasts = rng.u64(30_000..2 * HOURS);
        let mut events: Vec<(u64, What)> = Vec::new();
        let questions = rng.usize(4..40);
        let people = rng.u8(1..5);
        let mut at = 0;
        for _ in 0..questions {
            // Some come at once, some after a while.
            at += if rng.bool() { rng.u64(0..1_500) } else { rng.u64(0..2 * lasts / questions as u64 + 1) };
            events.push((at, What::Says(Said::of(&mut rng, people))));
        }
        let lasts = at.max(30_000);
        for _ in 0..rng.usize(0..5) {
            let kind = one_of(&mut rng, &Trouble::ALL);
            let percent = one_of(&mut rng, &[5, 20, 50, 90, 100]);
            let (from, lasts) = (rng.u64(0..lasts), rng.u64(1_000..lasts.min(20 * 60_000)));
            let trouble = match kind {
                // Long enough for the gateway to give it up.
                Trouble::PlaceDown => What::Trouble { kind, lasts: lasts + 20 * 60_000, percent: 100 },
                kind => What::Trouble { kind, lasts, percent },
            };
            events.push((from, trouble));
        }
        if setting.tools && rng.u8(0..3) == 0 {
            // What has been looked up is in the archive before the turn is done: a kill then is a moment of its own.
            let at = rng.u64(0..lasts);
            events.push((at, What::Trouble { kind: Trouble::ModelCalls, lasts: 10 * 60_000, percent: 90 }));
            events.push((at, What::Kill { point: Point::Model, times: rng.u32(2..9) }));
        }
        for _ in 0..rng.usize(0..4) {
            let point = one_of(&mut rng, &[Point::DiskWrite, Point::DiskSync, Point::Slack, Point::Model]);
            let most = if point == Point::DiskWrite { 60 } else { 12 };
            events.push((rng.u64(0..lasts), What::Kill { point, times: rng.u32(1..most) }));
        }
        if rng.u8(0..4) == 0 {
            events.push((rng.u64(0..lasts), What::Restart));
        }
        if rng.u8(0..3) == 0 {
            events.push((rng.u64(0..lasts), What::Damage(one_of(&mut rng, &Damage::ALL))));
        }
        if rng.u8(0..6) == 0 {
            let by = one_of(&mut rng, &[-40 * 86_400_000, -3_600_000, -5_000, 5_000, 3_600_000, 20 * 3_600_000]);
            events.push((rng.u64(0..lasts), What::Clock { by }));
        }
        events.sort_by_key(|(at, _)| *at);
        let calm_at = calm_after(&events);
        let probes = probes(&events, calm_at + PROBED_AFTER);
        events.extend(probes);
        events.extend(together(seed, &events, lasts));
        events.extend(deeds::of(seed, &events, calm_at));
        Scenario { seed, setting, events: numbered(events), calm_at }
    }
}

/// When all of this is over.
fn calm_after(events: &[(u64, What)]) -> u64 {
    let ends = |(at, what): &(u64, What)| match what {
        What::Trouble { lasts, .. } | What::Harm { lasts, .. } => at + lasts,
        _ => *at,
    };
    events.iter().map(ends).max().unwrap_or(0) + 1_000
}

fn numbered(events: Vec<(u64, What)>) -> Vec<Event> {
    events.into_iter().enumerate().map(|(number, (at, what))| Event { number, at, what }).collect()
}

impl Scenario {
    /// Whether this harm is done to that host then.
    pub fn is_hit(&self, wanted: Harm, of: usize, now: u64) -> bool {
        let mut events = self.events.iter().filter(|event| event.at <= now);
        events.any(|event| match event.what {
            What::Harm { harm, host, lasts } => harm == wanted && host == of && now < event.at + lasts,
            _ => false,
        })
    }

    /// Whether what has gone out is known to have gone out, a moment later.
    pub fn keeps_what_it_hears(&self) -> bool {
        let loses = |event: &Event| match event.what {
            What::Trouble { kind, .. } => {
                !matches!(kind, Trouble::ModelBusy | Trouble::ModelHangs | Trouble::ModelEmpty)
            }
            What::Kill { .. } | What::Restart | What::Damage(_) | What::Harm { .. } | What::Statement { .. } => true,
            _ => false,
        };
        !self.events.iter().any(loses)
    }
}

/// Troubles that hurt together what neither hurts alone: what was posted, and nobody heard of, cannot be looked for.
fn together(seed: u64, events: &[(u64, What)], lasts: u64) -> Vec<(u64, What)> {
    let mut rng = dice(seed, "together");
    let asked: Vec<u64> =
        events.iter().filter(|(at, what)| matches!(what, What::Says(_)) && *at < lasts).map(|(at, _)| *at).collect();
    if asked.is_empty() || rng.u8(0..8) > 0 {
        return vec![];
    }
    let at = one_of(&mut rng, &asked);
    let trouble = |kind, percent| (at, What::Trouble { kind, lasts: 60_000.min(lasts - at), percent });
    vec![trouble(Trouble::AnswerLost, 30), trouble(Trouble::CannotLook, 60)]
}

/// When nothing goes wrong any more, every conversation is asked something once more: it must not be stuck.
fn probes(events: &[(u64, What)], at: u64) -> Vec<(u64, What)> {
    let mut asked: Vec<(Where, u8)> = Vec::new();
    for (_, what) in events {
        let What::Says(Said { person, place, .. }) = what else { continue };
        let is_same = |other: &(Where, u8)| other.0 == *place && (*place != Where::Direct || other.1 == *person);
        if !asked.iter().any(is_same) {
            asked.push((*place, *person));
        }
    }
    let says = |(place, person)| Said { person, place, length: Length::Line, twice: false, is_probe: true };
    asked.into_iter().map(|who| (at, What::Says(says(who)))).collect()
}

impl Setting {
    fn of(rng: &mut Rng, seed: u64) -> Setting {
        let small = rng.bool();
        let mut more = dice(seed, "more of the setting");
        Setting {
            policies: one_of(rng, &STACKS),
            window: if small { rng.u64(3_000..9_000) } else { one_of(rng, &[16_000, 32_000, 200_000]) },
            truth: one_of(rng, &[100, 100, 100, 130, 80, 50]),
            counts: one_of(rng, &[100, 100, 80, 120, 160]),
            overflow: one_of(rng, &[Overflow::Numbers, Overflow::Words, Overflow::Riddle, Overflow::Silence]),
            queue: one_of(rng, &["sequential", "sequential", "collect", "steer"]),
            tools: rng.bool(),
            language: one_of(rng, &["en", "zh-TW"]),
            contacts: rng.u8(0..3) == 0,
            admins: rng.bool(),
            presence: more.u8(0..4) == 0,
            arm: (more.u8(0..4) == 0).then(|| one_of(&mut more, &STACKS)),
            follows_deletes: more.u8(0..6) > 0,
            wrong_clocks: vec![],
            span: 0,
        }
    }
}

impl Setting {
    /// What the model takes, in our tokens.
    pub fn room(&self) -> u64 {
        self.window * self.truth / self.counts
    }
}

impl Said {
    fn of(rng: &mut Rng, people: u8) -> Said {
        let place = match rng.u8(0..6) {
            0 => Where::Channel(rng.u8(0..2)),
            1 => Where::Thread(rng.u8(0..2), rng.u8(0..2)),
            _ => Where::Direct,
        };
        let length = match rng.u8(0..12) {
            0 => Length::Flood,
            1..4 => Length::Page,
            _ => Length::Line,
        };
        Said { person: rng.u8(0..people), place, length, twice: place != Where::Direct && rng.bool(), is_probe: false }
    }
}
