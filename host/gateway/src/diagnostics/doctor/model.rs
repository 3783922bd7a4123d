//! Checks whether the model answers: asks it for one token, or `claude` for a word.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use pmk_core::Message;
use pmk_models::{ErrorClass, Meter, Model, ModelError, Provider, Request};
use tokio::time::timeout;

use super::{Finding, PATIENCE, Part, State, get};
use crate::{
    messages::{DoctorRemark, Messages, ModelFound, Notice},
    roots,
};

pub(super) const NAME: &str = "model";
const PAGE: &str = "docs/models.md";

/// `claude` starts a whole program for a question.
pub const CLAUDE_PATIENCE: Duration = Duration::from_secs(30);
/// `claude` reports an error if the answer exceeds the limit, so it gets more than one token.
const CLAUDE_ANSWER_TOKENS: u32 = 64;

/// The model that would answer.
pub struct Answering {
    pub model: Arc<dyn Model>,
    /// Whether it is the stand-in, because no model was configured.
    pub is_unnamed: bool,
}

/// Returns the finding, and how far this machine's clock is ahead of the provider's.
pub(super) async fn look(
    answering: Part<Answering>,
    offline: bool,
    messages: &Messages,
) -> (Finding, Option<SignedDuration>) {
    match get(NAME, answering, PAGE, messages).await {
        Ok(Answering { is_unnamed: true, .. }) => {
            let (_, hint) = messages.notice(Notice::Sim);
            (Finding::odd(NAME, messages.doctor(DoctorRemark::ModelUnnamed), hint), None)
        }
        Ok(Answering { model, .. }) => (ask(&*model, offline, messages).await, model.clock_ahead()),
        Err(finding) => (finding, None),
    }
}

async fn ask(model: &dyn Model, offline: bool, messages: &Messages) -> Finding {
    let name = format!("{}:{}", model.provider(), model.name());
    let well = |found| Finding::well(NAME, messages.doctor_model(&name, found));
    if model.provider() == Provider::Sim.name() {
        return well(ModelFound::StandIn);
    }
    let is_claude = model.provider() == Provider::ClaudeCli.name();
    if offline && is_claude {
        let hint = messages.doctor(DoctorRemark::ModelClaudeHint);
        return Finding::odd(NAME, messages.doctor_model(&name, ModelFound::Program), hint);
    }
    if offline {
        return Finding::left_out(NAME, messages.doctor_model(&name, ModelFound::Offline));
    }
    let (patience, max_answer_tokens) = if is_claude { (CLAUDE_PATIENCE, CLAUDE_ANSWER_TOKENS) } else { (PATIENCE, 1) };
    let request =
        Request { messages: vec![Arc::new(Message::user("Say: ok"))], max_answer_tokens, ..Request::default() };
    let asked = timeout(patience, model.ask(&request, &Meter::default())).await;
    match asked.unwrap_or_else(|_| Err(ModelError::not_done_within(patience))) {
        Ok(_) => well(ModelFound::Answers),
        Err(error) => refused(&name, &error, messages),
    }
}

/// The finding for an error. Errors that go away by waiting, or that concern only so small a request, do not keep a
/// gateway from serving.
fn refused(name: &str, error: &ModelError, messages: &Messages) -> Finding {
    let what = format!("{name}: {error}");
    let (state, hint) = match error.class {
        ErrorClass::RateLimited { .. } | ErrorClass::Overloaded { .. } => (State::Odd, DoctorRemark::ModelLater),
        ErrorClass::Auth => (State::Bad, DoctorRemark::ModelCredentials),
        ErrorClass::Billing => (State::Bad, DoctorRemark::ModelBilling),
        ErrorClass::UnknownModel => (State::Bad, DoctorRemark::ModelName),
        ErrorClass::Transport if roots::blames_the_clock(&what) => (State::Bad, DoctorRemark::ModelClock),
        ErrorClass::Transport | ErrorClass::Timeout => (State::Bad, DoctorRemark::ModelNetwork),
        ErrorClass::Unexplained | ErrorClass::Refused => (State::Odd, DoctorRemark::ModelSmall),
        _ => return Finding::bad(NAME, what, messages.doctor_see(&format!("{PAGE}#when-a-model-refuses"))),
    };
    Finding::new(NAME, state, what, Some(messages.doctor(hint)))
}
