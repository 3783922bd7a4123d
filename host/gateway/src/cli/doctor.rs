//! `doctor`: checks what a gateway needs and prints one line per finding, with what to do about it.

use std::{
    collections::BTreeSet,
    path::Path,
    process::ExitCode,
    sync::{Arc, LazyLock},
};

use clap::Args;
use pmk_core::Language;
use pmk_models::{Environment, ModelSpec, Provider};
use pmk_system::{child::supervisor, clock, error::Failure};
use serde_json::json;

use super::{
    config::of_the_model,
    context::{Context, has_password},
    layers::{LayerArguments, look_at_arms, sent_arms},
    marks::{self, BAD, LEFT_OUT, ODD, WELL},
    model_choice::{Chosen, key_in_file, open_model},
    mra,
    output::{print, print_json},
    service,
    tokens::{Token, Tokens, is_dry_run, no_tokens, slack_config},
};
use crate::{
    config::{self, Config, Secret},
    diagnostics::doctor::{
        self, Access, Answering, CLAUDE_PATIENCE, Finding, Getting, Loaded, PATIENCE, Part, Parts, State, Subject,
    },
    messages::{Messages, terminal},
    policies::Loader,
    stderr::Spinner,
    store::Place,
};

/// The location of the store, resolved by the first check that needs it.
type LazyPlace = LazyLock<Result<Place, Failure>, Getting<Place>>;

#[derive(Debug, Args)]
pub(super) struct DoctorCommand {
    #[command(flatten)]
    layers: LayerArguments,

    /// Model, if named on the command line of `run`
    #[arg(long, value_name = "PROVIDER[:NAME]")]
    model: Option<String>,

    /// Skip checks that need the network
    #[arg(long)]
    offline: bool,
}

