//! An experiment on a real store, without turns.

use std::{path::Path, sync::OnceLock};

use pmk_core::Language;
use pmk_policy::{Compiler, Runtime, RuntimeConfig};
use pmk_stand_ins::patience;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    chat::{Attachments, Inbound, ReplyTo},
    config::{Config, experiment::tests::experiment},
    front::console::Lines,
    ledger::{Tags, report::TurnReport},
    operator::permissions::Permissions,
    policies::{Loader, Named},
    store::{
        BeginOutcome, Hold, Outgoing, Recorded, Sent,
        assignment::{ArmAssignment, Weights},
    },
};

/// A time after its start.
const NOW: i64 = 1_800_000_000_000;

/// How many conversations in trouble are enough to stop one of two arms.
const ENOUGH: usize = 8;

/// A gateway.json with this `policy` and an experiment of these arms, the first of which is the control; it is on if it
/// has a start.
fn file(policy: &Value, arms: &Value, start: Option<&str>) -> Value {
    let experiment = json!({"name": "less", "start": start, "control": arms[0]["name"], "arms": arms});
    json!({"version": 1, "policy": policy, "experiment": experiment})
}

/// A time long ago.
const START: Option<&str> = Some("2026-05-07T09:00:00Z");

fn write(home: &Path, file: &Value) {
    std::fs::write(pmk_system::home::config_file(home), file.to_string()).expect("it is written");
}

/// An experiment of the control `a` and the arms `b` and `c`, or as a gateway.json has it.
struct Scene {
    live: Arc<RunningExperiment>,
    home: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let config = Config { experiment: Some(experiment("less", &["a", "b", "c"])), ..Config::default() };
        let home = tempfile::tempdir().expect("a folder");
        Scene::at(home, &config, |_| panic!("no arm has policies of its own"))
    }

    /// With this gateway.json. While an arm is loaded that has policies of its own, `loading` is called with the home.
    fn of(file: &Value, loading: impl Fn(&Path) + Send + Sync + 'static) -> Scene {
        let home = tempfile::tempdir().expect("a folder");
        write(home.path(), file);
        let (config, _) = Config::load(home.path()).expect("a configuration");
        Scene::at(home, &config, loading)
    }

    fn at(home: TempDir, config: &Config, loading: impl Fn(&Path) + Send + Sync + 'static) -> Scene {
        let store = Store::open(home.path()).expect("a store");
        let ledger = Ledger::open(Arc::new(store.clone()), home.path());
        let watched = Arc::new(WatchedConfig::new(home.path(), config));
        let (tasks, front) = (TaskTracker::new(), Arc::new(Lines::start().expect("a thread")));
        let people = Arc::new(Permissions::new(Arc::clone(&watched), ledger.clone()));
        let runtime = Runtime::new(RuntimeConfig::new(Compiler::Here)).expect("an engine");
        let stack = Loader::of(runtime, Named::default()).load(&PolicyConfig::default(), &[]).expect("policies");
        let (arm, folder) = (stack.clone(), home.path().to_owned());
        let load: Load = Arc::new(move |_, _| {
            loading(&folder);
            Ok(arm.clone())
        });
        let live = Arc::new(RunningExperiment::new(Ports {
            clock: Clock::of(|| NOW),
            watched,
            store,
            policies: Arc::new(Policies::new(&stack)),
            ledger,
            admins: Admins::new(front, people, tasks.clone()),
            messages: Arc::new(Messages::new(Language::English)),
            tasks,
            load,
        }));
        Scene { live, home }
    }

    fn store(&self) -> &Store {
        &self.live.ports.store
    }

    /// As another program would do it.
    fn sql(&self, statement: &str) {
        let conn = rusqlite::Connection::open(Store::path(self.home.path())).expect("the database");
        conn.execute_batch(statement).expect("it is done");
    }

    /// A turn of this person's conversation that has begun.
    async fn begins(&self, user: &str, event_id: &str) -> OpenTurn {
        let store = self.store();
        let inbound = Inbound {
            event_id: event_id.into(),
            aliases: vec![],
            key: format!("slack:dm:{user}").parse().expect("a conversation"),
            user: user.into(),
            reply_to: ReplyTo { channel: "D1".into(), thread_ts: None },
            text: "hello".into(),
            attached: Attachments::default(),
            if_awaited: false,
            by_app: false,
            team: None,
            in_group: false,
            asked_at: None,
            ts: String::new(),
        };
        let inbox = store.accept(&inbound, NOW).await.expect("it is stored").expect("a new message");
        let begun = store.begin(inbox, None, Hold::Alone, NOW).await.expect("it begins");
        let BeginOutcome::Ask(open) = begun else { panic!("expected an open turn, got {begun:?}") };
        open
    }

    /// A turn of `b` in this person's conversation whose prompt the model refused as too long.
    async fn overflows(&self, user: &str, event_id: &str) -> (OpenTurn, TurnOutcome) {
        let (store, open) = (self.store(), self.begins(user, event_id).await);
        let weights = Weights::from(["a", "b", "c"].map(|arm| (arm.to_owned(), 1)));
        let drawn = ArmAssignment { arm: "b".into(), weights };
        store.draw("less", open.session, drawn, "a", NOW).await.expect("it is stored");
        let place = InExperiment { experiment: "less".into(), arm: "b".into() };
        let tags = Tags { place: Some(place), ..Tags::default() };
        let outcome = TurnOutcome { tags, overflowed: true, ..TurnOutcome::default() };
        let report = TurnReport::of_command(event_id.to_owned(), open.inbound.key.clone(), "question");
        let parts = vec![Outgoing::reply("hi")];
        let recorded = Recorded { outcome: outcome.clone(), ..Recorded::of(report, parts, open.live.revision) };
        store.record(open.turn, recorded, NOW).await.expect("it is stored");
        store.finish(open.turn, vec![Sent { part: 0, id: None }], vec![], NOW).await.expect("it is stored");
        (open, outcome)
    }

    /// Has a turn judged, and waits for that.
    async fn judge(&self, (turn, outcome): (OpenTurn, TurnOutcome)) {
        self.live.judge(turn.turn, turn.session, outcome);
        self.settle().await;
    }

    /// Waits for all checks that have been asked for.
    async fn settle(&self) {
        let tasks = &self.live.ports.tasks;
        tasks.close();
        tokio::time::timeout(patience::PATIENCE, tasks.wait()).await.expect("an end");
        tasks.reopen();
    }

    /// Whether the guard rail has stopped `b`, as it is stored.
    async fn is_stopped(&self) -> bool {
        self.store().stop_reasons("less").await.expect("readable").contains_key("b")
    }
}

