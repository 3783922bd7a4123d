//! `demo`: shows in half a minute what policies are for.

mod screen;

use std::time::Duration;

use clap::Args;
use dialoguer::console::Term;
use indicatif::ProgressDrawTarget;
use pmk_core::Language;
use pmk_system::error::Failure;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::{
    arguments::between,
    context::Context,
    output::{columns, print, print_json, print_page},
    table,
};
use crate::{
    evaluation::{
        compare::replay::Step,
        demo::{Demo, Outcome, WINDOW},
    },
    messages::Messages,
    policies::{Loader, Named},
};

use screen::Screen;

#[derive(Debug, Args)]
pub(super) struct DemoCommand {
    /// Print the final table at once, as when piped
    #[arg(long)]
    plain: bool,

    /// How long the demo takes, in seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = between::<u64>(1, 600), conflicts_with = "plain")]
    seconds: u64,

    /// Language of the demo [default: the gateway's or the system's]
    #[arg(long, value_name = "zh-TW|en")]
    language: Option<Language>,
}

impl DemoCommand {
    pub(super) fn execute(self, context: &Context) -> Result<(), Failure> {
        let language = self.language.unwrap_or(context.language);
        let messages = Messages::new(language);
        let demo = Demo::open(&Loader::open(&context.home, Named::default())?, language)?;
        if context.json {
            return print_json(&document(&demo, &demo.play(|_, _| {})));
        }
        let title = messages.demo_title(demo.turns(), demo.policies().count(), &thousands(WINDOW));
        print_page(&format!("{title}\n\n"), "")?;
        let display = ProgressDrawTarget::stdout();
        // A pipe, or a terminal that cannot be redrawn.
        if self.plain || display.is_hidden() {
            let outcomes = demo.play(|_, _| {});
            print(&table(&rows(&messages, &outcomes), &messages, language, columns(&Term::stdout())))?;
            return print_page(&end(&demo, &outcomes, &messages), "  ");
        }
        let screen = Screen::over(&demo, &messages, display, Duration::from_secs(self.seconds));
        let outcomes = demo.play(|turn, steps| screen.show(turn, steps));
        screen.leave();
        print("\n")?;
        print_page(&end(&demo, &outcomes, &messages), "  ")
    }
}

/// Formats rows in columns, or as one line per figure if the terminal is too narrow.
fn table(rows: &[Vec<String>], messages: &Messages, language: Language, room: Option<usize>) -> String {
    let page = table::columns(rows, language);
    let ([headings, lanes @ ..], Some(room)) = (rows, room) else { return page };
    if page.lines().all(|line| line.width() <= room) {
        return page;
    }
    let line =
        |(heading, cell): (&String, &String)| format!("  {}\n", messages.pair(heading.trim_start_matches('#'), cell));
    let lane = |cells: &Vec<String>| {
        let figures: String = headings.iter().zip(cells).skip(1).map(line).collect();
        format!("{}\n{figures}", cells.first().map_or("", String::as_str))
    };
    lanes.iter().map(lane).collect()
}

/// Returns one row per lane, below the headings.
fn rows(messages: &Messages, outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let [policy, largest, refused, recovery, left_out, recalled, found] = messages.demo_headings();
    let number = |heading: String| format!("#{heading}");
    let headings = vec![policy, number(largest), number(refused), recovery, number(left_out), number(recalled), found];
    let lane = |outcome: &Outcome| {
        let rungs = rungs(&outcome.steps, messages);
        vec![
            messages.demo_lane(outcome.policy.as_deref()),
            thousands(largest_request(outcome)),
            refusals(&outcome.steps).to_string(),
            if rungs.is_empty() { "–".to_owned() } else { rungs },
            outcome.last.turns_out_of_view.to_string(),
            outcome.last.recalled.to_string(),
            messages.demo_verdict(outcome.found),
        ]
    };
    [headings].into_iter().chain(outcomes.iter().map(lane)).collect()
}

/// The last question, each lane's answer to it, and what to try next.
fn end(demo: &Demo, outcomes: &[Outcome], messages: &Messages) -> String {
    let mut page = format!("\n{}\n  {}\n\n", messages.demo_asked(demo.said_in()), demo.last());
    for outcome in outcomes {
        let sign = if outcome.found { '✓' } else { '✗' };
        let answer = outcome.answer.clone().unwrap_or_else(|| messages.demo_no_answer());
        let lane = messages.demo_lane(outcome.policy.as_deref());
        page.push_str(&format!("{sign} {}\n", messages.demo_says(&lane, &answer)));
        if outcome.last.recalled > 0 {
            page.push_str(&format!("  {}\n", messages.demo_recalled(outcome.last.recalled)));
        }
    }
    let [next, run, compare] = messages.demo_next();
    page.push_str(&format!(
        "\n{next}\n  pmk-host run --policy recall --window 2000\n      {run}\n  pmk-host compare --policy strict --policy \
         recall --histories DIR\n      {compare}\n"
    ));
    page
}

fn refusals(steps: &[Step]) -> u64 {
    steps.iter().map(|step| step.refusals).sum()
}

/// The rungs that were used, each once.
fn rungs(steps: &[Step], messages: &Messages) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in steps.iter().flat_map(|step| step.rungs.iter().copied()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    messages.listed(&names.into_iter().map(|name| messages.demo_rung(name)).collect::<Vec<_>>())
}

/// The largest request that was sent, refused or not.
fn largest_request(outcome: &Outcome) -> u64 {
    outcome.steps.iter().map(|step| step.tokens_largest).max().unwrap_or(0)
}

fn thousands(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

fn document(demo: &Demo, outcomes: &[Outcome]) -> Value {
    let step = |step: &Step| {
        json!({
            "tokens_largest": step.tokens_largest,
            "tokens_sent": step.tokens_sent,
            "refusals": step.refusals,
            "rungs": step.rungs,
            "turns_out_of_view": step.turns_out_of_view,
            "messages_recalled": step.recalled,
            "answered": step.answered,
        })
    };
    let lane = |outcome: &Outcome| {
        json!({
            "policy": outcome.policy,
            "turns": outcome.steps.iter().map(step).collect::<Vec<_>>(),
            "last": step(&outcome.last),
            "answer": outcome.answer,
            "found": outcome.found,
        })
    };
    json!({
        "window": WINDOW,
        "turns": demo.turns(),
        "question": demo.last(),
        "said_in_turn": demo.said_in(),
        "lanes": outcomes.iter().map(lane).collect::<Vec<_>>(),
    })
}
