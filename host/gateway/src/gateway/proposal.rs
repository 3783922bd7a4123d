//! A word on a question that its asker was shown first: it goes out, or it does not. Or one of a contact on the
//! question whether that was their answer.

use std::sync::Arc;

use pmk_knowledge::reaction::ReactionVerdict;

use super::judged::VerdictOutcome;
use crate::{
    chat::Reaction,
    dispatch::Dispatcher,
    services::Services,
    store::{self, Ends, StoreError, VerdictSource},
};

/// Does what a word says about such a question, if it is on one, and by who is asked for theirs. Taken in twice
/// it does no harm.
///
/// # Errors
/// It could not be done and may be tried again.
pub(super) async fn judge(
    services: &Services,
    dispatcher: &Arc<Dispatcher>,
    reaction: &Reaction,
    (said, said_by): (ReactionVerdict, VerdictSource),
) -> Result<VerdictOutcome, StoreError> {
    // What is just being posted is known to the store once this is free.
    let _judging = services.judging.lock().await;
    let yes = said == ReactionVerdict::Approve;
    let ends = Ends {
        dropped: services.messages.proposal_dropped(),
        expired: services.messages.proposal_expired(),
        not_meant: services.messages.still_waiting(),
    };
    let judged = services.store.judge_proposal((reaction, yes), said_by, ends.clone(), services.now_ms()).await?;
    let Some(judged) = judged else { return Ok(VerdictOutcome::NotAwaited) };
    if let Some(text) = ends.of(&judged) {
        return Ok(VerdictOutcome::Kept(text.to_owned()));
    }
    match judged {
        store::ProposalVerdict::Confirmed(confirmation) => {
            dispatcher.take_in(*confirmation).await?;
            Ok(VerdictOutcome::Taken)
        }
        store::ProposalVerdict::Meant(answer) => {
            let place = answer.reply_to.clone();
            dispatcher.take_in(*answer).await?;
            Ok(VerdictOutcome::Shown(place, services.messages.answer_taken()))
        }
        _ => Ok(VerdictOutcome::NotTheirs),
    }
}
