//! Folds two scripts into one, so that texts in traditional and in simplified characters match, and so do the different
//! words of Taiwan and mainland China for the same thing (`資料庫` and `数据库`).
//!
//! This form is never displayed. It uses simplified characters, because several traditional characters map to one
//! simplified character, and hardly ever the other way round.

use std::{collections::HashMap, sync::LazyLock};

use crate::terms::{is_wide, normalize};

/// Each line is a traditional character and its simplified form.
const CHARACTERS: &str = include_str!("script/characters.txt");

/// Each line is a word as in mainland China, a tab, and the word as in Taiwan.
const WORDS: &str = include_str!("script/words.txt");

static SIMPLIFIED: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let pair = |line: &str| {
        let mut chars = line.chars();
        Some((chars.next()?, chars.next()?))
    };
    lines(CHARACTERS).filter_map(pair).collect()
});

/// Characters that people confuse, in simplified form.
const MIXED_UP: [(char, char); 1] = [('帐', '账')];

/// The words of mainland China in simplified characters, by their first character, the longest first, each with
/// Taiwan's word: several may map to the same one (`默认`, `缺省`).
type Words = HashMap<char, Vec<(String, String)>>;

static WORDS_OF_MAINLAND: LazyLock<Words> = LazyLock::new(|| {
    let mut words = Words::new();
    for (mainland, taiwan) in lines(WORDS).filter_map(|line| line.split_once('\t')) {
        let (mainland, taiwan) = (simplified(mainland), simplified(taiwan));
        let Some(first) = mainland.chars().next() else { continue };
        let list = words.entry(first).or_default();
        if !list.iter().any(|(known, _)| *known == mainland) {
            list.push((mainland, taiwan));
        }
    }
    words.values_mut().for_each(|list| list.sort_by_key(|(mainland, _)| std::cmp::Reverse(mainland.len())));
    words
});

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#'))
}

/// The text in the folded form, which is used for matching.
pub fn fold(text: &str) -> String {
    let text = simplified(&normalize(text));
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let known = WORDS_OF_MAINLAND.get(&first).into_iter().flatten();
        let (word, after) = match known.into_iter().find(|(mainland, _)| rest.starts_with(mainland.as_str())) {
            Some((mainland, taiwan)) => (taiwan.as_str(), &rest[mainland.len()..]),
            None => rest.split_at(first.len_utf8()),
        };
        out.push_str(word);
        rest = after;
    }
    out
}

fn simplified(text: &str) -> String {
    let simplified = |c: char| if is_wide(c) { SIMPLIFIED.get(&c).copied().unwrap_or(c) } else { c };
    let one_of_two = |c: char| MIXED_UP.iter().find(|(written, _)| *written == c).map_or(c, |(_, meant)| *meant);
    text.chars().map(simplified).map(one_of_two).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_scripts_and_both_vocabularies_meet() {
        for (taiwan, mainland) in [
            ("資料庫登入後無法列印", "数据库登录后无法打印"),
            ("軟體的預設密碼", "软件的默认密码"),
            ("ＷｉＦｉ 連線", "WiFi 连线"),
            ("門市臨時停電", "门市临时停电"),
            ("帳號的缺省值", "账号的預設值"),
        ] {
            assert_eq!(fold(taiwan), fold(mainland));
        }
        assert_eq!(fold("app/models/x.rb 壞了"), "app/models/x.rb 坏了");
    }

    proptest! {
        #[test]
        fn what_is_folded_stays_so_in_length_of_runs(text in "(\\PC|中|資料|程式|登入){0,40}") {
            let folded = fold(&text);
            let wide = |text: &str| text.chars().any(is_wide);
            prop_assert_eq!(wide(&normalize(&text)), wide(&folded));
        }
    }
}
