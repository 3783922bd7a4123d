//! `policy check`: is a component sound?

use std::path::PathBuf;

use clap::Args;
use pmk_policy::Policy;
use pmk_system::error::Failure;
use serde_json::{Value, json};

use super::super::{
    context::Context,
    output::{print, print_json},
    table,
    text::one_line,
};
use crate::{
    authoring::{
        check::{self, Finding, Report},
        histories::{self, Named},
        stage::Stage,
    },
    policies,
    waiting::Waiting,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    /// The component
    file: PathBuf,

    /// A recorded conversation to try it on besides the built-in ones, or a folder of them
    #[arg(long, value_name = "FILE|DIR")]
    history: Vec<PathBuf>,
}

impl Check {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let mut histories = histories::built_in();
        histories.extend(histories::given(&self.history)?);
        let runtime = policies::open_for_authoring(&context.home)?;
        let stage = Stage::new(policies::load(&runtime, &self.file)?);
        let waiting = Waiting::now("asking");
        let mut asked = 0;
        let report = check::run(&stage, &histories, runtime.limits(), &mut || {
            asked += 1;
            waiting.says(format!("{asked} questions asked"));
        });
        drop(waiting);
        if context.json {
            print_json(&document(stage.policy(), &histories, &report))?;
        } else {
            print(&page(stage.policy(), &histories, &report))?;
        }
        match report.failed() {
            0 => Ok(()),
            failed => Err(Failure::new(format!(
                "policy `{}` gave {failed} bad answers to {} questions",
                self.file.display(),
                report.asked()
            ))
            .hint("correct the first one of each kind and check again; the gateway would pass the policy over there")),
        }
    }
}

fn document(policy: &Policy, histories: &[Named], report: &Report) -> Value {
    json!({
        "policy": policy.identity(),
        "histories": histories.iter().map(|named| &named.name).collect::<Vec<_>>(),
        "asked": report.asked(),
        "failed": report.failed(),
        "checks": report.checks,
        "cost": report.cost,
    })
}

fn page(policy: &Policy, histories: &[Named], report: &Report) -> String {
    let identity = policy.identity();
    let mut out = format!(
        "policy    {identity}  sha256 {}\nasked     {} questions about {} conversations\n",
        identity.sha256,
        report.asked(),
        histories.len()
    );
    let heading = ["CHECK", "#PASSED", "#CORRECTED", "#HANDED ON", "#FAILED"].map(str::to_owned).to_vec();
    let rows = report.checks.iter().map(|check| {
        let numbers = [check.passed, check.corrected, check.handed_on, check.failed].map(|number| number.to_string());
        std::iter::once(check.name.clone()).chain(numbers).collect()
    });
    out.push_str(&table::columns(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()));
    out.push_str(&format!(
        "cost      at most {:.1} % of the fuel and {:.1} of {} MB of memory\n",
        report.cost.fuel_percent,
        report.cost.peak_bytes as f64 / f64::from(1 << 20),
        report.cost.memory_limit >> 20
    ));
    for (name, wasteful) in report.checks.iter().filter_map(|check| Some((&check.name, check.wasteful.as_ref()?))) {
        out.push_str(&format!(
            "\n{name}: {} plans are carried out and leave almost nothing, the first with {}\n  hint: cut the most recent turn \
             short instead of dropping it; `keep_last_turn` of the Rust SDK does\n",
            wasteful.plans,
            one_line(&wasteful.first, 200)
        ));
    }
    for check in &report.checks {
        if let Some(first) = &check.first {
            out.push_str(&found(&check.name, check.failed, first));
        }
    }
    out
}

/// The first bad answer of a kind, and what to do about it.
pub(super) fn found(name: &str, failed: u32, first: &Finding) -> String {
    let mut out = format!("\n{name}: {failed} failed, the first with {}\n", one_line(&first.situation, 200));
    for set in &first.settings {
        out.push_str(&format!("  set   {}\n", one_line(set, 100)));
    }
    out.push_str(&format!("  found {}\n", one_line(&first.reason, 600)));
    for line in &first.log {
        out.push_str(&format!("  log   {}\n", one_line(&line.text, 1_000)));
    }
    for frame in &first.backtrace {
        out.push_str(&format!("  at    {}\n", one_line(frame, 200)));
    }
    out.push_str(&format!("  hint: {}\n", first.hint));
    out
}
