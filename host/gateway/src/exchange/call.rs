//! Step 4: the model call. Ends with an answer or with the reason why there is none.

mod images;
mod tools;

use pmk_models::{Action, Answer, ErrorClass, ModelError, Request, Stop};

use super::{
    Exchange, Ports, Sent, invariants,
    recover::{self, Cause, Recovery},
    trial::{self, Trial},
};
use crate::{
    calibration::{LEAST_LIMIT, Refusal, Source},
    store::StoreError,
};

use images::Images;
use tools::Tools;

/// The room for the answer to a test request, which nobody reads. Models that think refuse too little of it.
const TRIAL_TOKENS: u32 = 1_024;

/// The outcome of the model call.
pub(crate) enum CallOutcome {
    Answer(Answer),
    /// The new message fits, but the conversation does not.
    TooLong,
    /// The new message alone has this many tokens; the limit is given if it is known.
    MessageTooLong {
        tokens: u64,
        limit: Option<u64>,
    },
    /// There is no answer, for a reason other than the size.
    Failed(ModelError),
}

/// Calls the model, and again with a smaller request if that may help. A new message that cannot fit
/// is not even sent.
///
/// # Errors
/// The store failed.
pub(crate) async fn call(ports: &dyn Ports, exchange: &mut Exchange) -> Result<CallOutcome, StoreError> {
    if !exchange.fits_at_all() {
        // It counts as a message that could not be answered, just like one that was refused.
        recover::note_failed(ports, exchange);
        return Ok(too_long(exchange));
    }
    let mut recovery = Recovery::default();
    let mut tools = Tools::default();
    let mut images = Images::default();
    loop {
        let (request, outcome) = send_or_repair(ports, exchange).await;
        let outcome = outcome.map_err(|error| believed(ports, exchange, error));
        match &outcome {
            Ok(answer) if !answer.is_empty() => {
                tools.answered(ports, exchange, &request).await;
                images.answered(ports, exchange).await?;
            }
            Err(error) if tools.refused(ports, exchange, &request, error).await? => continue,
            Err(error) if images.refused(ports, exchange, &request, error).await? => continue,
            Ok(_) | Err(_) => {}
        }
        let Some(cause) = cause(ports, exchange, &outcome) else { return settled(ports, exchange, outcome).await };
        if !recover::recover(ports, exchange, &mut recovery, cause).await? {
            return Ok(match outcome {
                Ok(nothing) => CallOutcome::Answer(nothing),
                Err(error) if matches!(error.class, ErrorClass::Overflow { .. }) => too_long(exchange),
                Err(error) => failed(exchange, error),
            });
        }
    }
}

/// Returns what is too long: the new message, or else the conversation.
fn too_long(exchange: &Exchange) -> CallOutcome {
    if exchange.fits_at_all() {
        return CallOutcome::TooLong;
    }
    let limit = exchange.budget.is_counted.then_some(exchange.budget.alone);
    CallOutcome::MessageTooLong { tokens: exchange.alone(), limit }
}

/// Makes one call, and another one if the history can be repaired. Returns the request that was
/// sent last.
async fn send_or_repair(ports: &dyn Ports, exchange: &mut Exchange) -> (Request, Result<Answer, ModelError>) {
    let request = exchange.request();
    let outcome = send(ports, exchange, &request, false).await;
    if let Err(error) = &outcome
        && error.action() == Action::Repair
    {
        tracing::warn!(session = exchange.key, %error, "the history was repaired; calling once more");
        if let Some(repaired) = pmk_models::repair(&request) {
            let outcome = send(ports, exchange, &repaired, true).await;
            return (repaired, outcome);
        }
    }
    (request, outcome)
}

async fn send(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    request: &Request,
    is_repaired: bool,
) -> Result<Answer, ModelError> {
    invariants::hold(exchange, request);
    exchange.tally.calls += 1;
    let estimate = exchange.estimate();
    let outcome = ports.answer(request, estimate, &mut exchange.tally).await;
    let usage = outcome.as_ref().ok().map(|answer| answer.usage);
    ports.sent(Sent { exchange, request, is_repaired, usage });
    outcome
}

/// Sends a small request that shows whether the server accepts what is in it.
async fn try_out(ports: &dyn Ports, exchange: &mut Exchange, request: Request) -> Result<(), ModelError> {
    let request = Request { max_answer_tokens: TRIAL_TOKENS, ..request };
    ports.ask(&request, 0, &mut exchange.tally.usage).await.map(drop)
}

/// Classifies a failure. A refusal as too long that names no limit is ignored if the request is tiny, or, also by the
/// provider's own count, much smaller than requests that the model has answered: believing it would keep every
/// conversation below that size. Something else was wrong, and the provider did not say what.
fn believed(ports: &dyn Ports, exchange: &Exchange, error: ModelError) -> ModelError {
    match error.class {
        ErrorClass::Overflow { observed_tokens, allowed_tokens: None, .. }
            if exchange.below.is_none()
                && !ports
                    .calibration()
                    .may_be_too_large(exchange.estimate().max(observed_tokens.unwrap_or(0)), Source::Unexplained) =>
        {
            let message = error.message;
            tracing::warn!(session = exchange.key, message, "ignoring a refusal of a small prompt as too long");
            ModelError::new(ErrorClass::Unexplained, message)
        }
        _ => error,
    }
}