/// Once, each such turn had all turns of the experiment read, before its answer went out: a second in a large one.
#[tokio::test]
async fn a_second_overflow_in_a_conversation_had_the_whole_experiment_read() {
    let scene = Scene::new();
    scene.live.follow().await;
    for number in 0..ENOUGH {
        scene.overflows(&format!("U{number}"), &format!("Ev{number}")).await;
    }
    let second = scene.overflows("U0", "EvAgain").await;
    scene.judge(second).await;
    assert!(!scene.is_stopped().await, "nothing counts that did not before");
    let first = scene.overflows("UNew", "EvNew").await;
    scene.judge(first).await;
    assert!(scene.is_stopped().await);
    assert!(scene.live.on().is_some_and(|on| on.is_stopped("b")));
}

#[tokio::test]
async fn a_check_that_failed_is_made_at_the_next_failure() {
    let scene = Scene::new();
    scene.live.follow().await;
    for number in 1..ENOUGH {
        scene.overflows(&format!("U{number}"), &format!("Ev{number}")).await;
    }
    let first = scene.overflows("U0", "Ev0").await;
    scene.sql("ALTER TABLE arm RENAME TO gone");
    scene.judge(first).await;
    scene.sql("ALTER TABLE gone RENAME TO arm");
    assert!(!scene.is_stopped().await);
    let second = scene.overflows("U0", "EvAgain").await;
    scene.judge(second).await;
    assert!(scene.is_stopped().await);
}

