//! What stands after the words of a command, read.

use crate::{
    admin::{Id, Pool},
    audience::Audience,
};

/// A person: `U…`, `W…`, `<@U…>`, `<@U…|name>`.
pub(super) fn user(text: &str) -> Option<String> {
    match id(text, "<@")? {
        Id::User(user) => Some(user.to_owned()),
        Id::Channel(_) => None,
    }
}

/// A channel: `C…`, `<#C…>`, `<#C…|name>`.
pub(super) fn channel(text: &str) -> Option<String> {
    match id(text, "<#")? {
        Id::Channel(channel) if channel.starts_with('C') => Some(channel.to_owned()),
        Id::Channel(_) | Id::User(_) => None,
    }
}

/// An id as it is, or as Slack writes a mention. A word of a language is none.
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

/// The name of a pool that there can be.
pub(super) fn pool(text: &str) -> Option<String> {
    Pool::parse(text).ok().map(|pool| pool.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_of_other_workspaces_are_people() {
        assert_eq!(user("W1"), Some("W1".into()));
        assert_eq!(channel("W1"), None);
    }
}
