//! `model explain` and `model tokens`: how the gateway classifies a provider's error, and its token estimate of a text.
//! Nothing is sent over the network.

use std::{
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use pmk_models::{
    Action, ErrorClass, ModelError, ModelSpec,
    classify::{Failed, classify},
    windows,
};
use pmk_system::files;
use pmk_system::{
    error::{Failure, OrHint},
    home::{HomeError, HomeLock},
    json,
    lines::Lines,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    arguments::{between, tokens},
    change::record,
    context::{Context, block_on},
    output::{note_failure, print, print_json},
    page::Page,
    text,
};
use crate::store::{Store, StoreError};

#[derive(Debug, Subcommand)]
pub(super) enum ModelCommand {
    /// Explain what a provider's error means and what the gateway would do
    Explain(Explain),
    /// Estimate the token count of a text
    Tokens(Tokens),
    /// Forget what was learned about models: how they count, whether they accept tools; only while no gateway is running
    Forget,
}

/// Forgets the calibrations. A running gateway would store its own again with its next answer.
fn forget(context: &Context) -> Result<(), Failure> {
    let forgotten = block_on(async {
        let place = context.place()?;
        let path = PathBuf::from(place.name());
        let store = Store::open_existing(place)?;
        if let Some(holder) = HomeLock::holder_of(&context.home)? {
            return Err(context.in_use(HomeError::InUse { home: context.home.clone(), holder: Some(holder) }));
        }
        if let Some(owner) = store.host_at_work().await? {
            return Err(StoreError::InUse { path, owner }.into());
        }
        Ok(store.forget_calibrations().await?)
    });
    let forgotten = record(context, "model.forget", &[], forgotten)?;
    if context.json {
        return print_json(&json!({"forgotten": forgotten}));
    }
    let models = match forgotten {
        1 => "1 model counts, and whether it accepts tools".to_owned(),
        more => format!("{more} models count, and whether they accept tools"),
    };
    context.say(&format!("forgot how {models}; the gateway learns again from its next answers"));
    Ok(())
}

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Provider that answered, such as `anthropic-api`, `openai`, `claude-cli`, or any other name
    #[arg(long, value_name = "NAME", required_unless_present = "cases")]
    provider: Option<String>,

    /// HTTP status; omit it if the error came inside a stream
    #[arg(long, value_name = "N", value_parser = between::<u16>(100, 599))]
    status: Option<u16>,

    /// Response body; `-` reads standard input
    #[arg(long, value_name = "FILE", required_unless_present = "cases")]
    body_file: Option<PathBuf>,

    /// Model's context window in tokens; detects silently truncated prompts
    #[arg(long, value_name = "N", value_parser = tokens)]
    window: Option<u64>,

    /// Explain many at once, one per line: `{"id","provider","status","body"}`, and `"window"` if known
    #[arg(long, value_name = "FILE", conflicts_with_all = ["provider", "status", "body_file", "window"])]
    cases: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Tokens {
    /// Show how much of this model's window it takes
    #[arg(long, value_name = "PROVIDER[:NAME]")]
    model: Option<String>,

    /// Text file; `-`, the default, reads standard input
    #[arg(default_value = "-", hide_default_value = true)]
    file: PathBuf,
}

impl ModelCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        match self {
            ModelCommand::Explain(Explain { cases: Some(cases), .. }) => explain_all(&cases, context),
            ModelCommand::Explain(explain) => explain.one(context),
            ModelCommand::Tokens(tokens) => tokens.count(context),
            ModelCommand::Forget => forget(context),
        }
    }
}

/// The meaning of an error, as it is printed.
#[derive(Debug, Serialize)]
struct Verdict {
    class: &'static str,
    observed_tokens: Option<u64>,
    limit_tokens: Option<u64>,
    retry_after_ms: Option<u64>,
    action: Action,
}

impl Verdict {
    fn of(error: &ModelError) -> Self {
        let (observed_tokens, limit_tokens) = match error.class {
            ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } => (observed_tokens, allowed_tokens),
            _ => (None, None),
        };
        let retry_after_ms = error.retry_after().map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        Verdict { class: error.class.name(), observed_tokens, limit_tokens, retry_after_ms, action: error.action() }
    }
}

