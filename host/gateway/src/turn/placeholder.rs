//! The message that shows a person that an answer is being made, on fronts that use one. It is posted concurrently with
//! making the answer, found again after a crash, and removed if no answer replaces it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::TurnError;
use crate::{
    chat::{Inbound, MessageBody, ReplyTo},
    front::{Delivery, Front, FrontError, Kind, Lookup},
    services::Services,
    store::{self, Begun, OpenTurn, Outgoing, PreviewKind, Purpose, Withdrawal},
};

mod too_late;

/// Attempts to post a placeholder; without one, the reply is posted as a separate message.
const PLACEHOLDER_ATTEMPTS: u32 = 2;

/// The longest rate limit pause worth waiting for: after that the answer may be there.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The placeholder of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// This message id.
    There(String),
    Not,
    /// One may have been posted, and the search for it failed.
    InDoubt,
}

impl Placeholder {
    /// Returns the message id, if it is known.
    pub fn known(&self) -> Option<String> {
        match self {
            Placeholder::There(id) => Some(id.clone()),
            Placeholder::Not | Placeholder::InDoubt => None,
        }
    }
}

/// Shows the person that an answer is being made, concurrently with making it. Once `is_made` is cancelled, it starts
/// nothing that would become a message later.
pub(super) async fn show(
    services: &Services,
    turn: &OpenTurn,
    is_made: &CancellationToken,
) -> Result<Placeholder, TurnError> {
    if let Some(known) = &turn.placeholder {
        // What was streamed beside it is looked for by the delivery, when the answer is stored.
        return Ok(Placeholder::There(known.clone()));
    }
    // An answer handed on from elsewhere is a message of its own, because an edit notifies nobody.
    if store::is_handed_on(&turn.inbound) {
        return Ok(Placeholder::Not);
    }
    let mut in_doubt = if turn.resumed { turn.begun_with } else { Begun::default() };
    let unknown = services.unknown.token();
    for _ in 0..PLACEHOLDER_ATTEMPTS {
        match place(services, turn, &mut in_doubt, is_made).await {
            Ok(None) => return Ok(Placeholder::Not),
            Ok(Some(id)) => {
                // Not awaited: later writes of the turn are queued behind it, and the placeholder is stored again with
                // the answer.
                let placed = services.store.placed(turn.turn, &id);
                if services.store.is_shared() {
                    services.tasks.spawn(too_late::take_back(services, turn, (&id, unknown), placed));
                }
                return Ok(Placeholder::There(id));
            }
            Err(TurnError::Front(FrontError::Transient { what, retry_after, .. })) => {
                tracing::debug!(what, "no placeholder yet");
                tokio::select! {
                    biased;
                    // The answer does not wait for a new placeholder, but for the search for one that
                    // may exist.
                    () = is_made.cancelled(), if !in_doubt.is_any() => break,
                    () = tokio::time::sleep(retry_after.unwrap_or_default().min(LONGEST_WAIT)) => {}
                }
            }
            Err(error @ (TurnError::Front(FrontError::Closed) | TurnError::Store(_))) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "no placeholder; the reply will be a separate message");
                return Ok(Placeholder::Not);
            }
        }
    }
    Ok(if in_doubt.is_any() { Placeholder::InDoubt } else { Placeholder::Not })
}

/// Returns the placeholder, if the front uses one: that of an earlier attempt, which would remain forever if it were
/// forgotten, or a new one.
async fn place(
    services: &Services,
    turn: &OpenTurn,
    in_doubt: &mut Begun,
    is_made: &CancellationToken,
) -> Result<Option<String>, TurnError> {
    if let Some(id) = shown_before(&*services.front, turn, *in_doubt).await? {
        return Ok(Some(id));
    }
    *in_doubt = Begun::default();
    let text = services.messages.thinking();
    let is_shown = tokio::select! {
        biased;
        () = is_made.cancelled() => true,
        is_shown = services.front.show(&turn.inbound, &text) => is_shown,
    };
    if is_shown {
        return Ok(None);
    }
    if !turn.may_place {
        services.store.may_show(turn.turn, PreviewKind::Placeholder).await?;
    }
    let placed = services.front.placeholder(&turn.inbound, &text).await;
    in_doubt.placeholder = matches!(placed, Err(FrontError::Transient { not_made: false, .. }));
    Ok(placed?)
}

