//! The report about a build: lines for people, one JSON object per build for machines.

use pmk_core::Language;
use pmk_system::json;
use serde_json::json;

use super::{
    super::{
        super::{
            page::Page,
            text::{columns, one_line},
        },
        check,
    },
    Failed, Round, Told, shown,
};
use crate::evaluation::{
    authoring::dev::{
        PassedOver, Tried,
        difference::{Changed, Sums},
    },
    compare::standing::State,
};

/// The most conversations that are listed individually.
const MAX_TOLD: usize = 8;

/// The most reasons of a conversation for which the policy did not decide.
const MAX_REASONS: usize = 3;

/// The most characters of a list of message indexes.
const MAX_RANGES: usize = 40;

/// The most columns of a message's text.
const MAX_COLUMNS: usize = 72;

/// Lines for people.
pub(super) fn text(round: &Round, told: &Told, language: Language) -> String {
    let mut page = Page::new(language);
    let build = format!("{} {}", page.translated("build"), round.number);
    match &round.outcome {
        Err(failed) => {
            if !failed.said.is_empty() {
                // The compiler output is printed unchanged.
                page.text(&format!("{}\n", failed.said));
            }
            page.tell(&build, &format!("FAILED: {}", failed.failure.message()));
            if told.is_kept {
                page.tell("", "the last good one stays");
            }
        }
        Ok(tried) => {
            let (policy, seconds) = (&tried.policy, round.took.as_secs_f64());
            let digest = format!("{policy}  sha256 {:.12}", policy.sha256);
            page.line(&build, page.joined(&[digest, format!("{seconds:.1} s")]));
            checked(&mut page, tried, language);
            if tried.check.failed() == 0 {
                page.line("written", format!("`{}`", shown(&told.component)));
            }
            compared(&mut page, round.number, tried, told, language);
            passed_over(&mut page, tried, told, language);
        }
    }
    page.done()
}

fn checked(page: &mut Page, tried: &Tried, language: Language) {
    let report = &tried.check;
    if report.failed() == 0 {
        return page.tell("check", &format!("passes, {} questions", report.asked()));
    }
    page.tell("check", &format!("{} bad answers to {} questions", report.failed(), report.asked()));
    for one in &report.checks {
        if let Some(first) = &one.first {
            page.text(&check::found(one, first, language));
        }
    }
}

fn compared(page: &mut Page, number: usize, tried: &Tried, told: &Told, language: Language) {
    let Told { all, before, .. } = told;
    let Some((before_sums, changed)) = &tried.against else {
        let held = page.joined(&held(&tried.sums));
        page.line("tried on", format!("{}{}{held}", page.translated(all), colon(language)));
        page.tell("tokens", &format!("{} in the last requests", tried.sums.tokens));
        return answered(page, None, &tried.sums);
    };
    let before = match (number, before) {
        (1, Some(file)) => format!("`{}` as it was", shown(file)),
        _ => "the last good build".to_owned(),
    };
    if changed.is_empty() {
        return page.tell("same", &format!("as with {before}, in {all}"));
    }
    page.tell("differs", &format!("from {before} in {} of {all}", changed.len()));
    page.tell("tokens", &format!("{} → {} in the last requests", before_sums.tokens, tried.sums.tokens));
    answered(page, Some(before_sums), &tried.sums);
    changed.iter().take(MAX_TOLD).for_each(|changed| session(page, changed, language));
    if let Some(more) = changed.len().checked_sub(MAX_TOLD).filter(|&more| more > 0) {
        page.text("  ");
        page.say(&format!("and {more} more; `--json` has them all"));
    }
}

/// Which conversations show a layer below and not the policy: there, no build of it differs from another.
fn passed_over(page: &mut Page, tried: &Tried, told: &Told, language: Language) {
    let conversations = &tried.passed_over;
    if conversations.is_empty() {
        return;
    }
    page.tell("not used", &format!("in {} of {}: a layer below decided", conversations.len(), told.all));
    for PassedOver { session, reasons, .. } in conversations.iter().take(MAX_TOLD) {
        for reason in reasons.iter().take(MAX_REASONS) {
            let (count, turn, why) = (reason.count, reason.turn, reason.why());
            let said = page.translated(&format!("{count}×, first in turn {turn}: {why}"));
            page.text(&format!("  {}{}{said}\n", one_line(session, 60), colon(language)));
        }
    }
    if let Some(more) = conversations.len().checked_sub(MAX_TOLD).filter(|&more| more > 0) {
        page.text("  ");
        page.say(&format!("and {more} more; `--json` has them all"));
    }
}

fn held(sums: &Sums) -> Vec<String> {
    let Sums { kept, shortened, recalled, summarised, dropped, .. } = *sums;
    let rest = [
        (shortened, format!("{shortened} shortened")),
        (recalled, format!("{recalled} recalled")),
        (summarised, format!("{summarised} summarised")),
        (dropped, format!("{dropped} dropped")),
    ];
    let rest = rest.into_iter().filter(|(count, _)| *count > 0).map(|(_, said)| said);
    std::iter::once(format!("{kept} messages kept")).chain(rest).collect()
}

fn answered(page: &mut Page, before: Option<&Sums>, now: &Sums) {
    match (now.questions, before) {
        (0, _) => {}
        (all, None) => page.tell("evidence", &format!("in view for {} of {all} questions", now.answered)),
        (all, Some(before)) => {
            page.tell("evidence", &format!("in view for {} → {} of {all} questions", before.answered, now.answered));
        }
    }
}

fn session(page: &mut Page, changed: &Changed, language: Language) {
    let Changed { session, tokens: (before, now), moves, lost, found } = changed;
    let tokens = page.translated(&format!("{before} → {now} tokens"));
    let colon = colon(language);
    page.text(&format!("  {}{colon}{tokens}\n", one_line(session, 60)));
    for moved in moves {
        let [from, to] = [moved.from, moved.to].map(|state| page.translated(word(state)));
        let which = format!("{} ({})", moved.count, one_line(&moved.messages, MAX_RANGES));
        page.text(&format!("    {from} → {to}{colon}{which}\n      {}\n", columns(&moved.first, MAX_COLUMNS)));
    }
    for (word, questions) in [(language.pick("lost", "失去依據"), lost), (language.pick("found", "找到依據"), found)]
    {
        for question in questions {
            page.text(&format!("    {word}{colon}{}\n", one_line(question, 66)));
        }
    }
}

fn colon(language: Language) -> &'static str {
    language.pick(": ", "：")
}

const fn word(state: State) -> &'static str {
    match state {
        State::Kept => "kept",
        State::Shortened => "shortened",
        State::Recalled => "recalled",
        State::Summarised => "summarised",
        State::Dropped => "dropped",
    }
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
        Ok(Tried { policy, check, sums, against, passed_over }) => {
            document["outcome"] = "built".into();
            document["policy"] = json!(policy);
            document["check"] = json!({"asked": check.asked(), "failed": check.failed(), "checks": check.checks});
            if check.failed() == 0 {
                document["component"] = told.component.display().to_string().into();
            }
            document["sessions"] = told.count.into();
            document["now"] = json!(sums);
            document["before"] = json!(against.as_ref().map(|(before, _)| before));
            document["changed"] = json!(against.as_ref().map(|(_, changed)| changed));
            document["passed_over"] = json!(passed_over);
        }
    }
    format!("{}\n", json::shown(&document))
}
