//! Swaps on a host of a real PostgreSQL.

use pmk_core::Language;
use pmk_policy::{Compiler, Runtime, RuntimeConfig};
use pmk_stand_ins::{patience, postgres};
use pmk_system::home::HomeLock;
use tempfile::TempDir;
use tokio_util::task::TaskTracker;

use super::*;
use crate::{
    config::WatchedConfig,
    database::Database,
    front::console::Lines,
    operator::permissions::Permissions,
    policies::{Named, follow},
    store::Place,
};

/// A host on a database of its own.
struct Scene {
    swapper: Arc<Swapper>,
    promoting: watch::Sender<Option<Arc<Promotion>>>,
    folder: TempDir,
    address: String,
    _lock: HomeLock,
}

impl Scene {
    /// `None` where tests are to run without PostgreSQL, which the server helper prints.
    async fn new() -> Option<Scene> {
        let address = postgres::server()?.schema();
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path();
        let database = Some(Database::parse(&address).expect("an address"));
        let store = Store::open(Place { home: home.to_owned(), database }).expect("a store");
        let lock = HomeLock::take(home).expect("the home");
        store.take_over(&lock).await.expect("nobody else is there");
        let ledger = Ledger::open(Arc::new(store.clone()), home);
        let watched = Arc::new(WatchedConfig::new(home, &Config::default()));
        let people = Arc::new(Permissions::new(watched, ledger.clone()));
        let front = Arc::new(Lines::start().expect("a thread"));
        let loader = Loader::of(Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine"), Named::default());
        let config = PolicyConfig::default();
        let (promoting, promotions) = watch::channel(None);
        let ports = Ports {
            policies: Arc::new(Policies::new(&loader.load(&config, &[]).expect("policies"))),
            ledger,
            admins: Admins::new(front, people, TaskTracker::new()),
            messages: Arc::new(Messages::new(Language::English)),
            store,
            promotions,
        };
        let swapper = Arc::new(Swapper::new(home, ports, loader, &config));
        Some(Scene { swapper, promoting, folder, address, _lock: lock })
    }

    /// Puts this component into the file, and returns the file.
    fn holds(&self, name: &str) -> PathBuf {
        let file = self.folder.path().join("mine.wasm");
        let component = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../plugins/{name}.wasm"));
        std::fs::copy(component, &file).expect("a component");
        file
    }

    /// As an operator of the database would do it.
    fn sql(&self, statement: &str) {
        let schema = self.address.rsplit("%3D").next().expect("a schema");
        let server = postgres::server().expect("it runs");
        server.psql("postgres", &format!("SET search_path = {schema}; {statement}")).expect("it is done");
    }
}

/// Regression: nobody was told, and it was loaded only once its file changed again.
#[tokio::test]
async fn a_changed_file_that_met_an_outage_of_the_database_was_forgotten() {
    let Some(scene) = Scene::new().await else { return };
    let swapper = &scene.swapper;
    swapper.choose(vec![scene.holds("strict")]).await.expect("it is swapped in");
    let following = tokio::spawn(follow(Arc::clone(swapper)));
    scene.sql("ALTER TABLE chosen_policies RENAME TO gone");
    scene.holds("caps");
    patience::until_async("the admins are told", || swapper.chosen().told.then_some(())).await;
    scene.sql("ALTER TABLE gone RENAME TO chosen_policies");
    let serves = || swapper.ports.policies.serving().top().name == "caps";
    patience::until_async("it serves", || serves().then_some(())).await;
    following.abort();
}

/// Regression: it was refused, as if it had been requested before the promotion.
#[tokio::test]
async fn what_was_requested_after_a_promotion_that_was_still_being_recorded_was_refused() {
    let Some(scene) = Scene::new().await else { return };
    let swapper = &scene.swapper;
    let stack = swapper.loader.load(&PolicyConfig::default(), &[]).expect("policies");
    let serving = TurnPolicies::new(&stack);
    let before = swapper.ports.policies.swap(serving.clone());
    let others = swapper.swapping.lock().await;
    let promotion = Promotion { files: vec![], settings: ConfiguredSettings::new(), serving, before };
    scene.promoting.send_replace(Some(Arc::new(promotion)));
    let promoted = Arc::clone(swapper);
    let following = tokio::spawn(async move { promoted.follow_promotions().await });
    patience::until_async("it waits for its turn", || (swapper.chosen().asked == 1).then_some(())).await;
    let (chosen, files) = (Arc::clone(swapper), vec![scene.holds("strict")]);
    let choosing = tokio::spawn(async move { chosen.choose(files).await });
    patience::until_async("others are requested", || (swapper.chosen().asked == 2).then_some(())).await;
    drop(others);
    let swapped = choosing.await.expect("it ends").expect("they are swapped in");
    assert_eq!(swapped.serving[0].name, "strict");
    following.abort();
}
