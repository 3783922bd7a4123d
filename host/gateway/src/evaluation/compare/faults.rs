//! Why layers did not decide although they were asked: each distinct reason once, with how often, and where it is first
//! to be seen.

use std::collections::{BTreeMap, btree_map::Entry};

use pmk_core::text;
use pmk_policy::{DecidedBy, Identity, Outcome, Record, Stack};
use serde::Serialize;

/// The most distinct reasons, of one conversation and of all, and the most characters of one: what a policy says in a
/// panic may differ every time.
const MOST_REASONS: usize = 20;
const REASON_CHARS: usize = 300;

/// Stands for the reasons beyond them.
const OTHERS: &str = "other reasons";

/// A reason, and how often it was the same, apart from its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The layer, by a name that no other of the policy has.
    pub policy: String,
    pub decision: &'static str,
    /// The guard's rule; `None` if the policy failed.
    pub rule: Option<u8>,
    pub reason: String,
    pub count: u64,
    /// Where it was first: the conversation, and the turn in it, counted from 1.
    pub conversation: String,
    pub turn: usize,
}

/// How many decisions of a layer failed, and how many answers of it were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub failed: u64,
    pub refused: u64,
}

/// Layer, decision, rule, and the reason without its numbers.
type Key = (String, &'static str, Option<u8>, String);

/// The faults of one policy with its layers.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    reasons: BTreeMap<Key, Fault>,
    /// Who decided instead, and how often.
    deciders: BTreeMap<String, u64>,
}

impl Faults {
    /// Adds a decision of these layers made in this turn of the only conversation, counted from 0.
    pub(super) fn note(&mut self, stack: &Stack, records: &[Record], decided_by: &DecidedBy, turn: usize) {
        let mut is_passed_on = false;
        for record in records {
            let (rule, reason) = match &record.outcome {
                Outcome::Rejected { rule, reason } => (Some(*rule), reason),
                Outcome::Failed { reason, .. } => (None, reason),
                Outcome::Accepted | Outcome::Corrected { .. } | Outcome::Skipped { .. } => continue,
            };
            is_passed_on = true;
            let reason = text::shortened(&text::one_line(reason), REASON_CHARS).into_owned();
            self.count(Fault {
                policy: name_of(&record.policy, stack),
                decision: record.decision.name(),
                rule,
                reason,
                count: 1,
                conversation: String::new(),
                turn: turn + 1,
            });
        }
        if is_passed_on {
            let decider = match decided_by {
                DecidedBy::Policy(layer) => name_of(layer, stack),
                DecidedBy::Floor => decided_by.name().to_owned(),
            };
            *self.deciders.entry(decider).or_default() += 1;
        }
    }

    fn count(&mut self, fault: Fault) {
        let key_of = |reason: &str| (fault.policy.clone(), fault.decision, fault.rule, without_numbers(reason));
        let own = key_of(&fault.reason);
        let is_one_too_many = self.reasons.len() >= MOST_REASONS && !self.reasons.contains_key(&own);
        let (key, reason) =
            if is_one_too_many { (key_of(OTHERS), OTHERS.to_owned()) } else { (own, fault.reason.clone()) };
        match self.reasons.entry(key) {
            Entry::Occupied(mut known) => known.get_mut().count += fault.count,
            Entry::Vacant(new) => {
                new.insert(Fault { reason, ..fault });
            }
        }
    }

    /// Adds those of a conversation. The first that has a reason is its example.
    pub fn add(&mut self, of_one: &Faults, conversation: &str) {
        for fault in of_one.reasons.values() {
            self.count(Fault { conversation: conversation.to_owned(), ..fault.clone() });
        }
        for (decider, count) in &of_one.deciders {
            *self.deciders.entry(decider.clone()).or_default() += count;
        }
    }

    /// Returns the reasons, the most frequent first.
    pub fn reasons(&self) -> Vec<&Fault> {
        let mut reasons: Vec<&Fault> = self.reasons.values().collect();
        reasons.sort_by_key(|fault| std::cmp::Reverse(fault.count));
        reasons
    }

