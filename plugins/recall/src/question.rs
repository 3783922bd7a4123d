//! What to search for: the new message, and what it goes on from.

use pmk_policy_sdk::{Transcript, flag, origin};

/// How much of a message is searched for.
const CHARS: u32 = 2_000;

/// Of an answer, which says much beside the point, less.
const ANSWER_CHARS: u32 = 300;

/// A question to the archive, and how much what it finds counts.
pub struct Question {
    pub text: String,
    pub weight: u64,
}

/// The new message counts most. "And when was that?" says nothing by itself; so the turns before it are asked
/// along, the last with its answer.
pub fn asked(transcript: &Transcript) -> Vec<Question> {
    let new = transcript.text(transcript.current(), 0, CHARS);
    let mut questions = vec![Question { text: new.clone(), weight: 4 }];
    let mut context = new;
    for (segment, weight) in transcript.segments().filter(|segment| segment.turns() > 0).zip([2, 1]) {
        for row in &segment.rows {
            let is_question = row.origin == origin::USER && row.has(flag::STARTS_TURN);
            let is_answer = row.origin == origin::ASSISTANT && row.chars > 0 && weight == 2;
            let chars = if is_question { CHARS } else { ANSWER_CHARS };
            if is_question || is_answer {
                context = format!("{context}\n{}", transcript.text(row.index, 0, chars));
            }
        }
        questions.push(Question { text: context.clone(), weight });
    }
    questions
}
