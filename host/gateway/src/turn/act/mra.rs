//! Questions to `mra` about a repository.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use pmk_core::{CapVerdict, Origin, text::head};
use pmk_policy::IncomingInput;
use tokio_util::sync::CancellationToken;

use super::{
    super::{TurnError, journal::Journal, placeholder::Placeholder, work::Work},
    Done, bounds,
};
use crate::{
    chat::MessageBody,
    directive::Kind,
    front::{
        self, Delivery, Front, FrontError,
        progress::{self, Sent},
    },
    ledger::Event,
    messages::Messages,
    mra::{AskEnded, Failure, MraQuestion, Outcome},
    services::Services,
    store::Verbosity,
};

/// The most characters of a result that people are shown.
const MAX_SHOWN_CHARS: usize = 2_500;

/// Returns the question to put to `mra`, or the text for the model that says why it is not put. Only a question that
/// will be asked is counted; if the attempt ends before, that is [taken back](bounds::take_back).
pub(super) async fn admit(
    services: &Services,
    work: &mut Work<'_>,
    repo: &str,
    question: &str,
) -> Result<Result<MraQuestion, String>, TurnError> {
    let told = |why: &str| Ok(Err(refused(&services.messages, repo, question, why)));
    if !work.ports.offer.mra {
        return told(&services.messages.told_no_code());
    }
    if let Some(why) = bounds::not_listed(&services.messages, &services.config, repo).await {
        return told(&why);
    }
    let asked = match MraQuestion::new(repo, question) {
        Ok(asked) => asked,
        Err(bad) => {
            tracing::warn!(session = %work.turn.inbound.key, %bad, "`mra` is not asked");
            return told(&services.messages.bad_question(&bad));
        }
    };
    match bounds::count(services, work, Kind::MraAsk).await? {
        Some(why) => told(&why),
        None => {
            *work.tally.mra_not_put.get_mut() += 1;
            Ok(Ok(asked))
        }
    }
}

/// A question that is being asked. Its end is noted when it ends, even if people have called it off.
struct Asking<'a> {
    journal: &'a Journal,
    actor: &'a str,
    repo: &'a str,
    stop: &'a CancellationToken,
    not_put: &'a AtomicUsize,
    begun: Instant,
    ended: Option<Event>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let ended = match self.ended.take() {
            Some(ended) => ended,
            // The next start asks it again, and counts and notes it then.
            None if self.stop.is_cancelled() => {
                self.not_put.fetch_add(1, Ordering::Relaxed);
                return;
            }
            None => {
                let duration_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                ended(self.actor, AskEnded { repo: self.repo, ok: false, retried: false, duration_ms })
            }
        };
        self.journal.note(ended);
    }
}

fn ended(actor: &str, AskEnded { repo, ok, retried, duration_ms }: AskEnded<'_>) -> Event {
    Event::MraAskEnd { actor: actor.to_owned(), repo: repo.to_owned(), ok, retried, duration_ms }
}

/// Asks one question. An error is passed to the model as it is, so that the person learns of it. A question that was
/// ended because the gateway stops is asked again by the next start.
pub(super) async fn ask(services: &Services, work: &Work<'_>, question: &MraQuestion) -> Result<Done, TurnError> {
    let show = |line: String| {
        if let Some(progress) = &work.progress {
            progress.line(line);
        }
    };
    show(services.messages.asking_mra(question.repo()));
    // Who does not read code sees the number of steps.
    let (is_raw, mut steps) = (work.ports.shows_code, 0);
    let on_line = |line: &str| {
        steps += 1;
        show(if is_raw { line.to_owned() } else { services.messages.mra_goes_on(question.repo(), steps) });
    };
    work.tally.mra_not_put.fetch_sub(1, Ordering::Relaxed);
    let mut asking = Asking {
        journal: &work.ports.journal,
        actor: &work.turn.inbound.user,
        repo: question.repo(),
        stop: &services.stop,
        not_put: &work.tally.mra_not_put,
        begun: Instant::now(),
        ended: None,
    };
    let outcome = services.mra.ask(question, &services.stop, on_line).await;
    if matches!(outcome.result, Err(Failure::Cancelled)) {
        return Err(TurnError::Stopping);
    }
    asking.ended = Some(ended(asking.actor, outcome.event()));
    drop(asking);
    let ok = outcome.result.is_ok();
    show_call(&*services.front, &services.messages, work, &outcome).await;
    let found_in = ok.then(|| question.repo().to_owned());
    Ok(Done { text: services.messages.mra_outcome(&outcome), is_error: !ok, found_in })
}

/// Shows a call to people whose verbosity setting asks for it. If this fails, the turn goes on.
async fn show_call(front: &dyn Front, messages: &Messages, work: &Work<'_>, outcome: &Outcome) {
    let inbound = &work.turn.inbound;
    let seconds = format!("{:.1}", outcome.duration.as_secs_f64());
    let mut text = messages.mra_asked(outcome.question.repo(), outcome.result.is_ok(), &seconds);
    match work.verbosity {
        Verbosity::Off | Verbosity::Progress => return,
        // The result may contain paths and code.
        Verbosity::Full if work.ports.shows_code => {
            // A fence in the result must not end ours.
            let shown = head(&messages.mra_outcome(outcome), MAX_SHOWN_CHARS).replace("```", "` ` `");
            text = format!("{text}\n```\n{shown}\n```");
        }
        Verbosity::Summary | Verbosity::Full => {}
    }
    let speech = MessageBody { text, pings: vec![] };
    let shown = Delivery::notice(&inbound.event_id, &inbound.reply_to, &speech);
    if let Err(error) = front.deliver(shown).await {
        tracing::debug!(%error, "a tool call was not shown");
    }
}

/// Returns what the model is told about a question that was not asked.
pub(super) fn refused(messages: &Messages, repo: &str, question: &str, why: &str) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (repo, question) = (one_line(repo), one_line(question));
    let (repo, question) = (head(&repo, 100), head(&question, 200));
    messages.mra_refused(&format!("mra ask {repo} {question}"), why)
}

/// Starts to show progress on the placeholder, unless the verbosity is off.
pub(super) fn show_progress(front: &Arc<dyn Front>, settings: progress::Settings, work: &mut Work<'_>) {
    if work.progress.is_some() || work.verbosity == Verbosity::Off {
        return;
    }
    let (front, placed) = (Arc::clone(front), Arc::clone(&work.placeholder));
    let inbound = &work.turn.inbound;
    let shown = front::Progress {
        event_id: inbound.event_id.clone(),
        reply_to: inbound.reply_to.clone(),
        placeholder: None,
        text: String::new(),
    };
    work.progress = Some(settings.begin(move |text| {
        let front = Arc::clone(&front);
        let placeholder = placed.get().and_then(Placeholder::known);
        let progress = front::Progress { text, placeholder, ..shown.clone() };
        async move {
            match front.progress(&progress).await {
                Ok(()) => Sent::Shown,
                Err(FrontError::Transient { retry_after: Some(retry_after), .. }) => Sent::RateLimited { retry_after },
                Err(error) => {
                    tracing::debug!(%error, "progress was not shown");
                    Sent::Failed
                }
            }
        }
    }));
}

/// Returns how much of a result about this repository the window keeps.
pub(super) async fn cap(work: &Work<'_>, repo: String, content: &str) -> CapVerdict {
    let limit = work.exchange.budget.limit;
    let incoming = IncomingInput { kind: Origin::MraResult, name: repo, text: Arc::from(content), limit };
    work.ports.cap(incoming).await
}
