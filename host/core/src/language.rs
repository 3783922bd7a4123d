//! The languages that the gateway uses with people and models.

use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

/// A language that the gateway supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Language {
    /// The default.
    #[default]
    English,
    /// Traditional Chinese, the language of the specifications.
    TraditionalChinese,
}

/// A text that is not a language tag.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown language `{0}`; use `zh-TW` or `en`")]
pub struct UnknownLanguage(String);

impl Language {
    /// All languages.
    pub const ALL: [Language; 2] = [Language::English, Language::TraditionalChinese];

    /// The language's tag (BCP 47).
    pub const fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::TraditionalChinese => "zh-TW",
        }
    }

    /// Returns whichever of the two texts is in this language.
    pub const fn pick(self, english: &'static str, chinese: &'static str) -> &'static str {
        match self {
            Language::English => english,
            Language::TraditionalChinese => chinese,
        }
    }

    /// The language of a locale as in `LANG`: Traditional Chinese for `zh_TW…` and `zh_Hant…`, English for any other.
    pub fn of_locale(locale: &str) -> Language {
        let locale = locale.trim().replace('-', "_").to_ascii_lowercase();
        let is_one_of = |names: [&str; 2]| names.iter().any(|name| locale.starts_with(name));
        if is_one_of(["zh_tw", "zh_hant"]) { Language::TraditionalChinese } else { Language::English }
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

    #[test]
    fn a_locale_is_traditional_chinese_or_taken_for_english() {
        for locale in ["zh_TW", "zh_TW.UTF-8", "zh-TW", "zh_Hant", "zh-Hant-HK"] {
            assert_eq!(Language::of_locale(locale), Language::TraditionalChinese, "{locale}");
        }
        for locale in ["C", "C.UTF-8", "POSIX", "en_US.UTF-8", "de_DE", "zh_CN.UTF-8", "zh"] {
            assert_eq!(Language::of_locale(locale), Language::English, "{locale}");
        }
    }
}
