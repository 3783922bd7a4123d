//! The lanes of the demo as they fill, each a bar and a line under it.

use std::{cell::RefCell, thread, time::Duration};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Step, WINDOW, refusals, rungs, thousands};
use crate::{demo::Demo, messages::Messages};

const FITS: &str = "{prefix:9} {wide_bar:.cyan} {human_pos:>6}";
const REFUSED: &str = "{prefix:9} {wide_bar:.red} {human_pos:>6}";

/// The bars of all lanes.
pub(super) struct Screen<'a> {
    demo: &'a Demo,
    messages: &'a Messages,
    question: ProgressBar,
    lanes: Vec<Lane>,
    /// How long a question is shown.
    pace: Duration,
}

struct Lane {
    bar: ProgressBar,
    line: ProgressBar,
    /// What has happened in it.
    steps: RefCell<Vec<Step>>,
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template that is right").progress_chars("█▌░")
}

impl<'a> Screen<'a> {
    /// Empty lanes, which take so long to fill.
    pub fn over(demo: &'a Demo, messages: &'a Messages, display: ProgressDrawTarget, time: Duration) -> Screen<'a> {
        let all = MultiProgress::with_draw_target(display);
        let line = |template: &str| all.add(ProgressBar::new(WINDOW).with_style(style(template)));
        let question = line("{wide_msg}");
        let lanes = demo.policies().map(|policy| {
            let bar = line(FITS);
            bar.set_prefix(messages.demo_lane(policy));
            let under = line("          {wide_msg:.dim}");
            under.set_message(messages.demo_about(policy));
            Lane { bar, line: under, steps: RefCell::default() }
        });
        let lanes = lanes.collect();
        // One beat at the beginning, for what the lanes are, and one for a refusal.
        let pace = time / (u32::try_from(demo.turns()).unwrap_or(u32::MAX).saturating_add(4));
        let screen = Screen { demo, messages, question, lanes, pace };
        screen.question.set_message(messages.demo_question(1, demo.turns(), &demo.asked(0)));
        screen.lanes.iter().for_each(|lane| lane.bar.tick());
        thread::sleep(3 * pace);
        screen
    }

    /// A turn is done.
    pub fn show(&self, turn: usize, steps: &[Step]) {
        let Screen { demo, messages, .. } = self;
        self.question.set_message(messages.demo_question(turn + 1, demo.turns(), &demo.asked(turn)));
        let refused = self.lanes.iter().zip(steps).filter(|(_, step)| step.refusals > 0);
        for (lane, step) in refused.clone() {
            lane.bar.set_style(style(REFUSED));
            lane.bar.set_position(step.tokens_largest);
            lane.line.set_message(messages.demo_refuses(&thousands(step.tokens_largest)));
        }
        if refused.count() > 0 {
            thread::sleep(self.pace);
        }
        for (lane, step) in self.lanes.iter().zip(steps) {
            lane.bar.set_style(style(FITS));
            lane.take(step, messages);
        }
        thread::sleep(self.pace);
    }

    /// Leaves the lanes as they are.
    pub fn leave(self) {
        self.question.abandon();
        for lane in self.lanes {
            lane.bar.abandon();
            lane.line.abandon();
        }
    }
}

impl Lane {
    fn take(&self, step: &Step, messages: &Messages) {
        let mut seen = self.steps.borrow_mut();
        seen.push(step.clone());
        self.bar.set_position(step.tokens_sent);
        let mut told = vec![messages.demo_refused(refusals(&seen))];
        let rungs = rungs(&seen);
        if !rungs.is_empty() {
            told.push(messages.demo_recovered(&rungs));
        }
        if step.turns_out_of_view > 0 {
            told.push(messages.demo_left_out(step.turns_out_of_view));
        }
        self.line.set_message(told.join(" · "));
    }
}
