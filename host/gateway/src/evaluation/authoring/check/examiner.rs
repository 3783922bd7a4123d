//! Asks, judges and counts.

use pmk_policy::{Decision, Limits, LogLine, Outcome, Record, SetOverride, Size};
use serde::Serialize;

use super::judgement::{self, Judgement};

/// Questions of one kind, and how many had which answer.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was asked.
    pub name: String,
    /// Answers that the host carries out.
    pub passed: u32,
    /// Among them those of which the host corrects the text.
    pub corrected: u32,
    /// Questions that no plan of whole turns can answer, left to the layer below.
    pub handed_on: u32,
    /// Answers that broke a rule, or none at all; after [`ENOUGH`] no more are asked for.
    pub failed: u32,
    /// Questions that were not asked, for so many had failed.
    pub not_asked: u32,
    /// Plans that the host carries out and that leave almost nothing where more would have fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasteful: Option<Wasteful>,
    /// The first of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Finding>,
}

impl Check {
    /// How many questions it stands for.
    pub fn asked(&self) -> u32 {
        self.passed + self.handed_on + self.failed
    }
}

/// Plans that are legal and hardly what anybody wants. The guard stays out of taste; their author should know.
#[derive(Clone, Debug, Serialize)]
pub struct Wasteful {
    /// How many there were.
    pub plans: u32,
    /// What the first was asked about, in words.
    pub first: String,
}

/// A question that had a bad answer.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was asked about, in words.
    pub situation: String,
    /// The settings that were not at their defaults, as `--set` takes them.
    pub settings: Vec<String>,
    /// What was wrong.
    pub reason: String,
    /// What to do about it.
    pub hint: &'static str,
    /// What the policy said.
    pub log: Vec<LogLine>,
    /// Functions on its stack, innermost first, where it trapped.
    pub backtrace: Vec<String>,
}

/// The dearest single decision, held against what is allowed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// Fuel, in percent of what that decision was given.
    pub fuel_percent: f64,
    /// Linear memory in bytes.
    pub peak_bytes: u64,
    /// Bytes that are allowed.
    pub memory_limit: u64,
}

/// One answer: what it comes down to, and how it was come by.
pub(super) struct Asked<A> {
    pub answer: A,
    pub record: Option<Record>,
    /// How much the decision was about.
    pub size: Size,
    /// Whether nothing better than handing the question on was possible.
    pub hopeless: bool,
    /// Whether it leaves almost nothing where more would have fitted.
    pub wasteful: bool,
}

pub(super) struct Examiner<'a> {
    limits: Limits,
    asked: &'a mut dyn FnMut(),
    set: Vec<String>,
    checks: Vec<Check>,
    cost: Cost,
}

/// Bad answers of one kind after which no more of it is asked: a policy that loops would take all day.
pub const ENOUGH: u32 = 25;

/// The name of the check on answers that differ.
const REPEATED: &str = "the same twice";

impl<'a> Examiner<'a> {
    pub fn new(limits: &Limits, asked: &'a mut dyn FnMut()) -> Self {
        let memory_limit = limits.memory_bytes as u64;
        let cost = Cost { memory_limit, ..Cost::default() };
        Examiner { limits: *limits, asked, set: Vec::new(), checks: Vec::new(), cost }
    }

    /// What follows is asked with these settings.
    pub fn set(&mut self, set: &[SetOverride]) {
        self.set = set.iter().map(|set| format!("{}.{}={}", set.policy, set.name, set.value)).collect();
    }

    /// Asks one question; with the defaults twice.
    pub fn ask<A: PartialEq>(
        &mut self,
        decision: Decision,
        situation: impl Fn() -> String,
        ask: impl Fn() -> Asked<A>,
    ) {
        let name = match self.set.is_empty() {
            true => decision.name().to_owned(),
            false => format!("{}, extreme settings", decision.name()),
        };
        if let Some(check) = self.checks.iter_mut().find(|check| check.name == name && check.failed >= ENOUGH) {
            check.not_asked += 1;
            return;
        }
        let first = ask();
        (self.asked)();
        let Some(record) = &first.record else { return };
        self.weigh(record, first.size);
        let judgement = judgement::of(&record.outcome, first.hopeless);
        let is_carried_out = matches!(judgement, Judgement::Passed | Judgement::Corrected);
        self.count(name.clone(), judgement, &situation, record);
        // With extreme settings, little may be what was asked for.
        if first.wasteful && is_carried_out && self.set.is_empty() {
            self.warn(&name, &situation);
        }
        if self.set.is_empty() {
            let second = ask();
            let same =
                first.answer == second.answer && second.record.as_ref().is_some_and(|again| alike(record, again));
            let judgement = if same { Judgement::Passed } else { judgement::not_repeated() };
            self.count(REPEATED.to_owned(), judgement, &situation, record);
        }
    }

    fn warn(&mut self, name: &str, situation: &impl Fn() -> String) {
        if let Some(check) = self.checks.iter_mut().find(|check| check.name == name) {
            let wasteful = check.wasteful.get_or_insert_with(|| Wasteful { plans: 0, first: situation() });
            wasteful.plans += 1;
        }
    }

    fn weigh(&mut self, record: &Record, size: Size) {
        let percent = record.fuel as f64 * 100.0 / self.limits.fuel(size).max(1) as f64;
        self.cost.fuel_percent = self.cost.fuel_percent.max(percent);
        self.cost.peak_bytes = self.cost.peak_bytes.max(record.peak_bytes);
    }

    fn count(&mut self, name: String, judgement: Judgement, situation: &impl Fn() -> String, record: &Record) {
        let at = self.checks.iter().position(|check| check.name == name).unwrap_or_else(|| {
            self.checks.push(Check {
                name,
                passed: 0,
                corrected: 0,
                handed_on: 0,
                failed: 0,
                not_asked: 0,
                wasteful: None,
                first: None,
            });
            self.checks.len() - 1
        });
        let check = &mut self.checks[at];
        match judgement {
            Judgement::Passed => check.passed += 1,
            Judgement::Corrected => {
                check.passed += 1;
                check.corrected += 1;
            }
            Judgement::HandedOn => check.handed_on += 1,
            Judgement::Failed { reason, hint } => {
                check.failed += 1;
                check.first.get_or_insert_with(|| Finding {
                    situation: situation(),
                    settings: self.set.clone(),
                    reason,
                    hint,
                    log: record.log.clone(),
                    backtrace: record.outcome.backtrace().to_vec(),
                });
            }
        }
    }

    /// All of it; what the repetitions came to stands last.
    pub fn report(mut self) -> super::Report {
        self.checks.sort_by_key(|check| check.name == REPEATED);
        super::Report { checks: self.checks, cost: self.cost }
    }
}

/// Whether two answers to the same question were come by in the same way. Only the wall clock may differ, and what it
/// stopped.
fn alike(one: &Record, other: &Record) -> bool {
    let stopped = |record: &Record| matches!(&record.outcome, Outcome::Failed { .. } if !record.reproducible);
    stopped(one) && stopped(other)
        || (&one.outcome, one.fuel, &one.log, &one.texts_read)
            == (&other.outcome, other.fuel, &other.log, &other.texts_read)
}