impl DoctorCommand {
    pub(super) fn execute(self, context: &Context) -> Result<ExitCode, Failure> {
        let subject = subject(context, self.layers, self.model, self.offline);
        // JSON output is English.
        let language = if context.json { Language::English } else { context.language };
        let findings = examine(subject, Messages::new(language))?;
        if context.json {
            print_json(&json!({"ok": is_well(&findings), "findings": findings}))?;
        } else {
            print(&page(&findings, context.language))?;
        }
        Ok(if is_well(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Collects everything that there is to check in a home.
pub(super) fn subject(context: &Context, layers: LayerArguments, model: Option<String>, offline: bool) -> Subject {
    let home = &context.home;
    let config = config::check_kept(home).and_then(|()| Config::examine(home)).map(|(config, mut problems)| {
        if model.is_none() {
            problems.extend(config.as_ref().and_then(of_the_model).map(|(problem, _)| problem));
        }
        (config, problems)
    });
    let resolving = context.clone();
    let resolve: Getting<Place> = Box::new(move || resolving.place_within(PATIENCE));
    let place: Arc<LazyPlace> = Arc::new(LazyLock::new(resolve));
    let mut environment = Environment::of_process(home);
    environment.idle_timeout = Some(PATIENCE);
    let readable = config.as_ref().ok().and_then(|(config, _)| config.as_ref());
    let mut passed = Passed::to_the_service(context, readable, model.as_deref(), &environment);
    passed.check = passed.command(context, &layers, model.as_deref(), offline);
    let parts = readable.map(|config| parts(home, &place, layers, model, config, environment, &passed));
    let place = passed.or(&passed.to_store, move || LazyLock::force(&place).clone());
    Subject { home: home.to_owned(), place, config, parts, offline }
}

/// The parts that a gateway would be made of.
fn parts(
    home: &Path,
    place: &Arc<LazyPlace>,
    layers: LayerArguments,
    model: Option<String>,
    config: &Config,
    environment: Environment,
    passed: &Passed,
) -> Parts {
    let config = Arc::new(Config { mra_workspace: mra::workspace(config), ..config.clone() });
    let (slack, answering, deciding) = (Arc::clone(&config), Arc::clone(&config), Arc::clone(&config));
    let (home, place) = (home.to_owned(), Arc::clone(place));
    let answers = move || answers(model.as_deref(), environment, &answering);
    // Arms are sent to the other hosts through the store, and may be in no file here.
    let sent = if config.experiment.is_some() { &passed.to_store[..] } else { &[] };
    Parts {
        slack: passed.or(&passed.to_slack, move || access(&slack)),
        model: passed.or(&passed.to_model, answers),
        policies: passed.or(sent, move || Ok(decide(&layers.loader(&home)?, &deciding, &place))),
        mra: mra::config(&config),
    }
}

/// The credentials that a service manager passes to the gateway, and not to this process.
#[derive(Default)]
struct Passed {
    to_slack: Vec<String>,
    to_model: Vec<String>,
    to_store: Vec<String>,
    /// The command that makes the checks with them.
    check: String,
}

impl Passed {
    fn to_the_service(
        context: &Context,
        config: Option<&Config>,
        model: Option<&str>,
        environment: &Environment,
    ) -> Passed {
        let to_store = context.awaited_password().into_iter().collect();
        let Some(config) = config else { return Passed { to_store, ..Passed::default() } };
        // Where one is missing, that is found without the other.
        let tokens = Tokens::of(&config.slack).pair().ok().flatten().map(<[Token; 2]>::from);
        let key = key_in_file(&Chosen::of(model, config), environment, config);
        Passed {
            to_slack: tokens.iter().flatten().filter_map(Token::awaited_credential).map(str::to_owned).collect(),
            to_model: key.and_then(Secret::awaited_credential).map(str::to_owned).into_iter().collect(),
            to_store,
            ..Passed::default()
        }
    }

    /// The command that makes the same checks with what the service has.
    fn command(&self, context: &Context, layers: &LayerArguments, model: Option<&str>, offline: bool) -> String {
        let credentials: BTreeSet<&String> = self.to_slack.iter().chain(&self.to_model).chain(&self.to_store).collect();
        // That account has another default home.
        let mut words = vec!["--home".to_owned(), context.home.display().to_string()];
        if let Some(store) = &context.store {
            // A password is not repeated.
            words.extend(["--store".to_owned(), if has_password(store) { "STORE".to_owned() } else { store.clone() }]);
        }
        words.push("doctor".to_owned());
        words.extend(layers.words());
        words.extend(model.into_iter().flat_map(|model| ["--model".to_owned(), model.to_owned()]));
        words.extend(offline.then(|| "--offline".to_owned()));
        service::command(&context.home, credentials.into_iter().map(String::as_str), &words)
    }

    /// What is got, unless it takes credentials that are not here.
    fn or<T>(&self, credentials: &[String], get: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Part<T> {
        match credentials.is_empty() {
            true => Part::Get(Box::new(get)),
            false => Part::Passed { credentials: credentials.to_owned(), check: self.check.clone() },
        }
    }
}

/// Runs the checks, each within its time limit.
pub(super) fn examine(subject: Subject, messages: Messages) -> Result<Vec<Finding>, Failure> {
    // A command that fetches a secret is ended together with this program.
    supervisor::enable();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let waiting = Spinner::when_long("checking what a gateway needs");
    let findings = runtime.block_on(doctor::examine(subject, Arc::new(messages)));
    drop(waiting);
    // What exceeded its time limit is not waited for.
    runtime.shutdown_background();
    Ok(findings)
}

fn access(config: &Config) -> Result<Access, Failure> {
    // A start refuses a wrong value even if it does not use Slack.
    is_dry_run()?;
    let Some((app, bot)) = Tokens::of(&config.slack).pair()? else {
        // A start without a terminal refuses this.
        return if config.names_slack { Err(no_tokens()) } else { Ok(Access::None) };
    };
    match (app.resolve(), bot.resolve()) {
        (Ok(app), Ok(bot)) => Ok(Access::Tokens(Box::new(slack_config(config, None, app, bot)?))),
        (app, bot) => Ok(Access::Unavailable([app.err(), bot.err()].into_iter().flatten().collect())),
    }
}

fn answers(named: Option<&str>, mut environment: Environment, config: &Config) -> Result<Answering, Failure> {
    let chosen = Chosen::of(named, config);
    let is_claude = matches!(chosen.name().parse(), Ok(ModelSpec { provider: Provider::ClaudeCli, .. }));
    environment.call_timeout = Some(if is_claude { CLAUDE_PATIENCE } else { PATIENCE });
    let model = open_model(&chosen, None, environment, config)?;
    Ok(Answering { model, is_unnamed: matches!(chosen, Chosen::StandIn) })
}

/// Loads the layers of a start; the arms of an experiment are only test-loaded. If the store cannot be asked which of
/// them other hosts have sent, which is reported as its fault, the arms are not tried.
fn decide(loader: &Loader, config: &Config, place: &LazyPlace) -> Loaded {
    let serving = loader.look_at_all(&config.policy);
    let Some(experiment) = &config.experiment else { return Loaded { serving, arms: vec![], is_on: false } };
    let place = LazyLock::force(place).clone();
    let sent = place.and_then(|place| sent_arms(Some(experiment), place));
    let arms = sent.map(|sent| look_at_arms(loader, config, &sent).0).unwrap_or_default();
    Loaded { serving, arms, is_on: experiment.is_on(clock::now_ms()) }
}

/// Whether nothing is broken.
pub(super) fn is_well(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::Bad)
}

/// One line per finding, and below it what to do.
pub(super) fn page<'a>(findings: impl IntoIterator<Item = &'a Finding>, language: Language) -> String {
    let line = |Finding { check, state, what, hint }: &Finding| {
        let mark = match state {
            State::Well => WELL,
            State::Odd => ODD,
            State::Bad => BAD,
            State::LeftOut => LEFT_OUT,
        };
        let what = terminal::translated(what, language);
        marks::line(mark, &format!("{check:<12}  {what}"), hint.as_deref(), language)
    };
    findings.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::service::ENVIRONMENT_FILE;

    #[test]
    fn the_unit_reads_the_file_of_variables_that_doctor_names() {
        let unit = include_str!("../../../../packaging/pmk-host.service");
        assert!(unit.lines().any(|line| line == format!("EnvironmentFile=-{ENVIRONMENT_FILE}")), "{unit}");
    }
}
