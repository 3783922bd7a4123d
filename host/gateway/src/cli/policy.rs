//! `policy new|dev|inspect|check|test|bench`: the tools for the author of a policy; `policy use`: chooses the policies
//! that decide.

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
    /// Create a project for your own policy, ready to build
    New(new::New),
    /// Build, check and compare a project on every save
    Dev(dev::Dev),
    /// Show a component's name, version, exports, imports, settings, digest and size
    Inspect(inspect::Inspect),
    /// Check a component against every rule of the guard: all decisions, many conversations, extreme settings
    Check(check::Check),
    /// Compare a component's decisions with the expected ones
    Test(test::Test),
    /// Measure decisions per second, fuel, memory and load time
    Bench(bench::Bench),
    /// Switch the gateway running in this home to other components, from the next turn on
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
