//! Reads and writes Slack's text format.
//!
//! Slack escapes only `&`, `<` and `>`; text between angle brackets is a control sequence: a
//! mention, a link, a date. So fully escaped text cannot mention or link anything.

use pmk_core::text;

/// Returns how many bytes this character takes when escaped.
pub(super) fn escaped_len(c: char) -> usize {
    match c {
        '&' => "&amp;".len(),
        '<' => "&lt;".len(),
        '>' => "&gt;".len(),
        other => other.len_utf8(),
    }
}

/// Escapes everything in a text that Slack could read as a control sequence.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    escape_into(&mut escaped, text);
    escaped
}

/// Writes a text escaped.
pub(super) fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
}

/// Returns the length of a rendered text as Slack counts it: in bytes, and a `>` that begins a quote
/// counts as if it were escaped.
pub(super) fn counted_len(rendered: &str) -> usize {
    let quotes = rendered.lines().filter(|line| line.starts_with('>')).count();
    rendered.len() + quotes * ("&gt;".len() - 1)
}

/// Returns what a person wrote, as a model should read it: escapes undone, mentions of the bot `me`
/// removed, other control sequences readable, and without invisible characters.
pub(super) fn plain(text: &str, me: &str) -> String {
    read(text, me, push_readable)
}

/// Returns the same for a command: mentions of people and channels are kept in Slack's form, with their ids.
pub(super) fn with_ids(text: &str, me: &str) -> String {
    read(text, me, |plain, sequence| match sequence.starts_with(['@', '#']) {
        true => {
            plain.push('<');
            unescape_into(plain, sequence);
            plain.push('>');
        }
        false => push_readable(plain, sequence),
    })
}

fn read(text: &str, me: &str, push: impl Fn(&mut String, &str)) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once('<') {
        unescape_into(&mut plain, before);
        let Some((sequence, after)) = opened.split_once('>') else {
            plain.push('<');
            rest = opened;
            continue;
        };
        rest = if mentions(sequence, me) {
            after_mention(&plain, after)
        } else {
            push(&mut plain, sequence);
            after
        };
    }
    unescape_into(&mut plain, rest);
    text::plain(&plain).trim().to_owned()
}

/// Returns whether a text in Slack's form mentions somebody.
pub(super) fn is_mentioned(text: &str, user: &str) -> bool {
    text.split('<').skip(1).filter_map(|opened| opened.split_once('>')).any(|(sequence, _)| mentions(sequence, user))
}

/// Returns whom else it mentions: the ids of people, and groups or everybody as Slack writes them.
pub(super) fn others_named(text: &str, me: &str) -> Vec<String> {
    let sequences = text.split('<').skip(1).filter_map(|opened| opened.split_once('>'));
    let named = sequences.filter_map(|(sequence, _)| match sequence.strip_prefix('@') {
        Some(mention) => mention.split('|').next().filter(|person| *person != me),
        None => (sequence.starts_with('!') && !sequence.starts_with("!date^")).then_some(sequence),
    });
    named.map(str::to_owned).collect()
}

fn mentions(sequence: &str, user: &str) -> bool {
    sequence.strip_prefix('@').is_some_and(|mention| mention.split('|').next() == Some(user))
}

/// Returns the text after a removed mention: without the `:` or `,` of an address ("bot: hello"), and
/// without a second space in the middle of a sentence.
fn after_mention<'a>(before: &str, after: &'a str) -> &'a str {
    if before.trim().is_empty() {
        let address = after.strip_prefix([':', ',']).filter(|rest| rest.starts_with(char::is_whitespace));
        address.unwrap_or(after).trim_start()
    } else if before.ends_with(char::is_whitespace) {
        after.strip_prefix(' ').unwrap_or(after)
    } else {
        after
    }
}

/// Writes the inside of one `<…>` in readable form.
fn push_readable(plain: &mut String, sequence: &str) {
    let (target, label) = match sequence.split_once('|') {
        Some((target, label)) if !label.is_empty() => (target, Some(label)),
        Some((target, _)) => (target, None),
        None => (sequence, None),
    };
    if let Some(sigil @ ('@' | '#')) = target.chars().next() {
        plain.push(sigil);
        unescape_into(plain, label.unwrap_or(&target[1..]).trim_start_matches(sigil));
    } else if let Some(command) = target.strip_prefix('!') {
        if !command.starts_with("date^") {
            plain.push('@');
        }
        unescape_into(plain, label.unwrap_or(command).trim_start_matches('@'));
    } else {
        push_link(plain, &unescaped(target), label.map(unescaped).as_deref());
    }
}

/// Writes a link: its label and its address, or the label alone if it is the address.
pub(super) fn push_link(plain: &mut String, target: &str, label: Option<&str>) {
    match label {
        Some(label) => {
            plain.push_str(label);
            if !is_written_out(label, target) {
                plain.push_str(&format!(" ({target})"));
            }
        }
        None => plain.push_str(target),
    }
}

/// Returns whether a label is the address itself, as Slack makes a link from an address or domain that was written out.
pub(super) fn is_written_out(label: &str, address: &str) -> bool {
    [Some(address), address.strip_suffix('/')].into_iter().flatten().any(|address| {
        let scheme = address.strip_suffix(label);
        matches!(scheme, Some("" | "http://" | "https://" | "mailto:" | "tel:"))
    })
}

