//! Tells the asker that their question has reached none of the contacts, who are asked in direct messages.

use super::post::{UncertainDelivery, post};
use crate::{
    chat::MessageBody,
    front::{Delivery, FrontError},
    services::Services,
    store::Answered,
    turn::TurnError,
};

/// Tells the asker in place of the part that was refused, if it was the last that could have reached a contact. From then
/// on nobody's answer is awaited.
pub(super) async fn tell(
    services: &Services,
    answered: &Answered,
    number: u32,
    doubt: Option<UncertainDelivery<'_>>,
) -> Result<(), TurnError> {
    if !services.store.is_unreached(answered.turn, number).await? {
        return Ok(());
    }
    let inbound = &answered.inbound;
    let speech = MessageBody { text: services.messages.nobody_reached(), pings: vec![] };
    let told = Delivery { number, ..Delivery::notice(&inbound.event_id, &inbound.reply_to, &speech) };
    match post(services, told, doubt).await {
        Err(FrontError::Refused { what, .. }) => {
            tracing::error!(session = %inbound.key, what, "nobody can be told that no contact was reached");
        }
        told => drop(told?),
    }
    Ok(services.store.close_unreached(answered.turn, number, services.now_ms()).await?)
}
