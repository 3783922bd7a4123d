//! A yes or no to one of the gateway's messages, by reaction or button: to a proposal, or to an atom on its notice.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pmk_knowledge::{
    LibraryError, Notice,
    files::FileError,
    moderation::{self, StoredAtom},
    reaction::{Decision, ReactionVerdict, decide},
};
use pmk_system::error::Failure;

use super::handler::Handler;
use crate::{
    chat::{MessageBody, MessageRef, Reaction, ReplyTo},
    dispatch::Arrival,
    front::{Delivery, FrontError},
    ledger::Event,
    messages::Messages,
    store::{Ends, JudgedAtom, ProposalVerdict, StoreError, Verdict},
};

/// The pause before changing a message is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// `knowledge/SCOPE/ID.md`.
const NAMES_IN_A_HOME: usize = 3;

/// The result of a verdict.
pub(super) enum VerdictOutcome {
    /// No verdict is awaited there, or no longer.
    NotAwaited,
    /// The atom's file cannot be read, or was copied, so that the verdict does not count yet; with the text that says
    /// what is wrong.
    Unreadable(String),
    /// Another person's verdict is awaited; whoever has given this one is told so here.
    NotTheirs(ReplyTo),
    /// It counts, and the message itself need not show it.
    Taken,
    /// It could not be carried out, and is not tried again.
    Failed,
    /// It counted before; the message shows this text, unless a crash intervened.
    Known(String),
    /// It counts, and the text that the message is to show is stored with it.
    Kept(String),
    /// It counts, and the message at this place is to show this text.
    Shown(ReplyTo, String),
}

impl Handler {
    /// Does what a yes or no asks for, if the message awaits one and it is from the person who is asked. Harmless if
    /// repeated.
    ///
    /// # Errors
    /// It could not be done; it may be retried.
    pub(super) async fn judge(&self, verdict: &Verdict) -> Result<VerdictOutcome, Failure> {
        match self.judge_proposal(verdict).await? {
            VerdictOutcome::NotAwaited => self.judge_atom(verdict).await,
            judged => Ok(judged),
        }
    }

    /// Carries out a verdict on a proposal: the question is sent to the contacts, or it is not. Or a contact's verdict
    /// on whether a message was their answer.
    async fn judge_proposal(&self, verdict: &Verdict) -> Result<VerdictOutcome, StoreError> {
        // The lock ensures that a message being posted is known to the store.
        let _judging = self.services.judging.lock(&verdict.message.channel).await;
        let ends = Ends {
            dropped: self.services.messages.proposal_dropped(),
            expired: self.services.messages.proposal_expired(),
            not_meant: self.services.messages.not_meant(),
            not_needed: self.services.messages.answered_already(),
        };
        let (handler, given, texts) = (self.clone(), verdict.clone(), ends.clone());
        let judged = self.whole(async move {
            let judged = handler.services.store.judge_proposal(&given, texts, handler.services.now_ms()).await?;
            if let Some(ProposalVerdict::NotMeant { own: Some(own), .. }) = &judged {
                handler.dispatcher.enter(own.clone());
            }
            Ok(judged)
        });
        let Some(judged) = judged.await? else { return Ok(VerdictOutcome::NotAwaited) };
        if let Some(text) = ends.of(&judged) {
            return Ok(VerdictOutcome::Kept(text.to_owned()));
        }
        match judged {
            ProposalVerdict::Confirmed(confirmation) => {
                self.dispatcher.take_in(*confirmation, Arrival::Fresh).await?;
                Ok(VerdictOutcome::Taken)
            }
            ProposalVerdict::Meant(answer) => {
                let place = answer.reply_to.clone();
                self.dispatcher.take_in(*answer, Arrival::Fresh).await?;
                Ok(VerdictOutcome::Shown(place, self.services.messages.answer_taken()))
            }
            ProposalVerdict::NotTheirs(place) => Ok(VerdictOutcome::NotTheirs(place)),
            // The texts of the others are kept.
            _ => Ok(VerdictOutcome::Taken),
        }
    }

