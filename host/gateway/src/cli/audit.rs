//! `audit`: what the ledger shows of the last days.

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use pmk_core::Language;
use pmk_knowledge::{
    Atom,
    files::AtomFiles,
    moderation::{self, Promote},
};
use pmk_system::{
    error::{Failure, OrHint},
    home::{self, HomeLock},
};

use super::{
    arguments::between,
    context::{Context, block_on},
    output::{print, print_json},
    page::Page,
    text::printable,
};
use crate::{
    diagnostics::audit::{
        self, Arm, Arms, Atoms, Audit, Bound, Cases, Connections, ContextSafety, Conversations, Counts, Escalate, Flag,
        MraAsk, Now, Policies, Presence, Refused, Shadow, Tokens,
    },
    escalation::Marker,
    ledger::export,
    stderr::Spinner,
    store::{ModelCalibration, Store, StoreError},
};

/// The number of names that are listed; the others are summed up.
const NAMES: usize = 5;

#[derive(Debug, Args)]
pub(super) struct AuditCommand {
    /// How many days to look back
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = between::<u32>(1, 3_660))]
    days: u32,
}

impl AuditCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let waiting = Spinner::when_long("reading the ledger");
        // Before its files, so that nothing is in neither.
        let Stored { pending, learnt, parked, unwritten } = stored(context)?;
        let at = Timestamp::now();
        let since = at - SignedDuration::from_hours(24 * i64::from(self.days));
        let (records, unreadable) = audit::read::events(&home::gateway_dir(&context.home), since)
            .map_err(|error| format!("cannot read the ledger: {error}"))
            .or_hint("check that `--home` is a folder that you can read")?;
        let atoms = atoms(context, at)?;
        let now = Now { at, atoms: &atoms, pending: &pending, learnt: &learnt, parked, unwritten };
        let audit = audit::audit(self.days, &records, unreadable, &now);
        drop(waiting);
        if context.json {
            return print_json(&serde_json::to_value(&audit).map_err(Failure::new)?);
        }
        print(&page(&audit, context.language))
    }
}

/// Loads the current atoms; pending ones are not promoted.
fn atoms(context: &Context, at: Timestamp) -> Result<Vec<Atom>, Failure> {
    let Some(files) = AtomFiles::open_existing(&context.home)? else { return Ok(vec![]) };
    let loaded = moderation::load(&files, at.as_millisecond(), Promote::No)?;
    for problem in loaded.problems {
        context.warn(&problem.to_string());
    }
    Ok(loaded.atoms.into_iter().map(|stored| stored.atom).collect())
}

/// What the audit needs from the store.
#[derive(Default)]
struct Stored {
    pending: Vec<Marker>,
    learnt: Vec<ModelCalibration>,
    parked: u64,
    /// Lines of the ledger that are not in its files.
    unwritten: u64,
}

/// Reads it from the store; the default if there is none yet, or if it cannot be reached: the ledger is all the more
/// useful then.
fn stored(context: &Context) -> Result<Stored, Failure> {
    let place = match context.place() {
        Err(failure) if context.awaited_password().is_some() => return Ok(skipped(context, &failure)),
        place => place?,
    };
    let read = match Store::open_existing(place) {
        Ok(store) => block_on(async { Ok(read(&store).await) })?
            .map(|stored| Stored { unwritten: unwritten(context, &store), ..stored }),
        Err(error) => Err(error),
    };
    match read {
        Ok(stored) => Ok(stored),
        Err(StoreError::Missing { .. }) => Ok(Stored::default()),
        Err(error @ (StoreError::Gone { .. } | StoreError::NoDatabase { .. } | StoreError::Away { .. })) => {
            Ok(skipped(context, &error.into()))
        }
        Err(error) => Err(error.into()),
    }
}

async fn read(store: &Store) -> Result<Stored, StoreError> {
    let parked = store.parked().await?.len() as u64;
    Ok(Stored { pending: store.escalations().await?, learnt: store.calibrations().await?, parked, unwritten: 0 })
}

