//! A word on a notice is a verdict on its atom (specification 003 §10).

use pmk_knowledge::{
    LibraryError, Notice, moderation,
    reaction::{Decision, decide},
};

use super::judged::Judged;
use crate::{
    ledger::Event,
    services::Services,
    talk::{Reaction, ReplyTo},
};

/// Does what a word asks for, where it is a verdict of the one who may give it.
pub(super) async fn judge(services: &Services, reaction: &Reaction) -> Result<Judged, LibraryError> {
    let Reaction { user, channel, ts, reaction, .. } = reaction.clone();
    // A notice that is just being posted is known to its atom once this is free.
    let _judging = services.judging.lock().await;
    let notice = Notice { channel_id: channel.clone(), message_ts: ts };
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
                    Decision::NotTheContributor | Decision::AlreadyApproved => {
                        return Ok(Some((decision, stored.atom.meta.id)));
                    }
                    Decision::Gone | Decision::NotAVerdict => return Ok(None),
                }
                library.refresh(now_ms)?;
                Ok(Some((decision, stored.atom.meta.id)))
            })
            .await?
    };
    let Some((decision, atom_id)) = judged else { return Ok(Judged::NotAwaited) };
    tracing::info!(user, atom_id, ?decision, "a verdict on an atom");
    let place = ReplyTo { channel, thread_ts: None };
    Ok(match decision {
        Decision::NotTheContributor => Judged::NotTheirs,
        Decision::Approve => {
            let text = services.messages.atom_approved(&atom_id);
            services.ledger.note(Event::AtomApproved { actor: user, atom_id });
            Judged::Shown(place, text)
        }
        Decision::AlreadyApproved => Judged::Known(services.messages.atom_approved(&atom_id)),
        Decision::Reject => {
            let text = services.messages.atom_rejected(&atom_id);
            services.ledger.note(Event::AtomRejected { actor: user, atom_id });
            Judged::Shown(place, text)
        }
        Decision::Gone | Decision::NotAVerdict => Judged::NotAwaited,
    })
}
