//! A reaction on a question that its asker was shown first: it goes out, or it does not. Or one of a contact on the
//! question whether that was their answer.

use std::sync::Arc;

use pmk_knowledge::reaction::ReactionVerdict;

use crate::{
    dispatch::Dispatcher,
    front::Delivery,
    services::Services,
    store::{Judged, StoreError},
    talk::{Reaction, ReplyTo, Speech},
};

/// Does what a reaction says about such a question, if it is on one, and by who is asked for their word. Taken in twice
/// it does no harm.
///
/// # Errors
/// It could not be done and may be tried again.
pub(super) async fn judge(
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    reaction: &Reaction,
) -> Result<(), StoreError> {
    let Some(verdict) = ReactionVerdict::of_reaction(&reaction.reaction) else { return Ok(()) };
    // What is just being posted is known to the store once this is free.
    let _judging = services.judging.lock().await;
    let yes = verdict == ReactionVerdict::Approve;
    let (reply_to, text) = match services.store.judge_proposal(reaction, yes, services.now_ms()).await? {
        None => return Ok(()),
        Some(Judged::Confirmed(confirmation)) => return dispatcher.take_in(*confirmation).await.map(drop),
        Some(Judged::Dropped(reply_to)) => (reply_to, services.messages.proposal_dropped()),
        Some(Judged::Expired(reply_to)) => (reply_to, services.messages.proposal_expired()),
        Some(Judged::Meant(answer)) => {
            let reply_to = answer.reply_to.clone();
            dispatcher.take_in(*answer).await?;
            (reply_to, services.messages.answer_taken())
        }
        Some(Judged::NotMeant(reply_to)) => (reply_to, services.messages.still_waiting()),
    };
    let (showing, ts) = (Arc::clone(services), reaction.ts.clone());
    services.tasks.spawn(async move { show(&showing, &reply_to, &ts, text).await });
    Ok(())
}

/// Puts what became of it in its place.
async fn show(services: &Services, reply_to: &ReplyTo, ts: &str, text: String) {
    let speech = Speech { text, pings: vec![] };
    let shown = Delivery { replaces: Some(ts), ..Delivery::notice("", reply_to, &speech) };
    if let Err(error) = services.front.deliver(shown).await {
        tracing::warn!(%error, "a question that was judged does not show that");
    }
}
