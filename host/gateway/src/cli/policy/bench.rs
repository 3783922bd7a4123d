//! `policy bench`: measures what a component costs.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use pmk_core::Language;
use pmk_policy::{Policy, SetOverride, compile::Confinement};
use pmk_system::error::{Failure, OrHint};
use serde_json::json;

use super::super::{
    context::Context,
    output::{print, print_json},
    page::Page,
};
use crate::{
    evaluation::authoring::{
        bench::{self, Loading, Measured},
        stage::Stage,
    },
    policies,
    stderr::Spinner,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Bench {
    /// Component file
    file: PathBuf,

    /// How long to run each decision, first on one thread, then on all cores
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    time: Duration,

    /// Set a policy setting
    #[arg(long, value_name = "POLICY.NAME=VALUE")]
    set: Vec<SetOverride>,
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=3_600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a number of seconds from 0.001 to 3600".to_owned()),
    }
}

impl Bench {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let runtime = policies::open_for_authoring(&context.home)?;
        let stage = Stage::new(policies::load(&runtime, &self.file)?).set(self.set)?;
        let scratch = tempfile::tempdir()
            .map_err(|error| format!("cannot create a folder for compiled components: {error}"))
            .or_hint("check that there is free space in the folder for temporary files")?;
        let waiting = Spinner::now("loading it with an empty cache");
        let loading = bench::loading(&self.file, *runtime.limits(), scratch.path())?;
        let measured = bench::run(&stage, self.time, &mut |what| waiting.tell(&format!("timing {what}")));
        drop(waiting);
        let is_usable = measured.iter().any(|measured| measured.refused.is_none());
        if context.json {
            print_json(&json!({
                "policy": stage.policy().identity(),
                "size_bytes": stage.policy().size_bytes(),
                "load": loading,
                "archived": bench::ARCHIVED,
                "decisions": measured,
            }))?;
        } else {
            print(&page(stage.policy(), loading, &measured, context.language))?;
        }
        match is_usable {
            true => Ok(()),
            false => Err(Failure::new(format!("policy `{}` gave no usable answer", self.file.display())).hint(
                "`pmk-host policy check FILE` says what is wrong; the time measured is how long it takes to fail",
            )),
        }
    }
}

fn page(policy: &Policy, loading: Loading, measured: &[Measured], language: Language) -> String {
    let identity = policy.identity();
    let mut out = Page::new(language);
    out.line("policy", format!("{identity}  sha256 {}", identity.sha256));
    out.tell(
        "load",
        &format!(
            "{:.0} ms when compiled for it, {:.0} ms from the cache, {} bytes",
            loading.cold_ms,
            loading.cached_ms,
            policy.size_bytes()
        ),
    );
    if let Some(taken) = loading.compiled {
        let (seconds, mib) = (taken.cpu_ms as f64 / 1_000.0, taken.peak_bytes >> 20);
        let process = match taken.confined {
            Confinement::Fully => "a process that can reach nothing else",
            Confinement::Partly => "a process that this kernel keeps from files, but not from all else",
            Confinement::No => "a process that this kernel cannot confine",
        };
        out.tell("compile", &format!("{seconds:.1} s of processor time and {mib} MiB of memory, in {process}"));
    }
    if policy.capabilities().iter().any(|capability| capability.reads_archive()) {
        out.tell("archive", &format!("{} older messages to search, generated and in memory", bench::ARCHIVED));
    }
    let heading = ["DECISION", "#MESSAGES", "#A SECOND", "#ON ALL CORES", "#P50 µs", "#P95 µs", "#FUEL", "#MEMORY kB"];
    let rows = measured.iter().map(|measured| {
        vec![
            measured.decision.name().to_owned(),
            measured.messages.map_or("-".to_owned(), |messages| messages.to_string()),
            format!("{:.0}", measured.per_second),
            format!("{:.0}", measured.per_second_all_cores),
            measured.p50_us.to_string(),
            measured.p95_us.to_string(),
            measured.fuel.to_string(),
            (measured.peak_bytes >> 10).to_string(),
        ]
    });
    out.columns(&std::iter::once(heading.map(str::to_owned).to_vec()).chain(rows).collect::<Vec<_>>());
    for measured in measured {
        if let Some(reason) = &measured.refused {
            out.say(&format!("{} was not usable: {reason}", measured.decision.name()));
        }
    }
    out.done()
}
