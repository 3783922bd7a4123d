//! The report of a comparison: for people as a [`table`] and a [`page`], for machines in JSON.

mod chart;
pub mod diff;
mod markup;
mod metric;
pub mod page;
pub mod table;

use std::{collections::BTreeMap, time::Duration};

use pmk_core::Language;
use pmk_policy::{ChangedSettings, Identity, Rung};
use pmk_statistics::{Finding, Measured, Ratio, Settings};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use metric::{Metric, significant, significant_both};

use super::{
    faults::{Counts, Fault, Faults},
    metrics::{ArmOutcome, Totals},
    prices::Price,
    questions::Score,
    replay::Arm,
    runner::Results,
};
use crate::{exchange::recover::replan, messages::terminal};

/// The most reasons of one policy that are told individually.
const MAX_FAULTS: usize = 10;

/// What was compared.
#[derive(Clone, Debug)]
pub struct Subject {
    pub model: String,
    pub windows: Windows,
    /// The hard limit, if it was given.
    pub budget: Option<u64>,
    /// The name that the price was looked for by; `None` for a simulated model, which costs nothing.
    pub priced_as: Option<String>,
    pub price: Option<Price>,
    pub seed: u64,
}

/// The windows that conversations were replayed in, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// All in the same.
    Only(u64),
    /// Each turn in that of its receipt; conversations without receipts, if there are any, in this one.
    OfReceipts(Option<u64>),
}

impl Windows {
    /// Of so many conversations, of which some have no receipts.
    pub fn by_receipts(conversations: usize, without_receipts: usize, otherwise: u64) -> Windows {
        match without_receipts {
            0 => Windows::OfReceipts(None),
            without if without == conversations => Windows::Only(otherwise),
            _ => Windows::OfReceipts(Some(otherwise)),
        }
    }

    /// Returns the window of all.
    pub fn only(self) -> Option<u64> {
        match self {
            Windows::Only(window) => Some(window),
            Windows::OfReceipts(_) => None,
        }
    }

    /// Returns them in words, numbers as `shown`.
    pub fn phrase(self, shown: impl Fn(u64) -> String) -> String {
        match self {
            Windows::Only(window) => format!("a window of {} tokens", shown(window)),
            Windows::OfReceipts(None) => "the windows of the receipts".to_owned(),
            Windows::OfReceipts(Some(window)) => {
                format!("the windows of the receipts ({} tokens where there are none)", shown(window))
            }
        }
    }
}

/// The report. The first policy is the baseline of the others.
pub struct Report {
    pub subject: Subject,
    pub policies: Vec<PolicyReport>,
    pub comparisons: Vec<Comparison>,
    pub results: Results,
    pub elapsed: Duration,
}

/// The results of one policy.
#[derive(Clone, Debug)]
pub struct PolicyReport {
    pub label: String,
    /// The layers, the deciding one first.
    pub layers: Vec<Identity>,
    /// Their settings that differ from the defaults, wherever they were set.
    pub settings: ChangedSettings,
    /// The sums over all conversations.
    pub outcome: ArmOutcome,
    /// Why its layers did not decide.
    pub faults: Faults,
    /// In dollars, if the price is known.
    pub cost: Option<f64>,
    /// Tokens per turn, with the confidence interval.
    pub tokens_a_turn: (f64, (f64, f64)),
    /// The share of questions whose evidence was visible, with the confidence interval.
    pub evidence: Option<(f64, (f64, f64))>,
}

/// One policy compared with the baseline.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub baseline: usize,
    pub policy: usize,
    pub findings: Vec<(Metric, Finding)>,
}

impl Report {
    /// Computes the report from the results.
    pub fn new(arms: &[Arm], subject: Subject, results: Results, elapsed: Duration) -> Report {
        let settings = Settings::seeded(subject.seed);
        let policies =
            arms.iter().enumerate().map(|(at, arm)| policy(arm, at, &subject, &results, &settings)).collect();
        let comparisons = comparisons(arms.len(), &subject, &results, &settings);
        Report { subject, policies, comparisons, results, elapsed }
    }

