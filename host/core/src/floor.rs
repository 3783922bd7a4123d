//! What the host itself does: the trim rung, and the native floor under all policies (guard rule 8).

use crate::{
    guard::{self, Applied},
    plan::Plan,
    transcript::Transcript,
};

/// The trim rung: the seed pair, the most recent stored turn and the current one stay (seed 000 §2.2).
pub fn trim(transcript: &Transcript) -> Plan {
    let mut plan = Plan::new();
    let current = transcript.current() as u32;
    let last_turn = transcript.cuts_before(current).next().unwrap_or(transcript.seed_end() as u32);
    remove_before(&mut plan, transcript, last_turn);
    plan
}

/// The floor: like trim; while that exceeds the limit it gives up the last turn, then the oldest tool
/// pairs of the current turn, then the seed pair, and at last the marker. What remains is the new
/// message, which may still be too large: then [`Applied::tokens_after`] says by how much.
pub fn decide(transcript: &Transcript, limit: u64) -> Applied {
    let fits = |plan: &Plan| plan.tokens(transcript) <= limit;
    let mut plan = trim(transcript);
    if !fits(&plan) {
        plan = Plan::new();
        remove_before(&mut plan, transcript, transcript.current() as u32);
    }
    for members in current_groups(transcript) {
        if fits(&plan) {
            break;
        }
        for at in members {
            plan.remove(transcript, at, at + 1);
        }
    }
    if !fits(&plan) && transcript.seed_end() > 0 {
        plan.remove(transcript, 0, transcript.seed_end() as u32);
    }
    let mut applied = guard::apply_floor(transcript, &plan);
    if applied.tokens_after > limit {
        leave_out_marker(transcript, &mut applied);
    }
    applied
}

/// Removes everything between the seed and `cut`, unless that is a marker alone.
fn remove_before(plan: &mut Plan, transcript: &Transcript, cut: u32) {
    let seed_end = transcript.seed_end() as u32;
    if (seed_end..cut).any(|at| !transcript.is_marker(at as usize)) {
        plan.remove(transcript, seed_end, cut);
    }
}

/// The tool groups of the current turn, oldest first.
fn current_groups(transcript: &Transcript) -> Vec<Vec<u32>> {
    let groups = &transcript.structure().groups;
    let mut found: Vec<Vec<u32>> = Vec::new();
    for at in (transcript.current() + 1..transcript.len()).map(|at| at as u32) {
        let first = groups[at as usize];
        if first == at {
            continue;
        }
        match found.iter_mut().find(|members| members[0] == first) {
            Some(members) => members.push(at),
            None => found.push(vec![first, at]),
        }
    }
    found
}

/// The last thing to give up: where even the marker is too much, its number lives on in the session.
fn leave_out_marker(transcript: &Transcript, applied: &mut Applied) {
    if let Some((marker, _)) = applied.marker.take() {
        applied.tokens_after -= u64::from(marker.tokens());
        return;
    }
    for &at in transcript.markers() {
        let at = at as u32;
        if let Ok(position) = applied.kept.binary_search(&at) {
            applied.kept.remove(position);
            let slot = applied.removed.partition_point(|&other| other < at);
            applied.removed.insert(slot, at);
            applied.tokens_after -= u64::from(transcript.tokens()[at as usize]);
        }
    }
}
