//! Classifies the errors of all providers.
//!
//! Only the response to a model call is classified here, never text of people or models: prose about context windows is
//! not an overflow. The first rule that applies decides:
//!
//! 1. A typed code or stop reason for an overflow, then one for a refusal. A refusal never leads to another request,
//!    whatever else it mentions.
//! 2. A pattern with more tokens than are allowed, or a single request above the tokens per minute: an overflow
//!    whatever the status, because waiting never helps.
//! 3. Tool calls and results that do not match; a server without tools, or one that takes no images; an unknown model.
//! 4. The status, or the one that a typed code implies: 401, 402, 403, 408, 429, any 5xx.
//! 5. Words about rates, money, credentials, policies.
//! 6. Explicit patterns; status 413.
//! 7. Weak hints, where the status is 400, 413 or 422, or there is none and JSON says that it is an error.
//! 8. An empty answer to a prompt that fills the window: it was cut off silently.
//! 9. Where there is no status: words about load, time, the connection.
//! 10. Status 404: an unknown model, or nothing at that address.
//! 11. A request that was refused for a known reason other than these, then one that was refused for an unknown reason.
//!     No list of words is ever complete, so the two are distinguished.
//!
//! [`Action`](super::Action) says how the gateway reacts to each class.

use std::time::Duration;

use self::{body::ErrorBody, numbers::Named};
use super::{ANSWER_SHARE, Answer, ErrorClass, LEAST_ANSWER_TOKENS, ModelError, Stop, families, foreign};

mod body;
mod codes;
mod faults;
mod numbers;
mod overflow;
mod wait;
mod words;

pub use wait::retry_after;

/// The maximum length of a provider's text that is passed on, in characters.
const MAX_MESSAGE_CHARS: usize = 300;
/// The maximum length that is classified: what follows quotes the request.
const MAX_COMPARED_CHARS: usize = 4_000;
/// A text without status and label is taken for a message up to this length, and for prose above it.
const MAX_BARE_CHARS: usize = 512;
/// A shorter id is part of other words by chance.
const MIN_QUOTED_BYTES: usize = 8;
/// How much of an id is looked for in a refusal, which may end within it.
const MAX_QUOTED_CHARS: usize = 40;
/// Fewer tokens are no limit for answers; an HTTP status is a smaller number.
const MIN_ANSWER_TOKENS: u32 = 1_000;
/// A prompt of at least this percentage of the window fills it.
const FULL_PERCENT: u64 = 99;

/// A failed call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failed<'a> {
    /// The provider's name or its host.
    pub provider: &'a str,
    /// The HTTP status; `None` where the error came inside a stream.
    pub status: Option<u16>,
    /// The wait in the `retry-after` header.
    pub retry_after: Option<Duration>,
    /// The model's window in tokens, if known; otherwise that of the model named in the body, if known.
    pub window: Option<u64>,
    /// The body as received: JSON, or a proxy's version of it.
    pub body: &'a str,
}

/// Classifies a failure.
pub fn classify(failed: &Failed<'_>) -> ModelError {
    let is_refused = failed.status.is_some_and(|status| status >= 400);
    let said = if is_refused { ErrorBody::of_refusal(failed.body) } else { ErrorBody::read(failed.body) };
    let class = Report::new(failed, &said).class();
    ModelError::new(class, shown(failed.status.or(said.status), &said.told()))
}

/// Classifies what was received instead of an answer, with a status that says nothing.
pub(crate) fn in_place_of_an_answer(body: &str) -> ModelError {
    classify(&Failed { body, ..Failed::default() })
}

/// What is said, on one line, in what was received where an answer should be, whatever the key of the words; `None` if
/// nothing is. Half a document may be half of an answer, which is no explanation.
pub(crate) fn words_in_place_of_an_answer(received: &str) -> Option<String> {
    let received = received.trim();
    if received.starts_with(['{', '[']) && !foreign::is_json(received) {
        return None;
    }
    let said = ErrorBody::of_refusal(received);
    (!said.words.is_empty()).then(|| shown(None, &said.words))
}

