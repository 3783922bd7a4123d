//! The report as one self-contained HTML page: no script, no network, light and dark. Text from a conversation or a
//! policy is escaped.

use std::fmt::Write;

use pmk_core::{Language, Origin};

use super::{
    Report,
    chart::{self, Point},
    curve,
    diff::{Diff, Row},
    markup::escape,
    metric::Metric,
    table,
};
use crate::{evaluation::compare::standing::State, messages::terminal};

const STYLE: &str = include_str!("page.css");
/// A line of Chinese may break after any character, which would make narrow columns of single characters.
const CHINESE_STYLE: &str = "th, td { word-break: keep-all; }\n.diff .text { word-break: normal; }\n";

/// Returns the whole page, in the reader's language.
pub fn html(report: &Report, diff: Option<&Diff>, language: Language) -> String {
    let mut page = Page { html: String::new(), language };
    let (tag, title) = (language.tag(), page.translated("Policies compared"));
    let more_style = language.pick("", CHINESE_STYLE);
    page.push(&format!(
        "<!doctype html>\n<html lang=\"{tag}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}{more_style}</style>\n</head>\n<body>\n<main>\n"
    ));
    page.head(report);
    page.differences(report);
    page.charts(report);
    page.numbers(report);
    if let Some(diff) = diff {
        page.side_by_side(report, diff);
    }
    page.method(report);
    page.push("</main>\n</body>\n</html>\n");
    page.html
}

/// The page under construction. Sentences are given in English and translated here.
struct Page {
    html: String,
    language: Language,
}

impl Page {
    fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Translates a sentence of the page, whose inserted values are already escaped. Text between backticks becomes
    /// code.
    fn translated(&self, text: &str) -> String {
        in_code(&terminal::translated(text, self.language))
    }

    fn head(&mut self, report: &Report) {
        let Report { subject, results, .. } = report;
        let turns: usize = results.conversations.iter().map(|replayed| replayed.turns).sum();
        let limit = subject
            .budget
            .map_or(String::new(), |budget| format!(", {} of them for the request", table::count(budget)));
        let window = subject.windows.phrase(table::count);
        let about = self.translated(&format!(
            "{} conversations with {} turns, {} questions. The model is `{}` with {window}{limit}. Seed {}.",
            table::count(results.conversations.len() as u64),
            table::count(turns as u64),
            table::count(results.asked),
            escape(&subject.model),
            subject.seed
        ));
        let title = self.translated("Policies compared");
        self.push(&format!("<h1>{title}</h1>\n<p>{about}</p>\n<ul class=\"policies\">"));
        for (number, policy) in report.policies.iter().enumerate() {
            let over: Vec<String> = policy.layers.iter().map(ToString::to_string).collect();
            let over = over.join(self.language.pick(" over ", "，其下是 "));
            let sha256 = policy.layers.first().map_or("", |layer| layer.sha256.as_str());
            self.push(&format!(
                "<li><svg class=\"key\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">{}</svg> <b>{}</b> {} <code>{}</code></li>",
                chart::shape(number, 7.0, 7.0),
                escape(&policy.label),
                escape(&over),
                escape(sha256.get(..12).unwrap_or(sha256))
            ));
        }
        self.push("</ul>\n");
        for told in report.prices(self.language).into_iter().chain(report.settings(self.language)) {
            self.push(&format!("<p>{}</p>\n", in_code(&escape(&told))));
        }
        for verdict in report.verdicts(self.language) {
            self.push(&format!("<p class=\"verdict\">{}</p>\n", in_code(&escape(&verdict))));
        }
        for told in report.faults(self.language) {
            self.push(&format!("<p>{}</p>\n", in_code(&escape(&told))));
        }
    }

