//! Servers that do not support tools. Most say so in words that are known. A request that is refused without an
//! explanation is sent again without tools; if that succeeds and a small request with tools does not, the tools
//! were the cause. Some servers accept tools but not a call in the history, because they want back what came with it and
//! means nothing to others, such as a signature; so this is also done where tools were accepted before, if there is one,
//! and where a server says that calls and results do not match although they do.

use std::sync::Arc;

use pmk_core::{Block, Message, Origin, Role, message};
use pmk_models::{Action, ModelError, Request};

use super::super::{Exchange, Ports, budget};
use crate::{directive, preambles::Preamble, store::StoreError};

/// What one model call finds out about tools.
#[derive(Default)]
pub(super) struct Tools {
    /// What is suspected, while the request is retried without tools.
    suspected: Option<Suspected>,
    was_suspected: bool,
}

/// A refused request that is retried without tools.
struct Suspected {
    /// The preamble used before.
    preamble: Arc<Preamble>,
    /// Why it was refused.
    reason: String,
    /// Whether its history has calls.
    has_calls: bool,
    /// Whether it offers tools.
    has_tools: bool,
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
        let has_calls = request.messages.iter().any(|message| message.has_tools());
        let may_be_the_tools = has_calls || !request.tools.is_empty();
        // Without a call, nothing of tools can be wrong with a history. A request with tools to a model that is known to take
        // none was made before that was known.
        let is_known = !has_calls && (support.takes_tools() == Some(true) || error.action() == Action::Repair);
        match error.action() {
            Action::Fence if may_be_the_tools => support.were_refused("said", &error.to_string()).await,
            Action::Probe | Action::Repair if may_be_the_tools && !self.was_suspected && !is_known => {
                tracing::info!(session = exchange.key, %error, "asking again without tools");
                self.was_suspected = true;
                let preamble = Arc::clone(&exchange.preamble);
                let has_tools = !request.tools.is_empty();
                self.suspected = Some(Suspected { preamble, reason: error.to_string(), has_calls, has_tools });
            }
            _ => {
                // The tools were not the cause, or not the only one.
                if let Some(Suspected { preamble, .. }) = self.suspected.take() {
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
        let Some(Suspected { reason, has_calls, has_tools, .. }) = self.suspected.take() else {
            if !request.tools.is_empty() {
                support.were_taken().await;
            }
            return;
        };
        // Some servers accept a call in the history only beside tools, which says nothing about tools.
        if !has_tools && support.takes_tools() == Some(true) {
            return;
        }
        // The request that succeeded was a little smaller, too; a request that is certainly small tells
        // the two causes apart.
        match trial(ports, exchange, has_calls).await {
            Ok(()) => support.were_taken().await,
            Err(error) if matches!(error.action(), Action::Probe | Action::Repair | Action::Fence) => {
                support.were_refused("tried", &reason).await;
            }
            Err(error) => tracing::info!(%error, "it is not known yet whether the model accepts tools"),
        }
    }
}

/// Sends the smallest request with tools, and with a call in its history if the refused request had one.
async fn trial(ports: &dyn Ports, exchange: &mut Exchange, has_calls: bool) -> Result<(), ModelError> {
    let tools = directive::tools::definitions(directive::AvailableDirectives::ALL, exchange.window.language());
    let mut messages = vec![Message::user("OK?")];
    if has_calls && let Some(tool) = tools.first() {
        // Mistral refuses ids of another length.
        let (id, name, input) = ("trial0000".to_owned(), tool.name.clone(), serde_json::json!({}));
        let call = Block::ToolUse { id: id.clone(), name, input };
        let result = Block::ToolResult { tool_use_id: id, content: "OK".into(), is_error: false };
        messages.push(Message { role: Role::Assistant, origin: Origin::Assistant, blocks: vec![call] });
        messages.push(Message { role: Role::User, origin: Origin::ToolResult, blocks: vec![result] });
    }
    let request = Request { messages: message::shared(messages), tools: tools.into(), ..Request::default() };
    super::try_out(ports, exchange, request).await
}
