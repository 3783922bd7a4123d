//! Plans a world of several hosts with one database. Its times are shorter than with one host: each of the hosts polls
//! the database several times a second.

use fastrand::Rng;

use super::{
    Event, Harm, Overflow, Point, Said, Scenario, Setting, Trouble, What, aging, calm_after, deeds, erasing, numbered,
    probes, retrying,
};
use crate::{
    random::{dice, one_of},
    wire::Fuse,
    wiring,
};

/// Excluded here: trouble that lasts longer than such a world, and trouble of the disk, which these hosts do not use.
const NOT_HERE: [Trouble; 6] = [
    Trouble::Refuses,
    Trouble::PlaceDown,
    Trouble::DiskFull,
    Trouble::DiskBroken,
    Trouble::DiskUnread,
    Trouble::DiskSlow,
];

const HARMS: [Harm; 6] =
    [Harm::Stopped, Harm::Stopped, Harm::Stopped, Harm::OffDatabase, Harm::OffSlack, Harm::OffModel];

/// How long after the last trouble conversations are probed.
const PROBED_AFTER: u64 = 60_000;

/// The numbers of suspensions begin here, after those of all other events.
pub const FIRST_OF_STOPS: usize = 1_000;

/// Possible clock errors, in milliseconds.
const WRONG: [i64; 6] = [0, 0, 0, -3_600_000, 3_600_000, 90_000];

/// Worlds of smaller seeds are known from before clocks were set while hosts run, and stay as they were.
const FIRST_SET: u64 = 6_000;

/// By how much a clock is set.
const SET: [i64; 8] =
    [-20 * 3_600_000, -13 * 3_600_000, -3_600_000, -90_000, 90_000, 3_600_000, 13 * 3_600_000, 20 * 3_600_000];

impl Scenario {
    pub(super) fn of_several(seed: u64, hosts: usize) -> Scenario {
        let mut rng = dice(seed, "several");
        let mut setting = Setting::of(&mut rng, seed);
        setting.wrong_clocks = (0..hosts).map(|_| one_of(&mut rng, &WRONG)).collect();
        // After a silent overflow, the gateway probes the bound an hour later.
        if setting.overflow == Overflow::Silence {
            setting.overflow = Overflow::Words;
        }
        setting.span = one_of(&mut rng, &[20, 100, 400]);
        let lasts = rng.u64(20_000..180_000);
        let (questions, people) = (rng.usize(15..70), rng.u8(2..9));
        let mut events: Vec<(u64, What)> = Vec::new();
        let mut at = 0;
        for _ in 0..questions {
            at += if rng.bool() { rng.u64(0..1_000) } else { rng.u64(0..2 * lasts / questions as u64 + 1) };
            events.push((at, What::Says(Said::of(&mut rng, people))));
        }
        let lasts = at.max(20_000);
        let troubles: Vec<Trouble> = Trouble::ALL.into_iter().filter(|trouble| !NOT_HERE.contains(trouble)).collect();
        for _ in 0..rng.usize(0..4) {
            let (kind, percent) = (one_of(&mut rng, &troubles), one_of(&mut rng, &[5, 20, 50, 100]));
            events.push((rng.u64(0..lasts), What::Trouble { kind, lasts: rng.u64(1_000..60_000), percent }));
        }
        for _ in 0..rng.usize(1..6) {
            let (harm, host) = (one_of(&mut rng, &HARMS), rng.usize(..hosts));
            let most = if harm == Harm::OffSlack { 60_000 } else { 15_000 };
            let (from, lasts) = (rng.u64(0..lasts), rng.u64(200..most));
            // Sometimes no host can reach the database.
            let hit = if harm == Harm::OffDatabase && rng.u8(0..3) == 0 { 0..hosts } else { host..host + 1 };
            events.extend(hit.map(|host| (from, What::Harm { harm, host, lasts })));
        }
        for _ in 0..rng.usize(0..6) {
            let fuse = Fuse { spares: rng.u32(0..60), after: rng.bool(), kills: rng.bool() };
            events.push((rng.u64(0..lasts), What::Statement { host: rng.usize(..hosts), fuse }));
        }
        for _ in 0..rng.usize(0..4) {
            let point = one_of(&mut rng, &[Point::Slack, Point::Model]);
            events.push((rng.u64(0..lasts), What::Kill { point, times: rng.u32(1..12) }));
        }
        for _ in 0..rng.usize(0..3) {
            events.push((rng.u64(0..lasts), What::Restart));
        }
        events.extend(rushes(seed, lasts));
        events.sort_by_key(|(at, _)| *at);
        wiring::prepare(seed, hosts, &mut setting, &mut events);
        let stops = stops_at_work(seed, hosts, &events);
        let calm_at = calm_after(&events).max(calm_after(&stops));
        let probes = probes(&events, calm_at + PROBED_AFTER);
        events.extend(probes);
        // When a swap takes effect differs between hosts.
        let deeds = deeds::of(seed, &events, calm_at).into_iter().filter(|(_, what)| !matches!(what, What::Swap(_)));
        events.extend(deeds);
        events.extend(erasing::of_several(seed, &events, calm_at));
        events.extend(retrying::of(seed, hosts, &events, calm_at));
        let aging = aging::of_several(seed, &events, hosts, calm_at + PROBED_AFTER);
        if aging.as_ref().is_some_and(|aging| aging.needs_contacts) {
            (setting.contacts, setting.tools) = (true, true);
        }
        events.extend(aging.iter().flat_map(|aging| aging.events.clone()));
        events.extend(clocks_set(seed, hosts, aging.as_ref().map_or(calm_at, |aging| aging.ages_at)));
        let mut events = numbered(events);
        let stops = stops.into_iter().zip(FIRST_OF_STOPS..);
        events.extend(stops.map(|((at, what), number)| Event { number, at, what }));
        events.sort_by_key(|event| event.at);
        Scenario { seed, setting, events, calm_at, aging }
    }
}

