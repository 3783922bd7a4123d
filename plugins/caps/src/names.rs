//! Caps by name.

/// The cap for a name in a list such as `grep=8000 *.log=20000`: the first that matches. Invalid entries are skipped.
pub fn cap_of(list: &str, name: &str) -> Option<u32> {
    let entries = list.split(|c: char| c.is_whitespace() || c == ',').filter_map(|entry| entry.rsplit_once('='));
    entries.filter(|(pattern, _)| fits(pattern, name)).find_map(|(_, chars)| chars.parse().ok())
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
        let caps = ["grep", "a.log", "read_file", "broken", "other", ""].map(|name| cap_of(list, name));
        assert_eq!(caps, [Some(8_000), Some(20_000), Some(1), Some(7), None, None]);
        assert_eq!(cap_of("ab*ba=1", "aba"), None);
    }
}
