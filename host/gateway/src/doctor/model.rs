//! The model: whether it answers, asked for one token.

use std::sync::Arc;

use jiff::SignedDuration;
use pmk_core::Message;
use pmk_models::{Model, ModelError, Provider, Request};
use tokio::time::timeout;

use super::{Finding, Getting, PATIENCE, get};

pub(super) const NAME: &str = "model";
const PAGE: &str = "docs/models.md";

/// The model that would answer.
pub struct Answering {
    pub model: Arc<dyn Model>,
    /// What an operator should know of its choice, and what else could be: text and hint.
    pub note: Option<(String, String)>,
}

/// What is found, and how far this machine's clock is ahead of the provider's.
pub(super) async fn look(answering: Getting<Answering>, offline: bool) -> (Finding, Option<SignedDuration>) {
    match get(answering).await {
        Ok(Answering { model, note }) => (ask(&*model, note, offline).await, model.clock_ahead()),
        Err(failure) => (Finding::failed(NAME, failure, PAGE), None),
    }
}

async fn ask(model: &dyn Model, note: Option<(String, String)>, offline: bool) -> Finding {
    if let Some((what, hint)) = note {
        return Finding::odd(NAME, what, hint);
    }
    let name = format!("{}:{}", model.provider(), model.name());
    if model.provider() == Provider::Sim.name() {
        return Finding::well(NAME, format!("{name}, a stand-in inside the program"));
    }
    if model.provider() == Provider::ClaudeCli.name() {
        return Finding::well(NAME, format!("{name}: the program `claude` is there; it was not asked"));
    }
    if offline {
        return Finding::left_out(NAME, format!("{name} was not asked, because of `--offline`"));
    }
    let request =
        Request { messages: vec![Arc::new(Message::user("Say: ok"))], max_answer_tokens: 1, ..Request::default() };
    let asked = timeout(PATIENCE, model.ask(&request)).await;
    match asked.unwrap_or_else(|_| Err(ModelError::silent_for(PATIENCE))) {
        Ok(_) => Finding::well(NAME, format!("{name} answers")),
        Err(error) => refused(&name, &error),
    }
}

/// What waiting mends, or is about so small a request alone, does not keep a gateway from serving.
fn refused(name: &str, error: &ModelError) -> Finding {
    let what = format!("{name}: {error}");
    match error {
        ModelError::RateLimited { .. } | ModelError::Overloaded { .. } => {
            Finding::odd(NAME, what, "it takes the key; try again a little later")
        }
        ModelError::Auth { .. } => Finding::bad(NAME, what, format!("check the key or the login, see {PAGE}")),
        ModelError::Billing { .. } => Finding::bad(NAME, what, "look at the provider's page on billing"),
        ModelError::UnknownModel { .. } => {
            Finding::bad(NAME, what, format!("check the name after the colon and the address, see {PAGE}"))
        }
        ModelError::Transport { .. } | ModelError::Timeout { .. } => {
            Finding::bad(NAME, what, "check the network, a proxy, and the address of the provider")
        }
        ModelError::Unexplained { .. } | ModelError::Refused { .. } => Finding::odd(
            NAME,
            what,
            "it answers; so small a request may not suit it: ask it something by `pmk-host run`",
        ),
        _ => Finding::bad(NAME, what, format!("see {PAGE}#when-a-model-refuses")),
    }
}