/// Counts the lines of the ledger that are not in its files.
fn unwritten(context: &Context, store: &Store) -> u64 {
    let is_running = HomeLock::is_held(&context.home).unwrap_or(false);
    export::unwritten(&home::gateway_dir(&context.home), store, is_running).unwrap_or_else(|error| {
        context.warn(&format!("cannot read the ledger: {error}"));
        0
    })
}

/// Says that the store is skipped, and why.
fn skipped(context: &Context, why: &Failure) -> Stored {
    context.warn_of("the store is skipped", why);
    Stored::default()
}

fn page(audit: &Audit, language: Language) -> String {
    let mut page = Report(Page::new(language).with("  ", 25));
    page.window(audit);
    page.turns(&audit.conversations);
    page.connections(&audit.connections);
    page.presence(&audit.presence);
    page.context_safety(&audit.context_safety, &audit.policies);
    page.tokens(&audit.tokens);
    page.mra_ask(&audit.mra_ask);
    page.escalate(&audit.escalate);
    page.refused(&audit.refused);
    page.cases(&audit.cases);
    page.knowledge(&audit.atoms);
    page.experiments(&audit.experiments);
    page.warnings(&audit.flags);
    page.0.done()
}

struct Report(Page);

impl Report {
    /// Writes which days are counted.
    fn window(&mut self, audit: &Audit) {
        self.0.say(&format!("pmk-host audit (last {} days)", audit.days));
        if let Some(month) = &audit.counted_from {
            let from = format!("counted from {month} on: the earlier ledger is not kept (`ledger.keepMonths`)");
            self.0.text(&format!("  {}\n", self.0.translated(&from)));
        }
    }

    fn turns(&mut self, talk: &Conversations) {
        self.section("Conversations");
        self.line("turns", talk.turns);
        if talk.stopped > 0 {
            self.line("stopped by people", talk.stopped);
        }
        if talk.orders > 0 {
            self.tell("other messages", &format!("{} (commands, words about a waiting question)", talk.orders));
        }
        self.counts("by user", &talk.by_user);
        self.counts("by audience", &talk.by_audience);
        if !talk.unanswered.is_empty() {
            self.summed("no answer", &talk.unanswered);
        }
        self.line("undelivered replies", talk.undelivered);
        self.tell("parked", &format!("{}, {} in total are parked now", talk.parked, talk.parked_now));
        if talk.panicked + talk.swept > 0 {
            self.tell("panicked, swept", &format!("{}, {}", talk.panicked, talk.swept));
        }
    }

    fn connections(&mut self, connections: &Connections) {
        if connections.are_unbroken() {
            return;
        }
        self.section("Connections");
        self.line("front.refused", connections.refused);
        self.tell(
            "front.connected-again",
            &format!(
                "{}, {} deaf, {} messages late",
                connections.silences,
                duration(Some(connections.deaf_ms)),
                connections.late
            ),
        );
        self.line("front.malformed", connections.malformed);
    }

    fn presence(&mut self, presence: &Presence) {
        if presence.is_nothing() {
            return;
        }
        self.section("Presence");
        self.summed("gateway.online", &presence.online);
        self.line("gateway.offline", presence.offline);
        self.line("away in total", duration(Some(presence.away_ms)));
        self.tell(
            "gateway.caught-up",
            &format!(
                "{} messages read back; conversations: {} not readable, {} read in part, {} left out",
                presence.caught_up, presence.unreadable, presence.cut, presence.left_out
            ),
        );
    }

    fn context_safety(&mut self, safety: &ContextSafety, policies: &Policies) {
        self.section("Context safety");
        self.summed("context.exceeded", &safety.exceeded);
        self.line("context.pruned", safety.pruned);
        self.line("context.force-pruned", safety.force_pruned);
        self.tell(
            "context.compacted",
            &format!("{} on recovery, {} ahead of a call", safety.compacted_recovering, safety.compacted_ahead),
        );
        self.line("context.rotated", safety.rotated);
        self.line("context.replanned", safety.replanned);
        let suspected: Counts =
            safety.suspected.iter().map(|(about, count)| (self.0.translated(about), *count)).collect();
        self.summed("context.suspected", &suspected);
        self.line("context.recovery_failed", safety.recovery_failed);
        self.summed("message.capped", &safety.capped);
        self.line("reply.split", safety.replies_split);
        self.summed("policy.failed", &policies.by_policy);
    }

