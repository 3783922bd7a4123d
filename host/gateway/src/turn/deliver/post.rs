//! Sends one message: in place of the placeholder if possible, and not a second time if an earlier attempt with unknown
//! outcome may have sent it.

use crate::{
    chat::Inbound,
    front::{Delivery, FrontError, Kind, Lookup},
    ledger::Event,
    services::Services,
    turn::{journal::Journal, placeholder},
};

/// The fact that an earlier attempt may have sent this part.
#[derive(Clone, Copy)]
pub(super) struct UncertainDelivery<'a> {
    /// The question.
    pub(super) of: &'a Inbound,
    /// Whether that attempt may have streamed a part of the answer.
    pub(super) is_streamed: bool,
    pub(super) journal: &'a Journal,
}

/// Sends one part; if the placeholder cannot be replaced, as a separate message.
pub(super) async fn send(
    services: &Services,
    part: Delivery<'_>,
    doubt: Option<UncertainDelivery<'_>>,
) -> Result<Option<String>, FrontError> {
    let Some(replaced) = part.replaces else { return post(services, part, doubt).await };
    // An answer that the front had to split is in the placeholder's place with its beginning only. A notice is short, and
    // may have another text by now.
    if let (Kind::Reply, Some(doubt)) = (part.kind, doubt)
        && let Lookup::Yes(id) = services.front.find(&part, &doubt.of.ts, doubt.is_streamed).await?
    {
        // Where the answer stands after it, that attempt may have ended before it removed the placeholder.
        let place = (part.event_id, part.reply_to, doubt.of.ts.as_str());
        if placeholder::find(&*services.front, place, false).await?.as_deref() == Some(replaced) {
            placeholder::withdraw(&*services.front, part.reply_to, replaced).await?;
        }
        return Ok(id);
    }
    let sent = services.front.deliver(part.clone()).await;
    let Err(FrontError::Refused { what, .. }) = &sent else { return sent };
    tracing::warn!(what, "the placeholder cannot be replaced; the reply is posted after it");
    let id = post(services, Delivery { replaces: None, ..part.clone() }, doubt).await?;
    if let Err(error) = placeholder::withdraw(&*services.front, part.reply_to, replaced).await {
        // The next attempt removes it, unless that would not find what was posted, and post it again.
        match services.front.find(&part, "", false).await {
            Ok(Lookup::No | Lookup::Unknown) => tracing::warn!(%error, "cannot remove a placeholder"),
            Ok(Lookup::Yes(_)) | Err(_) => return Err(error),
        }
    }
    Ok(id)
}

/// Posts a new message, unless it was already posted.
pub(super) async fn post(
    services: &Services,
    part: Delivery<'_>,
    doubt: Option<UncertainDelivery<'_>>,
) -> Result<Option<String>, FrontError> {
    let found = match doubt {
        Some(doubt) => services.front.find(&part, &doubt.of.ts, doubt.is_streamed).await?,
        None => Lookup::No,
    };
    if let Lookup::Yes(id) = found {
        return Ok(id);
    }
    let id = loop {
        match services.front.deliver(part.clone()).await {
            // A rate-limited message was not posted. Waiting here keeps the delivery from becoming
            // uncertain.
            Err(FrontError::Transient { what, retry_after: Some(wait), .. }) if !services.stop.is_cancelled() => {
                tracing::debug!(what, ?wait, "a part of a reply is postponed");
                tokio::select! {
                    biased;
                    () = services.stop.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
            sent => break sent?,
        }
    };
    let Some(UncertainDelivery { of, journal, .. }) = doubt else { return Ok(id) };
    let (actor, session, part) = (of.user.clone(), of.key.to_string(), part.number);
    match (found, &id) {
        (Lookup::Unknown, _) => journal.note(Event::ReplyRepeated { actor, session, part }),
        // A host whose process is suspended may still send its pending message later.
        (_, Some(ts)) if services.store.is_shared() => {
            journal.note(Event::ReplyMayRepeat { actor, session, part, reply_ts: ts.clone() });
        }
        _ => {}
    }
    Ok(id)
}
