//! Step 4 for a person: what cannot be asked at all is said at once, and whatever comes of asking ends in an answer or in words,
//! never in nothing.

use pmk_models::Answer;

use super::{TurnError, work::Work};
use crate::{
    exchange::call::{self, Outcome},
    services::Services,
};

/// What came of asking.
pub(super) enum Asked {
    Answer(Answer),
    /// What the person is told instead.
    Failed {
        message: String,
    },
}

pub(super) async fn ask(services: &Services, work: &mut Work<'_>) -> Result<Asked, TurnError> {
    let outcome = match unaskable(services, work) {
        Some(Unaskable::Empty(message)) => return Ok(Asked::Failed { message }),
        Some(Unaskable::TooLong(outcome)) => outcome,
        None => call::call(&work.ports, &mut work.exchange).await?,
    };
    let message = match outcome {
        Outcome::Answer(answer) => return Ok(Asked::Answer(answer)),
        Outcome::TooLong => services.say.too_long(),
        Outcome::MessageTooLong { tokens, limit } => services.say.message_too_long(tokens, limit),
        Outcome::Failed(error) => services.say.no_answer(&error, services.model.name()),
    };
    Ok(Asked::Failed { message })
}

/// Why the model is not asked at all.
enum Unaskable {
    /// There is nothing to read; the words for it.
    Empty(String),
    TooLong(Outcome),
}

fn unaskable(services: &Services, work: &mut Work<'_>) -> Option<Unaskable> {
    if work.tally.rounds > 0 {
        return None;
    }
    let files = work.turn.inbound.files;
    if files > 0 {
        work.tally.prefix.push_str(&services.say.files_not_read(files));
    }
    if work.turn.inbound.text.trim().is_empty() {
        return Some(Unaskable::Empty(format!("{}{}", work.tally.prefix, services.say.nothing_to_read())));
    }
    call::refuse_unsent(&work.ports, &work.exchange).map(Unaskable::TooLong)
}
