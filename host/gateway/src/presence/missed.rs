//! Messages written while no gateway was listening. Slack sends an event again for about five minutes. After a
//! longer outage, the known conversations are read back, each until Slack has returned it, and what is still open there
//! goes through the same inbox as everything else, so that a message received in both ways is answered once.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use async_trait::async_trait;
use pmk_core::SessionKey;
use tokio::time::Instant;

use super::{BEAT_EVERY, Ports};
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
/// allows, that takes some twenty minutes, and longer where other threads have to be read with them.
const MOST: usize = 1_000;

/// How many threads are read with them at most, which takes another ten minutes or so.
const MOST_THREADS: usize = 500;

/// After how many failures in a row reading is put off: it is not about one conversation.
const MOST_FAILURES: usize = 3;

/// How often a conversation is read for threads that fail; then they are left out.
const MOST_ATTEMPTS: u32 = 3;

/// The longest pause before a place in which one has failed is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(10 * 60);

/// What could not be read until now.
#[derive(Default)]
pub(super) struct Failed {
    /// The places in which something could not be read, and when they are to be tried again.
    retries: HashMap<SessionKey, Retry>,
    /// How often a conversation was read without some of its threads.
    partly: HashMap<SessionKey, u32>,
    /// The conversations that were not read completely, and count as such.
    cut: HashSet<SessionKey>,
    /// The conversations that were read, and count, in places where others were not. Each with the `ts` after which it
    /// is read with those.
    read: HashMap<SessionKey, String>,
}

/// When a place is to be tried again.
pub(super) struct Retry {
    failures: u32,
    at: Instant,
}

impl Retry {
    /// Returns the next attempt after one more failure.
    fn after(failures: u32) -> Retry {
        let pause = BEAT_EVERY.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_PAUSE);
        Retry { failures: failures.saturating_add(1), at: Instant::now() + pause }
    }
}

/// Whether reading continues.
enum ReadProgress {
    On,
    /// Slack has failed, perhaps because of this conversation.
    Failed,
    /// Nothing can be read now.
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
    /// Threads that were read with them.
    threads: usize,
}

/// Reads back the conversations that are due. Conversations that are postponed remain due; those that have failed are
/// remembered, and go last after longer and longer pauses, so that they keep nobody else's question from being answered.
/// With one that is read because others in its place are due, those wait: nothing else tells that it is to be read.
pub(super) async fn read(ports: &Ports, failed: &mut Failed) {
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
    let unread = to_try(unread.conversations, failed);
    let (mut reading, mut failures) = (Reading::default(), 0);
    // The places whose other conversations wait.
    let mut waiting = HashSet::new();
    let threads = threads(&unread);
    for conversation in &unread {
        if ports.stop.is_cancelled() {
            break;
        }
        let place = place_of(&conversation.key);
        if waiting.contains(&place) {
            continue;
        }
        let apart = threads.get(conversation.channel.as_str()).map(Vec::as_slice).unwrap_or_default();
        match read_one(ports, conversation, apart, failed, &mut reading).await {
            Ok(ReadProgress::On) => failures = 0,
            Ok(ReadProgress::Failed) => {
                if !conversation.is_due {
                    waiting.insert(place.clone());
                }
                let before = failed.retries.get(&place).map_or(0, |retry| retry.failures);
                failed.retries.insert(place, Retry::after(before));
                failures += 1;
                if failures == MOST_FAILURES {
                    break;
                }
            }
            // The other conversations would fail, too.
            Ok(ReadProgress::PutOff) => break,
            Err(error) => {
                tracing::error!(session = %conversation.key, %error, "cannot store what was missed there");
                break;
            }
        }
    }
    let Reading { conversations, messages, unreadable, cut, .. } = reading;
    if conversations + messages + unreadable > 0 {
        tracing::info!(conversations, messages, unreadable, cut, "read back what was missed");
        // What is left out has a line of its own.
        ports.ledger.note(Event::GatewayCaughtUp { conversations, messages, unreadable, cut, left_out: 0 });
    }
    if cut > 0 {
        ports.admins.tell(ports.messages.partly_read(cut));
    }
}

/// Returns what is to be tried now: places in which something has failed come last, the most often after all others.
/// Places with nothing to read any more are forgotten.
fn to_try(mut conversations: Vec<MissedConversation>, failed: &mut Failed) -> Vec<MissedConversation> {
    let places: HashSet<SessionKey> = conversations.iter().map(|conversation| place_of(&conversation.key)).collect();
    let Failed { retries, partly, cut, read } = failed;
    retries.retain(|place, _| places.contains(place));
    partly.retain(|key, _| places.contains(&place_of(key)));
    cut.retain(|key| places.contains(&place_of(key)));
    read.retain(|key, _| places.contains(&place_of(key)));
    let now = Instant::now();
    conversations.retain(|conversation| retries.get(&place_of(&conversation.key)).is_none_or(|retry| retry.at <= now));
    conversations
        .sort_by_key(|conversation| retries.get(&place_of(&conversation.key)).map_or(0, |retry| retry.failures));
    conversations
}

/// Returns the place that a conversation is in, or is.
fn place_of(key: &SessionKey) -> SessionKey {
    SessionKey { thread: None, ..key.clone() }
}

