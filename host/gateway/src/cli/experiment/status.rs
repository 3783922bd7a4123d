//! `experiment status`: the arms, and which differences are significant.

use std::collections::{BTreeMap, btree_map::Entry};

use clap::Args;
use jiff::Timestamp;
use pmk_core::Language;
use pmk_system::{clock, error::Failure};
use serde_json::json;

use super::super::{
    context::{Context, block_on},
    output::{print, print_json},
    page::Page,
    text::printable,
};
use super::suspensions::Suspensions;
use crate::{
    config::ExperimentConfig,
    control::look,
    evaluation::compare::report::{significant, significant_both},
    guard_rail,
    policies::experiment::figures::{
        self, ArmFigures, Compared, Difference, Figures, Finding, LEAST_CONVERSATIONS, PoliciesChanged, Role,
    },
    presence::health::{RefusedExperiment, Report},
    store::Store,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Status {
    /// A past experiment [default: the one in gateway.json, otherwise the last one]
    name: Option<String>,
}

impl Status {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        let config = context.config()?;
        if let Some(on) = config.experiment.as_ref().filter(|experiment| experiment.is_on(clock::now_ms()))
            && let Err(failure) = super::load(context, &config.policy, on)
        {
            context.warn(&format!("the gateway cannot start it as it is defined: {}", failure.message()));
        }
        let written = config.experiment;
        let store = Store::open_if_any(context.place()?)?;
        let known = block_on(async {
            let name = match (self.name, &written, &store) {
                (Some(name), _, _) => Some(name),
                (None, Some(written), _) => Some(written.name.clone()),
                (None, None, Some(store)) => store.newest_experiment().await?,
                (None, None, None) => None,
            };
            let Some(name) = name else { return Ok(None) };
            let written = written.filter(|written| written.name == name);
            let (conversations, stopped, began_as) = match &store {
                Some(store) => {
                    let stopped = store.stopped_arms(&name).await?;
                    (store.arm_conversations(&name, i64::MIN).await?, stopped, store.design(&name).await?)
                }
                None => Default::default(),
            };
            if written.is_none() && conversations.is_empty() {
                return Err(Failure::new(format!("experiment `{name}` does not exist"))
                    .hint("without a name, the experiment in gateway.json is shown, or else the last one"));
            }
            // A change that was refused, or made after the end, is not what the conversations have gone by.
            let design = began_as.or_else(|| written.as_ref().map(figures::design));
            let mut figures = figures::figures(&name, design.as_ref(), &conversations, &stopped);
            if let (Some(store), Some(design)) = (&store, &design) {
                // Read once for each time since when the guard rail counts.
                let never = guard_rail::hidden_since(&conversations, &design.control);
                let mut hidden = BTreeMap::from([(i64::MIN, never)]);
                for arm in design.arms.iter().filter(|arm| arm.name != design.control) {
                    let hidden_ms = match hidden.entry(design.judged_since(&arm.name)) {
                        Entry::Occupied(known) => *known.get(),
                        Entry::Vacant(unknown) => {
                            let judged = store.guarded_conversations(&name, *unknown.key()).await?;
                            *unknown.insert(guard_rail::hidden_since(&judged, &design.control))
                        }
                    };
                    figures.hide_failures_since(&arm.name, hidden_ms);
                }
            }
            let began_ms = conversations.iter().map(|conversation| conversation.drawn_at_ms).min();
            Ok(Some((figures, written, began_ms)))
        })?;
        let Some((figures, written, began_ms)) = known else {
            return Err(Failure::new("there is no experiment")
                .hint("define one as `experiment` in gateway.json, or use `experiment start --file FILE`"));
        };
        let on = written.as_ref().filter(|written| written.is_on(clock::now_ms()));
        let report = on.and_then(|_| report(context));
        let refused = on.zip(report.as_ref()).and_then(|(on, report)| refused(report, &on.name));
        let state = State::of(written.as_ref(), refused.as_ref());
        if let Some(written) = &written {
            super::warn_if_futile(context, written);
        }
        let since = began_ms.and_then(|began_ms| Timestamp::from_millisecond(began_ms).ok());
        let suspended = report.map(|report| report.suspended_arms).unwrap_or_default();
        let suspensions = Suspensions::read(context, &figures.experiment, since, suspended);
        if context.json {
            let mut document = serde_json::to_value(&figures).map_err(Failure::new)?;
            document["state"] = json!(state.name());
            document["refused"] = json!(refused.as_ref().map(|refused| &refused.why));
            document["start"] = json!(written.and_then(|written| written.start).map(|start| start.to_string()));
            document["level"] = json!(figures::LEVEL);
            document["suspended"] = json!(suspensions.suspended);
            document["suspensions"] = json!(suspensions.suspensions);
            return print_json(&document);
        }
        print(&format!("{}{}", page(&figures, state, context.language), suspensions.page(context.language)))
    }
}