/// Suspends hosts just when they are about to answer, until others have answered: their calls may then arrive late.
fn stops_at_work(seed: u64, hosts: usize, events: &[(u64, What)]) -> Vec<(u64, What)> {
    let mut rng = dice(seed, "stops at work");
    let asked: Vec<u64> = events.iter().filter(|(_, what)| matches!(what, What::Says(_))).map(|(at, _)| *at).collect();
    if rng.bool() {
        return vec![];
    }
    let stop = |rng: &mut Rng| {
        let (at, host) = (one_of(rng, &asked) + rng.u64(20..800), rng.usize(..hosts));
        (at, What::Harm { harm: Harm::Stopped, host, lasts: rng.u64(3_000..12_000) })
    };
    (0..rng.usize(1..5)).map(|_| stop(&mut rng)).collect()
}

/// Sets clocks of hosts that run: each is set wrong, and right again. None of the seeds that were kept before has these
/// last digits.
fn clocks_set(seed: u64, hosts: usize, until: u64) -> Vec<(u64, What)> {
    if seed < FIRST_SET || !matches!(seed % 10, 3 | 6 | 7) {
        return vec![];
    }
    let mut rng = dice(seed, "clocks");
    let mut times: Vec<u64> = (0..rng.usize(1..8)).map(|_| rng.u64(0..until)).collect();
    times.sort_unstable();
    let mut wrong_by = vec![0; hosts];
    let set = times.into_iter().map(|at| {
        let host = rng.usize(..hosts);
        let by = if wrong_by[host] == 0 { one_of(&mut rng, &SET) } else { -wrong_by[host] };
        wrong_by[host] += by;
        (at, What::ClockOf { host, by })
    });
    set.collect()
}

/// Many people ask at once, so that the hosts' writes share transactions.
fn rushes(seed: u64, lasts: u64) -> Vec<(u64, What)> {
    let mut rng = dice(seed, "rushes");
    if rng.bool() {
        return vec![];
    }
    let people = rng.u8(10..40);
    let mut events = Vec::new();
    for _ in 0..rng.usize(1..5) {
        let (from, within) = (rng.u64(0..lasts), one_of(&mut rng, &[1, 50, 1_000]));
        for _ in 0..rng.usize(20..80) {
            events.push((from + rng.u64(0..within), What::Says(Said::of(&mut rng, people))));
        }
    }
    events
}
