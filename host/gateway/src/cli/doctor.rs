//! `doctor`: what a gateway needs, a line each, and what mends it.

use std::{process::ExitCode, sync::Arc};

use clap::Args;
use pmk_core::Language;
use pmk_models::Environment;
use pmk_policy::Stack;
use pmk_system::{child::supervisor, error::Failure};
use serde_json::json;

use super::{
    config::of_the_model,
    context::Context,
    layers::LayerArguments,
    marks::{self, BAD, LEFT_OUT, ODD, WELL},
    model_choice::{Chosen, open_model},
    mra,
    output::{print, print_json},
    tokens::{Tokens, slack_config},
};
use crate::{
    config::Config,
    doctor::{self, Access, Answering, Finding, PATIENCE, Parts, State, Subject},
    messages::Messages,
    policies::Loader,
};

#[derive(Debug, Args)]
pub(super) struct DoctorCommand {
    #[command(flatten)]
    layers: LayerArguments,

    /// The model, where the command line of `run` names one
    #[arg(long, value_name = "PROVIDER[:NAME]")]
    model: Option<String>,

    /// Leave out what goes over the network
    #[arg(long)]
    offline: bool,
}

impl DoctorCommand {
    pub(super) fn execute(self, context: &Context) -> Result<ExitCode, Failure> {
        // A command that gets a secret is ended with this program.
        supervisor::enable();
        let offline = self.offline;
        let config = Config::examine(&context.home).map(|(config, mut problems)| {
            if self.model.is_none() {
                problems.extend(config.as_ref().and_then(of_the_model));
            }
            (config, problems)
        });
        let parts = match &config {
            Ok((Some(config), _)) => Some(self.parts(context, config)?),
            _ => None,
        };
        let subject = Subject { home: context.home.clone(), config, parts, offline };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
        let findings = runtime.block_on(doctor::examine(subject));
        // What took too long is not waited for.
        runtime.shutdown_background();
        show(context, &findings)?;
        Ok(if is_well(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// What a gateway would be made of.
    fn parts(self, context: &Context, config: &Config) -> Result<Parts, Failure> {
        let config = Arc::new(Config { mra_workspace: mra::workspace(config), ..config.clone() });
        let (slack, answering, deciding) = (Arc::clone(&config), Arc::clone(&config), Arc::clone(&config));
        let loader = self.layers.loader(&context.home)?;
        let mut environment = Environment::of_process(&context.home);
        (environment.idle_timeout, environment.call_timeout) = (Some(PATIENCE), Some(PATIENCE));
        Ok(Parts {
            slack: Box::new(move || access(&slack)),
            model: Box::new(move || answers(self.model.as_deref(), environment, &answering)),
            policies: Box::new(move || decide(&loader, &deciding)),
            mra: mra::config(&config),
        })
    }
}

fn access(config: &Config) -> Result<Access, Failure> {
    let Some((app, bot)) = Tokens::of(&config.slack).pair()? else { return Ok(Access::None) };
    Ok(Access::Tokens(Box::new(slack_config(config, None, app.resolve()?, bot.resolve()?)?)))
}

fn answers(named: Option<&str>, environment: Environment, config: &Config) -> Result<Answering, Failure> {
    let chosen = Chosen::of(named, config);
    let model = open_model(&chosen, None, environment, config)?;
    // As all that it says, in English.
    let note = chosen.notice().map(|notice| Messages::new(Language::English).notice(notice));
    Ok(Answering { model, note: note.map(|(what, hint)| (what.trim_start_matches("model: ").to_owned(), hint)) })
}

/// The layers of a start; those of an experiment's arms are only tried.
fn decide(loader: &Loader, config: &Config) -> Result<(Stack, Vec<String>), Failure> {
    let loaded = loader.look(&config.policy)?;
    for arm in config.experiment.iter().flat_map(|experiment| &experiment.arms) {
        if let Some(policy) = &arm.policy {
            loader.arm(&policy.over(&config.policy)).map_err(|failure| {
                let (what, hint) = failure.into_parts();
                let failure = Failure::new(format!("the arm `{}`: {what}", arm.name));
                hint.into_iter().fold(failure, Failure::hint)
            })?;
        }
    }
    Ok(loaded)
}

fn is_well(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::Bad)
}

fn show(context: &Context, findings: &[Finding]) -> Result<(), Failure> {
    if context.json {
        return print_json(&json!({"ok": is_well(findings), "findings": findings}));
    }
    let page: String = findings
        .iter()
        .map(|Finding { check, state, what, hint }| {
            let mark = match state {
                State::Well => WELL,
                State::Odd => ODD,
                State::Bad => BAD,
                State::LeftOut => LEFT_OUT,
            };
            marks::line(mark, &format!("{check:<12}  {what}"), hint.as_deref())
        })
        .collect();
    print(&page)
}