    fn tokens(&mut self, spent: &Tokens) {
        self.section("Tokens");
        for (model, tokens) in &spent.by_model {
            self.tell(
                model,
                &format!(
                    "{} calls, {} in ({} from the cache), {} out",
                    tokens.calls,
                    tokens.input + tokens.cache_read + tokens.cache_creation,
                    tokens.cache_read,
                    tokens.output
                ),
            );
            if let (Some(factor), Some(overhead)) = (tokens.factor, tokens.overhead) {
                self.tell("", &format!("{factor} for one of the host's estimate, {overhead} beyond what is sent"));
            }
            tokens.bounds.iter().for_each(|bound| self.bound(bound));
        }
        self.counts("by user", &spent.by_user.iter().map(|(user, it)| (user.clone(), it.input + it.output)).collect());
    }

    fn mra_ask(&mut self, mra: &MraAsk) {
        self.section("mra-ask");
        match mra.share_of_turns {
            Some(share) => {
                self.tell("invocations", &format!("{}, in {:.1} % of turns", mra.invocations, share * 100.0));
            }
            None => self.line("invocations", mra.invocations),
        }
        self.tell("ok / 2nd try / failed", &format!("{} / {} / {}", mra.ok, mra.retried, mra.failed));
        self.line("median duration", duration(mra.median_ms));
        self.counts("by repository", &mra.by_repo);
    }

    fn escalate(&mut self, escalate: &Escalate) {
        self.section("Escalate");
        self.line("triggered", escalate.triggered);
        self.line("absorbed", escalate.absorbed);
        self.line("cancelled", escalate.cancelled);
        self.line("waiting now", escalate.pending);
        self.line("median time to reply", duration(escalate.median_ms_to_reply));
    }

    fn refused(&mut self, refused: &Refused) {
        if refused.is_nothing() {
            return;
        }
        self.section("Refused");
        self.summed("access.refused", &refused.access);
        self.summed("directive.echoed", &refused.echoed);
        self.summed("directive.bounded", &refused.bounded);
        self.tell("escalate.proposed", &format!("{}, {} dropped", refused.proposed, refused.dropped));
    }

    fn cases(&mut self, cases: &Cases) {
        if cases.are_none() {
            return;
        }
        self.section("Cases");
        self.tell("opened / closed", &format!("{} / {}", cases.opened, cases.closed));
        self.tell(
            "auto-tracked",
            &format!("{} hypotheses and {} questions in {} answers", cases.hypotheses, cases.questions, cases.updates),
        );
    }

    fn knowledge(&mut self, atoms: &Atoms) {
        self.section("Knowledge atoms");
        self.tell("total", &format!("{} ({} approved, {} pending)", atoms.total, atoms.approved, atoms.pending));
        self.tell("shown to the model", &format!("{} in {} turns", atoms.injected, atoms.turns_with_atoms));
        if let (Some(average), Some(median)) = (atoms.a_turn, atoms.median_a_turn) {
            self.tell("atoms a turn", &format!("{average:.2}, median {median} where there are any"));
        }
        self.counts("by contributor", &atoms.by_contributor);
    }

    fn experiments(&mut self, experiments: &Arms) {
        for (experiment, arms) in experiments {
            self.0.text(&format!("\n{} {}\n", self.0.translated("Experiment"), printable(experiment)));
            arms.iter().for_each(|(name, arm)| self.arm(name, arm));
        }
    }

    fn warnings(&mut self, flags: &[Flag]) {
        self.section("Flags");
        for Flag { count, what } in flags {
            self.0.text(&format!("  WARN {count} {}\n", self.0.translated(what)));
        }
        if flags.is_empty() {
            self.0.text(&format!("  {}\n", self.0.translated("none")));
        }
    }

