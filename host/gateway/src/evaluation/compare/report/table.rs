//! The report on a terminal: metrics down, policies across.

use std::cell::RefCell;

use pmk_core::Language;
use pmk_policy::Rung;

use super::{Report, share};
use crate::{exchange::recover::replan, messages::terminal};

/// Returns rows of cells in the reader's language, the heading first; columns of numbers have a heading with `#`. A row
/// that is part of the row above is indented.
pub fn rows(report: &Report, language: Language) -> Vec<Vec<String>> {
    let heading = report.policies.iter().map(|policy| format!("#{}", policy.label));
    let rows: RefCell<Vec<Vec<String>>> = RefCell::new(vec![std::iter::once(String::new()).chain(heading).collect()]);
    let row_in = |language: Language, name: &str, cell: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = (0..report.policies.len()).map(cell).collect();
        // Rows without any value are left out.
        if cells.iter().any(|cell| cell != "0" && cell != "-") || ALWAYS.contains(&name) {
            let name = terminal::translated(name, language).into_owned();
            rows.borrow_mut().push(std::iter::once(name).chain(cells).collect());
        }
    };
    let row = |name: &str, cell: &dyn Fn(usize) -> String| row_in(language, name, cell);
    // Categories are the words of whoever asks: they stay as they are.
    let row_of_category =
        |name: &str, cell: &dyn Fn(usize) -> String| row_in(Language::English, &format!("  {name}"), cell);
    let tally = |at: usize| &report.policies[at].outcome.tally;
    let score = |at: usize| &report.policies[at].outcome.score;
    let totals = |at: usize| &report.results.totals[at];
    row("tokens sent", &|at| count(tally(at).tokens_sent));
    row("  p50 of a request", &|at| count(totals(at).sizes.quantile(0.5)));
    row("  p95", &|at| count(totals(at).sizes.quantile(0.95)));
    row("  max", &|at| count(totals(at).sizes.max()));
    row("  for summaries", &|at| count(tally(at).tokens_summarised));
    row("prefix kept", &|at| percent(share(tally(at).tokens_reused, tally(at).tokens_accepted())));
    row("cost in dollars", &|at| report.policies[at].cost.map_or("-".into(), |cost| format!("{cost:.2}")));
    row("evidence visible", &|at| percent(share(score(at).visible, score(at).with_evidence)));
    for category in categories(report) {
        row_of_category(category, &|at| {
            let score = totals(at).scores.get(category).copied().unwrap_or_default();
            percent(share(score.visible, score.with_evidence))
        });
    }
    row("questions answered", &|at| percent(share(score(at).answered, score(at).with_answer)));
    for category in categories(report) {
        row_of_category(category, &|at| {
            let score = totals(at).scores.get(category).copied().unwrap_or_default();
            percent(share(score.answered, score.with_answer))
        });
    }
    row("overflows predicted", &|at| count(tally(at).overflows_predicted));
    row("overflows met", &|at| count(tally(at).overflows_met));
    for (number, rung) in Rung::ALL.into_iter().enumerate() {
        row(&format!("  {}", rung.name()), &|at| count(tally(at).rungs[number]));
    }
    row(&format!("  {}", replan::NAME), &|at| count(tally(at).replans));
    row("messages unanswered", &|at| count(tally(at).unanswered));
    row("turns dropped", &|at| count(tally(at).turns_dropped));
    row("turns summarized", &|at| count(tally(at).turns_summarised));
    row("results dropped", &|at| count(tally(at).results_dropped));
    row("messages shortened", &|at| count(tally(at).messages_replaced));
    row("contents capped", &|at| count(tally(at).contents_capped));
    row("messages recalled", &|at| count(tally(at).messages_recalled));
    row("decisions", &|at| count(tally(at).decisions));
    row("  fuel each", &|at| count(tally(at).fuel.checked_div(tally(at).decisions).unwrap_or(0)));
    row("  µs p50", &|at| count(totals(at).times.quantile(0.5)));
    row("  µs p95", &|at| count(totals(at).times.quantile(0.95)));
    row("failures", &|at| count(tally(at).failures));
    row("refused by the guard", &|at| count(tally(at).rejections));
    row("corrected by the guard", &|at| count(tally(at).corrections));
    rows.into_inner()
}

/// Rows that are shown even if they are all zero.
const ALWAYS: [&str; 4] = ["overflows predicted", "overflows met", "turns dropped", "failures"];

/// The categories of questions; empty if there is only one, which would repeat the total.
pub(super) fn categories(report: &Report) -> Vec<&str> {
    let categories: Vec<&str> = report
        .results
        .totals
        .first()
        .map(|totals| totals.scores.keys().map(String::as_str).collect())
        .unwrap_or_default();
    if categories.len() > 1 { categories } else { vec![] }
}

/// A number with commas.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in percent.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((percent(Some(0.1234)), percent(None)), ("12.3 %".into(), "-".into()));
    }
}
