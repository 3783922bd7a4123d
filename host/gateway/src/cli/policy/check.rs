//! `policy check`: checks whether a component is sound.

use std::path::PathBuf;

use clap::Args;
use pmk_core::Language;
use pmk_policy::{Policy, SetOverride};
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::super::{
    context::Context,
    output::{print, print_json},
    page::Page,
    text::one_line,
};
use crate::{
    evaluation::authoring::{
        check::{self, Finding, Reason, Report},
        histories::{self, Named},
        stage::Stage,
    },
    policies,
    stderr::Spinner,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    /// Component file
    file: PathBuf,

    /// Recorded conversation to try in addition to the built-in ones, or a directory of them
    #[arg(long, value_name = "FILE|DIR")]
    history: Vec<PathBuf>,

    /// Set a policy setting
    #[arg(long, value_name = "POLICY.NAME=VALUE")]
    set: Vec<SetOverride>,
}

impl Check {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut histories = histories::built_in();
        histories.extend(histories::given(&self.history, &mut |problem| context.warn(problem))?);
        let runtime = policies::open_for_authoring(&context.home)?;
        let stage = Stage::new(policies::load(&runtime, &self.file)?).set(self.set)?;
        let waiting = Spinner::now("asking");
        let mut asked = 0;
        let report = check::run(&stage, &histories, runtime.limits(), &mut || {
            asked += 1;
            waiting.tell(&format!("{asked} questions asked"));
        });
        drop(waiting);
        if context.json {
            print_json(&document(stage.policy(), &histories, &report))?;
        } else {
            print(&page(stage.policy(), &histories, &report, context.language))?;
        }
        match report.failed() {
            0 => Ok(()),
            failed => Err(Failure::new(format!(
                "policy `{}` gave {failed} bad answers to {} questions",
                self.file.display(),
                report.asked()
            ))
            .hint("fix the first one of each kind and check again; the gateway would skip the policy in these cases")),
        }
    }
}

fn document(policy: &Policy, histories: &[Named], report: &Report) -> Value {
    json!({
        "policy": policy.identity(),
        "histories": histories.iter().map(|named| &named.name).collect::<Vec<_>>(),
        "asked": report.asked(),
        "failed": report.failed(),
        "not_asked": report.not_asked(),
        "checks": report.checks,
        "cost": report.cost,
    })
}

fn page(policy: &Policy, histories: &[Named], report: &Report, language: Language) -> String {
    let identity = policy.identity();
    let mut out = Page::new(language);
    out.line("policy", format!("{identity}  sha256 {}", identity.sha256));
    out.tell("asked", &format!("{} questions about {} conversations", report.asked(), histories.len()));
    if report.not_asked() > 0 {
        let (not_asked, enough) = (report.not_asked(), check::ENOUGH);
        out.tell("", &format!("{not_asked} more were not asked: {enough} bad answers of a kind are enough"));
    }
    let heading = ["CHECK", "#PASSED", "#CORRECTED", "#HANDED ON", "#FAILED"].map(str::to_owned).to_vec();
    let names: Vec<String> = report.checks.iter().map(|check| out.translated(&check.name)).collect();
    let rows = report.checks.iter().zip(names).map(|(check, name)| {
        let numbers = [check.passed, check.corrected, check.handed_on, check.failed].map(|number| number.to_string());
        std::iter::once(name).chain(numbers).collect()
    });
    out.columns(&std::iter::once(heading).chain(rows).collect::<Vec<_>>());
    let (fuel, peak) = (report.cost.fuel_percent, report.cost.peak_bytes as f64 / f64::from(1 << 20));
    let memory = report.cost.memory_limit >> 20;
    out.tell("cost", &format!("at most {fuel:.1} % of the fuel and {peak:.1} of {memory} MB of memory"));
    for (name, wasteful) in report.checks.iter().filter_map(|check| Some((&check.name, check.wasteful.as_ref()?))) {
        let (plans, first) = (wasteful.plans, one_line(&wasteful.first, 200));
        out.text("\n");
        out.say(&format!("{name}: {plans} plans are carried out but leave almost nothing, the first with {first}"));
        let hint = "shorten the most recent turn instead of dropping it, as `keep_last_turn` of the Rust SDK does";
        out.hint(hint);
    }
    for check in &report.checks {
        if let Some(first) = &check.first {
            out.text(&found(check, first, language));
        }
    }
    out.done()
}

/// The first bad answer of a kind and what to do about it, and how often each reason was found if there are several.
pub(super) fn found(check: &check::Check, first: &Finding, language: Language) -> String {
    let check::Check { name, failed, reasons, .. } = check;
    let mut out = Page::new(language).with("  ", 6);
    out.text("\n");
    out.say(&format!("{name}: {failed} failed, the first with {}", one_line(&first.situation, 200)));
    for set in &first.settings {
        out.line("set", one_line(set, 100));
    }
    out.tell("found", &one_line(&first.reason, 600));
    out.said(&first.log, first.log_is_cut, &first.backtrace);
    out.hint(first.hint);
    if reasons.len() > 1 {
        for Reason { reason, count } in reasons {
            out.named(&format!("{count} ×"), &one_line(reason, 300));
        }
    }
    out.done()
}
