//! The answers of the simulation: a quote where there is one, otherwise a line that shows what it can do.

use std::sync::Arc;

use pmk_core::{Block, Message, Role, marker, text};

use super::{
    passing::{self, Passing, Subject},
    quote, terms,
};

/// The longest quote, in characters.
pub(super) const MAX_QUOTE_CHARS: usize = 400;

/// Its texts in one language. Some texts enclose a quote.
pub(super) struct Language {
    pub before: &'static str,
    pub after: &'static str,
    pub not_found: &'static str,
    who: &'static str,
    hello: &'static str,
    thanks: &'static str,
    bye: &'static str,
    well: &'static str,
    noted: &'static str,
    you_said: (&'static str, &'static str),
    left: (&'static str, &'static str),
}

pub(super) const CHINESE: Language = Language {
    before: "對話裡提到：「",
    after: "」",
    not_found: "目前看得到的對話裡，找不到這個問題的答案。我是 sim，只會引用對話的替身，不是真的語言模型。",
    who: "我是 sim，替身模型：告訴我一些事，再問我，我會引用你說過的話。",
    hello: "你好！我是 sim，替身模型：告訴我一些事，再問我，我會引用你說過的話。",
    thanks: "不客氣。",
    bye: "再見。",
    well: "好的。",
    noted: "知道了，之後可以問我，我會引用你說過的話。",
    you_said: ("你剛才說：「", "」"),
    left: ("較早的 ", " 輪已經不在我的視窗裡。"),
};

pub(super) const ENGLISH: Language = Language {
    before: "From this conversation: \"",
    after: "\"",
    not_found: "I cannot find that in what I can see of this conversation. I am sim, a stand-in that quotes it, and no real \
                model.",
    who: "I am sim, a stand-in for a model: tell me things, ask about them, and I quote what you said.",
    hello: "Hello! I am sim, a stand-in for a model: tell me things, ask about them, and I quote what you said.",
    thanks: "You are welcome.",
    bye: "Goodbye.",
    well: "All right.",
    noted: "Noted. Ask me about it any time, and I quote what you said.",
    you_said: ("You said: \"", "\""),
    left: (" Earlier turns that are not in my window any more: ", "."),
};

impl Language {
    fn of(question: &str) -> &'static Language {
        if question.chars().any(terms::is_wide) { &CHINESE } else { &ENGLISH }
    }

    /// The answer to small talk.
    fn to(&self, passing: Passing) -> &'static str {
        match passing {
            Passing::Help => self.who,
            Passing::Thanks => self.thanks,
            Passing::Bye => self.bye,
            Passing::Greeting => self.hello,
            Passing::Word => self.well,
        }
    }

    /// All texts that are about the simulation alone.
    fn of_itself(&self) -> [&'static str; 6] {
        [self.who, self.hello, self.thanks, self.bye, self.well, self.noted]
    }
}

/// The answer to a conversation: the question is the last text block of a user message; everything else is searched for
/// the answer.
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
    let in_passing = passing::all_of(question);
    let subject = passing::subject(question);
    let may_answer = |sentence: &str| {
        // A question about the simulation is not answered with a sentence about others, and greetings are no answers.
        (subject != Some(Subject::StandIn) || passing::names_the_one_asked(sentence))
            && passing::all_of(sentence).is_none()
    };
    let best = || quote::best_sentence(&passing::asked_for(question), may_answer, sources);
    if let Some(sentence) = in_passing.is_none().then(best).flatten() {
        return quoted((language.before, language.after), sentence);
    }
    let not_found = || {
        let left = texts().find_map(|(_, text)| marker::parse(text));
        let left = left.map(|turns| format!("{}{turns}{}", language.left.0, language.left.1)).unwrap_or_default();
        format!("{}{left}", language.not_found)
    };
    let last_said = || {
        let is_said = |role, text| role == Role::User && marker::parse(text).is_none() && !quote::asks(text);
        let said = texts().filter(|&(role, text)| is_said(role, text) && passing::all_of(text).is_none());
        said.map(|(_, text)| text.trim()).next_back()
    };
    match (in_passing, subject) {
        (Some(passing), _) => language.to(passing).to_owned(),
        (None, Some(Subject::WasSaid)) => last_said().map_or_else(not_found, |last| quoted(language.you_said, last)),
        (None, Some(Subject::StandIn)) => language.who.to_owned(),
        (None, None) if quote::asks(question) || !terms::has_content(question) => not_found(),
        (None, None) => language.noted.to_owned(),
    }
}

fn quoted((before, after): (&str, &str), whole: &str) -> String {
    // Removes quotation marks of an earlier quotation.
    let whole = whole.trim_start_matches(['>', ' ']);
    let quoted = text::head(whole, MAX_QUOTE_CHARS);
    let cut = if quoted.len() < whole.len() { "…" } else { "" };
    format!("{before}{quoted}{cut}{after}")
}

/// The quote in an earlier answer, without its frame; `None` if the answer is about the simulation itself.
fn said_before(text: &str) -> Option<&str> {
    for language in [&CHINESE, &ENGLISH] {
        if text.starts_with(language.not_found) || language.of_itself().contains(&text) {
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
