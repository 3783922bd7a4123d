//! Combines several searches into one order.

use std::collections::BTreeMap;

use pmk_policy_sdk::Transcript;

use crate::question::Question;

/// How many messages one search may return.
const FOUND: u32 = 60;

/// The score of a rank is one over the sum of itself and this (reciprocal rank fusion), so the first few hardly differ.
const RANK_OFFSET: u64 = 60;

/// Scores are integers, so that they are the same on every machine.
const SCALE: u64 = 1_000_000_000;

/// The newer of two similar messages is preferred: the age of the oldest message costs this part of a score.
const AGE_PART: u64 = 10;

/// The numbers of archived messages that match these questions, best first.
pub fn find(transcript: &Transcript, questions: &[Question]) -> Vec<u32> {
    let mut scores: BTreeMap<u32, u64> = BTreeMap::new();
    for Question { text, weight } in questions {
        for (rank, number) in (1..).zip(transcript.search(text, FOUND)) {
            *scores.entry(number).or_default() += weight * SCALE / (RANK_OFFSET + rank);
        }
    }
    let archived = u64::from(transcript.archived()).max(1);
    let aged = |(number, score): (u32, u64)| {
        let age = archived.saturating_sub(u64::from(number));
        (score - score / AGE_PART * age / archived, number)
    };
    let mut matches: Vec<(u64, u32)> = scores.into_iter().map(aged).collect();
    matches.sort_unstable_by(|a, b| b.cmp(a));
    matches.into_iter().map(|(_, number)| number).collect()
}