/// Returns the placeholder that an earlier attempt may have posted. The front itself remembers a stream that it finds.
async fn shown_before(front: &dyn Front, turn: &OpenTurn, begun: Begun) -> Result<Option<String>, FrontError> {
    let Inbound { event_id, reply_to, ts, .. } = &turn.inbound;
    match begun {
        Begun { placeholder: true, stream } => find(front, (event_id, reply_to, ts), stream).await,
        Begun { stream: true, .. } => front.recall(event_id, reply_to, ts).await.map(|()| None),
        _ => Ok(None),
    }
}

/// Lets the front search for what an earlier attempt may have streamed of the answer.
async fn recall(front: &dyn Front, turn: &OpenTurn) -> Result<(), FrontError> {
    let Inbound { event_id, reply_to, ts, .. } = &turn.inbound;
    if !(turn.resumed && turn.begun_with.stream) {
        return Ok(());
    }
    front.recall(event_id, reply_to, ts).await
}

/// Searches for the placeholder of an attempt with unknown outcome. If the front cannot search, a second one is
/// posted.
pub(super) async fn find(
    front: &dyn Front,
    (event_id, reply_to, ts): (&str, &ReplyTo, &str),
    is_streamed: bool,
) -> Result<Option<String>, FrontError> {
    let speech = MessageBody::default();
    let placeholder = Delivery { kind: Kind::Placeholder, ..Delivery::notice(event_id, reply_to, &speech) };
    Ok(match front.find(&placeholder, ts, is_streamed).await? {
        Lookup::Yes(id) => id,
        Lookup::No | Lookup::Unknown => None,
    })
}

/// Removes what shows that a question is being answered, if anything does.
pub(super) async fn take_away(front: &dyn Front, turn: &OpenTurn) -> Result<(), TurnError> {
    let Inbound { event_id, reply_to, .. } = &turn.inbound;
    let shown = match &turn.placeholder {
        None if turn.resumed => shown_before(front, turn, turn.begun_with).await?,
        known => {
            recall(front, turn).await?;
            known.clone()
        }
    };
    if let Some(placeholder) = shown {
        withdraw(front, reply_to, &placeholder).await?;
    }
    Ok(front.clear(event_id).await?)
}

/// Returns parts that remove placeholders that no answer replaces: those that earlier attempts posted for the other
/// questions of the batch, and one whose search failed.
pub(super) fn withdrawals<'a>(
    others: impl Iterator<Item = &'a OpenTurn> + 'a,
    in_doubt: Option<&'a OpenTurn>,
) -> impl Iterator<Item = Outgoing> + 'a {
    let is_shown = |other: &&OpenTurn| other.resumed && other.begun_with.is_any() || other.placeholder.is_some();
    others.filter(is_shown).chain(in_doubt).map(|turn| {
        let Inbound { event_id, ts, .. } = &turn.inbound;
        let (event_id, ts, placeholder) = (event_id.clone(), ts.clone(), turn.placeholder.clone());
        let purpose = Purpose::Withdraw(Withdrawal { event_id, ts, placeholder });
        Outgoing { purpose, ..Outgoing::default() }
    })
}

/// Returns the placeholder that this part of an answer removes, if there is one.
pub(crate) async fn withdrawn(
    front: &dyn Front,
    reply_to: &ReplyTo,
    Withdrawal { event_id, ts, placeholder }: &Withdrawal,
) -> Result<Option<String>, FrontError> {
    match placeholder {
        None => find(front, (event_id, reply_to, ts), true).await,
        known => Ok(known.clone()),
    }
}

/// Removes a placeholder, if Slack allows it.
pub(crate) async fn withdraw(front: &dyn Front, reply_to: &ReplyTo, placeholder: &str) -> Result<(), FrontError> {
    match front.withdraw(reply_to, placeholder).await {
        Err(FrontError::Refused { what, .. }) => {
            tracing::warn!(what, "cannot remove a placeholder");
            Ok(())
        }
        withdrawn => withdrawn,
    }
}
