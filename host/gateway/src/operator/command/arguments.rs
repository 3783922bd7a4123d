//! Parses the arguments of a command.

use crate::{access::audience::Audience, operator::admin::Pool, slack_id::Id};

/// An invalid argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The argument at this position, counted from 0, is missing.
    Missing {
        at: usize,
    },
    TooMany(String),
    NoPerson(String),
    NoChannel(String),
    /// A word that is not one of the allowed values at its position.
    NotOf {
        at: usize,
        word: String,
    },
}

/// Returns exactly `N` arguments.
pub(super) fn exactly<'a, const N: usize>(given: &[&'a str]) -> Result<[&'a str; N], Wrong> {
    match given.get(N) {
        Some(more) => Err(Wrong::TooMany((*more).to_owned())),
        None => given.try_into().map_err(|_| Wrong::Missing { at: given.len() }),
    }
}

/// Parses the word at this position with `read`.
pub(super) fn one_of<T>(at: usize, word: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Wrong> {
    read(word).ok_or_else(|| Wrong::NotOf { at, word: word.to_owned() })
}

/// A person: `U…`, `W…`, `<@U…>`, `<@U…|name>`.
pub(super) fn user(text: &str) -> Result<String, Wrong> {
    match id(text, "<@") {
        Some(Id::User(user)) => Ok(user.to_owned()),
        Some(Id::Channel(_)) | None => Err(Wrong::NoPerson(text.to_owned())),
    }
}

/// A channel: `C…`, `<#C…>`, `<#C…|name>`.
pub(super) fn channel(text: &str) -> Result<String, Wrong> {
    match id(text, "<#") {
        Some(Id::Channel(channel)) if channel.starts_with('C') => Ok(channel.to_owned()),
        Some(Id::Channel(_) | Id::User(_)) | None => Err(Wrong::NoChannel(text.to_owned())),
    }
}

/// An id, plain or in a Slack mention. A word with lowercase letters is not an id.
fn id<'a>(text: &'a str, opening: &str) -> Option<Id<'a>> {
    let text = match text.strip_prefix(opening) {
        Some(mention) => mention.strip_suffix('>')?.split('|').next()?,
        None => text,
    };
    Id::parse(text).ok().filter(|_| !text.contains(|c: char| c.is_ascii_lowercase()))
}

/// An audience, by its name.
pub(super) fn audience(text: &str) -> Option<String> {
    text.parse::<Audience>().ok().map(|audience| audience.name().to_owned())
}

/// A valid pool name.
pub(super) fn pool(text: &str) -> Option<String> {
    Pool::parse(text).ok().map(|pool| pool.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_of_other_workspaces_are_people() {
        assert_eq!(user("W1"), Ok("W1".into()));
        assert_eq!(channel("W1"), Err(Wrong::NoChannel("W1".into())));
    }
}
