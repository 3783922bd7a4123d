//! The checked-in components, compiled once for all worlds of this process.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::component::Component;
use pmk_policy::{Compiler, Layer, Limits, Policy, Runtime, RuntimeConfig, Settings, Stack, Trust};

/// All policies by name, including hostile ones.
pub struct Policies(BTreeMap<String, Arc<Policy>>);

impl Policies {
    /// Loads the policies. They are limited by fuel but not by time, which would not be reproducible.
    ///
    /// # Panics
    /// If the components do not exist.
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
        // An endless loop need not run for long.
        let bounded = Limits { fuel_base: 2_000_000, ..limits };
        let runtime = runtime.under(bounded, Trust::default());
        for (name, component) in hostile() {
            let policy = Policy::from_bytes(&runtime, name, &component.build()).expect("a policy");
            all.insert(name.to_owned(), Arc::new(policy));
        }
        Policies(all)
    }

    /// A stack of these policies, the last one on top, over the standard one.
    ///
    /// # Panics
    /// If there is no policy with one of the names.
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
        stack.layers().map(|layer| layer.policy.identity().sha256.clone()).collect()
    }
}

/// Policies that fail, or make invalid decisions.
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
