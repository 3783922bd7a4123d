//! `init`: creates a gateway.json that `run` accepts. A value given as a flag is not asked for, and without a terminal
//! nothing is.

mod awaited;
mod given;
mod next;
mod questions;
mod terminal;

use std::io::IsTerminal;

use clap::Args;
use pmk_core::Language;
use pmk_models::{ModelSpec, Provider};
use pmk_system::{error::Failure, home};
use serde_json::json;

use super::{
    arguments::variable,
    context::{self, Context},
    doctor,
    layers::LayerArguments,
    output::{note, note_steps, print_json},
    run::FrontChoice,
    tokens::Tokens,
};
use crate::{
    config::{self, Config, EditError, Json, Object},
    diagnostics::doctor::{Access, Finding, Part, State},
    front::slack::{ReplyIn, app},
    messages::Messages,
};

use awaited::Awaited;
use given::{Kind, SecretGiven};

#[derive(Debug, Args)]
pub(super) struct InitCommand {
    /// Language of the gateway [default: the system's]
    #[arg(long, value_name = "zh-TW|en")]
    language: Option<Language>,

    /// Model to use: anthropic-api[:NAME], openai[:NAME], claude-cli[:NAME], sim
    #[arg(long, value_name = "PROVIDER[:NAME]")]
    model: Option<String>,

    /// Where people talk
    #[arg(long)]
    front: Option<FrontChoice>,

    /// Source of the API key for Anthropic, OpenAI or your own server: env:NAME, file:PATH or cmd:COMMAND
    #[arg(long, value_name = "SOURCE")]
    api_key: Option<String>,

    /// Base URL of the model, if not the provider's own: https, or http on this machine
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// Source of Slack's app-level token: env:NAME, file:PATH or cmd:COMMAND
    #[arg(long, value_name = "SOURCE")]
    app_token: Option<String>,

    /// Source of Slack's bot token: env:NAME, file:PATH or cmd:COMMAND
    #[arg(long, value_name = "SOURCE")]
    bot_token: Option<String>,

    /// Skip checks that need the network
    #[arg(long)]
    offline: bool,
}

/// Flags that need validation. They are not validated by clap, whose errors would show secrets that are written out.
struct Given {
    api_key: Option<SecretGiven>,
    base_url: Option<Address>,
    app_token: Option<SecretGiven>,
    bot_token: Option<SecretGiven>,
}

/// The values to be written.
struct Answers {
    language: Language,
    model: ModelSpec,
    api_key: Option<SecretGiven>,
    base_url: Option<Address>,
    slack: Option<SlackAnswers>,
    /// Whether people are to talk in the terminal although Slack's tokens may be set.
    is_console: bool,
}

struct SlackAnswers {
    app_token: Option<SecretGiven>,
    bot_token: Option<SecretGiven>,
}

