//! Parses the text of a command.

use super::{
    arguments::Wrong,
    order::Order,
    table::{Entry, TABLE},
};
use crate::{access::authorization::Action, chat::after_command};

/// The word after `/pmk` that commands for admins begin with.
const ADMIN: &str = "admin";

/// A parsed text that begins with `/pmk`.
#[derive(Clone, Debug)]
pub enum ParsedCommand {
    /// An entry of the table, with its arguments.
    Entry { entry: &'static Entry, given: Vec<String> },
    /// The common first words of several entries, not followed by a word that completes one of them.
    Group { words: Vec<&'static str> },
    /// No entry begins with this word.
    Unknown { is_admins: bool, word: String },
}

impl ParsedCommand {
    /// Parses a text; `None` if it is not a command.
    pub fn of(text: &str) -> Option<ParsedCommand> {
        let rest = after_command(text)?;
        let mut given = split(rest).into_iter().map(str::to_owned).collect::<Vec<_>>();
        match given.first().map(|word| word.to_ascii_lowercase()).as_deref() {
            None => given = vec!["help".to_owned()],
            Some(ADMIN) if given.len() == 1 => given.push("help".to_owned()),
            Some(_) => {}
        }
        let is_word = |at: usize, word: &str| given.get(at).is_some_and(|given| given.eq_ignore_ascii_case(word));
        let begins =
            |entry: &&Entry, many: usize| (0..many).all(|at| entry.words.get(at).is_some_and(|it| is_word(at, it)));
        if let Some(entry) = TABLE.iter().find(|entry| begins(entry, entry.words.len())) {
            return Some(ParsedCommand::Entry { entry, given: given.split_off(entry.words.len()) });
        }
        let is_admins = is_word(0, ADMIN);
        // `admin` alone is a group as well, and asks for help.
        let group = if is_admins { 2 } else { 1 };
        if let Some(entry) = TABLE.iter().find(|entry| entry.words.len() > group && begins(entry, group)) {
            return Some(ParsedCommand::Group { words: entry.words[..group].to_vec() });
        }
        let word = given.into_iter().nth(usize::from(is_admins)).unwrap_or_default();
        Some(ParsedCommand::Unknown { is_admins, word })
    }

    /// Returns the action that permission is checked for.
    pub fn action(&self) -> Action {
        match self {
            ParsedCommand::Entry { entry, .. } => entry.action,
            ParsedCommand::Group { words } if words.first() == Some(&ADMIN) => Action::Administer,
            ParsedCommand::Unknown { is_admins: true, .. } => Action::Administer,
            ParsedCommand::Group { .. } | ParsedCommand::Unknown { .. } => Action::Command,
        }
    }

    /// Returns its name in the log, and its arguments.
    pub fn logged(&self) -> (String, String) {
        match self {
            ParsedCommand::Entry { entry, given } => (entry.logged_as.to_owned(), given.join(" ")),
            ParsedCommand::Group { words } => {
                (words[usize::from(words.first() == Some(&ADMIN))..].join("."), String::new())
            }
            ParsedCommand::Unknown { word, .. } => ("unknown".to_owned(), word.clone()),
        }
    }

    /// Returns the order, if the command is complete and valid.
    pub fn order(&self) -> Option<Order> {
        match self {
            ParsedCommand::Entry { entry, given } => read(entry, given).ok(),
            ParsedCommand::Group { .. } | ParsedCommand::Unknown { .. } => None,
        }
    }
}

/// Parses the arguments of a command into its order.
pub(super) fn read(entry: &Entry, given: &[String]) -> Result<Order, Wrong> {
    (entry.order)(&given.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Splits a text at whitespace. What Slack has put in angle brackets is one word: a name may contain spaces.
fn split(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let bracket = rest.starts_with('<').then(|| rest.find('>')).flatten().map(|at| at + 1);
        let end = bracket.or_else(|| rest.find(char::is_whitespace)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::admin::Change;

    fn order(text: &str) -> Option<Order> {
        ParsedCommand::of(text).expect("a command").order()
    }

    #[test]
    fn people_and_channels_are_taken_in_every_form_of_slacks() {
        for text in ["U0XYZ", "<@U0XYZ>", "<@U0XYZ|han>", "<@U0XYZ|han four>"] {
            let wanted = Order::Change(Change::AddAdmin { user: "U0XYZ".into() });
            assert_eq!(order(&format!("/pmk admin admins add {text}")), Some(wanted), "{text}");
        }
        for text in ["C0ABC", "<#C0ABC>", "<#C0ABC|general>"] {
            let wanted = Order::Change(Change::SetAudience { id: "C0ABC".into(), audience: "pm".into() });
            assert_eq!(order(&format!("/pmk admin audience set-channel {text} PM")), Some(wanted), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_order() {
        for text in [
            "admins add",
            "admins add @han",
            "admins add Wendy",
            "admins add <@>",
            "admins add <@U1",
            "admins add <#C1>",
            "admins add U1 U2",
            "admins list all",
            "audience set U1 king",
            "audience set C1 pm",
            "audience set-channel U1 pm",
            "audience set-channel G1 pm",
            "audience set-channel D1 pm",
            "escalation add ../../etc U1",
            "escalation add erp",
            "atoms list some",
            "atoms approve",
            "audit 0",
            "audit -1",
            "audit x",
            "status now",
        ] {
            assert_eq!(order(&format!("/pmk admin {text}")), None, "{text}");
        }
    }

    /// Regression: more than can be shown at once was answered with the usage.
    #[test]
    fn more_lines_of_the_log_than_are_shown_were_no_order() {
        for (asked, most) in [("", 20), ("7", 7), ("100", 100), ("101", 100), ("5000", 100)] {
            assert_eq!(order(&format!("/pmk admin audit {asked}")), Some(Order::ShowLog(most)), "{asked}");
        }
    }

    #[test]
    fn every_text_that_begins_with_it_is_a_command_and_no_other() {
        for text in ["", "/pmkx", "pmk admin", "what is /pmk admin?", "/ pmk"] {
            assert!(ParsedCommand::of(text).is_none(), "{text}");
        }
        for text in ["/pmk", " /pmk ", "/pmk help", "/PMK\thelp", "／pmk help", "／ＰＭＫ\u{3000}help"] {
            assert_eq!(order(text), Some(Order::Help), "{text}");
        }
        for text in ["/pmk admin", "/pmk ADMIN  help"] {
            assert_eq!(order(text), Some(Order::AdminHelp), "{text}");
        }
    }

    #[test]
    fn what_is_not_whole_says_how_far_it_got() {
        let shown = |text: &str| match ParsedCommand::of(text).expect("a command") {
            ParsedCommand::Entry { entry, given } => format!("entry {} {given:?}", entry.words.join(" ")),
            ParsedCommand::Group { words } => format!("group {}", words.join(" ")),
            ParsedCommand::Unknown { is_admins, word } => format!("unknown {is_admins} {word}"),
        };
        assert_eq!(shown("/pmk admin audience"), "group admin audience");
        assert_eq!(shown("/pmk admin audience frob U1"), "group admin audience");
        assert_eq!(shown("/pmk admin frob U1"), "unknown true frob");
        assert_eq!(shown("/pmk frob"), "unknown false frob");
        assert_eq!(shown("/pmk admin audience set <@U1|a b> x"), r#"entry admin audience set ["<@U1|a b>", "x"]"#);
        for text in ["/pmk admin audience", "/pmk admin frob", "/pmk admin"] {
            assert_eq!(ParsedCommand::of(text).expect("a command").action(), Action::Administer, "{text}");
        }
        assert_eq!(ParsedCommand::of("/pmk frob").expect("a command").action(), Action::Command);
    }

    #[test]
    fn an_entry_is_logged_by_the_name_of_its_change() {
        for text in ["audience set U1 pm", "audience default pm", "escalation add erp U1", "admins remove U1"] {
            let asked = ParsedCommand::of(&format!("/pmk admin {text}")).expect("a command");
            let Some(Order::Change(change)) = asked.order() else { panic!("{text}") };
            assert_eq!(asked.logged(), (change.action().to_owned(), change.arguments()), "{text}");
        }
    }
}
