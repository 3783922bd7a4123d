//! Writes the summary for a compaction with the model: one summary per piece, which are summarized once more if they
//! are too long together.

use pmk_core::{Language, message, tokens};
use pmk_models::{Answer, ErrorClass, ModelError, Request, Stop, Usage};

use crate::{
    exchange::{
        Ports, SummaryInput, call,
        material::{PIECE_SHARE, head, question, system},
    },
    ids::SessionId,
};

/// Returns the summary, and adds what it has cost to `spent`.
pub(super) async fn summarise(
    ports: &dyn Ports,
    SummaryInput { session, material, limit, language, .. }: SummaryInput<'_>,
    spent: &mut Usage,
) -> Result<String, ModelError> {
    let mut parts = Vec::with_capacity(material.pieces.len());
    // A single summary is not made shorter; its end, where the newest is, would be cut off.
    let most = if material.pieces.len() > 1 { material.most } else { material.allowed() };
    for piece in &material.pieces {
        parts.push(ask(ports, session, (piece, language), most, spent).await?);
    }
    let mut summary = parts.join("\n\n");
    if u64::from(tokens::estimate(&summary)) > material.allowed() && material.pieces.len() > 1 {
        let again = head(&summary, limit / PIECE_SHARE);
        summary = ask(ports, session, (&again, language), material.allowed(), spent).await?;
    }
    Ok(summary)
}

async fn ask(
    ports: &dyn Ports,
    session: SessionId,
    (material, language): (&str, Language),
    most: u64,
    spent: &mut Usage,
) -> Result<String, ModelError> {
    let (system, question) = (system(language), question(material));
    let size = u64::from(tokens::estimate(system)) + u64::from(tokens::message(&question));
    let request = Request {
        system: system.to_owned(),
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
    Ok(text.trim().to_owned())
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
