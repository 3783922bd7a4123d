//! The texts that people read, and what the model is told about its requests: every sentence that the gateway itself
//! writes in a conversation, in its [language](crate::language). The sentences are in `messages/*.ftl`, one file per
//! language; the functions that fill in their values are grouped by topic.

mod admins;
mod answers;
mod buttons;
mod cases;
mod chat;
mod commands;
mod demo;
mod doctor;

mod escalations;
mod init;
mod model;
mod operator;
pub mod terminal;

use std::fmt;

use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use pmk_core::{Language, text};
use unic_langid::LanguageIdentifier;

pub use doctor::{ClockOf, DoctorRemark, HomeFound, ModelFound, MraFound, StoreFound};
pub use escalations::Escalation;
pub use init::{InitExplanation, InitQuestion, InitWord};
pub use operator::Notice;

/// All sentences of a language.
const fn catalogue(language: Language) -> &'static str {
    match language {
        Language::TraditionalChinese => {
            concat!(
                include_str!("messages/zh-TW.ftl"),
                include_str!("messages/commands/zh-TW.ftl"),
                include_str!("messages/model/zh-TW.ftl"),
                include_str!("messages/operator/zh-TW.ftl"),
                include_str!("messages/demo/zh-TW.ftl"),
                include_str!("messages/init/zh-TW.ftl"),
                include_str!("messages/chat/zh-TW.ftl"),
                include_str!("messages/doctor/zh-TW.ftl"),
            )
        }
        Language::English => concat!(
            include_str!("messages/en.ftl"),
            include_str!("messages/commands/en.ftl"),
            include_str!("messages/model/en.ftl"),
            include_str!("messages/operator/en.ftl"),
            include_str!("messages/demo/en.ftl"),
            include_str!("messages/init/en.ftl"),
            include_str!("messages/chat/en.ftl"),
            include_str!("messages/doctor/en.ftl"),
        ),
    }
}

/// The sentences of one language.
pub struct Messages {
    language: Language,
    bundle: FluentBundle<FluentResource>,
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("language", &self.bundle.locales).finish()
    }
}

impl Messages {
    /// Loads the sentences of that language.
    pub fn new(language: Language) -> Self {
        let tag: LanguageIdentifier = language.tag().parse().expect("our own tags are valid");
        let resource = FluentResource::try_new(catalogue(language).to_owned())
            .unwrap_or_else(|(_, errors)| panic!("the catalogue `{}` is tested: {errors:?}", language.tag()));
        let mut bundle = FluentBundle::new_concurrent(vec![tag]);
        // Isolation marks around inserted values would show as boxes in Slack.
        bundle.set_use_isolating(false);
        bundle.add_resource(resource).expect("no sentence is in a catalogue twice: tested");
        Messages { language, bundle }
    }

    /// Translates an error, as far as it is known in this language.
    pub fn error(&self, what: &str) -> String {
        terminal::translated(what, self.language).into_owned()
    }

    /// What to do about an error, for the line below it.
    pub fn hint(&self, hint: &str) -> String {
        terminal::hint(hint, self.language)
    }

    /// Joins names to a list.
    pub fn listed<T: AsRef<str>>(&self, names: &[T]) -> String {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        names.join(&self.text("between", []))
    }

    /// Joins a name with its value or description.
    pub fn pair(&self, name: &str, value: &str) -> String {
        self.text("pair", [("name", name.into()), ("value", value.into())])
    }

    fn text<const N: usize>(&self, id: &str, filled: [(&'static str, FluentValue<'_>); N]) -> String {
        self.fill(id, filled.into_iter().collect())
    }

    fn fill(&self, id: &str, filled: FluentArgs<'_>) -> String {
        let sentence = self.bundle.get_message(id).and_then(|message| message.value());
        let sentence = sentence.unwrap_or_else(|| panic!("every catalogue has `{id}`: tested"));
        let mut errors = vec![];
        let text = self.bundle.format_pattern(sentence, Some(&filled), &mut errors).into_owned();
        debug_assert!(errors.is_empty(), "`{id}`: {errors:?}");
        text
    }
}

/// Mentions a person; only those in [`MessageBody::pings`](crate::chat::MessageBody::pings) are notified.
fn mention(user: &str) -> String {
    format!("<@{user}>")
}

/// Names a person without notifying them.
fn name(user: &str) -> String {
    format!("`{user}`")
}

