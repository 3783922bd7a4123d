//! Connects a turn's exchange with the running gateway: its policies, model, store, ledger and admins.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, MutexGuard},
};

use async_trait::async_trait;
use pmk_core::{ImageId, Transcript};
use pmk_models::{Answer, Images, Listener, Meter, Model, ModelError, Request, Usage};
use pmk_policy::{IncomingInput, OverflowInput, PruneDecision, PruneInput, Rung};
use tokio::sync::SemaphorePermit;

use super::{journal::Journal, receipt::ReceiptRecorder, records::note_records, summarise::summarise};
use crate::{
    access::audience::Audience,
    calibration::{Calibration, TokenBudget},
    directive::AvailableDirectives,
    dispatch::AnswerSoFar,
    exchange::{
        AdminAlert, Ports, Sent, SummaryInput, Tally, ToolSupport,
        budget::DecidedPlan,
        window::{Fold, Window},
    },
    ids::{SessionId, TurnId},
    ledger::{Event, TaggedEvent},
    policies::{TurnPolicies, experiment::shadow::Acted},
    preambles::Preamble,
    services::Services,
    store::{LiveEntry, PreviewKind, StoreError, WindowEdit},
};

/// The ports of one turn.
pub(super) struct LivePorts<'a> {
    pub services: &'a Services,
    /// The policies that decide, until the turn's end.
    pub policies: TurnPolicies,
    pub journal: Arc<Journal>,
    /// Records what the turn's requests are made from.
    pub scribe: ReceiptRecorder,
    /// Who asks, and in which conversation.
    pub asker: &'a str,
    pub key: String,
    pub audience: Audience,
    /// Whether all who see what is shown beside the answer read code.
    pub shows_code: bool,
    pub offer: AvailableDirectives,
    /// Receives the answer while it is made.
    pub listener: Option<Arc<dyn Listener>>,
    pub turn: TurnId,
    /// The model's answer so far.
    pub said: AnswerSoFar,
}

/// Keeps the model's answer while it is streamed, and passes it to the listener.
struct Ear<'a> {
    said: &'a AnswerSoFar,
    listener: Option<&'a dyn Listener>,
}

impl Listener for Ear<'_> {
    fn hear(&self, text: &str) {
        // Each call brings the whole text so far.
        self.said.set(text);
        if let Some(listener) = self.listener {
            listener.hear(text);
        }
    }
}

/// A call to the model. Its cost is noted when it ends, even if people have called it off.
struct Call<'a, 'p> {
    ports: &'a LivePorts<'p>,
    meter: Meter,
    spent: &'a mut Usage,
}

impl Drop for Call<'_, '_> {
    fn drop(&mut self) {
        let LivePorts { services, journal, asker, .. } = self.ports;
        note_usage(&*services.model, journal, asker, self.meter.total());
        self.spent.add(self.meter.total());
    }
}

impl LivePorts<'_> {
    /// Returns events that are stored with a write of their own.
    fn of_turn(&self, told: Vec<Event>) -> Vec<TaggedEvent> {
        told.into_iter().map(|event| self.journal.of_turn(event)).collect()
    }

    /// Returns the request with the bytes of the newest images that it names, as many as a request has room for, and
    /// the memory that is reserved for them until the model has answered. If they cannot be read, the request goes
    /// without them.
    async fn with_images<'r>(&self, request: &'r Request) -> (Cow<'r, Request>, Option<SemaphorePermit<'_>>) {
        let named = request.messages.iter().flat_map(|message| message.images());
        let named: BTreeSet<_> = named.map(|image| image.sha256.clone()).collect();
        if named.is_empty() || !self.shows_images() {
            return (Cow::Borrowed(request), None);
        }
        match self.images(request, named).await {
            Ok((images, room)) => (Cow::Owned(Request { images, ..request.clone() }), room),
            Err(error) => {
                tracing::warn!(session = self.key, %error, "the model is asked without the images");
                (Cow::Borrowed(request), None)
            }
        }
    }

    async fn images(
        &self,
        request: &Request,
        named: BTreeSet<ImageId>,
    ) -> Result<(Images, Option<SemaphorePermit<'_>>), StoreError> {
        let Services { store, images_sent, .. } = self.services;
        let sizes = store.image_sizes(named.into_iter().collect()).await?;
        let newest = Images::newest(&request.messages, &sizes);
        let room = images_sent.take(newest.iter().filter_map(|id| sizes.get(id)).sum()).await;
        let images = store.images(newest).await?;
        Ok((images.into_iter().map(|image| (image.sha256, image.bytes)).collect(), room))
    }

    /// Returns how much of a content the window keeps.
    pub async fn cap(&self, incoming: IncomingInput) -> pmk_core::CapVerdict {
        let decision = self.policies.consult(move |stack| stack.cap(incoming)).await;
        note_records(self.services, &self.journal, self.asker, &decision.records);
        decision.verdict
    }
}

