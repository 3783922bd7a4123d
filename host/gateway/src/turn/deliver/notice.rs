//! Asks people for a verdict on an atom.

use std::path::Path;

use pmk_knowledge::{Atom, Notice, atom::Status, files::FileError, moderation};

use super::post::{UncertainDelivery, send};
use crate::{chat::MessageBody, front::Delivery, services::Services, turn::TurnError};

/// Saves an atom and asks for a verdict on it. If the notice replaces a placeholder, the atom's file
/// names the notice before anybody can react to it; otherwise no reaction is judged until the file names
/// it.
pub(super) async fn ask(
    services: &Services,
    delivery: Delivery<'_>,
    file: &str,
    doubt: Option<UncertainDelivery<'_>>,
) -> Result<Option<String>, TurnError> {
    let atom = match Atom::parse(file) {
        Ok(atom) => atom,
        Err(error) => {
            tracing::error!(%error, "an atom was lost: its text cannot be read back");
            return Ok(None);
        }
    };
    let id = atom.meta.id.clone();
    let path = services
        .library
        .with(move |library| match library.files().save_new(&atom) {
            // Saved just before a crash.
            Err(FileError::Exists { path }) => Ok(path),
            saved => Ok(saved?),
        })
        .await?;
    let channel = &delivery.reply_to.channel;
    let _judging = services.judging.lock(channel).await;
    let mut is_approved = false;
    if let Some(placeholder) = delivery.replaces {
        is_approved = note_notice(services, &path, channel, placeholder).await?;
    }
    // If it was approved between a crash and now, the message says so.
    let approved = MessageBody { text: services.messages.atom_approved(&id), pings: vec![] };
    let said = match is_approved {
        true => Delivery { speech: &approved, buttons: &[], ..delivery.clone() },
        false => delivery.clone(),
    };
    let Some(message_ts) = send(services, said, doubt).await? else { return Ok(None) };
    if delivery.replaces != Some(&*message_ts) {
        note_notice(services, &path, channel, &message_ts).await?;
    }
    Ok(Some(message_ts))
}

/// Notes in an atom's file which message asks for a verdict. Returns whether the atom is already
/// approved.
async fn note_notice(services: &Services, path: &Path, channel: &str, message_ts: &str) -> Result<bool, TurnError> {
    let notice = Notice { channel_id: channel.to_owned(), message_ts: message_ts.to_owned() };
    let path = path.to_owned();
    let atom =
        services.library.with(move |library| Ok(moderation::note_notice(library.files(), &path, &notice)?)).await?;
    Ok(atom.is_some_and(|atom| atom.meta.status == Status::Approved))
}
