//! The command line, one file per subcommand. Data goes to standard output, everything else to standard error. Exit
//! codes are 0 (success), 1 (failure) and 2 (invalid arguments); `status` also uses 3 (no gateway is running) and 4
//! (failure).

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::{
    ArgAction, FromArgMatches, Parser, Subcommand,
    builder::{BoolValueParser, TypedValueParser},
    error::ErrorKind,
};
use pmk_core::Language;
use pmk_system::{error::Failure, home};

mod admin;
mod arguments;
mod atoms;
mod audience;
mod audit;
mod case;
mod change;
mod compare;
mod completions;
mod config;
mod context;
mod demo;
mod doctor;
mod escalation;
mod experiment;
mod help;
mod init;
mod layers;
mod logging;
mod marks;
mod model;
mod model_choice;
mod mra;
mod output;
mod page;
mod plan;
mod policy;
mod recorded;
mod run;
mod service;
mod sessions;
mod size_limit;
mod slack;
mod status;
mod stop;
mod store;
mod table;
mod text;
mod tokens;
mod tty;

use crate::{config::Origin, messages::terminal, stderr};
use arguments::Json;
use context::Context;
use output::{note, note_failure, note_json};

/// The program's name.
const NAME: &str = "pmk-host";

/// A Slack to LLM gateway whose context-budget decisions are WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = NAME, version, about, max_term_width = 100)]
struct Arguments {
    /// Directory for config, store and ledger [env: PMK_HOME] [default: ~/.pmk]
    #[arg(long, global = true, value_name = "DIR")]
    home: Option<PathBuf>,

    /// Where conversations are stored: sqlite (in the home) or postgres://USER@HOST/DATABASE [env: PMK_STORE] [default:
    /// from gateway.json]
    #[arg(long, global = true, value_name = "STORE")]
    store: Option<String>,

    /// Print JSON instead of text; errors too, as an object on standard error
    #[arg(long, global = true, action = ArgAction::SetTrue, value_parser = BoolValueParser::new().map(Json::of_flag))]
    json: Json,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what policies are for, in half a minute
    Demo(demo::DemoCommand),
    /// Set up a gateway: ask for what it needs and write gateway.json
    Init(init::InitCommand),
    /// Run the gateway
    Run(run::Run),
    /// Show the gateway's health; exit code 0 healthy, 1 degraded, 3 down, 4 unknown
    Status(status::StatusCommand),
    /// Stop the gateway gracefully
    Stop(stop::StopCommand),
    /// Show what a policy would do to a recorded conversation
    Plan(plan::PlanCommand),
    /// Compare policies on recorded conversations
    Compare(compare::CompareCommand),
    /// Create, inspect, check, test, benchmark and choose policy components
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Show, reset, erase, retry, export and import conversations
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Show channels' cases and export them to files
    #[command(subcommand)]
    Case(case::CaseCommand),
    /// Review answers from people and decide which can be retrieved
    #[command(subcommand)]
    Atoms(atoms::AtomsCommand),
    /// Check and show gateway.json and its schema
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Check everything a gateway needs and suggest fixes
    Doctor(doctor::DoctorCommand),
    /// Show how models count tokens and what their errors mean
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Show what to set up in Slack
    #[command(subcommand)]
    Slack(slack::SlackCommand),
    /// Choose who may change the gateway from Slack, and show what was changed
    #[command(subcommand)]
    Admin(admin::AdminCommand),
    /// Choose how the model speaks to people
    #[command(subcommand)]
    Audience(audience::AudienceCommand),
    /// Summarize recent days from the ledger
    Audit(audit::AuditCommand),
    /// Choose who is asked when the model cannot find an answer
    #[command(subcommand)]
    Escalation(escalation::EscalationCommand),
    /// Compare policies on live conversations
    #[command(subcommand)]
    Experiment(experiment::ExperimentCommand),
    /// Back up, check, restore, copy and renew the conversation database
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Print a shell completion script
    Completions(completions::Completions),
}

/// What a command needs of its home.
#[derive(Clone, Copy)]
enum UseOfHome {
    /// It creates the home if it does not exist.
    Makes,
    /// It requires an existing home.
    Wants,
    /// It works without a home, but one that is named must exist.
    Takes,
    /// It uses no home.
    Ignores,
    /// It checks the home itself and reports what is wrong with it.
    Examines,
}

impl Command {
    /// The exit code for a failure.
    fn failed(&self) -> ExitCode {
        match self {
            Command::Status(_) => ExitCode::from(status::UNKNOWN),
            _ => ExitCode::FAILURE,
        }
    }

    fn use_of_home(&self) -> UseOfHome {
        match self {
            Command::Init(_) | Command::Run(_) => UseOfHome::Makes,
            Command::Demo(_) | Command::Completions(_) | Command::Slack(_) => UseOfHome::Ignores,
            Command::Config(config) if config.needs_no_home() => UseOfHome::Ignores,
            Command::Policy(policy::PolicyCommand::Use(_)) | Command::Model(model::ModelCommand::Forget) => {
                UseOfHome::Wants
            }
            Command::Plan(_) | Command::Compare(_) | Command::Config(_) | Command::Policy(_) | Command::Model(_) => {
                UseOfHome::Takes
            }
            Command::Doctor(_) => UseOfHome::Examines,
            Command::Store(store) if store.names_its_own() => UseOfHome::Takes,
            Command::Store(store) if store.makes_the_home() => UseOfHome::Makes,
            Command::Status(_)
            | Command::Stop(_)
            | Command::Sessions(_)
            | Command::Atoms(_)
            | Command::Admin(_)
            | Command::Case(_)
            | Command::Audience(_)
            | Command::Audit(_)
            | Command::Escalation(_)
            | Command::Experiment(_)
            | Command::Store(_) => UseOfHome::Wants,
        }
    }
}

