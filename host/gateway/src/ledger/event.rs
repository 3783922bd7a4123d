//! The events of the ledger, in pmk's format (specifications 000 §3 and 003 §12). They never hold the text of a
//! message.

use pmk_policy::{Identity, Record};
use serde::Serialize;

use super::{LoadedArm, PolicyAsked};
use crate::{
    access::authorization::{Action, Reason},
    escalation::Marker,
};

/// An event.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Event {
    /// A turn is over: a question was answered, or its asker was told why not.
    #[serde(rename = "turn.processed")]
    TurnProcessed {
        actor: String,
        session: String,
        /// As it was when the turn began; empty where the turn was not an answer of the model.
        audience: String,
        /// What such a turn was: `stop` where people stopped the answer, or else what was done with the message.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<String>,
        channel_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread_ts: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reply_ts: Option<String>,
        had_mra_ask: bool,
        atoms_injected: usize,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        atom_ids: Vec<String>,
        /// The token estimate of the messages that were sent.
        tokens_sent: u64,
        /// Rungs of recovery that were used.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<String>,
        /// Why the model gave no answer: the class of the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        unanswered: Option<String>,
        /// From the arrival of the question to the delivery of the reply.
        latency_ms: u64,
    },
    /// The program panicked within a turn, which is retried once and then parked.
    #[serde(rename = "turn.panicked")]
    TurnPanicked {
        session: String,
        /// File and line.
        place: String,
    },
    /// A message cannot be answered and waits for `sessions retry`.
    #[serde(rename = "turn.parked")]
    TurnParked { session: String, why: String },
    /// Parked messages are reopened, of one conversation or of all.
    #[serde(rename = "turn.retried")]
    TurnRetried {
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        messages: usize,
    },
    /// This person stopped a question: it gets no answer any more.
    #[serde(rename = "turn.stopped")]
    TurnStopped { actor: String, session: String },
    /// This person had a question asked once more.
    #[serde(rename = "turn.again")]
    TurnAgain { actor: String, session: String },
    /// A person has edited a message.
    #[serde(rename = "message.edited")]
    MessageEdited {
        actor: String,
        session: String,
        /// Whether it had no answer yet, and the edited text is asked.
        waiting: bool,
    },
    /// A message was deleted, and its text erased from the conversation.
    #[serde(rename = "message.deleted")]
    MessageDeleted {
        session: String,
        /// `question`, `answer`, or `file` if only a file of a question was deleted.
        what: &'static str,
        /// Whether it had no answer yet: then it gets none, or is asked without the file.
        waiting: bool,
        /// Summaries that may have been made from it and may still contain it.
        summaries: u32,
    },
    /// The sweep found open messages that nobody worked on: a bug of the program.
    #[serde(rename = "queue.swept")]
    QueueSwept { messages: u64 },
    /// `mra` was asked.
    #[serde(rename = "mra-ask.end")]
    MraAskEnd { actor: String, repo: String, ok: bool, retried: bool, duration_ms: u64 },
    /// Contacts were asked.
    #[serde(rename = "escalate.triggered")]
    EscalateTriggered {
        channel_id: String,
        thread_ts: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
    },
    /// A contact's answer was accepted.
    #[serde(rename = "escalate.absorbed")]
    EscalateAbsorbed {
        channel_id: String,
        thread_ts: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        atom_id: Option<String>,
    },
    /// Somebody wrote while an answer was awaited; `word` is how the message was interpreted.
    #[serde(rename = "escalate.heard")]
    EscalateHeard { actor: String, channel_id: String, thread_ts: String, word: &'static str },
    /// This person cancelled the escalation: its answer is no longer waited for.
    #[serde(rename = "escalate.cancelled")]
    EscalateCancelled { actor: String, channel_id: String, thread_ts: String },
    /// An atom reads like instructions to a model: it is not approved by time.
    #[serde(rename = "atom.flagged")]
    AtomFlagged { actor: String, atom_id: String },
    /// The contributor of an atom, or an admin, approved it.
    #[serde(rename = "atom.approved")]
    AtomApproved { actor: String, atom_id: String },
    /// The contributor of an atom, or an admin, rejected it.
    #[serde(rename = "atom.rejected")]
    AtomRejected { actor: String, atom_id: String },
    /// A large content is only partly in the window.
    #[serde(rename = "message.capped")]
    MessageCapped { actor: String, kind: &'static str, original_chars: usize, capped_chars: usize },
    /// The token usage that the provider counted.
    #[serde(rename = "token.usage")]
    TokenUsage {
        actor: String,
        provider: String,
        model: String,
        input_tokens: u64,
        output_tokens: u64,
        cache_read_tokens: u64,
        cache_creation_tokens: u64,
    },
    /// The model refused the prompt as too long.
    #[serde(rename = "context.exceeded")]
    ContextExceeded {
        actor: String,
        session_tokens_before: u64,
        retrieval_atoms: u32,
        phase: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        observed_tokens: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        allowed_tokens: Option<u64>,
    },
    /// The model has summarized a part of the conversation.
    #[serde(rename = "context.compacted")]
    ContextCompacted {
        actor: String,
        session: String,
        turns: u32,
        tokens_before: u64,
        tokens_after: u64,
        /// Whether the model had refused the prompt; otherwise a policy asked for it before the call.
        recovering: bool,
    },
    /// The conversation continues in a fresh window.
    #[serde(rename = "context.rotated")]
    ContextRotated {
        actor: String,
        session: String,
        has_summary: bool,
        summary_length: usize,
        entries_left_behind: usize,
    },
    /// Every rung was tried, and the prompt was still too long.
    #[serde(rename = "context.recovery_failed")]
    ContextRecoveryFailed { actor: String, session: String, rungs: Vec<String> },
    /// No rung was left, and the request was planned again under a smaller limit.
    #[serde(rename = "context.replanned")]
    ContextReplanned { actor: String, session: String, limit: u64, tokens_before: u64, tokens_after: u64 },
    /// The model failed to answer for no known reason, and a smaller request was tried.
    #[serde(rename = "context.suspected")]
    ContextSuspected {
        actor: String,
        session: String,
        /// `unexplained`: it refused the request; `empty`: its answer was empty; `failing`: it failed turn after
        /// turn.
        because: &'static str,
        tokens: u64,
        /// Whether the smaller request was answered: then the size was the cause.
        helped: bool,
    },
    /// The model refused the prompt as too long: the name in specification 001 for `context.exceeded`.
    #[serde(rename = "queue.context_overflow.detected")]
    OverflowDetected { actor: String, session: String },
    /// After such a refusal, a part of the conversation was summarized.
    #[serde(rename = "queue.context_overflow.compacted")]
    OverflowCompacted { actor: String, session: String, turns: u32 },
    /// After such a refusal, the conversation continues in a fresh session.
    #[serde(rename = "queue.context_overflow.new_session")]
    OverflowNewSession { actor: String, session: String, has_summary: bool, summary_length: usize },
    /// After such a refusal, no recovery helped.
    #[serde(rename = "queue.context_overflow.recovery_failed")]
    OverflowRecoveryFailed { actor: String, session: String },
    /// A summary was made without the model, and the fresh session has it.
    #[serde(rename = "daemon.context_overflow.recovery")]
    OverflowRecovery { actor: String, session: String, entries_left_behind: usize },
    /// A plan was carried out that drops or replaces messages of the window. What recovery removes has other
    /// events.
    #[serde(rename = "context.pruned")]
    ContextPruned {
        actor: String,
        session: String,
        turns_dropped: u32,
        messages_replaced: usize,
        tokens_before: u64,
        tokens_after: u64,
        /// The policy whose plan it was, and the digest of its component; `floor` has none.
        decided_by: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        decided_by_sha256: Option<String>,
    },
    /// The trim rung was used.
    #[serde(rename = "context.force-pruned")]
    ContextForcePruned { actor: String, dropped_pairs: u32, tokens_after: u64 },
    /// The model's server supports no tools: from now on the model is asked to write fenced directives.
    #[serde(rename = "model.no-tools")]
    ModelNoTools {
        provider: String,
        model: String,
        /// `said` if the server stated it, or `tried`.
        how: &'static str,
    },
    /// A policy failed or broke a rule, and another one decided.
    #[serde(rename = "policy.failed")]
    PolicyFailed {
        actor: String,
        #[serde(flatten)]
        asked: PolicyAsked,
        reason: String,
    },
    /// A policy failed so often that it is not asked for a while.
    #[serde(rename = "policy.suspended")]
    PolicySuspended {
        #[serde(flatten)]
        asked: PolicyAsked,
        failures: u32,
        /// How many decisions are made without it before it is tried again.
        pause: u32,
        reason: String,
    },
    /// A suspended policy succeeded when it was tried again.
    #[serde(rename = "policy.resumed")]
    PolicyResumed {
        #[serde(flatten)]
        asked: PolicyAsked,
    },
    /// A policy has read texts of messages.
    #[serde(rename = "policy.read")]
    PolicyRead {
        actor: String,
        #[serde(flatten)]
        asked: PolicyAsked,
        /// The shadow arm that it is of; none if it acts.
        #[serde(skip_serializing_if = "Option::is_none")]
        shadow: Option<String>,
        /// The texts of the request as it would be sent if nothing were done, or the one text of a cap.
        texts: usize,
        chars: u64,
        archive_searches: u32,
        archived_texts: u32,
    },
    /// Somebody attempted something that they are not allowed to do: it had no effect.
    #[serde(rename = "access.refused")]
    AccessRefused {
        actor: String,
        action: Action,
        #[serde(skip_serializing_if = "Option::is_none")]
        channel_id: Option<String>,
        reason: Reason,
    },
    /// The model repeated a directive that somebody else wrote; it was not carried out.
    #[serde(rename = "directive.echoed")]
    DirectiveEchoed { actor: String, session: String, kind: &'static str },
    /// The hourly limit on asking others is reached: they are not asked once more.
    #[serde(rename = "directive.bounded")]
    DirectiveBounded {
        actor: String,
        session: String,
        kind: &'static str,
        /// Whose limit it is: `person` or `conversation`.
        of: &'static str,
        most: u32,
    },
    /// Apps have asked so often within an hour that they are not answered: two that answer each other would go on for
    /// ever.
    #[serde(rename = "app.bounded")]
    AppBounded {
        actor: String,
        session: String,
        /// Whose limit it is: `person`, which is the app, or `conversation`.
        of: &'static str,
        most: u32,
    },
    /// An escalation is first shown to its asker for confirmation.
    #[serde(rename = "escalate.proposed")]
    EscalateProposed { actor: String, channel_id: String, thread_ts: String },
    /// The asker rejected it, or did not answer for a day.
    #[serde(rename = "escalate.dropped")]
    EscalateDropped { actor: String, channel_id: String },
    /// A channel has a case from now on.
    #[serde(rename = "case.opened")]
    CaseOpened { actor: String, channel_id: String, case_id: i64 },
    /// An answer has added the model's notes to a case.
    #[serde(rename = "case.updated")]
    CaseUpdated { actor: String, session: String, case_id: i64, hypotheses: usize, questions: usize },
    /// A channel's case was closed.
    #[serde(rename = "case.closed")]
    CaseClosed { actor: String, channel_id: String, case_id: i64, messages: u64 },
    /// Other policies decide from the next turn on. Layers, the top one first.
    #[serde(rename = "policy.swapped")]
    PolicySwapped { by: &'static str, before: Vec<Identity>, serving: Vec<Identity> },
    /// The policies that were to decide could not be loaded.
    #[serde(rename = "policy.refused")]
    PolicyRefused { by: &'static str, files: Vec<String>, reason: String },
    /// The arms of an experiment are loaded, and conversations are assigned to them.
    #[serde(rename = "experiment.on")]
    ExperimentOn { experiment: String, control: String, arms: Vec<LoadedArm> },
    /// An experiment could not be started.
    #[serde(rename = "experiment.refused")]
    ExperimentRefused { experiment: String, reason: String },
    /// An experiment has ended: conversations have no arm any more.
    #[serde(rename = "experiment.off")]
    ExperimentOff {
        experiment: String,
        /// The arm that serves everybody from now on.
        #[serde(skip_serializing_if = "Option::is_none")]
        promoted: Option<String>,
    },
    /// The guard rail has stopped an arm; its conversations continue with the control.
    #[serde(rename = "experiment.arm-stopped")]
    ExperimentArmStopped {
        experiment: String,
        stopped: String,
        /// What is worse: `failures` or `overflows`.
        worse: &'static str,
        /// Conversations in which it happened, of this arm and of the control.
        arm_conversations: u64,
        control_conversations: u64,
        /// The strength of the evidence, and the bound that it has passed.
        evidence: f64,
        bound: f64,
        conversations_moved: usize,
    },
    /// What a shadow arm would have done with a turn.
    #[serde(rename = "experiment.shadow")]
    ExperimentShadow {
        session: String,
        /// The shadow arm; the event's own `arm` is the one that acted.
        shadow: String,
        shadow_sha256: String,
        tokens_before: u64,
        tokens_after: u64,
        acting_tokens_after: u64,
        turns_dropped: u32,
        acting_turns_dropped: u32,
        /// Policies of the shadow arm that failed.
        failures: usize,
        /// Whether both would send the same messages.
        agrees: bool,
        /// Decisions since the previous event that the shadow was not asked for, because it was still busy with an
        /// earlier one.
        sat_out: u64,
    },
    /// A person asks nearly the same question again.
    #[serde(rename = "signal.reasked")]
    SignalReasked { actor: String, session: String, after_ms: u64, similarity: f64 },
    /// A person rates an answer. `replaces`: they had said the opposite of it before, which no longer counts.
    #[serde(rename = "signal.reaction")]
    SignalReaction { actor: String, session: String, likes: bool, replaces: bool },
    /// The front refuses new connections of the gateway; existing ones continue.
    #[serde(rename = "front.refused")]
    FrontRefused { reason: String },
    /// The front accepts connections again.
    #[serde(rename = "front.accepted")]
    FrontAccepted,
    /// The front is connected again after the gateway received nothing from it for a while.
    #[serde(rename = "front.connected-again")]
    FrontConnectedAgain {
        deaf_ms: u64,
        /// Messages that arrived late because of it.
        late: u64,
    },
    /// The front delivered an event with an invalid id, or of the wrong shape, and it was refused.
    #[serde(rename = "front.malformed")]
    FrontMalformed {
        /// Which id or part: `frame`, `type`, `envelope_id`, `payload`; `line` on the console. Never its value.
        field: &'static str,
    },
    /// A reply was sent in several messages.
    #[serde(rename = "reply.split")]
    ReplySplit { actor: String, parts: usize, chars: usize },
    /// A long reply could not be posted as a file: its first parts were posted, and the archive has all of it.
    #[serde(rename = "reply.cut")]
    ReplyCut { actor: String, session: String, reason: String },
    /// After a crash, a part of a reply was posted although it may have been posted before.
    #[serde(rename = "reply.repeated")]
    ReplyRepeated { actor: String, session: String, part: u32 },
    /// A part of a reply was posted as this message; on a database that hosts share, the host that had it before
    /// may still be posting it, too.
    #[serde(rename = "reply.may-repeat")]
    ReplyMayRepeat { actor: String, session: String, part: u32, reply_ts: String },
    /// A reply could not be delivered and will not be retried.
    #[serde(rename = "reply.undelivered")]
    ReplyUndelivered { actor: String, session: String, reason: String },
    /// The gateway has started.
    #[serde(rename = "gateway.online")]
    GatewayOnline {
        /// Whether people are told.
        broadcast: bool,
        /// `crash-recovery`, `fast-recovery`, `graceful-fast-restart`, `graceful-restart`.
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        offline_duration_ms: Option<u64>,
    },
    /// The gateway is stopping, because it was asked to.
    #[serde(rename = "gateway.offline")]
    GatewayOffline { broadcast: bool, reason: &'static str },
    /// What was said while the gateway was down was read back.
    #[serde(rename = "gateway.caught-up")]
    GatewayCaughtUp {
        /// Conversations that were read.
        conversations: usize,
        /// Messages that were found in them and are answered now.
        messages: usize,
        /// Conversations that the gateway may not read.
        unreadable: usize,
        /// Conversations that were read back only in part, because there was too much.
        cut: usize,
        /// Conversations that were not read back, because there were too many.
        left_out: usize,
    },
    /// Files of the ledger were deleted, because their months are no longer kept.
    #[serde(rename = "ledger.forgotten")]
    LedgerForgotten { files: Vec<String>, keep_months: u32 },
    /// Conversations were erased, because nobody had written in them for longer than they are kept.
    #[serde(rename = "sessions.forgotten")]
    SessionsForgotten {
        /// Conversations that were erased.
        sessions: usize,
        /// Messages of their archives.
        messages: usize,
        keep_days: u32,
    },
    /// The store's file was deleted, replaced or emptied while it was open, and the gateway ended.
    #[serde(rename = "store.lost")]
    StoreLost { reason: String },
}

impl Event {
    /// What a policy has read for a decision that is made for this user, if anything; `shadow` is the arm that it is of
    /// if it does not act.
    pub(crate) fn policy_read(actor: &str, record: &Record, shadow: Option<&str>) -> Option<Event> {
        let Record { texts_read, archive, .. } = record;
        if texts_read.is_empty() && archive.is_none() {
            return None;
        }
        Some(Event::PolicyRead {
            actor: actor.to_owned(),
            asked: PolicyAsked::of(record),
            shadow: shadow.map(str::to_owned),
            texts: texts_read.len(),
            chars: texts_read.chars(),
            archive_searches: archive.searches,
            archived_texts: archive.texts_read,
        })
    }

    /// Contacts were asked, and a thread waits for the answer from now on.
    pub(crate) fn escalated(Marker { channel_id, thread_ts, scope, .. }: Marker) -> Event {
        Event::EscalateTriggered { channel_id, thread_ts, scope }
    }

    /// Somebody has cancelled an escalation.
    pub(crate) fn escalation_cancelled(actor: &str, marker: &Marker) -> Event {
        let (channel_id, thread_ts) = (marker.channel_id.clone(), marker.thread_ts.clone());
        Event::EscalateCancelled { actor: actor.to_owned(), channel_id, thread_ts }
    }
}
