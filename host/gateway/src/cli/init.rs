//! `init`: from nothing to a gateway.json that `run` takes. What a flag says is not asked, and without a terminal nothing is.

mod given;
mod questions;

use std::io::IsTerminal;

use clap::Args;
use pmk_core::Language;
use pmk_models::{ModelSpec, Provider};
use pmk_system::{error::Failure, home};
use serde_json::json;

use super::{
    context::Context,
    output::{note, print, print_json},
    run::FrontChoice,
};
use crate::{
    config::{self, Config, EditError, Object},
    front::slack::app,
    messages::Messages,
};

use given::{Kind, SecretGiven};

#[derive(Debug, Args)]
pub(super) struct InitCommand {
    /// The language of the gateway [default: the system's]
    #[arg(long, value_name = "zh-TW|en")]
    language: Option<Language>,

    /// What answers: anthropic-api[:NAME], openai[:NAME], claude-cli[:NAME], sim
    #[arg(long, value_name = "PROVIDER[:NAME]")]
    model: Option<String>,

    /// Where people talk
    #[arg(long)]
    front: Option<FrontChoice>,

    /// Where Anthropic's key is: env:NAME, file:PATH or cmd:COMMAND
    #[arg(long, value_name = "SOURCE")]
    api_key: Option<String>,

    /// Where Slack's app-level token is: env:NAME, file:PATH or cmd:COMMAND
    #[arg(long, value_name = "SOURCE")]
    app_token: Option<String>,

    /// Where Slack's bot token is: env:NAME, file:PATH or cmd:COMMAND
    #[arg(long, value_name = "SOURCE")]
    bot_token: Option<String>,
}

/// Secrets by the flags. Clap would show those that are written out in its errors.
struct Secrets {
    api_key: Option<SecretGiven>,
    app_token: Option<SecretGiven>,
    bot_token: Option<SecretGiven>,
}

/// What is written.
struct Answers {
    language: Language,
    model: ModelSpec,
    api_key: Option<SecretGiven>,
    slack: Option<SlackAnswers>,
}

struct SlackAnswers {
    app_token: Option<SecretGiven>,
    bot_token: Option<SecretGiven>,
}

impl InitCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        // A file that cannot be read is not written over.
        let (_, warnings) = Config::load(&context.home)?;
        for warning in warnings {
            context.warn(&warning);
        }
        let is_asked = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !context.json;
        let answers = if is_asked {
            questions::ask(&self, self.secrets()?)?
        } else {
            self.without_asking(self.language.unwrap_or(context.language), self.secrets()?)?
        };
        let messages = Messages::new(answers.language);
        config::edit(&context.home, |root| write(root, &answers))
            .map_err(|error: EditError| Failure::new(&error).hint(error.hint()))?;
        let variables = answers.variables();
        let run = match home::is_default(&context.home) {
            true => "pmk-host run".to_owned(),
            false => format!("pmk-host --home {} run", context.home.display()),
        };
        let path = home::config_file(&context.home);
        if context.json {
            let manifest = answers.slack.is_some().then(app::manifest);
            return print_json(&json!({"path": path, "variables": variables, "manifest": manifest, "next": run}));
        }
        if answers.slack.is_some() && !is_asked {
            tell_of_the_app(&messages)?;
        }
        let mut told = vec![messages.init_written(&path.display().to_string())];
        told.extend(variables.iter().map(|name| messages.init_variable(name)));
        told.push(messages.init_next(&run));
        print(&format!("{}\n", told.join("\n")))
    }

    fn secrets(&self) -> Result<Secrets, Failure> {
        let given =
            |flag: &str, text: &Option<String>| text.as_deref().map(|text| SecretGiven::read(flag, text)).transpose();
        Ok(Secrets {
            api_key: given("--api-key", &self.api_key)?,
            app_token: given("--app-token", &self.app_token)?,
            bot_token: given("--bot-token", &self.bot_token)?,
        })
    }

    /// What the flags say, all of it.
    fn without_asking(&self, language: Language, secrets: Secrets) -> Result<Answers, Failure> {
        let Secrets { api_key, app_token, bot_token } = secrets;
        let named = self.model.as_deref().ok_or_else(|| {
            Failure::new("there is no terminal to ask which model answers")
                .hint("say it with `--model`, as in `--model sim`")
        })?;
        let wants_slack = app_token.is_some() || bot_token.is_some();
        let slack = match self.front {
            Some(FrontChoice::Console) if wants_slack => {
                return Err(Failure::new("the console has no use for Slack's tokens")
                    .hint("leave them out, or say `--front slack`"));
            }
            Some(FrontChoice::Slack) => true,
            _ => wants_slack,
        };
        let slack = slack.then_some(SlackAnswers { app_token, bot_token });
        Answers { language, model: named.parse()?, api_key, slack }.checked()
    }
}

impl Answers {
    /// The same, where it makes sense.
    fn checked(self) -> Result<Answers, Failure> {
        if self.api_key.is_some() && self.model.provider != Provider::AnthropicApi {
            return Err(Failure::new(format!("`{}` has no use for Anthropic's key", self.model.provider.name()))
                .hint("leave `--api-key` out, or say `--model anthropic-api`"));
        }
        for (kind, given) in self.tokens() {
            given.check(kind)?;
        }
        Ok(self)
    }

    fn tokens(&self) -> impl Iterator<Item = (Kind, &SecretGiven)> {
        let slack = self.slack.iter();
        let tokens =
            slack.flat_map(|slack| [(Kind::App, slack.app_token.as_ref()), (Kind::Bot, slack.bot_token.as_ref())]);
        tokens.filter_map(|(kind, given)| Some((kind, given?)))
    }

    /// The variables that have to be set where the gateway runs.
    fn variables(&self) -> Vec<String> {
        let key = match self.model.provider {
            Provider::AnthropicApi => Some((self.api_key.as_ref(), "ANTHROPIC_API_KEY")),
            Provider::OpenAi => Some((None, "OPENAI_API_KEY")),
            Provider::ClaudeCli | Provider::Sim => None,
        };
        let tokens = self.slack.iter().flat_map(|slack| {
            [(slack.bot_token.as_ref(), Kind::Bot.variable()), (slack.app_token.as_ref(), Kind::App.variable())]
        });
        let named = key.into_iter().chain(tokens).filter_map(|(given, variable)| match given {
            None => Some(variable.to_owned()),
            Some(SecretGiven::Env(name)) => Some(name.clone()),
            Some(SecretGiven::Command(_) | SecretGiven::File(_) | SecretGiven::Literal(_)) => None,
        });
        named.filter(|name| super::arguments::variable(name).is_none()).collect()
    }
}

/// What was not asked for stays as it is.
fn write(root: &mut Object, answers: &Answers) -> Result<(), EditError> {
    root.set("language", answers.language.tag());
    root.set("model", answers.model.to_string().as_str());
    if let Some(key) = &answers.api_key {
        root.set("apiKey", key.json());
    }
    for (kind, given) in answers.tokens() {
        root.object_at(&["slack"])?.set(kind.key(), given.json());
    }
    Ok(())
}

/// The manifest, and what to do with it.
fn tell_of_the_app(messages: &Messages) -> Result<(), Failure> {
    print_json(&app::manifest())?;
    note(format_args!("\n{}\n", messages.manifest_steps(app::CONNECT)));
    Ok(())
}
