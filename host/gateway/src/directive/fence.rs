//! Fenced directives in an answer.
//!
//! ````text
//! ```mra-ask
//! repo: erp
//! question: where is the scope defined?
//! ```
//! ````
//!
//! pmk reads them with the expression `` ```TAG\n([\s\S]*?)``` `` and each line with `^([a-z-]+)\s*:\s*(.+)$`; the
//! first value of a key wins, lines that begin with `#` and lines that do not match are skipped. Here a question or a
//! reason goes on in the lines below it, the line of the tag may also end in blanks or a carriage return, a colon may
//! be a full-width one, and a fence must belong to the answer itself: one in a list, a quote, another fence, a line of
//! text or HTML is shown to somebody, not meant ([`outline`](super::outline)). pmk allows one directive per response, so
//! of several the first complete one counts, whatever its kind. A person does not see what is carried out; what is not
//! carried out is never dropped silently: the model is told, or the person sees it.

use std::ops::Range;

use pmk_core::text;

use super::{
    Directive, Kind,
    outline::{self, Block},
};

pub(super) const FENCE: &str = "```";

/// The keys of directives.
const KEYS: [&str; 3] = ["repo", "question", "reason"];

/// The parsed answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The answer without its directives. May be empty.
    pub visible: String,
    /// The answer without the directive to carry out; the others are still in it.
    pub remaining: String,
    /// The directive to carry out.
    pub directive: Option<Directive>,
    /// What is wrong with others, in the order of the answer.
    pub flaws: Vec<DirectiveError>,
}

/// Why a directive in an answer is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectiveError {
    #[error("`{}` without `{key}`", kind.tag())]
    MissingKey { kind: Kind, key: &'static str },
    #[error("`{}` without an end", kind.tag())]
    Unterminated { kind: Kind },
    #[error("`{}` after another directive", kind.tag())]
    Extra { kind: Kind },
}

/// Parses the directives of an answer that the model itself wrote.
pub fn parse(answer: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let (mut visible, mut remaining) = (String::new(), String::new());
    let mut at = 0;
    for (kind, block) in directives(answer) {
        let before = &answer[at..block.range.start];
        visible.push_str(before);
        remaining.push_str(before);
        at = block.range.end;
        match judge(kind, &block, answer) {
            Ok(directive) if parsed.directive.is_none() => parsed.directive = Some(directive),
            judged => {
                parsed.flaws.push(judged.err().unwrap_or(DirectiveError::Extra { kind }));
                remaining.push_str(&answer[block.range.clone()]);
                if !block.is_closed {
                    visible.push_str(after_fields(&answer[block.body.clone()]));
                }
            }
        }
    }
    visible.push_str(&answer[at..]);
    remaining.push_str(&answer[at..]);
    parsed.visible = visible.trim().to_owned();
    parsed.remaining = remaining.trim().to_owned();
    parsed
}

/// Returns the fences of an answer that have a directive's tag, in order.
fn directives(answer: &str) -> impl Iterator<Item = (Kind, Block)> {
    // Most answers have none, and need not be parsed.
    let may_have = Kind::ALL.into_iter().any(|kind| answer.contains(kind.tag())) && answer.contains(FENCE);
    let blocks = if may_have { outline::fences(answer) } else { vec![] };
    blocks.into_iter().filter_map(|block| Some((Kind::ALL.into_iter().find(|kind| kind.tag() == block.info)?, block)))
}

/// Returns the directive of a fence.
fn judge(kind: Kind, Block { body, is_closed, .. }: &Block, answer: &str) -> Result<Directive, DirectiveError> {
    let body: Range<usize> = body.clone();
    // A fence that would end at the beginning of the next one is unterminated.
    if !is_closed || answer[body.clone()].contains(FENCE) {
        return Err(DirectiveError::Unterminated { kind });
    }
    fields(kind, &answer[body]).map_err(|key| DirectiveError::MissingKey { kind, key })
}

/// Returns a directive as a model writes it, each value on one line.
pub fn write(directive: &Directive) -> String {
    let (repo, reason) = match directive {
        Directive::MraAsk { repo, .. } => (Some(repo), None),
        Directive::Escalate { repo, reason, .. } => (repo.as_ref(), reason.as_ref()),
    };
    let question = directive.question().to_owned();
    let fields = [("repo", repo), ("question", Some(&question)), ("reason", reason)];
    let lines = fields.into_iter().filter_map(|(key, value)| {
        let value = text::collapse_whitespace(value?);
        // A fence in a value must not end this one.
        Some(format!("{key}: {}\n", value.replace(FENCE, "\'\'\'")))
    });
    format!("{FENCE}{}\n{}{FENCE}", directive.kind().tag(), lines.collect::<String>())
}

