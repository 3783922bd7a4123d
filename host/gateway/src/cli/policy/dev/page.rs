//! What is told of a build: lines for people, one object a build for machines.

use pmk_core::Language;
use pmk_system::json;
use serde_json::{Value, json};

use super::{
    super::{
        super::text::{columns, one_line},
        check,
    },
    Failed, Round, Told, shown,
};
use crate::authoring::dev::{
    Tried,
    difference::{Changed, Sums},
};

/// The most conversations that are told one by one.
const MAX_TOLD: usize = 8;

/// The most characters of which messages they are.
const MAX_RANGES: usize = 40;

/// The most columns of what a message says.
const MAX_COLUMNS: usize = 72;

/// Lines for people.
pub(super) fn text(round: &Round, told: &Told) -> String {
    let (number, seconds) = (round.number, round.took.as_secs_f64());
    match &round.outcome {
        Err(failed) => refused(number, failed, told),
        Ok(tried) => {
            let policy = &tried.policy;
            let head = format!("build {number:<4}{policy}  sha256 {:.12}, {seconds:.1} s\n", policy.sha256);
            head + &checked(tried) + &compared(number, tried, told)
        }
    }
}

fn refused(number: usize, failed: &Failed, told: &Told) -> String {
    let mut out = String::new();
    if !failed.said.is_empty() {
        // As the compiler wrote it.
        out.push_str(&format!("{}\n", failed.said));
    }
    out.push_str(&format!("build {number:<4}FAILED: {}\n", failed.failure.message()));
    if number > 1 || told.before.is_some() {
        out.push_str("          the last good one stays\n");
    }
    out
}

fn checked(tried: &Tried) -> String {
    let report = &tried.check;
    if report.failed() == 0 {
        return format!("check     holds, {} questions\n", report.asked());
    }
    let mut out = format!("check     {} bad answers to {} questions\n", report.failed(), report.asked());
    for one in &report.checks {
        if let Some(first) = &one.first {
            out.push_str(&check::found(&one.name, one.failed, first, Language::English));
        }
    }
    out
}

fn compared(number: usize, tried: &Tried, told: &Told) -> String {
    let Told { from, count, before } = told;
    let all = format!("{count} conversation{} {from}", if *count == 1 { "" } else { "s" });
    let Some((before_sums, changed)) = &tried.against else {
        let (held, tokens) = (held(&tried.sums), tried.sums.tokens);
        return format!("tried on  {all}: {held}\ntokens    {tokens} in the last requests\n")
            + &answered(None, &tried.sums);
    };
    let before = match (number, before) {
        (1, Some(file)) => format!("`{}` as it was", shown(file)),
        _ => "the last good build".to_owned(),
    };
    if changed.is_empty() {
        return format!("same      as with {before}, in {all}\n");
    }
    let mut out = format!(
        "differs   from {before} in {} of {all}\ntokens    {} → {} in the last requests\n",
        changed.len(),
        before_sums.tokens,
        tried.sums.tokens
    );
    out.push_str(&answered(Some(before_sums), &tried.sums));
    changed.iter().take(MAX_TOLD).for_each(|changed| out.push_str(&session(changed)));
    if let Some(more) = changed.len().checked_sub(MAX_TOLD).filter(|&more| more > 0) {
        out.push_str(&format!("  and {more} more; `--json` has them all\n"));
    }
    out
}

fn held(sums: &Sums) -> String {
    let Sums { kept, shortened, recalled, summarised, dropped, .. } = *sums;
    let rest = [(shortened, "shortened"), (recalled, "recalled"), (summarised, "summarised"), (dropped, "dropped")];
    let rest: String =
        rest.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}")).collect();
    format!("{kept} messages kept{rest}")
}

fn answered(before: Option<&Sums>, now: &Sums) -> String {
    match (now.questions, before) {
        (0, _) => String::new(),
        (all, None) => format!("evidence  in view for {} of {all} questions\n", now.answered),
        (all, Some(before)) => {
            format!("evidence  in view for {} → {} of {all} questions\n", before.answered, now.answered)
        }
    }
}

fn session(changed: &Changed) -> String {
    let Changed { session, tokens: (before, now), moves, lost, found } = changed;
    let mut out = format!("  {}: {before} → {now} tokens\n", one_line(session, 60));
    for moved in moves {
        let (from, to) = (name(json!(moved.from)), name(json!(moved.to)));
        out.push_str(&format!(
            "    {from} → {to}: {} ({})\n      {}\n",
            moved.count,
            one_line(&moved.messages, MAX_RANGES),
            columns(&moved.first, MAX_COLUMNS)
        ));
    }
    for (word, questions) in [("lost", lost), ("found", found)] {
        for question in questions {
            out.push_str(&format!("    {word}: {}\n", one_line(question, 66)));
        }
    }
    out
}

/// As JSON calls it.
fn name(state: Value) -> String {
    state.as_str().unwrap_or_default().to_owned()
}

/// One line of JSON.
pub(super) fn document(round: &Round, told: &Told) -> String {
    let mut document = json!({"type": "build", "build": round.number, "ms": round.took.as_millis() as u64});
    match &round.outcome {
        Err(Failed { failure, said }) => {
            document["outcome"] = "failed".into();
            document["message"] = failure.message().into();
            document["said"] = said.as_str().into();
        }
        Ok(Tried { policy, check, sums, against }) => {
            document["outcome"] = "built".into();
            document["policy"] = json!(policy);
            document["check"] = json!({"asked": check.asked(), "failed": check.failed(), "checks": check.checks});
            document["sessions"] = told.count.into();
            document["now"] = json!(sums);
            document["before"] = json!(against.as_ref().map(|(before, _)| before));
            document["changed"] = json!(against.as_ref().map(|(_, changed)| changed));
        }
    }
    format!("{}\n", json::shown(&document))
}
