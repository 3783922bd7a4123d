//! Extracts typed codes, text and numbers from a body, however it is wrapped.
//!
//! Proxies put a provider's JSON into a text, that into JSON again, and an SDK puts a status in front. So texts are
//! searched for JSON and JSON for texts, down to [`MAX_DEPTH`]. Text of people or models (`content`, `messages` …) is
//! never read.

use std::{borrow::Cow, sync::LazyLock, time::Duration};

use regex::Regex;
use serde_json::{Deserializer, Map, Value};

use super::{wait, words::pattern};

/// How deeply JSON in a text in JSON may be nested.
pub(super) const MAX_DEPTH: usize = 8;
/// The maximum number of JSON documents in one text: an event stream, a program's lines.
const MAX_DOCUMENTS: usize = 64;
/// A longer value of `type` or `code` is taken for a text.
const MAX_CODE_CHARS: usize = 64;

/// Keys of typed codes.
const CODES: &[&str] = &[
    "__type",
    "code",
    "done_reason",
    "error_code",
    "error_type",
    "errorcode",
    "errortype",
    "finish_reason",
    "finishreason",
    "kind",
    "reason",
    "status",
    "stop_reason",
    "stopreason",
    "terminal_reason",
    "type",
];

/// Keys of the provider's texts.
const WORDS: &[&str] = &[
    "body",
    "cause",
    "data",
    "description",
    "detail",
    "details",
    "err",
    "error",
    "error_description",
    "error_message",
    "error_msg",
    "errormessage",
    "errors",
    "explanation",
    // Where a field is that pydantic refuses.
    "loc",
    "message",
    "msg",
    "raw",
    "response",
    "responsebody",
    "status_msg",
    "title",
];

/// Keys of the status, as a number.
const STATUSES: &[&str] =
    &["api_error_status", "code", "error_status", "http_status", "status", "status_code", "statuscode"];

/// Keys of text by people and models.
const NOT_OURS: &[&str] = &[
    "arguments",
    "candidates",
    "content",
    "input",
    "messages",
    "output",
    "parameters",
    "partial_json",
    "prompt",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "request",
    "text",
    "thinking",
    "tools",
];

/// Everything that a body says.
#[derive(Debug, Default)]
pub(super) struct ErrorBody {
    /// Typed codes, in lower case.
    pub codes: Vec<String>,
    /// The provider's texts, one per line.
    pub words: String,
    /// A status in the body.
    pub status: Option<u16>,
    /// The wait in a field.
    pub retry_after: Option<Duration>,
    /// Token counts in fields; the texts may contain others.
    pub observed_tokens: Option<u64>,
    pub allowed_tokens: Option<u64>,
    pub prompt_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// The model's name.
    pub model: Option<String>,
    /// Whether there was JSON.
    pub is_json: bool,
    /// Sentences under keys that are not known to hold the provider's texts.
    under_other_keys: Vec<String>,
    /// Whether the body itself says that it is an error.
    says_error: bool,
    /// Whether it has the fields of an answer.
    has_answer: bool,
}

impl ErrorBody {
    /// Reads a body.
    pub fn read(body: &str) -> ErrorBody {
        let mut said = ErrorBody::default();
        said.text(body, 0);
        said
    }

    /// Reads the body of a request that was refused: if no key is known, any may have the words.
    pub fn of_refusal(body: &str) -> ErrorBody {
        let mut said = ErrorBody::read(body);
        if said.words.is_empty() {
            std::mem::take(&mut said.under_other_keys).iter().for_each(|text| said.add_words(text));
        }
        said
    }

