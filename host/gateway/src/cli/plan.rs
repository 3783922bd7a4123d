//! `plan`: makes one decision about a recorded conversation, without any effect.

use std::{path::PathBuf, sync::Arc};

use clap::Args;
use pmk_core::{Applied, Guard, Plan, Rule, Transcript, Verdict, floor, replace::Reduction};
use pmk_policy::{ArchiveUse, Identity, Outcome, PruneInput, Record, Stack};
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::{
    arguments::tokens,
    context::Context,
    layers::LayerArguments,
    logging,
    output::{print, print_json},
    page::Page,
    policy::decisions,
};
use crate::{
    calibration::TokenBudget,
    evaluation::authoring::recorded::{Recorded, phase},
    preambles::Preamble,
    store::transfer::full,
};

/// The window of an unknown model.
const DEFAULT_WINDOW: u64 = 200_000;

#[derive(Debug, Args)]
pub(super) struct PlanCommand {
    #[command(flatten)]
    layers: LayerArguments,

    /// Conversation: pmk's session.json, Anthropic's {"system","messages"}, or JSON Lines
    #[arg(long, value_name = "FILE")]
    history: PathBuf,

    /// Hard limit in tokens [default: the window minus answer and system prompt]
    #[arg(long, value_name = "N", value_parser = tokens, allow_negative_numbers = true)]
    budget: Option<u64>,

    /// Model's context window in tokens [default: 200000]
    #[arg(long, value_name = "N", value_parser = tokens, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Apply the trim rung of recovery instead of asking the policy
    #[arg(long)]
    force: bool,
}

/// The decision, by indexes of the transcript.
struct Decided {
    applied: Applied,
    decided_by: String,
    verdict: Verdict,
    /// Those of the layers that were asked, the top one first.
    records: Vec<Record>,
}

impl PlanCommand {
    /// Returns the hard limit.
    ///
    /// # Errors
    /// The budget does not fit the window.
    fn limit(&self, preamble: &Preamble) -> Result<u64, Failure> {
        match (self.budget, self.window) {
            (Some(budget), Some(window)) if budget > window => {
                Err(Failure::new(format!("a budget of {budget} tokens does not fit into a window of {window}"))
                    .hint("use a larger `--window`, or a smaller `--budget`"))
            }
            (Some(budget), _) => Ok(budget),
            (None, _) => Ok(TokenBudget::of(self.window(), preamble.tokens).limit),
        }
    }

    fn window(&self) -> u64 {
        self.window.unwrap_or_else(|| DEFAULT_WINDOW.max(self.budget.unwrap_or_default()))
    }

    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        logging::start(true, context.json, context.language);
        let config = context.config()?;
        if full::is_full(&self.history) {
            return Err(Failure::new(format!("`{}` can contain many conversations", self.history.display()))
                .hint("export the one to plan for with `pmk-host sessions export KEY --format pmk --to FILE.json`"));
        }
        let recorded = Recorded::read(&self.history)?;
        for oddity in &recorded.oddities {
            context.warn(&format!("`{}`: {oddity}", self.history.display()));
        }
        if recorded.transcript.is_empty() {
            let why = if recorded.total == 0 { "it has no messages" } else { "it contains no user message" };
            return Err(self.nothing(why, "end the history with a message of role `user`"));
        }
        let preamble = Preamble::new(recorded.system.as_deref().unwrap_or_default(), []);
        let limit = self.limit(&preamble)?;
        let stack = self.layers.load(&context.home, &config.policy)?;
        let decided = self.decide(&stack, &recorded.transcript, limit);
        let (top, others, settings) = (named(&stack), not_asked(&stack), stack.changed_settings());
        if context.json {
            let mut document = decided.document(&recorded, top, limit);
            document["settings"] = json!(settings);
            document["not_asked"] = others.iter().map(NotAsked::document).collect();
            print_json(&document)?;
        } else {
            let mut page = Page::new(context.language);
            others.iter().for_each(|other| other.tell(&mut page));
            if !settings.is_empty() {
                page.line("settings", &settings);
            }
            decided.tell(&mut page, &recorded, top, limit);
            print(&page.done())?;
        }
        if decided.applied.kept.is_empty() {
            let why = format!(
                "it has no new message, which is always kept, and `{}` keeps nothing else within {limit} tokens",
                decided.decided_by
            );
            let hint = "end the history with a message of role `user`, or raise the limit with `--budget`";
            return Err(self.nothing(&why, hint));
        }
        if decided.applied.tokens_after > limit {
            let why = format!("the new message alone exceeds the limit of {limit} tokens");
            return Err(self.nothing(&why, "raise the limit with `--budget`"));
        }
        Ok(())
    }

    /// The failure if there would be no request.
    fn nothing(&self, why: &str, hint: &str) -> Failure {
        Failure::new(format!("nothing of the history `{}` would be sent: {why}", self.history.display())).hint(hint)
    }

    fn decide(&self, stack: &Stack, transcript: &Arc<Transcript>, limit: u64) -> Decided {
        if self.force {
            return forced(transcript, limit);
        }
        let seed_may_go = stack.seed_may_go();
        let input = PruneInput { limit, window: self.window(), phase: phase(transcript), seed_may_go };
        let decision = stack.prune(transcript, input);
        Decided {
            decided_by: decision.decided_by.name().to_owned(),
            applied: decision.applied,
            verdict: decision.verdict,
            records: decision.records,
        }
    }
}

