//! Step 6: does what the model requests before it answers: queries the code with `mra`, or asks the people who
//! know. The model requests it by native tool calls, several at once, or by one fenced directive, which a model
//! that has tools may write, too.
//!
//! The result goes back to the model, and the model is asked again. Rounds and calls are bounded; when they are
//! used up, the model is told so and gives its final answer. A directive that is not carried out is never
//! dropped silently: the model is told, or the person sees it.

use futures_util::{StreamExt, TryStreamExt, stream};
use pmk_core::{Block, CapVerdict, Message, Origin, Role, cap, message::plain_text};
use pmk_models::{Answer, Stop};

use super::{TurnError, attach, records::note_capped, track, work::Work};
use crate::{
    directive::{
        self, Directive, DirectiveError,
        tools::{self, BadCall},
    },
    exchange::call::is_used_up,
    messages::Messages,
    mra::MraQuestion,
    preambles::Preambles,
    services::Services,
    store::EscalationUpdate,
};

mod bounds;
mod echo;
mod escalate;
mod mra;

pub(super) use bounds::{take_back, unsent};
use echo::echoes;
use escalate::EscalationOutcome;
pub(super) use escalate::outgoing as ask_people;

/// Rounds that a turn may take with tool calls, and with fenced directives, which specification 003 §6 intends
/// for one question at a time.
const MAX_TOOL_ROUNDS: u32 = 12;
const MAX_FENCED_ROUNDS: u32 = 3;

/// Consecutive rounds in which nothing the model requests can be done, such as calls of tools that were not offered.
/// The model is told each time what is wrong; after that, it is asked for a text answer only.
const MAX_IDLE_ROUNDS: u32 = 4;

/// Calls of a turn that are examined. The others are not even compared with what the model was given, because that
/// is slow for a large input.
const MAX_CALLS: u32 = 24;

/// Calls of one round that run concurrently.
const CALLS_AT_ONCE: usize = 4;

/// The result of acting on an answer.
pub(super) enum Acted {
    /// The text for the person.
    Done { text: String },
    /// Something was done; the model is to be asked again.
    Again,
}

/// The result of one call.
struct Done {
    text: String,
    is_error: bool,
    /// The repository in which `mra` found the text. Such a text is subject to a cap.
    found_in: Option<String>,
}

impl Done {
    fn refused(why: impl Into<String>) -> Self {
        Done { text: why.into(), is_error: true, found_in: None }
    }
}

pub(super) async fn act(services: &Services, work: &mut Work<'_>, answer: Answer) -> Result<Acted, TurnError> {
    let answer = track::take_out(work, answer).await;
    work.tally.is_used_up = is_used_up(&answer, work.exchange.budget.answer, services.model.most_given());
    // Calls are complete even if the answer was cut short after them.
    if answer.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. })) {
        tool_calls(services, work, answer).await
    } else {
        fenced(services, work, answer).await
    }
}