fn unescaped(escaped: &str) -> String {
    let mut plain = String::with_capacity(escaped.len());
    unescape_into(&mut plain, escaped);
    plain
}

/// Unescapes in one pass, so that `&amp;lt;` becomes `&lt;` and not `<`.
fn unescape_into(plain: &mut String, mut escaped: &str) {
    while let Some(at) = escaped.find('&') {
        plain.push_str(&escaped[..at]);
        let entity = &escaped[at..];
        let (c, len) = [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>')]
            .into_iter()
            .find(|(name, _)| entity.starts_with(name))
            .map_or(('&', 1), |(name, c)| (c, name.len()));
        plain.push(c);
        escaped = &entity[len..];
    }
    plain.push_str(escaped);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_nobody_sees_is_left_out() {
        let written = "pay\u{202e}\u{200b}pal\0 \u{1b}[2J\u{9b}\r\n\ta 👩🏽\u{200d}🚀 ❤\u{fe0f} می\u{200c}خواهم";
        assert_eq!(plain(written, "UBOT"), "paypal [2J\n\ta 👩🏽\u{200d}🚀 ❤\u{fe0f} می\u{200c}خواهم");
        assert_eq!(plain("<@UBOT> \u{200b}\u{2060}", "UBOT"), "");
        assert_eq!(with_ids("/pmk open\u{200b} <#C2|lab>", "UBOT"), "/pmk open <#C2|lab>");
    }

    #[test]
    fn the_bots_own_mention_is_taken_off() {
        for (text, expected) in [
            ("<@UBOT> how are you?", "how are you?"),
            ("<@UBOT|pmk>: how are you?", "how are you?"),
            ("<@UBOT>, <@UBOT> how are you?", "how are you?"),
            ("hey <@UBOT> how are you?", "hey how are you?"),
            ("thanks <@UBOT>", "thanks"),
            ("<@UBOT> :wave: hi", ":wave: hi"),
            ("<@UBOT>", ""),
            ("<@UBOTTLE> hi", "@UBOTTLE hi"),
        ] {
            assert_eq!(plain(text, "UBOT"), expected, "{text}");
        }
    }

    #[test]
    fn who_is_spoken_to_by_name() {
        for (text, expected) in [
            ("<@U2> do you know?", &["U2"][..]),
            ("<@UBOT> and <@U2|ann>", &["U2"]),
            ("<!here> <!subteam^S1|@team>", &["!here", "!subteam^S1|@team"]),
            ("<@UBOT>, in <#C1|general>, since <!date^1392734382^{date}|Feb 18>?", &[]),
            ("see <https://a.b/@c>", &[]),
            ("a lone <@U2", &[]),
        ] {
            assert_eq!(others_named(text, "UBOT"), expected, "{text}");
        }
    }

    #[test]
    fn other_sequences_stay_readable() {
        for (text, expected) in [
            ("ask <@U2> or <@U3|ann>", "ask @U2 or @ann"),
            ("in <#C1|general> or <#C2>", "in #general or #C2"),
            ("<!here> <!channel|channel> <!subteam^S1|@team>", "@here @channel @team"),
            ("<!date^1392734382^{date}|Feb 18>", "Feb 18"),
            ("see <https://a.b/c?d=1&amp;e=2>", "see https://a.b/c?d=1&e=2"),
            ("see <https://a.b/c|the page>", "see the page (https://a.b/c)"),
            ("<http://a.b|a.b> <mailto:x@a.b|x@a.b>", "a.b x@a.b"),
            ("<https://a.b/|a.b> <tel:+1555|+1555> <https://a.b|https://a.b>", "a.b +1555 https://a.b"),
            ("1 &lt; 2 &amp;&amp; 3 &gt; 2, &amp;lt; stays", "1 < 2 && 3 > 2, &lt; stays"),
            ("a lone < or & is text", "a lone < or & is text"),
        ] {
            assert_eq!(plain(text, "UBOT"), expected, "{text}");
        }
    }

    /// Regression: of a link whose label was the end of its address, only the label was left.
    #[test]
    fn a_label_that_ends_like_its_address_does_not_replace_it() {
        for (text, expected) in [
            ("<https://github.com/acme/erp/issues/12|12>", "12 (https://github.com/acme/erp/issues/12)"),
            ("<https://ci.acme.example/job/deploy|deploy>", "deploy (https://ci.acme.example/job/deploy)"),
            ("<https://evil-acme.example|acme.example>", "acme.example (https://evil-acme.example)"),
            ("<mailto:ops@acme.example|acme.example>", "acme.example (mailto:ops@acme.example)"),
        ] {
            assert_eq!(plain(text, "UBOT"), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_holds_no_control_sequence(text in "(\\PC|[<>&@!#|]|&amp;|中){0,60}") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(['<', '>']));
            prop_assert_eq!(escaped.len(), text.chars().map(escaped_len).sum::<usize>());
            let seen = text::plain(&text);
            prop_assert_eq!(plain(&escaped, "UBOT"), seen.trim());
        }

        #[test]
        fn a_mention_is_taken_off_wherever_it_stands(before in "[^<>&]{0,20}", after in "[^<>&]{0,20}") {
            let text = format!("{before}<@UBOT>{after}");
            prop_assert!(!plain(&text, "UBOT").contains('<'));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "([<>&|@!#:, ]|&lt;|UBOT|\\PC){0,60}") {
            let _ = plain(&text, "UBOT");
        }
    }
}
