//! Describes what the model sees of a conversation, and which policies decide that.

use pmk_core::{Entry, Origin, text};
use pmk_policy::{Exports, Stack};

use super::show::{code, one_line};
use crate::{ledger::InExperiment, messages::Messages};

/// The most turns that are listed; earlier ones are summed up in one line.
const MOST_TURNS: usize = 12;
/// The most characters of a question in a line of the list.
const LISTED_CHARS: usize = 60;
/// Enough characters of a digest to tell two policies apart.
const DIGEST_CHARS: usize = 12;

/// Messages that belong together.
struct Group {
    /// The origin of its first message.
    origin: Origin,
    text: String,
    messages: usize,
    tokens: u64,
}

/// Lists the live window, one line per turn, and its size relative to the limit.
pub fn window(messages: &Messages, entries: &[&Entry], dropped_turns: u32, limit: u64) -> String {
    let groups = groups(entries);
    let tokens = groups.iter().map(|group| group.tokens).sum();
    let mut lines = vec![messages.window(entries.len(), tokens, limit)];
    lines.extend((dropped_turns > 0).then(|| messages.window_dropped(dropped_turns)));
    let turns = groups.iter().filter(|group| group.origin == Origin::User).count();
    let older = turns.saturating_sub(MOST_TURNS);
    let (mut seen, mut older_tokens) = (0, 0);
    for group in groups {
        seen += usize::from(group.origin == Origin::User);
        if group.origin == Origin::User && seen <= older {
            older_tokens += group.tokens;
            lines.extend((seen == older).then(|| messages.window_older(older, older_tokens)));
        } else {
            let first = one_line(&group.text);
            let shown = text::shortened(&first, LISTED_CHARS);
            lines.push(messages.window_group(group.origin.name(), &shown, group.messages, group.tokens));
        }
    }
    lines.join("\n")
}

/// Groups entries by turn. A turn begins with a user's message; seeds, summaries and markers form groups of their own.
fn groups(entries: &[&Entry]) -> Vec<Group> {
    let mut groups: Vec<Group> = vec![];
    for entry in entries {
        let origin = entry.message.origin;
        let begins = matches!(origin, Origin::User | Origin::Seed | Origin::Summary | Origin::Marker);
        match groups.last_mut() {
            Some(group) if !begins => {
                group.messages += 1;
                group.tokens += u64::from(entry.tokens);
            }
            _ => groups.push(Group {
                origin,
                text: entry.message.plain_text(),
                messages: 1,
                tokens: entry.tokens.into(),
            }),
        }
    }
    groups
}

/// Lists the policies in the order in which they are asked, with their decisions, those for which they are skipped at
/// present, and the arm of an experiment if the policies are an arm's.
pub fn policies(messages: &Messages, stack: &Stack, place: Option<&InExperiment>) -> String {
    let mut lines = vec![messages.policies()];
    let suspensions = stack.suspensions();
    for layer in stack.layers() {
        let identity = layer.policy.identity();
        let digest = text::head(&identity.sha256, DIGEST_CHARS);
        let name = format!("{} {}", identity.name, identity.version);
        lines.push(messages.policy_layer(
            &code(&name),
            &code(digest),
            &messages.listed(&exports(layer.policy.exports())),
        ));
        let of_layer = suspensions.iter().filter(|suspension| suspension.policy == *identity);
        lines.extend(of_layer.map(|suspension| messages.policy_suspension(suspension)));
    }
    lines.extend(place.map(|InExperiment { experiment, arm }| messages.policy_of_arm(&code(experiment), &code(arm))));
    lines.join("\n")
}

/// The decisions by their names in the contract.
fn exports(Exports { cap, prune, summarize, recover }: Exports) -> Vec<&'static str> {
    let decisions = [(cap, "cap"), (prune, "prune"), (summarize, "summarize"), (recover, "recover")];
    decisions.into_iter().filter_map(|(is_made, name)| is_made.then_some(name)).collect()
}

#[cfg(test)]
mod tests {
    use pmk_core::{Language, Message};

    use super::*;

    #[test]
    fn a_window_is_told_turn_by_turn() {
        let mut entries = vec![Entry::new(1, Message { origin: Origin::Summary, ..Message::user("what was before") })];
        for number in 0..15 {
            entries.push(Entry::new(
                number * 2 + 2,
                Message::user(format!("question {number} `x`\n{}", "and more ".repeat(9))),
            ));
            entries.push(Entry::new(number * 2 + 3, Message::assistant("an answer")));
        }
        let entries: Vec<&Entry> = entries.iter().collect();
        let pages = [Language::English, Language::TraditionalChinese]
            .map(|language| window(&Messages::new(language), &entries, 3, 7_200));
        insta::assert_snapshot!(pages.join("\n\n"));
    }
}