    /// The texts that people are shown. If no key is known, any may have them.
    pub fn told(&self) -> Cow<'_, str> {
        if self.words.is_empty() { self.under_other_keys.join("\n").into() } else { self.words.as_str().into() }
    }

    /// Whether the texts are those of an error, and not of an answer or a person.
    pub fn is_error(&self) -> bool {
        self.says_error || (self.is_json && !self.has_answer && !self.words.is_empty())
    }

    fn text(&mut self, text: &str, depth: usize) {
        let text = unmarked(text.trim());
        let text = text.trim();
        let Some(start) = text.find('{').filter(|_| depth <= MAX_DEPTH) else { return self.add_words(text) };
        let mut documents = Deserializer::from_str(&text[start..]).into_iter::<Value>().take(MAX_DOCUMENTS);
        let Some(Ok(first)) = documents.next() else { return self.add_words(text) };
        self.is_json = true;
        self.add_words(&text[..start]);
        self.value(&first, depth + 1);
        documents.map_while(Result::ok).for_each(|document| self.value(&document, depth + 1));
    }

    fn add_words(&mut self, text: &str) {
        if !text.contains(char::is_alphanumeric) {
            return;
        }
        if self.words.is_empty() {
            self.status = self.status.or_else(|| leading_status(text));
        }
        if let Some(code) = EXCEPTION.captures(text) {
            self.codes.push(code[1].to_lowercase());
        }
        self.says_error |= LABEL.is_match(text);
        if !self.words.is_empty() {
            self.words.push('\n');
        }
        self.words.push_str(text);
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(fields) => {
                // In `claude`'s output, `result` is the error's text where `is_error` is set, otherwise the model's
                // answer.
                if fields.get("is_error") == Some(&Value::Bool(true)) {
                    self.says_error = true;
                    self.field("message", fields.get("result").unwrap_or(&Value::Null), depth);
                }
                fields.iter().for_each(|(key, value)| self.field(&key.to_lowercase(), value, depth));
            }
            Value::Array(values) => values.iter().for_each(|value| self.value(value, depth)),
            _ => {}
        }
    }

    fn field(&mut self, key: &str, value: &Value, depth: usize) {
        if NOT_OURS.contains(&key) {
            self.has_answer |= matches!(key, "candidates" | "content" | "output");
            return;
        }
        if matches!(key, "error" | "errors") && !value.is_null() {
            self.says_error = true;
        }
        match value {
            Value::Object(fields) if key == "usage" => self.usage(fields),
            Value::Object(fields) if matches!(key, "retry_delay" | "retrydelay") => {
                self.field("retry_after", fields.get("seconds").unwrap_or(&Value::Null), depth);
            }
            Value::Object(_) => self.value(value, depth),
            Value::Array(values) => values.iter().for_each(|value| self.field(key, value, depth)),
            Value::String(text) => self.string(key, text, depth),
            Value::Number(number) => {
                if let Some(number) = number.as_f64() {
                    self.number(key, number);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn string(&mut self, key: &str, text: &str, depth: usize) {
        match key {
            "model" => self.model = Some(text.to_owned()),
            // A name, such as `Google AI Studio`.
            "provider" | "provider_name" => {}
            "retry_after" | "retry-after" | "retry_after_seconds" | "retry_delay" | "retrydelay" => {
                self.retry_after = self.retry_after.or_else(|| wait::duration(text));
            }
            // How Google and OpenAI report that the model declined.
            "blockreason" => self.codes.push("content_filter".to_owned()),
            "refusal" if !text.is_empty() => {
                self.codes.push("refusal".to_owned());
                self.text(text, depth);
            }
            _ => {
                let is_code = is_code(text);
                if is_code && (CODES.contains(&key) || key == "error") {
                    self.code(text);
                }
                if WORDS.contains(&key) || (key == "reason" && !is_code) {
                    self.text(text, depth);
                } else if text.contains(char::is_whitespace) || !text.is_ascii() {
                    self.under_other_keys.push(text.to_owned());
                }
            }
        }
    }

    fn code(&mut self, code: &str) {
        // AWS prefixes codes with a namespace.
        let code = code.rsplit('#').next().unwrap_or(code).to_lowercase();
        self.says_error |= code == "error" || code.ends_with("_error") || code.ends_with("exception");
        if let Some(status) = code.parse().ok().and_then(as_status) {
            self.status = self.status.or(Some(status));
        }
        self.codes.push(code);
    }

    fn number(&mut self, key: &str, number: f64) {
        let whole = number as u64;
        match key {
            "retry_after" | "retry-after" | "retry_after_seconds" => {
                self.retry_after = self.retry_after.or_else(|| Duration::try_from_secs_f64(number).ok());
            }
            "retry_after_ms" => {
                self.retry_after = self.retry_after.or_else(|| Duration::try_from_secs_f64(number / 1_000.0).ok());
            }
            // Of llama.cpp.
            "n_prompt_tokens" => self.observed_tokens = Some(whole),
            "n_ctx" => self.allowed_tokens = Some(whole),
            _ if STATUSES.contains(&key) => match u16::try_from(whole).ok().and_then(as_status) {
                Some(status) => {
                    self.says_error = true;
                    self.status = self.status.or(Some(status));
                }
                None => self.codes.push(whole.to_string()),
            },
            _ => {}
        }
    }

    fn usage(&mut self, fields: &Map<String, Value>) {
        let sum = |names: &[&str]| {
            let counts = names.iter().filter_map(|name| fields.get(*name).and_then(Value::as_u64));
            counts.reduce(u64::saturating_add)
        };
        let prompt = &["prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        self.prompt_tokens = sum(prompt).or(self.prompt_tokens);
        self.output_tokens = sum(&["completion_tokens", "output_tokens"]).or(self.output_tokens);
    }
}

/// Whether it is a single word, as codes are.
fn is_code(text: &str) -> bool {
    let of_a_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '#' | ':');
    !text.is_empty() && text.len() <= MAX_CODE_CHARS && text.chars().all(of_a_code)
}

fn as_status(number: u16) -> Option<u16> {
    (400..600).contains(&number).then_some(number)
}

/// The status that a text begins with: `400 {…}`, `API Error: 529 …`, `Azure OpenAI API error (502): …`.
fn leading_status(text: &str) -> Option<u16> {
    LEADING_STATUS.captures(text)?[1].parse().ok()
}

/// The text of an HTML page: its title, or everything between its tags. A text that only begins with `<` is not a page;
/// one that is mistaken for a page loses only what looks like a tag.
fn unmarked(text: &str) -> Cow<'_, str> {
    if !PAGE.is_match(text) {
        return Cow::Borrowed(text);
    }
    match TITLE.captures(text).and_then(|title| title.get(1)) {
        Some(title) => Cow::Borrowed(title.as_str()),
        None => TAGS.replace_all(text, " "),
    }
}

static PAGE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^<(?:!doctype\b|!--|\?xml\b|[a-z][\w:.-]*(?:\s[^<>]*)?/?>)"));

static TAGS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?is)<script\b.*?</script>|<style\b.*?</style>|<!--.*?-->|<[^<>]*>"));

static TITLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)<[Tt][Ii][Tt][Ll][Ee][^>]*>(.{0,300}?)</"));

static LEADING_STATUS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\W*(?:[\w .,-]{0,40}\b(?:[Ee]rror|HTTP|http|[Ss]tatus|[Cc]ode)\b\W{0,3})?([45]\d\d)(?:[\s):,.>\]-]|$)")
});

/// The exception class that a text begins with.
static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:\w+\.)*(\w+(?:Exception|Error))\b"));

/// Prefixes that only errors have.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\W*(?:[45]\d\d\b|(?:[\w.'-]+ ){0,4}\w*(?:[Ee]rror|ERROR|[Ee]xception|[Rr]ejected|[Ff]ailed|[Ii]nvalid request|HTTP \d+|status code|错误|錯誤)\b[^.\n]{0,30}?[:：])",
    )
});