/// Returns the definition of the command line in this language, for the manual.
pub fn command(language: Language) -> clap::Command {
    help::manual(language)
}

/// Parses the arguments and runs the subcommand.
pub fn main() -> ExitCode {
    let language = help::language(std::env::args_os().skip(1));
    stderr::read_in(language);
    let arguments = match read(language) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") => {
            note_json(&usage(&error).document());
            return ExitCode::from(2);
        }
        Err(error) => return refuse(&error, language),
    };
    let json = arguments.json == Json::Stdout;
    let failed = arguments.command.failed();
    match dispatch(arguments, language) {
        Ok(code) => return code,
        Err(failure) => note_failure(&failure, language, json),
    }
    failed
}

/// Parses the arguments. The help texts take 3 MB to build, so they are only built when something is shown.
fn read(language: Language) -> Result<Arguments, clap::Error> {
    Arguments::try_parse().or_else(|_| {
        let mut command = help::command_line(language);
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    })
}

/// Reports invalid arguments, or shows help, which is not an error and goes to standard output.
fn refuse(error: &clap::Error, language: Language) -> ExitCode {
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(what) if language != Language::English => {
            note(terminal::error(what.trim_end(), None, language));
            ExitCode::from(2)
        }
        None if language == Language::TraditionalChinese => {
            // Clap ends a heading with its own colon.
            let help = help::HEADINGS.iter().fold(error.render().ansi().to_string(), |help, heading| {
                help.replace(&format!("{heading}:"), &format!("{heading}："))
            });
            // If the help is shown because a command is missing, it is an error.
            let printed = match error.use_stderr() {
                true => write!(anstream::stderr(), "{help}"),
                false => write!(anstream::stdout(), "{help}"),
            };
            ended(error, printed, language)
        }
        _ => ended(error, error.print(), language),
    }
}

/// Returns the exit code of what was shown instead of a command's output. Help that cannot be written is a failure, as
/// other output is.
fn ended(error: &clap::Error, printed: io::Result<()>, language: Language) -> ExitCode {
    match printed.and_then(|()| io::stdout().flush()) {
        Err(why) if !error.use_stderr() && why.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::new(format!("cannot write to standard output: {why}"));
            note_failure(&failure, language, false);
            ExitCode::FAILURE
        }
        _ => u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
    }
}

/// The failure for invalid arguments, without the usage text.
fn usage(error: &clap::Error) -> Failure {
    // Its text is the help, which is in the reader's language.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Failure::new("a command is missing").hint("run with `--help` to see the commands");
    }
    let text = error.to_string();
    let what = text.split("\n\n").next().unwrap_or_default();
    Failure::new(what.strip_prefix("error: ").unwrap_or(what)).hint("run with `--help` to see the arguments")
}

fn dispatch(arguments: Arguments, language: Language) -> Result<ExitCode, Failure> {
    let json = arguments.json == Json::Stdout;
    let home_by = match &arguments.home {
        Some(_) => Origin::CommandLine,
        None if home::is_named(None) => Origin::Environment(home::VARIABLE.to_owned()),
        None => Origin::Default,
    };
    let home = home::resolve(arguments.home.as_deref())?;
    let use_of_home = arguments.command.use_of_home();
    let is_wanted = match use_of_home {
        UseOfHome::Makes | UseOfHome::Examines | UseOfHome::Ignores => false,
        UseOfHome::Wants => true,
        UseOfHome::Takes => !matches!(home_by, Origin::Default),
    };
    let context = Context { home, home_by, store: arguments.store, json, language };
    if !matches!(use_of_home, UseOfHome::Examines | UseOfHome::Ignores) {
        home::check_folder(&context.home)?;
        if is_wanted {
            home::check_exists(&context.home)?;
        }
        home::check_trusted(&context.home)?;
    }
    size_limit::outlive().map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    // These have a log of their own.
    if !matches!(arguments.command, Command::Run(_) | Command::Plan(_) | Command::Compare(_) | Command::Policy(_)) {
        logging::start_for_command(json, language);
    }
    let done = match arguments.command {
        Command::Demo(demo) => demo.execute(&context),
        Command::Init(init) => init.execute(&context),
        Command::Run(run) => run.execute(&context),
        Command::Config(config) => return config.execute(&context),
        Command::Doctor(doctor) => return doctor.execute(&context),
        Command::Status(status) => return status.execute(&context),
        Command::Stop(stop) => stop.execute(&context),
        Command::Plan(plan) => plan.execute(&context),
        Command::Compare(compare) => compare.execute(&context),
        Command::Policy(policy) => policy.execute(&context),
        Command::Sessions(sessions) => sessions.execute(&context),
        Command::Case(case) => case.execute(&context),
        Command::Atoms(atoms) => atoms.execute(&context),
        Command::Model(model) => model.execute(&context),
        Command::Slack(slack) => slack.execute(&context),
        Command::Admin(admin) => admin.execute(&context),
        Command::Audience(audience) => audience.execute(&context),
        Command::Audit(audit) => audit.execute(&context),
        Command::Escalation(escalation) => escalation.execute(&context),
        Command::Experiment(experiment) => experiment.execute(&context),
        Command::Store(store) => store.execute(&context),
        Command::Completions(completions) => completions.execute(language),
    };
    done.map(|()| ExitCode::SUCCESS)
}