/// Runs a round of native calls, or ends with the answer's text if there were too many rounds.
async fn tool_calls(services: &Services, work: &mut Work<'_>, answer: Answer) -> Result<Acted, TurnError> {
    if work.tally.rounds > MAX_TOOL_ROUNDS || work.tally.idle_rounds >= MAX_IDLE_ROUNDS {
        tracing::warn!(session = %work.turn.inbound.key, rounds = work.tally.rounds, "the model keeps calling tools");
        return Ok(done(services, work, &text(&answer)));
    }
    let may_call = work.tally.rounds < MAX_TOOL_ROUNDS;
    let calls = answer.blocks.iter().filter_map(call).collect();
    let planned = plan(&services.messages, work, calls, may_call).await;
    let mut results = vec![];
    let mut asked = vec![];
    for (id, step) in planned {
        results.push((id, None));
        let at = results.len() - 1;
        match step {
            Step::Told(why) => results[at].1 = Some(Done::refused(why)),
            Step::Do(Directive::MraAsk { repo, question }) => {
                match mra::admit(services, work, &repo, &question).await? {
                    Ok(question) => asked.push((at, question)),
                    Err(why) => results[at].1 = Some(Done::refused(why)),
                }
            }
            Step::Do(Directive::Escalate { repo, question, reason }) => {
                let (done, _) = escalate::escalate(services, work, repo, question, reason).await?;
                results[at].1 = Some(done);
            }
        }
    }
    let is_refused = |(_, done): &(String, Option<Done>)| done.as_ref().is_some_and(|done| done.is_error);
    let is_idle = asked.is_empty() && results.iter().all(is_refused);
    let found = run_all(services, work, asked).await?;
    for (at, done) in found {
        results[at].1 = Some(done);
    }
    let results: Vec<(String, Done)> = results.into_iter().filter_map(|(id, done)| Some((id, done?))).collect();
    let mut found_in: Vec<Option<String>> = results.iter().map(|(_, done)| done.found_in.clone()).collect();
    let mut blocks: Vec<Block> = results
        .into_iter()
        .map(|(tool_use_id, Done { text, is_error, .. })| Block::ToolResult { tool_use_id, content: text, is_error })
        .collect();
    if let Some(directive) = directive::parse(&text(&answer)).directive {
        blocks.push(Block::Text { text: services.messages.told_beside_calls(directive.kind()) });
        found_in.push(None);
    }
    let result = Message { role: Role::User, origin: Origin::ToolResult, blocks };
    let said = Message { role: Role::Assistant, origin: Origin::Assistant, blocks: answer.blocks };
    keep(services, work, said, result, found_in).await?;
    note_round(work, is_idle);
    if !may_call || work.tally.idle_rounds >= MAX_IDLE_ROUNDS {
        // A model that still may call tools would go on calling, and its findings would be lost.
        work.exchange.preamble = services.preambles.of(work.ports.audience, work.ports.offer, false);
    }
    Ok(Acted::Again)
}

/// Counts consecutive idle rounds: rounds in which nothing could be done.
fn note_round(work: &mut Work<'_>, is_idle: bool) {
    work.tally.idle_rounds = if is_idle { work.tally.idle_rounds + 1 } else { 0 };
}

/// Returns a call's id and what it requests.
fn call(block: &Block) -> Option<(String, Result<Directive, BadCall>)> {
    let Block::ToolUse { id, name, input } = block else { return None };
    Some((id.clone(), tools::read_call(name, input)))
}

/// What is done with one call.
enum Step {
    Do(Directive),
    /// Not carried out; the model is told why.
    Told(String),
}

/// Decides for each call whether it is carried out.
async fn plan(
    messages: &Messages,
    work: &mut Work<'_>,
    mut calls: Vec<(String, Result<Directive, BadCall>)>,
    may_call: bool,
) -> Vec<(String, Step)> {
    let room = if may_call { MAX_CALLS.saturating_sub(work.tally.wanted) } else { 0 };
    let too_many = calls.split_off(calls.len().min(room as usize));
    work.tally.wanted += u32::try_from(calls.len()).unwrap_or(u32::MAX);
    let offer = work.ports.offer;
    let echoes = echoes(work, calls.iter().map(|(_, wanted)| wanted.as_ref().ok().cloned()).collect()).await;
    let looked_at = calls.into_iter().zip(echoes).map(|((id, wanted), is_echo)| {
        let step = match wanted {
            Ok(_) if is_echo => Step::Told(messages.told_echo()),
            Ok(directive) => Step::Do(directive),
            Err(bad) => Step::Told(messages.bad_call(&bad, offer)),
        };
        (id, step)
    });
    looked_at.chain(too_many.into_iter().map(|(id, _)| (id, Step::Told(messages.told_used_up())))).collect()
}

/// Runs the `mra` questions of one round, some at a time.
async fn run_all(
    services: &Services,
    work: &mut Work<'_>,
    asked: Vec<(usize, MraQuestion)>,
) -> Result<Vec<(usize, Done)>, TurnError> {
    work.tally.mra_asks += u32::try_from(asked.len()).unwrap_or(u32::MAX);
    if !asked.is_empty() {
        mra::show_progress(&services.front, services.progress, work);
    }
    let work = &*work;
    let run = |(at, question)| async move { Ok::<_, TurnError>((at, mra::ask(services, work, &question).await?)) };
    stream::iter(asked).map(run).buffer_unordered(CALLS_AT_ONCE).try_collect().await
}