/// Checks an answer: an empty one to a prompt that fills the window is an overflow that the provider did not report.
///
/// # Errors
/// [`ErrorClass::Overflow`] instead of such an answer.
pub(crate) fn accept(answer: Answer, window: u64) -> Result<Answer, ModelError> {
    let prompt = answer.usage.prompt_tokens();
    let cut = match answer.stop {
        Stop::WindowFull => true,
        Stop::MaxTokens => fills(prompt, window),
        Stop::End | Stop::ToolUse => false,
    };
    if !cut || !answer.blocks.is_empty() {
        return Ok(answer);
    }
    let observed_tokens = (prompt > 0).then_some(prompt);
    let class = ErrorClass::Overflow { observed_tokens, allowed_tokens: None, is_of_request: false };
    Err(ModelError::new(class, format!("no room was left for an answer after a prompt of {prompt} tokens")))
}

/// Whether a server refuses `max_tokens` and asks for `max_completion_tokens` in its place.
pub(crate) fn wants_max_completion_tokens(error: &ModelError) -> bool {
    matches!(error.class, ErrorClass::Other | ErrorClass::Unexplained)
        && words::WANTS_MAX_COMPLETION_TOKENS.is_match(&comparable(&error.message))
}

/// Whether a server refuses to be asked for token counts in a stream. An error of another class is about something else,
/// whatever it quotes.
pub(crate) fn refuses_stream_options(error: &ModelError) -> bool {
    matches!(error.class, ErrorClass::Other | ErrorClass::Unexplained)
        && words::STREAM_OPTIONS.is_match(&comparable(&error.message))
}

/// Whether a server may have refused the ids of calls, which were sent as these: it names the id of a call, or quotes
/// one. Some proxies call it an overflow, because a text is too long, or a failure of their own. An error of another
/// class is about something else.
pub(crate) fn may_refuse_call_ids<'a>(error: &ModelError, mut sent: impl Iterator<Item = &'a str>) -> bool {
    use ErrorClass::{Other, Overflow, Overloaded, Unexplained};
    if !matches!(error.class, Other | Unexplained | Overflow { .. } | Overloaded { .. }) {
        return false;
    }
    let quoted = |id: &str| {
        let id = pmk_core::text::head(id, MAX_QUOTED_CHARS);
        id.len() >= MIN_QUOTED_BYTES && error.message.contains(id)
    };
    words::CALL_ID.is_match(&comparable(&error.message)) || sent.any(quoted)
}

/// Whether the reason that an answer ended with is a refusal.
pub(crate) fn is_refusal(reason: &str) -> bool {
    codes::meaning(reason) == Some(codes::Meaning::Refusal)
}

/// How many tokens a refused request for `asked` tokens of answer may have been allowed to ask for: the largest such
/// number in the refusal, if that may be about the answer.
pub(crate) fn fewer_tokens(error: &ModelError, asked: u32) -> Option<u32> {
    let may_be_about_the_answer = match error.class {
        ErrorClass::Other | ErrorClass::Unexplained => true,
        // What there was too much of is what was asked for, and not the prompt.
        ErrorClass::Overflow { observed_tokens, .. } => observed_tokens == Some(asked.into()),
        _ => false,
    };
    if !may_be_about_the_answer {
        return None;
    }
    numbers::alone(&error.message).filter(|number| (MIN_ANSWER_TOKENS..asked).contains(number)).max()
}

fn fills(prompt: u64, window: u64) -> bool {
    window > 0 && u128::from(prompt) * 100 >= u128::from(window) * u128::from(FULL_PERCENT)
}

