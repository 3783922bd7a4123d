//! What is worth telling, in the words of pmk's ledger (specifications 000 §3 and 003 §12). Never the text of a message.

use pmk_policy::Identity;
use serde::Serialize;

use super::{LoadedArm, PolicyAsked};
use crate::{
    access::authorization::{Action, Reason},
    escalation::Marker,
};

/// What is worth remembering of a turn.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Event {
    /// A question was answered.
    #[serde(rename = "turn.processed")]
    TurnProcessed {
        actor: String,
        session: String,
        /// As it was when the turn began.
        audience: String,
        channel_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread_ts: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reply_ts: Option<String>,
        had_mra_ask: bool,
        atoms_injected: usize,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        atom_ids: Vec<String>,
        /// The estimate of the messages that were sent.
        tokens_sent: u64,
        /// Rungs of recovery that were used.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        rungs: Vec<String>,
        /// From the moment the question came in to the delivered reply.
        latency_ms: u64,
    },
    /// The program failed within a turn, which is tried once more and then parked.
    #[serde(rename = "turn.panicked")]
    TurnPanicked {
        session: String,
        /// File and line.
        place: String,
    },
    /// A message cannot be answered and waits for `sessions retry`.
    #[serde(rename = "turn.parked")]
    TurnParked { session: String, why: String },
    /// Parked messages are taken up again, of one conversation or of all.
    #[serde(rename = "turn.retried")]
    TurnRetried {
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        messages: usize,
    },
    /// A question gets no answer any more, by the word of this person.
    #[serde(rename = "turn.stopped")]
    TurnStopped { actor: String, session: String },
    /// A question is taken up once more, by the word of this person.
    #[serde(rename = "turn.again")]
    TurnAgain { actor: String, session: String },
    /// A person has edited a message.
    #[serde(rename = "message.edited")]
    MessageEdited {
        actor: String,
        session: String,
        /// Whether it had no answer yet: then it is asked as it is now.
        waiting: bool,
    },
    /// A message is there no more, and nothing of it in the conversation.
    #[serde(rename = "message.deleted")]
    MessageDeleted {
        session: String,
        /// `question` or `answer`.
        what: &'static str,
        /// Whether it had no answer yet: then it gets none.
        waiting: bool,
        /// Summaries that may have been made of it and still say so.
        summaries: u32,
    },
    /// Open messages that nobody worked on were found: a defect of the program.
    #[serde(rename = "queue.swept")]
    QueueSwept { messages: u64 },
    /// `mra` was asked.
    #[serde(rename = "mra-ask.end")]
    MraAskEnd { actor: String, repo: String, ok: bool, retried: bool, duration_ms: u64 },
    /// People were asked.
    #[serde(rename = "escalate.triggered")]
    EscalateTriggered {
        channel_id: String,
        thread_ts: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
    },
    /// They answered.
    #[serde(rename = "escalate.absorbed")]
    EscalateAbsorbed {
        channel_id: String,
        thread_ts: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        atom_id: Option<String>,
    },
    /// Somebody wrote while an answer was awaited, and that is what it was read as.
    #[serde(rename = "escalate.heard")]
    EscalateHeard { actor: String, channel_id: String, thread_ts: String, word: &'static str },
    /// The answer is not waited for any more, by the word of this person.
    #[serde(rename = "escalate.cancelled")]
    EscalateCancelled { actor: String, channel_id: String, thread_ts: String },
    /// An atom reads like orders to a model: it is not approved by the passing of time.
    #[serde(rename = "atom.flagged")]
    AtomFlagged { actor: String, atom_id: String },
    /// The contributor approved an atom by a reaction.
    #[serde(rename = "atom.approved")]
    AtomApproved { actor: String, atom_id: String },
    /// The contributor took an atom back by a reaction.
    #[serde(rename = "atom.rejected")]
    AtomRejected { actor: String, atom_id: String },
    /// A large content is in the window in part.
    #[serde(rename = "message.capped")]
    MessageCapped { actor: String, kind: &'static str, original_chars: usize, capped_chars: usize },
    /// What the provider counted.
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
    /// The model said the prompt was too long.
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
    /// The model has summed up a part of the conversation.
    #[serde(rename = "context.compacted")]
    ContextCompacted {
        actor: String,
        session: String,
        turns: u32,
        tokens_before: u64,
        tokens_after: u64,
        /// Whether the model had refused the prompt; otherwise a policy wanted it ahead of the call.
        recovering: bool,
    },
    /// The conversation goes on in a fresh window.
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
    /// The model gave no answer and no reason that is known, and a smaller request was tried.
    #[serde(rename = "context.suspected")]
    ContextSuspected {
        actor: String,
        session: String,
        /// `unexplained`: it refused the request; `empty`: it answered nothing; `failing`: it failed turn after turn.
        because: &'static str,
        tokens: u64,
        /// Whether the smaller request was answered: then it was the size.
        helped: bool,
    },
    /// The model said the prompt was too long: the name of specification 001 for `context.exceeded`.
    #[serde(rename = "queue.context_overflow.detected")]
    OverflowDetected { actor: String, session: String },
    /// On that, a part of the conversation was summed up.
    #[serde(rename = "queue.context_overflow.compacted")]
    OverflowCompacted { actor: String, session: String, turns: u32 },
    /// On that, the conversation goes on in a fresh session.
    #[serde(rename = "queue.context_overflow.new_session")]
    OverflowNewSession { actor: String, session: String, has_summary: bool, summary_length: usize },
    /// Nothing helped.
    #[serde(rename = "queue.context_overflow.recovery_failed")]
    OverflowRecoveryFailed { actor: String, session: String },
    /// A summary was made without the model, and the fresh session has it.
    #[serde(rename = "daemon.context_overflow.recovery")]
    OverflowRecovery { actor: String, session: String, entries_left_behind: usize },
    /// A plan was carried out that drops or replaces something of the window. What recovery cuts has other events.
    #[serde(rename = "context.pruned")]
    ContextPruned {
        actor: String,
        session: String,
        turns_dropped: u32,
        messages_replaced: usize,
        tokens_before: u64,
        tokens_after: u64,
        /// The policy whose plan it was, and its digest; `floor` has none.
        decided_by: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        decided_by_sha256: Option<String>,
    },
    /// The trim rung was used.
    #[serde(rename = "context.force-pruned")]
    ContextForcePruned { actor: String, dropped_pairs: u32, tokens_after: u64 },
    /// The model's server takes no tools: it is asked by fenced directives from now on.
    #[serde(rename = "model.no-tools")]
    ModelNoTools {
        provider: String,
        model: String,
        /// `said` by the server in so many words, or `tried`.
        how: &'static str,
    },
    /// A policy failed or broke a rule, and another decided.
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
        /// How many decisions go past it before it is tried again.
        pause: u32,
        reason: String,
    },
    /// It did well when it was tried again.
    #[serde(rename = "policy.resumed")]
    PolicyResumed {
        #[serde(flatten)]
        asked: PolicyAsked,
    },
    /// A policy was shown texts, because it asked for them.
    #[serde(rename = "policy.read")]
    PolicyRead {
        actor: String,
        #[serde(flatten)]
        asked: PolicyAsked,
        /// Of the request as it would be if nothing were done, or the one text of a cap.
        texts: usize,
        chars: u64,
        archive_searches: u32,
        archived_texts: u32,
    },
    /// Somebody did something that they may not do: it had no effect.
    #[serde(rename = "access.refused")]
    AccessRefused {
        actor: String,
        action: Action,
        #[serde(skip_serializing_if = "Option::is_none")]
        channel_id: Option<String>,
        reason: Reason,
    },
    /// The model repeated a directive of somebody else's, which was not carried out.
    #[serde(rename = "directive.echoed")]
    DirectiveEchoed { actor: String, session: String, kind: &'static str },
    /// Others were asked so often within an hour that they are not asked once more.
    #[serde(rename = "directive.bounded")]
    DirectiveBounded {
        actor: String,
        session: String,
        kind: &'static str,
        /// Whose bound it is: `person` or `conversation`.
        of: &'static str,
        most: u32,
    },
    /// A question to people is shown to its asker first.
    #[serde(rename = "escalate.proposed")]
    EscalateProposed { actor: String, channel_id: String, thread_ts: String },
    /// They said no to it, or nothing for a day.
    #[serde(rename = "escalate.dropped")]
    EscalateDropped { actor: String, channel_id: String },
    /// A channel has a case from now on.
    #[serde(rename = "case.opened")]
    CaseOpened { actor: String, channel_id: String, case_id: i64 },
    /// An answer has added to a case what the model noted.
    #[serde(rename = "case.updated")]
    CaseUpdated { actor: String, session: String, case_id: i64, hypotheses: usize, questions: usize },
    /// It has none any more.
    #[serde(rename = "case.closed")]
    CaseClosed { actor: String, channel_id: String, case_id: i64, messages: u64 },
    /// Other policies decide from the next turn on. Layers, the top one first.
    #[serde(rename = "policy.swapped")]
    PolicySwapped { by: &'static str, before: Vec<Identity>, serving: Vec<Identity> },
    /// They should have, and could not be loaded.
    #[serde(rename = "policy.refused")]
    PolicyRefused { by: &'static str, files: Vec<String>, reason: String },
    /// The arms of an experiment are loaded, and conversations get one.
    #[serde(rename = "experiment.on")]
    ExperimentOn { experiment: String, arms: Vec<LoadedArm> },
    /// An experiment is not begun.
    #[serde(rename = "experiment.refused")]
    ExperimentRefused { experiment: String, reason: String },
    /// Conversations have no arm any more.
    #[serde(rename = "experiment.off")]
    ExperimentOff {
        experiment: String,
        /// The arm that serves everybody from now on.
        #[serde(skip_serializing_if = "Option::is_none")]
        promoted: Option<String>,
    },
    /// The guard rail has stopped an arm; its conversations go on with the control.
    #[serde(rename = "experiment.arm-stopped")]
    ExperimentArmStopped {
        experiment: String,
        stopped: String,
        /// What is worse: `failures` or `overflows`.
        worse: &'static str,
        /// Conversations in which it happened, of this arm and of the control.
        arm_conversations: u64,
        control_conversations: u64,
        /// How strong the evidence is; the bound that it has passed.
        evidence: f64,
        bound: f64,
        conversations_moved: usize,
    },
    /// What a shadow arm would have done with a turn.
    #[serde(rename = "experiment.shadow")]
    ExperimentShadow {
        session: String,
        /// The arm that only watches; the event's own `arm` is the one that acted.
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
        /// Decisions since the one before that it was not asked for, as it was still busy with an earlier one.
        sat_out: u64,
    },
    /// A person asks nearly the same again.
    #[serde(rename = "signal.reasked")]
    SignalReasked { actor: String, session: String, after_ms: u64, similarity: f64 },
    /// A person likes an answer or does not.
    #[serde(rename = "signal.reaction")]
    SignalReaction { actor: String, session: String, likes: bool },
    /// The front is not let in any more; what is connected goes on.
    #[serde(rename = "front.refused")]
    FrontRefused { reason: String },
    /// It is let in again.
    #[serde(rename = "front.accepted")]
    FrontAccepted,
    /// Nobody could reach the front for a while.
    #[serde(rename = "front.connected-again")]
    FrontConnectedAgain {
        deaf_ms: u64,
        /// Messages that came late because of it.
        late: u64,
    },
    /// The front brought an event with an id that is none, or of the wrong shape, and it was refused.
    #[serde(rename = "front.malformed")]
    FrontMalformed {
        /// Which id or part: `frame`, `type`, `envelope_id`, `payload`; `line` on the console. Never what it was.
        field: &'static str,
    },
    /// A reply went out in several messages.
    #[serde(rename = "reply.split")]
    ReplySplit { actor: String, parts: usize, chars: usize },
    /// A long reply could not be posted as a file: its first parts were posted, and the archive has all of it.
    #[serde(rename = "reply.cut")]
    ReplyCut { actor: String, session: String, reason: String },
    /// A part of a reply was posted after a crash although it may have been posted before.
    #[serde(rename = "reply.repeated")]
    ReplyRepeated { actor: String, session: String, part: u32 },
    /// A part of a reply is this message now; who had it before, on a database that hosts share, may have it on its way still.
    #[serde(rename = "reply.may-repeat")]
    ReplyMayRepeat { actor: String, session: String, part: u32, reply_ts: String },
    /// A reply could not be delivered and will not be tried again.
    #[serde(rename = "reply.undelivered")]
    ReplyUndelivered { actor: String, session: String, reason: String },
    /// The gateway is there, or there again.
    #[serde(rename = "gateway.online")]
    GatewayOnline {
        /// Whether people are told.
        broadcast: bool,
        /// `crash-recovery`, `fast-recovery`, `graceful-fast-restart`, `graceful-restart`.
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        offline_duration_ms: Option<u64>,
    },
    /// It was asked to end, and does.
    #[serde(rename = "gateway.offline")]
    GatewayOffline { broadcast: bool, reason: &'static str },
    /// What was said while nobody listened was read back.
    #[serde(rename = "gateway.caught-up")]
    GatewayCaughtUp {
        /// Those that were read.
        conversations: usize,
        /// Messages that were found in them and are answered now.
        messages: usize,
        /// Conversations that the gateway may not read.
        unreadable: usize,
        /// Conversations that were read back in part, for there was too much.
        cut: usize,
    },
    /// Files of the ledger were deleted: their months are not kept any more.
    #[serde(rename = "ledger.forgotten")]
    LedgerForgotten { files: Vec<String>, keep_months: u32 },
    /// The store's file was deleted, replaced or emptied while it was open, and the gateway ended.
    #[serde(rename = "store.lost")]
    StoreLost { reason: String },
}

impl Event {
    /// People were asked what a thread waits for from now on.
    pub(crate) fn escalated(Marker { channel_id, thread_ts, scope, .. }: Marker) -> Event {
        Event::EscalateTriggered { channel_id, thread_ts, scope }
    }

    /// Somebody does not want the answer to be waited for any more.
    pub(crate) fn escalation_cancelled(actor: &str, marker: &Marker) -> Event {
        let (channel_id, thread_ts) = (marker.channel_id.clone(), marker.thread_ts.clone());
        Event::EscalateCancelled { actor: actor.to_owned(), channel_id, thread_ts }
    }
}
