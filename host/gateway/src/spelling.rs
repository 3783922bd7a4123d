//! Compares texts independently of spelling, encoding and look-alike characters.

use std::{borrow::Cow, collections::HashMap, iter::Peekable, str::CharIndices, sync::LazyLock};

use entities::ENTITIES;
use icu_normalizer::ComposingNormalizerBorrowed;
use percent_encoding::percent_decode_str;
use unicode_security::confusable_detection::skeleton;

/// How many times decoding is repeated on its own result.
const ROUNDS: usize = 3;

/// The longest name of an HTML entity has 32 characters.
const LONGEST_ENTITY: usize = 40;

/// The result of [`slowly`] for each ASCII character, which are most of most texts.
static ASCII: LazyLock<[String; 128]> = LazyLock::new(|| {
    std::array::from_fn(|code| slowly(&char::from(u8::try_from(code).unwrap_or_default()).to_string()))
});

/// The similarity, from 0 to 1, from which a mistyped word is taken for a known one.
const LIKE: f64 = 0.8;

static NAMED: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| ENTITIES.iter().map(|entity| (entity.entity, entity.characters)).collect());

/// Returns the known word most similar to a mistyped one; `None` if none is similar enough.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&word, &known.to_lowercase()), known))
        .filter(|(like, _)| *like >= LIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

/// Reduces a text to its letters and digits, each as the plainest of its look-alikes: separators, encoding, case, width
/// and accents make no difference. The result is for comparison, not for reading: it contains `rn` for `m`.
pub(crate) fn plain(text: &str) -> String {
    let text = decoded(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while !rest.is_empty() {
        let (ascii, more) = rest.split_at(rest.find(|c: char| !c.is_ascii()).unwrap_or(rest.len()));
        ascii.bytes().for_each(|byte| out.push_str(&ASCII[usize::from(byte)]));
        let (other, more) = more.split_at(more.find(|c: char| c.is_ascii()).unwrap_or(more.len()));
        if !other.is_empty() {
            out.push_str(&slowly(other));
        }
        rest = more;
    }
    out
}

/// Replaces the characters outside of ASCII by those they look like, as far as there are any: separators, too.
pub(crate) fn as_it_looks(text: &str) -> String {
    let compatible = ComposingNormalizerBorrowed::new_nfkc().normalize(text);
    let mut looks = String::with_capacity(compatible.len());
    for c in compatible.chars() {
        match c.is_ascii() {
            true => looks.push(c),
            false => looks.extend(skeleton(c.encode_utf8(&mut [0; 4]))),
        }
    }
    looks
}

/// Uses the tables of Unicode: compatibility forms (NFKC), confusables (UTS #39), case.
fn slowly(text: &str) -> String {
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    // Separators must not be taken for letters: `|` looks like `l`.
    let text = letters(&ComposingNormalizerBorrowed::new_nfkc().normalize(text));
    let looks = |text: &str| letters(&skeleton(text).collect::<String>());
    let folded = looks(&text).to_uppercase().to_lowercase();
    // A capital has other confusables than its small letter: `I` is an `l`, `i` is not.
    looks(&folded).chars().map(|c| if c == 'i' { 'l' } else { c }).flat_map(char::to_lowercase).collect()
}

/// Decodes percent-encoding of URLs, HTML entities, and escapes of source code.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let mut decoded = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        if !decoded.contains(['%', '&', '\\']) {
            break;
        }
        let percent = percent_decode_str(&decoded).decode_utf8_lossy();
        let next = unescaped(&percent);
        if next == *decoded {
            break;
        }
        decoded = Cow::Owned(next);
    }
    decoded
}

/// Decodes entities and escapes once.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let read = match c {
            '&' => entity(&text[at..]),
            '\\' => escape(&text[at + 1..]).map(|(read, length)| (read, length + 1)),
            _ => None,
        };
        match read {
            Some((read, length)) => {
                out.push_str(&read);
                skip(&mut chars, at + length);
            }
            None => out.push(c),
        }
    }
    out
}

fn skip(chars: &mut Peekable<CharIndices<'_>>, end: usize) {
    while chars.next_if(|&(at, _)| at < end).is_some() {}
}

/// Returns what an entity at the beginning of the text stands for, and its length.
pub(crate) fn entity(text: &str) -> Option<(Cow<'static, str>, usize)> {
    let end = text.bytes().take(LONGEST_ENTITY).position(|byte| byte == b';')? + 1;
    let name = text.get(..end)?;
    let read = match name.strip_prefix("&#").map(|number| number.trim_end_matches(';')) {
        Some(number) => {
            let hexadecimal = number.strip_prefix(['x', 'X']);
            Cow::Owned(character(hexadecimal.unwrap_or(number), if hexadecimal.is_some() { 16 } else { 10 })?)
        }
        None => Cow::Borrowed(*NAMED.get(name)?),
    };
    Some((read, end))
}