    fn differences(&mut self, report: &Report) {
        let title = self.translated("Differences");
        self.push(&format!("<h2>{title}</h2>\n<div class=\"wide\"><table>\n<thead><tr>"));
        let heading = ["policy", "metric", "effect", "interval", "adjusted p", "", "would be found"];
        for name in heading.map(|name| self.translated(name)) {
            self.push(&format!("<th scope=\"col\">{name}</th>"));
        }
        self.push("</tr></thead>\n<tbody>\n");
        for comparison in &report.comparisons {
            for (metric, found) in &comparison.findings {
                let (class, sign) = if found.is_shown { ("shown", "● shown") } else { ("open", "○ not shown") };
                let detectable: String = match found.detectable {
                    0.0 => "-".into(),
                    effect if effect.is_infinite() => self.language.pick("never", "無法看出").into(),
                    effect => format!("{} {}", self.language.pick("from", "至少"), self.size(*metric, effect)),
                };
                let number = |value: f64| if value.is_finite() { metric.number(value) } else { "-".into() };
                let effect = if found.effect.is_finite() { self.size(*metric, found.effect) } else { "-".into() };
                let [policy, baseline] =
                    [comparison.policy, comparison.baseline].map(|at| escape(&report.policies[at].label));
                let row = format!(
                    "<tr class=\"{class}\"><th scope=\"row\">{policy} {} {baseline}</th><td>{}</td><td class=\"n\">{effect}</td>\
                     <td class=\"n\">[{}, {}]</td><td class=\"n\">{:.4}</td><td>{}</td><td class=\"n\">{detectable}</td></tr>\n",
                    self.language.pick("against", "對"),
                    self.translated(metric.name()),
                    number(found.interval.0),
                    number(found.interval.1),
                    found.adjusted_p,
                    self.translated(sign),
                );
                self.push(&row);
            }
        }
        self.push("</tbody>\n</table></div>\n");
    }

    fn size(&self, metric: Metric, effect: f64) -> String {
        self.translated(&metric.size(effect))
    }

    fn charts(&mut self, report: &Report) {
        let series: Vec<(&str, Vec<u64>)> = report
            .policies
            .iter()
            .zip(&report.results.totals)
            .map(|(policy, totals)| (policy.label.as_str(), curve(totals)))
            .collect();
        let (title, caption) = (
            self.translated("Tokens turn by turn"),
            self.translated(
                "The size of the first request of each turn, averaged over the conversations that reach it.",
            ),
        );
        let curves = chart::curves(&series, self.language);
        self.push(&format!("<h2>{title}</h2>\n<figure>{curves}<figcaption>{caption}</figcaption></figure>\n"));
        let points: Vec<Point<'_>> = report
            .policies
            .iter()
            .filter_map(|policy| Some(Point { label: &policy.label, x: policy.tokens_a_turn, y: policy.evidence? }))
            .collect();
        let title = self.translated("Tokens against evidence");
        self.push(&format!("<h2>{title}</h2>\n"));
        if points.is_empty() {
            let why = self.translated(
                "Without questions it is not known what in a conversation was needed: use `--questions FILE`.",
            );
            return self.push(&format!("<p>{why}</p>\n"));
        }
        let caption = self.translated(
            "Up and to the left is better. The bars are 95 % intervals of each policy alone; what differs is in the table above.",
        );
        let plane = chart::trade_off(&points, self.language);
        self.push(&format!("<figure>{plane}<figcaption>{caption}</figcaption></figure>\n"));
    }

    fn numbers(&mut self, report: &Report) {
        let title = self.translated("Numbers");
        self.push(&format!("<h2>{title}</h2>\n<div class=\"wide\"><table class=\"numbers\">\n"));
        for (at, row) in table::rows(report, self.language).iter().enumerate() {
            let (open, close) = if at == 0 { ("<thead><tr>", "</tr></thead>\n<tbody>") } else { ("<tr>", "</tr>") };
            self.push(open);
            for (column, cell) in row.iter().enumerate() {
                let text = escape(cell.trim_start_matches('#'));
                let is_part = if cell.starts_with("  ") { " class=\"part\"" } else { "" };
                let _ = match (at, column) {
                    (0, _) => write!(self.html, "<th scope=\"col\">{text}</th>"),
                    (_, 0) => write!(self.html, "<th scope=\"row\"{is_part}>{text}</th>"),
                    _ => write!(self.html, "<td class=\"n\">{text}</td>"),
                };
            }
            self.push(&format!("{close}\n"));
        }
        self.push("</tbody>\n</table></div>\n");
    }

