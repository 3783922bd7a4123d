//! Step 4: the model call. Ends in an answer or in the reason why there is none.

mod images;
mod tools;

use pmk_models::{Action, Answer, ModelError, Request};

use super::{
    Exchange, Ports, Sent, invariants,
    recover::{self, Cause, Recovery},
    trial::{self, Trial},
};
use crate::{
    calibration::{LEAST_LIMIT, Source},
    store::StoreError,
};

use images::Images;
use tools::Tools;

/// What came of asking.
pub(crate) enum CallOutcome {
    Answer(Answer),
    /// The new message fits, the conversation does not.
    TooLong,
    /// The new message alone takes so many tokens; and so many fit, where that is known.
    MessageTooLong {
        tokens: u64,
        limit: Option<u64>,
    },
    /// There is no answer, and it is not the size.
    Failed(ModelError),
}

/// Asks, and asks smaller where that may help. A new message that fits by no means is not even sent.
///
/// # Errors
/// The store failed.
pub(crate) async fn call(ports: &dyn Ports, exchange: &mut Exchange) -> Result<CallOutcome, StoreError> {
    if !exchange.fits_at_all() {
        // As much a message that could not be answered as one that was sent in vain.
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
                Err(ModelError::Overflow { .. }) => too_long(exchange),
                Err(error) => failed(exchange, error),
            });
        }
    }
}

/// What is too long: the new message where it is, else the conversation.
fn too_long(exchange: &Exchange) -> CallOutcome {
    if exchange.fits_at_all() {
        return CallOutcome::TooLong;
    }
    let limit = exchange.budget.is_counted.then_some(exchange.budget.alone);
    CallOutcome::MessageTooLong { tokens: exchange.alone(), limit }
}

/// One call, and one more where the history can be repaired; with what was sent last.
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
    let outcome = ports.answer(request, exchange.estimate()).await;
    let usage = outcome.as_ref().ok().map(|answer| answer.usage);
    ports.sent(Sent { exchange, request, is_repaired, usage });
    exchange.tally.usage.add(usage.unwrap_or_default());
    outcome
}

/// What a failure is taken for. A refusal as too long that names no limit is not believed of a request that is tiny, or
/// much smaller than what the model answers, by the provider's own count, too: it would keep every conversation below that
/// size. Something else was wrong, and nobody has said what.
fn believed(ports: &dyn Ports, exchange: &Exchange, error: ModelError) -> ModelError {
    match error {
        ModelError::Overflow { observed_tokens, allowed_tokens: None, message }
            if exchange.below.is_none()
                && !may_be_the_size(
                    ports,
                    exchange.estimate().max(observed_tokens.unwrap_or(0)),
                    Source::Unexplained,
                ) =>
        {
            tracing::warn!(session = exchange.key, message, "ignoring a refusal of a small prompt as too long");
            ModelError::Unexplained { message }
        }
        error => error,
    }
}

/// Whether a request of this size may be more than the model takes.
fn may_be_the_size(ports: &dyn Ports, size: u64, source: Source) -> bool {
    size > LEAST_LIMIT && ports.calibration().bounds().may_be_too_large(size, source)
}

/// Why a smaller request may be answered where this one was not.
fn cause(ports: &dyn Ports, exchange: &Exchange, outcome: &Result<Answer, ModelError>) -> Option<Cause> {
    let source = match outcome {
        Err(ModelError::Overflow { observed_tokens, allowed_tokens, message }) => {
            // A quota a minute is no context window.
            let window = allowed_tokens.filter(|_| !is_about_a_quota(message));
            let (observed_tokens, allowed_tokens) = (*observed_tokens, *allowed_tokens);
            return Some(Cause::Overflow { observed_tokens, allowed_tokens, window });
        }
        Err(error) if error.action() == Action::Probe => Source::Unexplained,
        Err(error) if is_without_a_word(error) => Source::Failing,
        Ok(answer) if answer.is_empty() => Source::Empty,
        _ => return None,
    };
    // What fails without a word is the server's far more often than the size's.
    let is_tried = |trial: &Trial| source != Source::Failing || trial.is_suspicion();
    let may_suspect = exchange.trial.as_ref().is_some_and(is_tried)
        || exchange.tally.tokens_after > LEAST_LIMIT
            && (source != Source::Failing || exchange.sizes.may_be_too_large(exchange.estimate()))
            && may_be_the_size(ports, exchange.estimate(), source)
            && ports.calibration().may_suspect(exchange.session, ports.now_ms());
    may_suspect.then_some(Cause::Suspected(source))
}

/// An answer, or a failure that has nothing to do with the size.
async fn settled(
    ports: &dyn Ports,
    exchange: &mut Exchange,
    outcome: Result<Answer, ModelError>,
) -> Result<CallOutcome, StoreError> {
    match outcome {
        Ok(answer) => {
            trial::helped(ports, exchange).await?;
            if !answer.is_empty() {
                let (session, size, counted) = (exchange.session, exchange.estimate(), answer.usage.prompt_tokens());
                ports.calibration().answered(session, size, counted, ports.now_ms());
                exchange.sizes.answered(size);
            }
            Ok(CallOutcome::Answer(answer))
        }
        Err(error) => {
            // Which says nothing of the size.
            trial::take_back(exchange);
            tracing::warn!(session = exchange.key, class = error.class(), %error, "no answer");
            Ok(failed(exchange, error))
        }
    }
}

/// The turn ends with this failure.
fn failed(exchange: &mut Exchange, error: ModelError) -> CallOutcome {
    if is_without_a_word(&error) {
        exchange.sizes.turn_failed();
    }
    CallOutcome::Failed(error)
}

/// Whether a server has failed and not said what would help. One that asks for a wait is busy.
fn is_without_a_word(error: &ModelError) -> bool {
    error.action() == Action::Retry && error.retry_after().is_none()
}

/// Whether a refusal speaks of tokens per time.
fn is_about_a_quota(message: &str) -> bool {
    let message = message.to_lowercase();
    let words: Vec<&str> = message.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_per_time = |pair: &[&str]| pair[0] == "per" && ["min", "minute", "hour", "day"].contains(&pair[1]);
    words.iter().any(|word| ["tpm", "tpd"].contains(word)) || words.windows(2).any(is_per_time)
}

#[cfg(test)]
mod tests {
    use super::is_about_a_quota;

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