/// Handles a text answer, with or without a fenced directive.
async fn fenced(services: &Services, work: &mut Work<'_>, answer: Answer) -> Result<Acted, TurnError> {
    let text = text(&answer);
    let parsed = directive::parse(&text);
    for flaw in &parsed.flaws {
        tracing::warn!(session = %work.turn.inbound.key, %flaw, "a directive was not carried out");
    }
    // An asker who waits for a contact's answer gets that answer if the model has no text of its
    // own.
    let shown = if work.turn.absorbs().is_some() && parsed.visible.is_empty() { "" } else { text.as_str() };
    let Some(wanted) = &parsed.directive else {
        let may_ask = work.tally.rounds < most_rounds(&services.preambles)
            && work.tally.idle_rounds < MAX_IDLE_ROUNDS
            && work.turn.absorbs().is_none();
        return match parsed.flaws.first() {
            // As with an invalid tool call, the model is told what is wrong.
            Some(flaw) if may_ask => {
                note_round(work, true);
                let told = mra::refused(&services.messages, "?", "?", &services.messages.flawed(&[*flaw]));
                tell(services, work, text, vec![(told, None)]).await
            }
            _ => Ok(done(services, work, shown)),
        };
    };
    work.tally.wanted += 1;
    if echoes(work, vec![Some(wanted.clone())]).await == [true] {
        return Ok(done(services, work, &text));
    }
    match wanted.clone() {
        Directive::Escalate { repo, question, reason } => {
            let (told, fate) = escalate::escalate(services, work, repo, question, reason).await?;
            let said = match fate {
                EscalationOutcome::Asked | EscalationOutcome::Proposed => {
                    said_of_escalation(&services.messages, work).unwrap_or_default()
                }
                EscalationOutcome::Waiting => services.messages.already_asked(),
                EscalationOutcome::Nobody => services.messages.nobody_to_ask(),
                // The text put before the answer says so.
                EscalationOutcome::Bounded => String::new(),
                EscalationOutcome::Answered => return Ok(done(services, work, shown)),
                EscalationOutcome::Refused if work.tally.rounds < most_rounds(&services.preambles) => {
                    return tell(services, work, text, vec![(told.text, None)]).await;
                }
                EscalationOutcome::Refused => return Ok(done(services, work, &text)),
            };
            let words = [parsed.remaining.as_str(), said.as_str()];
            let words: Vec<&str> = words.into_iter().filter(|words| !words.is_empty()).collect();
            Ok(done(services, work, &words.join("\n\n")))
        }
        Directive::MraAsk { repo, question } => ask_mra(services, work, (repo, question), text, &parsed.flaws).await,
    }
}

/// Returns how many rounds a turn may take with fenced directives. A model with tools gets as many as with
/// calls, because it may have used some for calls already.
fn most_rounds(preambles: &Preambles) -> u32 {
    if preambles.uses_tools() { MAX_TOOL_ROUNDS } else { MAX_FENCED_ROUNDS }
}

/// Runs a round with one `mra` question written as a fenced directive.
async fn ask_mra(
    services: &Services,
    work: &mut Work<'_>,
    (repo, question): (String, String),
    text: String,
    flaws: &[DirectiveError],
) -> Result<Acted, TurnError> {
    let most = most_rounds(&services.preambles);
    if work.tally.rounds > most {
        return Ok(done(services, work, &text));
    }
    let mut told = Vec::new();
    if !flaws.is_empty() {
        told.push((services.messages.flawed_too(flaws), None));
    }
    if work.tally.rounds == most || work.tally.wanted > MAX_CALLS {
        told.push((mra::refused(&services.messages, &repo, &question, &services.messages.told_used_up()), None));
        if services.preambles.uses_tools() {
            work.exchange.preamble = services.preambles.of(work.ports.audience, work.ports.offer, false);
        }
    } else {
        match mra::admit(services, work, &repo, &question).await? {
            Ok(question) => {
                note_round(work, false);
                let found = run_all(services, work, vec![(0, question)]).await?.pop();
                told.extend(found.map(|(_, done)| (done.text, done.found_in)));
            }
            Err(why) => {
                note_round(work, true);
                told.push((why, None));
            }
        }
    }
    tell(services, work, text, told).await
}

