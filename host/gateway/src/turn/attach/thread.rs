//! The messages of a thread before the first one for the bot: read once, shown for one turn, and not kept.

use std::{sync::Arc, time::Duration};

use pmk_core::{CapVerdict, Message, Origin, text, tokens};
use pmk_policy::IncomingInput;

use super::{
    super::{TurnError, live::LivePorts, records::note_capped},
    SHARE_OF_LIMIT,
    frame::{of_thread, said},
    within,
};
use crate::{
    chat::{Attachments, Thread, ThreadPost},
    config::Config,
    front::{Front, FrontError},
    operator::permissions::Permissions,
    services::Services,
    store::{Live, OpenTurn},
};

/// The name under which policies see them.
const NAME: &str = "thread";

/// Attempts to read a thread; the pause before the next one if Slack names none, and the longest
/// pause.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Returns whether a message is in a thread of which the window holds nothing yet, and which may be read.
pub(super) fn is_new_here(config: &Config, turn: &OpenTurn, live: &Live) -> bool {
    let is_seed = |origin| matches!(origin, Origin::Seed | Origin::SeedAck);
    let key = &turn.inbound.key;
    config.slack_settings.read_threads
        && turn.absorbs().is_none()
        && key.thread.as_ref().is_some_and(|thread| *thread != turn.inbound.ts)
        && live.dropped_turns == 0
        && live.entries.iter().all(|kept| is_seed(kept.entry.message.origin))
}

/// Reads the thread. `None` if a later attempt at the turn may read it; the turn goes on without. If other people take
/// part in the thread, the store is told, so that its author is not followed there merely because they mentioned the
/// bot.
pub(super) async fn read(services: &Services, turn: &OpenTurn) -> Result<Option<Thread>, TurnError> {
    let asked = &turn.inbound;
    let Some(thread) = fetch(&*services.front, &services.people, turn).await else { return Ok(None) };
    if thread.people.iter().any(|person| *person != asked.user) {
        services.store.was_not_alone(&asked.key, &asked.user, &asked.ts).await?;
    }
    Ok(Some(thread))
}

async fn fetch(front: &dyn Front, people: &Permissions, turn: &OpenTurn) -> Option<Thread> {
    let session = &turn.inbound.key;
    let is_heard = |by: &str| people.may_hear(by);
    for attempt in 1..=ATTEMPTS {
        match front.read_thread(&turn.inbound.reply_to, &turn.inbound.ts, &is_heard).await {
            Ok(thread) => return Some(thread),
            Err(FrontError::Transient { what, retry_after, .. }) => {
                tracing::debug!(%session, what, "earlier messages of a thread are not read yet");
                if attempt < ATTEMPTS {
                    tokio::time::sleep(retry_after.unwrap_or(PAUSE * attempt).min(LONGEST_WAIT)).await;
                }
            }
            Err(error) => {
                tracing::debug!(%session, %error, "earlier messages of a thread are not read");
                return Some(Thread::default());
            }
        }
    }
    tracing::info!(%session, "answering without the earlier messages of the thread");
    None
}

/// Returns the part of the thread that is shown, limited by the policies' cap and by the room.
pub(crate) async fn background(
    ports: &LivePorts<'_>,
    turn: &OpenTurn,
    attached: &Attachments,
    limit: u64,
) -> Option<Message> {
    let thread = attached.thread.as_ref().filter(|thread| thread.says())?;
    let whole: Arc<str> = thread.said.iter().map(said).collect::<Vec<_>>().join("\n").into();
    let incoming = IncomingInput { kind: Origin::Attachment, name: NAME.to_owned(), text: Arc::clone(&whole), limit };
    let mut verdict = ports.cap(incoming).await;
    let (cost, room) = (u64::from(tokens::estimate(&whole)), limit / SHARE_OF_LIMIT);
    if cost > room {
        verdict = within(verdict, &whole, cost, room);
    }
    let shown = capped(thread, verdict);
    if shown != *thread {
        let sizes = [(whole.chars().count(), chars(&shown.said))];
        note_capped(&ports.journal, &turn.inbound.user, Origin::Attachment, &sizes);
    }
    of_thread(&shown, ports.services.config.language)
}

/// Applies a verdict to a thread: keeps whole messages of its beginning, and of its end if the verdict keeps a tail. If
/// the first message alone is longer than the head, its beginning is kept.
fn capped(thread: &Thread, verdict: CapVerdict) -> Thread {
    let (head, tail) = match verdict {
        CapVerdict::Keep => return thread.clone(),
        CapVerdict::Shorten { head, tail } => (head as usize, tail as usize),
        CapVerdict::Digest => (0, 0),
    };
    if chars(&thread.said) <= head + tail {
        return thread.clone();
    }
    let first = fitting(thread.said.iter(), head);
    let last = fitting(thread.said[first..].iter().rev(), tail);
    let mut said = thread.said[..first].to_vec();
    if let (0, Some(ThreadPost { by, text })) = (first, thread.said.first())
        && head > 0
    {
        said.push(ThreadPost { by: by.clone(), text: text::shortened(text, head).into_owned() });
    }
    said.extend_from_slice(&thread.said[thread.said.len() - last..]);
    Thread { said, is_cut: true, people: thread.people.clone() }
}

/// Returns how many of these messages fit in this many characters.
fn fitting<'a>(said: impl Iterator<Item = &'a ThreadPost>, most: usize) -> usize {
    let mut left = most;
    let fits = |one: &&ThreadPost| match left.checked_sub(chars(std::slice::from_ref(*one))) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    said.take_while(fits).count()
}

/// Returns the length in characters as shown, including line ends.
fn chars(all: &[ThreadPost]) -> usize {
    all.iter().map(|one| said(one).chars().count() + 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a thread with messages of these lengths in characters, including author name and
    /// line end.
    fn thread(lengths: &[usize]) -> Thread {
        let said = |(at, length): (usize, &usize)| ThreadPost { by: format!("U{at}"), text: "x".repeat(length - 5) };
        Thread { said: lengths.iter().enumerate().map(said).collect(), ..Thread::default() }
    }

    #[test]
    fn a_thread_is_capped_by_whole_messages_and_says_so() {
        let shorten = |head, tail| CapVerdict::Shorten { head, tail };
        for (verdict, left) in [
            (CapVerdict::Keep, &["U0", "U1", "U2"][..]),
            (shorten(30, 0), &["U0", "U1", "U2"]),
            (shorten(29, 0), &["U0", "U1"]),
            (shorten(10, 10), &["U0", "U2"]),
            (shorten(10, 9), &["U0"]),
            (shorten(0, 20), &["U1", "U2"]),
            (shorten(7, 10), &["U0", "U2"]),
            (CapVerdict::Digest, &[]),
        ] {
            let shown = capped(&thread(&[10, 10, 10]), verdict);
            let by: Vec<&str> = shown.said.iter().map(|said| said.by.as_str()).collect();
            assert_eq!((by.as_slice(), shown.is_cut), (left, left.len() < 3), "{verdict:?}");
        }
        assert_eq!(capped(&thread(&[30]), shorten(7, 0)).said[0].text, "xxxxxxx…");
    }
}
