//! The report as one page of HTML that needs nothing else: no script, no network, light and dark. Whatever comes
//! from a conversation or a policy is escaped.

use std::fmt::Write;

use super::{
    Report,
    chart::{self, Point},
    curve,
    diff::{Diff, Row},
    markup::escape,
    table,
};
use crate::compare::standing::State;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn html(report: &Report, diff: Option<&Diff>) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Policies compared</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    head(&mut out, report);
    differences(&mut out, report);
    charts(&mut out, report);
    numbers(&mut out, report);
    if let Some(diff) = diff {
        side_by_side(&mut out, report, diff);
    }
    method(&mut out, report);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn head(out: &mut String, report: &Report) {
    let Report { subject, results, .. } = report;
    let turns: usize = results.conversations.iter().map(|replayed| replayed.turns).sum();
    let limit =
        subject.budget.map_or(String::new(), |budget| format!(", {} of them for the request", table::count(budget)));
    let window = subject.window.map_or("the windows of the receipts".to_owned(), |window| {
        format!("a window of {} tokens", table::count(window))
    });
    let _ = write!(
        out,
        "<h1>Policies compared</h1>\n<p>{} conversations with {} turns, {} questions. The model is <code>{}</code> with \
         {window}{limit}. Seed {}.</p>\n<ul class=\"policies\">",
        table::count(results.conversations.len() as u64),
        table::count(turns as u64),
        table::count(results.asked),
        escape(&subject.model),
        subject.seed
    );
    for (number, policy) in report.policies.iter().enumerate() {
        let over: Vec<String> = policy.layers.iter().map(ToString::to_string).collect();
        let sha256 = policy.layers.first().map_or("", |layer| layer.sha256.as_str());
        let _ = write!(
            out,
            "<li><svg class=\"key\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">{}</svg> <b>{}</b> {} <code>{}</code></li>",
            chart::shape(number, 7.0, 7.0),
            escape(&policy.label),
            escape(&over.join(" over ")),
            escape(sha256.get(..12).unwrap_or(sha256))
        );
    }
    out.push_str("</ul>\n");
    for verdict in report.verdicts() {
        let _ = writeln!(out, "<p class=\"verdict\">{}</p>", in_code(&verdict));
    }
}

/// What stands between backticks as code.
fn in_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { format!("<code>{}</code>", escape(part)) } else { escape(part) }).collect()
}

