//! Writes the summary for a compaction with the model: one summary per piece, which are summarized once more if they
//! are too long together.

use pmk_core::{Language, message, tokens};
use pmk_models::{Answer, ErrorClass, ModelError, Request, Stop, Usage};

use crate::{
    exchange::{
        Ports, SummaryInput, call,
        material::{PIECE_SHARE, length, question, system, together},
    },
    ids::SessionId,
};

/// Returns the summary, and adds what it has cost to `spent`.
pub(super) async fn summarise(
    ports: &dyn Ports,
    SummaryInput { session, material, limit, language, .. }: SummaryInput<'_>,
    spent: &mut Usage,
) -> Result<String, ModelError> {
    // A single summary is not made shorter; its end, where the newest is, would be cut off.
    if let [piece] = &material.pieces[..] {
        return ask(ports, session, (piece, language), material.allowed(), spent).await?.whole();
    }
    let mut parts = Vec::with_capacity(material.pieces.len());
    for piece in &material.pieces {
        // One that is cut off lacks something of its piece; without it, all of every piece would be missing.
        parts.push(ask(ports, session, (piece, language), material.most, spent).await?.text);
    }
    let summary = together(&parts, limit / PIECE_SHARE);
    if u64::from(tokens::estimate(&summary)) > material.allowed() {
        return ask(ports, session, (&summary, language), material.allowed(), spent).await?.whole();
    }
    Ok(summary)
}

/// A summary by the model.
struct Written {
    text: String,
    is_cut_off: bool,
}

impl Written {
    /// Returns the summary of everything; one that was cut off is none, because the newest would be missing.
    fn whole(self) -> Result<String, ModelError> {
        match self.is_cut_off {
            true => Err(ModelError::new(ErrorClass::Other, "the summary was cut off")),
            false => Ok(self.text),
        }
    }
}

async fn ask(
    ports: &dyn Ports,
    session: SessionId,
    (material, language): (&str, Language),
    most: u64,
    spent: &mut Usage,
) -> Result<Written, ModelError> {
    let (system, question) = (format!("{}{}", system(language), length(most, language)), question(material));
    let size = u64::from(tokens::estimate(&system)) + u64::from(tokens::message(&question));
    let request = Request {
        system,
        messages: message::shared([question]),
        max_answer_tokens: u32::try_from(most).unwrap_or(u32::MAX).max(1),
        ..Request::default()
    };
    let outcome = ports.ask(&request, size, spent).await;
    learn(ports, session, size, &outcome);
    let answer = outcome?;
    let text = message::plain_text(&answer.blocks);
    if text.trim().is_empty() || answer.stop == Stop::ToolUse {
        return Err(ModelError::new(ErrorClass::Other, "the summary is empty"));
    }
    let is_cut_off = matches!(answer.stop, Stop::MaxTokens | Stop::WindowFull);
    Ok(Written { text: text.trim().to_owned(), is_cut_off })
}

/// Such a request calibrates the token estimate as any other does.
fn learn(ports: &dyn Ports, session: SessionId, size: u64, outcome: &Result<Answer, ModelError>) {
    let now_ms = ports.now_ms();
    match outcome {
        Ok(answer) if !answer.is_empty() => {
            ports.calibration().took(session, size, answer.usage.prompt_tokens(), now_ms);
        }
        Ok(_) => {}
        Err(error) => {
            if let Some(refusal) = call::refusal(error) {
                ports.calibration().refused(session, size, refusal, now_ms);
            }
        }
    }
}
