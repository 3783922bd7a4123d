//! Servers without tools. Most say so in words that are known. What is refused in words that nothing explains
//! is asked once more without tools; where that passes and a small request with tools does not, it was the tools.

use std::sync::Arc;

use pmk_core::{Message, message};
use pmk_models::{Action, ModelError, Request};

use super::{
    super::{TurnError, budget, work::Work},
    note_usage,
};
use crate::preambles::Preamble;
use crate::{directive, services::Services};

/// The room for the answer to a trial, which nobody reads.
const TRIAL_TOKENS: u32 = 16;

/// What one question finds out about tools.
#[derive(Default)]
pub(super) struct Tools {
    /// While the same is asked without tools: what it was asked with before, and why that was refused.
    suspected: Option<(Arc<Preamble>, String)>,
    was_suspected: bool,
}

impl Tools {
    /// A request was refused. Whether the same is to be asked again, without tools.
    pub async fn refused(
        &mut self,
        services: &Services,
        work: &mut Work<'_>,
        request: &Request,
        error: &ModelError,
    ) -> Result<bool, TurnError> {
        let may_be_the_tools = services.model.has_tools() && has_tools(request);
        match error.action() {
            Action::Fence if may_be_the_tools => {
                services.preambles.tools_were_refused("said", &error.to_string()).await
            }
            Action::Probe if may_be_the_tools && !self.was_suspected && services.preambles.takes_tools().is_none() => {
                tracing::info!(session = %work.turn.inbound.key, %error, "the same is asked without tools");
                self.was_suspected = true;
                self.suspected = Some((Arc::clone(&work.preamble), error.to_string()));
            }
            _ => {
                // It was not the tools, or not they alone.
                if let Some((preamble, _)) = self.suspected.take() {
                    work.preamble = preamble;
                    budget::budget(services, work).await?;
                }
                return Ok(false);
            }
        }
        work.preamble = services.preambles.as_text(work.audience, work.offer);
        budget::budget(services, work).await?;
        Ok(true)
    }

    /// A request was answered.
    pub async fn answered(&mut self, services: &Services, work: &mut Work<'_>, request: &Request) {
        let Some((_, reason)) = self.suspected.take() else {
            if !request.tools.is_empty() {
                services.preambles.tools_were_taken().await;
            }
            return;
        };
        // What passed was a little smaller, too: a request that is small for certain tells the two apart.
        match trial(services, work).await {
            Ok(()) => services.preambles.tools_were_taken().await,
            Err(error) if matches!(error.action(), Action::Probe | Action::Fence) => {
                services.preambles.tools_were_refused("tried", &reason).await;
            }
            Err(error) => tracing::info!(%error, "whether the model takes tools is not known yet"),
        }
    }
}

/// The smallest request with tools.
async fn trial(services: &Services, work: &mut Work<'_>) -> Result<(), ModelError> {
    let request = Request {
        system: String::new(),
        messages: message::shared([Message::user("Say OK.")]),
        max_answer_tokens: TRIAL_TOKENS,
        tools: directive::tools::definitions(directive::Offer::ALL).into(),
    };
    let answer = services.model.ask(&request).await?;
    note_usage(services, &work.journal, &work.turn.inbound.user, answer.usage);
    work.tally.add_usage(answer.usage);
    Ok(())
}

/// Whether a request offers tools, or has calls or results in its history.
fn has_tools(request: &Request) -> bool {
    !request.tools.is_empty() || request.messages.iter().any(|message| message.has_tools())
}
