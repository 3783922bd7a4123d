//! Services for the tests of what uses them.

use std::{path::Path, sync::Arc};

use pmk_knowledge::Library;
use pmk_models::Model;
use pmk_policy::{Compiler, Layer, Runtime, RuntimeConfig, Settings, Stack};
use pmk_system::clock::Clock;
use tokio_util::sync::CancellationToken;

use super::{Parts, Services, SharedLibrary};
use crate::{
    access::audience::Prompts,
    calibration::Calibration,
    config::Config,
    front::Front,
    ledger::Ledger,
    mra::{self, Mra},
    policies,
    store::Store,
};

/// Services of a home, with the standard policy and the default settings.
pub(crate) fn services_of(home: &Path, store: &Store, model: Arc<dyn Model>, front: Arc<dyn Front>) -> Arc<Services> {
    let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
    let policy = policies::load_unseen(&runtime, Path::new("standard")).expect("the standard policy");
    let settings = Settings::defaults(policy.description());
    let parts = Parts {
        home,
        clock: Clock::system(),
        store: store.clone(),
        stack: Stack::new([], Layer { policy: Arc::new(policy), settings }),
        model,
        front,
        ledger: Ledger::open(Arc::new(store.clone()), home),
        config: Config::default(),
        library: SharedLibrary::new(Library::open(home).expect("a library")),
        calibration: Calibration::default(),
        takes_tools: None,
        prompts: Prompts::default(),
        mra: Mra::new(mra::Config::default()),
        seeder: None,
        load: Arc::new(|_, _| unreachable!("there is no experiment")),
    };
    Services::new(parts, CancellationToken::new())
}
