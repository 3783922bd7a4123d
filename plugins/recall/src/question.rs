//! The questions to search for: the new message, and the messages that it continues.

use pmk_policy_sdk::{Transcript, flag, origin};

/// How many characters of a message are searched for.
const CHARS: u32 = 2_000;

/// The same for an answer: fewer, because an answer contains much that is beside the point.
const ANSWER_CHARS: u32 = 300;

/// A question to the archive, and the weight of its results.
pub struct Question {
    pub text: String,
    pub weight: u64,
}

/// The new message has the highest weight. A message such as "And when was that?" says nothing by itself, so the turns
/// before it are searched for as well, the last one with its answer.
pub fn asked(transcript: &Transcript) -> Vec<Question> {
    let new = transcript.text(transcript.current(), 0, CHARS);
    let mut questions = vec![Question { text: new.clone(), weight: 4 }];
    let mut context = new;
    for (segment, weight) in transcript.segments().filter(|segment| segment.turns() > 0).zip([2, 1]) {
        for row in &segment.rows {
            let is_question = row.origin == origin::USER && !row.has(flag::TOOL_RESULT);
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
