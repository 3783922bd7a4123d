//! Step 4: the model call. Ends in an answer or in words for the person, never in nothing.

mod tools;

use super::{TurnError, budget, journal::Journal, recover, work::Work};
use crate::{
    gateway::Gateway,
    ledger::Event,
    model::{self, Action, Answer, ModelError, Usage},
};

/// What came of asking.
pub(super) enum Asked {
    Answer(Answer),
    /// What the person is told instead.
    Failed {
        message: String,
    },
}

pub(super) async fn ask(gateway: &Gateway, work: &mut Work<'_>) -> Result<Asked, TurnError> {
    if work.tally.rounds == 0 {
        let files = work.turn.inbound.files;
        if files > 0 {
            work.tally.prefix.push_str(&gateway.say.files_not_read(files));
        }
        if work.turn.inbound.text.trim().is_empty() {
            let message = format!("{}{}", work.tally.prefix, gateway.say.nothing_to_read());
            return Ok(Asked::Failed { message });
        }
        if !budget::fits_at_all(work) {
            let alone = u64::from(work.window.new_message().tokens);
            return Ok(Asked::Failed { message: gateway.say.message_too_long(alone, work.room.limit) });
        }
    }
    let mut recovery = recover::Recovery::default();
    let mut repaired = None;
    let mut tools = tools::Tools::default();
    loop {
        work.tally.calls += 1;
        let (session, estimate) = (work.turn.session, work.estimate());
        let was_repaired = repaired.is_some();
        let request = repaired.take().unwrap_or_else(|| work.request());
        let error = match gateway.model.ask(&request).await {
            Ok(answer) => {
                note_usage(gateway, &work.journal, &work.turn.inbound.user, answer.usage);
                gateway.calibration().answered(session, estimate, answer.usage.prompt_tokens());
                work.tally.add_usage(answer.usage);
                tools.answered(gateway, work, &request).await;
                return Ok(Asked::Answer(answer));
            }
            Err(error) => error,
        };
        if error.action() == Action::Repair && !was_repaired {
            tracing::warn!(session = %work.turn.inbound.key, %error, "the history is repaired for one more call");
            repaired = model::repair(&request);
            if repaired.is_some() {
                continue;
            }
        }
        if tools.refused(gateway, work, &request, &error).await? {
            continue;
        }
        let ModelError::Overflow { observed_tokens, allowed_tokens, message } = error else {
            let model = gateway.model.name();
            tracing::warn!(session = %work.turn.inbound.key, model, class = error.class(), %error, "no answer");
            return Ok(Asked::Failed { message: gateway.say.no_answer(&error, model) });
        };
        // A quota a minute is no context window.
        let window = allowed_tokens.filter(|_| !is_about_a_quota(&message));
        gateway.calibration().refused(session, estimate, observed_tokens, window);
        let overflow = recover::Overflow { observed_tokens, allowed_tokens };
        if !recover::recover(gateway, work, &mut recovery, overflow).await? {
            return Ok(Asked::Failed { message: gateway.say.too_long() });
        }
    }
}

/// Whether a refusal speaks of tokens per time.
fn is_about_a_quota(message: &str) -> bool {
    let message = message.to_lowercase();
    ["per min", "per hour", "per day", "tpm", "tpd"].iter().any(|word| message.contains(word))
}

/// What the provider counted for one call.
pub(super) fn note_usage(gateway: &Gateway, journal: &Journal<'_>, actor: &str, usage: Usage) {
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
