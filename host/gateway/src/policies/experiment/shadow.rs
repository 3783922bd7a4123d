//! Shadow arms: they make the same decisions as the acting arm, without any effect and without delaying a turn.

use std::sync::{Arc, atomic::Ordering};

use pmk_core::{Applied, Transcript};
use pmk_policy::PruneInput;
use pmk_system::threads::offload;

use super::live::RunningExperiment;
use crate::ledger::{Event, Tags};

/// What the acting arm was asked, and what it did.
#[derive(Clone, Debug)]
pub(crate) struct Acted {
    pub session: String,
    /// Who asked.
    pub asker: String,
    pub tags: Tags,
    pub transcript: Arc<Transcript>,
    pub input: PruneInput,
    pub applied: Applied,
}

impl RunningExperiment {
    /// Asks every shadow arm the same, in the background. If the shadow arms are still busy with an earlier turn, they
    /// skip this one: a slow policy must not pile up work.
    pub(crate) fn shadow(&self, acted: impl FnOnce() -> Acted) {
        let Some(on) = self.shadowed() else { return };
        let acted = acted();
        let (ledger, serving) = (self.ports.ledger.clone(), self.ports.policies.serving());
        self.ports.tasks.spawn(offload(move || {
            let Ok(_permit) = on.shadows.try_acquire() else {
                tracing::debug!(session = acted.session, "the shadow arms are busy and skip a turn");
                on.sat_out.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let sat_out = on.sat_out.swap(0, Ordering::Relaxed);
            for arm in on.arms.iter().filter(|arm| arm.is_shadow) {
                let policies = arm.policies.as_ref().unwrap_or(&serving);
                // What fails here suspends no policy that decides, and no layer below is taken for the shadow.
                let decision = policies.stack().without_breakers().prune(&acted.transcript, acted.input);
                for record in &decision.records {
                    record.pass_on_log();
                    if let Some(read) = Event::policy_read(&acted.asker, record, Some(arm.name.as_ref())) {
                        ledger.note_of(read, acted.tags.clone());
                    }
                    if let Some(reason) = record.outcome.reason() {
                        let (policy, sha256) = (&record.policy.name, &record.policy.sha256);
                        tracing::warn!(shadow = %arm.name, policy, sha256, reason, "policy failed");
                    }
                }
                let event = Event::ExperimentShadow {
                    session: acted.session.clone(),
                    shadow: arm.name.to_string(),
                    shadow_sha256: policies.top().sha256.clone(),
                    tokens_before: decision.applied.tokens_before,
                    tokens_after: decision.applied.tokens_after,
                    acting_tokens_after: acted.applied.tokens_after,
                    turns_dropped: decision.applied.turns_dropped,
                    acting_turns_dropped: acted.applied.turns_dropped,
                    failures: decision.records.iter().filter(|record| record.outcome.is_fault() == Some(true)).count(),
                    agrees: is_same(&decision.applied, &acted.applied),
                    sat_out,
                };
                ledger.note_of(event, acted.tags.clone());
            }
        }));
    }
}

/// Whether two decisions on one transcript send the same messages.
fn is_same(one: &Applied, other: &Applied) -> bool {
    let replaced = |applied: &Applied| -> Vec<_> {
        applied.replaced.iter().map(|by| (by.index, Arc::clone(&by.message))).collect()
    };
    one.kept == other.kept && replaced(one) == replaced(other) && one.compaction == other.compaction
}
