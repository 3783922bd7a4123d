//! Slack ids.

use thiserror::Error;

/// The id of a person or a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id<'a> {
    User(&'a str),
    Channel(&'a str),
}

/// A text that is not the expected id.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadId {
    #[error("`{0}` is not the id of a user (`U…`, `W…`) or a channel (`C…`, `G…`, `D…`)")]
    Neither(String),
    #[error("`{0}` is not a user id (`U…`, `W…`)")]
    NotAUser(String),
    #[error("`{0}` is not a channel id (`C…`, `G…`, `D…`)")]
    NotAChannel(String),
}

impl<'a> Id<'a> {
    /// Parses an id: the first letter tells users from channels; letters, digits and `_` follow.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &'a str) -> Result<Self, BadId> {
        let plain = text.len() > 1 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match text.chars().next().filter(|_| plain) {
            Some('U' | 'W') => Ok(Id::User(text)),
            Some('C' | 'G' | 'D') => Ok(Id::Channel(text)),
            _ => Err(BadId::Neither(text.to_owned())),
        }
    }

    /// Parses the id of a person.
    ///
    /// # Errors
    /// It is not a user id.
    pub fn user(text: &'a str) -> Result<&'a str, BadId> {
        match Id::parse(text) {
            Ok(Id::User(user)) => Ok(user),
            _ => Err(BadId::NotAUser(text.to_owned())),
        }
    }

    /// Parses the id of a channel.
    ///
    /// # Errors
    /// It is not a channel id.
    pub fn channel(text: &'a str) -> Result<&'a str, BadId> {
        match Id::parse(text) {
            Ok(Id::Channel(channel)) => Ok(channel),
            _ => Err(BadId::NotAChannel(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_tells_people_from_channels() {
        for user in ["U0XYZ", "W1", "U_IT1"] {
            assert_eq!((Id::parse(user), Id::user(user)), (Ok(Id::User(user)), Ok(user)));
            assert_eq!(Id::channel(user), Err(BadId::NotAChannel(user.into())));
        }
        for channel in ["C1", "G1", "D0B0E9UV52M"] {
            assert_eq!((Id::parse(channel), Id::channel(channel)), (Ok(Id::Channel(channel)), Ok(channel)));
            assert_eq!(Id::user(channel), Err(BadId::NotAUser(channel.into())));
        }
        for bad in ["", "U", "u1", "han", "<@U1>", "@han", "U1 U2", "U1-2", "Uä", "U1\n", "--json"] {
            assert!(Id::parse(bad).is_err() && Id::user(bad).is_err() && Id::channel(bad).is_err(), "{bad}");
        }
    }
}