    /// Returns the verdicts in the reader's language: the significant differences of each policy from the baseline, and
    /// how often the two did not decide.
    pub fn verdicts(&self, language: Language) -> Vec<String> {
        self.comparisons.iter().map(|comparison| self.verdict(comparison, language)).collect()
    }

    /// Returns, for each policy with settings that differ from the defaults, a sentence in the reader's language that
    /// names them: the home's apply here as well.
    pub fn settings(&self, language: Language) -> Vec<String> {
        let changed = self.policies.iter().filter(|policy| !policy.settings.is_empty());
        let told = changed.map(|policy| format!("settings of `{}`: {}", policy.label, policy.settings));
        told.map(|told| terminal::translated(&told, language).into_owned()).collect()
    }

    /// Returns a sentence in the reader's language about each reason for which a layer did not decide, the most
    /// frequent of each policy first.
    pub fn faults(&self, language: Language) -> Vec<String> {
        let translated = |text: String| terminal::translated(&text, language).into_owned();
        let mut told = Vec::new();
        for policy in &self.policies {
            let reasons = policy.faults.reasons();
            for fault in reasons.iter().take(MAX_FAULTS) {
                let Fault { decision, count, conversation, turn, .. } = fault;
                let (name, why) = (policy.shown(&fault.policy), fault.why());
                told.push(translated(format!(
                    "not used: `{name}` in `{decision}`, {count}×, first in turn {turn} of `{conversation}`: {why}"
                )));
            }
            if let Some(more) = reasons.len().checked_sub(MAX_FAULTS).filter(|&more| more > 0) {
                told.push(translated(format!("and {more} more; `--json` has them all")));
            }
        }
        told
    }

    /// Returns a sentence in the reader's language about the prices that the costs are computed with, or that there are
    /// none.
    pub fn prices(&self, language: Language) -> Option<String> {
        let name = self.subject.priced_as.as_deref()?;
        let told = match self.subject.price {
            Some(Price { input, cached, cache_write, output }) => {
                let written = cache_write.unwrap_or(input);
                format!(
                    "dollars per million tokens of `{name}`: input {input}, cached {cached}, cache-write {written}, \
                     output {output}"
                )
            }
            None => {
                format!("the price of `{name}` is not known, so no costs are shown; specify it with `--prices FILE`")
            }
        };
        Some(terminal::translated(&told, language).into_owned())
    }

    fn verdict(&self, comparison: &Comparison, language: Language) -> String {
        let translated = |text: &str| terminal::translated(text, language).into_owned();
        let [baseline, policy] = [comparison.baseline, comparison.policy].map(|at| &self.policies[at].label);
        let shown: Vec<String> = comparison
            .findings
            .iter()
            .filter(|(_, found)| found.is_shown)
            .map(|(metric, found)| translated(&metric.phrase(found)))
            .collect();
        let open = comparison.findings.iter().filter(|(_, found)| !found.is_shown);
        let open: Vec<String> = open.map(|(metric, _)| translated(metric.name())).collect();
        let open = open.join(language.pick(", ", "、"));
        let said = translated(&match (listed(&shown, language), open.is_empty()) {
            (None, _) if comparison.has_too_few_conversations() => {
                format!("too few conversations to show any difference between `{policy}` and `{baseline}`")
            }
            (None, _) => format!("no difference shown between `{policy}` and `{baseline}`"),
            (Some(shown), true) => format!("`{policy}` {shown} than `{baseline}`"),
            (Some(shown), false) => format!("`{policy}` {shown} than `{baseline}`; no difference shown in {open}"),
        });
        let both = [comparison.baseline, comparison.policy].map(|at| &self.policies[at]).into_iter();
        let passed_over = both.flat_map(|policy| policy.passed_over(language));
        std::iter::once(said).chain(passed_over).collect::<Vec<_>>().join(language.pick("; ", "；"))
    }

