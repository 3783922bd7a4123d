//! Asks a person at a terminal: an explanation on lines of its own, then a short question, which fits on one line of a
//! terminal with forty columns.

use std::io;

use dialoguer::{
    Input, Password, Select,
    console::Term,
    theme::{ColorfulTheme, Theme},
};
use pmk_core::Language;
use pmk_models::{ModelSpec, Provider};
use pmk_system::error::Failure;
use secrecy::SecretString;

use super::{
    super::{
        arguments::variable,
        output::{columns, note, unbroken},
    },
    Address, Answers, FrontChoice, Given, InitCommand, SlackAnswers,
    given::{Kind, SecretGiven},
    key_variable, needs_no_key, tell_of_the_app,
    terminal::Found,
};
use crate::{
    language,
    messages::{InitExplanation, InitQuestion, InitWord, Messages},
};

const PROVIDERS: [Provider; 4] = [Provider::AnthropicApi, Provider::OpenAi, Provider::ClaudeCli, Provider::Sim];

/// A person at a terminal.
struct Person {
    messages: Messages,
    terminal: Found,
}

/// Asks for what no flag gives.
pub(super) fn ask(command: &InitCommand, given: Given) -> Result<Answers, Failure> {
    let terminal = Found::watched()?;
    let language = command.language.map_or_else(|| ask_language(&terminal), Ok)?;
    let person = Person { messages: Messages::new(language), terminal };
    let (model, base_url) = match &command.model {
        Some(named) => (named.parse()?, given.base_url),
        None => person.model(given.base_url)?,
    };
    let api_key = match given.api_key {
        Some(key) => Some(key),
        None => person.key(model.provider, base_url.is_some())?,
    };
    let has_tokens = given.app_token.is_some() || given.bot_token.is_some();
    let front = match command.front {
        Some(front) => front,
        None if has_tokens => FrontChoice::Slack,
        None => {
            let fronts = ["slack", "console"].map(|name| person.messages.init_front(name));
            match person.choose(&person.messages.init_question(InitQuestion::Front), &fronts)? {
                0 => FrontChoice::Slack,
                _ => FrontChoice::Console,
            }
        }
    };
    let slack = match front {
        FrontChoice::Console => None,
        FrontChoice::Slack => {
            tell_of_the_app(&person.messages)?;
            Some(SlackAnswers {
                bot_token: person.token(given.bot_token, Kind::Bot)?,
                app_token: person.token(given.app_token, Kind::App)?,
            })
        }
    };
    let is_console = front == FrontChoice::Console;
    Answers { language, model, api_key, base_url, slack, is_console }.checked()
}

/// Asks in both languages, since the language is not known yet; that of the environment comes first.
fn ask_language(terminal: &Found) -> Result<Language, Failure> {
    let mut languages = [(Language::English, "English"), (Language::TraditionalChinese, "繁體中文")];
    languages.sort_by_key(|(language, _)| *language != language::of_environment());
    let chosen = choose(terminal, "Language / 語言", &languages.map(|(_, name)| name.to_owned()))?;
    Ok(languages[chosen].0)
}

/// Asks to choose one of the answers.
fn choose(terminal: &Found, question: &str, answers: &[String]) -> Result<usize, Failure> {
    let theme = ColorfulTheme::default();
    let asked = Select::with_theme(&theme).with_prompt(question).items(answers).default(0);
    asked.interact().map_err(|error| unanswered(terminal, error))
}

impl Person {
    fn choose(&self, question: &str, answers: &[String]) -> Result<usize, Failure> {
        choose(&self.terminal, question, answers)
    }

    /// Asks for the model and its address.
    fn model(&self, base_url: Option<Address>) -> Result<(ModelSpec, Option<Address>), Failure> {
        let names = PROVIDERS.map(|provider| self.messages.init_provider(provider.name()));
        let provider = match &base_url {
            // An address of one's own is never that of Anthropic.
            Some(_) => Provider::OpenAi,
            None => PROVIDERS[self.choose(&self.messages.init_question(InitQuestion::Model), &names)?],
        };
        let base_url = match base_url {
            None if provider == Provider::OpenAi && variable("OPENAI_BASE_URL").is_none() => self.address()?,
            given => given,
        };
        let is_elsewhere =
            base_url.is_some() || (provider == Provider::OpenAi && variable("OPENAI_BASE_URL").is_some());
        let name = match (provider.default_model(), is_elsewhere) {
            (None, _) => None,
            // Another server has other models.
            (Some(_), true) => Some(self.text(InitQuestion::Name, None, |text| match text.trim() {
                "" => Err(self.messages.init_word(InitWord::Needed)),
                _ => Ok(()),
            })?),
            (Some(usual), false) => Some(self.text(InitQuestion::Name, Some(usual), |_| Ok(()))?),
        };
        let name = name.filter(|name| Some(name.as_str()) != provider.default_model() || is_elsewhere);
        Ok((ModelSpec { provider, name, window: None }, base_url))
    }

