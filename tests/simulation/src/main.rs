//! The command line of the simulation.

use std::{
    process::ExitCode,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Instant,
};

use clap::{Parser, Subcommand};

use pmk_simulation::{Fence, Hosts, Policies, run, shrink};

#[derive(Debug, Parser)]
#[command(about = "Drives whole turns through every order of events, from one seed")]
struct Arguments {
    /// So many hosts share a world; several are on one PostgreSQL
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=9))]
    hosts: u8,
    /// Nothing keeps one of several hosts that was taken for gone from writing: it has to be missed
    #[arg(long, global = true)]
    no_fence: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs seed after seed, until so many questions were answered
    Run {
        /// The first seed
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// So many answered questions are enough
        #[arg(long, default_value_t = 1_000)]
        turns: u64,
        /// Worlds at a time, each in a thread of its own
        #[arg(long, default_value_t = 1)]
        jobs: usize,
        /// Go on after a seed that has failed
        #[arg(long)]
        all: bool,
    },
    /// Runs one seed, and says what happens
    Replay {
        seed: u64,
        /// Only these of its events
        #[arg(long, value_delimiter = ',')]
        keep: Vec<usize>,
        /// Say no more than the ledger and the verdict
        #[arg(long)]
        quiet: bool,
    },
    /// Leaves out of a failing seed whatever is not needed for it to fail
    Shrink { seed: u64 },
}

fn main() -> ExitCode {
    // Panics are caught and reported in the verdict.
    let loud = std::env::var_os("RUST_LOG").is_some();
    if loud {
        tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().init();
    } else {
        std::panic::set_hook(Box::new(|_| ()));
    }
    let policies = Policies::load();
    let Arguments { hosts, no_fence, command } = Arguments::parse();
    let hosts = Hosts { count: hosts.into(), fence: if no_fence { Fence::Down } else { Fence::Up } };
    match command {
        Command::Run { from, turns, jobs, all } => run_many(&policies, hosts, from, turns, jobs, all),
        Command::Replay { seed, keep, quiet } => {
            let keep = (!keep.is_empty()).then(|| keep.into_iter().collect());
            let outcome = run(&policies, hosts, seed, keep.as_ref(), !quiet);
            print!("{}", outcome.ledger);
            told(&outcome.breaches)
        }
        Command::Shrink { seed } => match shrink(&policies, hosts, seed) {
            Some(keep) => {
                let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
                println!("{} --keep {}", replay(hosts, seed), keep.join(","));
                ExitCode::SUCCESS
            }
            None => {
                eprintln!("seed {seed} does not fail");
                ExitCode::FAILURE
            }
        },
    }
}

/// The command that reproduces a run.
fn replay(Hosts { count, fence }: Hosts, seed: u64) -> String {
    let hosts = if count > 1 { format!(" --hosts {count}") } else { String::new() };
    let fence = if fence == Fence::Down { " --no-fence" } else { "" };
    format!("cargo run --release -p pmk-simulation -- replay {seed}{hosts}{fence}")
}

fn told(breaches: &[String]) -> ExitCode {
    for breach in breaches {
        eprintln!("  {breach}");
    }
    if breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_many(policies: &Policies, hosts: Hosts, from: u64, turns: u64, jobs: usize, all: bool) -> ExitCode {
    let (next, answered, failed) = (AtomicU64::new(from), AtomicU64::new(0), AtomicUsize::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while answered.load(Ordering::Relaxed) < turns && (all || failed.load(Ordering::Relaxed) == 0) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let outcome = run(policies, hosts, seed, None, false);
                    answered.fetch_add(outcome.answered as u64, Ordering::Relaxed);
                    if !outcome.breaches.is_empty() {
                        failed.fetch_add(1, Ordering::Relaxed);
                        eprintln!("seed {seed}: {}", outcome.breaches.join("; "));
                        eprintln!("  replay: {}", replay(hosts, seed));
                    }
                }
            });
        }
    });
    let (seeds, answered) = (next.into_inner() - from, answered.into_inner());
    let failed = failed.into_inner();
    println!(
        "seeds {from} to {}: {answered} questions answered in {seeds} worlds, {failed} of them with a breach, {:.1} s",
        from + seeds - 1,
        begun.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