    /// Returns the whole report for machines. For the same seed everything is identical except `timings`.
    pub fn document(&self) -> Value {
        let Report { subject, results, .. } = self;
        let settings = Settings::seeded(subject.seed);
        let policies: Vec<Value> =
            self.policies.iter().zip(&results.totals).map(|(policy, totals)| policy.document(totals)).collect();
        let comparisons: Vec<Value> = self.comparisons.iter().map(|comparison| self.compared(comparison)).collect();
        let conversations: Vec<Value> = results
            .conversations
            .iter()
            .map(|replayed| {
                let policies: Map<String, Value> = self
                    .policies
                    .iter()
                    .zip(replayed.outcomes.iter().zip(&replayed.drops))
                    .map(|(policy, (outcome, drops))| (policy.label.clone(), self.of_conversation(outcome, drops)))
                    .collect();
                json!({"conversation": replayed.name, "turns": replayed.turns, "policies": policies})
            })
            .collect();
        json!({
            "type": "comparison",
            "model": subject.model,
            "window": subject.windows.only(),
            "budget": subject.budget,
            "price": subject.price,
            "seed": subject.seed,
            "statistics": {
                "conversations": results.conversations.len(),
                "level": settings.level,
                "power": settings.power,
                "resamples": settings.resamples,
                "permutations": settings.flips,
            },
            "questions": results.asked,
            "policies": policies,
            "comparisons": comparisons,
            "conversations": conversations,
            "problems": results.problems,
            "timings": self.timings(),
        })
    }

    fn compared(&self, comparison: &Comparison) -> Value {
        let metrics: Vec<Value> = comparison
            .findings
            .iter()
            .map(|(metric, found)| {
                json!({
                    "metric": metric.key(),
                    "baseline": found.values.0,
                    "policy": found.values.1,
                    "effect": found.effect,
                    "unit": metric.unit(),
                    "interval": [found.interval.0, found.interval.1],
                    "p": found.p,
                    "adjusted_p": found.adjusted_p,
                    "shown": found.is_shown,
                    "detectable": found.detectable,
                })
            })
            .collect();
        json!({
            "baseline": self.policies[comparison.baseline].label,
            "policy": self.policies[comparison.policy].label,
            "verdict": self.verdict(comparison, Language::English),
            "metrics": metrics,
        })
    }

    fn of_conversation(&self, outcome: &ArmOutcome, drops: &BTreeMap<usize, u64>) -> Value {
        let mut document = json!(outcome.tally);
        let drop = |(turn, turns): (&usize, &u64)| json!({"turn": turn + 1, "turns_dropped": turns});
        document["drops"] = drops.iter().map(drop).collect();
        document["rungs"] = rungs(outcome);
        document["questions"] = questions(&outcome.score);
        document["dollars"] = json!(self.subject.price.map(|price| price.of(&outcome.tally)));
        document
    }

    /// The durations, which are the only part that differs from run to run.
    fn timings(&self) -> Value {
        let policies: Map<String, Value> = self
            .policies
            .iter()
            .zip(&self.results.totals)
            .map(|(policy, totals)| {
                let times = &totals.times;
                let of_one = json!({
                    "p50_us": times.quantile(0.5),
                    "p95_us": times.quantile(0.95),
                    "max_us": times.max(),
                    "sum_ms": totals.time.as_millis(),
                });
                (policy.label.clone(), of_one)
            })
            .collect();
        json!({
            "seconds": self.elapsed.as_secs_f64(),
            "decisions_a_minute": self.decisions_a_minute(),
            "policies": policies,
        })
    }

    /// Returns how many decisions were made.
    pub fn decisions(&self) -> u64 {
        self.policies.iter().map(|policy| policy.outcome.tally.decisions).sum()
    }