    /// Asks for the address of a server; `None` for OpenAI itself.
    fn address(&self) -> Result<Option<Address>, Failure> {
        self.explain(InitExplanation::Address, "");
        let typed = self.text(InitQuestion::Address, Some(""), |text| {
            let is_one = text.trim().is_empty() || Address::read(text).is_ok();
            if is_one { Ok(()) } else { Err(self.messages.init_word(InitWord::NoAddress)) }
        })?;
        Address::read(&typed).map(Some).or_else(|error| if typed.is_empty() { Ok(None) } else { Err(error) })
    }

    fn key(&self, provider: Provider, is_elsewhere: bool) -> Result<Option<SecretGiven>, Failure> {
        let Some(name) = key_variable(provider).filter(|name| variable(name).is_none()) else { return Ok(None) };
        let explanation = match needs_no_key(provider, is_elsewhere) {
            true => InitExplanation::OwnKey,
            false => InitExplanation::Key,
        };
        self.explain(explanation, name);
        self.secret(InitQuestion::Key, |_| Ok(()))
    }

    fn token(&self, given: Option<SecretGiven>, kind: Kind) -> Result<Option<SecretGiven>, Failure> {
        if given.is_some() || variable(kind.variable()).is_some() {
            return Ok(given);
        }
        let (question, explanation) = match kind {
            Kind::App => (InitQuestion::AppToken, InitExplanation::AppToken),
            Kind::Bot => (InitQuestion::BotToken, InitExplanation::BotToken),
        };
        self.explain(explanation, kind.variable());
        self.secret(question, |text| match text.is_empty() || kind.check(&SecretString::from(text)).is_ok() {
            true => Ok(()),
            false => Err(self.messages.init_wrong_kind(kind.begins())),
        })
    }

    /// Prints the explanation of a question, with the variable that can be set instead.
    fn explain(&self, explanation: InitExplanation, variable: &str) {
        let told = self.messages.init_explanation(explanation, variable);
        note(unbroken(&told, "", columns(&Term::stderr())));
    }

    /// Asks for a line; Enter accepts the default.
    fn text(
        &self,
        question: InitQuestion,
        usual: Option<&str>,
        fits: impl Fn(&str) -> Result<(), String>,
    ) -> Result<String, Failure> {
        let theme = ColorfulTheme::default();
        let mut asked = Input::<String>::with_theme(&theme).with_prompt(self.messages.init_question(question));
        asked = match usual {
            Some("") => asked.allow_empty(true),
            Some(usual) => asked.default(usual.to_owned()),
            // Empty input is allowed here, so that the validation can say what is missing instead of just asking again.
            None => asked.allow_empty(true),
        };
        let asked = asked.validate_with(|text: &String| fits(text));
        let typed = asked.interact_text().map_err(|error| unanswered(&self.terminal, error))?;
        Ok(typed.trim().to_owned())
    }

    /// Asks for a secret without showing it; `None` if nothing is typed.
    fn secret(
        &self,
        question: InitQuestion,
        fits: impl Fn(&str) -> Result<(), String>,
    ) -> Result<Option<SecretGiven>, Failure> {
        let theme = ColorfulTheme::default();
        let question = self.messages.init_question(question);
        let asked = Password::with_theme(&theme)
            .with_prompt(&question)
            // Its report would show as many stars for nothing as for something.
            .report(false)
            .allow_empty_password(true)
            .validate_with(|text: &String| fits(text.trim()));
        let typed = asked.interact().map_err(|error| unanswered(&self.terminal, error))?;
        let typed = typed.trim();
        let word = self.messages.init_word(if typed.is_empty() { InitWord::LeftOut } else { InitWord::Taken });
        let mut line = String::new();
        if theme.format_input_prompt_selection(&mut line, &question, &word).is_ok() {
            note(line);
        }
        Ok((!typed.is_empty()).then(|| SecretGiven::Literal(SecretString::from(typed.to_owned()))))
    }
}

/// The failure if the person cancels, or the input has ended.
fn unanswered(terminal: &Found, error: dialoguer::Error) -> Failure {
    let dialoguer::Error::IO(cause) = &error;
    if cause.kind() == io::ErrorKind::Interrupted {
        terminal.leave();
    }
    Failure::new(format!("cannot read an answer: {error}"))
        .hint("every question can be answered with an option: see `pmk-host init --help`")
}