/// Whether conversations get arms.
#[derive(Clone, Copy)]
enum State<'a> {
    On(Timestamp),
    Later(Timestamp),
    /// The running gateway has refused it for this reason.
    Refused(&'a str),
    /// It is on, with the arms that it had before a change which the running gateway has refused for this reason.
    Unchanged(Timestamp, &'a str),
    Off,
}

impl<'a> State<'a> {
    fn of(config: Option<&ExperimentConfig>, refused: Option<&'a RefusedExperiment>) -> State<'a> {
        match (config.and_then(|config| config.start), refused) {
            (Some(start), Some(RefusedExperiment { why, goes_on: true, .. })) => State::Unchanged(start, why),
            (_, Some(RefusedExperiment { why, .. })) => State::Refused(why),
            (Some(start), None) if start <= Timestamp::now() => State::On(start),
            (Some(start), None) => State::Later(start),
            (None, None) => State::Off,
        }
    }

    fn name(self) -> &'static str {
        match self {
            State::On(_) | State::Unchanged(..) => "on",
            State::Later(_) => "later",
            State::Refused(_) => "not-started",
            State::Off => "off",
        }
    }
}

/// Returns what the running gateway says of itself.
fn report(context: &Context) -> Option<Report> {
    look(&context.home).ok()?.report
}

/// Returns the experiment if the running gateway says that it has refused it as it is.
fn refused(report: &Report, name: &str) -> Option<RefusedExperiment> {
    report.experiment.clone().filter(|refused| refused.name == name)
}

fn page(figures: &Figures, state: State<'_>, language: Language) -> String {
    let mut page = Page::new(language);
    let since = page.translated(&match state {
        State::On(start) => format!("running since {start}"),
        State::Later(start) => format!("starts at {start}"),
        State::Refused(why) => format!("not started: {why}"),
        State::Unchanged(start, why) => {
            format!("running since {start} without its last change, which cannot be used: {why}")
        }
        State::Off => "off".into(),
    });
    let experiment = page.translated("experiment");
    let colon = language.pick(": ", "：");
    page.text(&format!("{experiment} {}{colon}{since}\n\n", printable(&figures.experiment)));
    let heading =
        ["ARM", "#WEIGHT", "#CONVERSATIONS", "#TURNS", "#FAILED", "#OVERFLOWED", "#ASKED AGAIN", "#UP", "#DOWN"];
    let heading =
        heading.into_iter().chain(["#CALLED OFF", "#TOKENS/TURN", "#SECONDS/ANSWER"]).map(str::to_owned).collect();
    let rows = figures.arms.iter().map(|arm| row(arm, &page));
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
    page.columns(&rows);
    if figures.is_mismatched {
        page.text("\n");
        page.say(
            "the arms do not have the conversations that their weights give them: do not trust any of these figures",
        );
        for arm in figures.arms.iter().filter(|arm| arm.role != Role::Shadow) {
            let (has, expected) = (arm.conversations.to_string(), format!("{:.0}", arm.conversations_expected));
            let told = page.filled("{} has {} conversations; about {} are expected", &[&arm.arm, &has, &expected]);
            page.text(&format!("  {told}\n"));
        }
    }
    for arm in &figures.arms {
        if let Some(stopped) = &arm.stopped {
            page.text("\n");
            let reason = page.translated(&stopped.reason);
            let told = page.filled("{} was stopped at {}: {}", &[&arm.arm, &stopped.at, &reason]);
            page.text(&format!("{told}\n"));
            let moved = page.translated(&format!("{} conversations were moved to the control", arm.moved));
            page.text(&format!("  {moved}\n"));
        }
    }
    for arm in figures.arms.iter().filter(|arm| arm.role == Role::Arm) {
        let control = figures.control.as_deref().unwrap_or_default();
        page.text("\n");
        let compared = page.filled("{} compared with {}", &[&arm.arm, control]);
        page.text(&format!("{compared}\n"));
        if arm.stopped.is_some() {
            page.text(&format!("  {}\n", page.translated("only turns answered before it was stopped are compared")));
        }
        let Some(Compared {
            arm: of_arm,
            control: of_control,
            weights_changed,
            policies_changed,
            failures_hidden_since,
        }) = &arm.compared
        else {
            continue;
        };
        let [of_arm, of_control] = [of_arm, of_control].map(|count| count.to_string());
        if let Some(PoliciesChanged { arm: changed, at }) = policies_changed {
            let told = "{} has decided by these policies only since {}, so only conversations drawn since are compared: {} has {}, \
                        {} has {}";
            let told = page.filled(told, &[changed, at, &arm.arm, &of_arm, control, &of_control]);
            page.text(&format!("  {told}\n"));
        }
        if let Some(since) = failures_hidden_since.as_ref().filter(|_| arm.stopped.is_none()) {
            let told = "a suspended policy of {} was first skipped at {}, which may hide failures: the guard rail counts none since then";
            page.text(&format!("  {}\n", page.filled(told, &[control, since])));
        }
        if *weights_changed {
            let told = "the arm was added or the weights have changed, so only conversations drawn with the newest are \
                        compared: {} has {}, {} has {}";
            let told = page.filled(told, &[&arm.arm, &of_arm, control, &of_control]);
            page.text(&format!("  {told}\n"));
        }
        if arm.differences.iter().all(|it| it.finding == Finding::TooFewConversations) {
            let told = "no conclusion before each has {} conversations with an answer: {} has {}, {} has {}";
            let least = LEAST_CONVERSATIONS.to_string();
            let told = page.filled(told, &[&least, &arm.arm, &of_arm, control, &of_control]);
            page.text(&format!("  {told}\n"));
            continue;
        }
        let mut lines = Page::new(language).with("  ", 23);
        for difference in &arm.differences {
            let statement = statement(difference, &page);
            lines.line(difference.figure, statement);
        }
        page.text(&lines.done());
    }
    if figures.arms.iter().any(|arm| arm.role == Role::Shadow) {
        page.text("\n");
        page.say("the decisions of a shadow arm are in `pmk-host audit`: it answers nobody");
    }
    if figures.arms.iter().any(|arm| arm.differences.iter().any(|it| it.interval.is_some())) {
        page.text("\n");
        page.say("the intervals hold jointly with 95 % confidence, however often you look");
    }
    page.done()
}

fn row(arm: &ArmFigures, page: &Page) -> Vec<String> {
    let role = match arm.role {
        Role::Control => "{} (control)",
        Role::Shadow => "{} (shadow)",
        Role::Gone => "{} (removed)",
        Role::Arm if arm.stopped.is_some() => "{} (stopped)",
        Role::Arm => "{}",
    };
    let name = page.filled(role, &[&arm.arm]);
    let per_turn = |sum: u64| match arm.turns {
        0 => "-".into(),
        turns => significant(sum as f64 / turns as f64),
    };
    let seconds = arm.latency_ms.map_or_else(|| "-".into(), |ms| format!("{:.1}", ms as f64 / 1_000.0));
    let weight = arm.weight.map_or_else(|| "-".into(), |weight| weight.to_string());
    let counts = [
        arm.conversations,
        arm.turns,
        arm.failed,
        arm.overflowed,
        arm.reasked,
        arm.likes,
        arm.dislikes,
        arm.called_off,
    ];
    // A shadow arm answers nobody.
    let shown = |count: u64| if arm.role == Role::Shadow { "-".to_owned() } else { count.to_string() };
    let counts = counts.into_iter().map(shown);
    [name, weight].into_iter().chain(counts).chain([per_turn(arm.tokens_in), seconds]).collect()
}

/// Describes one figure, and the interval of the difference.
fn statement(difference: &Difference, page: &Page) -> String {
    let Difference { control, arm, interval, finding, .. } = difference;
    let [control, arm] = significant_both([*control, *arm]);
    let bounds = interval.map_or_else(String::new, |[low, high]| format!(" [{}, {}]", signed(low), signed(high)));
    page.translated(&match finding {
        Finding::More => format!("more: {arm} against {control}{bounds}"),
        Finding::Less => format!("less: {arm} against {control}{bounds}"),
        Finding::NoDifferenceShown => format!("no difference shown: {arm} against {control}{bounds}"),
        Finding::TooFewConversations => "too few conversations".to_owned(),
    })
}

fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", significant(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::experiment::tests::experiment,
        store::{ArmConversation, Design, StoppedArm, assignment::Weights},
    };

    #[test]
    fn arms_without_their_shares_of_the_conversations_are_told_before_any_finding() {
        let weights = Weights::from([("a".into(), 1), ("b".into(), 1)]);
        let of =
            |arm: &str| ArmConversation { arm: arm.into(), weights: weights.clone(), ..ArmConversation::default() };
        let design = figures::design(&experiment("less", &["a", "b"]));
        let shown = |of_b: usize, language| {
            let conversations = [vec![of("a"); 30], vec![of("b"); of_b]].concat();
            let figures = figures::figures("less", Some(&design), &conversations, &BTreeMap::new());
            page(&figures, State::Off, language)
        };
        assert!(!shown(24, Language::English).contains("do not trust"), "chance explains it");
        let told = "\nthe arms do not have the conversations that their weights give them: do not trust any of these \
                    figures\n  a has 30 conversations; about 16 are expected\n  b has 2 conversations; about 16 are \
                    expected\n\nb compared with a\n";
        let page = shown(2, Language::English);
        assert!(page.contains(told), "{page}");
        let page = shown(2, Language::TraditionalChinese);
        assert!(page.contains("請勿採信") && page.contains("  b 有 2 個對話，照權重應約有 16 個\n"), "{page}");
    }

    /// Once, arms of 15 and 14 conversations had too few, as some had no answer yet, and the page did not say so.
    #[test]
    fn what_is_missing_for_a_conclusion_is_conversations_with_an_answer() {
        let weights = Weights::from([("a".into(), 1), ("b".into(), 1)]);
        let of = |arm: &str, turns: u64| ArmConversation {
            arm: arm.into(),
            weights: weights.clone(),
            turns,
            ..ArmConversation::default()
        };
        let design = figures::design(&experiment("less", &["a", "b"]));
        let conversations = [vec![of("a", 1); 15], vec![of("b", 1); 11], vec![of("b", 0); 3]].concat();
        let figures = figures::figures("less", Some(&design), &conversations, &BTreeMap::new());
        let shown = page(&figures, State::Off, Language::English);
        let told =
            "b compared with a\n  no conclusion before each has 12 conversations with an answer: b has 11, a has 15\n";
        assert!(shown.contains(told), "{shown}");
    }

    #[test]
    fn what_is_left_out_of_a_comparison_is_told() {
        let drawn = |arm: &str, weight_of_b: u32| ArmConversation {
            arm: arm.into(),
            weights: Weights::from([("a".into(), 1), ("b".into(), weight_of_b)]),
            turns: 1,
            ..ArmConversation::default()
        };
        let of =
            |weight: u32, count: usize| [vec![drawn("a", weight); count], vec![drawn("b", weight); count]].concat();
        let conversations = [of(2, 20), of(1, 13)].concat();
        let design = figures::design(&experiment("less", &["a", "b"]));
        let stopped = StoppedArm { reason: "worse".into(), at_ms: 0, conversations: conversations.clone() };
        let figures = figures::figures("less", Some(&design), &conversations, &[("b".into(), stopped)].into());
        let shown = page(&figures, State::Off, Language::English);
        let told = "b compared with a\n  only turns answered before it was stopped are compared\n  the arm was added \
                    or the weights have changed, so only conversations drawn with the newest are compared: b has 13, a \
                    has 13\n  failures";
        assert!(shown.contains(told), "{shown}");
        let shown = page(&figures, State::Off, Language::TraditionalChinese);
        let told = "  只比較停用之前回答的輪次\n  這一組是後來加入的，或權重改過，只比較照最新權重分到的對話：b 有 13 個，a 有 13 個\n";
        assert!(shown.contains(told), "{shown}");
    }

    /// Once, a difference was claimed between figures of 0.000, with an interval that seemed to hold zero.
    #[test]
    fn a_small_difference_has_its_size() {
        let difference = Difference {
            figure: "failures a turn",
            control: 0.0002,
            arm: 0.0021,
            interval: Some([0.0004, 0.0034]),
            finding: Finding::More,
        };
        let said = statement(&difference, &Page::new(Language::English));
        assert_eq!(said, "more: 0.0021 against 0.00020 [+0.00040, +0.0034]");
        // With two digits of each, both were 0.51.
        let difference = Difference { control: 0.506, arm: 0.514, interval: Some([0.001, 0.015]), ..difference };
        let said = statement(&difference, &Page::new(Language::English));
        assert_eq!(said, "more: 0.5140 against 0.5060 [+0.0010, +0.015]");
    }

    /// Until somebody began a conversation, the claim of before was still made.
    #[test]
    fn a_finding_outlived_the_weights_that_it_was_made_with() {
        let weights = Weights::from([("a".into(), 1), ("b".into(), 1)]);
        let of = |arm: &str, overflowed: u64| ArmConversation {
            arm: arm.into(),
            weights: weights.clone(),
            turns: 1,
            overflowed,
            ..ArmConversation::default()
        };
        let conversations = [vec![of("a", 0); 20], vec![of("b", 1); 20]].concat();
        let mut design = figures::design(&experiment("less", &["a", "b"]));
        let compared = |design: &Design| {
            let figures = figures::figures("less", Some(design), &conversations, &BTreeMap::new());
            let compared = figures.arms[1].compared.clone().expect("a comparison");
            (compared.arm, compared.control, compared.weights_changed, figures.arms[1].differences[1].finding)
        };
        assert_eq!(compared(&design), (20, 20, false, Finding::More));
        design.arms[1].weight = 3;
        assert_eq!(compared(&design), (0, 0, true, Finding::TooFewConversations));
        design.arms[0].weight = 0;
        assert_eq!(compared(&design), (20, 20, false, Finding::More), "the control is drawn no more");
    }
}
