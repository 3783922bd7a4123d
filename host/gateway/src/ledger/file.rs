//! The file of a month: lines are appended to it, and found again after a crash.

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use pmk_system::home;

/// The maximum length of a line.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Appends whole lines to the file, and returns its length then. An incomplete last line that is the beginning of
/// the first new line is overwritten; any other is terminated first, so that only that line is damaged.
///
/// # Errors
/// Nothing, or only a part of the lines, was written.
pub(super) fn append(path: &Path, lines: &[&str]) -> io::Result<u64> {
    is_there(path)?;
    let mut file = home::append_private_file(path)?;
    let mut text = String::new();
    let torn = torn_end(&mut file)?;
    if !torn.is_empty() {
        match lines.first() {
            Some(line) if line.as_bytes().starts_with(&torn) => {
                file.set_len(file.metadata()?.len() - torn.len() as u64)?
            }
            _ => text.push('\n'),
        }
    }
    lines.iter().for_each(|line| text.push_str(line));
    file.write_all(text.as_bytes())?;
    Ok(file.metadata()?.len())
}

/// Returns what follows the last line end.
fn torn_end(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    if length == 0 || byte_at(file, length - 1)? == b'\n' {
        return Ok(vec![]);
    }
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_LINE_BYTES)))?;
    file.read_to_end(&mut end)?;
    let start = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok(end.split_off(start))
}

fn byte_at(file: &mut File, at: u64) -> io::Result<u8> {
    let mut byte = [0];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Returns how many of these lines are in the file after its first `from` bytes, and where the last of them ends.
/// They were written in this order: where a later one is found, the earlier ones were written, too, and somebody
/// has edited or deleted them since, as people may. Where somebody has edited what precedes, the whole file is
/// searched.
///
/// # Errors
/// The file cannot be read.
pub(super) fn find(path: &Path, from: u64, lines: &[&str]) -> io::Result<(usize, u64)> {
    if !is_there(path)? {
        return Ok((0, 0));
    }
    let mut file = File::open(path)?;
    let is_a_start = from > 0 && from <= file.metadata()?.len() && byte_at(&mut file, from - 1)? == b'\n';
    let mut at = if is_a_start { from } else { 0 };
    file.seek(SeekFrom::Start(at))?;
    let (mut found, mut end) = (0, at);
    // Two events may have the same text: each line of the file stands for one of them.
    let mut missing: HashMap<&[u8], VecDeque<usize>> = HashMap::new();
    for (number, line) in lines.iter().enumerate() {
        missing.entry(line.as_bytes()).or_default().push_back(number);
    }
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    while found < lines.len() && reader.read_until(b'\n', &mut line)? > 0 {
        at += line.len() as u64;
        if let Some(number) = missing.get_mut(line.as_slice()).and_then(VecDeque::pop_front) {
            (found, end) = (found.max(number + 1), at);
        }
        line.clear();
    }
    Ok((found, end))
}

/// Whether the file exists. Anything else in its place is neither read nor written: a pipe would never end.
pub(super) fn is_there(path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(true),
        Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Syncs the file to the disk.
///
/// # Errors
/// It is unknown whether it is synced.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(file) => file.sync_all().and_then(|()| home::sync_folder_of(path)),
        // Somebody has moved it away, with its lines.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.log");
        std::fs::write(&path, text).expect("a file");
        (folder, path)
    }

    #[test]
    fn a_torn_line_is_written_anew_and_half_a_line_of_another_swallows_none() {
        for (before, after) in [
            ("", "one\ntwo\n"),
            ("zero\n", "zero\none\ntwo\n"),
            ("zero\non", "zero\none\ntwo\n"),
            ("on", "one\ntwo\n"),
            ("zero\nze", "zero\nze\none\ntwo\n"),
        ] {
            let (_folder, path) = file(before);
            let length = append(&path, &["one\n", "two\n"]).expect("written");
            let text = std::fs::read_to_string(&path).expect("the file");
            assert_eq!((text.as_str(), text.len() as u64), (after, length));
        }
    }

    #[test]
    fn lines_are_found_in_their_order_after_a_place_and_anywhere_where_that_was_edited_away() {
        for (text, from, lines, expected) in [
            ("a\nb\nc\n", 2, &["b\n", "c\n"][..], (2, 6)),
            ("a\nb\nc", 2, &["b\n", "c\n"], (1, 4)),
            ("a\na\n", 2, &["a\n", "a\n"], (1, 4)),
            ("a\nnote\nb\n", 2, &["b\n", "c\n"], (1, 9)),
            ("b\n", 4, &["b\n", "c\n"], (1, 2)),
            ("edited a\nb\n", 2, &["b\n"], (1, 11)),
            ("a\nb\n", 0, &["c\n"], (0, 0)),
            // What people have removed, changed or moved stays so.
            ("a\nc\n", 2, &["b\n", "c\n"], (2, 4)),
            ("a\nedited b\nc\n", 2, &["b\n", "c\n", "d\n"], (2, 13)),
            ("a\nc\nb\n", 2, &["b\n", "c\n"], (2, 4)),
        ] {
            let (_folder, path) = file(text);
            assert_eq!(find(&path, from, lines).expect("readable"), expected, "{text:?} from {from}");
        }
    }
}
