//! A verdict on an atom, given on its notice (specification 003 §10). It is stored before it is carried out, together
//! with the text that the notice is to show: after a crash at any point, it is carried out, shown, and noted in the
//! ledger once.

use std::path::{Path, PathBuf};

use pmk_knowledge::{
    LibraryError, Notice,
    files::FileError,
    moderation::{self, StoredAtom},
    reaction::{Decision, decide},
};
use pmk_system::error::Failure;

use super::judged::VerdictOutcome;
use crate::{
    chat::Reaction,
    ledger::Event,
    services::Services,
    store::{JudgedAtom, VerdictSource},
};

/// `knowledge/SCOPE/ID.md`.
const NAMES_IN_A_HOME: usize = 3;

/// Carries out a verdict, if it is from the person who may give it.
///
/// # Errors
/// It could not be done; it may be retried.
pub(super) async fn judge(
    services: &Services,
    reaction: &Reaction,
    said_by: VerdictSource,
) -> Result<VerdictOutcome, Failure> {
    let Reaction { user, channel, ts, reaction: said, .. } = reaction.clone();
    // The lock ensures that the atom of a notice being posted knows it.
    let _judging = services.judging.lock(&channel).await;
    let notice = Notice { channel_id: channel, message_ts: ts };
    let now_ms = services.now_ms();
    let found = match services.library.with(move |library| library.by_notice(&notice, now_ms)).await {
        Err(LibraryError::File(error)) => match error.broken() {
            Some(file) => return Ok(VerdictOutcome::Unreadable(unreadable(services, &error, file))),
            None => return Err(Failure::new(&error)),
        },
        found => found.map_err(Failure::new)?,
    };
    let decision = decide(found.as_ref().map(|stored| &stored.atom), &user, &said);
    let Some(StoredAtom { path, atom }) = found else { return Ok(VerdictOutcome::NotAwaited) };
    let atom = JudgedAtom { id: atom.meta.id, path };
    let yes = match decision {
        Decision::Approve => true,
        Decision::Reject => false,
        Decision::AlreadyApproved => return Ok(VerdictOutcome::Known(services.messages.atom_approved(&atom.id))),
        Decision::NotTheContributor => return Ok(VerdictOutcome::NotTheirs),
        Decision::Gone | Decision::NotAVerdict => return Ok(VerdictOutcome::NotAwaited),
    };
    tracing::info!(user, atom_id = atom.id, ?decision, "a verdict on an atom");
    let text = match yes {
        true => services.messages.atom_approved(&atom.id),
        false => services.messages.atom_rejected(&atom.id),
    };
    let number = services.store.judges_atom((reaction, yes), said_by, &text, &atom).await?;
    carry_out(services, number, user, yes, atom).await?;
    Ok(VerdictOutcome::Kept(text))
}

/// Returns what is wrong with an atom's file, which is named as it is in any home.
fn unreadable(services: &Services, error: &FileError, file: &Path) -> String {
    let names: Vec<_> = file.iter().rev().take(NAMES_IN_A_HOME).collect();
    let name: PathBuf = names.into_iter().rev().collect();
    let why = error.to_string().replacen(&file.display().to_string(), &name.display().to_string(), 1);
    services.messages.atom_unreadable(&why)
}

/// Carries out a verdict, perhaps one from before a crash.
///
/// # Errors
/// It could not be done; it may be retried.
pub(super) async fn carry_out(
    services: &Services,
    number: i64,
    actor: String,
    yes: bool,
    JudgedAtom { id: atom_id, path }: JudgedAtom,
) -> Result<(), Failure> {
    let now_ms = services.now_ms();
    let ruled = services.library.with(move |library| -> Result<(), LibraryError> {
        // A verdict stored by another host of the database names the file in that host's home.
        let path = library.files().here(&path);
        let ruled = match yes {
            true => moderation::approve_file(library.files(), &path).map(drop),
            false => moderation::reject_file(library.files(), &path),
        };
        match ruled {
            // The file was deleted meanwhile, or this was carried out before a crash.
            Err(error) if error.is_missing() => {}
            done => done?,
        }
        library.refresh(now_ms)
    });
    ruled.await.map_err(Failure::new)?;
    let event = match yes {
        true => Event::AtomApproved { actor, atom_id },
        false => Event::AtomRejected { actor, atom_id },
    };
    Ok(services.store.atom_judged(number, event, now_ms).await?)
}