impl InitCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        // A file that cannot be read is not overwritten.
        let before = context.config()?;
        let store = store_to_write(context)?;
        let is_asked = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !context.json;
        let answers = if is_asked {
            questions::ask(&self, self.given()?, &before)?
        } else {
            self.without_asking(self.language.unwrap_or(context.language), before.model.as_deref(), self.given()?)?
        };
        let messages = Messages::new(answers.language);
        let removed = config::edit(&context.home, |root| write(root, &answers, store))
            .map_err(|error: EditError| Failure::new(&error).hint(error.hint()))?;
        let (config, _) = Config::load(&context.home)?;
        let awaited = Awaited::by(context, &answers, &config);
        let path = home::config_file(&context.home);
        if context.json {
            let findings = examine(context, &answers, &config, awaited.clone(), self.offline, Language::English)?;
            let manifest = answers.slack.is_some().then(|| app::manifest(&messages));
            let next = next::after(context, &answers, &config, &findings);
            let note = next.note(&Messages::new(Language::English));
            return print_json(&json!({
                "path": path, "variables": awaited.variables(), "credentials": awaited.credentials(),
                "manifest": manifest, "findings": findings, "next": next.command(), "note": note,
            }));
        }
        if answers.slack.is_some() && !is_asked {
            tell_of_the_app(&messages)?;
        }
        // Only the manifest goes to standard output, so that it can be redirected to a file. These notes come before
        // the checks, which take time.
        note(messages.init_written(&path.display().to_string()));
        match removed {
            Some(Removed::Provider(provider)) => note(messages.init_parted(provider.name())),
            Some(Removed::Key) => note(messages.init_moved()),
            None => {}
        }
        awaited.variables().iter().for_each(|name| note(messages.init_variable(name)));
        awaited.credentials().iter().for_each(|name| note(messages.init_credential(name)));
        if answers.passes_over_slack(&config) {
            note(messages.init_slack_stays());
        }
        let findings = examine(context, &answers, &config, awaited, self.offline, answers.language)?;
        note(doctor::page(findings.iter().filter(|finding| is_told(finding)), answers.language).trim_end());
        let next = next::after(context, &answers, &config, &findings).said(&messages);
        note(if doctor::is_well(&findings) { messages.init_next(&next) } else { messages.init_mend(&next) });
        Ok(())
    }

    fn given(&self) -> Result<Given, Failure> {
        let given =
            |flag: &str, text: &Option<String>| text.as_deref().map(|text| SecretGiven::read(flag, text)).transpose();
        Ok(Given {
            api_key: given("--api-key", &self.api_key)?,
            base_url: self.base_url.as_deref().map(Address::read).transpose()?,
            app_token: given("--app-token", &self.app_token)?,
            bot_token: given("--bot-token", &self.bot_token)?,
        })
    }

    /// Returns the answers if all come from flags. `model` is the one that the home has already.
    fn without_asking(&self, language: Language, model: Option<&str>, given: Given) -> Result<Answers, Failure> {
        let Given { api_key, base_url, app_token, bot_token } = given;
        let named = self.model.as_deref().or(model).ok_or_else(|| {
            Failure::new("no model is set, and there is no terminal to ask for one")
                .hint("set it with `--model`, for example `--model sim`")
        })?;
        let wants_slack = app_token.is_some() || bot_token.is_some();
        let slack = match self.front {
            Some(FrontChoice::Console) if wants_slack => {
                return Err(
                    Failure::new("the console does not use Slack tokens").hint("omit them, or use `--front slack`")
                );
            }
            Some(FrontChoice::Slack) => true,
            _ => wants_slack,
        };
        let slack = slack.then_some(SlackAnswers { app_token, bot_token });
        let is_console = self.front == Some(FrontChoice::Console);
        Answers { language, model: named.parse()?, api_key, base_url, slack, is_console }.checked()
    }
}

impl Answers {
    /// Returns the answers if they are valid.
    fn checked(self) -> Result<Answers, Failure> {
        let provider = self.model.provider;
        if key_variable(provider).is_none() && (self.api_key.is_some() || self.base_url.is_some()) {
            return Err(Failure::new(format!("`{}` does not use a key or an address", provider.name()))
                .hint("omit `--api-key` and `--base-url`, or use `--model anthropic-api` or `--model openai:NAME`"));
        }
        if provider == Provider::OpenAi && self.base_url.is_some() && self.model.name.is_none() {
            return Err(Failure::new("the model of the server at that address is not known")
                .hint("add the name after a colon, for example `--model openai:llama3.2`"));
        }
        for (kind, given) in self.tokens() {
            given.check(kind)?;
        }
        Ok(self)
    }

    /// Whether a gateway that is not told its front would go to Slack, which was not wanted.
    fn passes_over_slack(&self, config: &Config) -> bool {
        self.is_console && Tokens::of(&config.slack).are_any()
    }

    fn tokens(&self) -> impl Iterator<Item = (Kind, &SecretGiven)> {
        let slack = self.slack.iter();
        let tokens =
            slack.flat_map(|slack| [(Kind::App, slack.app_token.as_ref()), (Kind::Bot, slack.bot_token.as_ref())]);
        tokens.filter_map(|(kind, given)| Some((kind, given?)))
    }
}

/// What was removed from the file, because it belongs to another server than the one that answers now.
enum Removed {
    /// The key or the address of this provider.
    Provider(Provider),
    /// The key of another address.
    Key,
}

/// Writes the answers; everything else in the file stays as it is. A key is never kept for a provider or an address that
/// it does not belong to: returns what was removed.
fn write(root: &mut Object, answers: &Answers, store: Option<&str>) -> Result<Option<Removed>, EditError> {
    let model = answers.model.to_string();
    let before = config::whose(root.get("model").and_then(Json::as_str));
    let removed = if before != config::whose(Some(&model)) {
        let had_key = root.remove("apiKey");
        (root.remove("baseUrl") || had_key).then_some(Removed::Provider(before))
    } else {
        let address = root.get("baseUrl").and_then(Json::as_str);
        let is_moved = is_another(answers.base_url.as_ref(), answers.model.provider, address);
        // A key that was given replaces it.
        (is_moved && answers.api_key.is_none() && root.remove("apiKey")).then_some(Removed::Key)
    };
    root.set("language", answers.language.tag());
    root.set("model", model.as_str());
    if let Some(store) = store {
        root.set("store", store);
    }
    if let Some(key) = &answers.api_key {
        root.set("apiKey", key.json());
    }
    if let Some(Address(url)) = &answers.base_url {
        root.set("baseUrl", url.as_str());
    }
    if answers.slack.is_some() && root.get("slack").is_none() {
        // Only for a new `slack` section, where nobody is used to another setting.
        root.object_at(&["slack"])?.set("replyIn", ReplyIn::Thread.name());
    }
    for (kind, given) in answers.tokens() {
        root.object_at(&["slack"])?.set(kind.key(), given.json());
    }
    Ok(removed)
}

