//! What is asked of a person at a terminal.

use dialoguer::{Password, Select, theme::ColorfulTheme};
use pmk_core::Language;
use pmk_models::{ModelSpec, Provider};
use pmk_system::error::Failure;
use secrecy::SecretString;

use super::{
    super::arguments::variable,
    Answers, FrontChoice, InitCommand, Secrets, SlackAnswers,
    given::{Kind, SecretGiven},
    tell_of_the_app,
};
use crate::messages::{InitQuestion, Messages};

const PROVIDERS: [Provider; 4] = [Provider::AnthropicApi, Provider::OpenAi, Provider::ClaudeCli, Provider::Sim];

/// Asks for what no flag says.
pub(super) fn ask(given: &InitCommand, secrets: Secrets) -> Result<Answers, Failure> {
    let language = given.language.map_or_else(ask_language, Ok)?;
    let messages = Messages::new(language);
    let model: ModelSpec = match &given.model {
        Some(named) => named.parse()?,
        None => {
            let names = PROVIDERS.map(|provider| messages.init_provider(provider.name()));
            let chosen = choose(&messages.init_question(InitQuestion::Model), &names)?;
            ModelSpec { provider: PROVIDERS[chosen], name: None, window: None }
        }
    };
    let api_key = match secrets.api_key {
        Some(key) => Some(key),
        None if model.provider == Provider::AnthropicApi && variable("ANTHROPIC_API_KEY").is_none() => {
            secret(&messages.init_question(InitQuestion::Key), |_| Ok(()))?
        }
        None => None,
    };
    let has_tokens = secrets.app_token.is_some() || secrets.bot_token.is_some();
    let front = match given.front {
        Some(front) => front,
        None if has_tokens => FrontChoice::Slack,
        None => {
            let fronts = ["slack", "console"].map(|name| messages.init_front(name));
            match choose(&messages.init_question(InitQuestion::Front), &fronts)? {
                0 => FrontChoice::Slack,
                _ => FrontChoice::Console,
            }
        }
    };
    let slack = match front {
        FrontChoice::Console => None,
        FrontChoice::Slack => {
            tell_of_the_app(&messages)?;
            Some(SlackAnswers {
                bot_token: token(&messages, secrets.bot_token, Kind::Bot)?,
                app_token: token(&messages, secrets.app_token, Kind::App)?,
            })
        }
    };
    Answers { language, model, api_key, slack }.checked()
}

/// In both languages, as nobody knows yet which one it is.
fn ask_language() -> Result<Language, Failure> {
    Ok(match choose("Language / 語言", &["English".to_owned(), "繁體中文".to_owned()])? {
        0 => Language::English,
        _ => Language::TraditionalChinese,
    })
}

/// Which of these.
fn choose(question: &str, answers: &[String]) -> Result<usize, Failure> {
    let theme = ColorfulTheme::default();
    Select::with_theme(&theme).with_prompt(question).items(answers).default(0).interact().map_err(unanswered)
}

fn token(messages: &Messages, given: Option<SecretGiven>, kind: Kind) -> Result<Option<SecretGiven>, Failure> {
    if given.is_some() || variable(kind.variable()).is_some() {
        return Ok(given);
    }
    let question = match kind {
        Kind::App => InitQuestion::AppToken,
        Kind::Bot => InitQuestion::BotToken,
    };
    secret(&messages.init_question(question), |text| match text.is_empty() || text.starts_with(kind.begins()) {
        true => Ok(()),
        false => Err(messages.init_wrong_kind(kind.begins())),
    })
}

/// What nobody sees; nothing where nothing is typed.
fn secret(question: &str, fits: impl Fn(&str) -> Result<(), String>) -> Result<Option<SecretGiven>, Failure> {
    let theme = ColorfulTheme::default();
    let asked = Password::with_theme(&theme)
        .with_prompt(question)
        .allow_empty_password(true)
        .validate_with(|text: &String| fits(text.trim()));
    let typed = asked.interact().map_err(unanswered)?;
    let typed = typed.trim();
    Ok((!typed.is_empty()).then(|| SecretGiven::Literal(SecretString::from(typed.to_owned()))))
}

fn unanswered(error: dialoguer::Error) -> Failure {
    Failure::new(format!("nobody answers: {error}")).hint("every question has a flag: `pmk-host init --help`")
}
