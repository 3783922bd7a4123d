//! What commands there are, as people read it: made from the table.

use super::{
    table::{Entry, TABLE},
    words::Asked,
};
use crate::{may::Action, say::Say};

/// The page of all commands, or of those for admins.
pub fn page(say: &Say, action: Action) -> String {
    let entries = TABLE.iter().filter(|entry| entry.action == action || is_door(entry, action));
    say.commands() + &lines(say, entries)
}

/// The page for people names the one for admins.
fn is_door(entry: &Entry, action: Action) -> bool {
    action == Action::Command && entry.words == ["admin", "help"]
}

/// What is said where a command is not whole, or is none.
pub fn usage(say: &Say, asked: &Asked) -> String {
    match asked {
        Asked::Entry { entry, .. } => say.usage() + &lines(say, [*entry].into_iter()),
        Asked::Group { words } => {
            say.usage() + &lines(say, TABLE.iter().filter(|entry| entry.words.starts_with(words)))
        }
        Asked::Unknown { is_admins, word } => say.unknown_command(*is_admins, word),
    }
}

fn lines<'a>(say: &Say, entries: impl Iterator<Item = &'a Entry>) -> String {
    entries.map(|entry| format!("\n- `{}`: {}", written(entry), say.about_command(entry.words))).collect()
}

/// A command as somebody writes it.
fn written(entry: &Entry) -> String {
    let words = ["/pmk"].iter().chain(entry.words).copied();
    words.chain([entry.arguments]).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    #[test]
    fn every_command_is_on_a_page_in_both_languages() {
        for language in [Language::TraditionalChinese, Language::English] {
            let say = Say::new(language);
            let pages = page(&say, Action::Command) + &page(&say, Action::Administer);
            for entry in TABLE {
                assert!(pages.contains(&format!("`{}`: ", written(entry))), "{:?}", entry.words);
            }
        }
    }

    #[test]
    fn no_command_is_hidden_behind_a_shorter_one() {
        for entry in TABLE {
            let text = format!("/pmk {}", entry.words.join(" "));
            let Some(Asked::Entry { entry: found, .. }) = Asked::of(&text) else { panic!("{text}") };
            assert_eq!(found.words, entry.words);
        }
    }
}