/// Applies the trim rung, and the floor if that still exceeds the limit. If the marker would cost more than the turns
/// it stands for, nothing is trimmed.
fn forced(transcript: &Transcript, limit: u64) -> Decided {
    let guard = Guard { limit, seed_may_go: false, must_shrink: false };
    let trimmed = guard
        .apply(transcript, &floor::trim(transcript))
        .or_else(|breach| guard.apply(transcript, &Plan::new()).map_err(|_| breach));
    match trimmed {
        Ok(applied) => Decided { verdict: applied.verdict(), applied, decided_by: "trim".into(), records: vec![] },
        Err(breach) => Decided {
            applied: floor::decide(transcript, limit),
            decided_by: "floor".into(),
            verdict: Verdict::Rejected(breach),
            records: vec![],
        },
    }
}

/// The positions in the file of the recalled messages: ids of archived messages are their indexes.
fn recalled(applied: &Applied) -> &[i64] {
    applied.recall.as_ref().map_or(&[], |recall| &recall.ids)
}

/// The positions in the file of the first and the last message that the model is asked to summarize before the call.
fn compacted(recorded: &Recorded, applied: &Applied) -> Option<(usize, usize)> {
    let range = applied.compaction.clone().filter(|range| !range.is_empty())?;
    Some((recorded.file_index(range.start as u32), recorded.file_index(range.end as u32 - 1)))
}

/// A layer that does not decide which messages to prune.
struct NotAsked<'a> {
    policy: &'a Identity,
    exports: Vec<&'static str>,
}

/// Returns those layers, which are loaded as well.
fn not_asked(stack: &Stack) -> Vec<NotAsked<'_>> {
    let others = stack.layers().map(|layer| &layer.policy).filter(|policy| !policy.exports().prune);
    others.map(|policy| NotAsked { policy: policy.identity(), exports: decisions(policy.exports()) }).collect()
}

impl NotAsked<'_> {
    fn document(&self) -> Value {
        json!({"policy": self.policy, "exports": self.exports})
    }

    fn tell(&self, page: &mut Page) {
        let NotAsked { policy, exports } = self;
        let exports = exports.join(", ");
        page.tell("loaded", &format!("{policy}  sha256 {}, not asked here: it exports {exports}", policy.sha256));
    }
}

/// Returns the policy that is asked first.
fn named(stack: &Stack) -> Option<&Identity> {
    stack.layers().find(|layer| layer.policy.exports().prune).map(|layer| layer.policy.identity())
}

/// Returns the rule that an unused answer broke, and how. A layer that gave no answer broke rule 8.
fn broken_rule(outcome: &Outcome) -> Option<(u8, &str)> {
    match outcome {
        Outcome::Rejected { rule, reason } => Some((*rule, reason.as_str())),
        Outcome::Failed { reason, .. } => Some((Rule::Sane.number(), reason.as_str())),
        Outcome::Accepted | Outcome::Corrected { .. } | Outcome::Skipped { .. } => None,
    }
}

/// One layer that was asked, for machines.
fn asked(record: &Record) -> Value {
    let (rule, text) = broken_rule(&record.outcome).unzip();
    let outcome = json!(record.outcome)["result"].take();
    json!({"name": record.policy.name, "outcome": outcome, "rule": rule, "text": text})
}

