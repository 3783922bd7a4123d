//! Runs a policy natively, on the host's own types, for its author's tests and benchmarks.
//!
//! A [`Conversation`] builds the request that a decision is about. A [`Harness`] takes the host's place: it describes
//! the policy once, holds the operator's settings, creates the resources of each decision, and checks plans with the
//! same guard as for components.
//!
//! ```
//! use pmk_policy_sdk::{
//!     Budget, Description, IntegerSetting, Plan, Policy, Prune, Transcript,
//!     testing::{Conversation, Harness},
//! };
//!
//! const KEEP_TURNS: IntegerSetting = IntegerSetting::new("keep-turns", 20, 0..=1_000, "stored turns that stay");
//!
//! struct Newest;
//! # impl Policy for Newest {
//! #     fn describe(description: &Description) {
//! #         description.name("newest");
//! #         KEEP_TURNS.declare(description);
//! #     }
//! # }
//! impl Prune for Newest {
//!     fn prune(transcript: &Transcript, budget: &Budget, plan: &Plan) {
//!         if plan.tokens() > budget.limit() {
//!             let oldest_kept = transcript.newest_within(budget).take(KEEP_TURNS.value() as usize).last();
//!             plan.remove_before(transcript, oldest_kept.map_or(transcript.stored_end(), |segment| segment.start));
//!         }
//!     }
//! }
//!
//! let transcript = Conversation::new()
//!     .seed("the workspace")
//!     .turn("who wrote the parser?", &"Priya did, in March. ".repeat(20))
//!     .turn("and the lexer?", &"So did she. ".repeat(20))
//!     .ask("when?")
//!     .transcript();
//!
//! // Indexes count messages: the seed pair is 0 and 1, the new message 6.
//! let harness = Harness::<Newest>::new().with("keep-turns", 1);
//! let sent = harness.prune(&transcript, 200).expect("a plan that the guard accepts");
//! assert_eq!(sent.kept, [0, 1, 4, 5, 6]);
//! assert!(sent.tokens_after <= 200);
//! harness.assert_sound(100);
//! ```

mod conversation;

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    marker::PhantomData,
    sync::Arc,
};

pub use conversation::Conversation;
/// The host's types: messages, transcripts, plans and the guard.
pub use pmk_core as core;
use pmk_core::{Applied, Breach, Guard, Marker, Origin, recall};
/// The archive of a conversation, for policies that search it.
pub use pmk_search::MemoryArchive;

pub use crate::native::Value;
use crate::{
    Budget, Cap, CapVerdict, Description, Incoming, Overflow, Plan, Policy, Prune, Recover, Recovery, Summarize,
    Summary, Transcript,
    native::{Decision, Declared, MAX_TEXT_CHARS, is_name, too_long},
    phase, rung,
};

/// The input of a prune decision besides the transcript. A plain number is the hard limit of a first call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The hard limit in tokens.
    pub limit: u64,
    /// The model's whole window in tokens.
    pub window: u64,
    /// The [phase](crate::phase).
    pub phase: u8,
    /// Whether the seed pair may be removed.
    pub seed_may_go: bool,
}

impl From<u64> for Room {
    fn from(limit: u64) -> Self {
        Room { limit, window: limit, phase: phase::FIRST_CALL, seed_may_go: false }
    }
}

/// An overflow to recover from. The default is the first of a turn, with every rung available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The [phase](crate::phase).
    pub phase: u8,
    /// The [rungs](crate::rung) tried, in order.
    pub tried: Vec<u8>,
    /// The [rungs](crate::rung) that can still be tried.
    pub available: Vec<u8>,
    /// Tokens the provider counted.
    pub observed_tokens: Option<u64>,
    /// Tokens the provider allows.
    pub allowed_tokens: Option<u64>,
}

impl Default for Refused {
    fn default() -> Self {
        Refused {
            phase: phase::FIRST_CALL,
            tried: vec![],
            available: vec![rung::TRIM, rung::COMPACT, rung::ROTATE, rung::GIVE_UP],
            observed_tokens: None,
            allowed_tokens: None,
        }
    }
}

/// Takes the host's place for one policy.
#[derive(Debug)]
pub struct Harness<P> {
    name: String,
    version: String,
    declared: BTreeMap<String, Declared>,
    settings: HashMap<String, Value>,
    log: RefCell<Vec<(u8, String)>>,
    policy: PhantomData<fn() -> P>,
}

impl<P: Policy> Default for Harness<P> {
    fn default() -> Self {
        Harness::new()
    }
}

impl<P: Policy> Harness<P> {
    /// Describes the policy; every setting has its default.
    ///
    /// # Panics
    /// If the host would refuse the component: for an invalid name, too many settings, a duplicate one, or a default
    /// that is out of range or too long. Also for what it would accept, but cut: a version or a line about the policy
    /// that is too long; and for a setting without help.
    pub fn new() -> Self {
        let description = Description::default();
        P::describe(&description);
        let noted = description.noted.into_inner();
        assert!(is_name(&noted.name), "`{}` is no name for a policy: 1 to 64 of a-z 0-9 -", noted.name);
        assert_ne!(noted.name, "floor", "this name is reserved for the host's own decisions");
        assert!(noted.version.chars().count() <= 64, "the version is longer than 64 characters");
        assert!(noted.about.chars().count() <= 200, "the line about it is longer than 200 characters");
        assert!(noted.mistakes.is_empty(), "{}", noted.mistakes.join("; "));
        Harness {
            name: noted.name,
            version: noted.version,
            settings: noted.settings.iter().map(|(name, declared)| (name.clone(), declared.default.clone())).collect(),
            declared: noted.settings,
            log: RefCell::default(),
            policy: PhantomData,
        }
    }