/// Once, each of the two was taken for a second one because of the other, and the arm was not checked.
#[tokio::test]
async fn two_overflows_of_a_conversation_kept_each_other_from_being_checked() {
    for is_first_one_last in [false, true] {
        let scene = Scene::new();
        scene.live.follow().await;
        for number in 1..ENOUGH {
            scene.overflows(&format!("U{number}"), &format!("Ev{number}")).await;
        }
        let mut both = [scene.overflows("U0", "Ev0").await, scene.overflows("U0", "EvAgain").await];
        if is_first_one_last {
            both.reverse();
        }
        for turn in both {
            scene.judge(turn).await;
        }
        assert!(scene.is_stopped().await, "{is_first_one_last}");
    }
}

/// Once, only the turn itself had the arm checked, which it never does if its storing seemed to fail.
#[tokio::test]
async fn a_turn_that_was_stored_although_the_connection_was_lost_had_nothing_checked() {
    let scene = Scene::new();
    scene.live.follow().await;
    for number in 1..ENOUGH {
        scene.overflows(&format!("U{number}"), &format!("Ev{number}")).await;
    }
    let (_, outcome) = scene.overflows("U0", "Ev0").await;
    scene.live.overdue(&outcome);
    let second = scene.overflows("U0", "EvAgain").await;
    scene.judge(second).await;
    assert!(scene.is_stopped().await);
}

/// Once, each first trouble of a burst had all turns read, on all readers at once.
#[tokio::test]
async fn a_check_that_waited_for_another_was_made_although_that_one_had_made_it() {
    let scene = Scene::new();
    scene.live.follow().await;
    for number in 1..ENOUGH {
        scene.overflows(&format!("U{number}"), &format!("Ev{number}")).await;
    }
    let (turn, outcome) = scene.overflows("U0", "Ev0").await;
    let on = scene.live.on().expect("it is on");
    let other = on.judging.lock().await;
    scene.live.judge(turn.turn, turn.session, outcome);
    patience::until_async("it is to be checked", || on.is_overdue.load(Ordering::Relaxed).then_some(())).await;
    on.is_overdue.store(false, Ordering::Relaxed);
    drop(other);
    scene.settle().await;
    assert!(!scene.is_stopped().await, "nothing is left to check");
}

/// Once, all turns were read for each arm that is checked.
#[tokio::test]
async fn a_check_read_all_turns_for_each_arm() {
    let scene = Scene::new();
    scene.live.follow().await;
    let on = scene.live.on().expect("it is on");
    let (ports, mut read) = (&scene.live.ports, BTreeMap::new());
    on.judge_arm(ports, "b", &mut read).await.expect("readable");
    scene.sql("ALTER TABLE arm RENAME TO gone");
    on.judge_arm(ports, "c", &mut read).await.expect("nothing is left to read");
}

/// Once, a late turn of a former experiment had the arm of the same name checked that is on now.
#[tokio::test]
async fn a_turn_of_another_experiment_had_the_arm_of_the_same_name_checked() {
    let scene = Scene::new();
    scene.live.follow().await;
    for number in 1..ENOUGH {
        scene.overflows(&format!("U{number}"), &format!("Ev{number}")).await;
    }
    let (turn, mut outcome) = scene.overflows("U0", "Ev0").await;
    outcome.tags.place = Some(InExperiment { experiment: "former".into(), arm: "b".into() });
    scene.judge((turn, outcome)).await;
    assert!(!scene.is_stopped().await);
}

