//! Splits a text into sentences.

/// A longer sentence is taken for a listing or a log and dropped.
const LONGEST_CHARS: usize = 200;

/// The sentences of a text, without list markers and without code blocks.
pub fn of(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            sentences.extend(of_line(line));
        }
    }
    sentences
}

fn of_line(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches(['-', '*', '>', '#', '•']).trim();
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        // A full stop ends a sentence only before white space: not in `1.5` or `a.rs`.
        let blank_follows = || line[end..].chars().next().is_none_or(char::is_whitespace);
        if matches!(c, '。' | '！' | '？' | '；') || matches!(c, '.' | '!' | '?' | ';') && blank_follows() {
            sentences.push(&line[start..end]);
            start = end;
        }
    }
    sentences.push(&line[start..]);
    let fits = |sentence: &&str| sentence.chars().nth(1).is_some() && sentence.chars().nth(LONGEST_CHARS).is_none();
    sentences.into_iter().map(str::trim).filter(fits).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn points_inside_words_end_nothing() {
        let text = "- We take 1.5 % of main.rs. Agreed!\n```\ncode. here.\n```\n改到週五。為什麼？";
        assert_eq!(super::of(text), ["We take 1.5 % of main.rs.", "Agreed!", "改到週五。", "為什麼？"]);
    }
}
