//! Runs one world from its beginning to its verdict.

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    course,
    database::{Fence, WorldsDatabase},
    life::Site,
    panics,
    policies::Policies,
    scenario::Scenario,
    slack::Slack,
    verdict::{self, Outcome},
    wire::Wire,
    world::World,
};

/// The hosts of a world.
#[derive(Clone, Copy, Debug)]
pub struct Hosts {
    pub count: usize,
    /// With several hosts: the fence that keeps a suspended one from writing.
    pub fence: Fence,
}

impl Hosts {
    /// One host, with a store in a file.
    pub const ONE: Hosts = Hosts::several(1);

    /// Several hosts, with one database.
    pub const fn several(count: usize) -> Hosts {
        Hosts { count, fence: Fence::Up }
    }
}

/// Runs everything that a seed determines, or only the events to keep.
pub fn run(policies: &Policies, hosts: Hosts, seed: u64, keep: Option<&BTreeSet<usize>>, is_loud: bool) -> Outcome {
    let scenario = Scenario::of(seed, hosts.count, keep);
    if is_loud {
        eprintln!("{:#?}", scenario.setting);
        for event in &scenario.events {
            eprintln!("{:>4} {:>9} {:?}", event.number, event.at, event.what);
        }
    }
    let homes: Vec<TempDir> = (0..hosts.count).map(|_| tempfile::tempdir_in(memory()).expect("a folder")).collect();
    homes.iter().for_each(|home| furnish(home.path(), &scenario));
    let database = (hosts.count > 1).then(|| WorldsDatabase::new(hosts.fence));
    let wires: Vec<Arc<Wire>> =
        database.iter().flat_map(|database| homes.iter().map(|_| Wire::to(&database.socket()))).collect();
    let place = |(number, home): (usize, &TempDir)| match &database {
        Some(database) => database.place_by(&wires[number], home.path()),
        None => home.path().into(),
    };
    let world = Arc::new(World::new(scenario, hosts.count, &wires, is_loud));
    let slack = Arc::new(Slack::new(Arc::clone(&world)));
    let site = |host: (usize, &TempDir)| {
        let home = host.1.path().to_owned();
        Site { world: &world, slack: &slack, policies, home, place: place(host) }
    };
    let sites: Vec<Site<'_>> = homes.iter().enumerate().map(site).collect();
    panics::take();
    let lived = catch_unwind(AssertUnwindSafe(|| course::run(&world, &slack, &sites, &wires, database.as_ref())));
    if lived.is_err() {
        world.breach("the gateway panicked outside of a turn".to_owned());
    }
    let places = panics::take();
    wires.iter().for_each(|wire| wire.take_down());
    let mut outcome = verdict::of(&world, &slack, &homes, database.as_ref(), policies);
    // A turn that panicked is in the ledger, unless that could not be written.
    let is_told = |place: &String| outcome.breaches.iter().any(|breach| breach.contains(place));
    let untold: Vec<String> = places.into_iter().filter(|place| !is_told(place)).collect();
    outcome.breaches.extend(untold.into_iter().map(|place| format!("something panicked at {place}")));
    outcome
}

/// A folder in memory, because the speed of a real disk is not simulated.
fn memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}

fn furnish(home: &Path, Scenario { setting, aging, .. }: &Scenario) {
    let mut config = json!({
        "version": 1,
        "language": setting.language,
        "queue": {"mode": setting.queue},
        "slack": {"followDeletes": setting.follows_deletes},
    });
    if setting.arm.is_some() {
        config["experiment"] = json!({
            "name": "gears",
            "start": "2025-01-01T00:00:00Z",
            "control": "as-it-is",
            "arms": [{"name": "as-it-is"}, {"name": "other", "policy": {"files": ["other.wasm"]}}],
        });
    }
    if let Some(aging) = aging {
        config["sessions"] = json!({"keepDays": aging.keep_days});
    }
    if setting.admins {
        config["admins"] = json!(["UADMIN"]);
    }
    if setting.contacts {
        config["escalation"] = json!({"default": ["UHELP"]});
    }
    fs::write(home.join("gateway.json"), config.to_string()).expect("the configuration is written");
}
