//! Plans what happens in a world: who says what when, and what goes wrong. All of it is derived from one number; to
//! minimise a failing case, some events are left out.

use std::{collections::BTreeSet, ops::RangeInclusive};

use fastrand::Rng;

use crate::{
    aging::{self, Aging},
    deeds::{self, Deed},
    erasing::{self, Wanted},
    random::{dice, one_of},
    retrying,
    wire::Fuse,
    wiring::{self, Wiring},
};

mod several;

pub use several::FIRST_OF_STOPS;

/// The plan of a world.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub setting: Setting,
    /// Sorted by time.
    pub events: Vec<Event>,
    /// The end of all trouble, in milliseconds of the world's time.
    pub calm_at: u64,
    /// What is planned for conversations to age, if they do.
    pub aging: Option<Aging>,
}

/// The settings of a world, which do not change while it runs.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Components, the last one on top.
    pub policies: &'static [&'static str],
    /// The window that is configured in the gateway.
    pub window: u64,
    /// The window that the model really has, in percent of that.
    pub truth: u64,
    /// How many tokens the model counts per 100 of our estimate.
    pub counts: u64,
    pub overflow: Overflow,
    /// `queue.mode` of gateway.json.
    pub queue: &'static str,
    pub tools: bool,
    pub language: &'static str,
    /// Whether there are contacts for questions, and admins who are told of trouble.
    pub contacts: bool,
    pub admins: bool,
    /// Whether the gateway announces its end and return, and reads messages that it missed.
    pub presence: bool,
    /// The policies of the other arm, if there is an experiment.
    pub arm: Option<&'static [&'static str]>,
    /// `slack.followDeletes` of gateway.json.
    pub follows_deletes: bool,
    /// Whether files come with some questions.
    pub files: bool,
    /// If the bot acts by the real front for Slack: how Slack behaves then.
    pub wired: Option<Wiring>,
    /// The clock errors of the hosts' machines, in milliseconds.
    pub wrong_clocks: Vec<i64>,
    /// How long one of several hosts runs at most before the next does.
    pub span: u64,
}

/// How the model reports that a prompt is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    Numbers,
    Words,
    /// With words that are not recognised.
    Riddle,
    /// With an empty answer.
    Silence,
}

/// An event of the plan.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its position in the complete plan, whatever is left out.
    pub number: usize,
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Says(Said),
    Does(Deed),
    /// An operator has conversations erased, from then on until it is done.
    Erases(Wanted),
    /// An operator has parked messages retried.
    Retries(retrying::Wanted),
    /// Other policies take over.
    Swap(&'static [&'static str]),
    /// A trouble for this long, in this percentage of cases.
    Trouble {
        kind: Trouble,
        lasts: u64,
        percent: u8,
    },
    /// The process is killed when it has reached this point this many times.
    Kill {
        point: Point,
        times: u32,
    },
    /// The process is stopped and started again; with several hosts, one of them.
    Restart,
    /// Something in the home is damaged before the next start.
    Damage(Damage),
    /// The machine's clock is changed by this many milliseconds; with several hosts, all clocks are, as if time had passed.
    Clock {
        by: i64,
    },
    /// The clock of one of several hosts is changed.
    ClockOf {
        host: usize,
        by: i64,
    },
    /// One of several hosts is affected by this for so long.
    Harm {
        harm: Harm,
        host: usize,
        lasts: u64,
    },
    /// Something happens to a statement between one host and the database.
    Statement {
        host: usize,
        fuse: Fuse,
    },
}

/// A fault of one of several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It is suspended, like a stopped process.
    Stopped,
    /// It cannot reach the database,
    OffDatabase,
    /// or Slack,
    OffSlack,
    /// or the model.
    OffModel,
}

