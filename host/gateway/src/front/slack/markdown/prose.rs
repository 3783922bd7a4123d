//! Text within a line, and addresses.

use crate::front::slack::mrkdwn::escape_into;

/// The longest user id.
const MAX_ID_BYTES: usize = 64;

/// Writes text escaped, except for addresses, which become links, and the mentions of those who are to
/// be pinged.
pub(super) fn write(out: &mut String, text: &str, pings: &[String]) {
    let mut plain = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let sequence = match c {
            '<' => mention(rest, pings).map(|mention| (mention.len(), mention.to_owned())),
            'h' if !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()) => {
                address(rest).and_then(|address| Some((address.len(), format!("<{}>", link_target(address)?))))
            }
            _ => None,
        };
        match sequence {
            Some((len, sequence)) => {
                escape_into(out, &text[plain..at]);
                out.push_str(&sequence);
                at += len;
                plain = at;
            }
            None => at += c.len_utf8(),
        }
    }
    escape_into(out, &text[plain..]);
}

/// Returns the `<@U1>` at the beginning of the text, if that person is to be pinged.
fn mention<'a>(text: &'a str, pings: &[String]) -> Option<&'a str> {
    let end = text.bytes().take(MAX_ID_BYTES).position(|byte| byte == b'>')?;
    let id = text[..end].strip_prefix("<@")?;
    let valid = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (valid && pings.iter().any(|ping| ping == id)).then(|| &text[..=end])
}

/// Returns the address at the beginning of the text: ASCII only, since Chinese text follows without a
/// space, and without trailing punctuation.
fn address(text: &str) -> Option<&str> {
    let scheme = ["https://", "http://"].into_iter().find(|scheme| text.starts_with(scheme))?;
    let in_address = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"' | b'`' | b'|');
    let mut address = &text[..text.bytes().take_while(in_address).count()];
    loop {
        address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~']);
        // A bracket around the address, unless it was opened within.
        match address.strip_suffix(')') {
            Some(inner) if inner.matches('(').count() <= inner.matches(')').count() => address = inner,
            _ => break,
        }
    }
    (address.len() > scheme.len()).then_some(address)
}

/// Returns an address as it is written in a control sequence; `None` if it is neither a web nor a
/// mail address.
pub(super) fn link_target(address: &str) -> Option<String> {
    let is_safe = ["https://", "http://", "mailto:"].into_iter().any(|scheme| {
        let start = address.as_bytes().get(..scheme.len());
        address.len() > scheme.len() && start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    });
    if !is_safe {
        return None;
    }
    let mut target = String::with_capacity(address.len());
    for c in address.chars() {
        match c {
            '&' => target.push_str("&amp;"),
            '<' | '>' | '|' | '"' => target.push_str(&format!("%{:02X}", u32::from(c))),
            c if c.is_whitespace() || c.is_control() => {
                let mut utf8 = [0; 4];
                target.extend(c.encode_utf8(&mut utf8).bytes().map(|byte| format!("%{byte:02X}")));
            }
            other => target.push(other),
        }
    }
    Some(target)
}
