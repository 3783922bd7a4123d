//! `policy new|dev|inspect|check|test|bench`: what a policy's author has at the desk; `policy use`: which ones decide.

mod bench;
mod check;
mod choice;
mod dev;
mod inspect;
mod new;
mod test;

use clap::Subcommand;
use pmk_policy::Exports;
use pmk_system::error::Failure;

use super::{context::Context, logging};
#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Write a project for a policy of your own, which builds at once
    New(new::New),
    /// Build, check and compare a project on every save
    Dev(dev::Dev),
    /// Show name, version, exports, imports, settings, digest and size of a component
    Inspect(inspect::Inspect),
    /// Hold a component against every rule of the guard: all its decisions, many conversations, extreme settings
    Check(check::Check),
    /// Compare a component's decisions with those that are expected
    Test(test::Test),
    /// Measure decisions a second, fuel, memory and how long loading takes
    Bench(bench::Bench),
    /// Have other components decide in the gateway that runs in this home, from the next turn on
    Use(choice::Use),
}

impl PolicyCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        logging::start(true, context.json, context.language);
        match self {
            PolicyCommand::New(new) => new.run(context),
            PolicyCommand::Dev(dev) => dev.run(context),
            PolicyCommand::Inspect(inspect) => inspect.run(context),
            PolicyCommand::Use(choice) => choice.run(context),
            PolicyCommand::Check(check) => check.run(context),
            PolicyCommand::Test(test) => test.run(context),
            PolicyCommand::Bench(bench) => bench.run(context),
        }
    }
}

/// The names of the decisions that a policy makes.
pub(super) fn decisions(exports: Exports) -> Vec<&'static str> {
    [("cap", exports.cap), ("prune", exports.prune), ("summarize", exports.summarize), ("recover", exports.recover)]
        .into_iter()
        .filter_map(|(name, there)| there.then_some(name))
        .collect()
}
