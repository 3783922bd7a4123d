//! What the stand-in says: a quote where there is one, and otherwise one line that shows what it can do.

use std::sync::Arc;

use pmk_core::{Block, Message, Role, marker, text};

use super::{quote, terms};

/// The longest quote, in characters.
pub(super) const MAX_QUOTE_CHARS: usize = 400;

/// What it says in one language. Where there is more in it, the words stand around that.
pub(super) struct Language {
    pub before: &'static str,
    pub after: &'static str,
    pub not_found: &'static str,
    hello: &'static str,
    noted: &'static str,
    you_said: (&'static str, &'static str),
    left: (&'static str, &'static str),
}

pub(super) const CHINESE: Language = Language {
    before: "對話裡提到：「",
    after: "」",
    not_found: "目前看得到的對話裡，找不到這個問題的答案。我是 sim，只會引用對話的替身，不是真的語言模型。",
    hello: "你好！我是 sim，替身模型：告訴我一些事，再問我，我會引用你說過的話。",
    noted: "知道了，之後可以問我，我會引用你說過的話。",
    you_said: ("你剛才說：「", "」"),
    left: ("較早的 ", " 輪已經不在我的視窗裡。"),
};

pub(super) const ENGLISH: Language = Language {
    before: "From this conversation: \"",
    after: "\"",
    not_found: "I cannot find that in what I can see of this conversation. I am sim, a stand-in that quotes it, and no real \
                model.",
    hello: "Hello! I am sim, a stand-in for a model: tell me things, ask about them, and I quote what you said.",
    noted: "Noted. Ask me about it any time, and I quote what you said.",
    you_said: ("You said: \"", "\""),
    left: (" Earlier turns that are not in my window any more: ", "."),
};

/// How people begin.
const GREETINGS: [&str; 14] =
    ["hello", "hi", "hey", "hiya", "howdy", "greetings", "你好", "您好", "妳好", "哈囉", "嗨", "早安", "午安", "晚安"];

/// Words for who asks, and for who is asked.
const FIRST_PERSON: [&str; 5] = ["i", "me", "my", "we", "our"];
const SECOND_PERSON: [&str; 3] = ["you", "your", "yours"];

impl Language {
    fn of(question: &str) -> &'static Language {
        if question.chars().any(terms::is_wide) { &CHINESE } else { &ENGLISH }
    }
}

/// What the stand-in says to a conversation: the question is the last text block that a user message
/// has, everything else is where the answer may be.
pub(super) fn reply(messages: &[Arc<Message>]) -> String {
    let question = messages
        .iter()
        .rev()
        .filter(|message| message.role == Role::User)
        .flat_map(|message| message.blocks.iter().rev())
        .find_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .unwrap_or_default();
    let texts = || {
        messages
            .iter()
            .flat_map(|message| message.blocks.iter().filter_map(|block| Some((message.role, block.content()?))))
            .filter(|(_, text)| !std::ptr::eq(*text, question))
    };
    let sources = texts().filter_map(|(role, text)| match role {
        Role::User => marker::parse(text).is_none().then_some(text),
        Role::Assistant => said_before(text),
    });
    let language = Language::of(question);
    if let Some(sentence) = quote::best_sentence(question, sources) {
        return quoted((language.before, language.after), sentence);
    }
    let not_found = || {
        let left = texts().find_map(|(_, text)| marker::parse(text));
        let left = left.map(|turns| format!("{}{turns}{}", language.left.0, language.left.1)).unwrap_or_default();
        format!("{}{left}", language.not_found)
    };
    let last_said = || {
        let is_said = |role, text| role == Role::User && marker::parse(text).is_none() && !quote::asks(text);
        texts().filter(|&(role, text)| is_said(role, text) && !greets(text)).map(|(_, text)| text.trim()).next_back()
    };
    match terms::has_content(question) {
        _ if greets(question) => language.hello.to_owned(),
        true if quote::asks(question) => not_found(),
        true => language.noted.to_owned(),
        false => match addressed(question) {
            Some(Person::First) => last_said().map_or_else(not_found, |last| quoted(language.you_said, last)),
            Some(Person::Second) => language.hello.to_owned(),
            None => not_found(),
        },
    }
}

fn quoted((before, after): (&str, &str), whole: &str) -> String {
    // Where it was quoted before, its sign stays behind.
    let whole = whole.trim_start_matches(['>', ' ']);
    let quoted = text::head(whole, MAX_QUOTE_CHARS);
    let cut = if quoted.len() < whole.len() { "…" } else { "" };
    format!("{before}{quoted}{cut}{after}")
}

/// Whether somebody only says hello.
fn greets(text: &str) -> bool {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.len() <= 3 && words.first().is_some_and(|word| GREETINGS.contains(&word.as_str()))
}

enum Person {
    First,
    Second,
}

/// Whom a question that is about nothing else is about.
fn addressed(question: &str) -> Option<Person> {
    let has = |words: &[&str]| {
        question.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word.to_lowercase().as_str()))
    };
    if has(&FIRST_PERSON) || question.contains('我') {
        Some(Person::First)
    } else if has(&SECOND_PERSON) || question.contains(['你', '您', '妳']) {
        Some(Person::Second)
    } else {
        None
    }
}

/// What an earlier answer holds: the quote without its frame, nothing where it is only about the stand-in itself.
fn said_before(text: &str) -> Option<&str> {
    for language in [&CHINESE, &ENGLISH] {
        if text.starts_with(language.not_found) || text == language.hello || text == language.noted {
            return None;
        }
        for (before, after) in [(language.before, language.after), language.you_said] {
            let quoted = text.strip_prefix(before).and_then(|text| text.strip_suffix(after));
            if quoted.is_some() {
                return quoted;
            }
        }
    }
    Some(text)
}
