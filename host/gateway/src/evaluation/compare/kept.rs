//! A recording of a stored conversation: its messages, and the inputs of each turn from the receipts.

use std::{collections::BTreeMap, sync::Arc};

use pmk_core::{Message, Origin};
use pmk_models::Tool;

use super::{given::Given, recording::Recording};
use crate::{
    preambles::Preamble,
    store::{Digest, FirstRequest, Replayable},
};

/// Creates the recording of a stored conversation.
pub(super) fn recording(kept: Replayable) -> Recording {
    let Replayable { dump, requests, texts, has_parked } = kept;
    let mut recording = Recording::of_dump(dump);
    recording.has_parked = has_parked;
    let mut given: Vec<Option<Given>> = recording.turns.iter().map(|_| None).collect();
    for request in &requests {
        let new_message = request.last.and_then(|id| recording.find(&id.to_string()));
        let turn = new_message.map(|index| recording.turn_of(index));
        if let Some(place) = turn.and_then(|turn| given.get_mut(turn)) {
            *place = read(request, &texts);
        }
    }
    let without = given.iter().filter(|given| given.is_none()).count();
    if without == given.len() {
        recording.lacks_receipts = without > 0;
        return recording;
    }
    if without > 0 {
        let repairs = &mut recording.repairs;
        repairs.push(format!(
            "no receipt for {without} of {} turns: they go by that of the turn before, or by the first one",
            given.len()
        ));
    }
    recording.given = filled(given);
    recording
}

/// Returns `None` if a text is missing or cannot be read.
fn read(request: &FirstRequest, texts: &BTreeMap<Digest, String>) -> Option<Given> {
    let text = |digest: &Digest| texts.get(digest).map(String::as_str);
    let tools: Vec<Tool> = serde_json::from_str(text(&request.tools)?).ok()?;
    let preamble = Preamble { as_text: request.as_text, ..Preamble::new(text(&request.system)?, tools) };
    let blocks = request.blocks.iter().filter_map(|digest| serde_json::from_str::<Message>(text(digest)?).ok());
    // The replay writes its own marker and recalls.
    let shown = blocks.filter(|block| !matches!(block.origin, Origin::Marker | Origin::Recall)).collect();
    let (window, limit) = (request.budget.window, request.budget.limit);
    Some(Given { preamble: Arc::new(preamble), window, limit, shown, is_own: true })
}

/// Turns without a receipt use that of the turn before; those at the beginning use the first one.
fn filled(given: Vec<Option<Given>>) -> Vec<Given> {
    let borrowed = |given: &Given| Given { shown: vec![], is_own: false, ..given.clone() };
    let mut last = given.iter().flatten().next().map(borrowed);
    let mut filled = Vec::with_capacity(given.len());
    for one in given {
        if let Some(own) = &one {
            last = Some(borrowed(own));
        }
        filled.extend(one.or_else(|| last.clone()));
    }
    filled
}