#[async_trait]
impl Ports for LivePorts<'_> {
    fn now_ms(&self) -> i64 {
        self.services.now_ms()
    }

    fn calibration(&self) -> MutexGuard<'_, Calibration> {
        self.services.calibrator.known()
    }

    fn token_budget(&self, session: SessionId, preamble_tokens: u64) -> TokenBudget {
        self.services.calibrator.token_budget(session, preamble_tokens, self.now_ms())
    }

    fn seed_may_go(&self) -> bool {
        self.policies.stack().seed_may_go()
    }

    async fn prune(&self, transcript: &Arc<Transcript>, input: PruneInput, is_first: bool) -> PruneDecision {
        let asked = Arc::clone(transcript);
        let decision = self.policies.consult(move |stack| stack.prune(&asked, input)).await;
        note_records(self.services, &self.journal, self.asker, &decision.records);
        if is_first {
            self.services.experiment.shadow(|| Acted {
                session: self.key.clone(),
                asker: self.asker.to_owned(),
                tags: self.journal.tags().clone(),
                transcript: Arc::clone(transcript),
                input,
                applied: decision.applied.clone(),
            });
        }
        decision
    }

    async fn choose_rung(&self, input: OverflowInput) -> Rung {
        let decision = self.policies.consult(move |stack| stack.recover(input)).await;
        note_records(self.services, &self.journal, self.asker, &decision.records);
        decision.rung
    }

    async fn summarize(&self, transcript: &Arc<Transcript>, most_tokens: u32) -> String {
        let asked = Arc::clone(transcript);
        let decision = self.policies.consult(move |stack| stack.summarize(&asked, most_tokens)).await;
        note_records(self.services, &self.journal, self.asker, &decision.records);
        decision.text
    }

    async fn ask(&self, request: &Request, _estimate: u64, spent: &mut Usage) -> Result<Answer, ModelError> {
        let (request, _room) = self.with_images(request).await;
        let call = Call { ports: self, meter: Meter::default(), spent };
        self.services.model.ask(&request, &call.meter).await
    }

    async fn answer(&self, request: &Request, _estimate: u64, tally: &mut Tally) -> Result<Answer, ModelError> {
        // If the model may still look something up, its first text may not be the answer.
        let is_final = request.tools.is_empty() && !self.offer.is_any();
        let mut listener = self.listener.as_deref().filter(|_| is_final);
        if listener.is_some()
            && let Err(error) = self.services.store.may_show(self.turn, PreviewKind::Stream).await
        {
            tracing::warn!(session = self.key, %error, "the answer will be shown once it is complete");
            listener = None;
        }
        let ear = Ear { said: &self.said, listener };
        let (request, _room) = self.with_images(request).await;
        let named = request.messages.iter().flat_map(|message| message.images());
        let left_out = named.filter(|image| !request.images.contains(&image.sha256));
        tally.of_images_left_out = left_out.map(|image| image.tokens()).sum();
        let call = Call { ports: self, meter: Meter::default(), spent: &mut tally.usage };
        self.services.model.ask_aloud(&request, &ear, &call.meter).await
    }

    async fn write_summary(&self, input: SummaryInput<'_>, spent: &mut Usage) -> Result<String, ModelError> {
        summarise(self, input, spent).await
    }

    fn shows_images(&self) -> bool {
        self.services.model.has_images()
    }

    fn most_given(&self) -> Option<u32> {
        self.services.model.most_given()
    }

    fn tools(&self) -> Option<&dyn ToolSupport> {
        self.services.model.has_tools().then_some(self)
    }

    fn planned(&self, window: &Window, plan: Option<&DecidedPlan>) {
        self.scribe.planned(self.now_ms(), window, plan, &self.calibration());
    }

    fn sent(&self, sent: Sent<'_>) {
        self.scribe.sent(&sent, self.policies.stack(), self.seed_may_go());
    }

    async fn edit_window(&self, session: SessionId, edit: WindowEdit, told: Vec<Event>) -> Result<(), StoreError> {
        self.services.store.edit_live(session, edit, self.of_turn(told), self.now_ms()).await
    }

    async fn fold(
        &self,
        session: SessionId,
        window: &Window,
        fold: &Fold,
        told: Vec<Event>,
    ) -> Result<Option<LiveEntry>, StoreError> {
        self.services.store.fold(session, window.fold_edit(fold), self.of_turn(told), self.now_ms()).await
    }

    fn note(&self, event: Event) {
        self.journal.note(event);
    }

    fn alarm(&self, alarm: AdminAlert) {
        let Services { messages, admins, .. } = self.services;
        admins.tell(match alarm {
            AdminAlert::GaveUp => messages.recovery_failed(&self.key),
            AdminAlert::Rotated { left_behind } => messages.rotated_for_admins(&self.key, left_behind),
        });
    }
}

#[async_trait]
impl ToolSupport for LivePorts<'_> {
    fn takes_tools(&self) -> Option<bool> {
        self.services.preambles.takes_tools()
    }

    async fn were_taken(&self) {
        self.services.preambles.tools_were_taken().await;
    }

    async fn were_refused(&self, how: &'static str, reason: &str) {
        self.services.preambles.tools_were_refused(how, reason).await;
    }

    fn preamble_as_text(&self) -> Arc<Preamble> {
        self.services.preambles.as_text(self.audience, self.offer)
    }
}

/// Notes what the provider counted for one call, whatever became of it.
pub(super) fn note_usage(model: &dyn Model, journal: &Journal, actor: &str, usage: Usage) {
    // A server may count answers, and no prompts.
    if usage == Usage::default() {
        return;
    }
    journal.note(Event::TokenUsage {
        actor: actor.to_owned(),
        provider: model.provider().to_owned(),
        model: model.name().to_owned(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_creation_tokens: usage.cache_creation_tokens,
    });
}
