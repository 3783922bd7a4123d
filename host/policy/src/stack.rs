//! Layers of policies over the floor.
//!
//! The top layer that makes a kind of decision is asked first. When it fails or its answer may not be applied, the next
//! one is asked, limited to what the failed one was allowed to spend; when all have failed, the host decides itself
//! (guard rule 8). Every layer that was asked leaves a [`Record`].

mod cap;
mod prune;
mod recover;
mod summarize;

use std::sync::Arc;

use pmk_core::{Breach, Rule};
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, Lower};

pub use self::{cap::CapDecision, prune::PruneDecision, recover::RecoverDecision, summarize::SummaryDecision};
use crate::{
    breaker::{Breakers, Pass, Suspension},
    decision::{DecidedBy, Decision, Identity},
    failure::Failure,
    instance::{self, Answer, Cost},
    limits::{Limits, Size},
    policy::{Functions, Policy},
    record::{Outcome, Record},
    settings::{Bounds, ChangedSettings, Settings},
    state::{State, Task},
};

/// A policy with the values of its settings.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Its settings, resolved.
    pub settings: Settings,
}

/// Policies in layers; the first one decides. Cheap to clone; clones share their circuit breakers, if any.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The layers above the base, the deciding one first.
    above: Arc<[Layer]>,
    base: Arc<Layer>,
    /// One for each layer above the base, or none at all.
    breakers: Arc<[Breakers]>,
    seed_may_go: bool,
}

impl Stack {
    /// Puts `layers`, the deciding one first, over `base`, the policy below all others.
    pub fn new(layers: impl IntoIterator<Item = Layer>, base: Layer) -> Self {
        Stack {
            above: layers.into_iter().collect(),
            base: Arc::new(base),
            breakers: Arc::default(),
            seed_may_go: false,
        }
    }

    /// Sets whether the operator allows these policies to remove the seed pair.
    #[must_use]
    pub fn with_seed_may_go(self, seed_may_go: bool) -> Self {
        Stack { seed_may_go, ..self }
    }

    /// The same layers with closed circuit breakers, as a running gateway uses them. Without them a decision depends
    /// only on its input.
    pub fn with_breakers(&self) -> Self {
        Stack { breakers: self.above.iter().map(|_| Breakers::default()).collect(), ..self.clone() }
    }

    /// The same layers, each of which is asked every time, and by which no circuit breaker counts.
    pub fn without_breakers(&self) -> Self {
        Stack { breakers: Arc::default(), ..self.clone() }
    }