/// How many tokens to ask for after a refused request for `asked` tokens of answer, if the window, or the tokens per
/// minute, turned out to be too few for prompt and answer together.
pub(crate) fn share_of_window(error: &ModelError, asked: u32) -> Option<u32> {
    let ErrorClass::Overflow { allowed_tokens: Some(window), observed_tokens, .. } = error.class else { return None };
    let share = u32::try_from(window / ANSWER_SHARE).ok()?;
    // A refusal of the prompt alone does not name what was asked for; one by a quota names the sum.
    let is_in_sum =
        || observed_tokens > Some(asked.into()) && numbers::beyond_a_minute(&comparable(&error.message)).is_some();
    let counts_answer = numbers::alone(&error.message).any(|number| number == asked) || is_in_sum();
    (counts_answer && (LEAST_ANSWER_TOKENS..asked).contains(&share)).then_some(share)
}

/// How many of `asked` tokens of answer a window has left beside a refused prompt, if the refusal names both by
/// themselves.
pub(crate) fn rest_of_window(error: &ModelError, asked: u32) -> Option<u32> {
    let ErrorClass::Overflow { observed_tokens, allowed_tokens: Some(window), .. } = error.class else { return None };
    let prompt = observed_tokens?.checked_sub(asked.into())?;
    let is_named = |tokens: u64| numbers::alone(&error.message).any(|number| u64::from(number) == tokens);
    let rest = u32::try_from(window.checked_sub(prompt)?).ok()?;
    (rest < asked && is_named(prompt) && is_named(asked.into())).then_some(rest)
}

/// How far the text of a body can be taken for a provider's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The status or the body says that it is an error.
    Error,
    /// A short text of unknown kind.
    Bare,
    /// An answer, or prose.
    Prose,
}

/// A failure, prepared for classification.
struct Report<'a> {
    failed: &'a Failed<'a>,
    said: &'a ErrorBody,
    /// Lower case, without backticks.
    words: String,
    /// The status, or the one implied by a code.
    status: Option<u16>,
    origin: Origin,
}

impl<'a> Report<'a> {
    fn new(failed: &'a Failed<'a>, said: &'a ErrorBody) -> Self {
        let words = comparable(&said.words);
        let is_error = failed.status.is_some_and(|status| status >= 400) || said.is_error();
        let origin = if is_error {
            Origin::Error
        } else if failed.status.is_none()
            && !said.is_json
            && said.words.chars().nth(MAX_BARE_CHARS).is_none()
            && !overflow::is_prose(&words)
        {
            Origin::Bare
        } else {
            Origin::Prose
        };
        Report { failed, said, words, status: status(failed.status, said), origin }
    }

    fn class(&self) -> ErrorClass {
        self.typed()
            .or_else(|| self.named_size())
            .or_else(|| self.malformed_history())
            .or_else(|| self.without_tools())
            .or_else(|| self.without_images())
            .or_else(|| self.unknown_model())
            .or_else(|| self.by_status())
            .or_else(|| self.by_words())
            .or_else(|| self.explicit_overflow())
            .or_else(|| self.silent_overflow())
            .or_else(|| self.without_status())
            .or_else(|| self.not_found())
            .or_else(|| self.unexplained())
            .unwrap_or(ErrorClass::Other)
    }

    fn typed(&self) -> Option<ErrorClass> {
        let means = |meaning| self.said.codes.iter().any(|code| codes::meaning(code) == Some(meaning));
        if means(codes::Meaning::Overflow) && self.may_overflow() {
            return Some(self.overflow());
        }
        if means(codes::Meaning::Refusal) {
            let of_size = words::TOO_LONG_FOR_A_FILTER.is_match(&self.codes_and_words());
            let declines = words::REFUSAL.is_match(&self.words) || self.said.codes.iter().any(|code| code == "refusal");
            return Some(if of_size && !declines { self.overflow() } else { ErrorClass::Refused });
        }
        None
    }

    fn named_size(&self) -> Option<ErrorClass> {
        if self.origin == Origin::Prose || !self.may_overflow() {
            return None;
        }
        if let Some(named) = numbers::beyond_a_minute(&self.words) {
            return Some(self.overflow_of(named));
        }
        // Neither a status of 402 nor a policy violation is about size, however large the numbers.
        let is_vetoed = self.status == Some(402) || words::REFUSAL.is_match(&self.words);
        let named = numbers::in_words(&self.words);
        (!is_vetoed && named.is_exceeded() && self.says_overflow()).then(|| self.overflow_of(named))
    }

