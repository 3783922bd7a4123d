//! Servers that do not support tools. Most say so in words that are known. A request that is refused without an
//! explanation is sent again without tools; if that succeeds and a small request with tools does not, the tools
//! were the cause.

use std::sync::Arc;

use pmk_core::{Message, message};
use pmk_models::{Action, ModelError, Request};

use super::super::{Exchange, Ports, budget};
use crate::{directive, preambles::Preamble, store::StoreError};

/// The room for the answer to the test request, which nobody reads.
const TRIAL_TOKENS: u32 = 16;

/// What one model call finds out about tools.
#[derive(Default)]
pub(super) struct Tools {
    /// While the request is retried without tools: the preamble used before, and why that request was
    /// refused.
    suspected: Option<(Arc<Preamble>, String)>,
    was_suspected: bool,
}

impl Tools {
    /// Handles a refused request. Returns whether to send it again without tools.
    pub async fn refused(
        &mut self,
        ports: &dyn Ports,
        exchange: &mut Exchange,
        request: &Request,
        error: &ModelError,
    ) -> Result<bool, StoreError> {
        let Some(support) = ports.tools() else { return Ok(false) };
        let may_be_the_tools = has_tools(request);
        match error.action() {
            Action::Fence if may_be_the_tools => support.were_refused("said", &error.to_string()).await,
            Action::Probe if may_be_the_tools && !self.was_suspected && support.takes_tools().is_none() => {
                tracing::info!(session = exchange.key, %error, "asking again without tools");
                self.was_suspected = true;
                self.suspected = Some((Arc::clone(&exchange.preamble), error.to_string()));
            }
            _ => {
                // The tools were not the cause, or not the only one.
                if let Some((preamble, _)) = self.suspected.take() {
                    exchange.preamble = preamble;
                    budget::budget(ports, exchange).await?;
                }
                return Ok(false);
            }
        }
        exchange.preamble = support.preamble_as_text();
        budget::budget(ports, exchange).await?;
        Ok(true)
    }

    /// Handles an answered request.
    pub async fn answered(&mut self, ports: &dyn Ports, exchange: &mut Exchange, request: &Request) {
        let Some(support) = ports.tools() else { return };
        let Some((_, reason)) = self.suspected.take() else {
            if !request.tools.is_empty() {
                support.were_taken().await;
            }
            return;
        };
        // The request that succeeded was a little smaller, too; a request that is certainly small tells
        // the two causes apart.
        match trial(ports, exchange).await {
            Ok(()) => support.were_taken().await,
            Err(error) if matches!(error.action(), Action::Probe | Action::Fence) => {
                support.were_refused("tried", &reason).await;
            }
            Err(error) => tracing::info!(%error, "it is not known yet whether the model accepts tools"),
        }
    }
}

/// Sends the smallest request with tools.
async fn trial(ports: &dyn Ports, exchange: &mut Exchange) -> Result<(), ModelError> {
    let request = Request {
        system: String::new(),
        messages: message::shared([Message::user("OK?")]),
        max_answer_tokens: TRIAL_TOKENS,
        tools: directive::tools::definitions(directive::AvailableDirectives::ALL, exchange.window.language()).into(),
        ..Request::default()
    };
    let answer = ports.ask(&request, 0).await?;
    exchange.tally.usage.add(answer.usage);
    Ok(())
}

/// Returns whether a request offers tools, or has calls or results in its history.
fn has_tools(request: &Request) -> bool {
    !request.tools.is_empty() || request.messages.iter().any(|message| message.has_tools())
}