    /// All layers, the deciding one first, the base last.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.above.iter().chain([&*self.base])
    }

    /// The layers above the base, the deciding one first.
    pub fn above_the_base(&self) -> &[Layer] {
        &self.above
    }

    /// Whether the operator allows these policies to remove the seed pair.
    pub fn seed_may_go(&self) -> bool {
        self.seed_may_go
    }

    /// The settings that the operator has changed.
    pub fn changed_settings(&self) -> ChangedSettings {
        ChangedSettings::of(self.layers().map(|layer| (layer.policy.name(), &layer.settings)))
    }

    /// Whether both are the same policies with the same settings and limits, so that they decide alike.
    pub fn decides_like(&self, other: &Stack) -> bool {
        fn parts(layer: &Layer) -> (&Identity, &Settings, &Limits) {
            (layer.policy.identity(), &layer.settings, layer.policy.runtime().limits())
        }
        self.seed_may_go == other.seed_may_go && self.layers().map(parts).eq(other.layers().map(parts))
    }

    /// The decisions for which layers are skipped at present, because they kept failing.
    pub fn suspensions(&self) -> Vec<Suspension> {
        let layers = self.above.iter().zip(self.breakers.iter());
        layers.flat_map(|(layer, breakers)| breakers.suspensions(layer.policy.identity())).collect()
    }

    /// The policy that operators mean by "the running policy".
    pub fn top(&self) -> &Layer {
        self.above.first().unwrap_or(&self.base)
    }

    /// Asks the layers that make this decision, from the top, until `judge` accepts an answer. `question` is what to
    /// ask.
    fn decide<P, A>(&self, question: &Question<'_, P>, mut judge: impl FnMut(Task, &Bounds) -> Judged<A>) -> Asked<A>
    where
        P: ComponentNamedList + Lower + Send + Sync + 'static,
    {
        let mut asked =
            Asked { answer: None, decided_by: DecidedBy::Floor, records: Vec::new(), bounds: Bounds::default() };
        for (at, layer) in self.layers().enumerate() {
            let Some(function) = (question.function)(layer.policy.functions()) else { continue };
            let breakers = self.breakers.get(at);
            let pass = breakers.map_or(Pass::Asked, |breakers| breakers.pass(question.decision));
            if pass == Pass::Skipped {
                asked.records.push(skipped(layer, question.decision));
                asked.bounds.add(&layer.settings);
                continue;
            }
            let Answer { task, failure, cost } = question.ask(layer, function, &asked.bounds);
            let judged = match &failure {
                Some(failure) => Judged { outcome: Outcome::from(failure), answer: None },
                None => judge(task, &asked.bounds),
            };
            // An answer that is only too large is no fault, but does not show that a suspended policy works again.
            let shows_nothing = pass == Pass::HalfOpen && judged.outcome.is_bad();
            let fault = judged.outcome.is_fault().filter(|failed| *failed || !shows_nothing);
            let breaker = breakers.zip(fault).and_then(|(breakers, failed)| {
                let fault = failed.then(|| judged.outcome.reason().unwrap_or_default());
                breakers.note(question.decision, pass, fault)
            });
            let record = record(layer, question.decision, judged.outcome, failure.as_ref(), cost);
            asked.records.push(Record { breaker, ..record });
            if judged.answer.is_some() {
                asked.answer = judged.answer;
                asked.decided_by = DecidedBy::Policy(layer.policy.identity().clone());
                break;
            }
            asked.bounds.add(&layer.settings);
        }
        asked
    }
}

/// What the layers are asked.
struct Question<'a, P> {
    decision: Decision,
    function: fn(&Functions) -> Option<ComponentExportIndex>,
    size: Size,
    params: fn() -> P,
    task: &'a dyn Fn() -> Task,
}

impl<P> Question<'_, P>
where
    P: ComponentNamedList + Lower + Send + Sync + 'static,
{
    fn ask(&self, layer: &Layer, function: ComponentExportIndex, bounds: &Bounds) -> Answer {
        let policy = &layer.policy;
        let limits = policy.runtime().limits();
        let settings = layer.settings.within(bounds, policy.description());
        let state = State::new((self.task)(), settings, limits, limits.fuel(self.size));
        instance::ask(policy.runtime(), policy.pre(), function, (self.params)(), state)
    }
}

/// The host's judgement of an answer: applied or not.
struct Judged<A> {
    outcome: Outcome,
    answer: Option<A>,
}

impl<A> Judged<A> {
    fn accepted(answer: A) -> Self {
        Judged { outcome: Outcome::Accepted, answer: Some(answer) }
    }

    fn rejected(breach: &Breach) -> Self {
        Judged { outcome: Outcome::Rejected { rule: breach.rule.number(), reason: breach.what.clone() }, answer: None }
    }

    /// A component is only ever asked with the matching task; if it were not, its answer would not count.
    fn misplaced() -> Self {
        Judged::rejected(&Breach { rule: Rule::Sane, what: "answered another question".to_owned() })
    }
}

/// The result of asking all layers.
struct Asked<A> {
    answer: Option<A>,
    decided_by: DecidedBy,
    records: Vec<Record>,
    bounds: Bounds,
}

fn record(layer: &Layer, decision: Decision, outcome: Outcome, failure: Option<&Failure>, cost: Cost) -> Record {
    let Cost { us, fuel, peak_bytes, log, log_is_cut, texts_read, archive } = cost;
    Record {
        policy: layer.policy.identity().clone(),
        decision,
        outcome,
        us,
        fuel,
        peak_bytes,
        reproducible: failure.is_none_or(Failure::is_reproducible),
        log,
        log_is_cut,
        texts_read,
        breaker: None,
        archive,
    }
}

fn skipped(layer: &Layer, decision: Decision) -> Record {
    record(layer, decision, Outcome::Skipped { why: "suspended" }, None, Cost::default())
}