fn fields(kind: Kind, body: &str) -> Result<Directive, &'static str> {
    let mut values: Vec<(&str, String)> = Vec::new();
    for line in body.lines() {
        if let Some((key, value)) = entry(line).filter(|(key, _)| KEYS.contains(key)) {
            // In YAML, a text of several lines begins below such a sign.
            values.push((
                key,
                if matches!(value.trim_end_matches(['-', '+']), "|" | ">") { String::new() } else { value.to_owned() },
            ));
        } else if let Some((key, value)) = values.last_mut()
            && *key != "repo"
            && !line.trim_start().starts_with('#')
        {
            value.push('\n');
            value.push_str(line.trim_end());
        }
    }
    Directive::from_fields(kind, |wanted| {
        let value = values.iter().find(|(key, value)| *key == wanted && !value.trim().is_empty());
        value.map(|(_, value)| value.clone())
    })
}

/// Returns key and value of a line, if it has a colon. Either may be empty.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim().split_once([':', '：'])?;
    Some((key.trim_end(), value.trim()))
}

/// Returns key and value of a line, if it has them.
pub(super) fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = entry(line)?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    (is_key && !value.is_empty()).then_some((key, value))
}

/// Returns the text after the fields of an unterminated directive: the rest of the answer must not
/// get lost.
fn after_fields(body: &str) -> &str {
    let mut rest = body;
    while let Some(line) = rest.split_inclusive('\n').next() {
        let is_field = field(line).is_some_and(|(key, _)| KEYS.contains(&key));
        if !is_field && !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            break;
        }
        rest = &rest[line.len()..];
    }
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mra(repo: &str, question: &str) -> Directive {
        Directive::MraAsk { repo: repo.into(), question: question.into() }
    }

    #[test]
    fn the_directives_of_seed_003() {
        let parsed = parse(
            "Let me look.\n\n```mra-ask\nrepo: erp\nquestion: where is the sales_performances scope defined?\n```\n",
        );
        assert_eq!(parsed.visible, "Let me look.");
        assert_eq!(parsed.directive, Some(mra("erp", "where is the sales_performances scope defined?")));
        assert_eq!(parsed.flaws, []);

        let parsed = parse("```escalate\nrepo: erp\nquestion: 本月預算?\nreason: live state: not in code\n```");
        assert_eq!(parsed.visible, "");
        let expected = Directive::Escalate {
            repo: Some("erp".into()),
            question: "本月預算?".into(),
            reason: Some("live state: not in code".into()),
        };
        assert_eq!(parsed.directive, Some(expected));
    }

    #[test]
    fn only_escalate_does_without_a_repo() {
        let parsed = parse("```escalate\nquestion: who decides?\n```");
        let expected = Directive::Escalate { repo: None, question: "who decides?".into(), reason: None };
        assert_eq!(parsed.directive, Some(expected));
        let parsed = parse("```mra-ask\nquestion: where?\n```");
        assert_eq!(parsed.directive, None);
        assert_eq!(parsed.flaws, [DirectiveError::MissingKey { kind: Kind::MraAsk, key: "repo" }]);
    }

    #[test]
    fn the_first_value_wins_and_comments_are_skipped() {
        let body = "# repo: x\nRepo: y\nrepo :  erp \nrepo: other\nprose\nquestion:\nquestion: a\nquestion: b\n";
        assert_eq!(parse(&format!("```mra-ask\n{body}```")).directive, Some(mra("erp", "a")));
        assert_eq!(parse("```mra-ask \r\nrepo: erp\r\nquestion: a\r\n```\r\n").directive, Some(mra("erp", "a")));
    }

    /// Regression: contacts and `mra` got the first line only.
    #[test]
    fn a_question_of_several_lines_was_cut_to_the_first() {
        let question = "Which release has it:\n\n- 1.4, or\n  - https://erp/1.5: the fix";
        let body = format!("repo: erp\nof sales\nquestion: {question}\n# a comment\nreason：nobody\nwrote it down\n");
        let expected = Directive::Escalate {
            repo: Some("erp".into()),
            question: question.into(),
            reason: Some("nobody\nwrote it down".into()),
        };
        assert_eq!(parse(&format!("```escalate\n{body}```")).directive, Some(expected));
        for begun in ["", " ", " |", " |-", " >+"] {
            let body = format!("question:{begun}\n  where is\n  the scope?\n\nrepo: erp\n");
            assert_eq!(parse(&format!("```mra-ask\n{body}```")).directive, Some(mra("erp", "where is\n  the scope?")));
        }
    }

    #[test]
    fn a_full_width_colon_is_a_colon() {
        let parsed = parse("```mra-ask\nrepo：erp\nquestion ： 範圍: 在哪裡？\n```");
        assert_eq!(parsed.directive, Some(mra("erp", "範圍: 在哪裡？")));
        let parsed = parse("```escalate\nquestion: 誰決定：A 或 B？\nreason：沒有寫下來\n```");
        let expected =
            Directive::Escalate {
                repo: None, question: "誰決定：A 或 B？".into(), reason: Some("沒有寫下來".into())
            };
        assert_eq!(parsed.directive, Some(expected));
    }

    #[test]
    fn of_several_the_first_whole_one_counts_and_none_is_shown() {
        let parsed = parse(concat!(
            "a\n```escalate\nreason: none\n```\nb\n```mra-ask\nrepo: r\nquestion: q\n```\nc\n",
            "```escalate\nquestion: q\n```\nd",
        ));
        assert_eq!(parsed.directive, Some(mra("r", "q")));
        assert_eq!(parsed.visible, "a\n\nb\n\nc\n\nd");
        assert_eq!(
            parsed.remaining, "a\n```escalate\nreason: none\n```\nb\n\nc\n```escalate\nquestion: q\n```\nd",
            "what is not carried out can still be read"
        );
        let (missing, extra) = (
            DirectiveError::MissingKey { kind: Kind::Escalate, key: "question" },
            DirectiveError::Extra { kind: Kind::Escalate },
        );
        assert_eq!(parsed.flaws, [missing, extra]);
    }

    #[test]
    fn a_fence_without_an_end_is_no_directive_and_hides_no_answer() {
        let parsed = parse("Look:\n```mra-ask\nrepo: erp\nquestion: a\n\nThe answer is: 42");
        assert_eq!(parsed.directive, None);
        assert_eq!(parsed.visible, "Look:\nThe answer is: 42");
        assert_eq!(parsed.flaws, [DirectiveError::Unterminated { kind: Kind::MraAsk }]);
        assert_eq!(parsed.remaining, "Look:\n```mra-ask\nrepo: erp\nquestion: a\n\nThe answer is: 42");
        assert_eq!(parse("```escalate\nquestion: 12").visible, "");
        assert_eq!(parse("```mra-ask").flaws, [DirectiveError::Unterminated { kind: Kind::MraAsk }]);
    }

    #[test]
    fn other_code_is_left_alone() {
        for text in [
            "```ruby\nmra-ask\nrepo: erp\n```",
            "mra-ask\nrepo: erp\nquestion: a",
            "```mra-asks\nrepo: erp\nquestion: a\n```",
            "say ```mra-ask\nrepo: erp\nquestion: a\n```",
        ] {
            assert_eq!(parse(text), Parsed { visible: text.into(), remaining: text.into(), ..Parsed::default() });
        }
    }

    #[test]
    fn a_question_of_ten_thousand_characters_is_taken_whole() {
        let question = "預".repeat(10_000);
        let parsed = parse(&format!("```mra-ask\nrepo: erp\nquestion: {question}\n```"));
        assert_eq!(parsed.directive, Some(mra("erp", &question)));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic_and_no_directive_stays_visible(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("```".to_owned()), Just("```mra-ask\n".to_owned()), Just("```escalate\r\n".to_owned()),
                    Just("repo: erp\n".to_owned()), Just("question: 預算?\n".to_owned()), Just("# x\n".to_owned()),
                    "\\PC{0,10}",
                ],
                0..20,
            ),
        ) {
            let answer = parts.concat();
            let parsed = parse(&answer);
            // The directive to carry out is removed, and everything else is shown unchanged.
            let is_found = parsed.directive.is_some() || !parsed.flaws.is_empty();
            prop_assert!(is_found || parsed.visible == answer.trim());
            prop_assert!(parsed.directive.is_some() || parsed.remaining == answer.trim());
        }

        #[test]
        fn what_was_written_is_read(repo in "[a-z][a-z0-9._-]{0,10}", question in "[^\\s`#][^\\n\\r`]{0,30}[^\\s`]") {
            let answer = format!("before\n```mra-ask\nrepo: {repo}\nquestion: {question}\n```\nafter");
            let parsed = parse(&answer);
            prop_assert_eq!(parsed.directive, Some(mra(&repo, &question)));
            prop_assert_eq!(parsed.visible, "before\n\nafter");
        }
    }
}
