//! Caps by name.

/// The cap for a name in a list such as `grep=8000 *.log=20000`, the first that matches, and the words of the list that
/// make no sense.
pub fn cap_of<'l>(list: &'l str, name: &str) -> (Option<u32>, Vec<&'l str>) {
    let (mut cap, mut unread) = (None, vec![]);
    for word in list.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()) {
        match entry(word) {
            Some((pattern, chars)) if cap.is_none() && fits(pattern, name) => cap = Some(chars),
            Some(_) => {}
            None => unread.push(word),
        }
    }
    (cap, unread)
}

/// A word of the list: the pattern and its cap.
fn entry(word: &str) -> Option<(&str, u32)> {
    let (pattern, chars) = word.rsplit_once('=')?;
    Some((pattern, chars.parse().ok()?))
}

/// Whether a name matches the pattern; one `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_fits_counts() {
        let list = "grep=8000, *.log=20000 read_*=1 read_file=9 broken=x broken=7";
        let caps = ["grep", "a.log", "read_file", "broken", "other", ""].map(|name| cap_of(list, name).0);
        assert_eq!(caps, [Some(8_000), Some(20_000), Some(1), Some(7), None, None]);
        assert_eq!(cap_of("ab*ba=1", "aba").0, None);
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        assert_eq!(cap_of("grep=8k, *.log:20000 find=3", "find"), (Some(3), vec!["grep=8k", "*.log:20000"]));
        assert_eq!(cap_of("find=3,, read=4\n", "find"), (Some(3), vec![]));
    }
}