fn differences(out: &mut String, report: &Report) {
    out.push_str(
        "<h2>Differences</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>policy</th><th>metric</th><th>effect</th>\
                  <th>interval</th><th>adjusted p</th><th></th><th>would be found</th></tr></thead>\n<tbody>\n",
    );
    for comparison in &report.comparisons {
        for (metric, found) in &comparison.findings {
            let (class, sign) = if found.is_shown { ("shown", "● shown") } else { ("open", "○ not shown") };
            let detectable = if found.detectable.is_finite() && found.detectable > 0.0 {
                format!("from {}", metric.size(found.detectable))
            } else {
                "-".into()
            };
            let number = |value: f64| if value.is_finite() { metric.number(value) } else { "-".into() };
            let effect = if found.effect.is_finite() { metric.size(found.effect) } else { "-".into() };
            let _ = writeln!(
                out,
                "<tr class=\"{class}\"><td>{} against {}</td><td>{}</td><td class=\"n\">{effect}</td><td class=\"n\">[{}, {}]</td>\
                 <td class=\"n\">{:.4}</td><td>{sign}</td><td class=\"n\">{detectable}</td></tr>",
                escape(&report.policies[comparison.policy].label),
                escape(&report.policies[comparison.baseline].label),
                metric.name(),
                number(found.interval.0),
                number(found.interval.1),
                found.adjusted_p,
            );
        }
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn charts(out: &mut String, report: &Report) {
    let series: Vec<(&str, Vec<u64>)> = report
        .policies
        .iter()
        .zip(&report.results.totals)
        .map(|(policy, totals)| (policy.label.as_str(), curve(totals)))
        .collect();
    let _ = write!(
        out,
        "<h2>Tokens turn by turn</h2>\n<figure>{}<figcaption>What the first request of each turn holds, \
                         on average over the conversations that get so far.</figcaption></figure>\n",
        chart::curves(&series)
    );
    let points: Vec<Point<'_>> = report
        .policies
        .iter()
        .filter_map(|policy| Some(Point { label: &policy.label, x: policy.tokens_a_turn, y: policy.evidence? }))
        .collect();
    out.push_str("<h2>Tokens against evidence</h2>\n");
    if points.is_empty() {
        out.push_str(
            "<p>Without questions nobody knows what of a conversation was needed: <code>--questions FILE</code>.</p>\n",
        );
        return;
    }
    let _ = writeln!(
        out,
        "<figure>{}<figcaption>Up and to the left is better. The bars are 95 % intervals of each policy alone; what \
         differs is in the table above.</figcaption></figure>",
        chart::trade_off(&points)
    );
}

fn numbers(out: &mut String, report: &Report) {
    out.push_str("<h2>Numbers</h2>\n<div class=\"wide\"><table class=\"numbers\">\n");
    for (at, row) in table::rows(report).iter().enumerate() {
        let (open, close) = if at == 0 { ("<thead><tr>", "</tr></thead>\n<tbody>") } else { ("<tr>", "</tr>") };
        out.push_str(open);
        for (column, cell) in row.iter().enumerate() {
            let text = escape(cell.trim_start_matches('#'));
            let is_part = if cell.starts_with("  ") { " class=\"part\"" } else { "" };
            let _ = match (at, column) {
                (0, _) => write!(out, "<th scope=\"col\">{text}</th>"),
                (_, 0) => write!(out, "<th scope=\"row\"{is_part}>{text}</th>"),
                _ => write!(out, "<td class=\"n\">{text}</td>"),
            };
        }
        let _ = writeln!(out, "{close}");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn side_by_side(out: &mut String, report: &Report, diff: &Diff) {
    let _ = write!(
        out,
        "<h2>Side by side</h2>\n<p>The conversation <code>{}</code>, where the policies differ most: what the last request of each \
         held of it.</p>\n<div class=\"wide\"><table class=\"diff\">\n<thead><tr><th>#</th><th>who</th><th>message</th>",
        escape(&diff.conversation)
    );
    for policy in &report.policies {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&policy.label));
    }
    out.push_str("</tr></thead>\n<tbody>\n<tr class=\"inserted\"><td></td><td>host</td><td>put in by the host</td>");
    for inserted in &diff.inserted {
        out.push_str("<td>");
        for (what, text) in inserted {
            let _ = write!(out, "<details><summary>+ {what}</summary><pre>{}</pre></details>", escape(text));
        }
        out.push_str("</td>");
    }
    out.push_str("</tr>\n");
    for row in &diff.rows {
        let states = match row {
            Row::Message { number, who, text, states } => {
                let _ = write!(
                    out,
                    "<tr><td class=\"n\">{number}</td><td>{who}</td><td class=\"text\">{}</td>",
                    escape(text)
                );
                states
            }
            Row::Run { count, states } => {
                let _ = write!(out, "<tr class=\"run\"><td></td><td></td><td>… {count} messages alike</td>");
                states
            }
        };
        for state in states {
            let (class, sign) = sign(*state);
            let _ = write!(out, "<td class=\"{class}\">{sign}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

/// How a state is told apart without colour.
const fn sign(state: State) -> (&'static str, &'static str) {
    match state {
        State::Kept => ("kept", "● kept"),
        State::Shortened => ("shortened", "◐ shortened"),
        State::Recalled => ("recalled", "↺ recalled"),
        State::Summarised => ("summarised", "Σ summed up"),
        State::Dropped => ("dropped", "○ dropped"),
    }
}

fn method(out: &mut String, report: &Report) {
    let conversations = report.results.conversations.len();
    let _ = write!(
        out,
        "<h2>How to read this</h2>\n<p>The same {conversations} conversations went through every policy, turn by turn, with the \
         recorded answers. A difference is called shown when both hold: swapping the policies by chance in each \
         conversation gives as much in fewer than 5 % of cases, corrected by Holm's method for all rows together; and the \
         interval, from conversations drawn again and again, leaves out zero. All intervals hold together with 95 %. \
         “Would be found” is the size of a difference that these conversations would show four times out of five; what is \
         smaller may be there unseen. Where a policy has the model sum something up, a summary that the policies make \
         without a model stands in its place. Costs are those of a provider that still has the start of the last \
         request in its cache.</p>\n"
    );
    if !report.results.problems.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{} things were not as they should be</summary><ul>",
            report.results.problems.len()
        );
        for problem in &report.results.problems {
            let _ = write!(out, "<li>{}</li>", escape(problem));
        }
        out.push_str("</ul></details>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_marks_of_code_is_code() {
        assert_eq!(in_code("`a<b` sends `c`"), "<code>a&lt;b</code> sends <code>c</code>");
    }
}
