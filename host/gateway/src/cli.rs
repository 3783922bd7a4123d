//! The command line, one file a subcommand. Data goes to standard output, everything else to standard
//! error; exit codes are 0 (done), 1 (it did not work) and 2 (the arguments make no sense).

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, Subcommand};

use crate::{error::Failure, home};

mod atoms;
mod audience;
mod change;
mod escalation;
mod layers;
mod logging;
mod plan;
mod policy;
mod run;
mod sessions;
mod table;
mod text;

/// A Slack to LLM gateway whose context-budget decisions are WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "pmk-host", version, about, max_term_width = 100)]
struct Arguments {
    /// The folder that holds configuration, store and ledger [default: ~/.pmk]
    #[arg(long, global = true, value_name = "DIR", env = "PMK_HOME")]
    home: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway
    Run(run::Run),
    /// Show what a policy would do to a recorded conversation
    Plan(plan::PlanCommand),
    /// Look at policy components
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Look at and reset conversations
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Look at answers that people gave, and say which may be found
    #[command(subcommand)]
    Atoms(atoms::AtomsCommand),
    /// Choose how the model speaks to whom
    #[command(subcommand)]
    Audience(audience::AudienceCommand),
    /// Choose who is asked what the model cannot find out
    #[command(subcommand)]
    Escalation(escalation::EscalationCommand),
}

/// What every subcommand gets.
struct Context {
    home: PathBuf,
    json: bool,
}

/// Parses the arguments and runs the subcommand.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match dispatch(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where standard error is gone there is nobody left to tell.
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: Arguments) -> Result<(), Failure> {
    let context = Context { home: home::resolve(arguments.home.as_deref())?, json: arguments.json };
    match arguments.command {
        Command::Run(run) => run.execute(&context),
        Command::Plan(plan) => plan.execute(&context),
        Command::Policy(policy) => policy.execute(&context),
        Command::Sessions(sessions) => sessions.execute(&context),
        Command::Atoms(atoms) => atoms.execute(&context),
        Command::Audience(audience) => audience.execute(&context),
        Command::Escalation(escalation) => escalation.execute(&context),
    }
}

/// Prints data. A reader that has seen enough is no error.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one JSON document.
fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Says something that is no data.
fn note(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