    fn by_status(&self) -> Option<ErrorClass> {
        let says = |words: &regex::RegexSet| words.is_match(&self.words);
        match self.status? {
            402 => Some(ErrorClass::Billing),
            401 => Some(ErrorClass::Auth),
            403 if says(&words::BILLING) => Some(ErrorClass::Billing),
            403 if says(&words::REFUSAL) => Some(ErrorClass::Refused),
            403 => Some(ErrorClass::Auth),
            408 => Some(ErrorClass::Timeout),
            429 if says(&words::BILLING) => Some(self.used_up()),
            429 => Some(self.rate_limited()),
            500 if self.is_llama_cpp_s() => Some(self.overflow()),
            500.. => Some(self.overloaded()),
            _ => None,
        }
    }

    fn by_words(&self) -> Option<ErrorClass> {
        if self.origin == Origin::Prose {
            return None;
        }
        let says = |words: &regex::RegexSet| words.is_match(&self.words);
        if says(&words::BILLING) {
            Some(self.used_up())
        } else if says(&words::RATE_LIMIT) {
            Some(self.rate_limited())
        } else if words::TOO_LONG_FOR_A_FILTER.is_match(&self.words) {
            Some(self.overflow())
        } else if says(&words::REFUSAL) {
            Some(ErrorClass::Refused)
        } else if says(&words::AUTH) {
            Some(ErrorClass::Auth)
        } else {
            None
        }
    }

    fn explicit_overflow(&self) -> Option<ErrorClass> {
        if self.origin == Origin::Prose || !self.may_overflow() || words::NO_OVERFLOW.is_match(&self.codes_and_words())
        {
            return None;
        }
        let is_one = self.says_overflow()
            || self.status == Some(413)
            || self.is_said_without_words()
            || (self.may_be_the_request_s() && self.is_hinted_at());
        is_one.then(|| self.overflow())
    }

    /// Whether the request may be at fault. An error received as an answer has no status that says so.
    fn may_be_the_request_s(&self) -> bool {
        self.status.map_or(self.said.is_json && self.said.is_error(), |status| matches!(status, 400 | 422))
    }

    /// Cerebras and Mistral refuse a prompt that is too long without any text; SDKs then report `(no body)`.
    fn is_said_without_words(&self) -> bool {
        let provider = self.failed.provider.to_lowercase();
        let known = ["cerebras", "mistral"].iter().any(|name| provider.contains(name));
        self.status == Some(400) && (self.words.ends_with("(no body)") || (self.words.is_empty() && known))
    }

    fn is_hinted_at(&self) -> bool {
        overflow::is_hinted_at(&self.words)
            || (self.words.contains("token")
                && !overflow::is_prose(&self.words)
                && numbers::in_words(&self.words).is_exceeded())
    }

    fn silent_overflow(&self) -> Option<ErrorClass> {
        let cut = self.said.codes.iter().any(|code| matches!(code.as_str(), "length" | "max_tokens"));
        let known = || families::window(self.said.model.as_deref()?);
        let (prompt, window) = (self.said.prompt_tokens?, self.failed.window.or_else(known)?);
        (cut && self.said.output_tokens == Some(0) && fills(prompt, window))
            .then(|| self.overflow_of(Named { observed: Some(prompt), allowed: None }))
    }

    fn without_status(&self) -> Option<ErrorClass> {
        if self.status.is_some() || self.origin == Origin::Prose {
            return None;
        }
        if words::OVERLOADED.is_match(&self.words) {
            Some(self.overloaded())
        } else if words::TIMEOUT.is_match(&self.words) {
            Some(ErrorClass::Timeout)
        } else if words::TRANSPORT.is_match(&self.words) {
            Some(ErrorClass::Transport)
        } else {
            None
        }
    }