/// The same for an escape, after its backslash.
fn escape(text: &str) -> Option<(Cow<'static, str>, usize)> {
    let digits = |from: usize, count: usize| {
        let code = text.get(from..from + count).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        Some((Cow::Owned(character(code, 16)?), from + count))
    };
    match text.as_bytes().first()? {
        b'u' if text.as_bytes().get(1) == Some(&b'{') => {
            let end = text.bytes().take(12).position(|byte| byte == b'}')?;
            digits(2, end.checked_sub(2)?).map(|(read, length)| (read, length + 1))
        }
        b'u' => digits(1, 4),
        b'U' => digits(1, 8),
        b'x' => digits(1, 2),
        b'n' | b'r' | b't' => Some((Cow::Borrowed(" "), 1)),
        _ => None,
    }
}

fn character(code: &str, radix: u32) -> Option<String> {
    u32::from_str_radix(code, radix).ok().and_then(char::from_u32).map(String::from)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn spellings_of_one_text_are_one() {
        for (one, other) in [
            ("Where is the scope?", "where　is　the　ｓｃｏｐｅ？"),
            ("scope", "s\u{441}o\u{440}\u{435}"),
            ("scope", "s\u{200b}c\u{2060}o\u{ad}p\u{feff}e"),
            ("scope", "𝓼𝓬𝓸𝓹𝓮"),
            ("scope", "ⓢⓒⓞⓟⓔ"),
            ("scope", "ṡçöp\u{301}é"),
            ("launch", "Iaunch"),
            ("launch 10", "|LAUNCH| lO"),
            ("mra-ask", "ｍｒａ＿ａｓｋ"),
            ("mra-ask", "MRA\u{2011}ASK"),
            ("the scope", "the%20scope"),
            ("the scope", "the%2520%73cope"),
            ("the scope", "the&nbsp;s&#99;o&#x70;e"),
            ("the scope", "the&amp;#32;scope"),
            ("the scope", r"the\nsc\u006fp\x65"),
            ("the scope", r"the\u{20}scop\U00000065"),
            ("預算分配", "預\u{200b}算 **分**配"),
            ("預算", "%E9%A0%90%E7%AE%97"),
            ("Straße", "STRASSE"),
        ] {
            assert_eq!(plain(one), plain(other), "{one} and {other}");
        }
        assert_ne!(plain("預算"), plain("預售"));
        assert_ne!(plain("scope"), plain("slope"));
    }

    /// A letter disguised in each of the ways that the issue about echoes lists.
    fn disguised(c: char, how: u8) -> String {
        match how {
            0 => c.to_uppercase().collect(),
            1 => format!("%{:02X}", u32::from(c)),
            2 => format!("&#{};", u32::from(c)),
            3 => format!("\\u{:04x}", u32::from(c)),
            4 => format!("{c}\u{200b}"),
            5 => format!(" {c}"),
            6 => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c).to_string(),
            7 => match c {
                'a' => "\u{430}".into(),
                'c' => "\u{441}".into(),
                'e' => "\u{435}".into(),
                'i' => "\u{456}".into(),
                'o' => "\u{43e}".into(),
                'p' => "\u{440}".into(),
                's' => "\u{455}".into(),
                'x' => "\u{445}".into(),
                'y' => "\u{443}".into(),
                other => other.to_string(),
            },
            _ => c.to_string(),
        }
    }

    proptest! {
        #[test]
        fn no_disguise_changes_what_a_text_says(letters in vec((prop::char::range('a', 'z'), 0..12u8), 0..60)) {
            let said: String = letters.iter().map(|(letter, _)| *letter).collect();
            let shown: String = letters.iter().map(|&(letter, how)| disguised(letter, how)).collect();
            prop_assert_eq!(plain(&said), plain(&shown), "{}", shown);
        }

        #[test]
        fn foreign_texts_are_taken_as_they_come(text in prop_oneof![".*", "[%&#;\\\\{}ux0-9a-f\u{e9}]{0,40}"]) {
            let said = plain(&text);
            prop_assert!(said.chars().all(char::is_alphanumeric), "{}", said);
        }

        #[test]
        fn what_is_said_of_parts_is_said_of_the_whole(one in "[a-z 預算é]{0,20}", other in "[a-z 分配ö]{0,20}") {
            let whole = format!("{one}\n{other}");
            prop_assert!(plain(&whole).contains(&plain(&other)), "{}", whole);
        }
    }
}
