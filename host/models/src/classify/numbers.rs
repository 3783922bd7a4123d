//! Extracts from a refusal the number of tokens that there were, and that are allowed.
//!
//! The gateway learns a model's window from them, so a number that may be something else (bytes, requests per minute,
//! room for the answer) is better ignored than used.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::words::pattern;

/// The numbers in a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// The prompt's tokens, plus the answer's where the provider adds them.
    pub observed: Option<u64>,
    pub allowed: Option<u64>,
}

impl Named {
    /// Whether there were more than are allowed.
    pub fn is_exceeded(self) -> bool {
        matches!((self.observed, self.allowed), (Some(observed), Some(allowed)) if observed > allowed)
    }
}

/// The numbers in a lower-case text.
pub(super) fn in_words(words: &str) -> Named {
    if let Some(named) = SUMS.iter().find_map(|sum| added(&sum.captures(words)?)) {
        return named;
    }
    if let Some(pair) = PAIR.captures(words) {
        return Named { observed: tokens(&pair, 1), allowed: tokens(&pair, 2) };
    }
    let observed = OBSERVED.iter().find_map(|pattern| tokens(&pattern.captures(words)?, 1));
    Named { observed, allowed: allowed(words) }
}

/// The limit that a text states. Of several, one may be what the answer's room leaves of another: then the other is the
/// window.
fn allowed(words: &str) -> Option<u64> {
    let limits: Vec<u64> =
        ALLOWED.iter().filter_map(|pattern| pattern.captures(words)).filter_map(|limit| tokens(&limit, 1)).collect();
    let &first = limits.first()?;
    // The limit itself is not the room.
    let is_room = |room: u64| room != first && alone(words).any(|number| u64::from(number) == room);
    let window = limits.into_iter().find(|&window| window > first && is_room(window - first));
    Some(window.unwrap_or(first))
}

/// A limit on tokens per minute that waiting does not help against: the request alone exceeds it. Both numbers must be
/// in the clause about tokens per minute; elsewhere they may be requests.
pub(super) fn beyond_a_minute(words: &str) -> Option<Named> {
    TOKENS_PER_MINUTE.find_iter(words).find_map(|mark| {
        let rest = &words[mark.end()..];
        let clause = CLAUSE_END.find(rest).map_or(rest, |end| &rest[..end.start()]);
        let number = |pattern: &Regex| tokens(&pattern.captures(clause)?, 1);
        let named = Named { observed: number(&REQUESTED), allowed: number(&LIMIT) };
        named.is_exceeded().then_some(named)
    })
}

/// The whole numbers of a text that are no part of a name, a version or a date.
pub(super) fn alone(text: &str) -> impl Iterator<Item = u32> {
    let joins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    let ends = |c: char| matches!(c, '.' | ':' | '-');
    text.split(move |c| !joins(c) && c != ',').flat_map(move |word| {
        let word = word.trim_matches(|c| ends(c) || c == ',');
        // As in `[1,8192]`, where the comma separates no thousands.
        let is_grouped = word.split(',').skip(1).all(|group| group.len() == 3);
        let parts = if is_grouped { vec![word.replace(',', "")] } else { word.split(',').map(str::to_owned).collect() };
        parts.into_iter().filter_map(|part| part.parse().ok())
    })
}

/// The sum of prompt and answer.
fn added(sum: &Captures<'_>) -> Option<Named> {
    let part = |name: &str| number(sum.name(name)?.as_str());
    let observed = part("prompt")?.checked_add(part("answer")?)?;
    Some(Named { observed: Some(observed), allowed: part("allowed") })
}

/// A number of tokens; `None` where the following word shows that it counts something else.
fn tokens(captures: &Captures<'_>, group: usize) -> Option<u64> {
    let found = captures.get(group)?;
    let behind = &captures.get(0)?.as_str()[found.end() - captures.get(0)?.start()..];
    if OTHER_UNIT.is_match(behind) { None } else { number(found.as_str()) }
}

/// Parses a number, with or without thousands separators; `180k` is 180,000.
fn number(text: &str) -> Option<u64> {
    let digits = text.replace(',', "");
    let number = match digits.strip_suffix('k') {
        Some(thousands) => (thousands.parse::<f64>().ok()? * 1_000.0) as u64,
        None => digits.parse().ok()?,
    };
    (number > 0).then_some(number)
}

