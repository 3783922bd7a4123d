//! What models that think write of it into their answers, where the server does not take it out: an element in front.

/// What the name of such an element contains.
const NAMES: [&str; 3] = ["think", "thought", "reason"];
/// The longest name of one, in bytes.
const MAX_NAME_BYTES: usize = 24;

/// Where the thoughts in front of a text end, which is searched while it grows: no part of it twice.
#[derive(Debug, Default)]
pub struct Thoughts {
    /// How many bytes have been searched.
    searched: usize,
    /// What the first mark means that ends thoughts.
    end: Option<End>,
}

/// A mark that ends thoughts, or seems to.
#[derive(Clone, Copy, Debug)]
enum End {
    /// All from here on is said.
    Said(usize),
    /// It is if it begins with the end of a line.
    SaidOnNewLine(usize),
    /// The mark itself is said.
    Text,
}

impl Thoughts {
    /// Searches what a text has grown by.
    pub fn search(&mut self, text: &str) {
        if self.end.is_some() {
            return;
        }
        let opened = opened(text);
        let mark = opened.as_deref().unwrap_or("</think>");
        // A part of the mark may have been there before.
        let from = text.floor_char_boundary(self.searched.saturating_sub(mark.len()));
        self.searched = text.len();
        let Some((thoughts, _)) = text[from..].split_once(mark) else { return };
        let at = from + thoughts.len();
        let (thoughts, said) = (&text[..at], at + mark.len());
        // The templates of some models write the beginning, so that the answer has only the end, on a line of its own.
        let begins_line = thoughts.is_empty() || thoughts.ends_with('\n');
        self.end = Some(if opened.is_some() {
            End::Said(said)
        } else if begins_line && !thoughts.contains("<think>") {
            End::SaidOnNewLine(said)
        } else {
            End::Text
        });
    }

    /// Returns the text that was searched without the thoughts in front of it; `None` while they last.
    pub fn without<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self.end {
            Some(End::Said(at)) => Some(text[at..].trim_start()),
            Some(End::SaidOnNewLine(at)) if text.len() == at || text[at..].starts_with(['\n', '\r']) => {
                Some(text[at..].trim_start())
            }
            Some(_) => Some(text),
            None => opened(text).is_none().then_some(text),
        }
    }
}

/// Whether this may be the beginning of an element of thoughts, of which too little has arrived to know.
pub fn may_begin(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with(['<', '[']) && text.len() <= MAX_NAME_BYTES && text[1..].chars().all(is_of_name)
}

/// The mark that ends the element of thoughts with which a text begins.
fn opened(text: &str) -> Option<String> {
    let text = text.trim_start();
    let close = match text.chars().next()? {
        '<' => '>',
        '[' => ']',
        _ => return None,
    };
    let length = text[1..].chars().take(MAX_NAME_BYTES).take_while(|&c| is_of_name(c)).count();
    let (name, rest) = text[1..].split_at(length);
    let lower = name.to_ascii_lowercase();
    let is_one = rest.starts_with(close) && NAMES.iter().any(|part| lower.contains(part));
    is_one.then(|| format!("{}/{name}{close}", &text[..1]))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, ':' | '_' | '-' | '|')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> Option<&str> {
        let mut thoughts = Thoughts::default();
        thoughts.search(text);
        thoughts.without(text)
    }

    #[test]
    fn thoughts_in_front_are_no_part_of_what_is_said() {
        for (text, said) in [
            ("<think>\nHm.\n</think>\n\nFour.", "Four."),
            ("\n<thinking>a <b> c</thinking>Four.", "Four."),
            ("[THINK]so[/THINK]四", "四"),
            ("<seed:think>so</seed:think>Four", "Four"),
            ("<think></think>Four", "Four"),
            ("Use `<think>` and `</think>`.", "Use `<think>` and `</think>`."),
            ("[thinking of it](https://e.x) first", "[thinking of it](https://e.x) first"),
            ("<b>bold</b>", "<b>bold</b>"),
            ("[x] done", "[x] done"),
            ("", ""),
        ] {
            assert_eq!(without(text), Some(said), "{text}");
        }
        assert_eq!([without("<think>it never ends"), without("[Reasoning] is hard")], [None, None]);
    }

    /// Qwen's and DeepSeek's templates begin the thoughts: people were shown all of them.
    #[test]
    fn thoughts_whose_beginning_was_in_the_prompt_were_taken_for_the_answer() {
        for (text, said) in [
            ("Hm, so\nit is 2 + 2.\n</think>\n\nFour.", "Four."),
            ("Hm.\n</think>\r\n四", "四"),
            ("Hm.\n</think>", ""),
            ("</think>\nFour.", "Four."),
            ("Look:\n<think>\n</think>\nis how", "Look:\n<think>\n</think>\nis how"),
            ("It ends with\n</think>, always", "It ends with\n</think>, always"),
            ("`</think>`\nends it", "`</think>`\nends it"),
        ] {
            assert_eq!(without(text), Some(said), "{text}");
        }
    }

    #[test]
    fn what_may_become_thoughts_waits() {
        for text in ["", "\n", "<", "<thi", "[THI", "<seed:"] {
            assert!(may_begin(text), "{text}");
        }
        for text in ["H", "<b> ", "<think>", "[think of", "< 4", "<a-name-that-is-longer-than-any"] {
            assert!(!may_begin(text), "{text}");
        }
    }
}