    fn side_by_side(&mut self, report: &Report, diff: &Diff) {
        let (title, about) = (
            self.translated("Side by side"),
            self.translated(&format!(
                "The conversation `{}`, where the policies differ most: what the last request of each held of it.",
                escape(&diff.conversation)
            )),
        );
        self.push(&format!(
            "<h2>{title}</h2>\n<p>{about}</p>\n<div class=\"wide\"><table class=\"diff\">\n<thead><tr><th scope=\"col\">#</th>"
        ));
        let heading = ["who", "message"];
        for name in heading.map(|name| self.translated(name)) {
            self.push(&format!("<th scope=\"col\">{name}</th>"));
        }
        for policy in &report.policies {
            self.push(&format!("<th scope=\"col\">{}</th>", escape(&policy.label)));
        }
        let (host, what) = (self.translated("host"), self.translated("put in by the host"));
        self.push(&format!("</tr></thead>\n<tbody>\n<tr class=\"inserted\"><td></td><td>{host}</td><td>{what}</td>"));
        for inserted in &diff.inserted {
            self.push("<td>");
            for (origin, text) in inserted {
                let what = who(*origin, self.language);
                let details = format!("<details><summary>+ {what}</summary><pre>{}</pre></details>", escape(text));
                self.push(&details);
            }
            self.push("</td>");
        }
        self.push("</tr>\n");
        for row in &diff.rows {
            match row {
                Row::Message { number, who: origin, text, .. } => {
                    let who = who(*origin, self.language);
                    let cells =
                        format!("<td class=\"n\">{number}</td><td>{who}</td><td class=\"text\">{}</td>", escape(text));
                    self.push(&format!("<tr>{cells}"));
                }
                Row::Run { count, .. } => {
                    let alike = self.translated(&format!("{count} messages alike"));
                    self.push(&format!("<tr class=\"run\"><td></td><td></td><td>… {alike}</td>"));
                }
            }
            let (Row::Message { states, .. } | Row::Run { states, .. }) = row;
            for state in states {
                let (class, sign, word) = sign(*state);
                let word = self.translated(word);
                self.push(&format!("<td class=\"{class}\">{sign} {word}</td>"));
            }
            self.push("</tr>\n");
        }
        self.push("</tbody>\n</table></div>\n");
    }

    fn method(&mut self, report: &Report) {
        let conversations = report.results.conversations.len();
        let (title, method) = (
            self.translated("How to read this"),
            self.translated(&format!(
                "The same {conversations} conversations went through every policy, turn by turn, with the recorded \
                 answers. A difference is called shown if both hold: swapping the policies at random in each \
                 conversation gives as large a difference in fewer than 5 % of cases, corrected by Holm's method for \
                 all rows together; and the interval, from conversations resampled many times, excludes zero. All \
                 intervals hold jointly with 95 % confidence. “Would be found” is the size of a difference that these \
                 conversations would show four times out of five; smaller ones may exist unseen. Where a policy asks \
                 the model for a summary, one that the policies make without a model is used instead. Costs are those \
                 of a provider that still has the start of the last request in its cache."
            )),
        );
        self.push(&format!("<h2>{title}</h2>\n<p>{method}</p>\n"));
        let problems = &report.results.problems;
        if problems.is_empty() {
            return;
        }
        let told = self.translated(&format!("{} problems", problems.len()));
        self.push(&format!("<details><summary>{told}</summary><ul>"));
        for problem in problems {
            self.push(&format!("<li>{}</li>", escape(&terminal::translated(problem, self.language))));
        }
        self.push("</ul></details>\n");
    }
}

/// Marks text between backticks as code, in text that is already escaped.
fn in_code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }).collect()
}

/// The label for a message's origin.
const fn who(origin: Origin, language: Language) -> &'static str {
    let chinese = match origin {
        Origin::User => "使用者",
        Origin::Assistant => "模型",
        Origin::Seed => "種子",
        Origin::SeedAck => "種子的回應",
        Origin::MraResult => "mra 結果",
        Origin::ToolResult => "工具結果",
        Origin::Attachment => "附件",
        Origin::Summary => "摘要",
        Origin::Marker => "省略標記",
        Origin::Retrieval => "檢索",
        Origin::Recall => "找回",
    };
    let english = match origin {
        Origin::User => "person",
        other => other.name(),
    };
    language.pick(english, chinese)
}

/// The class, sign and word of a state, which distinguish it without colour.
const fn sign(state: State) -> (&'static str, &'static str, &'static str) {
    match state {
        State::Kept => ("kept", "●", "kept"),
        State::Shortened => ("shortened", "◐", "shortened"),
        State::Recalled => ("recalled", "↺", "recalled"),
        State::Summarised => ("summarised", "Σ", "summarized"),
        State::Dropped => ("dropped", "○", "dropped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_marks_of_code_is_code() {
        assert_eq!(in_code(&escape("`a<b` sends `c`")), "<code>a&lt;b</code> sends <code>c</code>");
    }
}