    fn section(&mut self, name: &str) {
        self.0.text("\n");
        self.0.say(name);
    }

    fn line(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.line(&printable(name), value);
    }

    fn tell(&mut self, name: &str, sentence: &str) {
        self.0.tell(&printable(name), sentence);
    }

    /// Writes a learned bound of a model's window.
    fn bound(&mut self, bound: &Bound) {
        let Bound { tokens, most, source, learnt, until, times, .. } = bound;
        let what = match most {
            Some(most) => format!("refused at {tokens} of the host's estimate ({source}), so at most {most} are sent"),
            None => format!("window of {tokens} by the provider's count ({source})"),
        };
        self.tell("", &what);
        self.tell("", &format!("  since {learnt} (refusals: {times}); from {until} on a larger prompt is tried"));
    }

    /// Writes the figures of an arm.
    fn arm(&mut self, name: &str, arm: &Arm) {
        if let Some(Shadow { decisions, agreed, tokens, acting_tokens, failures, sat_out }) = &arm.shadow {
            self.0.named(&printable(name), &format!("watched {decisions} decisions and agreed with {agreed}"));
            self.tell("", &format!("{tokens} tokens against {acting_tokens} that were sent, {failures} failures"));
            if *sat_out > 0 {
                self.tell("", &format!("was busy with an earlier one at {sat_out} more, which are not counted"));
            }
        }
        if arm.turns == 0 {
            return;
        }
        let turns = match arm.turns {
            1 => "1 turn".to_owned(),
            more => format!("{more} turns"),
        };
        self.0.named(&printable(name), &turns);
        self.tell("", &format!("{} in, {} out by the provider's count", arm.tokens_in, arm.tokens_out));
        self.counted("  overflows, rungs", arm.overflows, &arm.rungs);
        self.line("  failures", arm.failures);
        self.tell("  asked again, up, down", &format!("{}, {}, {}", arm.asked_again, arm.thumbs_up, arm.thumbs_down));
        let (p50, p95) = (duration(arm.latency_ms_p50), duration(arm.latency_ms_p95));
        self.tell("  latency p50, p95", &format!("{p50}, {p95}"));
        if let Some(why) = &arm.stopped {
            self.tell("  stopped", why);
        }
    }

    /// Writes names and counts, if there are any.
    fn counts(&mut self, name: &str, counts: &Counts) {
        if !counts.is_empty() {
            let counts = most_frequent(counts, &self.0);
            self.line(name, counts);
        }
    }

    /// Writes the sum of counts, and its parts.
    fn summed(&mut self, name: &str, counts: &Counts) {
        self.counted(name, counts.values().sum(), counts);
    }

    /// Writes a count, and the names that belong to it.
    fn counted(&mut self, name: &str, count: u64, counts: &Counts) {
        let parts = if counts.is_empty() { String::new() } else { format!(" ({})", most_frequent(counts, &self.0)) };
        self.line(name, format!("{count}{parts}"));
    }
}

/// The most frequent names, and the sum of the others.
fn most_frequent(counts: &Counts, page: &Page) -> String {
    let mut sorted: Vec<(&String, &u64)> = counts.iter().collect();
    // The map is sorted by name, and the sort is stable, so equal counts stay in order of names.
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut shown: Vec<String> =
        sorted.iter().take(NAMES).map(|(name, count)| format!("{} {count}", printable(name))).collect();
    if sorted.len() > NAMES {
        let rest: u64 = sorted[NAMES..].iter().map(|(_, count)| **count).sum();
        shown.push(page.translated(&format!("{} others {rest}", sorted.len() - NAMES)));
    }
    shown.join(", ")
}

fn duration(ms: Option<u64>) -> String {
    match ms {
        None => "-".into(),
        Some(ms) if ms < 10_000 => format!("{:.1} s", ms as f64 / 1_000.0),
        Some(ms) if ms < 60_000 => format!("{} s", ms / 1_000),
        Some(ms) if ms < 3_600_000 => format!("{} min", ms / 60_000),
        Some(ms) => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}
