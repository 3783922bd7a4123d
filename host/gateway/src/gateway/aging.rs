//! Erases conversations in which nobody has written for longer than they are kept.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use jiff::SignedDuration;

use crate::{
    ledger::Event,
    services::Services,
    store::{Erasing, StoreError, StoreErrorKind},
};

/// A clock that is further ahead than this makes conversations look old.
const CLOCK_ERROR: SignedDuration = SignedDuration::from_hours(1);

const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

/// Erases them now and once an hour, and edits of messages that never arrived once an hour, for as long as it is polled.
pub(super) async fn keep_erasing(services: Arc<Services>) {
    loop {
        if let Some(days) = services.config.sessions.keep_days
            && let Err(error) = erase(&services, days).await
        {
            tracing::warn!(%error, "conversations that are no longer kept could not be erased; this is tried again in an hour");
        }
        tokio::time::sleep(LOOK_EVERY).await;
        if !is_clock_ahead(&services)
            && let Err(error) = services.store.forget_early_changes(services.now_ms()).await
        {
            tracing::debug!(%error, "edits of messages that never arrived are kept for another hour");
        }
    }
}

fn is_clock_ahead(services: &Services) -> bool {
    services.front.clock_ahead().is_some_and(|ahead| ahead > CLOCK_ERROR)
}

async fn erase(services: &Services, days: NonZeroU32) -> Result<(), StoreError> {
    let store = &services.store;
    if is_clock_ahead(services) {
        tracing::warn!("this machine's clock is ahead: no conversation is erased for its age");
        return Ok(());
    }
    let (mut erased, mut failed) = (Vec::new(), None);
    for key in store.idle_conversations(days.get(), services.now_ms()).await? {
        match store
            .erase_conversation(&key, Erasing::Idle { days: days.get() }, Duration::ZERO, services.now_ms())
            .await
        {
            Ok(conversation) => erased.push(conversation),
            Err(error) if error.is_of_conversation() => {
                tracing::debug!(%error, "a conversation is kept for longer");
            }
            Err(error) if error.kind() == StoreErrorKind::Stuck => {
                tracing::warn!(%error, "`{key}` could not be erased");
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let sessions = erased.iter().filter(|erased| erased.had_content()).count();
    if sessions > 0 {
        let messages: usize = erased.iter().map(|erased| erased.messages).sum();
        tracing::info!(
            "conversations are kept for {days} days after the last message; erased: {sessions}, with {messages} messages"
        );
        services.ledger.note(Event::SessionsForgotten { sessions, messages, keep_days: days.get() });
    }
    store.erase_receipts(&erased).await?;
    failed.map_or(Ok(()), Err)
}