/// Once, each turn looked at gateway.json again to ask shadow arms, also where there are none.
#[tokio::test]
async fn a_turn_without_shadow_arms_looked_at_gateway_json_for_them() {
    let scene = Scene::new();
    scene.live.follow().await;
    let watched = &scene.live.ports.watched;
    let before = watched.trial();
    let file = pmk_system::home::config_file(scene.home.path());
    std::fs::write(&file, r#"{"version":1}"#).expect("it is written");
    scene.live.shadow(|| panic!("there is no shadow arm"));
    // Of a file that is gone, what was read last stays in effect.
    std::fs::remove_file(&file).expect("it is there");
    assert!(Arc::ptr_eq(&watched.trial(), &before));
}

/// Once, all turns were read again for each arm that was stopped, and nothing of that was used.
#[tokio::test]
async fn an_experiment_that_began_read_all_its_turns_for_each_stopped_arm() {
    let scene = Scene::new();
    for arm in ["b", "c"] {
        let event = |_| Event::ExperimentOff { experiment: "less".into(), promoted: None };
        scene.store().stop_arm("less", arm, "a", "worse", event, NOW).await.expect("it is stored");
    }
    // Only the figures need votes.
    scene.sql("ALTER TABLE vote RENAME TO gone");
    scene.live.follow().await;
    let on = scene.live.on().expect("it is on");
    assert!(["b", "c"].iter().all(|arm| on.is_stopped(arm)));
}

/// Regression: it was on once more, and what it had promoted was swapped in a second time.
#[tokio::test]
async fn an_experiment_that_ended_while_its_arms_were_loaded_began_all_the_same() {
    let arms = json!([{"name": "a"}, {"name": "b", "policy": {"settings": {"standard": {"seed-cap": 900}}}}]);
    let (on, over) = (file(&json!({}), &arms, START), file(&json!({}), &arms, None));
    let scene = Scene::of(&on, move |home| write(home, &over));
    scene.live.follow().await;
    assert!(scene.live.state().on.is_none());
    scene.live.follow().await;
    assert!(scene.live.state().tried.is_none(), "there is nothing to load");
}

/// Regression: it went on until the last arm was loaded, which may take minutes.
#[tokio::test(flavor = "multi_thread")]
async fn an_experiment_was_not_over_while_changed_arms_were_loaded() {
    let promoted = json!({"settings": {"standard": {"seed-cap": 900}}});
    let arms = json!([{"name": "a"}, {"name": "b", "policy": promoted}]);
    let over = file(&promoted, &arms, None);
    let promotions = Arc::new(OnceLock::<watch::Receiver<Option<Arc<Promotion>>>>::new());
    let seen = Arc::clone(&promotions);
    let scene = Scene::of(&file(&json!({}), &arms, START), move |home| {
        if let Some(promoted) = seen.get() {
            write(home, &over);
            patience::until("the arm serves", || promoted.borrow().is_some().then_some(()));
        }
    });
    scene.live.follow().await;
    assert!(scene.live.on().is_some());
    assert!(promotions.set(scene.live.promotions()).is_ok());
    let heavier = json!([{"name": "a"}, {"name": "b", "weight": 2, "policy": promoted}]);
    write(scene.home.path(), &file(&json!({}), &heavier, START));
    scene.live.follow().await;
    assert!(scene.live.state().on.is_none());
}

/// Regression: the control served everybody, whatever an operator had chosen meanwhile.
#[tokio::test]
async fn an_experiment_that_was_stopped_after_another_change_of_policy_promoted_its_control() {
    let arms = json!([{"name": "a", "policy": {"settings": {}}}, {"name": "b"}]);
    let scene = Scene::of(&file(&json!({}), &arms, START), |_| {});
    scene.live.follow().await;
    assert!(scene.live.on().is_some());
    write(scene.home.path(), &file(&json!({"seedMayGo": true}), &arms, None));
    scene.live.follow().await;
    assert!(scene.live.state().on.is_none());
    assert!(scene.live.promotions().borrow().is_none());
}

/// Regression: new conversations drew it on all other hosts until they were started again, and were all moved at once.
#[tokio::test]
async fn an_arm_that_another_host_had_stopped_was_drawn_all_the_same() {
    let scene = Scene::new();
    scene.live.follow().await;
    let on = scene.live.on().expect("it is on");
    let event = |_| Event::ExperimentOff { experiment: "less".into(), promoted: None };
    scene.store().stop_arm("less", "b", "a", "worse", event, NOW).await.expect("it is stored");
    for number in 0..30 {
        let turn = scene.begins(&format!("U{number}"), &format!("Ev{number}")).await;
        let (_, place) = scene.live.take_part(&turn).await.expect("readable");
        assert!(place.is_some_and(|place| *place.arm != *"b"));
    }
    assert!(on.is_stopped("b"), "one in three has drawn it");
}
