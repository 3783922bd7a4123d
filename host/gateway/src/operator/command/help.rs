//! The help pages and usage messages, generated from the command table.

use super::{
    arguments::Wrong,
    table::{Entry, TABLE},
    words::{self, ParsedCommand},
};
use crate::{access::authorization::Action, messages::Messages};

/// The page of all commands, or of those for admins. That for everybody ends with what needs no command.
pub fn page(messages: &Messages, action: Action) -> String {
    let entries = TABLE.iter().filter(|entry| entry.action == action || is_door(entry, action));
    let page = messages.commands() + &lines(messages, entries);
    // A blank line: Markdown would add what follows to the last item.
    if action == Action::Command { format!("{page}\n\n{}", messages.help_more()) } else { page }
}

/// The page of commands for everybody also lists `admin help`.
fn is_door(entry: &Entry, action: Action) -> bool {
    action == Action::Command && entry.words == ["admin", "help"]
}

/// The reply to an incomplete, invalid or unknown command.
pub fn usage(messages: &Messages, asked: &ParsedCommand) -> String {
    match asked {
        ParsedCommand::Entry { entry, given } => {
            // A blank line: Markdown joins lines that nothing separates.
            let wrong = words::read(entry, given).err().map(|what| wrong(messages, entry, &what) + "\n\n");
            wrong.unwrap_or_default() + &messages.usage() + &lines(messages, [*entry].into_iter())
        }
        ParsedCommand::Group { words } => {
            messages.usage() + &lines(messages, TABLE.iter().filter(|entry| entry.words.starts_with(words)))
        }
        ParsedCommand::Unknown { is_admins, word } => messages.unknown_command(*is_admins, word),
    }
}

/// Says what is wrong with an argument.
fn wrong(messages: &Messages, entry: &Entry, wrong: &Wrong) -> String {
    let wanted = |at: usize| ("wanted", entry.arguments.split(' ').nth(at).unwrap_or_default());
    match wrong {
        Wrong::Missing { at } => messages.changed("argument-missing", &[wanted(*at)]),
        Wrong::TooMany(word) => messages.changed("argument-too-many", &[("word", word)]),
        Wrong::NoPerson(word) => messages.changed("argument-no-person", &[("word", word)]),
        Wrong::NoChannel(word) => messages.changed("argument-no-channel", &[("word", word)]),
        Wrong::NotOf { at, word } => messages.changed("argument-not-of", &[("word", word), wanted(*at)]),
    }
}

fn lines<'a>(messages: &Messages, entries: impl Iterator<Item = &'a Entry>) -> String {
    let line = |entry: &Entry| {
        let named = format!("`{}`", written(entry));
        format!("\n- {}", messages.pair(&named, &messages.about_command(entry.words)))
    };
    entries.map(line).collect()
}

/// A command as it is typed.
fn written(entry: &Entry) -> String {
    let words = ["/pmk"].iter().chain(entry.words).copied();
    words.chain([entry.arguments]).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use pmk_core::Language;

    use super::*;

    #[test]
    fn every_command_is_on_a_page_in_both_languages() {
        for language in [Language::TraditionalChinese, Language::English] {
            let messages = Messages::new(language);
            let pages = page(&messages, Action::Command) + &page(&messages, Action::Administer);
            let colon = language.pick(": ", "：");
            for entry in TABLE {
                assert!(pages.contains(&format!("`{}`{colon}", written(entry))), "{:?}", entry.words);
            }
        }
    }

    /// Regression: `stop`, 🔁 and `verbose` were on no page that people can ask for.
    #[test]
    fn what_needs_no_command_was_on_no_page() {
        for (language, stop) in [(Language::TraditionalChinese, "`停`"), (Language::English, "`stop`")] {
            let page = page(&Messages::new(language), Action::Command);
            for told in [stop, "⏹", "🔁", "`verbose off`", "`progress`", "`summary`", "`full`"] {
                assert!(page.contains(told), "{told}: {page}");
            }
        }
    }

    #[test]
    fn what_is_not_as_a_command_wants_it_is_named() {
        let messages = Messages::new(Language::English);
        for (text, wanted) in [
            ("admins add @han", "I do not know `@han`"),
            ("admins add", "`@user` is missing"),
            ("admins add U1 U2", "Unexpected argument `U2`"),
            ("audience set U1 king", "`king` does not match `tech|pm|biz|exec`"),
            ("audience set-channel general pm", "I do not know the channel `general`"),
            ("escalation add ../.. U1", "`../..` does not match `REPO|default`"),
            ("atoms list some", "`some` does not match `[pending|approved|all]`"),
            ("audit 0", "`0` does not match `[N]`"),
            ("status now", "Unexpected argument `now`"),
        ] {
            let said = usage(&messages, &ParsedCommand::of(&format!("/pmk admin {text}")).expect("a command"));
            assert!(said.contains(wanted) && said.contains("\n\nUsage:\n"), "{text}: {said}");
        }
        assert!(usage(&messages, &ParsedCommand::of("/pmk open").expect("a command")).contains("`TITLE` is missing"));
    }

    #[test]
    fn no_command_is_hidden_behind_a_shorter_one() {
        for entry in TABLE {
            let text = format!("/pmk {}", entry.words.join(" "));
            let Some(ParsedCommand::Entry { entry: found, .. }) = ParsedCommand::of(&text) else { panic!("{text}") };
            assert_eq!(found.words, entry.words);
        }
    }
}
