//! What people read, and what the model is told of its wishes: every sentence the gateway itself says in a conversation, in
//! its [language](crate::language). The sentences are in `messages/*.ftl`, one file a language; what is filled into
//! them is in one file a theme.

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

/// All that is said in a language.
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

/// Speaks one language.
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
    /// A speaker of that language.
    pub fn new(language: Language) -> Self {
        let tag: LanguageIdentifier = language.tag().parse().expect("our own tags are valid");
        let resource = FluentResource::try_new(catalogue(language).to_owned())
            .unwrap_or_else(|(_, errors)| panic!("the catalogue `{}` is tested: {errors:?}", language.tag()));
        let mut bundle = FluentBundle::new_concurrent(vec![tag]);
        // Marks around what is filled in would show as boxes in Slack.
        bundle.set_use_isolating(false);
        bundle.add_resource(resource).expect("no sentence is in a catalogue twice: tested");
        Messages { language, bundle }
    }

    /// What an error says, as far as it is known in this language.
    fn error(&self, what: &str) -> String {
        terminal::translated(what, self.language).into_owned()
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

/// How a person is named; live only where [`Speech::pings`] has them.
fn mention(user: &str) -> String {
    format!("<@{user}>")
}

/// A person who is named and not called.
fn name(user: &str) -> String {
    format!("`{user}`")
}

/// Foreign words as a line of code, which Slack shows as they are.
fn code(text: &str) -> String {
    format!("`{}`", text::head(&text::single_spaced(text), 300).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every sentence with what is filled into it.
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

    /// Everything that can be said.
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
