//! A verdict on a proposal: the question is sent to the contacts, or it is not. Or a contact's verdict on
//! whether a message was their answer.

use std::sync::Arc;

use pmk_knowledge::reaction::ReactionVerdict;

use super::{changes::whole, judged::VerdictOutcome};
use crate::{
    chat::Reaction,
    dispatch::Dispatcher,
    services::Services,
    store::{self, Ends, StoreError, VerdictSource},
};

/// Carries out a verdict on a proposal, if there is one there and the verdict is from the person who is asked.
/// Harmless if repeated.
///
/// # Errors
/// It could not be done; it may be retried.
pub(super) async fn judge(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    reaction: &Reaction,
    (said, said_by): (ReactionVerdict, VerdictSource),
) -> Result<VerdictOutcome, StoreError> {
    // The lock ensures that a message being posted is known to the store.
    let _judging = services.judging.lock(&reaction.channel).await;
    let yes = said == ReactionVerdict::Approve;
    let ends = Ends {
        dropped: services.messages.proposal_dropped(),
        expired: services.messages.proposal_expired(),
        not_meant: services.messages.not_meant(),
        not_needed: services.messages.answered_already(),
    };
    let (doing, entering, word, texts) = (Arc::clone(services), Arc::clone(dispatcher), reaction.clone(), ends.clone());
    let judged = whole(&services.tasks, async move {
        let judged = doing.store.judge_proposal((&word, yes), said_by, texts, doing.now_ms()).await?;
        if let Some(store::ProposalVerdict::NotMeant { own: Some(own), .. }) = &judged {
            entering.enter(own.clone());
        }
        Ok(judged)
    });
    let Some(judged) = judged.await? else { return Ok(VerdictOutcome::NotAwaited) };
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
