//! Names and identifiers, and the common subjects of two sentences.

use std::cmp::Ordering;

/// Whether it is an English word, in lower case, that is no name where it is capitalised.
fn is_no_name(word: &str) -> bool {
    matches!(
        word,
        "i" | "the"
            | "a"
            | "an"
            | "this"
            | "that"
            | "it"
            | "we"
            | "you"
            | "they"
            | "he"
            | "she"
            | "if"
            | "when"
            | "what"
            | "why"
            | "how"
            | "who"
            | "where"
            | "yes"
            | "no"
            | "please"
            | "ok"
            | "thanks"
            | "and"
            | "but"
            | "so"
            | "then"
            | "monday"
            | "tuesday"
            | "wednesday"
            | "thursday"
            | "friday"
            | "saturday"
            | "sunday"
            | "january"
            | "february"
            | "march"
            | "april"
            | "may"
            | "june"
            | "july"
            | "august"
            | "september"
            | "october"
            | "november"
            | "december"
    )
}

/// Whether it is an English word, in lower case, that does not say what a sentence is about.
fn is_no_subject(word: &str) -> bool {
    matches!(
        word,
        "are"
            | "for"
            | "from"
            | "has"
            | "have"
            | "its"
            | "not"
            | "now"
            | "our"
            | "today"
            | "tomorrow"
            | "was"
            | "were"
            | "will"
            | "with"
    ) || is_no_name(word)
}

/// Whether it is an English word, in lower case, for one of several that are numbered.
fn is_numbered(word: &str) -> bool {
    matches!(
        word,
        "build"
            | "issue"
            | "item"
            | "iteration"
            | "milestone"
            | "phase"
            | "release"
            | "sprint"
            | "stage"
            | "task"
            | "ticket"
            | "version"
    )
}

/// Whether a word goes on with this character. Chinese, which is most of what a table has, is told without one.
fn is_part(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}') || c.is_alphanumeric()
}

/// Names of code and files: with `_`, `::`, an inner full stop or slash, or in camel case.
pub fn identifiers(text: &str) -> Vec<String> {
    if !has_letter(text) {
        return vec![];
    }
    let part_of_one = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | ':' | '-');
    let pieces = text.split(|c: char| !part_of_one(c)).filter(|piece| !piece.is_empty());
    let trimmed = pieces.map(|piece| piece.trim_matches(['.', ':', '-', '/']));
    trimmed.filter(|piece| is_identifier(piece)).map(str::to_owned).collect()
}

/// Whether a text has a letter that is not Chinese.
pub fn has_letter(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_identifier(piece: &str) -> bool {
    let hump = || piece.as_bytes().windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    let point = || piece.contains('.') && piece.split('.').all(|part| part.len() > 1);
    let is_address = || piece.contains("//");
    // Most are plain words, so what is quick to tell is asked first.
    (piece.contains(['_', '/']) || hump() || point() || piece.contains("::")) && has_letter(piece) && !is_address()
}

/// People: `@somebody`, `<@U1>`, capitalised words within an English sentence, a Chinese name with its title.
pub fn names(sentence: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, word) in sentence.split_whitespace().enumerate() {
        let bare = word.trim_matches(|c: char| !is_part(c));
        let capital = bare.chars().next().is_some_and(|c| c.is_ascii_uppercase());
        let is_word = bare.len() > 1 && bare.chars().skip(1).all(|c| c.is_ascii_lowercase());
        if word.starts_with('@') || word.starts_with("<@") {
            names.push(word.trim_end_matches([',', '.', '?', '!', ':']).to_owned());
        } else if at > 0 && capital && is_word && !is_no_name(&bare.to_ascii_lowercase()) {
            names.push(bare.to_owned());
        }
    }
    let chinese = sentence.char_indices().filter(|(_, c)| !c.is_ascii());
    names.extend(chinese.filter_map(|(at, _)| chinese_name(sentence, at)));
    names
}

/// The title at this place, with the family name before it.
fn chinese_name(sentence: &str, at: usize) -> Option<String> {
    let (before, rest) = sentence.split_at(at);
    let title = title(rest)?;
    let family = before.chars().next_back().filter(|c| SURNAMES.contains(*c))?;
    Some(format!("{family}{title}"))
}

/// The title that a text begins with, of those that follow a name in Chinese.
fn title(text: &str) -> Option<&'static str> {
    let title = match text.chars().next()? {
        '經' => "經理",
        '主' => "主任",
        '協' => "協理",
        '副' => "副理",
        '總' => "總監",
        '小' => "小姐",
        '先' => "先生",
        '姐' => "姐",
        '哥' => "哥",
        '经' => "经理",
        _ => return None,
    };
    text.starts_with(title).then_some(title)
}