/// A person's question.
#[derive(Clone, Debug)]
pub struct Said {
    pub person: u8,
    pub place: Where,
    pub length: Length,
    /// Slack sends an additional event for the mention.
    pub twice: bool,
    /// It tests whether the conversation still works.
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

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// Slack: rate limited.
    PutOff,
    /// Slack: an error, and nothing was done.
    NotDone,
    /// Slack: done, but the response is lost.
    AnswerLost,
    /// Slack: no response in time.
    SlackHangs,
    /// Slack: refuses this message permanently, or this one can no longer be changed.
    Refuses,
    /// Slack: nothing works in one place.
    PlaceDown,
    /// Slack: posted messages cannot be searched for.
    CannotLook,
    /// Slack: an acknowledged event is sent again.
    AckLost,
    /// Slack: an event is delayed until after later ones.
    Late,
    /// In worlds over calls: connections are opened that will be cut at some byte,
    SocketsCut,
    /// fall silent,
    SocketsMute,
    /// or are to be replaced.
    SocketsReplaced,
    ModelBusy,
    ModelHangs,
    ModelBreaksOff,
    ModelEmpty,
    ModelRiddle,
    ModelDeclines,
    /// The model calls tools, some of them with invalid arguments.
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

/// Damage to files by a crash of the machine or a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The last lines of the ledger never reached the disk.
    LedgerTail,
    /// The write-ahead log of the database ends in random bytes.
    LogTail,
    /// The index of the write-ahead log is missing.
    LogIndex,
    /// Files that are derived from others contain random bytes.
    Caches,
}

impl Damage {
    pub const ALL: [Damage; 4] = [Damage::LedgerTail, Damage::LogTail, Damage::LogIndex, Damage::Caches];
}

/// Where a process can be killed: before and after each of these operations.
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

/// How long after the last trouble conversations are probed, because some of its effects take time to pass.
const PROBED_AFTER: u64 = 65 * 60_000;

/// How long the trouble lasts, at most.
const HOURS: u64 = 60 * 60 * 1_000;

impl Scenario {
    /// The plan of a seed for this many hosts; if numbers are given, only with those events.
    pub fn of(seed: u64, hosts: usize, keep: Option<&BTreeSet<usize>>) -> Scenario {
        let Scenario { seed, setting, mut events, calm_at, aging } = match hosts {
            0 | 1 => Scenario::of_one(seed),
            several => Scenario::of_several(seed, several),
        };
        events.retain(|event| keep.is_none_or(|keep| keep.contains(&event.number)));
        events.sort_by_key(|event| event.at);
        Scenario { seed, setting, events, calm_at, aging }
    }

    /// When nothing is planned any more that has to come to rest.
    pub fn ends_at(&self) -> u64 {
        self.aging.as_ref().map_or(self.calm_at, |aging| aging.probed_at)
    }

    fn of_one(seed: u64) -> Scenario {
        let mut rng = dice(seed, "scenario");
        let mut setting = Setting::of(&mut rng, seed);
        let lasts = rng.u64(30_000..2 * HOURS);
        let mut events: Vec<(u64, What)> = Vec::new();
        let questions = rng.usize(4..40);
        let people = rng.u8(1..5);
        let mut at = 0;
        for _ in 0..questions {
            // Some questions come at once, some after a while.
            at += if rng.bool() { rng.u64(0..1_500) } else { rng.u64(0..2 * lasts / questions as u64 + 1) };
            events.push((at, What::Says(Said::of(&mut rng, people))));
        }
        let lasts = at.max(30_000);
        for _ in 0..rng.usize(0..5) {
            let kind = one_of(&mut rng, &Trouble::ALL);
            let percent = one_of(&mut rng, &[5, 20, 50, 90, 100]);
            let (from, lasts) = (rng.u64(0..lasts), rng.u64(1_000..lasts.min(20 * 60_000)));
            let trouble = match kind {
                // Long enough for the gateway to give the message up.
                Trouble::PlaceDown => What::Trouble { kind, lasts: lasts + 20 * 60_000, percent: 100 },
                kind => What::Trouble { kind, lasts, percent },
            };
            events.push((from, trouble));
        }
        if setting.tools && rng.u8(0..3) == 0 {
            // Tool results are archived before the turn is done, so that a kill at that time is a special case.
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
        wiring::prepare(seed, 1, &mut setting, &mut events);
        events.extend(retrying::trouble(seed, &events));
        events.sort_by_key(|(at, _)| *at);
        let calm_at = calm_after(&events);
        let probes = probes(&events, calm_at + PROBED_AFTER);
        events.extend(probes);
        events.extend(together(seed, &events, lasts));
        events.extend(deeds::of(seed, &events, calm_at));
        if setting.files {
            events.extend(amid_fetching(seed, &events, calm_at));
        }
        events.extend(erasing::of(seed, &events, calm_at));
        events.extend(retrying::of(seed, 1, &events, calm_at));
        let aging = aging::of(seed, &events, (calm_at, calm_at + PROBED_AFTER));
        if aging.as_ref().is_some_and(|aging| aging.needs_contacts) {
            (setting.contacts, setting.tools) = (true, true);
        }
        events.extend(aging.iter().flat_map(|aging| aging.events.clone()));
        Scenario { seed, setting, events: numbered(events), calm_at, aging }
    }
}

/// When all of these events are over.
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
    /// Whether this question tests whether its conversation still works.
    pub fn is_probe(&self, number: usize) -> bool {
        let mut events = self.events.iter().filter(|event| event.number == number);
        events.any(|event| matches!(event.what, What::Says(Said { is_probe: true, .. })))
    }