    /// Returns how fast they were made.
    pub fn decisions_a_minute(&self) -> u64 {
        (self.decisions() as f64 * 60.0 / self.elapsed.as_secs_f64().max(1e-3)) as u64
    }
}

impl Comparison {
    /// Whether no difference could be shown in anything in which the two differ, however large it were.
    fn has_too_few_conversations(&self) -> bool {
        // It is 0 where the two are alike.
        let detectable = || self.findings.iter().map(|(_, found)| found.detectable);
        detectable().any(f64::is_infinite) && detectable().all(|effect| effect == 0.0 || effect.is_infinite())
    }
}

impl PolicyReport {
    /// Returns how often its layers did not decide, and who did: with another's decisions it differs in nothing.
    fn passed_over(&self, language: Language) -> Vec<String> {
        let translated = |text: String| terminal::translated(&text, language).into_owned();
        let decisions = self.outcome.tally.decisions;
        let mut told = Vec::new();
        for (layer, Counts { failed, refused }) in self.faults.by_layer() {
            let name = self.shown(layer);
            if failed > 0 {
                told.push(translated(format!("`{name}` failed in {failed} of {decisions} decisions")));
            }
            if refused > 0 {
                told.push(translated(format!("`{name}` was refused in {refused} of {decisions} decisions")));
            }
        }
        for (decider, count) in self.faults.deciders() {
            told.push(translated(format!("`{decider}` decided {count} of these")));
        }
        told
    }

    /// Returns what a layer is called in the report: the top one as the policy.
    fn shown<'a>(&'a self, layer: &'a str) -> &'a str {
        let is_top = self.layers.first().is_some_and(|top| top.name == layer);
        if is_top { &self.label } else { layer }
    }

    fn document(&self, totals: &Totals) -> Value {
        let tally = &self.outcome.tally;
        let categories: Map<String, Value> =
            totals.scores.iter().map(|(category, score)| (category.clone(), questions(score))).collect();
        let mut asked = questions(&self.outcome.score);
        asked["categories"] = Value::Object(categories);
        json!({
            "label": self.label,
            "layers": self.layers,
            "settings": self.settings,
            "turns": tally.turns,
            "calls": tally.calls,
            "tokens": {
                "sum": tally.tokens_sent,
                "p50": totals.sizes.quantile(0.5),
                "p95": totals.sizes.quantile(0.95),
                "max": totals.sizes.max(),
                "reused": tally.tokens_reused,
                "refused": tally.tokens_refused,
                "summarised": tally.tokens_summarised,
                "answered": tally.tokens_answered,
                "a_turn": estimate(&self.tokens_a_turn),
            },
            "prefix_kept": share(tally.tokens_reused, tally.tokens_accepted()),
            "dollars": self.cost,
            "overflows": {"predicted": tally.overflows_predicted, "met": tally.overflows_met},
            "rungs": rungs(&self.outcome),
            "unanswered": tally.unanswered,
            "turns_dropped": tally.turns_dropped,
            "turns_summarised": tally.turns_summarised,
            "results_dropped": tally.results_dropped,
            "messages_replaced": tally.messages_replaced,
            "contents_capped": tally.contents_capped,
            "messages_recalled": tally.messages_recalled,
            "decisions": tally.decisions,
            "fuel": tally.fuel,
            "failures": tally.failures,
            "rejections": tally.rejections,
            "corrections": tally.corrections,
            "faults": self.faults.reasons(),
            "decided_instead": self.faults.deciders(),
            "questions": asked,
            "evidence": self.evidence.as_ref().map(estimate),
            "tokens_by_turn": curve(totals),
        })
    }
}

/// A value with its interval.
fn estimate((value, (low, high)): &(f64, (f64, f64))) -> Value {
    json!({"value": value, "interval": [low, high]})
}

/// The average size of the first request of each turn.
fn curve(totals: &Totals) -> Vec<u64> {
    totals.curve.iter().map(|(sum, count)| sum.checked_div(*count).unwrap_or(0)).collect()
}

