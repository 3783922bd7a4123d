//! A word on a question that its asker was shown first: it goes out, or it does not. Or one of a contact on the
//! question whether that was their answer.

use std::sync::Arc;

use pmk_knowledge::reaction::ReactionVerdict;

use super::judged::Judged;
use crate::{
    dispatch::Dispatcher,
    services::Services,
    store::{self, StoreError},
    talk::Reaction,
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
    said: ReactionVerdict,
) -> Result<Judged, StoreError> {
    // What is just being posted is known to the store once this is free.
    let _judging = services.judging.lock().await;
    let yes = said == ReactionVerdict::Approve;
    Ok(match services.store.judge_proposal(reaction, yes, services.now_ms()).await? {
        None => Judged::NotAwaited,
        Some(store::Judged::NotTheirs) => Judged::NotTheirs,
        Some(store::Judged::Confirmed(confirmation)) => {
            dispatcher.take_in(*confirmation).await?;
            Judged::Taken
        }
        Some(store::Judged::Dropped(place)) => Judged::Shown(place, services.messages.proposal_dropped()),
        Some(store::Judged::Expired(place)) => Judged::Shown(place, services.messages.proposal_expired()),
        Some(store::Judged::Meant(answer)) => {
            let place = answer.reply_to.clone();
            dispatcher.take_in(*answer).await?;
            Judged::Shown(place, services.messages.answer_taken())
        }
        Some(store::Judged::NotMeant(place)) => Judged::Shown(place, services.messages.still_waiting()),
    })
}
