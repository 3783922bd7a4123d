//! `config`: checks and shows gateway.json, and prints its schema.

use std::{path::Path, process::ExitCode};

use clap::Subcommand;
use pmk_models::ModelSpec;
use pmk_system::{error::Failure, home};
use serde_json::{Value, json};

use super::{
    context::Context,
    layers::look_at_arms,
    marks::{self, BAD, LEFT_OUT, ODD, WELL},
    model_choice::Chosen,
    output::{print, print_json},
    tokens::Tokens,
};
use crate::{
    config::{self, Config, Effective, Origin, Problem, Shown},
    database::Database,
    embedded,
    front::{FrontError, slack::credentials},
    messages::terminal,
    policies::{Loader, Named, experiment::arms::Sent},
};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Check for unknown keys and invalid values, including the policies and their settings; exit code 1 if `run` would refuse
    /// the file. Does not read the sources of secrets or use the network: `doctor` does
    Check,
    /// Show every setting and where it comes from; of secrets, only their kind
    Show,
    /// Print the JSON Schema of gateway.json (draft 2020-12), for editors
    Schema,
}

impl ConfigCommand {
    /// Whether the output does not depend on a home.
    pub(super) fn needs_no_home(&self) -> bool {
        matches!(self, ConfigCommand::Schema)
    }

    pub(super) fn execute(self, context: &Context) -> Result<ExitCode, Failure> {
        match self {
            ConfigCommand::Check => check(context),
            ConfigCommand::Show => show(context).map(|()| ExitCode::SUCCESS),
            ConfigCommand::Schema => print_json(&config::schema()).map(|()| ExitCode::SUCCESS),
        }
    }
}

/// A problem, and what to do about it where its text does not say that.
pub(super) type Hinted = (Problem, Option<String>);