/// The most common family names.
const SURNAMES: &str =
    "陳林黃張李王吳劉蔡楊許鄭謝郭洪曾邱廖賴周徐蘇葉莊呂江何蕭羅高简潘朱簡鍾游彭詹胡施沈余趙盧梁顏柯孫魏翁戴范宋方鄧";

/// The subjects of a sentence: its words and pairs of Chinese characters, without figures and days. Each is a number,
/// because each sentence is compared with many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subjects {
    /// Ascending, without repeats.
    numbers: Vec<u64>,
    /// The figure that tells one of several from the others.
    ordinal: Option<u64>,
}

impl Subjects {
    /// Those of a sentence.
    pub fn of(sentence: &str) -> Self {
        let lower = sentence.to_ascii_lowercase();
        let mut numbers = Vec::new();
        for word in lower.split(|c: char| !is_part(c)) {
            if word.is_ascii() {
                if word.len() > 2 && !word.bytes().any(|byte| byte.is_ascii_digit()) && !is_no_subject(word) {
                    numbers.push(number(word));
                }
                continue;
            }
            let is_subject = |c: char| !c.is_ascii() && !matches!(c, '週' | '周' | '星' | '禮' | '拜');
            let pairs = word.chars().zip(word.chars().skip(1)).filter(|&(a, b)| is_subject(a) && is_subject(b));
            numbers.extend(pairs.map(|(a, b)| u64::from(a) << 32 | u64::from(b)));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Subjects { numbers, ordinal: ordinal(&lower) }
    }

    /// Whether both are about one of several, but not about the same one.
    pub fn is_another(&self, other: &Subjects) -> bool {
        self.ordinal.zip(other.ordinal).is_some_and(|(ours, theirs)| ours != theirs)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// How many of them are also subjects of another sentence.
    pub fn common(&self, other: &Subjects) -> usize {
        let (mut ours, mut theirs) = (&self.numbers[..], &other.numbers[..]);
        let mut common = 0;
        while let ([our, our_rest @ ..], [their, their_rest @ ..]) = (ours, theirs) {
            common += usize::from(our == their);
            (ours, theirs) = match our.cmp(their) {
                Ordering::Less => (our_rest, theirs),
                Ordering::Equal => (our_rest, their_rest),
                Ordering::Greater => (ours, their_rest),
            };
        }
        common
    }
}

/// The first figure in a text, which is in lower case, that is part of a name.
fn ordinal(text: &str) -> Option<u64> {
    let is_figure = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let digits = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| text.split_at(at));
    let figures = digits.filter(|(before, _)| !before.ends_with(is_figure));
    let mut around = figures.map(|(before, figure)| {
        let (figure, after) = figure.split_at(figure.find(|c| !is_figure(c)).unwrap_or(figure.len()));
        (before, figure.trim_end_matches(['.', ',']), after)
    });
    around.find(|(before, _, after)| is_named_by_figure(before, after)).map(|(_, figure, _)| number(figure))
}

/// Whether a figure between these texts, which are in lower case, is part of a name: `release 2.3`, `v2`, `#17`, 第 2 期.
fn is_named_by_figure(before: &str, after: &str) -> bool {
    let joined = last_word(before.strip_suffix('-').unwrap_or(before));
    let apart = before.trim_end();
    let is_date = || after.trim_start().starts_with(['季', '週', '周', '天', '日', '月', '年']);
    !joined.is_empty() && !is_unit(joined) && !is_in_mention(before)
        || apart.ends_with('#')
        || apart.ends_with('第') && !is_date()
        || apart.ends_with("版本")
        || is_numbered(last_word(apart))
}

/// Whether letters directly before a figure, in lower case, make it a date or an amount.
fn is_unit(letters: &str) -> bool {
    matches!(
        letters,
        "q" | "h" | "w" | "cw" | "fy" | "usd" | "twd" | "ntd" | "nt" | "eur" | "jpy" | "cny" | "rmb" | "hkd" | "gbp"
    )
}

/// Whether a text ends within the mention of a person: `@u01`, `<@u01`.
fn is_in_mention(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')).ends_with('@')
}

/// The letters at the end of a text.
fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len()..]
}

/// A number for a word in lower case (FNV-1a), apart from those of pairs of characters.
fn number(word: &str) -> u64 {
    let hash = word
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_identifiers_are_told_from_words() {
        let text = "Ask Priya or @lin about `sales_performances` in app/models/budget.rb, v1.5 and BudgetWorker; not e.g. this.";
        assert_eq!(names(text), ["Priya", "@lin"]);
        assert_eq!(identifiers(text), ["sales_performances", "app/models/budget.rb", "BudgetWorker"]);
        assert_eq!(names("請找財務王副理簽核"), ["王副理"]);
        assert_eq!(names("The launch is on Friday"), Vec::<String>::new());
    }
}
