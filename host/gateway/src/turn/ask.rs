//! Step 4: the model call. Ends in an answer or in words for the person, never in nothing.

mod tools;

use super::{
    TurnError, budget,
    journal::Journal,
    recover::{self, Cause, Recovery, trial},
    work::{LEAST_LIMIT, Work},
};
use crate::{
    calibration::Source,
    clock,
    gateway::Gateway,
    ledger::Event,
    model::{self, Action, Answer, ModelError, Request, Usage},
};

use tools::Tools;

/// What came of asking.
pub(super) enum Asked {
    Answer(Answer),
    /// What the person is told instead.
    Failed {
        message: String,
    },
}

pub(super) async fn ask(gateway: &Gateway, work: &mut Work<'_>) -> Result<Asked, TurnError> {
    if let Some(message) = unaskable(gateway, work) {
        return Ok(Asked::Failed { message });
    }
    let mut recovery = Recovery::default();
    let mut tools = Tools::default();
    loop {
        let (request, outcome) = call(gateway, work).await;
        match &outcome {
            Ok(answer) if !answer.is_empty() => tools.answered(gateway, work, &request).await,
            Err(error) if tools.refused(gateway, work, &request, error).await? => continue,
            Ok(_) | Err(_) => {}
        }
        let Some(cause) = cause(gateway, work, &outcome) else { return settled(gateway, work, outcome).await };
        if !recover::recover(gateway, work, &mut recovery, cause).await? {
            return Ok(match outcome {
                Ok(nothing) => Asked::Answer(nothing),
                Err(ModelError::Overflow { .. }) => Asked::Failed { message: too_long(gateway, work) },
                Err(error) => Asked::Failed { message: gateway.say.no_answer(&error, gateway.model.name()) },
            });
        }
    }
}

/// Why the model is not asked at all.
fn unaskable(gateway: &Gateway, work: &mut Work<'_>) -> Option<String> {
    if work.tally.rounds > 0 {
        return None;
    }
    let files = work.turn.inbound.files;
    if files > 0 {
        work.tally.prefix.push_str(&gateway.say.files_not_read(files));
    }
    if work.turn.inbound.text.trim().is_empty() {
        return Some(format!("{}{}", work.tally.prefix, gateway.say.nothing_to_read()));
    }
    if budget::fits_at_all(work) {
        return None;
    }
    // As much a message that could not be answered as one that was sent in vain.
    recover::note_failed(work);
    Some(too_long(gateway, work))
}

/// What is too long: the new message where it is, else the conversation.
fn too_long(gateway: &Gateway, work: &Work<'_>) -> String {
    let alone = u64::from(work.window.new_message().tokens);
    if budget::fits_at_all(work) {
        gateway.say.too_long()
    } else {
        gateway.say.message_too_long(alone, work.room.is_counted.then_some(work.room.alone))
    }
}

/// One call, and one more where the history can be repaired; with what was sent last.
async fn call(gateway: &Gateway, work: &mut Work<'_>) -> (Request, Result<Answer, ModelError>) {
    let request = work.request();
    let outcome = send(gateway, work, &request).await;
    if let Err(error) = &outcome
        && error.action() == Action::Repair
    {
        tracing::warn!(session = %work.turn.inbound.key, %error, "the history is repaired for one more call");
        if let Some(repaired) = model::repair(&request) {
            let outcome = send(gateway, work, &repaired).await;
            return (repaired, outcome);
        }
    }
    (request, outcome)
}

async fn send(gateway: &Gateway, work: &mut Work<'_>, request: &Request) -> Result<Answer, ModelError> {
    work.tally.calls += 1;
    let answer = gateway.model.ask(request).await?;
    note_usage(gateway, &work.journal, &work.turn.inbound.user, answer.usage);
    work.tally.add_usage(answer.usage);
    Ok(answer)
}

/// Why a smaller request may be answered where this one was not.
fn cause(gateway: &Gateway, work: &Work<'_>, outcome: &Result<Answer, ModelError>) -> Option<Cause> {
    let source = match outcome {
        Err(ModelError::Overflow { observed_tokens, allowed_tokens, message }) => {
            // A quota a minute is no context window.
            let window = allowed_tokens.filter(|_| !is_about_a_quota(message));
            let (observed_tokens, allowed_tokens) = (*observed_tokens, *allowed_tokens);
            return Some(Cause::Overflow { observed_tokens, allowed_tokens, window });
        }
        Err(error) if error.action() == Action::Probe => Source::Unexplained,
        Ok(answer) if answer.is_empty() => Source::Empty,
        _ => return None,
    };
    let calibration = gateway.calibration();
    let may_suspect = work.trial.is_some()
        || work.tally.tokens_after > LEAST_LIMIT
            && calibration.bounds().may_be_too_large(work.estimate(), source)
            && calibration.may_suspect(work.turn.session, clock::now_ms());
    may_suspect.then_some(Cause::Suspected(source))
}

/// An answer, or a failure that has nothing to do with the size.
async fn settled(
    gateway: &Gateway,
    work: &mut Work<'_>,
    outcome: Result<Answer, ModelError>,
) -> Result<Asked, TurnError> {
    match outcome {
        Ok(answer) => {
            trial::helped(gateway, work).await?;
            if !answer.is_empty() {
                let (session, counted) = (work.turn.session, answer.usage.prompt_tokens());
                gateway.calibration().answered(session, work.estimate(), counted, clock::now_ms());
            }
            Ok(Asked::Answer(answer))
        }
        Err(error) => {
            // Which says nothing of the size.
            trial::take_back(work);
            tracing::warn!(session = %work.turn.inbound.key, class = error.class(), %error, "no answer");
            Ok(Asked::Failed { message: gateway.say.no_answer(&error, gateway.model.name()) })
        }
    }
}

/// Whether a refusal speaks of tokens per time.
fn is_about_a_quota(message: &str) -> bool {
    let message = message.to_lowercase();
    let words: Vec<&str> = message.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_per_time = |pair: &[&str]| pair[0] == "per" && ["min", "minute", "hour", "day"].contains(&pair[1]);
    words.iter().any(|word| ["tpm", "tpd"].contains(word)) || words.windows(2).any(is_per_time)
}

/// What the provider counted for one call.
pub(super) fn note_usage(gateway: &Gateway, journal: &Journal, actor: &str, usage: Usage) {
    if usage.prompt_tokens() == 0 {
        return;
    }
    journal.note(Event::TokenUsage {
        actor: actor.to_owned(),
        provider: gateway.model.provider().to_owned(),
        model: gateway.model.name().to_owned(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_creation_tokens: usage.cache_creation_tokens,
    });
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
