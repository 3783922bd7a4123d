//! One world from its beginning to its verdict.

use std::{
    collections::BTreeSet,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::json;

use crate::{
    life,
    policies::Policies,
    scenario::{Scenario, Setting},
    slack::Slack,
    verdict::{self, Outcome},
    world::World,
};

/// Has everything happen that a seed says, or of it what is to be kept.
pub fn run(policies: &Policies, seed: u64, keep: Option<&BTreeSet<usize>>, is_loud: bool) -> Outcome {
    let home = tempfile::tempdir_in(memory()).expect("a folder");
    let scenario = Scenario::of(seed, keep);
    if is_loud {
        eprintln!("{:#?}", scenario.setting);
        for event in &scenario.events {
            eprintln!("{:>4} {:>9} {:?}", event.number, event.at, event.what);
        }
    }
    furnish(home.path(), &scenario.setting);
    let world = Arc::new(World::new(scenario, is_loud));
    let slack = Arc::new(Slack::new(Arc::clone(&world)));
    let lived = catch_unwind(AssertUnwindSafe(|| life::live(&world, &slack, home.path(), policies)));
    if lived.is_err() {
        world.breach("the gateway panicked outside of a turn".to_owned());
    }
    verdict::of(&world, &slack, home.path(), policies)
}

/// Where nothing has to wait for a disk, for that is not what is simulated.
fn memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}

fn furnish(home: &Path, setting: &Setting) {
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
    if setting.admins {
        config["admins"] = json!(["UADMIN"]);
    }
    if setting.contacts {
        config["escalation"] = json!({"default": ["UHELP"]});
    }
    fs::write(home.join("gateway.json"), config.to_string()).expect("the configuration is written");
}
