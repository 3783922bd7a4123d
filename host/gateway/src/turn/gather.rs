//! Step 2: builds the request as it would be without pruning, and determines the budget. The first turn
//! of a session gets the knowledge-base seed, every turn the atoms that match its message.

use std::sync::{Arc, OnceLock};

use pmk_core::{Message, Origin, Place, tokens};
use pmk_knowledge::{Atom, MAX_RETRIEVED, block};
use pmk_policy::IncomingInput;
use pmk_system::threads::offload;

use super::{
    TurnError, attach,
    journal::Journal,
    late,
    live::LivePorts,
    placeholder::Placeholder,
    receipt::ReceiptRecorder,
    records::{capped, note_capped},
    work::{Tally, Work},
};
use crate::{
    access::{audience::Audience, people::People},
    calibration::TokenBudget,
    case,
    dispatch::AnswerSoFar,
    exchange::{self, Draft, Exchange, Ports, window::Window},
    front::OnStreamed,
    ids::TurnId,
    ledger::{TaggedEvent, Tags},
    services::Services,
    store::{self, Digest, FoundAtom, OpenTurn},
};

/// `journal` gets the turn's journal, for whoever ends the attempt before there is a request.
pub(super) async fn gather<'a>(
    services: &'a Services,
    (turn, merged): (&'a OpenTurn, Vec<OpenTurn>),
    mut live: store::Live,
    said: AnswerSoFar,
    placed: &Arc<OnceLock<Placeholder>>,
    journal: &OnceLock<Arc<Journal>>,
) -> Result<Work<'a>, TurnError> {
    let attached = attach::read(services, turn, &merged, Some(&live)).await?;
    let (policies, place) = services.experiment.take_part(turn).await?;
    let tags = Tags { policy_sha256: Some(policies.top().sha256.as_str().into()), place };
    let people = services.people.people();
    let audience = audience(&people, turn);
    let reads_code = |reader| reader == Audience::Tech;
    let along = channel(turn).map(|channel| people.audience.of_channel(Some(channel)));
    let ports = LivePorts {
        services,
        policies,
        journal: Arc::clone(journal.get_or_init(|| Arc::new(Journal::new(tags)))),
        scribe: ReceiptRecorder::default(),
        asker: &turn.inbound.user,
        key: turn.inbound.key.to_string(),
        audience,
        shows_code: reads_code(audience) && along.is_none_or(reads_code),
        offer: services.offer(&people, &turn.inbound.user),
        // A contact's answer goes to another person, so it is not streamed; nor is an answer that is made again, since
        // it replaces what was shown of the first.
        listener: may_be_heard(turn)
            .then(|| services.front.listener(&turn.inbound, streamed(services, turn.turn)))
            .flatten(),
        turn: turn.turn,
        said,
    };
    let budget = ports.token_budget(turn.session, services.preambles.of(audience, ports.offer, true).tokens);
    if live.entries.is_empty() && live.dropped_turns == 0 {
        live = seed(&ports, turn, live, budget).await?;
    }
    let (new_message, retrieved, atoms) = match turn.absorbs() {
        Some(marker) => {
            let reply = attach::words(&services.messages, &turn.inbound.text, &attached);
            (Message::user(services.messages.pass_on(marker, &turn.inbound.user, &reply)), None, vec![])
        }
        None => {
            let (retrieved, found) = retrieve(services, &turn.inbound.text).await;
            let atoms = found.iter().map(|atom| atom.id.clone()).collect();
            ports.scribe.found(found);
            (Message::user(attach::words(&services.messages, &turn.inbound.text, &attached)), retrieved, atoms)
        }
    };
    let language = services.config.language;
    let case = match turn.case {
        Some(case) => services.store.case(case).await?,
        None => None,
    };
    let background = attach::background(&ports, turn, &attached, budget.limit).await;
    let taken = background.as_ref().map_or(0, |background| u64::from(tokens::message(background)));
    if let Some(background) = &background {
        ports.scribe.background(background.clone());
    }
    let case_shown = case.as_ref().map(|case| case::block(case, language));
    let shown = background.into_iter().chain(case_shown).chain(retrieved);
    let mut turns_dropped = 0;
    let archive = services.store.archive_of(turn.session, turn.archived);
    let mut window = Window::new(live, shown, new_message, turn.inbound.reply_to.channel.clone())
        .with_archive(Arc::new(archive))
        .speaking(language);
    if let (Place::Dm(_), Some(most)) = (&turn.inbound.key.place, services.config.history_turns)
        && let Some((edit, turns)) = window.keep_turns(most.get())
    {
        turns_dropped = turns;
        services.store.edit_live(turn.session, edit, vec![], services.now_ms()).await?;
    }
    let new_message = Arc::clone(&window.new_message().message);
    let room = attach::Room { limit: budget.limit, taken };
    if let Some(archived) = attach::archive(&ports, turn, &attached, &new_message, room).await? {
        note_capped(&ports.journal, &turn.inbound.user, Origin::Attachment, &archived.capped);
        window = window.with_attached(archived.shown);
        window.new_message_archived(archived.message);
    }
    // A provider requires tool definitions if the history contains tool calls.
    let with_tools = services.preambles.uses_tools() || window.has_tools();
    let (offer, asker, key) = (ports.offer, turn.inbound.user.clone(), ports.key.clone());
    let exchange = Exchange {
        session: turn.session,
        key,
        asker,
        preamble: services.preambles.of(audience, offer, with_tools),
        budget,
        below: None,
        is_collected: !merged.is_empty(),
        sizes: turn.sizes.clone().of(services.model.provider(), services.model.name()),
        trial: None,
        window,
        atoms: atoms.len(),
        tally: exchange::Tally { draft: Draft { turns_dropped, ..Draft::default() }, ..exchange::Tally::default() },
    };
    Ok(Work {
        turn,
        ports,
        exchange,
        tally: Tally { late: late::notice(services, turn, &merged), ..Tally::default() },
        merged,
        steered: vec![],
        attached,
        case,
        atoms,
        placeholder: Arc::clone(placed),
        verbosity: turn.verbosity,
        progress: None,
    })
}

