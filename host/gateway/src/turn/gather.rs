//! Step 2: the request as it would be if nothing were done, and how much room there is for it. The first
//! turn of a session gets the knowledge-base seed, every turn the atoms that its message is about.

use std::sync::Arc;

use pmk_core::{Message, Origin, Place};
use pmk_policy::IncomingInput;

use super::{
    TurnError, absorb,
    decided::note_records,
    journal::Journal,
    window::Window,
    work::{Room, Tally, Work},
};
use crate::{
    case, clock,
    gateway::Gateway,
    knowledge::{MAX_RETRIEVED, block},
    ledger::{Event, Tags},
    policies::Deciding,
    store::{Live, OpenTurn},
};

pub(super) async fn gather<'a>(
    gateway: &'a Gateway,
    turn: &'a OpenTurn,
    mut live: Live,
) -> Result<Work<'a>, TurnError> {
    let (policies, place) = gateway.experiment.take_part(gateway, turn).await?;
    let tags = Tags { policy_sha256: Some(policies.top().1.into()), place };
    let journal = Arc::new(Journal::new(tags));
    let audience = audience(gateway, turn);
    let offer = gateway.offer(&turn.inbound.user);
    let room = gateway.room(turn.session, &gateway.preamble(audience, offer, true));
    if live.entries.is_empty() && live.dropped_turns == 0 {
        live = seed(gateway, turn, (&policies, &journal), live, room).await?;
    }
    let (new_message, retrieved, atoms) = match &turn.absorbs {
        Some(marker) => (absorb::new_message(marker, &turn.inbound), None, vec![]),
        None => {
            let (retrieved, atoms) = retrieve(gateway, &turn.inbound.text).await;
            (Message::user(turn.inbound.text.clone()), retrieved, atoms)
        }
    };
    let case = match turn.case {
        Some(case) => gateway.store.case(case).await?,
        None => None,
    };
    let shown = case.as_ref().map(case::block).into_iter().chain(retrieved);
    let mut turns_dropped = 0;
    let archive = gateway.store.archive_of(turn.session, turn.archived);
    let mut window =
        Window::new(live, shown, new_message, turn.inbound.reply_to.channel.clone()).with_archive(Arc::new(archive));
    if let (Place::Dm(_), Some(most)) = (&turn.inbound.key.place, gateway.config.history_turns)
        && let Some((edit, turns)) = window.keep_turns(most.get())
    {
        turns_dropped = turns;
        gateway.store.edit_live(turn.session, edit, vec![], clock::now_ms()).await?;
    }
    // A provider wants its tools defined where a history speaks of them.
    let with_tools = gateway.uses_tools() || window.has_tools();
    Ok(Work {
        turn,
        policies,
        journal,
        also: vec![],
        merged: 0,
        audience,
        offer,
        preamble: gateway.preamble(audience, offer, with_tools),
        room,
        below: None,
        trial: None,
        window,
        case,
        atoms,
        placeholder: None,
        progress: None,
        tally: Tally { turns_dropped, ..Tally::default() },
    })
}

/// The audience of who reads the answer: of the asker, where an answer to them has come in.
fn audience(gateway: &Gateway, turn: &OpenTurn) -> crate::audience::Audience {
    let reader = turn.absorbs.as_ref().and_then(|marker| marker.asker_user_id.as_deref());
    let channel = match &turn.inbound.key.place {
        Place::Channel(channel) => Some(channel.as_str()),
        Place::Dm(_) => None,
    };
    gateway.people.now().audience.pick(reader.unwrap_or(&turn.inbound.user), channel)
}

/// The live window of a session that opens with the knowledge base, if there is one.
async fn seed(
    gateway: &Gateway,
    turn: &OpenTurn,
    (policies, journal): (&Deciding, &Journal),
    live: Live,
    room: Room,
) -> Result<Live, TurnError> {
    let Some(seeder) = gateway.seeder.clone() else { return Ok(live) };
    let packed = tokio::task::spawn_blocking(move || seeder.pack()).await.expect("packing a seed does not panic");
    for problem in &packed.problems {
        tracing::warn!("the knowledge-base seed goes without a document: {problem}");
    }
    let Some(pair) = packed.pair else { return Ok(live) };
    let incoming = IncomingInput {
        kind: Origin::Seed,
        name: String::new(),
        text: Arc::from(pair[0].plain_text()),
        limit: room.limit,
    };
    let decision = policies.consult(move |stack| stack.cap(incoming)).await;
    note_records(gateway, journal, &turn.inbound.user, &decision.records);
    let (entries, sizes) = gateway.store.seed(turn.session, pair, decision.verdict, clock::now_ms()).await?;
    note_capped(journal, &turn.inbound.user, Origin::Seed, &sizes);
    Ok(Live { entries, ..live })
}

/// Tells the ledger of contents that were stored in part.
pub(super) fn note_capped(journal: &Journal, actor: &str, kind: Origin, sizes: &[(usize, usize)]) {
    for &(original_chars, capped_chars) in sizes {
        tracing::info!(kind = kind.name(), original_chars, capped_chars, "capped");
        journal.note(Event::MessageCapped { actor: actor.to_owned(), kind: kind.name(), original_chars, capped_chars });
    }
}

/// The block of atoms for a message, and their ids. A knowledge base that cannot be read keeps nobody from
/// being answered.
async fn retrieve(gateway: &Gateway, text: &str) -> (Option<Message>, Vec<String>) {
    let text = text.to_owned();
    let found = gateway.with_library(move |library| library.retrieve(&text, clock::now_ms(), MAX_RETRIEVED)).await;
    match found {
        Ok(found) => {
            let message = block::retrieval_message(found.iter().map(|stored| &stored.atom));
            (message, found.into_iter().map(|stored| stored.atom.meta.id).collect())
        }
        Err(error) => {
            tracing::warn!(%error, "the turn goes without the knowledge base");
            (None, vec![])
        }
    }
}
