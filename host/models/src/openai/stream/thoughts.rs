//! What models that think write of it into their answers, where the server does not take it out: an element in front.

/// What the name of such an element contains.
const NAMES: [&str; 3] = ["think", "thought", "reason"];
/// The longest name of one, in bytes.
const MAX_NAME_BYTES: usize = 24;

/// Returns the text without the thoughts in front of it; `None` while they last.
pub fn without(text: &str) -> Option<&str> {
    let Some((end, rest)) = opening(text) else { return Some(after_end(text)) };
    rest.split_once(&*end).map(|(_, said)| said.trim_start())
}

/// Returns the text after thoughts without a beginning: the templates of some models write it, so that the answer has
/// only their end, on a line of its own.
fn after_end(text: &str) -> &str {
    let Some((thoughts, said)) = text.split_once("</think>") else { return text };
    let begins_line = thoughts.is_empty() || thoughts.ends_with('\n');
    let ends_line = said.is_empty() || said.starts_with(['\n', '\r']);
    if begins_line && ends_line && !thoughts.contains("<think>") { said.trim_start() } else { text }
}

/// Whether this may be the beginning of an element of thoughts, of which too little has arrived to know.
pub fn may_begin(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with(['<', '[']) && text.len() <= MAX_NAME_BYTES && text[1..].chars().all(is_of_name)
}

/// The mark that ends the element with which a text begins, and what follows the one that begins it.
fn opening(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let close = match text.chars().next()? {
        '<' => '>',
        '[' => ']',
        _ => return None,
    };
    let (name, rest) = text[1..].split_once(close)?;
    let is_one = name.len() <= MAX_NAME_BYTES && name.chars().all(is_of_name) && {
        let name = name.to_ascii_lowercase();
        NAMES.iter().any(|part| name.contains(part))
    };
    is_one.then(|| (format!("{}/{name}{close}", &text[..1]), rest))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, ':' | '_' | '-' | '|')
}

#[cfg(test)]
mod tests {
    use super::*;

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