    /// Carries out a verdict on an atom (specification 003 §10). It is stored before that, together with the text that
    /// the notice is to show: after a crash at any point, it is carried out, shown, and noted in the ledger once.
    ///
    /// # Errors
    /// It could not be done; it may be retried.
    pub(super) async fn judge_atom(&self, verdict: &Verdict) -> Result<VerdictOutcome, Failure> {
        let Verdict { user, message: MessageRef { channel, ts }, says, .. } = verdict;
        // The lock ensures that the atom of a notice being posted knows it.
        let _judging = self.services.judging.lock(channel).await;
        let notice = Notice { channel_id: channel.clone(), message_ts: ts.clone() };
        let now_ms = self.services.now_ms();
        let found = match self.services.library.with(move |library| library.by_notice(&notice, now_ms)).await {
            Err(LibraryError::File(error)) => match error.broken() {
                Some(file) => return Ok(VerdictOutcome::Unreadable(unreadable(&self.services.messages, &error, file))),
                None => return Err(Failure::new(&error)),
            },
            Err(error @ LibraryError::Copied { .. }) => {
                return Ok(VerdictOutcome::Unreadable(self.services.messages.atom_copied(&error.to_string())));
            }
            found => found.map_err(Failure::new)?,
        };
        let Some(StoredAtom { path, atom }) = found else { return Ok(VerdictOutcome::NotAwaited) };
        match decide(&atom, user, *says) {
            Decision::Counts => {}
            Decision::AlreadyApproved => {
                return Ok(VerdictOutcome::Known(self.services.messages.atom_approved(&atom.meta.id)));
            }
            Decision::NotTheContributor => {
                // Of a notice, only the channel is known.
                return Ok(VerdictOutcome::NotTheirs(ReplyTo { channel: channel.clone(), thread_ts: None }));
            }
        }
        let atom = JudgedAtom { id: atom.meta.id, path };
        tracing::info!(user, atom_id = atom.id, decision = ?says, "a verdict on an atom");
        let text = match says {
            ReactionVerdict::Approve => self.services.messages.atom_approved(&atom.id),
            ReactionVerdict::Reject => self.services.messages.atom_rejected(&atom.id),
        };
        let number = self.services.store.judges_atom(verdict, &text, &atom).await?;
        self.carry_out(number, verdict, atom).await?;
        Ok(VerdictOutcome::Kept(text))
    }

    /// Carries out a stored verdict on an atom, perhaps one from before a crash.
    ///
    /// # Errors
    /// It could not be done; it may be retried.
    pub(super) async fn carry_out(
        &self,
        number: i64,
        verdict: &Verdict,
        JudgedAtom { id: atom_id, path }: JudgedAtom,
    ) -> Result<(), Failure> {
        let (now_ms, says, actor) = (self.services.now_ms(), verdict.says, verdict.user.clone());
        let ruled = self.services.library.with(move |library| -> Result<(), LibraryError> {
            // A verdict stored by another host of the database names the file in that host's home.
            let path = library.files().here(&path);
            let ruled = match says {
                ReactionVerdict::Approve => moderation::approve_file(library.files(), &path).map(drop),
                ReactionVerdict::Reject => moderation::reject_file(library.files(), &path),
            };
            match ruled {
                // The file was deleted meanwhile, or this was carried out before a crash.
                Err(error) if error.is_missing() => {}
                done => done?,
            }
            library.refresh(now_ms)
        });
        ruled.await.map_err(Failure::new)?;
        let event = match says {
            ReactionVerdict::Approve => Event::AtomApproved { actor, atom_id },
            ReactionVerdict::Reject => Event::AtomRejected { actor, atom_id },
        };
        Ok(self.services.store.atom_judged(number, event, now_ms).await?)
    }

    /// Tells only this person, in a task of its own, that their verdict has no effect, and why.
    pub(super) fn whisper(&self, person: String, place: ReplyTo, text: String) {
        let front = Arc::clone(&self.services.front);
        self.services.tasks.spawn(async move {
            match front.whisper(&person, &place, &text).await {
                Ok(()) | Err(FrontError::Closed) => {}
                Err(error) => tracing::warn!(%error, "cannot tell somebody that a button or a reaction has no effect"),
            }
        });
    }

    /// As [`whisper`](Handler::whisper), to whoever has reacted to a message of which no thread is known: a reaction
    /// does not say it.
    pub(super) fn whisper_back(&self, Reaction { user, message, .. }: &Reaction, text: String) {
        let place = ReplyTo { channel: message.channel.clone(), thread_ts: None };
        self.whisper(user.clone(), place, text);
    }

    /// Replaces a message by the result, without its buttons. Returns false if the gateway ends before that is done.
    pub(super) async fn show_result(&self, place: &ReplyTo, ts: &str, text: String) -> bool {
        let speech = MessageBody { text, pings: vec![] };
        loop {
            let shown = Delivery { replaces: Some(ts), ..Delivery::notice("", place, &speech) };
            let wait = match self.services.front.deliver(shown).await {
                Ok(_) => return true,
                Err(FrontError::Transient { what, retry_after, .. }) => {
                    tracing::debug!(what, "a message does not show its result yet");
                    retry_after.unwrap_or(TRY_AGAIN)
                }
                Err(FrontError::Refused { what, .. }) => {
                    tracing::warn!(what, "a message does not show its result, which takes effect all the same");
                    return true;
                }
                Err(error) => {
                    tracing::warn!(%error, "a message will not show its result until the next start");
                    return false;
                }
            };
            tokio::select! {
                biased;
                () = self.services.stop.cancelled() => return false,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// Returns what is wrong with an atom's file, which is named as it is in any home.
fn unreadable(messages: &Messages, error: &FileError, file: &Path) -> String {
    let names: Vec<_> = file.iter().rev().take(NAMES_IN_A_HOME).collect();
    let name: PathBuf = names.into_iter().rev().collect();
    let why = error.to_string().replacen(&file.display().to_string(), &name.display().to_string(), 1);
    messages.atom_unreadable(&why)
}