/// Returns whether the answer may be streamed.
fn may_be_heard(turn: &OpenTurn) -> bool {
    turn.absorbs().is_none() && !turn.begun_with.stream
}

/// Returns what stores as which message the answer grows. Nobody waits for that: if it fails, other hosts and later runs
/// do not understand a reaction to that message, and leave it where it is if the question is parked.
fn streamed(services: &Services, turn: TurnId) -> OnStreamed {
    let store = services.store.clone();
    Box::new(move |message: &str| drop(store.streamed(turn, message)))
}

/// Returns the audience of the answer's reader: of the asker, if this is a contact's answer to
/// them.
pub(super) fn audience(people: &People, turn: &OpenTurn) -> Audience {
    let reader = turn.absorbs().and_then(|marker| marker.asker_user_id.as_deref());
    people.audience.pick(reader.unwrap_or(&turn.inbound.user), channel(turn))
}

/// Returns the channel that the answer goes to, where others read along.
fn channel(turn: &OpenTurn) -> Option<&str> {
    match &turn.inbound.key.place {
        Place::Channel(channel) => Some(channel.as_str()),
        Place::Dm(_) => None,
    }
}

/// Returns the live window of a new session, which opens with the knowledge base if there is one.
async fn seed(
    ports: &LivePorts<'_>,
    turn: &OpenTurn,
    live: store::Live,
    budget: TokenBudget,
) -> Result<store::Live, TurnError> {
    let Some(seeder) = ports.services.seeder.clone() else { return Ok(live) };
    let packed = offload(move || seeder.pack()).await;
    for problem in &packed.problems {
        tracing::warn!("the knowledge-base seed omits a document: {problem}");
    }
    let Some(pair) = packed.pair else { return Ok(live) };
    let text = Arc::from(pair[0].plain_text());
    let verdict = ports.cap(IncomingInput { kind: Origin::Seed, name: String::new(), text, limit: budget.limit }).await;
    // Stored with the seed: the next attempt would find that there.
    let (actor, tags) = (turn.inbound.user.clone(), ports.journal.tags().clone());
    let noted =
        move |before, after| TaggedEvent { event: capped(&actor, Origin::Seed, (before, after)), tags: tags.clone() };
    let cap = (verdict, ports.services.config.language);
    let entries = ports.services.store.seed(turn.session, pair, cap, noted, ports.now_ms()).await?;
    Ok(store::Live { entries, ..live })
}

/// Returns the block of atoms for a message, and which atoms it holds. If the knowledge base cannot be read,
/// the turn continues without it.
async fn retrieve(services: &Services, text: &str) -> (Option<Message>, Vec<FoundAtom>) {
    // Skips the blocking thread if the knowledge base is still empty.
    if services.library.is_empty_still() {
        return (None, vec![]);
    }
    let (text, now_ms) = (text.to_owned(), services.now_ms());
    let found = services.library.with(move |library| library.retrieve(&text, now_ms, MAX_RETRIEVED)).await;
    match found {
        Ok(found) => {
            let message = block::retrieval_message(found.iter().map(|stored| &stored.atom), services.config.language);
            (message, found.into_iter().map(|stored| as_found(&stored.atom)).collect())
        }
        Err(error) => {
            tracing::warn!(%error, "the turn continues without the knowledge base");
            (None, vec![])
        }
    }
}

fn as_found(atom: &Atom) -> FoundAtom {
    // An atom that cannot be rendered is identified by its body alone.
    let file = atom.render().unwrap_or_else(|_| atom.body.clone());
    FoundAtom { id: atom.meta.id.clone(), sha256: Digest::of(file) }
}