/// Formats text by others as one line of code, which Slack shows literally.
fn code(text: &str) -> String {
    format!("`{}`", text::shortened(&text::collapse_whitespace(text), 300).replace('`', "'"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every sentence with the names of its values.
    fn sentences(language: Language) -> BTreeSet<(String, Vec<String>)> {
        let mut sentences = BTreeSet::new();
        let mut current: Option<(String, BTreeSet<String>)> = None;
        for line in catalogue(language).lines().filter(|line| !line.starts_with('#')) {
            if let Some((id, _)) = line.split_once(" = ").filter(|(id, _)| !id.contains(' ')) {
                sentences.extend(current.take().map(|(id, filled)| (id, filled.into_iter().collect())));
                current = Some((id.to_owned(), BTreeSet::new()));
            }
            if let Some((_, filled)) = &mut current {
                let names = line.split('$').skip(1).filter_map(|rest| rest.split([' ', '}']).next());
                filled.extend(names.map(str::to_owned));
            }
        }
        sentences.extend(current.map(|(id, filled)| (id, filled.into_iter().collect())));
        sentences
    }

    /// Every text that the functions can produce.
    fn everything(messages: &Messages) -> Vec<String> {
        let themes: [fn(&Messages) -> Vec<String>; 12] = [
            commands::everything,
            chat::everything,
            admins::everything,
            answers::everything,
            buttons::everything,
            cases::everything,
            demo::everything,
            doctor::everything,
            escalations::everything,
            init::everything,
            model::everything,
            operator::everything,
        ];
        themes.iter().flat_map(|everything| everything(messages)).collect()
    }

    #[test]
    fn both_catalogues_have_every_sentence() {
        let chinese = sentences(Language::TraditionalChinese);
        assert!(chinese.len() > 20, "{chinese:?}");
        assert_eq!(chinese, sentences(Language::English));
    }

    #[test]
    fn everything_can_be_said_in_every_language() {
        for language in Language::ALL {
            for text in everything(&Messages::new(language)) {
                assert!(!text.trim().is_empty() && !text.contains(['{', '$']), "{text}");
            }
        }
    }

    /// Finds English sentences in a Chinese text. Names, typed text and units are allowed.
    pub(crate) fn foreign_words(text: &str) -> Vec<String> {
        let plain: String = text.split('`').step_by(2).collect::<Vec<_>>().join("。");
        let is_latin =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '\'' | ',' | '.' | '-' | '_' | '/' | ':');
        let runs = plain.split(|c| !is_latin(c));
        let is_word = |word: &&str| word.contains(|c: char| c.is_ascii_alphabetic());
        let is_sentence =
            |run: &String| run.split_whitespace().filter(is_word).count() > 3 && !run.starts_with("pmk-host ");
        runs.map(|run| run.trim().to_owned()).filter(is_sentence).collect()
    }

    #[test]
    fn nothing_is_said_in_another_language() {
        let is_chinese = |c: char| ('\u{3000}'..='\u{9fff}').contains(&c) || ('\u{ff00}'..='\u{ffef}').contains(&c);
        for said in everything(&Messages::new(Language::English)) {
            assert!(!said.contains(is_chinese), "{said}");
        }
        let said = everything(&Messages::new(Language::TraditionalChinese));
        let foreign: Vec<String> = said.iter().flat_map(|said| foreign_words(said)).collect();
        assert_eq!(foreign, Vec::<String>::new());
        assert_eq!(foreign_words("請輸入 this is a sentence 再試"), ["this is a sentence"]);
        let foreign: Vec<String> = terminal::rows().flat_map(|(_, chinese)| foreign_words(chinese)).collect();
        assert_eq!(foreign, Vec::<String>::new());
    }

    /// Each thing has one word everywhere (`docs/terms.md`).
    #[test]
    fn chinese_has_one_word_for_each_thing() {
        let holds = |text: &str, word: &str| {
            let word_at = |at: usize| {
                let near = |c: Option<char>| {
                    c.is_none_or(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '$' | '/' | '.'))
                };
                near(text[..at].chars().next_back()) && near(text[at + word.len()..].chars().next())
            };
            text.match_indices(word).any(|(at, _)| word_at(at))
        };
        let everywhere =
            catalogue(Language::TraditionalChinese).lines().chain(terminal::rows().map(|(_, chinese)| chinese));
        for line in everywhere.filter(|line| !line.starts_with('#')) {
            // Typed text and the names of fields and values are not words.
            let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join("。");
            let words: String =
                words.split('{').map(|part| part.split_once('}').map_or(part, |(_, after)| after)).collect();
            let words = words.split_once(" = ").map_or(words.as_str(), |(_, said)| said).trim_start();
            let words = words.strip_prefix('[').and_then(|said| said.split_once(']')).map_or(words, |(_, said)| said);
            // The sentence of specification 000 keeps its own words.
            let words = words.replace("請開新 thread 重新提問", "");
            // As Slack's own pages call it.
            let words = words.replace("app token", "");
            for (other, one) in [("thread", "討論串"), ("app", "應用程式"), ("repo", "儲存庫"), ("trim", "裁切")]
            {
                assert!(!holds(&words, other), "`{one}`, not `{other}`: {line}");
            }
            assert!(!words.contains("政策"), "`策略`: {line}");
        }
        let to_people = concat!(include_str!("messages/zh-TW.ftl"), include_str!("messages/commands/zh-TW.ftl"));
        let familiar: Vec<&str> =
            to_people.lines().filter(|line| !line.starts_with('#') && line.contains('你')).collect();
        assert_eq!(familiar, Vec::<&str>::new(), "people in Slack are called 您");
    }

    /// Regression: admins typed commands of the host in Slack.
    #[test]
    fn commands_of_the_host_looked_like_those_of_slack() {
        let english = concat!(include_str!("messages/en.ftl"), include_str!("messages/commands/en.ftl"));
        let chinese = concat!(include_str!("messages/zh-TW.ftl"), include_str!("messages/commands/zh-TW.ftl"));
        for (sentences, where_to) in [(english, "on the host"), (chinese, "主機上")] {
            let about_the_host: Vec<&str> = sentences.lines().filter(|line| line.contains("`pmk-host ")).collect();
            assert!(about_the_host.len() > 5);
            for line in about_the_host {
                assert!(line.contains(where_to), "{line}");
            }
        }
    }

    #[test]
    fn every_emoji_is_one_on_a_terminal_too() {
        for language in Language::ALL {
            for said in everything(&Messages::new(language)) {
                let shown = gh_emoji::Replacer::new().replace_all(&said).into_owned();
                let is_name = |word: &str| word.len() > 2 && word.starts_with(':') && word.ends_with(':');
                assert!(!shown.split_whitespace().any(is_name), "{shown}");
            }
        }
    }
}