/// Replaces `#` by a pattern for a number and the word after it.
fn numbered(source: &str) -> Regex {
    pattern(&source.replace('#', r"(\d[\d,]*(?:(?:\.\d+)?k\b)?)(?:\.\d+)?(?: ?(?:[a-z_]+|\p{Han}))?"))
}

fn all(sources: &[&str]) -> Vec<Regex> {
    sources.iter().map(|source| numbered(source)).collect()
}

static SUMS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        pattern(r"\bexceed context limit\D{0,10}(?P<prompt>\d[\d,]*) \+ (?P<answer>\d[\d,]*) > (?P<allowed>\d[\d,]*)"),
        // TGI names the limit first.
        pattern(
            r"\bmust be <= (?P<allowed>\d[\d,]*)\. given: (?P<prompt>\d[\d,]*) inputs tokens and (?P<answer>\d[\d,]*) max_new_tokens",
        ),
    ]
});

static PAIR: LazyLock<Regex> = LazyLock::new(|| numbered(r"\b(?:too (?:long|large)|exceed\w*)[^\d.]{0,40}# > #"));

static OBSERVED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    all(&[
        r"\btotal of (?:at least )?#",
        r"\bresulted in (?:about )?#",
        r"\brequested:? (?:about |approximately )?#",
        r"\b(?:prompt|messages|input|inputs|request) (?:contains?|has|have|is|are|with|of) (?:at least |about |~)?#",
        r"\b(?:request|input|prompt|prompt tokens?|requested tokens|input token count|input length|prompt length) \((?:length )?#",
        r"\b(?:prompt|input)[ _](?:tokens|length|len|size) \(#",
        r"\b(?:prompt|input)[ _](?:length|len|size) (?:of |is )?# (?:must|should|can|may)\b",
        r"(?:当前|當前|实际|實際|输入|輸入|请求|請求)[^\d，。,;；]{0,12}#",
        r"\btoken count (?:of )?\(?#",
        r"\binput length (?:of )?# exceeds?\b",
        r"\bcurrent length is #",
        r"\bkeep the first #",
        r"\bmust have less than [\d,]+ tokens\. given: #",
    ])
});

static ALLOWED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    all(&[
        // vLLM goes on with what the answer leaves of it for the prompt.
        r"\bcontext (?:length|size|window) is only #",
        r"\bmaximum (?:context|prompt|input|model) (?:length|size|limit|window) (?:is |of )?(?:only )?#",
        r"\bcontext (?:length|size|window) (?:is |of )(?:only )?#",
        r"\bcontext (?:length|size|window|limit) \(#",
        r"\bwith # maximum context length\b",
        r"\bmaximum number of (?:input )?tokens(?: allowed)? (?:is |of )?\(?#",
        r"\bmaximum allowed input length of #",
        r"\bmodel maximum \(#",
        r"\bmust be <= #",
        r"\bmust have less than #",
        r"\brange of input length should be \[\d+, ?#",
        r"\bmax size: #",
        r"\b(?:prompt|input)s?[ _](?:tokens?|length|len|size|ids)\b[^.:;\d]{0,20}(?:\d[\d,]*)?[^.:;\d]{0,30}(?:\bthan|\bat most|\bexceed|<=?|≤) ?(?:or equal to |the )*(?:max_\w+)?[ (=]*#",
        r"(?:最大|最多|上限|限制|不超过|不超過|不能超过|不能超過)[^\d，。,;；]{0,12}#",
        r"\b(?:token |input |context |model |configured |maximum )*limit(?: of| is|:)? #",
    ])
});

/// A word after a number which shows that it does not count tokens of a prompt.
static OTHER_UNIT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\.\d+)? ?(?:bytes?|[kmg]i?b|chars?|characters?|requests?|messages?|images?|files?|pages?|seconds?|secs?|ms|s|minutes?|mins?|hours?|h|output|completion|credits?|usd|字|次|元|张|張|条|條|秒|分)\b",
    )
});

static TOKENS_PER_MINUTE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\btokens per min(?:ute)?\b\.?|\btpm\b"));