    /// The whole message of llama.cpp, with status 500, when the window fills up during the answer.
    fn is_llama_cpp_s(&self) -> bool {
        let last = self.words.lines().last().unwrap_or_default();
        last.trim_start_matches(|c: char| !c.is_alphabetic()) == "context size has been exceeded."
    }

    /// Slack's `msg_too_long` is about the reply, never about the prompt.
    fn may_overflow(&self) -> bool {
        !self.failed.provider.eq_ignore_ascii_case("slack")
    }

    /// Whether the request is said to be too large, and nothing of tokens or of the prompt. Google's servers say so with
    /// status 400.
    fn is_of_request(&self) -> bool {
        let is_said = self.status == Some(413) || self.said.codes.iter().any(|code| code == "request_too_large");
        (is_said || words::BYTES.is_match(&self.words)) && !words::names_the_prompt(&self.words)
    }

    fn says_overflow(&self) -> bool {
        match self.origin {
            Origin::Error => overflow::is_said(&self.words),
            Origin::Bare => overflow::is_all_that_is_said(&self.words),
            Origin::Prose => false,
        }
    }

    fn overflow(&self) -> ErrorClass {
        self.overflow_of(numbers::in_words(&self.words))
    }

    /// An overflow with these numbers, or with those that have fields of their own in the body.
    fn overflow_of(&self, named: Named) -> ErrorClass {
        let observed_tokens = named.observed.or(self.said.observed_tokens);
        let allowed_tokens = named.allowed.or(self.said.allowed_tokens);
        let is_counted = observed_tokens.is_some() || allowed_tokens.is_some();
        let is_of_request = !is_counted && self.is_of_request();
        ErrorClass::Overflow { observed_tokens, allowed_tokens, is_of_request }
    }

    fn rate_limited(&self) -> ErrorClass {
        ErrorClass::RateLimited { retry_after: self.retry_after() }
    }

    /// What is paid for is used up. Where a wait is named, waiting helps, and more money is not needed.
    fn used_up(&self) -> ErrorClass {
        if self.retry_after().is_some() { self.rate_limited() } else { ErrorClass::Billing }
    }

    fn overloaded(&self) -> ErrorClass {
        ErrorClass::Overloaded { retry_after: self.retry_after() }
    }

    fn retry_after(&self) -> Option<Duration> {
        self.failed.retry_after.or(self.said.retry_after).or_else(|| wait::in_words(&self.words))
    }

    fn codes_and_words(&self) -> String {
        format!("{} {}", self.said.codes.join(" "), self.words)
    }
}

/// The status that is used. A typed code about credentials, money or rates is more exact than any status. One about
/// load or time is not, where the status is specific; `api_error` is ignored beside a status, because servers also use
/// it for requests that they refuse.
fn status(outer: Option<u16>, said: &ErrorBody) -> Option<u16> {
    let implied = said.codes.iter().find_map(|code| match codes::meaning(code) {
        Some(codes::Meaning::Status(status)) => Some(status),
        _ => None,
    });
    match (outer.filter(|&status| status >= 400), implied) {
        (_, Some(exact @ (401..=403 | 429))) => Some(exact),
        (Some(outer), Some(408 | 503)) if !matches!(outer, 401..=404 | 413 | 429 | 500..) => implied,
        (Some(outer), _) => Some(outer),
        (None, implied) => said.status.or(implied),
    }
}

fn comparable(text: &str) -> String {
    let text = pmk_core::text::head(text, MAX_COMPARED_CHARS).to_lowercase();
    text.replace('`', "").replace('’', "'")
}

/// One line for people; without any text, the status.
fn shown(status: Option<u16>, text: &str) -> String {
    let text = pmk_core::text::collapse_whitespace(text);
    if !text.is_empty() {
        let short = pmk_core::text::head(&text, MAX_MESSAGE_CHARS);
        return if short.len() < text.len() { format!("{short}…") } else { text };
    }
    match status {
        Some(status) => format!("status {status} without an explanation"),
        None => "an error without an explanation".to_owned(),
    }
}

#[cfg(test)]
mod tests;
