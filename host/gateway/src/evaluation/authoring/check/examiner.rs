//! Asks the questions, judges the answers and counts them.

use pmk_policy::{Decision, Limits, LogLine, Outcome, Record, SetOverride, Size};
use serde::Serialize;

use super::judgement::{self, Judgement};

/// The counts for questions of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was asked.
    pub name: String,
    /// Answers that the host accepts.
    pub passed: u32,
    /// Accepted answers whose text the host corrects.
    pub corrected: u32,
    /// Questions that no plan of whole turns can answer, left to the layer below.
    pub handed_on: u32,
    /// Answers that broke a rule, or were missing; after [`ENOUGH`] the kind is not asked any more.
    pub failed: u32,
    /// Questions that were not asked because too many had failed.
    pub not_asked: u32,
    /// Accepted plans that keep almost nothing although more would have fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasteful: Option<Wasteful>,
    /// The first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<Finding>,
    /// What was wrong with all bad answers, in the order in which it was found; reasons that differ only in their
    /// numbers are one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// What was wrong with several answers.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    /// The reason as it was given first.
    pub reason: String,
    /// How many answers it was given for.
    pub count: u32,
}

impl Check {
    /// Returns how many questions were asked.
    pub fn asked(&self) -> u32 {
        self.passed + self.handed_on + self.failed
    }
}

/// Plans that are legal but hardly intended. The guard does not judge them; their author should know.
#[derive(Clone, Debug, Serialize)]
pub struct Wasteful {
    /// How many there were.
    pub plans: u32,
    /// A description of the first.
    pub first: String,
}

/// A question that had a bad answer.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// A description of the question.
    pub situation: String,
    /// The settings that were not at their defaults, in the form of `--set`.
    pub settings: Vec<String>,
    /// What was wrong.
    pub reason: String,
    /// What to do about it.
    pub hint: &'static str,
    /// The policy's log.
    pub log: Vec<LogLine>,
    /// Whether it logged more than is kept.
    pub log_is_cut: bool,
    /// The functions on its stack, innermost first, if it trapped.
    pub backtrace: Vec<String>,
}

/// The highest cost of a single decision, relative to the limits.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Cost {
    /// Fuel, in percent of what that decision was given.
    pub fuel_percent: f64,
    /// Linear memory in bytes.
    pub peak_bytes: u64,
    /// The memory limit in bytes.
    pub memory_limit: u64,
}

/// One answer, reduced to what is compared, with its record.
pub(super) struct Asked<A> {
    pub answer: A,
    pub record: Option<Record>,
    /// The size of the decision's input.
    pub size: Size,
    /// Whether leaving the question to the layer below was the only possibility.
    pub hopeless: bool,
    /// Whether it keeps almost nothing although more would have fitted.
    pub wasteful: bool,
}

pub(super) struct Examiner<'a> {
    limits: Limits,
    asked: &'a mut dyn FnMut(),
    set: Vec<String>,
    checks: Vec<Check>,
    cost: Cost,
}

/// The number of bad answers of one kind after which the kind is not asked any more: a policy that loops would take all
/// day.
pub const ENOUGH: u32 = 25;

/// The name of the check on answers that differ.
const REPEATED: &str = "the same twice";

impl<'a> Examiner<'a> {
    pub fn new(limits: &Limits, asked: &'a mut dyn FnMut()) -> Self {
        let memory_limit = limits.memory_bytes as u64;
        let cost = Cost { memory_limit, ..Cost::default() };
        Examiner { limits: *limits, asked, set: Vec::new(), checks: Vec::new(), cost }
    }

    /// Sets the settings of the questions that follow.
    pub fn set(&mut self, set: &[SetOverride]) {
        self.set = set.iter().map(|set| format!("{}.{}={}", set.policy, set.name, set.value)).collect();
    }

    /// Asks one question; twice unless settings are at their extremes.
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
        // With extreme settings, a small result may be what was asked for.
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
                reasons: Vec::new(),
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
                match check.reasons.iter_mut().find(|other| differs_in_numbers_only(&other.reason, &reason)) {
                    Some(known) => known.count += 1,
                    None => check.reasons.push(Reason { reason: reason.clone(), count: 1 }),
                }
                check.first.get_or_insert_with(|| Finding {
                    situation: situation(),
                    settings: self.set.clone(),
                    reason,
                    hint,
                    log: record.log.clone(),
                    log_is_cut: record.log_is_cut,
                    backtrace: record.outcome.backtrace().to_vec(),
                });
            }
        }
    }

    /// Returns the report; the check on repeated questions comes last.
    pub fn report(mut self) -> super::Report {
        self.checks.sort_by_key(|check| check.name == REPEATED);
        super::Report { checks: self.checks, cost: self.cost }
    }
}

fn differs_in_numbers_only(one: &str, other: &str) -> bool {
    words(one).eq(words(other))
}

/// What a text consists of besides numbers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| char.is_ascii_digit()).filter(|part| !part.is_empty())
}

/// Whether two answers to the same question came about in the same way. Only decisions that the wall clock stopped may
/// differ.
fn alike(one: &Record, other: &Record) -> bool {
    let stopped = |record: &Record| matches!(&record.outcome, Outcome::Failed { .. } if !record.reproducible);
    stopped(one) && stopped(other)
        || (&one.outcome, one.fuel, &one.log, &one.texts_read)
            == (&other.outcome, other.fuel, &other.log, &other.texts_read)
}
