//! Caps: how much of a large message is kept in the window.

use crate::{language::Language, message::Message, replace, transcript::Entry};

/// A policy's verdict on an incoming message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapVerdict {
    /// Keeps all of it.
    #[default]
    Keep,
    /// Keeps its first `head` and last `tail` characters, with the host's notice.
    Shorten {
        /// In characters.
        head: u32,
        /// In characters.
        tail: u32,
    },
    /// Keeps only its size, SHA-256, and first and last line.
    Digest,
}

impl CapVerdict {
    /// The verdict that keeps at most `limit` characters; this verdict itself if it is stricter already.
    pub fn at_most(self, limit: u32) -> CapVerdict {
        match self {
            CapVerdict::Keep => CapVerdict::Shorten { head: limit, tail: 0 },
            CapVerdict::Shorten { head, tail } if u64::from(head) + u64::from(tail) > u64::from(limit) => {
                let head = head.min(limit);
                CapVerdict::Shorten { head, tail: limit - head }
            }
            stricter => stricter,
        }
    }
}

/// The result of applying a cap to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped {
    /// What is kept, notice included.
    pub text: String,
    /// Whether anything was removed.
    pub capped: bool,
    /// The original length, in characters.
    pub original_chars: usize,
}

/// Applies a verdict. Unlike an edit of a plan, a cap applies even where the notice makes a text that is barely too
/// long a little longer: the limit is on what is kept (specification 000 §1.3).
pub fn apply(content: &str, verdict: CapVerdict, kind: &str, id: &str, language: Language) -> Capped {
    let shortened = match verdict {
        CapVerdict::Keep => None,
        CapVerdict::Shorten { head, tail } => replace::shorten(content, head, tail, kind, id, language),
        CapVerdict::Digest => Some(replace::digest(content, kind, id, language)),
    };
    Capped {
        capped: shortened.is_some(),
        original_chars: content.chars().count(),
        text: shortened.unwrap_or_else(|| content.to_owned()),
    }
}

/// A message as it appears in the window after the cap. `verdicts` are for its texts and tool results, in order; `kind`
/// names what they are. Also returns the sizes before and after, in characters, of every content that was capped.
pub fn message(
    id: i64,
    original: Message,
    kind: &str,
    verdicts: &[CapVerdict],
    language: Language,
) -> (Entry, Vec<(usize, usize)>) {
    let mut verdicts = verdicts.iter().copied();
    let mut sizes = vec![];
    let mut entry = Entry::new(id, original);
    let blocks = entry.message.blocks.iter().map(|block| {
        let Some(content) = block.content() else { return block.clone() };
        let capped = apply(content, verdicts.next().unwrap_or_default(), kind, &entry.shown_id(), language);
        if !capped.capped {
            return block.clone();
        }
        sizes.push((capped.original_chars, capped.text.chars().count()));
        block.with_content(capped.text)
    });
    let blocks = blocks.collect();
    if !sizes.is_empty() {
        let standing = Message { blocks, ..(*entry.message).clone() };
        entry = entry.standing(standing);
    }
    (entry, sizes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Block, Origin, Role};

    #[test]
    fn the_line_of_seed_000() {
        let capped =
            apply("預算預算", CapVerdict::Shorten { head: 2, tail: 0 }, "seed", "m7", Language::TraditionalChinese);
        assert_eq!(capped.text, "預算\n…(已自動截斷，原長度 4，超過 seed cap 2，完整內容仍在 host，id m7)");
        assert!(capped.capped);
        assert!(
            !apply("預算", CapVerdict::Shorten { head: 2, tail: 0 }, "seed", "m7", Language::TraditionalChinese).capped
        );
    }

    #[test]
    fn the_same_line_in_english() {
        let capped = apply("abcd", CapVerdict::Shorten { head: 2, tail: 0 }, "seed", "m7", Language::English);
        assert_eq!(capped.text, "ab\n…(shortened from 4 characters by the seed cap of 2; the host has it all, id m7)");
        let digest = apply("abcd", CapVerdict::Digest, "seed", "m7", Language::English);
        assert!(digest.text.starts_with("abcd\n…(seed taken out, 4 characters, sha256 "));
    }

    #[test]
    fn with_a_tail_the_line_stands_between() {
        let capped =
            apply("abcdef", CapVerdict::Shorten { head: 1, tail: 2 }, "mra-result", "m7", Language::TraditionalChinese);
        assert_eq!(capped.text, "a\n…(已自動截斷，原長度 6，超過 mra-result cap 3，完整內容仍在 host，id m7)\nef");
    }

    #[test]
    fn a_message_is_capped_content_by_content_and_the_original_is_kept() {
        let result = |text: &str| Block::ToolResult { tool_use_id: "1".into(), content: text.into(), is_error: false };
        let original =
            Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result("abc"), result("abcdef")] };
        let verdict = CapVerdict::Shorten { head: 3, tail: 0 };
        let (entry, sizes) = message(7, original.clone(), "mra-result", &[verdict; 2], Language::English);
        assert_eq!(entry.source(), &original);
        assert_eq!(entry.message.blocks[0], original.blocks[0]);
        assert!(
            entry.message.blocks[1].content().is_some_and(|text| text.starts_with("abc\n…") && text.contains("id m7"))
        );
        assert_eq!((sizes.len(), sizes[0].0), (1, 6));
        let (whole, sizes) = message(7, original, "mra-result", &[], Language::English);
        assert!(whole.original.is_none() && sizes.is_empty());
    }

    proptest! {
        #[test]
        fn what_is_kept_is_within_the_limit(text in "(\\PC|👨‍👩‍👧){0,80}", head in 0u32..40, tail in 0u32..40) {
            let capped = apply(&text, CapVerdict::Shorten { head, tail }, "seed", "m1", Language::English);
            let chars = text.chars().count();
            prop_assert_eq!(capped.capped, chars > (head + tail) as usize);
            if capped.capped {
                let notice = replace::notice(chars, "seed", u64::from(head + tail), "m1", Language::English);
                let (before, after) = capped.text.split_once(&notice).expect("the notice");
                prop_assert!(text.starts_with(before.strip_suffix('\n').unwrap_or_default()));
                prop_assert!(before.is_empty() || before.ends_with('\n'), "the notice has a line of its own");
                prop_assert!(before.chars().count() <= head as usize + 1);
                prop_assert!(after.chars().count() <= tail as usize + 1);
            } else {
                prop_assert_eq!(capped.text, text);
            }
        }

        #[test]
        fn a_bound_is_never_exceeded_nor_the_verdict_relaxed(
            head in any::<u32>(), tail in any::<u32>(), limit in any::<u32>(), small in any::<bool>(),
        ) {
            let (head, tail, limit) = if small { (head % 100, tail % 100, limit % 100) } else { (head, tail, limit) };
            let verdict = CapVerdict::Shorten { head, tail };
            let CapVerdict::Shorten { head: new_head, tail: new_tail } = verdict.at_most(limit) else {
                return Err(TestCaseError::fail("a shortening stays one"));
            };
            let asked = u64::from(head) + u64::from(tail);
            prop_assert_eq!(u64::from(new_head) + u64::from(new_tail), asked.min(u64::from(limit)));
            prop_assert!(new_head <= head && new_tail <= tail);
        }
    }

    #[test]
    fn a_bound_shortens_what_would_be_kept_and_leaves_a_digest() {
        assert_eq!(CapVerdict::Keep.at_most(7), CapVerdict::Shorten { head: 7, tail: 0 });
        assert_eq!(CapVerdict::Digest.at_most(7), CapVerdict::Digest);
    }
}
