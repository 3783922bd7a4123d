//! The checked-in components, compiled once for all worlds of this process.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::component::Component;
use pmk_policy::{Compiler, Layer, Limits, Policy, Runtime, RuntimeConfig, Settings, Stack, Trust};

/// All of them, by name; those that are hostile, too.
pub struct Policies(BTreeMap<String, Arc<Policy>>);

impl Policies {
    /// Loads them. Time is no limit, for that is not the same twice; fuel is.
    ///
    /// # Panics
    /// They are not there.
    pub fn load() -> Policies {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
        let cache_dir = std::env::temp_dir().join("pmk-simulation-components");
        let limits = Limits { wall: Duration::from_secs(3_600), ..Limits::default() };
        let config = RuntimeConfig { cache_dir: Some(cache_dir), limits, ..RuntimeConfig::new(Compiler::Here) };
        let runtime = Runtime::new(config).expect("an engine");
        let files = std::fs::read_dir(&folder).expect("the folder of policies").flatten().map(|entry| entry.path());
        let mut components: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|is| is == "wasm")).collect();
        components.sort();
        let load = |path: PathBuf| {
            let policy = Policy::load(&runtime, &path).expect("a policy");
            (policy.name().to_owned(), Arc::new(policy))
        };
        let mut all: BTreeMap<String, Arc<Policy>> = components.into_iter().map(load).collect();
        // What loops need not loop for long.
        let bounded = Limits { fuel_base: 2_000_000, ..limits };
        let runtime = runtime.under(bounded, Trust::default());
        for (name, component) in hostile() {
            let policy = Policy::from_bytes(&runtime, name, &component.build()).expect("a policy");
            all.insert(name.to_owned(), Arc::new(policy));
        }
        Policies(all)
    }

    /// These, the last on top, over the standard one.
    ///
    /// # Panics
    /// There is none of that name.
    pub fn stack(&self, names: &[&str]) -> Stack {
        let layer = |name: &str| {
            let policy = Arc::clone(self.0.get(name).unwrap_or_else(|| panic!("there is no policy `{name}`")));
            let settings = Settings::defaults(policy.description());
            Layer { policy, settings }
        };
        Stack::new(names.iter().rev().map(|name| layer(name)), layer("standard"))
    }
}

impl Policies {
    /// The digests of a stack's layers, the top one first.
    pub fn digests(&self, names: &[&str]) -> Vec<String> {
        let stack = self.stack(names);
        stack.layers().iter().map(|layer| layer.policy.identity().sha256.clone()).collect()
    }
}

/// Policies that fail, or decide what makes no sense.
fn hostile() -> [(&'static str, Component); 4] {
    let remove = "(call $remove (local.get $plan) (i32.const 1) (i32.const 2))";
    [
        (
            "traps",
            Component::pruning("(unreachable)").export("cap", "(unreachable)").export("recover", "(unreachable)"),
        ),
        ("loops", Component::pruning("(loop $l (br $l))")),
        ("tears", Component::pruning(remove)),
        ("idles", Component::pruning("").export("recover", "")),
    ]
}
