//! A reaction on a notice is a verdict on its atom (specification 003 §10).

use std::sync::Arc;

use pmk_knowledge::{
    LibraryError, Notice, moderation,
    reaction::{Decision, decide},
};

use crate::{
    front::Delivery,
    ledger::Event,
    services::Services,
    talk::{Reaction, ReplyTo, Speech},
};

/// Does what a reaction asks for, where it is a verdict of the one who may give it. The notice shows it a
/// moment later: Slack waits for the acknowledgement meanwhile.
pub(super) async fn judge(services: &Arc<Services>, reaction: Reaction) -> Result<(), LibraryError> {
    let Reaction { user, channel, ts, reaction, .. } = reaction;
    // A notice that is just being posted is known to its atom once this is free.
    let _judging = services.judging.lock().await;
    let notice = Notice { channel_id: channel.clone(), message_ts: ts.clone() };
    let judged = {
        let (user, now_ms) = (user.clone(), services.now_ms());
        services
            .library
            .with(move |library| {
                let stored = library.by_notice(&notice, now_ms)?;
                let decision = decide(stored.as_ref().map(|stored| &stored.atom), &user, &reaction);
                let Some(stored) = stored else { return Ok(None) };
                match decision {
                    Decision::Approve => drop(moderation::approve_file(library.files(), &stored.path)?),
                    Decision::Reject => match moderation::reject_file(library.files(), &stored.path) {
                        Err(error) if error.is_missing() => {}
                        deleted => deleted?,
                    },
                    Decision::NotTheContributor
                    | Decision::AlreadyApproved
                    | Decision::Gone
                    | Decision::NotAVerdict => {
                        return Ok(None);
                    }
                }
                library.refresh(now_ms)?;
                Ok(Some((decision, stored.atom.meta.id)))
            })
            .await?
    };
    let Some((decision, atom_id)) = judged else { return Ok(()) };
    tracing::info!(user, atom_id, ?decision, "a verdict on an atom");
    let (text, event) = if decision == Decision::Approve {
        (services.messages.atom_approved(&atom_id), Event::AtomApproved { actor: user, atom_id })
    } else {
        (services.messages.atom_rejected(&atom_id), Event::AtomRejected { actor: user, atom_id })
    };
    services.ledger.note(event);
    let showing = Arc::clone(services);
    services.tasks.spawn(async move { show(&showing, channel, &ts, text).await });
    Ok(())
}

/// Puts the verdict in the notice's place.
async fn show(services: &Services, channel: String, ts: &str, text: String) {
    let (reply_to, speech) = (ReplyTo { channel, thread_ts: None }, Speech { text, pings: vec![] });
    let notice = Delivery { replaces: Some(ts), ..Delivery::notice("", &reply_to, &speech) };
    if let Err(error) = services.front.deliver(notice).await {
        tracing::warn!(%error, "the notice does not show the verdict, which holds all the same");
    }
}