    /// Whether one of several hosts was suspended or cut off at some time between these.
    pub fn harms_between(&self, from: u64, to: u64) -> bool {
        self.events.iter().any(|event| match event.what {
            What::Harm { lasts, .. } => event.at <= to && event.at + lasts >= from,
            _ => false,
        })
    }

    /// Whether a process may have been killed or restarted at some time between these.
    pub fn kills_between(&self, from: u64, to: u64) -> bool {
        self.events.iter().any(|event| match event.what {
            // It waits until a point is reached.
            What::Kill { .. } => event.at <= to,
            What::Restart => (from..=to).contains(&event.at),
            _ => false,
        })
    }

    /// Whether this host was suspended or cut off at some time of this period.
    pub fn is_harmed(&self, of: usize, period: &RangeInclusive<u64>) -> bool {
        self.events.iter().any(|event| match event.what {
            What::Harm { host, lasts, .. } if host == of => {
                event.at <= *period.end() && event.at + lasts >= *period.start()
            }
            _ => false,
        })
    }

    /// Whether this host is affected by this fault at this time.
    pub fn is_hit(&self, wanted: Harm, of: usize, now: u64) -> bool {
        let mut events = self.events.iter().filter(|event| event.at <= now);
        events.any(|event| match event.what {
            What::Harm { harm, host, lasts } => harm == wanted && host == of && now < event.at + lasts,
            _ => false,
        })
    }
}

/// Troubles that are harmful only in combination: a post whose response was lost, and which cannot be searched for.
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

/// Questions that are changed while their files may be on their way, and commits are slow: what was fetched is stored
/// after the change.
fn amid_fetching(seed: u64, events: &[(u64, What)], calm_at: u64) -> Vec<(u64, What)> {
    let mut rng = dice(seed, "amid fetching");
    let asked = deeds::asked(events);
    let changed =
        (0..rng.usize(0..4)).filter(|_| !asked.is_empty()).map(|_| one_of(&mut rng, &asked)).collect::<Vec<_>>();
    let both = changed.into_iter().flat_map(|(about, at)| {
        let lasts = 15_000.min(calm_at.saturating_sub(at));
        let slow = What::Trouble { kind: Trouble::DiskSlow, lasts, percent: 50 };
        let kind = one_of(&mut rng, &[deeds::Kind::Edits, deeds::Kind::Deletes]);
        let deed = Deed { about, kind, after: rng.u64(10..80) };
        [(at, slow), ((at + rng.u64(500..8_000)).min(calm_at), What::Does(deed))]
    });
    both.collect()
}

/// After the last trouble, every conversation is asked a further question: it must not be stuck.
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
            files: more.u8(0..3) == 0,
            wired: None,
            wrong_clocks: vec![],
            span: 0,
        }
    }
}

impl Setting {
    /// The model's window in our tokens.
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