    /// Returns the counts of each layer that has any.
    pub fn by_layer(&self) -> BTreeMap<&str, Counts> {
        let mut layers: BTreeMap<&str, Counts> = BTreeMap::new();
        for fault in self.reasons.values() {
            let counts = layers.entry(&fault.policy).or_default();
            match fault.rule {
                Some(_) => counts.refused += fault.count,
                None => counts.failed += fault.count,
            }
        }
        layers
    }

    /// Returns who decided instead, and how often.
    pub fn deciders(&self) -> &BTreeMap<String, u64> {
        &self.deciders
    }
}

impl Fault {
    /// Returns what was wrong, with the rule if the guard refused it.
    pub fn why(&self) -> String {
        match self.rule {
            Some(rule) => format!("guard rule {rule}: {}", self.reason),
            None => self.reason.clone(),
        }
    }
}

/// The embedded policy may be below another build of itself: it is then told by its digest as well.
fn name_of(layer: &Identity, stack: &Stack) -> String {
    let mut layers = stack.layers().map(|layer| layer.policy.identity());
    match layers.find(|upper| upper.name == layer.name).is_some_and(|upper| upper != layer) {
        true => format!("{layer} {:.8}", layer.sha256),
        false => layer.name.clone(),
    }
}

/// How many tokens too many, for example, differs from turn to turn.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_ascii_digit() {
            false => plain.push(char),
            true if plain.ends_with('#') => {}
            true => plain.push('#'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(reason: &str, turn: usize) -> Fault {
        Fault {
            policy: "naughty".into(),
            decision: "prune",
            rule: Some(1),
            reason: reason.into(),
            count: 1,
            conversation: String::new(),
            turn,
        }
    }

    #[test]
    fn reasons_that_differ_only_in_numbers_are_one() {
        let [mut one, mut other] = [Faults::default(), Faults::default()];
        one.count(fault("removes 0..13", 3));
        one.count(fault("removes 2..9", 5));
        other.count(fault("removes 1..7", 1));
        other.count(fault("removes nothing", 2));
        let mut all = Faults::default();
        all.add(&one, "a");
        all.add(&other, "b");
        let told: Vec<_> = all.reasons().iter().map(|fault| (fault.why(), fault.count, fault.turn)).collect();
        assert_eq!(
            told,
            [("guard rule 1: removes 0..13".to_owned(), 3, 3), ("guard rule 1: removes nothing".to_owned(), 1, 2)]
        );
        assert_eq!(all.reasons()[1].conversation, "b");
    }

    #[test]
    fn a_policy_that_always_says_something_else_is_counted_in_full() {
        let mut faults = Faults::default();
        for turn in 0..100 {
            faults.count(fault(&"a".repeat(turn), turn));
        }
        assert_eq!(faults.reasons().len(), MOST_REASONS + 1);
        assert_eq!(faults.reasons()[0].reason, OTHERS);
        assert_eq!(faults.by_layer()["naughty"], Counts { failed: 0, refused: 100 });
    }

    /// Regression: each of thousands of conversations could add reasons of its own to the report.
    #[test]
    fn reasons_that_differ_in_every_conversation_were_all_kept() {
        let mut all = Faults::default();
        for number in 0..100 {
            let mut of_one = Faults::default();
            of_one.count(fault(&"a".repeat(number), 1));
            of_one.count(fault(&"a".repeat(number), 2));
            all.add(&of_one, &format!("conversation {number}"));
        }
        assert_eq!(all.reasons().len(), MOST_REASONS + 1);
        let others = all.reasons()[0];
        assert_eq!((others.reason.as_str(), others.count), (OTHERS, 160));
        assert_eq!(others.conversation, "conversation 20");
        assert_eq!(all.by_layer()["naughty"], Counts { failed: 0, refused: 200 });
    }
}