/// Returns the store to write, which is that of `--store`. What the environment names stays there.
fn store_to_write(context: &Context) -> Result<Option<&str>, Failure> {
    let Some(store) = context.store.as_deref() else { return Ok(None) };
    if store != config::SQLITE && context::parsed(store)?.has_password() {
        return Err(Failure::new("`--store` contains a password, which would be written to gateway.json")
            .hint("omit it, and set `storePassword` in gateway.json, or use PGPASSFILE"));
    }
    Ok(Some(store))
}

/// The base URL of a model.
struct Address(String);

impl Address {
    /// Parses the URL by the rules of gateway.json.
    fn read(text: &str) -> Result<Address, Failure> {
        pmk_models::http::base_url("--base-url", text, true).map_err(|error| {
            Failure::new(error).hint(
                "use an `https://` address, or an `http://` address of this machine; for a server on another machine \
                 that needs no key, set OPENAI_BASE_URL instead",
            )
        })?;
        Ok(Address(text.trim().to_owned()))
    }
}

/// Whether a model was given an address, and not the one that it had before: that of the environment, of the file, or else
/// the provider's own.
fn is_another(given: Option<&Address>, provider: Provider, before: Option<&str>) -> bool {
    let set = match provider {
        Provider::AnthropicApi => variable("ANTHROPIC_BASE_URL"),
        Provider::OpenAi => variable("OPENAI_BASE_URL"),
        Provider::ClaudeCli | Provider::Sim => None,
    };
    let Some(Address(given)) = given else { return false };
    let is_same = |url: &str| url.trim().trim_end_matches('/') == given.trim_end_matches('/');
    match (set.as_deref(), before) {
        (None, None) => !provider.own_address().is_some_and(is_same),
        (set, before) => !set.into_iter().chain(before).any(is_same),
    }
}

/// The environment variable for a provider's key.
fn key_variable(provider: Provider) -> Option<&'static str> {
    match provider {
        Provider::AnthropicApi => Some("ANTHROPIC_API_KEY"),
        Provider::OpenAi => Some("OPENAI_API_KEY"),
        Provider::ClaudeCli | Provider::Sim => None,
    }
}

/// Whether no key is needed: a server of one's own may not require one.
fn needs_no_key(provider: Provider, is_elsewhere: bool) -> bool {
    provider == Provider::OpenAi && (is_elsewhere || variable("OPENAI_BASE_URL").is_some())
}

/// Returns the doctor's findings, without what cannot be checked before variables are set.
fn examine(
    context: &Context,
    answers: &Answers,
    config: &Config,
    awaited: Awaited,
    offline: bool,
    language: Language,
) -> Result<Vec<Finding>, Failure> {
    let mut subject = doctor::subject(context, LayerArguments::default(), None, offline);
    if let Some(parts) = &mut subject.parts {
        if !awaited.by_model.is_empty() {
            parts.model = Part::Awaits(awaited.by_model);
        }
        if !awaited.by_slack.is_empty() {
            parts.slack = Part::Awaits(awaited.by_slack);
        } else if answers.is_console || (answers.slack.is_none() && !Tokens::of(&config.slack).are_any()) {
            parts.slack = Part::Get(Box::new(|| Ok(Access::Console)));
        }
    }
    doctor::examine(subject, Messages::new(language))
}

/// Whether the finding concerns the given answers, or is a problem.
fn is_told(finding: &Finding) -> bool {
    let is_given = matches!(finding.check, "gateway.json" | "tls" | "model") || finding.check.starts_with("slack");
    is_given || matches!(finding.state, State::Odd | State::Bad)
}

/// Prints the manifest, and what to do with it.
fn tell_of_the_app(messages: &Messages) -> Result<(), Failure> {
    print_json(&app::manifest(messages))?;
    note_steps(&format!("\n{}\n", messages.manifest_steps(app::CONNECT)));
    Ok(())
}
