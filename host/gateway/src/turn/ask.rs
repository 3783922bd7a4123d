//! Step 4: the model call. Ends in an answer or an honest message, never in nothing.

use pmk_core::{Block, message::plain_text};

use super::{TurnError, budget::Budgeted, gather::Gathered, recover};
use crate::{
    gateway::Gateway,
    model::{Answer, ModelError, Request, Stop, Usage},
};

/// What came of asking.
pub(super) struct Asked {
    pub outcome: Outcome,
    /// The window the last call was made with.
    pub budgeted: Budgeted,
    /// Rungs of recovery that were used, by name.
    pub rungs: Vec<&'static str>,
    /// Model calls made.
    pub calls: u32,
    pub usage: Usage,
}

/// An answer, or why there is none.
pub(super) enum Outcome {
    /// The model's own answer, to be remembered, and what goes before it.
    Answered { text: String, prefix: String },
    /// What the person is told instead; nothing of this turn enters the live window.
    Failed { message: String },
}

pub(super) async fn ask(gateway: &Gateway, gathered: &Gathered, budgeted: Budgeted) -> Result<Asked, TurnError> {
    let mut asked = Asked {
        outcome: Outcome::Failed { message: String::new() },
        budgeted,
        rungs: vec![],
        calls: 0,
        usage: Usage::default(),
    };
    let mut prefix = match gathered.turn.inbound.files {
        0 => String::new(),
        files => gateway.say.files_not_read(files),
    };
    if gathered.turn.inbound.text.trim().is_empty() {
        asked.outcome = Outcome::Failed { message: format!("{prefix}{}", gateway.say.nothing_to_read()) };
        return Ok(asked);
    }
    if asked.budgeted.applied.tokens_after > gathered.room.limit {
        let alone = gathered.transcript.tokens()[gathered.transcript.current()];
        asked.outcome =
            Outcome::Failed { message: gateway.say.message_too_long(u64::from(alone), gathered.room.limit) };
        return Ok(asked);
    }
    loop {
        asked.calls += 1;
        let error = match gateway.model.ask(&request(gathered, &asked.budgeted)).await {
            Ok(answer) => {
                asked.usage = answer.usage;
                asked.outcome = Outcome::Answered { text: text(&answer), prefix };
                return Ok(asked);
            }
            Err(error) => error,
        };
        let ModelError::Overflow { observed_tokens, allowed_tokens, .. } = error else {
            tracing::warn!(session = %gathered.turn.inbound.key, class = error.class(), %error, "no answer");
            asked.outcome = Outcome::Failed { message: gateway.say.no_answer(&error) };
            return Ok(asked);
        };
        let overflow = recover::Overflow { observed_tokens, allowed_tokens };
        match recover::recover(gateway, gathered, &asked, overflow).await? {
            Some((rung, budgeted)) => {
                prefix.push_str(&gateway.say.trimmed(budgeted.applied.turns_dropped));
                asked.rungs.push(rung);
                asked.budgeted = budgeted;
            }
            None => {
                asked.rungs.push(recover::GIVE_UP);
                asked.outcome = Outcome::Failed { message: gateway.say.too_long() };
                return Ok(asked);
            }
        }
    }
}

fn request(gathered: &Gathered, budgeted: &Budgeted) -> Request {
    Request {
        system: gathered.system.clone(),
        messages: budgeted.messages(gathered),
        max_answer_tokens: gathered.room.answer,
        tools: vec![],
    }
}

/// The answer as text; one that was cut short says so.
fn text(answer: &Answer) -> String {
    let texts: Vec<Block> = answer.blocks.iter().filter(|block| matches!(block, Block::Text { .. })).cloned().collect();
    let mut text = plain_text(&texts);
    if matches!(answer.stop, Stop::MaxTokens | Stop::WindowFull) {
        text.push_str("\n…");
    }
    if text.trim().is_empty() { "…".into() } else { text }
}