/// The end of the clause about tokens per minute: another unit's clause begins, or the sentence ends.
static CLAUSE_END: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\brequests per\b|\btokens per day\b|\b(?:rpm|rpd|tpd)\b|[.;](?:\s|$)|\n"));

static REQUESTED: LazyLock<Regex> = LazyLock::new(|| numbered(r"\brequested:? #"));

static LIMIT: LazyLock<Regex> = LazyLock::new(|| numbered(r"\blimit:? #"));

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &str) -> (Option<u64>, Option<u64>) {
        let Named { observed, allowed } = in_words(words);
        (observed, allowed)
    }

    #[test]
    fn numbers_of_something_else_are_left() {
        for words in [
            "request exceeds the limit of 33,554,432 bytes",
            "your input is 4000 characters, the limit is 3000 characters",
            "limit 30 requests, requested 31 requests",
            "request exceeds the limit of 32,768kb",
            "you requested 200 output tokens",
            "maximum context length is 0 tokens",
            "maximum context length is 99999999999999999999999 tokens",
            "the limit does not matter",
        ] {
            assert_eq!(named(words), (None, None), "{words}");
        }
    }

    #[test]
    fn either_order_and_either_number_alone() {
        assert_eq!(named("limit 8,192 tokens, requested 9,000 tokens"), (Some(9_000), Some(8_192)));
        assert_eq!(named("requested 9000 tokens, limit 8192"), (Some(9_000), Some(8_192)));
        assert_eq!(named("prompt is too long: 350k tokens > 180k maximum"), (Some(350_000), Some(180_000)));
        assert_eq!(named("maximum context length is 1.5k tokens"), (None, Some(1_500)));
        assert_eq!(named("maximum context length is 4096 tokens"), (None, Some(4_096)));
        assert_eq!(named("your messages resulted in 4294 tokens"), (Some(4_294), None));
        // The requested answer is not part of the prompt.
        let vllm = "maximum context length is 4096 tokens. you requested 200 output tokens and your prompt \
                    contains at least 3897 input tokens, for a total of at least 4097 tokens";
        assert_eq!(named(vllm), (Some(4_097), Some(4_096)));
    }

    /// Regression: the room for the answer was taken off the window once more, and nothing fitted.
    #[test]
    fn what_the_answer_leaves_of_the_window_was_taken_for_the_window() {
        for (words, window) in [
            (
                "the maximum input length is 192 tokens: a context window of 8192 tokens, less 8000 for the answer",
                8_192,
            ),
            ("context length is only 8192 tokens, resulting in a maximum input length of 192 tokens", 8_192),
            ("context length is only 8192 tokens, resulting in a maximum input length of 4096 tokens", 8_192),
            // Nothing says that the rest is for the answer.
            ("the maximum prompt length is 4096 tokens, with a context window of 8192 tokens", 4_096),
            ("the maximum input length is 3000 tokens, with a context window of 8192 tokens", 3_000),
        ] {
            assert_eq!(named(words).1, Some(window), "{words}");
        }
    }

    #[test]
    fn figures_of_a_minute_count_only_within_one_clause() {
        let tpm = "request too large for model x on tokens per minute (tpm): limit 8000, requested 8098, please";
        assert_eq!(beyond_a_minute(tpm), Some(Named { observed: Some(8_098), allowed: Some(8_000) }));
        let second = "on requests per minute (rpm): limit 30, requested 1. also on tokens per minute (tpm): \
                      limit 8000, requested 8098.";
        assert!(beyond_a_minute(second).is_some());
        let swapped = "tokens per min (tpm): requested 8,098, limit 8,000";
        assert!(beyond_a_minute(swapped).is_some());
        for throttled in [
            "tokens per minute (tpm): limit 8000, used 7500, requested 1000, try again in 3.5s",
            "requests per minute (rpm): limit 30, used 30. also tokens per minute (tpm) requested 5000",
            "requests per minute (rpm): limit 30, requested 100, try again in 2s. see the tpm guidance",
            "tokens per minute (tpm): limit 8000. requests per minute (rpm): requested 9000",
            "tokens per minute (tpm): limit 8000, tokens per day (tpd): requested 9000",
            "request too large: limit 8000, requested 8098",
            "tokens per minute (tpm): limit 8000, please reduce",
        ] {
            assert_eq!(beyond_a_minute(throttled), None, "{throttled}");
        }
    }
}