    /// Sets the value of a setting.
    ///
    /// # Panics
    /// If the host would refuse it: an unknown setting, another type, out of range, or too long.
    pub fn with(mut self, setting: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let Some(declared) = self.declared.get(setting) else { panic!("`{}` has no setting `{setting}`", self.name) };
        let (declared_kind, kind) = (declared.default.kind(), value.kind());
        assert!(declared_kind == kind, "setting `{setting}` is {declared_kind}, not {kind}");
        if let (&Value::Integer(value), Some((min, max))) = (&value, declared.range) {
            assert!((min..=max).contains(&value), "setting `{setting}` must be within {min} to {max}");
        }
        assert!(!too_long(&value), "setting `{setting}` must have at most {MAX_TEXT_CHARS} characters");
        self.settings.insert(setting.to_owned(), value);
        self
    }

    /// The policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The policy's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The settings in force, by name.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.declared.keys().map(|name| (name.as_str(), &self.settings[name]))
    }

    /// The log of the latest decision: levels and lines.
    pub fn log(&self) -> Vec<(u8, String)> {
        self.log.borrow().clone()
    }

    fn decide(&self, decide: impl FnOnce()) {
        *self.log.borrow_mut() = Decision::run(&self.settings, decide);
    }
}

impl<P: Cap> Harness<P> {
    /// How much the policy keeps of a message that is about to be stored; `limit` is the hard limit in tokens.
    pub fn cap(&self, kind: Origin, name: &str, content: &str, limit: u64) -> pmk_core::CapVerdict {
        let incoming = Incoming {
            kind: kind.code(),
            name: name.to_owned(),
            chars: u32::try_from(content.chars().count()).unwrap_or(u32::MAX),
            tokens: pmk_core::tokens::estimate(content),
            content: content.to_owned(),
            limit,
        };
        let verdict = CapVerdict::default();
        self.decide(|| P::cap(&incoming, &verdict));
        verdict.verdict.get()
    }
}

impl<P: Prune> Harness<P> {
    /// The policy's plan.
    pub fn plan(&self, transcript: &Arc<pmk_core::Transcript>, room: impl Into<Room>) -> pmk_core::Plan {
        let Room { limit, window, phase, seed_may_go } = room.into();
        let turns = transcript.dropped_turns().saturating_add(transcript.turns() as u32);
        let marker_tokens = Marker::new(turns).tokens();
        let recall_tokens = recall::frame_tokens(transcript.language());
        let budget = Budget { limit, window, marker_tokens, recall_tokens, phase, seed_may_go };
        let transcript = Transcript::new(Arc::clone(transcript));
        let plan = Plan::of(&transcript);
        self.decide(|| P::prune(&transcript, &budget, &plan));
        plan.into_edits()
    }

    /// The request after the policy's plan.
    ///
    /// # Errors
    /// The rule of the guard that the plan breaks.
    pub fn prune(&self, transcript: &Arc<pmk_core::Transcript>, room: impl Into<Room>) -> Result<Applied, Breach> {
        let room = room.into();
        let guard = Guard { limit: room.limit, seed_may_go: room.seed_may_go, must_shrink: false };
        guard.apply(transcript, &self.plan(transcript, room))
    }
}

impl<P: Prune> Harness<P> {
    /// Tests the policy on this many random conversations, with budgets from all of it down to a tenth, and with a seed
    /// that must stay and one that may go: together they contain whatever can occur in a conversation, and they are the
    /// same every time.
    ///
    /// # Panics
    /// At the first plan that the guard rejects, unless whole turns could not have fitted at all.
    pub fn assert_sound(&self, conversations: u64) {
        for seed in 0..conversations {
            let transcript = Arc::new(pmk_core::testing::random_request(seed, 30));
            let seeds: &[bool] = if transcript.seed_end() > 0 { &[false, true] } else { &[false] };
            for limit in pmk_core::testing::budgets(&transcript, &[100, 70, 40, 10]) {
                for &seed_may_go in seeds {
                    let guard = Guard { limit, seed_may_go, must_shrink: false };
                    if let Err(breach) = self.prune(&transcript, Room { seed_may_go, ..Room::from(limit) })
                        && guard.whole_turns_can_fit(&transcript)
                    {
                        let may_go = if seed_may_go { ", the seed may go" } else { "" };
                        let name = &self.name;
                        panic!("`{name}` on `random_request({seed}, 30)`, {limit} tokens allowed{may_go}: {breach}");
                    }
                }
            }
        }
    }
}

impl<P: Summarize> Harness<P> {
    /// The policy's summary for a fresh session, before the host cuts it to `max_tokens`.
    pub fn summarize(&self, transcript: &Arc<pmk_core::Transcript>, max_tokens: u32) -> String {
        let summary = Summary { max_tokens, ..Summary::default() };
        self.decide(|| P::summarize(&Transcript::new(Arc::clone(transcript)), &summary));
        summary.text.into_inner()
    }
}

impl<P: Recover> Harness<P> {
    /// The [rung](crate::rung) that the policy chooses, if it chooses one.
    pub fn recover(&self, refused: Refused) -> Option<u8> {
        let Refused { phase, tried, available, observed_tokens, allowed_tokens } = refused;
        let overflow = Overflow { phase, tried, available, observed_tokens, allowed_tokens };
        let recovery = Recovery::default();
        self.decide(|| P::recover(&overflow, &recovery));
        recovery.chosen.get()
    }
}
