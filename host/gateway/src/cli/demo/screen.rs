//! The lanes of the demo while they fill up: a bar for each, with lines of text below it.

use std::{cell::RefCell, thread, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use dialoguer::console::Term;
use unicode_width::UnicodeWidthStr;

use super::{
    super::output::{columns, unbroken},
    Step, WINDOW, refusals, rungs, thousands,
};
use crate::{evaluation::demo::Demo, messages::Messages};

const FITS: &str = "{prefix:9} {wide_bar:.cyan} {human_pos:>6}";
const REFUSED: &str = "{prefix:9} {wide_bar:.red} {human_pos:>6}";

/// With this many columns, the text of a lane fits on one line.
const ROOMY_COLUMNS: usize = 76;

/// The layout of texts on the terminal.
#[derive(Clone, Copy)]
struct Layout {
    columns: usize,
    /// The indent of the text below a bar.
    indent: usize,
    /// The number of lines of that text.
    facts: usize,
}

impl Layout {
    fn of(columns: usize) -> Layout {
        // The last column stays free: on some terminals a cursor there moves to the next line.
        let columns = columns.saturating_sub(1);
        match columns >= ROOMY_COLUMNS {
            true => Layout { columns, indent: 10, facts: 1 },
            false => Layout { columns, indent: 2, facts: 2 },
        }
    }

    /// Wraps a text and pads it to at least this many lines, so that what is below it does not move.
    fn filled(self, text: &str, indent: usize, lines: usize) -> String {
        let text = unbroken(text, "", Some(self.columns.saturating_sub(indent)));
        let there = text.lines().count();
        let text = text.lines().map(|line| format!("{:indent$}{line}", "")).collect::<Vec<_>>().join("\n");
        text + &"\n ".repeat(lines.saturating_sub(there))
    }

    fn below_a_bar(self, text: &str) -> String {
        self.filled(text, self.indent, self.facts)
    }

    /// Joins facts, without breaking one across lines.
    fn facts(self, facts: &[String]) -> String {
        let room = self.columns.saturating_sub(self.indent);
        let mut lines: Vec<String> = vec![];
        for fact in facts {
            match lines.last_mut().filter(|line| line.width() + fact.width() + 3 <= room) {
                Some(line) => *line = format!("{line} · {fact}"),
                None => lines.push(fact.clone()),
            }
        }
        self.below_a_bar(&lines.join("\n"))
    }
}

/// The bars of all lanes.
pub(super) struct Screen<'a> {
    demo: &'a Demo,
    messages: &'a Messages,
    question: ProgressBar,
    lanes: Vec<Lane>,
    /// How long a question is shown.
    pace: Duration,
    layout: Layout,
    /// The number of lines of the longest question.
    asked_lines: usize,
}

struct Lane {
    bar: ProgressBar,
    line: ProgressBar,
    /// The steps so far.
    steps: RefCell<Vec<Step>>,
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template that is right").progress_chars("█▌░")
}

impl<'a> Screen<'a> {
    /// Shows empty lanes, to be filled in about `time`.
    pub fn over(demo: &'a Demo, messages: &'a Messages, display: ProgressDrawTarget, time: Duration) -> Screen<'a> {
        let all = MultiProgress::with_draw_target(display);
        let line = |template: &str| all.add(ProgressBar::new(WINDOW).with_style(style(template)));
        let layout = Layout::of(columns(&Term::stdout()).unwrap_or(80));
        let question = line("{msg}");
        let lanes = demo.policies().map(|policy| {
            let bar = line(FITS);
            bar.set_prefix(messages.demo_lane(policy));
            let under = line("{msg:.dim}");
            under.set_message(layout.below_a_bar(&messages.demo_about(policy)));
            Lane { bar, line: under, steps: RefCell::default() }
        });
        let lanes = lanes.collect();
        // Three beats at the beginning, for reading the lanes, and one for a refusal.
        let pace = time / (u32::try_from(demo.turns()).unwrap_or(u32::MAX).saturating_add(4));
        let mut screen = Screen { demo, messages, question, lanes, pace, layout, asked_lines: 1 };
        screen.asked_lines = (0..demo.turns()).map(|turn| screen.asked(turn).lines().count()).max().unwrap_or(1);
        screen.question.set_message(screen.asked(0));
        screen.lanes.iter().for_each(|lane| lane.bar.tick());
        thread::sleep(3 * pace);
        screen
    }

    fn asked(&self, turn: usize) -> String {
        let asked = self.messages.demo_question(turn + 1, self.demo.turns(), &self.demo.asked(turn));
        self.layout.filled(&asked, 0, self.asked_lines)
    }

    /// Shows the result of a turn.
    pub fn show(&self, turn: usize, steps: &[Step]) {
        let Screen { messages, layout, .. } = self;
        self.question.set_message(self.asked(turn));
        let refused = self.lanes.iter().zip(steps).filter(|(_, step)| step.refusals > 0);
        for (lane, step) in refused.clone() {
            lane.bar.set_style(style(REFUSED));
            lane.bar.set_position(step.tokens_largest);
            lane.line.set_message(layout.below_a_bar(&messages.demo_refuses(&thousands(step.tokens_largest))));
        }
        if refused.count() > 0 {
            thread::sleep(self.pace);
        }
        for (lane, step) in self.lanes.iter().zip(steps) {
            lane.bar.set_style(style(FITS));
            lane.take(step, messages, *layout);
        }
        thread::sleep(self.pace);
    }

    /// Leaves the lanes on the screen.
    pub fn leave(self) {
        self.question.abandon();
        for lane in self.lanes {
            lane.bar.abandon();
            lane.line.abandon();
        }
    }
}

impl Lane {
    fn take(&self, step: &Step, messages: &Messages, layout: Layout) {
        let mut seen = self.steps.borrow_mut();
        seen.push(step.clone());
        self.bar.set_position(step.tokens_sent);
        let mut told = vec![messages.demo_refused(refusals(&seen))];
        let rungs = rungs(&seen, messages);
        if !rungs.is_empty() {
            told.push(messages.demo_recovered(&rungs));
        }
        if step.turns_out_of_view > 0 {
            told.push(messages.demo_left_out(step.turns_out_of_view));
        }
        self.line.set_message(layout.facts(&told));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: what did not fit was cut off: "recovered (trim", and the number of turns left out was missing.
    #[test]
    fn no_fact_is_lost_and_none_is_torn() {
        let facts = ["refused once", "recovered (trim)", "16 turns left out"].map(str::to_owned);
        let shown = |columns| Layout::of(columns).facts(&facts);
        assert_eq!(shown(80), "          refused once · recovered (trim) · 16 turns left out");
        assert_eq!(shown(40), "  refused once · recovered (trim)\n  16 turns left out");
        let chinese = ["拒收 1 次", "已復原（裁切）", "略去 16 輪"].map(str::to_owned);
        assert_eq!(Layout::of(40).facts(&chinese), "  拒收 1 次 · 已復原（裁切）\n  略去 16 輪");
        assert_eq!(Layout::of(40).facts(&facts[..1]), "  refused once\n ");
    }
}