impl Decided {
    fn document(&self, recorded: &Recorded, policy: Option<&Identity>, limit: u64) -> Value {
        let Decided { applied, decided_by, verdict, records } = self;
        let record = records.first();
        let transcript = &recorded.transcript;
        let mut dropped = recorded.file_indexes(&applied.removed);
        dropped.extend(&recorded.left_out);
        dropped.sort_unstable();
        let cuts: Vec<usize> =
            recorded.file_indexes(&transcript.structure().cuts).into_iter().filter(|&at| at > 0).collect();
        let replaced: Vec<Value> = applied
            .replaced
            .iter()
            .map(|replaced| {
                json!({
                    "index": recorded.file_index(replaced.index),
                    "chars_before": replaced.chars_before,
                    "chars_after": replaced.chars_after,
                })
            })
            .collect();
        let markers: Vec<Value> = applied
            .marker
            .iter()
            .map(|(marker, before)| {
                json!({"before": recorded.file_index(*before), "turns": marker.turns, "text": marker.text()})
            })
            .collect();
        let texts_read: Vec<Value> = record
            .into_iter()
            .flat_map(|record| record.texts_read.iter())
            .map(|(index, chars)| json!({"index": recorded.file_index(index), "chars": chars}))
            .collect();
        json!({
            "policy": policy,
            "decided_by": decided_by,
            "new_message": transcript.new_message().map(|at| recorded.file_index(at as u32)),
            "legal_cuts": cuts,
            "kept": recorded.file_indexes(&applied.kept),
            "dropped": dropped,
            "replaced": replaced,
            "markers": markers,
            "recalled": recalled(applied),
            "compact": compacted(recorded, applied),
            "tokens": {"before": applied.tokens_before, "after": applied.tokens_after, "limit": limit},
            "guard": {"verdict": verdict.name(), "rules": verdict.rules()},
            "layers": records.iter().map(asked).collect::<Vec<_>>(),
            "cost": {
                "us": record.map_or(0, |record| record.us),
                "fuel": record.map_or(0, |record| record.fuel),
                "peak_bytes": record.map_or(0, |record| record.peak_bytes),
            },
            "texts_read": texts_read,
            "archive": record.map(|record| {
                let ArchiveUse { searches, found, texts_read, .. } = &record.archive;
                json!({"searches": searches, "found": found, "texts_read": texts_read})
            }),
            "log": record.map_or(&[][..], |record| &record.log),
            "log_is_cut": record.is_some_and(|record| record.log_is_cut),
            "backtrace": record.map_or(&[][..], |record| record.outcome.backtrace()),
        })
    }

    fn tell(&self, out: &mut Page, recorded: &Recorded, policy: Option<&Identity>, limit: u64) {
        let Decided { applied, decided_by, verdict, records } = self;
        if let Some(policy) = policy {
            out.line("policy", format!("{policy}  sha256 {}", policy.sha256));
        }
        out.line("decided", format!("{} {decided_by}", out.translated("by")));
        for record in records {
            if let Some((rule, what)) = broken_rule(&record.outcome) {
                out.tell("guard", &format!("rejected `{}`: guard rule {rule}: {what}", record.policy.name));
            }
        }
        match verdict {
            Verdict::Rejected(breach) if records.is_empty() => out.tell("guard", &format!("rejected: {breach}")),
            Verdict::Rejected(_) => {}
            Verdict::Accepted => out.tell("guard", "accepted"),
            Verdict::Corrected(_) => out.tell("guard", "corrected"),
        }
        let (before, after) = (applied.tokens_before, applied.tokens_after);
        out.tell("tokens", &format!("{before} before, {after} after, {limit} allowed"));
        let (kept, dropped, shortened) = (applied.kept.len(), applied.removed.len(), applied.replaced.len());
        let turns = match applied.turns_dropped {
            1 => "1 turn".to_owned(),
            turns => format!("{turns} turns"),
        };
        out.tell("messages", &format!("{kept} kept, {dropped} dropped ({turns}), {shortened} shortened"));
        if !recorded.left_out.is_empty() {
            let messages = recorded.left_out.len();
            out.tell("repaired", &format!("{messages} messages left out that no request can hold"));
        }
        if let Some((marker, before)) = &applied.marker {
            let before = out.translated(&format!("before {}:", recorded.file_index(*before)));
            out.line("marker", format!("{before} {}", marker.text()));
        }
        if let Some(recall) = &applied.recall {
            let indexes: Vec<String> = recall.ids.iter().map(i64::to_string).collect();
            out.tell("recalled", &format!("{} ({} tokens)", indexes.join(", "), recall.tokens));
        }
        if let Some((from, to)) = compacted(recorded, applied) {
            let sentence = format!(
                "the model is asked to summarize {from} to {to} first; if that fails, what is shown here is done"
            );
            out.tell("compact", &sentence);
        }
        for replaced in &applied.replaced {
            let index = recorded.file_index(replaced.index);
            let (before, after) = (replaced.chars_before, replaced.chars_after);
            out.say(&match replaced.reduction {
                Reduction::Shorten { .. } => format!("shortened {index}: {before} to {after} characters"),
                Reduction::Digest => format!("digested {index}: {before} to {after} characters"),
            });
        }
        if let Some(record) = records.first() {
            let (us, fuel, bytes) = (record.us, record.fuel, record.peak_bytes);
            out.tell("cost", &format!("{us} µs, {fuel} fuel, {bytes} bytes of memory at most"));
            if !record.texts_read.is_empty() {
                let (texts, chars) = (record.texts_read.len(), record.texts_read.chars());
                out.tell("texts", &format!("{texts} shown to it, {chars} characters"));
            }
            if !record.archive.is_none() {
                let ArchiveUse { searches, found, texts_read, .. } = &record.archive;
                let found = found.len();
                out.tell("archive", &format!("searches: {searches}, found: {found}, texts shown: {texts_read}"));
            }
            out.said(&record.log, record.log_is_cut, record.outcome.backtrace());
        }
        if applied.tokens_after > limit {
            out.tell("", "the new message alone exceeds the limit; its sender would be told");
        }
    }
}
