//! Finds where to cut: between keys, between lines.

/// A cut position must keep at least one part in this many of the text; otherwise the text is cut anywhere.
const LEAST_PARTS: usize = 2;

/// How many characters of the start of a JSON text to keep, of those given: whole values of the outermost object or
/// list in which enough of the text is kept.
pub fn json_head(text: &str) -> u32 {
    best(&commas(text.chars(), ['{', '['], ['}', ']']), text)
}

/// The same for its end.
pub fn json_tail(text: &str) -> u32 {
    best(&commas(text.chars().rev(), ['}', ']'], ['{', '[']), text)
}

/// How many characters of the start to keep: whole lines.
pub fn lines_head(text: &str) -> u32 {
    enough(text.rfind('\n').map_or(0, |at| text[..=at].chars().count()), text)
}

/// The same for the end.
pub fn lines_tail(text: &str) -> u32 {
    enough(text.find('\n').map_or(0, |at| text[at + 1..].chars().count()), text)
}

/// The last comma at each of two depths, in characters. The text may be read backwards: outside of strings only the
/// brackets differ, and an escaped quote is recognised from either side.
fn commas(chars: impl Iterator<Item = char>, opening: [char; 2], closing: [char; 2]) -> [usize; 2] {
    let chars: Vec<char> = chars.collect();
    let backwards = opening == ['}', ']'];
    let escaped = |at: usize| {
        let slashes = |next: &dyn Fn(usize) -> Option<usize>| {
            let mut count = 0;
            let mut here = at;
            while let Some(beside) = next(here).filter(|&beside| chars.get(beside) == Some(&'\\')) {
                (count, here) = (count + 1, beside);
            }
            count
        };
        let before = if backwards { slashes(&|at| Some(at + 1)) } else { slashes(&|at| at.checked_sub(1)) };
        before % 2 == 1
    };
    let (mut depth, mut in_string, mut last) = (0_usize, false, [0; 2]);
    for (at, &c) in chars.iter().enumerate() {
        match c {
            '"' if !escaped(at) => in_string = !in_string,
            _ if in_string => {}
            c if opening.contains(&c) => depth += 1,
            c if closing.contains(&c) => depth = depth.saturating_sub(1),
            ',' if (1..=2).contains(&depth) => last[depth - 1] = at + usize::from(!backwards),
            _ => {}
        }
    }
    last
}

/// The outermost position that keeps enough of the text.
fn best(places: &[usize], text: &str) -> u32 {
    let all = text.chars().count();
    let place = places.iter().find(|&&place| place * LEAST_PARTS >= all).copied();
    u32::try_from(place.unwrap_or(all)).unwrap_or(u32::MAX)
}

fn enough(place: usize, text: &str) -> u32 {
    best(&[place], text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> String {
        text.chars().take(json_head(text) as usize).collect()
    }

    fn tail(text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        chars[chars.len() - json_tail(text) as usize..].iter().collect()
    }

    #[test]
    fn json_is_cut_between_keys() {
        assert_eq!(head(r#"{"id": 7, "name": "a, \"b\", c", "rows": [1, 2"#), r#"{"id": 7, "name": "a, \"b\", c","#);
        assert_eq!(tail(r#", 2], "name": "x, {y}", "total": 9}"#), r#" "name": "x, {y}", "total": 9}"#);
        assert_eq!(head(r#"{"rows": [{"a": 1}, {"a": 2}, {"a": 3"#), r#"{"rows": [{"a": 1}, {"a": 2},"#);
    }

    #[test]
    fn what_has_no_place_to_cut_is_cut_anywhere() {
        let text = format!("{{\"blob\": \"{}", "x".repeat(50));
        assert_eq!(json_head(&text) as usize, text.len());
        assert_eq!((lines_head("no line"), lines_tail("no line")), (7, 7));
    }

    #[test]
    fn lines_stay_whole() {
        assert_eq!((lines_head("one\ntwo\nth"), lines_tail("ne\ntwo\nthree")), (8, 9));
    }
}
