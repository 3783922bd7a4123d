//! Asks people for a verdict on an atom.

use std::path::Path;

use pmk_knowledge::{
    Atom, LibraryError, Notice,
    atom::Status,
    files::{AtomFiles, FileError, read_text},
    moderation,
};

use super::post::{UncertainDelivery, send};
use crate::{
    chat::MessageBody,
    front::Delivery,
    ids::TurnId,
    services::{Services, SharedLibrary},
    turn::TurnError,
};

/// What people have made of an atom by now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Pending,
    Approved,
    /// Its file was deleted.
    Rejected,
}

impl Standing {
    fn of(atom: Option<&Atom>) -> Standing {
        match atom.map(|atom| atom.meta.status) {
            Some(Status::Approved) => Standing::Approved,
            Some(Status::Pending) => Standing::Pending,
            None => Standing::Rejected,
        }
    }
}

/// Saves an atom and asks for a verdict on it. If the notice replaces a placeholder, the atom's file
/// names the notice before anybody can react to it; otherwise no reaction is judged until the file names
/// it. The file is saved once: an atom that is rejected before the notice is posted stays rejected.
pub(super) async fn ask(
    services: &Services,
    turn: TurnId,
    delivery: Delivery<'_>,
    (file, saved_in): (&str, Option<&str>),
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
    // The atoms of another home may not have arrived here yet, nor that one was deleted.
    let is_saved = match saved_in {
        Some(home) if home == services.store.atoms_home() => true,
        Some(_) => services.store.is_atom_deleted(&format!("{}/{id}.md", atom.meta.scope)).await?,
        None => false,
    };
    let (path, mut standing) = services
        .library
        .with(move |library| {
            let (files, path) = (library.files(), library.files().path_of(&atom));
            match is_saved {
                true => Ok((path.clone(), standing(&path)?)),
                false => save(files, &atom).map(|()| (path, Standing::Pending)),
            }
        })
        .await?;
    if !is_saved {
        services.store.atom_saved(turn, delivery.number).await?;
    }
    let channel = &delivery.reply_to.channel;
    let _judging = services.judging.lock(channel).await;
    if let Some(placeholder) = delivery.replaces {
        standing = note_notice(&services.library, &path, channel, placeholder).await?;
    }
    // If somebody has judged it meanwhile, the message says so.
    let judged = match standing {
        Standing::Pending => None,
        Standing::Approved => Some(services.messages.atom_approved(&id)),
        Standing::Rejected => Some(services.messages.atom_rejected(&id)),
    };
    let judged = judged.map(|text| MessageBody { text, pings: vec![] });
    let said = match &judged {
        Some(speech) => Delivery { speech, buttons: &[], ..delivery.clone() },
        None => delivery.clone(),
    };
    let Some(message_ts) = send(services, said, doubt).await? else { return Ok(None) };
    if delivery.replaces != Some(&*message_ts) {
        note_notice(&services.library, &path, channel, &message_ts).await?;
    }
    Ok(Some(message_ts))
}

fn save(files: &AtomFiles, atom: &Atom) -> Result<(), LibraryError> {
    match files.save_new(atom) {
        // Saved just before a crash.
        Ok(_) | Err(FileError::Exists { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns what people have made of an atom that was saved there.
fn standing(path: &Path) -> Result<Standing, LibraryError> {
    match read_text(path) {
        Ok(text) => {
            let atom = Atom::parse(&text).map_err(|source| FileError::Atom { path: path.to_owned(), source })?;
            Ok(Standing::of(Some(&atom)))
        }
        Err(error) if error.is_missing() => Ok(Standing::Rejected),
        Err(error) => Err(error.into()),
    }
}

/// Notes in an atom's file which message asks for a verdict. Returns what people have made of it by now.
async fn note_notice(
    library: &SharedLibrary,
    path: &Path,
    channel: &str,
    message_ts: &str,
) -> Result<Standing, TurnError> {
    let notice = Notice { channel_id: channel.to_owned(), message_ts: message_ts.to_owned() };
    let path = path.to_owned();
    let atom = library.with(move |library| Ok(moderation::note_notice(library.files(), &path, &notice)?)).await?;
    Ok(Standing::of(atom.as_ref()))
}
