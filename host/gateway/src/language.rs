//! The languages that people are talked to in.

use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

/// A language that the gateway speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Language {
    /// Traditional Chinese, the language of the specifications.
    #[default]
    TraditionalChinese,
    English,
}

/// A text that names no language.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is no language; there are `zh-TW` and `en`")]
pub struct UnknownLanguage(String);

impl Language {
    pub(crate) const ALL: [Language; 2] = [Language::TraditionalChinese, Language::English];

    /// The tag (BCP 47).
    pub const fn tag(self) -> &'static str {
        match self {
            Language::TraditionalChinese => "zh-TW",
            Language::English => "en",
        }
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Language::ALL.into_iter().find(|language| language.tag().eq_ignore_ascii_case(text.trim()));
        named.ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}

impl TryFrom<String> for Language {
    type Error = UnknownLanguage;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_named_by_their_tags() {
        assert_eq!("EN".parse(), Ok(Language::English));
        assert_eq!("zh-tw".parse(), Ok(Language::TraditionalChinese));
        assert_eq!("fr".parse::<Language>(), Err(UnknownLanguage("fr".into())));
    }
}