fn policy(arm: &Arm, at: usize, subject: &Subject, results: &Results, settings: &Settings) -> PolicyReport {
    let mut outcome = ArmOutcome::default();
    let of_arm = || results.conversations.iter().map(|replayed| &replayed.outcomes[at]);
    for one in of_arm() {
        outcome.tally += &one.tally;
        outcome.score += one.score;
    }
    let mut faults = Faults::default();
    results.conversations.iter().for_each(|replayed| faults.add(&replayed.faults[at], &replayed.name));
    let a_turn: Vec<Ratio> =
        of_arm().map(|one| Ratio::new(one.tally.tokens_sent as f64, one.tally.turns as f64)).collect();
    let evidence: Vec<Ratio> =
        of_arm().map(|one| Ratio::new(one.score.visible as f64, one.score.with_evidence as f64)).collect();
    let tokens_a_turn = outcome.tally.tokens_sent as f64 / outcome.tally.turns.max(1) as f64;
    let visible = share(outcome.score.visible, outcome.score.with_evidence);
    PolicyReport {
        label: arm.label.clone(),
        layers: arm.stack.layers().map(|layer| layer.policy.identity().clone()).collect(),
        settings: arm.stack.changed_settings(),
        cost: subject.price.map(|price| price.of(&outcome.tally)),
        tokens_a_turn: (tokens_a_turn, pmk_statistics::interval(&a_turn, None, settings)),
        evidence: visible.map(|visible| (visible, pmk_statistics::interval(&evidence, Some((0.0, 1.0)), settings))),
        outcome,
        faults,
    }
}

/// Compares all policies with the first; all metrics are tested together.
fn comparisons(arms: usize, subject: &Subject, results: &Results, settings: &Settings) -> Vec<Comparison> {
    let metrics: Vec<Metric> =
        Metric::ALL.into_iter().filter(|metric| metric.is_measured(subject.price, &results.conversations)).collect();
    let measured: Vec<Measured> = (1..arms)
        .flat_map(|policy| metrics.iter().map(move |metric| (policy, metric)))
        .map(|(policy, metric)| {
            let pair = |outcomes: &[ArmOutcome]| [0, policy].map(|at| metric.of(&outcomes[at], subject.price));
            let pairs = results.conversations.iter().map(|replayed| pair(&replayed.outcomes).into());
            Measured { effect: metric.effect(), pairs: pairs.collect() }
        })
        .collect();
    let mut findings = pmk_statistics::find(&measured, settings).into_iter();
    (1..arms)
        .map(|policy| {
            let of_policy = metrics.iter().copied().zip(&mut findings).collect();
            Comparison { baseline: 0, policy, findings: of_policy }
        })
        .collect()
}

fn rungs(outcome: &ArmOutcome) -> Value {
    let rungs = Rung::ALL.into_iter().map(Rung::name).zip(outcome.tally.rungs);
    let all = rungs.chain([(replan::NAME, outcome.tally.replans)]);
    Value::Object(all.map(|(name, count)| (name.to_owned(), count.into())).collect())
}

fn questions(score: &Score) -> Value {
    #[derive(Serialize)]
    struct Part {
        asked: u64,
        yes: u64,
        share: Option<f64>,
    }
    let part = |yes, asked| Part { asked, yes, share: share(yes, asked) };
    json!({"visible": part(score.visible, score.with_evidence), "answered": part(score.answered, score.with_answer)})
}

/// Returns `part` / `whole`; `None` if the whole is 0.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// `a, b and c`.
fn listed(phrases: &[String], language: Language) -> Option<String> {
    let (last, before) = phrases.split_last()?;
    let before = before.join(language.pick(", ", "、"));
    Some(if before.is_empty() { last.clone() } else { format!("{before}{}{last}", language.pick(" and ", "，並")) })
}