/// Returns what a refusal as too long says about the size.
pub(crate) fn refusal(error: &ModelError) -> Option<Refusal> {
    let ErrorClass::Overflow { observed_tokens, allowed_tokens, .. } = error.class else { return None };
    // A quota per minute is not a context window, and what it counts contains the room for the answer.
    let is_of_the_prompt = !is_about_a_quota(&error.message);
    let of_the_prompt = |tokens: Option<u64>| tokens.filter(|_| is_of_the_prompt);
    let (observed, window) = (of_the_prompt(observed_tokens), of_the_prompt(allowed_tokens));
    Some(Refusal { observed, window, source: Source::Refused })
}

/// Returns why a smaller request may be answered although this one was not.
fn cause(ports: &dyn Ports, exchange: &Exchange, outcome: &Result<Answer, ModelError>) -> Option<Cause> {
    let source = match outcome {
        Err(error @ ModelError { class: ErrorClass::Overflow { observed_tokens, allowed_tokens, .. }, .. }) => {
            let (observed_tokens, allowed_tokens) = (*observed_tokens, *allowed_tokens);
            return refusal(error).map(|refusal| Cause::Overflow { refusal, observed_tokens, allowed_tokens });
        }
        Err(error) if error.action() == Action::Probe => Source::Unexplained,
        Err(error) if is_without_a_word(error) => Source::Failing,
        Ok(answer) if answer.is_empty() && !is_used_up(answer, exchange.budget.answer, ports.most_given()) => {
            Source::Empty
        }
        _ => return None,
    };
    // A failure without an explanation is caused by the server far more often than by the size.
    let is_tried = |trial: &Trial| source != Source::Failing || trial.is_suspicion();
    let may_suspect = exchange.trial.as_ref().is_some_and(is_tried)
        || exchange.tally.draft.tokens_after > LEAST_LIMIT
            && (source != Source::Failing || exchange.sizes.may_be_too_large(exchange.estimate()))
            && ports.calibration().may_be_too_large(exchange.estimate(), source)
            && ports.calibration().may_suspect(exchange.session, ports.now_ms());
    may_suspect.then_some(Cause::Suspected(source))
}

/// Returns whether an answer has used up the room for it; without any text, that is by thinking. A prompt that leaves
/// less room than that ends it earlier. The server may give less than the room that was asked for.
pub(crate) fn is_used_up(answer: &Answer, room: u32, most_given: Option<u32>) -> bool {
    let room = most_given.map_or(room, |most| room.min(most));
    answer.stop == Stop::MaxTokens && answer.usage.output_tokens >= u64::from(room - room / 10)
}

/// Handles an answer, or a failure that is unrelated to the size.
async fn settled(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    outcome: Result<Answer, ModelError>,
) -> Result<CallOutcome, StoreError> {
    match outcome {
        Ok(nothing) if nothing.is_empty() => {
            // Nothing came of what was tried, either.
            trial::take_back(exchange);
            Ok(CallOutcome::Answer(nothing))
        }
        Ok(answer) => {
            trial::helped(ports, exchange).await?;
            // What was not sent was not counted.
            let size = exchange.estimate().saturating_sub(exchange.tally.of_images_left_out.into());
            let (session, counted) = (exchange.session, answer.usage.prompt_tokens());
            ports.calibration().answered(session, size, counted, ports.now_ms());
            exchange.sizes.answered(size);
            exchange.tally.answered = exchange.tally.answered.max(size);
            Ok(CallOutcome::Answer(answer))
        }
        Err(error) => {
            // The failure says nothing about the size.
            trial::take_back(exchange);
            tracing::warn!(session = exchange.key, class = error.class.name(), %error, "no answer");
            Ok(failed(exchange, error))
        }
    }
}

/// Ends the turn with this failure.
fn failed(exchange: &mut Exchange, error: ModelError) -> CallOutcome {
    if is_without_a_word(&error) {
        exchange.sizes.turn_failed();
    }
    CallOutcome::Failed(error)
}

/// Returns whether a server failed without saying what would help. A server that asks for a wait is
/// busy.
fn is_without_a_word(error: &ModelError) -> bool {
    error.action() == Action::Retry && error.retry_after().is_none()
}

/// Returns whether a refusal mentions tokens per time.
fn is_about_a_quota(message: &str) -> bool {
    let message = message.to_lowercase();
    let words: Vec<&str> = message.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_per_time = |pair: &[&str]| pair[0] == "per" && ["min", "minute", "hour", "day"].contains(&pair[1]);
    words.iter().any(|word| ["tpm", "tpd"].contains(word)) || words.windows(2).any(is_per_time)
}

#[cfg(test)]
mod tests {
    use pmk_models::{ErrorClass, ModelError};

    use super::{is_about_a_quota, refusal};

    #[test]
    fn a_quotas_count_is_no_sample_of_what_prompts_take() {
        let learnt = |message: &str| {
            let class = ErrorClass::Overflow {
                observed_tokens: Some(7_345),
                allowed_tokens: Some(6_000),
                is_of_request: false,
            };
            let refusal = refusal(&ModelError::new(class, message.to_owned())).expect("an overflow");
            (refusal.observed, refusal.window)
        };
        assert_eq!(learnt("tokens per minute (TPM): Limit 6000, Requested 7345"), (None, None));
        assert_eq!(learnt("prompt is too long: 7345 > 6000"), (Some(7_345), Some(6_000)));
    }

    /// The `tpd` of httpd.
    #[test]
    fn a_word_that_only_contains_a_quota_is_none() {
        for quota in
            ["Limit 6000 (TPM): used 5,000", "10000 tokens per min", "tokens_per_minute", "100k per day", "tpd"]
        {
            assert!(is_about_a_quota(quota), "{quota}");
        }
        for none in ["httpd: prompt is too long: 9000 > 8192", "one per daybreak", "super minimal"] {
            assert!(!is_about_a_quota(none), "{none}");
        }
    }
}