/// Tells the model the results of its directive, each with the repository in which `mra` found it, if it did; the
/// model is asked again.
async fn tell(
    services: &Services,
    work: &mut Work<'_>,
    said: String,
    told: Vec<(String, Option<String>)>,
) -> Result<Acted, TurnError> {
    let (texts, found_in): (Vec<String>, Vec<Option<String>>) = told.into_iter().unzip();
    let blocks = texts.into_iter().map(|text| Block::Text { text }).collect();
    let result = Message { role: Role::User, origin: Origin::MraResult, blocks };
    keep(services, work, Message::assistant(said), result, found_in).await?;
    Ok(Acted::Again)
}

/// Adds a round to the window and the archive. The window holds the result shortened by the policy's cap;
/// the archive holds it whole, even if the turn fails.
async fn keep(
    services: &Services,
    work: &mut Work<'_>,
    said: Message,
    result: Message,
    found_in: Vec<Option<String>>,
) -> Result<(), TurnError> {
    let contents: Vec<&str> = result.blocks.iter().filter_map(Block::content).collect();
    let mut verdicts = Vec::with_capacity(contents.len());
    for (content, repo) in contents.into_iter().zip(found_in) {
        verdicts.push(match repo {
            Some(repo) => mra::cap(work, repo, content).await,
            None => CapVerdict::Keep,
        });
    }
    let mut messages = vec![said.clone(), result.clone()];
    let is_new = work.exchange.window.new_message().id == 0;
    if is_new {
        messages.insert(0, (*work.exchange.window.new_message().message).clone());
    }
    let mut ids =
        services.store.archive(work.turn.session, work.turn.turn, &messages, services.now_ms()).await?.into_iter();
    let language = services.config.language;
    let mut next = || ids.next().expect("every archived message has an id");
    if is_new {
        work.exchange.window.new_message_archived(next());
    }
    let (said, _) = cap::message(next(), said, "", &[], language);
    let (result, sizes) = cap::message(next(), result, Origin::MraResult.name(), &verdicts, language);
    note_capped(&work.ports.journal, &work.turn.inbound.user, Origin::MraResult, &sizes);
    work.exchange.window.push(said);
    work.exchange.window.push(result);
    work.tally.rounds += 1;
    work.exchange.tally.phase = pmk_policy::Phase::Synthesise;
    Ok(())
}

/// Returns the final text of a turn. If the model says nothing, a text is substituted: the contact's own words, and what
/// came with them, where those are to be passed on.
fn done(services: &Services, work: &mut Work<'_>, words: &str) -> Acted {
    let messages = &*services.messages;
    let text = match words.trim() {
        "" if !work.tally.bounded.is_empty() => std::mem::take(&mut work.tally.bounded).trim().to_owned(),
        "" if let Some(said) = said_of_escalation(messages, work) => said,
        "" if work.turn.absorbs().is_some() => attach::told(&services.config, &work.turn.inbound, &work.attached).text,
        "" if !work.tally.notes.is_empty() => messages.case_noted_alone(),
        "" if work.tally.is_used_up => messages.out_of_words(),
        "" => messages.silent(),
        words => words.to_owned(),
    };
    Acted::Done { text }
}

/// Returns what the asker is told of the turn's question to the contacts, if there is one.
pub(super) fn said_of_escalation(messages: &Messages, work: &Work<'_>) -> Option<String> {
    match &work.tally.escalation.as_ref()?.0 {
        EscalationUpdate::Proposed(_) => Some(messages.proposed()),
        EscalationUpdate::Asked(_, marker) => Some(messages.escalated(marker.apart.is_some())),
        _ => None,
    }
}

/// Returns the answer as text. A non-empty answer that was cut short ends with "…".
fn text(answer: &Answer) -> String {
    let texts: Vec<Block> = answer.blocks.iter().filter(|block| matches!(block, Block::Text { .. })).cloned().collect();
    let mut text = plain_text(&texts);
    if matches!(answer.stop, Stop::MaxTokens | Stop::WindowFull) && !text.trim().is_empty() {
        text.push_str("\n…");
    }
    text
}