impl Explain {
    fn one(self, context: &Context) -> Result<(), Failure> {
        let file = self.body_file.unwrap_or_else(|| PathBuf::from("-"));
        // Invalid UTF-8 is replaced, as the gateway does with text from the network.
        let body = String::from_utf8_lossy(&read(&file)?).into_owned();
        let provider = self.provider.unwrap_or_default();
        let failed =
            Failed { provider: &provider, status: self.status, window: self.window, body: &body, ..Failed::default() };
        let error = classify(&failed);
        let verdict = Verdict::of(&error);
        if context.json {
            let mut document = json!(verdict);
            document["message"] = json!(error.to_string());
            return print_json(&document);
        }
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let mut page = Page::new(context.language);
        page.line("class", verdict.class);
        page.line("observed", number(verdict.observed_tokens));
        page.line("limit", number(verdict.limit_tokens));
        page.line("wait", verdict.retry_after_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")));
        let about = page.translated(verdict.action.about());
        let colon = context.language.pick(": ", "：");
        page.line("action", format!("{}{colon}{about}", verdict.action.name()));
        page.tell("message", &text::printable(&error.to_string()));
        print(&page.done())
    }
}

/// One line of a file of cases.
#[derive(Debug)]
struct Case {
    id: Value,
    provider: String,
    status: Option<u16>,
    window: Option<u64>,
    body: Value,
}

impl Case {
    fn parse(line: &[u8]) -> Result<Case, String> {
        let mut case: Map<String, Value> =
            serde_json::from_slice(line).map_err(|_| "it is not a JSON object".to_owned())?;
        if !case.contains_key("id") {
            return Err("`id` is missing".to_owned());
        }
        let mut take = |key| case.remove(key).unwrap_or_default();
        let wrong = |key: &str, value: &Value, wanted| format!("`{key}` is {}, not {wanted}", json::kind(value));
        let id = take("id");
        if !matches!(id, Value::String(_) | Value::Number(_)) {
            return Err(wrong("id", &id, "a string or a number"));
        }
        let provider = match take("provider") {
            Value::String(provider) => provider,
            Value::Null => String::new(),
            other => return Err(wrong("provider", &other, "a string or null")),
        };
        let mut number = |key| match take(key) {
            Value::Null => Ok(None),
            Value::Number(number) => number.as_u64().map(Some).ok_or_else(|| format!("`{key}` is not a whole number")),
            other => Err(wrong(key, &other, "a number or null")),
        };
        let status = number("status")?
            .map(|status| u16::try_from(status).map_err(|_| format!("`status` {status} is not an HTTP status")))
            .transpose()?;
        let window = number("window")?;
        let body = case.remove("body").ok_or("it has no `body`")?;
        Ok(Case { id, provider, status, window, body })
    }

    fn verdict(&self) -> Verdict {
        let body = match &self.body {
            Value::String(body) => body.clone(),
            Value::Null => String::new(),
            body => body.to_string(),
        };
        Verdict::of(&classify(&Failed {
            provider: &self.provider,
            status: self.status,
            window: self.window,
            body: &body,
            ..Failed::default()
        }))
    }
}

/// The answer to a case.
#[derive(Debug, Serialize)]
struct Answered<'a> {
    id: &'a Value,
    #[serde(flatten)]
    verdict: Verdict,
}

fn explain_all(file: &Path, context: &Context) -> Result<(), Failure> {
    let name = name(file);
    let mut bad = 0;
    for (index, line) in Lines::new(BufReader::new(open(file)?)).enumerate() {
        let line = line.map_err(|error| unreadable(&name, &error))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match Case::parse(&line) {
            Ok(case) => {
                let answered = Answered { id: &case.id, verdict: case.verdict() };
                print(&format!("{}\n", json::shown(&answered)))?;
            }
            Err(why) => {
                bad += 1;
                let failure = Failure::new(format!("line {} of {name}: {why}", index + 1));
                note_failure(&failure, context.language, context.json);
            }
        }
    }
    match bad {
        0 => Ok(()),
        bad => Err(Failure::new(format!("{bad} of the lines of {name} could not be answered")).hint(
            r#"a line is `{"id":"a","provider":"openai","status":400,"body":"…"}`; `id` and `body` are required"#,
        )),
    }
}

impl Tokens {
    fn count(self, context: &Context) -> Result<(), Failure> {
        let window = self.model.as_deref().map(window).transpose()?;
        let content = String::from_utf8(read(&self.file)?)
            .map_err(|error| format!("{} is not text: {}", name(&self.file), error.utf8_error()))
            .or_hint("use a UTF-8 file")?;
        let tokens = u64::from(pmk_core::tokens::estimate(&content));
        let chars = content.chars().count();
        if context.json {
            let mut document = json!({"tokens": tokens, "characters": chars, "bytes": content.len()});
            if let Some((spec, window)) = &window {
                document["model"] = json!(spec.to_string());
                document["window"] = json!({"tokens": window.tokens, "known": window.is_known});
            }
            return print_json(&document);
        }
        let mut page = Page::new(context.language).with("", 12);
        page.tell("tokens", &format!("{tokens} (estimate)"));
        page.line("characters", chars);
        page.line("bytes", content.len());
        if let Some((spec, window)) = window {
            let share = tokens as f64 / window.tokens as f64 * 100.0;
            let tokens = window.tokens;
            page.tell(
                "window",
                &match window.is_known {
                    true => format!("{tokens} ({spec}), {share:.1} % of it used"),
                    false => format!("{tokens} ({spec}, assumed), {share:.1} % of it used"),
                },
            );
        }
        print(&page.done())
    }
}

/// Returns the window of a model given as `PROVIDER:NAME`, or by a name that only one provider has.
fn window(model: &str) -> Result<(ModelSpec, windows::Window), Failure> {
    let spec = match windows::provider(model) {
        Some(provider) => ModelSpec { provider, name: Some(model.to_owned()), window: None },
        None => model.parse()?,
    };
    let window = windows::of(&spec);
    Ok((spec, window))
}

fn name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { format!("`{}`", file.display()) }
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::new(format!("{name} cannot be read: {error}"))
}

fn open(file: &Path) -> Result<Box<dyn Read>, Failure> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let opened = files::open(file).map_err(|error| unreadable(&name(file), &error.into()).hint("check the path"))?;
    Ok(Box::new(opened.0))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    open(file)?.read_to_end(&mut content).map_err(|error| unreadable(&name(file), &error))?;
    Ok(content)
}