fn check(context: &Context) -> Result<ExitCode, Failure> {
    let path = home::config_file(&context.home);
    config::check_kept(&context.home)?;
    let (config, problems) = Config::examine(&context.home)?;
    let mut problems: Vec<Hinted> = problems.into_iter().map(|problem| (problem, None)).collect();
    let mut is_complete = false;
    if let Some(config) = &config {
        problems.extend(of_the_model(config));
        problems.extend(of_slack(config));
        problems.extend(of_the_store(&context.home)?.map(|problem| (problem, None)));
        let (of_policies, are_complete) = of_the_policies(&context.home, config)?;
        problems.extend(of_policies);
        is_complete = are_complete;
    }
    let is_well = problems.iter().all(|(problem, _)| !problem.is_grave);
    let exists = config.is_none_or(|config| config.exists);
    if context.json {
        let problems: Vec<Value> = problems
            .iter()
            .map(|(Problem { what, is_grave }, hint)| {
                json!({"level": if *is_grave { "error" } else { "warning" }, "message": what, "hint": hint})
            })
            .collect();
        print_json(&json!({
            "file": path,
            "exists": exists,
            "ok": is_well,
            "complete": is_complete,
            "problems": problems,
        }))?;
    } else {
        let line = |mark, what: &str, hint: Option<&str>| {
            marks::line(mark, &terminal::translated(what, context.language), hint, context.language)
        };
        let mut page: String = problems
            .iter()
            .map(|(Problem { what, is_grave }, hint)| line(if *is_grave { BAD } else { ODD }, what, hint.as_deref()))
            .collect();
        if !is_complete {
            page += &line(LEFT_OUT, "more is checked once this is corrected", None);
        }
        if !exists {
            page += &line(WELL, &format!("`{}` does not exist: defaults are used", path.display()), None);
        } else if problems.is_empty() {
            page += &line(WELL, &format!("`{}` is valid", path.display()), None);
        }
        print(&page)?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reports an invalid model: a start is refused, unless its command line names another one.
pub(super) fn of_the_model(config: &Config) -> Option<Hinted> {
    let refused = Failure::from(config.model.as_deref()?.parse::<ModelSpec>().err()?);
    Some((grave(&format!("`model`: {}", refused.message())), refused.advice().map(str::to_owned)))
}

/// Reports a missing token of the pair, or a token of the wrong kind: a start is refused, unless it uses the console.
/// The sources of the tokens are not read or run.
fn of_slack(config: &Config) -> Vec<Hinted> {
    let (app, bot) = match Tokens::of(&config.slack).pair() {
        Ok(Some(pair)) => pair,
        Ok(None) => return vec![],
        Err(failure) => return vec![refusal(&failure)],
    };
    let kinds = [app.known().map(credentials::check_app), bot.known().map(credentials::check_bot)];
    let wrong = kinds.into_iter().flatten().filter_map(Result::err);
    wrong
        .map(|error| match error {
            FrontError::Fatal { what, hint } => (grave(&what), Some(hint)),
            other => (grave(&other.to_string()), None),
        })
        .collect()
}

/// Reports an invalid address of the store: a start is refused, unless its command line names another store.
fn of_the_store(home: &Path) -> Result<Option<Problem>, Failure> {
    let address = config::store(home)?.address.filter(|address| address != config::SQLITE);
    Ok(address.and_then(|address| Database::parse(&address).err()).map(|failure| match failure.advice() {
        Some(advice) => grave(&format!("`store`: {}; {advice}", failure.message())),
        None => grave(&format!("`store`: {}", failure.message())),
    }))
}

/// Reports policies that do not load or do not accept their settings: a start is refused. Warnings about them, and an
/// arm of an experiment that does not load, do not prevent a start. Also returns whether everything was checked: what
/// settings are for can only be told of policies that load.
///
/// # Errors
/// The system does not let policies run.
fn of_the_policies(home: &Path, config: &Config) -> Result<(Vec<Hinted>, bool), Failure> {
    let loader = Loader::open(home, Named::default())?;
    let looked = loader.look_at_all(&config.policy);
    let is_complete = looked.is_ok();
    let mut problems: Vec<Hinted> = match looked {
        Ok((_, odd)) => odd.into_iter().map(|what| (odd_one(what), None)).collect(),
        Err(refusals) => refusals.iter().map(refusal).collect(),
    };
    let (of_arms, arms_are_complete) = look_at_arms(&loader, config, &Sent::default());
    problems.extend(of_arms.iter().map(|failure| {
        let hint = failure.advice().map(str::to_owned);
        (odd_one(format!("`experiment`: {}", failure.message())), hint)
    }));
    Ok((problems, is_complete && arms_are_complete))
}

/// The problem of a failure that keeps a gateway from starting.
fn refusal(failure: &Failure) -> Hinted {
    (grave(failure.message()), failure.advice().map(str::to_owned))
}

fn odd_one(what: String) -> Problem {
    Problem { what, is_grave: false }
}

fn grave(what: &str) -> Problem {
    Problem { what: what.to_owned(), is_grave: true }
}

fn show(context: &Context) -> Result<(), Failure> {
    // For an invalid file, the effective values would be a guess.
    let (config, _) = Config::load_for_command(&context.home)?;
    let chosen = Chosen::of(None, &config);
    let mut settings =
        vec![Effective { key: "home".into(), value: text(&context.home.display()), origin: context.home_by.clone() }];
    for mut setting in config::effective(&context.home, |name| context.variable(name))? {
        if setting.key == "store" && context.store.is_some() {
            setting.origin = Origin::CommandLine;
        }
        if setting.origin == Origin::Default {
            match setting.key.as_str() {
                "model" => setting.value = text(&chosen.name()),
                "policy.files" => setting.value = text(&embedded::STANDARD_NAME),
                _ => {}
            }
        }
        settings.push(setting);
    }
    if context.json {
        return print_json(&json!(settings));
    }
    let heading = ["setting", "value", "from"].map(str::to_owned).to_vec();
    let mut rows = vec![heading];
    rows.extend(settings.iter().map(|it| {
        vec![
            it.key.clone(),
            match &it.value {
                Shown::Value(Value::Null) => context.translated("none").into_owned(),
                Shown::Secret { secret } => {
                    let [open, close] = [("(", "（"), (")", "）")].map(|(of, zh)| context.language.pick(of, zh));
                    format!("{open}{}{close}", context.translated(secret))
                }
                value => value.to_string(),
            },
            context.translated(&it.origin.to_string()).into_owned(),
        ]
    }));
    print(&context.columns(&rows))
}

fn text(text: &impl ToString) -> Shown {
    Shown::Value(text.to_string().into())
}
