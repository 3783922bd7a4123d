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
use unicode_width::UnicodeWidthStr;

use super::{
    super::{
        arguments::variable,
        output::{columns, note, unbroken},
    },
    Address, Answers, FrontChoice, Given, InitCommand, SlackAnswers, Tokens,
    given::{Kind, SecretGiven},
    is_another, key_variable, needs_no_key, tell_of_the_app,
    terminal::Found,
};
use crate::{
    config::Config,
    messages::{InitExplanation, InitQuestion, InitWord, Messages},
};

/// The most columns of an answer that is shown in its question.
const MAX_USUAL: usize = 20;

const PROVIDERS: [Provider; 4] = [Provider::AnthropicApi, Provider::OpenAi, Provider::ClaudeCli, Provider::Sim];

/// A person at a terminal.
struct Person<'a> {
    messages: Messages,
    terminal: Found,
    /// What the home has already; Enter keeps it.
    before: &'a Config,
}

/// Asks for what no flag gives.
pub(super) fn ask(command: &InitCommand, given: Given, before: &Config) -> Result<Answers, Failure> {
    let terminal = Found::watched()?;
    let language = command.language.map_or_else(|| ask_language(&terminal, before.language), Ok)?;
    let person = Person { messages: Messages::new(language), terminal, before };
    let (model, base_url) = match &command.model {
        Some(named) => (named.parse()?, given.base_url),
        None => person.model(given.base_url)?,
    };
    let api_key = match given.api_key {
        Some(key) => Some(key),
        None => person.key(model.provider, base_url.as_ref())?,
    };
    let has_tokens = given.app_token.is_some() || given.bot_token.is_some();
    let front = match command.front {
        Some(front) => front,
        None if has_tokens => FrontChoice::Slack,
        None => {
            let fronts = ["slack", "console"].map(|name| person.messages.init_front(name));
            let question = person.messages.init_question(InitQuestion::Front);
            match person.choose(&question, &fronts, usize::from(person.talks_here()))? {
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

/// Asks in both languages, since the language is not known yet; that of the home comes first.
fn ask_language(terminal: &Found, before: Language) -> Result<Language, Failure> {
    let mut languages = [(Language::English, "English"), (Language::TraditionalChinese, "繁體中文")];
    languages.sort_by_key(|(language, _)| *language != before);
    let chosen = choose(terminal, "Language / 語言", &languages.map(|(_, name)| name.to_owned()), 0)?;
    Ok(languages[chosen].0)
}

/// Asks to choose one of the answers; Enter takes the usual one.
fn choose(terminal: &Found, question: &str, answers: &[String], usual: usize) -> Result<usize, Failure> {
    let theme = ColorfulTheme::default();
    let asked = Select::with_theme(&theme).with_prompt(question).items(answers).default(usual);
    asked.interact().map_err(|error| unanswered(terminal, error))
}

impl Person<'_> {
    fn choose(&self, question: &str, answers: &[String], usual: usize) -> Result<usize, Failure> {
        choose(&self.terminal, question, answers, usual)
    }

    /// The model of the home, if it has been set up.
    fn model_before(&self) -> Option<ModelSpec> {
        match &self.before.model {
            Some(model) => model.parse().ok(),
            None => {
                self.before.is_set_up().then_some(ModelSpec { provider: Provider::ClaudeCli, name: None, window: None })
            }
        }
    }

    /// The address that the home has for this provider.
    fn address_before(&self, provider: Provider) -> Option<&str> {
        self.before.base_url.as_deref().filter(|_| self.before.whose() == provider)
    }

    /// Whether people talk in the terminal, as far as the home says.
    fn talks_here(&self) -> bool {
        self.before.model.is_some() && !self.before.names_slack && !Tokens::of(&self.before.slack).are_any()
    }

    /// Asks for the model and its address.
    fn model(&self, base_url: Option<Address>) -> Result<(ModelSpec, Option<Address>), Failure> {
        let names = PROVIDERS.map(|provider| self.messages.init_provider(provider.name()));
        let before = self.model_before();
        let provider = match &base_url {
            // An address of one's own is never that of Anthropic.
            Some(_) => Provider::OpenAi,
            None => {
                let is_usual = |provider: &Provider| before.as_ref().is_some_and(|before| before.provider == *provider);
                let usual = PROVIDERS.iter().position(is_usual).unwrap_or(0);
                PROVIDERS[self.choose(&self.messages.init_question(InitQuestion::Model), &names, usual)?]
            }
        };
        let base_url = match base_url {
            None if provider == Provider::OpenAi && variable("OPENAI_BASE_URL").is_none() => self.address()?,
            given => given,
        };
        let is_elsewhere =
            base_url.is_some() || (provider == Provider::OpenAi && variable("OPENAI_BASE_URL").is_some());
        let is_moved = is_another(base_url.as_ref(), provider, self.address_before(provider));
        let kept = before.filter(|before| before.provider == provider && !is_moved).and_then(|before| before.name);
        let name = match (provider.default_model(), is_elsewhere) {
            (None, _) => kept.clone(),
            // Another server has other models.
            (Some(usual), true) => {
                let typed = base_url.as_ref().map(|Address(url)| url.trim_end_matches('/'));
                let is_own = typed.is_some() && typed == provider.own_address();
                let offered = kept.as_deref().or(is_own.then_some(usual));
                Some(self.text(InitQuestion::Name, offered, |text| match text.trim() {
                    "" => Err(self.messages.init_word(InitWord::Needed)),
                    _ => Ok(()),
                })?)
            }
            (Some(usual), false) => {
                Some(self.text(InitQuestion::Name, Some(kept.as_deref().unwrap_or(usual)), |_| Ok(()))?)
            }
        };
        // The default need not be named, unless the home has pinned it.
        let is_usual = |name: &String| Some(name.as_str()) == provider.default_model() && !is_elsewhere;
        let name = name.filter(|name| !is_usual(name) || kept.as_ref() == Some(name));
        Ok((ModelSpec { provider, name, window: None }, base_url))
    }

    /// Asks for the address of a server; `None` for OpenAI itself.
    fn address(&self) -> Result<Option<Address>, Failure> {
        let before = self.address_before(Provider::OpenAi);
        match before {
            Some(before) => self.explain(InitExplanation::KeptAddress, before),
            None => self.explain(InitExplanation::Address, ""),
        }
        let typed = self.text(InitQuestion::Address, Some(before.unwrap_or_default()), |text| {
            let is_one = text.trim().is_empty() || Address::read(text).is_ok();
            if is_one { Ok(()) } else { Err(self.messages.init_word(InitWord::NoAddress)) }
        })?;
        Address::read(&typed).map(Some).or_else(|error| if typed.is_empty() { Ok(None) } else { Err(error) })
    }

    /// Asks for the key of the model at this address; `None` where the address stays as it is.
    fn key(&self, provider: Provider, base_url: Option<&Address>) -> Result<Option<SecretGiven>, Failure> {
        let Some(name) = key_variable(provider).filter(|name| variable(name).is_none()) else { return Ok(None) };
        let before = self.address_before(provider);
        let is_same = self.before.whose() == provider && !is_another(base_url, provider, before);
        let is_kept = is_same && self.before.api_key.is_some();
        let is_elsewhere = base_url.is_some() || before.is_some();
        let explanation = match (is_kept, needs_no_key(provider, is_elsewhere)) {
            (true, _) => InitExplanation::Kept,
            (false, true) => InitExplanation::OwnKey,
            (false, false) => InitExplanation::Key,
        };
        self.explain(explanation, name);
        self.secret(InitQuestion::Key, is_kept, |_| Ok(()))
    }

    fn token(&self, given: Option<SecretGiven>, kind: Kind) -> Result<Option<SecretGiven>, Failure> {
        if given.is_some() || variable(kind.variable()).is_some() {
            return Ok(given);
        }
        let slack = &self.before.slack;
        let (question, explanation, before) = match kind {
            Kind::App => (InitQuestion::AppToken, InitExplanation::AppToken, &slack.app_token),
            Kind::Bot => (InitQuestion::BotToken, InitExplanation::BotToken, &slack.bot_token),
        };
        match before {
            Some(_) => self.explain(InitExplanation::KeptToken, kind.begins()),
            None => self.explain(explanation, kind.variable()),
        }
        self.secret(question, before.is_some(), |text| {
            match text.is_empty() || kind.check(&SecretString::from(text)).is_ok() {
                true => Ok(()),
                false => Err(self.messages.init_wrong_kind(kind.begins())),
            }
        })
    }

    /// Prints the explanation of a question, with the variable that can be set instead, how a token begins, or what Enter
    /// takes.
    fn explain(&self, explanation: InitExplanation, named: &str) {
        let told = self.messages.init_explanation(explanation, named);
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
        let is_long = |usual: &str| usual.width() > MAX_USUAL;
        if let (InitQuestion::Name, Some(usual)) = (question, usual.filter(|usual| is_long(usual))) {
            self.explain(InitExplanation::LongName, usual);
        }
        let mut asked = Input::<String>::with_theme(&theme).with_prompt(self.messages.init_question(question));
        asked = match usual {
            Some("") => asked.allow_empty(true),
            // What may be longer than a line is shown by the explanation.
            Some(usual) => {
                let is_shown = !matches!(question, InitQuestion::Address) && !is_long(usual);
                asked.default(usual.to_owned()).show_default(is_shown)
            }
            // Empty input is allowed here, so that the validation can say what is missing instead of just asking again.
            None => asked.allow_empty(true),
        };
        let asked = asked.validate_with(|text: &String| fits(text));
        let typed = asked.interact_text().map_err(|error| unanswered(&self.terminal, error))?;
        Ok(typed.trim().to_owned())
    }

    /// Asks for a secret without showing it; `None` if nothing is typed, which may keep the one that the home has.
    fn secret(
        &self,
        question: InitQuestion,
        is_kept: bool,
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
        let word = self.messages.init_word(match (typed.is_empty(), is_kept) {
            (false, _) => InitWord::Taken,
            (true, false) => InitWord::LeftOut,
            (true, true) => InitWord::Kept,
        });
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
