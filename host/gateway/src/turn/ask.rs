//! Step 4: asks the model for a person. What cannot be asked is reported at once, and every call ends in an answer or
//! in an error text.

use pmk_models::{Answer, ErrorClass};

use super::{TurnError, attach, work::Work};
use crate::{
    config::Config,
    exchange::call::{self, CallOutcome},
    messages::Messages,
    services::Services,
};

/// The class of a request that is too long, whoever finds that.
const TOO_LONG: &str =
    ErrorClass::Overflow { observed_tokens: None, allowed_tokens: None, is_of_request: false }.name();

/// The outcome of asking the model.
pub(super) enum AskOutcome {
    Answer(Answer),
    /// The text that the person gets instead.
    Failed {
        message: String,
        /// Whether a retry may succeed.
        may_pass: bool,
    },
}

pub(super) async fn ask(services: &Services, work: &mut Work<'_>) -> Result<AskOutcome, TurnError> {
    if let Some(message) = nothing_to_ask(&services.messages, &services.config, work) {
        return Ok(AskOutcome::Failed { message, may_pass: false });
    }
    // One message that is too long must not make the others fail, and each may fit by itself. After the first round,
    // tools have run already.
    work.exchange.is_collected &= work.tally.rounds == 0;
    let is_collected = work.exchange.is_collected;
    if is_collected && !work.exchange.fits_at_all() {
        return Err(TurnError::Apart);
    }
    let asked_at_ms = services.now_ms();
    let outcome = call::call(&work.ports, &mut work.exchange).await?;
    if std::mem::take(&mut work.exchange.tally.images_refused) {
        work.tally.prefix.push_str(&services.messages.images_refused());
    }
    let (class, message, may_pass) = match outcome {
        CallOutcome::Answer(answer) => {
            if services.model_trouble.answers(asked_at_ms) {
                services.admins.tell(services.messages.model_answers_again(services.model.name()));
            }
            return Ok(AskOutcome::Answer(answer));
        }
        CallOutcome::TooLong | CallOutcome::MessageTooLong { .. } if is_collected => return Err(TurnError::Apart),
        CallOutcome::TooLong => (TOO_LONG, services.messages.too_long(), false),
        CallOutcome::MessageTooLong { tokens, limit } => {
            (TOO_LONG, services.messages.message_too_long(tokens, limit), false)
        }
        CallOutcome::Failed(error) => {
            if error.is_for_operators() && services.model_trouble.refuses(services.now_ms()) {
                services.admins.tell(services.messages.model_refuses(&error, services.model.name()));
            }
            (error.class.name(), services.messages.no_answer(&error, services.model.name()), true)
        }
    };
    work.tally.unanswered = Some(class);
    Ok(AskOutcome::Failed { message, may_pass })
}

/// Returns the text to send if there is nothing to ask the model.
fn nothing_to_ask(messages: &Messages, config: &Config, work: &mut Work<'_>) -> Option<String> {
    if work.tally.rounds > 0 {
        return None;
    }
    work.tally.prefix.push_str(&attach::not_read(messages, config, &work.attached));
    let is_empty = work.turn.inbound.text.trim().is_empty() && !work.attached.has_content();
    is_empty.then(|| format!("{}{}", work.tally.prefix, messages.nothing_to_read()))
}
