//! Messages written while no gateway was listening. Slack sends an event again for about five minutes. After a
//! longer outage, the known conversations are read back once each, and what is still open there goes through the
//! same inbox as everything else, so that a message received in both ways is answered once.

use async_trait::async_trait;

use super::Ports;
use crate::{
    chat::{Accepted, Inbound, ThreadMessage},
    front::{BackfillRequest, FrontError, Past},
    ledger::Event,
    store::{MissedConversation, StoreError},
};

/// Takes in messages that were found, oldest first.
#[async_trait]
pub trait FoundIntake: Send + Sync {
    /// Takes in a message to the bot.
    ///
    /// # Errors
    /// The message was not stored.
    async fn accept(&self, message: Inbound) -> Result<Accepted, StoreError>;

    /// Takes in a message in a thread; `None` if it is not for the bot.
    ///
    /// # Errors
    /// The message was not stored, or it could not be determined whether it is for the bot.
    async fn hear(&self, word: ThreadMessage) -> Result<Option<Accepted>, StoreError>;
}

/// How many conversations are read back after an outage at most, with the channels of threads: at the pace that Slack
/// allows, that takes some twenty minutes.
const MOST: usize = 1_000;

/// Whether reading continues.
enum ReadProgress {
    On,
    /// Slack cannot be reached now.
    PutOff,
}

/// The result of reading back.
#[derive(Default)]
struct Reading {
    conversations: usize,
    messages: usize,
    /// Conversations that the gateway may not read, and conversations that were too long to be read
    /// completely.
    unreadable: usize,
    cut: usize,
}

/// Reads back the conversations that are due. Conversations that are postponed remain due.
pub(super) async fn read(ports: &Ports) {
    let unread = match ports.store.unread(MOST).await {
        Ok(unread) => unread,
        Err(error) => {
            tracing::error!(%error, "cannot find out which conversations to read back");
            return;
        }
    };
    if unread.is_cut
        && let Err(error) = leave_out(ports, unread.due).await
    {
        tracing::error!(%error, "cannot note which conversations are not read back");
        return;
    }
    let mut reading = Reading::default();
    for conversation in unread.conversations {
        if ports.stop.is_cancelled() {
            break;
        }
        match read_one(ports, &conversation, &mut reading).await {
            Ok(ReadProgress::On) => {}
            // The other conversations would fail, too.
            Ok(ReadProgress::PutOff) => break,
            Err(error) => {
                tracing::error!(session = %conversation.key, %error, "cannot store what was missed there");
                break;
            }
        }
    }
    let Reading { conversations, messages, unreadable, cut } = reading;
    if conversations + unreadable > 0 {
        tracing::info!(conversations, messages, unreadable, cut, "read back what was missed");
        // What is left out has a line of its own.
        ports.ledger.note(Event::GatewayCaughtUp { conversations, messages, unreadable, cut, left_out: 0 });
    }
    if cut > 0 {
        ports.admins.tell(ports.messages.partly_read(cut));
    }
}

/// Notes that only the first of the due conversations are read, and tells the admins.
async fn leave_out(ports: &Ports, but: usize) -> Result<(), StoreError> {
    let count = ports.store.leave_out(but, ports.clock.now_ms()).await?;
    if count > 0 {
        tracing::warn!(
            "of the conversations to read back, {count} are too many: what was asked there stays unanswered"
        );
        ports.admins.tell(ports.messages.left_unread(count, MOST));
    }
    Ok(())
}

async fn read_one(
    ports: &Ports,
    unread: &MissedConversation,
    reading: &mut Reading,
) -> Result<ReadProgress, StoreError> {
    let place = BackfillRequest {
        channel: unread.channel.clone(),
        thread_ts: unread.key.thread.clone(),
        after: unread.after.clone(),
    };
    let Past { messages, in_threads, is_whole } = match ports.front.look_back(&place).await {
        Ok(past) => past,
        Err(FrontError::Transient { what, .. }) => {
            tracing::warn!(session = %unread.key, what, "cannot read what was missed there now");
            return Ok(ReadProgress::PutOff);
        }
        // Other conversations would be refused, too, until somebody gives it another token.
        Err(error) if ports.is_muted() => {
            tracing::warn!(session = %unread.key, %error, "cannot read what was missed there now");
            return Ok(ReadProgress::PutOff);
        }
        Err(error) => {
            tracing::warn!(session = %unread.key, %error, "cannot read what was missed there");
            reading.unreadable += 1;
            ports.store.read_back(&unread.key).await?;
            return Ok(ReadProgress::On);
        }
    };
    reading.conversations += 1;
    if !is_whole {
        tracing::warn!(session = %unread.key, "this conversation is too long to be read back completely");
        reading.cut += 1;
    }
    for message in messages {
        // Messages of blocked people are not even stored: they get no answer.
        if ports.people.may_hear(&message.user) && ports.found.accept(message).await? == Accepted::New {
            reading.messages += 1;
        }
    }
    for word in in_threads {
        if ports.people.may_hear(&word.message.user) && ports.found.hear(word).await? == Some(Accepted::New) {
            reading.messages += 1;
        }
    }
    ports.store.read_back(&unread.key).await?;
    Ok(ReadProgress::On)
}