/// Returns the threads among these conversations, by their channel.
fn threads(conversations: &[MissedConversation]) -> HashMap<&str, Vec<String>> {
    let mut threads: HashMap<&str, Vec<String>> = HashMap::new();
    for MissedConversation { key, channel, .. } in conversations {
        if let Some(thread) = &key.thread {
            threads.entry(channel).or_default().push(thread.clone());
        }
    }
    threads
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
    read_apart: &[String],
    failed: &mut Failed,
    reading: &mut Reading,
) -> Result<ReadProgress, StoreError> {
    let before = failed.partly.get(&unread.key).copied().unwrap_or(0);
    let is_last = before + 1 >= MOST_ATTEMPTS;
    // One that is only read because others in its place are due is read with each attempt to read those: it may be due
    // again, and nothing else tells. After the first time, that is only what was said since.
    let reads_on_after = failed.read.get(&unread.key).filter(|_| !unread.is_due).cloned();
    let is_first = reads_on_after.is_none();
    let now_ms = ports.clock.now_ms();
    let place = BackfillRequest {
        channel: unread.channel.clone(),
        thread_ts: unread.key.thread.clone(),
        after: reads_on_after.unwrap_or_else(|| unread.after.clone()),
        read_apart: read_apart.to_vec(),
        most_threads: MOST_THREADS.saturating_sub(reading.threads),
        is_last,
    };
    let Past { messages, in_threads, threads, is_whole, has_failed } = match ports.front.look_back(&place).await {
        Ok(past) => past,
        Err(FrontError::Transient { what, not_made, .. }) => {
            tracing::warn!(session = %unread.key, what, "cannot read what was missed there now");
            // Slack has not even looked at the conversation.
            return Ok(if not_made { ReadProgress::PutOff } else { ReadProgress::Failed });
        }
        // Other conversations would be refused, too, until somebody gives it another token.
        Err(error) if ports.is_muted() => {
            tracing::warn!(session = %unread.key, %error, "cannot read what was missed there now");
            return Ok(ReadProgress::PutOff);
        }
        Err(error) => {
            tracing::warn!(session = %unread.key, %error, "cannot read what was missed there");
            reading.unreadable += usize::from(is_first);
            failed.read.insert(unread.key.clone(), place.after);
            ports.store.read_back(&unread.key).await?;
            return Ok(ReadProgress::On);
        }
    };
    reading.threads += threads;
    if has_failed {
        failed.partly.insert(unread.key.clone(), before.saturating_add(1));
    }
    // What was found is taken in now, and the conversation is read once more for the rest.
    let is_once_more = has_failed && !is_last;
    if !is_once_more && is_first {
        reading.conversations += 1;
    }
    if !is_once_more && (!is_whole || has_failed) && failed.cut.insert(unread.key.clone()) {
        tracing::warn!(session = %unread.key, "this conversation cannot be read back completely");
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
    if is_once_more {
        return Ok(ReadProgress::Failed);
    }
    failed.read.insert(unread.key.clone(), MissedConversation::reads_on_after(now_ms));
    ports.store.read_back(&unread.key).await?;
    Ok(ReadProgress::On)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversations(keys: &[&str]) -> Vec<MissedConversation> {
        let conversation = |key: &&str| MissedConversation {
            key: key.parse().expect("a key"),
            channel: "C1".to_owned(),
            after: "1.0".to_owned(),
            is_due: true,
        };
        keys.iter().map(conversation).collect()
    }

    /// Regression: what had failed once was never tried again where three others failed each time.
    #[tokio::test(start_paused = true)]
    async fn of_what_had_failed_only_the_first_three_were_tried_again() {
        let channel = |id: &str| -> SessionKey { format!("slack:channel:{id}").parse().expect("a key") };
        let times = [("C1", 1), ("C3", 0), ("C4", 0)];
        let retries = times.into_iter().map(|(id, times)| (channel(id), Retry::after(times))).collect();
        let mut failed = Failed { retries, ..Failed::default() };
        let due = [
            "slack:channel:C1",
            "slack:channel:C2:1.000001",
            "slack:channel:C1:1.000001",
            "slack:channel:C3",
            "slack:dm:U1",
        ];
        let mut order = || -> Vec<String> {
            let now = to_try(conversations(&due), &mut failed);
            now.iter().map(|conversation| conversation.key.to_string()).collect()
        };
        assert_eq!(order(), [due[1], due[4]], "the others have just failed");
        tokio::time::advance(BEAT_EVERY).await;
        assert_eq!(order(), [due[1], due[4], due[3]]);
        tokio::time::advance(BEAT_EVERY).await;
        assert_eq!(order(), [due[1], due[4], due[3], due[0], due[2]], "the most often last, and in its order");
        assert_eq!(failed.retries.len(), 2, "nothing is to be read in the fourth any more");
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_again_and_again_is_tried_less_and_less() {
        let pauses = [0, 1, 2, 3, 40].map(|failures| Retry::after(failures).at.duration_since(Instant::now()));
        let expected = [20, 40, 80, 160, 600].map(Duration::from_secs);
        assert_eq!(pauses, expected);
    }
}
